//! Blocks that wait for each other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use simt::lane::{self, block_idx};
use simt::{Launch, run};

/// Waits until the flag of another block is set.
fn wait_for(flag: &AtomicU64) {
    let mut round = 0;
    while flag.load(Ordering::Acquire) == 0 {
        lane::spin(round);
        round += 1;
    }
    lane::end_spin(round);
}

#[test]
fn blocks_that_wait_for_each_other_are_told() {
    let start = Instant::now();
    let flags = [AtomicU64::new(0), AtomicU64::new(0)];
    let deadlock = run(&Launch::new("deadlock", 2, 1), &|| {
        let block = block_idx().x as usize;
        // Each would have to set its own before.
        wait_for(&flags[1 - block]);
        flags[block].store(1, Ordering::Release);
    });
    let message = deadlock.unwrap_err().to_string();
    for part in ["`deadlock`", "block (0, 0, 0), thread (0, 0, 0)", "waits for another block", "tests/waiting.rs"] {
        assert!(message.contains(part), "{message}");
    }
    // With one core, the other block has not been started.
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1) {
        assert!(message.contains("so do all that run: block (1, 0, 0)"), "{message}");
    }
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_long_wait_is_none_for_ever() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return println!("skipped: one core, so that the other block is not started");
    }
    let flags = [AtomicU64::new(0), AtomicU64::new(0)];
    run(&Launch::new("slow", 2, 1), &|| {
        if block_idx().x == 1 {
            return wait_for(&flags[0]);
        }
        // Longer than a wait for ever takes to be noticed, but not waiting itself.
        std::thread::sleep(Duration::from_millis(1500));
        flags[0].store(1, Ordering::Release);
    })
    .unwrap();
}
