//! Float operations that `core` lacks.
//!
//! - Hardware conversions of `f16` and `bf16`: one instruction, where `half`'s portable code takes about thirty.
//! - [`Float`]: square roots, and minimum and maximum that propagate NaN.
//! - [`GpuFloat`], [`FloatExt`]: the functions of `std`'s floats, and special functions, as Rust-CUDA has them. Each
//!   has the same bits on a GPU and on the CPU: rounding and roots are exact, and the rest is computed by the crate
//!   `libm`, the same code on both.
//! - [`FloatApprox`]: the approximations that GPUs have instructions for.
//!
//! # A method of `f32` may be `std`'s
//!
//! On the CPU `x.sin()` of an `x: f32` calls `std`'s method of that name even in a crate with `#![no_std]`, since an
//! inherent method comes before a trait's, and `std` is among the crate's dependencies there. On a GPU it is
//! [`GpuFloat::sin`]. The two differ in their last bits. Write `GpuFloat::sin(x)` for the same bits, or be generic over
//! `T: GpuFloat`, where the trait's method is the only one. The methods that have an exact result (`floor`, `ceil`,
//! `round`, `trunc`, `fract`, `abs`, `signum`, `copysign`, `mul_add`, `sqrt`) have the same bits either way.
//! clippy finds the others if a kernel crate's `clippy.toml` lists them as `disallowed-methods`.

use half::{bf16, f16};

use crate::backend;

mod approx;
mod ext;
mod gpu_float;
mod special;

pub use approx::FloatApprox;
pub use ext::FloatExt;
pub use gpu_float::GpuFloat;

/// Converts to `f32`. Exact.
#[inline(always)]
pub fn f32_from_f16(value: f16) -> f32 {
    backend::f32_from_f16(value.to_bits())
}

/// Rounds to the nearest `f16`, ties to even; infinite beyond its range.
#[inline(always)]
pub fn f16_from_f32(value: f32) -> f16 {
    f16::from_bits(backend::f16_from_f32(value))
}

/// Converts to `f32`. Exact: a `bf16` is the upper half of an `f32`.
#[inline(always)]
pub fn f32_from_bf16(value: bf16) -> f32 {
    f32::from_bits(u32::from(value.to_bits()) << 16)
}

/// Rounds to the nearest `bf16`, ties to even; infinite beyond its range.
#[inline(always)]
pub fn bf16_from_f32(value: f32) -> bf16 {
    bf16::from_bits(backend::bf16_from_f32(value))
}

/// `a * b + c`, rounded once.
#[inline(always)]
pub fn multiply_add(a: f64, b: f64, c: f64) -> f64 {
    backend::multiply_add_f64(a, b, c)
}

/// `a * b - c`, rounded once.
#[inline(always)]
pub fn multiply_subtract(a: f64, b: f64, c: f64) -> f64 {
    backend::multiply_subtract_f64(a, b, c)
}

/// `a + b`, rounded down, towards negative infinity: if also [`add_up`] gives it, it is exact. A 0 has either sign.
#[inline(always)]
pub fn add_down(a: f64, b: f64) -> f64 {
    backend::add_down_f64(a, b)
}

/// `a + b`, rounded up, towards infinity. A 0 is positive, unless both numbers are -0.0.
#[inline(always)]
pub fn add_up(a: f64, b: f64) -> f64 {
    backend::add_up_f64(a, b)
}

/// A float with the operations that `core` lacks.
pub trait Float: Copy + PartialOrd {
    /// The square root, rounded to nearest; NaN for a negative number.
    fn sqrt(self) -> Self;
    /// The minimum (IEEE 754-2019 `minimum`): NaN if either is NaN, and -0.0 is less than 0.0. A NaN's sign and payload
    /// are unspecified.
    fn minimum(self, other: Self) -> Self;
    /// The maximum (IEEE 754-2019 `maximum`): NaN if either is NaN, and 0.0 is more than -0.0. A NaN's sign and payload
    /// are unspecified.
    fn maximum(self, other: Self) -> Self;
    /// The number with the other sign. A NaN's sign and payload are unspecified, so that on a GPU this is a part of the
    /// minimum, maximum or comparison of `f32` that uses it. `-self`, which keeps the payload, is an instruction.
    fn negative(self) -> Self;
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
    #[inline(always)]
    fn negative(self) -> Self {
        backend::negative_f32(self)
    }
}

impl Float for f64 {
    #[inline(always)]
    fn sqrt(self) -> Self {
        backend::sqrt_f64(self)
    }
    #[inline(always)]
    fn minimum(self, other: Self) -> Self {
        backend::minimum_f64(self, other)
    }
    #[inline(always)]
    fn maximum(self, other: Self) -> Self {
        backend::maximum_f64(self, other)
    }
    #[inline(always)]
    fn negative(self) -> Self {
        -self
    }
}

mod private {
    /// For traits of `f32` and `f64` only.
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}
