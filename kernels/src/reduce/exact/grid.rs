//! The fixed-point numbers that sums are, whatever windows they were made in.

use cuda_std::prelude::*;
use exact_sum::{Binary, DOUBLE_LIMBS, DOUBLE_PRODUCT_LIMBS, SINGLE_LIMBS, SINGLE_PRODUCT_LIMBS, Window};

use super::format::Format;
use super::rest::{MOST_WARPS, OTHER_WORDS, SharedWords};

/// A unit of which all terms are multiples, and limbs that have room for all of their sums.
pub trait Grid: Copy + 'static {
    /// The format that terms are extracted in.
    type Format: Format;
    /// The unit is this power of two.
    const UNIT: i32;
    /// Limbs of 32 bits that have room for any sum.
    const LIMBS: u32;
    /// Room for the words of all warps of a block.
    type Words: SharedWords;
    /// Whether terms come in pairs: a rounded product, and what rounding took.
    const HAS_LOW: bool = false;

    /// The exponent of the lowest window: the unit of its lower bin is the grid's.
    const LOWEST: i32 = Self::UNIT + 2 * <Self::Format as Binary>::MANTISSA as i32 - 1;

    /// The window of terms below `2^exponent`, or the nearest one.
    #[inline(always)]
    fn window(exponent: i32) -> Window<Self::Format> {
        Window::new(if exponent < Self::LOWEST { Self::LOWEST } else { exponent })
    }

    /// What a window's integers are in units of: the unit times this power of two.
    #[inline(always)]
    fn position(window: Window<Self::Format>) -> u32 {
        (window.exponent() - Self::LOWEST) as u32
    }

    /// The window of second terms beside one of the first: they are smaller by a mantissa.
    #[inline(always)]
    fn window_of_low(window: Window<Self::Format>) -> Window<Self::Format> {
        Self::window(window.exponent() - <Self::Format as Binary>::MANTISSA as i32)
    }

    /// The window of what terms leave that are in this one.
    #[inline(always)]
    fn below(window: Window<Self::Format>) -> Window<Self::Format> {
        Self::window(window.exponent() - 2 * <Self::Format as Binary>::MANTISSA as i32)
    }
}

macro_rules! grids {
    (pairs) => {
        true
    };
    ($($(#[$doc:meta])* $name:ident: $format:ident, $unit:literal, below $top:literal, $limbs:expr $(, $low:ident)?;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name;

        impl Grid for $name {
            type Format = $format;
            const UNIT: i32 = $unit;
            const LIMBS: u32 = $limbs as u32;
            $(const HAS_LOW: bool = grids!($low);)?
            type Words = SharedArray<i64, { MOST_WARPS * ($limbs + OTHER_WORDS) }>;
        }

        // Integers of 128 bits have all of their limbs, the sign's too: in units of the highest window, and of pieces,
        // whose units are up to 2^48 of that where they are long.
        const _: () = {
            let shift = if <$format as Format>::HAS_BELOW { 0 } else { 48 };
            assert!(($top - <$name as Grid>::LOWEST + shift) / 32 + 4 < $limbs as i32);
        };
    )*};
}

grids! {
    /// Of `f32`, and of what is exact in it.
    Singles: f32, -149, below 126, SINGLE_LIMBS + 1;
    /// Of products of two `f32`, as the `f64` that they are.
    SingleProducts: f64, -298, below 256, SINGLE_PRODUCT_LIMBS + 1;
    /// Of `f64`.
    Doubles: f64, -1074, below 1022, DOUBLE_LIMBS;
    /// Of products of two `f64`, as one or two `f64`, and as integers where they are beyond.
    DoubleProducts: f64, -2148, below 2048, DOUBLE_PRODUCT_LIMBS + 1, pairs;
}
