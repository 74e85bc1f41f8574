use cuda_std::prelude::*;

use super::rung8_unroll8_complete::step;
use super::{FoldInPlaceArgs, rung7_unroll8_warp_tail::fold_last_warp};
use super::{add_blocks_apart, finish, segment_start};
use crate::ops::Number;

/// Rung 9: the block size is a compile-time constant, so the compiler drops the steps that a block of this size does
/// not have.
///
/// **Saves:** four tests that are uniform over all threads. **Counter:** instructions per warp. The seed found this
/// template no faster than the previous rung, and blamed the compiler. The PTX shows that the tests are gone, and that
/// there was little to save. The machine code is shorter because the assembler knows the block size (`.reqntid`).
///
/// Source: seed 000, "template".
#[kernel(instances = [f32, i32] x [64, 128, 256, 512, 1024], block = BLOCK)]
pub fn unroll8_complete_const<T: Number, const BLOCK: usize>(FoldInPlaceArgs { data, partials }: FoldInPlaceArgs<T>) {
    let start = segment_start(8);
    add_blocks_apart::<T, 8>(&data, start);
    step::<T, 512>(&data, start, BLOCK);
    step::<T, 256>(&data, start, BLOCK);
    step::<T, 128>(&data, start, BLOCK);
    step::<T, 64>(&data, start, BLOCK);
    fold_last_warp(&data, start);
    finish(&data, &partials, start);
}
