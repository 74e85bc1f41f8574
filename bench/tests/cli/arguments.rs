//! The help, and arguments that are invalid, have no effect, or name something that does not exist.

use std::process::Command;

use crate::{BENCH, bench, refused, stderr, stdout};

#[test]
fn the_help_has_examples() {
    let text = stdout(&bench(&["--help"]));
    for part in [
        "Examples:",
        "bench ladder reduce --rung sequential",
        "bench sum --input samples.npy",
        "bench exact ",
        "Exit code:",
        "130  interrupted",
        "--device",
        "--format",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    for (command, example) in [
        ("sum", "bench sum --input samples.npy --axis 0,-1 --output sums.npy"),
        ("reduce", "bench reduce --op mean --shape 64x3x224x224 --axis 0,2,3"),
    ] {
        let text = stdout(&bench(&[command, "--help"]));
        assert!(text.contains(example) && text.contains("--axis <N,...>"), "{text}");
    }
    let text = stdout(&bench(&["transpose", "--help"]));
    assert!(text.contains("bench transpose --shape 64x3x224x224 --permute 0231"), "{text}");
    let text = stdout(&bench(&["exact", "--help"]));
    for part in ["bench exact --format json", "in any order and layout", "exit code"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn invalid_arguments() {
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
    for command in [["sum", "--rung", "sequential"].as_slice(), &["ladder"], &["profile", "sequential"]] {
        refused(
            &[command, &["--dtype", "f16"]].concat(),
            &["no kernel of the ladders for `f16`", "f32, f64, i32, i64"],
        );
    }
    refused(&["sum", "--axis", "0"], &["--input"]);
    refused(&["reduce", "--output", "a.npy"], &["--input"]);
    refused(&["sum", "--input", "a.npy", "--force"], &["--output"]);
    refused(&["sum", "--input", "a.npy", "--axis", "0", "--rung", "sequential"], &["--axis", "--rung"]);
    for line in [
        "reduce --shape 10x10 --output x.npy",
        "sum --n 10 --axis 0",
        "sum --seed 5 --axis 1",
        "reduce --shape 10x10 --axis 1 --keep-dims",
        "reduce --all --output x.npy",
        "sum --n 10 --output x.npy --force",
        "transpose --shape 5x5 --force",
        "occupancy sequential --ptx folder",
    ] {
        let arguments: Vec<_> = line.split(' ').collect();
        let useless = ["--output", "--keep-dims", "--axis", "--force", "--ptx"]
            .into_iter()
            .find(|option| arguments.contains(option));
        refused(&arguments, &[useless.expect("it has one"), "no effect with", "leave it out"]);
    }
    for option in [["--shape", "5"], ["--offset", "1"], ["--peers", "peers"]] {
        refused(&[&["reduce", "--input", "a.npy"], &option[..]].concat(), &["--input", option[0]]);
    }
    refused(&["reduce", "--input", "a.npy", "--all"], &["--input", "--all"]);
    refused(&["reduce", "--input", "a.npy", "--dtype", "f32,i8"], &["--input", "one --dtype"]);
    refused(&["ladder", "reduce", "--n", "10", "--block", "100"], &["`100`", "64, 128, 256, 512, 1024"]);
    refused(&["transpose", "--input", "a.npy", "--force"], &["--force", "--output"]);
    refused(&["transpose", "--n", "5"], &["--n"]);
    refused(&["device", "--rows", "5"], &["--rows"]);
    refused(&["--n", "5", "sum"], &["--n", "after"]);
    refused(&["sum", "--input", "a.npy", "--n", "3"], &["--input", "--n"]);
}

#[test]
fn options_without_effect() {
    for block in ["0", "77", "128x"] {
        for command in [["sum"].as_slice(), &["ladder", "reduce"], &["profile", "sequential"], &["ladder"]] {
            refused(&[command, &["--block", block]].concat(), &["--block", block]);
        }
    }
    let file = env!("CARGO_MANIFEST_DIR").to_owned() + "/none.svg";
    for (command, option) in [
        (["sum"].as_slice(), ["--block", "128"]),
        (&["sum", "--rung", "single_launch"], ["--block", "128"]),
        (&["ladder", "reduce", "--rung", "single_launch"], ["--block", "128"]),
        (&["sum", "--rung", "exact_long_rows"], ["--block", "128"]),
        (&["ladder", "reduce", "--rung", "exact_long_rows"], ["--block", "128"]),
        (&["ladder", "reduce"], ["--rows", "5"]),
        (&["ladder", "reduce"], ["--cols", "5"]),
        (&["ladder", "transpose"], ["--n", "5"]),
        (&["ladder", "transpose"], ["--dtype", "f64"]),
        (&["ladder", "transpose"], ["--block", "128"]),
        (&["ladder", "control-flow"], ["--dtype", "f64"]),
        (&["ladder", "control-flow"], ["--block", "128"]),
        (&["ladder", "control-flow"], ["--rows", "5"]),
        (&["ladder", "--rung", "sequential"], ["--rows", "5"]),
        (&["ladder", "--rung", "diagonal"], ["--n", "5"]),
        (&["profile", "sequential"], ["--rows", "5"]),
        (&["profile", "sequential"], ["--samples", "5"]),
        (&["profile", "sequential"], ["--plot", &file]),
        (&["profile", "sum"], ["--block", "128"]),
        (&["profile", "exact_long_rows"], ["--block", "128"]),
        (&["profile", "tiled_32"], ["--n", "5"]),
        (&["profile", "transpose"], ["--dtype", "f64"]),
        (&["profile", "sync_count"], ["--block", "128"]),
        (&["device"], ["--plot", &file]),
        (&["device"], ["--samples", "5"]),
        (&["occupancy", "sequential", "--arch", "sm_90"], ["--samples", "5"]),
        (&["occupancy", "sequential", "--arch", "sm_90"], ["--schedule", "seed=1"]),
        (&["occupancy", "sequential", "--arch", "sm_90"], ["--latency-ns", "500"]),
        (&["reduce"], ["--peers", "peers"]),
        (&["transpose", "--shape", "3x3"], ["--peers", "peers"]),
    ] {
        refused(&[command, &option].concat(), &[option[0], "no effect", "leave it out"]);
    }
    refused(&["transpose", "--input", "a.npy", "--peers", "peers"], &["--input", "--peers"]);
    refused(&["transpose", "--rung", "tiled_8", "--size", "8"], &["--rung", "--size"]);
    refused(&["device", "--nvtx"], &["--nvtx", "no effect"]);
    refused(&["profile", "sum", "--nvtx"], &["--nvtx", "no effect"]);
    refused(&["occupancy", "sequential", "--arch", "sm_90", "--check"], &["--check", "no effect"]);
    // Two ladders have a `vectorized`, so here each size is used by a kernel.
    let both = ["profile", "vectorized", "--n", "1000", "--block", "64", "--rows", "8", "--cols", "8"];
    assert_eq!(bench(&both).status.code(), Some(0));
}

#[test]
fn sizes_larger_than_any_memory() {
    let memory = ["needs", "free", "choose"].as_slice();
    refused(&["sum", "--n", "2^50"], &[memory, &["8.0 PiB"]].concat());
    refused(&["sum", "--n", "2^63"], &["--n", "more elements than any memory"]);
    refused(&["sum", "--n", "2^64"], &["too large"]);
    refused(&["ladder", "reduce", "--n", "2^45"], &[memory, &["--n"]].concat());
    refused(&["ladder", "control-flow", "--n", "2^45"], memory);
    refused(&["ladder", "transpose", "--rows", "2^25", "--cols", "2^25"], &[memory, &["--rows"]].concat());
    refused(&["transpose", "--rung", "tiled_8", "--shape", "2^25x2^25"], &[memory, &["--shape"]].concat());
    for kernel in ["sum", "sequential", "sync_count"] {
        refused(&["profile", kernel, "--n", "2^45"], memory);
    }
    refused(&["profile", "tiled_32", "--rows", "2^22", "--cols", "2^22"], memory);
    for (shape, axis) in [("2^45", "0"), ("2^23x2^23", "1"), ("2^45x1", "-1"), ("1x2^45", "0")] {
        let arguments = ["reduce", "--shape", shape, "--axis", axis, "--dtype", "i8,f64"];
        refused(&arguments, &[memory, &["--shape"]].concat());
    }
    refused(&["reduce", "--shape", "2^45x1:skewed", "--dtype", "i8,f64"], &[memory, &["--shape"]].concat());
    refused(&["reduce", "--shape", "2^45", "--op", "dot"], memory);
    refused(&["reduce", "--shape", "10", "--offset", "18446744073709551615"], memory);
    for kind in ["transpose", "scaled", "in-place"] {
        let arguments = ["transpose", "--shape", "2^23x2^23", "--size", "4,16", "--kind", kind];
        refused(&arguments, &[memory, &["--shape"]].concat());
    }
}

/// The input fits in memory, but the expected result does not.
#[cfg(target_os = "linux")]
#[test]
fn inputs_that_fit_without_their_expected_results() {
    let info = std::fs::read_to_string("/proc/meminfo").expect("Linux has it");
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:")).expect("it has the free memory");
    let free: u64 = line.trim_end_matches("kB").trim().parse::<u64>().expect("a number") * 1024;
    let elements = (free / 4 * 6 / 10).to_string();
    refused(&["sum", "--n", &elements], &["needs", "free"]);
    refused(&["reduce", "--shape", &elements], &["needs", "free"]);
    refused(&["transpose", "--shape", &format!("1x{elements}")], &["needs", "free"]);
    refused(&["transpose", "--rung", "tiled_8", "--shape", &format!("1x{elements}")], &["needs", "free"]);
}

/// If a limit of the process denies memory that the machine has, that is an error, not an abort.
#[cfg(target_os = "linux")]
#[test]
fn allocations_that_fail() {
    // The first allocation fails, or a later one.
    for (kib, command) in [
        ("700000", "reduce --shape 2^28"),
        ("700000", "transpose --shape 2^14x2^14"),
        ("700000", "sum --n 2^28"),
        ("700000", "ladder transpose --rows 2^14 --cols 2^14"),
        ("1500000", "reduce --shape 2^28"),
    ] {
        let script = format!("ulimit -v {kib}; exec \"$0\" --device simt {command}");
        let output = Command::new("sh").args(["-c", &script]).arg(&*BENCH).output().expect("a shell starts");
        assert_eq!(output.status.code(), Some(2), "{command} in {kib} KiB: {}", stderr(&output));
        assert!(stderr(&output).contains("memory"), "{}", stderr(&output));
    }
}

#[test]
fn devices_that_do_not_exist() {
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
    // A machine with a driver has no tenth device. On a machine without a driver, that is the error.
    let output = Command::new(&*BENCH).args(["device", "--device", "cuda:9"]).output().expect("bench starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        ["no CUDA device 9", "no CUDA driver"].iter().any(|part| stderr(&output).contains(part)),
        "{}",
        stderr(&output)
    );
    // If no device is requested, the executor replaces it.
    let output = Command::new(&*BENCH).args(["device"]).env("WARPFOLD_LIBCUDA", "none").output().expect("bench starts");
    assert!(stdout(&output).contains("SIMT executor"), "{}", stderr(&output));
}
