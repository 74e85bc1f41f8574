//! Two bins below a power of two: what the fast way adds in.

use crate::binary::Binary;

/// Extraction of floats below `2^exponent` into the integers of two bins.
///
/// With `p` the bits of a mantissa (23 or 52), the bins' units are
///
/// ```text
/// upper  2^(exponent + 1 - p)      lower  2^(exponent + 1 - 2 p)
/// ```
///
/// Adding an element `x` to a constant `M` of 1.5 times a power of two, in round-to-nearest, gives a float whose bits,
/// less those of `M`, are the integer that is nearest to `x` in units of `M`'s last place. What is left over, `x - (M +
/// x - M)`, is exact, and goes to the next bin the same way. So sums of the *bits* are sums of integers, in any order.
///
/// Why it is exact. Let `u` be the upper unit, and `|x| <= 2^exponent`. `M + x` is in the binade of `M`, whose floats
/// are multiples of `u`, at most half of `u` from the exact sum. `M + x - M` is a multiple of `u` below `2^(p-1) u`, so
/// it is a float. `x` less that is at most `u / 2`, and a multiple of `x`'s own last place, so it is a float too
/// (Sterbenz' lemma where they are close, few enough bits otherwise). In the lower bin, whose constant is 1.5 times
/// `u`, the same again.
///
/// An element outside the window changes the sign or the exponent of `M + x` ([`Bins::is_outside`]); so do NaN and
/// the infinities. An element with bits below the lower unit leaves a residual that is not 0 ([`Bins::has_residual`]);
/// one of at least `2^(exponent - p + 1)` never does.
///
/// Source: Rump, Ogita, Oishi, "Accurate Floating-Point Summation, Part I", SIAM J. Sci. Comput. 31 (2008),
/// `ExtractScalar`; Demmel, Ahrens, Nguyen, "Efficient Reproducible Floating Point Summation and BLAS",
/// UCB/EECS-2016-121, for bins that integers are kept in.
#[derive(Clone, Copy, Debug)]
pub struct Window<F: Binary> {
    /// The constant of the upper bin; the lower one's is `2^-p` of it.
    upper: F,
}

impl<F: Binary> Window<F> {
    /// The lowest window: the lower bin's unit is the least subnormal number.
    pub const LOWEST: i32 = F::MIN_EXPONENT + F::MANTISSA as i32 - 1;

    /// The highest window: `upper` is the greatest that stays below infinity.
    pub const HIGHEST: i32 = F::MAX_EXPONENT - 2;

    /// Elements that may be added to bins before they are [taken out](Window::drain): their integers are at most
    /// `2^(p-1)` in magnitude, and a sum of them has to stay below half of what a word counts.
    pub const CAPACITY: u32 = F::EXTRACTIONS;

    /// The window of elements below `2^exponent`, moved into the range of windows.
    #[inline(always)]
    pub fn new(exponent: i32) -> Self {
        Self { upper: F::one_and_a_half(Self::nearest(exponent) + 1) }
    }

    /// The nearest exponent that a window has.
    #[inline(always)]
    pub fn nearest(exponent: i32) -> i32 {
        if exponent < Self::LOWEST {
            Self::LOWEST
        } else if exponent > Self::HIGHEST {
            Self::HIGHEST
        } else {
            exponent
        }
    }

    /// The constant of the lower bin: a normal number, as there is no window below [`Window::LOWEST`].
    #[inline(always)]
    fn lower(&self) -> F {
        self.upper.scaled_down()
    }

    /// The window's exponent.
    #[inline(always)]
    pub fn exponent(&self) -> i32 {
        self.upper.exponent() - 1
    }

    /// `bins` with one element more.
    #[inline(always)]
    pub fn extract(&self, bins: Bins<F>, element: F) -> Bins<F> {
        let upper = self.upper + element;
        let left = element - (upper - self.upper);
        let lower = self.lower() + left;
        let residual = left - (lower - self.lower());
        Bins {
            upper: F::add_words(bins.upper, upper.bits()),
            lower: F::add_words(bins.lower, lower.bits()),
            outside: bins.outside | (upper.bits() ^ self.upper.bits()),
            residual: bins.residual | residual.bits(),
        }
    }

