//! Exact sums on the host.

use core::fmt;

use half::{bf16, f16};

use crate::binary::Binary;
use crate::compact::{Compact, Outcome, Specials};
use crate::limbs::{Leading, Limbs};
use crate::round::{self, Rounded};

/// The maximum number of elements of a sum: the limbs can hold the sum of that many of the largest elements.
pub const MAX_ELEMENTS: u64 = 1 << 50;

/// [`Limbs`] of any length.
pub trait Superaccumulator: Copy + Default + fmt::Debug + Send + Sync {
    /// The number of limbs.
    const LEN: usize;
    /// [`Limbs::add`].
    fn add(&mut self, value: i128, position: u32);
    /// [`Limbs::merge`].
    fn merge(&mut self, other: &Self);
    /// [`Limbs::leading`].
    fn leading(&self) -> Leading;
    /// [`Limbs::propagate_carries`].
    fn propagate_carries(&mut self);
    /// [`Limbs::limb`].
    fn limb(&self, k: usize) -> i64;
    /// [`Limbs::set_limb`].
    fn set_limb(&mut self, k: usize, limb: i64);
    /// [`Limbs::add_to_limb`].
    fn add_to_limb(&mut self, k: usize, amount: i64);
}

impl<const N: usize> Superaccumulator for Limbs<N> {
    const LEN: usize = N;
    fn add(&mut self, value: i128, position: u32) {
        self.add(value, position);
    }
    fn merge(&mut self, other: &Self) {
        self.merge(other);
    }
    fn leading(&self) -> Leading {
        self.leading()
    }
    fn propagate_carries(&mut self) {
        self.propagate_carries();
    }
    fn limb(&self, k: usize) -> i64 {
        self.limb(k)
    }
    fn set_limb(&mut self, k: usize, limb: i64) {
        self.set_limb(k, limb);
    }
    fn add_to_limb(&mut self, k: usize, amount: i64) {
        self.add_to_limb(k, amount);
    }
}

/// A float that is summed exactly: `f16`, `bf16`, `f32` or `f64`.
pub trait Summand: Copy + Send + Sync {
    /// The format that represents it exactly, and in which it is decomposed.
    type Binary: Binary;
    /// The default result format: `f64` for `f64`, else `f32`.
    type Sum: Rounded;
    /// The limbs of a sum of elements.
    type Limbs: Superaccumulator;
    /// The limbs of a sum of products of two elements.
    type ProductLimbs: Superaccumulator;
    /// The type's code in a sum's bytes.
    const CODE: u8;
    /// Converts, exactly.
    fn to_binary(self) -> Self::Binary;
    /// The elements as they are, if [`Summand::Binary`] is their type.
    fn as_binary(elements: &[Self]) -> Option<&[Self::Binary]>;
    /// The element with these bytes, little-endian.
    ///
    /// # Panics
    /// If there are fewer bytes than an element has. Further bytes are ignored.
    fn from_le_bytes(bytes: &[u8]) -> Self;
}

/// Converts, exactly, without branches.
#[inline(always)]
fn f16_to_f32(number: f16) -> f32 {
    let bits = u32::from(number.to_bits());
    let (sign, magnitude) = ((bits & 0x8000) << 16, bits & 0x7FFF);
    // Of a normal number, the exponent's bias changes from 15 to 127.
    let normal = (magnitude << 13) + (112 << 23);
    // Subnormal numbers are multiples of 2^-24.
    let subnormal = (magnitude as i32 as f32 * f32::from_bits((127 - 24) << 23)).to_bits();
    let special = (magnitude << 13) | 0x7F80_0000;
    let magnitude = if magnitude < 0x0400 { subnormal } else { normal };
    let magnitude = if bits & 0x7C00 == 0x7C00 { special } else { magnitude };
    f32::from_bits(sign | magnitude)
}

/// Converts, exactly.
#[inline(always)]
fn bf16_to_f32(number: bf16) -> f32 {
    f32::from_bits(u32::from(number.to_bits()) << 16)
}

/// The exponent of a format's smallest subnormal number.
pub(crate) const fn unit<F: Binary>() -> i32 {
    F::MIN_EXPONENT - F::MANTISSA as i32
}

/// The exponent that bounds all finite magnitudes of a format, in units of its smallest subnormal number.
pub(crate) const fn width<F: Binary>() -> u32 {
    (F::MAX_EXPONENT - unit::<F>()) as u32
}

