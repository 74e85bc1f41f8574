//! Bytes of words.

use crate::machine;

/// Four of the eight bytes of `low` and `high`, which are numbered from `low`'s least to `high`'s most significant: the
/// result's byte `i` is the one that the `i`-th hexadecimal digit of `selector` names, from the least on, each 0 to 7.
///
/// One instruction (`prmt`).
#[inline(always)]
pub fn permute_bytes(low: u32, high: u32, selector: u32) -> u32 {
    machine::permute_bytes(low, high, selector & 0x7777)
}

#[cfg(test)]
mod tests {
    use super::permute_bytes;

    #[test]
    fn digits_name_bytes() {
        assert_eq!(permute_bytes(0x3322_1100, 0x7766_5544, 0x3210), 0x3322_1100);
        assert_eq!(permute_bytes(0x3322_1100, 0x7766_5544, 0x7654), 0x7766_5544);
        assert_eq!(permute_bytes(0x3322_1100, 0x7766_5544, 0x0527), 0x0055_2277);
    }
}
