//! Kernels that try each function of `cuda_std`. Their output depends only on these functions, so that a GPU and the
//! executor can be compared word by word.
#![no_std]

use cuda_std::atomic::{self, Atomic, Scope};
use cuda_std::prelude::*;
use cuda_std::shared::{SharedAtomic, SharedAtomicInteger, dynamic_shared};
use cuda_std::warp::{
    FULL_MASK, WarpReduceValue, warp_shuffle_down, warp_shuffle_idx, warp_shuffle_up, warp_shuffle_xor, warp_vote_all,
    warp_vote_any, warp_vote_ballot,
};
use cuda_std::{bits, float, warp as warps};

pub mod operators;
pub mod rust_cuda;

/// The number of words that [`indices()`] writes for each thread.
pub const INDEX_WORDS: usize = 14;

/// All indices and dimensions of a thread.
#[kernel]
pub fn indices(out: GlobalMut<u32>) {
    let threads_of_block = thread::block_dim_x() * thread::block_dim_y() * thread::block_dim_z();
    let block = (thread::block_idx_z() * thread::grid_dim_y() + thread::block_idx_y()) * thread::grid_dim_x()
        + thread::block_idx_x();
    let first = (block * threads_of_block + thread::linear_index()) as usize * INDEX_WORDS;
    let words = [
        thread::thread_idx_x(),
        thread::thread_idx_y(),
        thread::thread_idx_z(),
        thread::block_idx_x(),
        thread::block_idx_y(),
        thread::block_idx_z(),
        thread::block_dim_x(),
        thread::block_dim_y(),
        thread::block_dim_z(),
        thread::grid_dim_x(),
        thread::grid_dim_y(),
        thread::grid_dim_z(),
        warps::lane_id(),
        thread::index_1d(),
    ];
    let mut i = 0;
    while i < INDEX_WORDS {
        out.store(first + i, words[i]);
        i += 1;
    }
}

/// Every shuffle of a value, in segments of `width` lanes, with the operand `operand`: values and predicates, 8 words
/// for each thread of a block of 64.
#[kernel(instances = [u32, i32, f32, u64, f64], block = 64)]
pub fn shuffles<T: Element>(values: Global<T>, out: GlobalMut<T>, in_range: GlobalMut<u32>, operand: u32, width: u32) {
    let t = thread::thread_idx_x() as usize;
    let own = values.load(t);
    let all = [
        warp_shuffle_down(FULL_MASK, own, operand, width),
        warp_shuffle_up(FULL_MASK, own, operand, width),
        warp_shuffle_idx(FULL_MASK, own, operand, width),
        warp_shuffle_xor(FULL_MASK, own, operand, width),
    ];
    let mut i = 0;
    while i < 4 {
        out.store(t * 4 + i, all[i].0);
        in_range.store(t * 4 + i, u32::from(all[i].1));
        i += 1;
    }
}

/// The number of words that [`votes()`] writes for each thread.
pub const VOTE_WORDS: usize = 15;

/// Every vote and reduction over the upper and over the lower half of each warp, in a block of 64.
#[kernel(block = 64)]
pub fn votes(values: Global<u32>, out: GlobalMut<u32>) {
    let t = thread::thread_idx_x() as usize;
    let own = values.load(t);
    let half = if warps::lane_id() < 16 { 0x0000_ffff } else { 0xffff_0000 };
    let words = [
        u32::from(warp_vote_all(half, own & 1 == 1)),
        u32::from(warp_vote_any(half, own & 1 == 1)),
        warp_vote_ballot(half, own & 1 == 1),
        u32::reduce_add(half, own),
        u32::reduce_min(half, own),
        u32::reduce_max(half, own),
        u32::reduce_and(half, own),
        u32::reduce_or(half, own),
        u32::reduce_xor(half, own),
        i32::reduce_add(half, own as i32) as u32,
        i32::reduce_min(half, own as i32) as u32,
        i32::reduce_max(half, own as i32) as u32,
        i32::reduce_and(half, own as i32) as u32,
        i32::reduce_or(half, own as i32) as u32,
        i32::reduce_xor(half, own as i32) as u32,
    ];
    warps::sync_warp(half);
    let mut i = 0;
    while i < VOTE_WORDS {
        out.store(t * VOTE_WORDS + i, words[i]);
        i += 1;
    }
    // Which lanes are active depends on the scheduler, but the calling lane must be.
    if warps::activemask() >> warps::lane_id() & 1 == 0 {
        out.store(t * VOTE_WORDS, u32::MAX);
    }
}

/// The block's barrier in its three counting forms, over blocks of 96 threads.
#[kernel(block = 96)]
pub fn barriers(values: Global<u32>, out: GlobalMut<u32>) {
    let block = thread::block_idx_x() as usize;
    let t = thread::thread_idx_x() as usize;
    let odd = values.load(block * 96 + t) & 1;
    let words = [thread::sync_threads_count(odd), thread::sync_threads_and(odd), thread::sync_threads_or(odd)];
    let mut i = 0;
    while i < 3 {
        out.store((block * 96 + t) * 3 + i, words[i]);
        i += 1;
    }
}

