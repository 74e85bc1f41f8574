//! Exact sums of floats, rounded once.
//!
//! A sum of floats is computed as a sum of integers, which is the same in any order; the result is rounded once, at the
//! end. This crate does not depend on GPUs: kernels, hosts and tests use the same functions.
//!
//! | part | contents |
//! |---|---|
//! | [`Window`] | extraction of an element into the integers of two bins: a dozen instructions, exact for most data |
//! | [`Accumulator`] | the bins of one window, in which a thread sums |
//! | [`digit`] | the digit of an integer in a given limb |
//! | [`Compact`] | the state that threads and blocks exchange: an integer and its position |
//! | [`HighestBits`] | what one rounding needs of a sum whose parts come from the highest downwards |
//! | [`Limbs`] | a superaccumulator: holds any sum, for values that fit nowhere else |
//! | [`Elements`], [`Matrix`] | views of elements in memory, at any stride and address |
//! | `ColumnSums` | the exact sum of each column of a matrix |
//! | [`round`] | the single rounding, also of a mean and of a norm |
//! | [`integers`] | means and norms of integers |
//! | [`words`] | sums as integers that engines for several processes add |
#![no_std]

#[cfg(feature = "host")]
extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

mod accumulator;
mod binary;
#[cfg(feature = "host")]
pub mod bytes;
#[cfg(feature = "host")]
mod columns;
mod compact;
mod digit;
mod elements;
mod highest_bits;
pub mod integers;
mod limbs;
mod parts;
pub mod round;
#[doc(hidden)]
pub mod simd;
mod slices;
mod stream;
mod sum;
mod window;
pub mod words;

pub use accumulator::Accumulator;
pub use binary::Binary;
#[cfg(feature = "host")]
pub use columns::ColumnSums;
pub use compact::{Compact, Outcome, Specials};
pub use digit::{digit, digit_of_i128};
pub use elements::{DifferentLengths, Elements, ElementsError, Matrix};
pub use highest_bits::HighestBits;
pub use limbs::{Leading, Limbs};
pub use round::Rounded;
pub use sum::{
    DOUBLE_LIMBS, DOUBLE_PRODUCT_LIMBS, ExactDot, ExactSum, MAX_ELEMENTS, SINGLE_LIMBS, SINGLE_PRODUCT_LIMBS, Summand,
    Superaccumulator, TooManyElements,
};
pub use window::{Bins, Window};
