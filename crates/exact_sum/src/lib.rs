//! Exact sums of floats, rounded once.
//!
//! A sum of floats is computed as a sum of integers, which is the same in any order; the result is rounded once, at the
//! end. Nothing here knows of GPUs: kernels, hosts and tests use the same functions.
//!
//! | part | what it is |
//! |---|---|
//! | [`Window`] | extraction of an element into the integers of two bins: a dozen instructions, exact for most data |
//! | [`Accumulator`] | what a thread sums in: bins of one window |
//! | [`digit`] | which part of an integer a limb holds |
//! | [`Compact`] | what threads and blocks exchange: an integer and its position |
//! | [`Limbs`] | a superaccumulator with room for any sum, for what has no room elsewhere |
//! | [`round`] | the one rounding, also of a mean and of a norm |
//! | [`integers`] | means and norms of integers |
#![no_std]

#[cfg(feature = "host")]
extern crate alloc;

mod accumulator;
mod binary;
#[cfg(feature = "host")]
pub mod bytes;
mod compact;
mod digit;
pub mod integers;
mod limbs;
mod parts;
pub mod round;
mod sum;
mod window;

pub use accumulator::Accumulator;
pub use binary::Binary;
pub use compact::{Compact, Outcome, Specials};
pub use digit::{digit, digit_of_long};
pub use limbs::{Leading, Limbs};
pub use round::Rounded;
pub use sum::{
    DOUBLE_LIMBS, DOUBLE_PRODUCT_LIMBS, ExactDot, ExactSum, MOST_ELEMENTS, SINGLE_LIMBS, SINGLE_PRODUCT_LIMBS, Summand,
    Superaccumulator, TooManyElements,
};
pub use window::{Bins, Window};
