//! The two formats that sums are computed in.

use core::fmt::Debug;
use core::ops::{Add, BitAnd, BitOr, BitXor, Not, Sub};

/// A binary floating-point format, `f32` or `f64`, with an unsigned integer of its size.
///
/// Sums call [`Binary::extract`] and the functions of words for each element. Without optimization, an operator of a
/// generic type is a function call; in these functions it is an instruction.
pub trait Binary: Copy + Debug + Default + Add<Output = Self> + Sub<Output = Self> + PartialEq {
    /// The unsigned integer of the same size.
    type Word: Copy
        + Debug
        + PartialEq
        + BitAnd<Output = Self::Word>
        + BitOr<Output = Self::Word>
        + BitXor<Output = Self::Word>
        + Not<Output = Self::Word>;

    /// The number of stored mantissa bits.
    const MANTISSA: u32;
    /// The exponent of the smallest normal number.
    const MIN_EXPONENT: i32;
    /// One more than the exponent of the largest number.
    const MAX_EXPONENT: i32;
    /// The maximum number of integers of up to `2^(MANTISSA - 1)` in magnitude whose sum fits in a signed word.
    const EXTRACTIONS: u32;
    /// 0.
    const ZERO: Self::Word;
    /// The sign bit.
    const SIGN: Self::Word;
    /// The sign bit and the exponent bits.
    const SIGN_AND_EXPONENT: Self::Word;

    /// The bits.
    fn bits(self) -> Self::Word;
    /// `constant + element`, and how much of the element the rounded sum lacks.
    fn extract(constant: Self, element: Self) -> (Self, Self);
    /// The sum, rounded.
    fn sum(a: Self, b: Self) -> Self;
    /// `1.5 * 2^exponent`, a normal number.
    fn one_and_a_half(exponent: i32) -> Self;
    /// `2^-MANTISSA` times a normal number, if the result is normal, too.
    fn scaled_down(self) -> Self;
    /// The exponent of a normal number.
    fn exponent(self) -> i32;
    /// The wrapping sum.
    fn add_words(a: Self::Word, b: Self::Word) -> Self::Word;
    /// The bitwise or.
    fn or_words(a: Self::Word, b: Self::Word) -> Self::Word;
    /// The bitwise exclusive or.
    fn xor_words(a: Self::Word, b: Self::Word) -> Self::Word;
    /// The wrapping difference.
    fn subtract_words(a: Self::Word, b: Self::Word) -> Self::Word;
    /// `sum - count * each`, wrapping, as a signed number.
    fn signed_difference(sum: Self::Word, each: Self::Word, count: u32) -> i64;
    /// The larger of the two magnitudes. NaN exceeds infinities, which exceed all other numbers.
    fn larger(self, other: Self) -> Self;
    /// The smallest `e` such that the magnitude is below `2^e`: one more than the number's exponent. At most
    /// [`Binary::MIN_EXPONENT`] for 0 and subnormal numbers; above [`Binary::MAX_EXPONENT`] for NaN and infinities.
    fn exponent_bound(self) -> i32;
    /// The number as `integer * 2^position`, in units of the smallest subnormal number. `None` for NaN and infinities.
    fn decompose(self) -> Option<(i64, u32)>;
    /// [`Binary::decompose`] of a finite number, without branches.
    fn integer_and_position(self) -> (i64, u32);
    /// The number as an `f64`, exactly.
    fn to_f64(self) -> f64;
    /// Whether the number is NaN.
    fn is_nan(self) -> bool;
    /// Whether the number is 0 of either sign.
    fn is_zero(self) -> bool;
    /// Whether the sign is negative.
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
            fn extract(constant: Self, element: Self) -> (Self, Self) {
                let sum = constant + element;
                (sum, element - (sum - constant))
            }
            #[inline(always)]
            fn sum(a: Self, b: Self) -> Self {
                a + b
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
            fn or_words(a: $word, b: $word) -> $word {
                a | b
            }
            #[inline(always)]
            fn xor_words(a: $word, b: $word) -> $word {
                a ^ b
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
            fn larger(self, other: Self) -> Self {
                // As signed integers, because not all processors compare unsigned ones.
                let (a, b) = ((self.to_bits() & !Self::SIGN) as $signed, (other.to_bits() & !Self::SIGN) as $signed);
                Self::from_bits((if a > b { a } else { b }) as $word)
            }
            #[inline(always)]
            fn exponent_bound(self) -> i32 {
                ((self.to_bits() & !Self::SIGN) >> $mantissa) as i32 - ($bias - 1)
            }
            #[inline(always)]
            fn decompose(self) -> Option<(i64, u32)> {
                if self.is_finite() { Some(self.integer_and_position()) } else { None }
            }
            #[inline(always)]
            fn integer_and_position(self) -> (i64, u32) {
                let bits = self.to_bits();
                let (fraction, exponent) = (bits & !Self::SIGN_AND_EXPONENT, (bits & !Self::SIGN) >> $mantissa);
                // The bit that normal numbers do not store.
                let hidden = exponent.min(1);
                let mantissa = (fraction | hidden << $mantissa) as i64;
                // All ones if the number is negative.
                let sign = i64::from(bits as $signed >> ($word::BITS - 1));
                ((mantissa ^ sign) - sign, (exponent - hidden) as u32)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.into()
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
            // `EXTRACTIONS` times the largest integer of an extraction is below the sign bit, and one more is not.
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
