//! Reductions: any operator of [`crate::ops`] or a custom one, over any shape.
//!
//! ```
//! use warpfold::ops::{ArgMax, Mean, Sum};
//! use warpfold::{Gpu, Shape};
//!
//! let gpu = Gpu::first_or_simt()?;
//! let x = gpu.upload(&[1_i32, 5, 3, 2, 4, 6])?;
//! assert_eq!(gpu.sum(&x)?, 21_i64);
//! assert_eq!(gpu.argmax(&x)?, 5);
//!
//! // The same numbers as a matrix of two rows: each row's sum, each column's mean.
//! let sums = gpu.reduce_to_buffer(Sum, &x, Shape::rows(2, 3))?;
//! assert_eq!(gpu.download(&sums)?, [9, 12]);
//! let means = gpu.reduce_to_buffer(Mean, &x, Shape::columns(2, 3))?;
//! assert_eq!(gpu.download(&means)?, [1.5, 4.5, 4.5]);
//!
//! // Without waiting and without allocating, any number of times.
//! let mut reducer = gpu.reducer(ArgMax, Shape::rows(2, 3))?;
//! let mut places = gpu.zeroed::<u64>(2)?;
//! reducer.start(&x, &mut places)?;
//! assert_eq!(gpu.download(&places)?, [1, 2]);
//!
//! // Sums of floats are exact, and rounded once.
//! assert_eq!(gpu.sum(&gpu.upload(&[1e20_f32, 1.0, -1e20, 3.0].repeat(50))?)?, 200.0);
//! # Ok::<(), warpfold::Error>(())
//! ```
//!
//! Segments of any lengths have their offsets in device memory: [`SegmentReducer`]. The dot product reduces two inputs:
//! [`Gpu::dot`](crate::Gpu::dot). Running sums of floats stay on the device as [`ExactSums`].
//!
//! **Bits.** A sum, mean, sum of squares, norm or dot product of floats is exact, and rounded once, to nearest even: it
//! does not depend on the order of the elements, the alignment, the layout, the other rows, or the device. Means and
//! norms of integers are exact, and rounded once to `f64`. Products of floats and custom operators have an order that
//! is a function of three things: the number of elements reduced to the result, the types, and whether the elements are
//! contiguous (a row, the whole input), a column, or a segment by offsets. So every result has the same bits on every
//! device, in every run, on every stream, in the executor, at every alignment, and with any other rows or columns. NaN
//! is always the same one.
//!
//! **No elements.** A sum of no elements is 0, a product 1, a count 0, a mean NaN, `any` false and `all` true. A
//! minimum, a maximum and the index of either are an [`Error::Empty`] if an output needs one. A shape without outputs
//! (`Shape::rows(0, 0)`, `Shape::axis(&[0, 0, 4], 1)`) lacks no value, so every operator gives an empty buffer. NumPy
//! raises there for minima, maxima and their indices; here a program that reduces a batch of any size needs no special
//! case.
//!
//! **Special numbers.** As in NumPy: a sum, minimum or maximum of elements with NaN is NaN; of several NaN, or several
//! equal elements, an index is that of the first; a sum of floats that is 0 is +0.0; integers wrap, in 64 bits unless
//! [`WrappingSum`](crate::ops::WrappingSum) says otherwise.

mod builtin;
mod calls;
mod exact;
mod pairs;
mod plan;
mod reducer;
mod segments;
mod shape;
mod states;
mod terms;
mod workspace;

use cuda_std::element::{Element, Plain};
use kernels::ops::Operator;
use kernels::reduce::columns::ColumnArgs;
use kernels::reduce::long_rows::LongRowArgs;
use kernels::reduce::rows::RowArgs;

use crate::{AnyBlock, Error, Kernel};

pub use pairs::{PairReducer, PairReduction};
pub use reducer::Reducer;
pub use segments::SegmentReducer;
pub use shape::Shape;
pub use states::{ExactElement, ExactSums};
pub use terms::TermKernels;
pub(crate) use workspace::Workspaces;

use reducer::Planned;
use segments::SegmentKernels;

