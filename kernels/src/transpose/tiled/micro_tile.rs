//! Micro-tiles: square blocks of elements that a thread transposes in registers.

use cuda_std::bits::permute_bytes;
use cuda_std::prelude::*;

/// An unsigned number that stands for all types of its size. Its micro-tile is square: one vector for each row, and a
/// row for each element of a vector.
pub trait Transpose: Element {
    /// The transposed micro-tile. The vectors past its rows are unspecified.
    fn transpose(micro_tile: [Self::Vector; 16]) -> [Self::Vector; 16];
}

impl Transpose for u128 {
    #[inline(always)]
    fn transpose(micro_tile: [Self::Vector; 16]) -> [Self::Vector; 16] {
        micro_tile
    }
}

impl Transpose for u64 {
    #[inline(always)]
    fn transpose(micro_tile: [Self::Vector; 16]) -> [Self::Vector; 16] {
        let mut transposed = micro_tile;
        let ([a, b, c, d], [e, f, g, h]) = (micro_tile[0].to_words(), micro_tile[1].to_words());
        transposed[0] = Self::Vector::from_words([a, b, e, f]);
        transposed[1] = Self::Vector::from_words([c, d, g, h]);
        transposed
    }
}

impl Transpose for u32 {
    #[inline(always)]
    fn transpose(micro_tile: [Self::Vector; 16]) -> [Self::Vector; 16] {
        let mut transposed = micro_tile;
        let rows = [micro_tile[0].0, micro_tile[1].0, micro_tile[2].0, micro_tile[3].0];
        let mut i = 0;
        while i < 4 {
            transposed[i] = Vector([rows[0][i], rows[1][i], rows[2][i], rows[3][i]]);
            i += 1;
        }
        transposed
    }
}

impl Transpose for u16 {
    #[inline(always)]
    fn transpose(micro_tile: [Self::Vector; 16]) -> [Self::Vector; 16] {
        unroll_16(&HalfRows(micro_tile))
    }
}

/// The rows of a transposed micro-tile of 2-byte elements.
struct HalfRows([<u16 as Element>::Vector; 16]);

impl HalfRows {
    /// Word `k` of row `row`: one element of each of two rows of the micro-tile.
    #[inline(always)]
    fn word(&self, row: usize, k: usize) -> u32 {
        let halves = if row.is_multiple_of(2) { 0x5410 } else { 0x7632 };
        let (a, b) = (self.0[2 * k].to_words(), self.0[2 * k + 1].to_words());
        permute_bytes(a[row / 2], b[row / 2], halves)
    }
}

impl Unroll for HalfRows {
    type Output = <u16 as Element>::Vector;

    #[inline(always)]
    fn value(&self, row: usize) -> Self::Output {
        if row >= 8 {
            return self.0[row];
        }
        VectorType::from_words([self.word(row, 0), self.word(row, 1), self.word(row, 2), self.word(row, 3)])
    }
}

impl Transpose for u8 {
    #[inline(always)]
    fn transpose(micro_tile: [Self::Vector; 16]) -> [Self::Vector; 16] {
        unroll_16(&ByteRows([
            transpose_words(&micro_tile, 0),
            transpose_words(&micro_tile, 1),
            transpose_words(&micro_tile, 2),
            transpose_words(&micro_tile, 3),
        ]))
    }
}

/// The rows of a transposed micro-tile of bytes, four at a time; each word has one byte of each of four input rows.
struct ByteRows([[[u32; 4]; 4]; 4]);

impl Unroll for ByteRows {
    type Output = <u8 as Element>::Vector;

    #[inline(always)]
    fn value(&self, row: usize) -> Self::Output {
        let [a, b, c, d] = self.0[row / 4];
        let i = row % 4;
        VectorType::from_words([a[i], b[i], c[i], d[i]])
    }
}

/// The bytes of four rows of the result, from word `word` of every row.
#[inline(always)]
fn transpose_words(micro_tile: &[<u8 as Element>::Vector; 16], word: usize) -> [[u32; 4]; 4] {
    let of_row = |row: usize| micro_tile[row].to_words()[word];
    [
        transpose_bytes([of_row(0), of_row(1), of_row(2), of_row(3)]),
        transpose_bytes([of_row(4), of_row(5), of_row(6), of_row(7)]),
        transpose_bytes([of_row(8), of_row(9), of_row(10), of_row(11)]),
        transpose_bytes([of_row(12), of_row(13), of_row(14), of_row(15)]),
    ]
}

/// A function of a small index that is always unrolled.
pub(in crate::transpose) trait Unroll {
    /// The result.
    type Output;
    /// The value for index `i`.
    fn value(&self, i: usize) -> Self::Output;
}

/// The values for indices 0 to 15. Written out, because the compiler puts an array whose loop it does not unroll in
/// local memory; and a trait instead of a closure, because it does not inline a closure that is called 16 times.
#[inline(always)]
pub(in crate::transpose) fn unroll_16<E: Unroll>(each: &E) -> [E::Output; 16] {
    [
        each.value(0),
        each.value(1),
        each.value(2),
        each.value(3),
        each.value(4),
        each.value(5),
        each.value(6),
        each.value(7),
        each.value(8),
        each.value(9),
        each.value(10),
        each.value(11),
        each.value(12),
        each.value(13),
        each.value(14),
        each.value(15),
    ]
}

/// The transpose of four words of four bytes, in eight permutations.
#[inline(always)]
pub(in crate::transpose) fn transpose_bytes([a, b, c, d]: [u32; 4]) -> [u32; 4] {
    let (low_of_ab, low_of_cd) = (permute_bytes(a, b, 0x5140), permute_bytes(c, d, 0x5140));
    let (high_of_ab, high_of_cd) = (permute_bytes(a, b, 0x7362), permute_bytes(c, d, 0x7362));
    [
        permute_bytes(low_of_ab, low_of_cd, 0x5410),
        permute_bytes(low_of_ab, low_of_cd, 0x7632),
        permute_bytes(high_of_ab, high_of_cd, 0x5410),
        permute_bytes(high_of_ab, high_of_cd, 0x7632),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Transposes a micro-tile whose element in row `r` and column `c` is `16 r + c`.
    fn check<T: Transpose>(of: impl Fn(u8) -> T) {
        let side = T::Vector::LEN;
        let mut micro_tile = [T::Vector::splat(T::default()); 16];
        for (row, vector) in micro_tile.iter_mut().enumerate().take(side) {
            for column in 0..side {
                *vector = vector.with(column, of((16 * row + column) as u8));
            }
        }
        for (row, vector) in T::transpose(micro_tile).iter().enumerate().take(side) {
            for column in 0..side {
                assert_eq!(vector.get(column), of((16 * column + row) as u8), "row {row}, column {column}");
            }
        }
    }

    #[test]
    fn micro_tiles_of_every_size_are_transposed() {
        check::<u8>(|x| x);
        check::<u16>(|x| u16::from(x) << 8 | 3);
        check::<u32>(|x| u32::from(x) << 24 | 3);
        check::<u64>(|x| u64::from(x) << 40 | 3);
        check::<u128>(|x| u128::from(x) << 100 | 3);
    }
}
