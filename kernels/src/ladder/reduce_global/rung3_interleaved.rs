use cuda_std::prelude::*;

use super::{FoldInPlaceArgs, finish, fold_by_halves, segment_start};
use crate::ops::Number;

/// Rung 3: the stride starts at half the block and halves, so that neighbouring threads read neighbouring elements.
///
/// Thread `t` adds element `t + stride` to element `t`: a warp's addresses are consecutive, four whole sectors.
/// **Saves:** three of four loaded sectors. **Counter:** load efficiency (the seed: 98 %).
///
/// Source: seed 000's table, third row.
#[kernel(instances = [f32, i32])]
pub fn interleaved<T: Number>(FoldInPlaceArgs { data, partials }: FoldInPlaceArgs<T>) {
    let start = segment_start(1);
    fold_by_halves(&data, start, 1);
    finish(&data, &partials, start);
}
