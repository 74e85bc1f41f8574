//! What threads and blocks exchange: an integer, and where its units are.

/// What a sum has seen that is not finite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Specials(u8);

impl Specials {
    /// Nothing.
    pub const NONE: Self = Self(0);
    const NAN: u8 = 1;
    const INFINITY: u8 = 2;
    const NEGATIVE_INFINITY: u8 = 4;

    /// NaN.
    pub const fn nan() -> Self {
        Self(Self::NAN)
    }

    /// Infinity of a sign.
    pub const fn infinity(is_negative: bool) -> Self {
        Self(if is_negative { Self::NEGATIVE_INFINITY } else { Self::INFINITY })
    }

    /// What either has seen.
    #[inline(always)]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all was finite.
    #[inline(always)]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The result that they make, whatever else is summed: NaN if there was one, or infinities of both signs; else an
    /// infinity.
    pub const fn outcome(self) -> Outcome {
        match self.0 {
            0 => Outcome::Finite,
            Self::INFINITY => Outcome::Infinity { is_negative: false },
            Self::NEGATIVE_INFINITY => Outcome::Infinity { is_negative: true },
            _ => Outcome::Nan,
        }
    }

    /// The one set for each outcome: equal for sums that are equal.
    pub const fn canonical(self) -> Self {
        match self.outcome() {
            Outcome::Nan => Self(Self::NAN),
            _ => self,
        }
    }

    /// As bits, of which three may be one.
    #[inline(always)]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Of bits; none if another than these three is one.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        if bits < 8 { Some(Self(bits)) } else { None }
    }
}

/// What a sum is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its limbs.
    Finite,
    /// An infinity.
    Infinity {
        /// Of which sign.
        is_negative: bool,
    },
    /// NaN.
    Nan,
}

/// The exact sum of some elements: `value * 2^position` in units of the least number, [`Specials`], and whether a part
/// of it is in [`Limbs`](crate::Limbs) beside it.
///
/// `BITS` are those that the value may have, its sign among them: 112 leave 16 of two words for the rest
/// ([`Compact::to_bits`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compact<const BITS: u32> {
    /// The integer.
    pub value: i128,
    /// The power of two that it is in units of, below `2^12`; of no meaning if the integer is 0.
    pub position: u32,
    /// What was not finite.
    pub specials: Specials,
    /// Whether a part of the sum is in limbs.
    pub has_limbs: bool,
}

impl<const BITS: u32> Compact<BITS> {
    /// The sum of nothing.
    pub const ZERO: Self = Self { value: 0, position: 0, specials: Specials::NONE, has_limbs: false };

    /// Whether a value has few enough bits.
    #[inline(always)]
    pub const fn fits(value: i128) -> bool {
        const { assert!(BITS > 64 && BITS <= 128) };
        (value << (128 - BITS)) >> (128 - BITS) == value
    }

    /// `value * 2^places`, if it has few enough bits.
    #[inline(always)]
    pub const fn shifted(value: i128, places: u32) -> Option<i128> {
        if places >= BITS {
            return None;
        }
        let shifted = value << places;
        if shifted >> places == value && Self::fits(shifted) { Some(shifted) } else { None }
    }

    /// The sum of both, and what there was no room for, as an integer and its position: that has to go to limbs.
    #[inline(always)]
    pub fn combine(self, other: Self) -> (Self, Option<(i128, u32)>) {
        let specials = self.specials.or(other.specials);
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
            // Of 128 bits each a sum may wrap.
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

    /// As two words: equal states are not equal bits, but all bits of the sum are there, and [`Compact::ZERO`] is 0.
    #[inline(always)]
    pub const fn to_bits(self) -> u128 {
        let tag = self.position
            | (self.specials.0 as u32) << Self::POSITION_BITS
            | (self.has_limbs as u32) << (Self::POSITION_BITS + 3);
        (self.value as u128) << 16 | tag as u128
    }

    /// The state of such bits.
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
