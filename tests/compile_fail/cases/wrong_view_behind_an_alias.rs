use cuda_std::prelude::*;

type Numbers = Global<'static, u32>;

/// The entry would have one parameter where the launch passes two.
#[kernel]
pub fn first(x: Numbers, y: GlobalMut<u32>) {
    y.store(0, x.load(0));
}

fn main() {}
