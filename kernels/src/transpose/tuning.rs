//! The constants of transposes chosen by measurement, for the kernels and for the host's plans.
//!
//! Each has its unit, what it decides, and the shape that it was measured at. Times are of an H200, unless a line says
//! otherwise. `docs/notes/tiles.md`, and in that folder `small-transposes.md`, `unaligned-transposes.md`,
//! `tall-skinny.md`, `short-segments.md` and `division.md` have the measurements.
//!
//! In a `#[kernel]` attribute, the number of an instance is a literal, which the compiler compares with the function
//! here.

use crate::MULTIPROCESSORS;

// Grids.

/// The largest grid, in blocks, that lets the next grid's blocks start, by programmatic dependent launch: two blocks
/// per multiprocessor. If no grid did, 255 x 257 elements of 4 bytes, 72 blocks, would take 1.92 us instead of 1.57,
/// and 1024 x 16 x 96 permuted to 102, 192 blocks, 4.58 instead of 4.36. With eight blocks per multiprocessor, 20000 x
/// 7 of 4 bytes, 501 blocks, takes 2.09 us instead of 2.40, but 2048 x 3072 of 2 bytes, 384 blocks, 9.34 instead of
/// 6.29.
pub const DEPENDENT_LAUNCH_BLOCKS: u32 = 2 * MULTIPROCESSORS as u32;

/// The minimum number of large tiles: a matrix with fewer is divided into small ones, so that more multiprocessors have
/// a tile. Two tiles per multiprocessor: 1536 x 1536 elements of 2 bytes take 3.3 us, and 3.8 with one; 2048 x 2048 of
/// 1 byte in place 3.5, and 4.5 with one. With four, 768 x 768 of 8 bytes takes 3.2 instead of 3.4, and 2047 x 2049 of
/// 2 bytes 10.3 instead of 8.7.
pub const MIN_LARGE_TILES: usize = 2 * MULTIPROCESSORS;

/// The maximum number of tiles that run at once, in one wave: eight blocks fit on a multiprocessor. Decides between the
/// instances of [`blocks_in_one_wave`] and [`blocks_in_many_waves`]. Measured at 1024 x 1024 elements of 16 bytes.
pub const TILES_IN_ONE_WAVE: usize = 8 * MULTIPROCESSORS;

/// Resident blocks of the packed kernels: four on each multiprocessor. A small tall-skinny matrix is divided into about
/// this many tiles. Measured at 1000003 x 127 elements of 2 to 8 bytes, see [`tall_skinny_allocation`].
pub const RESIDENT_PACKED_BLOCKS: usize = 4 * MULTIPROCESSORS;

/// The number of tiles into which a small matrix of short segments is divided: two for each multiprocessor. With one,
/// two and four, 480 x 640 x 3 elements of 1 byte by 102 take 2.71, 3.43 and 4.45 us, 1000 x 700 x 5 6.99, 6.14 and
/// 5.90, 64 x 1000 x 5 of 4 bytes 2.80, 2.81 and 4.04.
pub const TILES_OF_SEGMENTS: usize = 2 * MULTIPROCESSORS;

// Tiles of vectors.

/// Elements of `size` bytes of a block's tile: 16 KiB, and 32 KiB of elements of 1 and 2 bytes, whose rows would
/// otherwise be short. The shape of the tile of 4 bytes, 64 x 64, was measured at 8192 x 8192 to 32768 x 32768.
pub const fn tile_elements(size: usize) -> usize {
    let bytes = if size <= 2 { 32 << 10 } else { 16 << 10 };
    bytes / size
}

/// Elements of a block's small tile, for fewer than [`MIN_LARGE_TILES`] large ones: a quarter. With an eighth, 1600 x
/// 1600 of 2 bytes takes 4.16 us instead of 3.38, and 832 x 1280 of 4 bytes 3.23 instead of 2.96; with a half, they
/// take 3.93 and 2.98, and 640 x 832 of 8 bytes 3.20 instead of 2.95. 2560 x 2048 of 1 byte takes 4.04, 3.93 and 3.69
/// us with an eighth, a quarter and a half.
pub const fn small_tile_elements(size: usize) -> usize {
    tile_elements(size) / 4
}

