//! Questions about each element, and how many say yes.

use super::scalar::{Float, Scalar};
use super::{Operator, tree};

/// Whether some element is not 0. NaN is not 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Any;

/// Whether no element is 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct All;

/// How many elements are not 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct CountNonzero;

/// How many elements are NaN.
#[derive(Clone, Copy, Debug, Default)]
pub struct CountNan;

/// How many elements are neither NaN nor infinite.
#[derive(Clone, Copy, Debug, Default)]
pub struct CountFinite;

impl<T: Scalar> Operator<T> for Any {
    type State = u8;
    type Output = u8;
    const NEUTRAL: u8 = 0;
    const ANY_ORDER: bool = true;

    #[inline(always)]
    fn lift(element: T, _index: u64) -> u8 {
        u8::from(element.is_nonzero())
    }
    #[inline(always)]
    fn combine(a: u8, b: u8) -> u8 {
        a | b
    }
    #[inline(always)]
    fn finish(state: u8, _count: u64) -> u8 {
        state
    }
}

impl<T: Scalar> Operator<T> for All {
    type State = u8;
    type Output = u8;
    const NEUTRAL: u8 = 1;
    const ANY_ORDER: bool = true;

    #[inline(always)]
    fn lift(element: T, _index: u64) -> u8 {
        u8::from(element.is_nonzero())
    }
    #[inline(always)]
    fn combine(a: u8, b: u8) -> u8 {
        a & b
    }
    #[inline(always)]
    fn finish(state: u8, _count: u64) -> u8 {
        state
    }
}

impl<T: Scalar> Operator<T> for CountNonzero {
    type State = u64;
    type Output = u64;
    const NEUTRAL: u64 = 0;
    const ANY_ORDER: bool = true;

    #[inline(always)]
    fn lift(element: T, _index: u64) -> u64 {
        u64::from(element.is_nonzero())
    }
    #[inline(always)]
    fn combine(a: u64, b: u64) -> u64 {
        a + b
    }
    #[inline(always)]
    fn finish(state: u64, _count: u64) -> u64 {
        state
    }
    #[inline(always)]
    fn gather<const LEN: usize>(elements: [T; LEN], _at: impl Fn(usize) -> u64) -> u64 {
        u64::from(tree::<_, LEN>(|i| u32::from(elements[i].is_nonzero()), |a, b| a + b))
    }
}

impl<T: Float> Operator<T> for CountNan {
    type State = u64;
    type Output = u64;
    const NEUTRAL: u64 = 0;
    const ANY_ORDER: bool = true;

    #[inline(always)]
    fn lift(element: T, _index: u64) -> u64 {
        u64::from(element.is_nan())
    }
    #[inline(always)]
    fn combine(a: u64, b: u64) -> u64 {
        a + b
    }
    #[inline(always)]
    fn finish(state: u64, _count: u64) -> u64 {
        state
    }
    #[inline(always)]
    fn gather<const LEN: usize>(elements: [T; LEN], _at: impl Fn(usize) -> u64) -> u64 {
        u64::from(tree::<_, LEN>(|i| u32::from(elements[i].is_nan()), |a, b| a + b))
    }
}

impl<T: Float> Operator<T> for CountFinite {
    type State = u64;
    type Output = u64;
    const NEUTRAL: u64 = 0;
    const ANY_ORDER: bool = true;

    #[inline(always)]
    fn lift(element: T, _index: u64) -> u64 {
        u64::from(element.is_finite())
    }
    #[inline(always)]
    fn combine(a: u64, b: u64) -> u64 {
        a + b
    }
    #[inline(always)]
    fn finish(state: u64, _count: u64) -> u64 {
        state
    }
    #[inline(always)]
    fn gather<const LEN: usize>(elements: [T; LEN], _at: impl Fn(usize) -> u64) -> u64 {
        u64::from(tree::<_, LEN>(|i| u32::from(elements[i].is_finite()), |a, b| a + b))
    }
}
