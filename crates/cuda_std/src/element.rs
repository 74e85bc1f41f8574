//! The types that global and shared memory hold, and their 16-byte vectors.

use core::mem::{align_of, size_of};
use core::ptr;

use bytemuck::{Pod, Zeroable};

pub use crate::stored::{Stored, is_plain};

/// The bits of a value as another type of at most its size. This is `transmute_copy`, except on the CPU: there it would
/// be slow in a user's debug build.
macro_rules! bits {
    ($value:expr) => {
        bits!($value => _)
    };
    ($value:expr => $to:ty) => {{
        #[cfg(target_arch = "nvptx64")]
        let bits: $to = core::mem::transmute_copy(&$value);
        #[cfg(not(target_arch = "nvptx64"))]
        let bits: $to = crate::backend::bits($value);
        bits
    }};
}

pub(crate) use bits;

/// Plain old data: every bit pattern is a value, no bit is padding, and copying the bits copies the value.
///
/// Every [`bytemuck::Pod`] is plain, and nothing else: numbers, arrays of plain values, complex numbers, and the types
/// of crates with a feature for `bytemuck`, such as `glam`. [`derive(Plain)`](macro@crate::Plain) makes a struct plain:
///
/// ```
/// use cuda_std::Plain;
///
/// #[derive(Clone, Copy, Plain)]
/// #[repr(C)]
/// struct Rgb {
///     red: u8,
///     green: u8,
///     blue: u8,
/// }
/// ```
///
/// A value of 1, 2, 4, 8 or 16 bytes moves in one access, and one of 32 in two of 16. It lies at a multiple of the
/// access's size, as the elements of a buffer do. A value of any other size moves in accesses as large as its
/// alignment: three of 4 bytes for `[f32; 3]`.
///
/// # Safety
/// All of the first sentence holds.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not plain data",
    label = "some bit patterns are not values of it, or some bits are padding",
    note = "for a struct of plain fields, write `#[derive(Clone, Copy, cuda_std::Plain)]` and `#[repr(C)]`"
)]
pub unsafe trait Plain: Pod + Send + Sync {
    /// The first 16 bytes as two words, padded with 0.
    #[inline(always)]
    fn to_pair(self) -> [u64; 2] {
        // SAFETY: each arm reads exactly the bytes of `Self`, or its first 16, none of which is padding.
        unsafe {
            match size_of::<Self>() {
                1 => [bits!(self => u8).into(), 0],
                2 => [bits!(self => u16).into(), 0],
                4 => [bits!(self => u32).into(), 0],
                8 => [bits!(self), 0],
                16 | 32 => bits!(self),
                // Any other size.
                _ => first_words(&self),
            }
        }
    }

    /// The first 32 bytes as four words, padded with 0.
    #[inline(always)]
    fn to_four_words(self) -> [u64; 4] {
        match size_of::<Self>() {
            // SAFETY: reads exactly the bytes of `Self`, none of which is padding.
            32 => unsafe { bits!(self) },
            0..=16 => {
                let [low, high] = self.to_pair();
                [low, high, 0, 0]
            }
            _ => first_words(&self),
        }
    }

    /// The inverse of [`Plain::to_four_words`]. Panics if the type has more than 32 bytes.
    #[inline(always)]
    fn from_four_words(words: [u64; 4]) -> Self {
        match size_of::<Self>() {
            0..=16 => Self::from_pair([words[0], words[1]]),
            // SAFETY: makes exactly the bytes of a `Self`, for which any bits are valid.
            17..=32 => unsafe { bits!(words) },
            33.. => panic!("four words have no value of more than 32 bytes"),
        }
    }

    /// The inverse of [`Plain::to_pair`]. Panics if the type has more than 16 bytes.
    #[inline(always)]
    fn from_pair(pair: [u64; 2]) -> Self {
        match size_of::<Self>() {
            0..=8 => Self::from_word(pair[0]),
            // SAFETY: makes exactly the bytes of a `Self`, for which any bits are valid.
            9..=16 => unsafe { bits!(pair) },
            17.. => panic!("two words have no value of more than 16 bytes"),
        }
    }

