//! Long spans, each folded by one block or by several: all of a buffer, long rows of a matrix, equal segments.

use core::ops::Range;

use cuda_std::global::issue_loads;
use cuda_std::mailbox;
use cuda_std::prelude::*;
use half::{bf16, f16};

use super::fold::{WarpStates, fold_warps, is_last_block};
use super::gather::skim_packs;
use crate::ops::{
    All, Any, ArgMax, ArgMin, CountFinite, CountNan, CountNonzero, Max, Mean, Min, MinMax, Norm, Operator, Product,
    Sum, SumInF64, SumOfSquares, WrappingSum,
};

/// 16-byte packs that a thread has in flight at once.
pub const PACKS_IN_FLIGHT: usize = 4;

/// The elements of `size` bytes that a block of `threads` threads folds in one round: a tile.
pub const fn tile(threads: usize, size: usize) -> usize {
    threads * PACKS_IN_FLIGHT * (16 / size)
}

/// Reduces spans of `len` elements, each of which begins `pitch` elements behind the one before, to one output each.
///
/// A span is folded by `parts` blocks. The first `longer` parts are runs of `tiles + 1` tiles, the others of `tiles`, and
/// the last one takes what is left behind the last whole tile too. (The host divides; a block would need as long for it
/// as for a tile.) With one part, blocks count spans; with more, the grid is `parts` wide and as high as there are spans.
///
/// - *Loads are 16 bytes wide*, four in flight in each thread before the first is used, and a warp's are consecutive. How
///   many bytes are on their way is what bounds a reduction (Little's law): two blocks of 512 threads, which is what their
///   registers leave room for, have 64 KiB on their way to each multiprocessor of an H200. With two packs of 1024 threads
///   it was half of that, and 5 % slower at 2^28 elements (`docs/benchmarks/h200.md`). Elements of 4 bytes and more whose
///   states are small have two tiles, 128 KiB, on their way: what one block folds in two rounds then takes little more
///   than one. `ptxas` keeps those loads together only if it is told how many blocks are to fit (`min_blocks`).
/// - *A part is one run* of neighbouring tiles.
/// - *Alignment changes instructions, not the order*: what a thread folds is counted from the span's first element, or, if
///   that gives the same in [any order](Operator::ANY_ORDER), from the first at a multiple of 16 bytes.
/// - *One block folds the partials*, in the order of the parts. That saves a second launch, which costs more than all of a
///   short reduction. States of up to 8 bytes are left in [mailboxes](cuda_std::mailbox), which the last part's block
///   empties; with larger ones it is the last block to draw a ticket, which takes two ways to memory and back more.
///
/// `partials` has a place for each block and `tickets` one 0 for each span, if there is more than one part. If states
/// [fit](fits_mailbox), `partials` are mailboxes: all 0, and again after the launch.
#[kernel(
    instances = [Sum, Product, Mean, SumOfSquares, Norm, Min, Max, MinMax, ArgMin, ArgMax, Any, All, CountNonzero]
        x [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]
        + [CountNan, CountFinite] x [f32, f64, f16, bf16]
        + [WrappingSum] x [i8, i16, i32, i64, u8, u16, u32, u64]
        + [SumInF64] x [f32],
    max_threads = 512,
    min_blocks = 2,
    early
)]
pub fn spans<O: Operator<T>, T: Element>(
    input: Global<T>,
    len: usize,
    pitch: usize,
    parts: u32,
    tiles: usize,
    longer: u32,
    partials: GlobalMut<[u64; 2]>,
    tickets: GlobalMut<u32>,
    output: GlobalMut<<O as Operator<T>>::Output>,
) {
    fold_spans::<O, T, PACKS_IN_FLIGHT>(&input, len, pitch, parts, tiles, longer, &partials, &tickets, &output);
}

/// What a thread of [`spans`](fn@spans) does, with `PACKS` packs in flight; for a kernel of one's own.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "they are the kernel's")]
pub fn fold_spans<O: Operator<T>, T: Element, const PACKS: usize>(
    input: &Global<T>,
    len: usize,
    pitch: usize,
    parts: u32,
    tiles: usize,
    longer: u32,
    partials: &GlobalMut<[u64; 2]>,
    tickets: &GlobalMut<u32>,
    output: &GlobalMut<O::Output>,
) {
    let part = Part::of_block(parts, tiles, longer);
    part.admit_next_grid();
    let start = part.span * pitch;
    let of_thread = fold_run::<O, T, PACKS>(input, start, len, part.run());
    part.admit_next_grid_at_last();
    // SAFETY: an index that is asked for is one of an element that was folded.
    let settle = |state| O::settle(state, |i| unsafe { input.load_unchecked(start + i as usize) });
    part.finish::<O, T>(of_thread, settle, len, partials, tickets, output);
}

