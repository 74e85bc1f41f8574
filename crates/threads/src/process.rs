//! Which process this is.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A process. Values of a process that was forked differ from those of its parent.
///
/// The C library tells of a fork (`pthread_atfork`), so that [`Process::is_current`] makes no system call. It tells
/// neither of `vfork` nor of a `clone` that is no call of the library: such a child may only start another program, as
/// POSIX and glibc say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    forks: usize,
    /// If the C library cannot tell of forks.
    id: Option<u32>,
}

/// The number of forks from the first call of [`Process::current`] to this process.
static FORKS: AtomicUsize = AtomicUsize::new(0);

impl Process {
    /// This process.
    pub fn current() -> Self {
        let id = (!are_forks_counted()).then(std::process::id);
        Self { forks: FORKS.load(Ordering::Relaxed), id }
    }

    /// Whether the value is that of this process, and not of one that it was forked from.
    #[inline]
    pub fn is_current(self) -> bool {
        FORKS.load(Ordering::Relaxed) == self.forks && self.id.is_none_or(|id| id == std::process::id())
    }
}

/// Has forks counted from now on, if that is possible.
///
/// This uses no lock, which another thread might hold during a fork. If several threads make the first call at the same
/// time, a fork counts several times.
fn are_forks_counted() -> bool {
    static ARE_COUNTED: AtomicBool = AtomicBool::new(false);
    if !ARE_COUNTED.load(Ordering::Acquire) && count_forks() {
        ARE_COUNTED.store(true, Ordering::Release);
    }
    ARE_COUNTED.load(Ordering::Acquire)
}

#[cfg(unix)]
fn count_forks() -> bool {
    /// Runs in each child, before its `fork` returns.
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: the handler does what is allowed in a child of a process with several threads: it changes an atomic
    // number. The C library forgets handlers of a library that is unloaded.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) == 0 }
}

/// There are no forks.
#[cfg(not(unix))]
fn count_forks() -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Whether `work` is true in a forked child.
    fn in_child(work: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child uses atomic numbers and forks, and takes no lock.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let is_right = work();
            // SAFETY: ends this process without running what the parent would run at its end.
            unsafe { libc::_exit(i32::from(!is_right)) };
        }
        let mut status = 0;
        // SAFETY: writes one integer.
        child > 0 && unsafe { libc::waitpid(child, &mut status, 0) } == child && status == 0
    }

    #[test]
    fn a_child_is_another_process() {
        let parent = Process::current();
        assert!(parent.is_current());
        assert!(in_child(|| {
            let child = Process::current();
            !parent.is_current() && child.is_current() && in_child(|| !parent.is_current() && !child.is_current())
        }));
        assert!(parent.is_current() && parent == Process::current());
    }

    #[test]
    fn processes_differ_where_forks_are_not_counted() {
        let this = Process { forks: FORKS.load(Ordering::Relaxed), id: Some(std::process::id()) };
        assert!(this.is_current() && !Process { id: Some(1), ..this }.is_current());
    }
}