/// The `min_blocks` of tiles that take many waves.
///
/// A tiled copy gets faster with fewer bytes in flight, down to 48 or 64 KiB per multiprocessor: 16384 x 16384 elements
/// of 4 bytes take 516 us with four blocks of 16 KiB, 517 with five, 518 with eight. Registers limit the blocks, not
/// shared memory: larger allocations of shared memory are slower, because they shrink the L1 through which loads
/// arrive.
///
/// Elements of 2 bytes have five if `line_pair_pitch`, else four: 5000 x 30000 takes 156.6 us with four and 158.3 with
/// five, 4096 x 4096 18.0 and 17.8.
pub const fn blocks_in_many_waves(size: usize, line_pair_pitch: bool) -> usize {
    match size {
        1 => 5,
        2 if line_pair_pitch => 5,
        _ => 4,
    }
}

/// The `min_blocks` of tiles that run in one wave: eight, but five of the larger tiles of elements of 1 and 2 bytes.
/// 1024 x 1024 of 16 bytes takes 8.2 us with eight and 8.5 with four.
pub const fn blocks_in_one_wave(size: usize) -> usize {
    if size <= 2 { 5 } else { 8 }
}

/// The `min_blocks` of small tiles. With half as many, 384 x 2752 of 4 bytes takes 3.02 us instead of 2.93, and nine
/// other shapes change by up to 2 %. With twice as many, 2560 x 2048 of 1 byte takes 4.11 instead of 3.93, and 64 x 192
/// x 256 of 2 bytes 3.81 instead of 3.94; more than these do not fit for 4, 8 and 16 bytes.
pub const fn blocks_of_small_tiles(size: usize) -> usize {
    match size {
        1 => 10,
        2 => 8,
        4 => 32,
        8 => 16,
        _ => 8,
    }
}

/// The pitch, in bytes, at whose multiples rows begin with a pair of 128-byte lines. For other pitches L2 fetches both
/// lines of a pair: 16400 x 16400 of 8 bytes takes 1058 us instead of 1077. For multiples of this pitch, fetching both
/// lines would cost 0.4 %.
pub const LINE_PAIR: usize = 256;

/// The largest power of two that divides the input's pitch in bytes, as a base-2 logarithm: from the first to the last
/// of these (128 KiB to 512 KiB), the columns of tiles of a row are taken round-robin from partitions 64 KiB wide.
///
/// Rows that begin a multiple of 128 KiB apart are read 2 to 13 % slower than rows 112 or 144 KiB apart; with the
/// partitions they are as fast. Rows 1 MiB apart, in 16 partitions, reach 0.953 of a copy's speed, and 0.974 without.
pub const LOG2_PARTITIONED_PITCHES: [u32; 2] = [17, 19];

/// The base-2 logarithm of a partition's bytes: 64 KiB, measured with [`LOG2_PARTITIONED_PITCHES`].
pub const LOG2_PARTITION: u32 = 16;

/// The minimum bytes of a column of tiles for which the matrix is transposed in panels: in so long a column, L2 does
/// not keep the rest of the fetched lines until the next column of tiles reads it. Measured at 200003 x 1001 elements
/// of 4 bytes: 507 us without panels.
pub const LONG_COLUMN: usize = 16 << 20;

/// Bytes of a column of tiles in a panel of sector-aligned tiles, which fetch single lines. 200003 x 1001 elements of 4
/// bytes take 446 us, and 483 in panels of 16 MiB.
pub const PANEL_OF_LINES: usize = 8 << 20;

/// Bytes of a column of tiles in a panel of tiles that fetch pairs of lines. Elements of 16 bytes take half, so that a
/// panel has as many bytes of a row of the output as for 4 bytes: 1000003 x 127 of 16 bytes takes 1.11 ms, and 1.22
/// without panels.
pub const fn panel_of_line_pairs(size: usize) -> usize {
    if size == 16 { 2 << 20 } else { 4 << 20 }
}

// Sector-aligned tiles.

/// The minimum number of tiles in a column of sector-aligned tiles of elements of `size` bytes. With fewer, too much of
/// their halos is outside the matrix.
///
/// With two instead of one, 140 x 100001 elements of 1 and 2 bytes take 29.1 and 57.1 us instead of 22.7 and 29.4, 1000
/// matrices of 150 x 150 62.0 and 94.3 instead of 38.2 and 53.6 (the worst of 40 cases: 1000 of 120 x 162 of 1 byte
/// 32.1 instead of 33.9). With one instead of two, 1000 matrices of 60 x 81 of 4 bytes take 22.3 us instead of 15.8,
/// 1000 of 30 x 65 of 8 bytes 20.1 instead of 9.9.
pub const fn min_sector_aligned_tiles(size: usize) -> usize {
    if size <= 2 { 1 } else { 2 }
}

