//! Indices out of bounds, and misaligned addresses.

use cuda_std::bits::{max_u16x2, min_u16x2};
use cuda_std::prelude::*;
use cuda_std::shared::dynamic_shared;

use super::Expected::Fault;
use super::{Case, case, map};

pub fn cases() -> Vec<Case> {
    vec![
        case!(no_guard, Fault("of a view of global memory of length 100"), |gpu| { map!(gpu, no_guard, 2, 64, 100) }),
        case!(off_by_one, Fault("index 100 of a view"), |gpu| map!(gpu, off_by_one, 1, 64, 100)),
        case!(unrolled_without_a_bounds_check, Fault("of length 1000"), |gpu| {
            map!(gpu, unrolled_without_a_bounds_check, 4, 64, 1000)
        }),
        case!(beyond_the_tile, Fault("of a shared array of length 64"), |gpu| map!(gpu, beyond_the_tile, 1, 64, 64)),
        case!(before_the_start, Fault("of length 64"), |gpu| map!(gpu, before_the_start, 1, 64, 64)),
        case!(vector_at_the_end, Fault("a vector that begins"), |gpu| map!(gpu, vector_at_the_end, 1, 32, 100)),
        case!(misaligned_vector_load, Fault("which is not at a multiple of 16 bytes"), |gpu| map!(
            gpu,
            misaligned_vector_load,
            1,
            16,
            128
        )),
        case!(misaligned_shared_vector, Fault("multiple of 16"), |gpu| {
            map!(gpu, misaligned_shared_vector, 1, 16, 128)
        }),
        case!(misaligned_vector_store, Fault("which is not at a multiple of 16 bytes"), |gpu| {
            map!(gpu, misaligned_vector_store, 1, 16, 128)
        }),
        case!(misaligned_load_of_four, Fault("multiple of 16"), |gpu| map!(gpu, misaligned_load_of_four, 1, 16, 128)),
        case!(two_words_at_the_end, Fault("two words that begin"), |gpu| {
            let (input, mut output) = (gpu.zeroed::<u16>(100)?, gpu.zeroed::<u32>(100)?);
            let arguments = two_words_at_the_end::Args { input: input.view(), output: output.view_mut() };
            gpu.launch(two_words_at_the_end::handle().with_block(32), 1, arguments)
        }),
        case!(word_at_the_end, Fault("a word that begins"), |gpu| map!(gpu, word_at_the_end, 1, 32, 99)),
        case!(stored_vector_at_the_end, Fault("a vector that begins"), |gpu| {
            map!(gpu, stored_vector_at_the_end, 1, 32, 100)
        }),
        case!(vectors_at_the_end, Fault("a vector that begins"), |gpu| map!(gpu, vectors_at_the_end, 1, 16, 100)),
        case!(volatile_beyond_the_tile, Fault("of a shared array of length 64"), |gpu| {
            map!(gpu, volatile_beyond_the_tile, 1, 65, 65)
        }),
        case!(volatile_load_beyond_the_tile, Fault("of a shared array of length 64"), |gpu| {
            map!(gpu, volatile_load_beyond_the_tile, 1, 64, 64)
        }),
        case!(beyond_the_dynamic_shared_memory, Fault("of dynamic shared memory of length 64"), |gpu| {
            let mut output = gpu.zeroed::<f32>(65)?;
            let kernel = beyond_the_dynamic_shared_memory::handle().with_block(65).with_dynamic_shared(256);
            gpu.launch(kernel, 1, beyond_the_dynamic_shared_memory::Args { output: output.view_mut() })
        }),
        case!(partial_vector_at_the_end, Fault("index 100 of a view of global memory of length 100"), |gpu| {
            map!(gpu, partial_vector_at_the_end, 1, 1, 100)
        }),
        case!(shared_word_at_the_end, Fault("a word that begins"), |gpu| map!(gpu, shared_word_at_the_end, 1, 1, 1)),
        case!(high_half_too_large, Fault("are not below 0x7c00"), |gpu| map!(gpu, high_half_too_large, 1, 32, 32)),
        case!(low_half_too_large, Fault("are not below 0x7c00"), |gpu| map!(gpu, low_half_too_large, 1, 32, 32)),
        case!(a_block_larger_than_its_array, Fault("larger than the 64 threads"), |gpu| {
            map!(gpu, a_block_larger_than_its_array, 1, 128, 128)
        }),
    ]
}

/// The last block has more threads than elements.
#[kernel]
fn no_guard(input: Global<f32>, output: GlobalMut<f32>) {
    let i = thread::index_1d_wide();
    output.store(i, input.load(i));
}

/// The last index is off by one.
#[kernel]
fn off_by_one(input: Global<f32>, output: GlobalMut<f32>) {
    let mut i = thread::thread_idx_x() as usize;
    while i <= input.len() {
        output.store(i, input.load(i));
        i += 64;
    }
}

/// Seed 000's unrolled loads: only the first of them is bounds-checked.
#[kernel]
fn unrolled_without_a_bounds_check(input: Global<f32>, output: GlobalMut<f32>) {
    let i = thread::block_idx_x() as usize * 64 * 4 + thread::thread_idx_x() as usize;
    if i + 64 < input.len() {
        output.store(i, input.load(i) + input.load(i + 64) + input.load(i + 128) + input.load(i + 192));
    }
}

/// Threads of the upper half also add, past the end of the array.
#[kernel]
fn beyond_the_tile(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; 64];
    let thread = thread::thread_idx_x() as usize;
    tile.store(thread, input.load(thread));
    thread::sync_threads();
    output.store(thread, tile.load(thread) + tile.load(thread + 32));
}

