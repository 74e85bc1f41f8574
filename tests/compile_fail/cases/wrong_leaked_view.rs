use cuda_std::prelude::*;

fn for_ever(_: &'static Global<'static, u32>) {}

/// Leaks its view.
#[kernel]
pub fn leak(x: Global<u32>) {
    for_ever(Box::leak(Box::new(x)));
}

fn main() {}
