//! Exact sums by big integers, to check the library's with. They share no code with the crate `exact_sum`.
//!
//! A float is an integer times a power of two. [`Bins`] has an integer for each power of two, to which the floats'
//! integers are added. At the end these are added up, each shifted by its exponent.

use std::mem;

use num_bigint::{BigInt, BigUint};

use super::rounding::Exact;

/// The number of stored bits of an `f64`'s significand.
const STORED: u32 = f64::MANTISSA_DIGITS - 1;

/// The exponents' field of an `f64` that is infinite or NaN.
const SPECIAL: usize = 0x7ff;

/// The number of bins: the field of an exponent is below 2^11, and a product's bin is the sum of two.
const BINS: usize = 1 << 12;

/// The maximum number of additions to the bins before they are added up.
const MAX_UNFOLDED: u32 = 1 << 19;

// The number of bits of a bin's absolute value: a product of two `f64` has 106.
const _: () = assert!(2 * f64::MANTISSA_DIGITS + MAX_UNFOLDED.ilog2() < i128::BITS - 1);

/// The number of bits of a word of [`Bins::used`].
const WORD: usize = u64::BITS as usize;

/// The number of bits of a digit of a big integer.
const DIGIT: usize = u32::BITS as usize;

/// What the bins add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terms {
    /// Numbers.
    Numbers,
    /// Products of two numbers.
    Products,
}

/// A sum of floats or of their products: an integer for each exponent.
pub struct Bins {
    /// Bin `i` is in units of 2^(`i` + `exponent`).
    bins: Box<[i128; BINS]>,
    exponent: i32,
    /// A bit for each bin to which a term was added. All other bins are 0.
    used: [u64; BINS / WORD],
    /// The lowest bin that is used, and the one after the highest.
    lowest: usize,
    end: usize,
    /// The number of lowest bits of an `f64`'s significand that are 0 in every number.
    spare: u32,
    /// The maximum number of bits of a term's integer.
    bits_of_term: u32,
    /// The number of additions to the bins.
    unfolded: u32,
    /// What was in the bins before, and the number of terms that are 0, infinite or NaN.
    folded: BigSum,
}

impl Bins {
    /// No terms. Each number will have at most `digits` bits, as `f32::MANTISSA_DIGITS` says for `f32`.
    pub fn new(terms: Terms, digits: u32) -> Self {
        let factors = if terms == Terms::Products { 2 } else { 1 };
        let spare = f64::MANTISSA_DIGITS - digits;
        // The value of a significand as an integer is in units of this power of two, where the exponents' field is 0.
        let of_factor = f64::MIN_EXP - 2 - STORED as i32 + spare as i32;
        let bins = vec![0; BINS].into_boxed_slice().try_into().expect("the length is BINS");
        Self {
            bins,
            exponent: factors * of_factor,
            used: [0; BINS / WORD],
            lowest: BINS,
            end: 0,
            spare,
            bits_of_term: factors as u32 * digits,
            unfolded: 0,
            folded: BigSum::default(),
        }
    }

    /// Adds a number, if the terms are numbers.
    pub fn add(&mut self, x: f64) {
        match parts(x, self.spare) {
            Some((integer, bin)) => self.add_to_bin(integer.into(), bin),
            None => self.folded.add_special(x),
        }
    }

    /// Adds a product, if the terms are products.
    pub fn add_product(&mut self, a: f64, b: f64) {
        match (parts(a, self.spare), parts(b, self.spare)) {
            (Some((a, bin_of_a)), Some((b, bin_of_b))) => {
                self.add_to_bin(i128::from(a) * i128::from(b), bin_of_a + bin_of_b);
            }
            // The product is 0, infinite or NaN, and is not rounded.
            _ => self.folded.add_special(a * b),
        }
    }

    fn add_to_bin(&mut self, integer: i128, bin: usize) {
        self.bins[bin] += integer;
        let (word, bit) = (&mut self.used[bin / WORD], 1 << (bin % WORD));
        // Most terms are in a bin that is used already.
        if *word & bit == 0 {
            *word |= bit;
            self.lowest = self.lowest.min(bin);
            self.end = self.end.max(bin + 1);
        }
        self.unfolded += 1;
        if self.unfolded == MAX_UNFOLDED {
            self.fold();
        }
    }

    /// The sum, and no terms from here on.
    pub fn take(&mut self) -> Exact {
        if self.folded.number.magnitude().bits() == 0
            && let Some(sum) = self.narrow_sum()
        {
            let exponent = self.exponent + self.lowest.min(self.end) as i32;
            let count = self.folded.count + u64::from(self.unfolded);
            let special = mem::take(&mut self.folded).special;
            self.clear();
            return Exact::new(sum < 0, sum.unsigned_abs(), exponent, false, count, special);
        }
        self.take_total().exact()
    }

    /// The sum as a big integer, and no terms from here on.
    pub fn take_total(&mut self) -> BigSum {
        self.fold();
        mem::take(&mut self.folded)
    }

