//! Tests of the errors on a machine without a driver.

mod support;

use std::path::Path;

use cuda_driver::LoadError;
use support::{is_child, run_child};

#[test]
fn the_driver_can_be_disabled() {
    if !is_child() {
        return run_child("the_driver_can_be_disabled", Path::new("none"));
    }
    for _ in 0..2 {
        let error = cuda_driver::load().expect_err("the driver is disabled");
        let LoadError::NoDriver { tried } = &error else {
            panic!("{error}");
        };
        assert_eq!(tried[0].library, "WARPFOLD_LIBCUDA=none");
        for part in ["libcuda.so.1", "install the NVIDIA driver", "until the variable is unset"] {
            assert!(cfg!(windows) || error.to_string().contains(part), "{error}");
        }
    }
}

#[test]
fn a_missing_library_is_an_error_with_the_reason() {
    let missing = Path::new("/nowhere/libcuda.so.1");
    if !is_child() {
        return run_child("a_missing_library_is_an_error_with_the_reason", missing);
    }
    let error = cuda_driver::load().expect_err("there is no such library");
    let LoadError::NoDriver { tried } = &error else {
        panic!("{error}");
    };
    assert_eq!(tried.len(), 1);
    assert_eq!(Path::new(&tried[0].library), missing);
    assert!(!tried[0].reason.is_empty() && !tried[0].reason.starts_with("/nowhere"), "{error}");
    #[cfg(target_os = "linux")]
    assert!(tried[0].reason.starts_with("cannot open shared object file"), "{error}");
    assert!(tried[0].reason.ends_with("while WARPFOLD_LIBCUDA is set"), "{error}");
}

#[test]
#[cfg(target_os = "linux")]
fn default_libraries_are_tried_in_order() {
    // An empty value selects the default libraries.
    if !is_child() {
        return run_child("default_libraries_are_tried_in_order", Path::new(""));
    }
    match cuda_driver::load() {
        Ok(driver) => assert!(driver.path().is_absolute()),
        Err(LoadError::NoDriver { tried }) => {
            let names: Vec<_> = tried.iter().map(|attempt| attempt.library.as_str()).collect();
            assert_eq!(names, ["libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", "libcuda.so"]);
        }
        Err(other) => panic!("{other}"),
    }
}
