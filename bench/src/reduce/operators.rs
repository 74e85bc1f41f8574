//! The operators of `bench reduce`.

use clap::ValueEnum;
use serde::Serialize;

use crate::element::ElementType;
use crate::exact::Kind;

/// Calls the macro `$then` with every operator: its name in this program, its type in the library, the element types
/// that it takes, and the function of `run.rs` that measures it.
///
/// A new operator needs a line here, and its result on the CPU in `tally.rs`. Another set of element types needs an arm
/// of `operators!` below, and one of `measured!` in `run.rs`.
macro_rules! for_each_operator {
    ($then:ident) => {
        $then! {
            /// The sum; for integers in 64 bits
            Sum: Sum of all, by measure;
            /// The sum in the integers' own type, wrapping
            WrappingSum: WrappingSum of integers, by measure;
            /// The sum of f32 in f64
            SumInF64: SumInF64 of f32, by measure;
            /// The product; for integers in 64 bits, wrapping
            Product: Product of all, by measure;
            Min: Min of all, by measure;
            Max: Max of all, by measure;
            Argmin: ArgMin of all, by measure;
            Argmax: ArgMax of all, by measure;
            MinMax: MinMax of all, by measure;
            Mean: Mean of all, by measure;
            SumOfSquares: SumOfSquares of all, by measure;
            Norm: Norm of all, by measure;
            Any: Any of all, by measure;
            All: All of all, by measure;
            CountNonzero: CountNonzero of all, by measure;
            /// The number of elements that are NaN, for floats
            CountNan: CountNan of floats, by measure;
            /// The number of finite elements, for floats
            CountFinite: CountFinite of floats, by measure;
            /// The dot product of two inputs
            Dot: Dot of all, by measure_pairs;
        }
    };
}
pub(super) use for_each_operator;

macro_rules! operators {
    ($($(#[$doc:meta])* $name:ident: $operator:ident of $types:ident, by $measure:ident;)*) => {
        /// An operator.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Operator {
            $($(#[$doc])* $name,)*
        }

        impl Operator {
            /// Whether the library has the operator for this type.
            pub fn takes(self, dtype: ElementType) -> bool {
                match self {
                    $(Self::$name => operators!(dtype in $types),)*
                }
            }
        }
    };
    ($dtype:ident in all) => { true };
    ($dtype:ident in floats) => { $dtype.is_float() };
    ($dtype:ident in integers) => { !$dtype.is_float() };
    ($dtype:ident in f32) => { $dtype == ElementType::F32 };
}

for_each_operator!(operators);

/// The elements to test an operator with: if a kernel skips one, the result differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// Small whole numbers, whose sums are exact.
    Whole,
    /// Numbers whose products are exact. A missing factor changes the product.
    Factors,
    /// Small whole numbers, infinities and NaN.
    Special,
}

impl Operator {
    pub fn data(self) -> Data {
        match self {
            Self::Product => Data::Factors,
            Self::CountNan | Self::CountFinite => Data::Special,
            _ => Data::Whole,
        }
    }

    /// Whether the results for elements of this kind can be checked, which needs an exact operator.
    pub fn takes_data(self, dtype: ElementType, data: Option<Kind>) -> bool {
        let is_exact = matches!(self, Self::Sum | Self::SumInF64 | Self::Mean | Self::SumOfSquares | Self::Norm);
        data.is_none() || dtype.is_float() && is_exact
    }

    /// The number of values in one result.
    pub fn results_each(self) -> usize {
        if self == Self::MinMax { 2 } else { 1 }
    }

    /// The element types that the operator takes.
    pub fn types(self) -> impl Iterator<Item = ElementType> {
        ElementType::value_variants().iter().copied().filter(move |&dtype| self.takes(dtype))
    }
}
