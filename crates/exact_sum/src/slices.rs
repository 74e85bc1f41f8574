//! Sums and dot products of slices, of strided elements and of bytes.

use core::marker::PhantomData;
use core::ops::Range;

use crate::binary::Binary;
use crate::elements::{BLOCK, Buffer, DifferentLengths, Elements, ElementsError, Matrix};
use crate::limbs::Leading;
use crate::parts;
use crate::round::{Rounded, divide};
use crate::simd::{Instructions, Task, dispatch, is_mode_default};
use crate::stream::{Block, Sink, Stream, extract_all, largest, window_for};
use crate::sum::{ExactDot, ExactSum, State, Summand, Superaccumulator, unit};
use crate::window::Window;

#[cfg(test)]
mod tests;

/// The blocks of `len` elements: each block's first index, and its length.
#[inline(always)]
fn blocks(len: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..len).step_by(BLOCK).map(move |at| (at, BLOCK.min(len - at)))
}

impl<T: Summand> ExactSum<T> {
    /// Adds the elements of a slice. The sum is that of adding each with [`ExactSum::add`], but this takes little more
    /// time than a plain sum. From 2^19 elements on, it takes several threads (`threads::max`; with the feature `std`).
    ///
    /// # Panics
    /// If the sum would have more than [`MAX_ELEMENTS`](crate::MAX_ELEMENTS) elements; it is then unchanged.
    pub fn add_slice(&mut self, elements: &[T]) {
        self.add_elements(elements.into());
    }

    /// Adds elements from their bytes, little-endian, at any address.
    ///
    /// # Errors
    /// If the number of bytes is not a multiple of the element's size; the sum is then unchanged.
    ///
    /// # Panics
    /// As [`ExactSum::add_slice`].
    pub fn add_unaligned_bytes(&mut self, bytes: &[u8]) -> Result<(), ElementsError> {
        self.add_elements(Elements::from_bytes(bytes)?);
        Ok(())
    }

    /// Adds elements at any stride, aligned or not.
    ///
    /// # Panics
    /// As [`ExactSum::add_slice`].
    pub fn add_elements(&mut self, elements: Elements<'_, T>) {
        self.state.count_elements(elements.len());
        parts::add(&mut self.state, elements.len(), &|state, range| {
            let elements = elements.range(range);
            if elements.len() <= FEW || !is_mode_default() {
                elements.iter().for_each(|element| state.add(element.to_binary()));
            } else {
                dispatch(SumTask { elements, state });
            }
        });
    }
}

/// Up to this many elements are added one after the other.
const FEW: usize = 8;

struct SumTask<'a, T: Summand> {
    elements: Elements<'a, T>,
    state: &'a mut State<T::Limbs>,
}

impl<T: Summand> Task for SumTask<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self) {
        let mut sink = Sink { state: self.state, offset: 0 };
        let mut stream = Stream::new();
        let mut buffer = Buffer::<_, BLOCK>::None;
        for (at, len) in blocks(self.elements.len()) {
            stream.add(self.elements.block(at, len, &mut buffer), &mut sink);
        }
        stream.flush(&mut sink);
    }
}

impl<T: Summand> ExactDot<T> {
    /// Adds the products of the elements of two slices. The sum is that of adding each pair with [`ExactDot::add`].
    ///
    /// # Errors
    /// If the lengths differ; the sum is then unchanged.
    ///
    /// # Panics
    /// If the sum would have more than [`MAX_ELEMENTS`](crate::MAX_ELEMENTS) products; it is then unchanged.
    pub fn add_slices(&mut self, x: &[T], y: &[T]) -> Result<(), DifferentLengths> {
        self.add_elements(x.into(), y.into())
    }

