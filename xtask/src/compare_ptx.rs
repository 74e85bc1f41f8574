//! `cargo xtask build-ptx --compare COMMIT`: what a change does to the PTX of each entry.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use cuda_builder::ptxas::{Usage, assemble};
use cuda_builder::{Arch, Built, CudaBuilder};

use crate::{build_ptx, progress, ptxas, setup, workspace};

/// Builds the kernels of a commit and of the working tree, and prints each entry whose PTX differs, with its registers,
/// spills and instructions before and after. Labels do not count. Returns the exit code: 0 if nothing differs, else 1.
pub fn run(commit: &str, archs: &[Arch]) -> anyhow::Result<u8> {
    setup::run(true)?;
    let before = build_at(commit, archs)?;
    let after = build_ptx::build(archs)?;
    let mut has_differences = false;
    for (arch, _) in &after.modules {
        for line in differences(*arch, &before, &after)? {
            println!("{line}");
            has_differences = true;
        }
    }
    Ok(u8::from(has_differences))
}

/// The kernels of a commit, built in a clone, by the builder of the working tree.
fn build_at(commit: &str, archs: &[Arch]) -> anyhow::Result<Built> {
    let clone = workspace::target().join("compare");
    if clone.join(".git").exists() {
        workspace::output(Command::new("git").current_dir(&clone).args(["fetch", "--quiet", "origin"]))?;
    } else {
        fs::create_dir_all(&clone).with_context(|| format!("cannot create `{}`", clone.display()))?;
        workspace::output(Command::new("git").args(["clone", "--quiet"]).arg(workspace::root()).arg(&clone))?;
    }
    let mut parse = Command::new("git");
    parse.current_dir(workspace::root()).args(["rev-parse", "--verify", "--quiet"]).arg(format!("{commit}^{{commit}}"));
    let found = workspace::output(&mut parse)
        .with_context(|| format!("there is no commit `{commit}`: give a hash, a branch or `HEAD~1`"))?;
    let commit = String::from_utf8_lossy(&found.stdout);
    let commit = commit.trim();
    let checkout = ["checkout", "--quiet", "--detach", commit];
    workspace::output(Command::new("git").current_dir(&clone).args(checkout))?;
    let builder = CudaBuilder::new(clone.join("kernels")).feature("ladder").archs(archs.iter().copied());
    let builder = builder.target_dir(clone.join("target").join("cuda-builder"));
    let label = format!("compiling the kernels of {} to PTX", commit.get(..8).unwrap_or(commit));
    Ok(progress::with_progress(&label, || builder.build())?)
}

/// A line for each entry of one architecture whose PTX differs.
fn differences(arch: Arch, before: &Built, after: &Built) -> anyhow::Result<Vec<String>> {
    let texts = |built: &Built| -> BTreeMap<String, String> {
        let modules = built.modules.iter().filter(|(of, _)| *of == arch);
        modules.flat_map(|(_, module)| module.entries()).map(|entry| (entry.name.clone(), plain(&entry.text))).collect()
    };
    let (old, new) = (texts(before), texts(after));
    let changed = changed(&old, &new);
    if changed.is_empty() {
        return Ok(Vec::new());
    }
    let ptxas = ptxas::find_or_install()?;
    let usages = |built: &Built| -> anyhow::Result<BTreeMap<String, Usage>> {
        let modules: Vec<_> = built.modules.iter().filter(|(of, _)| *of == arch).cloned().collect();
        let folder: PathBuf = workspace::target().join("cuda-builder").join("verify");
        let all = progress::with_progress("assembling the kernels", || assemble(&ptxas, &modules, &folder))?;
        Ok(all.into_iter().flatten().map(|usage| (usage.entry.clone(), usage)).collect())
    };
    let (old_usages, new_usages) = (usages(before)?, usages(after)?);
    let resources = |texts: &BTreeMap<String, String>, usages: &BTreeMap<String, Usage>, name: &str| {
        let Some(text) = texts.get(name) else { return "absent".to_owned() };
        let usage = usages.get(name);
        let number = |of: fn(&Usage) -> u32| usage.map_or("?".to_owned(), |usage| of(usage).to_string());
        let (registers, spilled) = (number(|usage| usage.registers), number(|usage| usage.spilled));
        format!("{registers} registers, {spilled} bytes spilled, {} instructions", instructions(text))
    };
    let line = |name: &String| {
        let (old, new) = (resources(&old, &old_usages, name), resources(&new, &new_usages, name));
        format!("{arch} {name}: {old} -> {new}")
    };
    Ok(changed.iter().map(line).collect())
}

/// The names of the entries that only one of the two has, or whose texts differ.
fn changed(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Vec<String> {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    names.into_iter().filter(|name| old.get(*name) != new.get(*name)).cloned().collect()
}

/// The beginnings of names whose numbers depend on other entries of the module, or on lines of the source: labels
/// (`$L__BB12_3`, where 12 is the place of the entry), local memory, and shared arrays.
const NUMBERED: [&str; 3] = ["$L__BB", "__local_depot", "shared_"];

/// An entry's text with these names numbered in their order.
fn plain(text: &str) -> String {
    let (mut plain, mut rest, mut names) = (String::new(), text, Vec::new());
    while let Some((at, beginning)) = NUMBERED.iter().filter_map(|name| Some((rest.find(name)?, *name))).min() {
        let (before, name) = rest.split_at(at);
        let digits = name[beginning.len()..].find(|c: char| !c.is_ascii_digit());
        let (name, after) = name.split_at(digits.map_or(name.len(), |digits| beginning.len() + digits));
        let number = names.iter().position(|other| *other == name).unwrap_or(names.len());
        if number == names.len() {
            names.push(name);
        }
        plain += &format!("{before}{beginning}{number}");
        rest = after;
    }
    plain + rest
}

/// The number of instructions of an entry's body.
fn instructions(text: &str) -> usize {
    let body = text.split_once('{').map_or("", |(_, body)| body);
    body.lines().map(str::trim).filter(|line| line.ends_with(';') && !line.starts_with('.')).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = ".visible .entry first(\n\t.param .u64 first_param_0\n)\n{\n\t.reg .b32 %r<3>;\n\
                         \tbra $L__BB7_2;\n\
                         $L__BB7_2:\n\tret;\n}";

    #[test]
    fn labels_and_declarations_do_not_count() {
        assert_eq!(plain(ENTRY), plain(&ENTRY.replace("BB7_", "BB12_")));
        assert_ne!(plain(ENTRY), plain(&ENTRY.replace("BB7_2", "BB7_3")));
        let shared = |a: u32, b: u32| format!(".shared .b8 shared_{a}[8];\nmov shared_{b};\nmov __local_depot{a};");
        assert_eq!(plain(&shared(17, 5)), plain(&shared(4, 80)));
        assert_ne!(plain(&shared(17, 5)), plain(&shared(17, 17)));
        assert_eq!(instructions(ENTRY), 2);
    }

    #[test]
    fn entries_that_differ_are_named() {
        let of = |all: &[(&str, &str)]| all.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
        let (old, new) = (of(&[("a", "1"), ("b", "2"), ("d", "4")]), of(&[("a", "1"), ("b", "3"), ("c", "4")]));
        assert_eq!(changed(&old, &new), ["b", "c", "d"]);
        assert!(changed(&old, &old).is_empty());
    }
}
