use cuda_std::prelude::*;

/// The kernel's, but `#[arguments]` is missing.
pub struct Numbers<'a> {
    pub numbers: GlobalMut<'a, u32>,
}

#[kernel]
pub fn clear(Numbers { numbers }: Numbers) {
    numbers.store(0, 0);
}

fn main() {}
