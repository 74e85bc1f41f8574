//! Long rows, each folded by one block or several: whole inputs, long rows of a matrix, segments of equal length.

use core::ops::Range;

use cuda_std::prelude::*;
use cuda_std::tile_state;
use cuda_std::warp::{FULL_MASK, warp_vote_any};

use super::fold::{WarpStates, fold_warps};
use super::tile_range::{TileRange, fold_tiles};
pub use super::tuning::long_rows::{MAX_THREADS, VECTORS_IN_FLIGHT};
use crate::ops::builtin::*;
use crate::ops::{Operator, constant};

/// The elements of `size` bytes in a tile of a block of `threads` threads.
pub const fn tile(threads: usize, size: usize) -> usize {
    threads * VECTORS_IN_FLIGHT * (16 / size)
}

/// The arguments of [`long_rows`](fn@long_rows), and of custom kernels that call [`fold_long_rows`].
#[arguments]
pub struct LongRowArgs<T: Plain, R: Plain> {
    /// The operator's value: [`Operator::to_word`].
    pub operator: u64,
    /// The elements.
    pub input: Global<T>,
    /// Elements of a row.
    pub len: usize,
    /// Elements from the start of a row to that of the next one.
    pub pitch: usize,
    /// Blocks that share a row: its splits.
    pub splits: u32,
    /// Tiles of a split; the longer splits have one more.
    pub tiles: u32,
    /// Longer splits, which come first.
    pub longer_splits: u32,
    /// The tile states of the rows' splits; all 0 before and after the launch.
    pub tile_states: GlobalMut<[u64; 2]>,
    /// A result for each row.
    pub output: GlobalMut<R>,
}

/// Reduces rows of `len` elements, `pitch` elements apart, to one output each.
///
/// A row is split among `splits` blocks. The first `longer_splits` splits have `tiles + 1` tiles, the others `tiles`;
/// the row's last tile may be partial. (The host divides, since a division in a block would take as long as a tile.)
/// With one split, block `i` reduces row `i`; with more, the grid is `splits` blocks wide and has a row of blocks for
/// each row.
///
/// - *Loads are 16 bytes wide and coalesced*. Each thread has eight in flight, those of two tiles, before it uses the
///   first. Bytes in flight bound a reduction (Little's law): the two blocks of 512 threads for which a multiprocessor
///   of an H200 has registers have 128 KiB in flight. With one tile in flight, 64 KiB, an input that one block folds
///   takes up to a fifth longer. With 1024 threads of two vectors each, 32 KiB, 2^28 elements take 5 % longer
///   (`docs/notes/whole-inputs.md`). `ptxas` keeps the loads together only if it knows how many blocks must fit
///   (`min_blocks`).
/// - *A split is contiguous*: consecutive tiles.
/// - *Alignment changes instructions, not the order*. A thread's elements are counted from the row's first element, or,
///   if [any order](Operator::ANY_ORDER) gives the same result, from the first at a multiple of 16 bytes. For operators
///   that keep an order, this kernel takes rows at multiples of 16 bytes, and
///   [`long_rows_unaligned`](fn@long_rows_unaligned) takes the others: one kernel for both would be half as long again,
///   and so would the driver's work before a program's first sum (`docs/notes/whole-inputs.md`).
/// - *One block folds the partials*, in the order of the splits. This saves a second launch, which costs more than a
///   whole short reduction. Blocks publish partials in [tile states](cuda_std::tile_state), which the last split's
///   block clears.
///
/// With more than one split, `tile_states` has [the tile states](cuda_std::tile_state::tile_states_per_value) for the
/// states of all blocks, 0 before and after the launch.
///
/// # Safety
/// The arguments are as described above, and the views have all elements that they name: accesses are not checked. The
/// operator [resolves](Operator::resolve_index) indices only with elements of its row.
#[kernel(
    instances = builtin_operators!,
    max_threads = MAX_THREADS,
    min_blocks = 2,
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS, erase = crate::ops::Erased
)]
pub unsafe fn long_rows<O: Operator<T>, T: Element>(
    LongRowArgs { operator, input, len, pitch, splits, tiles, longer_splits, tile_states, output }: LongRowArgs<
        T,
        <O as Operator<T>>::Output,
    >,
) {
    let operator = O::from_word(operator);
    let is_aligned = |_| true;
    // SAFETY: the operators above ask only for elements that they were given.
    let element = |i| unsafe { input.load_unchecked(i) };
    fold_split::<O, T>(
        operator,
        &input,
        len,
        pitch,
        splits,
        tiles,
        longer_splits,
        &tile_states,
        &output,
        is_aligned,
        element,
    );
}