    /// Adds the products of elements at any strides, aligned or not.
    ///
    /// # Errors
    /// If the lengths differ; the sum is then unchanged.
    ///
    /// # Panics
    /// As [`ExactDot::add_slices`].
    pub fn add_elements(&mut self, x: Elements<'_, T>, y: Elements<'_, T>) -> Result<(), DifferentLengths> {
        if x.len() != y.len() {
            return Err(DifferentLengths { first: x.len(), second: y.len() });
        }
        self.state.count_elements(x.len());
        parts::add(&mut self.state, x.len(), &|state, range| {
            let (x, y) = (x.range(range.clone()), y.range(range));
            if x.len() <= FEW || !is_mode_default() {
                x.iter().zip(y.iter()).for_each(|(x, y)| state.add_product(x.to_binary(), y.to_binary()));
            } else {
                dispatch(DotTask { x, y: Some(y), state });
            }
        });
        Ok(())
    }

    /// Adds the squares of the elements of a slice.
    ///
    /// # Panics
    /// As [`ExactDot::add_slices`].
    pub fn add_squares(&mut self, elements: &[T]) {
        self.add_squares_of(elements.into());
    }

    /// Adds the squares of elements at any stride, aligned or not.
    ///
    /// # Panics
    /// As [`ExactDot::add_slices`].
    pub fn add_squares_of(&mut self, elements: Elements<'_, T>) {
        self.state.count_elements(elements.len());
        parts::add(&mut self.state, elements.len(), &|state, range| {
            let elements = elements.range(range);
            if elements.len() <= FEW || !is_mode_default() {
                elements.iter().map(T::to_binary).for_each(|element| state.add_product(element, element));
            } else {
                dispatch(DotTask { x: elements, y: None, state });
            }
        });
    }
}

/// Adds the products of `x` and `y`, or the squares of `x`.
struct DotTask<'a, T: Summand> {
    x: Elements<'a, T>,
    y: Option<Elements<'a, T>>,
    state: &'a mut State<T::ProductLimbs>,
}

impl<T: Summand> Task for DotTask<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self) {
        // Products are summed as `f64`.
        let offset = unit::<f64>() - 2 * unit::<T::Binary>();
        let mut sink = Sink { state: self.state, offset };
        let (mut products, mut errors) = (Stream::<f64>::new(), Stream::<f64>::new());
        let (mut x_buffer, mut y_buffer) = (Buffer::<_, BLOCK>::None, Buffer::<_, BLOCK>::None);
        for (at, len) in blocks(self.x.len()) {
            let x = self.x.block(at, len, &mut x_buffer);
            let y = match &self.y {
                Some(y) => y.block(at, len, &mut y_buffer),
                None => x,
            };
            if T::Binary::MANTISSA < f64::MANTISSA {
                // The products are exact, and have the same specials as the pairs.
                products.add(Products { x, y }, &mut sink);
            } else if are_exact(x, y) {
                products.add(Products { x, y }, &mut sink);
                errors.add(Errors::<_, I> { x, y, instructions: PhantomData }, &mut sink);
            } else {
                add_pairs(x, y, sink.state);
            }
        }
        products.flush(&mut sink);
        errors.flush(&mut sink);
    }
}

/// The products of pairs, rounded to `f64`.
#[derive(Clone, Copy)]
struct Products<'a, F> {
    x: &'a [F],
    y: &'a [F],
}

impl<F: Binary> Block<f64> for Products<'_, F> {
    #[inline(always)]
    fn len(self) -> usize {
        self.x.len()
    }
    #[inline(always)]
    fn part(self, range: Range<usize>) -> Self {
        Self { x: &self.x[range.clone()], y: &self.y[range] }
    }
    #[inline(always)]
    fn iter(self) -> impl Iterator<Item = f64> {
        self.x.iter().zip(self.y).map(|(x, y)| x.to_f64() * y.to_f64())
    }
}

/// What the [`Products`] of pairs lack.
struct Errors<'a, F, I> {
    x: &'a [F],
    y: &'a [F],
    instructions: PhantomData<I>,
}

impl<F, I> Clone for Errors<'_, F, I> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F, I> Copy for Errors<'_, F, I> {}

