//! A tile on its way in and out by 16-byte accesses, where sides, pitches and addresses are multiples of 16 bytes.

use cuda_std::prelude::*;

use super::change::Change;
use super::tile::{Layout, Tile, pack_of_thread, square_of_thread, squares_each, turn_squares};
use super::turn::{Each, Turn, sixteen};

/// Loads the thread's squares, turns them, and leaves them in shared memory.
#[inline(always)]
pub(super) fn load_tile<T: Turn, C: Change<T>, const LEN: usize>(
    input: &Global<T>,
    layout: &Layout,
    change: C,
    shape: &Tile,
    tile: &SharedArray<T, LEN>,
) {
    let first = shape.first_of_input(layout);
    let packs = sixteen(&PacksOfInput::<T, LEN> { input, first, pitch: layout.pitch, shape });
    turn_squares(&packs, change, shape, tile);
}

/// The packs of the thread's squares.
struct PacksOfInput<'a, T, const LEN: usize> {
    input: &'a Global<'a, T>,
    first: usize,
    pitch: usize,
    shape: &'a Tile,
}

impl<T: Turn, const LEN: usize> Each for PacksOfInput<'_, T, LEN> {
    type Of = T::Pack;

    #[inline(always)]
    fn of(&self, i: usize) -> T::Pack {
        let side = T::Pack::LEN;
        let (x, y) = square_of_thread::<T, LEN>(i / side, self.shape.across);
        let (row, column) = (y * side as u32 + (i % side) as u32, x * side as u32);
        if i < squares_each::<T, LEN>() * side && row < self.shape.rows && column < self.shape.columns {
            // SAFETY: inside of the matrix, and so the view: the row's length is a whole number of packs.
            unsafe { self.input.load_pack_unchecked(self.first + row as usize * self.pitch + column as usize) }
        } else {
            T::Pack::splat(T::default())
        }
    }
}

/// Writes packs of columns from shared memory to rows of the output.
#[inline(always)]
pub(super) fn store_tile<T: Turn, const LEN: usize>(
    output: &GlobalMut<T>,
    layout: &Layout,
    shape: &Tile,
    tile: &SharedArray<T, LEN>,
) {
    sixteen(&PacksOfOutput { output, first: shape.first_of_output(layout), pitch: layout.pitch, shape, tile });
}

/// The packs that a thread writes.
struct PacksOfOutput<'a, T, const LEN: usize> {
    output: &'a GlobalMut<'a, T>,
    first: usize,
    pitch: usize,
    shape: &'a Tile,
    tile: &'a SharedArray<T, LEN>,
}

impl<T: Turn, const LEN: usize> Each for PacksOfOutput<'_, T, LEN> {
    type Of = ();

    #[inline(always)]
    fn of(&self, i: usize) {
        let side = T::Pack::LEN;
        let (column, q) = pack_of_thread::<T, LEN>(i, self.shape.down);
        let row = q * side as u32;
        if i < squares_each::<T, LEN>() * side && row < self.shape.rows && column < self.shape.columns {
            let pack = self.tile.load_pack(self.shape.pack(column, q));
            let place = self.first + column as usize * self.pitch + row as usize;
            // SAFETY: inside of the matrix, and so the view: the row's length is a whole number of packs.
            unsafe { self.output.store_pack_unchecked(place, pack) };
        }
    }
}