/// [`long_rows`](fn@long_rows) at any alignment, for operators that keep an order: the same order, with one tile in
/// flight.
///
/// # Safety
/// The arguments are as described above, and the views have all elements that they name: accesses are not checked.
#[kernel(
    instances = [Product, PairwiseSumOrMean] x [f32, f64, f16, bf16],
    max_threads = MAX_THREADS,
    min_blocks = 2,
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS, erase = crate::ops::Erased
)]
pub unsafe fn long_rows_unaligned<O: Operator<T>, T: Element>(
    LongRowArgs { operator, input, len, pitch, splits, tiles, longer_splits, tile_states, output }: LongRowArgs<
        T,
        <O as Operator<T>>::Output,
    >,
) {
    let operator = O::from_word(operator);
    let is_aligned = |_| false;
    // SAFETY: as in `long_rows`.
    let element = |i| unsafe { input.load_unchecked(i) };
    fold_split::<O, T>(
        operator,
        &input,
        len,
        pitch,
        splits,
        tiles,
        longer_splits,
        &tile_states,
        &output,
        is_aligned,
        element,
    );
}

/// The body of a custom operator's kernel: that of [`long_rows`](fn@long_rows), or, for an unaligned row, of
/// [`long_rows_unaligned`](fn@long_rows_unaligned).
///
/// # Safety
/// The arguments are as described for [`long_rows`](fn@long_rows), and the views have all elements that they name:
/// accesses are not checked.
#[inline(always)]
pub unsafe fn fold_long_rows<O: Operator<T>, T: Element>(
    LongRowArgs { operator, input, len, pitch, splits, tiles, longer_splits, tile_states, output }: LongRowArgs<
        T,
        O::Output,
    >,
) {
    let operator = O::from_word(operator);
    let is_aligned = |start| constant!(O::ANY_ORDER) || input.elements_past(start, 16) == 0;
    // Checked, since a custom operator may ask for any element.
    let element = |i| input.load(i);
    fold_split::<O, T>(
        operator,
        &input,
        len,
        pitch,
        splits,
        tiles,
        longer_splits,
        &tile_states,
        &output,
        is_aligned,
        element,
    );
}

/// The body of [`fold_long_rows`]. `is_aligned` says whether the row that begins at an element [is
/// aligned](fold_tiles). `element` loads the elements that resolve indices.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "they are the kernel's")]
fn fold_split<O: Operator<T>, T: Element>(
    operator: O,
    input: &Global<T>,
    len: usize,
    pitch: usize,
    splits: u32,
    tiles: u32,
    longer_splits: u32,
    tile_states: &GlobalMut<[u64; 2]>,
    output: &GlobalMut<O::Output>,
    is_aligned: impl Fn(usize) -> bool,
    element: impl Fn(usize) -> T,
) {
    let split = Split::of_block(splits, tiles, longer_splits);
    split.launch_dependents();
    let start = split.row * pitch;
    let of_thread =
        fold_tiles::<O, T, VECTORS_IN_FLIGHT, true>(operator, input, start, len, split.tile_range(), is_aligned(start));
    split.launch_dependents_late();
    let resolve_index = |state| operator.resolve_index(state, |i| element(start.wrapping_add(i as usize)));
    split.finish::<O, T>(operator, of_thread, resolve_index, len, tile_states, output);
}

/// The split of a row that a block folds.
pub(super) struct Split {
    /// The row's index.
    pub row: usize,
    /// The split's index in the row.
    pub index: u32,
    splits: u32,
    tiles: Range<u32>,
    /// Rounds of loads, of one tile or several tiles each.
    rounds: u32,
}

