//! The kernels' panics that the process's panic hook sees. Each test runs itself as a child, and reads the child's
//! stderr.

use std::process::{Command, Output};

use simt::Launch;
use simt::lane::{self, Barrier};

/// Whether this process is the child.
fn is_child() -> bool {
    std::env::var_os("SIMT_TESTS_CHILD").is_some()
}

fn child(test: &str) -> (Output, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env("SIMT_TESTS_CHILD", "1");
    let output = command.env("RUST_BACKTRACE", "0").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, stderr)
}

fn sync() {
    lane::barrier(Barrier::Sync, false);
}

#[test]
fn kernels_panics_are_not_printed() {
    if is_child() {
        for blocks in [1, 20] {
            simt::run(&Launch::new("quiet", blocks, 64), &|| {
                sync();
                if lane::thread_idx().x == 63 {
                    panic!("of the kernel");
                }
                sync();
            })
            .unwrap_err();
        }
        return;
    }
    let (output, stderr) = child("kernels_panics_are_not_printed");
    assert!(output.status.success());
    assert_eq!(stderr, "");
}

#[test]
fn other_panics_reach_the_hook_that_was_there() {
    if is_child() {
        std::panic::set_hook(Box::new(|info| eprintln!("my hook: {}", info.payload_as_str().unwrap_or_default())));
        simt::run(&Launch::new("first", 1, 1), &|| panic!("of the kernel")).unwrap_err();
        std::panic::catch_unwind(|| panic!("of the host")).unwrap_err();
        std::thread::spawn(|| panic!("of a thread")).join().unwrap_err();
        return;
    }
    let (output, stderr) = child("other_panics_reach_the_hook_that_was_there");
    assert!(output.status.success());
    assert_eq!(stderr, "my hook: of the host\nmy hook: of a thread\n");
}

#[test]
fn a_panic_that_ends_the_process_is_printed() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("of the destructor");
        }
    }
    if is_child() {
        let _ = simt::run(&Launch::new("twice", 1, 2), &|| {
            let _panics = Panics;
            panic!("of the kernel");
        });
        return;
    }
    let (output, stderr) = child("a_panic_that_ends_the_process_is_printed");
    assert!(!output.status.success());
    assert!(stderr.contains("of the destructor"), "{stderr}");
}

#[test]
#[cfg(unix)]
fn a_stack_that_overflows_ends_the_process() {
    use std::os::unix::process::ExitStatusExt;

    #[expect(unconditional_recursion, reason = "it shall not end")]
    fn deep(values: &mut [u64; 64]) -> u64 {
        let mut more = *values;
        std::hint::black_box(&mut more);
        deep(&mut more) + more[0]
    }
    if is_child() {
        let _ = simt::run(&Launch::new("deep", 1, 2), &|| {
            sync();
            std::hint::black_box(deep(&mut [1; 64]));
        });
        return;
    }
    let (output, _) = child("a_stack_that_overflows_ends_the_process");
    assert!(output.status.signal().is_some(), "{:?}", output.status);
}
