//! The help, and arguments that mean nothing or ask for what there is not.

use std::process::Command;

use crate::{BENCH, bench, refused, stderr, stdout};

#[test]
fn the_help_teaches() {
    let text = stdout(&bench(&["--help"]));
    for part in [
        "Examples:",
        "bench ladder reduce --rung sequential",
        "bench sum --input samples.npy",
        "Exit code:",
        "130  interrupted",
        "--device",
        "--format",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn arguments_that_mean_nothing() {
    refused(&["--n", "-5"], &["-5"]);
    refused(&["--n", "1.5"], &["1.5", "whole number"]);
    refused(&["--samples", "0"], &["--samples"]);
    refused(&["--format", "xml"], &["xml", "json"]);
    refused(&["ladder", "sideways"], &["sideways", "reduce"]);
    refused(&["ladder", "--rung", "nonsense"], &["`nonsense`", "divergent_modulo", "diagonal", "sync_or"]);
    refused(&["ladder", "reduce", "--rung", "diagonal"], &["`diagonal`", "sequential"]);
    refused(&["ladder", "reduce", "--dtype", "f64", "--rung", "neighbored"], &["`f64`", "f32, i32"]);
    refused(&["sum", "--input", "a.npy", "--seed", "3"], &["--input", "--seed"]);
    refused(&["sum", "--rung", "nonsense"], &["`nonsense`", "divergent_modulo"]);
    refused(&["ladder", "reduce", "--n", "10", "--block", "100"], &["`100`", "64, 128, 256, 512, 1024"]);
    refused(&["transpose", "--force"], &["--output"]);
    refused(&["transpose", "--n", "5"], &["--n"]);
    refused(&["device", "--rows", "5"], &["--rows"]);
    refused(&["--n", "5", "sum"], &["--n", "after"]);
    refused(&["sum", "--input", "a.npy", "--n", "3"], &["--input", "--n"]);
}

#[test]
fn sizes_that_no_machine_has() {
    refused(&["sum", "--n", "2^50"], &["do not fit"]);
    refused(&["sum", "--n", "2^63"], &["do not fit"]);
    refused(&["sum", "--n", "2^64"], &["too large"]);
    refused(&["transpose", "--rows", "2^40", "--cols", "2^40"], &["larger than any memory"]);
    refused(&["transpose", "--rows", "2^25", "--cols", "2^25"], &["bytes"]);
}

#[test]
fn devices_that_are_not_there() {
    let at = |device: &str, driver: &str| {
        Command::new(&*BENCH)
            .args(["device", "--device", device])
            .env("WARPFOLD_LIBCUDA", driver)
            .output()
            .expect("bench starts")
    };
    let none = at("cuda:0", "none");
    assert_eq!(none.status.code(), Some(2));
    assert!(stderr(&none).contains("driver"), "{}", stderr(&none));
    assert_eq!(at("gpu", "none").status.code(), Some(2));
    // With a driver there is no tenth device; without one, no driver.
    let output = Command::new(&*BENCH).args(["device", "--device", "cuda:9"]).output().expect("bench starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        ["no CUDA device 9", "no CUDA driver"].iter().any(|part| stderr(&output).contains(part)),
        "{}",
        stderr(&output)
    );
    // And without being asked for one, the executor.
    let output = Command::new(&*BENCH).args(["device"]).env("WARPFOLD_LIBCUDA", "none").output().expect("bench starts");
    assert!(stdout(&output).contains("SIMT executor"), "{}", stderr(&output));
}
