//! The functions of `std`'s floats.

use super::private::Sealed;
use crate::backend;

/// The functions of `std`'s floats that `core` lacks, with the same bits on a GPU and on the CPU.
///
/// Beware of `std`'s methods of the same names: see [the module](super#a-method-of-f32-may-be-stds).
pub trait GpuFloat: Copy + PartialOrd + Sealed {
    /// The largest integer that is at most the number.
    fn floor(self) -> Self;
    /// The smallest integer that is at least the number.
    fn ceil(self) -> Self;
    /// The nearest integer; halves away from zero.
    fn round(self) -> Self;
    /// The integer part.
    fn trunc(self) -> Self;
    /// The fractional part, with the number's sign.
    fn fract(self) -> Self;
    /// The absolute value.
    fn abs(self) -> Self;
    /// 1 with the number's sign; NaN for NaN.
    fn signum(self) -> Self;
    /// The number with the sign of `sign`.
    fn copysign(self, sign: Self) -> Self;
    /// `self * a + b`, rounded once.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// The integer `n` for which `self - n * divisor` is [`GpuFloat::rem_euclid`].
    fn div_euclid(self, divisor: Self) -> Self;
    /// The remainder of the division, from 0 to the absolute value of `divisor`. The operator `%` on a GPU is less
    /// precise for large quotients.
    fn rem_euclid(self, divisor: Self) -> Self;
    /// The number to the power of `exponent`, by squaring.
    fn powi(self, exponent: i32) -> Self;
    /// The square root, rounded to nearest.
    fn sqrt(self) -> Self;
    /// The logarithm to base `base`: a quotient of two logarithms.
    fn log(self, base: Self) -> Self;
    /// The sine and the cosine.
    fn sin_cos(self) -> (Self, Self);
    /// The number to the power of `exponent`.
    fn powf(self, exponent: Self) -> Self;
    /// The root of the sum of both squares.
    fn hypot(self, other: Self) -> Self;
    /// The angle of the point (`x`, `self`), from -pi to pi.
    fn atan2(self, x: Self) -> Self;
    /// e to the power of the number.
    fn exp(self) -> Self;
    /// 2 to the power of the number.
    fn exp2(self) -> Self;
    /// The natural logarithm.
    fn ln(self) -> Self;
    /// The logarithm to base 2.
    fn log2(self) -> Self;
    /// The logarithm to base 10.
    fn log10(self) -> Self;
    /// The cube root.
    fn cbrt(self) -> Self;
    /// The sine of an angle in radians.
    fn sin(self) -> Self;
    /// The cosine of an angle in radians.
    fn cos(self) -> Self;
    /// The tangent of an angle in radians.
    fn tan(self) -> Self;
    /// The arcsine, from -pi/2 to pi/2.
    fn asin(self) -> Self;
    /// The arccosine, from 0 to pi.
    fn acos(self) -> Self;
    /// The arctangent, from -pi/2 to pi/2.
    fn atan(self) -> Self;
    /// e to the power of the number, minus 1, precise near 0.
    fn exp_m1(self) -> Self;
    /// The natural logarithm of the number plus 1, precise near 0.
    fn ln_1p(self) -> Self;
    /// The hyperbolic sine.
    fn sinh(self) -> Self;
    /// The hyperbolic cosine.
    fn cosh(self) -> Self;
    /// The hyperbolic tangent.
    fn tanh(self) -> Self;
    /// The inverse of the hyperbolic sine.
    fn asinh(self) -> Self;
    /// The inverse of the hyperbolic cosine.
    fn acosh(self) -> Self;
    /// The inverse of the hyperbolic tangent.
    fn atanh(self) -> Self;
}