/// The `min_blocks` of sector-aligned tiles: the maximum that leaves registers for the first vectors of all rows of a
/// thread's micro-tile. With fewer blocks, 8191 x 8193 elements of 1 to 8 bytes take 46.6, 71.4, 135.1 and 270.9 us,
/// with these blocks 40.3, 70.8, 134.9 and 266.4.
pub const fn sector_aligned_min_blocks(size: usize) -> usize {
    match size {
        1 => 3,
        2 => 4,
        4 => 6,
        _ => 5,
    }
}

// Tiles of narrow accesses.

/// Threads of a block of narrow tiles. With 128, 255 x 257 of 1 byte takes 2.69 us instead of 1.90, and 2047 x 2049
/// 11.4 instead of 8.03, but 1000 matrices of 28 x 28 of 2 bytes 5.90 instead of 6.75. With 512, 500 x 501 of 8 bytes
/// takes 3.16 us instead of 2.50, and 1000 matrices of 28 x 28 of 2 bytes 8.50.
pub const NARROW_BLOCK: usize = 256;

/// Words of `size_of_word` bytes of a block's narrow tile: 16 KiB, or a quarter of that in a small tile. 8191 x 8193
/// elements of 8 bytes take 284.5 to 319.4 us with 32 KiB, and 282 with 16.
pub const fn narrow_tile_words(size_of_word: usize, is_small: bool) -> usize {
    let words = (16 << 10) / size_of_word;
    if is_small { words / 4 } else { words }
}

// Transposes in registers.

/// Bytes of all matrices up to which they are transposed in registers: 8 MiB of elements of 16 bytes, 4 MiB of others.
/// 600 x 600 of 16 bytes takes 3.55 us in registers and 3.69 in tiles, but 848 x 848 of 8 bytes 4.5 and 3.7.
pub const fn max_register_tiles_bytes(size: usize) -> usize {
    if size < 16 { 4 << 20 } else { 8 << 20 }
}

/// Micro-tiles across a block, and the maximum across a warp.
pub const REGISTER_TILES_ACROSS: usize = 8;

/// Micro-tiles across a warp.
///
/// Elements of up to 4 bytes have micro-tiles of four rows, 4 across and 8 down a warp: what a warp writes in a row of
/// the output is then at least a sector. Elements of 8 and 16 bytes have micro-tiles of two rows or one: 8 across read
/// a line of 128 bytes. Measured at 512 x 512: with 8 across, elements of 8 and 16 bytes take 5 % less time than with
/// 4, elements of 1 and 2 bytes the same or more.
pub const fn register_tiles_across_warp(size: usize) -> usize {
    if size < 8 { 4 } else { REGISTER_TILES_ACROSS }
}

/// Threads of a block of register tiles. 1024 x 1024 elements of 1 byte take 1.53 us, and 1.62 to 1.65 with half of
/// these threads.
pub const REGISTER_TILES_BLOCK: usize = 256;

/// Threads of a small block of register tiles, for small matrices. 512 x 512 elements of 1 byte take 1.25 us, and 1.33
/// with [`REGISTER_TILES_BLOCK`].
pub const SMALL_REGISTER_TILES_BLOCK: usize = REGISTER_TILES_BLOCK / 2;

/// The maximum number of blocks of [`SMALL_REGISTER_TILES_BLOCK`] threads on the busiest multiprocessor for which small
/// blocks are preferred, if that multiprocessor then has fewer threads. For elements of 2 to 8 bytes.
///
/// 768 x 768 of 4 bytes, with three small blocks or two large ones on the busiest multiprocessor, takes 2.00 us with
/// small ones and 2.20 with large ones, of 2 bytes 1.58 and 1.68; 384 x 384 of 8 bytes 1.61 and 1.76. Small blocks are
/// slower for elements of 1 byte, since they write half lines (1024 x 1536: 1.87 and 1.76), and for elements of 16
/// bytes (192 x 192: 1.31 to 1.37 and 1.26).
pub const MAX_SMALL_BLOCKS_PER_MULTIPROCESSOR: usize = 3;

// Transposes in place.

/// Elements along the side of a tile of an in-place transpose, which is square: 8 to 16 KiB for each of two tiles. With
/// half the side, 4095 x 4095 of 1, 2 and 4 bytes takes 34.5, 48.7 and 55.6 us instead of 22.6, 32.2 and 46.8, but 1000
/// matrices of 64 x 64 of 1 byte 3.46 instead of 4.64. Tiles of twice the side do not fit.
pub const fn in_place_side(size: usize) -> usize {
    match size {
        1 => 128,
        2 | 4 => 64,
        _ => 32,
    }
}

