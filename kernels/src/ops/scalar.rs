//! The twelve element types, and the types in which each is summed and compared.

use cuda_std::bits::{HAS_U16X2_MIN_MAX, add_bytes, add_signed_bytes};
use cuda_std::float;
use cuda_std::prelude::*;
use half::{bf16, f16};

use super::totals::{Squares, Total};
use super::{bytes, lanes, tree};

/// A number that every operator accepts.
pub trait Scalar: Element {
    /// The type in which a few elements are added and multiplied: wide enough for 64 elements, and cheap.
    type Partial: Arithmetic;
    /// The output type of products, and of sums of integers.
    type Wide: Arithmetic + Ordered;
    /// The type in which elements are compared.
    type Ordered: Ordered;
    /// Two elements.
    type Pair: Plain;
    /// Whether products have the same bits in any order, as those of integers, which wrap, do.
    const IS_EXACT: bool;
    /// The bits that [`Scalar::flipped`] can flip: any of an integer, none of a float.
    const FLIPPABLE: u64;

    /// Converts exactly.
    fn partial(self) -> Self::Partial;
    /// The element with the bits of `flip` flipped that are [flippable](Scalar::FLIPPABLE).
    fn flipped(self, flip: u64) -> Self;
    /// The lowest of `LEN` elements, a power of two up to 16, each [`ordered`](Scalar::ordered) with `flip`.
    #[inline(always)]
    fn lowest<const LEN: usize>(elements: [Self; LEN], flip: u64) -> Self::Ordered {
        tree::<_, LEN>(|i| elements[i].ordered(flip), Ordered::minimum)
    }
    /// The highest of `LEN` elements, a power of two up to 16, each [`ordered`](Scalar::ordered) with `flip`.
    #[inline(always)]
    fn highest<const LEN: usize>(elements: [Self; LEN], flip: u64) -> Self::Ordered {
        tree::<_, LEN>(|i| elements[i].ordered(flip), Ordered::maximum)
    }
    /// Converts exactly.
    fn wide(partial: Self::Partial) -> Self::Wide;
    /// Converts exactly. Flips the sign of a float if `flip` has its bit. This late, it takes no instruction
    /// (one for `f64`).
    fn ordered(self, flip: u64) -> Self::Ordered;
    /// Inverts [`Scalar::ordered`] of a flipped element, and the flip. Gives the same bits for every NaN.
    fn from_ordered(ordered: Self::Ordered, flip: u64) -> Self;
    /// The pair of two elements.
    fn pair(first: Self, second: Self) -> Self::Pair;
    /// Whether it is not 0; true of NaN.
    fn is_nonzero(self) -> bool;
    /// Whether any of `LEN` elements, a power of two up to 16, is 0.
    #[inline(always)]
    fn has_zero<const LEN: usize>(elements: [Self; LEN]) -> bool {
        tree::<_, LEN>(|i| !elements[i].is_nonzero(), |a, b| a | b)
    }
    /// Whether any of `LEN` elements, a power of two up to 16, is not 0.
    #[inline(always)]
    fn has_nonzero<const LEN: usize>(elements: [Self; LEN]) -> bool {
        tree::<_, LEN>(|i| elements[i].is_nonzero(), |a, b| a | b)
    }
    /// Whether the bits of the magnitude are above `limit`, the bits of a magnitude that is not NaN. True of NaN. Of an
    /// integer: whether it is not 0.
    fn has_magnitude_above(self, limit: u64) -> bool;
}

/// A [`Scalar`] whose arithmetic wraps.
///
/// A long sum goes from `Self` to [`Scalar::Partial`], in which a thread adds what it holds in registers, and then to
/// [`Scalar::Wide`], in which all further sums are taken.
pub trait Integer: Scalar {
    /// The type of the sum of elements for a mean.
    type Total: Total + Into<i128>;
    /// The type of the sum of squares for a norm.
    type Squares: Squares;