/// The number of 32-bit limbs for sums of up to [`MAX_ELEMENTS`] numbers below `2^width`, with a sign.
const fn limbs_for(width: u32) -> usize {
    (width + MAX_ELEMENTS.ilog2() + 1).div_ceil(32) as usize
}

/// Limbs for sums of `f32`, and of the types that `f32` represents exactly.
pub const SINGLE_LIMBS: usize = limbs_for(width::<f32>());
/// Limbs for sums of products of two `f32`.
pub const SINGLE_PRODUCT_LIMBS: usize = limbs_for(2 * width::<f32>());
/// Limbs for sums of `f64`.
pub const DOUBLE_LIMBS: usize = limbs_for(width::<f64>());
/// Limbs for sums of products of two `f64`.
pub const DOUBLE_PRODUCT_LIMBS: usize = limbs_for(2 * width::<f64>());

macro_rules! summands {
    ($($type:ident as $binary:ident, $limbs:ident, $products:ident, $code:literal, $to:expr, $as:expr;)*) => {$(
        impl Summand for $type {
            type Binary = $binary;
            type Sum = $binary;
            type Limbs = Limbs<$limbs>;
            type ProductLimbs = Limbs<$products>;
            const CODE: u8 = $code;
            #[inline(always)]
            fn to_binary(self) -> $binary {
                ($to)(self)
            }
            #[inline(always)]
            fn as_binary(elements: &[Self]) -> Option<&[$binary]> {
                ($as)(elements)
            }
            #[inline(always)]
            fn from_le_bytes(bytes: &[u8]) -> Self {
                let (element, _) = bytes.split_first_chunk().expect("enough bytes for an element");
                Self::from_le_bytes(*element)
            }
        }
    )*};
}

summands! {
    f16 as f32, SINGLE_LIMBS, SINGLE_PRODUCT_LIMBS, 1, f16_to_f32, |_| None;
    bf16 as f32, SINGLE_LIMBS, SINGLE_PRODUCT_LIMBS, 2, bf16_to_f32, |_| None;
    f32 as f32, SINGLE_LIMBS, SINGLE_PRODUCT_LIMBS, 3, |x| x, Some;
    f64 as f64, DOUBLE_LIMBS, DOUBLE_PRODUCT_LIMBS, 4, |x| x, Some;
}

/// The error of a sum of too many elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyElements {
    /// The number of elements that the sum would have.
    pub count: u64,
}

impl fmt::Display for TooManyElements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an exact sum of {} elements: the maximum is 2^50", self.count)
    }
}

impl core::error::Error for TooManyElements {}

/// The state that sums of elements and of products share.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct State<L> {
    pub limbs: L,
    pub specials: Specials,
    pub count: u64,
}

impl<L: Superaccumulator> State<L> {
    /// Counts further elements.
    pub fn count_elements(&mut self, len: usize) {
        let count = self.count.saturating_add(len as u64);
        if count > MAX_ELEMENTS {
            panic!("{}", TooManyElements { count });
        }
        self.count = count;
    }

    /// Adds an element, without counting it.
    #[inline]
    pub fn add<F: Binary>(&mut self, element: F) {
        let Some((integer, position)) = element.decompose() else {
            self.specials = self.specials.union(special(element));
            return;
        };
        let (limb, shift) = ((position / 32) as usize, position % 32);
        let above = integer >> (32 - shift);
        self.limbs.add_to_limb(limb, i64::from((integer << shift) as u32));
        if F::MANTISSA < 32 {
            self.limbs.add_to_limb(limb + 1, above);
        } else {
            self.limbs.add_to_limb(limb + 1, i64::from(above as u32));
            self.limbs.add_to_limb(limb + 2, above >> 32);
        }
    }

    /// Adds the product of two elements, without counting it.
    #[inline]
    pub fn add_product<F: Binary>(&mut self, x: F, y: F) {
        if let (Some((x, above)), Some((y, further))) = (x.decompose(), y.decompose()) {
            self.limbs.add(i128::from(x) * i128::from(y), above + further);
            return;
        }
        let special = if x.is_nan() || y.is_nan() || x.is_zero() || y.is_zero() {
            Specials::nan()
        } else {
            Specials::infinity(x.is_negative() != y.is_negative())
        };
        self.specials = self.specials.union(special);
    }

