//! The transpose by 16-byte accesses.
//!
//! # Bank conflicts
//!
//! The tile is stored transposed: [`TILE`] columns of 16 vectors, each of four elements of a column. A 16-byte access
//! is served eight lanes at a time; these must access different ones of the eight 16-byte units of the 32 banks. Vector
//! `p` of column `c` lies at unit `p ^ (c / 4)` of its column:
//!
//! | access | lanes differ in | units |
//! |---|---|---|
//! | store, thread `(x, y)` writes vector `y` of columns `4x .. 4x + 4` | `x` | `y ^ x`: eight different ones |
//! | load, thread `(x, y)` reads vector `x` of columns `4y .. 4y + 4` | `x` | `x ^ y`: eight different ones |

use cuda_std::prelude::*;

use super::TransposeArgs;

/// The side of a block's tile.
pub const TILE: usize = 64;

/// Elements of a vector, and the side of the micro-tile that a thread transposes in registers.
const SIDE: usize = 4;

/// Threads along a side of the tile.
const THREADS: usize = TILE / SIDE;

/// The last rung: every access to memory is 16 bytes wide.
///
/// Each of 256 threads takes a micro-tile of 4 x 4 elements: four 16-byte loads, a transpose in registers, four 16-byte
/// stores to shared memory without bank conflicts (see the module), a barrier, four loads, and four stores to global
/// memory. **Saves:** three of four accesses, and their index arithmetic. **Counters:** bytes in flight, bank conflicts
/// (0).
///
/// Consecutive blocks go down the input's columns, so that blocks that run at the same time write neighbouring parts of
/// the output's rows; the other order was 2 to 3 % slower on an H200.
///
/// A side whose length or address is not a multiple of 16 bytes is read or written one element at a time.
///
/// Source: past seed 004.
#[kernel(instances = [f32], block = THREADS * THREADS)]
pub fn vectorized<T: Element<Vector = Vector<T, 4>>>(TransposeArgs { input, output, rows, columns }: TransposeArgs<T>) {
    let tile = shared_array![T; TILE * TILE];
    let thread = thread::index_in_block::<{ THREADS * THREADS }>();
    let (x, y) = (thread % THREADS, thread / THREADS);
    let down = rows.div_ceil(TILE) as u32;
    let top = (thread::block_idx_x() % down) as usize * TILE;
    let left = (thread::block_idx_x() / down) as usize * TILE;

    let is_aligned = columns.is_multiple_of(SIDE) && input.elements_to_alignment() == 0;
    let mut micro_tile = [Vector([T::default(); SIDE]); SIDE];
    let mut i = 0;
    while i < SIDE {
        micro_tile[i] = load_vector(&input, top + y * SIDE + i, left + x * SIDE, rows, columns, is_aligned);
        i += 1;
    }
    let transposed = transpose(micro_tile);
    let mut i = 0;
    while i < SIDE {
        tile.store_vector((x * SIDE + i) * TILE + (y ^ x) * SIDE, transposed[i]);
        i += 1;
    }
    thread::sync_threads();

    let is_aligned = rows.is_multiple_of(SIDE) && output.as_global().elements_to_alignment() == 0;
    let mut i = 0;
    while i < SIDE {
        let vector = tile.load_vector((y * SIDE + i) * TILE + (x ^ y) * SIDE);
        store_vector(&output, left + y * SIDE + i, top + x * SIDE, columns, rows, is_aligned, vector);
        i += 1;
    }
}

/// Loads four elements of a row, or those that are inside the matrix.
#[inline(always)]
fn load_vector<T: Element<Vector = Vector<T, 4>>>(
    input: &Global<T>,
    row: usize,
    column: usize,
    rows: usize,
    columns: usize,
    is_aligned: bool,
) -> Vector<T, SIDE> {
    let mut vector = Vector([T::default(); SIDE]);
    if row < rows && column < columns {
        let first = row * columns + column;
        if is_aligned {
            // The column and the row's length are multiples of four, so the vector ends inside the row.
            return input.load_vector(first);
        }
        let mut i = 0;
        while i < SIDE {
            if column + i < columns {
                vector.0[i] = input.load(first + i);
            }
            i += 1;
        }
    }
    vector
}

/// Stores four elements of a row, or those that are inside the matrix.
#[inline(always)]
fn store_vector<T: Element<Vector = Vector<T, 4>>>(
    output: &GlobalMut<T>,
    row: usize,
    column: usize,
    rows: usize,
    columns: usize,
    is_aligned: bool,
    vector: Vector<T, SIDE>,
) {
    if row < rows && column < columns {
        let first = row * columns + column;
        if is_aligned {
            output.store_vector(first, vector);
            return;
        }
        let mut i = 0;
        while i < SIDE {
            if column + i < columns {
                output.store(first + i, vector.0[i]);
            }
            i += 1;
        }
    }
}

/// The transpose of a micro-tile in registers. It takes no instruction: only the registers' names change.
#[inline(always)]
fn transpose<T: Copy>(micro_tile: [Vector<T, SIDE>; SIDE]) -> [Vector<T, SIDE>; SIDE] {
    let [a, b, c, d] = micro_tile;
    [
        Vector([a.0[0], b.0[0], c.0[0], d.0[0]]),
        Vector([a.0[1], b.0[1], c.0[1], d.0[1]]),
        Vector([a.0[2], b.0[2], c.0[2], d.0[2]]),
        Vector([a.0[3], b.0[3], c.0[3], d.0[3]]),
    ]
}
