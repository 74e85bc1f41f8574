//! The approximations that GPUs have instructions for.

use super::private::Sealed;
use crate::backend;

/// Functions of `f32` by one or a few instructions of a GPU, less precise than [`GpuFloat`](super::GpuFloat)'s.
///
/// The results differ between GPUs. The executor computes the precise functions. The PTX manual bounds the errors.
pub trait FloatApprox: Copy + Sealed {
    /// The sine of an angle in radians; an absolute error of about 2^-21 from -pi to pi (`sin.approx`).
    fn sin_approx(self) -> Self;
    /// The cosine of an angle in radians; an absolute error of about 2^-21 from -pi to pi (`cos.approx`).
    fn cos_approx(self) -> Self;
    /// 2 to the power of the number (`ex2.approx`).
    fn exp2_approx(self) -> Self;
    /// The logarithm to base 2 (`lg2.approx`).
    fn log2_approx(self) -> Self;
    /// The square root (`sqrt.approx`).
    fn sqrt_approx(self) -> Self;
    /// The reciprocal of the square root (`rsqrt.approx`).
    fn rsqrt_approx(self) -> Self;
    /// The reciprocal (`rcp.approx`).
    fn recip_approx(self) -> Self;
    /// The hyperbolic tangent; a relative error of about 2^-11 (`tanh.approx`, from sm_80 on).
    fn tanh_approx(self) -> Self;
    /// The tangent: a quotient of sine and cosine.
    fn tan_approx(self) -> Self;
    /// e to the power of the number, by a power of 2.
    fn exp_approx(self) -> Self;
    /// The natural logarithm, by one to base 2.
    fn ln_approx(self) -> Self;
    /// The number to the power of `exponent`, by a logarithm and a power of 2.
    fn powf_approx(self, exponent: Self) -> Self;
}

impl FloatApprox for f32 {
    #[inline(always)]
    fn sin_approx(self) -> Self {
        backend::sin_approx(self)
    }
    #[inline(always)]
    fn cos_approx(self) -> Self {
        backend::cos_approx(self)
    }
    #[inline(always)]
    fn exp2_approx(self) -> Self {
        backend::exp2_approx(self)
    }
    #[inline(always)]
    fn log2_approx(self) -> Self {
        backend::log2_approx(self)
    }
    #[inline(always)]
    fn sqrt_approx(self) -> Self {
        backend::sqrt_approx(self)
    }
    #[inline(always)]
    fn rsqrt_approx(self) -> Self {
        backend::rsqrt_approx(self)
    }
    #[inline(always)]
    fn recip_approx(self) -> Self {
        backend::recip_approx(self)
    }
    #[inline(always)]
    fn tanh_approx(self) -> Self {
        backend::tanh_approx(self)
    }
    #[inline(always)]
    fn tan_approx(self) -> Self {
        self.sin_approx() * self.cos_approx().recip_approx()
    }
    #[inline(always)]
    fn exp_approx(self) -> Self {
        (self * core::f32::consts::LOG2_E).exp2_approx()
    }
    #[inline(always)]
    fn ln_approx(self) -> Self {
        self.log2_approx() * core::f32::consts::LN_2
    }
    #[inline(always)]
    fn powf_approx(self, exponent: Self) -> Self {
        (self.log2_approx() * exponent).exp2_approx()
    }
}
