//! warpfold beside other libraries in one process: their current contexts, captures and forks.
//!
//! Each test runs again in a child process, because a process loads a driver only once, and because a fork copies only
//! the thread that calls it.

use std::path::Path;

use cust::context::{Context, CurrentContext};
use cust::device::Device;
use fake_driver::{capture, in_child};
use warpfold::{Error, Gpu};

/// The handle of this thread's current context.
fn current() -> usize {
    CurrentContext::get_current().map_or(0, |context| context.as_raw().addr())
}

/// Calls of each kind, except launches of kernels. After each, `check` is called.
fn call_everything(check: impl Fn(&str)) {
    let gpu = Gpu::new(0).unwrap();
    check("new");
    let x = gpu.upload(&[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
    check("upload");
    let mut y = gpu.zeroed::<f32>(4).unwrap();
    check("zeroed");
    gpu.copy_array(&x, &mut y).unwrap();
    check("copy_array");
    assert_eq!(gpu.download(&y).unwrap(), [1.0, 2.0, 3.0, 4.0]);
    check("download");
    gpu.upload_into(&[5.0; 4], &mut y).unwrap();
    check("upload_into");
    gpu.synchronize().unwrap();
    check("synchronize");
    gpu.free_memory().unwrap();
    check("free_memory");
    gpu.info().unwrap();
    check("info");
    let other = gpu.fork().unwrap();
    check("fork");
    assert_eq!(other.download(&y).unwrap(), [5.0; 4]);
    check("download by another handle");
    let recording = gpu.record(|| Ok(())).unwrap();
    check("record");
    recording.start().unwrap();
    check("start");
    drop(recording);
    check("drop of a recording");
    // No test of the fake driver has a kernel.
    assert!(gpu.sum(&x).is_err());
    check("an error");
    drop((x, y));
    check("drop of buffers");
    drop((gpu, other));
    check("drop of handles");
}

#[test]
fn no_call_changes_the_current_context() {
    in_child!("no_call_changes_the_current_context", fake_driver::path());
    call_everything(|call| assert_eq!(current(), 0, "after {call}, with no current context"));
    // Another library uses the other device.
    cust::init(cust::CudaFlags::empty()).unwrap();
    let theirs = Context::new(Device::get_device(1).unwrap()).unwrap();
    let expected = theirs.as_raw().addr();
    call_everything(|call| assert_eq!(current(), expected, "after {call}, with the other device current"));
    // And the same device.
    let theirs = Context::new(Device::get_device(0).unwrap()).unwrap();
    let expected = theirs.as_raw().addr();
    call_everything(|call| assert_eq!(current(), expected, "after {call}, with the device current"));
}

#[test]
fn a_capture_of_another_library_survives() {
    in_child!("a_capture_of_another_library_survives", fake_driver::path());
    drop(Gpu::new(0).unwrap());
    capture(true);
    call_everything(|call| assert_eq!(capture(true), 0, "after {call}"));
    // The thread's mode is the one before: a call of the other library would be refused.
    let theirs = Context::new(Device::get_device(0).unwrap()).unwrap();
    assert!(cust::memory::DeviceBuffer::from_slice(&[1_u32]).is_err());
    capture(false);
    assert!(cust::memory::DeviceBuffer::from_slice(&[1_u32]).is_ok());
    drop(theirs);
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
