use cuda_std::prelude::*;

/// An argument struct without `#[arguments]`.
pub struct Numbers<'a> {
    pub numbers: GlobalMut<'a, u32>,
}

#[kernel]
pub fn clear(Numbers { numbers }: Numbers) {
    numbers.store(0, 0);
}

fn main() {}
