//! The epilogue of a transpose: none, or a factor, the conjugate, or both, as in BLAS's `geam` and `omatcopy`.

use cuda_std::float::{bf16_from_f32, f16_from_f32, f32_from_bf16, f32_from_f16};
use cuda_std::prelude::*;
use half::{bf16, f16};
use num_complex::Complex;

use crate::transpose::tiled::micro_tile::{Transpose, Unroll, unroll_16};

/// An operation on each element of a vector.
pub trait Epilogue<T: Transpose>: Copy {
    /// The vector after the operation.
    fn apply(&self, vector: T::Vector) -> T::Vector;
}

/// No operation.
#[derive(Clone, Copy)]
pub struct Identity;

impl<T: Transpose> Epilogue<T> for Identity {
    #[inline(always)]
    fn apply(&self, vector: T::Vector) -> T::Vector {
        vector
    }
}

/// The bit of a [`Scaling`]'s `operations` for the conjugate.
pub const CONJUGATED: u32 = 1;

/// The bit of a [`Scaling`]'s `operations` for the factor.
pub const MULTIPLIED: u32 = 2;

/// `factor * conj(x)`, or one of these two operations alone.
#[derive(Clone, Copy)]
pub struct Scaling {
    /// The factor's real and imaginary parts, each exact in the element's type.
    pub factor: [f64; 2],
    /// A sum of [`CONJUGATED`] and [`MULTIPLIED`].
    pub operations: u32,
}

/// A number that can be scaled.
pub trait Scale: Plain {
    /// The unsigned number of the same size.
    type Bits: Transpose;
    /// The product with a factor. Each operation rounds once, and every NaN has the same bits.
    fn times(bits: Self::Bits, factor: [f64; 2]) -> Self::Bits;
    /// The complex conjugate; a real number is its own.
    fn conjugate(bits: Self::Bits) -> Self::Bits;
}

/// A scaling of elements of type `N`.
#[derive(Clone, Copy)]
pub struct Scaled<N> {
    scaling: Scaling,
    number: core::marker::PhantomData<N>,
}

impl<N> Scaled<N> {
    /// The epilogue of this scaling.
    #[inline(always)]
    pub fn new(scaling: Scaling) -> Self {
        Self { scaling, number: core::marker::PhantomData }
    }
}

impl<N: Scale> Scaled<N> {
    /// The element after the epilogue.
    #[inline(always)]
    pub fn apply_to_element(&self, x: N::Bits) -> N::Bits {
        let Scaling { factor, operations } = self.scaling;
        let x = if operations & CONJUGATED != 0 { N::conjugate(x) } else { x };
        if operations & MULTIPLIED != 0 { N::times(x, factor) } else { x }
    }
}

impl<N: Scale> Epilogue<N::Bits> for Scaled<N> {
    #[inline(always)]
    fn apply(&self, vector: <N::Bits as Element>::Vector) -> <N::Bits as Element>::Vector {
        let elements = Elements(vector);
        let len = <N::Bits as Element>::Vector::LEN;
        let mapped = unroll_16(&elements);
        let mut vector = vector;
        let mut i = 0;
        while i < len {
            vector = vector.with(i, self.apply_to_element(mapped[i]));
            i += 1;
        }
        vector
    }
}

/// The elements of a vector; values past the last are unspecified.
struct Elements<P>(P);

impl<P: VectorType> Unroll for Elements<P> {
    type Output = P::Item;

    #[inline(always)]
    fn value(&self, i: usize) -> P::Item {
        self.0.get(i % P::LEN)
    }
}

/// Gives every NaN the same bits, because the bits of a computed NaN depend on the device.
macro_rules! with_canonical_nan {
    ($x:expr, $type:ty) => {{
        let x: $type = $x;
        if x.is_nan() { <$type>::NAN } else { x }
    }};
}

macro_rules! reals {
    ($($type:ident as $bits:ident: |$x:ident, $factor:ident| $product:expr;)*) => {$(
        impl Scale for $type {
            type Bits = $bits;

            #[inline(always)]
            fn times(bits: $bits, [$factor, _]: [f64; 2]) -> $bits {
                let $x = Self::from_bits(bits);
                with_canonical_nan!($product, Self).to_bits()
            }

            #[inline(always)]
            fn conjugate(bits: $bits) -> $bits {
                bits
            }
        }
    )*};
}

reals! {
    f32 as u32: |x, factor| x * factor as f32;
    f64 as u64: |x, factor| x * factor;
    f16 as u16: |x, factor| f16_from_f32(f32_from_f16(x) * factor as f32);
    bf16 as u16: |x, factor| bf16_from_f32(f32_from_bf16(x) * factor as f32);
}

macro_rules! complexes {
    ($($part:ident as $bits:ident in $both:ident;)*) => {$(
        impl Scale for Complex<$part> {
            type Bits = $both;

            #[inline(always)]
            fn times(bits: $both, [re, im]: [f64; 2]) -> $both {
                let part = |bits: $both| $part::from_bits(bits as $bits);
                let (a, b) = (part(bits), part(bits >> $bits::BITS));
                let (re, im) = (re as $part, im as $part);
                let bits = |x: $part| $both::from(with_canonical_nan!(x, $part).to_bits());
                bits(re * a - im * b) | bits(re * b + im * a) << $bits::BITS
            }

            #[inline(always)]
            fn conjugate(bits: $both) -> $both {
                bits ^ 1 << ($both::BITS - 1)
            }
        }
    )*};
}

complexes! {
    f32 as u32 in u64;
    f64 as u64 in u128;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_conjugates() {
        let times = |x: f32, y: f64| f32::from_bits(f32::times(x.to_bits(), [y, 0.0]));
        assert_eq!(times(1.5, -2.0), -3.0);
        assert_eq!(times(f32::INFINITY, 0.0).to_bits(), f32::NAN.to_bits());
        let half = |x: f32| f16::from_f32(x).to_bits();
        assert_eq!(f16::times(half(1.5), [0.25, 0.0]), half(0.375));
        let complex = |re: f32, im: f32| u64::from(im.to_bits()) << 32 | u64::from(re.to_bits());
        assert_eq!(Complex::<f32>::times(complex(1.0, 2.0), [3.0, -4.0]), complex(11.0, 2.0));
        assert_eq!(Complex::<f32>::conjugate(complex(1.0, 2.0)), complex(1.0, -2.0));
        let complex = |re: f64, im: f64| u128::from(im.to_bits()) << 64 | u128::from(re.to_bits());
        assert_eq!(Complex::<f64>::times(complex(1.0, 2.0), [0.0, 1.0]), complex(-2.0, 1.0));
        assert_eq!(Complex::<f64>::conjugate(complex(-1.0, 0.0)), complex(-1.0, -0.0));
    }
}
