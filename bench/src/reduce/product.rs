//! The product of floats, of which only the result overflows or underflows.

/// A product: a float, and an exponent beside it.
#[derive(Clone, Copy, Debug)]
pub struct ProductOfFloats {
    /// From 1 to below 2 in magnitude; or a zero, an infinity or NaN.
    significand: f64,
    exponent: i64,
}

impl ProductOfFloats {
    pub const ONE: Self = Self { significand: 1.0, exponent: 0 };

    pub fn of(x: f64) -> Self {
        if x == 0.0 || !x.is_finite() {
            return Self { significand: x, exponent: 0 };
        }
        // Of a subnormal number, the bits below the highest are those of a normal one.
        const RAISED: i64 = 64;
        let (normal, raised) = if x.is_normal() { (x, 0) } else { (x * 2.0_f64.powi(RAISED as i32), RAISED) };
        let field = (normal.to_bits() >> 52) as i64 & 0x7FF;
        let significand = f64::from_bits(normal.to_bits() & !(0x7FF << 52) | 1023 << 52);
        Self { significand, exponent: field - 1023 - raised }
    }

    pub fn times(self, other: Self) -> Self {
        let product = Self::of(self.significand * other.significand);
        Self { exponent: self.exponent + other.exponent + product.exponent, ..product }
    }

    /// The product in `f64`.
    pub fn value(self) -> f64 {
        let exponent = self.exponent.clamp(-2040, 2040) as i32;
        // The first multiplication is exact.
        self.significand * 2.0_f64.powi(exponent / 2) * 2.0_f64.powi(exponent - exponent / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_result_leaves_the_range() {
        let product = |factors: &[f64]| {
            factors.iter().fold(ProductOfFloats::ONE, |product, &x| product.times(ProductOfFloats::of(x)))
        };
        assert_eq!(product(&[2.0_f64.powi(1000); 3]).value(), f64::INFINITY);
        assert_eq!(product(&[2.0_f64.powi(1000), -2.0_f64.powi(1000), 2.0_f64.powi(-1990)]).value(), -1024.0);
        let least = f64::from_bits(1);
        assert_eq!(product(&[least, least, 2.0_f64.powi(1023), 2.0_f64.powi(1000)]).value(), 2.0_f64.powi(-125));
        assert_eq!(product(&[-least, 0.5, 2.0]).value(), -least);
        assert_eq!(product(&[least, -least]).value().to_bits(), 1 << 63);
        assert!(product(&[0.0, f64::INFINITY]).value().is_nan());
        assert_eq!(product(&[-0.0, 1e300, 1e300]).value().to_bits(), 1 << 63);
    }
}
