//! Packed transposes: a tile is loaded as it lies in memory, and its output is gathered from single elements in shared
//! memory.
//!
//! They are for matrices with few rows or few columns. A tile is one contiguous segment on one side, and on the other a
//! segment of a few hundred bytes in each row. Stores begin and end at sectors. Vectors are loaded at multiples of 16
//! bytes and stored to shared memory as they are, so alignment costs nothing, and no element is outside the matrix. In
//! matrices with more rows and columns, the segment of each row would be too short.
//!
//! | module | contents |
//! |---|---|
//! | [`tall_skinny`](mod@tall_skinny) | few columns: each becomes a row |
//! | [`short_wide`](mod@short_wide) | few rows: each becomes a column |
//! | [`segments`](mod@segments) | matrices whose elements are short contiguous segments |
//! | [`segments_short_wide`](mod@segments_short_wide) | such matrices with few rows |
//! | [`segment_tiling`] | how the host divides both kinds into tiles |
//! | `aligned_rows`, `staged` | rows loaded by aligned vectors, and where their elements are in shared memory |

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

/// Bytes of a sector of memory.
pub const SECTOR: usize = 32;

/// The capacity of a block in elements of `size` bytes, which fill the vectors that its threads load.
pub const fn capacity(size: usize) -> usize {
    PACKED_BLOCK * PACKED_VECTORS * (16 / size)
}

/// Elements of `size` bytes in one row of all banks of shared memory, which is 128 bytes.
#[inline(always)]
pub const fn elements_per_bank_row(size: usize) -> usize {
    128 / size
}

/// Elements per word.
pub(in crate::transpose) const fn elements_per_word<T: WordAccess>() -> u32 {
    (size_of::<T::Word>() / size_of::<T>()) as u32
}

/// Words per vector.
pub(in crate::transpose) const fn words_of_vector<T: WordAccess>() -> u32 {
    (size_of::<T::Vector>() / size_of::<T::Word>()) as u32
}

/// The words of a vector; words past its end are unspecified.
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

/// Writes elements `begin..end` of the store whose first element is at index `i` of the output.
///
/// # Safety
/// The elements are inside the view, and the address of the first one of the store is a multiple of the store's size.
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
        return unsafe { store_unclamped(output, i, 0, all, element) };
    }
    let within = |k: u32| {
        let k = if k < begin { begin } else { k };
        element(if k < end { k } else { end - 1 })
    };
    // SAFETY: as promised by the caller.
    unsafe { store_unclamped(output, i, begin, end, within) };
}

/// [`store`] with an `element` that is also defined for elements that are not stored.
///
/// # Safety
/// As of [`store`].
#[inline(always)]
#[track_caller]
pub(in crate::transpose) unsafe fn store_unclamped<T: WordAccess>(
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

/// The elements of one store, in the order of memory.
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
