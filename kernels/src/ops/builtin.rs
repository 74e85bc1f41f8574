//! The operators and types that the kernels of every shape are compiled for.

pub(crate) use half::{bf16, f16};

pub(crate) use super::{
    AnyOrAll, ArgMinOrMax, Count, Mean, MinAndMax, MinOrMax, Norm, Product, SquaresOrNorm, Sum, SumOfSquares,
    SumOrMean, WrappingSum,
};

/// Writes `#[kernel]` with the instances of the built-in operators: `#[kernel(instances = builtin_operators!, ...)]`.
///
/// The calling module imports everything in this one. Types that an operator lacks here use another operator's kernels,
/// which give the same bits: see `reduce/builtin.rs`.
///
/// The table in `reduce/builtin.rs` says which instance reduces which type; `ops/mod.rs` says how to add an operator.
macro_rules! builtin_operators {
    ([$($rest:tt)*] $($kernel:tt)*) => {
        #[kernel(
            instances = [MinOrMax, MinAndMax, ArgMinOrMax] x [f32, f64, f16, bf16, u8, u16, u32, u64]
                + [Product] x [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32]
                + [SumOrMean] x [i8, i16, u8, u16]
                + [Sum] x [i32, i64, u32]
                + [Mean] x [i32, i64, u32, u64]
                + [SquaresOrNorm] x [i8, u8]
                + [SumOfSquares] x [i16, i32, i64, u16, u32]
                + [Norm] x [i16, i32, i64, u16, u32, u64]
                + [AnyOrAll, Count] x [f32, f64, f16, u8, u16, u32, u64]
                + [WrappingSum] x [u8, u16, u32],
            $($rest)*
        )]
        $($kernel)*
    };
}
pub(crate) use builtin_operators;