    /// The neutral element of addition.
    const ZERO: Self;
    /// The neutral element of addition in [`Scalar::Wide`].
    const WIDE_ZERO: Self::Wide;
    /// The sum, wrapping.
    fn wrapping_plus(self, other: Self) -> Self;
    /// The exact sum of `LEN` elements, a power of two up to 16.
    fn sum<const LEN: usize>(elements: [Self; LEN]) -> Self::Partial;
    /// The exact sum of `LEN` elements, as a part of a longer sum.
    fn total<const LEN: usize>(elements: [Self; LEN]) -> Self::Total;
    /// The exact sum of the squares of `LEN` elements.
    fn squares<const LEN: usize>(elements: [Self; LEN]) -> Self::Squares;
}

/// Addition and multiplication. Integers wrap.
pub trait Arithmetic: Plain {
    /// The neutral element of multiplication.
    const ONE: Self;
    /// The sum.
    fn plus(self, other: Self) -> Self;
    /// The product.
    fn times(self, other: Self) -> Self;
}

/// A number in comparisons. NaN ranks before every other value in both a minimum and a maximum.
pub trait Ordered: Plain {
    /// No value is less.
    const LOWEST: Self;
    /// No value is more.
    const HIGHEST: Self;
    /// A pair of values.
    type Pair: Plain;
    /// [`Ordered::HIGHEST`] and [`Ordered::LOWEST`]: the neutral pair of a minimum and a maximum.
    const NEUTRAL_PAIR: Self::Pair;

    /// The smaller; NaN if either is; of zeros of both signs, -0.0.
    fn minimum(self, other: Self) -> Self;
    /// The larger; NaN if either is; of zeros of both signs, 0.0.
    fn maximum(self, other: Self) -> Self;
    /// Whether it is greater than `other`, or is NaN and `other` is not. Zeros are equal.
    fn is_above(self, other: Self) -> bool;
    /// [`Ordered::maximum`] of the values of elements in a host's memory, or [`Ordered::LOWEST`] of none.
    fn highest_of<T: Copy>(elements: &[T], value: impl Fn(T) -> Self) -> Self;
    /// [`Ordered::minimum`] of the values of elements in a host's memory, or [`Ordered::HIGHEST`] of none.
    fn lowest_of<T: Copy>(elements: &[T], value: impl Fn(T) -> Self) -> Self;
    /// Whether neither [is above](Ordered::is_above) the other.
    fn is_level(self, other: Self) -> bool;
    /// Gives every NaN the same bits; leaves other values as they are.
    fn with_canonical_nan(self) -> Self;
    /// A key that falls as the value rises; 0 for NaN, and equal for both zeros.
    fn descending_key(self) -> u64;
    /// The pair of two values.
    fn pair(first: Self, second: Self) -> Self::Pair;
    /// The two values of a pair.
    fn split(pair: Self::Pair) -> [Self; 2];
}

macro_rules! wrapping_arithmetic {
    ($($type:ident),*) => {$(
        impl Arithmetic for $type {
            const ONE: Self = 1;
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        }
    )*};
}

macro_rules! float_arithmetic {
    ($($type:ident),*) => {$(
        impl Arithmetic for $type {
            const ONE: Self = 1.0;
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self * other
            }
        }
    )*};
}

wrapping_arithmetic!(i32, u32, i64, u64);
float_arithmetic!(f32, f64);

macro_rules! ordered_integers {
    ($($type:ident as $unsigned:ident),*) => {$(
        impl Ordered for $type {
            const LOWEST: Self = Self::MIN;
            const HIGHEST: Self = Self::MAX;
            type Pair = [Self; 2];
            const NEUTRAL_PAIR: [Self; 2] = [Self::HIGHEST, Self::LOWEST];
            #[inline(always)]
            fn minimum(self, other: Self) -> Self {
                if other < self { other } else { self }
            }
            #[inline(always)]
            fn maximum(self, other: Self) -> Self {
                if other > self { other } else { self }
            }
            #[inline(always)]
            fn is_above(self, other: Self) -> bool {
                self > other
            }
            #[inline(always)]
            fn highest_of<T: Copy>(elements: &[T], value: impl Fn(T) -> Self) -> Self {
                lanes::reduce(elements, |_, element| value(element), Self::LOWEST, Ord::max)
            }
            #[inline(always)]
            fn lowest_of<T: Copy>(elements: &[T], value: impl Fn(T) -> Self) -> Self {
                lanes::reduce(elements, |_, element| value(element), Self::HIGHEST, Ord::min)
            }
            #[inline(always)]
            fn is_level(self, other: Self) -> bool {
                self == other
            }
            #[inline(always)]
            fn with_canonical_nan(self) -> Self {
                self
            }
            #[inline(always)]
            fn descending_key(self) -> u64 {
                (!(self ^ Self::MIN)) as $unsigned as u64
            }
            #[inline(always)]
            fn pair(first: Self, second: Self) -> [Self; 2] {
                [first, second]
            }
            #[inline(always)]
            fn split(pair: [Self; 2]) -> [Self; 2] {
                pair
            }
        }
    )*};
}