    /// A value of at most 8 bytes from the low bits of `word`. A value of up to 16 bytes gets the word twice; a larger
    /// type panics.
    #[inline(always)]
    fn from_word(word: u64) -> Self {
        // SAFETY: each arm makes exactly the bytes of a `Self`, for which any bits are valid.
        unsafe {
            match size_of::<Self>() {
                1 => bits!(word as u8),
                2 => bits!(word as u16),
                4 => bits!(word as u32),
                8 => bits!(word),
                0 | 3 | 5..=7 | 9..=16 => bits!([word; 2]),
                17.. => panic!("a word has no value of more than 16 bytes"),
            }
        }
    }
}

// SAFETY: `Pod` promises the same.
unsafe impl<T: Pod + Send + Sync> Plain for T {}

/// The first `N` words of a value, padded with 0.
#[inline(always)]
fn first_words<T: Plain, const N: usize>(value: &T) -> [u64; N] {
    let mut words = [0; N];
    let bytes = if size_of::<T>() < 8 * N { size_of::<T>() } else { 8 * N };
    // SAFETY: both have that many bytes, and a plain value's bytes are no padding.
    unsafe { ptr::copy_nonoverlapping(ptr::from_ref(value).cast::<u8>(), words.as_mut_ptr().cast(), bytes) };
    words
}

/// The bytes of which the address of a `T` is a multiple: the size of its accesses.
pub(crate) const fn access_alignment<T>() -> usize {
    match size_of::<T>() {
        bytes @ (1 | 2 | 4 | 8 | 16) => bytes,
        32 => 16,
        _ => align_of::<T>(),
    }
}

/// A number that kernels compute with, and its 16-byte vector.
///
/// # Safety
/// The size is 1, 2, 4, 8 or 16 bytes, and the elements of a vector fill it, in memory order.
pub unsafe trait Element: Plain + Default + PartialEq + core::fmt::Debug {
    /// The vector of these elements that fills 16 bytes.
    type Vector: VectorType<Item = Self>;
}

/// A 16-byte vector of elements, which moves in one instruction (`ld.global.v4`, `ld.shared.v4`).
///
/// # Safety
/// The size and the alignment are 16 bytes, filled by [`VectorType::LEN`] elements of [`VectorType::Item`].
pub unsafe trait VectorType: Plain {
    /// The element type.
    type Item;

    /// The number of elements.
    const LEN: usize;

    /// A vector with every element equal to `value`.
    fn splat(value: Self::Item) -> Self;

    /// A vector from its bytes in memory order, as four words.
    #[doc(hidden)]
    fn from_words(words: [u32; 4]) -> Self;

    /// The vector's bytes in memory order, as four words.
    #[doc(hidden)]
    fn to_words(self) -> [u32; 4];

    /// Calls `visitor` with the elements as an array, whose length is then a constant.
    fn visit<V: VectorVisitor<Self::Item>>(self, visitor: V) -> V::Result;

    /// The element at index `i`, which must be less than [`VectorType::LEN`].
    fn get(&self, i: usize) -> Self::Item;

    /// The same vector with element `i` replaced. `i` must be less than [`VectorType::LEN`].
    fn with(self, i: usize, value: Self::Item) -> Self;
}

/// Code that is generic over the number of elements of a vector.
pub trait VectorVisitor<T> {
    /// The visitor's result.
    type Result;

    /// Visits all elements of the vector.
    fn elements<const LEN: usize>(self, elements: [T; LEN]) -> Self::Result;
}

/// `N` elements, aligned for one 16-byte access.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(16))]
pub struct Vector<T, const N: usize>(pub [T; N]);