impl Split {
    /// This block's split; the parameters are the kernel's.
    #[inline(always)]
    pub fn of_block(splits: u32, tiles: u32, longer_splits: u32) -> Self {
        let (row, index) = match splits {
            1 => (thread::block_idx_x() as usize, 0),
            _ => (thread::block_idx_y() as usize, thread::block_idx_x()),
        };
        let longer_before = if index < longer_splits { index } else { longer_splits };
        let first = index * tiles + longer_before;
        let tiles = tiles + u32::from(index < longer_splits);
        Self { row, index, splits, tiles: first..first + tiles, rounds: tiles }
    }

    /// The same split, with `tiles` tiles in each round of loads.
    #[inline(always)]
    pub fn with_tiles_per_round(self, tiles: u32) -> Self {
        Self { rounds: (self.tiles.end - self.tiles.start).div_ceil(tiles), ..self }
    }

    /// Launches dependents now if this block's work is short: one round of loads or two. During longer work, the next
    /// grid's blocks would take resources of this grid's.
    #[inline(always)]
    pub fn launch_dependents(&self) {
        if self.rounds <= 2 {
            thread::launch_dependents();
        }
    }

    /// Launches dependents when the block's first warp has done its loads, for work of a few more rounds. Not for long
    /// work: its blocks end at very different times, and the next grid's blocks would fill the multiprocessors that are
    /// free first.
    #[inline(always)]
    pub fn launch_dependents_late(&self) {
        if self.rounds > 2 && self.rounds <= 32 {
            thread::launch_dependents();
        }
    }

    /// The split's tiles.
    #[inline(always)]
    pub fn tile_range(&self) -> TileRange {
        TileRange { tiles: self.tiles.start as usize..self.tiles.end as usize, is_last: self.index + 1 == self.splits }
    }

    /// Combines the states of all threads over the row's `len` elements, and writes the result.
    #[inline(always)]
    pub fn finish<O: Operator<T>, T: Element>(
        &self,
        operator: O,
        of_thread: O::State,
        resolve_index: impl Fn(O::State) -> O::State,
        len: usize,
        tile_states: &GlobalMut<[u64; 2]>,
        output: &GlobalMut<O::Output>,
    ) {
        let warp_states = shared_array![O::State; 32];
        let thread = thread::thread_idx_x() as usize;
        let Self { row, index, splits, .. } = *self;
        let warps = thread::block_dim_x() / 32;
        // Only the last split's block needs its other warps once more.
        let is_done = index + 1 < splits || splits == 1;
        let state = fold_warps::<O, T>(of_thread, warps, &warp_states, is_done);
        if splits == 1 {
            if thread == 0 {
                output.store(row, operator.finish(resolve_index(state), len as u64));
            }
            return;
        }

        let first = row * splits as usize;
        if thread == 0 {
            tile_state::publish(tile_states, first + index as usize, resolve_index(state));
        }
        // The last split's block waits for the others, which started before it.
        if index + 1 < splits {
            return;
        }
        thread::sync_threads();
        let state = fold_partials::<O, T>(splits, &warp_states, |i, has_one| {
            tile_state::wait_by_warp(tile_states, first + i, has_one)
        });
        if thread == 0 {
            output.store(row, operator.finish(state, len as u64));
        }
    }
}

/// The state over `splits` partials, in thread 0. All threads of the block must call this.
///
/// All lanes of a warp call `partial`. Lanes without a partial pass `false`, and their results are ignored.
#[inline(always)]
pub(super) fn fold_partials<O: Operator<T>, T: Element>(
    splits: u32,
    warp_states: &WarpStates<O::State>,
    partial: impl Fn(usize, bool) -> O::State,
) -> O::State {
    let mut state = constant!(O::NEUTRAL);
    let mut i = thread::thread_idx_x();
    while warp_vote_any(FULL_MASK, i < splits) {
        let has_one = i < splits;
        let with = O::combine(state, partial(if has_one { i as usize } else { 0 }, has_one));
        state = if has_one { with } else { state };
        i += thread::block_dim_x();
    }
    let (warps, with_partials) = (thread::block_dim_x() / 32, splits.div_ceil(32));
    fold_warps::<O, T>(state, if with_partials < warps { with_partials } else { warps }, warp_states, false)
}
