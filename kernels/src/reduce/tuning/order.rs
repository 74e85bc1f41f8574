//! The constants that fix the order in which products, pairwise sums and custom operators on floats combine elements,
//! and the depth of that order.

pub use super::columns::rows_in_flight;
pub use super::long_rows::{LARGE_BLOCKS_PER_MULTIPROCESSOR, MAX_SHORT_ROW_VECTORS, MAX_THREADS, VECTORS_IN_FLIGHT};
pub use super::rows::VECTORS_PER_LANE;
pub use super::segments::{MAX_CHUNKS, MAX_SHORT_SEGMENT_VECTORS, MAX_WARP_SEGMENT_VECTORS, MIN_CHUNK_TILES};
pub use crate::MULTIPROCESSORS;

use super::segments;

/// Leaves of the tree that combines the threads of a column.
pub const LEAVES: usize = 16;

/// The minimum number of rounds of loads of a leaf, so that combining the leaves is a small part of the work.
pub const ROUNDS: usize = 4;

/// Threads that reduce a single row of `vectors` vectors, of which a thread has `in_flight` in flight: a whole input,
/// or any longer row of an operator that keeps an order.
///
/// A thread has two tiles in flight. A row that one block can load this way has no partials, and gets only the threads
/// that its loads need, since every further warp makes the block's last fold longer. A longer row is spread over the
/// multiprocessors in small blocks. If it is long enough for all multiprocessors, blocks have 512 threads, and two fit
/// on a multiprocessor (`docs/notes/whole-inputs.md`).
pub const fn threads_of_row(vectors: usize, in_flight: usize, multiprocessors: usize) -> usize {
    let of_one_round = vectors.div_ceil(2 * in_flight).next_power_of_two();
    if of_one_round <= MAX_THREADS {
        return if of_one_round < 32 { 32 } else { of_one_round };
    }
    match vectors.div_ceil(2 * in_flight * multiprocessors).next_power_of_two() {
        0..128 => 128,
        128..MAX_THREADS => vectors.div_ceil(2 * in_flight * multiprocessors).next_power_of_two(),
        MAX_THREADS.. => MAX_THREADS,
    }
}

/// How many blocks share a single row of `tiles` tiles. Together they fill `multiprocessors` once, but each has at
/// least two tiles: a block loads two tiles in less time than two blocks take to exchange partials.
pub const fn splits_of_row(tiles: usize, multiprocessors: usize) -> usize {
    let (most, of_two_tiles) = (LARGE_BLOCKS_PER_MULTIPROCESSOR * multiprocessors, tiles.div_ceil(2));
    match of_two_tiles {
        0 => 1,
        _ if of_two_tiles < most => of_two_tiles,
        _ => most,
    }
}

/// The maximum number of additions that an element of a contiguous input or row of `len` elements of `size` bytes
/// passes through in a [`PairwiseSum`](crate::ops::PairwiseSum). For `f32` it is 10 for 2^10 elements, 20 for 2^20, and
/// 146 for 2^28; for `f64` 10, 20 and 269.
pub const fn depth(len: usize, size: usize) -> usize {
    let of_vector = 16 / size;
    let (vectors, whole, rest) = (len.div_ceil(of_vector), len / of_vector, len % of_vector);
    if vectors <= MAX_SHORT_ROW_VECTORS {
        let lanes = crate::reduce::rows::lanes_per_row(vectors);
        let of_lane = whole.div_ceil(lanes);
        let in_vectors = if whole > 0 { log2(of_vector) + log2(of_lane) } else { 0 };
        return chain(in_vectors, (whole > 0) as usize + rest.div_ceil(lanes)) + log2(lanes);
    }
    let threads = threads_of_row(vectors, VECTORS_IN_FLIGHT, MULTIPROCESSORS);
    let tile = threads * VECTORS_IN_FLIGHT * of_vector;
    let tiles = len.div_ceil(tile);
    let splits = splits_of_row(tiles, MULTIPROCESSORS);
    let whole_of_last = tiles / splits - (!len.is_multiple_of(tile)) as usize;
    let last = of_thread(whole_of_last, len % tile, threads, of_vector);
    let longest = if splits > 1 { of_thread(tiles.div_ceil(splits), 0, threads, of_vector) } else { 0 };
    larger(longest, last) + of_block(threads) + of_partials(splits, threads)
}

/// [`depth`] for a column of `rows` elements.
pub const fn depth_of_column(rows: usize, size: usize) -> usize {
    use crate::reduce::columns::in_order::{Order, threads_of_partials};

    let in_flight = rows_in_flight(size, if size < 4 { 4 } else { size });
    let order = Order::new(rows, in_flight);
    let splits = order.splits(rows);
    let whole = if splits > 1 { depth_of_chain(order.rows_of_split / order.chains(), in_flight) } else { 0 };
    let in_last = rows - splits.saturating_sub(1) * order.rows_of_split;
    // A shorter chain may have more rounds of single rows.
    let (shorter, longer) = (in_last / order.chains(), in_last.div_ceil(order.chains()));
    let last = larger(depth_of_chain(shorter, in_flight), depth_of_chain(longer, in_flight));
    let of_splits = match splits {
        0 | 1 => 0,
        _ => {
            let threads = threads_of_partials(splits) as usize;
            splits.div_ceil(threads) - 1 + log2(threads)
        }
    };
    larger(whole, last) + order.passes - 1 + log2(order.leaves) + of_splits
}

