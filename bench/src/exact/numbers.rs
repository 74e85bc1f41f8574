//! Fixed pseudorandom numbers by integer arithmetic: the same on every machine.

use std::fmt;

use clap::ValueEnum;
use half::{bf16, f16};
use serde::Serialize;

/// The generator SplitMix64, a few lines in any language.
///
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A number from 0 to `bound - 1`.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// Shuffles a list (Fisher and Yates).
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for i in (1..list.len()).rev() {
            list.swap(i, self.below(i + 1));
        }
    }
}

/// A kind of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Magnitudes from 1/16 to 16
    Ordinary,
    /// Three eighths of all exponents, the middle ones: the sum of squares is finite
    Wide,
    /// Subnormal magnitudes
    Subnormal,
    /// Wide numbers followed by their negations in reverse, and one ordinary number in eight that remains
    Cancelling,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Ordinary, Self::Wide, Self::Subnormal, Self::Cancelling];

    /// The bits of one number of a format.
    fn number(self, random: &mut Random, Format { exponent, mantissa }: Format) -> u64 {
        let bias = (1 << (exponent - 1)) - 1;
        let field = match self {
            Self::Ordinary => bias - 4 + random.below(8),
            Self::Wide | Self::Cancelling => bias - bias * 3 / 8 + random.below(bias * 3 / 4),
            Self::Subnormal => 0,
        };
        let bits = random.bits();
        (bits >> 63) << (exponent + mantissa) | (field as u64) << mantissa | bits & ((1 << mantissa) - 1)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ordinary => "ordinary",
            Self::Wide => "wide",
            Self::Subnormal => "subnormal",
            Self::Cancelling => "cancelling",
        })
    }
}

/// The widths of a format's fields in bits.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    pub exponent: u32,
    pub mantissa: u32,
}

/// A float made from its bits.
pub trait OfBits: Copy {
    const FORMAT: Format;
    /// Makes the number from the lowest bits.
    fn of_bits(bits: u64) -> Self;
}

macro_rules! of_bits {
    ($($type:ident of $word:ident, exponent $exponent:literal, mantissa $mantissa:literal;)*) => {$(
        impl OfBits for $type {
            const FORMAT: Format = Format { exponent: $exponent, mantissa: $mantissa };

            fn of_bits(bits: u64) -> Self {
                Self::from_bits(bits as $word)
            }
        }
    )*};
}

of_bits! {
    f32 of u32, exponent 8, mantissa 23;
    f64 of u64, exponent 11, mantissa 52;
    f16 of u16, exponent 5, mantissa 10;
    bf16 of u16, exponent 8, mantissa 7;
}

/// Two vectors of a kind. `Cancelling` ones cancel in their sum and in their dot product.
pub fn vectors<T: OfBits>(kind: Kind, len: usize, random: &mut Random) -> [Vec<T>; 2] {
    let is_cancelling = kind == Kind::Cancelling;
    let stays = |i: usize| i.min(len - 1 - i).is_multiple_of(8);
    let (mut x, mut y) = (Vec::with_capacity(len), Vec::with_capacity(len));
    for i in 0..len {
        let kind_of_x = if is_cancelling && stays(i) { Kind::Ordinary } else { kind };
        let kind_of_y = if is_cancelling { Kind::Ordinary } else { kind };
        x.push(kind_of_x.number(random, T::FORMAT));
        y.push(kind_of_y.number(random, T::FORMAT));
        let mirror = len - 1 - i;
        if is_cancelling && mirror < i && !stays(i) {
            x[i] = x[mirror] ^ 1 << (T::FORMAT.exponent + T::FORMAT.mantissa);
            y[i] = y[mirror];
        }
    }
    [x, y].map(|bits| bits.into_iter().map(T::of_bits).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        // The first outputs for seed 1234567 by the reference in C (https://prng.di.unimi.it/splitmix64.c).
        let mut random = Random(1_234_567);
        let found = [random.bits(), random.bits(), random.bits()];
        assert_eq!(found, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn each_kind_is_what_it_says() {
        let numbers = |kind| vectors::<f32>(kind, 1000, &mut Random(1));
        for [x, y] in Kind::ALL.map(numbers) {
            assert!(x.iter().chain(&y).all(|x| x.is_finite()));
            assert!(x.iter().any(|x| *x < 0.0) && x.iter().any(|x| *x > 0.0));
        }
        assert!(numbers(Kind::Ordinary).concat().iter().all(|x| (0.0625..16.0).contains(&x.abs())));
        assert!(numbers(Kind::Subnormal).concat().iter().all(|x| x.abs() < f32::MIN_POSITIVE));
        let magnitude = |x: &f32| x.abs();
        let wide = numbers(Kind::Wide).concat();
        assert!(wide.iter().map(magnitude).fold(0.0, f32::max) > 1e12);
        assert!(wide.iter().map(magnitude).fold(1.0, f32::min) < 1e-12);
        let [x, y] = numbers(Kind::Cancelling);
        let cancels = (0..500).filter(|&i| x[i] == -x[999 - i] && y[i] == y[999 - i]).count();
        assert_eq!(cancels, 500 - 63);
        assert!(x.iter().step_by(8).take(63).all(|x| x.abs() < 16.0));
    }
}