    /// The sum of the bins in units of the lowest one that is used, if it has few enough bits.
    fn narrow_sum(&self) -> Option<i128> {
        let bits_of_bin = self.bits_of_term + u32::BITS - self.unfolded.leading_zeros();
        let bins = &self.bins[self.lowest.min(self.end)..self.end];
        let bits = bits_of_bin as usize + bins.len() + 1;
        (bits < i128::BITS as usize).then(|| bins.iter().rev().fold(0, |sum, bin| (sum << 1) + bin))
    }

    /// Moves what the bins have to `folded`.
    fn fold(&mut self) {
        if self.unfolded == 0 {
            return;
        }
        let first = self.lowest / DIGIT;
        // The halves of a bin, each shifted by less than a digit, are added to integers in units of 2^32 to a power.
        // 32 bins have less than 2^(32 + 64 + 5) each.
        let mut sums = vec![0_i128; self.end.div_ceil(DIGIT) - first + 2];
        let bins = &self.bins;
        each_bit(&self.used, self.lowest, self.end, |bin| {
            let (low, high) = (i128::from(bins[bin] as u64), bins[bin] >> u64::BITS);
            sums[bin / DIGIT - first] += low << (bin % DIGIT);
            sums[bin / DIGIT - first + 2] += high << (bin % DIGIT);
        });
        let mut carry = 0;
        let digits = sums.iter().map(|sum| {
            carry += sum;
            let digit = carry as u32;
            // The shift rounds down, so the digit is what it leaves, for negative numbers too.
            carry >>= DIGIT;
            digit
        });
        let low = BigInt::from(BigUint::new(digits.collect()));
        let number = (BigInt::from(carry) << (sums.len() * DIGIT)) + low;
        let exponent = self.exponent + (first * DIGIT) as i32;
        self.folded.merge(BigSum { number, exponent, count: self.unfolded.into(), special: 0.0 });
        self.clear();
    }

    fn clear(&mut self) {
        let bins = &mut self.bins;
        each_bit(&self.used, self.lowest, self.end, |bin| bins[bin] = 0);
        self.used[self.lowest.min(self.end) / WORD..self.end.div_ceil(WORD)].fill(0);
        (self.lowest, self.end, self.unfolded) = (BINS, 0, 0);
    }
}

/// Calls `then` with the index of each bit that is 1, from `lowest` to before `end`. No bit outside is 1.
fn each_bit(words: &[u64], lowest: usize, end: usize, mut then: impl FnMut(usize)) {
    for (word, &bits) in words.iter().enumerate().take(end.div_ceil(WORD)).skip(lowest / WORD) {
        let mut bits = bits;
        while bits != 0 {
            then(word * WORD + bits.trailing_zeros() as usize);
            bits &= bits - 1;
        }
    }
}

/// The signed significand of a number as an integer, without its `spare` lowest bits, and the field of its exponent.
/// `None` if the number is 0, infinite or NaN.
fn parts(x: f64, spare: u32) -> Option<(i64, usize)> {
    let bits = x.to_bits();
    let field = (bits >> STORED) as usize & SPECIAL;
    let stored = bits & ((1 << STORED) - 1);
    if field == SPECIAL || x == 0.0 {
        return None;
    }
    // A subnormal number has no hidden bit, and the exponent of the smallest normal numbers.
    let (significand, field) = if field == 0 { (stored, 1) } else { (stored | 1 << STORED, field) };
    debug_assert_eq!(significand >> spare << spare, significand, "{x} has more digits than its type");
    let integer = (significand >> spare) as i64;
    Some((if x < 0.0 { -integer } else { integer }, field))
}

/// An exact sum as a big integer.
#[derive(Clone, Debug, Default)]
pub struct BigSum {
    /// The sum of the finite terms, in units of 2^`exponent`.
    number: BigInt,
    exponent: i32,
    count: u64,
    /// The sum of the infinite terms and NaN: 0, an infinity or NaN.
    special: f64,
}

impl BigSum {
    /// An integer, as the sum of `count` terms.
    pub fn of_integer(number: BigInt, count: u64) -> Self {
        Self { number, exponent: 0, count, special: 0.0 }
    }

    fn add_special(&mut self, x: f64) {
        self.count += 1;
        self.special += x;
    }

    /// Adds other terms.
    pub fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.special += other.special;
        let (mut low, mut high) = ((mem::take(&mut self.number), self.exponent), (other.number, other.exponent));
        if low.1 > high.1 {
            mem::swap(&mut low, &mut high);
        }
        self.number = low.0 + (high.0 << (high.1 - low.1));
        self.exponent = low.1;
    }

    /// The sum, ready to be rounded.
    pub fn exact(&self) -> Exact {
        let magnitude = self.number.magnitude();
        let dropped = magnitude.bits().saturating_sub(u128::BITS.into());
        let highest = u128::try_from(magnitude >> dropped).expect("the lowest bits are dropped");
        let has_rest = dropped > 0 && magnitude.trailing_zeros().is_some_and(|zeros| zeros < dropped);
        let is_negative = self.number < BigInt::ZERO;
        Exact::new(is_negative, highest, self.exponent + dropped as i32, has_rest, self.count, self.special)
    }
}

#[cfg(test)]
mod tests;
