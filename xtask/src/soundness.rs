//! `cargo xtask soundness`: runs Miri and valgrind over the tests that each of them supports.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::ValueEnum;
use serde_json::Value;

use crate::backend::ARCHS;
use crate::{progress, setup, workspace};

/// A tool that finds undefined behaviour while a test runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Tool {
    /// Interprets tests that launch no kernel: references, bounds, alignment, data races, leaks
    Miri,
    /// Runs compiled tests of the executor: addresses, uninitialized bytes, leaks
    Valgrind,
}

/// A package's tests that a tool runs.
struct Suite {
    package: &'static str,
    /// The arguments of `cargo test` that select the test programs.
    target: &'static [&'static str],
    /// Runs only the tests whose names contain one of these; if empty, all.
    only: &'static [&'static str],
    /// The tests that are left out, each with the reason.
    skipped: &'static [(&'static str, &'static str)],
}

// Reasons to leave a test out. Miri supports only the most common foreign functions.
const STARTS_A_PROGRAM: &str = "starts a program";
const RENAMES_A_FILE: &str = "calls renameat2";
// pest, with which npyz parses a header.
const PROBES_THE_STACK: &str = "reads the stack pointer by assembly";
const LOADS_A_DRIVER: &str = "opens a shared library";
// Both tools make a test slower by orders of magnitude.
const LONG: &str = "takes longer than a minute";

/// Suites for Miri. None of their tests launches a kernel, because Miri does not support switching stacks.
const MIRI_SUITES: [Suite; 9] = [
    Suite {
        package: "warpfold-exact-sum",
        target: &["--lib", "--test", "edges"],
        only: &[],
        skipped: &[("a_million_equal_extremes", LONG)],
    },
    Suite { package: "warpfold-cuda-std", target: &["--lib"], only: &[], skipped: &[] },
    Suite {
        package: "warpfold-simt",
        target: &["--lib"],
        only: &[],
        skipped: &[
            ("cores_that_share_a_cell_miss_nothing", LONG),
            ("finds_what_the_exact_cells_find_and_nothing_else", LONG),
            ("requests_at_a_stride_are_counted_like_any_request", LONG),
        ],
    },
    Suite {
        package: "warpfold-cuda-builder",
        target: &["--lib"],
        only: &[],
        skipped: &[("an_entry_is_assembled_once", STARTS_A_PROGRAM), ("a_missing_compiler_is_named", STARTS_A_PROGRAM)],
    },
    Suite { package: "warpfold-cuda-driver", target: &["--lib"], only: &[], skipped: &[] },
    Suite {
        package: "warpfold-cust",
        target: &["--lib"],
        only: &[],
        skipped: &[("an_unknown_code_keeps_its_number", LOADS_A_DRIVER)],
    },
    Suite {
        package: "warpfold",
        target: &["--lib"],
        only: &[],
        skipped: &[("a_flipped_byte_anywhere_is_an_error", LONG)],
    },
    Suite {
        package: "warpfold-bench",
        target: &["--bin", "bench"],
        only: &["npy::", "memory::"],
        skipped: &[
            ("a_file_that_exists_is_replaced_only_by_force", RENAMES_A_FILE),
            ("links_stay_and_permissions_are_those_of_any_new_file", RENAMES_A_FILE),
            ("what_is_written_is_read", RENAMES_A_FILE),
            ("what_is_wrong_is_not_written", RENAMES_A_FILE),
            ("no_header_takes_time_or_memory", LONG),
            ("valid_headers", PROBES_THE_STACK),
            ("an_invalid_header_is_an_error_that_says_where", PROBES_THE_STACK),
            ("the_corpus_of_the_fuzzer_is_replayed", PROBES_THE_STACK),
            ("bytes_in_either_order", PROBES_THE_STACK),
            ("fortran_order_becomes_c_order", PROBES_THE_STACK),
            ("bool_has_two_values", PROBES_THE_STACK),
        ],
    },
    Suite {
        package: "warpfold-kernels",
        target: &["--lib"],
        only: &[],
        skipped: &[
            ("a_walk_gives_each_quotient_and_remainder", LONG),
            ("quotients_are_exact", LONG),
            ("words_give_the_results_of_their_bytes", LONG),
            ("a_block_has_the_capacity_of_a_tile_and_threads_for_its_words", LONG),
            ("rows_are_padded_against_bank_conflicts", LONG),
        ],
    },
];

/// Suites for valgrind. The crate corosensei registers each stack with valgrind, so no suppressions are needed.
const VALGRIND_SUITES: [Suite; 2] = [
    Suite {
        package: "warpfold-simt",
        target: &["--lib", "--tests"],
        only: &[],
        skipped: &[
            ("faulting_launches_leak_nothing_and_leave_the_executor_usable", "measures the memory of its own process"),
            ("a_block_without_memory_for_its_stacks", "limits the memory to less than valgrind needs"),
        ],
    },
    Suite {
        package: "warpfold-tests",
        target: &["--test", "cpu"],
        only: &["soundness::", "corpus::clean::", "partials::"],
        skipped: &[
            ("clean::reductions_by_every_operator_of_every_type", LONG),
            ("clean::reductions_of_every_shape", LONG),
            ("clean::three_axes_in_any_order", LONG),
            ("clean::transposes_in_place", LONG),
            ("clean::transposes_of_every_rung", LONG),
            ("clean::transposes_of_every_size_of_element", LONG),
            ("each_number_of_partials_is_folded_once", LONG),
            ("more_chunks_than_blocks_are_folded_in_turn", LONG),
        ],
    },
];