/// What a block folds: one of the parts of a span.
pub(super) struct Part {
    /// The span's number.
    pub span: usize,
    part: u32,
    parts: u32,
    tiles: Range<usize>,
}

impl Part {
    /// That of this block; the parameters are the kernel's.
    #[inline(always)]
    pub fn of_block(parts: u32, tiles: usize, longer: u32) -> Self {
        let (span, part) = match parts {
            1 => (thread::block_idx_x() as usize, 0),
            _ => (thread::block_idx_y() as usize, thread::block_idx_x()),
        };
        let longer_before = if part < longer { part } else { longer };
        let first = part as usize * tiles + longer_before as usize;
        Self { span, part, parts, tiles: first..first + tiles + usize::from(part < longer) }
    }

    /// Lets the next grid's blocks in, if this one's are soon over: a round of loads or two. During more of them, they would
    /// stand in the way.
    #[inline(always)]
    pub fn admit_next_grid(&self) {
        if self.tiles.end - self.tiles.start <= 2 {
            thread::admit_next_grid();
        }
    }

    /// Lets the next grid's blocks in when the block's first warp has done its loads, of work of some more rounds. Not of
    /// long work, whose blocks end at very different times: the next grid's would crowd the multiprocessors that are free
    /// first.
    #[inline(always)]
    pub fn admit_next_grid_at_last(&self) {
        let tiles = self.tiles.end - self.tiles.start;
        if tiles > 2 && tiles <= 32 {
            thread::admit_next_grid();
        }
    }

    /// Its elements.
    #[inline(always)]
    pub fn run(&self) -> Run {
        Run { tiles: self.tiles.clone(), is_last: self.part + 1 == self.parts }
    }

    /// Makes one state of what the threads of all blocks have folded of the span's `len` elements, and puts out the result.
    #[inline(always)]
    pub fn finish<O: Operator<T>, T: Element>(
        &self,
        of_thread: O::State,
        settle: impl Fn(O::State) -> O::State,
        len: usize,
        partials: &GlobalMut<[u64; 2]>,
        tickets: &GlobalMut<u32>,
        output: &GlobalMut<O::Output>,
    ) {
        let warp_states = shared_array![O::State; 32];
        let drawn = shared_array![u32; 1];
        let thread = thread::thread_idx_x() as usize;
        let Self { span, part, parts, .. } = *self;
        let warps = thread::block_dim_x() / 32;
        let state = fold_warps::<O, T>(of_thread, warps, &warp_states);
        if parts == 1 {
            if thread == 0 {
                output.store(span, O::finish(settle(state), len as u64));
            }
            return;
        }

        let first = span * parts as usize;
        let own = first + part as usize;
        let state = if fits_mailbox::<O::State>() {
            if thread == 0 {
                mailbox::post(partials, own, settle(state).to_pair()[0]);
            }
            // The last part's block waits for the others, which have been started before it.
            if part + 1 < parts {
                return;
            }
            thread::sync_threads();
            fold_partials::<O, T>(parts, &warp_states, |i| O::State::from_pair([mailbox::take(partials, first + i), 0]))
        } else {
            if thread == 0 {
                partials.store_volatile(own, settle(state).to_pair());
            }
            if !is_last_block(tickets, span, parts, &drawn) {
                return;
            }
            // The other blocks wrote these during this launch: L1 may not answer for them.
            fold_partials::<O, T>(parts, &warp_states, |i| O::State::from_pair(partials.load_volatile(first + i)))
        };
        if thread == 0 {
            output.store(span, O::finish(state, len as u64));
        }
    }
}

/// Whether blocks leave states of this type in mailboxes, which are empty between launches: in those there is room for one
/// word beside the flag. Larger ones are folded by the last block to draw a ticket.
pub const fn fits_mailbox<S: Plain>() -> bool {
    size_of::<S>() <= 8
}

/// The state over `parts` partials, in thread 0. All threads of the block come here.
#[inline(always)]
pub(super) fn fold_partials<O: Operator<T>, T: Element>(
    parts: u32,
    warp_states: &WarpStates<O::State>,
    partial: impl Fn(usize) -> O::State,
) -> O::State {
    let mut state = O::NEUTRAL;
    let mut i = thread::thread_idx_x() as usize;
    while i < parts as usize {
        state = O::combine(state, partial(i));
        i += thread::block_dim_x() as usize;
    }
    let (warps, with_partials) = (thread::block_dim_x() / 32, parts.div_ceil(32));
    fold_warps::<O, T>(state, if with_partials < warps { with_partials } else { warps }, warp_states)
}

