use cuda_std::prelude::*;

type Numbers = Global<'static, u32>;

/// Its entry would take one parameter where the launch gives two.
#[kernel]
pub fn first(x: Numbers, y: GlobalMut<u32>) {
    y.store(0, x.load(0));
}

fn main() {}
