//! The table of the built-in operators: which kernel reduces which element type.

pub(crate) use half::{bf16, f16};

pub(crate) use super::{
    AnyOrAll, ArgMaxOfFloats, ArgMinOfFloats, ArgMinOrMax, Count, CountNonzeroFloats, Fixed, MaxOfFloats, Mean,
    MinAndMax, MinMaxOfFloats, MinOfFloats, MinOrMax, Norm, PairwiseSumOrMean, Product, SquaresOrNorm, Sum,
    SumOfSquares, SumOrMean, WrappingSum,
};

/// The table, as the argument of another macro: `builtin_operators! { { callback } { ... } }` expands to
/// `callback! { { ... } table }`. The kernels of every shape are compiled for it:
/// `#[kernel(instances = builtin_operators!, ...)]`. The calling module imports everything in this one.
///
/// An operator has its name in messages, lines in brackets, and lines in braces.
///
/// A line in brackets has exact sums of floats: the operator whose terms the kernels sum, their argument `finish`,
/// whether there is a kernel for columns, the element types, and the output's type.
///
/// A line in braces has the operator whose kernels reduce the elements, that operator's value, the order, the element
/// types, and the output's type. `T` is an element type of the line.
///
/// `u8 for i8` means that the kernels for `u8` reduce `i8`, too. They reinterpret the bits of an element, and their
/// results have the bits of the operator's. An instance that several lines list is compiled once.
///
/// `in_any_order` and `in_order` repeat the operator's [`ANY_ORDER`](super::Operator::ANY_ORDER), which an assertion
/// checks. An operator that needs its fixed order has one more kernel, for rows at unaligned addresses.
#[doc(hidden)]
#[macro_export]
macro_rules! builtin_operators {
    ([$($rest:tt)*] $($kernel:tt)*) => {
        builtin_operators! { { kernel_with_instances } { [$($rest)*] $($kernel)* } }
    };
    ({ $($callback:tt)+ } $argument:tt) => {$($callback)+! {
        $argument
        Sum, "the sum" [
            Sum(0) with_columns of f32, f16, bf16 -> f32;
            Sum(0) with_columns of f64 -> f64;
        ] {
            SumOrMean(SumOrMean { is_mean: false }) in_any_order of i8, i16, u8, u16 -> <T as Scalar>::Wide;
            // Wrapping sums, products and squares have the same bits with and without a sign.
            Sum(Sum) in_any_order of i32, i64 for u64, u32 -> <T as Scalar>::Wide;
        }
        SumInF64, "the sum in f64" [
            Sum(IN_OTHER_FORMAT) with_columns of f32 -> f64;
        ] {}
        WrappingSum, "the wrapping sum" [] {
            WrappingSum(WrappingSum) in_any_order of u8 for i8, u16 for i16, u32 for i32 -> T;
            Sum(Sum) in_any_order of i64 for u64 -> T;
        }
        Mean, "the mean" [
            Sum(DERIVED) with_columns of f32, f16, bf16 -> f32;
            Sum(DERIVED) with_columns of f64 -> f64;
        ] {
            SumOrMean(SumOrMean { is_mean: true }) in_any_order of i8, i16, u8, u16 -> f64;
            Mean(Mean) in_any_order of i32, i64, u32, u64 -> f64;
        }
        SumOfSquares, "the sum of squares" [
            SumOfSquares(0) with_columns of f32, f16, bf16 -> f32;
            SumOfSquares(0) without_columns of f64 -> f64;
        ] {
            SquaresOrNorm(SquaresOrNorm { is_norm: false }) in_any_order of i8, u8 -> <T as Scalar>::Wide;
            SumOfSquares(SumOfSquares) in_any_order of i16, i32, i64 for u64, u16, u32 -> <T as Scalar>::Wide;
        }
        Norm, "the norm" [
            SumOfSquares(DERIVED) with_columns of f32, f16, bf16 -> f32;
            SumOfSquares(DERIVED) without_columns of f64 -> f64;
        ] {
            SquaresOrNorm(SquaresOrNorm { is_norm: true }) in_any_order of i8, u8 -> f64;
            Norm(Norm) in_any_order of i16, i32, i64, u16, u32, u64 -> f64;
        }
        Product, "the product" [] {
            Product(Product) in_order of f32, f64, f16, bf16 -> <T as Scalar>::Wide;
            Product(Product) in_any_order of i8, i16, i32, i64 for u64, u8, u16, u32 -> <T as Scalar>::Wide;
        }
        PairwiseSum, "the pairwise sum" [] {
            PairwiseSumOrMean(PairwiseSumOrMean { is_mean: false }) in_order
                of f32, f64, f16, bf16 -> <T as Scalar>::Wide;
        }
        PairwiseMean, "the pairwise mean" [] {
            PairwiseSumOrMean(PairwiseSumOrMean { is_mean: true }) in_order
                of f32, f64, f16, bf16 -> <T as Scalar>::Wide;
        }
        Min, "the minimum" [] {
            MinOfFloats(Fixed::default()) in_any_order of f32, f64, f16, bf16 -> T;
            MinOrMax(MinOrMax { flip: T::FLIP_OF_MIN }) in_any_order
                of u8 for i8, u16 for i16, u32 for i32, u64 for i64 -> T;
        }
        Max, "the maximum" [] {
            MaxOfFloats(Fixed::default()) in_any_order of f32, f64, f16, bf16 -> T;
            MinOrMax(MinOrMax { flip: T::FLIP_OF_MAX }) in_any_order
                of u8 for i8, u16 for i16, u32 for i32, u64 for i64 -> T;
        }
        MinMax, "the minimum and maximum" [] {
            MinMaxOfFloats(Fixed::default()) in_any_order of f32, f64, f16, bf16 -> <T as Scalar>::Pair;
            MinAndMax(MinAndMax { flip: T::FLIP_OF_MAX }) in_any_order
                of u8 for i8, u16 for i16, u32 for i32, u64 for i64 -> <T as Scalar>::Pair;
        }
        ArgMin, "the index of the minimum" [] {
            ArgMinOfFloats(Fixed::default()) in_any_order of f32, f64, f16, bf16 -> u64;
            ArgMinOrMax(ArgMinOrMax { flip: T::FLIP_OF_MIN }) in_any_order
                of u8 for i8, u16 for i16, u32 for i32, u64 for i64 -> u64;
        }
        ArgMax, "the index of the maximum" [] {
            ArgMaxOfFloats(Fixed::default()) in_any_order of f32, f64, f16, bf16 -> u64;
            ArgMinOrMax(ArgMinOrMax { flip: T::FLIP_OF_MAX }) in_any_order
                of u8 for i8, u16 for i16, u32 for i32, u64 for i64 -> u64;
        }
        // The kernels of these compare bits of floats of 16 bits, and so serve both `f16` and `bf16`.
        Any, "whether any is nonzero" [] {
            AnyOrAll(AnyOrAll { is_all: false }) in_any_order
                of f32, f64, f16 for bf16, u8 for i8, u16 for i16, u32 for i32, u64 for i64 -> u8;
        }
        All, "whether all are nonzero" [] {
            AnyOrAll(AnyOrAll { is_all: true }) in_any_order
                of f32, f64, f16 for bf16, u8 for i8, u16 for i16, u32 for i32, u64 for i64 -> u8;
        }
        CountNonzero, "the number of nonzero elements" [] {
            CountNonzeroFloats(Fixed::default()) in_any_order of f32, f64, f16 for bf16 -> u64;
            Count(Count { limit: 0, is_at_most: false }) in_any_order
                of u8 for i8, u16 for i16, u32 for i32, u64 for i64 -> u64;
        }
        CountNan, "the number of NaN" [] {
            Count(Count { limit: T::INFINITY_BITS, is_at_most: false }) in_any_order
                of f32, f64, f16 for bf16 -> u64;
        }
        CountFinite, "the number of finite elements" [] {
            Count(Count { limit: T::INFINITY_BITS - 1, is_at_most: true }) in_any_order
                of f32, f64, f16 for bf16 -> u64;
        }
    }};
}
pub(crate) use builtin_operators;

