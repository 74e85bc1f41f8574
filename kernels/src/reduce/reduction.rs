//! Operators with their kernels: what the host needs for a reduction.

use core::marker::PhantomData;

use cuda_std::launch::{AnyBlock, Kernel};
use cuda_std::prelude::*;
use exact_sum::{Binary, Rounded, Summand};

use super::columns::ColumnArgs;
use super::exact::columns::{self, ExactColumnArgs};
use super::exact::custom::ExactTerm;
use super::exact::few_columns::FewColumnArgs;
use super::exact::few_rows::FewRowArgs;
use super::exact::lane_memory::LaneMemory;
use super::exact::long_rows::{ExactLongRowArgs, lane_memory, states_per_split, words_of_superaccumulator};
use super::exact::long_segments::ExactLongSegmentArgs;
use super::exact::result::ExactOperator;
use super::exact::rows::ExactRowArgs;
use super::exact::segments::ExactSegmentArgs;
use super::long_rows::LongRowArgs;
use super::rows::RowArgs;
use super::segments::{LongSegmentArgs, SegmentArgs};
use crate::ops::Operator;

/// An operator that has kernels for elements of type `T`.
///
/// The operators of [`crate::ops`] have kernels for the types in the table there. A custom operator gets its kernels
/// from [`reductions!`](crate::reductions), and a custom exact sum from [`exact_reductions!`](crate::exact_reductions).
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not reduce elements of type `{T}`",
    note = "the table of `warpfold::ops` has the element types of each built-in operator",
    note = "a custom operator needs kernels: list it in `kernels::reductions!`"
)]
pub trait Reduction<T: Element>: Sized {
    /// The type of each row's, column's or segment's output.
    type Output: Plain;
    /// The operator's state.
    #[doc(hidden)]
    type State: Plain;
    /// Whether the kernels combine states in an order of their own, of which the result's bits depend.
    #[doc(hidden)]
    const KEEPS_ORDER: bool;
    /// The kernels.
    #[doc(hidden)]
    fn kernels(self) -> Kernels<T, Self::State, Self::Output>;
    /// Calls the method of `visitor` for what computes the results.
    #[doc(hidden)]
    fn visit<V: ReductionVisitor<T, Self::Output>>(self, visitor: V) -> V::Result;
}

/// Code that is generic over what computes the results of a [`Reduction`], such as one on the host without kernels.
#[doc(hidden)]
pub trait ReductionVisitor<T: Element, R: Plain> {
    /// The visitor's result.
    type Result;
    /// An operator. Elements have the bits of its elements `U`, and results those of its outputs. `name` is for
    /// messages: `the sum`.
    fn operator<O: Operator<U>, U: Element>(self, name: &'static str, operator: O) -> Self::Result;
    /// An exact sum of elements.
    fn exact_sum(self, sum: ExactSumOf) -> Self::Result
    where
        T: Summand,
        R: Rounded;
    /// An exact sum of custom terms.
    fn exact_term<E: ExactTerm<Element = T, Sum = R>>(self, term: E) -> Self::Result
    where
        R: Rounded;
}

/// What is computed from an exact sum.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExactSumOf {
    /// The sum of elements.
    Elements,
    /// The mean of elements.
    Mean,
    /// The sum of squares.
    Squares,
    /// The root of the sum of squares.
    Norm,
}

/// The kernels of a reduction of elements `T` by states `S` to results `R`.
///
/// Only an unsafe call gives out their handles.
#[doc(hidden)]
pub enum Kernels<T: Element, S: Plain, R: Plain> {
    /// Kernels that combine states.
    OfStates(StateKernels<T, S, R>),
    /// Kernels that sum exactly.
    Exact(ExactKernels<T, R>),
}

/// The kernels of an [`Operator`], and what a plan needs to know about it.
#[doc(hidden)]
pub struct StateKernels<T: Element, S: Plain, R: Plain> {
    name: &'static str,
    operator: u64,
    has_empty_result: bool,
    is_any_order: bool,
    uses_index: bool,
    handles: StateHandles<T, S, R>,
}

