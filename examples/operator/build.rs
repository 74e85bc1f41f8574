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
            // These lines fail the build. With a failing exit code, cargo would also print all output of the script.
            ExitCode::SUCCESS
        }
    }
}

fn build() -> Result<(), BuildError> {
    let built = CudaBuilder::new("kernels").arch(Arch::SM_75).build()?;
    built.rerun_if_changed();
    built.embed("operator_kernels.rs")
}