/// A block's last barrier, over blocks of 96 threads, of which the first 40 stay: they read what the others wrote.
#[kernel(block = 96)]
pub fn last_barrier(values: Global<u32>, out: GlobalMut<u32>) {
    let shared = shared_array![u32; 96];
    let block = thread::block_idx_x() as usize;
    let t = thread::index_in_block::<96>();
    shared.store(t, values.load(block * 96 + t));
    if thread::sync_threads_or_leave(t < 40) {
        out.store(block * 40 + t, shared.load(95 - t) ^ shared.load(t + 40));
    }
}

/// Shared memory in all its forms: reverses a block's 64 elements through an array, a tile, vectors and dynamic memory.
#[kernel(instances = [u8, u16, f32, u64, f64], block = 64)]
pub fn shared_memory<T: Element>(input: Global<T>, out: GlobalMut<T>) {
    let array = shared_array![T; 64];
    let volatile = shared_array![T; 64];
    let tile = tile::<T>();
    let dynamic = dynamic_shared::<T>();
    let t = thread::index_in_block::<64>();
    let own = input.load(t);
    array.store(t, own);
    volatile.store_volatile(t, own);
    tile.store(t / 8, t % 8, own);
    dynamic.store(t, own);
    thread::sync_threads();
    out.store(t, array.load(63 - t));
    out.store(64 + t, volatile.load_volatile(63 - t));
    out.store(128 + t, tile.load(t % 8, t / 8));
    out.store(192 + t, dynamic.load(dynamic.len() - 1 - t));
    let vectors = 64 / T::Vector::LEN;
    thread::sync_threads();
    if t < vectors {
        let vector = array.load_vector(t * T::Vector::LEN);
        volatile.store_vector((vectors - 1 - t) * T::Vector::LEN, vector);
    }
    thread::sync_threads();
    out.store(256 + t, volatile.load(t));
}

#[inline(always)]
fn tile<T: Element>() -> SharedTile<T, 8, 8, 1> {
    const SIDE: usize = 8;
    shared_tile![T; SIDE x SIDE + 1]
}

/// Vectors in global memory: reverses 16-byte vectors.
#[kernel(instances = [i8, u16, f32, i64], block = 64)]
pub fn vectors<T: Element>(input: Global<T>, out: GlobalMut<T>) {
    let t = thread::index_1d_wide();
    let vectors = input.len() / T::Vector::LEN;
    if t < vectors {
        out.store_vector(t * T::Vector::LEN, input.load_vector((vectors - 1 - t) * T::Vector::LEN));
    }
}

/// Every atomic operation, by all threads of the grid on the same elements. The first element of `out` counts, the next
/// three are a sum, a minimum and a maximum, and the fifth counts by compare-and-swap. From the ninth on, each block
/// has its own sum.
#[kernel(instances = [u32, i32, u64, i64], block = 64)]
pub fn atomics<T: Element + Atomic + core::ops::Add<Output = T>>(values: Global<T>, out: GlobalMut<T>, one: T) {
    let own = values.load(thread::index_1d_wide());
    let _ = T::fetch_add(&out, 0, one, Scope::Device);
    let _ = T::fetch_add(&out, 1, own, Scope::System);
    let _ = T::fetch_min(&out, 2, own, Scope::Device);
    let _ = T::fetch_max(&out, 3, own, Scope::Device);
    let mut seen = T::default();
    loop {
        let before = T::compare_and_swap(&out, 4, seen, seen + one, Scope::Device);
        if before == seen {
            break;
        }
        seen = before;
    }
    // Each block has its own element here.
    let _ = T::fetch_add(&out, 8 + thread::block_idx_x() as usize, own, Scope::Block);
}

/// The number of elements that [`shared_atomics()`] writes for each block.
pub const SHARED_ATOMICS: usize = 10;

/// Every atomic operation on integers in shared memory, by all threads of a block on the same elements. The values that
/// exchanges return are summed: with the last one, they are all values that were stored. Takes dynamic shared memory
/// for one element.
#[kernel(instances = [u32, i32, u64, i64], block = 64)]
pub fn shared_atomics<T: Element + SharedAtomicInteger + core::ops::Add<Output = T>>(
    values: Global<T>,
    out: GlobalMut<T>,
    one: T,
) {
    let array = shared_array![T; SHARED_ATOMICS];
    let dynamic = dynamic_shared::<T>();
    let (t, block) = (thread::thread_idx_x() as usize, thread::block_idx_x() as usize);
    let own = values.load(block * 64 + t);
    if t < SHARED_ATOMICS {
        // Minimum, maximum and AND start with an element.
        array.store(t, if (1..=3).contains(&t) { values.load(block * 64) } else { T::default() });
    }
    if t == 0 {
        dynamic.store(0, T::default());
    }
    thread::sync_threads();
    array.fetch_add(0, own);
    array.fetch_min(1, own);
    array.fetch_max(2, own);
    array.fetch_and(3, own);
    array.fetch_or(4, own);
    array.fetch_xor(5, own);
    let mut seen = T::default();
    loop {
        let before = array.compare_and_swap(6, seen, seen + one);
        if before == seen {
            break;
        }
        seen = before;
    }
    array.fetch_add(8, array.exchange(7, own));
    dynamic.fetch_add(0, one);
    thread::sync_threads();
    if t == 0 {
        array.fetch_add(8, array.exchange(7, T::default()));
        array.store(9, dynamic.load(0));
    }
    thread::sync_threads();
    if t < SHARED_ATOMICS {
        out.store(block * SHARED_ATOMICS + t, array.load(t));
    }
}

