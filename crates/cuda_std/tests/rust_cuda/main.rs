//! What `cuda_std` has so that sources for Rust-CUDA compile unchanged, in the executor.

use cuda_std::launch::Kernel;
use simt::{Dim3, Fault, Launch, Watch};

#[cfg(feature = "glam")]
mod glam;
mod statics;
mod stored;
mod vek;

/// Launches a kernel in the executor, with its checks.
///
/// # Safety
/// The slots are those of the kernel's arguments, and the launch keeps the kernel's contract.
unsafe fn launch<Args>(kernel: Kernel<Args>, grid: impl Into<Dim3>, slots: &[u64]) -> Result<(), Box<Fault>> {
    let launch = Launch { watch: Watch::CHECKS, ..Launch::new(kernel.id().entry, grid, kernel.block()) };
    let thread = kernel.thread();
    // SAFETY: as promised by the caller.
    simt::run(&launch, &|| unsafe { thread(slots) }).map_err(Box::new)
}

/// The slot of a pointer.
fn pointer<T>(values: &mut [T]) -> u64 {
    values.as_mut_ptr().expose_provenance() as u64
}