type Output<O, T> = <O as Operator<T>>::Output;
type ColumnsKernel<O, T> = Kernel<ColumnArgs<'static, T, <O as Operator<T>>::State, Output<O, T>>>;

/// The kernels of an operator for elements of one type.
///
/// The operators of [`crate::ops`] have theirs built in ([`Reduction`]). For a custom operator, write kernels that call
/// the engines of `kernels::reduce`, and pass the result to [`Gpu::reducer_by`](crate::Gpu::reducer_by), as
/// `examples/operator` does. Exact sums of custom terms have [`TermKernels`].
///
/// Engines check no access, so a kernel that calls one is an `unsafe fn`, and so is its `handle`. Their requirements
/// are met here: the kernels are accessible from nowhere else, and are launched with arguments that their engine
/// accepts, for views that have all elements that the arguments name.
pub struct Kernels<O: Operator<T>, T: Element> {
    name: &'static str,
    /// The operator's value.
    operator: u64,
    long_rows: AnyBlock<LongRowArgs<'static, T, Output<O, T>>>,
    long_rows_unaligned: Option<AnyBlock<LongRowArgs<'static, T, Output<O, T>>>>,
    rows: Option<Kernel<RowArgs<'static, T, Output<O, T>>>>,
    columns: Option<ColumnsKernel<O, T>>,
}

impl<O: Operator<T>, T: Element> Kernels<O, T> {
    /// An operator with a kernel for long rows; the whole input is one. The kernel takes short rows too, slowly. `name`
    /// is for messages: `the sum`.
    ///
    /// The kernel calls [`fold_long_rows`](kernels::reduce::long_rows::fold_long_rows), or accepts any arguments.
    pub fn new(name: &'static str, long_rows: AnyBlock<LongRowArgs<'static, T, Output<O, T>>>) -> Self {
        Self { name, operator: O::default().to_word(), long_rows, long_rows_unaligned: None, rows: None, columns: None }
    }

    /// Sets the operator's value; the default is its type's.
    pub fn with_operator(self, operator: O) -> Self {
        Self { operator: operator.to_word(), ..self }
    }

    /// Adds a kernel for long rows of which not all begin at a multiple of 16 bytes. It calls
    /// [`long_rows_unaligned`](fn@kernels::reduce::long_rows::long_rows_unaligned). Without it, the kernel for long
    /// rows takes these too.
    pub fn with_long_rows_unaligned(self, kernel: AnyBlock<LongRowArgs<'static, T, Output<O, T>>>) -> Self {
        Self { long_rows_unaligned: Some(kernel), ..self }
    }

    /// Adds a kernel for short rows, which calls [`rows`](fn@kernels::reduce::rows::rows) in blocks of that kernel's
    /// size. Without it, short rows are folded as long ones.
    pub fn with_rows(self, kernel: Kernel<RowArgs<'static, T, Output<O, T>>>) -> Self {
        Self { rows: Some(kernel), ..self }
    }

    /// Adds a kernel for columns, which calls [`columns`](fn@kernels::reduce::columns::columns) in blocks of that
    /// kernel's size. Without it, columns are an error.
    pub fn with_columns(self, kernel: ColumnsKernel<O, T>) -> Self {
        Self { columns: Some(kernel), ..self }
    }
}

// By hand: a derive would require `O: Clone`.
impl<O: Operator<T>, T: Element> Clone for Kernels<O, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<O: Operator<T>, T: Element> Copy for Kernels<O, T> {}

/// An operator of [`crate::ops`] for elements of type `T`.
///
/// Sealed: a custom operator has [`Kernels`], for [`Gpu::reducer_by`](crate::Gpu::reducer_by).
pub trait Reduction<T: Element>: Sized {
    /// The type of each row's, column's or segment's output.
    type Output: Plain;
    /// Plans the reduction of a shape, if possible.
    #[doc(hidden)]
    fn plan(shape: Shape, _: private::Token) -> Result<Planned<T, Self::Output>, Error>;
    /// The kernels for segments by offsets.
    #[doc(hidden)]
    fn segment_kernels(_: private::Token) -> SegmentKernels<T, Self::Output>;
}

mod private {
    /// Only this crate can name it.
    pub struct Token;
}
