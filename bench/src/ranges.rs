//! Ranges that a profiler shows: each ladder one, and in it one for each kernel, by NVTX.
//!
//! NVTX is a header, compiled into this program. At the first range it looks for a tool (`NVTX_INJECTION64_PATH`, which
//! `nsys` and `ncu --nvtx` set) and without one every call does nothing.

/// A range of this thread, which ends where this is dropped.
pub struct Range(());

/// Opens a range inside of those that are open.
pub fn open(name: &str) -> Range {
    nvtx::range_push!("{name}");
    Range(())
}

impl Drop for Range {
    fn drop(&mut self) {
        nvtx::range_pop!();
    }
}
