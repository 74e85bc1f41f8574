//! The operators of [`crate::ops`], with their kernels.

use half::{bf16, f16};
use kernels::ops::{
    All, Any, ArgMax, ArgMin, CountFinite, CountNan, CountNonzero, Max, Mean, Min, MinMax, Norm, Product, Sum,
    SumInF64, SumOfSquares, WrappingSum,
};
use kernels::reduce::{
    columns::columns,
    rows::rows,
    segments::{long_segments, segments},
    spans::spans,
};

use super::{Kernels, Reduction, SegmentKernels};

macro_rules! reductions {
    ($($operator:ident, $name:literal, of $($type:ident)*;)*) => {$($(
        impl Reduction<$type> for $operator {
            fn kernels() -> Kernels<Self, $type> {
                Kernels {
                    name: $name,
                    spans: spans::handle::<Self, $type>(),
                    rows: Some(rows::handle::<Self, $type>()),
                    columns: Some(columns::handle::<Self, $type>()),
                }
            }
            fn segment_kernels() -> SegmentKernels<Self, $type> {
                SegmentKernels {
                    segments: segments::handle::<Self, $type>(),
                    long_segments: long_segments::handle::<Self, $type>(),
                }
            }
        }
    )*)*};
}

reductions! {
    Sum, "the sum", of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    Product, "the product", of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    Mean, "the mean", of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    SumOfSquares, "the sum of squares", of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    Norm, "the norm", of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    Min, "the minimum", of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    Max, "the maximum", of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    MinMax, "the minimum and maximum", of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    ArgMin, "the place of the minimum", of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    ArgMax, "the place of the maximum", of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    Any, "whether any is nonzero", of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    All, "whether all are nonzero", of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    CountNonzero, "the number of nonzero elements", of f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64;
    CountNan, "the number of NaN", of f32 f64 f16 bf16;
    CountFinite, "the number of finite elements", of f32 f64 f16 bf16;
    WrappingSum, "the wrapping sum", of i8 i16 i32 i64 u8 u16 u32 u64;
    SumInF64, "the sum in f64", of f32;
}
