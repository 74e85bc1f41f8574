//! Reductions of arrays in the host's memory, on all cores, with the bits of a GPU.
//!
//! [`reduce`] takes every operator of [`ops`](crate::ops), and custom ones, with slices, arrays of any layout at any
//! address, and, with the feature `ndarray`, views of that crate. Nothing is copied or uploaded, and no GPU is needed:
//!
//! ```
//! use warpfold::{Layout, host, ops};
//!
//! let x = [1e20_f32, 1.0, -1e20, 3.0, 5.0, 7.0];
//! assert_eq!(host::sum(&x)?, 16.0);
//! let rows = host::View::new(&x, &Layout::contiguous(&[2, 3])?)?;
//! assert_eq!(host::reduce(ops::Max, &rows, 0)?.as_slice(), [1e20, 5.0, 7.0]);
//! assert_eq!(host::reduce(ops::Dot, (&rows, &[0.0, 1.0, 2.0]), 1)?.as_slice(), [-2e20, 19.0]);
//! # Ok::<(), warpfold::Error>(())
//! ```
//!
//! Results are those of [`Gpu::reduce`](crate::Gpu::reduce), bit for bit. Exact sums and the operators that allow
//! [any order](crate::ops::Operator::ANY_ORDER) take the time of a plain loop over memory, or little more. A product of
//! floats and the pairwise sums have an order of their own, that of the kernels: they run in the executor, which takes
//! 7 to 30 ns an element and 0.3 ms a call on two cores, and needs the feature `simt`.
//!
//! A long reduction works on several threads: at most [`max_threads`]. They are the process' own, so that a child after
//! `fork()` has some, too. A short one takes its caller's thread alone.

mod array;
mod engine;
mod exact;
mod form;
#[cfg(feature = "simt")]
mod in_order;
mod inputs;
mod memory;
mod mode;
mod pairs;
mod states;
mod terms;
mod view;
mod visitor;

use std::num::NonZero;

use cuda_std::element::Element;
use exact_sum::{ExactDot, ExactSum, Summand};
use kernels::ops::Sum;

pub use array::Array;
pub use inputs::{IntoView, IntoViews};
pub use view::View;

#[doc(hidden)]
pub use engine::Reduction;
#[cfg(feature = "simt")]
pub(crate) use in_order::reduce as reduce_in_order;
pub(crate) use pairs::OfPairs;
pub(crate) use visitor::Visitor;

use self::exact::{Exact, OfElements, OfSquares, Unrounded};
use crate::reduce::private::Token;
use crate::{Axes, Error, Reduces};

const OPERATION: &str = "reduce on the host";

/// Reduces an array along some axes, to a new array of the others. An operator of two inputs takes a pair, whose
/// extents are broadcast as in NumPy.
///
/// ```
/// use warpfold::{Layout, host, ops};
///
/// let x = [1, 2, 3, 4, 5, 6];
/// let x = host::View::new(&x, &Layout::contiguous(&[2, 3])?)?;
/// let means = host::reduce(ops::Mean, &x, 1)?;
/// assert_eq!((means.extents(), means.as_slice()), (&[2][..], &[2.0, 5.0][..]));
/// # Ok::<(), warpfold::Error>(())
/// ```
///
/// # Errors
/// An axis does not exist or is named twice, an output has no elements and the operator has no result for that, an
/// operator that uses an index is given several axes but not all, two inputs cannot be broadcast, there are more than
/// 2^50 elements, memory runs out, or the operator has an order of its own and the feature `simt` is off.
pub fn reduce<'a, O: Reduces<T, N>, T: Element, const N: usize>(
    operator: O,
    inputs: impl IntoViews<'a, T, N>,
    axes: impl Into<Axes>,
) -> Result<Array<O::Output>, Error> {
    let reduction = Reduction::new(inputs.into_views()?, axes.into())?;
    let mut output = Array::zeroed(&reduction.output_extents())?;
    operator.reduce_on_host(&reduction, output.as_mut_slice(), Token)?;
    Ok(output)
}

/// [`reduce`] to memory that the caller has: the elements of the result in C order.
///
/// # Errors
/// As for [`reduce`], or `output` has another number of elements.
pub fn reduce_into<'a, O: Reduces<T, N>, T: Element, const N: usize>(
    operator: O,
    inputs: impl IntoViews<'a, T, N>,
    axes: impl Into<Axes>,
    output: &mut [O::Output],
) -> Result<(), Error> {
    let reduction = Reduction::new(inputs.into_views()?, axes.into())?;
    let (found, expected) = (output.len(), reduction.outputs()?);
    if found != expected {
        return Err(Error::Length { operation: OPERATION, what: "the output", found, expected });
    }
    operator.reduce_on_host(&reduction, output, Token)
}