/// Stores one element past the end of the array.
#[kernel]
fn volatile_beyond_the_tile(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; 64];
    let thread = thread::thread_idx_x() as usize;
    tile.store_volatile(thread, input.load(thread));
    output.store(thread, tile.load_volatile(thread % 64));
}

/// Loads one element past the end of the array.
#[kernel]
fn volatile_load_beyond_the_tile(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; 64];
    let thread = thread::thread_idx_x() as usize;
    tile.store_volatile(thread, input.load(thread));
    thread::sync_threads();
    output.store(thread, tile.load_volatile(thread + 1));
}

/// Thread 64 accesses dynamic shared memory of 64 elements.
#[kernel]
fn beyond_the_dynamic_shared_memory(output: GlobalMut<f32>) {
    let memory = dynamic_shared::<f32>();
    let thread = thread::thread_idx_x() as usize;
    memory.store(thread, 1.0);
    output.store(thread, memory.load(thread));
}

/// The third element of the vector is outside the view.
#[kernel]
fn partial_vector_at_the_end(input: Global<f32>, output: GlobalMut<f32>) {
    // SAFETY: none: that is the mistake. The executor stops before the access.
    let vector = unsafe { input.load_partial_unchecked(98, 1, 3) };
    output.store(0, vector.get(1));
}

/// The array ends inside the word.
#[kernel]
fn shared_word_at_the_end(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![u8; 66];
    tile.store_word(64, input.load(0) as u32);
    output.store(0, f32::from(tile.load(64)));
}

/// The first element has no left neighbour.
#[kernel]
fn before_the_start(input: Global<f32>, output: GlobalMut<f32>) {
    let i = thread::index_1d_wide();
    output.store(i, input.load(i.wrapping_sub(1)));
}

/// The last vector is not whole.
#[kernel]
fn vector_at_the_end(input: Global<f32>, output: GlobalMut<f32>) {
    let i = 4 * thread::index_1d_wide();
    output.store(i % 100, input.load_vector(i).get(0));
}

/// The last vector is not whole, in a store.
#[kernel]
fn stored_vector_at_the_end(input: Global<f32>, output: GlobalMut<f32>) {
    let i = 4 * thread::index_1d_wide();
    output.store_vector(i, <f32 as Element>::Vector::splat(input.load(i % 100)));
}

/// The last vector breaks the contract of an unchecked load of several vectors.
#[kernel]
fn vectors_at_the_end(input: Global<f32>, output: GlobalMut<f32>) {
    let i = 4 * thread::index_1d_wide();
    // SAFETY: none: that is the mistake. The executor stops before the access.
    let vectors = unsafe { input.load_vectors_unchecked::<3>(i, 20) };
    output.store(i, vectors[2].get(0));
}

/// Vectors must be 16-byte aligned.
#[kernel]
fn misaligned_vector_load(input: Global<f32>, output: GlobalMut<f32>) {
    let i = 4 * thread::index_1d_wide();
    output.store_vector(i, input.load_vector(i + 2));
}

/// Vectors must be 16-byte aligned in stores, too.
#[kernel]
fn misaligned_vector_store(input: Global<f32>, output: GlobalMut<f32>) {
    let i = 4 * thread::index_1d_wide();
    output.store_vector(i + 2, input.load_vector(i));
}

/// Vectors must be 16-byte aligned in shared memory, too.
#[kernel]
fn misaligned_shared_vector(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; 128];
    let i = 4 * thread::thread_idx_x() as usize;
    tile.store_vector(i + 1, input.load_vector(i));
    output.store_vector(i, input.load_vector(i));
}

/// Breaks the contract of an unchecked load.
#[kernel]
fn misaligned_load_of_four(input: Global<f32>, output: GlobalMut<f32>) {
    let i = 4 * thread::index_1d_wide();
    // SAFETY: none: that is the mistake. The executor stops before the access.
    let four = unsafe { input.load_four_unchecked(i + 1) };
    output.store(i, four[0]);
}

/// The last word is in the view, but no word follows it.
#[kernel]
fn two_words_at_the_end(input: Global<u16>, output: GlobalMut<u32>) {
    let i = 36 + 2 * thread::thread_idx_x() as usize;
    // SAFETY: none: that is the mistake. The executor stops before the access.
    let word = unsafe { input.load_inner_word_unchecked(i) };
    output.store(i, word);
}

/// Only half of the last word is inside the view.
#[kernel]
fn word_at_the_end(input: Global<f32>, output: GlobalMut<f32>) {
    let i = 36 + 2 * thread::thread_idx_x() as usize;
    // SAFETY: none: that is the mistake. The executor stops before the access.
    let word: u64 = unsafe { input.load_aligned_word_unchecked(i) };
    output.store(i, f32::from_bits(word as u32));
}

/// The upper half of one word is not a finite `f16`.
#[kernel]
fn high_half_too_large(input: Global<f32>, output: GlobalMut<f32>) {
    let thread = thread::thread_idx_x() as usize;
    let least = min_u16x2(1, 0x7C00_0000);
    output.store(thread, input.load(thread) + least as f32);
}

/// The lower half of the other word is not a finite `f16`.
#[kernel]
fn low_half_too_large(input: Global<f32>, output: GlobalMut<f32>) {
    let thread = thread::thread_idx_x() as usize;
    let greatest = max_u16x2(0x7C00, 1);
    output.store(thread, input.load(thread) + greatest as f32);
}

/// An array of 64 elements for a block of 128 threads.
#[kernel]
fn a_block_larger_than_its_array(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; 64];
    let thread = thread::index_in_block::<64>();
    tile.store(thread, input.load(thread));
    output.store(thread, tile.load(thread));
}