    /// [`Window::extract`] of an element that leaves nothing, if it is in the window.
    #[inline(always)]
    pub fn extract_all(&self, bins: Bins<F>, element: F) -> Bins<F> {
        let upper = self.upper + element;
        let lower = self.lower() + (element - (upper - self.upper));
        Bins {
            upper: F::add_words(bins.upper, upper.bits()),
            lower: F::add_words(bins.lower, lower.bits()),
            outside: bins.outside | (upper.bits() ^ self.upper.bits()),
            ..bins
        }
    }

    /// Adds an element to `bins`, and gives what it leaves: [`Window::extract`] and [`Window::residual`].
    #[inline(always)]
    pub fn extract_from(&self, bins: &mut Bins<F>, element: F) -> F {
        let upper = self.upper + element;
        let left = element - (upper - self.upper);
        let lower = self.lower() + left;
        let residual = left - (lower - self.lower());
        *bins = Bins {
            upper: F::add_words(bins.upper, upper.bits()),
            lower: F::add_words(bins.lower, lower.bits()),
            outside: bins.outside | (upper.bits() ^ self.upper.bits()),
            residual: bins.residual | residual.bits(),
        };
        residual
    }

    /// The window of what elements of this one leave: they are at most half of the lower bin's unit.
    #[inline(always)]
    pub fn below(&self) -> Self {
        Self::new(self.exponent() - 2 * F::MANTISSA as i32)
    }

    /// What is left of an element that is in the window after both bins; 0 for most.
    #[inline(always)]
    pub fn residual(&self, element: F) -> F {
        let left = element - (self.upper + element - self.upper);
        left - (self.lower() + left - self.lower())
    }

    /// The sum of `count` elements, at most [`Window::CAPACITY`] of them, whose bins are exact, in units of the lower
    /// bin.
    #[inline(always)]
    pub fn drain(&self, upper: F::Word, lower: F::Word, count: u32) -> i128 {
        let upper = F::signed_difference(upper, self.upper.bits(), count);
        let lower = F::signed_difference(lower, self.lower().bits(), count);
        ((upper as i128) << F::MANTISSA) + lower as i128
    }

    /// How far the lower bin's unit is above the least subnormal number, in powers of two.
    #[inline(always)]
    pub fn position(&self) -> u32 {
        // upper's unit is 2^(exponent + 1 - p), the lower bin's 2^-p of it.
        (self.exponent() - Self::LOWEST) as u32
    }
}

/// Integers of two bins, as sums of the bits of floats, and what did not go into them.
#[derive(Clone, Copy, Debug)]
pub struct Bins<F: Binary> {
    /// The sum of `bits(upper constant + element)`, modulo the word.
    pub upper: F::Word,
    /// The sum of `bits(lower constant + what was left)`, modulo the word.
    pub lower: F::Word,
    outside: F::Word,
    residual: F::Word,
}

impl<F: Binary> Bins<F> {
    /// Of no elements.
    pub const EMPTY: Self = Self { upper: F::ZERO, lower: F::ZERO, outside: F::ZERO, residual: F::ZERO };

    /// Those of elements that were all in the window and left nothing, by their sums.
    #[inline(always)]
    pub fn of_exact(upper: F::Word, lower: F::Word) -> Self {
        Self { upper, lower, ..Self::EMPTY }
    }

    /// Whether an element was not in the window: the bins mean nothing then.
    #[inline(always)]
    pub fn is_outside(&self) -> bool {
        self.outside & F::SIGN_AND_EXPONENT != F::ZERO
    }

    /// Whether an element left a residual: it is missing from the bins then.
    #[inline(always)]
    pub fn has_residual(&self) -> bool {
        // -0.0 is nothing.
        self.residual & !F::SIGN != F::ZERO
    }

    /// Whether the bins are the exact sum.
    #[inline(always)]
    pub fn is_exact(&self) -> bool {
        (self.outside & F::SIGN_AND_EXPONENT) | (self.residual & !F::SIGN) == F::ZERO
    }

    /// The bins of the elements of both.
    #[inline(always)]
    pub fn merge(self, other: Self) -> Self {
        Self {
            upper: F::add_words(self.upper, other.upper),
            lower: F::add_words(self.lower, other.lower),
            outside: self.outside | other.outside,
            residual: self.residual | other.residual,
        }
    }
}
