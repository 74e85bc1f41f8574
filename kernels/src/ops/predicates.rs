//! Predicates on elements, and counts of the elements that satisfy them.

use super::scalar::Scalar;
use super::{Fixed, Operator, lanes, tree};

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

/// [`Any`] or [`All`].
#[derive(Clone, Copy, Debug, Default)]
pub struct AnyOrAll {
    /// Whether it is [`All`].
    pub is_all: bool,
}

/// [`CountNonzero`], [`CountNan`] or [`CountFinite`]; of integers always [`CountNonzero`], whatever the fields.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    /// A float counts if the bits of its magnitude are above this limit. The limit has no sign bit, so bit 63 of the
    /// operator's word holds `is_at_most`.
    pub limit: u64,
    /// Whether the elements up to the limit count instead.
    pub is_at_most: bool,
}

/// [`CountNonzero`] of floats: [`Count`] with a limit of 0, in kernels of its own.
pub type CountNonzeroFloats = Fixed<Count, 0>;

/// The state for whether some element is 0, and whether some element is not.
#[inline(always)]
fn seen(zero: bool, nonzero: bool) -> u8 {
    u8::from(zero) | u8::from(nonzero) << 1
}

impl<T: Scalar> Operator<T> for AnyOrAll {
    /// Bit 0: whether any element is 0. Bit 1: whether any element is not.
    type State = u8;
    type Output = u8;
    const NEUTRAL: u8 = 0;
    const ANY_ORDER: bool = true;
    const USES_INDEX: bool = false;

    fn to_word(self) -> u64 {
        self.is_all.into()
    }
    #[inline(always)]
    fn from_word(word: u64) -> Self {
        Self { is_all: word != 0 }
    }
    #[inline(always)]
    fn lift(self, element: T, _index: u64) -> u8 {
        seen(!element.is_nonzero(), element.is_nonzero())
    }
    #[inline(always)]
    fn combine(a: u8, b: u8) -> u8 {
        a | b
    }
    #[inline(always)]
    fn finish(self, state: u8, _count: u64) -> u8 {
        if self.is_all { u8::from(state & 1 == 0) } else { state >> 1 }
    }
    #[inline(always)]
    fn reduce_elements<const LEN: usize>(self, elements: [T; LEN], _index_of: impl Fn(usize) -> u64) -> u8 {
        seen(T::has_zero(elements), T::has_nonzero(elements))
    }
    /// In flags of the elements' size, which a vector compares without converting them.
    #[inline(always)]
    fn fold_slice(self, state: u8, elements: &[T], _index_of: impl Fn(usize) -> u64) -> u8 {
        let flags = |_: usize, x: T| <Self as Operator<T>>::lift(self, x, 0);
        state
            | match size_of::<T>() {
                8 => lanes::reduce(elements, |i, x| u64::from(flags(i, x)), 0, |a, b| a | b) as u8,
                4 => lanes::reduce(elements, |i, x| u32::from(flags(i, x)), 0, |a, b| a | b) as u8,
                2 => lanes::reduce(elements, |i, x| u16::from(flags(i, x)), 0, |a, b| a | b) as u8,
                _ => lanes::reduce(elements, flags, 0, |a, b| a | b),
            }
    }
    #[inline(always)]
    fn is_settled(self, state: u8) -> bool {
        state & if self.is_all { 1 } else { 2 } != 0
    }
}

impl<T: Scalar> Operator<T> for Count {
    type State = u64;
    type Output = u64;
    const NEUTRAL: u64 = 0;
    const ANY_ORDER: bool = true;
    const USES_INDEX: bool = false;

    fn to_word(self) -> u64 {
        self.limit | u64::from(self.is_at_most) << 63
    }
    #[inline(always)]
    fn from_word(word: u64) -> Self {
        Self { limit: word & !(1 << 63), is_at_most: word >> 63 != 0 }
    }
    #[inline(always)]
    fn lift(self, element: T, _index: u64) -> u64 {
        u64::from(element.has_magnitude_above(self.limit))
    }
    #[inline(always)]
    fn combine(a: u64, b: u64) -> u64 {
        a + b
    }
    #[inline(always)]
    fn finish(self, state: u64, count: u64) -> u64 {
        if self.is_at_most { count - state } else { state }
    }
    #[inline(always)]
    fn reduce_elements<const LEN: usize>(self, elements: [T; LEN], _index_of: impl Fn(usize) -> u64) -> u64 {
        u64::from(tree::<_, LEN>(|i| u32::from(elements[i].has_magnitude_above(self.limit)), |a, b| a + b))
    }
}
