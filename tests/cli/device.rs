//! `bench device` and `bench occupancy`.

use crate::{bench, refused, stderr, stdout};

#[test]
fn the_device_is_described() {
    let output = bench(&["device", "--format", "json"]);
    let device: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(device["backend"], "simt");
    assert!(stdout(&bench(&["device"])).contains("CPU cores"));
}

#[test]
fn occupancy_without_a_gpu() {
    refused(&["occupancy", "nonsense", "--arch", "sm_90"], &["`nonsense`"]);
    let built = option_env!("WARPFOLD_ARCHS").unwrap_or("sm_75,sm_80,sm_90");
    if !built.contains("sm_75") || !built.contains("sm_80") {
        println!("skipped: WARPFOLD_ARCHS left sm_75 or sm_80 out of this build");
        return;
    }
    refused(&["occupancy", "sequential", "--arch", "sm_70"], &["sm_70", "sm_75"]);
    refused(&["occupancy", "sequential"], &["--arch"]);
    let output = bench(&["occupancy", "unroll_last_warp_f32", "--arch", "sm_86", "--format", "json"]);
    if stderr(&output).contains("--ptxas") {
        println!("skipped: no ptxas here");
        return;
    }
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 5);
    // 1536 threads: one block of 1024, six of 256.
    assert_eq!((&rows[4]["threads_per_block"], &rows[4]["blocks_per_multiprocessor"]), (&1024.into(), &1.into()));
    assert_eq!(rows[2]["blocks_per_multiprocessor"], 6);
    assert_eq!(rows[2]["limit"], "threads");
    // Two f32 of each of 1536 threads.
    assert_eq!(rows[2]["bytes_in_flight_per_thread"], 8);
    assert_eq!(rows[2]["bytes_in_flight_per_multiprocessor"], 8 * 1536);
    assert!(rows[2]["share_of_bytes_in_flight_needed"].is_null(), "an architecture has no bandwidth");
    let csv = stdout(&bench(&["occupancy", "unroll_last_warp_f32", "--arch", "sm_86", "--format", "csv"]));
    let row = csv.lines().nth(3).expect("a third block");
    assert!(row.starts_with("Sum in shared memory,unroll_last_warp_f32_256,256,"), "{csv}");
    assert!(row.ends_with(",threads,8,12288,"), "{csv}");
    assert!(stdout(&bench(&["occupancy", "unroll_last_warp_f32", "--arch", "sm_86"])).contains("12288 B"));
}
