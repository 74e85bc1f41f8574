//! Elements as the words that lanes move: how a square of them is turned, and how one is cut out of two.

use cuda_std::bits::{funnel_shift, permute_bytes};
use cuda_std::global::Word;
use cuda_std::prelude::*;
use num_complex::Complex32;

use super::change::Scale;
use super::turn::turn_bytes;

/// An unsigned number that is moved by words.
pub trait InWords: Element {
    /// The word.
    type Word: Word + Default;
    /// A square of as many words as a word has elements, turned; what is behind them is of no meaning.
    fn turn(square: [Self::Word; 4]) -> [Self::Word; 4];
    /// The word that begins `elements` elements, less than a word's, into two.
    fn cut(low: Self::Word, high: Self::Word, elements: u32) -> Self::Word;
}

impl InWords for u8 {
    type Word = u32;

    #[inline(always)]
    fn turn(square: [u32; 4]) -> [u32; 4] {
        turn_bytes(square)
    }

    #[inline(always)]
    fn cut(low: u32, high: u32, elements: u32) -> u32 {
        funnel_shift(low, high, 8 * elements)
    }
}

impl InWords for u16 {
    type Word = u32;

    #[inline(always)]
    fn turn([a, b, c, d]: [u32; 4]) -> [u32; 4] {
        [permute_bytes(a, b, 0x5410), permute_bytes(a, b, 0x7632), c, d]
    }

    #[inline(always)]
    fn cut(low: u32, high: u32, elements: u32) -> u32 {
        funnel_shift(low, high, 16 * elements)
    }
}

macro_rules! words_themselves {
    ($($type:ty),*) => {$(
        impl InWords for $type {
            type Word = $type;

            #[inline(always)]
            fn turn(square: [$type; 4]) -> [$type; 4] {
                square
            }

            #[inline(always)]
            fn cut(low: $type, _high: $type, _elements: u32) -> $type {
                low
            }
        }
    )*};
}

words_themselves!(u32, u64);

/// A number that is a word, and can be scaled.
pub trait ScaledInWords: Scale<Bits = Self::Word> {
    /// The unsigned number of its bits.
    type Word: InWords<Word = Self::Word>;
}

impl ScaledInWords for f32 {
    type Word = u32;
}

impl ScaledInWords for f64 {
    type Word = u64;
}

impl ScaledInWords for Complex32 {
    type Word = u64;
}