impl<F: Binary, I: Instructions> Block<f64> for Errors<'_, F, I> {
    #[inline(always)]
    fn len(self) -> usize {
        self.x.len()
    }
    #[inline(always)]
    fn part(self, range: Range<usize>) -> Self {
        Self { x: &self.x[range.clone()], y: &self.y[range], ..self }
    }
    #[inline(always)]
    fn iter(self) -> impl Iterator<Item = f64> {
        self.x.iter().zip(self.y).map(|(x, y)| I::error_of_product(x.to_f64(), y.to_f64()))
    }
}

/// Whether [`Products`] and [`Errors`] are exact.
#[inline(always)]
fn are_exact<F: Binary>(x: &[F], y: &[F]) -> bool {
    // 2^-900: errors, and the products of the halves of the factors, are multiples of 2^-1006. 2^900: nothing overflows
    // when it is split.
    let (least, most) = (f64::from_bits((1023 - 900) << 52), f64::from_bits((1023 + 900) << 52));
    x.iter().zip(y).fold(true, |is_exact, (x, y)| {
        let (x, y) = (x.to_f64(), y.to_f64());
        let product = (x * y).abs();
        let is_split = (x.abs() <= most) & (y.abs() <= most) & (product <= most);
        is_exact & is_split & ((product >= least) | (x == 0.0) | (y == 0.0))
    })
}

/// Adds products one after the other.
#[inline(never)]
fn add_pairs<F: Binary, L: Superaccumulator>(x: &[F], y: &[F], state: &mut State<L>) {
    x.iter().zip(y).for_each(|(&x, &y)| state.add_product(x, y));
}

impl<T: Summand> Elements<'_, T> {
    /// The exact sum, rounded once: [`ExactSum::rounded`] of an [`ExactSum`] of these elements. For a few thousand
    /// elements or fewer this is faster.
    pub fn sum<R: Rounded>(self) -> R {
        let sum = match self.len() {
            len if len > LONG || !is_mode_default() => None,
            0..SHORT => dispatch(WindowTask::<T, SHORT>(self)),
            _ => dispatch(WindowTask::<T, BLOCK>(self)),
        };
        match sum {
            Some(sum) => round::<T, R>(sum),
            None => self.result_of_any(false),
        }
    }

    /// The sum or the mean, by an [`ExactSum`].
    #[inline(never)]
    fn result_of_any<R: Rounded>(self, is_mean: bool) -> R {
        let mut sum = ExactSum::new();
        sum.add_elements(self);
        if is_mean { sum.mean() } else { sum.rounded() }
    }
}

/// Rounds an integer at a position.
#[inline(always)]
fn round<T: Summand, R: Rounded>((value, position): (i128, u32)) -> R {
    let exponent = position as i32 + unit::<T::Binary>();
    match R::LEAST <= unit::<T::Binary>() && exponent <= 250 {
        true => R::round_i128(value, exponent),
        false => R::round(Leading::of(value, 0), exponent),
    }
}

