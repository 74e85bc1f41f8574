//! `bench --nvtx`: the ranges that a profiler gets, by a stand-in that is built here; and runs without a profiler.

use std::path::Path;
use std::process::{Command, Output};
use std::{env, fs};

use warpfold::ladder::{ControlFlowRung, ReduceRung, TransposeRung};

/// Runs `bench` in the executor with `tool` attached as the NVTX tool.
fn bench(arguments: &[&str], tool: Option<&Path>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
    command.args(["--device", "simt"]).args(arguments).env_remove("NVTX_INJECTION64_PATH");
    command.envs(tool.map(|tool| ("NVTX_INJECTION64_PATH", tool)));
    let output = command.output().expect("bench starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const SMALL: [&str; 6] = ["--n", "100", "--rows", "5", "--cols", "7"];

/// The events of a ladder: a range, and inside it a range for each kernel.
fn ranges<'a>(ladder: &'a str, kernels: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let kernels = kernels.into_iter().flat_map(|kernel| [format!("push {kernel}"), "pop".to_owned()]);
    [format!("push {ladder}")].into_iter().chain(kernels).chain(["pop".to_owned()]).collect()
}

#[test]
fn a_tool_gets_a_range_for_each_ladder_and_kernel() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let tool = folder.path().join("tool.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fakes/nvtx_tool.rs");
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let built =
        Command::new(rustc).args(["--edition", "2024", "--crate-type", "cdylib", source, "-o"]).arg(&tool).status();
    assert!(built.is_ok_and(|status| status.success()), "rustc cannot build the tool");

    let expected = [
        ranges("sum_global", ReduceRung::GLOBAL.map(ReduceRung::name)),
        ranges("sum_shared", ReduceRung::SHARED.map(ReduceRung::name)),
        ranges("transpose", TransposeRung::ALL.map(TransposeRung::name)),
        ranges("control_flow", ControlFlowRung::ALL.map(ControlFlowRung::name)),
    ];
    let told = stderr(&bench(&[&["--nvtx"], &SMALL[..]].concat(), Some(&tool)));
    assert_eq!(told.lines().collect::<Vec<_>>(), expected.concat());
    let one = stderr(&bench(&["transpose", "--shape", "5x7", "--nvtx"], Some(&tool)));
    assert_eq!(one.lines().collect::<Vec<_>>(), ["push transpose", "pop"]);
    assert_eq!(stderr(&bench(&SMALL, Some(&tool))), "", "ranges without --nvtx");
}

#[test]
fn without_a_tool_nothing_happens() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let no_library = folder.path().join("text.so");
    fs::write(&no_library, "text").expect("a file is written");
    for tool in [None, Some(Path::new("/no/such/tool.so")), Some(&no_library)] {
        let output = bench(&["ladder", "reduce", "--n", "100", "--nvtx"], tool);
        assert_eq!(stderr(&output), "", "{tool:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("vectorized"));
    }
}