/// Atomic float sums of integers in shared memory, which are exact in any order, and exchanges.
#[kernel(instances = [f32, f64], block = 64)]
pub fn shared_float_atomics<T: Element + SharedAtomic>(values: Global<T>, out: GlobalMut<T>) {
    let array = shared_array![T; 2];
    let (t, block) = (thread::thread_idx_x() as usize, thread::block_idx_x() as usize);
    if t < 2 {
        array.store(t, T::default());
    }
    thread::sync_threads();
    array.fetch_add(1, array.exchange(0, values.load(block * 64 + t)));
    thread::sync_threads();
    if t == 0 {
        array.fetch_add(1, array.exchange(0, T::default()));
        out.store(block, array.load(1));
    }
}

/// A counter that wraps after `last`, so that every ticket is drawn equally often.
#[kernel(block = 64)]
pub fn tickets(counter: GlobalMut<u32>, drawn: GlobalMut<u32>, last: u32) {
    let ticket = atomic::inc(&counter, 0, last, Scope::Device);
    let _ = u32::fetch_add(&drawn, ticket as usize, 1, Scope::Device);
}

/// All conversions between `f32` and the half types; `bits` has every 16-bit pattern.
#[kernel(block = 64)]
pub fn half_conversions(bits: Global<u16>, floats: Global<f32>, out: GlobalMut<u32>) {
    let i = thread::index_1d_wide();
    if i >= bits.len() {
        return;
    }
    let pattern = bits.load(i);
    out.store(4 * i, float::f32_from_f16(half::f16::from_bits(pattern)).to_bits());
    out.store(4 * i + 1, float::f32_from_bf16(half::bf16::from_bits(pattern)).to_bits());
    out.store(4 * i + 2, u32::from(float::f16_from_f32(floats.load(i)).to_bits()));
    out.store(4 * i + 3, u32::from(float::bf16_from_f32(floats.load(i)).to_bits()));
}

/// The operations on the bytes of words. `words` are arbitrary; both halves of each of `halves` are below 0x7C00.
#[kernel(block = 64)]
pub fn bytes_of_words(words: Global<u32>, halves: Global<u32>, out: GlobalMut<u32>) {
    let i = thread::index_1d_wide();
    if i + 1 >= words.len() {
        return;
    }
    let (a, b) = (words.load(i), words.load(i + 1));
    let (c, d) = (halves.load(i), halves.load(i + 1));
    out.store(6 * i, bits::min_u16x2(c, d));
    out.store(6 * i + 1, bits::max_u16x2(c, d));
    out.store(6 * i + 2, bits::add_bytes(a, b));
    out.store(6 * i + 3, bits::add_signed_bytes(a, b as i32) as u32);
    out.store(6 * i + 4, bits::permute_bytes(a, b, c));
    out.store(6 * i + 5, bits::funnel_shift(a, b, c));
}

/// Volatile accesses to global memory and the three fences: they compile and keep values. Blocks exchange no data.
#[kernel(block = 64)]
pub fn volatile_and_fences(input: Global<f32>, out: GlobalMut<f32>) {
    let i = thread::index_1d_wide();
    out.store_volatile(i, input.load(i));
    thread::block_fence();
    thread::device_fence();
    thread::system_fence();
    out.store_volatile(i, out.load_volatile(i) + 1.0);
}

/// Scalars of every width, in an order in which a wrong offset changes the result.
#[kernel(block = 1)]
pub fn scalars(out: GlobalMut<u64>, a: u8, b: u64, c: i16, d: f32, e: i32, f: f64, g: usize) {
    out.store(0, u64::from(a));
    out.store(1, b);
    out.store(2, c as u64);
    out.store(3, u64::from(d.to_bits()));
    out.store(4, e as u64);
    out.store(5, f.to_bits());
    out.store(6, g as u64);
}

/// Rust-CUDA's signature: slices and a pointer.
///
/// # Safety
/// `c` has at least `a.len()` elements.
#[kernel]
pub unsafe fn raw_parameters(a: &[f32], b: &[f32], c: *mut f32, n: usize) {
    let i = thread::index_1d() as usize;
    if i < n {
        // SAFETY: as promised by the launch.
        unsafe { *c.add(i) = a[i] + b[i] };
    }
}

/// Stores at `index`, which may be past the end of the view.
#[kernel(block = 32)]
pub fn out_of_bounds(out: GlobalMut<u32>, index: usize) {
    out.store(index, thread::thread_idx_x());
}
