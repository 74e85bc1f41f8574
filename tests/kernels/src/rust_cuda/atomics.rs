//! Atomic floats and integers of each scope.

use core::sync::atomic::Ordering;

use cuda_std::atomic::{
    AtomicF32, AtomicF64, AtomicI32, AtomicI64, AtomicU32, AtomicU64, BlockAtomicF32, BlockAtomicF64, BlockAtomicI32,
    BlockAtomicU32, BlockAtomicU64, SystemAtomicF32, SystemAtomicF64, SystemAtomicI64, SystemAtomicU32,
};
use cuda_std::prelude::*;

/// Atomic floats in a thread's own memory, as in Rust-CUDA's compile test.
///
/// # Safety
/// `output` has 8 elements for each thread.
#[kernel]
pub unsafe fn atomic_operations(output: *mut f64) {
    let atomic_f32 = AtomicF32::new(3.25);
    let old = atomic_f32.fetch_add(1.0, Ordering::Relaxed);
    let sum = atomic_f32.load(Ordering::Relaxed);
    atomic_f32.store(2.75, Ordering::Relaxed);
    let block = BlockAtomicF32::new(1.5);
    let _ = block.fetch_add(0.5, Ordering::Relaxed);
    let system = SystemAtomicF32::new(0.0);
    let _ = system.fetch_sub(1.0, Ordering::SeqCst);
    let wide = AtomicF64::new(3.125);
    let _ = wide.fetch_add(1.0, Ordering::AcqRel);
    let block_wide = BlockAtomicF64::new(2.5);
    let _ = block_wide.fetch_sub(0.5, Ordering::Acquire);
    let bits = atomic_f32.fetch_and(-0.0, Ordering::Relaxed);
    let _ = atomic_f32.fetch_or(1.0, Ordering::Relaxed);
    let _ = atomic_f32.fetch_xor(-2.0, Ordering::Release);
    let words = [
        old,
        sum,
        block.into_inner(),
        system.load(Ordering::Acquire),
        wide.swap(0.0, Ordering::Relaxed) as f32,
        block_wide.load(Ordering::SeqCst) as f32,
        bits,
        f32::from_bits(atomic_f32.load(Ordering::Relaxed).to_bits() & 0xFF00_0000),
    ];
    let start = thread::index_1d() as usize * words.len();
    for (at, word) in words.into_iter().enumerate() {
        // SAFETY: as promised by the launch.
        unsafe { *output.add(start + at) = f64::from(word) };
    }
}

/// Sums of floats by all threads of the grid. The floats are integers, so that each order gives the same sum.
///
/// # Safety
/// `narrow` and `wide` have an element for the grid, one for the system, and one for each block.
#[kernel]
pub unsafe fn atomic_float_sums(narrow: *mut f32, wide: *mut f64) {
    let own = thread::index_1d() % 100;
    let block = 2 + thread::block_idx_x() as usize;
    // SAFETY: as promised by the launch; they are accessed only as atomics of a scope that covers their threads.
    unsafe {
        let _ = AtomicF32::from_ptr(narrow).fetch_add(own as f32, Ordering::Relaxed);
        let _ = SystemAtomicF32::from_ptr(narrow.add(1)).fetch_sub(own as f32, Ordering::Relaxed);
        let _ = BlockAtomicF32::from_ptr(narrow.add(block)).fetch_add(1.0, Ordering::AcqRel);
        let _ = AtomicF64::from_ptr(wide).fetch_add(f64::from(own) * 1e12, Ordering::Relaxed);
        let _ = SystemAtomicF64::from_ptr(wide.add(1)).fetch_sub(f64::from(own), Ordering::SeqCst);
        let _ = BlockAtomicF64::from_ptr(wide.add(block)).fetch_add(0.5, Ordering::Release);
    }
}