/// The numbers of tests that passed and failed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: usize,
    failed: usize,
}

/// A line of the final table.
struct Row {
    tool: &'static str,
    what: String,
    counts: Counts,
    left_out: usize,
    /// Whether the tool's exit code is 0.
    is_clean: bool,
}

/// Runs these tools, or both. Returns exit code 1 if a tool found an error, a test failed, or no tool could run.
pub fn run(tools: &[Tool]) -> anyhow::Result<u8> {
    let wanted = if tools.is_empty() { Tool::value_variants() } else { tools };
    let (mut rows, mut absent) = (Vec::new(), Vec::new());
    for tool in wanted {
        let done = match tool {
            Tool::Miri => find_miri().map(|()| miri()),
            Tool::Valgrind => find_valgrind().map(|()| valgrind()),
        };
        match done {
            Ok(table) => rows.extend(table?),
            // A tool that was requested by name must run.
            Err(why) if !tools.is_empty() => return Err(why),
            Err(why) => absent.push((tool, why)),
        }
    }
    println!("\n{:<9} {:<28} {:>6} {:>6} {:>8}", "tool", "tests of", "passed", "failed", "left out");
    for Row { tool, what, counts, left_out, is_clean } in &rows {
        let note = if *is_clean { "" } else { "  found an error: see above" };
        println!("{tool:<9} {what:<28} {:>6} {:>6} {left_out:>8}{note}", counts.passed, counts.failed);
    }
    for (tool, why) in &absent {
        println!("{} has NOT run: {why:#}", name(**tool));
    }
    let is_clean = rows.iter().all(|row| row.is_clean && row.counts.failed == 0);
    Ok(u8::from(!is_clean || rows.is_empty()))
}

fn name(tool: Tool) -> &'static str {
    match tool {
        Tool::Miri => "Miri",
        Tool::Valgrind => "valgrind",
    }
}

/// Installs Miri with a nightly toolchain, unless it is installed.
fn find_miri() -> anyhow::Result<()> {
    let is_installed = || workspace::output(&mut nightly(&["miri", "--version"])).map(|_| ());
    if is_installed().is_ok() {
        return Ok(());
    }
    let mut install = Command::new("rustup");
    install.args(["toolchain", "install", "nightly", "--profile", "minimal", "-c", "miri,rust-src"]);
    eprintln!("soundness: installing Miri with {}", workspace::command_line(&install));
    progress::with_progress("installing Miri", || workspace::output(&mut install))
        .context("no nightly toolchain with Miri can be installed here")?;
    is_installed().context("Miri was installed, but does not run")
}

/// Cargo of the nightly toolchain.
fn nightly(arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.current_dir(workspace::root()).args(["run", "nightly", "cargo"]).args(arguments);
    // The cargo that runs xtask belongs to another toolchain, and has set these variables.
    command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    command
}

/// Installs valgrind, unless it is installed.
fn find_valgrind() -> anyhow::Result<()> {
    let is_installed = || workspace::output(Command::new("valgrind").arg("--version")).map(|_| ());
    if is_installed().is_ok() {
        return Ok(());
    }
    setup::install_package("valgrind").context("valgrind is missing, and cannot be installed")?;
    is_installed().context("valgrind was installed, but does not run")
}

/// The arguments of a test program that select the suite's tests.
fn selection(suite: &Suite) -> impl Iterator<Item = &'static str> {
    let skipped = suite.skipped.iter().flat_map(|(test, _)| ["--skip", *test]);
    suite.only.iter().copied().chain(skipped)
}

fn miri() -> anyhow::Result<Vec<Row>> {
    let mut table = Vec::new();
    for suite in &MIRI_SUITES {
        let what = format!("{} {}", suite.package, suite.target.join(" "));
        let mut command = nightly(&["miri", "test", "--package", suite.package]);
        command.args(suite.target).arg("--").args(selection(suite));
        // Miri's own target folder, because its compiler differs from the workspace's.
        command.env("CARGO_TARGET_DIR", workspace::target().join("miri")).env(ARCHS, "none");
        // Tests read files. Device addresses are integers that become pointers. Tests need exact powers of two from
        // `powi`, whose last bit Miri would randomize.
        let flags = "-Zmiri-disable-isolation -Zmiri-permissive-provenance -Zmiri-deterministic-floats";
        command.env("MIRIFLAGS", flags);
        let row = run_tests("Miri", what, &mut command)?;
        ensure!(!row.is_clean || row.counts.passed > 0, "no test of {} has run under Miri", suite.package);
        table.push(row);
    }
    Ok(table)
}

