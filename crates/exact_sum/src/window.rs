//! A window: two bins below a power of two, the fast path of a sum.

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
/// minus those of `M`, are the integer nearest to `x` in units of `M`'s last place. The residual, `x - (M + x - M)`, is
/// exact, and is added to the next bin in the same way. So sums of the *bits* are sums of integers, in any order.
///
/// Why the residual is exact: let `u` be the upper unit, and `|x| <= 2^exponent`. The rounded `M + x` is in the binade
/// of `M`, whose floats are the multiples of `u`, so it is at most `u / 2` from the exact sum. `(M + x) - M` is a
/// multiple of `u` below `2^(p-1) u`, so it is a float. The residual is at most `u / 2` in magnitude, and a multiple of
/// the unit in the last place of `x`, so it is a float too (by Sterbenz's lemma if `x` and `(M + x) - M` are close,
/// else because it has few enough bits). The same holds for the lower bin, whose constant is 1.5 times `u`.
///
/// An element outside the window changes the sign or the exponent of `M + x` ([`Bins::is_outside`]), as do NaN and
/// infinities. An element with bits below the lower unit leaves a nonzero residual ([`Bins::has_residual`]); an element
/// of at least `2^(exponent - p + 1)` never does.
///
/// Source: Rump, Ogita, Oishi, "Accurate Floating-Point Summation, Part I", SIAM J. Sci. Comput. 31 (2008),
/// `ExtractScalar`; Demmel, Ahrens, Nguyen, "Efficient Reproducible Floating Point Summation and BLAS",
/// UCB/EECS-2016-121, for bins of integers.
#[derive(Clone, Copy, Debug)]
pub struct Window<F: Binary> {
    /// The constant of the upper bin; the lower bin's constant is `2^-p` times it.
    upper: F,
}

impl<F: Binary> Window<F> {
    /// The lowest window: the lower bin's unit is the smallest subnormal number.
    pub const LOWEST: i32 = F::MIN_EXPONENT + F::MANTISSA as i32 - 1;

    /// The highest window: `upper` plus an element that is rounded up to the window's edge is finite.
    pub const HIGHEST: i32 = F::MAX_EXPONENT - 3;

    /// The maximum number of elements in the bins before they are [drained](Window::drain). Each adds an integer of at
    /// most `2^(p-1)` in magnitude, and the sum of these must fit in a signed word.
    pub const CAPACITY: u32 = F::EXTRACTIONS;

    /// The window for elements below `2^exponent`, clamped to the range of windows.
    #[inline(always)]
    pub fn new(exponent: i32) -> Self {
        Self { upper: F::one_and_a_half(Self::nearest(exponent) + 1) }
    }

    /// The exponent, clamped to the range of windows.
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

    /// The constant of the lower bin. A normal number, because no window is below [`Window::LOWEST`].
    #[inline(always)]
    fn lower(&self) -> F {
        self.upper.scaled_down()
    }

    /// The window's exponent.
    #[inline(always)]
    pub fn exponent(&self) -> i32 {
        self.upper.exponent() - 1
    }

    /// Adds an element to `bins`.
    #[inline(always)]
    pub fn extract(&self, bins: Bins<F>, element: F) -> Bins<F> {
        let (upper, left) = F::extract(self.upper, element);
        let (lower, residual) = F::extract(self.lower(), left);
        let (upper, residual) = (upper.bits(), residual.bits());
        Bins {
            upper: F::add_words(bins.upper, upper),
            lower: F::add_words(bins.lower, lower.bits()),
            outside: F::or_words(bins.outside, F::xor_words(upper, self.upper.bits())),
            residual: F::or_words(bins.residual, residual),
        }
    }

    /// [`Window::extract`] for an element that leaves no residual if it is in the window.
    #[inline(always)]
    pub fn extract_without_residual(&self, bins: Bins<F>, element: F) -> Bins<F> {
        let (upper, left) = F::extract(self.upper, element);
        let (upper, lower) = (upper.bits(), F::sum(self.lower(), left));
        Bins {
            upper: F::add_words(bins.upper, upper),
            lower: F::add_words(bins.lower, lower.bits()),
            outside: F::or_words(bins.outside, F::xor_words(upper, self.upper.bits())),
            ..bins
        }
    }

