//! Strips: matrices with so few rows or columns that the side which has few lies in one run in memory with all others,
//! and a tile of it is one run as well.
//!
//! A strip is not turned by squares. On the side where it is one run, a tile begins and ends where sectors do, whatever
//! the number of its rows; on the other side it has a run of a few hundred bytes in each of the few rows. Vectors are
//! loaded at multiples of 16 bytes, kept as they are, and what is written is put together from single elements: so
//! alignment costs nothing, and no element is outside of the matrix. For wide matrices a run of each row would be too
//! short.
//!
//! [`tall_skinny`](mod@super::tall_skinny) takes strips apart, [`short_wide`](mod@super::short_wide) puts them together.

mod aligned_rows;
pub mod segment_tiling;
pub mod segments;
pub mod segments_short_wide;
pub mod short_wide;
mod staged;
pub mod tall_skinny;

use cuda_std::prelude::*;

use crate::transpose::tiled::access::word::WordAccess;
use crate::transpose::tuning::{PACKED_BLOCK, PACKED_VECTORS, elements_per_store};

/// Bytes of memory that are read and written together.
pub const SECTOR: usize = 32;

/// Elements that a block has room for, of `size` bytes: a vector for each that its threads load.
pub const fn capacity(size: usize) -> usize {
    PACKED_BLOCK * PACKED_VECTORS * (16 / size)
}

/// Elements of `size` bytes that lie in as many banks of shared memory as there are: 32 of 4 bytes.
pub const fn elements_per_bank_row(size: usize) -> usize {
    128 / size
}

/// Elements of a word.
pub(in crate::transpose) const fn elements_per_word<T: WordAccess>() -> u32 {
    (size_of::<T::Word>() / size_of::<T>()) as u32
}

/// Words of a vector.
pub(in crate::transpose) const fn words_of_vector<T: WordAccess>() -> u32 {
    (size_of::<T::Vector>() / size_of::<T::Word>()) as u32
}

/// The words of a vector; what is behind them is of no meaning.
#[inline(always)]
pub(in crate::transpose) fn words<T: WordAccess>(vector: T::Vector) -> [T::Word; 4] {
    let [a, b, c, d] = vector.to_words();
    let one = |word: u32| T::Word::from_word(u64::from(word));
    let two = |low: u32, high: u32| T::Word::from_word(u64::from(low) | u64::from(high) << 32);
    match size_of::<T::Word>() {
        4 => [one(a), one(b), one(c), one(d)],
        _ => [two(a, b), two(c, d), T::Word::default(), T::Word::default()],
    }
}

/// Writes elements `begin..end` of those that a thread writes at once, the first of which would be at `i`.
///
/// # Safety
/// These are inside of the view, and the address of the first is a multiple of the size of all.
#[inline(always)]
#[track_caller]
pub(in crate::transpose) unsafe fn store<T: WordAccess>(
    output: &GlobalMut<T>,
    i: usize,
    begin: u32,
    end: u32,
    element: impl Fn(u32) -> T,
) {
    let all = elements_per_store(size_of::<T>());
    if all == 1 || (begin == 0 && end == all) {
        // SAFETY: as promised by the caller.
        return unsafe { store_any(output, i, 0, all, element) };
    }
    let within = |k: u32| {
        let k = if k < begin { begin } else { k };
        element(if k < end { k } else { end - 1 })
    };
    // SAFETY: as promised by the caller.
    unsafe { store_any(output, i, begin, end, within) };
}

/// [`store`] where `element` gives something for those, too, that are not written.
///
/// # Safety
/// As there.
#[inline(always)]
#[track_caller]
pub(in crate::transpose) unsafe fn store_any<T: WordAccess>(
    output: &GlobalMut<T>,
    i: usize,
    begin: u32,
    end: u32,
    element: impl Fn(u32) -> T,
) {
    let (from, to, bits) = (begin as usize, end as usize, bits_of(&element));
    // SAFETY: as promised by the caller.
    unsafe {
        match size_of::<T>() {
            4 => output.store_word_unchecked(i, bits as u32, from, to),
            _ => output.store_word_unchecked(i, bits, from, to),
        }
    }
}

/// As many elements as are written at once, in the order of memory.
#[inline(always)]
fn bits_of<T: WordAccess>(element: &impl Fn(u32) -> T) -> u64 {
    let bits = |i: u32| element(i).to_pair()[0];
    let four = |i: u32| u32::from_le_bytes([bits(i) as u8, bits(i + 1) as u8, bits(i + 2) as u8, bits(i + 3) as u8]);
    let two = |i: u32| bits(i) as u32 | (bits(i + 1) as u32) << 16;
    match size_of::<T>() {
        1 => u64::from(four(0)) | u64::from(four(4)) << 32,
        2 => u64::from(two(0)) | u64::from(two(2)) << 32,
        _ => bits(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_elements_in_the_order_of_memory() {
        let vector = <u8 as Element>::Vector::from_words([0x0302_0100, 0x0706_0504, 0x0B0A_0908, 0x0F0E_0D0C]);
        assert_eq!(words::<u8>(vector)[1], 0x0706_0504);
        assert_eq!(bits_of::<u8>(&|i| i as u8 + 4), 0x0B0A_0908_0706_0504);
        assert_eq!(bits_of::<u16>(&|i| i as u16 + 4), 0x0007_0006_0005_0004);
        assert_eq!(bits_of::<u32>(&|i| i + 4), 4);
        let vector = <u64 as Element>::Vector::from_words([1, 2, 3, 4]);
        assert_eq!(words::<u64>(vector)[..2], [0x2_0000_0001, 0x4_0000_0003]);
    }
}
