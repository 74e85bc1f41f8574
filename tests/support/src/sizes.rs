//! Lengths and shapes around everything that a kernel cuts its input by.

use warpfold::ladder::BLOCKS;

/// Elements that a thread of some rung takes in one go: 1, 2, 4, 8 of the unrolled rungs, 16 of four vectors of 4-byte
/// numbers (of 8-byte numbers they are 8).
const ELEMENTS_PER_THREAD: [usize; 5] = [1, 2, 4, 8, 16];

/// The sides of the transposes' tiles.
const TILES: [usize; 4] = [8, 16, 32, 64];

/// One less, as many, one more.
pub fn around(at: usize) -> [usize; 3] {
    [at - 1, at, at + 1]
}

/// No number, one, and around the run that a block of so many threads takes, whatever the rung.
pub fn lengths_of_block(block: usize) -> Vec<usize> {
    let runs = ELEMENTS_PER_THREAD.into_iter().flat_map(|each| around(each * block));
    [0, 1].into_iter().chain(runs).collect()
}

/// Those of every block, and around a warp and a vector: each once, from the shortest.
pub fn lengths() -> Vec<usize> {
    let mut lengths: Vec<usize> = BLOCKS.into_iter().flat_map(lengths_of_block).collect();
    lengths.extend([2, 4, 32].into_iter().flat_map(around));
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// Primes, which are a multiple of nothing.
pub const PRIMES: [usize; 6] = [7, 61, 509, 1021, 10_007, 65_537];

/// Rows and columns around every tile, each with each.
pub fn shapes() -> Vec<(usize, usize)> {
    let sides: Vec<usize> = TILES.into_iter().flat_map(around).collect();
    sides.iter().flat_map(|&rows| sides.iter().map(move |&columns| (rows, columns))).collect()
}
