//! warpfold beside other libraries in one process: their current contexts, captures and forks.
//!
//! Each test runs again in a child process, because a process loads a driver only once, and because a fork copies only
//! the thread that calls it. If the kernels were built without PTX, the fake driver gets stubs.

mod borrowed;
mod calls;
mod chunks;
mod witness;

use std::fs;
use std::path::{Path, PathBuf};

use calls::{call_everything, public_functions};
use cust::context::Context;
use cust::device::Device;
use fake_driver::in_child;
use test_kernels::{INDEX_WORDS, indices};
use warpfold::ptx::Library;
use warpfold::{Error, Gpu, interop};
use witness::Witness;

/// The function that launches a kernel which waits for its prerequisites itself, as each stub does.
const LAUNCH: &str = "cuLaunchKernelEx";

/// A driver's version without programmatic dependent launches in graphs, and its function for all launches.
const OLD: (&str, &str) = ("12020", "cuLaunchKernel");

/// The context of a device, created by another library.
fn context_of(device: u32) -> Context {
    cust::init(cust::CudaFlags::empty()).unwrap();
    Context::retain(Device::get_device(device).unwrap()).unwrap()
}

/// The handle of device 0's context, which nobody retains.
fn context_of_device() -> u64 {
    context_of(0).as_raw().addr() as u64
}

/// Makes every call, within a capture of another library if there is one.
fn verify_everything(is_captured: bool, launch: &'static str) {
    let context = context_of_device();
    let before = fake_driver::report();
    let mut witness = Witness::new(context, is_captured, launch);
    call_everything(&mut witness);
    witness.finish(&public_functions());
    assert_eq!(fake_driver::report(), before, "all objects are destroyed, and no call has used the default stream");
    fake_driver::capture(false);
}

/// Makes every call where another library has made no context current, that of the other device, or that of the device.
fn verify_with_each_context(is_captured: bool, launch: &'static str) {
    verify_everything(is_captured, launch);
    for device in [1, 0] {
        let theirs = context_of(device);
        let _entered = theirs.enter().unwrap();
        verify_everything(is_captured, launch);
    }
}

#[test]
fn no_call_changes_what_another_library_uses() {
    in_child!("no_call_changes_what_another_library_uses", fake_driver::path());
    verify_with_each_context(false, LAUNCH);
}

#[test]
fn a_capture_of_another_library_survives() {
    in_child!("a_capture_of_another_library_survives", fake_driver::path());
    verify_with_each_context(true, LAUNCH);
    // Another library's calls are still refused in its capture.
    let theirs = context_of(0);
    let _entered = theirs.enter().unwrap();
    fake_driver::capture(true);
    assert!(cust::memory::DeviceBuffer::from_slice(&[1_u32]).is_err());
    fake_driver::capture(false);
    assert!(cust::memory::DeviceBuffer::from_slice(&[1_u32]).is_ok());
}

#[test]
fn the_launches_for_an_old_driver_are_good_guests() {
    let (version, launch) = OLD;
    in_child!("the_launches_for_an_old_driver_are_good_guests", fake_driver::path(), (fake_driver::VERSION, version));
    verify_with_each_context(false, launch);
    verify_with_each_context(true, launch);
}

/// The fake driver without the function by which it says that it runs no kernels.
fn driver_that_runs_kernels() -> PathBuf {
    let (name, other) = (b"warpfoldFakeDriver", b"warpfoldRealDriver");
    let mut library = fs::read(fake_driver::path()).unwrap();
    let found: Vec<usize> = (0..library.len()).filter(|&at| library[at..].starts_with(name)).collect();
    assert!(!found.is_empty(), "the fake driver has the function");
    found.iter().for_each(|&at| library[at..][..name.len()].copy_from_slice(other));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("driver_that_runs_kernels.so");
    fs::write(&path, library).unwrap();
    path
}

/// A library without PTX, however this program was built.
// SAFETY: it has no PTX.
static WITHOUT_PTX: Library = unsafe { interop::library("test_kernels", &[]) };

/// Launches a kernel without PTX. Returns the result, and how many modules the driver was told to load.
fn launch_without_ptx() -> (Result<(), Error>, usize) {
    let gpu = Gpu::with_libraries(0, &[&WITHOUT_PTX]).unwrap();
    let mut out = gpu.zeroed(64 * INDEX_WORDS).unwrap();
    fake_driver::take_calls();
    let arguments = indices::Args { out: out.view_mut() };
    let launched = gpu.launch(indices::handle().with_block(64), 1, arguments);
    let calls = fake_driver::take_calls();
    (launched, calls.iter().filter(|call| call.function == "cuModuleLoadDataEx").count())
}

#[test]
fn a_fake_driver_gets_stubs() {
    in_child!("a_fake_driver_gets_stubs", fake_driver::path());
    assert!(matches!(launch_without_ptx(), (Ok(()), 1)));
}

