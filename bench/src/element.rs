//! The twelve element types, and the CPU's arithmetic on them.

use std::fmt;

use clap::ValueEnum;
use half::{bf16, f16};
use serde::Serialize;
use warpfold::{Element, Error};

use crate::number::Value;

/// An element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ElementType {
    F32,
    F64,
    F16,
    Bf16,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
}

impl ElementType {
    /// The types that the ladders have kernels for.
    const OF_LADDERS: [Self; 4] = [Self::F32, Self::F64, Self::I32, Self::I64];

    pub fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64 | Self::F16 | Self::Bf16)
    }

    /// Refuses types for which the ladders have no kernels.
    pub fn check_ladder(self) -> Result<(), Error> {
        if Self::OF_LADDERS.contains(&self) { Ok(()) } else { Err(self.no_ladder()) }
    }

    /// The error for a type for which the ladders have no kernels.
    pub fn no_ladder(self) -> Error {
        let allowed = Self::OF_LADDERS.map(|dtype| dtype.to_string()).to_vec();
        Error::NoSuchRung { what: "kernel of the ladders for", value: self.to_string(), allowed }
    }

    /// All types, for a message: `f32, f64, ...`.
    pub fn all() -> String {
        Self::value_variants().iter().map(Self::to_string).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.to_possible_value().expect("no variant is skipped").get_name())
    }
}

/// Evaluates an expression for the type that an [`ElementType`] names. The expression is compiled for each type.
macro_rules! with_type {
    ($dtype:expr, $type:ident => $body:expr) => {
        with_type!($dtype, $type => $body; F32 f32 F64 f64 F16 half::f16 Bf16 half::bf16 I8 i8 I16 i16 I32 i32 I64 i64
            U8 u8 U16 u16 U32 u32 U64 u64)
    };
    ($dtype:expr, $type:ident => $body:expr; $($variant:ident $element:ty)*) => {
        match $dtype {$(
            $crate::element::ElementType::$variant => {
                type $type = $element;
                $body
            }
        )*}
    };
}
pub(crate) use with_type;

/// [`with_type`] for the types of the ladders. For other types it is the error [`ElementType::no_ladder`].
macro_rules! with_ladder_type {
    ($dtype:expr, $type:ident => $body:expr) => {
        with_ladder_type!($dtype, $type => $body; F32 f32 F64 f64 I32 i32 I64 i64)
    };
    ($dtype:expr, $type:ident => $body:expr; $($variant:ident $element:ty)*) => {
        match $dtype {
            $($crate::element::ElementType::$variant => {
                type $type = $element;
                $body
            })*
            other => Err(other.no_ladder().into()),
        }
    };
}
pub(crate) use with_ladder_type;

/// A number that `bench` reduces.
pub trait Number: Element {
    const TYPE: ElementType;
    /// The float format of means, and of sums of floats.
    const MEANS: Format;
    /// The type in which the CPU computes.
    type Wide: Wide;

    /// Converts exactly.
    fn wide(self) -> Self::Wide;

    /// Converts an integer by keeping its lowest bits, a float by rounding to the nearest.
    fn of_wide(wide: Self::Wide) -> Self;

    /// Converts a small integer, nonnegative for unsigned types.
    fn of_whole(value: i8) -> Self;

    /// The nearest float; `None` for integers.
    fn of_f64(value: f64) -> Option<Self>;

    /// The number for printing.
    fn value(self) -> Value;
}

/// A 64-bit number: an integer that wraps, or a float.
pub trait Wide: Number + PartialOrd {
    const IS_FLOAT: bool;
    const ZERO: Self;
    const ONE: Self;
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn to_f64(self) -> f64;
}

/// A float format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Single,
    Double,
}

impl Format {
    /// Rounds to the nearest number of the format.
    pub fn round(self, value: f64) -> f64 {
        match self {
            Self::Single => f64::from(value as f32),
            Self::Double => value,
        }
    }

