//! `cargo xtask tables`: writes a page of `docs/benchmarks` from the JSON files of `run.sh tables`.

mod markdown;
mod page;
mod python;
mod ranks;
mod runs;

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use runs::Run;

use crate::workspace;

/// The maximum number of lines of a page.
const MAX_LINES: usize = 260;

/// The maximum number of slower cases that a page names.
const MAX_NAMED: usize = 16;

/// The maximum number of columns of a line.
const MAX_COLUMNS: usize = 120;

/// Writes `docs/benchmarks/DEVICE.md` from a folder of JSON files. If the folder has the run `data`, also writes
/// `DEVICE-data.md`, with exact sums by the kind of data; if it has the run `python`, also writes `python.md`;
/// and of the runs `ranks-1`, `ranks-2` and so on, `ranks.md`.
pub fn run(device: &str, folder: &Path) -> anyhow::Result<()> {
    let is_name =
        !device.is_empty() && device.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-');
    ensure!(is_name, "`{device}` is not the name of a page: lowercase letters, digits and `-`, as in h100");
    for (name, page) in pages(device, folder)? {
        let file = workspace::root().join("docs").join("benchmarks").join(name);
        fs::write(&file, &page).with_context(|| format!("cannot write `{}`", file.display()))?;
        println!("{} ({} lines)", file.display(), page.lines().count());
    }
    Ok(())
}

/// The pages and their file names.
fn pages(device: &str, folder: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let (of_data, runs): (Vec<_>, Vec<_>) = runs::read(folder)?.into_iter().partition(|run| run.name == "data");
    let (of_python, runs): (Vec<_>, Vec<_>) = runs.into_iter().partition(|run| run.name == "python");
    let (of_ranks, runs): (Vec<_>, Vec<_>) = runs.into_iter().partition(|run| run.name.starts_with("ranks-"));
    let mut pages = Vec::new();
    if !runs.is_empty() {
        pages.push((format!("{device}.md"), page(device, &runs)?));
    }
    for run in of_data {
        pages.push((format!("{device}-data.md"), check_columns(page::write_data(device, &run)?)?));
    }
    for run in of_python {
        pages.push(("python.md".to_owned(), check_columns(python::write(&run)?)?));
    }
    if !of_ranks.is_empty() {
        pages.push(("ranks.md".to_owned(), check_columns(ranks::write(&of_ranks)?)?));
    }
    Ok(pages)
}

/// Returns the page, or an error if a line is too long.
fn check_columns(page: String) -> anyhow::Result<String> {
    if let Some(line) = page.lines().find(|line| line.chars().count() > MAX_COLUMNS) {
        anyhow::bail!("a line would have more than {MAX_COLUMNS} columns: {line}");
    }
    Ok(page)
}

/// The page of all runs but `data`.
fn page(device: &str, runs: &[Run]) -> anyhow::Result<String> {
    // If the page is too long, it names fewer of the slower cases.
    let mut named = MAX_NAMED;
    let (page, lines) = loop {
        let page = page::write(device, runs, named)?;
        let lines = page.lines().count();
        if lines <= MAX_LINES || named == 0 {
            break (page, lines);
        }
        named -= 1;
    };
    ensure!(lines <= MAX_LINES, "the page would have {lines} lines, and the limit is {MAX_LINES}: measure fewer cases");
    check_columns(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> std::path::PathBuf {
        workspace::root().join("xtask/src/tables/samples")
    }

    /// The samples' numbers are invented. `WARPFOLD_BLESS=1 cargo test -p xtask` writes new snapshots.
    #[test]
    fn pages_equal_their_snapshots() {
        for (name, page) in pages("page", &folder()).unwrap() {
            let file = folder().join(name);
            if std::env::var_os("WARPFOLD_BLESS").is_some() {
                fs::write(&file, &page).unwrap();
            }
            assert_eq!(page, fs::read_to_string(&file).unwrap(), "compare with `{}`", file.display());
        }
    }

    #[test]
    fn a_folder_without_runs_is_an_error() {
        let error = pages("example", &workspace::root().join("docs")).unwrap_err().to_string();
        assert!(error.contains("./run.sh tables") && error.contains("sums.json"), "{error}");
        assert!(run("../h200", &folder()).is_err());
    }
}
