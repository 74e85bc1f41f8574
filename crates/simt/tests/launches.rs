//! Grids, and the threads that may launch them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

use rayon::prelude::*;
use simt::lane::{self, Access, Barrier, Space};
use simt::{Dim3, Launch};

fn sync() {
    lane::barrier(Barrier::Sync, false);
}

#[test]
fn each_block_of_a_grid_is_visited_once() {
    for (x, y, z) in [(1, 1, 1), (7, 1, 1), (3, 5, 2), (1, 65535, 1), (1, 2, 300), (64, 9, 11)] {
        let visits: Vec<AtomicU8> = (0..x * y * z).map(|_| AtomicU8::new(0)).collect();
        simt::run(&Launch::new("visit", (x, y, z), 1), &|| {
            let at = lane::block_idx();
            assert!(at.x < x && at.y < y && at.z < z);
            assert_eq!(lane::grid_dim(), Dim3::new(x, y, z));
            visits[(at.x + x * (at.y + y * at.z)) as usize].fetch_add(1, Relaxed);
        })
        .unwrap();
        assert!(visits.into_iter().all(|count| count.into_inner() == 1));
    }
}

#[test]
fn a_million_blocks_of_one_thread_finish() {
    let visits = AtomicU64::new(0);
    simt::run(&Launch::new("many", 1 << 20, 1), &|| {
        visits.fetch_add(u64::from(lane::block_idx().x), Relaxed);
    })
    .unwrap();
    assert_eq!(visits.into_inner(), (1 << 19) * ((1 << 20) - 1));
}

#[test]
fn shapes_may_change_from_launch_to_launch() {
    for round in 0..3 {
        for (x, y, z) in [(64, 4, 1), (4, 64, 1), (1, 4, 64), (2, 3, 1), (4, 64, 1), (1024, 1, 1)] {
            let visits: Vec<AtomicU8> = (0..x * y * z).map(|_| AtomicU8::new(0)).collect();
            simt::run(&Launch::new("shapes", round + 1, (x, y, z)), &|| {
                let at = lane::thread_idx();
                sync();
                visits[(at.x + x * (at.y + y * at.z)) as usize].fetch_add(1, Relaxed);
            })
            .unwrap();
            assert!(visits.into_iter().all(|count| u32::from(count.into_inner()) == round + 1));
        }
    }
}

#[test]
fn a_block_may_wait_for_the_one_before_it() {
    let blocks = 5000;
    let done = AtomicU32::new(0);
    simt::run(&Launch::new("chain", blocks, 32), &|| {
        sync();
        if lane::thread_idx().x == 0 {
            while done.load(Relaxed) != lane::block_idx().x {
                std::thread::yield_now();
            }
            done.store(lane::block_idx().x + 1, Relaxed);
        }
    })
    .unwrap();
    assert_eq!(done.into_inner(), blocks);
}

#[test]
fn threads_of_rayon_may_launch() {
    let ok = (1..=64_u32).into_par_iter().all(|blocks| {
        let visits = AtomicU32::new(0);
        let launched = simt::run(&Launch::new("from_rayon", blocks, 40), &|| {
            sync();
            visits.fetch_add(1, Relaxed);
        });
        launched.is_ok() && visits.into_inner() == 40 * blocks
    });
    assert!(ok);
}

#[test]
fn kernels_may_use_rayon() {
    let total = AtomicU64::new(0);
    simt::run(&Launch::new("uses_rayon", 40, 40), &|| {
        sync();
        let (a, b) = rayon::join(|| (0..1000_u64).into_par_iter().sum::<u64>(), || u64::from(lane::is_running()));
        sync();
        total.fetch_add(a + b, Relaxed);
    })
    .unwrap();
    assert_eq!(total.into_inner(), 40 * 40 * 499_500);
}

#[test]
fn a_panic_of_the_kernels_rayon_job_is_the_kernels() {
    let fault = simt::run(&Launch::new("passes_on", 1, 1), &|| {
        rayon::join(|| std::panic::resume_unwind(Box::new("from afar")), || ());
    })
    .unwrap_err();
    assert_eq!(
        fault.to_string(),
        "kernel `passes_on`, block (0, 0, 0), thread (0, 0, 0) panicked: from afar (at an unknown place)"
    );
}