/// Neighbouring tiles of a span.
pub(super) struct Run {
    /// Their numbers.
    pub tiles: Range<usize>,
    /// Whether what is left behind the last whole tile goes with them.
    pub is_last: bool,
}

/// What this thread folds of a run of the span of `len` elements that begins at `start`. The last run is empty only if all
/// are.
#[inline(always)]
pub(super) fn fold_run<O: Operator<T>, T: Element, const PACKS: usize>(
    input: &Global<T>,
    start: usize,
    len: usize,
    run: Run,
) -> O::State {
    let lanes = T::Pack::LEN;
    let stride = thread::block_dim_x() as usize * lanes;
    let tile = PACKS * stride;
    let own = thread::thread_idx_x() as usize * lanes;
    // Packs begin behind these, which wait for the end.
    let lead = if O::ANY_ORDER { elements_to_alignment(input, start, len) } else { 0 };
    let (start, len) = (start + lead, len - lead);
    let mut end = run.tiles.end * tile;
    if O::ANY_ORDER && run.is_last && end > len {
        // There are fewer elements behind them than there are in whole tiles.
        end -= tile;
    }

    let mut state = O::NEUTRAL;
    let mut i = run.tiles.start * tile + own;
    let by_two = has_registers_for_two_tiles::<O, T>() && input.elements_past(start, 16) == 0;
    while by_two && i + tile < end {
        // SAFETY: both tiles are inside of the span, which begins at a multiple of 16 bytes.
        let (packs, further) = unsafe {
            (
                input.load_aligned_packs_unchecked::<PACKS>(start + i, stride),
                input.load_aligned_packs_unchecked::<PACKS>(start + i + tile, stride),
            )
        };
        issue_loads();
        state = O::combine(state, skim_packs::<O, T, PACKS>(packs, lead + i, stride));
        state = O::combine(state, skim_packs::<O, T, PACKS>(further, lead + i + tile, stride));
        i += 2 * tile;
    }
    while i < end {
        // SAFETY: the tile is inside of the span.
        let packs = unsafe { load_packs::<O, T, PACKS>(input, start + i, stride) };
        state = O::combine(state, skim_packs::<O, T, PACKS>(packs, lead + i, stride));
        i += tile;
    }
    if !run.is_last {
        return state;
    }
    while i + lanes <= len {
        // SAFETY: just compared.
        let packs = unsafe { load_packs::<O, T, 1>(input, start + i, stride) };
        state = O::combine(state, skim_packs::<O, T, 1>(packs, lead + i, stride));
        i += stride;
    }
    i = len / lanes * lanes + own / lanes;
    if i < len {
        // SAFETY: just compared.
        state = O::combine(state, O::lift(unsafe { input.load_unchecked(start + i) }, (lead + i) as u64));
    }
    i = own / lanes;
    if i < lead {
        // SAFETY: just compared.
        state = O::combine(state, O::lift(unsafe { input.load_unchecked(start - lead + i) }, i as u64));
    }
    state
}

/// Whether the packs of two tiles can be on their way at once, and 64 registers are enough.
const fn has_registers_for_two_tiles<O: Operator<T>, T: Element>() -> bool {
    size_of::<T>() >= 4 && size_of::<O::State>() <= 8
}

/// Elements before the first at a multiple of 16 bytes, of `len` from `start` on.
#[inline(always)]
fn elements_to_alignment<T: Element>(input: &Global<T>, start: usize, len: usize) -> usize {
    let lead = (T::Pack::LEN - input.elements_past(start, 16)) % T::Pack::LEN;
    if lead < len { lead } else { len }
}

/// Packs, which are aligned if elements are combined in any order.
///
/// Of short elements the alignment is looked at all the same: in the branches that makes all loads stay together, which `ptxas`
/// otherwise moves between the many instructions that a pack of them takes. Large states leave no registers for that.
///
/// # Safety
/// All packs are inside of the view, `stride` is a multiple of a pack's length, and if `O::ANY_ORDER`, element `i` is at a
/// multiple of 16 bytes.
#[inline(always)]
unsafe fn load_packs<O: Operator<T>, T: Element, const PACKS: usize>(
    input: &Global<T>,
    i: usize,
    stride: usize,
) -> [T::Pack; PACKS] {
    // SAFETY: as promised by the caller.
    unsafe {
        if O::ANY_ORDER && (size_of::<T>() >= 4 || size_of::<O::State>() > 8) {
            input.load_aligned_packs_unchecked::<PACKS>(i, stride)
        } else {
            input.load_packs_unchecked::<PACKS>(i, stride)
        }
    }
}
