//! Watched launches: counters, findings, and orders of lanes.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use simt::lane::{self, Access, Barrier, Space};
use simt::{Argument, Check, Fault, Findings, Launch, Schedule, Watch};

const ADDRESS: usize = 1 << 20;

fn global(access: Access, index: usize) {
    lane::access(Space::Global, access, ADDRESS + 4 * index, 4);
}

fn thread() -> usize {
    lane::thread_idx().x as usize
}

/// The barrier, on one line for all threads.
#[track_caller]
fn sync_or_leave(stays: bool) {
    if stays {
        lane::barrier(Barrier::Sync, false);
    } else {
        lane::leave();
    }
}

fn findings(launch: &Launch<'_>, kernel: impl Fn() + Sync) -> Findings {
    match simt::run(launch, &kernel) {
        Ok(()) => Findings::default(),
        Err(Fault::Mistakes(findings)) => findings,
        Err(other) => panic!("{other}"),
    }
}

fn checked(grid: u32, block: u32) -> Launch<'static> {
    const INPUT: Argument<'static> =
        Argument { name: "numbers", address: ADDRESS, bytes: 4096, element: 4, is_written: true };
    Launch { watch: Watch::CHECKS, arguments: &[INPUT], ..Launch::new("checked", grid, block) }
}

/// Profiles and findings name the line of the access. In a helper function that is a line of the helper, or with
/// `#[track_caller]` the line where the kernel calls it.
#[test]
fn track_caller_names_the_line_of_the_kernel() {
    #[track_caller]
    fn tracked(index: usize) {
        lane::access(Space::Global, Access::Store, ADDRESS + 4 * index, 4);
    }
    let untracked = |index| tracked(index);
    let helper = line!() - 1;
    let by_line = || tracked(thread() / 2);
    let kernel = line!() - 1;
    let by_helper = || untracked(thread() / 2);

    let lines = |thread: &(dyn Fn() + Sync)| -> Vec<u32> {
        let profile = simt::profile(&Launch::new("lines", 1, 32), thread).unwrap();
        profile.kernels[0].lines.iter().map(|line| line.line).collect()
    };
    assert_eq!(lines(&by_line), [kernel]);
    assert_eq!(lines(&by_helper), [helper]);
    let race = |kernel: &(dyn Fn() + Sync)| findings(&checked(1, 2), kernel).to_string();
    for (findings, line) in [(race(&by_line), kernel), (race(&by_helper), helper)] {
        assert!(findings.contains(&format!("watch.rs:{line}:")), "{findings}");
    }
}

#[test]
fn branches_are_requests_of_their_lanes() {
    let profile = simt::profile(&Launch::new("branches", 2, 64), &|| {
        if thread().is_multiple_of(4) {
            global(Access::Load, thread());
        } else {
            global(Access::Store, thread());
        }
    })
    .unwrap();
    let total = profile.total();
    // Two blocks of two warps.
    assert_eq!((total.global_loads.requests, total.global_loads.lanes, total.global_loads.divergent), (4, 32, 4));
    assert_eq!((total.global_stores.requests, total.global_stores.lanes), (4, 96));
    assert_eq!(total.lanes_active(), Some(16.0));
}

#[test]
fn lanes_that_loop_longer_are_alone_at_the_end() {
    let profile = simt::profile(&Launch::new("loops", 1, 32), &|| {
        for round in 0..=thread() {
            global(Access::Load, 32 * round + thread());
        }
    })
    .unwrap();
    let loads = profile.total().global_loads;
    assert_eq!((loads.requests, loads.lanes, loads.divergent), (32, 32 * 33 / 2, 31));
}

#[test]
fn a_single_lane_may_run_for_long_in_little_memory() {
    let profile = simt::profile(&Launch::new("serial", 1, 1), &|| {
        (0..10_000).for_each(|i| global(Access::Load, i));
    })
    .unwrap();
    assert_eq!((profile.total().global_loads.requests, profile.load_efficiency()), (10_000, 12.5));
}

#[test]
fn the_only_lane_of_a_warp_makes_its_own_requests() {
    let profile = simt::profile(&Launch::new("one more", 2, 33), &|| {
        let shared = lane::shared_array(1, 4 * 33, 4) as usize;
        global(Access::Load, thread());
        lane::access(Space::Shared, Access::Store, shared + 4 * thread(), 4);
        lane::barrier(Barrier::Sync, false);
        global(Access::Store, 2 * thread());
    })
    .unwrap();
    let total = profile.total();
    let (loads, stores, shared) = (total.global_loads, total.global_stores, total.shared_stores);
    assert_eq!((loads.requests, loads.lanes, loads.divergent, loads.sectors, loads.bytes), (4, 66, 0, 10, 264));
    assert_eq!((stores.requests, stores.lanes, stores.divergent, stores.sectors, stores.bytes), (4, 66, 0, 18, 264));
    assert_eq!((shared.requests, shared.lanes, shared.least_passes, shared.conflicts), (4, 66, 4, 0));
    assert_eq!(loads.lane_distance.map(|lane_distance| (lane_distance.least, lane_distance.most)), Some((4, 4)));
}

