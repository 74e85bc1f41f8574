//! Sums of the columns of matrices whose rows are contiguous.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use crate::binary::Binary;
use crate::elements::{Buffer, DifferentLengths, Elements, Matrix};
use crate::limbs::Leading;
use crate::round::{Rounded, divide};
use crate::simd::{Instructions, Task, dispatch, is_mode_default};
use crate::stream::{Sink, largest, window_for};
use crate::sum::{ExactSum, State, Summand, Superaccumulator, unit};
use crate::window::{Bins, Window};

#[cfg(test)]
mod tests;

/// The exact sum of each column of a matrix, which is read row by row.
///
/// ```
/// use exact_sum::{ColumnSums, Matrix};
///
/// let mut sums = ColumnSums::<f32>::new(2);
/// sums.add_rows(Matrix::from_slice(&[1e20, 1.0, 3.0, 2.0, -1e20, 4.0], 2)?)?;
/// assert_eq!([sums.rounded::<f32>(0), sums.rounded(1)], [3.0, 7.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A sum takes 24 bytes (32 of `f64`) until it has elements that do not fit in one window, then a superaccumulator.
#[derive(Clone, Debug)]
pub struct ColumnSums<T: Summand> {
    columns: usize,
    /// The number of rows.
    count: u64,
    /// How many rows are one row of lanes, so that matrices of few columns fill vectors.
    fold: usize,
    /// A tile for each [`TILE`] lanes.
    tiles: Vec<Tile<T::Binary>>,
    lanes: Lanes<T::Binary>,
    /// The sums of lanes in units of their tile's window.
    values: Box<[i128]>,
    /// What was outside of windows, of each lane; empty until something was.
    spills: Vec<State<T::Limbs>>,
}

/// The bins of each lane.
#[derive(Clone, Debug)]
struct Lanes<F: Binary> {
    upper: Box<[F::Word]>,
    lower: Box<[F::Word]>,
}

/// Lanes that share a window.
#[derive(Clone, Copy, Debug)]
struct Tile<F: Binary> {
    window: Window<F>,
    /// Whether the window was chosen.
    has_window: bool,
    /// The number of elements in the bins of each lane.
    count: u32,
    /// How often the bins were added to the values.
    drains: u32,
}

/// The number of lanes of a tile.
const TILE: usize = 256;
/// The number of rows that are added to bins at a time.
const ROWS: usize = 4;
/// Rows are folded into at most this many lanes.
const FOLDED: usize = 64;
/// The maximum number of drains. An element is an integer below 2^46 of `f32` and 2^104 of `f64`, so that the bins of a
/// lane are below 2^55 and 2^116, and this many, in each of [`FOLDED`] lanes, below 2^126.
const fn max_drains<F: Binary>() -> u32 {
    if F::MANTISSA < 32 { 1 << 30 } else { 1 << 3 }
}

impl<T: Summand> ColumnSums<T> {
    /// The sums of no rows.
    pub fn new(columns: usize) -> Self {
        let fold = FOLDED.checked_div(columns).unwrap_or(1).max(1);
        let lanes = columns * fold;
        let tile = Tile { window: Window::new(0), has_window: false, count: 0, drains: 0 };
        Self {
            columns,
            count: 0,
            fold,
            tiles: vec![tile; lanes.div_ceil(TILE)],
            lanes: Lanes {
                upper: vec![T::Binary::ZERO; lanes].into_boxed_slice(),
                lower: vec![T::Binary::ZERO; lanes].into_boxed_slice(),
            },
            values: vec![0; lanes].into_boxed_slice(),
            spills: Vec::new(),
        }
    }

