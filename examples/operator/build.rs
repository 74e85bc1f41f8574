//! Compiles the kernels to PTX and embeds it.

use cuda_builder::{Arch, CudaBuilder};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let built = CudaBuilder::new("kernels").arch(Arch::SM_75).build()?;
    built.rerun_if_changed();
    Ok(built.embed("operator_kernels.rs")?)
}
