//! Bytes of words.

use core::mem::size_of;

use crate::backend;
use crate::element::VectorType;

/// The vector that begins `elements` elements, less than a vector's length, into `low` and, behind it, `high`.
///
/// A few shifts (`shf`) and selections.
#[inline(always)]
pub fn cut_vector<P: VectorType>(low: P, high: P, elements: usize) -> P {
    let size = size_of::<P>() / P::LEN;
    backend::cut(low, high, elements % P::LEN * size, size)
}

/// The 32 bits that begin `bits` bits, less than 32, into `low` and, behind it, `high`.
///
/// One instruction (`shf`).
#[inline(always)]
pub fn funnel_shift(low: u32, high: u32, bits: u32) -> u32 {
    backend::funnel(low, high, bits % 32)
}

/// Four of the eight bytes of `low` and `high`, which are numbered from `low`'s least to `high`'s most significant: the
/// result's byte `i` is the one that the `i`-th hexadecimal digit of `selector` names, from the least on, each 0 to 7.
///
/// One instruction (`prmt`).
#[inline(always)]
pub fn permute_bytes(low: u32, high: u32, selector: u32) -> u32 {
    backend::permute_bytes(low, high, selector & 0x7777)
}

/// The upper word of the product of two words.
///
/// One instruction (`mul.hi`). Of the same with 64 bits LLVM makes two, and `ptxas` (13.5, and 13.0 in the driver) has
/// been seen to lose the division in them: in a loop that works out `x - (x * y >> 32) * z`, where `y` and `z` do not
/// change, it multiplied `x` by the upper word of `y * -z`. Smaller loops of the same lines were right.
/// (`docs/notes/division.md`)
#[inline(always)]
pub fn high_product(a: u32, b: u32) -> u32 {
    backend::high_product(a, b)
}

/// The sum of a word's four bytes and `sum`, wrapping.
///
/// One instruction (`dp4a`).
#[inline(always)]
pub fn add_bytes(word: u32, sum: u32) -> u32 {
    backend::add_bytes(word, sum)
}

/// [`add_bytes`] of bytes that are signed.
#[inline(always)]
pub fn add_signed_bytes(word: u32, sum: i32) -> i32 {
    backend::add_signed_bytes(word, sum)
}

/// Whether [`min_of_halves`] and [`max_of_halves`] are one instruction: from compute capability 8.0 on. (The executor
/// says so too, so that it runs what most devices do.)
pub const COMPARES_HALVES: bool = backend::COMPARES_HALVES;

/// The lesser of `a` and `b` in each half of the word, as unsigned numbers below 0x7C00.
///
/// One instruction from compute capability 8.0 on (`min.f16x2`: such numbers are in the order of the finite `f16` of
/// the same bits), else a few.
#[inline(always)]
#[track_caller]
pub fn min_of_halves(a: u32, b: u32) -> u32 {
    backend::min_of_halves(a, b)
}

/// The greater of `a` and `b` in each half of the word, as unsigned numbers below 0x7C00.
///
/// One instruction from compute capability 8.0 on (`max.f16x2`), else a few.
#[inline(always)]
#[track_caller]
pub fn max_of_halves(a: u32, b: u32) -> u32 {
    backend::max_of_halves(a, b)
}

#[cfg(test)]
mod tests {
    use super::{add_bytes, add_signed_bytes, cut_vector, funnel_shift, max_of_halves, min_of_halves, permute_bytes};
    use crate::element::Vector;

    #[test]
    fn vectors_are_cut_out_of_two() {
        let (low, high) = (Vector([0_u16, 1, 2, 3, 4, 5, 6, 7]), Vector([8, 9, 10, 11, 12, 13, 14, 15]));
        assert_eq!(cut_vector(low, high, 0), low);
        assert_eq!(cut_vector(low, high, 3), Vector([3, 4, 5, 6, 7, 8, 9, 10]));
        assert_eq!(cut_vector(Vector([1_u64, 2]), Vector([3, 4]), 1), Vector([2, 3]));
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
        assert_eq!(min_of_halves(0x0001_7BFF, 0x0002_0000), 0x0001_0000);
        assert_eq!(max_of_halves(0x0001_7BFF, 0x0002_0000), 0x0002_7BFF);
        assert_eq!(max_of_halves(0x7BFF_0001, 0x7BFE_0001), 0x7BFF_0001);
    }
}
