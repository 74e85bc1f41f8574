//! The block's barrier.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use simt::Launch;
use simt::lane::{self, Barrier};

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
