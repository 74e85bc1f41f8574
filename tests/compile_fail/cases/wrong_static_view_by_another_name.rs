use cuda_std::prelude::*;

type Kept = GlobalMut<'static, u32>;

/// A view for longer than the launch.
#[kernel]
pub fn keep(x: Kept) {
    x.store(0, 1);
}

fn main() {}
