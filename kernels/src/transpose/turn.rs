//! Squares of elements, turned in registers.

use cuda_std::bits::permute_bytes;
use cuda_std::prelude::*;

/// An unsigned number, for all types of its size, whose squares a thread can turn: of as many rows, a pack each, as a pack
/// has elements.
pub trait Turn: Element {
    /// The square with rows and columns exchanged; packs behind its rows are of no meaning.
    fn turn(square: [Self::Pack; 16]) -> [Self::Pack; 16];
}

impl Turn for u128 {
    #[inline(always)]
    fn turn(square: [Self::Pack; 16]) -> [Self::Pack; 16] {
        square
    }
}

impl Turn for u64 {
    #[inline(always)]
    fn turn(square: [Self::Pack; 16]) -> [Self::Pack; 16] {
        let mut turned = square;
        let ([a, b, c, d], [e, f, g, h]) = (square[0].to_words(), square[1].to_words());
        turned[0] = Self::Pack::from_words([a, b, e, f]);
        turned[1] = Self::Pack::from_words([c, d, g, h]);
        turned
    }
}

impl Turn for u32 {
    #[inline(always)]
    fn turn(square: [Self::Pack; 16]) -> [Self::Pack; 16] {
        let mut turned = square;
        let rows = [square[0].0, square[1].0, square[2].0, square[3].0];
        let mut i = 0;
        while i < 4 {
            turned[i] = Pack([rows[0][i], rows[1][i], rows[2][i], rows[3][i]]);
            i += 1;
        }
        turned
    }
}

impl Turn for u16 {
    #[inline(always)]
    fn turn(square: [Self::Pack; 16]) -> [Self::Pack; 16] {
        let mut turned = square;
        let mut row = 0;
        while row < 8 {
            // Two rows' elements side by side: the low halves of a word, or the high ones.
            let halves = if row % 2 == 0 { 0x5410 } else { 0x7632 };
            let both = |k: usize| {
                let (a, b) = (square[2 * k].to_words(), square[2 * k + 1].to_words());
                permute_bytes(a[row / 2], b[row / 2], halves)
            };
            turned[row] = Self::Pack::from_words([both(0), both(1), both(2), both(3)]);
            row += 1;
        }
        turned
    }
}

impl Turn for u8 {
    #[inline(always)]
    fn turn(square: [Self::Pack; 16]) -> [Self::Pack; 16] {
        let mut turned = square;
        let mut word = 0;
        while word < 4 {
            // Four rows of the result, from a word of every row.
            let column = |k: usize| {
                let of_row = |i: usize| square[4 * k + i].to_words()[word];
                turn_bytes([of_row(0), of_row(1), of_row(2), of_row(3)])
            };
            let columns = [column(0), column(1), column(2), column(3)];
            let mut i = 0;
            while i < 4 {
                let words = [columns[0][i], columns[1][i], columns[2][i], columns[3][i]];
                turned[4 * word + i] = Self::Pack::from_words(words);
                i += 1;
            }
            word += 1;
        }
        turned
    }
}

/// The transpose of four words of four bytes, in eight permutations.
#[inline(always)]
fn turn_bytes([a, b, c, d]: [u32; 4]) -> [u32; 4] {
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

    /// A square whose element in row `r` and column `c` is `16 r + c`, turned.
    fn check<T: Turn>(of: impl Fn(u8) -> T) {
        let side = T::Pack::LEN;
        let mut square = [T::Pack::splat(T::default()); 16];
        for (row, pack) in square.iter_mut().enumerate().take(side) {
            for column in 0..side {
                *pack = pack.with(column, of((16 * row + column) as u8));
            }
        }
        for (row, pack) in T::turn(square).iter().enumerate().take(side) {
            for column in 0..side {
                assert_eq!(pack.get(column), of((16 * column + row) as u8), "row {row}, column {column}");
            }
        }
    }

    #[test]
    fn squares_of_every_size_are_turned() {
        check::<u8>(|x| x);
        check::<u16>(|x| u16::from(x) << 8 | 3);
        check::<u32>(|x| u32::from(x) << 24 | 3);
        check::<u64>(|x| u64::from(x) << 40 | 3);
        check::<u128>(|x| u128::from(x) << 100 | 3);
    }
}
