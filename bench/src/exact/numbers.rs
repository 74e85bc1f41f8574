//! Pseudorandom numbers, computed with integers: the same on every machine.

use std::fmt;
use std::str::FromStr;

use half::{bf16, f16};
use serde::{Serialize, Serializer};

/// The generator SplitMix64, which takes only a few lines in any language.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Ordinary,
    Wide,
    Subnormal,
    Cancelling,
    /// Numbers with this number of different exponents, around the exponent of 1.
    Exponents(u16),
    Ascending,
    Descending,
    Scales,
    Largest,
    Extremes,
    Nans,
    OneLarge,
    OneInfinity,
    OneNan,
}

impl Kind {
    /// The kinds whose sums have stored hashes.
    pub const HASHED: [Self; 4] = [Self::Ordinary, Self::Wide, Self::Subnormal, Self::Cancelling];

    /// All kinds except [`Kind::Exponents`], with their names.
    pub const NAMED: [(Self, &'static str); 13] = [
        (Self::Ordinary, "ordinary"),
        (Self::Wide, "wide"),
        (Self::Subnormal, "subnormal"),
        (Self::Cancelling, "cancelling"),
        (Self::Ascending, "ascending"),
        (Self::Descending, "descending"),
        (Self::Scales, "scales"),
        (Self::Largest, "largest"),
        (Self::Extremes, "extremes"),
        (Self::Nans, "nans"),
        (Self::OneLarge, "one-large"),
        (Self::OneInfinity, "one-infinity"),
        (Self::OneNan, "one-nan"),
    ];

    /// The number of consecutive elements that have one scale, in [`Kind::Scales`].
    const ELEMENTS_OF_SCALE: usize = 4096;

    /// Whether an element depends on its index, or on the input's length.
    pub fn depends_on_index(self) -> bool {
        !matches!(
            self,
            Self::Ordinary | Self::Wide | Self::Subnormal | Self::Cancelling | Self::Exponents(_) | Self::Nans
        )
    }

    /// The bits of number `index` of `len`.
    fn number(self, random: &mut Random, Format { exponent, mantissa }: Format, index: usize, len: usize) -> u64 {
        let bias = (1 << (exponent - 1)) - 1;
        let (greatest, not_finite) = (2 * bias, 2 * bias + 1);
        let rank = |index: usize| 1 + (index as u128 * greatest as u128 / len as u128) as usize;
        let is_the_one = index == len / 3;
        let field = match self {
            Self::Wide | Self::Cancelling => bias - bias * 3 / 8 + random.below(bias * 3 / 4),
            Self::Subnormal => 0,
            Self::Exponents(count) => {
                let count = usize::from(count).clamp(1, greatest);
                (bias - (count / 2).min(bias - 1)).min(greatest + 1 - count) + random.below(count)
            }
            Self::Ascending => rank(index),
            Self::Descending => rank(len - 1 - index),
            Self::Scales => {
                let first = Random((index / Self::ELEMENTS_OF_SCALE) as u64).below(bias * 3 / 4);
                bias - bias * 3 / 8 + first + random.below(8).min(bias / 8)
            }
            Self::Largest => greatest - random.below(2),
            Self::Extremes => {
                if index.is_multiple_of(2) {
                    greatest
                } else {
                    0
                }
            }
            Self::Nans if random.below(10) == 0 => not_finite,
            Self::OneLarge if is_the_one => bias + bias * 3 / 4,
            Self::OneInfinity | Self::OneNan if is_the_one => not_finite,
            Self::Ordinary | Self::Nans | Self::OneLarge | Self::OneInfinity | Self::OneNan => {
                bias - 4 + random.below(8)
            }
        };
        let bits = random.bits();
        let fraction = match self {
            Self::Extremes => u64::from(field == 0),
            Self::OneInfinity if is_the_one => 0,
            // A quiet NaN.
            Self::Nans | Self::OneNan if field == not_finite => 1 << (mantissa - 1),
            _ => bits & ((1 << mantissa) - 1),
        };
        (bits >> 63) << (exponent + mantissa) | (field as u64) << mantissa | fraction
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, Self::NAMED.iter().find(|(kind, _)| kind == self)) {
            (Self::Exponents(count), _) => write!(f, "{count}-exponents"),
            (_, Some((_, name))) => f.write_str(name),
            (_, None) => write!(f, "{self:?}"),
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let exponents =
            || text.strip_suffix("-exponents")?.parse().ok().filter(|count| *count > 0).map(Self::Exponents);
        let named = Self::NAMED.iter().find(|(_, name)| *name == text).map(|(kind, _)| *kind);
        named.or_else(exponents).ok_or_else(|| {
            let names: Vec<_> = Self::NAMED.iter().map(|(_, name)| *name).collect();
            format!("expected one of {}, or a number of exponents such as `250-exponents`", names.join(", "))
        })
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
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

/// Two vectors of a kind. `Cancelling` vectors cancel in their sums and in their dot product.
pub fn vectors<T: OfBits>(kind: Kind, len: usize, random: &mut Random) -> [Vec<T>; 2] {
    let is_cancelling = kind == Kind::Cancelling;
    let stays = |i: usize| i.min(len - 1 - i).is_multiple_of(8);
    let (mut x, mut y) = (Vec::with_capacity(len), Vec::with_capacity(len));
    for i in 0..len {
        let kind_of_x = if is_cancelling && stays(i) { Kind::Ordinary } else { kind };
        let kind_of_y = if is_cancelling { Kind::Ordinary } else { kind };
        x.push(kind_of_x.number(random, T::FORMAT, i, len));
        y.push(kind_of_y.number(random, T::FORMAT, i, len));
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
    fn numbers_are_of_their_kind() {
        let numbers = |kind| vectors::<f32>(kind, 1000, &mut Random(1));
        for [x, y] in Kind::HASHED.map(numbers) {
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
    #[test]

    fn numbers_that_depend_on_their_index_are_of_their_kind() {
        fn numbers<T: OfBits>(kind: Kind) -> Vec<T> {
            let [numbers, _] = vectors::<T>(kind, 30_000, &mut Random(2));
            numbers
        }
        let exponents = |kind| -> Vec<i32> {
            numbers::<f64>(kind).iter().map(|x| (x.to_bits() >> 52 & 0x7ff) as i32 - 1023).collect()
        };
        let is_sorted = |exponents: &[i32]| exponents.is_sorted() && exponents[0] == -1022 && exponents[29_999] == 1023;
        assert!(is_sorted(&exponents(Kind::Ascending)));
        assert!(is_sorted(&exponents(Kind::Descending).into_iter().rev().collect::<Vec<_>>()));
        for count in [1, 20, 250, 2000, 2046, 5000] {
            let mut found = exponents(Kind::Exponents(count));
            found.sort_unstable();
            found.dedup();
            assert_eq!((found.len(), found.contains(&0)), (usize::from(count).min(2046), true), "{count}");
        }
        let scales = exponents(Kind::Scales);
        let spread = |part: &[i32]| part.iter().max().unwrap() - part.iter().min().unwrap();
        assert!(scales.chunks(4096).all(|part| spread(part) == 7) && spread(&scales) > 50);
        assert!(numbers::<f32>(Kind::Largest).iter().all(|x| x.is_finite() && x.abs() >= 2.0_f32.powi(126)));
        let extremes = numbers::<f32>(Kind::Extremes);
        assert!(extremes.chunks(2).all(|two| two[0].abs() == 2.0_f32.powi(127) && two[1].abs() == f32::from_bits(1)));
        let nans = numbers::<bf16>(Kind::Nans).iter().filter(|x| x.is_nan()).count();
        assert!((2500..3500).contains(&nans), "{nans}");
        let count = |kind, is: fn(&f32) -> bool| numbers::<f32>(kind).iter().filter(|x| is(x)).count();
        assert_eq!(count(Kind::OneLarge, |x| x.abs() > 2.0_f32.powi(90)), 1);
        assert_eq!((count(Kind::OneInfinity, |x| x.is_infinite()), count(Kind::OneInfinity, |x| x.is_nan())), (1, 0));
        assert_eq!((count(Kind::OneNan, |x| x.is_nan()), count(Kind::OneNan, |x| x.is_infinite())), (1, 0));
    }

    #[test]
    fn names_of_kinds_round_trip() {
        for kind in Kind::NAMED.map(|(kind, _)| kind).into_iter().chain([Kind::Exponents(20)]) {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        for wrong in ["", "narrow", "exponents", "0-exponents", "x-exponents", "70000-exponents"] {
            assert!(wrong.parse::<Kind>().unwrap_err().contains("250-exponents"), "{wrong}");
        }
    }
}
