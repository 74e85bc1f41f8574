//! Functions of floats that PTX has instructions for.

use core::arch::asm;

macro_rules! unary {
    ($($name:ident: $type:ident, $reg:ident, $instruction:literal;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name(x: $type) -> $type {
            let result: $type;
            // SAFETY: arithmetic only.
            unsafe {
                asm!(concat!($instruction, " {}, {};"), out($reg) result, in($reg) x, options(pure, nomem, nostack));
            }
            result
        }
    )*};
}

unary! {
    floor_f32: f32, reg32, "cvt.rmi.f32.f32";
    ceil_f32: f32, reg32, "cvt.rpi.f32.f32";
    trunc_f32: f32, reg32, "cvt.rzi.f32.f32";
    floor_f64: f64, reg64, "cvt.rmi.f64.f64";
    ceil_f64: f64, reg64, "cvt.rpi.f64.f64";
    trunc_f64: f64, reg64, "cvt.rzi.f64.f64";
    sqrt_f32: f32, reg32, "sqrt.rn.f32";
    sqrt_f64: f64, reg64, "sqrt.rn.f64";
    sin_approx: f32, reg32, "sin.approx.f32";
    cos_approx: f32, reg32, "cos.approx.f32";
    exp2_approx: f32, reg32, "ex2.approx.f32";
    log2_approx: f32, reg32, "lg2.approx.f32";
    sqrt_approx: f32, reg32, "sqrt.approx.f32";
    rsqrt_approx: f32, reg32, "rsqrt.approx.f32";
    recip_approx: f32, reg32, "rcp.approx.f32";
}

#[cfg(cuda_arch_at_least = "80")]
unary! {
    tanh_approx: f32, reg32, "tanh.approx.f32";
}

/// The PTX of sm_75 has no instruction for it.
#[cfg(not(cuda_arch_at_least = "80"))]
#[inline(always)]
pub(crate) fn tanh_approx(x: f32) -> f32 {
    const TWO_LOG2_E: f32 = 2.0 * core::f32::consts::LOG2_E;
    1.0 - 2.0 * recip_approx(1.0 + exp2_approx(TWO_LOG2_E * x))
}

macro_rules! multiply_adds {
    ($($name:ident: $type:ident, $reg:ident, $instruction:literal;)*) => {$(
        /// `a * b + c`, rounded once.
        #[inline(always)]
        pub(crate) fn $name(a: $type, b: $type, c: $type) -> $type {
            let sum: $type;
            // SAFETY: arithmetic only.
            unsafe {
                asm!(
                    concat!($instruction, " {}, {}, {}, {};"),
                    out($reg) sum, in($reg) a, in($reg) b, in($reg) c,
                    options(pure, nomem, nostack)
                );
            }
            sum
        }
    )*};
}

multiply_adds! {
    multiply_add_f32: f32, reg32, "fma.rn.f32";
    multiply_add_f64: f64, reg64, "fma.rn.f64";
}

macro_rules! directed_additions {
    ($($name:ident: $instruction:literal, $direction:literal;)*) => {$(
        #[doc = concat!("`a + b`, rounded ", $direction, ".")]
        #[inline(always)]
        pub(crate) fn $name(a: f64, b: f64) -> f64 {
            let sum: f64;
            // SAFETY: arithmetic only.
            unsafe {
                asm!(
                    concat!($instruction, " {}, {}, {};"),
                    out(reg64) sum, in(reg64) a, in(reg64) b,
                    options(pure, nomem, nostack)
                );
            }
            sum
        }
    )*};
}

directed_additions! {
    add_down_f64: "add.rm.f64", "down";
    add_up_f64: "add.rp.f64", "up";
}

/// `a * b - c`, rounded once. The negation is in the assembly, where `ptxas` makes it a part of the `fma`. LLVM negates
/// by integer operations on the bits: three more instructions.
#[inline(always)]
pub(crate) fn multiply_subtract_f64(a: f64, b: f64, c: f64) -> f64 {
    let difference: f64;
    // SAFETY: arithmetic only.
    unsafe {
        asm!(
            "{{ .reg .f64 minus; neg.f64 minus, {}; fma.rn.f64 {}, {}, {}, minus; }}",
            in(reg64) c, out(reg64) difference, in(reg64) a, in(reg64) b,
            options(pure, nomem, nostack)
        );
    }
    difference
}

