//! The highest bits of a sum whose parts come from the highest position downwards.

use crate::limbs::Leading;

/// A sum of integers at descending positions, to the precision that one rounding needs.
///
/// [`HighestBits::push`] adds an integer at a lower position. The integers overlap, so a part can cancel most of what
/// is above it. While the sum has fewer than [`HighestBits::NEEDED`] bits, all of it is kept. After that, only what
/// lies below matters for the rounding: its whole units, and whether the remaining fraction is negative, zero or
/// positive. As soon as the fraction is more than all later parts together, the sum is decided, and later parts are
/// ignored. So usually three parts are enough, and the state is two integers, which a thread holds in registers.
///
/// The result is right for each rounding whose midpoints have at most [`HighestBits::NEEDED`] bits: of a sum to any
/// format; of a mean of up to [`HighestBits::MAX_COUNT`] elements; of a root in `f32`, whose midpoints' squares have 50
/// bits, but not of one in `f64`, whose squares have 108.
///
/// Source: the digits of a redundant number, most significant first, as in on-line arithmetic (Ercegovac, Lang,
/// "Digital Arithmetic", 2004, chapter 9).
#[derive(Clone, Copy, Debug)]
pub struct HighestBits {
    /// The sum's highest bits, in units of `2^position`.
    bits: i128,
    position: i32,
    /// What was pushed since `bits` were complete, in units of `2^(position - places)`.
    tail: i128,
    places: u32,
}

impl HighestBits {
    /// The bits of a complete sum.
    pub const NEEDED: u32 = 70;

    /// The maximum number of elements of a mean: its midpoints times the count have 54 + 16 bits.
    pub const MAX_COUNT: u64 = 1 << 16;

    /// The maximum number of places from one part to the next.
    pub const MAX_PLACES: u32 = 52;

    /// The bits of a part, without the sign.
    pub const PART: u32 = 120 - 1;

    /// Later parts together are less than `2^MARGIN` units of the last part.
    pub const MARGIN: u32 = 16;

    /// 0, before the first part, whose position is `position` minus its places.
    #[inline(always)]
    pub fn new(position: i32) -> Self {
        const {
            // An incomplete sum has bits left for the next part's places, and so has an undecided tail.
            assert!(Self::NEEDED + Self::MAX_PLACES < 126 && Self::PART < 126);
            assert!(Self::MARGIN + 1 + Self::MAX_PLACES < Self::NEEDED);
        }
        Self { bits: 0, position, tail: 0, places: 0 }
    }

    /// Adds `part`, in units that are `2^-places` times those of the last part.
    ///
    /// `places` is at most [`HighestBits::MAX_PLACES`], and `part` has at most [`HighestBits::PART`] bits. After the
    /// first part, a part is less than `2^MARGIN` units of the previous part.
    #[inline(always)]
    pub fn push(&mut self, part: i128, places: u32) {
        if self.is_decided() {
            return;
        }
        if self.bits.unsigned_abs() >> Self::NEEDED == 0 && self.places == 0 {
            self.bits = (self.bits << places) + part;
            self.position -= places as i32;
            return;
        }
        self.tail = (self.tail << places) + part;
        self.places += places;
        // Only parts pushed soon after the bits were complete can reach a whole unit of them.
        if self.places < 120 {
            let carry = (self.tail + (1 << self.places >> 1)) >> self.places;
            self.bits += carry;
            self.tail -= carry << self.places;
        }
    }

    /// Whether later parts cannot change the result.
    #[inline(always)]
    pub fn is_decided(&self) -> bool {
        self.tail.unsigned_abs() >> (Self::MARGIN + 1) != 0
    }

    /// The highest bits of the sum, and whether any bit is below them.
    #[inline(always)]
    pub fn leading(&self) -> Leading {
        let is_negative = self.bits < 0;
        let is_towards_zero = self.tail != 0 && (self.tail < 0) != is_negative;
        // The magnitude's whole units: one less if the tail reduces it.
        let toward = if is_negative { 1 } else { -1 };
        let bits = if is_towards_zero { self.bits + toward } else { self.bits };
        Leading { is_inexact: self.tail != 0, ..Leading::of(bits, self.position) }
    }
}
