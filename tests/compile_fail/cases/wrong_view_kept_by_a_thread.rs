use cuda_std::prelude::*;

/// Stores its view for the next launch.
#[kernel]
pub fn keep(x: GlobalMut<u32>) {
    std::thread_local!(static KEPT: std::cell::Cell<Option<GlobalMut<'static, u32>>> =
        const { std::cell::Cell::new(None) });
    KEPT.set(Some(x));
}

fn main() {}