macro_rules! ordered_floats {
    ($($type:ident in $bits:ident, $signed:ident;)*) => {$(
        impl Ordered for $type {
            const LOWEST: Self = Self::NEG_INFINITY;
            const HIGHEST: Self = Self::INFINITY;
            type Pair = [Self; 2];
            const NEUTRAL_PAIR: [Self; 2] = [Self::HIGHEST, Self::LOWEST];
            #[inline(always)]
            fn minimum(self, other: Self) -> Self {
                float::Float::minimum(self, other)
            }
            #[inline(always)]
            fn maximum(self, other: Self) -> Self {
                float::Float::maximum(self, other)
            }
            #[inline(always)]
            #[expect(clippy::neg_cmp_op_on_partial_ord, reason = "NaN is above")]
            fn is_above(self, other: Self) -> bool {
                !(self <= other) & !other.is_nan()
            }
            #[inline(always)]
            fn highest_of<T: Copy>(elements: &[T], value: impl Fn(T) -> Self) -> Self {
                // As integers, because the compiler divides a maximum of integers among the lanes of vectors.
                let magnitude = |bits: $signed| bits & $signed::MAX;
                // Rises with the float: the magnitude of a negative number is flipped.
                let rising = |bits: $signed| bits ^ magnitude(bits >> ($bits::BITS - 1));
                let infinity = Self::INFINITY.to_bits() as $signed;
                let (mut highest, mut nans) = (rising(Self::LOWEST.to_bits() as $signed), 0);
                for &element in elements {
                    let bits = value(element).to_bits() as $signed;
                    highest = highest.max(rising(bits));
                    // Negative if the magnitude is that of NaN.
                    nans |= infinity - magnitude(bits);
                }
                if nans < 0 { Self::NAN } else { Self::from_bits(rising(highest) as $bits) }
            }
            #[inline(always)]
            fn lowest_of<T: Copy>(elements: &[T], value: impl Fn(T) -> Self) -> Self {
                -Self::highest_of(elements, |element| -value(element))
            }
            #[inline(always)]
            fn is_level(self, other: Self) -> bool {
                (self == other) | (self.is_nan() & other.is_nan())
            }
            #[inline(always)]
            fn with_canonical_nan(self) -> Self {
                if self.is_nan() { Self::NAN } else { self }
            }
            #[inline(always)]
            fn descending_key(self) -> u64 {
                // The bits of a float rise with a positive value and fall with a negative one. `0.0 - self` is 0.0 for
                // both zeros.
                let bits = (0.0 - self).to_bits() as $signed;
                let rising = (bits ^ (bits >> ($bits::BITS - 1) | $signed::MIN)) as $bits;
                if self.is_nan() { 0 } else { rising as u64 }
            }
            #[inline(always)]
            fn pair(first: Self, second: Self) -> [Self; 2] {
                [first, second]
            }
            #[inline(always)]
            fn split(pair: [Self; 2]) -> [Self; 2] {
                pair
            }
        }
    )*};
}

ordered_integers!(i8 as u8, u8 as u8, i16 as u16, u16 as u16, i32 as u32, u32 as u32, i64 as u64, u64 as u64);
ordered_floats! {
    f32 in u32, i32;
    f64 in u64, i64;
}

