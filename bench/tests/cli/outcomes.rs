//! Exit codes, and results that are printed even if something else fails.

use std::fs::{self, File};
use std::process::{Command, Output};

use crate::{BENCH, Files, bench, npy, refused, stderr, stdout};

/// Runs `bench` in a shell, after `setup`.
#[cfg(unix)]
fn bench_after(setup: &str, arguments: &[&str]) -> Output {
    let script = format!("{setup}; exec \"$0\" --device simt \"$@\"");
    Command::new("sh").args(["-c", &script]).arg(&*BENCH).args(arguments).output().expect("a shell starts")
}

#[test]
fn outputs_that_cannot_be_written_are_refused_before_any_work() {
    let files = Files::new();
    fs::create_dir(files.path("folder.svg")).expect("a folder");
    let (missing, folder) = (files.path("no/such/a.svg"), files.path("folder.svg"));
    // With these arguments, the work would take too long if it were started.
    let long = ["--n", "2^26", "--samples", "1000"];
    for command in [["ladder", "reduce"].as_slice(), &["sum"], &["ladder", "control-flow"]] {
        refused(&[command, &long, &["--plot", &missing]].concat(), &["cannot write", "no folder", "create it"]);
        refused(&[command, &long, &["--plot", &folder]].concat(), &["cannot write", "is a folder"]);
    }
    for command in ["reduce", "transpose"] {
        refused(&[command, "--plot", &missing], &["cannot write", "no folder"]);
    }
    refused(&["transpose", "--input", "a.npy", "--output", &missing], &["cannot write", "no folder"]);
}

#[test]
fn tables_fit_in_100_characters_without_a_terminal() {
    let lengths = |arguments: &[&str]| {
        let text = stdout(&bench(arguments));
        assert!(text.contains('│'), "{arguments:?}: {text}");
        (text.lines().map(|line| line.chars().count()).max().unwrap_or(0), text)
    };
    for command in [
        ["--n", "1000", "--rows", "20", "--cols", "20"].as_slice(),
        &["sum", "--n", "100"],
        &["reduce", "--op", "count-nonzero", "--shape", "2^10x2^10", "--axis", "0"],
        &["transpose", "--rung", "tiled_8", "--shape", "10x10"],
        &["transpose", "--permute", "102", "--shape", "300x200x100"],
    ] {
        let (longest, text) = lengths(command);
        assert!(longest <= 100, "{longest}: {text}");
    }
    let (narrow, wide) =
        (lengths(&["ladder", "reduce", "--n", "100"]), lengths(&["ladder", "reduce", "--n", "100", "--wide"]));
    assert!(narrow.1.contains("Left out to fit the width: GB/s, change."), "{}", narrow.1);
    assert!(wide.0 > 100 && wide.1.contains(" change ") && !wide.1.contains("Left out"), "{}", wide.1);
    let (_, profile) = lengths(&["profile", "sum", "--n", "5000"]);
    let mut rows = profile.lines().filter(|line| line.starts_with('│'));
    assert!(rows.all(|line| line.chars().count() <= 100), "{profile}");
    let document = stdout(&bench(&["ladder", "reduce", "--n", "100", "--format", "markdown"]));
    assert!(document.contains("| change ") && !document.contains("Left out"), "{document}");
    refused(&["sum", "--format", "csv", "--wide"], &["--wide", "no effect"]);
}

/// A limit on the size of files simulates a disk that is full when the plot is written.
#[cfg(unix)]
#[test]
fn results_are_printed_if_a_plot_cannot_be_written() {
    let files = Files::new();
    let plot = files.path("a.svg");
    let arguments = ["ladder", "reduce", "--rung", "sequential", "--n", "100", "--plot", &plot];
    let output = bench_after("trap '' XFSZ; ulimit -f 0", &arguments);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stdout(&output).contains(" right "), "{}", stdout(&output));
    assert!(stderr(&output).contains("cannot write") && stderr(&output).contains(&plot), "{}", stderr(&output));
    assert!(!fs::exists(&plot).unwrap(), "no partial file");
    let input = files.write("a.npy", &npy("|u1", false, "(2, 3)", &[0; 6]));
    let arguments = ["transpose", "--input", &input, "--output", &files.path("t.npy")];
    let output = bench_after("trap '' XFSZ; ulimit -f 0", &arguments);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stdout(&output).contains(" right "), "{}", stdout(&output));
}

#[cfg(target_os = "linux")]
#[test]
fn results_that_cannot_be_printed_are_an_error() {
    for command in ["sum", "device"] {
        let full = File::options().write(true).open("/dev/full").expect("Linux has it");
        let output = Command::new(&*BENCH).args([command, "--device", "simt"]).stdout(full).output().expect("starts");
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        assert!(stderr(&output).contains("cannot write the results"), "{}", stderr(&output));
    }
}

#[test]
fn other_cases_run_after_a_case_without_a_result() {
    let arguments = ["reduce", "--op", "min,dot", "--shape", "0,3x4:skewed,7"];
    let table = bench(&arguments);
    assert_eq!(table.status.code(), Some(2), "{}", stderr(&table));
    assert_eq!(stdout(&table).matches(" right ").count(), 4, "{}", stdout(&table));
    assert_eq!(stdout(&table).matches(" none ").count(), 2, "{}", stdout(&table));
    for part in ["NO RESULT: min of f32, 0: the minimum of no elements", "NO RESULT: dot of f32, 3 x 4 skewed: a dot"] {
        assert!(stdout(&table).contains(part), "{part} is not in {}", stdout(&table));
    }
    assert!(stderr(&table).contains("2 of 6 cases have no result"), "{}", stderr(&table));
    let json = bench(&[&arguments[..], &["--format", "json"]].concat());
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let rows = report["sections"][0]["rows"].as_array().expect("rows");
    assert!(rows[0]["correct"].is_null() && rows[0]["error"].as_str().is_some_and(|error| error.contains("minimum")));
    assert!(rows[1]["correct"] == true && rows[1]["error"].is_null(), "{report}");
    let csv = stdout(&bench(&[&arguments[..], &["--format", "csv"]].concat()));
    assert_eq!(csv.lines().count(), 7, "{csv}");
    assert!(csv.lines().nth(1).is_some_and(|row| row.starts_with("min,f32,0,0,,,,")), "{csv}");
}

#[test]
fn an_error_is_printed_once() {
    let output = Command::new(&*BENCH)
        .args(["device", "--device", "cuda:0"])
        .env("WARPFOLD_LIBCUDA", "none")
        .output()
        .expect("bench starts");
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    let message = message.trim().strip_prefix("error: ").expect("an error");
    assert!(message.contains("driver"), "{message}");
    let half = message.len() / 2;
    assert!(!message.is_char_boundary(half) || !message[half..].contains(&message[..40]), "twice: {message}");
}
