//! Rust-CUDA's vector addition, as its guide has it, and the same with views.
#![no_std]

use cuda_std::prelude::*;

/// Adds two vectors, through slices and a pointer.
///
/// # Safety
/// `c` has room for `a.len()` elements.
#[kernel]
pub unsafe fn vecadd(a: &[f32], b: &[f32], c: *mut f32) {
    let idx = thread::index_1d() as usize;
    if idx < a.len() {
        // SAFETY: as promised by the launch.
        let elem = unsafe { &mut *c.add(idx) };
        *elem = a[idx] + b[idx];
    }
}

/// Adds two vectors, through views, which know their lengths: nothing about it is unsafe, neither here nor at the
/// launch.
#[kernel]
pub fn vecadd_views(a: Global<f32>, b: Global<f32>, c: GlobalMut<f32>) {
    let i = thread::index_1d() as usize;
    if i < c.len() {
        c.store(i, a.load(i) + b.load(i));
    }
}
