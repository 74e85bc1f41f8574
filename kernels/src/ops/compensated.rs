//! Sums that do not lose what rounding takes.

use cuda_std::prelude::*;

use super::scalar::{Arithmetic, Ordered};

/// A number that long sums are held in.
///
/// Integers wrap. A float is held as two: the rounded sum, and the sum of all that was rounded off. What is given out
/// is both together, so for an element with `d` additions on its way the error is
///
/// ```text
/// |computed - exact| <= u |exact| + (h u + 2 d² u²) Σ|x|        u: half the distance from 1 to the next float
/// ```
///
/// where `h`, at most 4, is the height of the plain tree in which a thread adds what it has in registers at once.
/// Pairwise summation of `n` elements has `log2(n) u Σ|x|`. One sum of `n` `f32` has `d` of some `20 + n / 2^21`, and
/// so have the columns of a matrix of `n`; a row or segment that a block folds, of which there are hundreds then, has
/// `20 + n / 2^11` at most. So `2 d² u²` is next to nothing, or for `f32` at least less than what pairwise summation
/// has more: for any sum that an H200 holds, for columns of matrices of 64 GiB, for rows of 2^24. Only of longer ones,
/// of which 528 are 32 GiB, is a bound for the worst case worse.
///
/// Source: Knuth, *The Art of Computer Programming*, volume 2, section 4.2.2, theorem B (the exact error of an
/// addition); Ogita, Rump, Oishi, "Accurate Sum and Dot Product", SIAM J. Sci. Comput. 26 (2005), algorithm 4.4 and its
/// bound.
pub trait Accumulator: Arithmetic + Ordered {
    /// The number as it is held.
    type State: Plain;
    /// What changes no sum, to the last bit.
    const NEUTRAL: Self::State;
    /// One number, held.
    fn held(self) -> Self::State;
    /// Both together.
    fn add(a: Self::State, b: Self::State) -> Self::State;
    /// What is given out for a sum of `count` numbers: of none 0, which is not what changes no sum.
    fn total_of(state: Self::State, count: u64) -> Self;
}

macro_rules! integers {
    ($($type:ident),*) => {$(
        impl Accumulator for $type {
            type State = Self;
            const NEUTRAL: Self = 0;
            #[inline(always)]
            fn held(self) -> Self {
                self
            }
            #[inline(always)]
            fn add(a: Self, b: Self) -> Self {
                a.wrapping_add(b)
            }
            #[inline(always)]
            fn total_of(state: Self, _count: u64) -> Self {
                state
            }
        }
    )*};
}

macro_rules! floats {
    ($($type:ident),*) => {$(
        impl Accumulator for $type {
            type State = [Self; 2];
            // Not 0.0: adding that to -0.0 gives 0.0.
            const NEUTRAL: [Self; 2] = [-0.0, 0.0];
            #[inline(always)]
            fn held(self) -> [Self; 2] {
                [self, 0.0]
            }
            #[inline(always)]
            fn add([a, lost_of_a]: [Self; 2], [b, lost_of_b]: [Self; 2]) -> [Self; 2] {
                let sum = a + b;
                let part_of_b = sum - a;
                let part_of_a = sum - part_of_b;
                let lost = (a - part_of_a) + (b - part_of_b);
                [sum, (lost_of_a + lost_of_b) + lost]
            }
            #[inline(always)]
            fn total_of([sum, lost]: [Self; 2], count: u64) -> Self {
                if count == 0 {
                    0.0
                } else if lost == 0.0 || !sum.is_finite() {
                    // Nothing lost: the sum may be -0.0. Not finite: what was lost is NaN.
                    sum.with_one_nan()
                } else {
                    sum + lost
                }
            }
        }
    )*};
}

integers!(i64, u64);
floats!(f32, f64);

#[cfg(test)]
mod tests {
    use super::Accumulator;

    fn sum(numbers: impl IntoIterator<Item = f32>) -> f32 {
        let held = numbers.into_iter().fold(f32::NEUTRAL, |sum, x| f32::add(sum, x.held()));
        f32::total_of(held, 1)
    }

    #[test]
    fn what_rounding_takes_comes_back() {
        assert_eq!(sum([1e8, 1.0, 1.0, -1e8]), 2.0);
        let exact = f64::from(0.1_f32) * f64::from(1 << 12);
        let found = f64::from(sum((0..1 << 12).map(|_| 0.1)));
        assert!((found - exact).abs() <= exact * f64::from(f32::EPSILON), "{found}, should be {exact}");
    }

    #[test]
    fn special_numbers_are_as_in_any_sum() {
        assert_eq!(sum([-0.0, -0.0]).to_bits(), (-0.0_f32).to_bits());
        assert_eq!(sum([-0.0, 0.0]).to_bits(), 0);
        assert_eq!(sum([1.0, f32::INFINITY, -1.0]), f32::INFINITY);
        assert_eq!(sum([f32::MAX, f32::MAX]), f32::INFINITY);
        assert!(sum([f32::INFINITY, f32::NEG_INFINITY]).is_nan());
        assert_eq!(sum([f32::from_bits(0xFF80_0001), 1.0]).to_bits(), f32::NAN.to_bits());
    }
}
