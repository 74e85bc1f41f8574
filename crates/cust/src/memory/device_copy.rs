//! Types whose values can be copied to a device and back.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::num::{
    NonZeroI8, NonZeroI16, NonZeroI32, NonZeroI64, NonZeroI128, NonZeroIsize, NonZeroU8, NonZeroU16, NonZeroU32,
    NonZeroU64, NonZeroU128, NonZeroUsize, Wrapping,
};

/// A type whose values can be copied to a device and back: plain bits without references to host memory.
///
/// `#[derive(DeviceCopy)]` implements the trait for a type whose fields all implement it:
///
/// ```
/// use cust::DeviceCopy;
///
/// #[derive(Clone, Copy, DeviceCopy)]
/// struct Particle {
///     position: [f32; 3],
///     mass: f32,
/// }
/// ```
///
/// A type with a reference does not compile:
///
/// ```compile_fail
/// #[derive(Clone, Copy, cust::DeviceCopy)]
/// struct Name<'a>(&'a str);
/// ```
///
/// # Safety
/// No value contains a reference or a pointer to memory that devices cannot access, and a copy of a value's bits is a
/// valid value.
pub unsafe trait DeviceCopy: Copy {}

macro_rules! plain {
    ($($type:ident)*) => {
        $(
            // SAFETY: plain bits.
            unsafe impl DeviceCopy for $type {}
        )*
    };
}

plain! {
    u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64 bool char
    NonZeroU8 NonZeroU16 NonZeroU32 NonZeroU64 NonZeroU128 NonZeroUsize
    NonZeroI8 NonZeroI16 NonZeroI32 NonZeroI64 NonZeroI128 NonZeroIsize
}

// SAFETY: plain bits, with or without a tag.
unsafe impl<T: DeviceCopy> DeviceCopy for Option<T> {}
// SAFETY: a tag and plain bits.
unsafe impl<T: DeviceCopy, E: DeviceCopy> DeviceCopy for Result<T, E> {}
// SAFETY: no bits.
unsafe impl<T: ?Sized> DeviceCopy for PhantomData<T> {}
// SAFETY: plain bits, which may be uninitialized.
unsafe impl<T: DeviceCopy> DeviceCopy for MaybeUninit<T> {}
// SAFETY: plain bits.
unsafe impl<T: DeviceCopy> DeviceCopy for Wrapping<T> {}
// SAFETY: plain bits.
unsafe impl<T: DeviceCopy, const N: usize> DeviceCopy for [T; N] {}

macro_rules! tuples {
    ($($type:ident)*) => {
        // SAFETY: plain bits.
        unsafe impl<$($type: DeviceCopy),*> DeviceCopy for ($($type,)*) {}
    };
}

tuples!();
tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
tuples!(A B C D E F G);
tuples!(A B C D E F G H);

#[cfg(test)]
#[allow(dead_code, reason = "the types are only derived for")]
mod tests {
    use super::DeviceCopy;
    use crate::memory::DevicePointer;

    #[derive(Clone, Copy, cust_derive::DeviceCopy)]
    struct Unit;

    #[derive(Clone, Copy, cust_derive::DeviceCopy)]
    struct Generic<'a, T, const N: usize>
    where
        T: PartialEq + 'a,
    {
        values: [T; N],
        pair: (Unit, Option<T>),
        address: DevicePointer<T>,
        lifetime: std::marker::PhantomData<&'a T>,
    }

    #[derive(Clone, Copy, cust_derive::DeviceCopy)]
    enum Shape {
        Empty,
        Circle(f32),
        Rectangle { width: f32, height: f32 },
    }

    #[derive(Clone, Copy, cust_derive::DeviceCopy)]
    union Bits {
        float: f32,
        integer: u32,
    }

    fn is_device_copy<T: DeviceCopy>() {}

    #[test]
    fn structs_enums_and_unions_derive_the_trait() {
        is_device_copy::<Unit>();
        is_device_copy::<Generic<'static, u32, 3>>();
        is_device_copy::<Shape>();
        is_device_copy::<Bits>();
    }
}