#[test]
fn a_driver_that_runs_kernels_gets_no_stubs() {
    in_child!("a_driver_that_runs_kernels_gets_no_stubs", &driver_that_runs_kernels());
    let (refused, loads) = launch_without_ptx();
    assert!(matches!(refused, Err(Error::NoPtx { .. })), "{refused:?}");
    assert_eq!(loads, 0);
}

/// Forks, and runs `work` in the child, which has a minute. The parent waits, and expects success.
#[cfg(target_os = "linux")]
fn in_forked_child(work: impl FnOnce() -> bool) {
    // SAFETY: only this thread goes on in the child. The other one, of the test harness, waits without a lock.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: sets a timer that ends this process, if the work hangs.
        unsafe { libc::alarm(60) };
        let is_right = work();
        // SAFETY: ends this process without running what the parent would run at its end.
        unsafe { libc::_exit(if is_right { 0 } else { 1 }) };
    }
    assert!(child > 0, "this process cannot fork");
    let mut status = 0;
    // SAFETY: writes one integer.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "the forked child: status {status}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_executor_works_after_a_fork() {
    in_child!("the_executor_works_after_a_fork", Path::new("none"));
    let numbers: Vec<f32> = (0..1 << 24).map(|i| (i % 1000) as f32 - 499.0).collect();
    let expected: f64 = numbers.iter().map(|&x| f64::from(x)).sum();
    let gpu = Gpu::simt_with(warpfold::SimtOptions { checks: false, ..warpfold::SimtOptions::default() });
    let x = gpu.upload(&numbers).unwrap();
    let sum = || gpu.sum(&x).unwrap();
    assert_eq!(f64::from(sum()), f64::from(expected as f32));
    in_forked_child(|| {
        let again = Gpu::simt();
        let few = again.upload(&[1.0_f32, 2.0, 3.0]).unwrap();
        f64::from(sum()) == f64::from(expected as f32) && again.sum(&few).unwrap() == 6.0
    });
    // The parent goes on.
    assert_eq!(f64::from(sum()), f64::from(expected as f32));
}

/// The threads of sums on the host are the process' own.
#[cfg(target_os = "linux")]
#[test]
fn sums_on_the_host_work_after_a_fork() {
    in_child!("sums_on_the_host_work_after_a_fork", Path::new("none"));
    warpfold::host::set_max_threads(4.try_into().unwrap());
    let numbers: Vec<f32> = (0..1 << 24).map(|i| (i % 1000) as f32 - 499.0).collect();
    let expected: f64 = numbers.iter().map(|&x| f64::from(x)).sum();
    let is_right = || {
        let mut sum = warpfold::exact::ExactSum::new();
        sum.add_slice(&numbers);
        let of_columns =
            warpfold::host::View::new(&numbers, &warpfold::Layout::contiguous(&[1 << 14, 1 << 10]).unwrap());
        f64::from(sum.value()) == f64::from(expected as f32)
            && warpfold::host::sum(&numbers).unwrap() == expected as f32
            && warpfold::host::reduce_all(warpfold::ops::ArgMax, &numbers).unwrap() == 999
            && warpfold::host::reduce(warpfold::ops::Max, of_columns.unwrap(), 0).unwrap().as_slice().len() == 1 << 10
    };
    assert!(is_right());
    in_forked_child(|| is_right() && is_right());
    // The parent goes on.
    assert!(is_right());
}

#[cfg(target_os = "linux")]
#[test]
fn cuda_after_a_fork_is_an_error() {
    in_child!("cuda_after_a_fork_is_an_error", fake_driver::path());
    let gpu = Gpu::new(0).unwrap();
    let x = gpu.upload(&[1.0_f32, 2.0]).unwrap();
    in_forked_child(|| {
        let errors = [gpu.download(&x).err(), gpu.upload(&[1_u8]).err(), gpu.sum(&x).err(), gpu.fork().err()];
        errors.into_iter().all(|error| matches!(error, Some(Error::Forked)))
    });
    assert_eq!(gpu.download(&x).unwrap(), [1.0, 2.0]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_child_that_was_forked_before_the_first_handle_may_make_one() {
    in_child!("a_child_that_was_forked_before_the_first_handle_may_make_one", fake_driver::path());
    // From here on, forks are counted. The real driver would refuse the child, because it has been started.
    let nowhere = Gpu::new(1000).unwrap_err();
    assert!(matches!(nowhere, Error::NoDevice { ordinal: 1000, .. }));
    in_forked_child(|| {
        let gpu = Gpu::new(0).unwrap();
        let x = gpu.upload(&[1.0_f32, 2.0]).unwrap();
        in_forked_child(|| matches!(gpu.download(&x), Err(Error::Forked)));
        gpu.download(&x).unwrap() == [1.0, 2.0]
    });
    let gpu = Gpu::new(0).unwrap();
    let x = gpu.upload(&[3_u32]).unwrap();
    in_forked_child(|| matches!(gpu.upload(&[1_u8]).err(), Some(Error::Forked)));
    assert_eq!(gpu.download(&x).unwrap(), [3]);
}
