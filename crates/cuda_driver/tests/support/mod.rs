//! Common code of the tests that load a driver.
//!
//! `cuda_driver::load` looks for a driver once per process, and the machine that runs the tests may have a real one. So
//! each of these tests runs itself again in a child process, where `WARPFOLD_LIBCUDA` selects the library.

use std::env;
use std::path::Path;
use std::process::Command;

const CHILD: &str = "CUDA_DRIVER_TEST_CHILD";

/// Whether [`run_child`] has started this process.
pub fn is_child() -> bool {
    env::var_os(CHILD).is_some()
}

/// Runs the test `name` again in a child process whose `WARPFOLD_LIBCUDA` is `library`, and panics if it fails there.
pub fn run_child(name: &str, library: &Path) {
    let child = Command::new(env::current_exe().expect("the path of this test"))
        .args([name, "--exact", "--nocapture"])
        .env(CHILD, name)
        .env(cuda_driver::OVERRIDE_VARIABLE, library)
        .output()
        .expect("this test starts again");
    let printed = String::from_utf8_lossy(&child.stdout);
    let errors = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success() && printed.contains("1 passed"), "in the child process:\n{printed}\n{errors}");
}
