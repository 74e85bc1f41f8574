//! A thread's fold of consecutive tiles of a row.

use core::ops::Range;

use cuda_std::global::issue_loads;
use cuda_std::prelude::*;

use super::remainder::{Remainder, elements_per_block, stride};
use super::thread_reduce::reduce_vectors_to_partial_index;
use crate::ops::{Operator, constant};

/// Consecutive tiles of a row.
pub(super) struct TileRange {
    /// The tiles' numbers.
    pub tiles: Range<usize>,
    /// Whether the row's last tile is in the range. That tile may be partial, and so may the one before it.
    pub is_last: bool,
}

impl TileRange {
    /// The range of the row's `len` elements that are in whole tiles of `tile` elements.
    #[inline(always)]
    pub fn elements(&self, tile: usize, len: usize, has_head: bool) -> (usize, usize) {
        let (first, mut end) = (self.tiles.start * tile, self.tiles.end * tile);
        end = if end > len { end - tile } else { end };
        // Without the elements before the first aligned one, there may be no last tile.
        end = if has_head && end > len { end - tile } else { end };
        (if first < end { first } else { end }, end)
    }
}

/// This thread's state over a range of tiles of the row of `len` elements from `start`. The last range is empty only if
/// all ranges are.
///
/// `is_aligned` is true if the row may be folded in [any order](Operator::ANY_ORDER), and otherwise only if it begins
/// at a multiple of 16 bytes. An aligned row has two tiles in flight, any other row one tile. The last round of loads
/// has a whole tile, if one remains, and the [remainder](Remainder): a length that is no multiple of a tile costs no
/// extra round trip to memory. If not `AT_ONCE`, tile and remainder take two rounds, in fewer registers.
#[inline(always)]
pub(super) fn fold_tiles<O: Operator<T>, T: Element, const VECTORS: usize, const AT_ONCE: bool>(
    operator: O,
    input: &Global<T>,
    start: usize,
    len: usize,
    tiles: TileRange,
    is_aligned: bool,
) -> O::State {
    let (stride, tile) = (stride::<T>(), elements_per_block::<T>(VECTORS as u32));
    // Vectors begin after these elements, which are folded last.
    let head = if constant!(O::ANY_ORDER) { elements_to_alignment(input, start, len) } else { 0 };
    let (start, len) = (start + head, len - head);
    let (first, end) = tiles.elements(tile, len, constant!(O::ANY_ORDER));
    let remainder = Remainder {
        start,
        head: if tiles.is_last { head } else { 0 },
        from: end,
        to: if tiles.is_last { len } else { end },
    };

    let mut state = constant!(O::NEUTRAL);
    let mut i = first + thread::thread_idx_x() as usize * T::Vector::LEN;
    let loaded;
    if is_aligned {
        while i + tile < end {
            // SAFETY: both tiles are inside the row, which begins at a multiple of 16 bytes.
            let (vectors, further) = unsafe {
                (
                    input.load_aligned_vectors_unchecked::<VECTORS>(start + i, stride),
                    input.load_aligned_vectors_unchecked::<VECTORS>(start + i + tile, stride),
                )
            };
            issue_loads();
            state = O::combine(
                state,
                reduce_vectors_to_partial_index::<O, T, VECTORS>(operator, vectors, head + i, stride),
            );
            state = O::combine(
                state,
                reduce_vectors_to_partial_index::<O, T, VECTORS>(operator, further, head + i + tile, stride),
            );
            i += 2 * tile;
        }
        if i >= end && remainder.is_empty() {
            return state;
        }
        // Unpacking short elements takes the registers of the other loads.
        let at_once = AT_ONCE && size_of::<T>() >= 4;
        if !at_once && i < end {
            // SAFETY: the tile is inside the row.
            let vectors = unsafe { input.load_aligned_vectors_unchecked::<VECTORS>(start + i, stride) };
            state = O::combine(
                state,
                reduce_vectors_to_partial_index::<O, T, VECTORS>(operator, vectors, head + i, stride),
            );
            i += tile;
        }
        // SAFETY: vectors that begin before the end of whole tiles are inside the row, and so is the remainder.
        let vectors = unsafe { input.load_aligned_vectors_before::<VECTORS>(start + i, stride, start + end) };
        // SAFETY: as above.
        loaded = unsafe { remainder.load::<T, VECTORS>(input, true) };
        issue_loads();
        if at_once && i < end {
            state = O::combine(
                state,
                reduce_vectors_to_partial_index::<O, T, VECTORS>(operator, vectors, head + i, stride),
            );
        }
    } else {
        while i < end {
            // SAFETY: the tile is inside the row.
            let vectors = unsafe { input.load_vectors_unchecked::<VECTORS>(start + i, stride) };
            state = O::combine(
                state,
                reduce_vectors_to_partial_index::<O, T, VECTORS>(operator, vectors, head + i, stride),
            );
            i += tile;
        }
        // SAFETY: as above.
        loaded = unsafe { remainder.load::<T, VECTORS>(input, false) };
        issue_loads();
    }
    remainder.fold::<O, T, VECTORS>(operator, state, loaded)
}

/// The number of elements before the first at a multiple of 16 bytes, of `len` from `start` on.
#[inline(always)]
pub(super) fn elements_to_alignment<T: Element>(input: &Global<T>, start: usize, len: usize) -> usize {
    let head = (T::Vector::LEN - input.elements_past(start, 16)) % T::Vector::LEN;
    if head < len { head } else { len }
}
