use cuda_std::prelude::*;

#[arguments]
pub struct Nothing {
    pub len: usize,
}

/// And one with a view for longer than the launch.
#[arguments]
pub struct Kept {
    pub numbers: GlobalMut<'static, u32>,
}

fn main() {}
