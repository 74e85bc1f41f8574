//! The operators of [`crate::ops`], with their kernels.

use half::{bf16, f16};
use kernels::ops::{
    All, Any, ArgMax, ArgMin, CountFinite, CountNan, CountNonzero, Max, Mean, Min, MinMax, Norm, Operator, Product,
    Sum, SumInF64, SumOfSquares, WrappingSum,
};
use kernels::reduce::{
    columns::columns,
    rows::rows,
    segments::{long_segments, segments},
    spans::{spans, spans_anywhere},
};

use super::{Kernels, Reduction, SegmentKernels};

macro_rules! reductions {
    ($($operator:ident, $name:literal, $order:ident of $($type:ident)*;)*) => {$($(
        impl Reduction<$type> for $operator {
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
            fn segment_kernels() -> SegmentKernels<Self, $type> {
                // SAFETY: as above, of `SegmentKernels`.
                unsafe {
                    SegmentKernels {
                        segments: segments::handle::<Self, $type>(),
                        long_segments: long_segments::handle::<Self, $type>(),
                    }
                }
            }
        }
    )*)*};
    (spans_anywhere, $operator:ident, $type:ident, in_order) => {{
        const { assert!(!<$operator as Operator<$type>>::ANY_ORDER) };
        Some(spans_anywhere::handle::<$operator, $type>())
    }};
    (spans_anywhere, $operator:ident, $type:ident, in_any_order) => {{
        const { assert!(<$operator as Operator<$type>>::ANY_ORDER) };
        None
    }};
}

// By `Operator::ANY_ORDER`: spans that begin anywhere have a kernel of their own only where the order counts.
reductions! {
    Sum, "the sum", in_order of f32 f64 f16 bf16;
    Sum, "the sum", in_any_order of i8 i16 i32 i64 u8 u16 u32 u64;
    Product, "the product", in_order of f32 f64 f16 bf16;
    Product, "the product", in_any_order of i8 i16 i32 i64 u8 u16 u32 u64;
    Mean, "the mean", in_order of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    SumOfSquares, "the sum of squares", in_order of f32 f64 f16 bf16;
    SumOfSquares, "the sum of squares", in_any_order of i8 i16 i32 i64 u8 u16 u32 u64;
    Norm, "the norm", in_order of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    Min, "the minimum", in_any_order of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    Max, "the maximum", in_any_order of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    MinMax, "the minimum and maximum", in_any_order of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    ArgMin, "the place of the minimum", in_any_order of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    ArgMax, "the place of the maximum", in_any_order of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    Any, "whether any is nonzero", in_any_order of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    All, "whether all are nonzero", in_any_order of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    CountNonzero, "the number of nonzero elements", in_any_order of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    CountNan, "the number of NaN", in_any_order of f32 f64 f16 bf16;
    CountFinite, "the number of finite elements", in_any_order of f32 f64 f16 bf16;
    WrappingSum, "the wrapping sum", in_any_order of i8 i16 i32 i64 u8 u16 u32 u64;
    SumInF64, "the sum in f64", in_order of f32;
}
