//! `bench device` and `bench occupancy`.

use std::env;

use cuda_builder::{Arch, CudaBuilder};

use crate::{Files, bench, refused, stderr, stdout};

#[test]
fn the_device_is_described() {
    let output = bench(&["device", "--format", "json"]);
    let device: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(device["backend"], "simt");
    assert!(stdout(&bench(&["device"])).contains("CPU cores"));
}

#[test]
fn occupancy_without_a_gpu() {
    refused(&["occupancy", "sequential"], &["--arch"]);
    let files = Files::new();
    let folder = files.path("ptx");
    // The `bench` of a bundle contains PTX. Whether cargo's `bench` does depends on the environment: its PTX is built
    // here.
    let is_bundle = env::var_os("WARPFOLD_BENCH").is_some();
    if !is_bundle {
        let kernels = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels");
        let built = CudaBuilder::new(kernels).feature("ladder").arch(Arch::SM_90).build().expect("the kernels build");
        built.write_entries(folder.as_ref()).expect("the PTX is written");
    }
    let from_folder: &[&str] = if is_bundle { &[] } else { &["--ptx", &folder] };
    let bench = |arguments: &[&str]| bench(&[arguments, from_folder].concat());
    let refused = |arguments: &[&str], parts: &[&str]| refused(&[arguments, from_folder].concat(), parts);
    refused(&["occupancy", "nonsense", "--arch", "sm_90"], &["`nonsense`"]);
    refused(&["occupancy", "sequential", "--arch", "sm_70"], &["sm_70", "sm_75"]);
    // A bundle's kernels are of one architecture; a folder may lack one.
    let reason = if is_bundle { "was built for sm_" } else { "no PTX" };
    refused(&["occupancy", "sequential", "--arch", "sm_86"], &[reason, "sm_86"]);
    let output = bench(&["occupancy", "unroll_last_warp_f32", "--arch", "sm_90", "--format", "json"]);
    if stderr(&output).contains("--ptxas") {
        println!("skipped: no ptxas here");
        return;
    }
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 5);
    // 2048 threads: two blocks of 1024, eight of 256.
    assert_eq!((&rows[4]["threads_per_block"], &rows[4]["blocks_per_multiprocessor"]), (&1024.into(), &2.into()));
    assert_eq!(rows[2]["blocks_per_multiprocessor"], 8);
    assert_eq!(rows[2]["limit"], "threads");
    // Two f32 for each of 2048 threads.
    assert_eq!(rows[2]["bytes_in_flight_per_thread"], 8);
    assert_eq!(rows[2]["bytes_in_flight_per_multiprocessor"], 8 * 2048);
    assert!(
        rows[2]["share_of_bytes_in_flight_needed"].is_null(),
        "the bandwidth is that of a device, and there is none"
    );
    let csv = stdout(&bench(&["occupancy", "unroll_last_warp_f32", "--arch", "sm_90", "--format", "csv"]));
    let row = csv.lines().nth(3).expect("a third block");
    assert!(row.starts_with("Sum in shared memory,unroll_last_warp_f32_256,256,"), "{csv}");
    assert!(row.ends_with(",threads,8,16384,"), "{csv}");
    assert!(stdout(&bench(&["occupancy", "unroll_last_warp_f32", "--arch", "sm_90"])).contains("16384 B"));
}