    /// The unit roundoff: half the distance from 1 to the next larger number.
    pub fn unit_roundoff(self) -> f64 {
        match self {
            Self::Single => f64::from(f32::EPSILON) / 2.0,
            Self::Double => f64::EPSILON / 2.0,
        }
    }

    /// The largest finite number.
    pub fn largest(self) -> f64 {
        match self {
            Self::Single => f32::MAX.into(),
            Self::Double => f64::MAX,
        }
    }

    /// The smallest positive number.
    pub fn least(self) -> f64 {
        match self {
            Self::Single => f32::from_bits(1).into(),
            Self::Double => f64::from_bits(1),
        }
    }
}

macro_rules! floats {
    ($($type:ident $variant:ident, $format:ident, $of_f64:expr, $value:expr;)*) => {$(
        impl Number for $type {
            const TYPE: ElementType = ElementType::$variant;
            const MEANS: Format = Format::$format;
            type Wide = f64;

            fn wide(self) -> f64 {
                self.into()
            }

            fn of_wide(wide: f64) -> Self {
                ($of_f64)(wide)
            }

            fn of_whole(value: i8) -> Self {
                ($of_f64)(value.into())
            }

            fn of_f64(value: f64) -> Option<Self> {
                Some(($of_f64)(value))
            }

            fn value(self) -> Value {
                ($value)(self)
            }
        }
    )*};
}

// 16-bit floats are printed as `f32`, whose digits distinguish them all.
floats! {
    f16 F16, Single, f16::from_f64, |x: f16| Value::F32(x.into());
    bf16 Bf16, Single, bf16::from_f64, |x: bf16| Value::F32(x.into());
    f32 F32, Single, |x: f64| x as f32, Value::F32;
    f64 F64, Double, |x: f64| x, Value::F64;
}

macro_rules! integers {
    ($($type:ident $variant:ident in $wide:ident $value:ident;)*) => {$(
        impl Number for $type {
            const TYPE: ElementType = ElementType::$variant;
            const MEANS: Format = Format::Double;
            type Wide = $wide;

            fn wide(self) -> $wide {
                self.into()
            }

            fn of_wide(wide: $wide) -> Self {
                wide as Self
            }

            fn of_whole(value: i8) -> Self {
                value as Self
            }

            fn of_f64(_: f64) -> Option<Self> {
                None
            }

            fn value(self) -> Value {
                Value::$value(self.into())
            }
        }
    )*};
}

integers! {
    i8 I8 in i64 I64; i16 I16 in i64 I64; i32 I32 in i64 I64; i64 I64 in i64 I64;
    u8 U8 in u64 U64; u16 U16 in u64 U64; u32 U32 in u64 U64; u64 U64 in u64 U64;
}

macro_rules! wide_integers {
    ($($type:ident)*) => {$(
        impl Wide for $type {
            const IS_FLOAT: bool = false;
            const ZERO: Self = 0;
            const ONE: Self = 1;

            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            fn to_f64(self) -> f64 {
                self as f64
            }
        }
    )*};
}

wide_integers!(i64 u64);

impl Wide for f64 {
    const IS_FLOAT: bool = true;
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;

    fn plus(self, other: Self) -> Self {
        self + other
    }

    fn times(self, other: Self) -> Self {
        self * other
    }

    fn to_f64(self) -> f64 {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_types() {
        for &dtype in ElementType::value_variants() {
            let (of_number, of_type) = with_type!(dtype, T => (T::TYPE, std::any::type_name::<T>()));
            assert_eq!(of_number, dtype);
            assert!(of_type.ends_with(&dtype.to_string()), "{dtype}: {of_type}");
            let ladder: Result<ElementType, Error> = with_ladder_type!(dtype, T => Ok(T::TYPE));
            assert_eq!(ladder.is_ok(), dtype.check_ladder().is_ok(), "{dtype}");
        }
    }
}
