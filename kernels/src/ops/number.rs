//! The numbers that the rungs of the ladder sum.

use cuda_std::prelude::*;
use cuda_std::warp::WarpShuffleValue;

/// A number that the rungs of the ladder sum.
pub trait Number: Element + WarpShuffleValue {
    /// The neutral element of addition, to the last bit.
    const NEUTRAL: Self;

    /// The sum. Integers wrap.
    fn plus(self, other: Self) -> Self;
}

macro_rules! floats {
    ($($type:ty),*) => {$(
        impl Number for $type {
            // Not 0.0: adding that to -0.0 gives 0.0.
            const NEUTRAL: Self = -0.0;

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
        }
    )*};
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Number for $type {
            const NEUTRAL: Self = 0;

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
        }
    )*};
}

floats!(f32, f64);
integers!(i32, i64);
