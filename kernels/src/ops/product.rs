//! Products.

use cuda_std::element::VectorVisitor;
use cuda_std::prelude::*;
use half::{bf16, f16};

use super::scalar::{Arithmetic, Ordered, Scalar};
use super::{Operator, four, tree};

/// The product: of integers in 64 bits, wrapping; of `f16` and `bf16` in `f32`.
///
/// The relative error of the product of `n` floats is at most `1.01 n u`, `u` being half the distance from 1 to the
/// next float: each multiplication rounds once. Only the result overflows or is subnormal, never a partial product, so
/// the product of 1e200, 1e200, 1e-200 and 1e-200 is 1, but for rounding. A product with a zero is a zero, with its sign; of a zero and an
/// infinity, and with NaN, it is NaN. The order is a function of `n`, the type, and whether the floats are contiguous, a
/// column, or a segment by offsets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Product;

impl<T: Factor> Operator<T> for Product {
    type State = T::Product;
    type Output = T::Wide;
    const NEUTRAL: T::Product = T::ONE;
    const ANY_ORDER: bool = T::IS_EXACT;
    const BYTES_OF_ORDER: usize = size_of::<T::Wide>();

    #[inline(always)]
    fn lift(self, element: T, _index: u64) -> T::Product {
        T::one_factor(element)
    }
    #[inline(always)]
    fn combine(a: T::Product, b: T::Product) -> T::Product {
        T::times(a, b)
    }
    #[inline(always)]
    fn finish(self, state: T::Product, _count: u64) -> T::Wide {
        T::result(state)
    }
    #[inline(always)]
    fn reduce_elements<const LEN: usize>(self, elements: [T; LEN], _index_of: impl Fn(usize) -> u64) -> T::Product {
        T::product(elements)
    }
    #[inline(always)]
    fn reduce_vectors<const VECTORS: usize>(
        self,
        vectors: [T::Vector; VECTORS],
        _index_of: impl Fn(usize) -> u64,
    ) -> T::Product {
        T::product_of_vectors(vectors)
    }
}

/// An element that products take.
pub trait Factor: Scalar {
    /// A product of some elements.
    type Product: Plain;
    /// The product of no elements.
    const ONE: Self::Product;

    /// The product of one element.
    fn one_factor(self) -> Self::Product;
    /// The product of `LEN` elements, a power of two up to 16.
    fn product<const LEN: usize>(elements: [Self; LEN]) -> Self::Product;
    /// The product of the elements of several vectors.
    fn product_of_vectors<const VECTORS: usize>(vectors: [Self::Vector; VECTORS]) -> Self::Product;
    /// The product of two products.
    fn times(a: Self::Product, b: Self::Product) -> Self::Product;
    /// The result.
    fn result(product: Self::Product) -> Self::Wide;
}

/// The product of a vector's elements.
struct ProductOfVector;

impl<T: Factor> VectorVisitor<T> for ProductOfVector {
    type Result = T::Product;

    #[inline(always)]
    fn elements<const LEN: usize>(self, elements: [T; LEN]) -> T::Product {
        T::product(elements)
    }
}

macro_rules! integers {
    ($($type:ident)*) => {$(
        impl Factor for $type {
            type Product = Self::Wide;
            const ONE: Self::Wide = <Self::Wide as Arithmetic>::ONE;

            #[inline(always)]
            fn one_factor(self) -> Self::Wide {
                Self::wide(self.partial())
            }
            #[inline(always)]
            fn product<const LEN: usize>(elements: [Self; LEN]) -> Self::Wide {
                tree::<_, LEN>(|i| Self::wide(elements[i].partial()), Arithmetic::times)
            }
            #[inline(always)]
            fn product_of_vectors<const VECTORS: usize>(vectors: [Self::Vector; VECTORS]) -> Self::Wide {
                tree::<_, VECTORS>(|k| vectors[k].visit(ProductOfVector), Arithmetic::times)
            }
            #[inline(always)]
            fn times(a: Self::Wide, b: Self::Wide) -> Self::Wide {
                Arithmetic::times(a, b)
            }
            #[inline(always)]
            fn result(product: Self::Wide) -> Self::Wide {
                product
            }
        }
    )*};
}

