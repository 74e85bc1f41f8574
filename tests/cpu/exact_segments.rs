//! Exact sums of segments in the executor, in which a single element decides the sum.

use kernels::reduce::exact::long_rows::words_of_superaccumulator;
use kernels::reduce::exact::long_segments::{ExactLongSegmentArgs, exact_long_segments, max_superaccumulators};
use kernels::reduce::segments::chunks;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use test_support::exact::{self, Data, Exact, power};
use test_support::executor;
use warpfold::Gpu;
use warpfold::exact::ExactSum;
use warpfold::ops::Sum;

use crate::exact_launches::Launched;

/// In each segment, a small element remains of larger ones, at each place in turn. A warp has one segment or several.
#[test]
fn one_small_element_is_not_lost_at_any_place() {
    fn of<T: Launched>(gpu: &Gpu, segments_per_warp: u32) {
        let vector = 16 / size_of::<T>();
        // One worker, several, all of a batch, and more. The last ones are too long for a few lanes.
        for len in [3, 5 * vector, 128 * vector, 150 * vector + 1] {
            let (mut elements, mut offsets) = (Vec::new(), vec![0]);
            for place in (0..len).step_by(if len < 100 { 1 } else { 5 }) {
                let mut segment = vec![T::default(); len];
                for (i, x) in [(place, power(-100)), (place + 1, 1.0), (place + 2, -1.0)] {
                    segment[i % len] = T::nearest(x);
                }
                elements.extend(segment);
                offsets.push(elements.len() as u64);
            }
            let sums = T::of_segments(gpu, &elements, &offsets, segments_per_warp);
            for (i, sum) in sums.into_iter().enumerate() {
                let what = format!("segment {i} of {len} {}, {segments_per_warp} in a warp", T::NAME);
                exact::same(sum, T::nearest(power(-100)), &what).unwrap();
            }
        }
    }
    for (gpu, segments_per_warp) in [(executor(), 1), (Gpu::simt(), 7)] {
        of::<f32>(&gpu, segments_per_warp);
        of::<f64>(&gpu, segments_per_warp);
    }
}

/// The shortest segments of two chunks, one after the other: each has a superaccumulator of its own.
#[test]
fn neighbouring_segments_of_two_chunks_share_nothing() {
    fn of<T: Exact>(gpu: &Gpu, source: &mut SmallRng) {
        let len = 5 * 1024 * (16 / size_of::<T>());
        let mut elements = Vec::new();
        for segment in 0..4 {
            let mut numbers = vec![T::default(); len];
            for (i, x) in numbers.iter_mut().enumerate().step_by(8) {
                let scale = power(source.random_range(-90..90));
                *x = T::nearest(if i % 16 == 0 { 1.0 } else { f64::from(segment) + 1.5 } * scale);
            }
            numbers.shuffle(source);
            elements.extend(numbers);
        }
        let offsets: Vec<u64> = (0..5).map(|segment| segment * len as u64).collect();
        let (input, offsets) = (gpu.upload(&elements).unwrap(), gpu.upload(&offsets).unwrap());
        let [sums, ..] = T::results_of_segments(gpu, input.view(), offsets.view()).unwrap();
        for (i, (segment, sum)) in elements.chunks(len).zip(sums).enumerate() {
            let right = segment.iter().copied().collect::<ExactSum<T>>().value();
            exact::same(sum, right, &format!("the sum of segment {i} of {len} {}", T::NAME)).unwrap();
        }
    }
    let (gpu, mut source) = (executor(), SmallRng::seed_from_u64(83));
    of::<f32>(&gpu, &mut source);
    of::<f64>(&gpu, &mut source);
}

/// Of the elements of a chunk, only one unit of a limb remains, which the chunk's block adds to a superaccumulator.
#[test]
fn one_unit_of_a_limb_is_not_lost() {
    const LEN: usize = 5 * 1024 * 4;
    let gpu = executor();
    let units: Vec<f32> = (0..8).map(|limb| power(32 * limb - 149) as f32).collect();
    let large = power(120) as f32;
    let mut elements = vec![0.0_f32; units.len() * LEN];
    for (segment, &unit) in elements.chunks_mut(LEN).zip(&units) {
        segment[..3].copy_from_slice(&[large, unit, -large]);
    }
    let offsets: Vec<u64> = (0..=units.len()).map(|segment| (segment * LEN) as u64).collect();
    let sums = gpu.reduce_segments(Sum, &gpu.upload(&elements).unwrap(), &gpu.upload(&offsets).unwrap()).unwrap();
    assert_eq!(gpu.download(&sums).unwrap(), units);
}

/// Each block takes several chunks, of one segment or of several, and some blocks fewer than others.
#[test]
fn a_block_takes_several_chunks() {
    const LEN: usize = 25 * 1024 * 4;
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(84));
    let numbers = exact::numbers::<f32>(Data::Wide, LEN, &mut source);
    let input = gpu.upload(&numbers).unwrap();
    // One segment of many chunks, and segments of one chunk or a few.
    for (segments, log2_min_tiles) in [(1, 0), (1, 2), (8, 0), (8, 2)] {
        let len = LEN / segments;
        let of_segment = chunks(len, 4, 1 << log2_min_tiles);
        let count = segments * of_segment;
        assert!(count > 4);
        let entries = |chunk: usize| {
            [[chunk / of_segment, chunk % of_segment], [chunk / of_segment * len, len]]
                .map(|[a, b]| [a as u64, b as u64])
        };
        let queue = gpu.upload(&(0..count).flat_map(entries).collect::<Vec<[u64; 2]>>()).unwrap();
        let right: Vec<u8> = numbers
            .chunks(len)
            .flat_map(|segment| segment.iter().copied().collect::<ExactSum<f32>>().value().to_le_bytes())
            .collect();
        for blocks in 1..=4 {
            let (mut partials, mut tickets) = (gpu.zeroed(count).unwrap(), gpu.zeroed(1 + count).unwrap());
            let words = max_superaccumulators(LEN, 4) * words_of_superaccumulator::<Sum, f32>();
            let mut superaccumulators = gpu.zeroed(words).unwrap();
            let mut status = gpu.upload(&[count as u64, 0]).unwrap();
            let mut sums = gpu.zeroed::<u8>(4 * segments).unwrap();
            // SAFETY: the queue has all chunks of the segments, with memory for their sums and tickets.
            let kernel = unsafe { exact_long_segments::handle::<Sum, f32>() };
            let arguments = ExactLongSegmentArgs {
                input: input.view(),
                log2_min_tiles,
                chunks: queue.view(),
                status: status.view_mut(),
                partials: partials.view_mut(),
                tickets: tickets.view_mut(),
                superaccumulators: superaccumulators.view_mut(),
                finish: 0,
                output: sums.view_mut(),
                term: 0,
            };
            gpu.launch(kernel, blocks, arguments).unwrap();
            let case = format!("{segments} segments, chunks of 2^{log2_min_tiles} tiles, {blocks} blocks");
            assert_eq!(gpu.download(&sums).unwrap(), right, "{case}");
            assert_eq!(gpu.download(&status).unwrap(), [0, 0], "{case}");
            assert!(gpu.download(&tickets).unwrap().iter().all(|&ticket| ticket == 0), "{case}");
            assert!(gpu.download(&superaccumulators).unwrap().iter().all(|&limb| limb == 0), "{case}");
        }
    }
}
