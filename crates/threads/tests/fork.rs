//! Calls in a child that was forked, whose parent has threads and the child none.

#![cfg(unix)]

use std::sync::atomic::{AtomicUsize, Ordering};

fn sum() -> usize {
    let sum = AtomicUsize::new(0);
    threads::run(100, &|part| {
        sum.fetch_add(part, Ordering::Relaxed);
    });
    sum.into_inner()
}

#[test]
fn a_forked_child_has_threads_of_its_own() {
    threads::set_max(4.try_into().unwrap());
    assert_eq!(sum(), 4950);
    // SAFETY: the child calls only what works without the parent's other threads, and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: a call that does not return in 20 seconds ends the child by a signal.
        unsafe { libc::alarm(20) };
        let is_right = sum() == 4950 && sum() == 4950;
        // SAFETY: ends the child without the test program's exit handlers.
        unsafe { libc::_exit(if is_right { 0 } else { 1 }) };
    }
    assert!(child > 0, "fork: {}", std::io::Error::last_os_error());
    assert_eq!(sum(), 4950);
    let mut status = 0;
    // SAFETY: `status` is valid, and the child is this process'.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "a signal or a wrong sum");
}