fn valgrind() -> anyhow::Result<Vec<Row>> {
    let mut table = Vec::new();
    for suite in &VALGRIND_SUITES {
        let before = table.len();
        for (name, folder, program) in programs(suite)? {
            let mut command = Command::new("valgrind");
            command.current_dir(folder).args(["--quiet", "--error-exitcode=99"]);
            command.args(["--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]);
            command.arg(program).args(["--test-threads", "1"]).args(selection(suite));
            table.push(run_tests("valgrind", format!("{} {name}", suite.package), &mut command)?);
        }
        let passed: usize = table[before..].iter().map(|row| row.counts.passed).sum();
        let is_clean = table[before..].iter().all(|row| row.is_clean);
        ensure!(!is_clean || passed > 0, "no test of {} has run under valgrind", suite.package);
    }
    Ok(table)
}

/// Builds a suite's test programs. Returns the name, the working folder and the file of each.
fn programs(suite: &Suite) -> anyhow::Result<Vec<(String, PathBuf, PathBuf)>> {
    let mut cargo = workspace::cargo();
    cargo.current_dir(workspace::root()).args(["test", "--no-run", "--package", suite.package]).args(suite.target);
    cargo.args(["--message-format", "json-render-diagnostics"]).env(ARCHS, "none").stderr(Stdio::inherit());
    let output = progress::with_progress("building tests", || cargo.output())?;
    ensure!(output.status.success(), "{} failed", workspace::command_line(&cargo));
    // Sorted by name, so that they always run in the same order.
    let mut programs = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message: Value = serde_json::from_str(line).context("a message of cargo is not JSON")?;
        let Some(program) = message["executable"].as_str() else { continue };
        let name = message["target"]["name"].as_str().context("cargo names no target")?.to_owned();
        let manifest = PathBuf::from(message["manifest_path"].as_str().context("cargo names no manifest")?);
        let folder = manifest.parent().context("a manifest is in a folder")?.to_owned();
        programs.insert(name, (folder, PathBuf::from(program)));
    }
    Ok(programs.into_iter().map(|(name, (folder, program))| (name, folder, program)).collect())
}

/// Runs tests under a tool, shows their output, and counts them.
fn run_tests(tool: &'static str, what: String, command: &mut Command) -> anyhow::Result<Row> {
    eprintln!("soundness: {tool} over {what}");
    let start = Instant::now();
    command.stderr(Stdio::inherit());
    let output = progress::with_progress(&what, || command.output())
        .with_context(|| format!("cannot run {}", workspace::command_line(command)))?;
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    let is_clean = output.status.success();
    let (counts, left_out) = count_tests(&text);
    eprintln!("soundness: {tool} over {what}: {} seconds", start.elapsed().as_secs());
    Ok(Row { tool, what, counts, left_out, is_clean })
}

/// The numbers of passed, failed, and filtered-out tests in the output of test programs.
fn count_tests(text: &str) -> (Counts, usize) {
    let (mut counts, mut left_out) = (Counts::default(), 0);
    for line in text.lines().filter(|line| line.starts_with("test result:")) {
        let number = |what: &str| {
            let before = line.split(';').find_map(|part| part.trim().strip_suffix(what))?;
            before.rsplit(' ').find(|word| !word.is_empty())?.parse::<usize>().ok()
        };
        counts.passed += number(" passed").unwrap_or(0);
        counts.failed += number(" failed").unwrap_or(0);
        left_out += number(" filtered out").unwrap_or(0);
    }
    (counts, left_out)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn tests_are_counted_over_all_programs() {
        let text = "running 3 tests\ntest a ... ok\n\n\
            test result: ok. 20 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.04s\n\
            test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 7.10s\n";
        assert_eq!(count_tests(text), (Counts { passed: 21, failed: 2 }, 3));
        // Undefined behaviour ends a program before its last line.
        assert_eq!(count_tests("running 3 tests\ntest a ... "), (Counts::default(), 0));
    }

    /// The text of all Rust sources in a folder and its subfolders.
    fn sources(folder: &Path) -> String {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries
            .map(|path| match path.extension() {
                _ if path.is_dir() => sources(&path),
                Some(extension) if extension == "rs" => fs::read_to_string(path).unwrap(),
                _ => String::new(),
            })
            .collect()
    }

    #[test]
    fn tests_that_are_left_out_exist() {
        for suite in MIRI_SUITES.iter().chain(&VALGRIND_SUITES) {
            let folder = match suite.package {
                "warpfold" => "host",
                "warpfold-bench" => "bench",
                "warpfold-tests" => "tests",
                "warpfold-kernels" => "kernels",
                name => &name.replace("warpfold-", "crates/").replace('-', "_"),
            };
            let text = sources(&workspace::root().join(folder));
            for (test, _) in suite.skipped {
                let test = test.rsplit(':').next().unwrap();
                assert!(text.contains(&format!("fn {test}()")), "{folder} has no test {test}");
            }
        }
    }
}
