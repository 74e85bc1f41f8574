//! Sizes of memory. There is no allocator: see [`crate::rust_cuda`].

/// The launch's dynamic shared memory, in bytes.
#[inline(always)]
pub fn dynamic_smem_size() -> u32 {
    crate::shared::dynamic_shared::<u8>().len() as u32
}
