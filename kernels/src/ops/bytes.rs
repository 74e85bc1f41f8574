//! Sixteen bytes at once.

use cuda_std::bits::{max_u16x2, min_u16x2};

/// The lowest of sixteen bytes, four to a word.
#[inline(always)]
pub(super) fn lowest(words: [u32; 4], are_signed: bool) -> u8 {
    extreme(words, are_signed, min_u16x2)
}

/// The highest of sixteen bytes, four to a word.
#[inline(always)]
pub(super) fn highest(words: [u32; 4], are_signed: bool) -> u8 {
    extreme(words, are_signed, max_u16x2)
}

/// What is left of sixteen bytes if `better` picks one of two, in each half of a word: a byte lies in half of a word by
/// itself, and with its sign turned where it has one, so that all are in the order of unsigned numbers.
#[inline(always)]
fn extreme(words: [u32; 4], are_signed: bool, better: impl Fn(u32, u32) -> u32) -> u8 {
    const LOW_BYTES: u32 = 0x00FF_00FF;
    let signs = if are_signed { 0x0080_0080 } else { 0 };
    let of_word = |i: usize| better((words[i] ^ signs) & LOW_BYTES, ((words[i] >> 8) ^ signs) & LOW_BYTES);
    let halves = better(better(of_word(0), of_word(1)), better(of_word(2), of_word(3)));
    (better(halves, halves >> 16) ^ signs) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_are_those_of_each_byte() {
        let mut state = 1_u32;
        for _ in 0..1000 {
            let mut bytes = [0_u8; 16];
            for byte in &mut bytes {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                // Few different ones at times, so that extremes are not always those of the type.
                *byte = (state >> 24) as u8 | (state >> 8) as u8;
            }
            let words = [0, 4, 8, 12].map(|i| u32::from_le_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]));
            let signed = bytes.map(|byte| byte as i8);
            assert_eq!(Some(lowest(words, false)), bytes.into_iter().min());
            assert_eq!(Some(highest(words, false)), bytes.into_iter().max());
            assert_eq!(Some(lowest(words, true) as i8), signed.into_iter().min());
            assert_eq!(Some(highest(words, true) as i8), signed.into_iter().max());
        }
    }
}
