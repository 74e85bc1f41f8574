//! Tests of calls and errors with fake drivers, which the tests compile with `rustc`.

mod support;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use cuda_driver::{CUresult, Driver, DriverError, DriverVersion, FUNCTIONS, LoadError};
use support::{is_child, run_child};

/// The real driver's file name, under which the fake driver is loaded.
const FILE_NAME: &str = "libcuda.so.1";

/// Compiles `source` to a library `libcuda.so.1` in `folder`.
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
fn many_threads_load_one_driver() {
    if !is_child() {
        return run_child_with_driver("many_threads_load_one_driver", SMALL_DRIVER);
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

fn driver() -> &'static Driver {
    cuda_driver::load().expect("the fake driver loads")
}

#[test]
fn result_codes_become_results() {
    if !is_child() {
        return run_child_with_driver("result_codes_become_results", SMALL_DRIVER);
    }
    let count = || {
        let mut count = 0;
        // SAFETY: writes one integer.
        unsafe { driver().cuDeviceGetCount(&mut count) }.map(|()| count)
    };
    assert_eq!(count(), Err(DriverError::Code(CUresult::CUDA_ERROR_NOT_INITIALIZED)));
    // SAFETY: passes an integer.
    assert_eq!(unsafe { driver().cuInit(0) }, Ok(()));
    assert_eq!(count(), Ok(3));
}

#[test]
fn an_unknown_code_is_an_error_with_its_number() {
    if !is_child() {
        return run_child_with_driver("an_unknown_code_is_an_error_with_its_number", SMALL_DRIVER);
    }
    // SAFETY: passes nothing.
    let error = unsafe { driver().cuCtxSynchronize() }.expect_err("a code of its own");
    assert_eq!(error.code(), CUresult(4321));
    assert!(error.to_string().contains("4321"), "{error}");
    assert_eq!(driver().error_name(error.code()), Some("CUDA_ERROR_OF_THE_FUTURE"));
    assert_eq!(driver().error_name(CUresult(1)), None);
    assert_eq!(driver().error_string(error.code()), None, "this driver has no such function");
}

#[test]
fn arguments_arrive_intact() {
    if !is_child() {
        return run_child_with_driver("arguments_arrive_intact", SMALL_DRIVER);
    }
    let (function, stream, parameters) = (0x1111_2222_3333_4444, 0x5555_6666, 0x7777_8888_9999);
    let mut received = [0_usize; 11];
    let extra = (&raw mut received).addr();
    // SAFETY: the fake driver only writes eleven words to its last argument.
    let launched = unsafe {
        driver().cuLaunchKernel(
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
    assert_eq!(launched, Ok(()));
    let shared_bytes = u32::MAX as usize;
    assert_eq!(received, [function, 2, 3, 4, 5, 6, 7, shared_bytes, stream, parameters, extra]);
}

#[test]
fn a_missing_function_is_an_error_with_its_version() {
    if !is_child() {
        return run_child_with_driver("a_missing_function_is_an_error_with_its_version", SMALL_DRIVER);
    }
    // SAFETY: the library lacks the function, so nothing is called.
    let error =
        unsafe { driver().cuStreamSynchronize(std::ptr::null_mut()) }.expect_err("the library has no such function");
    let DriverError::Missing(missing) = error else {
        panic!("{error}");
    };
    assert_eq!((missing.name, missing.driver_version), ("cuStreamSynchronize", DriverVersion { major: 12, minor: 4 }));
    assert!(FUNCTIONS.contains(&(missing.name, missing.since)));
    assert_eq!(driver().function("cuStreamSynchronize"), None);
    assert!(driver().function("cuInit").is_some());
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
}

/// A library whose `cuDriverGetVersion` returns `code`.
fn driver_without_version(code: i32) -> String {
    format!(
        "#[unsafe(no_mangle)] extern \"C\" fn cuInit() -> i32 {{ {code} }}
         #[unsafe(no_mangle)] extern \"C\" fn cuDriverGetVersion() -> i32 {{ {code} }}"
    )
}

#[test]
fn the_stub_of_the_toolkit_is_refused() {
    if !is_child() {
        return run_child_with_driver("the_stub_of_the_toolkit_is_refused", &driver_without_version(34));
    }
    let error = cuda_driver::load().expect_err("it is a stub");
    assert!(matches!(error, LoadError::StubLibrary { .. }), "{error}");
}

#[test]
fn a_driver_without_a_version_is_refused() {
    if !is_child() {
        return run_child_with_driver("a_driver_without_a_version_is_refused", &driver_without_version(999));
    }
    let error = cuda_driver::load().expect_err("it tells no version");
    assert!(matches!(error, LoadError::NoVersion { code: 999, .. }), "{error}");
}