#[test]
fn blocks_that_let_the_next_grid_start_are_counted_once() {
    let profile = simt::profile(&Launch::new("some", 5, 96), &|| {
        if lane::block_idx().x != 1 {
            lane::launch_dependents();
            lane::launch_dependents();
        }
    })
    .unwrap();
    assert_eq!(profile.total().launch_dependents, 4);
    let lines = &profile.kernels[0].lines;
    assert!(lines.len() == 1 && lines[0].file.ends_with("watch.rs"), "{lines:?}");
}

#[test]
fn collectives_are_counted_by_warp_and_by_block() {
    let profile = simt::profile(&Launch::new("meetings", 3, 96), &|| {
        lane::barrier(Barrier::Sync, false);
        lane::sync_warp(u32::MAX);
        lane::vote(lane::Vote::All, u32::MAX, 1);
        lane::shuffle(lane::Shuffle::Xor, u32::MAX, 0, 1, 32);
        lane::shuffle(lane::Shuffle::Xor, u32::MAX, 0, 2, 32);
    })
    .unwrap();
    let total = profile.total();
    assert_eq!((total.barriers, total.block_barriers, total.warp_barriers), (9, 3, 9));
    assert_eq!((total.votes, total.shuffles), (9, 18));
    assert_eq!(profile.barriers_per_block(), 1.0);
    assert_eq!(profile.kernels[0].lines.len(), 5);
}

