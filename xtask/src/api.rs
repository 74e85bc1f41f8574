//! `cargo xtask api`: compares the libraries' public API with the lists in `xtask/api`, which have one item per line.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::{backend, progress, workspace};

/// A library whose public API is checked.
struct Library {
    package: &'static str,
    /// The library's name in code.
    name: &'static str,
    features: &'static str,
    /// Lists only the items whose lines contain one of these texts. Users do not see the others.
    only: &'static [&'static str],
}

/// The libraries that users call, and those whose items warpfold re-exports.
const LIBRARIES: [Library; 7] = [
    Library { package: "warpfold", name: "warpfold", features: "simt,serde", only: &[""] },
    Library {
        package: "warpfold-kernels",
        name: "kernels",
        features: "",
        only: &[
            "kernels::ops::",
            "kernels::reduce::reduction::",
            "kernels::reduce::exact::custom::",
            "kernels::reductions!",
            "kernels::exact_reductions!",
        ],
    },
    Library { package: "warpfold-cuda-std", name: "cuda_std", features: "simt", only: &[""] },
    Library { package: "warpfold-cuda-builder", name: "cuda_builder", features: "", only: &[""] },
    Library { package: "warpfold-cust", name: "cust", features: "", only: &[""] },
    Library { package: "warpfold-exact-sum", name: "exact_sum", features: "serde", only: &[""] },
    Library { package: "warpfold-simt", name: "simt", features: "", only: &[""] },
];

/// Compares the libraries' items with the lists, or writes the lists.
pub fn run(renew: bool) -> anyhow::Result<()> {
    let folder = workspace::root().join("xtask/api");
    let rustdoc = rustdoc()?;
    let mut different = Vec::new();
    for library in &LIBRARIES {
        let items = progress::with_progress("listing a public API", || items(library, &rustdoc))?;
        let file = folder.join(format!("{}.txt", library.name));
        if renew {
            fs::create_dir_all(&folder).context("cannot create xtask/api")?;
            fs::write(&file, &items).with_context(|| format!("cannot write `{}`", file.display()))?;
            continue;
        }
        let listed = fs::read_to_string(&file).with_context(|| format!("cannot read `{}`", file.display()))?;
        different.extend(differences(&listed, &items));
        println!("{:<14} {:>5} items", library.name, items.lines().count());
    }
    if !different.is_empty() {
        bail!(
            "the public API differs from xtask/api (- removed, + added):\n  {}\nIf the change is intended, run \
             `cargo xtask api --renew`, and list removed items in CHANGELOG.md",
            different.join("\n  ")
        );
    }
    Ok(())
}

/// The lines of a library's items, in rustdoc's order.
fn items(library: &Library, rustdoc: &Path) -> anyhow::Result<String> {
    let mut cargo = workspace::cargo();
    cargo.current_dir(workspace::root()).args(["rustdoc", "--quiet", "--lib", "--package", library.package]);
    cargo.args([
        "--features",
        library.features,
        "--",
        "-Zunstable-options",
        "--output-format=json",
        "--cap-lints=allow",
    ]);
    cargo.env("RUSTDOC", rustdoc).env(backend::ARCHS, "none").env_remove("RUSTDOCFLAGS");
    workspace::output(&mut cargo)?;
    let json = workspace::target().join("doc").join(format!("{}.json", library.name));
    let mut builder = public_api::Builder::from_rustdoc_json(json);
    builder = builder.omit_blanket_impls(true).omit_auto_trait_impls(true);
    let api = builder.build().with_context(|| format!("cannot parse rustdoc's JSON of {}", library.package))?;
    let lines =
        api.items().map(|item| item.to_string()).filter(|line| library.only.iter().any(|text| line.contains(text)));
    Ok(lines.map(|line| line + "\n").collect())
}

/// Writes a script that runs rustdoc with unstable options. `RUSTC_BOOTSTRAP` is set only there: build scripts of some
/// dependencies read it, so cargo would build these dependencies again.
fn rustdoc() -> anyhow::Result<PathBuf> {
    let file = workspace::target().join("rustdoc-with-json.sh");
    fs::write(&file, "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n")
        .context("cannot write `rustdoc-with-json.sh`")?;
    #[cfg(unix)]
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    Ok(file)
}

/// The lines that only one of the lists has: first the removed ones, then the added ones, both sorted.
fn differences(listed: &str, found: &str) -> Vec<String> {
    let (before, now): (BTreeSet<&str>, BTreeSet<&str>) = (listed.lines().collect(), found.lines().collect());
    let removed = before.difference(&now).map(|line| format!("- {line}"));
    let added = now.difference(&before).map(|line| format!("+ {line}"));
    removed.chain(added).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_removed_and_added_items() {
        assert_eq!(
            differences("pub fn a()\npub fn b()\n", "pub fn b(x: u8)\npub fn a()\n"),
            ["- pub fn b()", "+ pub fn b(x: u8)"]
        );
        assert!(differences("pub fn a()\n", "pub fn a()\n").is_empty());
    }

    #[test]
    fn each_library_has_a_list() {
        for library in &LIBRARIES {
            let list = fs::read_to_string(workspace::root().join(format!("xtask/api/{}.txt", library.name))).unwrap();
            assert!(list.lines().count() > 10, "{}", library.name);
        }
    }
}
