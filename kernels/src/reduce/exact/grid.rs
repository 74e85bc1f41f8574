//! The fixed-point formats of sums, which do not depend on the windows in which the sums were computed.

use cuda_std::prelude::*;
use exact_sum::{Binary, DOUBLE_LIMBS, DOUBLE_PRODUCT_LIMBS, SINGLE_LIMBS, SINGLE_PRODUCT_LIMBS, Window};

use super::format::Format;
use super::superaccumulator_words::{MAX_WARPS, OTHER_WORDS, SharedWords};

/// A unit of which all terms are multiples, and limbs that hold all of their sums.
pub trait Grid: Copy + 'static {
    /// The format in which terms are extracted.
    type Format: Format;
    /// The exponent of the unit, a power of two.
    const UNIT: i32;
    /// The magnitudes of all finite terms are below this power of two.
    const MAX_EXPONENT: i32;
    /// The number of 32-bit limbs that hold any sum.
    const LIMBS: u32;
    /// Storage for the words of all warps of a block.
    type Words: SharedWords;
    /// Whether terms come in pairs: a rounded product, and its rounding error.
    const HAS_LOW: bool = false;

    /// The exponent of the lowest window: the unit of its lower bin is the grid's.
    const LOWEST: i32 = Self::UNIT + 2 * <Self::Format as Binary>::MANTISSA as i32 - 1;

    /// The window of terms below `2^exponent`, or the nearest one.
    #[inline(always)]
    fn window(exponent: i32) -> Window<Self::Format> {
        Window::new(if exponent < Self::LOWEST { Self::LOWEST } else { exponent })
    }

    /// The position of a window: its integers are in units of the grid's unit times `2^position`.
    #[inline(always)]
    fn position(window: Window<Self::Format>) -> u32 {
        (window.exponent() - Self::LOWEST) as u32
    }

    /// The window of second terms, for one of first terms: lower by a mantissa.
    #[inline(always)]
    fn window_of_low(window: Window<Self::Format>) -> Window<Self::Format> {
        Self::window(window.exponent() - <Self::Format as Binary>::MANTISSA as i32)
    }

    /// The window of the residuals of terms in this one.
    #[inline(always)]
    fn below(window: Window<Self::Format>) -> Window<Self::Format> {
        Self::window(window.exponent() - 2 * <Self::Format as Binary>::MANTISSA as i32)
    }
}

macro_rules! grids {
    (pairs) => {
        true
    };
    ($(
        $(#[$doc:meta])*
        $name:ident: $format:ident, $unit:literal, below $top:literal, $limbs:expr $(, $low:ident)?;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name;

        impl Grid for $name {
            type Format = $format;
            const UNIT: i32 = $unit;
            const MAX_EXPONENT: i32 = $top;
            const LIMBS: u32 = $limbs as u32;
            $(const HAS_LOW: bool = grids!($low);)?
            type Words = SharedArray<i64, { MAX_WARPS * ($limbs + OTHER_WORDS) }>;
        }

        // Limbs hold any 128-bit integer with its sign in units of the highest window, and in units of long partials,
        // which are up to 2^48 times as large.
        const _: () = {
            let shift = if <$format as Format>::HAS_BELOW { 0 } else { 48 };
            let highest = Window::<$format>::HIGHEST;
            let highest = if $top < highest { $top } else { highest };
            assert!((highest - <$name as Grid>::LOWEST + shift) / 32 + 4 < $limbs as i32);
        };
    )*};
}

grids! {
    /// `f32`, and formats that are exact in it.
    Singles: f32, -149, below 128, SINGLE_LIMBS + 1;
    /// Products of two `f32`, exact as `f64`.
    SingleProducts: f64, -298, below 256, SINGLE_PRODUCT_LIMBS + 1;
    /// `f64`.
    Doubles: f64, -1074, below 1024, DOUBLE_LIMBS;
    /// Products of two `f64`, as one or two `f64`, and as integers if they are out of range.
    DoubleProducts: f64, -2148, below 2048, DOUBLE_PRODUCT_LIMBS + 1, pairs;
}
