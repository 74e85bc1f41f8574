//! What a program sees on a machine without a driver.

mod support;

use std::path::Path;
use std::ptr;

use cuda_driver::LoadError;
use cust::CudaFlags;
use cust::error::CudaError;
use cust::sys::CUresult;
use support::{driver_functions, is_child, run_child};

#[test]
fn every_function_reports_the_stub_before_and_after_a_failed_load() {
    if !is_child() {
        return run_child("every_function_reports_the_stub_before_and_after_a_failed_load", Path::new("none"));
    }
    assert_every_function_reports_the_stub();
    for _ in 0..2 {
        let error = cuda_driver::load().expect_err("no driver was asked for");
        let LoadError::NoDriver { tried } = &error else {
            panic!("{error}");
        };
        assert_eq!(tried[0].library, "WARPFOLD_LIBCUDA=none");
        assert!(error.to_string().contains("Gpu::simt()"), "{error}");
        assert_every_function_reports_the_stub();
    }
}

fn assert_every_function_reports_the_stub() {
    for (name, function) in driver_functions() {
        // This one has to work: see the test after this.
        if name != "cuGetErrorString" {
            // SAFETY: a stub reads no arguments.
            let function: extern "C" fn() -> i32 = unsafe { std::mem::transmute(function) };
            assert_eq!(function(), 34, "{name}");
        }
    }
    // `cust` has no name for 34.
    assert_eq!(cust::init(CudaFlags::empty()), Err(CudaError::UnknownError));
}

#[test]
fn an_error_of_cust_can_be_printed_without_a_driver() {
    if !is_child() {
        return run_child("an_error_of_cust_can_be_printed_without_a_driver", Path::new("none"));
    }
    let error = cust::init(CudaFlags::empty()).expect_err("no driver is loaded");
    assert_eq!(error.to_string(), "\"no CUDA driver is loaded\"");
    // SAFETY: null is what is tested: the driver refuses it too.
    let code = unsafe { cust::sys::cuGetErrorString(CUresult::CUDA_SUCCESS, ptr::null_mut()) };
    assert_eq!(code, CUresult::CUDA_ERROR_INVALID_VALUE);
}

#[test]
fn a_library_that_is_not_there_is_named_with_the_reason() {
    let missing = Path::new("/nowhere/libcuda.so.1");
    if !is_child() {
        return run_child("a_library_that_is_not_there_is_named_with_the_reason", missing);
    }
    let error = cuda_driver::load().expect_err("there is no such library");
    let LoadError::NoDriver { tried } = &error else {
        panic!("{error}");
    };
    assert_eq!(tried.len(), 1);
    assert_eq!(Path::new(&tried[0].library), missing);
    assert!(tried[0].reason.starts_with("cannot open shared object file"), "{error}");
}

#[test]
fn the_trampolines_are_invisible_to_the_dynamic_linker() {
    // It is linked but not exported: a driver's calls to its own `cuInit` must never end here.
    assert!(cust::init(CudaFlags::empty()).is_err());
    let program = libloading::os::unix::Library::this();
    // SAFETY: the address is not used.
    let exported = unsafe { program.get::<*mut ()>("cuInit") };
    assert!(exported.is_err());
}