/// Sixteen bytes as the words that they form in memory; meaningless for fewer.
#[inline(always)]
fn words<const LEN: usize>(bytes: [u8; LEN]) -> [u32; 4] {
    let byte = |i: usize| bytes[i % LEN];
    let word = |i: usize| u32::from_le_bytes([byte(i), byte(i + 1), byte(i + 2), byte(i + 3)]);
    [word(0), word(4), word(8), word(12)]
}

macro_rules! integers {
    ($($type:ident by $partial:ident in $wide:ident, mean by $total:ident, norm by $squares:ty;)*) => {$(
        impl Scalar for $type {
            type Partial = $partial;
            type Wide = $wide;
            type Ordered = Self;
            type Pair = [Self; 2];
            const IS_EXACT: bool = true;
            const FLIPPABLE: u64 = u64::MAX;

            #[inline(always)]
            fn partial(self) -> $partial {
                self as $partial
            }
            #[inline(always)]
            fn flipped(self, flip: u64) -> Self {
                self ^ flip as Self
            }
            #[inline(always)]
            fn lowest<const LEN: usize>(elements: [Self; LEN], _flip: u64) -> Self {
                if HAS_U16X2_MIN_MAX && size_of::<Self>() == 1 && LEN == 16 {
                    return bytes::lowest(words(elements.map(|element| element as u8))) as Self;
                }
                tree::<_, LEN>(|i| elements[i], Ordered::minimum)
            }
            #[inline(always)]
            fn highest<const LEN: usize>(elements: [Self; LEN], _flip: u64) -> Self {
                if HAS_U16X2_MIN_MAX && size_of::<Self>() == 1 && LEN == 16 {
                    return bytes::highest(words(elements.map(|element| element as u8))) as Self;
                }
                tree::<_, LEN>(|i| elements[i], Ordered::maximum)
            }
            #[inline(always)]
            fn wide(partial: $partial) -> $wide {
                partial as $wide
            }
            #[inline(always)]
            fn ordered(self, _flip: u64) -> Self {
                self
            }
            #[inline(always)]
            fn from_ordered(ordered: Self, flip: u64) -> Self {
                ordered.flipped(flip)
            }
            #[inline(always)]
            fn pair(first: Self, second: Self) -> [Self; 2] {
                [first, second]
            }
            #[inline(always)]
            fn is_nonzero(self) -> bool {
                self != 0
            }
            #[inline(always)]
            fn has_zero<const LEN: usize>(elements: [Self; LEN]) -> bool {
                if size_of::<Self>() == 1 && LEN == 16 {
                    return bytes::has_zero(words(elements.map(|element| element as u8)));
                }
                tree::<_, LEN>(|i| elements[i] == 0, |a, b| a | b)
            }
            #[inline(always)]
            fn has_nonzero<const LEN: usize>(elements: [Self; LEN]) -> bool {
                if size_of::<Self>() == 1 && LEN == 16 {
                    let [a, b, c, d] = words(elements.map(|element| element as u8));
                    return a | b | c | d != 0;
                }
                tree::<_, LEN>(|i| elements[i], |a, b| a | b) != 0
            }
            #[inline(always)]
            fn has_magnitude_above(self, _limit: u64) -> bool {
                self != 0
            }
        }

        impl Integer for $type {
            type Total = $total;
            type Squares = $squares;
            const ZERO: Self = 0;
            const WIDE_ZERO: $wide = 0;
            #[inline(always)]
            fn wrapping_plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn sum<const LEN: usize>(elements: [Self; LEN]) -> $partial {
                if size_of::<Self>() == 1 && LEN == 16 {
                    let [a, b, c, d] = words(elements.map(|element| element as u8));
                    let add = |sum: u32, word: u32| {
                        if Self::MIN == 0 { add_bytes(word, sum) } else { add_signed_bytes(word, sum as i32) as u32 }
                    };
                    return add(add(add(add(0, a), b), c), d) as $partial;
                }
                tree::<_, LEN>(|i| elements[i].partial(), Arithmetic::plus)
            }
            #[inline(always)]
            fn total<const LEN: usize>(elements: [Self; LEN]) -> $total {
                if size_of::<Self>() == 8 {
                    return tree::<_, LEN>(|i| elements[i] as $total, Total::plus);
                }
                Self::sum(elements) as $total
            }
            #[inline(always)]
            fn squares<const LEN: usize>(elements: [Self; LEN]) -> $squares {
                let magnitude = |i: usize| elements[i].abs_diff(0);
                // In the narrowest type that fits: a vector holds many short elements.
                let short = |i: usize| (magnitude(i) as u32).wrapping_mul(magnitude(i) as u32);
                match size_of::<Self>() {
                    1 => Squares::from_u64(tree::<_, LEN>(short, u32::wrapping_add).into()),
                    2 => Squares::from_u64(tree::<_, LEN>(|i| u64::from(short(i)), u64::wrapping_add)),
                    _ => tree::<_, LEN>(|i| Squares::square(magnitude(i) as u64), Total::plus),
                }
            }
        }
    )*};
}

