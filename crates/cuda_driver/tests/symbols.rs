//! The list of driver functions is the one that `cust_raw` declares.

#[path = "../src/symbols.rs"]
mod symbols;

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use symbols::with_driver_functions;

/// Where cargo keeps the source of the `cust_raw` that `cust` uses.
fn cust_raw_source() -> String {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--filter-platform"])
        // Only what this machine needs, which is what building this test has fetched.
        .arg(format!("{}-unknown-linux-gnu", env::consts::ARCH))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let manifest: PathBuf = metadata["packages"]
        .as_array()
        .and_then(|packages| packages.iter().find(|p| p["name"] == "cust_raw"))
        .and_then(|package| package["manifest_path"].as_str())
        .expect("cust depends on cust_raw")
        .into();
    fs::read_to_string(manifest.with_file_name("src/cuda.rs")).expect("cust_raw's bindings")
}

macro_rules! names {
    ($($name:ident)*) => {
        [$(stringify!($name)),*]
    };
}

#[test]
fn the_list_is_what_cust_raw_declares() {
    let source = cust_raw_source();
    let mut declared: Vec<&str> = source
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub fn cu"))
        .filter_map(|rest| rest.split_once('('))
        .map(|(name, _)| name)
        .collect();
    declared.sort_unstable();
    let listed = with_driver_functions!(names).map(|name| name.trim_start_matches("cu"));
    assert_eq!(listed.as_slice(), declared);
    assert_eq!(listed.len(), 353);
}
