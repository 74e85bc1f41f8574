//! The two sides of a launch, of which a kernel's arguments have a type each.
//!
//! The arguments of a kernel are a struct: that which [`arguments`](macro@crate::arguments) makes of one that somebody
//! wrote, or `Args` in the kernel's module, which [`kernel`](crate::kernel) writes. Its memory is
//! [`Global`] and [`GlobalMut`] in the kernel and views of buffers on the host, by a type parameter, the side.

use crate::element::Plain;
use crate::global::{Global, GlobalMut};

/// How a side of a launch names memory.
pub trait Side {
    /// A view that is read.
    type Global<'launch, T: Plain>;
    /// A view that is written.
    type GlobalMut<'launch, T: Plain>;
    /// A slice.
    type Slice<'launch, T: Plain>;
    /// The address of what is read.
    type Pointer<'launch, T: Plain>;
    /// The address of what is written.
    type PointerMut<'launch, T: Plain>;
}

/// The kernel's side.
pub enum Device {}

impl Side for Device {
    type Global<'launch, T: Plain> = Global<'launch, T>;
    type GlobalMut<'launch, T: Plain> = GlobalMut<'launch, T>;
    type Slice<'launch, T: Plain> = &'launch [T];
    type Pointer<'launch, T: Plain> = *const T;
    type PointerMut<'launch, T: Plain> = *mut T;
}