integers!(i8 i16 i32 i64 u8 u16 u32 u64);

/// A float in which products of floats are taken.
trait Significand: Arithmetic + Ordered {
    /// The exponent's field of 1.
    const BIAS: i32;
    /// The exponent's field of infinities and NaN.
    const LAST_FIELD: u32;
    /// Products below `2^LOG2_LIMIT` can be multiplied with each other without overflow.
    const LOG2_LIMIT: i32;

    /// The exponent's field: 0 of zeros and subnormal numbers.
    fn field(self) -> u32;
    /// The number with the exponent 0, if it is normal.
    fn significand(self) -> Self;
    /// Whether it is finite, and not 0.
    fn is_finite_nonzero(self) -> bool;
    /// The number times 2 to the power of `exponent`, which is in the range of exponents of normal numbers.
    fn scaled(self, exponent: i32) -> Self;
    /// If the magnitude is at least `2^LOG2_LIMIT`, the number divided by that, and `true`.
    fn below_limit(self) -> (Self, bool);
    /// The bits, in a word.
    fn bits(self) -> u64;
    /// The inverse of `bits`.
    fn of_bits(bits: u64) -> Self;
}

macro_rules! significands {
    ($($type:ident in $bits:ident, fraction $fraction:literal, bias $bias:literal, limit $limit:literal;)*) => {$(
        impl Significand for $type {
            const BIAS: i32 = $bias;
            const LAST_FIELD: u32 = 2 * $bias + 1;
            const LOG2_LIMIT: i32 = $limit;

            #[inline(always)]
            fn field(self) -> u32 {
                (self.to_bits() >> $fraction) as u32 & Self::LAST_FIELD
            }
            #[inline(always)]
            fn significand(self) -> Self {
                const FIELD: $bits = (2 * $bias + 1) << $fraction;
                Self::from_bits(self.to_bits() & !FIELD | ($bias << $fraction))
            }
            #[inline(always)]
            fn is_finite_nonzero(self) -> bool {
                self.field() != Self::LAST_FIELD && self.to_bits() << 1 != 0
            }
            #[inline(always)]
            fn scaled(self, exponent: i32) -> Self {
                self * Self::from_bits((($bias + exponent) as $bits) << $fraction)
            }
            #[inline(always)]
            fn below_limit(self) -> (Self, bool) {
                const LIMIT: $type = $type::from_bits(($bias + $limit) << $fraction);
                const INVERSE: $type = $type::from_bits(($bias - $limit) << $fraction);
                let is_above = self.abs() >= LIMIT;
                (if is_above { self * INVERSE } else { self }, is_above)
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                self.to_bits().into()
            }
            #[inline(always)]
            fn of_bits(bits: u64) -> Self {
                Self::from_bits(bits as $bits)
            }
        }
    )*};
}

significands! {
    f32 in u32, fraction 23, bias 127, limit 63;
    f64 in u64, fraction 52, bias 1023, limit 511;
}

/// A product: a float with a magnitude from 1 to below `2^LOG2_LIMIT`, times a power of two; or a zero, an infinity or
/// NaN.
///
/// Multiplications of the float round as those of normal numbers do, because it is never subnormal and does not
/// overflow. So the bits are those of a product of floats, if no partial product of that overflows or is subnormal.
#[derive(Clone, Copy)]
struct Scaled<F> {
    float: F,
    exponent: i64,
}

