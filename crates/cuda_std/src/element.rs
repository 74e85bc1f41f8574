//! What may lie in global and shared memory.

use core::mem::{align_of, size_of};

/// A type that is nothing but its bits: every pattern of them is a value, none of them is padding, and copying them
/// copies the value.
///
/// # Safety
/// All of the above holds, and the size is 1, 2, 4, 8 or 16 bytes, which is also at least the alignment.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

/// A number that the kernels compute with, and its 16-byte pack.
pub trait Element: Plain + Default + PartialEq + core::fmt::Debug {
    /// As many of them as fill 16 bytes.
    type Pack: Packed<Item = Self>;
}

/// 16 bytes of elements, which move in one instruction (`ld.global.v4`, `ld.shared.v4`).
pub trait Packed: Plain {
    /// One element.
    type Item;

    /// How many elements a pack holds.
    const LEN: usize;

    /// A pack of `LEN` times `value`.
    fn splat(value: Self::Item) -> Self;

    /// The element at `place`, which must be less than [`Packed::LEN`].
    fn get(&self, place: usize) -> Self::Item;

    /// The same pack with another element at `place`, which must be less than [`Packed::LEN`].
    fn with(self, place: usize, value: Self::Item) -> Self;
}

/// `N` elements, aligned as one 16-byte access needs it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(16))]
pub struct Pack<T, const N: usize>(pub [T; N]);

impl<T: Plain, const N: usize> Packed for Pack<T, N>
where
    Self: Plain,
{
    type Item = T;

    const LEN: usize = N;

    #[inline(always)]
    fn splat(value: T) -> Self {
        Self([value; N])
    }

    #[inline(always)]
    fn get(&self, place: usize) -> T {
        self.0[place]
    }

    #[inline(always)]
    fn with(mut self, place: usize, value: T) -> Self {
        self.0[place] = value;
        self
    }
}

macro_rules! elements {
    ($($type:ty, $pack:literal;)*) => {$(
        // SAFETY: a primitive number, or a transparent wrapper of one, of a size in the list.
        unsafe impl Plain for $type {}
        const _: () = assert!($pack * size_of::<$type>() == 16 && align_of::<$type>() <= 16);
        // SAFETY: so many of them fill 16 bytes exactly, as just asserted: there is no padding.
        unsafe impl Plain for Pack<$type, $pack> {}
        impl Element for $type {
            type Pack = Pack<$type, $pack>;
        }
    )*};
}

elements! {
    i8, 16; u8, 16;
    i16, 8; u16, 8; half::f16, 8; half::bf16, 8;
    i32, 4; u32, 4; f32, 4;
    i64, 2; u64, 2; f64, 2;
}
