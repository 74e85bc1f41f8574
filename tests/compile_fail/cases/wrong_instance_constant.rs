use cuda_std::prelude::*;

/// The elements of a tile, as the host's plan computes them.
const fn tile_len(size: usize) -> usize {
    1024 / size
}

#[kernel(instances = [u8] x [1024 == tile_len(1)] + [u32] x [512 == tile_len(4)])]
pub fn fill<T: Element, const LEN: usize>(x: GlobalMut<T>) {
    x.store(LEN - 1, T::default());
}

/// Two entries would have the same name.
#[kernel(instances = [u8] x [{ tile_len(1) }, { tile_len(2) }])]
pub fn clear<T: Element, const LEN: usize>(x: GlobalMut<T>) {
    x.store(LEN - 1, T::default());
}

fn main() {}
