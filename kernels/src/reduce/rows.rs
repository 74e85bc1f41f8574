//! Short rows, each folded by a few lanes of a warp.

use cuda_std::global::issue_loads;
use cuda_std::prelude::*;
use half::{bf16, f16};

use super::fold::{fold_four_rows, fold_lanes};
use super::gather::gather_packs;
use crate::ops::{
    All, Any, ArgMax, ArgMin, CountFinite, CountNan, CountNonzero, Max, Mean, Min, MinMax, Norm, Operator, Product,
    Sum, SumInF64, SumOfSquares, WrappingSum,
};

/// Threads of a block.
pub const BLOCK: usize = 256;

/// Packs that a lane has in flight at once: of one row, or of as many rows.
pub const IN_FLIGHT: usize = 4;

/// Rows that the groups of lanes of one block fold: each group as many at once as it has packs in flight, if a row is no
/// more than a pack for each of its lanes.
pub const fn rows_of_block(len: usize, lanes: usize, size: usize) -> usize {
    // By shifts: in a kernel there is as much to do for a division as for a row.
    let groups = BLOCK >> lanes.trailing_zeros();
    if len / (16 / size) <= lanes { groups * IN_FLIGHT } else { groups }
}

/// Reduces `rows` rows of `len` elements, each of which begins `pitch` elements behind the one before, to one output each.
/// `lanes` lanes fold one row, a power of two up to 32; a block folds [`rows_of_block`] rows.
///
/// - *No barrier, no shared memory*: what a row's lanes have is folded by shuffles, of four rows at once.
/// - *No more lanes than a row has packs*, so that none is idle in short rows and a warp's loads are consecutive over
///   neighbouring rows. Rows of a few elements have one lane each.
/// - *Four loads are in flight* in each lane: of four rows at once, if a lane has no more than a pack of each, else of one.
#[kernel(
    instances = [Sum, Product, Mean, SumOfSquares, Norm, Min, Max, MinMax, ArgMin, ArgMax, Any, All, CountNonzero]
        x [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]
        + [CountNan, CountFinite] x [f32, f64, f16, bf16]
        + [WrappingSum] x [i8, i16, i32, i64, u8, u16, u32, u64]
        + [SumInF64] x [f32],
    block = BLOCK,
    early
)]
pub fn rows<O: Operator<T>, T: Element>(
    input: Global<T>,
    rows: usize,
    len: usize,
    pitch: usize,
    lanes: u32,
    output: GlobalMut<<O as Operator<T>>::Output>,
) {
    let (thread, log_of_lanes, lanes) = (thread::index_in_block::<BLOCK>(), lanes.trailing_zeros(), lanes as usize);
    let (group, groups, lane) = (thread >> log_of_lanes, BLOCK >> log_of_lanes, thread & (lanes - 1));
    let first = thread::block_idx_x() as usize * rows_of_block(len, lanes, size_of::<T>()) + group;
    let finish = |row: usize, state: O::State| {
        // Lanes behind the last row take part in the shuffles all the same.
        let state = fold_lanes::<O, T>(state, lanes as u32);
        if lane == 0 && row < rows {
            output.store(row, O::finish(state, len as u64));
        }
    };
    // One row of several packs for each lane, or four of up to one.
    if len / T::Pack::LEN > lanes {
        let state = if first < rows { fold_row::<O, T>(&input, first * pitch, len, lane, lanes) } else { O::NEUTRAL };
        finish(first, state);
        return;
    }
    let row = |k: usize| first + k * groups;
    // Behind the last row it is the last one again: a load that has to be done or not is a branch, and waits for it.
    let start = |k: usize| (if row(k) < rows { row(k) } else { rows - 1 }) * pitch;
    let starts = [start(0), start(1), start(2), start(3)];
    let states = if len == 0 {
        [O::NEUTRAL; IN_FLIGHT]
    } else if takes_singles::<T>(len) {
        fold_single_elements::<O, T>(&input, starts, len, lane, log_of_lanes)
    } else {
        let are_aligned = input.is_aligned_to(0, 16) && (pitch * size_of::<T>()).is_multiple_of(16);
        fold_short_rows::<O, T>(&input, starts, len, lane, lanes, are_aligned)
    };
    if lanes < IN_FLIGHT {
        finish(row(0), states[0]);
        finish(row(1), states[1]);
        finish(row(2), states[2]);
        finish(row(3), states[3]);
        return;
    }
    let (state, k) = fold_four_rows::<O, T>(states, lanes as u32);
    if lane & (lanes / IN_FLIGHT - 1) == 0 && row(k) < rows {
        output.store(row(k), O::finish(state, len as u64));
    }
}

