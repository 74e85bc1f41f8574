//! Rounds an exact sum, mean or root to the nearest float, ties to even.

use crate::element::Format;

/// An exact sum: a sign, and the integer part and a fractional part of a magnitude.
#[derive(Clone, Copy, Debug)]
pub struct Exact {
    is_negative: bool,
    magnitude: Magnitude,
    /// The number of terms.
    count: u64,
    /// 0, or an infinity or NaN that is the sum.
    special: f64,
}

/// A number of at least `integer` and, if `has_rest`, more than that, but less than `integer + 1`, in units of
/// 2^`exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Magnitude {
    integer: u128,
    exponent: i32,
    has_rest: bool,
}

impl Exact {
    /// A sum of `count` terms of which the finite ones add up to `integer`, and a fraction if `has_rest`, in units of
    /// 2^`exponent`. If there is a fraction, the integer is at least 2^127.
    pub fn new(is_negative: bool, integer: u128, exponent: i32, has_rest: bool, count: u64, special: f64) -> Self {
        assert!(!has_rest || integer.leading_zeros() == 0, "the highest bits must suffice to round");
        Self { is_negative, magnitude: Magnitude { integer, exponent, has_rest }, count, special }
    }

    /// The sum.
    pub fn sum(&self, format: Format) -> f64 {
        self.signed(self.magnitude.rounded(format))
    }

    /// The sum divided by the number of terms; NaN for none.
    pub fn mean(&self, format: Format) -> f64 {
        if self.count == 0 { f64::NAN } else { self.signed(self.magnitude.over(self.count).rounded(format)) }
    }

    /// The square root of the sum; NaN for a negative one.
    pub fn root(&self, format: Format) -> f64 {
        if self.is_negative { f64::NAN } else { self.signed(self.magnitude.root().rounded(format)) }
    }

    fn signed(&self, magnitude: f64) -> f64 {
        match self {
            _ if self.special != 0.0 => self.special,
            // The sum 0 has no sign, and a negative sum that underflows to 0 has one.
            _ if self.is_negative => -magnitude,
            _ => magnitude,
        }
    }
}

impl Magnitude {
    /// The same number with the highest bit of the integer set, and an even exponent, or with the second highest one
    /// set. 0 stays as it is.
    fn normalized(self) -> Self {
        let zeros = self.integer.leading_zeros();
        if self.integer == 0 || zeros == 0 && self.exponent % 2 == 0 {
            return self;
        }
        if zeros == 0 {
            // The lowest bit becomes a part of the fraction.
            let has_rest = self.has_rest || self.integer % 2 == 1;
            return Self { integer: self.integer >> 1, exponent: self.exponent + 1, has_rest };
        }
        assert!(!self.has_rest, "a number with a fraction has its highest bit set");
        let shift = if (self.exponent - zeros as i32) % 2 == 0 { zeros } else { zeros - 1 };
        Self { integer: self.integer << shift, exponent: self.exponent - shift as i32, has_rest: false }
    }

    /// The quotient. Its integer has at least 63 bits: a fraction of the dividend is less than 1, so it changes only
    /// the fraction of the quotient.
    fn over(self, divisor: u64) -> Self {
        let Self { integer, exponent, has_rest } = self.normalized();
        let divisor = u128::from(divisor);
        Self { integer: integer / divisor, exponent, has_rest: has_rest || integer % divisor != 0 }
    }

    /// The square root. Its integer has 64 bits: the next larger square is an integer, so a fraction of the square
    /// changes only the fraction of the root.
    fn root(self) -> Self {
        let Self { integer, exponent, has_rest } = self.normalized();
        let root = integer.isqrt();
        Self { integer: root, exponent: exponent / 2, has_rest: has_rest || root * root != integer }
    }

    /// The nearest number of the format, of two that are equally near the even one.
    fn rounded(self, format: Format) -> f64 {
        let Self { integer, exponent, has_rest } = self;
        let (digits, least) = match format {
            Format::Single => (24, -149),
            Format::Double => (53, -1074),
        };
        let bits = (u128::BITS - integer.leading_zeros()) as i32;
        // The distance of the neighbouring numbers is 2^unit.
        let unit = (exponent + bits - digits).max(least);
        let significand = if unit <= exponent {
            assert!(!has_rest, "the integer has more bits than the format");
            integer << (exponent - unit)
        } else {
            let dropped = (unit - exponent) as u32;
            let kept = integer.checked_shr(dropped).unwrap_or(0);
            // With more than 128 dropped bits, the number is less than half of a unit.
            let is_up = dropped <= u128::BITS && {
                let half = 1_u128 << (dropped - 1);
                let rest = integer & (half - 1 + half);
                rest > half || rest == half && (has_rest || kept % 2 == 1)
            };
            kept + u128::from(is_up)
        };
        // Everything from 2^1024 on is infinite in both formats.
        if significand != 0 && unit > f64::MAX_EXP {
            return f64::INFINITY;
        }
        let rounded = significand as f64 * power_of_two(unit);
        if rounded > format.largest() { f64::INFINITY } else { rounded }
    }
}

/// 2^`exponent`, if that is an `f64`; infinite above.
fn power_of_two(exponent: i32) -> f64 {
    match exponent {
        ..-1022 => f64::from_bits(1 << (exponent + 1074)),
        -1022..1024 => f64::from_bits(((exponent + 1023) as u64) << 52),
        1024.. => f64::INFINITY,
    }
}
