//! Blocks that wait for each other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use simt::lane::{self, Access, Space, block_idx, thread_idx};
use simt::{Launch, Schedule, run};

/// Excludes the other tests: they share the executor's cores, and the message of a wait depends on the blocks that run.
fn alone() -> MutexGuard<'static, ()> {
    static CORES: Mutex<()> = Mutex::new(());
    CORES.lock().unwrap_or_else(PoisonError::into_inner)
}

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
fn blocks_that_wait_for_each_other_are_a_deadlock() {
    let _alone = alone();
    let start = Instant::now();
    let flags = [AtomicU64::new(0), AtomicU64::new(0)];
    let begun = AtomicU64::new(0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let deadlock = run(&Launch::new("deadlock", 2, 1), &|| {
        let block = block_idx().x as usize;
        begun.fetch_add(1, Ordering::Relaxed);
        while cores > 1 && begun.load(Ordering::Relaxed) < 2 {
            std::thread::yield_now();
        }
        // Each block sets its own flag only after the wait.
        wait_for(&flags[1 - block]);
        flags[block].store(1, Ordering::Release);
    });
    let message = deadlock.unwrap_err().to_string();
    for part in ["`deadlock`", "block (0, 0, 0), thread (0, 0, 0)", "waits for another block", "tests/waiting.rs"] {
        assert!(message.contains(part), "{message}");
    }
    // With one core, the other block has not started.
    if cores > 1 {
        assert!(message.contains("so do all running blocks: block (1, 0, 0)"), "{message}");
    }
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_long_wait_is_not_a_deadlock() {
    let _alone = alone();
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return println!("skipped: one core, so that the other block is not started");
    }
    let flags = [AtomicU64::new(0), AtomicU64::new(0)];
    run(&Launch::new("slow", 2, 1), &|| {
        if block_idx().x == 1 {
            return wait_for(&flags[0]);
        }
        // Works, without waiting, for longer than it takes to detect a deadlock.
        std::thread::sleep(Duration::from_millis(1500));
        flags[0].store(1, Ordering::Release);
    })
    .unwrap();
}

/// [`wait_for`], which yields to the block's other lanes, as a random order does at accesses.
fn wait_yielding(flag: &AtomicU64, rounds: &AtomicU64) {
    let start = Instant::now();
    let mut round = 0;
    let load = || flag.load(Ordering::Acquire);
    while lane::atomic(Access::Load, std::ptr::from_ref(flag).addr(), 8, false, load, |_| true) == 0 {
        lane::spin(round);
        round += 1;
        rounds.store(u64::from(round), Ordering::Relaxed);
        assert!(start.elapsed() < Duration::from_secs(60), "the deadlock is not detected");
    }
    lane::end_spin(round);
}

/// Works until `is_done`, and yields now and then.
fn work_until(is_done: impl Fn() -> bool) {
    let place = 0_u64;
    while !is_done() {
        std::thread::sleep(Duration::from_millis(1));
        lane::access(Space::Global, Access::Load, std::ptr::from_ref(&place).addr(), 8);
    }
}

#[test]
fn a_block_does_not_wait_while_one_of_its_lanes_works() {
    let _alone = alone();
    let flag = AtomicU64::new(0);
    let launch = Launch { schedule: Schedule::Seed(1), ..Launch::new("works", 1, 3) };
    run(&launch, &|| {
        if thread_idx().x > 0 {
            return wait_yielding(&flag, &AtomicU64::new(0));
        }
        let start = Instant::now();
        work_until(|| start.elapsed() > Duration::from_millis(1500));
        flag.store(1, Ordering::Release);
    })
    .unwrap();
}

#[test]
fn the_end_of_one_lanes_wait_does_not_hide_anothers() {
    let _alone = alone();
    let (comes, never) = (AtomicU64::new(0), AtomicU64::new(0));
    let rounds = [AtomicU64::new(0), AtomicU64::new(0)];
    let launch = Launch { schedule: Schedule::Seed(3), ..Launch::new("half", 1, 3) };
    let deadlock = run(&launch, &|| match thread_idx().x {
        0 => {
            // By then both lanes are known to wait.
            work_until(|| rounds.iter().all(|rounds| rounds.load(Ordering::Relaxed) > 200));
            comes.store(1, Ordering::Release);
        }
        1 => wait_yielding(&comes, &rounds[0]),
        _ => wait_yielding(&never, &rounds[1]),
    });
    let message = deadlock.unwrap_err().to_string();
    for part in ["`half`", "thread (2, 0, 0)", "no other block can run"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn lanes_of_a_warp_that_meet_in_votes_do_not_wait_while_others_work() {
    let _alone = alone();
    use simt::lane::Vote;
    let flag = AtomicU64::new(0);
    let launch = Launch::new("votes", 1, 32);
    run(&launch, &|| {
        let start = Instant::now();
        if thread_idx().x < 16 {
            // The two halves alternate: each yields to the other at its votes.
            let goes_on = || u32::from(start.elapsed() < Duration::from_millis(1500));
            while lane::vote(Vote::All, 0xffff, goes_on()) != 0 {}
            return flag.store(1, Ordering::Release);
        }
        let mut round = 0;
        while lane::vote(Vote::All, 0xffff_0000, u32::from(flag.load(Ordering::Acquire) != 0)) == 0 {
            lane::spin(round);
            round += 1;
        }
        lane::end_spin(round);
    })
    .unwrap();
}

#[test]
fn a_warp_that_waits_as_a_whole_is_a_deadlock() {
    let _alone = alone();
    use simt::lane::Vote;
    for schedule in [Schedule::InOrder, Schedule::Seed(5)] {
        let start = Instant::now();
        let launch = Launch { schedule, ..Launch::new("together", 1, 64) };
        let deadlock = run(&launch, &|| {
            let mut round = 0;
            while lane::vote(Vote::All, u32::MAX, 0) == 0 {
                lane::spin(round);
                round += 1;
                assert!(start.elapsed() < Duration::from_secs(60), "the deadlock is not detected");
            }
        });
        let message = deadlock.unwrap_err().to_string();
        assert!(message.contains("no other block can run"), "{message}");
    }
}

/// A lock that the threads of two warps take in turn, each asleep until it is free: without the sleep, the first lane
/// that finds it taken would spin for ever.
#[test]
fn a_lane_that_sleeps_lets_the_others_of_its_block_run() {
    let _alone = alone();
    for schedule in [Schedule::InOrder, Schedule::Seed(7)] {
        let (turn, order) = (AtomicU64::new(63), Mutex::new(Vec::new()));
        let launch = Launch { schedule, ..Launch::new("turns", 1, 64) };
        run(&launch, &|| {
            let own = u64::from(thread_idx().x);
            while turn.load(Ordering::Acquire) != own {
                lane::sleep();
            }
            order.lock().unwrap_or_else(PoisonError::into_inner).push(own);
            turn.store(own.wrapping_sub(1), Ordering::Release);
            lane::barrier(lane::Barrier::Sync, false);
        })
        .unwrap();
        let order = order.into_inner().unwrap_or_else(PoisonError::into_inner);
        assert!(order.into_iter().eq((0..64).rev()), "{schedule:?}");
    }
}

#[test]
fn lanes_of_a_warp_operation_wait_for_one_that_sleeps() {
    let _alone = alone();
    for schedule in [Schedule::InOrder, Schedule::Seed(3)] {
        let launch = Launch { schedule, ..Launch::new("late", 1, 32) };
        run(&launch, &|| {
            (0..thread_idx().x % 5).for_each(|_| lane::sleep());
            assert_eq!(lane::vote(lane::Vote::ReduceAdd, u32::MAX, 1), 32);
        })
        .unwrap();
    }
}

#[test]
fn a_lane_that_sleeps_for_a_block_with_a_fault_ends() {
    let _alone = alone();
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return println!("skipped: one core, so that the other block is not started");
    }
    let begun = AtomicU64::new(0);
    let fault = run(&Launch::new("in_vain", 2, 1), &|| {
        if block_idx().x == 1 {
            begun.store(1, Ordering::Release);
            loop {
                lane::sleep();
            }
        }
        while begun.load(Ordering::Acquire) == 0 {
            std::thread::yield_now();
        }
        panic!("the first block's own");
    });
    let message = fault.unwrap_err().to_string();
    assert!(message.contains("the first block's own"), "{message}");
}
