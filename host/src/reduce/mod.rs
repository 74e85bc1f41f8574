//! Reductions: any operator of [`crate::ops`] or a custom one, along any axes.
//!
//! ```
//! use warpfold::ops::{ArgMax, Mean, Sum};
//! use warpfold::{Gpu, Layout};
//!
//! let gpu = Gpu::first_or_simt()?;
//! let x = gpu.upload(&[1_i32, 5, 3, 2, 4, 6])?.reshape(&[2, 3])?;
//! assert_eq!(gpu.sum(&x)?, 21_i64);
//! assert_eq!(gpu.argmax(&x)?, 5);
//!
//! // Each row's sum, each column's mean.
//! assert_eq!(gpu.download(&gpu.reduce(Sum, &x, 1)?)?, [9, 12]);
//! assert_eq!(gpu.download(&gpu.reduce(Mean, &x, 0)?)?, [1.5, 4.5, 4.5]);
//!
//! // A reducer can be started any number of times, and neither waits nor allocates.
//! let mut reducer = gpu.reducer(ArgMax, &Layout::contiguous(&[2, 3])?, 1)?;
//! let mut indices = gpu.zeroed::<u64>(2)?;
//! reducer.start(&x, &mut indices)?;
//! assert_eq!(gpu.download(&indices)?, [1, 2]);
//!
//! // Sums of floats are exact, and rounded once.
//! assert_eq!(gpu.sum(&gpu.upload(&[1e20_f32, 1.0, -1e20, 3.0].repeat(50))?)?, 200.0);
//! # Ok::<(), warpfold::Error>(())
//! ```
//!
//! [`SegmentReducer`] reduces segments of any lengths, whose offsets are in device memory. [`Dot`](crate::ops::Dot)
//! reduces two inputs to their dot product. [`ExactStates`] are running sums of floats that stay on the device.
//!
//! **Bits.** A sum, mean, sum of squares, norm or dot product of floats is exact, and rounded once, to nearest even: it
//! does not depend on the order of the elements, the alignment, the layout, the other rows, or the device. Means and
//! norms of integers are exact, and rounded once to `f64`. Products of floats and custom operators have an order that
//! is a function of three things: the number of elements reduced to the result, the types, and whether the elements are
//! contiguous (a row, the whole input), a column, or a segment by offsets. So every result has the same bits on every
//! device, in every run, on every stream, in the executor, at every alignment, and whatever the other rows or columns
//! are. Every NaN has the same bits.
//!
//! **Axes.** An order is a function of extents and axes, never of strides. Axes of one element do not count, and
//! neighbours that are reduced are one axis. If that is the last axis, or if several are reduced that are not
//! neighbours, the elements of an output, in C order, are a row; otherwise they are a column. An index counts along one
//! axis, or along all in C order.
//!
//! **No elements.** A sum of no elements is 0, a product 1, a count 0, a mean NaN, `any` false and `all` true. Minima,
//! maxima and their indices do not exist for no elements: the call returns [`Error::Empty`](crate::Error::Empty). If
//! there are no outputs (extents of 0 x 0 x 4 along axis 1) every operator returns an empty array. NumPy raises an
//! error for minima, maxima and their indices of such an array; here a program that reduces a batch of any size needs
//! no special case.
//!
//! **Special numbers.** As in NumPy: if an element is NaN, so is the sum, minimum or maximum; an index is that of the
//! first NaN, or else of the first of equal elements; a sum of floats that is 0 is +0.0; integers wrap, in 64 bits, or
//! in their own type with [`WrappingSum`](crate::ops::WrappingSum).

mod axes;
mod calls;
mod chunks;
mod exact_sums;
mod geometry;
mod inputs;
mod lane_memory;
mod launch;
mod method;
mod plan;
mod reducer;
mod reduces;
mod segments;
mod steps;
mod workspace;

pub use kernels::reduce::reduction::Reduction;

pub use axes::Axes;
pub(crate) use axes::Reduced;
pub use exact_sums::{ExactDots, ExactElement, ExactState, ExactStates, ExactSums, SumFormat};
pub use inputs::IntoInputs;
pub use reducer::Reducer;
pub use reduces::Reduces;
pub use segments::SegmentReducer;
pub(crate) use workspace::Workspaces;

/// The operation's name, for messages.
const OPERATION: &str = "reduce";

pub(crate) mod private {
    /// Only this crate can name this type, so only this crate can call the functions that take it.
    pub struct Token;
}
