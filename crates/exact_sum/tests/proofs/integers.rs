//! The reference: results as big integers (num-bigint), rounded to nearest, ties to even, by definition.

use half::{bf16, f16};
use num_bigint::{BigInt, BigUint, Sign};

/// A format of results.
pub trait Format: exact_sum::Rounded {
    /// The name in Rust.
    const NAME: &str;
    /// The stored bits of a mantissa.
    const MANTISSA: u32;
    /// The bias of an exponent.
    const BIAS: i32;
    /// The bits.
    fn bits(self) -> u64;
}

macro_rules! formats {
    ($($type:ident $mantissa:literal $bias:literal;)*) => {$(
        impl Format for $type {
            const NAME: &str = stringify!($type);
            const MANTISSA: u32 = $mantissa;
            const BIAS: i32 = $bias;
            fn bits(self) -> u64 {
                self.to_bits().into()
            }
        }
    )*};
}

formats! {
    f16 10 15;
    bf16 7 127;
    f32 23 127;
    f64 52 1023;
}

/// A result before rounding: `integer * 2^unit`, or a non-finite value.
#[derive(Clone, Debug)]
pub struct Exact {
    special: Option<f64>,
    integer: BigInt,
    unit: i32,
    /// Whether the exact magnitude exceeds that of the integer, by less than 1.
    is_inexact: bool,
}

/// A float as an integer times a power of two, in units of `2^-1074`.
fn decompose(x: f64) -> (i64, usize) {
    let (fraction, field) = ((x.to_bits() << 12 >> 12) as i64, (x.to_bits() >> 52) as usize % 2048);
    let (magnitude, position) = if field == 0 { (fraction, 0) } else { (fraction + (1 << 52), field - 1) };
    (if x.is_sign_negative() { -magnitude } else { magnitude }, position)
}

impl Exact {
    /// The sum of the products of up to 2^20 pairs.
    pub fn dot(pairs: impl Iterator<Item = (f64, f64)>) -> Self {
        let mut by_position = vec![0_i128; 2 * 2046];
        let mut special: Option<f64> = None;
        for (x, y) in pairs {
            if x.is_finite() && y.is_finite() {
                let ((x, above), (y, further)) = (decompose(x), decompose(y));
                by_position[above + further] += i128::from(x) * i128::from(y);
            } else {
                special = Some(special.unwrap_or(0.0) + x * y);
            }
        }
        let (mut integer, mut last) = (BigInt::ZERO, by_position.len());
        for (position, amount) in by_position.into_iter().enumerate().rev().filter(|(_, amount)| *amount != 0) {
            integer = (integer << (last - position)) + amount;
            last = position;
        }
        Self { special, integer: integer << last, unit: -2 * 1074, is_inexact: false }
    }

    /// The sum.
    pub fn sum(elements: impl Iterator<Item = f64>) -> Self {
        Self::dot(elements.map(|x| (x, 1.0)))
    }

    /// The same sum `count` times.
    pub fn repeated(self, count: u32) -> Self {
        Self { integer: self.integer * count, ..self }
    }

    /// The quotient, with more bits than any format keeps.
    pub fn over(&self, count: u64) -> Self {
        const EXTRA_BITS: i32 = 200;
        if count == 0 {
            return Self { special: Some(f64::NAN), ..self.clone() };
        }
        let scaled = &self.integer << EXTRA_BITS;
        // Integers are divided towards 0.
        let (quotient, is_inexact) = (&scaled / count, &scaled % count != BigInt::ZERO);
        Self { special: self.special, integer: quotient, unit: self.unit - EXTRA_BITS, is_inexact }
    }

    /// The root, with more bits than any format keeps.
    pub fn sqrt(&self) -> Self {
        const EXTRA_BITS: i32 = 200;
        if self.special.is_some() {
            return Self { special: self.special.map(f64::sqrt), ..self.clone() };
        }
        if self.integer.sign() == Sign::Minus {
            return Self { special: Some(f64::NAN), ..self.clone() };
        }
        let scaled = self.integer.magnitude() << (2 * EXTRA_BITS);
        let root = scaled.sqrt();
        let is_inexact = &root * &root != scaled;
        Self { special: None, integer: root.into(), unit: self.unit / 2 - EXTRA_BITS, is_inexact }
    }

