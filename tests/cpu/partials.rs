//! Reductions whose blocks publish partial results, with numbers of partials around each change of path.

use kernels::reduce::segments::MAX_WARP_SEGMENT_VECTORS;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use test_support::by_shape::ByShape;
use test_support::executor;
use test_support::shape::Shape;
use warpfold::Gpu;
use warpfold::ops::{ArgMax, ArgMin, MinMax, Sum};

fn bytes(len: usize) -> Vec<u8> {
    let mut source = SmallRng::seed_from_u64(len as u64);
    (0..len).map(|_| source.random()).collect()
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().copied().map(u64::from).sum()
}

/// Blocks have two or three tiles each. One warp folds the partials of up to 32 blocks, two warps those of 33.
#[test]
fn each_number_of_partials_is_folded_once() {
    let gpu = executor();
    // A tile of the smallest block of a whole input has 4096 bytes, a tile of the largest block four times as many.
    let numbers = bytes(600 * 4096 + 5);
    let input = gpu.upload(&numbers).unwrap();
    for tiles in (1..150).chain((150..600).step_by(7)) {
        let len = tiles * 4096 + 5;
        let found = gpu.sum(input.view().slice(0, len).unwrap()).unwrap();
        assert_eq!(found, sum(&numbers[..len]), "{len} bytes");
    }
}

/// Lengths around the maximum that a warp folds; longer segments are folded by blocks.
#[test]
fn segments_around_the_limit_of_a_warp_are_folded_once() {
    let gpu = executor();
    let most = MAX_WARP_SEGMENT_VECTORS * 16;
    let lengths = [most - 1, most, most + 1, 1, most, 0, most + 1, most - 16, most + 16];
    let offsets: Vec<u64> = std::iter::once(0)
        .chain(lengths.iter().scan(0, |end, &len| {
            *end += len as u64;
            Some(*end)
        }))
        .collect();
    let numbers = bytes(lengths.iter().sum());
    let sums = gpu
        .reduce_segments(Sum, &gpu.upload(&numbers).unwrap(), &gpu.upload(&offsets).unwrap())
        .and_then(|sums| gpu.download(&sums))
        .unwrap();
    let expected: Vec<u64> = offsets.windows(2).map(|ends| sum(&numbers[ends[0] as usize..ends[1] as usize])).collect();
    assert_eq!(sums, expected);
}

/// The shortest input whose only segment needs several blocks.
#[test]
fn one_segment_above_the_limit_of_a_warp() {
    let gpu = executor();
    let numbers = bytes(MAX_WARP_SEGMENT_VECTORS * 16 + 1);
    let offsets = gpu.upload(&[0, numbers.len() as u64]).unwrap();
    let sums = gpu.reduce_segments(Sum, &gpu.upload(&numbers).unwrap(), &offsets).unwrap();
    assert_eq!(gpu.download(&sums).unwrap(), [sum(&numbers)]);
}

/// Two adjacent results of 16 bytes are two accesses.
#[test]
fn neighbouring_columns_have_results_of_any_size() {
    let gpu = Gpu::simt();
    let numbers: Vec<f64> = (0..2048).map(f64::from).collect();
    let input = gpu.upload(&numbers).unwrap();
    let found = gpu.reduce_to_buffer(MinMax, &input, Shape::columns(2, 1024)).unwrap();
    let expected: Vec<[f64; 2]> = (0..1024).map(|i| [f64::from(i), f64::from(i + 1024)]).collect();
    assert_eq!(gpu.download(&found).unwrap(), expected);
}

/// More chunks than blocks: each block folds several, one after the other, in the same shared memory. With checks,
/// because a mistake there is a race.
#[test]
fn more_chunks_than_blocks_are_folded_in_turn() {
    let gpu = Gpu::simt();
    let (segments, len) = (600, MAX_WARP_SEGMENT_VECTORS * 16 + 16);
    let numbers = bytes(segments * len);
    let offsets: Vec<u64> = (0..=segments).map(|i| (i * len) as u64).collect();
    let sums = gpu
        .reduce_segments(Sum, &gpu.upload(&numbers).unwrap(), &gpu.upload(&offsets).unwrap())
        .and_then(|sums| gpu.download(&sums))
        .unwrap();
    let expected: Vec<u64> = numbers.chunks(len).map(sum).collect();
    assert_eq!(sums, expected);
}