/// `f16` to `f32`, in one instruction. Exact.
#[inline(always)]
pub(crate) fn f32_from_f16(bits: u16) -> f32 {
    let value: f32;
    // SAFETY: arithmetic only.
    unsafe { asm!("cvt.f32.f16 {}, {};", out(reg32) value, in(reg16) bits, options(pure, nomem, nostack)) };
    value
}

/// `f32` to the nearest `f16`, ties to even.
#[inline(always)]
pub(crate) fn f16_from_f32(value: f32) -> u16 {
    let bits: u16;
    // SAFETY: arithmetic only.
    unsafe { asm!("cvt.rn.f16.f32 {}, {};", out(reg16) bits, in(reg32) value, options(pure, nomem, nostack)) };
    bits
}

/// `f32` to the nearest `bf16`, ties to even. Hardware from sm_80 on.
#[inline(always)]
pub(crate) fn bf16_from_f32(value: f32) -> u16 {
    #[cfg(cuda_arch_at_least = "80")]
    {
        let bits: u16;
        // SAFETY: arithmetic only.
        unsafe { asm!("cvt.rn.bf16.f32 {}, {};", out(reg16) bits, in(reg32) value, options(pure, nomem, nostack)) };
        bits
    }
    #[cfg(not(cuda_arch_at_least = "80"))]
    {
        half::bf16::from_f32(value).to_bits()
    }
}

macro_rules! extremes {
    ($($name:ident: $type:ident, $reg:ident, $format:literal, $high:literal, $sign:literal, $than:literal;)*) => {$(
        /// The minimum or the maximum; NaN if either is NaN; -0.0 is below 0.0. Each comparison continues the
        /// predicate of the previous one, because LLVM would select a value after each.
        #[inline(always)]
        pub(crate) fn $name(a: $type, b: $type) -> $type {
            let extreme: $type;
            // SAFETY: arithmetic only.
            unsafe {
                asm!(
                    "{{ .reg .pred is_a; .reg .b32 low, high;",
                    $high,
                    // Equal numbers differ at most in the sign of zero.
                    concat!("setp.", $sign, ".s32 is_a, high, 0;"),
                    concat!("setp.", $than, "e.and.", $format, " is_a, {a}, {b}, is_a;"),
                    concat!("setp.", $than, "t.or.", $format, " is_a, {a}, {b}, is_a;"),
                    concat!("setp.nan.or.", $format, " is_a, {a}, {a}, is_a;"),
                    concat!("selp.", $format, " {extreme}, {a}, {b}, is_a; }}"),
                    extreme = out($reg) extreme, a = in($reg) a, b = in($reg) b,
                    options(pure, nomem, nostack)
                );
            }
            extreme
        }
    )*};
}

extremes! {
    minimum_f64: f64, reg64, "f64", "mov.b64 {{low, high}}, {a};", "lt", "l";
    maximum_f64: f64, reg64, "f64", "mov.b64 {{low, high}}, {a};", "ge", "g";
}

#[cfg(not(cuda_arch_at_least = "80"))]
extremes! {
    minimum_f32: f32, reg32, "f32", "mov.b32 high, {a};", "lt", "l";
    maximum_f32: f32, reg32, "f32", "mov.b32 high, {a};", "ge", "g";
}

macro_rules! extreme_instructions {
    ($($name:ident = $instruction:literal;)*) => {$(
        /// The minimum or the maximum; NaN if either is NaN; -0.0 is below 0.0.
        #[cfg(cuda_arch_at_least = "80")]
        #[inline(always)]
        pub(crate) fn $name(a: f32, b: f32) -> f32 {
            let extreme: f32;
            // SAFETY: arithmetic only.
            unsafe {
                asm!(
                    concat!($instruction, " {}, {}, {};"),
                    out(reg32) extreme, in(reg32) a, in(reg32) b,
                    options(pure, nomem, nostack, preserves_flags)
                );
            }
            extreme
        }
    )*};
}

extreme_instructions! {
    minimum_f32 = "min.NaN.f32";
    maximum_f32 = "max.NaN.f32";
}

#[inline(always)]
pub(crate) fn negative_f32(a: f32) -> f32 {
    let negative: f32;
    // SAFETY: arithmetic only.
    unsafe {
        asm!("neg.f32 {}, {};", out(reg32) negative, in(reg32) a, options(pure, nomem, nostack, preserves_flags));
    }
    negative
}
