//! A matrix product by tiles in shared memory, as in Rust-CUDA's example: the tiles are statics, here one of them an
//! array of arrays.

use core::mem::MaybeUninit;

use cuda_std::address_space;
use cuda_std::prelude::*;

/// The side of a tile, and of a block.
pub const TILE: usize = 16;

/// `c = alpha * a * b + beta * c`, for `m` by `k` matrix `a` and `k` by `n` matrix `b`, in row-major order.
///
/// # Safety
/// `c` has `m * n` elements, and a block has [`TILE`] by [`TILE`] threads.
#[kernel]
pub unsafe fn gemm(a: &[f32], b: &[f32], c: *mut f32, m: usize, n: usize, k: usize, alpha: f32, beta: f32) {
    #[address_space(shared)]
    static mut TILE_A: [MaybeUninit<f32>; TILE * TILE] = [MaybeUninit::uninit(); TILE * TILE];
    #[address_space(shared)]
    static mut TILE_B: [[MaybeUninit<f32>; TILE]; TILE] = [[const { MaybeUninit::uninit() }; TILE]; TILE];
    let (tx, ty) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let row = thread::block_idx_x() as usize * TILE + ty;
    let col = thread::block_idx_y() as usize * TILE + tx;

    let mut sum = 0.0_f32;
    for kk in (0..k).step_by(TILE) {
        TILE_A[ty * TILE + tx].write(if row < m && kk + tx < k { a[row * k + kk + tx] } else { 0.0 });
        TILE_B[ty][tx].write(if col < n && kk + ty < k { b[(kk + ty) * n + col] } else { 0.0 });
        thread::sync_threads();
        for i in 0..TILE {
            sum += TILE_A[ty * TILE + i].assume_init() * TILE_B[i][tx].assume_init();
        }
        thread::sync_threads();
    }
    if row < m && col < n {
        // SAFETY: inside of `c`; no other thread has this element.
        let element = unsafe { &mut *c.add(row * n + col) };
        *element = alpha * sum + beta * *element;
    }
}
