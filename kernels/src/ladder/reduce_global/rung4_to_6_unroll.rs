use cuda_std::prelude::*;

use super::{FoldInPlaceArgs, add_blocks_apart, finish, fold_by_halves, segment_start};
use crate::ops::Number;

/// Rung 4: each thread first adds two elements, so that there are half as many blocks.
///
/// The first addition of a thread needs no barrier, and its two loads are independent. **Saves:** half of the blocks,
/// with all their barriers. **Counters:** blocks, bytes in flight.
///
/// Source: seed 000, `reduceUnroll2`.
#[kernel(instances = [f32, i32])]
pub fn unroll2<T: Number>(FoldInPlaceArgs { data, partials }: FoldInPlaceArgs<T>) {
    let start = segment_start(2);
    add_blocks_apart::<T, 2>(&data, start);
    fold_by_halves(&data, start, 1);
    finish(&data, &partials, start);
}

/// Rung 5: four elements instead of the two of [`unroll2`](fn@unroll2). **Counters:** blocks, bytes in flight.
///
/// Source: seed 000 (from its picture of the results; the code follows the pattern of `reduceUnroll2`).
#[kernel(instances = [f32, i32])]
pub fn unroll4<T: Number>(FoldInPlaceArgs { data, partials }: FoldInPlaceArgs<T>) {
    let start = segment_start(4);
    add_blocks_apart::<T, 4>(&data, start);
    fold_by_halves(&data, start, 1);
    finish(&data, &partials, start);
}

/// Rung 6: eight elements: 32 bytes in flight in each thread, and an eighth of the blocks of rung 3.
///
/// **Counters:** blocks, bytes in flight.
///
/// Source: seed 000, "unroll 8".
#[kernel(instances = [f32, i32])]
pub fn unroll8<T: Number>(FoldInPlaceArgs { data, partials }: FoldInPlaceArgs<T>) {
    let start = segment_start(8);
    add_blocks_apart::<T, 8>(&data, start);
    fold_by_halves(&data, start, 1);
    finish(&data, &partials, start);
}
