//! What `core` has not for floats: `f16` and `bf16` as the hardware converts them (one instruction where `half`'s
//! portable code takes about thirty), square roots, and the extremes that let NaN through.

use core::hint::select_unpredictable;

use half::{bf16, f16};

use crate::backend;

/// `value` in `f32`. Exact.
#[inline(always)]
pub fn f32_from_f16(value: f16) -> f32 {
    backend::f32_from_f16(value.to_bits())
}

/// The nearest `f16`, ties to even; past its range infinite.
#[inline(always)]
pub fn f16_from_f32(value: f32) -> f16 {
    f16::from_bits(backend::f16_from_f32(value))
}

/// `value` in `f32`. Exact: a `bf16` is the upper half of an `f32`.
#[inline(always)]
pub fn f32_from_bf16(value: bf16) -> f32 {
    f32::from_bits(u32::from(value.to_bits()) << 16)
}

/// The nearest `bf16`, ties to even; past its range infinite.
#[inline(always)]
pub fn bf16_from_f32(value: f32) -> bf16 {
    bf16::from_bits(backend::bf16_from_f32(value))
}

/// `a * b + c`, rounded once.
#[inline(always)]
pub fn multiply_add(a: f64, b: f64, c: f64) -> f64 {
    backend::multiply_add_f64(a, b, c)
}

/// A float with the operations that `core` lacks.
pub trait Float: Copy + PartialOrd {
    /// The square root, rounded to nearest; NaN of a negative number.
    fn sqrt(self) -> Self;
    /// The smaller: NaN if one is NaN, and -0.0 is less than 0.0. NaN has no particular sign and payload.
    fn minimum(self, other: Self) -> Self;
    /// The larger: NaN if one is NaN, and 0.0 is more than -0.0. NaN has no particular sign and payload.
    fn maximum(self, other: Self) -> Self;
}

impl Float for f32 {
    #[inline(always)]
    fn sqrt(self) -> Self {
        backend::sqrt_f32(self)
    }
    #[inline(always)]
    fn minimum(self, other: Self) -> Self {
        backend::minimum_f32(self, other)
    }
    #[inline(always)]
    fn maximum(self, other: Self) -> Self {
        backend::maximum_f32(self, other)
    }
}

impl Float for f64 {
    #[inline(always)]
    fn sqrt(self) -> Self {
        backend::sqrt_f64(self)
    }
    #[inline(always)]
    fn minimum(self, other: Self) -> Self {
        minimum_by_comparing(self, other)
    }
    #[inline(always)]
    fn maximum(self, other: Self) -> Self {
        maximum_by_comparing(self, other)
    }
}

/// What tells floats apart that compare as equal, and is NaN.
#[doc(hidden)]
pub trait Zeros: Copy + PartialOrd {
    const NAN: Self;
    fn either_sign(self, other: Self) -> Self;
    fn both_signs(self, other: Self) -> Self;
}

macro_rules! zeros {
    ($($type:ident),*) => {$(
        impl Zeros for $type {
            const NAN: Self = $type::NAN;
            #[inline(always)]
            fn either_sign(self, other: Self) -> Self {
                Self::from_bits(self.to_bits() | other.to_bits())
            }
            #[inline(always)]
            fn both_signs(self, other: Self) -> Self {
                Self::from_bits(self.to_bits() & other.to_bits())
            }
        }
    )*};
}

zeros!(f32, f64);

/// [`Float::minimum`] where there is no instruction for it. Equal numbers differ by the sign of zero at most, and a
/// NaN's bits with more bits set are a NaN's. In no branch: lanes would go different ways.
#[inline(always)]
#[allow(dead_code, reason = "sm_80 and later have an instruction for f32")]
pub(crate) fn minimum_by_comparing<T: Zeros>(a: T, b: T) -> T {
    let if_not_less = select_unpredictable(b < a, b, a.either_sign(b));
    select_unpredictable(a < b, a, if_not_less)
}

/// [`Float::maximum`] where there is no instruction for it.
#[inline(always)]
#[allow(dead_code, reason = "sm_80 and later have an instruction for f32")]
pub(crate) fn maximum_by_comparing<T: Zeros>(a: T, b: T) -> T {
    let if_equal = select_unpredictable(a == b, a.both_signs(b), T::NAN);
    let if_not_more = select_unpredictable(b > a, b, if_equal);
    select_unpredictable(a > b, a, if_not_more)
}
