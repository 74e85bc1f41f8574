//! Minimum, maximum and zero test of sixteen bytes.

use cuda_std::bits::{max_u16x2, min_u16x2};

/// The lowest of sixteen bytes, four to a word.
#[inline(always)]
pub(super) fn lowest(words: [u32; 4]) -> u8 {
    extreme(words, min_u16x2)
}

/// The highest of sixteen bytes, four to a word.
#[inline(always)]
pub(super) fn highest(words: [u32; 4]) -> u8 {
    extreme(words, max_u16x2)
}

/// Reduces sixteen bytes with `better`, which picks one of two in each half of a word. Each half holds one byte.
#[inline(always)]
fn extreme(words: [u32; 4], better: impl Fn(u32, u32) -> u32) -> u8 {
    const LOW_BYTES: u32 = 0x00FF_00FF;
    let of_word = |i: usize| better(words[i] & LOW_BYTES, (words[i] >> 8) & LOW_BYTES);
    let halves = better(better(of_word(0), of_word(1)), better(of_word(2), of_word(3)));
    better(halves, halves >> 16) as u8
}

/// Whether any of sixteen bytes, four to a word, is 0.
///
/// A word `w` has a zero byte exactly if `(w - 0x01010101) & !w & 0x80808080` is not 0. Source: Warren, "Hacker's
/// Delight", section 6-1.
#[inline(always)]
pub(super) fn has_zero(words: [u32; 4]) -> bool {
    let of_word = |i: usize| words[i].wrapping_sub(0x0101_0101) & !words[i];
    (of_word(0) | of_word(1) | of_word(2) | of_word(3)) & 0x8080_8080 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_give_the_results_of_their_bytes() {
        let mut state = 1_u32;
        for _ in 0..1000 {
            let mut bytes = [0_u8; 16];
            for byte in &mut bytes {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                // Skewed by the OR, so that the extremes are not always those of the type.
                *byte = (state >> 24) as u8 | (state >> 8) as u8;
                // One byte in sixteen is 0 or 1.
                if state & 0xF00 == 0 {
                    *byte = (state >> 12) as u8 & 1;
                }
            }
            let words = [0, 4, 8, 12].map(|i| u32::from_le_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]));
            assert_eq!(has_zero(words), bytes.contains(&0));
            assert_eq!(Some(lowest(words)), bytes.into_iter().min());
            assert_eq!(Some(highest(words)), bytes.into_iter().max());
        }
    }
}
