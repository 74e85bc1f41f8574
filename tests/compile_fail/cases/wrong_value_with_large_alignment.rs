//! PTX entries take no values that are aligned to more than 16 bytes.
use cuda_std::prelude::*;

#[derive(Clone, Copy, cuda_std::Plain)]
#[repr(C, align(32))]
pub struct Wide(pub [u64; 4]);

#[kernel]
pub fn only(wide: Wide) {
    assert!(wide.0[0] == 0);
}

#[kernel]
pub fn beside_others(out: GlobalMut<u64>, wide: Wide) {
    out.store(0, wide.0[0]);
}

#[arguments]
pub struct Both {
    pub out: GlobalMut<u64>,
    pub wide: Wide,
}

#[kernel]
pub fn in_a_struct(Both { out, wide }: Both) {
    out.store(0, wide.0[0]);
}

fn main() {}