/// Reduces all elements to one result.
///
/// ```
/// use warpfold::{host, ops};
///
/// assert_eq!(host::reduce_all(ops::ArgMin, &[3_i32, 1, 2, 1])?, 1);
/// # Ok::<(), warpfold::Error>(())
/// ```
///
/// # Errors
/// As for [`reduce`].
pub fn reduce_all<'a, O: Reduces<T, N>, T: Element, const N: usize>(
    operator: O,
    inputs: impl IntoViews<'a, T, N>,
) -> Result<O::Output, Error> {
    let reduction = Reduction::new(inputs.into_views()?, Axes::ALL)?;
    let mut output = [bytemuck::Zeroable::zeroed()];
    operator.reduce_on_host(&reduction, &mut output, Token)?;
    Ok(output[0])
}

/// The sum of all elements: exact and rounded once for floats, in 64 bits for integers. [`reduce_all`] of
/// [`Sum`].
///
/// # Errors
/// There are more than 2^50 elements.
pub fn sum<'a, T: Element>(input: impl IntoViews<'a, T, 1>) -> Result<<Sum as Reduces<T, 1>>::Output, Error>
where
    Sum: Reduces<T, 1>,
{
    reduce_all(Sum, input)
}

/// The exact sums of the elements along some axes, before they are rounded: an array of the other axes.
///
/// Sums of parts of an array are merged in any order, also in other processes, which get them as
/// [bytes](ExactSum::to_bytes).
///
/// ```
/// use warpfold::{Layout, host};
///
/// let layout = Layout::contiguous(&[2, 3])?;
/// let (x, y) = ([1e20_f32, 1.0, 2.0, -1e20, 3.0, 4.0], [1e20_f32, 0.0, 0.0, -1e20, 5.0, 0.0]);
/// let mut sums = host::exact_sums(host::View::new(&x, &layout)?, 1)?;
/// let others = host::exact_sums(host::View::new(&y, &layout)?, 1)?;
/// for (sum, other) in sums.as_mut_slice().iter_mut().zip(others.as_slice()) {
///     sum.merge(other)?;
/// }
/// let values: Vec<f32> = sums.as_slice().iter().map(|sum| sum.value()).collect();
/// assert_eq!(values, [2e20, -2e20]);
/// assert_eq!(sums.as_slice()[1].rounded::<f64>(), -2.0 * f64::from(1e20_f32) + 12.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// An axis does not exist or is named twice, there are more than 2^50 elements, or memory runs out.
pub fn exact_sums<'a, T: Element + Summand>(
    input: impl IntoView<'a, T>,
    axes: impl Into<Axes>,
) -> Result<Array<ExactSum<T>>, Error> {
    let reduction = Reduction::new([input.into_view()?], axes.into())?;
    let mut sums = Array::filled(&reduction.output_extents(), ExactSum::new())?;
    reduction.run(&Exact(Unrounded(OfElements::<f64>::new(false))), sums.as_mut_slice());
    Ok(sums)
}

/// The exact sums of the squares of the elements along some axes, before they are rounded: an array of the other axes.
/// Their [roots](ExactDot::sqrt) are norms.
///
/// ```
/// use warpfold::{Layout, host};
///
/// let x = [3.0_f32, 4.0, 5.0, 12.0];
/// let squares = host::exact_sums_of_squares(host::View::new(&x, &Layout::contiguous(&[2, 2])?)?, 1)?;
/// let norms: Vec<f32> = squares.as_slice().iter().map(|squares| squares.sqrt()).collect();
/// assert_eq!(norms, [5.0, 13.0]);
/// # Ok::<(), warpfold::Error>(())
/// ```
///
/// # Errors
/// As for [`exact_sums`].
pub fn exact_sums_of_squares<'a, T: Element + Summand>(
    input: impl IntoView<'a, T>,
    axes: impl Into<Axes>,
) -> Result<Array<ExactDot<T>>, Error> {
    let reduction = Reduction::new([input.into_view()?], axes.into())?;
    let mut sums = Array::filled(&reduction.output_extents(), ExactDot::new())?;
    reduction.run(&Exact(Unrounded(OfSquares::<f64>::new(false))), sums.as_mut_slice());
    Ok(sums)
}

/// The maximum number of threads that work on a reduction, with the caller's: what was [set](set_max_threads), else the
/// value of the environment variable `WARPFOLD_THREADS` when a reduction first asked, else the number of cores that the
/// process may use.
pub fn max_threads() -> NonZero<usize> {
    threads::max()
}

/// Sets the maximum number of threads that work on a reduction from now on, in the whole process: also for
/// [`ExactSum::add_slice`](crate::exact::ExactSum::add_slice) and its siblings. With 1, each works on its caller's
/// thread.
pub fn set_max_threads(max: NonZero<usize>) {
    threads::set_max(max);
}
