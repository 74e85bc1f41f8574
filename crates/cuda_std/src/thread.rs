//! Thread, block and grid indices; block barriers and fences.

use crate::backend;
pub use crate::uvec::{UVec2, UVec3};

/// The thread's index in its block.
#[inline(always)]
pub fn thread_idx() -> UVec3 {
    UVec3::new(thread_idx_x(), thread_idx_y(), thread_idx_z())
}

/// The block's index in the grid.
#[inline(always)]
pub fn block_idx() -> UVec3 {
    UVec3::new(block_idx_x(), block_idx_y(), block_idx_z())
}

/// Threads per block, along each axis.
#[inline(always)]
pub fn block_dim() -> UVec3 {
    UVec3::new(block_dim_x(), block_dim_y(), block_dim_z())
}

/// Blocks in the grid, along each axis.
#[inline(always)]
pub fn grid_dim() -> UVec3 {
    UVec3::new(grid_dim_x(), grid_dim_y(), grid_dim_z())
}

/// The thread's index in its block, along x.
#[inline(always)]
pub fn thread_idx_x() -> u32 {
    backend::index::thread_idx_x()
}

/// The thread's index in its block, along y.
#[inline(always)]
pub fn thread_idx_y() -> u32 {
    backend::index::thread_idx_y()
}

/// The thread's index in its block, along z.
#[inline(always)]
pub fn thread_idx_z() -> u32 {
    backend::index::thread_idx_z()
}

/// The block's index in the grid, along x.
#[inline(always)]
pub fn block_idx_x() -> u32 {
    backend::index::block_idx_x()
}

/// The block's index in the grid, along y.
#[inline(always)]
pub fn block_idx_y() -> u32 {
    backend::index::block_idx_y()
}

/// The block's index in the grid, along z.
#[inline(always)]
pub fn block_idx_z() -> u32 {
    backend::index::block_idx_z()
}

/// Threads per block along x.
#[inline(always)]
pub fn block_dim_x() -> u32 {
    backend::index::block_dim_x()
}

/// Threads per block along y.
#[inline(always)]
pub fn block_dim_y() -> u32 {
    backend::index::block_dim_y()
}

/// Threads per block along z.
#[inline(always)]
pub fn block_dim_z() -> u32 {
    backend::index::block_dim_z()
}

/// Blocks in the grid along x.
#[inline(always)]
pub fn grid_dim_x() -> u32 {
    backend::index::grid_dim_x()
}

/// Blocks in the grid along y.
#[inline(always)]
pub fn grid_dim_y() -> u32 {
    backend::index::grid_dim_y()
}

/// Blocks in the grid along z.
#[inline(always)]
pub fn grid_dim_z() -> u32 {
    backend::index::grid_dim_z()
}

/// The thread's global index in a one-dimensional grid. Wraps beyond 2^32 threads; [`index_1d_wide`] does not.
#[inline(always)]
pub fn index_1d() -> u32 {
    block_idx_x().wrapping_mul(block_dim_x()).wrapping_add(thread_idx_x())
}

/// The thread's global index in a one-dimensional grid, in 64 bits.
#[inline(always)]
pub fn index_1d_wide() -> usize {
    block_idx_x() as usize * block_dim_x() as usize + thread_idx_x() as usize
}

/// The thread's index along x and y, in a two-dimensional grid. Wraps beyond 2^32 threads along an axis.
#[inline(always)]
pub fn index_2d() -> UVec2 {
    index_3d().truncate()
}

/// The thread's index along each axis of the grid. Wraps beyond 2^32 threads along an axis.
#[inline(always)]
pub fn index_3d() -> UVec3 {
    block_idx() * block_dim() + thread_idx()
}

/// The thread's linear index in the grid: blocks in order, x fastest, and the threads of each block in order. Unique in
/// a grid of any shape. Wraps beyond 2^32 threads.
#[inline(always)]
pub fn index() -> u32 {
    let (block, grid) = (block_idx(), grid_dim());
    let block = block.z.wrapping_mul(grid.y).wrapping_add(block.y).wrapping_mul(grid.x).wrapping_add(block.x);
    block.wrapping_mul(block_dim().element_product()).wrapping_add(linear_index())
}

/// Whether this is thread (0, 0, 0) of block (0, 0, 0). It need not be the first to run.
#[inline(always)]
pub fn first() -> bool {
    thread_idx() == UVec3::ZERO && block_idx() == UVec3::ZERO
}

/// Threads per warp: 32 on every device.
#[inline(always)]
pub fn warp_size() -> u32 {
    32
}

/// The thread's linear index in its block, x fastest: threads of equal `linear_index / 32` are one warp.
#[inline(always)]
pub fn linear_index() -> u32 {
    (thread_idx_z() * block_dim_y() + thread_idx_y()) * block_dim_x() + thread_idx_x()
}

