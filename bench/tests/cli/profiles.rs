//! `bench profile`, counters in the ladders, checks and orders of lanes.

use std::env;
use std::process::Command;

use crate::{BENCH, bench, refused, stderr, stdout};

#[test]
fn a_profile_names_lines_and_what_to_change() {
    let output = bench(&["profile", "strided_index", "--n", "2560"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    const SOURCE: &str = include_str!("../../../kernels/src/ladder/reduce_shared/rung2_strided_index.rs");
    let line = 1 + SOURCE.lines().position(|line| line.contains("tile.store(left")).expect("a line with the conflict");
    for part in [
        "strided_index_f32_256: 10 blocks of 256 threads, 9 barriers in each block",
        "strided_index_f32_256: 1 block of 256 threads, 9 barriers in each block",
        &format!("rung2_strided_index.rs:{line}: bank conflict: loads are up to 8-way, 700 extra passes"),
    ] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    // Both launches have the finding, which is printed once.
    assert_eq!(text.matches("bank conflict: loads").count(), 1, "{text}");
    assert!(text.contains("(the worst of 2 launches)"), "{text}");
    // A `bench` from a bundle has no sources.
    if env::var_os("WARPFOLD_BENCH").is_none() {
        assert!(text.contains("tile.store(left, tile.load(left).plus(tile.load(left + stride)));"), "{text}");
    }
    let uncoalesced = stdout(&bench(&["profile", "per_element", "--rows", "64", "--cols", "96"]));
    assert!(uncoalesced.contains("uncoalesced: stores use 12 % of their sectors"), "{uncoalesced}");
    assert!(uncoalesced.contains("256 bytes apart"), "{uncoalesced}");
    let divergent = stdout(&bench(&["profile", "neighbored", "--n", "2560"]));
    assert!(divergent.contains("divergent: "), "{divergent}");
}

#[test]
fn a_profile_as_json_and_csv() {
    let output = bench(&["profile", "tiled_32", "--rows", "64", "--cols", "64", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let kernel = &report["kernels"][0];
    assert_eq!((&kernel["kernel"], &kernel["grid"][0]), (&"tiled_f32_32".into(), &4.into()));
    // Each warp of a tile reads a column of it: 32-way.
    assert_eq!(kernel["total"]["shared_load_conflicts"], 4 * 32 * 31);
    assert_eq!(kernel["lines"][0]["findings"].as_array().map(Vec::len), Some(1));
    let csv = stdout(&bench(&["profile", "sum", "--n", "5000", "--format", "csv"]));
    let fields = csv.lines().next().map(|header| header.split(',').count());
    assert!(csv.lines().count() > 3 && csv.lines().all(|row| Some(row.split(',').count()) == fields), "{csv}");
    let (numbers, sides) = (["--n", "1000"], ["--rows", "40", "--cols", "30"]);
    for (name, sizes) in [
        ("sum", numbers.to_vec()),
        ("transpose", sides.to_vec()),
        ("vectorized", [&numbers[..], &sides].concat()),
        ("sync_count", numbers.to_vec()),
    ] {
        let output = bench(&[&["profile", name], &sizes[..]].concat());
        assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
    }
}

#[test]
fn the_kernels_of_the_library_have_counters_without_advice() {
    for arguments in [["transpose", "--rows", "97", "--cols", "33"].as_slice(), &["sum", "--n", "5000"]] {
        let output = bench(&[&["profile"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = stdout(&output);
        assert!(text.contains("requests") && text.contains("the library's own kernels"), "{text}");
        assert!(!text.contains("What to change") && !text.contains("divergent:"), "{text}");
        let json = stdout(&bench(&[&["profile"], arguments, &["--format", "json"]].concat()));
        let report: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let kernel = &report["kernels"][0];
        assert!(kernel["is_of_library"] == true && kernel["total"]["load_requests"].as_u64() > Some(0), "{report}");
        let lines = kernel["lines"].as_array().expect("lines");
        assert!(lines.iter().all(|line| line["findings"] == serde_json::json!([])), "{report}");
    }
    assert!(!stdout(&bench(&["profile", "tiled_32", "--rows", "64", "--cols", "64"])).contains("the library's own"));
}

#[test]
fn a_ladder_with_its_counters() {
    let report = bench(&["ladder", "reduce", "--n", "2560", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&stdout(&report)).expect("JSON");
    let rows = report["sections"][1]["rows"].as_array().expect("rows");
    let of = |name: &str| rows.iter().find(|row| row["kernel"] == name).expect("the rung is listed");
    assert_eq!(of("sequential")["counters"]["bank_conflicts"], 0);
    assert_eq!(of("strided_index")["counters"]["shared_load_conflicts"], 11 * 70);
    assert_eq!(of("unroll_last_warp")["barriers_per_block"], 3.0);
    let table = stdout(&bench(&["ladder", "transpose", "--rows", "64", "--cols", "64"]));
    for part in ["conflicts", "barriers", "12.5 %", "Counted by warp"] {
        assert!(table.contains(part), "{part} is not in: {table}");
    }
}

#[test]
fn checks_and_orders_of_lanes() {
    let output = bench(&["ladder", "reduce", "--n", "3000", "--check", "--schedule", "seed=5"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!stdout(&output).contains("WRONG"), "{}", stdout(&output));
    refused(&["ladder", "--schedule", "5"], &["seed=N"]);
    refused(&["profile", "nonsense"], &["nonsense", "strided_index", "tiled_32"]);
    let on_a_gpu =
        Command::new(&*BENCH).args(["profile", "sequential", "--device", "cuda:0"]).output().expect("starts");
    assert_eq!(on_a_gpu.status.code(), Some(2));
    assert!(stderr(&on_a_gpu).contains("only the executor"), "{}", stderr(&on_a_gpu));
}