/// Elements of a tile of an in-place transpose, for fewer than [`MIN_LARGE_TILES`] pairs of large tiles: a quarter, if
/// elements have up to 4 bytes. Without small tiles, 512 x 512 of 1, 2 and 4 bytes takes 2.30, 2.08 and 2.72 us instead
/// of 1.68, 1.75 and 2.10; with tiles of a sixteenth 1.86, 2.03 and 2.13.
pub const fn small_in_place_elements(size: usize) -> usize {
    let elements = in_place_side(size) * in_place_side(size);
    if size <= 4 { elements / 4 } else { elements }
}

/// The number of groups into which the threads of a block of an unaligned in-place transpose are divided: of two, each
/// takes a tile of the pair. For elements of 8 bytes there is one group, which takes both tiles one after the other:
/// 8191 x 8191 takes 388 us, and 434 with two groups.
pub const fn in_place_halves(size: usize) -> usize {
    if size == 8 { 1 } else { 2 }
}

// Interleaved rows.

/// The minimum extent of an axis that is not short: a transpose for each index of the middle axis then has rows that
/// are long enough. Decides whether a reversal of three axes is one transpose with interleaved rows. For elements of 2
/// bytes, separate transposes take 17.8 us and interleaved rows 17.9 at an extent of 64, and 49.8 and 13.3 at an extent
/// of 3 (8192 x 512 x 3).
pub const fn long_axis(size: usize) -> usize {
    if size <= 4 { 64 } else { 256 / size }
}

// Packed tiles: tall-skinny, short-wide, and matrices of short segments.

/// Threads of a block. 127 x 500003 and 100 x 500001 elements of 1 byte take 46.2 and 43.7 us, and 52.9 and 47.5 with
/// 512 threads.
pub const PACKED_BLOCK: usize = 256;

/// Vectors of 16 bytes that a thread loads before it stores the first. 127 x 1000003 elements of 1, 4 and 8 bytes take
/// 90.8, 261 and 535 us, and 104, 344 and 686 with four vectors and more blocks.
pub const PACKED_VECTORS: usize = 8;

/// The largest short side, in elements, of a tall-skinny or short-wide matrix. 97 and 127 x 500003 elements of 1 byte
/// take 32.3 and 37.6 us packed, 85.8 and 158.6 tiled; of 4 bytes 99.2 and 130.2, 124.3 and 172.5.
pub const MAX_SHORT_SIDE: usize = 128;

/// The minimum ratio of the long side of such a matrix to its short side. With 4, 101 x 800 elements of 4 bytes take
/// 2.4 us packed, and 1.6 tiled. With 32, single matrices such as 101 x 3200 of 1 and 4 bytes would take 2.3 and 2.5 us
/// tiled, not 3.1 and 3.0, but 30 of these matrices 19.1 and 23.7 us instead of 8.4 and 21.5.
pub const ASPECT_RATIO: usize = 16;

/// The minimum number of sectors of a row that a block writes, however small the matrix is. A compromise: with 1, 4 and
/// 8, 20000 x 7 elements of 1 byte take 2.2, 1.7 and 1.6 us, 3000 x 31 1.7, 2.4 and 3.4, 31 x 3000 of 4 bytes 2.5, 1.7
/// and 2.2.
pub const MIN_SECTORS: usize = 4;

/// The maximum number of columns, and of bytes per element, of a tall-skinny matrix that is packed, not tiled, although
/// its rows are whole vectors: 2^24 x 16 of 1 byte takes 144.8 us packed and 157.7 tiled, of 2 bytes 272.1 and 281.3.
pub const MAX_PACKED_ROW_OF_VECTORS: [usize; 2] = [16, 2];

/// Elements of `size` bytes that a thread stores at once: 8 bytes, since index arithmetic costs the same for one
/// element and for eight. Elements of 4 bytes are stored one by one, so that neighbouring threads read neighbouring
/// elements of shared memory, too. With half as many, 100003 x 33 of 1 and 2 bytes takes 4.41 and 6.69 us instead of
/// 4.25 and 5.57, but 33 x 100003 of 1 byte 4.12 instead of 4.56. With twice as many, 8192 x 512 x 3 of 1 byte by 102
/// takes 16.0 us instead of 11.4, but 100003 x 33 of 4 bytes 7.69 instead of 8.72.
pub const fn elements_per_store(size: usize) -> u32 {
    match size {
        1 => 8,
        2 => 4,
        _ => 1,
    }
}

/// Elements of shared memory that a tall-skinny block allocates: one and a half times the `capacity` that it uses, so
/// that at most four blocks fit on a multiprocessor. With six blocks, 1000003 x 127 elements of 2 to 8 bytes take 12 to
/// 14 % longer.
pub const fn tall_skinny_allocation(capacity: usize) -> usize {
    capacity / 2 * 3
}

