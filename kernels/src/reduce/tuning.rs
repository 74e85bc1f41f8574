//! The constants of reductions chosen by measurement, on an H200 and an H100, for kernels and their host plans.
//!
//! Sizes are in elements, or in vectors of 16 bytes. [`order`] lists the constants that fix the order of products,
//! pairwise sums and custom operators on floats: changing one changes results. Changing any other constant changes only
//! times.

/// Whole inputs and long rows: blocks reduce each.
pub mod long_rows {
    /// Vectors of a tile that each thread loads, all in flight at once. An aligned row has two tiles in flight: with
    /// one, an input that one block reduces takes up to a fifth longer (`docs/notes/whole-inputs.md`).
    pub const VECTORS_IN_FLIGHT: usize = 4;

    /// Threads of the largest block. Two such blocks fit on a multiprocessor with the registers of every operator.
    /// Blocks of 1024 threads with two vectors each take 5 % longer at 2^28 `f32`.
    pub const MAX_THREADS: usize = 512;

    /// Resident blocks of 512 threads on a multiprocessor.
    pub const LARGE_BLOCKS_PER_MULTIPROCESSOR: usize = 2;

    /// Resident blocks of 256 threads with up to 64 registers on a multiprocessor.
    pub const SMALL_BLOCKS_PER_MULTIPROCESSOR: usize = 4;

    /// From this many waves of long rows on, the tail effect of the last one is negligible.
    pub const WAVES_WITHOUT_TAIL_EFFECT: usize = 16;

    /// Vectors of the longest row that lanes of a warp reduce; blocks reduce longer ones. A warp that takes more than a
    /// few rounds of loads has too few bytes in flight.
    pub const MAX_SHORT_ROW_VECTORS: usize = 128;
}

/// Short rows: a few lanes reduce each.
pub mod rows {
    /// Threads of a block. Few, since they wait for each other at a barrier.
    pub const BLOCK: usize = 64;

    /// The maximum number of vectors of a row that a lane reduces.
    pub const VECTORS_PER_LANE: usize = 4;

    /// The kernel's `min_blocks`: the blocks for which a multiprocessor has registers, for elements of `size` bytes and
    /// their states.
    pub const fn min_blocks(size: usize, size_of_state: usize) -> usize {
        match (size, size_of_state) {
            (8, 0..=8) => 28,
            (8, _) => 24,
            _ => 20,
        }
    }

    /// The maximum number of rows of a few elements that one lane reduces.
    pub const ROWS_PER_LANE: usize = 16;

    /// The largest grid, in blocks, that launches its dependents early. 512 blocks (4096 rows of 100 `f32`) gain 0.2 us
    /// of 2.2 us; 1024 blocks (2^16 rows of 64 bytes) lose 0.2 us.
    pub const DEPENDENT_LAUNCH_BLOCKS: u32 = 4 * crate::MULTIPROCESSORS as u32;
}

/// Columns: a column of threads reduces four columns.
pub mod columns {
    /// Threads of a block.
    pub const BLOCK: usize = 256;

    /// Neighbouring columns that a thread reduces.
    pub const COLUMNS: usize = 4;

    /// The largest grid, in blocks, that launches its dependents early if each block has few rows: all of its blocks
    /// run at once. Gains 0.1 to 0.3 us of 5 to 13 us.
    pub const DEPENDENT_LAUNCH_BLOCKS: u32 = 4 * crate::MULTIPROCESSORS as u32;

    /// Rows that a thread has in flight, for elements of `size` bytes. They take 64 bytes; 32 bytes if `size` is 1, 128
    /// if it is 8. With states of more than 8 bytes, registers hold half of these rows, but still four rows of 4-byte
    /// elements.
    pub const fn rows_in_flight(size: usize, size_of_state: usize) -> usize {
        match size {
            1 | 2 if size_of_state <= 8 => 8,
            8 if size_of_state > 8 => 2,
            _ => 4,
        }
    }

    /// The kernel's `min_blocks`: the blocks for which a multiprocessor has registers. Large states need more
    /// registers, and so do the nested loops of operators that keep an order.
    pub const fn min_blocks(size_of_state: usize, is_any_order: bool) -> usize {
        match (size_of_state, is_any_order) {
            (32, _) => 2,
            (_, true) => 4,
            (_, false) => 3,
        }
    }

    /// Bytes of a cache line. Folded rows that consist of whole lines share none.
    pub const CACHE_LINE: usize = 128;