/// Whether lanes load single elements of rows of this length. Where rows are no whole number of packs, most of them are not
/// aligned for packs, and a warp's single loads of 4 or 8 bytes touch each sector once where two packs of each touch it
/// twice.
const fn takes_singles<T: Element>(len: usize) -> bool {
    size_of::<T>() >= 4 && !len.is_multiple_of(T::Pack::LEN)
}

/// [`fold_short_rows`] by single elements, of which a lane has no more than a pack would have: everything is loaded before
/// the first is used.
#[inline(always)]
fn fold_single_elements<O: Operator<T>, T: Element>(
    input: &Global<T>,
    starts: [usize; IN_FLIGHT],
    len: usize,
    lane: usize,
    log_of_lanes: u32,
) -> [O::State; IN_FLIGHT] {
    let at = |j: usize| lane + (j << log_of_lanes);
    // Lanes are no fewer than packs, so four elements (or two of 8 bytes) for each lane are all.
    let has = |j: usize| j < T::Pack::LEN && at(j) < len;
    let place = |j: usize| if at(j) < len { at(j) } else { len - 1 };
    let places = [place(0), place(1), place(2), place(3)];
    let load = |start: usize, j: usize| {
        if j < T::Pack::LEN {
            // SAFETY: inside of the row.
            unsafe { input.load_unchecked(start + places[j]) }
        } else {
            T::default()
        }
    };
    let of_row = |start| [load(start, 0), load(start, 1), load(start, 2), load(start, 3)];
    let rows = [of_row(starts[0]), of_row(starts[1]), of_row(starts[2]), of_row(starts[3])];
    issue_loads();
    // The same for all lanes but the last of those that every lane has.
    let everywhere = len >> log_of_lanes;
    let fold = |k: usize| {
        let elements: [T; 4] = rows[k];
        let lift = |j: usize| O::lift(elements[j], at(j) as u64);
        let with = |state: O::State, j: usize| if has(j) { O::combine(state, lift(j)) } else { state };
        if everywhere >= 3 {
            let two = O::gather([elements[0], elements[1]], |j| at(j) as u64);
            return with(O::combine(two, lift(2)), 3);
        }
        with(with(with(if has(0) { lift(0) } else { O::NEUTRAL }, 1), 2), 3)
    };
    [fold(0), fold(1), fold(2), fold(3)]
}

/// What lane `lane` of `lanes` folds of rows that begin at `starts` and have elements, of which it has a pack each at most:
/// everything is loaded before the first is used.
#[inline(always)]
fn fold_short_rows<O: Operator<T>, T: Element>(
    input: &Global<T>,
    starts: [usize; IN_FLIGHT],
    len: usize,
    lane: usize,
    lanes: usize,
    are_aligned: bool,
) -> [O::State; IN_FLIGHT] {
    let pack = T::Pack::LEN;
    let (whole, rest) = (lane * pack, len / pack * pack + lane);
    let has_pack = whole + pack <= len;
    let [a, b, c, d] = starts;
    let packs = if len < pack {
        [T::Pack::splat(T::default()); IN_FLIGHT]
    } else {
        // Of lanes that have none it is the row's first.
        let place = if has_pack { whole } else { 0 };
        if are_aligned {
            // SAFETY: the pack is inside of the row, which is aligned.
            let load = |start: usize| unsafe { input.load_pack_unchecked(start + place) };
            [load(a), load(b), load(c), load(d)]
        } else {
            // SAFETY: the pack is inside of the row.
            let load = |start: usize| unsafe { input.load_packs_unchecked::<1>(start + place, 0) }[0];
            [load(a), load(b), load(c), load(d)]
        }
    };
    let rests = if len.is_multiple_of(pack) {
        [T::default(); IN_FLIGHT]
    } else {
        let place = if rest < len { rest } else { len - 1 };
        // SAFETY: inside of the row.
        let load = |start: usize| unsafe { input.load_unchecked(start + place) };
        [load(a), load(b), load(c), load(d)]
    };
    issue_loads();
    let fold = |k: usize| {
        let mut state = if has_pack { gather_packs::<O, T, 1>([packs[k]], whole, 0) } else { O::NEUTRAL };
        if rest < len {
            state = O::combine(state, O::lift(rests[k], rest as u64));
        }
        // More than one each only where there are fewer lanes than elements behind the last whole pack.
        let mut i = rest + lanes;
        while i < len {
            // SAFETY: just compared.
            state = O::combine(state, O::lift(unsafe { input.load_unchecked(starts[k] + i) }, i as u64));
            i += lanes;
        }
        state
    };
    [fold(0), fold(1), fold(2), fold(3)]
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
    while i + (IN_FLIGHT - 1) * stride + pack <= len {
        // SAFETY: the last of the packs was just compared.
        let packs = unsafe { input.load_packs_unchecked::<IN_FLIGHT>(start + i, stride) };
        state = O::combine(state, gather_packs::<O, T, IN_FLIGHT>(packs, i, stride));
        i += IN_FLIGHT * stride;
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
