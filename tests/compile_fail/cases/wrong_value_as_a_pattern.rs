//! A value is a pattern, so that there is no name for the launch.
use cuda_std::prelude::*;

#[derive(Clone, Copy, cuda_std::Plain)]
#[repr(C)]
pub struct Size {
    pub rows: u32,
    pub columns: u32,
}

#[kernel]
pub fn count(Size { rows, columns }: Size) {
    assert!(rows < columns);
}

fn main() {}