/// The handles that launch [`StateKernels`].
#[doc(hidden)]
pub struct StateHandles<T: Element, S: Plain, R: Plain> {
    /// [`long_rows`](fn@super::long_rows::long_rows).
    pub long_rows: AnyBlock<LongRowArgs<'static, T, R>>,
    /// [`long_rows_unaligned`](fn@super::long_rows::long_rows_unaligned), if `long_rows` takes only aligned rows.
    pub long_rows_unaligned: Option<AnyBlock<LongRowArgs<'static, T, R>>>,
    /// [`rows`](fn@super::rows::rows).
    pub rows: Kernel<RowArgs<'static, T, R>>,
    /// [`columns`](fn@super::columns::columns).
    pub columns: Kernel<ColumnArgs<'static, T, S, R>>,
    /// [`segments`](fn@super::segments::segments).
    pub segments: Kernel<SegmentArgs<'static, T, R>>,
    /// [`long_segments`](fn@super::segments::long_segments).
    pub long_segments: Kernel<LongSegmentArgs<'static, T, R>>,
}

impl<T: Element, S: Plain, R: Plain> StateKernels<T, S, R> {
    /// The kernels of an operator.
    ///
    /// # Safety
    /// Each handle's kernel does what its field names, by this operator, under the same contract.
    pub unsafe fn new<O>(name: &'static str, operator: O, handles: StateHandles<T, S, R>) -> Self
    where
        O: Operator<T, State = S, Output = R>,
    {
        let (word, has_empty_result, is_any_order) = (operator.to_word(), O::HAS_EMPTY_RESULT, O::ANY_ORDER);
        let uses_index = O::USES_INDEX;
        debug_assert_eq!(O::from_word(word).to_word(), word, "{name} would have other fields in its kernels");
        Self { name, operator: word, has_empty_result, is_any_order, uses_index, handles }
    }

    /// The same kernels for elements `U` and results `Q`.
    ///
    /// # Safety
    /// The reduction of elements of type `U` gives, bit for bit, what this one gives for those of type `T`.
    pub unsafe fn reinterpret<U: Element, Q: Plain>(self) -> StateKernels<U, S, Q> {
        const { assert!(size_of::<T>() == size_of::<U>() && size_of::<R>() == size_of::<Q>()) };
        let Self { name, operator, has_empty_result, is_any_order, uses_index, handles } = self;
        // SAFETY: the views' elements and results keep their sizes and bits, and all else is unchanged.
        let handles = unsafe {
            StateHandles {
                long_rows: handles.long_rows.reinterpret(),
                long_rows_unaligned: handles.long_rows_unaligned.map(|kernel| kernel.reinterpret()),
                rows: handles.rows.reinterpret(),
                columns: handles.columns.reinterpret(),
                segments: handles.segments.reinterpret(),
                long_segments: handles.long_segments.reinterpret(),
            }
        };
        StateKernels { name, operator, has_empty_result, is_any_order, uses_index, handles }
    }

    /// The operator's name in messages: `the sum`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// [`Operator::to_word`].
    pub fn operator(&self) -> u64 {
        self.operator
    }

    /// [`Operator::HAS_EMPTY_RESULT`].
    pub fn has_empty_result(&self) -> bool {
        self.has_empty_result
    }

    /// [`Operator::ANY_ORDER`].
    pub fn is_any_order(&self) -> bool {
        self.is_any_order
    }

    /// [`Operator::USES_INDEX`].
    pub fn uses_index(&self) -> bool {
        self.uses_index
    }

    /// The handles.
    ///
    /// # Safety
    /// Every launch with a handle keeps its kernel's contract.
    pub unsafe fn handles(&self) -> &StateHandles<T, S, R> {
        &self.handles
    }
}

/// The kernels of exact sums, and what a plan needs to know about them.
#[doc(hidden)]
pub struct ExactKernels<T: Element, R: Plain> {
    term: u64,
    nonzero_at_zero: Option<&'static str>,
    finish: u32,
    words: usize,
    states_per_split: usize,
    lane_memory: LaneMemory,
    lane_memory_of_columns: LaneMemory,
    handles: ExactHandles<T>,
    result: PhantomData<fn() -> R>,
}

/// The handles that launch [`ExactKernels`].
#[doc(hidden)]
pub struct ExactHandles<T: Element> {
    /// [`exact_long_rows`](fn@super::exact::long_rows::exact_long_rows).
    pub long_rows: AnyBlock<ExactLongRowArgs<'static, T>>,
    /// [`exact_rows`](fn@super::exact::rows::exact_rows).
    pub rows: Kernel<ExactRowArgs<'static, T>>,
    /// [`exact_columns`](fn@super::exact::columns::exact_columns). Without one, columns are transposed.
    pub columns: Option<Kernel<ExactColumnArgs<'static, T>>>,
    /// [`exact_few_rows`](fn@super::exact::few_rows::exact_few_rows), for columns of few rows, if there is one.
    pub few_rows: Option<Kernel<FewRowArgs<'static, T>>>,
    /// [`exact_few_columns`](fn@super::exact::few_columns::exact_few_columns), for rows of few elements, if there is
    /// one.
    pub few_columns: Option<Kernel<FewColumnArgs<'static, T>>>,
    /// [`exact_segments`](fn@super::exact::segments::exact_segments).
    pub segments: Kernel<ExactSegmentArgs<'static, T>>,
    /// [`exact_long_segments`](fn@super::exact::long_segments::exact_long_segments).
    pub long_segments: Kernel<ExactLongSegmentArgs<'static, T>>,
}

impl<T: Element, R: Plain> ExactKernels<T, R> {
    /// The kernels that sum the terms of `O`.
    ///
    /// # Safety
    /// Each handle's kernel does what its field names, by this operator, under the same contract; and `finish` selects
    /// results of type `R`.
    pub unsafe fn new<O: ExactOperator<T>>(finish: u32, handles: ExactHandles<T>) -> Self {
        let (words, states_per_split) = (words_of_superaccumulator::<O, T>(), states_per_split::<O, T>());
        let (lane_memory, lane_memory_of_columns) = (lane_memory::<O::Terms>(), columns::lane_memory::<O::Terms>());
        Self {
            term: 0,
            nonzero_at_zero: None,
            finish,
            words,
            states_per_split,
            lane_memory,
            lane_memory_of_columns,
            handles,
            result: PhantomData,
        }
    }

