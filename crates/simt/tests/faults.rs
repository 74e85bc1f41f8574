//! Each fault: its message, and that the executor is usable after it.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use simt::lane::{self, Barrier, Shuffle, Vote};
use simt::{Dim3, Fault, Launch, Limits};

const FULL: u32 = u32::MAX;

fn sync() {
    lane::barrier(Barrier::Sync, false);
}

/// The fault's text, with the source line left out.
fn fault(launch: &Launch<'_>, kernel: impl Fn() + Sync) -> (Fault, String) {
    let fault = simt::run(launch, &kernel).expect_err("the kernel has a fault");
    let text = fault.to_string();
    let text = match text.split_once("faults.rs:") {
        Some((before, after)) => {
            let digits = |c: char| c.is_ascii_digit() || c == ':';
            format!("{before}faults.rs{}", after.trim_start_matches(digits))
        }
        None => text,
    };
    (fault, text)
}

#[test]
fn a_barrier_that_half_of_the_block_leaves() {
    let (fault, text) = fault(&Launch::new("leaves", (2, 2), 64), || {
        if lane::block_idx() == Dim3::new(1, 1, 0) && lane::thread_idx().x >= 32 {
            return;
        }
        lane::barrier(Barrier::Sync, false);
    });
    assert!(matches!(fault, Fault::BarrierLeft { .. }));
    assert_eq!(
        text,
        "kernel `leaves`, block (1, 1, 0): threads 0-31 wait at the barrier at crates/simt/tests/faults.rs, \
         which threads 32-63 never reach"
    );
}

#[test]
fn a_barrier_that_threads_reach_only_to_leave() {
    let (_, text) = fault(&Launch::new("leaves", 1, 96), || {
        if lane::thread_idx().x >= 32 {
            lane::leave();
        }
    });
    assert_eq!(
        text,
        "kernel `leaves`, block (0, 0, 0): threads 32-95 wait at the barrier at crates/simt/tests/faults.rs, \
         which threads 0-31 never reach"
    );
    // A later barrier is another one.
    let (fault, _) = fault(&Launch::new("twice", 1, 64), || {
        if lane::thread_idx().x >= 32 {
            return lane::leave();
        }
        sync();
        sync();
    });
    let Fault::BarrierLeft { waiting, others, .. } = fault else { panic!("{fault}") };
    assert_eq!((waiting.to_string(), others.to_string()), ("threads 0-31".into(), "threads 32-63".into()));
}

#[test]
fn waits_after_leaving() {
    fn vote() {
        lane::vote(Vote::All, FULL, 1);
    }
    let waits: [fn(); 5] = [sync, lane::leave, lane::sleep, || lane::sync_warp(FULL), vote];
    for wait in waits {
        let (_, text) = fault(&Launch::new("waits", 1, 64), || {
            if lane::thread_idx().x < 32 {
                return sync();
            }
            lane::leave();
            wait();
        });
        assert!(text.contains("thread (32, 0, 0): it waits after it has left the block"), "{text}");
    }
    // The flag ends with the thread.
    simt::run(&Launch::new("waits", 4, 64), &sync).unwrap();
}

#[test]
fn a_barrier_in_a_divergent_branch() {
    let (fault, text) = fault(&Launch::new("diverges", 1, 8), || {
        if lane::thread_idx().x % 2 == 1 {
            lane::barrier(Barrier::Sync, false);
        }
    });
    assert!(matches!(fault, Fault::BarrierLeft { .. }));
    assert_eq!(
        text,
        "kernel `diverges`, block (0, 0, 0): threads 1, 3, 5, 7 (4 in all) wait at the barrier at \
         crates/simt/tests/faults.rs, which threads 0, 2, 4, 6 (4 in all) never reach"
    );
}

#[test]
fn barriers_of_two_kinds() {
    let (fault, _) = fault(&Launch::new("kinds", 1, 64), || {
        let kind = if lane::thread_idx().x < 40 { Barrier::Count } else { Barrier::Or };
        lane::barrier(kind, true);
    });
    let Fault::BarrierMismatch { locations, .. } = &fault else { panic!("{fault}") };
    assert_eq!(locations[0], locations[1], "one line, two kinds");
    let text = fault.to_string().replace(&locations[0], "HERE");
    assert_eq!(
        text,
        "kernel `kinds`, block (0, 0, 0): threads 0-39 wait in sync_threads_count at HERE, \
         threads 40-63 in another kind of barrier at HERE"
    );
}

