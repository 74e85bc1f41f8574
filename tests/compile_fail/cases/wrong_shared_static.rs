//! Rust-CUDA's statics in shared memory: the error says what to write.
use cuda_std::prelude::*;

const TILE_SIZE: usize = 16;

#[kernel]
pub fn sum(input: Global<f32>, output: GlobalMut<f32>) {
    #[cuda_std::address_space(shared)]
    static mut TILE_A: [f32; TILE_SIZE * TILE_SIZE] = [0.; TILE_SIZE * TILE_SIZE];

    output.store(0, input.load(0));
}

fn main() {}
