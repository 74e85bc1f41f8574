//! The ladder's transposes without their barriers, and tiles with wrong edges.

use cuda_std::prelude::*;
use warpfold::Check::{GlobalRace, SharedRace};

use super::Expected::{Fault, Finding};
use super::{Case, case};

const SIDE: usize = 32;

/// Launches a transpose of a matrix of `rows x columns`, in blocks of 32 x `height` over its tiles.
macro_rules! transpose {
    ($gpu:ident, $name:ident, $height:expr, $rows:expr, $columns:expr) => {{
        let matrix = $gpu.upload(&(0..$rows * $columns).map(|i| i as f32).collect::<Vec<_>>())?;
        let mut result = $gpu.zeroed::<f32>($rows * $columns)?;
        let grid = (($columns as u32).div_ceil(32), ($rows as u32).div_ceil(32));
        let (matrix, result) = (matrix.view(), result.view_mut());
        let arguments = $name::Args { matrix, result, rows: $rows, columns: $columns };
        $gpu.launch($name::handle().with_block((32, $height)), grid, arguments)
    }};
}

pub fn cases() -> Vec<Case> {
    vec![
        case!(tiled, Finding(SharedRace), |gpu| transpose!(gpu, tiled, 32, 64, 64)),
        case!(tiled_padded, Finding(SharedRace), |gpu| transpose!(gpu, tiled_padded, 32, 64, 64)),
        case!(tiled_rows, Finding(SharedRace), |gpu| transpose!(gpu, tiled_rows, 8, 64, 64)),
        case!(two_tiles_in_turn, Finding(SharedRace), |gpu| transpose!(gpu, two_tiles_in_turn, 32, 32, 64)),
        case!(in_place, Finding(GlobalRace), |gpu| {
            let mut matrix = gpu.upload(&[1.0_f32; 64 * 64])?;
            let arguments = in_place::Args { matrix: matrix.view_mut(), side: 64 };
            gpu.launch(in_place::handle().with_block((32, 8)), (2, 8), arguments)
        }),
        case!(tiles_that_overlap, Finding(GlobalRace), |gpu| transpose!(gpu, tiles_that_overlap, 32, 65, 65)),
        case!(swapped_rows_and_columns, Fault("of length"), |gpu| transpose!(
            gpu,
            swapped_rows_and_columns,
            32,
            64,
            96
        )),
        case!(no_edge, Fault("of length"), |gpu| transpose!(gpu, no_edge, 32, 60, 60)),
        case!(tile_of_33, Fault("the columns of a shared tile"), |gpu| transpose!(gpu, tile_of_33, 32, 32, 32)),
    ]
}

fn coordinates() -> (usize, usize, usize, usize) {
    let (x, y) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    (x, y, thread::block_idx_x() as usize * SIDE, thread::block_idx_y() as usize * SIDE)
}

/// The tile is read before it is written.
#[kernel]
fn tiled(matrix: Global<f32>, result: GlobalMut<f32>, rows: usize, columns: usize) {
    let tile = shared_tile![f32; SIDE x SIDE];
    let (x, y, left, top) = coordinates();
    tile.store(y, x, matrix.load((top + y) * columns + left + x));
    result.store((left + y) * rows + top + x, tile.load(x, y));
}

/// The padding column avoids bank conflicts, not races.
#[kernel]
fn tiled_padded(matrix: Global<f32>, result: GlobalMut<f32>, rows: usize, columns: usize) {
    let tile = shared_tile![f32; SIDE x SIDE + 1];
    let (x, y, left, top) = coordinates();
    tile.store(y, x, matrix.load((top + y) * columns + left + x));
    warp::sync_warp(u32::MAX);
    result.store((left + y) * rows + top + x, tile.load(x, y));
}

/// Four elements per thread, and a barrier after only the first.
#[kernel]
fn tiled_rows(matrix: Global<f32>, result: GlobalMut<f32>, rows: usize, columns: usize) {
    let tile = shared_tile![f32; SIDE x SIDE + 1];
    let (x, y, left, top) = coordinates();
    tile.store(y, x, matrix.load((top + y) * columns + left + x));
    thread::sync_threads();
    for row in [y + 8, y + 16, y + 24] {
        tile.store(row, x, matrix.load((top + row) * columns + left + x));
    }
    for row in [y, y + 8, y + 16, y + 24] {
        result.store((left + row) * rows + top + x, tile.load(x, row));
    }
}

/// Two tiles use the same memory in turn: the second is loaded while the first is still being read.
#[kernel]
fn two_tiles_in_turn(matrix: Global<f32>, result: GlobalMut<f32>, rows: usize, columns: usize) {
    let tile = shared_tile![f32; SIDE x SIDE + 1];
    let (x, y, _, top) = coordinates();
    if thread::block_idx_x() > 0 {
        return;
    }
    let mut left = 0;
    while left < columns {
        tile.store(y, x, matrix.load((top + y) * columns + left + x));
        thread::sync_threads();
        result.store((left + y) * rows + top + x, tile.load(x, y));
        left += SIDE;
    }
}

/// Each thread swaps its element with the one across the diagonal, and so does the thread there.
#[kernel]
fn in_place(matrix: GlobalMut<f32>, side: usize) {
    let column = thread::index_1d_wide();
    let row = (thread::block_idx_y() * thread::block_dim_y() + thread::thread_idx_y()) as usize;
    let own = matrix.load(row * side + column);
    matrix.store(column * side + row, own);
}

/// Tiles are 32 columns apart but 33 wide: each also writes its neighbour's first column.
#[kernel]
fn tiles_that_overlap(matrix: Global<f32>, result: GlobalMut<f32>, rows: usize, columns: usize) {
    let (x, y, left, top) = coordinates();
    let mut column = x;
    while column <= SIDE {
        if left + column < columns && top + y < rows {
            result.store((left + column) * rows + top + y, matrix.load((top + y) * columns + left + column));
        }
        column += SIDE;
    }
}

/// Correct only for square matrices.
#[kernel]
fn swapped_rows_and_columns(matrix: Global<f32>, result: GlobalMut<f32>, rows: usize, columns: usize) {
    let (x, y, left, top) = coordinates();
    let _ = rows;
    result.store((left + x) * columns + top + y, matrix.load((top + y) * columns + left + x));
}

/// The last tiles extend past the matrix.
#[kernel]
fn no_edge(matrix: Global<f32>, result: GlobalMut<f32>, rows: usize, columns: usize) {
    let (x, y, left, top) = coordinates();
    let _ = rows;
    let i = (top + y) * columns + left + x;
    result.store(i, matrix.load(i));
}

/// The padding column is not part of the tile.
#[kernel]
fn tile_of_33(matrix: Global<f32>, result: GlobalMut<f32>, rows: usize, columns: usize) {
    let tile = shared_tile![f32; SIDE x SIDE + 1];
    let (x, y, left, top) = coordinates();
    tile.store(y, x + 1, matrix.load((top + y) * columns + left + x));
    thread::sync_threads();
    result.store((left + y) * rows + top + x, tile.load(x, y));
}
