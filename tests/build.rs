//! Compiles the test kernels to PTX and embeds it.

use cuda_builder::{Arch, BuildError, CudaBuilder};

fn main() {
    if let Err(error) = embed() {
        error.to_string().lines().for_each(|line| println!("cargo::error={line}"));
    }
}

fn embed() -> Result<(), BuildError> {
    let built = CudaBuilder::new("kernels").archs([Arch::SM_75, Arch::SM_80, Arch::SM_90]).build()?;
    built.rerun_if_changed();
    built.embed("test_kernels.rs")
}