integers! {
    i8 by i32 in i64, mean by i64, norm by u64;
    u8 by u32 in u64, mean by i64, norm by u64;
    i16 by i32 in i64, mean by i64, norm by u128;
    u16 by u32 in u64, mean by i64, norm by u128;
    // 2^32 elements of 32 bits, or squares of elements of 16 bits, overflow a sum of 64 bits.
    i32 by i64 in i64, mean by i128, norm by u128;
    u32 by u64 in u64, mean by i128, norm by u128;
    i64 by i64 in i64, mean by i128, norm by [u64; 4];
    u64 by u64 in u64, mean by i128, norm by [u64; 4];
}

macro_rules! floats {
    ($($type:ident of bits $bits:ident in $wide:ident, to $to:expr, from $from:expr;)*) => {$(
        impl Scalar for $type {
            type Partial = $wide;
            type Wide = $wide;
            type Ordered = $wide;
            type Pair = [Self; 2];
            const IS_EXACT: bool = false;
            const FLIPPABLE: u64 = 0;

            #[inline(always)]
            fn partial(self) -> $wide {
                ($to)(self)
            }
            #[inline(always)]
            fn wide(partial: $wide) -> $wide {
                partial
            }
            #[inline(always)]
            fn flipped(self, _flip: u64) -> Self {
                self
            }
            #[inline(always)]
            fn ordered(self, flip: u64) -> $wide {
                let element = ($to)(self);
                if flip >> ($bits::BITS - 1) & 1 == 1 { float::Float::negative(element) } else { element }
            }
            #[inline(always)]
            fn from_ordered(ordered: $wide, flip: u64) -> Self {
                // Devices differ in the NaN that a conversion produces.
                if ordered.is_nan() {
                    return Self::NAN;
                }
                ($from)(if flip >> ($bits::BITS - 1) & 1 == 1 { -ordered } else { ordered })
            }
            #[inline(always)]
            fn pair(first: Self, second: Self) -> [Self; 2] {
                [first, second]
            }
            #[inline(always)]
            fn is_nonzero(self) -> bool {
                // All bits but the sign.
                self.to_bits() << 1 != 0
            }
            #[inline(always)]
            #[expect(clippy::neg_cmp_op_on_partial_ord, reason = "NaN is above")]
            fn has_magnitude_above(self, limit: u64) -> bool {
                // `f32` and `f64` are compared as floats, in one instruction. `f16` and `bf16` share a kernel, so their
                // bits are compared.
                if size_of::<Self>() == 2 {
                    return self.to_bits() & !(1 << ($bits::BITS - 1)) > limit as $bits;
                }
                let magnitude = ($to)(Self::from_bits(self.to_bits() & !(1 << ($bits::BITS - 1))));
                !(magnitude <= ($to)(Self::from_bits(limit as $bits)))
            }
        }
    )*};
}

floats! {
    f16 of bits u16 in f32, to float::f32_from_f16, from float::f16_from_f32;
    bf16 of bits u16 in f32, to float::f32_from_bf16, from float::bf16_from_f32;
    f32 of bits u32 in f32, to |x| x, from |x: f32| x;
    f64 of bits u64 in f64, to |x| x, from |x: f64| x;
}
