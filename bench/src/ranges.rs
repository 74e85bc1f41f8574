//! NVTX ranges for a profiler: one for each ladder, with one for each kernel inside.
//!
//! NVTX is compiled into this program. At the first range it looks for a tool (`NVTX_INJECTION64_PATH`, which `nsys`
//! and `ncu --nvtx` set). Without a tool the calls do nothing.

/// An open range of this thread. It ends when this value is dropped.
pub struct Range(());

/// Opens a range inside the ranges that are already open.
pub fn open(name: &str) -> Range {
    nvtx::range_push!("{name}");
    Range(())
}

impl Drop for Range {
    fn drop(&mut self) {
        nvtx::range_pop!();
    }
}
