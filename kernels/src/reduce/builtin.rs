//! The built-in operators with their kernels, except exact sums of floats.

use cuda_std::element::Element;

use super::columns::columns;
use super::long_rows::{long_rows, long_rows_unaligned};
use super::reduction::{Kernels, Reduction, StateHandles, StateKernels};
use super::rows::rows;
use super::segments::{long_segments, segments};
use crate::ops::builtin::*;
use crate::ops::{
    All, Any, ArgMax, ArgMin, CountFinite, CountNan, CountNonzero, Max, Min, MinMax, Operator, Scalar,
};

/// A built-in operator: its name in messages, and its kernels for each element type.
///
/// For each type `T` the table names the operator whose kernels reduce its elements, that operator's value, the
/// order, the kernels' element type, and the output type.
///
/// `in_any_order` and `in_order` repeat the operator's [`ANY_ORDER`](Operator::ANY_ORDER), which an assertion checks.
/// An operator that needs its fixed order has one more kernel, for rows at unaligned addresses.
///
/// The kernels reinterpret the bits of `T` as their element type, which has the same size, and their results have the
/// bits of the operator's. Each instance is listed in `ops/builtin.rs`.
macro_rules! builtin {
    ($($operator:ident, $name:literal {
        $($($type:ident)+ => $by:ident($value:expr) $order:ident of $element:ty, to $output:ty;)*
    })*) => {$($($(
        const _: () = {
            #[allow(dead_code, reason = "the table refers to the type by this name")]
            type T = $type;

            impl Reduction<$type> for $operator {
                type Output = $output;
                type State = <$by as Operator<$element>>::State;

                fn kernels(self) -> Kernels<$type, Self::State, $output> {
                    // SAFETY: `StateKernels` gives the handles out only by an unsafe call.
                    let handles = unsafe {
                        StateHandles {
                            long_rows: long_rows::handle::<$by, $element>(),
                            long_rows_unaligned: builtin!(long_rows_unaligned, $by, $element, $order),
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
            }
        };
    )+)*)*};
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

builtin! {
    Sum, "the sum" {
        i8 i16 u8 u16 => SumOrMean(SumOrMean { is_mean: false }) in_any_order of T, to <T as Scalar>::Wide;
        i32 i64 u32 => Sum(Sum) in_any_order of T, to <T as Scalar>::Wide;
        // Wrapping sums, products and squares have the same bits with and without a sign.
        u64 => Sum(Sum) in_any_order of i64, to u64;
    }
    WrappingSum, "the wrapping sum" {
        i8 u8 => WrappingSum(WrappingSum) in_any_order of u8, to T;
        i16 u16 => WrappingSum(WrappingSum) in_any_order of u16, to T;
        i32 u32 => WrappingSum(WrappingSum) in_any_order of u32, to T;
        i64 u64 => Sum(Sum) in_any_order of i64, to T;
    }
    Mean, "the mean" {
        i8 i16 u8 u16 => SumOrMean(SumOrMean { is_mean: true }) in_any_order of T, to f64;
        i32 i64 u32 u64 => Mean(Mean) in_any_order of T, to f64;
    }
    SumOfSquares, "the sum of squares" {
        i8 u8 => SquaresOrNorm(SquaresOrNorm { is_norm: false }) in_any_order of T, to <T as Scalar>::Wide;
        i16 i32 i64 u16 u32 => SumOfSquares(SumOfSquares) in_any_order of T, to <T as Scalar>::Wide;
        u64 => SumOfSquares(SumOfSquares) in_any_order of i64, to u64;
    }
    Norm, "the norm" {
        i8 u8 => SquaresOrNorm(SquaresOrNorm { is_norm: true }) in_any_order of T, to f64;
        i16 i32 i64 u16 u32 u64 => Norm(Norm) in_any_order of T, to f64;
    }
    Product, "the product" {
        f32 f64 f16 bf16 => Product(Product) in_order of T, to <T as Scalar>::Wide;
        i8 i16 i32 i64 u8 u16 u32 => Product(Product) in_any_order of T, to <T as Scalar>::Wide;
        u64 => Product(Product) in_any_order of i64, to u64;
    }
    Min, "the minimum" {
        f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64
            => MinOrMax(MinOrMax { flip: T::FLIP_OF_MIN }) in_any_order of <T as CompareAs>::By, to T;
    }
    Max, "the maximum" {
        f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64
            => MinOrMax(MinOrMax { flip: T::FLIP_OF_MAX }) in_any_order of <T as CompareAs>::By, to T;
    }
    MinMax, "the minimum and maximum" {
        f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64
            => MinAndMax(MinAndMax { flip: T::FLIP_OF_MAX })
                in_any_order of <T as CompareAs>::By, to <T as Scalar>::Pair;
    }
    ArgMin, "the index of the minimum" {
        f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64
            => ArgMinOrMax(ArgMinOrMax { flip: T::FLIP_OF_MIN }) in_any_order of <T as CompareAs>::By, to u64;
    }
    ArgMax, "the index of the maximum" {
        f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64
            => ArgMinOrMax(ArgMinOrMax { flip: T::FLIP_OF_MAX }) in_any_order of <T as CompareAs>::By, to u64;
    }
    Any, "whether any is nonzero" {
        f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64
            => AnyOrAll(AnyOrAll { is_all: false }) in_any_order of <T as CountAs>::By, to u8;
    }
    All, "whether all are nonzero" {
        f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64
            => AnyOrAll(AnyOrAll { is_all: true }) in_any_order of <T as CountAs>::By, to u8;
    }
    CountNonzero, "the number of nonzero elements" {
        f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64
            => Count(Count { threshold: 2, is_below: false }) in_any_order of <T as CountAs>::By, to u64;
    }
    CountNan, "the number of NaN" {
        f32 f64 f16 bf16 => Count(Count { threshold: T::INFINITY_SHIFTED + 2, is_below: false })
            in_any_order of <T as CountAs>::By, to u64;
    }
    CountFinite, "the number of finite elements" {
        f32 f64 f16 bf16 => Count(Count { threshold: T::INFINITY_SHIFTED, is_below: true })
            in_any_order of <T as CountAs>::By, to u64;
    }
}

/// Elements that are compared as another type, with some bits flipped: see [`MinOrMax`].
pub trait CompareAs {
    /// The kernels' element type.
    type By: Element;
    /// The bits that are flipped for a maximum.
    const FLIP_OF_MAX: u64;
    /// The bits that are flipped for a minimum.
    const FLIP_OF_MIN: u64;
}

macro_rules! compared {
    ($($type:ident as $by:ident, maximum $max:expr, minimum $min:expr;)*) => {$(
        impl CompareAs for $type {
            type By = $by;
            const FLIP_OF_MAX: u64 = $max;
            const FLIP_OF_MIN: u64 = $min;
        }
    )*};
}

compared! {
    f32 as f32, maximum 0, minimum 1 << 31;
    f64 as f64, maximum 0, minimum 1 << 63;
    f16 as f16, maximum 0, minimum 1 << 15;
    bf16 as bf16, maximum 0, minimum 1 << 15;
    u8 as u8, maximum 0, minimum u8::MAX as u64;
    u16 as u16, maximum 0, minimum u16::MAX as u64;
    u32 as u32, maximum 0, minimum u32::MAX as u64;
    u64 as u64, maximum 0, minimum u64::MAX;
    i8 as u8, maximum 1 << 7, minimum i8::MAX as u64;
    i16 as u16, maximum 1 << 15, minimum i16::MAX as u64;
    i32 as u32, maximum 1 << 31, minimum i32::MAX as u64;
    i64 as u64, maximum 1 << 63, minimum i64::MAX as u64;
}

/// Elements that are counted as another type. The kernels compare an element's bits with a threshold, and so serve all
/// floats of one size.
pub trait CountAs {
    /// The kernels' element type.
    type By: Element;
}

macro_rules! counted {
    ($($type:ident as $by:ident;)*) => {$(
        impl CountAs for $type {
            type By = $by;
        }
    )*};
}

counted! {
    f32 as f32; f64 as f64; f16 as f16; bf16 as f16;
    u8 as u8; u16 as u16; u32 as u32; u64 as u64; i8 as u8; i16 as u16; i32 as u32; i64 as u64;
}

/// Floats. Infinity has all bits of the exponent set, and no others.
pub trait Infinite {
    /// The bits of infinity, shifted left by one.
    const INFINITY_SHIFTED: u64;
}

macro_rules! infinite {
    ($($type:ident)*) => {$(
        impl Infinite for $type {
            const INFINITY_SHIFTED: u64 = ($type::INFINITY.to_bits() as u64) << 1;
        }
    )*};
}

infinite!(f32 f64 f16 bf16);
