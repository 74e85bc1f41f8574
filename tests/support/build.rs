//! Compiles the test kernels to PTX and embeds it.

use std::error::Error;

use cuda_builder::{Arch, CudaBuilder};

fn main() {
    if let Err(error) = embed() {
        error.to_string().lines().for_each(|line| println!("cargo::error={line}"));
    }
}

fn embed() -> Result<(), Box<dyn Error>> {
    let usual = [Arch::SM_75, Arch::SM_80, Arch::SM_90];
    // The same architectures as warpfold itself.
    let built = CudaBuilder::new("../kernels").archs(usual).archs_from("WARPFOLD_ARCHS")?.build()?;
    built.rerun_if_changed();
    Ok(built.embed("test_kernels.rs")?)
}
