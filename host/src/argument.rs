//! What may be given to a kernel for its parameters.

use cuda_std::element::Plain;
use cuda_std::global::{Global, GlobalMut};

use crate::buffer::{View, ViewMut};
use crate::machine::Memory;

/// A value that a launch takes for a kernel's parameter of type `P`: a scalar for itself, a [`View`] for a `Global` or
/// a slice, a [`ViewMut`] for a `GlobalMut` or a pointer.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no argument for a kernel's parameter of type `{P}`",
    label = "this kernel's parameter is a `{P}`",
    note = "a `Global<T>` takes a `View<T>` (`buffer.view()`), a `GlobalMut<T>` a `ViewMut<T>` (`buffer.view_mut()`), a \
            scalar itself"
)]
pub trait Argument<P>: private::Sealed<P> {}

/// A tuple of arguments for a kernel whose parameters are the tuple `Args`.
#[diagnostic::on_unimplemented(
    message = "these arguments do not fit the kernel's parameters",
    label = "the kernel's parameters are `{Args}`",
    note = "give one argument for each parameter, in order, as a tuple"
)]
pub trait Arguments<Args>: private::SealedTuple<Args> {}

pub(crate) mod private {
    use super::Memory;

    pub trait Sealed<P> {
        /// Appends the parameter's slots, and shows the memory that they name.
        fn write<'a>(&'a self, slots: &mut Vec<u64>, memories: &mut Vec<&'a Memory>);
    }

    pub trait SealedTuple<Args> {
        /// All arguments' slots, and the memory that they name.
        fn write<'a>(&'a self, slots: &mut Vec<u64>, memories: &mut Vec<&'a Memory>);
    }
}

macro_rules! scalars {
    ($($type:ty),*) => {$(
        impl Argument<$type> for $type {}
        impl private::Sealed<$type> for $type {
            fn write<'a>(&'a self, slots: &mut Vec<u64>, _: &mut Vec<&'a Memory>) {
                let mut slot = [0; 8];
                let bytes = self.to_le_bytes();
                slot[..bytes.len()].copy_from_slice(&bytes);
                slots.push(u64::from_le_bytes(slot));
            }
        }
    )*};
}

scalars!(i8, u8, i16, u16, i32, u32, i64, u64, isize, usize, f32, f64);

macro_rules! views {
    ($($view:ident for $parameter:ty, $slots:literal slots;)*) => {$(
        impl<T: Plain> Argument<$parameter> for $view<'_, T> {}
        impl<T: Plain> private::Sealed<$parameter> for $view<'_, T> {
            fn write<'a>(&'a self, slots: &mut Vec<u64>, memories: &mut Vec<&'a Memory>) {
                slots.extend_from_slice(&self.slots()[..$slots]);
                memories.push(self.memory());
            }
        }
    )*};
}

views! {
    View for Global<'static, T>, 2 slots;
    View for &'static [T], 2 slots;
    View for *const T, 1 slots;
    ViewMut for GlobalMut<'static, T>, 2 slots;
    ViewMut for *mut T, 1 slots;
}

macro_rules! tuples {
    ($(($($argument:ident $parameter:ident $index:tt),*);)*) => {$(
        impl<$($argument, $parameter),*> Arguments<($($parameter,)*)> for ($($argument,)*)
        where $($argument: Argument<$parameter>),* {}
        impl<$($argument, $parameter),*> private::SealedTuple<($($parameter,)*)> for ($($argument,)*)
        where $($argument: Argument<$parameter>),* {
            fn write<'a>(&'a self, _slots: &mut Vec<u64>, _memories: &mut Vec<&'a Memory>) {
                $(private::Sealed::<$parameter>::write(&self.$index, _slots, _memories);)*
            }
        }
    )*};
}

tuples! {
    ();
    (A0 P0 0);
    (A0 P0 0, A1 P1 1);
    (A0 P0 0, A1 P1 1, A2 P2 2);
    (A0 P0 0, A1 P1 1, A2 P2 2, A3 P3 3);
    (A0 P0 0, A1 P1 1, A2 P2 2, A3 P3 3, A4 P4 4);
    (A0 P0 0, A1 P1 1, A2 P2 2, A3 P3 3, A4 P4 4, A5 P5 5);
    (A0 P0 0, A1 P1 1, A2 P2 2, A3 P3 3, A4 P4 4, A5 P5 5, A6 P6 6);
    (A0 P0 0, A1 P1 1, A2 P2 2, A3 P3 3, A4 P4 4, A5 P5 5, A6 P6 6, A7 P7 7);
    (A0 P0 0, A1 P1 1, A2 P2 2, A3 P3 3, A4 P4 4, A5 P5 5, A6 P6 6, A7 P7 7, A8 P8 8);
    (A0 P0 0, A1 P1 1, A2 P2 2, A3 P3 3, A4 P4 4, A5 P5 5, A6 P6 6, A7 P7 7, A8 P8 8, A9 P9 9);
    (A0 P0 0, A1 P1 1, A2 P2 2, A3 P3 3, A4 P4 4, A5 P5 5, A6 P6 6, A7 P7 7, A8 P8 8, A9 P9 9, A10 P10 10);
    (A0 P0 0, A1 P1 1, A2 P2 2, A3 P3 3, A4 P4 4, A5 P5 5, A6 P6 6, A7 P7 7, A8 P8 8, A9 P9 9, A10 P10 10, A11 P11 11);
    (A0 P0 0, A1 P1 1, A2 P2 2, A3 P3 3, A4 P4 4, A5 P5 5, A6 P6 6, A7 P7 7, A8 P8 8, A9 P9 9, A10 P10 10, A11 P11 11, A12 P12 12);
    (A0 P0 0, A1 P1 1, A2 P2 2, A3 P3 3, A4 P4 4, A5 P5 5, A6 P6 6, A7 P7 7, A8 P8 8, A9 P9 9, A10 P10 10, A11 P11 11, A12 P12 12, A13 P13 13);
    (A0 P0 0, A1 P1 1, A2 P2 2, A3 P3 3, A4 P4 4, A5 P5 5, A6 P6 6, A7 P7 7, A8 P8 8, A9 P9 9, A10 P10 10, A11 P11 11, A12 P12 12, A13 P13 13, A14 P14 14);
}
