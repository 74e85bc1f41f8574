//! A system without memory for a block's stacks. The test runs itself as a child with little address space.

#![cfg(target_os = "linux")]

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use simt::lane::{self, Barrier};
use simt::{Fault, Launch};

#[test]
fn a_block_without_memory_for_its_stacks() {
    if std::env::var_os("SIMT_TESTS_CHILD").is_none() {
        // 1024 stacks of 256 KiB alone take this much.
        let script = format!("ulimit -v {}; exec \"$0\" --exact a_block_without_memory_for_its_stacks", 256 * 1024);
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(std::env::current_exe().unwrap()).env("SIMT_TESTS_CHILD", "1");
        // By default each thread's heap takes 64 MiB of address space: all of it on a machine with many cores.
        command.env("MALLOC_ARENA_MAX", "1");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        return;
    }
    // The executor's threads need some memory too. This launch allocates it before stacks take the rest.
    let warm = || std::thread::sleep(std::time::Duration::from_millis(1));
    simt::run(&Launch::new("warm", 100, 1), &warm).unwrap();
    let meet = |threads| {
        let count = AtomicU32::new(0);
        let kernel = || count.store(lane::barrier(Barrier::Count, true), Relaxed);
        match simt::run(&Launch::new("wide", 1, threads), &kernel) {
            Ok(()) => Ok(count.into_inner()),
            Err(fault) => Err((matches!(fault, Fault::OutOfMemory { .. }), fault.to_string())),
        }
    };
    for _ in 0..3 {
        let (is_out_of_memory, text) = meet(1024).unwrap_err();
        assert!(is_out_of_memory);
        assert!(text.starts_with("kernel `wide`: no memory for the stacks of a block's threads: "), "{text}");
        assert_eq!(meet(32), Ok(32));
    }
}