    /// The bits of the nearest number of a format, ties to even.
    pub fn nearest<R: Format>(&self) -> u64 {
        let infinity = (2 * R::BIAS as u64 + 1) << R::MANTISSA;
        let sign = |is_negative: bool| u64::from(is_negative) << (infinity.ilog2() + 1);
        if let Some(special) = self.special {
            return if special.is_nan() { infinity | 1 << (R::MANTISSA - 1) } else { infinity | sign(special < 0.0) };
        }
        let magnitude = self.integer.magnitude();
        // A result has at most `MANTISSA + 1` bits, and is a multiple of the smallest number.
        let least = 1 - R::BIAS - R::MANTISSA as i32;
        let dropped = (magnitude.bits() as i32 - R::MANTISSA as i32 - 1).max(least - self.unit);
        assert!(dropped > 0 || !self.is_inexact, "the integer has too few bits");
        let mut kept = if dropped > 0 { magnitude >> dropped } else { magnitude << -dropped };
        if dropped > 0 {
            let (rest, half) = (magnitude - (&kept << dropped), BigUint::from(1_u32) << (dropped - 1));
            let is_above = rest > half || rest == half && (self.is_inexact || kept.bit(0));
            kept += u32::from(is_above);
        }
        let kept = u64::try_from(kept).expect("at most 54 bits");
        // The hidden bit of the mantissa, and a carry, add 1 to the exponent field.
        let field = (self.unit + dropped - least) as u64;
        let bits = if kept == 0 { 0 } else { (field << R::MANTISSA) + kept };
        bits.min(infinity) | sign(self.integer.sign() == Sign::Minus)
    }
}

/// Compares with the rounding of the standard library's decimal parser.
#[test]
fn the_reference_rounds_as_decimal_digits_are_parsed() {
    let integers = [1_i128, 3, 5, (1 << 24) + 1, (1 << 25) - 1, (1 << 54) + 2, (1 << 55) - 1, (1 << 100) + (1 << 47)];
    for unit in (-1200..900).step_by(3) {
        for integer in integers.into_iter().flat_map(|x| [x, x + 1, -x]) {
            let exact = Exact { special: None, integer: integer.into(), unit, is_inexact: false };
            let digits = if unit < 0 {
                format!("{}e{unit}", exact.integer.clone() * BigInt::from(5).pow(-unit as u32))
            } else {
                (exact.integer.clone() << unit).to_string()
            };
            assert_eq!(exact.nearest::<f32>(), digits.parse::<f32>().unwrap().bits(), "{integer} * 2^{unit}");
            assert_eq!(exact.nearest::<f64>(), digits.parse::<f64>().unwrap().bits(), "{integer} * 2^{unit}");
        }
    }
}

/// Each 16-bit float is the nearest to itself, and the even neighbour is the nearest to a midpoint.
#[test]
fn the_reference_rounds_to_all_numbers_of_16_bits() {
    fn check<R: Format>(value: impl Fn(u16) -> f64) {
        let infinity = ((2 * R::BIAS + 1) << R::MANTISSA) as u16;
        let nearest = |x: [f64; 2]| Exact::sum(x.into_iter()).nearest::<R>();
        for bits in 0..infinity {
            let next = if bits + 1 < infinity { value(bits + 1) } else { 2_f64.powi(R::BIAS + 1) };
            let (x, half) = (value(bits), (next - value(bits)) / 2.0);
            let (even, below, above) = (bits + bits % 2, bits, bits + 1);
            assert_eq!(nearest([x, 0.0]), bits.into(), "{}", R::NAME);
            assert_eq!(nearest([x, half]), even.into(), "{}", R::NAME);
            assert_eq!(nearest([-x, -half]), u64::from(even) | 0x8000, "{}", R::NAME);
            assert_eq!(nearest([x, half * 0.999]), below.into(), "{}", R::NAME);
            assert_eq!(nearest([x, half * 1.001]), above.into(), "{}", R::NAME);
        }
    }
    check::<f16>(|bits| f16::from_bits(bits).into());
    check::<bf16>(|bits| bf16::from_bits(bits).into());
}
