//! What sums of integers, and of their squares and means in `f64`, are held in.

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
floats!(f64);

#[cfg(test)]
mod tests {
    use super::Accumulator;

    #[test]
    fn what_rounding_takes_comes_back() {
        let held = [1e17, 1.0, 1.0, -1e17].into_iter().fold(f64::NEUTRAL, |sum, x: f64| f64::add(sum, x.held()));
        assert_eq!(f64::total_of(held, 4), 2.0);
        assert_eq!(f64::total_of(f64::NEUTRAL, 0).to_bits(), 0);
    }
}
