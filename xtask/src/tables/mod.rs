//! `cargo xtask tables`: writes a page of `docs/benchmarks` from the JSON of runs on a GPU machine.

mod markdown;
mod page;
mod runs;

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};

use crate::workspace;

/// The maximum number of lines of a page.
const MOST_LINES: usize = 200;

/// The maximum number of cases that are named as slower than a peer.
const MOST_NAMED: usize = 16;

/// The maximum number of columns of a line.
const MOST_COLUMNS: usize = 120;

/// Writes `docs/benchmarks/DEVICE.md` from the folder that `run.sh tables` has written.
pub fn run(device: &str, folder: &Path) -> anyhow::Result<()> {
    let is_name =
        !device.is_empty() && device.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-');
    ensure!(is_name, "`{device}` is not the name of a page: lowercase letters, digits and `-`, as in h100");
    let page = page(device, folder)?;
    let file = workspace::root().join("docs").join("benchmarks").join(device).with_extension("md");
    fs::write(&file, &page).with_context(|| format!("cannot write `{}`", file.display()))?;
    println!("{} ({} lines)", file.display(), page.lines().count());
    Ok(())
}

fn page(device: &str, folder: &Path) -> anyhow::Result<String> {
    let runs = runs::read(folder)?;
    // Names fewer slower cases if the page would be too long.
    let mut named = MOST_NAMED;
    let (page, lines) = loop {
        let page = page::write(device, &runs, named)?;
        let lines = page.lines().count();
        if lines <= MOST_LINES || named == 0 {
            break (page, lines);
        }
        named -= 1;
    };
    ensure!(lines <= MOST_LINES, "the page would have {lines} lines, and may have {MOST_LINES}: measure fewer cases");
    if let Some(line) = page.lines().find(|line| line.chars().count() > MOST_COLUMNS) {
        anyhow::bail!("a line would have more than {MOST_COLUMNS} columns: {line}");
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> std::path::PathBuf {
        workspace::root().join("xtask/src/tables/samples")
    }

    /// The samples are made up. `WARPFOLD_BLESS=1 cargo test -p xtask` writes a new snapshot.
    #[test]
    fn the_page_of_the_samples_is_the_snapshot() {
        let (page, file) = (page("example", &folder()).unwrap(), folder().join("page.md"));
        if std::env::var_os("WARPFOLD_BLESS").is_some() {
            fs::write(&file, &page).unwrap();
        }
        assert_eq!(page, fs::read_to_string(&file).unwrap(), "compare with `{}`", file.display());
    }

    #[test]
    fn a_folder_without_runs_is_an_error() {
        let error = page("example", &workspace::root().join("docs")).unwrap_err().to_string();
        assert!(error.contains("./run.sh tables") && error.contains("sums.json"), "{error}");
        assert!(run("../h200", &folder()).is_err());
    }
}
