//! The argument types of a launch: one for the kernel, one for the host.
//!
//! The arguments of a kernel are a struct: either one with the attribute [`arguments`](macro@crate::arguments), or
//! `Args` in the kernel's module, which [`kernel`](crate::kernel) generates. A type parameter, the side, selects the
//! types of its memory: [`Global`] and [`GlobalMut`] in the kernel, views of buffers on the host.

use crate::element::Stored;
use crate::global::{Global, GlobalMut};

/// The types that one side of a launch uses for memory.
pub trait Side {
    /// A read-only view.
    type Global<'launch, T: Stored>;
    /// A writable view.
    type GlobalMut<'launch, T: Stored>;
    /// A slice.
    type Slice<'launch, T: Stored>;
    /// A read-only pointer.
    type Pointer<'launch, T: Stored>;
    /// A writable pointer.
    type PointerMut<'launch, T: Stored>;
}

/// The kernel's side.
pub enum Device {}

impl Side for Device {
    type Global<'launch, T: Stored> = Global<'launch, T>;
    type GlobalMut<'launch, T: Stored> = GlobalMut<'launch, T>;
    type Slice<'launch, T: Stored> = &'launch [T];
    type Pointer<'launch, T: Stored> = *const T;
    type PointerMut<'launch, T: Stored> = *mut T;
}