impl<T: Summand> Matrix<'_, T> {
    /// The exact sum of each row, rounded once. Of a [transposed](Matrix::transposed) matrix these are the sums of the
    /// columns. Elements are read in the order of the smaller stride.
    ///
    /// # Errors
    /// If there are not as many sums as rows; they are then unchanged.
    pub fn sum_rows<R: Rounded>(self, sums: &mut [R]) -> Result<(), DifferentLengths> {
        self.reduce_rows(sums, false)
    }

    /// The mean of each row: the exact sum divided by the number of columns, rounded once. Else as
    /// [`Matrix::sum_rows`].
    ///
    /// # Errors
    /// If there are not as many means as rows; they are then unchanged.
    pub fn mean_rows<R: Rounded>(self, means: &mut [R]) -> Result<(), DifferentLengths> {
        self.reduce_rows(means, true)
    }

    /// The sums of rows, or their means.
    fn reduce_rows<R: Rounded>(self, sums: &mut [R], is_mean: bool) -> Result<(), DifferentLengths> {
        if sums.len() != self.rows() {
            return Err(DifferentLengths { first: sums.len(), second: self.rows() });
        }
        #[cfg(feature = "host")]
        if self.has_adjacent_rows() {
            for first in (0..self.rows()).step_by(COLUMNS) {
                let sums = &mut sums[first..self.rows().min(first + COLUMNS)];
                let mut columns = crate::ColumnSums::<T>::new(sums.len());
                columns.add_rows(self.some_rows(first, sums.len()).transposed())?;
                let result = |column| if is_mean { columns.mean(column) } else { columns.rounded(column) };
                sums.iter_mut().enumerate().for_each(|(column, sum)| *sum = result(column));
            }
            return Ok(());
        }
        if self.columns() > LONG || !is_mode_default() {
            sums.iter_mut().enumerate().for_each(|(row, sum)| *sum = self.row(row).result_of_any(is_mean));
        } else if self.columns() < SHORT {
            dispatch(RowsTask::<T, R, SHORT> { matrix: self, sums, is_mean });
        } else {
            dispatch(RowsTask::<T, R, BLOCK> { matrix: self, sums, is_mean });
        }
        Ok(())
    }
}

/// Columns that are summed at a time: their sums fit in the cache.
#[cfg(feature = "host")]
const COLUMNS: usize = 1 << 12;

/// The sums of rows of at most [`LONG`] elements, with a buffer for `N` of them.
struct RowsTask<'a, 'b, T, R, const N: usize> {
    matrix: Matrix<'a, T>,
    sums: &'b mut [R],
    is_mean: bool,
}

impl<T: Summand, R: Rounded, const N: usize> Task for RowsTask<'_, '_, T, R, N> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self) {
        let (mut buffer, mut window) = (Buffer::<_, N>::None, None);
        for (row, sum) in self.sums.iter_mut().enumerate() {
            let row = self.matrix.row(row);
            *sum = match sum_in_window(row, &mut buffer, &mut window) {
                Some(sum) if !self.is_mean => round::<T, R>(sum),
                Some((value, position)) if !row.is_empty() => {
                    R::round(divide(Leading::of(value, position as i32), row.len() as u64), unit::<T::Binary>())
                }
                _ => row.result_of_any(self.is_mean),
            };
        }
    }
}

/// The sum of elements in one window, if it is exact: an integer and its position. The given window is tried first, if
/// there is one, then that of the first block, which replaces it.
#[inline(always)]
fn sum_in_window<T: Summand, const N: usize>(
    elements: Elements<'_, T>,
    buffer: &mut Buffer<T::Binary, N>,
    window: &mut Option<Window<T::Binary>>,
) -> Option<(i128, u32)> {
    let first = elements.block(0, elements.len().min(N), buffer);
    let of_first = match window {
        Some(window) => extract_all(window, first),
        None => None,
    };
    let mut sum = match of_first {
        Some(sum) => sum,
        None => extract_all(window.insert(Window::new(window_for(largest(first)))), first)?,
    };
    let window = window.as_ref()?;
    for at in (N..elements.len()).step_by(N) {
        sum += extract_all(window, elements.block(at, N.min(elements.len() - at), buffer))?;
    }
    Some((sum, window.position()))
}

/// More elements than this are summed by a superaccumulator at once.
const LONG: usize = 16 * BLOCK;

/// Fewer elements than this have a buffer of their own, because it takes time to fill a longer one.
const SHORT: usize = 65;

/// The sum of elements in one window, if it is exact: an integer and its position.
struct WindowTask<'a, T, const N: usize>(Elements<'a, T>);

impl<T: Summand, const N: usize> Task for WindowTask<'_, T, N> {
    type Output = Option<(i128, u32)>;

    #[inline(always)]
    fn run<I: Instructions>(self) -> Self::Output {
        sum_in_window::<T, N>(self.0, &mut None, &mut None)
    }
}
