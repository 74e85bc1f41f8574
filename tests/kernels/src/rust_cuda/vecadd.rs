//! Rust-CUDA's first example, as a kernel with the name of its file.

use cuda_std::prelude::*;

/// Adds two vectors.
///
/// # Safety
/// `b` and `c` have `a.len()` elements.
#[kernel]
pub unsafe fn vecadd(a: &[f32], b: &[f32], c: *mut f32) {
    let idx = thread::index_1d() as usize;
    if idx < a.len() {
        // SAFETY: as promised by the launch; no other thread has this index.
        let elem = unsafe { &mut *c.add(idx) };
        *elem = a[idx] + b[idx];
    }
}
