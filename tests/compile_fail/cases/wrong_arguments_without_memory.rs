use cuda_std::prelude::*;

#[arguments]
pub struct Nothing {
    pub len: usize,
}

/// An argument struct with a view that outlives the launch.
#[arguments]
pub struct Kept {
    pub numbers: GlobalMut<'static, u32>,
}

fn main() {}
