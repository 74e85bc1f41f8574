//! The host side of a kernel: a typed handle, and the conversion of arguments to parameters.
//!
//! For each kernel `#[kernel]` generates a module of the same name, with a function `handle` and, for a kernel that
//! lists its parameters, a struct `Args` with a field for each. The handle holds the kernel's PTX entry, its argument
//! struct, its block if the kernel's type fixes one, and a function that runs one thread of it on the CPU. The host
//! crate launches it on either backend; this module does not.
//!
//! A launch passes each argument as 64-bit *slots*: the address of a pointer, the address and the length of a view, or
//! the bytes of a value, 8 per slot. CUDA and the executor get the same slots.

#[cfg(any(not(feature = "simt"), target_arch = "nvptx64"))]
mod dim;
mod instance;
mod parameters;

use core::fmt;
use core::marker::PhantomData;

#[cfg(all(feature = "simt", not(target_arch = "nvptx64")))]
pub use simt::Dim3;

#[cfg(any(not(feature = "simt"), target_arch = "nvptx64"))]
pub use self::dim::Dim3;
pub use self::instance::*;
pub use self::parameters::*;

/// A kernel and its block, ready to be launched with a grid and `Args`, its argument [struct](Parameters) as the kernel
/// sees it.
pub struct Kernel<Args> {
    id: KernelId,
    block: Dim3,
    dynamic_shared: usize,
    parameters: &'static [NamedParameter],
    thread: unsafe fn(&[u64]),
    args: PhantomData<fn(Args)>,
}

/// A kernel that accepts any block: [`AnyBlock::with_block`] makes it a [`Kernel`].
pub struct AnyBlock<Args> {
    id: KernelId,
    parameters: &'static [NamedParameter],
    thread: unsafe fn(&[u64]),
    args: PhantomData<fn(Args)>,
}

/// Identifies a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelId {
    /// The crate that defines it.
    pub library: &'static str,
    /// The entry in that crate's PTX.
    pub entry: &'static str,
}

impl fmt::Display for KernelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry)
    }
}

// By hand: a derive would require `Args: Clone`.
impl<Args> Clone for Kernel<Args> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<Args> Copy for Kernel<Args> {}
impl<Args> Clone for AnyBlock<Args> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<Args> Copy for AnyBlock<Args> {}

impl<Args> fmt::Debug for Kernel<Args> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("id", &self.id).field("block", &self.block).finish()
    }
}

impl<Args> fmt::Debug for AnyBlock<Args> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyBlock").field("id", &self.id).finish()
    }
}

impl<Args> Kernel<Args> {
    /// For the expansion of `#[kernel]`.
    ///
    /// # Safety
    /// With the slots of `Args`, in a block of `block` threads, `thread` runs one thread of the kernel named by `id`.
    #[doc(hidden)]
    pub const unsafe fn new(
        id: KernelId,
        block: Dim3,
        parameters: &'static [NamedParameter],
        thread: unsafe fn(&[u64]),
    ) -> Self {
        Self { id, block, dynamic_shared: 0, parameters, thread, args: PhantomData }
    }

    /// The same kernel with another argument type: one kernel serves two element types if its operator computes the
    /// same bits for both.
    ///
    /// # Safety
    /// `Other` has the same slots as `Args`, with views in the same places, and the kernel treats the bits of `Other`'s
    /// elements as intended.
    #[doc(hidden)]
    pub const unsafe fn reinterpret<Other>(self) -> Kernel<Other> {
        let Self { id, block, dynamic_shared, parameters, thread, .. } = self;
        Kernel { id, block, dynamic_shared, parameters, thread, args: PhantomData }
    }

    /// The parameters, in order.
    pub fn parameters(&self) -> &'static [NamedParameter] {
        self.parameters
    }

    /// The kernel's identity.
    pub fn id(&self) -> KernelId {
        self.id
    }

    /// The block it is launched with.
    pub fn block(&self) -> Dim3 {
        self.block
    }

    /// The kernel with `bytes` bytes of dynamic shared memory ([`dynamic_shared`](crate::shared::dynamic_shared)). The
    /// launch checks the size. With the kernel's arrays, a block can have 48 KiB in the executor, and on a GPU what the
    /// device has: 64 KiB on sm_75, 163 KiB on sm_80, 227 KiB on sm_90.
    pub fn with_dynamic_shared(self, bytes: usize) -> Self {
        Self { dynamic_shared: bytes, ..self }
    }

    /// The dynamic shared memory of a launch, in bytes.
    pub fn dynamic_shared(&self) -> usize {
        self.dynamic_shared
    }

    /// The function that runs one thread of the kernel on the CPU.
    ///
    /// Call it only within a launch of the executor, with the slots of an `Args`; any other call is undefined
    /// behaviour.
    pub fn thread(&self) -> unsafe fn(&[u64]) {
        self.thread
    }
}

impl<Args> AnyBlock<Args> {
    /// For the expansion of `#[kernel]`.
    ///
    /// # Safety
    /// As for [`Kernel::new`], for any block.
    #[doc(hidden)]
    pub const unsafe fn new(id: KernelId, parameters: &'static [NamedParameter], thread: unsafe fn(&[u64])) -> Self {
        Self { id, parameters, thread, args: PhantomData }
    }

    /// The same kernel with another argument type.
    ///
    /// # Safety
    /// As for [`Kernel::reinterpret`].
    #[doc(hidden)]
    pub const unsafe fn reinterpret<Other>(self) -> AnyBlock<Other> {
        let Self { id, parameters, thread, .. } = self;
        AnyBlock { id, parameters, thread, args: PhantomData }
    }

    /// The kernel's identity.
    pub fn id(&self) -> KernelId {
        self.id
    }

    /// The kernel with a block of `block` threads: `256`, `(16, 16)` or `(8, 8, 8)`. The launch checks the size.
    pub fn with_block(self, block: impl Into<Dim3>) -> Kernel<Args> {
        let Self { id, parameters, thread, .. } = self;
        Kernel { id, block: block.into(), dynamic_shared: 0, parameters, thread, args: PhantomData }
    }
}