macro_rules! gpu_float {
    (
        $type:ident: $floor:ident, $ceil:ident, $trunc:ident, $multiply_add:ident, $sqrt:ident, $fmod:ident,
        $sincos:ident;
        $($unary:ident = $of_one:ident),*;
        $($binary:ident($other:ident) = $of_two:ident),*;
    ) => {
        impl GpuFloat for $type {
            #[inline(always)]
            fn floor(self) -> Self {
                backend::$floor(self)
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                backend::$ceil(self)
            }
            #[inline(always)]
            fn round(self) -> Self {
                let whole = backend::$trunc(self);
                // The difference is exact. Infinities have no difference, and NaN is not less than anything.
                if GpuFloat::abs(self - whole) >= 0.5 { whole + GpuFloat::copysign(1.0, self) } else { whole }
            }
            #[inline(always)]
            fn trunc(self) -> Self {
                backend::$trunc(self)
            }
            #[inline(always)]
            fn fract(self) -> Self {
                self - backend::$trunc(self)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                GpuFloat::copysign(self, 0.0)
            }
            #[inline(always)]
            fn signum(self) -> Self {
                if self.is_nan() { Self::NAN } else { GpuFloat::copysign(1.0, self) }
            }
            #[inline(always)]
            fn copysign(self, sign: Self) -> Self {
                let of_sign = (-0.0 as $type).to_bits();
                Self::from_bits(self.to_bits() & !of_sign | sign.to_bits() & of_sign)
            }
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                backend::$multiply_add(self, a, b)
            }
            #[inline]
            fn div_euclid(self, divisor: Self) -> Self {
                let quotient = backend::$trunc(self / divisor);
                match libm::$fmod(self, divisor) < 0.0 {
                    true if divisor > 0.0 => quotient - 1.0,
                    true => quotient + 1.0,
                    false => quotient,
                }
            }
            #[inline]
            fn rem_euclid(self, divisor: Self) -> Self {
                let remainder = libm::$fmod(self, divisor);
                if remainder < 0.0 { remainder + GpuFloat::abs(divisor) } else { remainder }
            }
            #[inline]
            fn powi(self, exponent: i32) -> Self {
                let (mut square, mut power, mut remaining) = (self, 1.0, exponent.unsigned_abs());
                while remaining != 0 {
                    if remaining & 1 == 1 {
                        power *= square;
                    }
                    square *= square;
                    remaining >>= 1;
                }
                if exponent < 0 { 1.0 / power } else { power }
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                backend::$sqrt(self)
            }
            #[inline]
            fn log(self, base: Self) -> Self {
                GpuFloat::ln(self) / GpuFloat::ln(base)
            }
            #[inline]
            fn sin_cos(self) -> (Self, Self) {
                libm::$sincos(self)
            }
            $(
                #[inline]
                fn $binary(self, $other: Self) -> Self {
                    libm::$of_two(self, $other)
                }
            )*
            $(
                #[inline]
                fn $unary(self) -> Self {
                    libm::$of_one(self)
                }
            )*
        }
    };
}

gpu_float! {
    f32: floor_f32, ceil_f32, trunc_f32, multiply_add_f32, sqrt_f32, fmodf, sincosf;
    exp = expf, exp2 = exp2f, ln = logf, log2 = log2f, log10 = log10f, cbrt = cbrtf, sin = sinf, cos = cosf, tan =
    tanf, asin = asinf, acos = acosf, atan = atanf, exp_m1 = expm1f, ln_1p = log1pf, sinh = sinhf, cosh = coshf,
    tanh = tanhf, asinh = asinhf, acosh = acoshf, atanh = atanhf;
    powf(exponent) = powf, hypot(other) = hypotf, atan2(x) = atan2f;
}

gpu_float! {
    f64: floor_f64, ceil_f64, trunc_f64, multiply_add_f64, sqrt_f64, fmod, sincos;
    exp = exp, exp2 = exp2, ln = log, log2 = log2, log10 = log10, cbrt = cbrt, sin = sin, cos = cos, tan = tan, asin
    = asin, acos = acos, atan = atan, exp_m1 = expm1, ln_1p = log1p, sinh = sinh, cosh = cosh, tanh = tanh, asinh =
    asinh, acosh = acosh, atanh = atanh;
    powf(exponent) = pow, hypot(other) = hypot, atan2(x) = atan2;
}
