//! Reductions whose blocks leave states for each other, around every number of them that is handled in another way.

use kernels::reduce::segments::WARP_PACKS;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use test_support::executor;
use warpfold::Gpu;
use warpfold::ops::Sum;

fn bytes(len: usize) -> Vec<u8> {
    let mut source = SmallRng::seed_from_u64(len as u64);
    (0..len).map(|_| source.random()).collect()
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().copied().map(u64::from).sum()
}

/// Two tiles each, and one more in some: the partials of 32 blocks are one warp's, those of 33 two warps'.
#[test]
fn each_number_of_partials_is_folded_once() {
    let gpu = executor();
    // A tile of the smallest block of a whole input has 4096 bytes, one of the largest four times as many.
    let numbers = bytes(600 * 4096 + 5);
    let input = gpu.upload(&numbers).unwrap();
    for tiles in (1..150).chain((150..600).step_by(7)) {
        let len = tiles * 4096 + 5;
        let found = gpu.sum(input.view().slice(0, len).unwrap()).unwrap();
        assert_eq!(found, sum(&numbers[..len]), "{len} bytes");
    }
}

/// What a warp folds, and what is left to blocks.
#[test]
fn segments_around_what_a_warp_takes_are_folded_once() {
    let gpu = executor();
    let most = WARP_PACKS * 16;
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

/// More chunks than there are blocks for: each block folds several, one after the other, in the same shared memory. With checks, as
/// what goes wrong there is a race.
#[test]
fn more_chunks_than_blocks_are_folded_in_turn() {
    let gpu = Gpu::simt();
    let (segments, len) = (600, WARP_PACKS * 16 + 16);
    let numbers = bytes(segments * len);
    let offsets: Vec<u64> = (0..=segments).map(|i| (i * len) as u64).collect();
    let sums = gpu
        .reduce_segments(Sum, &gpu.upload(&numbers).unwrap(), &gpu.upload(&offsets).unwrap())
        .and_then(|sums| gpu.download(&sums))
        .unwrap();
    let expected: Vec<u64> = numbers.chunks(len).map(sum).collect();
    assert_eq!(sums, expected);
}