#[test]
fn several_threads_may_launch_at_once() {
    std::thread::scope(|scope| {
        for caller in 0..8_u32 {
            scope.spawn(move || {
                for round in 0..50 {
                    let name = format!("caller_{caller}");
                    let threads = 32 + caller * 8;
                    let launched = simt::run(&Launch::new(&name, 3, threads), &|| {
                        sync();
                        if lane::thread_idx().x == caller && round % 2 == 1 {
                            lane::fault("odd".to_owned());
                        }
                        assert_eq!(lane::barrier(Barrier::Count, true), threads);
                    });
                    match launched {
                        Ok(()) => assert_eq!(round % 2, 0),
                        Err(fault) => {
                            assert!(fault.to_string().starts_with(&format!("kernel `{name}`, block (0, 0, 0)")))
                        }
                    }
                }
            });
        }
    });
}

#[test]
fn an_unwinding_thread_may_launch() {
    struct Launches<'a>(&'a Mutex<Vec<u32>>);
    impl Drop for Launches<'_> {
        fn drop(&mut self) {
            simt::run(&Launch::new("last_wish", 1, 64), &|| {
                let count = lane::barrier(Barrier::Count, true);
                if lane::thread_idx().x == 0 {
                    self.0.lock().unwrap().push(count);
                }
            })
            .unwrap();
        }
    }
    let counts = Mutex::new(Vec::new());
    let end = std::panic::catch_unwind(|| {
        let _launches = Launches(&counts);
        std::panic::resume_unwind(Box::new(()));
    });
    assert!(end.is_err());
    assert_eq!(counts.into_inner().unwrap(), [64]);
}

#[test]
fn a_run_is_repeatable() {
    let order = || {
        let order = Mutex::new(Vec::new());
        simt::run(&Launch::new("order", 1, 96), &|| {
            for _ in 0..3 {
                order.lock().unwrap().push(lane::thread_idx().x);
                if lane::thread_idx().x.is_multiple_of(2) {
                    lane::sync_warp(0x5555_5555);
                }
                sync();
            }
        })
        .unwrap();
        order.into_inner().unwrap()
    };
    let first = order();
    assert_eq!(first.len(), 3 * 96);
    assert_eq!(&first[..3], [0, 1, 2]);
    assert_eq!(order(), first);
}

#[test]
fn a_lane_knows_which_variables_are_its_own() {
    let shared = 5_u8;
    let launch = Launch::new("own", 1, 64);
    simt::run(&launch, &|| {
        let own = [1_u64; 4];
        let boxed = Box::new(2_u8);
        assert!(lane::is_on_own_stack(own.as_ptr().addr()) && lane::is_on_own_stack((&raw const own[3]).addr()));
        assert!(!lane::is_on_own_stack((&raw const *boxed).addr()), "the heap belongs to all");
        assert!(!lane::is_on_own_stack((&raw const shared).addr()), "and so does what the launch has borrowed");
        lane::sync_warp(u32::MAX);
        // After another lane has run on another fibre.
        assert!(lane::is_on_own_stack(own.as_ptr().addr()));
    })
    .unwrap();
    assert!(!lane::is_on_own_stack((&raw const shared).addr()), "outside a launch nothing is");
}

#[test]
fn a_lane_counts_its_waits() {
    let launch = Launch::new("waits", 1, 64);
    simt::run(&launch, &|| {
        let before = lane::waits();
        lane::access(Space::Global, Access::Load, 64, 4);
        assert_eq!(lane::waits(), before);
        lane::barrier(Barrier::Sync, false);
        lane::vote(lane::Vote::Any, u32::MAX, 1);
        assert_eq!(lane::waits(), before.wrapping_add(2));
    })
    .unwrap();
    assert_eq!(lane::waits(), 0, "outside a launch");
}
