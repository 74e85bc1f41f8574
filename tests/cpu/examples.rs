//! The examples, as a person runs them, in the executor.

use std::process::Command;
use std::{env, path::Path};

/// What an example prints in the executor.
fn run(example: &str) -> String {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    // With all of the workspace, so that what the tests were built with is not built again with fewer features.
    let built = Command::new(cargo)
        .current_dir(workspace)
        .args(["build", "--quiet", "--workspace", "--bin", example])
        .status()
        .expect("cargo starts");
    assert!(built.success(), "{example} does not build");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../debug").join(example);
    let output = Command::new(program).env("WARPFOLD_LIBCUDA", "none").output().expect("it has been built");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("SIMT executor"), "{text}");
    text
}

#[test]
fn vecadd_adds_by_a_kernel_crate_of_its_own() {
    let text = run("vecadd");
    assert!(text.contains("100000 sums are right, twice"), "{text}");
}

#[test]
fn operator_reduces_by_an_operator_of_its_own() {
    let text = run("operator");
    assert!(text.contains("the peaks are right: 7.5 of all"), "{text}");
}
