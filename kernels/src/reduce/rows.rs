//! Short rows, each folded by a few lanes of a warp.

use cuda_std::prelude::*;
use half::{bf16, f16};

use super::fold::fold_lanes;
use super::gather::gather_packs;
use crate::ops::{
    All, Any, ArgMax, ArgMin, CountFinite, CountNan, CountNonzero, Max, Mean, Min, MinMax, Norm, Operator, Product,
    Sum, SumInF64, SumOfSquares, WrappingSum,
};

/// Threads of a block.
pub const BLOCK: usize = 256;

/// Packs that a lane has in flight at once, in rows that are long enough.
pub const PACKS_IN_FLIGHT: usize = 4;

/// Reduces `rows` rows of `len` elements, each of which begins `pitch` elements behind the one before, to one output each.
/// `lanes` lanes fold one row, a power of two up to 32.
///
/// - *No barrier, no shared memory*: what a row's lanes have is folded by shuffles.
/// - *As many lanes as a row has packs*, so that none is idle in short rows and a warp's loads are consecutive over
///   neighbouring rows. Rows of a few elements have one lane each.
#[kernel(
    instances = [Sum, Product, Mean, SumOfSquares, Norm, Min, Max, MinMax, ArgMin, ArgMax, Any, All, CountNonzero]
        x [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]
        + [CountNan, CountFinite] x [f32, f64, f16, bf16]
        + [WrappingSum] x [i8, i16, i32, i64, u8, u16, u32, u64]
        + [SumInF64] x [f32],
    block = BLOCK
)]
pub fn rows<O: Operator<T>, T: Element>(
    input: Global<T>,
    rows: usize,
    len: usize,
    pitch: usize,
    lanes: u32,
    output: GlobalMut<<O as Operator<T>>::Output>,
) {
    let thread = thread::block_idx_x() as usize * BLOCK + thread::thread_idx_x() as usize;
    let (row, lane) = (thread / lanes as usize, thread % lanes as usize);
    // Lanes behind the last row take part in the shuffles all the same.
    let state = if row < rows { fold_row::<O, T>(&input, row * pitch, len, lane, lanes as usize) } else { O::NEUTRAL };
    let state = fold_lanes::<O, T>(state, lanes);
    if lane == 0 && row < rows {
        output.store(row, O::finish(state, len as u64));
    }
}

/// What lane `lane` of `lanes` folds of the row of `len` elements that begins at `start`: packs in turn, then what is left
/// behind the last whole pack.
#[inline(always)]
fn fold_row<O: Operator<T>, T: Element>(
    input: &Global<T>,
    start: usize,
    len: usize,
    lane: usize,
    lanes: usize,
) -> O::State {
    let pack = T::Pack::LEN;
    let stride = lanes * pack;
    let mut state = O::NEUTRAL;
    let mut i = lane * pack;
    while i + (PACKS_IN_FLIGHT - 1) * stride + pack <= len {
        // SAFETY: the last of the packs was just compared.
        let packs = unsafe { input.load_packs_unchecked::<PACKS_IN_FLIGHT>(start + i, stride) };
        state = O::combine(state, gather_packs::<O, T, PACKS_IN_FLIGHT>(packs, i, stride));
        i += PACKS_IN_FLIGHT * stride;
    }
    while i + pack <= len {
        // SAFETY: just compared.
        let packs = unsafe { input.load_packs_unchecked::<1>(start + i, stride) };
        state = O::combine(state, gather_packs::<O, T, 1>(packs, i, stride));
        i += stride;
    }
    i = len / pack * pack + lane;
    while i < len {
        // SAFETY: just compared.
        state = O::combine(state, O::lift(unsafe { input.load_unchecked(start + i) }, i as u64));
        i += lanes;
    }
    state
}
