//! Compiles the kernels to PTX and embeds it.

use std::error::Error;
use std::process::ExitCode;

use cuda_builder::{Arch, CudaBuilder};

fn main() -> ExitCode {
    match embed() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            for line in error.to_string().lines() {
                println!("cargo::error={line}");
            }
            // Cargo turns the lines above into the build's error; a failing exit would bury them in a dump.
            ExitCode::SUCCESS
        }
    }
}

/// Names architectures other than the usual ones, joined by commas: `sm_90`. Fewer are built sooner, and `none` leaves
/// the kernels to the executor.
const ARCHS: &str = "WARPFOLD_ARCHS";

fn embed() -> Result<(), Box<dyn Error>> {
    let usual = [Arch::SM_75, Arch::SM_80, Arch::SM_90];
    let mut builder = CudaBuilder::new("../kernels").archs(usual).archs_from(ARCHS)?;
    if cfg!(feature = "ladder") {
        builder = builder.feature("ladder");
    }
    let built = builder.build()?;
    built.rerun_if_changed();
    Ok(built.embed("kernels.rs")?)
}
