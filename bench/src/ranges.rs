//! NVTX ranges for a profiler: one for each ladder, and in it one for each kernel.
//!
//! NVTX is a header, compiled into this program. At the first range it looks for a tool (`NVTX_INJECTION64_PATH`, which
//! `nsys` and `ncu --nvtx` set); without a tool every call does nothing.

/// A range of this thread, which ends when this is dropped.
pub struct Range(());

/// Opens a range inside the open ones.
pub fn open(name: &str) -> Range {
    nvtx::range_push!("{name}");
    Range(())
}

impl Drop for Range {
    fn drop(&mut self) {
        nvtx::range_pop!();
    }
}
