//! The elements of test inputs.

use half::{bf16, f16};
use rand::Rng;
use rand::rngs::SmallRng;

/// A kind of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Integers of the whole range, or floats between -1 and 1.
    Any,
    /// A few small values, including zeros of both signs, so that many elements are equal.
    Few,
    /// Mostly ordinary numbers, with the type's extremes, infinities, NaN with several payloads, and subnormals.
    Special,
    /// Floats near 1, so that products neither overflow nor underflow; odd integers.
    NearOne,
    /// Zeros.
    Zero,
}

/// All kinds.
pub const KINDS: [Kind; 5] = [Kind::Any, Kind::Few, Kind::Special, Kind::NearOne, Kind::Zero];

/// An element type with random values.
pub trait Random {
    /// A random value of a kind.
    fn random(kind: Kind, source: &mut SmallRng) -> Self;
}

macro_rules! ints {
    ($($type:ident),*) => {$(
        impl Random for $type {
            fn random(kind: Kind, source: &mut SmallRng) -> Self {
                match kind {
                    Kind::Any => source.random(),
                    Kind::Few => source.random_range(0..4),
                    Kind::Special => match source.random_range(0..8) {
                        0 => Self::MIN,
                        1 => Self::MAX,
                        2 => 0,
                        _ => source.random(),
                    },
                    Kind::NearOne => source.random::<Self>() | 1,
                    Kind::Zero => 0,
                }
            }
        }
    )*};
}

macro_rules! floats {
    ($($type:ident, $nan:literal, $signalling:literal;)*) => {$(
        impl Random for $type {
            fn random(kind: Kind, source: &mut SmallRng) -> Self {
                let of = |x: f64| {
                    #[allow(clippy::cast_possible_truncation, reason = "rounding is meant")]
                    let x = x as f32;
                    Self::from_f32(x)
                };
                match kind {
                    Kind::Any => of(source.random_range(-1.0..1.0)),
                    Kind::Few => [-0.0, 0.0, 1.0, -1.0].map(of)[source.random_range(0..4)],
                    Kind::Special => match source.random_range(0..200) {
                        0 => Self::from_bits($nan),
                        1 => Self::from_bits($signalling),
                        2 => Self::INFINITY,
                        3 => Self::NEG_INFINITY,
                        4 => Self::from_bits(1),
                        5 => -Self::MIN_POSITIVE,
                        6 => of(-0.0),
                        _ => of(source.random_range(-1.0..1.0)),
                    },
                    Kind::NearOne => of(source.random_range(0.99..1.01)),
                    Kind::Zero => of(0.0),
                }
            }
        }
    )*};
}

/// The conversion that the types of `half` have as an inherent function, and `f32` and `f64` do not.
trait FromF32 {
    fn from_f32(x: f32) -> Self;
}

impl FromF32 for f32 {
    fn from_f32(x: f32) -> Self {
        x
    }
}

impl FromF32 for f64 {
    fn from_f32(x: f32) -> Self {
        // Sets bits that an `f32` does not have.
        Self::from(x) * (1.0 + 1.0 / 3.0e9)
    }
}

ints!(i8, i16, i32, i64, u8, u16, u32, u64);
floats! {
    f16, 0xFE01, 0x7C01;
    bf16, 0xFFC1, 0x7F81;
    f32, 0xFFC0_0001, 0x7F80_0001;
    f64, 0xFFF8_0000_0000_0001, 0x7FF0_0000_0000_0001;
}