    fn merge(&mut self, other: &Self) -> Result<(), TooManyElements> {
        let count = self.count.saturating_add(other.count);
        if count > MAX_ELEMENTS {
            return Err(TooManyElements { count });
        }
        self.limbs.merge(&other.limbs);
        self.specials = self.specials.union(other.specials);
        self.count = count;
        Ok(())
    }

    fn rounded<R: Rounded>(&self, finite: impl FnOnce(Leading) -> R) -> R {
        match self.specials.outcome() {
            Outcome::Finite => finite(self.limbs.leading()),
            Outcome::Infinity { is_negative } => R::infinity(is_negative),
            Outcome::Nan => R::NAN,
        }
    }

    fn mean<R: Rounded>(&self, unit: i32) -> R {
        if self.count == 0 {
            return R::NAN;
        }
        self.rounded(|leading| R::round(round::divide(leading, self.count), unit))
    }

    /// The canonical state: equal sums have equal limbs and specials.
    pub fn canonical(mut self) -> Self {
        self.specials = self.specials.canonical();
        if self.specials.is_empty() {
            self.limbs.propagate_carries();
        } else {
            self.limbs = L::default();
        }
        self
    }
}

/// The exact sum of some elements. It does not depend on their order, or on how they were split into merged sums.
///
/// ```
/// use exact_sum::ExactSum;
///
/// let mut sum: ExactSum<f32> = [1e20, 1.0, -1e20, 3.0].into_iter().collect();
/// assert_eq!(sum.value(), 4.0);
///
/// // Partial sums are merged, in any order.
/// let other: ExactSum<f32> = [-3.0, 1e-30].into_iter().collect();
/// sum.merge(&other)?;
/// assert_eq!((sum.value(), sum.count()), (1.0, 6));
/// # Ok::<(), exact_sum::TooManyElements>(())
/// ```
///
/// NaN, or infinities of both signs, make the sum NaN; infinities of one sign make it that infinity. A sum overflows
/// only when it is rounded: the sum of `3e38, 3e38, -3e38, -3e38` is 0. A sum of 0 is 0.0, including the empty sum and
/// sums of -0.0.
#[derive(Clone, Copy, Debug)]
pub struct ExactSum<T: Summand> {
    pub(crate) state: State<T::Limbs>,
}

impl<T: Summand> Default for ExactSum<T> {
    fn default() -> Self {
        Self { state: State::default() }
    }
}

impl<T: Summand> ExactSum<T> {
    /// The empty sum.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an element.
    ///
    /// # Panics
    /// If the sum would have more than [`MAX_ELEMENTS`] elements, which only merged sums reach in practice.
    pub fn add(&mut self, element: T) {
        self.state.count_elements(1);
        self.state.add(element.to_binary());
    }

    /// Adds the elements of another sum.
    ///
    /// # Errors
    /// If the sum would have more than [`MAX_ELEMENTS`] elements; it is then unchanged.
    pub fn merge(&mut self, other: &Self) -> Result<(), TooManyElements> {
        self.state.merge(&other.state)
    }

    /// Adds the sum of `count` elements in the compact form that devices use: `value * 2^position`, in units of the
    /// smallest subnormal number of [`Summand::Binary`].
    ///
    /// # Errors
    /// If the sum would have more than [`MAX_ELEMENTS`] elements; it is then unchanged.
    pub fn add_compact<const BITS: u32>(&mut self, compact: Compact<BITS>, count: u64) -> Result<(), TooManyElements> {
        let mut other = Self::new();
        other.state.limbs.add(compact.value, compact.position);
        other.state.specials = compact.specials;
        other.state.count = count;
        self.merge(&other)
    }

    /// The number of elements.
    pub fn count(&self) -> u64 {
        self.state.count
    }

    /// The non-finite elements.
    pub fn specials(&self) -> Specials {
        self.state.specials
    }

    /// The sum, rounded once: to `f64` for `f64`, else to `f32`.
    pub fn value(&self) -> T::Sum {
        self.rounded()
    }

    /// The sum, rounded once to any format.
    pub fn rounded<R: Rounded>(&self) -> R {
        self.state.rounded(|leading| R::round(leading, unit::<T::Binary>()))
    }