    /// Partials that a thread reduces in four rounds of eight.
    pub const PARTIALS_PER_THREAD: usize = 32;

    /// The minimum number of columns of a folded row, and the maximum if little is read: four for each thread of the
    /// last block.
    pub const MIN_FOLDED_COLUMNS: usize = 4 * BLOCK;

    /// The maximum number of columns of a folded row if much is read; the largest inputs allow more.
    pub const MAX_FOLDED_COLUMNS: usize = 16 * BLOCK;

    /// Lanes of a tile if there are columns for all blocks. The longer the contiguous segment of a row that a block
    /// reads, the better.
    pub const WIDE_TILE_LANES: usize = BLOCK / 2;
}

/// Segments by offsets.
pub mod segments {
    /// Threads of a block.
    pub const BLOCK: usize = 256;

    /// Lanes that reduce a short segment.
    pub const SHORT_SEGMENT_LANES: usize = 4;

    /// Vectors that a lane has in flight.
    pub const SEGMENT_VECTORS_IN_FLIGHT: usize = 4;

    /// Vectors of the longest short segment.
    pub const MAX_SHORT_SEGMENT_VECTORS: usize = SHORT_SEGMENT_LANES * SEGMENT_VECTORS_IN_FLIGHT;

    /// Vectors of the longest segment that a warp reduces; blocks reduce longer ones.
    pub const MAX_WARP_SEGMENT_VECTORS: usize = 4 * 32 * SEGMENT_VECTORS_IN_FLIGHT;

    /// The kernel's `min_blocks`, for elements of `size` bytes. It limits a thread's registers: with three blocks,
    /// elements of 2 to 8 bytes spill a few words, and elements of 1 byte need more registers than three blocks leave.
    pub const fn min_blocks(size: usize) -> usize {
        if size == 1 { 2 } else { 3 }
    }

    /// The minimum number of tiles of a chunk of a long segment; a shorter segment is one chunk.
    pub const MIN_CHUNK_TILES: usize = 4;

    /// The maximum number of chunks of a segment: four for each resident block.
    pub const MAX_CHUNKS: usize = 4 * 4 * crate::MULTIPROCESSORS;
}

/// Exact sums of whole inputs and long rows.
pub mod exact_long_rows {
    /// Vectors of a tile that each thread loads; those of the next tile are in flight, or prefetched to L2, meanwhile.
    pub const VECTORS_IN_FLIGHT: usize = 4;

    /// The same for each of two inputs.
    pub const PAIRS_IN_FLIGHT: usize = 2;

    /// Threads of the largest block, which fills a multiprocessor with 128 registers for each thread. 768 threads with
    /// 80 registers take a tenth longer for `f64` and for 2^22 `f32` (`docs/notes/exact-sums.md`).
    pub const MAX_THREADS: usize = 512;

    /// Threads of a block if a single input is too short for large blocks on all multiprocessors.
    pub const THREADS: usize = 256;

    /// The maximum number of times in a row that lanes' superaccumulators take terms without a check of the terms'
    /// exponents.
    pub const MAX_UNCHECKED: u32 = 15;

    /// The maximum number of exponents, from that of the smallest of a warp's terms to that of the largest, for which
    /// the terms are summed in windows. Lanes' superaccumulators sum terms of a wider range, which would take longer in
    /// windows. Two windows of `f32` hold terms of 63 exponents.
    pub const MAX_EXPONENTS_IN_WINDOWS: i32 = 63;
}

/// Exact sums of long segments by offsets.
pub mod exact_long_segments {
    /// Threads of a block, for elements of `size` bytes. If lengths follow a power law, a larger block loads most long
    /// segments in a few rounds. 2^17 x 256 of `f64` take 178 us with 256 threads, 130 with 128, 110 with 64.
    pub const fn block(size: usize) -> usize {
        if size == 8 { 64 } else { 128 }
    }

    /// Threads that a multiprocessor runs at once, for elements of `size` bytes. With 768, most sums of `f32` take 2 to
    /// 6 % more time. With 640, long inputs of `f64` take 2 to 5 % more, and 2^17 x 256 `bf16` 6 % more.
    pub const fn resident_threads(size: usize) -> usize {
        if size == 4 { 640 } else { 768 }
    }

    /// Chunks of an input of a few MiB are so short that one long segment of the whole input would have this many. Then
    /// 2^10 x 2^10 of `f64` take 26.0 us instead of 31.0.
    pub const MIN_CHUNKS: usize = 2 * crate::MULTIPROCESSORS;
}

