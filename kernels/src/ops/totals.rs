//! Integers for exact sums of integers and of their squares.

use cuda_std::float::Float;
use cuda_std::prelude::*;
use exact_sum::integers;

/// An integer in which the sum of an input that fits in memory does not overflow.
pub trait Total: Plain {
    /// The neutral element of addition.
    const ZERO: Self;
    /// The sum.
    fn plus(self, other: Self) -> Self;
}

/// A sum of squares.
pub trait Squares: Total {
    /// Converts a sum of up to 64 bits.
    fn from_u64(number: u64) -> Self;
    /// The square of an element of this magnitude.
    fn square(magnitude: u64) -> Self;
    /// The square root, rounded to nearest even.
    fn sqrt(self) -> f64;
}

macro_rules! totals {
    ($($type:ident)*) => {$(
        impl Total for $type {
            const ZERO: Self = 0;
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
        }
    )*};
}

totals!(i64 i128 u64 u128);

/// Not inlined: it is long, and a kernel for columns calls it four times.
#[inline(never)]
fn root_of_long(square: u128) -> f64 {
    integers::norm(square, Float::sqrt)
}

/// Not inlined, as [`root_of_long`].
#[inline(never)]
fn root_of_words(square: [u64; 4]) -> f64 {
    integers::norm_of_words(square)
}

impl Squares for u64 {
    #[inline(always)]
    fn from_u64(number: u64) -> Self {
        number
    }
    #[inline(always)]
    fn square(magnitude: u64) -> Self {
        magnitude.wrapping_mul(magnitude)
    }
    #[inline(always)]
    fn sqrt(self) -> f64 {
        root_of_long(self.into())
    }
}

impl Squares for u128 {
    #[inline(always)]
    fn from_u64(number: u64) -> Self {
        number.into()
    }
    /// For magnitudes of up to 32 bits.
    #[inline(always)]
    fn square(magnitude: u64) -> Self {
        magnitude.wrapping_mul(magnitude).into()
    }
    #[inline(always)]
    fn sqrt(self) -> f64 {
        root_of_long(self)
    }
}

impl Total for [u64; 4] {
    const ZERO: Self = [0; 4];
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        let ([a, b, c, d], [e, f, g, h]) = (self, other);
        let (low, high) = (pair(a, b), pair(c, d));
        let (sum, carry) = low.overflowing_add(pair(e, f));
        let further = high.wrapping_add(pair(g, h)).wrapping_add(carry.into());
        [sum as u64, (sum >> 64) as u64, further as u64, (further >> 64) as u64]
    }
}

impl Squares for [u64; 4] {
    #[inline(always)]
    fn from_u64(number: u64) -> Self {
        [number, 0, 0, 0]
    }
    #[inline(always)]
    fn square(magnitude: u64) -> Self {
        let square = u128::from(magnitude) * u128::from(magnitude);
        [square as u64, (square >> 64) as u64, 0, 0]
    }
    #[inline(always)]
    fn sqrt(self) -> f64 {
        match self {
            [low, high, 0, 0] => root_of_long(pair(low, high)),
            _ => root_of_words(self),
        }
    }
}

/// An integer's low and high word, joined.
#[inline(always)]
fn pair(low: u64, high: u64) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}