/// A warp has four segments if there are enough. Any of them may be long, and is queued with its own index.
#[test]
fn long_segments_among_many_short_ones_are_folded_once() {
    let gpu = executor();
    let long = MAX_WARP_SEGMENT_VECTORS * 16 + 16;
    let length = |segment: usize| if segment.is_multiple_of(2809) { long + segment % 7 * long } else { segment % 3 };
    let lengths: Vec<usize> = (0..4 * 8448).map(length).collect();
    let mut offsets = vec![0];
    offsets.extend(lengths.iter().scan(0, |end, &len| {
        *end += len as u64;
        Some(*end)
    }));
    let numbers = bytes(lengths.iter().sum());
    let found = gpu
        .reduce_segments(Sum, &gpu.upload(&numbers).unwrap(), &gpu.upload(&offsets).unwrap())
        .and_then(|sums| gpu.download(&sums))
        .unwrap();
    for (segment, ends) in offsets.windows(2).enumerate() {
        assert_eq!(found[segment], sum(&numbers[ends[0] as usize..ends[1] as usize]), "segment {segment}");
    }
}

/// Enough short rows that a group of lanes has several, one after the other.
#[test]
fn rows_that_share_lanes_are_folded_once() {
    let gpu = executor();
    // Rows summed by one lane; and rows summed by two, because they are padded.
    for (rows, len, pitch) in [(150_001, 1, 1), (68_001, 65, 66)] {
        let numbers = bytes(rows * pitch);
        let shape = Shape::rows(rows, len).with_pitch(pitch).unwrap();
        let sums = gpu
            .reduce_to_buffer(Sum, &gpu.upload(&numbers).unwrap(), shape)
            .and_then(|sums| gpu.download(&sums))
            .unwrap();
        let expected: Vec<u64> = numbers.chunks(pitch).map(|row| sum(&row[..len])).collect();
        assert!(sums == expected, "{rows} rows of {len}");
    }
}

/// A block folds several rows side by side, so an access may span two of them, but not a gap between them.
#[test]
fn columns_of_folded_rows_are_folded_once_with_and_without_gaps() {
    let gpu = executor();
    let (rows, columns) = (3000, 127);
    for pitch in [127, 128, 130] {
        let numbers = bytes((rows - 1) * pitch + columns);
        let shape = Shape::columns(rows, columns).with_pitch(pitch).unwrap();
        let sums = gpu
            .reduce_to_buffer(Sum, &gpu.upload(&numbers).unwrap(), shape)
            .and_then(|sums| gpu.download(&sums))
            .unwrap();
        let column = |column: usize| (0..rows).map(move |row| row * pitch + column);
        let expected = |column_of: &dyn Fn(usize) -> u64| (0..columns).map(column_of).collect::<Vec<_>>();
        assert_eq!(sums, expected(&|c| column(c).map(|at| u64::from(numbers[at])).sum()), "rows {pitch} apart");
        // The first of the largest, and the same for numbers of 8 bytes.
        let wide: Vec<f64> = numbers.iter().map(|&byte| -f64::from(byte)).collect();
        let places = [
            gpu.reduce_to_buffer(ArgMax, &gpu.upload(&numbers).unwrap(), shape),
            gpu.reduce_to_buffer(ArgMin, &gpu.upload(&wide).unwrap(), shape),
        ];
        let first_of_largest = |c: usize| {
            let largest = column(c).map(|at| numbers[at]).max();
            column(c).position(|at| Some(numbers[at]) == largest).unwrap() as u64
        };
        for places in places {
            assert_eq!(gpu.download(&places.unwrap()).unwrap(), expected(&first_of_largest), "rows {pitch} apart");
        }
    }
}
