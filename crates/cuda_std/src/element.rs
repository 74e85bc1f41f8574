//! The types that global and shared memory hold, and their 16-byte vectors.

use core::mem::{align_of, size_of, transmute_copy};

use num_complex::Complex;

/// Plain old data: every bit pattern is a value, no bit is padding, and copying the bits copies the value.
///
/// Numbers, arrays of numbers, and complex numbers are plain. A custom type can be, too:
///
/// ```
/// use cuda_std::element::Plain;
///
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// struct Rgba {
///     red: u8,
///     green: u8,
///     blue: u8,
///     alpha: u8,
/// }
/// // SAFETY: four bytes, any of which are one, and nothing between them.
/// unsafe impl Plain for Rgba {}
/// ```
///
/// # Safety
/// All of the above holds, and the size is 1, 2, 4, 8, 16 or 32 bytes, and at least the alignment.
pub unsafe trait Plain: Copy + Send + Sync + 'static {
    /// The first 16 bytes as two words; the second word is 0 if the first holds all bits.
    #[inline(always)]
    fn to_pair(self) -> [u64; 2] {
        // SAFETY: each arm reads exactly the bytes of `Self`, none of which is padding.
        unsafe {
            match size_of::<Self>() {
                1 => [transmute_copy::<Self, u8>(&self).into(), 0],
                2 => [transmute_copy::<Self, u16>(&self).into(), 0],
                4 => [transmute_copy::<Self, u32>(&self).into(), 0],
                8 => [transmute_copy(&self), 0],
                _ => transmute_copy(&self),
            }
        }
    }

    /// The value's bits as four words, padded with 0.
    #[inline(always)]
    fn to_four_words(self) -> [u64; 4] {
        match size_of::<Self>() {
            // SAFETY: reads exactly the bytes of `Self`, none of which is padding.
            32 => unsafe { transmute_copy(&self) },
            _ => {
                let [low, high] = self.to_pair();
                [low, high, 0, 0]
            }
        }
    }

    /// The inverse of [`Plain::to_four_words`].
    #[inline(always)]
    fn from_four_words(words: [u64; 4]) -> Self {
        match size_of::<Self>() {
            // SAFETY: makes exactly the bytes of a `Self`, for which any bits are valid.
            32 => unsafe { transmute_copy(&words) },
            _ => Self::from_pair([words[0], words[1]]),
        }
    }

    /// The inverse of [`Plain::to_pair`], for up to 16 bytes.
    #[inline(always)]
    fn from_pair(pair: [u64; 2]) -> Self {
        match size_of::<Self>() {
            // SAFETY: makes exactly the bytes of a `Self`, for which any bits are valid.
            16 => unsafe { transmute_copy(&pair) },
            _ => Self::from_word(pair[0]),
        }
    }

    /// A value of at most 8 bytes from the low bits of `word`. A value of 16 bytes gets the word twice.
    #[inline(always)]
    fn from_word(word: u64) -> Self {
        // SAFETY: each arm makes exactly the bytes of a `Self`, for which any bits are valid.
        unsafe {
            match size_of::<Self>() {
                1 => transmute_copy(&(word as u8)),
                2 => transmute_copy(&(word as u16)),
                4 => transmute_copy(&(word as u32)),
                8 => transmute_copy(&word),
                _ => transmute_copy(&[word; 2]),
            }
        }
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
        unsafe { transmute_copy(&words) }
    }

    #[inline(always)]
    fn to_words(self) -> [u32; 4] {
        const { assert!(size_of::<Self>() == 16) };
        // SAFETY: both are 16 bytes, and a vector has no padding (it is `Plain`).
        unsafe { transmute_copy(&self) }
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
        // SAFETY: a primitive number, or a transparent wrapper of one, with a size in the list.
        unsafe impl Plain for $type {}
        const _: () = assert!($vector * size_of::<$type>() == 16 && align_of::<$type>() <= 16);
        // SAFETY: `$vector` elements fill 16 bytes exactly, as just asserted: no padding.
        unsafe impl Plain for Vector<$type, $vector> {}
        // SAFETY: the vector is 16 bytes of elements.
        unsafe impl Element for $type {
            type Vector = Vector<$type, $vector>;
        }
    )*};
}

/// Arrays that move as one value: states of reductions, pixels.
macro_rules! arrays {
    ($($type:ty),* $(,)?) => {$(
        const _: () = assert!(size_of::<$type>() <= 16 && size_of::<$type>().is_power_of_two());
        // SAFETY: an array of primitive numbers has no padding, and its size was just asserted.
        unsafe impl Plain for $type {}
    )*};
}

arrays! {
    [u8; 2], [i8; 2], [u16; 2], [i16; 2], [u32; 2], [i32; 2], [f32; 2], [u64; 2], [i64; 2], [f64; 2],
    [u8; 4], [i8; 4], [u16; 4], [i16; 4], [u32; 4], [i32; 4], [f32; 4], [half::f16; 2], [half::bf16; 2],
    [u8; 8], [i8; 8], [u16; 8], [i16; 8], [half::f16; 4], [half::bf16; 4], [half::f16; 8], [half::bf16; 8],
    [u8; 16], [i8; 16],
}

// SAFETY: an integer of 16 bytes, for which any bits are valid.
unsafe impl Plain for i128 {}

// SAFETY: 32 bytes of numbers, without padding.
unsafe impl Plain for [u64; 4] {}

// SAFETY: two adjacent numbers (it is `repr(C)`), without padding between them.
unsafe impl Plain for Complex<f32> {}
// SAFETY: as above.
unsafe impl Plain for Complex<f64> {}
// SAFETY: as above.
unsafe impl Plain for Complex<half::f16> {}
// SAFETY: as above.
unsafe impl Plain for Complex<half::bf16> {}

elements! {
    i8, 16; u8, 16;
    i16, 8; u16, 8; half::f16, 8; half::bf16, 8;
    i32, 4; u32, 4; f32, 4;
    i64, 2; u64, 2; f64, 2;
    u128, 1;
}