#[test]
fn a_race_names_both_accesses() {
    let found = findings(&checked(1, 64), || {
        if thread() == 40 {
            global(Access::Store, 7);
        } else if thread() == 3 {
            global(Access::Load, 7);
        }
    });
    assert_eq!(found.all.len(), 1, "{found}");
    let race = &found.all[0];
    assert_eq!((race.check, race.array.as_deref(), race.index), (Check::GlobalRace, Some("`numbers`"), Some(7)));
    let first = race.first.as_ref().unwrap();
    assert_eq!((first.verb, first.thread.x, race.second.verb, race.second.thread.x), ("reads", 3, "writes", 40));
    let text = found.to_string();
    for part in ["`checked`", "block (0, 0, 0), thread (3, 0, 0)", "thread (40, 0, 0)", "element 7", "watch.rs"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
}

#[test]
fn a_barrier_orders_accesses_and_a_line_is_reported_once() {
    assert!(
        findings(&checked(1, 64), || {
            global(Access::Store, thread());
            lane::barrier(Barrier::Sync, false);
            global(Access::Load, 63 - thread());
        })
        .all
        .is_empty()
    );
    let found = findings(&checked(1, 64), || {
        global(Access::Store, thread());
        global(Access::Load, 63 - thread());
    });
    assert!(found.all.iter().map(|finding| finding.times).sum::<u64>() >= 32, "{found}");
    assert!(found.all.len() <= 2, "{found}");
}

#[test]
fn blocks_are_ordered_by_release_and_acquire_only() {
    let run = |releases: bool, acquires: bool| {
        let ticket = AtomicU32::new(0);
        findings(&checked(4, 1), || {
            global(Access::Store, lane::block_idx().x as usize);
            if releases {
                lane::fence(false, false);
            }
            let drawn = lane::atomic(Access::Atomic, 64, 4, false, || ticket.fetch_add(1, Relaxed), |_| true);
            if acquires {
                lane::fence(false, false);
            }
            if drawn == 3 {
                (0..4).for_each(|block| global(Access::Load, block));
            }
        })
    };
    assert_eq!(run(true, true).all, []);
    for (releases, acquires) in [(false, false), (true, false), (false, true)] {
        assert!(run(releases, acquires).has(Check::GlobalRace), "{releases} {acquires}");
    }
}

#[test]
fn misaligned_accesses_end_the_launch() {
    let fault = simt::run(&checked(1, 1), &|| lane::access(Space::Global, Access::Load, ADDRESS + 4, 16)).unwrap_err();
    assert!(fault.to_string().contains("not a multiple of 16"), "{fault}");
}

#[test]
fn a_seed_is_an_order_and_always_the_same() {
    let order = |schedule| {
        let order = Mutex::new(Vec::new());
        let launch = Launch { schedule, ..Launch::new("order", 1, 96) };
        simt::run(&launch, &|| {
            order.lock().unwrap().push(thread());
            lane::barrier(Barrier::Sync, false);
            order.lock().unwrap().push(thread());
        })
        .unwrap();
        order.into_inner().unwrap()
    };
    let in_order = order(Schedule::InOrder);
    assert!(in_order[..96].is_sorted());
    let seven = order(Schedule::Seed(7));
    assert_eq!(seven, order(Schedule::Seed(7)));
    assert!(seven != in_order && seven != order(Schedule::Seed(8)));
    let mut all = seven[..96].to_vec();
    all.sort_unstable();
    assert_eq!(all, in_order[..96], "no lane passes the barrier before all have arrived");
}

#[test]
fn lanes_yield_before_accesses() {
    // Without a barrier, some order separates the two accesses of a lane.
    let torn = (0..20).any(|seed| {
        let last = AtomicU32::new(0);
        let was_torn = AtomicU32::new(0);
        let launch = Launch { schedule: Schedule::Seed(seed), ..Launch::new("torn", 1, 32) };
        simt::run(&launch, &|| {
            global(Access::Store, 0);
            last.store(thread() as u32, Relaxed);
            global(Access::Load, 0);
            was_torn.fetch_or(u32::from(last.load(Relaxed) != thread() as u32), Relaxed);
        })
        .unwrap();
        was_torn.into_inner() == 1
    });
    assert!(torn);
}

#[test]
fn findings_before_a_fault_are_reported_with_it() {
    let race_then = |thread_with_fault: usize| {
        let fault = simt::run(&checked(4, 64), &|| {
            global(Access::Store, 0);
            lane::barrier(Barrier::Sync, false);
            if lane::block_idx().x == 1 && thread() == thread_with_fault {
                lane::fault("it was told to".to_owned());
            }
        });
        fault.unwrap_err()
    };
    let fault = race_then(7);
    let Fault::AfterMistakes { fault: ended_by, findings } = &fault else { panic!("{fault}") };
    assert!(matches!(&**ended_by, Fault::Access { place, .. } if place.thread.x == 7 && place.block.x == 1), "{fault}");
    assert_eq!(fault.findings(), Some(findings));
    assert!(findings.all.iter().all(|finding| finding.second.block.x <= 1), "nothing is reported of later blocks");
    let text = fault.to_string();
    for part in ["it was told to", "before it, the checks found:", "race in global memory", "element 0", "watch.rs"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    assert!(matches!(race_then(64), Fault::Mistakes(_)), "no thread has that index");
}

#[test]
fn wrong_masks_are_reported_by_where_the_missing_lanes_are() {
    let hints = |kernel: &(dyn Fn() + Sync)| {
        let fault = simt::run(&checked(1, 32), kernel).unwrap_err();
        let findings = fault.findings().unwrap_or_else(|| panic!("no finding, but {fault}"));
        assert!(findings.all.iter().all(|finding| finding.check == Check::WrongMask), "{findings}");
        assert!(fault.to_string().contains("never reach"), "{fault}");
        findings.all.iter().map(|finding| (finding.hint, finding.first.is_some())).collect::<Vec<_>>()
    };
    let have_left = ("its mask names lanes that have left the kernel", false);
    let are_elsewhere = ("its mask names lanes that wait elsewhere", true);
    let have_another = ("its mask names lanes that wait with another mask", true);
    assert_eq!(
        hints(&|| {
            if thread() < 20 {
                lane::sync_warp(u32::MAX);
            }
        }),
        [have_left]
    );
    assert_eq!(
        hints(&|| {
            if thread() < 16 {
                lane::vote(lane::Vote::All, u32::MAX, 1);
            } else {
                lane::sync_warp(u32::MAX);
            }
        }),
        [are_elsewhere]
    );
    assert_eq!(hints(&|| lane::sync_warp(if thread() < 16 { u32::MAX } else { 0xFFFF_8000 })), [have_another]);
    let both = hints(&|| match thread() {
        0..8 => lane::sync_warp(u32::MAX),
        8..16 => {
            lane::barrier(Barrier::Sync, false);
        }
        _ => {}
    });
    assert!(both.len() == 2 && both.contains(&have_left) && both.contains(&are_elsewhere), "{both:?}");
}

#[test]
fn accesses_after_leaving_are_faults() {
    let shared = |access, index| {
        let array = lane::shared_array(1, 256, 4).addr();
        lane::access(Space::Shared, access, array + 4 * index, 4);
    };
    let access_in =
        |space, access, index| if space == Space::Global { global(access, index) } else { shared(access, index) };
    for space in [Space::Global, Space::Shared] {
        // The barrier orders what threads wrote before they left.
        let ordered = findings(&checked(1, 64), || {
            access_in(space, Access::Store, thread());
            sync_or_leave(thread() < 32);
            if thread() < 32 {
                access_in(space, Access::Load, thread() + 32);
            }
        });
        assert_eq!(ordered, Findings::default(), "{space:?}");
        for kind in [Access::Load, Access::Store] {
            let fault = simt::run(&checked(1, 64), &|| {
                access_in(space, Access::Store, thread());
                sync_or_leave(thread() < 32);
                if thread() >= 32 {
                    access_in(space, kind, thread());
                }
            });
            let text = fault.expect_err("an access").to_string();
            assert!(text.contains("it accesses memory after it has left the block"), "{space:?}: {text}");
        }
    }
}
