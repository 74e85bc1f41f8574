//! Vector addition: the kernel of Rust-CUDA's guide, and the same kernel with views.
#![no_std]

use cuda_std::prelude::*;

/// Adds two vectors, with slices and a pointer.
///
/// # Safety
/// `c` has at least as many elements as `a`, and the launch is one-dimensional.
#[kernel]
pub unsafe fn vecadd(a: &[f32], b: &[f32], c: *mut f32) {
    let idx = thread::index_1d() as usize;
    if idx < a.len() {
        // SAFETY: inside `c`, as promised by the launch; no other thread has this element.
        let elem = unsafe { &mut *c.add(idx) };
        *elem = a[idx] + b[idx];
    }
}

/// Adds two vectors, with views. A view knows its length, so neither the kernel nor its launch is unsafe.
#[kernel]
pub fn vecadd_views(a: Global<f32>, b: Global<f32>, c: GlobalMut<f32>) {
    let i = thread::index_1d() as usize;
    if i < c.len() {
        c.store(i, a.load(i) + b.load(i));
    }
}
