//! A tile on its way in and out where rows begin and end at any address: a tile with a slanted upper and lower edge.
//!
//! What is slow about such rows is not to read but to write them: memory takes sectors of 32 bytes, and one that two blocks
//! write half of each costs more than two whole ones. So here a tile ends, in each row of the output, where a sector ends. As
//! rows of the output begin at any place in a sector, those ends are not in one row of the input: each column of the tile
//! begins up to a sector's elements higher or lower than its neighbours. A block therefore loads [`MARGIN`] more rows of
//! squares than it writes, and leaves to its neighbour above what it does not write of them. Only at the matrix' own edges
//! are there parts of packs.
//!
//! Positions in a row of the output are counted from the start of the sector in which it begins.

use cuda_std::bits::cut_pack;
use cuda_std::prelude::*;

use super::change::Change;
use super::tile::{Layout, Tile, pack_of_thread, square_of_thread, squares_each, turn_squares};
use super::turn::{Each, Turn, sixteen};

/// Bytes of a sector.
const SECTOR: usize = 32;

/// Rows of squares that a tile shares with the one above it: a sector's.
pub const MARGIN: u32 = SECTOR as u32 / 16;

/// The positions that rows of the output of `rows` elements of `size` bytes may reach: they begin in their first sector.
pub const fn positions(rows: usize, size: usize) -> usize {
    rows + SECTOR / size - 1
}

/// Loads the thread's squares, turns them, and leaves them in shared memory. The tile's `top` is the first position that it
/// writes; its first row is a margin above.
#[inline(always)]
pub(super) fn load_tile<T: Turn, C: Change<T>, const LEN: usize>(
    input: &Global<T>,
    rows: usize,
    layout: &Layout,
    change: C,
    shape: &Tile,
    tile: &SharedArray<T, LEN>,
) {
    let packs = sixteen(&PartsOfInput::<T, LEN> { input, rows, layout, shape });
    turn_squares(&packs, change, shape, tile);
}

/// The rows of the thread's squares, as far as the matrix has them.
struct PartsOfInput<'a, T, const LEN: usize> {
    input: &'a Global<'a, T>,
    rows: usize,
    layout: &'a Layout,
    shape: &'a Tile,
}

impl<T: Turn, const LEN: usize> Each for PartsOfInput<'_, T, LEN> {
    type Of = T::Pack;

    #[inline(always)]
    fn of(&self, i: usize) -> T::Pack {
        let (side, shape) = (T::Pack::LEN, self.shape);
        let (x, y) = square_of_thread::<T, LEN>(i / side, shape.across);
        let row = (shape.top + y as usize * side + i % side).wrapping_sub(SECTOR / size_of::<T>());
        let column = x * side as u32;
        // A row above the first is, wrapped, one far behind the last.
        if i < squares_each::<T, LEN>() * side && row < self.rows && column < shape.columns {
            let left = (shape.columns - column) as usize;
            let first = shape.batch * self.layout.batch + shape.left;
            let place = first + row * self.layout.pitch + column as usize;
            // SAFETY: inside of the matrix, and so the view.
            unsafe { self.input.load_part_unchecked(place, 0, if left < side { left } else { side }) }
        } else {
            T::Pack::splat(T::default())
        }
    }
}

/// Writes columns from shared memory to rows of the output.
#[inline(always)]
pub(super) fn store_tile<T: Turn, const LEN: usize>(
    output: &GlobalMut<T>,
    rows: usize,
    layout: &Layout,
    shape: &Tile,
    tile: &SharedArray<T, LEN>,
) {
    sixteen(&PacksOfOutput { output, rows, layout, shape, tile });
}

/// The packs that a thread writes.
struct PacksOfOutput<'a, T, const LEN: usize> {
    output: &'a GlobalMut<'a, T>,
    rows: usize,
    layout: &'a Layout,
    shape: &'a Tile,
    tile: &'a SharedArray<T, LEN>,
}

impl<T: Turn, const LEN: usize> PacksOfOutput<'_, T, LEN> {
    /// Pack `k` of those that the tile has of a row which begins `past` elements into a sector: of the column's packs, which
    /// begin a margin above, those that are `past` elements before it.
    #[inline(always)]
    fn pack(&self, column: u32, k: u32, past: u32) -> T::Pack {
        let side = T::Pack::LEN as u32;
        let begin = (k + MARGIN) * side - past;
        let of_column = |q: u32| self.tile.load_pack(self.shape.pack(column, q));
        let low = of_column(begin / side);
        if begin.is_multiple_of(side) {
            return low;
        }
        cut_pack(low, of_column(begin / side + 1), (begin % side) as usize)
    }
}

impl<T: Turn, const LEN: usize> Each for PacksOfOutput<'_, T, LEN> {
    type Of = ();

    #[inline(always)]
    fn of(&self, i: usize) {
        let (side, shape) = (T::Pack::LEN, self.shape);
        let (column, k) = pack_of_thread::<T, LEN>(i, shape.down);
        let is_there = i < squares_each::<T, LEN>() * side && k + MARGIN < 1 << shape.down;
        if !is_there || column >= shape.columns {
            return;
        }
        let row = shape.batch * self.layout.batch + (shape.left + column as usize) * self.layout.pitch;
        let past = self.output.elements_past(row, SECTOR);
        let pack = self.pack(column, k, past as u32);
        let (position, end) = (shape.top + k as usize * side, past + self.rows);
        let place = row.wrapping_add(position).wrapping_sub(past);
        if position >= past && position + side <= end {
            // SAFETY: all of the pack is inside of the row, as just compared, and aligned.
            unsafe { self.output.store_pack_unchecked(place, pack) };
            return;
        }
        let from = past.saturating_sub(position);
        let to = if position + side <= end { side } else { end.saturating_sub(position) };
        if from < to {
            // SAFETY: so many elements of the pack are inside of the row, and it is aligned.
            unsafe { self.output.store_part_unchecked(place, pack, from, to) };
        }
    }
}
