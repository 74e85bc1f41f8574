//! Comparison of a value over the lanes of a warp (`match.sync`, sm_70 and later).

use crate::backend;

/// A value of 32 or 64 bits that lanes compare. Floats are compared by their bits: -0.0 does not match 0.0, and a NaN
/// matches itself.
pub trait WarpMatchValue: Copy + private::Sealed {
    /// The number of 32-bit words.
    #[doc(hidden)]
    const WORDS: usize;
    /// The value's bits.
    #[doc(hidden)]
    fn to_match_bits(self) -> u64;
}

mod private {
    pub trait Sealed {}
}

macro_rules! values {
    ($($type:ty, $words:literal, $bits:expr;)*) => {$(
        impl private::Sealed for $type {}
        impl WarpMatchValue for $type {
            const WORDS: usize = $words;
            #[inline(always)]
            fn to_match_bits(self) -> u64 {
                ($bits)(self)
            }
        }
    )*};
}

values! {
    u32, 1, u64::from;
    i32, 1, |value| u64::from(value as u32);
    f32, 1, |value: f32| u64::from(value.to_bits());
    u64, 2, |value| value;
    i64, 2, |value| value as u64;
    f64, 2, f64::to_bits;
}

/// The lanes of the mask whose `value` equals the caller's, as a mask (`match.any.sync`).
#[inline(always)]
#[track_caller]
pub fn warp_match_any<T: WarpMatchValue>(mask: u32, value: T) -> u32 {
    backend::match_any(mask, value.to_match_bits(), T::WORDS)
}

/// The lanes of the mask if `value` is the same in all of them, else `None` (`match.all.sync`).
#[inline(always)]
#[track_caller]
pub fn warp_match_all<T: WarpMatchValue>(mask: u32, value: T) -> Option<u32> {
    match backend::match_all(mask, value.to_match_bits(), T::WORDS) {
        0 => None,
        lanes => Some(lanes),
    }
}
