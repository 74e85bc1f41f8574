//! Functions of the bits and bytes of words that PTX has instructions for.

use core::arch::asm;

/// `sum` plus the four bytes of `word`.
#[inline(always)]
pub(crate) fn add_bytes(word: u32, sum: u32) -> u32 {
    let result: u32;
    // SAFETY: arithmetic only.
    unsafe {
        asm!(
            "dp4a.u32.u32 {}, {}, {}, {};",
            out(reg32) result, in(reg32) word, in(reg32) 0x0101_0101_u32, in(reg32) sum,
            options(pure, nomem, nostack, preserves_flags)
        )
    };
    result
}

/// [`add_bytes`] for signed bytes.
#[inline(always)]
pub(crate) fn add_signed_bytes(word: u32, sum: i32) -> i32 {
    let result: i32;
    // SAFETY: arithmetic only.
    unsafe {
        asm!(
            "dp4a.s32.s32 {}, {}, {}, {};",
            out(reg32) result, in(reg32) word, in(reg32) 0x0101_0101_u32, in(reg32) sum,
            options(pure, nomem, nostack, preserves_flags)
        )
    };
    result
}

pub(crate) const HAS_U16X2_MIN_MAX: bool = cfg!(cuda_arch_at_least = "80");

/// The halves are below 0x7C00: no infinity and no NaN, and subnormals are not flushed to zero.
#[inline(always)]
pub(crate) fn min_u16x2(a: u32, b: u32) -> u32 {
    #[cfg(cuda_arch_at_least = "80")]
    {
        let result: u32;
        // SAFETY: arithmetic only.
        unsafe {
            asm!(
                "min.f16x2 {}, {}, {};",
                out(reg32) result, in(reg32) a, in(reg32) b,
                options(pure, nomem, nostack, preserves_flags)
            )
        };
        result
    }
    #[cfg(not(cuda_arch_at_least = "80"))]
    {
        (a & 0xFFFF).min(b & 0xFFFF) | (a >> 16).min(b >> 16) << 16
    }
}

/// As [`min_u16x2`].
#[inline(always)]
pub(crate) fn max_u16x2(a: u32, b: u32) -> u32 {
    #[cfg(cuda_arch_at_least = "80")]
    {
        let result: u32;
        // SAFETY: arithmetic only.
        unsafe {
            asm!(
                "max.f16x2 {}, {}, {};",
                out(reg32) result, in(reg32) a, in(reg32) b,
                options(pure, nomem, nostack, preserves_flags)
            )
        };
        result
    }
    #[cfg(not(cuda_arch_at_least = "80"))]
    {
        (a & 0xFFFF).max(b & 0xFFFF) | (a >> 16).max(b >> 16) << 16
    }
}

/// Each of the selector's digits is less than 8.
#[inline(always)]
pub(crate) fn permute_bytes(low: u32, high: u32, selector: u32) -> u32 {
    let word: u32;
    // SAFETY: arithmetic only.
    unsafe {
        asm!(
            "prmt.b32 {}, {}, {}, {};",
            out(reg32) word, in(reg32) low, in(reg32) high, in(reg32) selector,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    word
}

#[inline(always)]
pub(crate) fn mul_hi(a: u32, b: u32) -> u32 {
    let word: u32;
    // SAFETY: arithmetic only.
    unsafe {
        asm!(
            "mul.hi.u32 {}, {}, {};",
            out(reg32) word, in(reg32) a, in(reg32) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    word
}

/// The 32 bits that begin `bits` bits into two words.
#[inline(always)]
pub(crate) fn funnel(low: u32, high: u32, bits: u32) -> u32 {
    let word: u32;
    // SAFETY: arithmetic only.
    unsafe {
        asm!(
            "shf.r.wrap.b32 {}, {}, {}, {};",
            out(reg32) word, in(reg32) low, in(reg32) high, in(reg32) bits,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    word
}
