//! The numbers that are reduced, and how they add.

use cuda_std::prelude::*;
use cuda_std::warp::WarpShuffleValue;

/// A number that the reductions sum.
pub trait Number: Element + WarpShuffleValue {
    /// What changes nothing when it is added, to the last bit.
    const NEUTRAL: Self;

    /// The sum. Of integers it wraps.
    fn plus(self, other: Self) -> Self;
}

impl Number for f32 {
    // Not 0.0: adding that to -0.0 gives 0.0.
    const NEUTRAL: Self = -0.0;

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self + other
    }
}

impl Number for i32 {
    const NEUTRAL: Self = 0;

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
}
