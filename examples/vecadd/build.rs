//! Compiles the kernels to PTX and embeds it.

use std::process::ExitCode;

use cuda_builder::{Arch, BuildError, CudaBuilder};

fn main() -> ExitCode {
    match build() {
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

fn build() -> Result<(), BuildError> {
    let built = CudaBuilder::new("kernels").arch(Arch::SM_75).build()?;
    built.rerun_if_changed();
    built.embed("vecadd_kernels.rs")
}
