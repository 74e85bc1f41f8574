//! Strips: matrices with so few rows or columns that the side which has few lies in one run in memory with all others, and a
//! tile of it is one run as well.
//!
//! A strip is not turned by squares. On the side where it is one run, a tile begins and ends where sectors do, whatever the
//! number of its rows; on the other side it has a run of a few hundred bytes in each of the few rows. Packs are loaded at
//! multiples of 16 bytes, kept as they are, and the output's words are put together from single elements: so alignment
//! costs nothing, and no element is outside of the matrix. For wide matrices a run of each row would be too short.
//!
//! [`few_columns`](mod@super::few_columns) takes strips apart, [`few_rows`](mod@super::few_rows) puts them together.

use cuda_std::prelude::*;

use super::words::InWords;

/// Threads of a block.
pub const BLOCK: usize = 256;

/// The most rows, or columns, of a strip.
pub const MOST: usize = 128;

/// Packs that each thread loads.
pub const PACKS_EACH: usize = 8;

/// Bytes of memory that are read and written together.
pub const SECTOR: usize = 32;

/// 32-bit words of shared memory of a block: a pack for each that its threads load.
pub const WORDS: usize = BLOCK * PACKS_EACH * 4;

/// Elements of a word.
pub(super) const fn per_word<T: InWords>() -> u32 {
    (size_of::<T::Word>() / size_of::<T>()) as u32
}

/// Words of a pack.
pub(super) const fn words_of_pack<T: InWords>() -> u32 {
    (16 / size_of::<T::Word>()) as u32
}

/// The words of a pack; what is behind them is of no meaning.
#[inline(always)]
pub(super) fn words<T: InWords>(pack: T::Pack) -> [T::Word; 4] {
    let words = pack.to_words();
    let word = |i: usize| match size_of::<T::Word>() {
        4 => T::Word::from_pair([u64::from(words[i]), 0]),
        _ => T::Word::from_pair([u64::from(words[2 * i % 4]) | u64::from(words[(2 * i + 1) % 4]) << 32, 0]),
    };
    [word(0), word(1), word(2), word(3)]
}

/// Element `place` of a word, as a word's first; what is behind it is zeros.
#[inline(always)]
pub(super) fn element<T: InWords>(word: T::Word, place: u32) -> u64 {
    let bits = 8 * size_of::<T>() as u32;
    match per_word::<T>() {
        1 => word.to_pair()[0],
        // In 32 bits, which is what the machine shifts at once.
        _ => u64::from((word.to_pair()[0] as u32 >> (place * bits)) & ((1 << bits) - 1)),
    }
}

/// The word of as many such elements as it has.
#[inline(always)]
pub(super) fn word_of<T: InWords>(element: impl Fn(u32) -> u64) -> T::Word {
    let word = match per_word::<T>() {
        1 => element(0),
        2 => element(0) | element(1) << 16,
        _ => u64::from(
            element(0) as u32 | (element(1) as u32) << 8 | (element(2) as u32) << 16 | (element(3) as u32) << 24,
        ),
    };
    T::Word::from_pair([word, 0])
}

/// `k`, or the next that is at least `begin` and less than `end`.
#[inline(always)]
pub(super) fn within(k: u32, begin: u32, end: u32) -> u32 {
    let k = if k < begin { begin } else { k };
    if k < end { k } else { end - 1 }
}

/// A divisor of at least 2, for numbers below 2^16: a quotient is a multiplication, and one division is done to prepare it.
#[derive(Clone, Copy)]
pub(super) struct Divisor {
    by: u32,
    /// 2^32 divided by it, rounded up.
    reciprocal: u32,
}

impl Divisor {
    #[inline(always)]
    pub fn new(by: u32) -> Self {
        Self { by, reciprocal: u32::MAX / by + 1 }
    }

    /// The quotient and the remainder.
    #[inline(always)]
    pub fn divide(self, number: u32) -> (u32, u32) {
        let quotient = ((u64::from(number) * u64::from(self.reciprocal)) >> 32) as u32;
        (quotient, number - quotient * self.by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_exact() {
        for by in (2..1000).chain([4096, 32767, 65535]) {
            let divisor = Divisor::new(by);
            for number in (0..3000).chain([by - 1, by, 65534, 65535]) {
                assert_eq!(divisor.divide(number), (number / by, number % by), "{number} / {by}");
            }
        }
    }

    #[test]
    fn words_are_elements_in_the_order_of_memory() {
        let pack = <u8 as Element>::Pack::from_words([0x0302_0100, 0x0706_0504, 0x0B0A_0908, 0x0F0E_0D0C]);
        assert_eq!(words::<u8>(pack)[1], 0x0706_0504);
        assert_eq!(element::<u8>(0x0706_0504, 2), 6);
        assert_eq!(word_of::<u8>(|i| u64::from(i) + 4), 0x0706_0504);
        assert_eq!(word_of::<u16>(|i| u64::from(i) + 4), 0x0005_0004);
        let pack = <u64 as Element>::Pack::from_words([1, 2, 3, 4]);
        assert_eq!(words::<u64>(pack)[..2], [0x2_0000_0001, 0x4_0000_0003]);
    }
}