#[test]
fn a_shuffle_whose_mask_has_lanes_that_exited() {
    let (fault, text) = fault(&Launch::new("exited", 1, 64), || {
        if lane::thread_idx().x < 60 {
            lane::shuffle(Shuffle::Down, FULL, 0, 1, 32);
        }
    });
    assert!(matches!(fault, Fault::WarpOperation { mask: FULL, .. }));
    assert_eq!(
        text,
        "kernel `exited`, block (0, 0, 0), thread (32, 0, 0): a shuffle with mask 0xffffffff waits for \
         threads 60-63, which never reach it (at crates/simt/tests/faults.rs)"
    );
}

#[test]
fn a_vote_whose_mask_has_lanes_that_wait_at_the_barrier() {
    let (_, text) = fault(&Launch::new("elsewhere", 1, 32), || {
        if lane::lane_id() == 3 {
            sync();
        }
        if lane::lane_id() < 4 {
            lane::vote(Vote::Any, 0xF, 1);
        }
        sync();
    });
    assert_eq!(
        text,
        "kernel `elsewhere`, block (0, 0, 0), thread (0, 0, 0): a vote with mask 0x0000000f waits for \
         thread 3, which never reach it (at crates/simt/tests/faults.rs)"
    );
}

#[test]
fn lanes_that_name_each_other_in_different_masks() {
    let (_, text) = fault(&Launch::new("masks", 1, 2), || lane::sync_warp(0b11 | lane::lane_id() << 7));
    assert_eq!(
        text,
        "kernel `masks`, block (0, 0, 0), thread (0, 0, 0): sync_warp with mask 0x00000003 waits for \
         thread 1, which never reach it (at crates/simt/tests/faults.rs)"
    );
}

#[test]
fn a_lane_outside_of_its_own_mask() {
    let (fault, text) = fault(&Launch::new("outside", 1, (4, 2)), || lane::sync_warp(0b0011_1111));
    assert!(matches!(fault, Fault::Access { .. }));
    assert_eq!(
        text,
        "kernel `outside`, block (0, 0, 0), thread (2, 1, 0): lane 6 is not in the mask 0x0000003f of its own \
         operation (at crates/simt/tests/faults.rs)"
    );
}

#[test]
fn a_shuffle_of_no_possible_width() {
    for width in [0, 3, 33, 64] {
        let (_, text) = fault(&Launch::new("width", 1, 32), || {
            lane::shuffle(Shuffle::Xor, FULL, 0, 1, width);
        });
        assert!(text.contains(&format!("a shuffle of width {width}, which is not")), "{text}");
    }
}

#[test]
fn a_kernel_that_panics() {
    let launch = Launch::new("panics", 5, (2, 2, 2));
    let (fault, text) = fault(&launch, || {
        if lane::block_idx().x >= 2 && lane::thread_idx() == Dim3::new(1, 0, 1) {
            panic!("{} is too many", 1 + 1);
        }
    });
    assert!(matches!(fault, Fault::Panic { .. }));
    assert_eq!(
        text,
        "kernel `panics`, block (2, 0, 0), thread (1, 0, 1) panicked: 2 is too many (at crates/simt/tests/faults.rs)"
    );
}

#[test]
fn a_fault_that_the_kernel_reports() {
    let (_, text) = fault(&Launch::new("reports", 1, 1), || lane::fault("index 9 of an array of length 4".to_owned()));
    assert_eq!(
        text,
        "kernel `reports`, block (0, 0, 0), thread (0, 0, 0): index 9 of an array of length 4 \
         (at crates/simt/tests/faults.rs)"
    );
}

#[test]
fn a_launch_inside_of_a_launch() {
    simt::run(&Launch::new("outer", 1, 1), &|| {
        assert!(lane::is_running());
        let inner = simt::run(&Launch::new("inner", 1, 1), &|| ()).unwrap_err();
        assert_eq!(
            inner.to_string(),
            "kernel `inner` cannot be launched: a launch from inside a kernel is one, the limit is none"
        );
    })
    .unwrap();
}

