//! Compiles the kernels to one PTX file.

use std::env;
use std::path::PathBuf;

use cuda_builder::CudaBuilder;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let built = CudaBuilder::new("kernels").copy_to(out.join("kernels.ptx")).build();
    match built {
        Ok(built) => built.rerun_if_changed(),
        Err(error) => error.to_string().lines().for_each(|line| println!("cargo::error={line}")),
    }
}