    /// Adds an element to `bins` as [`Window::extract`] does, and returns its residual: 0 for most.
    #[inline(always)]
    pub fn extract_with_residual(&self, bins: &mut Bins<F>, element: F) -> F {
        let (upper, left) = F::extract(self.upper, element);
        let (lower, residual) = F::extract(self.lower(), left);
        let upper = upper.bits();
        *bins = Bins {
            upper: F::add_words(bins.upper, upper),
            lower: F::add_words(bins.lower, lower.bits()),
            outside: F::or_words(bins.outside, F::xor_words(upper, self.upper.bits())),
            residual: F::or_words(bins.residual, residual.bits()),
        };
        residual
    }

    /// The window for residuals of this one, which are at most half of the lower bin's unit.
    #[inline(always)]
    pub fn below(&self) -> Self {
        Self::new(self.exponent() - 2 * F::MANTISSA as i32)
    }

    /// The sum of `count` elements, at most [`Window::CAPACITY`], from their exact bins, in units of the lower bin.
    #[inline(always)]
    pub fn drain(&self, upper: F::Word, lower: F::Word, count: u32) -> i128 {
        let upper = F::signed_difference(upper, self.upper.bits(), count);
        let lower = F::signed_difference(lower, self.lower().bits(), count);
        ((upper as i128) << F::MANTISSA) + lower as i128
    }

    /// The position of the lower bin's unit, which is `2^position` times the smallest subnormal number.
    #[inline(always)]
    pub fn position(&self) -> u32 {
        // The upper unit is 2^(exponent + 1 - p), the lower unit 2^-p times it.
        (self.exponent() - Self::LOWEST) as u32
    }
}

/// The integers of two bins, as sums of the bits of floats, and flags for elements that do not fit.
#[derive(Clone, Copy, Debug)]
pub struct Bins<F: Binary> {
    /// The wrapping sum of `bits(upper constant + element)`.
    pub upper: F::Word,
    /// The wrapping sum of `bits(lower constant + residual)`.
    pub lower: F::Word,
    pub(crate) outside: F::Word,
    pub(crate) residual: F::Word,
}

impl<F: Binary> Bins<F> {
    /// The bins of no elements.
    pub const EMPTY: Self = Self { upper: F::ZERO, lower: F::ZERO, outside: F::ZERO, residual: F::ZERO };

    /// The bins of elements that were all in the window and left no residual, from their sums.
    #[inline(always)]
    pub fn of_exact(upper: F::Word, lower: F::Word) -> Self {
        Self { upper, lower, ..Self::EMPTY }
    }

    /// Whether an element was outside the window: the bins are then meaningless.
    #[inline(always)]
    pub fn is_outside(&self) -> bool {
        self.outside & F::SIGN_AND_EXPONENT != F::ZERO
    }

    /// Whether an element left a residual, which the bins then lack.
    #[inline(always)]
    pub fn has_residual(&self) -> bool {
        // A residual of -0.0 counts as 0.
        self.residual & !F::SIGN != F::ZERO
    }

    /// Whether the bins are the exact sum.
    #[inline(always)]
    pub fn is_exact(&self) -> bool {
        (self.outside & F::SIGN_AND_EXPONENT) | (self.residual & !F::SIGN) == F::ZERO
    }

    /// The same bins, with `map` applied to each word. An opaque `map` keeps the compiler from merging the additions
    /// with later ones.
    #[inline(always)]
    pub fn map_words(self, map: impl Fn(F::Word) -> F::Word) -> Self {
        Self {
            upper: map(self.upper),
            lower: map(self.lower),
            outside: map(self.outside),
            residual: map(self.residual),
        }
    }

    /// The bins of both sets of elements.
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