impl<F: Significand> Scaled<F> {
    /// A number, of which also a subnormal one has a magnitude from 1 to below 2.
    #[inline(always)]
    fn of(number: F) -> Self {
        const RAISED: i32 = 64;
        let is_small = number.field() == 0;
        let raised = if is_small { number.scaled(RAISED) } else { number };
        let exponent = raised.field() as i32 - F::BIAS - if is_small { RAISED } else { 0 };
        if number.is_finite_nonzero() {
            Self { float: raised.significand(), exponent: exponent.into() }
        } else {
            Self { float: number, exponent: 0 }
        }
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        let (float, was_above) = self.float.times(other.float).below_limit();
        let removed = if was_above { i64::from(F::LOG2_LIMIT) } else { 0 };
        Self { float, exponent: self.exponent.wrapping_add(other.exponent).wrapping_add(removed) }
    }

    /// The product as a float, rounded once more if it is subnormal.
    #[inline(always)]
    fn to_float(self) -> F {
        if !self.float.is_finite_nonzero() {
            return self.float.with_canonical_nan();
        }
        let exponent = self.exponent.wrapping_add(i64::from(self.float.field() as i32 - F::BIAS));
        // Beyond these exponents the result is an infinity or a zero. The range is that of two powers of normal floats.
        let most = i64::from(F::BIAS) + 1;
        let exponent = if exponent < -2 * most + 4 { -2 * most + 4 } else { exponent };
        let exponent = if exponent > most { most } else { exponent } as i32;
        // The first of the two multiplications is exact.
        let first = exponent / 2;
        self.float.significand().scaled(first).scaled(exponent - first)
    }

    #[inline(always)]
    fn to_words(self) -> [u64; 2] {
        [self.float.bits(), self.exponent as u64]
    }

    #[inline(always)]
    fn from_words([float, exponent]: [u64; 2]) -> Self {
        Self { float: F::of_bits(float), exponent: exponent as i64 }
    }
}

/// The product of some normal numbers.
#[derive(Clone, Copy)]
struct Normal<F> {
    /// The product of the significands: their number must be at most `LOG2_LIMIT`.
    significands: F,
    /// The sum of the exponents' fields.
    fields: u32,
    /// Whether all of them are normal numbers; otherwise the product is meaningless.
    are_normal: bool,
}

impl<F: Significand> Normal<F> {
    #[inline(always)]
    fn of(number: F) -> Self {
        let field = number.field();
        // One comparison: 0 wraps.
        let are_normal = field.wrapping_sub(1) < F::LAST_FIELD - 1;
        Self { significands: number.significand(), fields: field, are_normal }
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        Self {
            significands: self.significands.times(other.significands),
            fields: self.fields + other.fields,
            are_normal: self.are_normal & other.are_normal,
        }
    }

    /// The product, if this is of `count` numbers.
    #[inline(always)]
    fn scaled(self, count: usize) -> Scaled<F> {
        Scaled { float: self.significands, exponent: i64::from(self.fields as i32 - F::BIAS * count as i32) }
    }
}

/// The number of neighbours that are multiplied as they are: products of four `f16` are normal `f32`, or 0.
const fn unscaled<T: Scalar>(len: usize) -> usize {
    let most = if T::HAS_SHORT_EXPONENT { 4 } else { 1 };
    if len < most { len } else { most }
}

/// The product of the elements as if all of them, or of their [`unscaled`] products, were normal.
#[inline(always)]
fn normal<T: Scalar<Partial: Significand>, const LEN: usize>(elements: [T; LEN]) -> Normal<T::Partial> {
    let of = |i: usize| elements[i].partial();
    if !T::HAS_SHORT_EXPONENT {
        return tree::<_, LEN>(|i| Normal::of(of(i)), Normal::times);
    }
    let of_four = |first: usize| Normal::of(four(&of, &Arithmetic::times, first));
    let of_eight = |first: usize| of_four(first).times(of_four(first + 4));
    match LEN {
        ..=4 => Normal::of(tree::<_, LEN>(of, Arithmetic::times)),
        ..=8 => of_eight(0),
        // The longest tree.
        9.. => of_eight(0).times(of_eight(8)),
    }
}

