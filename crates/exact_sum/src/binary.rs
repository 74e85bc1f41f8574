//! The two formats that sums are computed in.

use core::fmt::Debug;
use core::ops::{Add, BitAnd, BitOr, BitXor, Not, Sub};

/// A binary floating-point format with a word of its size: `f32` or `f64`.
pub trait Binary: Copy + Debug + Default + Add<Output = Self> + Sub<Output = Self> + PartialEq {
    /// Unsigned integers of the same size.
    type Word: Copy
        + Debug
        + PartialEq
        + BitAnd<Output = Self::Word>
        + BitOr<Output = Self::Word>
        + BitXor<Output = Self::Word>
        + Not<Output = Self::Word>;

    /// Bits of a mantissa that are stored.
    const MANTISSA: u32;
    /// The exponent of the least normal number.
    const MIN_EXPONENT: i32;
    /// One more than the exponent of the greatest number.
    const MAX_EXPONENT: i32;
    /// How many integers of up to `2^(MANTISSA - 1)` in magnitude have a sum that a signed word holds, in any order.
    const EXTRACTIONS: u32;
    /// 0.
    const ZERO: Self::Word;
    /// The bit of the sign.
    const SIGN: Self::Word;
    /// The bits of the sign and of the exponent.
    const SIGN_AND_EXPONENT: Self::Word;

    /// The bits.
    fn bits(self) -> Self::Word;
    /// `1.5 * 2^exponent`, a normal number.
    fn one_and_a_half(exponent: i32) -> Self;
    /// `2^-MANTISSA` of a normal number, if that is one, too.
    fn scaled_down(self) -> Self;
    /// The exponent of a normal number.
    fn exponent(self) -> i32;
    /// The sum, modulo the word.
    fn add_words(a: Self::Word, b: Self::Word) -> Self::Word;
    /// The difference, modulo the word.
    fn subtract_words(a: Self::Word, b: Self::Word) -> Self::Word;
    /// `sum - count * each`, modulo the word, as a signed number.
    fn signed_difference(sum: Self::Word, each: Self::Word, count: u32) -> i64;
    /// `exponent` so that the magnitude of the number is below `2^exponent`: one more than its own. At most
    /// [`Binary::MIN_EXPONENT`] of a subnormal number or 0; above [`Binary::MAX_EXPONENT`] of NaN and of infinities.
    fn magnitude(self) -> i32;
    /// The number as an integer and the power of two that it is multiplied by, counted from the least subnormal
    /// number's; none of NaN and the infinities.
    fn decompose(self) -> Option<(i64, u32)>;
    /// Whether it is NaN.
    fn is_nan(self) -> bool;
    /// Whether it is 0 of either sign.
    fn is_zero(self) -> bool;
    /// Whether its sign is minus.
    fn is_negative(self) -> bool;
}

macro_rules! binary {
    ($($float:ident of $word:ident, $signed:ident, mantissa $mantissa:literal, bias $bias:literal;)*) => {$(
        impl Binary for $float {
            type Word = $word;
            const MANTISSA: u32 = $mantissa;
            const MIN_EXPONENT: i32 = 1 - $bias;
            const MAX_EXPONENT: i32 = $bias + 1;
            const EXTRACTIONS: u32 = (1 << ($word::BITS - $mantissa)) - 1;
            const ZERO: $word = 0;
            const SIGN: $word = 1 << ($word::BITS - 1);
            const SIGN_AND_EXPONENT: $word = !((1 << $mantissa) - 1);

            #[inline(always)]
            fn bits(self) -> $word {
                self.to_bits()
            }
            #[inline(always)]
            fn one_and_a_half(exponent: i32) -> Self {
                Self::from_bits((((exponent + $bias) as $word) << $mantissa) | (1 << ($mantissa - 1)))
            }
            #[inline(always)]
            fn scaled_down(self) -> Self {
                Self::from_bits(self.to_bits() - ($mantissa << $mantissa))
            }
            #[inline(always)]
            fn exponent(self) -> i32 {
                ((self.to_bits() & !Self::SIGN) >> $mantissa) as i32 - $bias
            }
            #[inline(always)]
            fn add_words(a: $word, b: $word) -> $word {
                a.wrapping_add(b)
            }
            #[inline(always)]
            fn subtract_words(a: $word, b: $word) -> $word {
                a.wrapping_sub(b)
            }
            #[inline(always)]
            fn signed_difference(sum: $word, each: $word, count: u32) -> i64 {
                sum.wrapping_sub(each.wrapping_mul(count as $word)) as $signed as i64
            }
            #[inline(always)]
            fn magnitude(self) -> i32 {
                ((self.to_bits() & !Self::SIGN) >> $mantissa) as i32 - ($bias - 1)
            }
            #[inline(always)]
            fn decompose(self) -> Option<(i64, u32)> {
                let bits = self.to_bits();
                let (fraction, exponent) = (bits & ((1 << $mantissa) - 1), (bits & !Self::SIGN) >> $mantissa);
                if exponent > 2 * $bias {
                    return None;
                }
                let (mantissa, position) =
                    if exponent == 0 { (fraction, 0) } else { (fraction | 1 << $mantissa, exponent as u32 - 1) };
                let mantissa = mantissa as i64;
                Some((if bits & Self::SIGN == 0 { mantissa } else { -mantissa }, position))
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                self.is_nan()
            }
            #[inline(always)]
            fn is_zero(self) -> bool {
                self.to_bits() & !Self::SIGN == 0
            }
            #[inline(always)]
            fn is_negative(self) -> bool {
                self.to_bits() & Self::SIGN != 0
            }
        }

        const _: () = {
            // The greatest integer of an extraction, that many times, stays below the sign; once more, and it does not.
            let (each, most) = (1_u128 << ($mantissa - 1), 1_u128 << ($word::BITS - 1));
            assert!(each * (<$float as Binary>::EXTRACTIONS as u128) < most);
            assert!(each * (<$float as Binary>::EXTRACTIONS as u128 + 1) == most);
        };
    )*};
}

binary! {
    f32 of u32, i32, mantissa 23, bias 127;
    f64 of u64, i64, mantissa 52, bias 1023;
}
