//! The built-in exact sums with their kernels: see the table in `ops/builtin.rs`.

use cuda_std::prelude::*;
use half::{bf16, f16};

use super::columns::exact_columns;
use super::few_columns::exact_few_columns;
use super::few_rows::exact_few_rows;
use super::long_rows::exact_long_rows;
use super::long_segments::exact_long_segments;
use super::result::{DERIVED, ExactOperator, IN_OTHER_FORMAT};
use super::rows::exact_rows;
use super::segments::exact_segments;
use super::terms::Terms;
use crate::ops::builtin::builtin_operators;
use crate::ops::{InElementType, Mean, Norm, Sum, SumInF64, SumOfSquares};
use crate::reduce::reduction::{ExactHandles, ExactKernels, ExactSumOf, Kernels, Reduction, ReductionVisitor};

/// An operator in the table that sums elements of type `T` exactly.
#[doc(hidden)]
#[diagnostic::on_unimplemented(message = "`{Self}` is no exact sum of `{T}`")]
pub trait ExactBuiltin<T: Element> {
    /// The operator whose terms the kernels sum.
    type Terms: ExactOperator<T>;
    /// The kernels' argument `finish`.
    const FINISH: u32;
    /// What the kernels compute with that argument, in either format.
    const SUM_OF: ExactSumOf = match (<Self::Terms as ExactOperator<T>>::Terms::DEGREE, Self::FINISH & DERIVED != 0) {
        (1, false) => ExactSumOf::Elements,
        (1, true) => ExactSumOf::Mean,
        (_, false) => ExactSumOf::Squares,
        (_, true) => ExactSumOf::Norm,
    };
    /// The kernels' handles.
    ///
    /// # Safety
    /// Every launch with a handle keeps its kernel's contract.
    unsafe fn handles() -> ExactHandles<T>;
}

/// [`Reduction`] for each exact sum of the table [`builtin_operators`].
macro_rules! exact_reductions {
    ({} $($operator:ident, $name:literal [
        $($terms:ident($finish:expr) $columns:ident of $($type:ident),+ -> $output:ty;)*
    ] { $($others:tt)* })*) => {$($($(
        impl ExactBuiltin<$type> for $operator {
            type Terms = $terms;
            const FINISH: u32 = $finish;

            unsafe fn handles() -> ExactHandles<$type> {
                // SAFETY: the caller keeps the contracts.
                unsafe {
                    ExactHandles {
                        long_rows: exact_long_rows::handle::<$terms, $type>(),
                        rows: exact_rows::handle::<$terms, $type>(),
                        columns: exact_reductions!($columns, exact_columns, $terms, $type),
                        few_rows: exact_reductions!($columns, exact_few_rows, $terms, $type),
                        few_columns: exact_reductions!($columns, exact_few_columns, $terms, $type),
                        segments: exact_segments::handle::<$terms, $type>(),
                        long_segments: exact_long_segments::handle::<$terms, $type>(),
                    }
                }
            }
        }

        impl Reduction<$type> for $operator {
            type Output = $output;
            type State = u64;
            const KEEPS_ORDER: bool = false;

            fn kernels(self) -> Kernels<$type, u64, $output> {
                // SAFETY: `ExactKernels` gives the handles out only by an unsafe call. They are those of the terms, and
                // the table has the type of the results.
                Kernels::Exact(unsafe { ExactKernels::new::<$terms>($finish, Self::handles()) })
            }

            fn visit<V: ReductionVisitor<$type, $output>>(self, visitor: V) -> V::Result {
                visitor.exact_sum(<Self as ExactBuiltin<$type>>::SUM_OF)
            }
        }
    )+)*)*};
    (with_columns, $kernel:ident, $terms:ident, $type:ident) => {
        Some($kernel::handle::<$terms, $type>())
    };
    (without_columns, $kernel:ident, $terms:ident, $type:ident) => {
        None
    };
}

builtin_operators! { { exact_reductions } {} }

/// [`Reduction`] of 16-bit floats to results of their own type.
macro_rules! in_element_type {
    ($($type:ident)*) => {$(
        impl<O: ExactBuiltin<$type>> Reduction<$type> for InElementType<O> {
            type Output = $type;
            type State = u64;
            const KEEPS_ORDER: bool = false;

            fn kernels(self) -> Kernels<$type, u64, $type> {
                let finish = O::FINISH | IN_OTHER_FORMAT;
                // SAFETY: `ExactKernels` gives the handles out only by an unsafe call. They are those of the terms,
                // whose other format is the elements'.
                Kernels::Exact(unsafe { ExactKernels::new::<O::Terms>(finish, O::handles()) })
            }

            fn visit<V: ReductionVisitor<$type, $type>>(self, visitor: V) -> V::Result {
                visitor.exact_sum(O::SUM_OF)
            }
        }
    )*};
}

in_element_type!(f16 bf16);