/// The thread's index in a one-dimensional block of at most `BLOCK` threads.
///
/// A launch uses the block of the kernel's type, so the check never fails there; it traps if the kernel is started by
/// other means with a larger block. The check tells the compiler that the index is less than `BLOCK`, so it drops the
/// bounds checks of a shared array of that length.
#[inline(always)]
#[track_caller]
pub fn index_in_block<const BLOCK: usize>() -> usize {
    let thread = thread_idx_x() as usize;
    if thread >= BLOCK {
        backend::wrong_block(BLOCK);
    }
    thread
}

/// The block barrier (`__syncthreads`): waits until all threads of the block have arrived, and makes their earlier
/// writes visible to each other. All threads of the block must reach it.
#[inline(always)]
#[track_caller]
pub fn sync_threads() {
    backend::barrier();
}

/// [`sync_threads`], after which only threads with `stays` go on. Returns `stays`. For a block's last barrier:
///
/// ```
/// use cuda_std::prelude::*;
///
/// /// Writes the sum of 256 numbers for each block.
/// #[kernel(max_threads = 256)]
/// pub fn sums(numbers: Global<u32>, sums: GlobalMut<u32>) {
///     let of_warps = shared_array!(u32; 8);
///     let thread = thread::thread_idx_x() as usize;
///     let of_warp = warp::warp_reduce_add(warp::FULL_MASK, numbers.load(thread::index_1d() as usize));
///     if thread % 32 == 0 {
///         of_warps.store(thread / 32, of_warp);
///     }
///     if !thread::sync_threads_or_leave(thread == 0) {
///         return;
///     }
///     let mut sum = 0;
///     for warp in 0..8 {
///         sum += of_warps.load(warp);
///     }
///     sums.store(thread::block_idx_x() as usize, sum);
/// }
/// # fn main() {}
/// ```
///
/// The other threads have left: they must not wait any more, nor access memory that other threads access. On a GPU this
/// is `sync_threads`. The executor does not let the other threads wait, so that they exit and free their stacks: a
/// sum takes a quarter less time in a debug build. There, a wait by a thread that has left is a fault; so is an access
/// of memory, if the launch is checked.
#[inline(always)]
#[track_caller]
pub fn sync_threads_or_leave(stays: bool) -> bool {
    backend::barrier_or_leave(stays);
    stays
}

/// [`sync_threads`] that also returns the number of threads whose `predicate` is not 0.
#[inline(always)]
#[track_caller]
pub fn sync_threads_count(predicate: u32) -> u32 {
    backend::barrier_count(predicate != 0)
}

/// [`sync_threads`] that also returns 1 if `predicate` is not 0 in every thread, else 0.
#[inline(always)]
#[track_caller]
pub fn sync_threads_and(predicate: u32) -> u32 {
    u32::from(backend::barrier_and(predicate != 0))
}

/// [`sync_threads`] that also returns 1 if `predicate` is not 0 in any thread, else 0.
#[inline(always)]
#[track_caller]
pub fn sync_threads_or(predicate: u32) -> u32 {
    u32::from(backend::barrier_or(predicate != 0))
}

/// Orders this thread's earlier writes before its later ones, for all threads of its block (`__threadfence_block`).
#[inline(always)]
pub fn block_fence() {
    backend::fence_block();
}

/// Orders this thread's earlier writes before its later ones, for all threads of the device (`__threadfence`).
#[inline(always)]
pub fn device_fence() {
    backend::fence_device();
}

/// [`device_fence`], which Rust-CUDA also calls a fence for all threads of the grid. It is no barrier: it waits for no
/// other thread.
#[inline(always)]
pub fn grid_fence() {
    backend::fence_device();
}

/// Pauses the thread for about `nanos` nanoseconds, at most a millisecond (`nanosleep`): for a loop that polls what
/// another thread writes.
///
/// In the executor it lets all other threads of the block run first, however short it is. Without it, a loop there that
/// polls what a thread of the same block writes never ends.
#[inline(always)]
#[track_caller]
pub fn nanosleep(nanos: u32) {
    backend::nanosleep(nanos);
}

/// Orders this thread's earlier writes before its later ones, for the host and other devices too
/// (`__threadfence_system`).
#[inline(always)]
pub fn system_fence() {
    backend::fence_system();
}

/// Lets the next grid of the stream start once all blocks of this one have called it or ended
/// (`griddepcontrol.launch_dependents`). If the next kernel has `dependent_launch` in its attribute (see
/// [`kernel`](crate::kernel)), its blocks wait until this grid is done, which hides the launch latency. The memory that
/// the next grid sees does not depend on it.
///
/// For short kernels only. Waiting blocks occupy multiprocessors, unevenly, and stay where they are. On an H200 it
/// slowed consecutive column reductions of 250 us by 12 %, and sped up a sum of 1024 numbers from 1.39 us to 1.13. It
/// does nothing before sm_90.
#[inline(always)]
#[track_caller]
pub fn launch_dependents() {
    backend::launch_dependents();
}