/// The shift in shared memory, in elements, of every eight rows of a short-wide tile against the previous eight: one
/// word for elements of 1 byte. Measured at 127 rows: reads take a little more than two passes, and four to six without
/// the shift.
pub const fn short_wide_skew(size: usize) -> usize {
    if size == 1 { 4 } else { 0 }
}

/// The minimum bytes of a tile of segments, however small the matrix is. With 1024, 2048 and 4096, 64 x 64 x 3 elements
/// of 1 byte by 102 take 1.48, 1.49 and 1.72 us, 224 x 224 x 3 of 1 byte 2.15, 1.91 and 2.07, of 4 bytes 3.61, 2.54 and
/// 2.06 (with four tiles for each multiprocessor).
pub const MIN_PACKED_TILE: usize = 2048;

/// The maximum number of passes in which a warp may read a narrow tile that is loaded as one segment. With more passes,
/// each row is loaded by itself, at a pitch without conflicts: 400000 x 16 x 3 elements of 1 byte, in 11 passes, take
/// 35.7 us as one segment and 15.2 by rows; 300000 x 20 x 3, in 3 passes, 15.2 and 18.9.
pub const MAX_PASSES: u32 = 3;

/// The lowest height of tiles of segments that are lowered to divide a matrix more evenly, as a fraction of the height
/// that they would have. With a half, 64 x 1000 x 5 elements of 2 and 4 bytes by 102 take 3.08 and 3.01 us instead of
/// 2.86 and 2.78, but 480 x 640 x 3 of 4 bytes 3.76 instead of 4.14. Without lower tiles, 8192 x 512 x 3 of 1 byte
/// takes 12.7 us instead of 10.1, 1080 x 1920 x 3 8.15 instead of 6.94.
pub const LOWEST_BALANCED_HEIGHT: [usize; 2] = [3, 4];

/// The maximum number of columns of tiles that are made about equally wide, since a block's index arithmetic does not
/// depend on the columns that it writes: 100000 x 80 x 5 elements of 1 byte take 37.0 us as 64 and 16 columns, and 30.2
/// as 40 and 40.
pub const MAX_EVEN_TILES: usize = 3;

/// Bytes of a row of the output below which a matrix of segments counts as short and wide. With 64, 128 and 256 bytes,
/// 3 x 200000 segments of 11 elements of 2 bytes take 15.8, 12.5 and 12.5 us, 8 x 50000 of 30 bytes 9.3, 9.3 and 11.8.
pub const SHORT_WIDE_ROW: usize = 128;

/// The minimum bytes of a segment for which segments are copied one by one, not packed. `access` is the bytes of the
/// access at whose multiples segments begin and end.
///
/// 64 x 64 segments of 5001 and 9001 bytes take 15.7 and 27.4 us packed, 13.0 and 22.4 one by one, but 16 x 16 of 4001
/// bytes 2.8 and 3.3. With accesses of 2 bytes, 64 x 64 segments of 10002 and 18002 bytes take 24.4 and 41.4 us packed,
/// 24.6 and 41.5 one by one. 4096 of 7501 elements of 4 bytes, nearly a block's capacity, take 67.6 and 82.4. With
/// accesses of 8 bytes, segments of 248 bytes take 2 % less time packed, of 1016 bytes 1 % more.
pub const fn long_segment(access: usize) -> usize {
    match access {
        1 => 5_000,
        2 => 18_000,
        4 => 32_000,
        _ => 256,
    }
}

// Copies of long segments.

/// Threads of a block. With 512, 512 x 16 x 64 of 4 bytes by 102 takes 3.66 us instead of 2.65, with 128 2.42;
/// 4096 x 32 x 64 takes 19.1, 17.9 and 17.8 us with 512, 256 and 128.
pub const COPY_BLOCK: usize = 256;

/// Elements that a thread has in flight, where segments begin and end at multiples of an access. With 4, 32 x 32 x 8001
/// of 4 bytes by 102 takes 28.9 us instead of 23.6, but 512 x 16 x 64 2.30 instead of 2.65. With 16, they take 22.1 and
/// 3.90 us.
pub const COPY_ELEMENTS: usize = 8;

/// Vectors of 16 bytes that a thread has in flight, where segments begin at any address. With four, 64 x 64 x 12001 of
/// 1 byte by 102 takes 36.6 us instead of 28.4, and 8 x 8 x 10001 of 2 bytes 4.51 instead of 3.08.
pub const COPY_VECTORS: usize = 2;
