//! Mixed-radix numbers: where the elements of a copy between two layouts are.

use cuda_std::Plain;
use cuda_std::bits::mul_hi;
use cuda_std::bytemuck::{Pod, Zeroable};

use crate::reduce::exact::unrolled::each;

/// A digit of a mixed-radix number: an axis of an array, and what a step along it adds to the positions on both sides.
///
/// A division by the extent takes one multiplication by a reciprocal, which the host computes. Source: Granlund and
/// Montgomery, "Division by Invariant Integers using Multiplication", 1994, figure 4.1, for dividends below 2^31.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Plain)]
#[repr(C)]
pub struct Digit {
    extent: u32,
    reciprocal: u32,
    shift: u32,
    zero: u32,
    input: i64,
    output: i64,
}

impl Digit {
    /// The digit of an axis of `extent` elements, which are `input` and `output` elements apart on the two sides.
    ///
    /// # Panics
    /// The extent is 0, or 2^31 or more.
    pub const fn new(extent: usize, input: i64, output: i64) -> Self {
        assert!(extent > 0 && extent < 1 << 31, "an extent is from 1 to 2^31 - 1");
        let shift = extent.next_power_of_two().trailing_zeros();
        let reciprocal = ((1_u64 << 32) * ((1 << shift) - extent as u64) / extent as u64 + 1) as u32;
        Self { extent: extent as u32, reciprocal, shift, zero: 0, input, output }
    }

    /// The quotient and the remainder of `number`, which is below 2^31, and the extent.
    #[inline(always)]
    fn div_rem(&self, number: u32) -> (u32, u32) {
        let quotient = (mul_hi(number, self.reciprocal) + number) >> self.shift;
        (quotient, number - quotient * self.extent)
    }
}

/// The digits of a mixed-radix number, the fastest first. There are at most 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Digits<const N: usize> {
    len: u32,
    zero: u32,
    digits: [Digit; N],
}

// SAFETY: all fields are numbers, or arrays of digits, which are numbers: zeros are values of them.
unsafe impl<const N: usize> Zeroable for Digits<N> {}
// SAFETY: all bit patterns are values of the fields; two words and an array of digits, each of which is a multiple of 8
// bytes and aligned to 8 bytes, leave no padding.
unsafe impl<const N: usize> Pod for Digits<N> {}

impl<const N: usize> Digits<N> {
    /// The digits of a list.
    ///
    /// # Panics
    /// The list is longer than `N`.
    pub fn new(list: &[Digit]) -> Self {
        let mut digits = [Digit::default(); N];
        digits[..list.len()].copy_from_slice(list);
        Self { len: list.len() as u32, zero: 0, digits }
    }

    /// The positions on both sides of the element with this number, relative to those of the first. The number is less
    /// than the product of the extents, which is below 2^31.
    #[inline(always)]
    pub fn positions(&self, number: u32) -> (i64, i64) {
        let (mut left, mut input, mut output) = (number, 0, 0);
        each::<N>(|k| {
            if (k as u32) < self.len {
                let (next, own) = self.digits[k].div_rem(left);
                input += i64::from(own) * self.digits[k].input;
                output += i64::from(own) * self.digits[k].output;
                left = next;
            }
        });
        (input, output)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    #[test]
    fn quotients_are_exact() {
        let large = [65_535, 65_536, 65_537, (1 << 30) - 1, 1 << 30, (1 << 30) + 1, (1 << 31) - 1];
        for extent in (1..2000).chain(large) {
            let digit = Digit::new(extent, 0, 0);
            let extent = extent as u32;
            let near = (1..4_u32).flat_map(|k| [k.wrapping_mul(extent), k.wrapping_mul(extent).wrapping_sub(1)]);
            let last = (1_u32 << 31) - 1;
            for number in (0..2000).chain(near).chain([last / extent * extent, last / extent * extent - 1, last]) {
                if number <= last {
                    assert_eq!(digit.div_rem(number), (number / extent, number % extent), "{number} / {extent}");
                }
            }
        }
    }

    #[test]
    fn positions_are_sums_over_digits() {
        let axes = [(3, 1, 8), (1, 7, 7), (5, -3, 24), (4, 100, -1)];
        let list: Vec<Digit> = axes.iter().map(|&(extent, a, b)| Digit::new(extent, a, b)).collect();
        let digits = Digits::<6>::new(&list);
        for number in 0..60 {
            let (i, j, k) = (i64::from(number) % 3, i64::from(number) / 3 % 5, i64::from(number) / 15);
            assert_eq!(digits.positions(number), (i - 3 * j + 100 * k, 8 * i + 24 * j - k));
        }
        assert_eq!(Digits::<3>::new(&[]).positions(0), (0, 0));
    }
}
