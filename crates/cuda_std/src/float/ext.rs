//! Special functions of floats.

use super::private::Sealed;
use super::special;

/// Special functions, with the same bits on a GPU and on the CPU. The crate `libm` computes those of the C library,
/// this crate the others, to within a few units in the last place. Those of `f32` that `libm` lacks are computed in
/// `f64`.
pub trait FloatExt: Copy + Sealed {
    /// The cosine of pi times the number.
    fn cospi(self) -> Self;
    /// The sine of pi times the number.
    fn sinpi(self) -> Self;
    /// [`FloatExt::sinpi`] and [`FloatExt::cospi`].
    fn sincospi(self) -> (Self, Self);
    /// The error function.
    fn error_function(self) -> Self;
    /// 1 minus the error function, precise for large numbers.
    fn complementary_error_function(self) -> Self;
    /// The number whose complementary error function is `self`; NaN outside 0 to 2.
    fn inv_complementary_error_function(self) -> Self;
    /// The complementary error function times e to the power of the number's square.
    fn scaled_complementary_error_function(self) -> Self;
    /// A fraction from 0.5 to 1 and an exponent: the number is `fraction * 2^exponent`. Zeros, infinities and NaN are
    /// their own fractions.
    fn frexp(self) -> (Self, i32);
    /// The exponent of the number's leading bit.
    fn unbiased_exp(self) -> i32;
    /// `self * 2^exponent`.
    fn ldexp(self, exponent: i32) -> Self;
    /// `self * 2^exponent`.
    fn scale_by_n(self, exponent: i32) -> Self;
    /// The Bessel function of the first kind, of order 0.
    fn j0(self) -> Self;
    /// The Bessel function of the first kind, of order 1.
    fn j1(self) -> Self;
    /// The Bessel function of the first kind, of any order.
    fn jn(self, order: i32) -> Self;
    /// The Bessel function of the second kind, of order 0.
    fn y0(self) -> Self;
    /// The Bessel function of the second kind, of order 1.
    fn y1(self) -> Self;
    /// The Bessel function of the second kind, of any order.
    fn yn(self, order: i32) -> Self;
    /// The gamma function.
    fn gamma(self) -> Self;
    /// The natural logarithm of the gamma function's absolute value.
    fn log_gamma(self) -> Self;
    /// The natural logarithm of the number plus 1, precise near 0.
    fn log1p(self) -> Self;
    /// The cumulative distribution function of the standard normal distribution.
    fn norm_cdf(self) -> Self;
    /// The inverse of [`FloatExt::norm_cdf`]; NaN outside 0 to 1.
    fn inv_norm_cdf(self) -> Self;
    /// The reciprocal of the cube root.
    fn rcbrt(self) -> Self;
    /// The nearest number from 0 to 1; 0 for NaN.
    fn saturate(self) -> Self;
}

macro_rules! float_ext {
    (
        $type:ident: $($by_libm:ident = $libm:ident),*; $($of_order:ident = $libm_of_order:ident),*;
        $ilogb:ident, $scalbn:ident, $cbrt:ident
    ) => {
        impl FloatExt for $type {
            $(
                #[inline]
                fn $by_libm(self) -> Self {
                    libm::$libm(self)
                }
            )*
            $(
                #[inline]
                fn $of_order(self, order: i32) -> Self {
                    libm::$libm_of_order(order, self)
                }
            )*
            #[inline]
            fn cospi(self) -> Self {
                special::sincospi(self.into()).1 as Self
            }
            #[inline]
            fn sinpi(self) -> Self {
                special::sincospi(self.into()).0 as Self
            }
            #[inline]
            fn sincospi(self) -> (Self, Self) {
                let (sine, cosine) = special::sincospi(self.into());
                (sine as Self, cosine as Self)
            }
            #[inline]
            fn inv_complementary_error_function(self) -> Self {
                special::erfc_inv(self.into()) as Self
            }
            #[inline]
            fn scaled_complementary_error_function(self) -> Self {
                special::erfc_scaled(self.into()) as Self
            }
            #[inline]
            fn frexp(self) -> (Self, i32) {
                // `libm`'s is recursive, and the driver cannot size a stack for that. This is as exact.
                if self == 0.0 || !self.is_finite() {
                    return (self, 0);
                }
                let exponent = libm::$ilogb(self) + 1;
                (libm::$scalbn(self, -exponent), exponent)
            }
            #[inline]
            fn unbiased_exp(self) -> i32 {
                libm::$ilogb(self)
            }
            #[inline]
            fn ldexp(self, exponent: i32) -> Self {
                libm::$scalbn(self, exponent)
            }
            #[inline]
            fn scale_by_n(self, exponent: i32) -> Self {
                libm::$scalbn(self, exponent)
            }
            #[inline]
            fn norm_cdf(self) -> Self {
                special::normal(self.into()) as Self
            }
            #[inline]
            fn inv_norm_cdf(self) -> Self {
                special::normal_inv(self.into()) as Self
            }
            #[inline]
            fn rcbrt(self) -> Self {
                1.0 / libm::$cbrt(self)
            }
            #[inline]
            fn saturate(self) -> Self {
                // Written so that NaN is 0.
                if self > 0.0 {
                    if self < 1.0 { self } else { 1.0 }
                } else {
                    0.0
                }
            }
        }
    };
}

float_ext! {
    f32: error_function = erff, complementary_error_function = erfcf, j0 = j0f, j1 = j1f, y0 = y0f, y1 = y1f,
    gamma = tgammaf, log_gamma = lgammaf, log1p = log1pf; jn = jnf, yn = ynf; ilogbf, scalbnf, cbrtf
}

float_ext! {
    f64: error_function = erf, complementary_error_function = erfc, j0 = j0, j1 = j1, y0 = y0, y1 = y1,
    gamma = tgamma, log_gamma = lgamma, log1p = log1p; jn = jn, yn = yn; ilogb, scalbn, cbrt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_its_fraction_times_a_power_of_two() {
        for x in [1.0, -0.75, 1e300, -3e-320, f64::MIN_POSITIVE, f64::MAX, 5e-324] {
            let (fraction, exponent) = FloatExt::frexp(x);
            assert_eq!((fraction, exponent), libm::frexp(x));
            assert!((0.5..1.0).contains(&fraction.abs()) && FloatExt::ldexp(fraction, exponent) == x);
        }
        for x in [0.5_f32, f32::MAX, 1e-45, -7.0] {
            assert_eq!(FloatExt::frexp(x), libm::frexpf(x));
        }
        assert_eq!(FloatExt::frexp(-0.0_f64).0.to_bits(), (-0.0_f64).to_bits());
        assert_eq!(FloatExt::frexp(f32::NEG_INFINITY), (f32::NEG_INFINITY, 0));
        assert!(FloatExt::frexp(f64::NAN).0.is_nan());
    }

    #[test]
    fn saturated_numbers_are_from_0_to_1() {
        let saturated = [-1.0_f32, -0.0, 0.25, 1.0, 7.0, f32::INFINITY, f32::NAN].map(FloatExt::saturate);
        assert_eq!(saturated, [0.0, 0.0, 0.25, 1.0, 1.0, 1.0, 0.0]);
    }
}
