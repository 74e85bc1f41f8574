//! `f16` and `bf16` as the hardware converts them: one instruction where `half`'s portable code takes about thirty.

use half::{bf16, f16};

use crate::machine;

/// `value` in `f32`. Exact.
#[inline(always)]
pub fn f32_from_f16(value: f16) -> f32 {
    machine::f32_from_f16(value.to_bits())
}

/// The nearest `f16`, ties to even; past its range infinite.
#[inline(always)]
pub fn f16_from_f32(value: f32) -> f16 {
    f16::from_bits(machine::f16_from_f32(value))
}

/// `value` in `f32`. Exact: a `bf16` is the upper half of an `f32`.
#[inline(always)]
pub fn f32_from_bf16(value: bf16) -> f32 {
    f32::from_bits(u32::from(value.to_bits()) << 16)
}

/// The nearest `bf16`, ties to even; past its range infinite.
#[inline(always)]
pub fn bf16_from_f32(value: f32) -> bf16 {
    bf16::from_bits(machine::bf16_from_f32(value))
}
