//! The state that threads and blocks exchange: an integer and the position of its units.

/// The set of non-finite values among the elements of a sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Specials(u8);

impl Specials {
    /// The empty set.
    pub const EMPTY: Self = Self(0);
    const NAN: u8 = 1;
    const INFINITY: u8 = 2;
    const NEGATIVE_INFINITY: u8 = 4;

    /// The set of NaN.
    pub const fn nan() -> Self {
        Self(Self::NAN)
    }

    /// The set of one infinity.
    pub const fn infinity(is_negative: bool) -> Self {
        Self(if is_negative { Self::NEGATIVE_INFINITY } else { Self::INFINITY })
    }

    /// The union of both sets.
    #[inline(always)]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the set is empty, so that all elements were finite.
    #[inline(always)]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The result that the set implies: NaN for NaN or infinities of both signs, else the infinity; finite if it is
    /// empty.
    pub const fn outcome(self) -> Outcome {
        match self.0 {
            0 => Outcome::Finite,
            Self::INFINITY => Outcome::Infinity { is_negative: false },
            Self::NEGATIVE_INFINITY => Outcome::Infinity { is_negative: true },
            _ => Outcome::Nan,
        }
    }

    /// The canonical set with the same outcome, so that equal sums have equal sets.
    pub const fn canonical(self) -> Self {
        match self.outcome() {
            Outcome::Nan => Self(Self::NAN),
            _ => self,
        }
    }

    /// The set as bits 0 to 2.
    #[inline(always)]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The set from its bits. `None` if another bit is set.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        if bits < 8 { Some(Self(bits)) } else { None }
    }
}

/// The kind of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Finite, as in the limbs.
    Finite,
    /// An infinity.
    Infinity {
        /// Whether it is negative.
        is_negative: bool,
    },
    /// NaN.
    Nan,
}

/// The exact sum of some elements: `value * 2^position` in units of the smallest subnormal number, its [`Specials`],
/// and whether [`Limbs`](crate::Limbs) elsewhere hold a part of it.
///
/// `BITS` is the number of bits of the value, sign included. 112 bits leave 16 bits of two 64-bit words for the other
/// fields ([`Compact::to_bits`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compact<const BITS: u32> {
    /// The integer.
    pub value: i128,
    /// The exponent of the value's unit, below `2^12`; meaningless if the value is 0.
    pub position: u32,
    /// The non-finite elements.
    pub specials: Specials,
    /// Whether limbs hold a part of the sum.
    pub has_limbs: bool,
}

impl<const BITS: u32> Compact<BITS> {
    /// The empty sum.
    pub const ZERO: Self = Self { value: 0, position: 0, specials: Specials::EMPTY, has_limbs: false };

    /// Whether a value fits in `BITS` bits.
    #[inline(always)]
    pub const fn fits(value: i128) -> bool {
        const { assert!(BITS > 64 && BITS <= 128) };
        (value << (128 - BITS)) >> (128 - BITS) == value
    }

    /// `value * 2^places`, if it fits in `BITS` bits.
    #[inline(always)]
    pub const fn shifted(value: i128, places: u32) -> Option<i128> {
        if places >= BITS {
            return None;
        }
        let shifted = value << places;
        if shifted >> places == value && Self::fits(shifted) { Some(shifted) } else { None }
    }

    /// The sum of both. If it does not fit, also a remainder as an integer and its position, which the caller must add
    /// to limbs.
    #[inline(always)]
    pub fn combine(self, other: Self) -> (Self, Option<(i128, u32)>) {
        let specials = self.specials.union(other.specials);
        let has_limbs = self.has_limbs | other.has_limbs;
        let of = |value, position, left| (Self { value, position, specials, has_limbs }, left);
        if other.value == 0 {
            return of(self.value, self.position, None);
        }
        if self.value == 0 {
            return of(other.value, other.position, None);
        }
        let (high, low) = if self.position >= other.position { (self, other) } else { (other, self) };
        if let Some(shifted) = Self::shifted(high.value, high.position - low.position) {
            // The sum of two integers of 128 bits may wrap.
            let sum = shifted.wrapping_add(low.value);
            let wraps = (shifted ^ sum) & (low.value ^ sum) < 0;
            if !wraps && Self::fits(sum) {
                return of(sum, low.position, None);
            }
        }
        of(high.value, high.position, Some((low.value, low.position)))
    }
}

impl Compact<112> {
    const POSITION_BITS: u32 = 12;

    /// The state as two words. Equal sums may have different words, but no bit is lost, and [`Compact::ZERO`] is 0.
    #[inline(always)]
    pub const fn to_bits(self) -> u128 {
        let tag = self.position
            | (self.specials.0 as u32) << Self::POSITION_BITS
            | (self.has_limbs as u32) << (Self::POSITION_BITS + 3);
        (self.value as u128) << 16 | tag as u128
    }

    /// The state from its words.
    #[inline(always)]
    pub const fn from_bits(bits: u128) -> Self {
        let tag = bits as u32;
        Self {
            value: bits as i128 >> 16,
            position: tag & ((1 << Self::POSITION_BITS) - 1),
            specials: Specials((tag >> Self::POSITION_BITS) as u8 & 7),
            has_limbs: tag >> (Self::POSITION_BITS + 3) & 1 == 1,
        }
    }
}