/// Calls the macro `$callback` with the name of each operator that reduces one input, its name in messages, and the
/// element types that it has kernels for: `callback! { Sum, "the sum" of [f32] [f16] ...; ... }`. `f16` and `bf16` are
/// those of `half`, which the caller imports.
///
/// ```
/// macro_rules! names {
///     ($($operator:ident, $name:literal of $([$element:ident])*;)*) => { [$($name),*] };
/// }
/// assert!(kernels::for_each_builtin!(names).contains(&"the norm"));
/// ```
#[macro_export]
macro_rules! for_each_builtin {
    ($($callback:tt)+) => {
        $crate::builtin_operators! { { $crate::operators_and_types } { $($callback)+ } }
    };
}

/// Calls a macro with each operator of the table and its element types, for [`for_each_builtin`].
#[doc(hidden)]
#[macro_export]
macro_rules! operators_and_types {
    (
        { $($callback:tt)+ }
        $($operator:ident, $name:literal [
            $($terms:ident($finish:expr) $columns:ident of $($float:ident),+ -> $sum:ty;)*
        ] {
            $($by:ident($value:expr) $order:ident of $($element:ident $(for $other:ident)?),+ -> $output:ty;)*
        })*
    ) => {
        $($callback)+! { $($operator, $name of $($([$float])+)* $($([$element] $([$other])?)+)*;)* }
    };
}

/// Writes `#[kernel]` with the instances of the table, for [`builtin_operators`].
macro_rules! kernel_with_instances {
    (
        { [$($rest:tt)*] $($kernel:tt)* }
        $($operator:ident, $name:literal [$($exact:tt)*] {
            $($by:ident($value:expr) $order:ident of $($element:ident $(for $other:ident)?),+ -> $output:ty;)*
        })*
    ) => {
        #[kernel(instances = $($([$by] x [$($element),+] +)*)*, $($rest)*)]
        $($kernel)*
    };
}
pub(crate) use kernel_with_instances;
