//! The built-in exact sums with their kernels.

use half::{bf16, f16};

use super::columns::exact_columns;
use super::long_rows::exact_long_rows;
use super::long_segments::exact_long_segments;
use super::result::{DERIVED, IN_OTHER_FORMAT};
use super::rows::exact_rows;
use super::segments::exact_segments;
use crate::ops::{InElementType, Mean, Norm, Sum, SumInF64, SumOfSquares};
use crate::reduce::reduction::{ExactHandles, ExactKernels, Kernels, Reduction};

/// Exact sums: for each operator and element type, the kernels' operator, the type of the results, the kernels'
/// argument `finish`, and whether there is a kernel for columns.
macro_rules! exact {
    ($(
        $operator:ty: $terms:ident of $($type:ident)*, to $output:ident, $finish:expr, $columns:ident;
    )*) => {$($(
        impl Reduction<$type> for $operator {
            type Output = $output;
            type State = u64;

            fn kernels(self) -> Kernels<$type, u64, $output> {
                // SAFETY: `ExactKernels` gives the handles out only by an unsafe call.
                let handles = unsafe {
                    ExactHandles {
                        long_rows: exact_long_rows::handle::<$terms, $type>(),
                        rows: exact_rows::handle::<$terms, $type>(),
                        columns: exact!($columns, $terms, $type),
                        segments: exact_segments::handle::<$terms, $type>(),
                        long_segments: exact_long_segments::handle::<$terms, $type>(),
                    }
                };
                // SAFETY: the handles are this operator's, and the table has the type of the results.
                Kernels::Exact(unsafe { ExactKernels::new::<$terms>($finish, handles) })
            }
        }
    )*)*};
    (columns, $terms:ident, $type:ident) => {
        Some(exact_columns::handle::<$terms, $type>())
    };
    (no_columns, $terms:ident, $type:ident) => {
        None
    };
}

exact! {
    Sum: Sum of f32 f16 bf16, to f32, 0, columns;
    Sum: Sum of f64, to f64, 0, columns;
    SumInF64: Sum of f32, to f64, IN_OTHER_FORMAT, columns;
    InElementType<Sum>: Sum of f16, to f16, IN_OTHER_FORMAT, columns;
    InElementType<Sum>: Sum of bf16, to bf16, IN_OTHER_FORMAT, columns;
    Mean: Sum of f32 f16 bf16, to f32, DERIVED, columns;
    Mean: Sum of f64, to f64, DERIVED, columns;
    InElementType<Mean>: Sum of f16, to f16, DERIVED | IN_OTHER_FORMAT, columns;
    InElementType<Mean>: Sum of bf16, to bf16, DERIVED | IN_OTHER_FORMAT, columns;
    SumOfSquares: SumOfSquares of f32 f16 bf16, to f32, 0, columns;
    SumOfSquares: SumOfSquares of f64, to f64, 0, no_columns;
    InElementType<SumOfSquares>: SumOfSquares of f16, to f16, IN_OTHER_FORMAT, columns;
    InElementType<SumOfSquares>: SumOfSquares of bf16, to bf16, IN_OTHER_FORMAT, columns;
    Norm: SumOfSquares of f32 f16 bf16, to f32, DERIVED, columns;
    Norm: SumOfSquares of f64, to f64, DERIVED, no_columns;
    InElementType<Norm>: SumOfSquares of f16, to f16, DERIVED | IN_OTHER_FORMAT, columns;
    InElementType<Norm>: SumOfSquares of bf16, to bf16, DERIVED | IN_OTHER_FORMAT, columns;
}