/// Exact sums of short rows.
pub mod exact_rows {
    /// Threads of a block.
    pub const BLOCK: usize = 128;

    /// Vectors that a lane loads: all of one row, or each of another row.
    pub const VECTORS: usize = 4;

    /// The number of blocks with one row for each lane from which on there are fewer blocks, with [`VECTORS`] rows for
    /// each lane, on each multiprocessor: about two waves. 2^15 x 256 `f32`, of 4096 blocks, take 10.6 us instead of
    /// 11.2, and 2^13 x 256, of 1024 blocks, would take 5.0 us instead of 4.4.
    pub const BLOCKS_OF_SEVERAL_STEPS: usize = 15;

    /// The minimum number of lanes of a row of which each lane has all [`VECTORS`]. Neighbouring lanes load adjacent
    /// vectors, so their loads are coalesced (`docs/notes/exact-sums.md`).
    pub const COALESCED_LANES: usize = 4;
}

/// Exact sums of columns.
pub mod exact_columns {
    /// Rows of elements of `size` bytes that a thread has in flight.
    pub const fn rows_in_flight(size: usize) -> usize {
        match size {
            2 => 8,
            4 => 4,
            _ => 2,
        }
    }

    /// Rows of half a tile of elements of `size` bytes, with terms of `size_of_term` bytes: one half is in flight while
    /// the other is added. A half has 64 bytes of a thread: with 32, 2^14 x 2^14 `bf16` take 176 us instead of 154.
    /// Terms that are larger than their elements leave registers for half of the rows, unless the half is
    /// [single](has_single_half).
    pub const fn rows_of_half_tile(size: usize, size_of_term: usize, is_single: bool) -> usize {
        let rows = rows_in_flight(size);
        if size_of_term != 4 && size_of_term != size && !is_single { rows / 2 } else { rows }
    }

    /// Whether a tile of elements of `size` bytes has a single half: for elements of 2 bytes, unless their terms have a
    /// fixed `window`, which takes fewer instructions. Sums of 2^14 x 2^14 `bf16` take 137 us with one half, and 154
    /// with two.
    pub const fn has_single_half(size: usize, window: Option<i32>) -> bool {
        size == 2 && window.is_none()
    }

    /// The minimum number of lanes that share a superaccumulator, if lanes can share one. With one for each lane, so
    /// little shared memory is left as cache that ordinary columns of `f64` take 7 % longer, and those of 2^10 x 2^10
    /// 19 %.
    pub const MIN_LANES: u32 = 2;

    /// The kernel's `min_blocks`: few enough that a thread's terms fit in registers.
    pub const MIN_BLOCKS: usize = 2;
}

/// Exact sums of columns of few rows.
pub mod few_rows {
    /// The maximum number of rows.
    pub const MAX_ROWS: usize = 32;
    /// The same for elements of 4 and 8 bytes that are loaded one by one.
    pub const MAX_SINGLE_ROWS: usize = 5;
    /// The minimum number of columns: half a block's.
    pub const MIN_COLUMNS: usize = 512;
    /// Rows whose elements a thread has in flight.
    pub const IN_FLIGHT: usize = 4;
    /// The kernel's `min_blocks`, for sums in one `f64` and in two. With fewer, too few loads are in flight for one row
    /// or two; with more, registers spill.
    pub const fn min_blocks(is_in_one: bool) -> usize {
        if is_in_one { 5 } else { 4 }
    }
}

/// Exact sums of rows of few elements.
pub mod few_columns {
    /// The minimum number of rows of `len` elements: half a block's, or for more than four elements, which keep a
    /// thread busy for longer than the lanes of `exact_rows`, half of what fills an H200. 2^12 rows of 16 `f32` take
    /// 2.9 us, and there 1.9; 2^16 rows 3.1 and 3.9.
    pub const fn min_rows(len: usize) -> usize {
        if len <= 4 { 512 } else { 1 << 16 }
    }
    /// The maximum length of a row of elements of `size` bytes. Threads read longer rows too far apart: 256 MiB of
    /// `f32` in rows of 24 take 176 us, and in `exact_rows` 124; rows of 23 take 127 and 172.
    pub const fn max_len(size: usize) -> usize {
        match size {
            8 => 15,
            4 => 23,
            _ => 40,
        }
    }
    /// The kernel's `min_blocks`, for sums in one `f64` and in two: few enough that no register spills.
    pub const fn min_blocks(is_in_one: bool) -> usize {
        if is_in_one { 4 } else { 3 }
    }
}

pub mod order;
