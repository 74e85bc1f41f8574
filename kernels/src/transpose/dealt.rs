//! Transposes whose rows are dealt out, on one side: what reverses three axes of which the first or the last is short.
//!
//! An array of `a x b x c` elements is a matrix of `a` rows of `b * c` elements. In its transpose, element `(b, c)` of
//! a row is row `b * c_len + c`; where all axes are reversed, it is row `c * b_len + b`. So rows go to members of
//! groups as cards go to players: consecutive ones to consecutive members, each member keeping what it gets together.
//! With a short axis `c` this loads and writes long stretches, where a transpose for each `b` would load `c` elements
//! at a time. A short axis `a` is dealt in the input.

use cuda_std::prelude::*;

use super::change::Same;
use super::tile::{Cut, Rows, Tile, launch_dependents, squares, threads};
use super::tuning::tile_elements;
use super::turn::Turn;
use super::{ragged, wide};
use crate::divisor::Divisor;

/// The most members that rows may be dealt to.
pub const MOST_MEMBERS: usize = 1 << 12;

/// A divisor above all rows of a tile: all of them are one group's.
const NOT_DEALT: u32 = 1 << 31;

/// Rows of a tile that are dealt out, and whether all of the tile is at multiples of 16 bytes: then no row is looked
/// for in a loop.
#[derive(Clone, Copy)]
struct Dealt<const WIDE: bool> {
    /// Where the group of the tile's first row begins for the first member.
    first: usize,
    /// The member that gets the tile's first row.
    past: u32,
    by: Divisor,
    /// Elements from one member's to the next, and from one group to the next.
    member: usize,
    group: usize,
}

impl<const WIDE: bool> Dealt<WIDE> {
    /// Rows from `top` on, of `rows` in all that are `pitch` elements long, from their element `left` on. `members`
    /// divides `rows`.
    #[inline(always)]
    fn new(rows: usize, pitch: usize, members: u32, (top, left): (usize, usize)) -> Self {
        if members == 1 {
            let first = top * pitch + left;
            return Self { first, past: 0, by: Divisor::new(NOT_DEALT), member: pitch, group: 0 };
        }
        let groups = rows / members as usize;
        let (group, past) = (top / members as usize, (top % members as usize) as u32);
        let first = group * pitch + left;
        Self { first, past, by: Divisor::new(members), member: groups * pitch, group: pitch }
    }
}

impl<const WIDE: bool> Rows for Dealt<WIDE> {
    #[inline(always)]
    fn start(self, row: u32) -> usize {
        let nth = self.past + row;
        let (group, member) = if WIDE { self.by.divide_outside_of_loops(nth) } else { self.by.divide(nth) };
        self.first + group as usize * self.group + member as usize * self.member
    }

    #[inline(always)]
    fn are_lines_apart<T>(self) -> bool {
        true
    }
}

/// The arguments of [`dealt_tiles`](fn@dealt_tiles) and [`wide_dealt_tiles`](fn@wide_dealt_tiles).
#[arguments]
pub struct DealtArgs<T: Plain> {
    /// The elements.
    pub input: Global<T>,
    /// The transposes.
    pub output: GlobalMut<T>,
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub columns: usize,
    /// To how many members the rows are dealt.
    pub members_of_input: u32,
    /// To how many members the rows of the transpose are dealt.
    pub members_of_output: u32,
    /// The binary logarithm of the squares side by side in a tile.
    pub across: u32,
    /// Tiles one below the other.
    pub tiles_down: u32,
    /// Tiles side by side.
    pub tiles_across: u32,
}

/// Writes the transpose of a matrix of `rows` x `columns` elements. The input's rows are dealt to `members_of_input`,
/// the output's to `members_of_output`: row `i` is the one at place `i % members * (rows / members) + i / members`.
/// Members are at most [`MOST_MEMBERS`] and divide the rows; 1 is as it is.
///
/// `LEN`, tiles and grid are as of [`tiles`](mod@super::tiles); sides and addresses may be any.
///
/// # Safety
/// The arguments are as said above, and the views have all elements that they name: accesses are not checked.
#[kernel(
    instances = [u8] x [32768 == tile_elements(1)] + [u16] x [16384 == tile_elements(2)] + [u32] x [4096 == tile_elements(4)]
        + [u64] x [2048 == tile_elements(8)],
    block = threads(LEN, size_of::<T>()),
    early = crate::PREFETCH_BLOCKS
)]
pub unsafe fn dealt_tiles<T: Turn, const LEN: usize>(
    DealtArgs { input, output, rows, columns, members_of_input, members_of_output, across, tiles_down, tiles_across }: DealtArgs<T>,
) {
    launch_dependents();
    let tile = shared_array![T; LEN];
    let size = size_of::<T>();
    let cut = Cut::in_order(across, tiles_down, tiles_across);
    let shape = Tile::of_block(rows, columns, cut, squares(LEN, size), size);
    let from = Dealt::<false>::new(rows, columns, members_of_input, (shape.top, shape.left));
    let to = Dealt::<false>::new(columns, rows, members_of_output, (shape.left, shape.top));
    ragged::load_tile(&input, from, Same, &shape, &tile);
    thread::sync_threads();
    ragged::store_tile(&output, to, &shape, &tile);
}

/// [`dealt_tiles`](fn@dealt_tiles) whose sides and addresses are multiples of 16 bytes.
///
/// # Safety
/// The arguments are as said above, and the views have all elements that they name: accesses are not checked.
#[kernel(
    instances = [u8] x [32768 == tile_elements(1)] + [u16] x [16384 == tile_elements(2)] + [u32] x [4096 == tile_elements(4)]
        + [u64] x [2048 == tile_elements(8)] + [u128] x [1024 == tile_elements(16)],
    block = threads(LEN, size_of::<T>()),
    early = crate::PREFETCH_BLOCKS
)]
pub unsafe fn wide_dealt_tiles<T: Turn, const LEN: usize>(
    DealtArgs { input, output, rows, columns, members_of_input, members_of_output, across, tiles_down, tiles_across }: DealtArgs<T>,
) {
    launch_dependents();
    let tile = shared_array![T; LEN];
    let size = size_of::<T>();
    let cut = Cut::in_order(across, tiles_down, tiles_across);
    let shape = Tile::of_block(rows, columns, cut, squares(LEN, size), size);
    let from = Dealt::<true>::new(rows, columns, members_of_input, (shape.top, shape.left));
    let to = Dealt::<true>::new(columns, rows, members_of_output, (shape.left, shape.top));
    wide::load_tile(&input, from, Same, &shape, &tile);
    thread::sync_threads();
    wide::store_tile(&output, to, &shape, &tile);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_dealt_in_turn() {
        // 4 groups of 3, of 10 elements: members' rows are 40 apart.
        let rows = Dealt::<false>::new(12, 10, 3, (5, 2));
        let starts = [0, 1, 2, 3, 6].map(|row| rows.start(row));
        assert_eq!(starts, [82 + 10, 2 + 20, 42 + 20, 82 + 20, 82 + 30]);
        let rows = Dealt::<true>::new(12, 10, 1, (5, 2));
        assert_eq!([0, 1, 6].map(|row| rows.start(row)), [52, 62, 112]);
    }
}
