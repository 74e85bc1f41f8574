//! Bytes of words, funnel shifts, and packed integer instructions.

use core::mem::size_of;

use crate::backend;
use crate::element::VectorType;

/// The vector that starts `elements` elements into the concatenation of `low` and `high`. `elements` is less than a
/// vector's length.
///
/// A few funnel shifts (`shf`) and selects.
#[inline(always)]
pub fn funnel_shift_vector<P: VectorType>(low: P, high: P, elements: usize) -> P {
    let size = size_of::<P>() / P::LEN;
    backend::funnel_vector(low, high, elements % P::LEN * size, size)
}

/// The 32 bits that start `bits` bits into the concatenation of `low` and `high`. `bits` is less than 32.
///
/// One instruction (`shf`).
#[inline(always)]
pub fn funnel_shift(low: u32, high: u32, bits: u32) -> u32 {
    backend::funnel(low, high, bits % 32)
}

/// Selects four of the eight bytes of `low` and `high`. The bytes are numbered 0 to 7, from the least significant of
/// `low` to the most significant of `high`; hexadecimal digit `i` of `selector`, from the least significant, gives byte
/// `i` of the result.
///
/// One instruction (`prmt`).
#[inline(always)]
pub fn permute_bytes(low: u32, high: u32, selector: u32) -> u32 {
    backend::permute_bytes(low, high, selector & 0x7777)
}

/// The upper 32 bits of the product of two 32-bit words.
///
/// One instruction (`mul.hi`). For the same with 64 bits LLVM makes two instructions, and `ptxas` (13.5, and 13.0 in
/// the driver) miscompiles a loop of them: for `x - (x * y >> 32) * z` with loop-invariant `y` and `z` it multiplied
/// `x` by the upper word of `y * -z`. Smaller loops with the same operations were compiled correctly
/// (`docs/notes/division.md`).
#[inline(always)]
pub fn mul_hi(a: u32, b: u32) -> u32 {
    backend::mul_hi(a, b)
}

/// `sum` plus the four bytes of `word`, wrapping.
///
/// One instruction (`dp4a`).
#[inline(always)]
pub fn add_bytes(word: u32, sum: u32) -> u32 {
    backend::add_bytes(word, sum)
}

/// [`add_bytes`] for signed bytes.
#[inline(always)]
pub fn add_signed_bytes(word: u32, sum: i32) -> i32 {
    backend::add_signed_bytes(word, sum)
}

/// Whether [`min_u16x2`] and [`max_u16x2`] are one instruction. True from compute capability 8.0 on, and in the
/// executor, which so runs the same code as most devices.
pub const HAS_U16X2_MIN_MAX: bool = backend::HAS_U16X2_MIN_MAX;

/// The minimum of `a` and `b` in each 16-bit half of the word, as unsigned numbers below 0x7C00.
///
/// One instruction from compute capability 8.0 on (`min.f16x2`: finite non-negative `f16` compare as their bits do),
/// else a few.
#[inline(always)]
#[track_caller]
pub fn min_u16x2(a: u32, b: u32) -> u32 {
    backend::min_u16x2(a, b)
}

/// The maximum of `a` and `b` in each 16-bit half of the word, as unsigned numbers below 0x7C00.
///
/// One instruction from compute capability 8.0 on (`max.f16x2`), else a few.
#[inline(always)]
#[track_caller]
pub fn max_u16x2(a: u32, b: u32) -> u32 {
    backend::max_u16x2(a, b)
}

#[cfg(test)]
mod tests {
    use super::{add_bytes, add_signed_bytes, funnel_shift, funnel_shift_vector, max_u16x2, min_u16x2, permute_bytes};
    use crate::element::Vector;

    #[test]
    fn vectors_are_cut_out_of_two() {
        let (low, high) = (Vector([0_u16, 1, 2, 3, 4, 5, 6, 7]), Vector([8, 9, 10, 11, 12, 13, 14, 15]));
        assert_eq!(funnel_shift_vector(low, high, 0), low);
        assert_eq!(funnel_shift_vector(low, high, 3), Vector([3, 4, 5, 6, 7, 8, 9, 10]));
        assert_eq!(funnel_shift_vector(Vector([1_u64, 2]), Vector([3, 4]), 1), Vector([2, 3]));
    }

    #[test]
    fn words_are_cut_out_of_two() {
        assert_eq!(funnel_shift(0x7766_5544, 0xBBAA_9988, 8), 0x8877_6655);
        assert_eq!(funnel_shift(0x7766_5544, 0xBBAA_9988, 0), 0x7766_5544);
    }

    #[test]
    fn digits_name_bytes() {
        assert_eq!(permute_bytes(0x3322_1100, 0x7766_5544, 0x3210), 0x3322_1100);
        assert_eq!(permute_bytes(0x3322_1100, 0x7766_5544, 0x7654), 0x7766_5544);
        assert_eq!(permute_bytes(0x3322_1100, 0x7766_5544, 0x0527), 0x0055_2277);
    }

    #[test]
    fn bytes_are_added() {
        assert_eq!(add_bytes(0xFF01_02FE, 1), 0xFF + 1 + 2 + 0xFE + 1);
        assert_eq!(add_bytes(1, u32::MAX), 0);
        assert_eq!(add_signed_bytes(0xFF01_0280, -1), -127);
    }

    #[test]
    fn halves_are_compared_by_themselves() {
        assert_eq!(min_u16x2(0x0001_7BFF, 0x0002_0000), 0x0001_0000);
        assert_eq!(max_u16x2(0x0001_7BFF, 0x0002_0000), 0x0002_7BFF);
        assert_eq!(max_u16x2(0x7BFF_0001, 0x7BFE_0001), 0x7BFF_0001);
    }
}