/// The product of any elements.
#[inline(always)]
fn any<T: Scalar<Partial: Significand>, const LEN: usize>(elements: [T; LEN]) -> Scaled<T::Partial> {
    tree::<_, LEN>(|i| Scaled::of(elements[i].partial()), Scaled::times)
}

/// [`normal`] of a vector.
struct NormalOfVector;

impl<T: Scalar<Partial: Significand>> VectorVisitor<T> for NormalOfVector {
    type Result = Normal<T::Partial>;

    #[inline(always)]
    fn elements<const LEN: usize>(self, elements: [T; LEN]) -> Normal<T::Partial> {
        normal(elements)
    }
}

/// [`any`] of a vector.
struct AnyOfVector;

impl<T: Scalar<Partial: Significand>> VectorVisitor<T> for AnyOfVector {
    type Result = Scaled<T::Partial>;

    #[inline(always)]
    fn elements<const LEN: usize>(self, elements: [T; LEN]) -> Scaled<T::Partial> {
        any(elements)
    }
}

macro_rules! floats {
    ($($type:ident)*) => {$(
        impl Factor for $type {
            type Product = [u64; 2];
            const ONE: [u64; 2] = [<Self as Scalar>::Wide::to_bits(1.0) as u64, 0];

            #[inline(always)]
            fn one_factor(self) -> [u64; 2] {
                Scaled::of(self.partial()).to_words()
            }
            #[inline(always)]
            fn product<const LEN: usize>(elements: [Self; LEN]) -> [u64; 2] {
                let product = normal(elements);
                if product.are_normal {
                    return product.scaled(LEN / unscaled::<Self>(LEN)).to_words();
                }
                any(elements).to_words()
            }
            #[inline(always)]
            fn product_of_vectors<const VECTORS: usize>(vectors: [Self::Vector; VECTORS]) -> [u64; 2] {
                let product = tree::<_, VECTORS>(|k| vectors[k].visit(NormalOfVector), Normal::times);
                if product.are_normal {
                    let len = Self::Vector::LEN;
                    return product.scaled(VECTORS * len / unscaled::<Self>(len)).to_words();
                }
                tree::<_, VECTORS>(|k| vectors[k].visit(AnyOfVector), Scaled::times).to_words()
            }
            #[inline(always)]
            fn times(a: [u64; 2], b: [u64; 2]) -> [u64; 2] {
                Scaled::<Self::Wide>::from_words(a).times(Scaled::from_words(b)).to_words()
            }
            #[inline(always)]
            fn result(product: [u64; 2]) -> Self::Wide {
                Scaled::from_words(product).to_float()
            }
        }
    )*};
}

floats!(f16 bf16 f32 f64);

#[cfg(test)]
mod tests {
    use super::*;

    /// The product in the kernels' ways: of vectors, of elements, and of single elements; which must agree.
    fn product<T: Factor<Wide: PartialEq + core::fmt::Debug>, const LEN: usize>(elements: [T; LEN]) -> T::Wide {
        let one_by_one = tree::<_, LEN>(|i| elements[i].one_factor(), T::times);
        let at_once = T::result(T::times(T::product(elements), T::ONE));
        let bits = |wide: T::Wide| wide.to_pair();
        assert_eq!(bits(T::result(one_by_one)), bits(at_once), "{elements:?}");
        let vector = elements.into_iter().enumerate().fold(T::Vector::splat(elements[0]), |vector, (i, x)| {
            if i < T::Vector::LEN { vector.with(i, x) } else { vector }
        });
        if LEN == T::Vector::LEN {
            assert_eq!(bits(T::result(T::product_of_vectors([vector]))), bits(at_once), "{elements:?}");
        }
        at_once
    }