// SAFETY: `LEN` asserts the size, and the type's alignment is 16.
unsafe impl<T: Plain, const N: usize> VectorType for Vector<T, N>
where
    Self: Plain,
{
    type Item = T;

    const LEN: usize = {
        assert!(size_of::<Self>() == 16 && N * size_of::<T>() == 16);
        N
    };

    #[inline(always)]
    fn splat(value: T) -> Self {
        Self([value; N])
    }

    #[inline(always)]
    fn from_words(words: [u32; 4]) -> Self {
        const { assert!(size_of::<Self>() == 16) };
        // SAFETY: both are 16 bytes, and any bits are a valid vector (it is `Plain`).
        unsafe { bits!(words) }
    }

    #[inline(always)]
    fn to_words(self) -> [u32; 4] {
        const { assert!(size_of::<Self>() == 16) };
        // SAFETY: both are 16 bytes, and a vector has no padding (it is `Plain`).
        unsafe { bits!(self) }
    }

    #[inline(always)]
    fn visit<V: VectorVisitor<T>>(self, visitor: V) -> V::Result {
        visitor.elements(self.0)
    }

    #[inline(always)]
    fn get(&self, i: usize) -> T {
        self.0[i]
    }

    #[inline(always)]
    fn with(mut self, i: usize, value: T) -> Self {
        self.0[i] = value;
        self
    }
}

macro_rules! elements {
    ($($type:ty, $vector:literal;)*) => {$(
        const _: () = assert!($vector * size_of::<$type>() == 16 && align_of::<$type>() <= 16);
        // SAFETY: zeros are a vector of zeros.
        unsafe impl Zeroable for Vector<$type, $vector> {}
        // SAFETY: `$vector` numbers fill its 16 bytes exactly, as just asserted: no padding.
        unsafe impl Pod for Vector<$type, $vector> {}
        // SAFETY: the vector is 16 bytes of elements.
        unsafe impl Element for $type {
            type Vector = Vector<$type, $vector>;
        }
    )*};
}

elements! {
    i8, 16; u8, 16;
    i16, 8; u16, 8; half::f16, 8; half::bf16, 8;
    i32, 4; u32, 4; f32, 4;
    i64, 2; u64, 2; f64, 2;
    u128, 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_any_size_are_words_and_back() {
        fn check<T: Plain + PartialEq + core::fmt::Debug>(value: T) {
            let words = value.to_four_words();
            assert_eq!(T::from_four_words(words), value);
            assert_eq!(value.to_pair(), [words[0], words[1]]);
            if size_of::<T>() <= 16 {
                assert_eq!(T::from_pair(value.to_pair()), value);
            }
            if size_of::<T>() <= 8 {
                assert_eq!(T::from_word(words[0]), value);
                assert_eq!(words[1], 0);
            }
        }
        check(0x81_u8);
        check([1_u8, 2, 3]);
        check([1.5_f32, -2.0, 3.0]);
        check([1_u64, 2, 3]);
        check([u64::MAX, 2, 3, 4]);
        check(i128::MIN + 5);
        check(half::f16::from_f32(2.5));
        assert_eq!([9_u8, 8, 7].to_pair(), [0x07_08_09, 0]);
        // Of more than 32 bytes, the first ones.
        assert_eq!([5_u64, 6, 7, 8, 9].to_four_words(), [5, 6, 7, 8]);
    }

    #[test]
    #[should_panic(expected = "more than 32 bytes")]
    fn a_large_value_does_not_come_from_four_words() {
        let _: [u64; 5] = Plain::from_four_words([0; 4]);
    }

    #[test]
    #[should_panic(expected = "more than 16 bytes")]
    fn a_large_value_does_not_come_from_two_words() {
        let _: [u64; 3] = Plain::from_pair([0; 2]);
    }

    #[test]
    #[should_panic(expected = "more than 16 bytes")]
    fn a_large_value_does_not_come_from_a_word() {
        let _: [u8; 17] = Plain::from_word(0);
    }
}
