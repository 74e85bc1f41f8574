//! The launch finds an entry by the kernel's name.
use cuda_std::prelude::*;

#[kernel]
#[unsafe(export_name = "other")]
pub fn clear(out: GlobalMut<u32>) {
    out.store(0, 0);
}

fn main() {}