/// Every operation on integers, by all threads of the grid. `words` has 9 elements, then one for each block.
///
/// # Safety
/// `words` and `wide` have 9 elements, then one for each block. The fifth is all ones.
#[kernel]
pub unsafe fn atomic_integers(words: *mut u32, wide: *mut u64) {
    let own = thread::index_1d();
    let block = 9 + thread::block_idx_x() as usize;
    // SAFETY: as promised by the launch; they are accessed only as atomics of a scope that covers their threads.
    unsafe {
        let _ = AtomicU32::from_ptr(words).fetch_add(own, Ordering::Relaxed);
        let _ = SystemAtomicU32::from_ptr(words.add(1)).fetch_sub(1, Ordering::Acquire);
        let _ = AtomicI32::from_ptr(words.add(2).cast()).fetch_min(-(own as i32), Ordering::Release);
        let _ = AtomicI32::from_ptr(words.add(3).cast()).fetch_max(own as i32 - 5, Ordering::AcqRel);
        let _ = AtomicU32::from_ptr(words.add(4)).fetch_and(!(1 << (own % 7)), Ordering::Relaxed);
        let _ = AtomicU32::from_ptr(words.add(5)).fetch_or(1 << (own % 29), Ordering::Relaxed);
        let _ = AtomicU32::from_ptr(words.add(6)).fetch_xor(own, Ordering::SeqCst);
        let _ = BlockAtomicI32::from_ptr(words.add(block).cast()).fetch_add(2, Ordering::Relaxed);

        let _ = AtomicU64::from_ptr(wide).fetch_add(u64::from(own) << 33, Ordering::Relaxed);
        let _ = SystemAtomicI64::from_ptr(wide.add(1).cast()).fetch_sub(i64::from(own), Ordering::AcqRel);
        let _ = AtomicI64::from_ptr(wide.add(2).cast()).fetch_min(-i64::from(own), Ordering::Relaxed);
        let _ = AtomicI64::from_ptr(wide.add(3).cast()).fetch_max(i64::from(own) << 35, Ordering::Relaxed);
        let _ = AtomicU64::from_ptr(wide.add(4)).fetch_and(!(1 << (own % 60)), Ordering::Relaxed);
        let _ = AtomicU64::from_ptr(wide.add(5)).fetch_or(1 << (own % 60), Ordering::Relaxed);
        let _ = AtomicU64::from_ptr(wide.add(6)).fetch_xor(u64::from(own) << 30, Ordering::Relaxed);
        let _ = BlockAtomicU64::from_ptr(wide.add(block)).fetch_add(1 << 32, Ordering::Relaxed);

        // Each thread takes the next number: a lock-free increment.
        let counter = AtomicU32::from_ptr(words.add(7));
        let mut seen = counter.load(Ordering::Relaxed);
        while let Err(other) = counter.compare_exchange(seen, seen + 1, Ordering::AcqRel, Ordering::Relaxed) {
            seen = other;
        }
        // The last number that is swapped out is the one that nobody has taken.
        let _ = AtomicU64::from_ptr(wide.add(7)).swap(7, Ordering::Relaxed);
    }
}

/// Counters that start again at a bound, by all threads of the grid.
///
/// # Safety
/// `counters` has 3 elements, then one for each block, and `private` one for each thread.
#[kernel]
pub unsafe fn counters_that_wrap(counters: *mut u32, private: *mut u32) {
    let block = 3 + thread::block_idx_x() as usize;
    // SAFETY: as promised by the launch; they are accessed only as atomics of a scope that covers their threads.
    unsafe {
        let _ = AtomicU32::from_ptr(counters).fetch_inc(17, Ordering::Relaxed);
        let _ = SystemAtomicU32::from_ptr(counters.add(1)).fetch_dec(137, Ordering::AcqRel);
        let _ = AtomicU32::from_ptr(counters.add(2)).fetch_dec(137, Ordering::Relaxed);
        let _ = BlockAtomicU32::from_ptr(counters.add(block)).fetch_inc(9, Ordering::Relaxed);
        let _ = BlockAtomicU32::from_ptr(counters.add(block)).fetch_inc(9, Ordering::Release);
    }
    // In local memory, where PTX has no atomic operations: the numbers seen, as digits.
    let own = AtomicU32::new(17);
    let mut digits = 0;
    for step in 0..5 {
        let seen = match step {
            0 | 1 => own.fetch_inc(17, Ordering::Relaxed),
            _ => own.fetch_dec(17, Ordering::Relaxed),
        };
        digits = digits * 20 + seen;
    }
    // SAFETY: as promised by the launch.
    unsafe { *private.add(thread::index_1d() as usize) = digits };
}

/// The language's own atomic types in a thread's variables, as in Rust-CUDA's compile test.
///
/// # Safety
/// `output` has 8 elements for each thread.
#[kernel]
pub unsafe fn core_atomics_of_a_thread(output: *mut u32) {
    let i = thread::index_1d() as usize;
    let (narrow, wide) = (core::sync::atomic::AtomicU32::new(7), core::sync::atomic::AtomicUsize::new(i));
    let (order, failure) = (Ordering::AcqRel, Ordering::Relaxed);
    let swapped = narrow.compare_exchange(7, i as u32, order, failure).unwrap_or(99);
    let kept = narrow.compare_exchange(1 << 20, 5, order, failure).unwrap_or_else(|other| other + 1);
    let wide_kept = wide.compare_exchange(3, 1 << 40, Ordering::Relaxed, failure).is_err();
    let _ = narrow.fetch_max(20, Ordering::Relaxed);
    let _ = wide.fetch_add(2, Ordering::Relaxed);
    let (narrow, wide) = (narrow.load(Ordering::Relaxed), wide.load(Ordering::Relaxed));
    let words = [swapped, kept, u32::from(wide_kept), narrow, wide as u32, (wide >> 32) as u32];
    for (at, word) in words.into_iter().enumerate() {
        // SAFETY: as promised by the launch.
        unsafe { *output.add(8 * i + at) = word };
    }
}

/// Atomics of views, which are safe. Counts the numbers with each remainder.
#[kernel]
pub fn atomics_of_views(numbers: Global<u32>, counts: GlobalMut<u32>) {
    let i = thread::index_1d() as usize;
    if i < numbers.len() {
        let remainder = numbers.load(i) as usize % counts.len();
        let _ = AtomicU32::of(&counts, remainder).fetch_add(1, Ordering::Relaxed);
    }
}

/// An atomic with block scope that several blocks use.
#[kernel]
pub fn too_narrow_a_scope(counter: GlobalMut<u32>) {
    let _ = BlockAtomicU32::of(&counter, 0).fetch_add(1, Ordering::Relaxed);
}
