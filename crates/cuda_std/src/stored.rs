//! Types of which not every bit pattern is a value, in memory that may hold any.

use core::any::TypeId;
use core::mem::{align_of, size_of};

use bytemuck::{CheckedBitPattern, NoUninit, Pod};

use crate::backend;
use crate::element::Plain;

/// The bits of a value as a type of the same layout. On a GPU this is no operation, not even for the compiler: it moves
/// no value to memory.
macro_rules! as_same_layout {
    ($value:expr) => {{
        #[cfg(target_arch = "nvptx64")]
        let same = core::intrinsics::transmute_unchecked($value);
        #[cfg(not(target_arch = "nvptx64"))]
        let same = crate::backend::bits($value);
        same
    }};
}

/// [`Stored::from_stored`]. For plain data a GPU's compiler sees the value itself, so that the code is the same as
/// without the check.
macro_rules! from_memory {
    ($type:ty, $bits:expr) => {
        match $bits {
            // SAFETY: both are the same type.
            #[cfg(target_arch = "nvptx64")]
            bits if const { crate::stored::is_same::<$type, <$type as Stored>::Bits>() } => unsafe {
                core::intrinsics::transmute_unchecked::<<$type as Stored>::Bits, $type>(bits)
            },
            bits => <$type>::from_stored(bits),
        }
    };
}

/// [`Stored::to_stored`], as for [`from_memory`].
macro_rules! to_memory {
    ($type:ty, $value:expr) => {
        match $value {
            // SAFETY: both are the same type.
            #[cfg(target_arch = "nvptx64")]
            value if const { crate::stored::is_same::<$type, <$type as Stored>::Bits>() } => {
                core::intrinsics::transmute_unchecked::<$type, <$type as Stored>::Bits>(value)
            }
            value => value.to_stored(),
        }
    };
}

pub(crate) use {from_memory, to_memory};

/// Whether both are one type. Only the device build has a compiler that can compare types in constants.
#[cfg(target_arch = "nvptx64")]
pub(crate) const fn is_same<A: 'static, B: 'static>() -> bool {
    core::intrinsics::type_id_eq(core::intrinsics::type_id::<A>(), core::intrinsics::type_id::<B>())
}

/// A type that buffers and views hold, and that kernels take by value: plain data, `bool`, `char`, or an enum.
///
/// Memory holds [bits](Stored::Bits), which may be no value of the type: another view of the memory may have written
/// them. So each load checks them. A byte is loaded as the `bool` that says whether it is not 0. Bits that are no value
/// of another type end the kernel: a GPU traps, and the executor reports them. A download returns an error instead.
///
/// [`Plain`] types need no check: all of them are stored, as themselves. `bool` and `char` are stored, and so is every
/// type that implements [`bytemuck::NoUninit`] and [`bytemuck::CheckedBitPattern`] with plain bits. Enums do that by
/// deriving both:
///
/// ```
/// use cuda_std::bytemuck::{CheckedBitPattern, NoUninit};
///
/// #[derive(Clone, Copy, PartialEq, NoUninit, CheckedBitPattern)]
/// #[bytemuck(crate = "cuda_std::bytemuck")]
/// #[repr(u8)]
/// enum Material {
///     Glass,
///     Metal,
/// }
/// ```
///
/// # Safety
/// [`Stored::Bits`] has the size and the alignment of the type, no bit of which is padding.
/// [`Stored::try_from_stored`] returns `None` for bits that are not valid for the type.
#[diagnostic::on_unimplemented(
    message = "buffers and views cannot hold `{Self}`",
    label = "neither plain data, nor a type whose bits can be checked, such as `bool`",
    note = "for a struct of plain fields, write `#[derive(Clone, Copy, cuda_std::Plain)]` and `#[repr(C)]`"
)]
pub unsafe trait Stored: Copy + Send + Sync + 'static {
    /// What memory holds: plain data of the same size and alignment. For a plain type, the type itself.
    type Bits: Plain;

    /// The bits of the value.
    fn to_stored(self) -> Self::Bits;

    /// The value with these bits, if there is one.
    fn try_from_stored(bits: Self::Bits) -> Option<Self>;

    /// The value with these bits, as kernels load it: every byte except 0 is the `bool` `true`. Traps if no value has
    /// these bits.
    fn from_stored(bits: Self::Bits) -> Self;
}

// SAFETY: `CheckedBitPattern` promises the same layout, which is asserted, and finds the bits that are not valid;
// `NoUninit` promises that there is no padding.
#[diagnostic::do_not_recommend]
unsafe impl<T> Stored for T
where
    T: NoUninit + CheckedBitPattern<Bits: Pod + Send + Sync> + Send + Sync,
{
    type Bits = <T as CheckedBitPattern>::Bits;

    #[inline(always)]
    fn to_stored(self) -> Self::Bits {
        const { assert_layout::<T, Self::Bits>() };
        // SAFETY: the bits are initialized, and all bits are a `Self::Bits`.
        unsafe { as_same_layout!(self) }
    }

    #[inline(always)]
    fn try_from_stored(bits: Self::Bits) -> Option<Self> {
        const { assert_layout::<T, Self::Bits>() };
        // SAFETY: a value has these bits, as just checked.
        if T::is_valid_bit_pattern(&bits) { Some(unsafe { as_same_layout!(bits) }) } else { None }
    }

    #[inline(always)]
    #[track_caller]
    fn from_stored(bits: Self::Bits) -> Self {
        const { assert_layout::<T, Self::Bits>() };
        if T::is_valid_bit_pattern(&bits) {
            // SAFETY: a value has these bits, as just checked.
            return unsafe { as_same_layout!(bits) };
        }
        if TypeId::of::<T>() == TypeId::of::<bool>() {
            // SAFETY: `T` is `bool`.
            return unsafe { as_same_layout!(true) };
        }
        backend::not_a_value(core::any::type_name::<T>())
    }
}

/// Fails to compile if the layouts differ.
const fn assert_layout<T, Bits>() {
    assert!(size_of::<T>() == size_of::<Bits>() && align_of::<T>() == align_of::<Bits>(), "the layouts differ");
}

/// For the host crate: whether a type is plain, so that all bits are values of it.
#[doc(hidden)]
pub fn is_plain<T: Stored>() -> bool {
    TypeId::of::<T>() == TypeId::of::<T::Bits>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_that_are_no_value_are_found() {
        assert_eq!([0, 1, 2, 255].map(bool::try_from_stored), [Some(false), Some(true), None, None]);
        assert_eq!([0, 1, 2, 128, 255].map(bool::from_stored), [false, true, true, true, true]);
        assert_eq!([true, false].map(Stored::to_stored), [1, 0]);
        assert_eq!([0x61, 0xD800, 0x0011_0000].map(char::try_from_stored), [Some('a'), None, None]);
        assert_eq!([u8::from_stored(7), 7_u8.to_stored()], [7, 7]);
        assert!(is_plain::<[f32; 3]>() && is_plain::<u128>() && !is_plain::<bool>() && !is_plain::<char>());
    }
}
