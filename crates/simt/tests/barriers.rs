//! The block's barrier.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use simt::lane::{self, Barrier};
use simt::{Launch, Schedule};

fn sync() {
    lane::barrier(Barrier::Sync, false);
}

fn zeros(len: usize) -> Vec<AtomicU32> {
    (0..len).map(|_| AtomicU32::new(0)).collect()
}

#[test]
fn no_thread_passes_before_all_have_come() {
    for threads in [1, 31, 32, 33, 256, 1000, 1024] {
        let arrived = AtomicU32::new(0);
        simt::run(&Launch::new("meet", 1, threads), &|| {
            for round in 1..=4 {
                arrived.fetch_add(1, Relaxed);
                sync();
                assert_eq!(arrived.load(Relaxed), round * threads);
                sync();
            }
        })
        .unwrap();
    }
}

#[test]
fn predicates_are_counted_and_combined() {
    for threads in [1, 32, 77, 512] {
        simt::run(&Launch::new("predicates", 3, threads), &|| {
            let thread = lane::thread_idx().x;
            let odd = thread % 2 == 1;
            assert_eq!(lane::barrier(Barrier::Count, odd), threads / 2);
            assert_eq!(lane::barrier(Barrier::And, thread < threads), 1);
            assert_eq!(lane::barrier(Barrier::And, thread != threads - 1), 0);
            assert_eq!(lane::barrier(Barrier::Or, thread == threads - 1), 1);
            assert_eq!(lane::barrier(Barrier::Or, false), 0);
            assert_eq!(lane::barrier(Barrier::Count, true), threads);
            assert_eq!(lane::barrier(Barrier::Sync, true), 0);
        })
        .unwrap();
    }
}

#[test]
fn a_branch_that_the_whole_block_takes_may_hold_a_barrier() {
    let seen = zeros(8);
    simt::run(&Launch::new("uniform", 8, 64), &|| {
        let block = lane::block_idx().x;
        if block.is_multiple_of(2) {
            seen[block as usize].fetch_add(1, Relaxed);
            sync();
            assert_eq!(seen[block as usize].load(Relaxed), 64);
        }
    })
    .unwrap();
    assert_eq!(seen.iter().map(|count| count.load(Relaxed)).sum::<u32>(), 4 * 64);
}

#[test]
fn lanes_may_wait_in_destructors_that_run_at_their_end() {
    struct MeetsAtItsEnd;
    impl Drop for MeetsAtItsEnd {
        fn drop(&mut self) {
            sync();
        }
    }
    let arrived = AtomicUsize::new(0);
    simt::run(&Launch::new("destructor", 1, 96), &|| {
        let _ends_last = arrived.fetch_add(1, Relaxed);
        let _meets = MeetsAtItsEnd;
    })
    .unwrap();
    assert_eq!(arrived.into_inner(), 96);
}

#[test]
fn threads_that_leave_have_arrived() {
    for schedule in [Schedule::InOrder, Schedule::Seed(1), Schedule::Seed(2)] {
        for (threads, stay) in [(32, 1), (33, 32), (256, 32), (1000, 40), (64, 64), (64, 0)] {
            let (arrived, went_on) = (AtomicU32::new(0), AtomicU32::new(0));
            simt::run(&Launch { schedule, ..Launch::new("leave", 1, threads) }, &|| {
                arrived.fetch_add(1, Relaxed);
                if lane::thread_idx().x >= stay {
                    return lane::leave();
                }
                sync();
                assert_eq!(arrived.load(Relaxed), threads);
                went_on.fetch_add(1, Relaxed);
            })
            .unwrap();
            assert_eq!(went_on.into_inner(), stay, "{threads} threads");
        }
    }
}

#[test]
fn threads_that_leave_free_their_stacks() {
    let stacks = Mutex::new(BTreeSet::new());
    simt::run(&Launch::new("stacks", 1, 1024), &|| {
        let here = 0_u8;
        stacks.lock().unwrap().insert(std::ptr::from_ref(&here).addr());
        if lane::thread_idx().x < 32 { sync() } else { lane::leave() }
    })
    .unwrap();
    assert_eq!(stacks.into_inner().unwrap().len(), 33, "one more than the threads that stay");
}
