//! Kernels with slices and pointers as parameters, as in Rust-CUDA's examples.
#![no_std]

use cuda_std::prelude::*;

/// Adds two vectors: the kernel of Rust-CUDA's guide.
///
/// # Safety
/// `b` and `c` have at least as many elements as `a`, and the launch is one-dimensional.
#[kernel]
pub unsafe fn add(a: &[f32], b: &[f32], c: *mut f32) {
    let i = thread::index_1d() as usize;
    if i < a.len() {
        // SAFETY: as promised by the launch; no other thread has this index.
        unsafe { *c.add(i) = a[i] + b[i] };
    }
}

/// Adds `value` to each element, with one thread per element.
///
/// # Safety
/// `data` has at least as many elements as the grid has threads, and the launch is one-dimensional.
#[kernel]
pub unsafe fn increment(data: *mut u32, value: u32) {
    let i = thread::index_1d() as usize;
    // SAFETY: as promised by the launch; no other thread has this index.
    unsafe { *data.add(i) += value };
}

/// `c = alpha * a * b + beta * c`, with one thread per element of `c`. The matrices are row-major: `a` is `m` x `k`,
/// `b` is `k` x `n`, `c` is `m` x `n`.
///
/// # Safety
/// `c` has `m * n` elements, and the launch has no z dimension: a thread's x is its row, and its y its column.
#[kernel]
pub unsafe fn gemm_naive(a: &[f32], b: &[f32], c: *mut f32, m: usize, n: usize, k: usize, alpha: f32, beta: f32) {
    let row = (thread::block_idx_x() * thread::block_dim_x() + thread::thread_idx_x()) as usize;
    let column = (thread::block_idx_y() * thread::block_dim_y() + thread::thread_idx_y()) as usize;
    if row < m && column < n {
        let mut sum = 0.0;
        for i in 0..k {
            sum += a[row * k + i] * b[i * n + column];
        }
        // SAFETY: inside `c`; no other thread has this element.
        let element = unsafe { &mut *c.add(row * n + column) };
        *element = alpha * sum + beta * *element;
    }
}

/// The number of rows and of columns of a tile, and of threads of a block along x and y.
pub const TILE: usize = 16;

/// Computes the same as [`gemm_naive`](fn@gemm_naive), with tiles in shared memory: each load of an element of `a` or
/// `b` from global memory serves [`TILE`] elements of `c`.
///
/// # Safety
/// `c` has `m * n` elements, a block has [`TILE`] x [`TILE`] threads, and the launch has no z dimension.
#[kernel]
pub unsafe fn gemm_tiled(a: &[f32], b: &[f32], c: *mut f32, m: usize, n: usize, k: usize, alpha: f32, beta: f32) {
    let tile_a = shared_array![f32; TILE * TILE];
    let tile_b = shared_array![f32; TILE * TILE];
    let (x, y) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let row = thread::block_idx_y() as usize * TILE + y;
    let column = thread::block_idx_x() as usize * TILE + x;
    let mut sum = 0.0;
    for first in (0..k).step_by(TILE) {
        // Past the edges of the matrices, the tiles are zero.
        let of_a = if row < m && first + x < k { a[row * k + first + x] } else { 0.0 };
        let of_b = if first + y < k && column < n { b[(first + y) * n + column] } else { 0.0 };
        tile_a.store(y * TILE + x, of_a);
        tile_b.store(y * TILE + x, of_b);
        thread::sync_threads();
        for i in 0..TILE {
            sum += tile_a.load(y * TILE + i) * tile_b.load(i * TILE + x);
        }
        thread::sync_threads();
    }
    if row < m && column < n {
        // SAFETY: inside `c`; no other thread has this element.
        let element = unsafe { &mut *c.add(row * n + column) };
        *element = alpha * sum + beta * *element;
    }
}