#[test]
fn shapes_outside_of_the_limits() {
    let text = |grid: (u32, u32, u32), block: (u32, u32, u32)| {
        let fault = simt::run(&Launch::new("shape", grid, block), &|| unreachable!()).unwrap_err();
        assert!(matches!(fault, Fault::InvalidLaunch { .. }));
        fault.to_string()
    };
    let axes = ["x", "y", "z"];
    let sides = |at: usize, value| {
        let mut sides = [1; 3];
        sides[at] = value;
        <(u32, u32, u32)>::from(sides)
    };
    let block_limits = [1024, 1024, 64];
    let grid_limits = [i32::MAX as u32, 65535, 65535];
    for (i, axis) in axes.iter().enumerate() {
        for (limit, of) in [(grid_limits[i], "grid"), (block_limits[i], "block")] {
            for value in [0, limit + 1] {
                let (grid, block) =
                    if of == "grid" { (sides(i, value), (1, 1, 1)) } else { ((1, 1, 1), sides(i, value)) };
                assert_eq!(
                    text(grid, block),
                    format!(
                        "kernel `shape` cannot be launched: the {of}'s size along {axis} is {value}, the limit is 1 \
                         to {limit}"
                    )
                );
            }
        }
    }
    assert_eq!(
        text((1, 1, 1), (32, 33, 1)),
        "kernel `shape` cannot be launched: the block is 1056 threads, the limit is 1024"
    );
}

#[test]
fn limits_above_the_executors_do_not_count() {
    let all = Dim3::new(u32::MAX, u32::MAX, u32::MAX);
    let limits = Limits { threads_per_block: u32::MAX, block: all, grid: all, ..Limits::default() };
    let (_, text) = fault(&Launch { limits, ..Launch::new("wide", 1, 1025) }, || ());
    assert_eq!(text, "kernel `wide` cannot be launched: the block is 1025 threads, the limit is 1024");
    let (_, text) = fault(&Launch { limits, ..Launch::new("huge", (u32::MAX, u32::MAX, 2), 1) }, || ());
    assert!(text.contains("the grid is 36893488130239234050 blocks"), "{text}");
}

#[test]
fn the_reported_fault_is_that_of_the_lowest_block() {
    for _ in 0..50 {
        let (fault, _) = fault(&Launch::new("lowest", 3000, 32), || {
            let block = lane::block_idx().x;
            if block >= 777 && block.is_multiple_of(3) {
                lane::vote(Vote::Any, 1 << lane::lane_id(), 0);
                lane::fault("bad".to_owned());
            }
        });
        let Fault::Access { place, .. } = fault else { panic!("{fault}") };
        assert_eq!((place.block.x, place.thread.x), (777, 0));
    }
}

#[test]
fn a_fault_ends_a_grid_that_would_run_for_ever() {
    let (_, text) = fault(&Launch::new("ends", (i32::MAX as u32, 65535, 65535), 1), || lane::fault("now".to_owned()));
    assert!(text.contains("block (0, 0, 0)"), "{text}");
}

/// Counts the values that are alive.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(alive: &'a AtomicUsize) -> Self {
        alive.fetch_add(1, Relaxed);
        Self(alive)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[test]
fn a_kernel_that_catches_its_unwinding_is_unwound_again() {
    let alive = AtomicUsize::new(0);
    for _ in 0..3 {
        let (_, text) = fault(&Launch::new("catches", 1, 64), || {
            let _counted = Counted::new(&alive);
            if lane::thread_idx().x == 63 {
                panic!("the reason");
            }
            let _ = std::panic::catch_unwind(sync);
            let _ = std::panic::catch_unwind(sync);
            sync();
        });
        assert!(text.contains("thread (63, 0, 0) panicked: the reason"), "{text}");
        assert_eq!(alive.load(Relaxed), 0);
    }
}

#[test]
fn a_payload_may_panic_when_it_is_dropped() {
    struct Nasty;
    impl Drop for Nasty {
        fn drop(&mut self) {
            std::panic::panic_any(0);
        }
    }
    for _ in 0..3 {
        let (_, text) = fault(&Launch::new("nasty", 1, 64), || {
            sync();
            std::panic::panic_any(Nasty);
        });
        assert_eq!(
            text,
            "kernel `nasty`, block (0, 0, 0), thread (0, 0, 0) panicked: (no message) (at crates/simt/tests/faults.rs)"
        );
    }
}

#[test]
#[should_panic(expected = "no lane is running")]
fn outside_of_a_launch_there_is_no_lane() {
    assert!(!lane::is_running());
    lane::thread_idx();
}