    #[test]
    fn only_the_result_overflows_or_is_subnormal() {
        let near_one: [f64; 2] = [[1e200, 1e200, 1e-200, 1e-200], [1e-200, 1e-200, 1e200, 1e200]].map(product);
        assert!(near_one.iter().all(|x| (x - 1.0).abs() <= 4.0 * f64::EPSILON), "{near_one:?}");
        let largest = 2.0 - f32::EPSILON;
        assert_eq!(product([f32::MAX, f32::MAX, f32::MIN_POSITIVE, f32::MIN_POSITIVE]), largest * largest * 4.0);
        let least = f64::from_bits(1);
        assert_eq!(product([least, least, 2.0_f64.powi(1000), 2.0_f64.powi(1000)]), 2.0_f64.powi(-148));
        assert_eq!(product([f32::from_bits(3), 2.0_f32.powi(100)]), 3.0 * 2.0_f32.powi(-49));
        // The result itself.
        assert_eq!(product([1e200_f64, -1e200]), f64::NEG_INFINITY);
        assert_eq!(product([1e-200_f64, 1e-200]).to_bits(), 0);
        assert_eq!(product([-1e-200_f64, 1e-200]).to_bits(), 1 << 63);
        assert_eq!(product([1e-160_f64, 1e-160]), 1e-320);
        assert_eq!(product([f32::MAX, 1.000_001]), f32::INFINITY);
        assert_eq!(product([f32::from_bits(1), 0.5]).to_bits(), 0, "a tie goes to the even number");
        assert_eq!(product([f32::from_bits(3), 0.5]).to_bits(), 2);
        assert_eq!(product([f32::from_bits(1), 0.75]).to_bits(), 1);
        assert_eq!(product([f32::MIN_POSITIVE, 0.5]), f32::from_bits(1 << 22));
        assert_eq!(product([f64::MAX, 1.0]), f64::MAX);
    }

    #[test]
    fn zeros_infinities_and_nan() {
        assert_eq!(product([0.0_f32, -3.0]).to_bits(), 1 << 31);
        assert_eq!(product([0.0_f32, f32::MAX, f32::MAX, -0.0]).to_bits(), 1 << 31);
        assert_eq!(product([f32::NEG_INFINITY, f32::from_bits(1)]), f32::NEG_INFINITY);
        for nan in [[0.0, f64::INFINITY], [-f64::NAN, 1.0], [f64::from_bits(0x7FF0_0000_0000_0001), 0.0]] {
            assert_eq!(product(nan).to_bits(), f64::NAN.to_bits());
        }
    }

    #[test]
    fn products_of_short_floats() {
        let of = f16::from_bits;
        // The largest and the smallest, in an order in which four of them overflow no `f32`, but eight would.
        assert_eq!(product([of(0x7BFF); 8]), 65_504.0_f64.powi(8) as f32);
        assert_eq!(product([of(1); 4]), 2.0_f32.powi(-96));
        assert_eq!(product([of(1); 8]), 0.0, "2^-192");
        let mixed = [of(1), of(1), of(1), of(1), of(0x7800), of(0x7800), of(0x7800), of(0x7800)];
        assert_eq!(product(mixed), 2.0_f32.powi(-96 + 60));
        assert_eq!(product([of(1), of(0x8000)]).to_bits(), 1 << 31);
        assert_eq!(product([of(0x7C00), of(0), of(1), of(1)]).to_bits(), f32::NAN.to_bits());
        let brain = bf16::from_bits;
        assert_eq!(product([brain(1), brain(1), brain(0x7F00), brain(0x7F00)]), 2.0_f32.powi(2 * (127 - 133)));
        assert_eq!(product([brain(1); 8]), 0.0);
    }

    #[test]
    fn integers_wrap() {
        assert_eq!(product([i64::MAX, 3]), i64::MAX.wrapping_mul(3));
        assert_eq!(product([200_u8, 200, 200, 200]), 1_600_000_000);
    }
}