    /// The mean: the exact sum divided by the count, rounded once. NaN if the sum is empty.
    pub fn mean<R: Rounded>(&self) -> R {
        self.state.mean(unit::<T::Binary>())
    }
}

/// The exact sum of products of two elements each: a dot product, or a sum of squares.
///
/// ```
/// use exact_sum::ExactDot;
///
/// let mut dot = ExactDot::<f64>::new();
/// for (x, y) in [(1e300, 1e300), (3.0, 4.0), (-1e300, 1e300)] {
///     dot.add(x, y);
/// }
/// assert_eq!(dot.value(), 12.0);
/// ```
///
/// The product of NaN and any number is NaN, as is the product of an infinity and 0; an infinity times another number
/// is an infinity.
#[derive(Clone, Copy, Debug)]
pub struct ExactDot<T: Summand> {
    pub(crate) state: State<T::ProductLimbs>,
}

impl<T: Summand> Default for ExactDot<T> {
    fn default() -> Self {
        Self { state: State::default() }
    }
}

impl<T: Summand> ExactDot<T> {
    /// The empty sum.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the product of two elements.
    ///
    /// # Panics
    /// If the sum would have more than [`MAX_ELEMENTS`] products, which only merged sums reach in practice.
    pub fn add(&mut self, x: T, y: T) {
        self.state.count_elements(1);
        self.state.add_product(x.to_binary(), y.to_binary());
    }

    /// Adds the products of another sum.
    ///
    /// # Errors
    /// If the sum would have more than [`MAX_ELEMENTS`] products; it is then unchanged.
    pub fn merge(&mut self, other: &Self) -> Result<(), TooManyElements> {
        self.state.merge(&other.state)
    }

    /// The number of products.
    pub fn count(&self) -> u64 {
        self.state.count
    }

    /// The sum, rounded once: to `f64` for `f64`, else to `f32`.
    pub fn value(&self) -> T::Sum {
        self.rounded()
    }

    /// The sum, rounded once to any format.
    pub fn rounded<R: Rounded>(&self) -> R {
        self.state.rounded(|leading| R::round(leading, 2 * unit::<T::Binary>()))
    }

    /// The square root of the sum, rounded once: for a sum of squares, the Euclidean norm. NaN if the sum is negative.
    pub fn sqrt<R: Rounded>(&self) -> R {
        if self.state.specials.outcome() == (Outcome::Infinity { is_negative: true }) {
            return R::NAN;
        }
        self.state.rounded(|leading| match leading.is_negative {
            true => R::NAN,
            false => R::round(round::root(leading, 2 * unit::<T::Binary>()), 0),
        })
    }
}

/// The set of a non-finite element.
pub(crate) fn special<F: Binary>(element: F) -> Specials {
    if element.is_nan() { Specials::nan() } else { Specials::infinity(element.is_negative()) }
}

macro_rules! sum_traits {
    ($($sum:ident from $item:ty, $add:expr, $limbs:ident;)*) => {$(
        /// Panics if the sum would have more than [`MAX_ELEMENTS`] elements, as `add` does.
        impl<T: Summand> Extend<$item> for $sum<T> {
            fn extend<I: IntoIterator<Item = $item>>(&mut self, elements: I) {
                elements.into_iter().for_each(|element| ($add)(self, element));
            }
        }

        impl<T: Summand> FromIterator<$item> for $sum<T> {
            fn from_iter<I: IntoIterator<Item = $item>>(elements: I) -> Self {
                let mut sum = Self::new();
                sum.extend(elements);
                sum
            }
        }

        /// Equality of sum and count.
        impl<T: Summand> PartialEq for $sum<T> {
            fn eq(&self, other: &Self) -> bool {
                let (a, b) = (self.state.canonical(), other.state.canonical());
                (a.specials, a.count) == (b.specials, b.count)
                    && (0..<T::$limbs as Superaccumulator>::LEN).all(|k| a.limbs.limb(k) == b.limbs.limb(k))
            }
        }

        /// Displays the rounded sum.
        impl<T: Summand<Sum: fmt::Display>> fmt::Display for $sum<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.value().fmt(f)
            }
        }
    )*};
}

sum_traits! {
    ExactSum from T, |sum: &mut Self, element| sum.add(element), Limbs;
    ExactDot from (T, T), |sum: &mut Self, (x, y)| sum.add(x, y), ProductLimbs;
}
