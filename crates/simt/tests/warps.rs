//! Shuffles, votes and reductions of a warp, against plain references.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use proptest::prelude::*;
use simt::lane::{self, Barrier, Match, Shuffle, Vote};
use simt::{Dim3, Launch};

const FULL: u32 = u32::MAX;

/// The kernel's result for each lane of a warp of `lanes` lanes.
fn by_lane<R: Copy + Default + Send>(lanes: usize, kernel: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let results = Mutex::new(vec![R::default(); lanes]);
    simt::run(&Launch::new("by_lane", 1, lanes as u32), &|| {
        let lane = lane::lane_id() as usize;
        let result = kernel(lane);
        results.lock().unwrap_or_else(PoisonError::into_inner)[lane] = result;
    })
    .unwrap();
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// PTX's definition of `shfl.sync`, with the clamp and segment mask that CUDA's intrinsics pass. Returns the source
/// lane and the predicate.
fn reference(kind: Shuffle, lane: i32, operand: u32, width: i32) -> (usize, bool) {
    let b = (operand & 31) as i32;
    let segment_mask = !(width - 1) & 31;
    let clamp = if kind == Shuffle::Up { 0 } else { 31 };
    let max_lane = (lane & segment_mask) | (clamp & !segment_mask);
    let min_lane = lane & segment_mask;
    let (j, holds) = match kind {
        Shuffle::Up => (lane - b, lane - b >= max_lane),
        Shuffle::Down => (lane + b, lane + b <= max_lane),
        Shuffle::Xor => (lane ^ b, lane ^ b <= max_lane),
        Shuffle::Idx => {
            let j = min_lane | (b & !segment_mask);
            (j, j <= max_lane)
        }
    };
    (if holds { j } else { lane } as usize, holds)
}

#[test]
fn every_shuffle_is_as_ptx_defines_it() {
    for kind in [Shuffle::Down, Shuffle::Up, Shuffle::Idx, Shuffle::Xor] {
        for width in [1, 2, 4, 8, 16, 32] {
            for operand in 0..34 {
                let got = by_lane(32, |lane| lane::shuffle(kind, FULL, 1000 + lane as u64, operand, width));
                for (lane, &(value, in_range)) in got.iter().enumerate() {
                    let (source, holds) = reference(kind, lane as i32, operand, width as i32);
                    assert_eq!((value, in_range), (1000 + source as u64, holds), "{kind:?} {operand} {width}: {lane}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Lanes have different operands and widths, and only some lanes of a partial warp take part.
    #[test]
    fn shuffles_of_some_lanes_read_lanes_of_the_mask(
        kind in prop::sample::select(vec![Shuffle::Down, Shuffle::Up, Shuffle::Idx, Shuffle::Xor]),
        lanes in 1..=32_usize,
        mask in any::<u32>(),
        values in prop::array::uniform32(any::<u64>()),
        operands in prop::array::uniform32(0..32_u32),
        widths in prop::array::uniform32(prop::sample::select(vec![1_u32, 2, 4, 8, 16, 32])),
    ) {
        let got = by_lane(lanes, |lane| {
            (mask >> lane & 1 == 1).then(|| lane::shuffle(kind, mask, values[lane], operands[lane], widths[lane]))
        });
        for (lane, got) in got.into_iter().enumerate() {
            let expected = (mask >> lane & 1 == 1).then(|| {
                let (source, holds) = reference(kind, lane as i32, operands[lane], widths[lane] as i32);
                let gives = source < lanes && mask >> source & 1 == 1;
                (values[if gives { source } else { lane }], holds)
            });
            prop_assert_eq!(got, expected, "lane {}", lane);
        }
    }

    #[test]
    fn votes_combine_the_values_of_the_mask(
        lanes in 1..=32_usize,
        mask in any::<u32>(),
        values in prop::array::uniform32(prop_oneof![Just(0), Just(u32::MAX), any::<u32>()]),
    ) {
        let voters: Vec<usize> = (0..lanes).filter(|lane| mask >> lane & 1 == 1).collect();
        let of = || voters.iter().map(|&lane| values[lane]);
        let mut expected = vec![
            (Vote::All, u32::from(of().all(|value| value != 0))),
            (Vote::Any, u32::from(of().any(|value| value != 0))),
            (Vote::Ballot, voters.iter().map(|&lane| u32::from(values[lane] != 0) << lane).sum()),
            (Vote::ReduceAdd, of().fold(0, u32::wrapping_add)),
            (Vote::ReduceAnd, of().fold(FULL, |a, b| a & b)),
            (Vote::ReduceOr, of().fold(0, |a, b| a | b)),
            (Vote::ReduceXor, of().fold(0, |a, b| a ^ b)),
        ];
        if !voters.is_empty() {
            expected.extend([
                (Vote::ReduceMin, of().min().unwrap()),
                (Vote::ReduceMax, of().max().unwrap()),
                (Vote::ReduceMinSigned, of().map(|value| value as i32).min().unwrap() as u32),
                (Vote::ReduceMaxSigned, of().map(|value| value as i32).max().unwrap() as u32),
            ]);
        }
        by_lane(lanes, |lane| {
            if mask >> lane & 1 == 1 {
                for &(kind, expected) in &expected {
                    assert_eq!(lane::vote(kind, mask, values[lane]), expected, "{kind:?}");
                }
            }
        });
    }
}

#[test]
fn the_last_warp_may_be_partial() {
    let sums: Vec<AtomicU32> = (0..4).map(|_| AtomicU32::new(0)).collect();
    simt::run(&Launch::new("partial", 1, 100), &|| {
        let thread = lane::thread_idx().x;
        let sum = lane::vote(Vote::ReduceAdd, FULL, 1);
        assert_eq!(lane::vote(Vote::Ballot, FULL, 1), if thread < 96 { FULL } else { 0xF });
        // A read past the warp's end returns the lane's own value. The predicate depends on the segment alone.
        let (below, in_range) = lane::shuffle(Shuffle::Down, FULL, u64::from(thread), 2, 32);
        if thread >= 98 {
            assert_eq!((below, in_range), (u64::from(thread), true));
        }
        lane::sync_warp(FULL);
        sums[thread as usize / 32].store(sum, Relaxed);
    })
    .unwrap();
    assert_eq!(sums.iter().map(|sum| sum.load(Relaxed)).collect::<Vec<_>>(), [32, 32, 32, 4]);
}

#[test]
fn two_masks_are_in_flight_in_one_warp() {
    let (low, high) = (0x0000_FFFF, 0xFFFF_0000);
    by_lane(32, |lane| {
        if lane < 16 {
            for round in 0..7 {
                let (value, _) = lane::shuffle(Shuffle::Xor, low, (lane + round) as u64, 8, 16);
                assert_eq!(value, ((lane ^ 8) + round) as u64);
            }
        } else {
            for round in 0..3 {
                assert_eq!(lane::vote(Vote::ReduceAdd, high, round), 16 * round);
                lane::sync_warp(high);
            }
        }
        lane::sync_warp(FULL);
        assert_eq!(lane::vote(Vote::Ballot, FULL, u32::from(lane < 16)), low);
    });
}

#[test]
fn masks_may_interleave() {
    let (odd, even) = (0xAAAA_AAAA, 0x5555_5555);
    by_lane(32, |lane| {
        let mask = if lane % 2 == 1 { odd } else { even };
        assert_eq!(lane::vote(Vote::Ballot, mask, 1), mask);
        let (value, _) = lane::shuffle(Shuffle::Idx, mask, lane as u64, (lane % 2) as u32, 32);
        assert_eq!(value, (lane % 2) as u64);
    });
}

#[test]
fn the_active_mask_has_the_lanes_that_arrive_together() {
    by_lane(32, |lane| {
        assert_eq!(lane::active_mask(), FULL);
        if lane < 5 {
            assert_eq!(lane::active_mask(), 0b11111);
        }
        lane::sync_warp(FULL);
    });
    by_lane(7, |_| assert_eq!(lane::active_mask(), 0x7F));
}

#[test]
fn warps_do_not_wait_for_each_other() {
    simt::run(&Launch::new("apart", 1, 128), &|| {
        let warp = lane::thread_idx().x / 32;
        for _ in 0..warp * 3 {
            lane::sync_warp(FULL);
        }
        lane::barrier(Barrier::Sync, false);
        assert_eq!(lane::vote(Vote::ReduceMax, FULL, warp), warp);
    })
    .unwrap();
}

#[test]
fn blocks_of_three_axes_form_warps_in_linear_order() {
    for block in
        [Dim3::new(8, 8, 4), Dim3::new(5, 3, 7), Dim3::new(1, 1, 64), Dim3::new(33, 2, 1), Dim3::new(2, 512, 1)]
    {
        simt::run(&Launch::new("axes", 2, (block.x, block.y, block.z)), &|| {
            let at = lane::thread_idx();
            let linear = at.x + block.x * (at.y + block.y * at.z);
            assert!(at.x < block.x && at.y < block.y && at.z < block.z);
            assert_eq!(lane::block_dim(), block);
            assert_eq!(lane::lane_id(), linear % 32);
            let warp_start = lane::shuffle(Shuffle::Idx, FULL, u64::from(linear), 0, 32).0;
            assert_eq!(warp_start, u64::from(linear / 32 * 32));
            assert_eq!(lane::barrier(Barrier::Count, true), block.count() as u32);
        })
        .unwrap();
    }
}

#[test]
fn matches_are_among_the_lanes_of_their_mask() {
    let value = |lane: usize| (lane as u64 % 3) << 33;
    // Full warps, a partial warp, and the two halves of a warp at once.
    for (lanes, halves) in [(32, false), (19, false), (32, true)] {
        let mask = |lane: usize| match (halves, lane < 16) {
            (false, _) => FULL,
            (true, true) => 0xFFFF,
            (true, false) => 0xFFFF_0000,
        };
        let any = by_lane(lanes, |lane| lane::matching(Match::Any, mask(lane), value(lane)));
        let all = by_lane(lanes, |lane| lane::matching(Match::All, mask(lane), value(lane)));
        let equal = by_lane(lanes, |lane| lane::matching(Match::All, mask(lane), mask(lane).into()));
        for lane in 0..lanes {
            let members = (0..lanes).filter(|&other| mask(lane) >> other & 1 == 1);
            let bits = |lanes: &mut dyn Iterator<Item = usize>| lanes.fold(0_u32, |bits, lane| bits | 1 << lane);
            let same = bits(&mut members.clone().filter(|other| other % 3 == lane % 3));
            assert_eq!((any[lane], all[lane], equal[lane]), (same, 0, bits(&mut members.clone())), "lane {lane}");
        }
    }
}
