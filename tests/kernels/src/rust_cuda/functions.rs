//! Functions of other crates, `gpu_only`, `externally_visible`, assertions, target features.

use cuda_std::prelude::*;
use cuda_std::{address_space, externally_visible, gpu_only};

/// A checksum of bytes by a crate that was not written for GPUs, like `sha2` in Rust-CUDA's example.
///
/// # Safety
/// `output` has a word for each `len` bytes of `bytes`.
#[kernel]
pub unsafe fn checksum_by_a_crate(bytes: &[u8], output: *mut u32, len: usize) {
    let i = thread::index_1d() as usize;
    if (i + 1) * len <= bytes.len() {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&bytes[i * len..(i + 1) * len]);
        // SAFETY: as promised by the launch.
        unsafe { *output.add(i) = hasher.finalize() };
    }
}

/// A function without code for the CPU.
#[gpu_only]
#[inline(always)]
fn only_there(x: u32) -> u32 {
    x + 1
}

/// Calls a function without code for the CPU.
///
/// # Safety
/// `output` has a word for each thread.
#[kernel]
pub unsafe fn calls_gpu_only(output: *mut u32) {
    let i = thread::index_1d();
    // SAFETY: as promised by the launch.
    unsafe { *output.add(i as usize) = only_there(i) };
}

/// A function with a fixed name in the PTX.
#[externally_visible]
#[unsafe(no_mangle)]
pub extern "C" fn visible_from_elsewhere(x: u32) -> u32 {
    x.rotate_left(5) ^ 0x5A
}

/// A table in constant memory.
#[address_space(constant)]
static TABLE: [u32; 4] = [2, 3, 5, 7];

/// Calls the visible function, and reads the table.
///
/// # Safety
/// `output` has a word for each thread.
#[kernel]
pub unsafe fn calls_externally_visible(output: *mut u32) {
    let i = thread::index_1d();
    // SAFETY: as promised by the launch.
    unsafe { *output.add(i as usize) = visible_from_elsewhere(i) + TABLE[i as usize % 4] };
}

/// Asserts that the numbers are equal, and copies them.
///
/// # Safety
/// `b` and `output` have as many elements as `a`.
#[kernel]
pub unsafe fn asserts(a: &[u32], b: &[u32], output: *mut u32) {
    let i = thread::index_1d() as usize;
    if i < a.len() {
        assert!(a.len() == b.len(), "equal lengths");
        assert_eq!(a[i], b[i], "element {i}");
        cuda_std::assert_ne!(a[i], u32::MAX);
        // SAFETY: as promised by the launch.
        unsafe { *output.add(i) = a[i] };
    }
}

/// The highest of some architectures that the target has at least; 0 on the CPU.
///
/// # Safety
/// `output` has a word.
#[kernel]
pub unsafe fn target_feature(output: *mut u32) {
    let mut highest = 0;
    if cfg!(cuda_arch_at_least = "75") {
        highest = 75;
    }
    if cfg!(cuda_arch_at_least = "80") {
        highest = 80;
    }
    if cfg!(cuda_arch_at_least = "90") {
        highest = 90;
    }
    if thread::first() {
        // SAFETY: as promised by the launch.
        unsafe { *output = highest };
    }
}