    /// Whether there are kernels for columns of few rows and for rows of few elements.
    pub fn has_few(&self) -> bool {
        self.handles.few_rows.is_some() && self.handles.few_columns.is_some()
    }

    /// The same kernels with these fields of a custom term, and with [`ExactKernels::nonzero_at_zero`] set if the term
    /// of 0 is not 0. `name` is for messages: `the sum of magnitudes`.
    pub fn with_fields<E: ExactTerm<Element = T>>(self, name: &'static str, fields: E) -> Self {
        let word = E::FIELDS.word_of(fields);
        debug_assert_eq!(
            E::FIELDS.word_of(E::FIELDS.of_word(word)),
            word,
            "{name} would have other fields in its kernels"
        );
        let zero = T::default();
        let term = fields.term(zero);
        let is_zero = term.is_zero() && E::LOW.is_none_or(|low| low(fields, zero, term).is_zero());
        Self { term: word, nonzero_at_zero: if is_zero { None } else { Some(name) }, ..self }
    }

    /// The fields of a custom term as a word, for the kernels.
    pub fn term(&self) -> u64 {
        self.term
    }

    /// The operator's name if its term of 0 is not 0. No plan accepts such an operator.
    pub fn nonzero_at_zero(&self) -> Option<&'static str> {
        self.nonzero_at_zero
    }

    /// Selects the result computed from the sums.
    pub fn finish(&self) -> u32 {
        self.finish
    }

    /// Words of a superaccumulator.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Tile states of a split of a row.
    pub fn states_per_split(&self) -> usize {
        self.states_per_split
    }

    /// The dynamic shared memory of the kernels of long rows and long segments.
    pub fn lane_memory(&self) -> LaneMemory {
        self.lane_memory
    }

    /// The dynamic shared memory of the kernel of columns.
    pub fn lane_memory_of_columns(&self) -> LaneMemory {
        self.lane_memory_of_columns
    }

    /// Whether there is a kernel for columns.
    pub fn has_columns(&self) -> bool {
        self.handles.columns.is_some()
    }

    /// The handles.
    ///
    /// # Safety
    /// Every launch with a handle keeps its kernel's contract, for results of type `R`.
    pub unsafe fn handles(&self) -> &ExactHandles<T> {
        &self.handles
    }
}
