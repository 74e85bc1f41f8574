//! Reductions of two inputs, element by element: the dot product.

use cuda_std::global::issue_loads;
use cuda_std::prelude::*;
use half::{bf16, f16};

use super::spans::{Part, Run};
use crate::ops::{Dot, Operator, PairOperator};

/// 16-byte packs of a tile of each input that a thread folds: of both, as many as in one of [`spans`](mod@super::spans).
pub const PACKS_IN_FLIGHT: usize = 2;

/// Reduces spans of `len` pairs to one output each: in both inputs each begins `pitch` elements behind the one
/// before. All else is as in [`spans`](fn@super::spans::spans), with tiles of half
/// as many elements.
#[kernel(
    instances = [Dot] x [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64],
    max_threads = 512,
    min_blocks = 2,
    early
)]
pub fn pairs<O: PairOperator<T>, T: Element>(
    first: Global<T>,
    second: Global<T>,
    len: usize,
    pitch: usize,
    parts: u32,
    tiles: usize,
    longer: u32,
    mailboxes: GlobalMut<[u64; 2]>,
    output: GlobalMut<<O as Operator<T>>::Output>,
) {
    let part = Part::of_block(parts, tiles, longer);
    part.admit_next_grid();
    let state = fold_run::<O, T>((&first, &second), part.span * pitch, len, part.run());
    part.finish::<O, T>(state, |state| state, len, &mailboxes, &output);
}

/// What this thread folds of a run of a span of `len` pairs.
#[inline(always)]
fn fold_run<O: PairOperator<T>, T: Element>(
    (first, second): (&Global<T>, &Global<T>),
    start: usize,
    len: usize,
    run: Run,
) -> O::State {
    let lanes = T::Pack::LEN;
    let stride = thread::block_dim_x() as usize * lanes;
    let tile = PACKS_IN_FLIGHT * stride;
    let own = thread::thread_idx_x() as usize * lanes;

    let mut state = O::NEUTRAL;
    let mut i = run.tiles.start * tile + own;
    let of_tile = |a: [T::Pack; PACKS_IN_FLIGHT], b: [T::Pack; PACKS_IN_FLIGHT]| {
        O::combine(O::gather_pairs(a[0], b[0]), O::gather_pairs(a[1], b[1]))
    };
    let by_two = first.elements_past(start, 16) == 0 && second.elements_past(start, 16) == 0;
    while by_two && i + tile < run.tiles.end * tile {
        let load = |input: &Global<T>, i: usize| {
            // SAFETY: both tiles are inside of both spans, which begin at multiples of 16 bytes.
            unsafe { input.load_aligned_packs_unchecked::<PACKS_IN_FLIGHT>(start + i, stride) }
        };
        let (a, b, c, d) = (load(first, i), load(second, i), load(first, i + tile), load(second, i + tile));
        issue_loads();
        state = O::combine(state, of_tile(a, b));
        state = O::combine(state, of_tile(c, d));
        i += 2 * tile;
    }
    while i < run.tiles.end * tile {
        // SAFETY: the tile is inside of both spans.
        let (a, b) = unsafe {
            (
                first.load_packs_unchecked::<PACKS_IN_FLIGHT>(start + i, stride),
                second.load_packs_unchecked::<PACKS_IN_FLIGHT>(start + i, stride),
            )
        };
        state = O::combine(state, of_tile(a, b));
        i += tile;
    }
    if !run.is_last {
        return state;
    }
    while i + lanes <= len {
        // SAFETY: just compared.
        let ([a], [b]) =
            unsafe { (first.load_packs_unchecked::<1>(start + i, 0), second.load_packs_unchecked::<1>(start + i, 0)) };
        state = O::combine(state, O::gather_pairs(a, b));
        i += stride;
    }
    i = len / lanes * lanes + own / lanes;
    if i < len {
        // SAFETY: just compared.
        let (a, b) = unsafe { (first.load_unchecked(start + i), second.load_unchecked(start + i)) };
        state = O::combine(state, O::lift_pair(a, b));
    }
    state
}
