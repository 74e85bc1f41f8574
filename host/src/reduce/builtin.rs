//! The operators of [`crate::ops`], with their kernels, but for exact sums of floats.

use cuda_std::element::Element;
use half::{bf16, f16};
use kernels::ops::{
    All, Any, ArgMax, ArgMin, CountFinite, CountNan, CountNonzero, Max, Mean, Min, MinMax, Norm, Operator, Product,
    Sum, SumOfSquares, WrappingSum,
};
use kernels::reduce::{
    columns::columns,
    rows::rows,
    segments::{long_segments, places_of_partial, segments},
    spans::{spans, spans_anywhere},
};

use super::private::Token;
use super::reducer::plan_by;
use super::segments::OrderedSegmentKernels;
use super::{Kernels, Planned, Reduction, SegmentKernels, Shape};
use crate::Error;

/// An operator whose kernels are those of the engines for any [`Operator`].
trait OperatorKernels<T: Element>: Operator<T> {
    fn kernels() -> Kernels<Self, T>;
    fn segment_kernels() -> OrderedSegmentKernels<T, Self::Output>;
}

macro_rules! reductions {
    ($($operator:ident, $name:literal, $order:ident of $($type:ident)*;)*) => {$($(
        reductions!($operator, $type);

        impl OperatorKernels<$type> for $operator {
            fn kernels() -> Kernels<Self, $type> {
                // SAFETY: whoever has them cannot launch them: only the plans of `Kernels` do.
                unsafe {
                    Kernels {
                        name: $name,
                        spans: spans::handle::<Self, $type>(),
                        spans_anywhere: reductions!(spans_anywhere, $operator, $type, $order),
                        rows: Some(rows::handle::<Self, $type>()),
                        columns: Some(columns::handle::<Self, $type>()),
                    }
                }
            }
            fn segment_kernels() -> OrderedSegmentKernels<$type, Self::Output> {
                // SAFETY: as above, of `SegmentKernels`.
                unsafe {
                    OrderedSegmentKernels {
                        segments: segments::handle::<Self, $type>(),
                        long_segments: long_segments::handle::<Self, $type>(),
                        places: places_of_partial(size_of::<<Self as Operator<$type>>::State>()),
                    }
                }
            }
        }
    )*)*};
    ($operator:ident, $type:ident) => {
        impl Reduction<$type> for $operator {
            type Output = <$operator as Operator<$type>>::Output;

            fn plan(shape: Shape, _: Token) -> Result<Planned<$type, Self::Output>, Error> {
                plan_by(<Self as OperatorKernels<$type>>::kernels(), shape)
            }
            fn segment_kernels(_: Token) -> SegmentKernels<$type, Self::Output> {
                SegmentKernels::InOrder(<Self as OperatorKernels<$type>>::segment_kernels())
            }
        }
    };
    (spans_anywhere, $operator:ident, $type:ident, in_order) => {{
        const { assert!(!<$operator as Operator<$type>>::ANY_ORDER) };
        Some(spans_anywhere::handle::<$operator, $type>())
    }};
    (spans_anywhere, $operator:ident, $type:ident, in_any_order) => {{
        const { assert!(<$operator as Operator<$type>>::ANY_ORDER) };
        None
    }};
}

/// Operators that do with one type, bit for bit, what an operator does with another one: they have its kernels.
macro_rules! the_same {
    ($($operator:ident, $name:literal, of $($type:ident as $by:ident of $same:ident),*;)*) => {$($(
        reductions!($operator, $type);

        impl OperatorKernels<$type> for $operator {
            fn kernels() -> Kernels<Self, $type> {
                // SAFETY: both do the same with the same bits, as the list below says of each pair.
                unsafe { <$by as OperatorKernels<$same>>::kernels().taken_as($name) }
            }
            fn segment_kernels() -> OrderedSegmentKernels<$type, Self::Output> {
                // SAFETY: as above.
                unsafe { <$by as OperatorKernels<$same>>::segment_kernels().taken_as() }
            }
        }
    )*)*};
}

// By `Operator::ANY_ORDER`: spans that begin anywhere have a kernel of their own only where the order counts.
reductions! {
    Sum, "the sum", in_any_order of i8 i16 i32 i64 u8 u16 u32;
    Product, "the product", in_order of f32 f64 f16 bf16;
    Product, "the product", in_any_order of i8 i16 i32 i64 u8 u16 u32;
    Mean, "the mean", in_any_order of i8 i16 i32 i64 u8 u16 u32 u64;
    SumOfSquares, "the sum of squares", in_any_order of i8 i16 i32 i64 u8 u16 u32;
    Norm, "the norm", in_any_order of i8 i16 i32 i64 u8 u16 u32 u64;
    Min, "the minimum", in_any_order of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    Max, "the maximum", in_any_order of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    MinMax, "the minimum and maximum", in_any_order of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    ArgMin, "the place of the minimum", in_any_order of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    ArgMax, "the place of the maximum", in_any_order of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    Any, "whether any is nonzero", in_any_order of f32 f64 f16 u8 u16 u32 u64;
    All, "whether all are nonzero", in_any_order of f32 f64 f16 u8 u16 u32 u64;
    CountNonzero, "the number of nonzero elements", in_any_order of f32 f64 f16 u8 u16 u32 u64;
    CountNan, "the number of NaN", in_any_order of f32 f64 f16 bf16;
    CountFinite, "the number of finite elements", in_any_order of f32 f64 f16 bf16;
    WrappingSum, "the wrapping sum", in_any_order of u8 u16 u32;
}

// Whether a number is 0 does not depend on its sign: floats of one size are 0 if no bit but the first is set,
// integers if none is. Sums and products of integers that wrap have the same bits of both signs, if they are as wide
// as the elements.
the_same! {
    Any, "whether any is nonzero",
        of i8 as Any of u8, i16 as Any of u16, i32 as Any of u32, i64 as Any of u64, bf16 as Any of f16;
    All, "whether all are nonzero",
        of i8 as All of u8, i16 as All of u16, i32 as All of u32, i64 as All of u64, bf16 as All of f16;
    CountNonzero, "the number of nonzero elements",
        of i8 as CountNonzero of u8, i16 as CountNonzero of u16, i32 as CountNonzero of u32, i64 as CountNonzero of u64,
        bf16 as CountNonzero of f16;
    WrappingSum, "the wrapping sum",
        of i8 as WrappingSum of u8, i16 as WrappingSum of u16, i32 as WrappingSum of u32, i64 as Sum of i64,
        u64 as Sum of i64;
    Sum, "the sum", of u64 as Sum of i64;
    Product, "the product", of u64 as Product of i64;
    SumOfSquares, "the sum of squares", of u64 as SumOfSquares of i64;
}
