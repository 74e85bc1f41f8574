//! Accesses by words of 4 or 8 bytes: how a micro-tile of words is transposed, and how a word is cut out of two.

use cuda_std::bits::{funnel_shift, permute_bytes};
use cuda_std::global::Word;
use cuda_std::prelude::*;
use num_complex::Complex32;

use crate::transpose::tiled::epilogue::Scale;
use crate::transpose::tiled::micro_tile::transpose_bytes;

/// An unsigned number that is loaded and stored in words of 4 bytes, or of 8 if it has 8.
pub trait WordAccess: Element {
    /// The word.
    type Word: Word + Default;
    /// Transposes a square micro-tile: a word for each row, and a row for each element of a word. Words past these are
    /// unspecified.
    fn transpose(micro_tile: [Self::Word; 4]) -> [Self::Word; 4];
    /// The word that begins `elements` elements into `low`; `elements` is less than a word's.
    fn cut(low: Self::Word, high: Self::Word, elements: u32) -> Self::Word;
}

impl WordAccess for u8 {
    type Word = u32;

    #[inline(always)]
    fn transpose(micro_tile: [u32; 4]) -> [u32; 4] {
        transpose_bytes(micro_tile)
    }

    #[inline(always)]
    fn cut(low: u32, high: u32, elements: u32) -> u32 {
        funnel_shift(low, high, 8 * elements)
    }
}

impl WordAccess for u16 {
    type Word = u32;

    #[inline(always)]
    fn transpose([a, b, c, d]: [u32; 4]) -> [u32; 4] {
        [permute_bytes(a, b, 0x5410), permute_bytes(a, b, 0x7632), c, d]
    }

    #[inline(always)]
    fn cut(low: u32, high: u32, elements: u32) -> u32 {
        funnel_shift(low, high, 16 * elements)
    }
}

macro_rules! whole_words {
    ($($type:ty),*) => {$(
        impl WordAccess for $type {
            type Word = $type;

            #[inline(always)]
            fn transpose(micro_tile: [$type; 4]) -> [$type; 4] {
                micro_tile
            }

            #[inline(always)]
            fn cut(low: $type, _high: $type, _elements: u32) -> $type {
                low
            }
        }
    )*};
}

whole_words!(u32, u64);

/// A number of a word's size that can be scaled.
pub trait ScaledWordAccess: Scale<Bits = Self::Word> {
    /// The unsigned number of its bits.
    type Word: WordAccess<Word = Self::Word>;
}

impl ScaledWordAccess for f32 {
    type Word = u32;
}

impl ScaledWordAccess for f64 {
    type Word = u64;
}

impl ScaledWordAccess for Complex32 {
    type Word = u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn micro_tiles_of_words_are_transposed() {
        let transposed = u8::transpose([0x0302_0100, 0x1312_1110, 0x2322_2120, 0x3332_3130]);
        assert_eq!(transposed, [0x3020_1000, 0x3121_1101, 0x3222_1202, 0x3323_1303]);
        assert_eq!(u16::transpose([0x0001_0000, 0x0101_0100, 0, 0])[..2], [0x0100_0000, 0x0101_0001]);
        assert_eq!(u8::cut(0x0302_0100, 0x0706_0504, 3), 0x0605_0403);
        assert_eq!(u16::cut(0x0302_0100, 0x0706_0504, 1), 0x0504_0302);
    }
}
