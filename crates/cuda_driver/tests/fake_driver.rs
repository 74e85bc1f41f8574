//! Calls through the trampolines reach the library that was loaded, with their arguments intact.
//!
//! The libraries are compiled by the tests, with `rustc`.

mod support;

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use cuda_driver::{DriverVersion, LoadError};
use cust::CudaFlags;
use cust::device::Device;
use cust::error::CudaError;
use cust::sys::{self, CUresult};
use support::{driver_functions, is_child, run_child};

/// The real driver's file name, so that the fake one is found as a driver would be.
const FILE_NAME: &str = "libcuda.so.1";

/// Compiles `source` to `libcuda.so.1` in `folder`.
fn compile(source: &str, folder: &Path) -> PathBuf {
    let source_file = folder.join("driver.rs");
    let library = folder.join(FILE_NAME);
    fs::write(&source_file, source).expect("a writable temporary folder");
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let status = Command::new(rustc)
        .args(["--edition=2024", "--crate-type=cdylib", "--crate-name=driver"])
        .args(["-Cpanic=abort", "-Cdebuginfo=0", "-o"])
        .args([&library, &source_file])
        .status()
        .expect("rustc runs");
    assert!(status.success(), "the fake driver does not compile");
    library
}

/// Runs the test `name` in a child process whose driver is compiled from `source`.
fn run_child_with_driver(name: &str, source: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    run_child(name, &compile(source, folder.path()));
}

const SMALL_DRIVER: &str = include_str!("fakes/driver.rs");

#[test]
fn loads_once_from_many_threads() {
    if !is_child() {
        return run_child_with_driver("loads_once_from_many_threads", SMALL_DRIVER);
    }
    let threads: Vec<_> = (0..8).map(|_| thread::spawn(cuda_driver::load)).collect();
    let first = cuda_driver::load().expect("the fake driver loads");
    for thread in threads {
        let driver = thread.join().expect("no panic").expect("it loads");
        assert!(std::ptr::eq(driver, first));
    }
    assert_eq!(first.version(), DriverVersion { major: 12, minor: 4 });
    assert_eq!(first.path().file_name(), Some(FILE_NAME.as_ref()));
    assert!(first.path().is_absolute());
}

#[test]
fn cust_reaches_the_loaded_driver() {
    if !is_child() {
        return run_child_with_driver("cust_reaches_the_loaded_driver", SMALL_DRIVER);
    }
    assert_eq!(cust::init(CudaFlags::empty()), Err(CudaError::UnknownError));
    cuda_driver::load().expect("the fake driver loads");
    assert_eq!(Device::num_devices(), Err(CudaError::NotInitialized));
    assert_eq!(cust::init(CudaFlags::empty()), Ok(()));
    assert_eq!(Device::num_devices(), Ok(3));
}

#[test]
fn arguments_arrive_intact() {
    if !is_child() {
        return run_child_with_driver("arguments_arrive_intact", SMALL_DRIVER);
    }
    cuda_driver::load().expect("the fake driver loads");
    let (function, stream, parameters) = (0x1111_2222_3333_4444, 0x5555_6666, 0x7777_8888_9999);
    let mut received = [0_usize; 11];
    let extra = (&raw mut received).addr();
    // SAFETY: the fake driver only writes eleven words to its last argument.
    let code = unsafe {
        sys::cuLaunchKernel(
            function as _,
            2,
            3,
            4,
            5,
            6,
            7,
            u32::MAX,
            stream as _,
            parameters as _,
            (&raw mut received).cast(),
        )
    };
    assert_eq!(code, CUresult::CUDA_SUCCESS);
    let shared_bytes = u32::MAX as usize;
    assert_eq!(received, [function, 2, 3, 4, 5, 6, 7, shared_bytes, stream, parameters, extra]);
    // SAFETY: the fake driver does not look at the handle.
    let code = unsafe { sys::cuTexRefSetMipmapLevelBias(std::ptr::null_mut(), 0.25) };
    assert_eq!(code, CUresult::CUDA_SUCCESS);
}

#[test]
fn a_function_that_the_driver_lacks_is_not_found() {
    if !is_child() {
        return run_child_with_driver("a_function_that_the_driver_lacks_is_not_found", SMALL_DRIVER);
    }
    cuda_driver::load().expect("the fake driver loads");
    // SAFETY: there is no function behind this one to misuse.
    let code = unsafe { sys::cuCtxSynchronize() };
    assert_eq!(code, CUresult::CUDA_ERROR_NOT_FOUND);
}

#[test]
fn every_trampoline_reaches_the_function_of_its_name() {
    let functions = driver_functions();
    if !is_child() {
        let mut source = String::from(
            r#"#[unsafe(no_mangle)]
            extern "C" fn cuDriverGetVersion(version: &mut i32) -> i32 { *version = 13000; 0 }"#,
        );
        for (place, (name, _)) in functions.iter().enumerate() {
            if *name != "cuDriverGetVersion" {
                write!(source, "\n#[unsafe(no_mangle)] extern \"C\" fn {name}() -> usize {{ {place} }}")
                    .expect("a string can be written to");
            }
        }
        return run_child_with_driver("every_trampoline_reaches_the_function_of_its_name", &source);
    }
    cuda_driver::load().expect("the fake driver loads");
    for (place, (name, function)) in functions.into_iter().enumerate() {
        if name != "cuDriverGetVersion" {
            // SAFETY: the fake driver's functions are of this type.
            let function: extern "C" fn() -> usize = unsafe { std::mem::transmute(function) };
            assert_eq!(function(), place, "{name}");
        }
    }
}

#[test]
fn a_library_without_cu_init_is_not_a_driver() {
    if !is_child() {
        return run_child_with_driver(
            "a_library_without_cu_init_is_not_a_driver",
            "#[unsafe(no_mangle)] extern \"C\" fn cuDriverGetVersion() -> i32 { 0 }",
        );
    }
    let error = cuda_driver::load().expect_err("it has no cuInit");
    let LoadError::NotADriver { path, missing } = &error else {
        panic!("{error}");
    };
    assert_eq!(path.file_name(), Some(FILE_NAME.as_ref()));
    assert_eq!(*missing, "cuInit");
    assert_eq!(cust::init(CudaFlags::empty()), Err(CudaError::UnknownError));
}

/// A library whose `cuDriverGetVersion` returns `code`.
fn driver_without_version(code: i32) -> String {
    format!(
        "#[unsafe(no_mangle)] extern \"C\" fn cuInit() -> i32 {{ {code} }}
         #[unsafe(no_mangle)] extern \"C\" fn cuDriverGetVersion() -> i32 {{ {code} }}"
    )
}

#[test]
fn the_toolkits_stub_is_recognised() {
    if !is_child() {
        return run_child_with_driver("the_toolkits_stub_is_recognised", &driver_without_version(34));
    }
    let error = cuda_driver::load().expect_err("it is a stub");
    assert!(matches!(error, LoadError::StubLibrary { .. }), "{error}");
}

#[test]
fn a_driver_that_hides_its_version_is_refused() {
    if !is_child() {
        return run_child_with_driver("a_driver_that_hides_its_version_is_refused", &driver_without_version(999));
    }
    let error = cuda_driver::load().expect_err("it tells no version");
    assert!(matches!(error, LoadError::NoVersion { code: 999, .. }), "{error}");
}
