//! The operators of `bench reduce`.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use half::{bf16, f16};
use kernels::for_each_builtin;
use serde::{Serialize, Serializer};

use crate::element::{ElementType, Number};
use crate::exact::Kind;

macro_rules! operators {
    ($($operator:ident, $name:literal of $([$type:ident])*;)*) => {
        /// An operator: one of the library's that reduce one input, or [`Operator::Dot`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Operator {
            $(
                #[doc = $name]
                $operator,
            )*
            /// the dot product
            Dot,
        }

        impl Operator {
            const ALL: &[Self] = &[$(Self::$operator,)* Self::Dot];

            /// What the operator computes: `the sum`.
            fn description(self) -> &'static str {
                match self {
                    $(Self::$operator => $name,)*
                    Self::Dot => "the dot product of two inputs",
                }
            }

            /// Whether the library has the operator for this type.
            pub fn takes(self, dtype: ElementType) -> bool {
                match self {
                    $(Self::$operator => [$(<$type as Number>::TYPE),*].contains(&dtype),)*
                    Self::Dot => true,
                }
            }
        }
    };
}

for_each_builtin! { operators }

impl Operator {
    /// The name on the command line and in JSON: that of its type in the library, in lower case and with hyphens, as in
    /// `sum-of-squares`; but `argmin` and `argmax`, as NumPy has them.
    fn name(self) -> String {
        let mut name = String::new();
        for letter in format!("{self:?}").chars() {
            if letter.is_uppercase() && !name.is_empty() && name != "arg" {
                name.push('-');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }
}

impl ValueEnum for Operator {
    fn value_variants<'a>() -> &'a [Self] {
        Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let names = |types: Vec<ElementType>| types.iter().map(ElementType::to_string).collect::<Vec<_>>().join(", ");
        let (floats, integers): (Vec<_>, Vec<_>) = self.types().partition(|dtype| dtype.is_float());
        let types = match (floats.len(), integers.len()) {
            (4, 8) => String::new(),
            (4, 0) => ", of floats".to_owned(),
            (0, 8) => ", of integers".to_owned(),
            _ => format!(", of {}", names([floats, integers].concat())),
        };
        Some(PossibleValue::new(self.name()).help(format!("{}{types}", self.description())))
    }
}

impl Serialize for Operator {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

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
