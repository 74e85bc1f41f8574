//! Indices and shapes, barriers and fences, sleeping threads.

use core::sync::atomic::Ordering;

use cuda_std::atomic::AtomicU32;
use cuda_std::prelude::*;
use cuda_std::thread::{UVec2, UVec3};

/// The number of words that [`thread_indexing`](fn@thread_indexing) writes for each thread.
pub const INDEXING_WORDS: usize = 21;

/// All indices and shapes, as vectors.
///
/// # Safety
/// `output` has [`INDEXING_WORDS`] words for each thread.
#[kernel]
pub unsafe fn thread_indexing(output: *mut u32) {
    let UVec2 { x, y } = thread::index_2d();
    let UVec3 { x: i, y: j, z: k } = thread::index_3d();
    let vectors = [thread::thread_idx(), thread::block_idx(), thread::block_dim(), thread::grid_dim()];
    let own = [x, y, i, j, k, u32::from(thread::first()), thread::warp_size(), thread::index(), thread::index_1d()];
    let start = thread::index() as usize * INDEXING_WORDS;
    for (at, vector) in vectors.into_iter().enumerate() {
        for (axis, word) in vector.to_array().into_iter().enumerate() {
            // SAFETY: as promised by the launch: every thread has an index of its own.
            unsafe { *output.add(start + 3 * at + axis) = word };
        }
    }
    for (at, word) in own.into_iter().enumerate() {
        // SAFETY: as above.
        unsafe { *output.add(start + 12 + at) = word };
    }
}

/// Every index and dimension along one axis.
///
/// # Safety
/// `output` has a word for each thread.
#[kernel]
pub unsafe fn thread_functions(output: *mut u32) {
    let own = thread::block_idx_x() * thread::block_dim_x() + thread::thread_idx_x();
    thread::sync_threads();
    // SAFETY: as promised by the launch.
    unsafe { *output.add(own as usize) = own ^ thread::grid_dim_x() };
}

/// The barriers and the fences: each thread reads what its neighbour has written.
///
/// # Safety
/// `memory` has 2 words for each of the block's threads.
#[kernel]
pub unsafe fn thread_sync(memory: *mut u32) {
    let (t, threads) = (thread::thread_idx_x() as usize, thread::block_dim_x() as usize);
    // SAFETY: as promised by the launch; a barrier lies between the threads' accesses.
    unsafe { *memory.add(t) = t as u32 * 3 };
    thread::device_fence();
    thread::grid_fence();
    thread::system_fence();
    thread::sync_threads();
    let odd =
        thread::sync_threads_count(t as u32 & 1) + 1000 * thread::sync_threads_and(1) + thread::sync_threads_or(0);
    // SAFETY: as above.
    unsafe { *memory.add(threads + t) = *memory.add((t + 1) % threads) + odd };
}

/// A lock with which the threads of all blocks add to a number that is not atomic. They sleep while the lock is taken.
///
/// # Safety
/// `lock` and `sum` have one word, of which the first is 0.
#[kernel]
pub unsafe fn nanosleep_lock(lock: *mut u32, sum: *mut u32) {
    // SAFETY: as promised by the launch; it is accessed only as an atomic.
    let lock = unsafe { AtomicU32::from_ptr(lock) };
    let mut nanos = 8;
    while lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
        thread::nanosleep(nanos);
        nanos = if nanos < 256 { 2 * nanos } else { nanos };
    }
    thread::device_fence();
    // SAFETY: the lock excludes other threads.
    unsafe { sum.write_volatile(sum.read_volatile() + thread::thread_idx_x()) };
    thread::device_fence();
    lock.store(0, Ordering::Release);
}