    /// Adds the rows of a matrix, each element to the sum of its column.
    ///
    /// # Errors
    /// If the matrix has another number of columns; the sums are then unchanged.
    ///
    /// # Panics
    /// If the sums would have more than [`MAX_ELEMENTS`](crate::MAX_ELEMENTS) elements each; they are then unchanged.
    pub fn add_rows(&mut self, matrix: Matrix<'_, T>) -> Result<(), DifferentLengths> {
        if matrix.columns() != self.columns {
            return Err(DifferentLengths { first: matrix.columns(), second: self.columns });
        }
        let mut counter = State::<T::Limbs> { count: self.count, ..State::default() };
        counter.count_elements(matrix.rows());
        self.count = counter.count;
        if is_mode_default() {
            dispatch(RowsTask { sums: self, matrix });
            return Ok(());
        }
        self.spill();
        for row in 0..matrix.rows() {
            let row = matrix.row(row).iter();
            self.spills.iter_mut().zip(row).for_each(|(spill, element)| spill.add(element.to_binary()));
        }
        Ok(())
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The number of rows.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of a column.
    ///
    /// # Panics
    /// If there are not that many columns.
    pub fn sum(&self, column: usize) -> ExactSum<T> {
        let mut state = State::<T::Limbs> { count: self.count, ..State::default() };
        let (value, position) = self.value(column);
        Sink { state: &mut state, offset: 0 }.add(value, position);
        for lane in self.lanes_of(column).filter(|_| !self.spills.is_empty()) {
            let spill = &self.spills[lane];
            state.limbs.merge(&spill.limbs);
            state.specials = state.specials.union(spill.specials);
        }
        ExactSum { state }
    }

    /// The sum of a column, rounded once.
    ///
    /// # Panics
    /// If there are not that many columns.
    pub fn rounded<R: Rounded>(&self, column: usize) -> R {
        if !self.spills.is_empty() {
            return self.sum(column).rounded();
        }
        let (value, position) = self.value(column);
        R::round(Leading::of(value, 0), position as i32 + unit::<T::Binary>())
    }

    /// The mean of a column: the exact sum divided by the number of rows, rounded once. NaN if there are no rows.
    ///
    /// # Panics
    /// If there are not that many columns.
    pub fn mean<R: Rounded>(&self, column: usize) -> R {
        if !self.spills.is_empty() || self.count == 0 {
            return self.sum(column).mean();
        }
        let (value, position) = self.value(column);
        R::round(divide(Leading::of(value, position as i32), self.count), unit::<T::Binary>())
    }

    /// The lanes of a column, which are in one tile.
    fn lanes_of(&self, column: usize) -> impl Iterator<Item = usize> + use<T> {
        assert!(column < self.columns, "column {column} of {}", self.columns);
        let columns = self.columns;
        (0..self.fold).map(move |row| column + row * columns)
    }

    /// The sum of a column in its tile's window, and the position of the unit.
    fn value(&self, column: usize) -> (i128, u32) {
        // Folded rows are in the first tile.
        let tile = &self.tiles[column / TILE];
        let Lanes { upper, lower } = &self.lanes;
        let drained = |lane: usize| self.values[lane] + tile.window.drain(upper[lane], lower[lane], tile.count);
        (self.lanes_of(column).map(drained).sum(), tile.window.position())
    }

    /// Gives each lane a superaccumulator.
    fn spill(&mut self) {
        self.spills.resize_with(self.values.len(), State::default);
    }

    /// Adds the bins of a tile to the values, and if `moves`, these to the superaccumulators.
    #[inline(never)]
    fn drain(&mut self, tile: usize, moves: bool) {
        let Tile { window, count, drains, .. } = &mut self.tiles[tile];
        *drains += 1;
        let moves = moves || *drains == max_drains::<T::Binary>();
        let lanes = tile * TILE..self.values.len().min((tile + 1) * TILE);
        for lane in lanes.clone() {
            let (upper, lower) = (&mut self.lanes.upper[lane], &mut self.lanes.lower[lane]);
            self.values[lane] += window.drain(*upper, *lower, *count);
            (*upper, *lower) = (T::Binary::ZERO, T::Binary::ZERO);
        }
        *count = 0;
        if moves {
            *drains = 0;
            let position = window.position();
            self.spill();
            for lane in lanes {
                Sink { state: &mut self.spills[lane], offset: 0 }.add(self.values[lane], position);
                self.values[lane] = 0;
            }
        }
    }

    /// Adds `N` rows of a tile.
    #[inline(always)]
    fn add_tile<const N: usize>(&mut self, at: usize, rows: [&[T::Binary]; N]) {
        let lanes = at * TILE..at * TILE + rows[0].len();
        let tile = &mut self.tiles[at];
        if tile.count + N as u32 > Window::<T::Binary>::CAPACITY {
            self.drain(at, false);
        }
        let tile = &mut self.tiles[at];
        if tile.has_window && self.lanes.add(lanes.clone(), &tile.window, rows) {
            tile.count += N as u32;
            return;
        }
        // The window of these rows.
        let largest = rows.iter().map(|row| largest(*row)).fold(T::Binary::default(), T::Binary::larger);
        let window = Window::new(window_for(largest));
        let is_other = !tile.has_window || window.exponent() != tile.window.exponent();
        if is_other && largest.exponent_bound() <= T::Binary::MAX_EXPONENT && are_exact(&window, rows) {
            if tile.has_window {
                self.drain(at, true);
            }
            let tile = &mut self.tiles[at];
            (tile.window, tile.has_window) = (window, true);
            self.lanes.add(lanes, &window, rows);
            tile.count += N as u32;
            return;
        }
        self.add_to_spills(lanes.start, &rows);
    }

    /// Adds rows of a tile to the superaccumulators of its lanes.
    #[inline(never)]
    fn add_to_spills(&mut self, start: usize, rows: &[&[T::Binary]]) {
        self.spill();
        for row in rows {
            self.spills[start..].iter_mut().zip(*row).for_each(|(spill, &element)| spill.add(element));
        }
    }
}

impl<F: Binary> Lanes<F> {
    /// Adds `N` rows. Returns whether that was exact; if not, nothing is added.
    #[inline(always)]
    fn add<const N: usize>(&mut self, lanes: Range<usize>, window: &Window<F>, rows: [&[F]; N]) -> bool {
        let len = lanes.len();
        let (upper, lower) = (&mut self.upper[lanes.clone()], &mut self.lower[lanes]);
        let rows = rows.map(|row| &row[..len]);
        let mut all = Bins::EMPTY;
        for lane in 0..len {
            let mut bins = Bins { upper: upper[lane], lower: lower[lane], ..all };
            for row in rows {
                bins = window.extract(bins, row[lane]);
            }
            (upper[lane], lower[lane]) = (bins.upper, bins.lower);
            all = Bins { upper: F::ZERO, lower: F::ZERO, ..bins };
        }
        if all.is_exact() {
            return true;
        }
        for lane in 0..len {
            let mut bins = Bins::EMPTY;
            for row in rows {
                bins = window.extract(bins, row[lane]);
            }
            upper[lane] = F::subtract_words(upper[lane], bins.upper);
            lower[lane] = F::subtract_words(lower[lane], bins.lower);
        }
        false
    }
}

/// Whether the bins of all rows would be exact.
#[inline(always)]
fn are_exact<F: Binary, const N: usize>(window: &Window<F>, rows: [&[F]; N]) -> bool {
    let bins = |bins, row: &[F]| row.iter().fold(bins, |bins, &element| window.extract(bins, element));
    rows.into_iter().fold(Bins::EMPTY, bins).is_exact()
}

struct RowsTask<'a, 'b, T: Summand> {
    sums: &'a mut ColumnSums<T>,
    matrix: Matrix<'b, T>,
}

impl<T: Summand> Task for RowsTask<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self) {
        let Self { sums, matrix } = self;
        let folded = matrix.folded(sums.fold);
        let mut buffers = [const { Buffer::<T::Binary, TILE>::None }; ROWS];
        let [a, b, c, d] = &mut buffers;
        let whole = folded.rows() / ROWS * ROWS;
        for first in (0..whole).step_by(ROWS) {
            let rows: [Elements<'_, T>; ROWS] = core::array::from_fn(|row| folded.row(first + row));
            for (tile, at, len) in tiles(folded.columns()) {
                let [first, second, third, fourth] = rows;
                let first = first.block(at, len, a);
                let (second, third) = (second.block(at, len, b), third.block(at, len, c));
                sums.add_tile(tile, [first, second, third, fourth.block(at, len, d)]);
            }
        }
        for row in whole..folded.rows() {
            for (tile, at, len) in tiles(folded.columns()) {
                sums.add_tile(tile, [folded.row(row).block(at, len, a)]);
            }
        }
        // The other rows, packed, and zeros, which change no sum.
        let first = folded.rows() * sums.fold;
        for first in (first..matrix.rows()).step_by(sums.fold) {
            let mut lanes = [T::Binary::default(); FOLDED];
            for (row, lanes) in (first..matrix.rows()).zip(lanes.chunks_exact_mut(sums.columns).take(sums.fold)) {
                lanes.iter_mut().zip(matrix.row(row).iter()).for_each(|(lane, element)| *lane = element.to_binary());
            }
            sums.add_tile(0, [&lanes[..sums.fold * sums.columns]]);
        }
    }
}

/// The tiles of some lanes: each tile's index, first lane and length.
#[inline(always)]
fn tiles(lanes: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..lanes).step_by(TILE).enumerate().map(move |(tile, at)| (tile, at, TILE.min(lanes - at)))
}
