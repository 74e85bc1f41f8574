//! The built-in operators with their kernels, except exact sums of floats: see the table in `ops/builtin.rs`.

use super::columns::columns;
use super::long_rows::{long_rows, long_rows_unaligned};
use super::reduction::{Kernels, Reduction, ReductionVisitor, StateHandles, StateKernels};
use super::rows::rows;
use super::segments::{long_segments, segments};
use crate::ops::builtin::*;
use crate::ops::{
    All, Any, ArgMax, ArgMin, CountFinite, CountNan, CountNonzero, Max, Min, MinMax, Operator, PairwiseMean,
    PairwiseSum, Scalar,
};

/// [`Reduction`] for each operator and element type of the table [`builtin_operators`].
macro_rules! reductions {
    ({} $($operator:ident, $name:literal [$($exact:tt)*] {
        $($by:ident($value:expr) $order:ident of $($element:ident $(for $other:ident)?),+ -> $output:ty;)*
    })*) => {$($($(
        reductions!($operator, $name, $element, $by($value), $order, $element, $output);
        $(reductions!($operator, $name, $other, $by($value), $order, $element, $output);)?
    )+)*)*};
    (
        $operator:ident, $name:literal, $type:ident,
        $by:ident($value:expr), $order:ident, $element:ident, $output:ty
    ) => {
        const _: () = {
            #[allow(dead_code, reason = "the table refers to the type by this name")]
            type T = $type;

            impl Reduction<$type> for $operator {
                type Output = $output;
                type State = <$by as Operator<$element>>::State;
                const KEEPS_ORDER: bool = !<$by as Operator<$element>>::ANY_ORDER;

                fn kernels(self) -> Kernels<$type, Self::State, $output> {
                    // SAFETY: `StateKernels` gives the handles out only by an unsafe call.
                    let handles = unsafe {
                        StateHandles {
                            long_rows: long_rows::handle::<$by, $element>(),
                            long_rows_unaligned: reductions!(long_rows_unaligned, $by, $element, $order),
                            rows: rows::handle::<$by, $element>(),
                            columns: columns::handle::<$by, $element>(),
                            segments: segments::handle::<$by, $element>(),
                            long_segments: long_segments::handle::<$by, $element>(),
                        }
                    };
                    // SAFETY: the handles are this operator's.
                    let kernels = unsafe { StateKernels::new::<$by>($name, $value, handles) };
                    // SAFETY: the operators in the table give the same bits for both types.
                    Kernels::OfStates(unsafe { kernels.reinterpret() })
                }

                fn visit<V: ReductionVisitor<$type, $output>>(self, visitor: V) -> V::Result {
                    visitor.operator::<$by, $element>($name, $value)
                }
            }
        };
    };
    // Only operators that keep an order have a kernel for unaligned rows.
    (long_rows_unaligned, $by:ident, $element:ty, in_any_order) => {{
        const { assert!(<$by as Operator<$element>>::ANY_ORDER) };
        None
    }};
    (long_rows_unaligned, $by:ident, $element:ty, in_order) => {{
        const { assert!(!<$by as Operator<$element>>::ANY_ORDER) };
        Some(long_rows_unaligned::handle::<$by, $element>())
    }};
}

builtin_operators! { { reductions } {} }

/// Elements that are compared with some bits flipped: see [`MinOrMax`].
pub trait Flips {
    /// The bits that are flipped for a maximum.
    const FLIP_OF_MAX: u64;
    /// The bits that are flipped for a minimum. Minima of floats have kernels of their own.
    const FLIP_OF_MIN: u64;
}

macro_rules! flips {
    ($($type:ident: maximum $max:expr, minimum $min:expr;)*) => {$(
        impl Flips for $type {
            const FLIP_OF_MAX: u64 = $max;
            const FLIP_OF_MIN: u64 = $min;
        }
    )*};
}

flips! {
    f32: maximum 0, minimum 1 << 31;
    f64: maximum 0, minimum 1 << 63;
    f16: maximum 0, minimum 1 << 15;
    bf16: maximum 0, minimum 1 << 15;
    u8: maximum 0, minimum u8::MAX as u64;
    u16: maximum 0, minimum u16::MAX as u64;
    u32: maximum 0, minimum u32::MAX as u64;
    u64: maximum 0, minimum u64::MAX;
    i8: maximum 1 << 7, minimum i8::MAX as u64;
    i16: maximum 1 << 15, minimum i16::MAX as u64;
    i32: maximum 1 << 31, minimum i32::MAX as u64;
    i64: maximum 1 << 63, minimum i64::MAX as u64;
}

/// Floats. Infinity has all bits of the exponent set, and no others.
pub trait Infinite {
    /// The bits of infinity. Those of the largest number are one less.
    const INFINITY_BITS: u64;
}

macro_rules! infinite {
    ($($type:ident)*) => {$(
        impl Infinite for $type {
            const INFINITY_BITS: u64 = $type::INFINITY.to_bits() as u64;
        }
    )*};
}

infinite!(f32 f64 f16 bf16);
