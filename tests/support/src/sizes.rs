//! Lengths and shapes around all boundaries at which a kernel splits its input.

use warpfold::ladder::BLOCKS;

/// Elements that a thread of some rung processes at once: 1, 2, 4, 8 in the unrolled rungs, 16 for four vectors of
/// 4-byte numbers (8 for 8-byte numbers).
const ELEMENTS_PER_THREAD: [usize; 5] = [1, 2, 4, 8, 16];

/// The sides of the transposes' tiles.
const TILES: [usize; 4] = [8, 16, 32, 64];

/// The numbers `at - 1`, `at` and `at + 1`.
pub fn around(at: usize) -> [usize; 3] {
    [at - 1, at, at + 1]
}

/// 0, 1, and around the segment that a block of `block` threads processes, for every rung.
pub fn lengths_of_block(block: usize) -> Vec<usize> {
    let segments = ELEMENTS_PER_THREAD.into_iter().flat_map(|each| around(each * block));
    [0, 1].into_iter().chain(segments).collect()
}

/// The lengths for every block, and around a warp and a vector: each once, in ascending order.
pub fn lengths() -> Vec<usize> {
    let mut lengths: Vec<usize> = BLOCKS.into_iter().flat_map(lengths_of_block).collect();
    lengths.extend([2, 4, 32].into_iter().flat_map(around));
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// Primes, which are not multiples of any boundary.
pub const PRIMES: [usize; 6] = [7, 61, 509, 1021, 10_007, 65_537];

/// Rows and columns around every tile, in all combinations.
pub fn shapes() -> Vec<(usize, usize)> {
    let sides: Vec<usize> = TILES.into_iter().flat_map(around).collect();
    sides.iter().flat_map(|&rows| sides.iter().map(move |&columns| (rows, columns))).collect()
}