/// [`depth`] for a segment by offsets.
pub const fn depth_of_segment(len: usize, size: usize) -> usize {
    let of_vector = 16 / size;
    if len <= of_vector {
        return len.saturating_sub(1);
    }
    if len <= MAX_WARP_SEGMENT_VECTORS * of_vector {
        let is_short = len <= MAX_SHORT_SEGMENT_VECTORS * of_vector;
        let lanes = if is_short { segments::SHORT_SEGMENT_LANES } else { 32 };
        let steps = (len / of_vector).div_ceil(lanes) + (len % of_vector).div_ceil(lanes);
        return chain(log2(of_vector), steps) + log2(lanes);
    }
    let tile = segments::BLOCK * VECTORS_IN_FLIGHT * of_vector;
    let tiles = len / tile;
    let of_chunk = larger(tiles.div_ceil(MAX_CHUNKS), MIN_CHUNK_TILES);
    let chunks = if tiles == 0 { 1 } else { tiles.div_ceil(of_chunk) };
    let last = of_thread(tiles - (chunks - 1) * of_chunk, len % tile, segments::BLOCK, of_vector);
    let longest = if chunks > 1 { of_thread(of_chunk, 0, segments::BLOCK, of_vector) } else { 0 };
    larger(longest, last) + of_block(segments::BLOCK) + of_partials(chunks, segments::BLOCK)
}

/// The depth of states of `depth` that are combined one after the other.
const fn chain(depth: usize, states: usize) -> usize {
    depth + states.saturating_sub(1)
}

/// The depth of a thread's chain over whole tiles, and over the `rest` elements after them: whole vectors, and a single
/// element.
const fn of_thread(tiles: usize, rest: usize, threads: usize, of_vector: usize) -> usize {
    let (vectors, has_single) = ((rest / of_vector).div_ceil(threads), !rest.is_multiple_of(of_vector));
    let first = if tiles > 0 {
        log2(of_vector) + log2(VECTORS_IN_FLIGHT)
    } else if vectors > 0 {
        log2(of_vector)
    } else {
        0
    };
    chain(first, tiles + vectors + has_single as usize)
}

/// The depth of the fold of a block's threads.
const fn of_block(threads: usize) -> usize {
    log2(32) + log2(threads / 32)
}

/// The depth of the fold of the partials of `splits` blocks by one of them.
const fn of_partials(splits: usize, threads: usize) -> usize {
    if splits <= 1 {
        return 0;
    }
    let (warps, with_partials) = (threads / 32, splits.div_ceil(32));
    splits.div_ceil(threads) - 1 + log2(smaller(splits, 32)) + log2(smaller(with_partials, warps))
}

/// The depth of a chain of `rows` rows, of which a thread combines `in_flight` at once, then four, and then one.
const fn depth_of_chain(rows: usize, in_flight: usize) -> usize {
    let (rounds, left) = (rows / in_flight, rows % in_flight);
    let (fours, ones) = if in_flight == 8 { (left / 4, left % 4) } else { (0, left) };
    let of_round = if rounds > 0 {
        log2(in_flight)
    } else if fours > 0 {
        2
    } else {
        0
    };
    chain(of_round, rounds + fours + ones)
}

/// The logarithm, rounded up; 0 of 0.
const fn log2(number: usize) -> usize {
    if number <= 1 { 0 } else { number.next_power_of_two().ilog2() as usize }
}

const fn smaller(a: usize, b: usize) -> usize {
    if a < b { a } else { b }
}

const fn larger(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_of_the_docs() {
        assert_eq!([10, 20, 28].map(|log2| depth(1 << log2, 4)), [10, 20, 146]);
        assert_eq!([10, 20, 28].map(|log2| depth(1 << log2, 8)), [10, 20, 269]);
    }

    #[test]
    fn no_order_is_shallower_than_a_tree() {
        for size in [2, 4, 8] {
            for len in (1..20_000).chain([1 << 20, (1 << 20) + 1, 1 << 28, (1 << 30) - 1]) {
                for depth in [depth(len, size), depth_of_column(len, size), depth_of_segment(len, size)] {
                    assert!(depth >= log2(len), "{len} elements of {size} bytes: {depth}");
                }
            }
            assert_eq!([depth(0, size), depth_of_column(0, size), depth_of_segment(0, size)], [0; 3]);
        }
    }
}
