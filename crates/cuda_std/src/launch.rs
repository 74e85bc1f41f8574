//! The host side of a kernel: a typed handle, and the conversion of arguments to parameters.
//!
//! For each kernel `#[kernel]` generates a module of the same name, with a function `handle` and, for a kernel that
//! lists its parameters, a struct `Args` with a field for each. The handle holds the kernel's PTX entry, its argument
//! struct, its block if the kernel's type fixes one, and a function that runs one thread of it on the CPU. The host
//! crate launches it on either backend; this module does not.
//!
//! A launch passes each argument as one or two 64-bit *slots*: the bits of a scalar, or a view's address and length.
//! CUDA and the executor get the same slots.

#[cfg(any(not(feature = "simt"), target_arch = "nvptx64"))]
mod dim;

use core::fmt;
use core::marker::PhantomData;

#[cfg(all(feature = "simt", not(target_arch = "nvptx64")))]
pub use simt::Dim3;

#[cfg(any(not(feature = "simt"), target_arch = "nvptx64"))]
pub use self::dim::Dim3;
use crate::arguments::Side;
use crate::element::{Element, Plain};
use crate::erase::{Erase, Sizes};
use crate::global::{Global, GlobalMut};

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

/// A kernel's parameter, as the executor's reports name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedParameter {
    /// The name in the source.
    pub name: &'static str,
    /// The number of slots.
    pub slots: usize,
    /// The size of an element in bytes, if the parameter is memory.
    pub element: Option<usize>,
}

impl NamedParameter {
    /// For the expansion of `#[kernel]`: a parameter that the PTX entry takes as one scalar.
    #[doc(hidden)]
    pub const fn scalar<P: SingleParameter>(name: &'static str) -> Self {
        Self { name, slots: P::SLOTS, element: P::ELEMENT }
    }

    /// For the expansion of `#[kernel]`: a parameter that the PTX entry takes as an address and a length.
    #[doc(hidden)]
    pub const fn view<P: ViewParameter>(name: &'static str) -> Self {
        Self { name, slots: P::SLOTS, element: P::ELEMENT }
    }
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

    /// The same kernel with another argument type: where an operator does the same for two element types, one kernel
    /// serves both.
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
    /// launch checks the size.
    pub fn with_dynamic_shared(self, bytes: usize) -> Self {
        Self { dynamic_shared: bytes, ..self }
    }

    /// The dynamic shared memory of a launch, in bytes.
    pub fn dynamic_shared(&self) -> usize {
        self.dynamic_shared
    }

    /// The function that runs one thread of the kernel on the CPU.
    ///
    /// Calling it is unsafe: only within a launch of the executor, with the slots of an `Args`.
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

/// A type that a kernel's parameter may have. A view lives for `'launch` only, so nothing that outlives the launch can
/// hold one.
///
/// # Safety
/// `from_slots` makes the value from [`Parameter::SLOTS`] slots exactly as the PTX entry does from its parameters, and
/// the value reaches no memory after `'launch`.
#[diagnostic::on_unimplemented(
    message = "a kernel has no parameter of the type `{Self}`",
    label = "a number, a `Global` or a `GlobalMut`; in an `unsafe fn` also a pointer or a slice"
)]
pub unsafe trait Parameter<'launch> {
    /// The number of slots: 1 for a scalar or a pointer, 2 for a view or a slice.
    const SLOTS: usize;

    /// The size of an element in bytes, if the parameter is memory.
    const ELEMENT: Option<usize> = None;

    /// Makes the parameter from its slots.
    ///
    /// # Safety
    /// `slots` begins with [`Parameter::SLOTS`] slots, made from an argument for this parameter type. Memory that they refer to
    /// is valid for `'launch`.
    unsafe fn from_slots(slots: &[u64]) -> Self;
}

/// A kernel's argument struct, with a field for each parameter, as the kernel sees it.
///
/// `#[kernel]` and `#[arguments]` implement it.
///
/// # Safety
/// [`Parameters::visit`] visits the arguments in the order of the entries' parameters, which [`Parameters::PARAMETERS`]
/// describes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the argument struct of a kernel",
    label = "a struct that `#[arguments]` has made, or the `Args` of a kernel's module"
)]
pub unsafe trait Parameters {
    /// The parameters, in order.
    const PARAMETERS: &'static [NamedParameter];

    /// The same struct for one side of the launch.
    type On<'launch, OnSide: Side>;

    /// Visits each argument, in order.
    fn visit<'launch, OnSide: Side>(arguments: Self::On<'launch, OnSide>, visitor: &mut impl Visitor<'launch, OnSide>);
}

/// Receives the arguments of a launch, in order.
pub trait Visitor<'launch, OnSide: Side> {
    /// A number.
    fn scalar<T: ScalarParameter>(&mut self, number: T);
    /// A read-only view.
    fn global<T: Plain>(&mut self, view: OnSide::Global<'launch, T>);
    /// A writable view.
    fn global_mut<T: Plain>(&mut self, view: OnSide::GlobalMut<'launch, T>);
    /// A slice.
    fn slice<T: Plain>(&mut self, view: OnSide::Slice<'launch, T>);
    /// A read-only address.
    fn pointer<T: Plain>(&mut self, view: OnSide::Pointer<'launch, T>);
    /// A writable address.
    fn pointer_mut<T: Plain>(&mut self, view: OnSide::PointerMut<'launch, T>);
}

/// An argument struct that a kernel takes as its only parameter.
///
/// # Safety
/// It reads the parameters that [`Parameters::PARAMETERS`] describes, and reaches no memory after `'launch`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an argument struct",
    label = "a view, a number or a struct that `#[arguments]` has made; in an `unsafe fn` also a pointer or a slice"
)]
pub unsafe trait FromSlots<'launch> {
    /// Makes the arguments from the next slots.
    ///
    /// # Safety
    /// As for [`Parameter::from_slots`].
    unsafe fn from_slots(slots: &mut Slots<'launch>) -> Self;
}

/// A number, which takes one slot.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is a view by another name",
    note = "`#[kernel]` knows a view by its name: write `Global<..>` or `GlobalMut<..>`"
)]
pub trait ScalarParameter: SingleParameter + Copy {
    /// The bits of the number.
    fn to_slot(self) -> u64;
}

/// A parameter of one slot, which a PTX entry takes as one scalar.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is a view by another name",
    note = "`#[kernel]` knows a view by its name: write `Global<..>` or `GlobalMut<..>`"
)]
#[doc(hidden)]
pub trait SingleParameter: Parameter<'static> {}

/// A parameter that is an address and a length.
#[doc(hidden)]
pub trait ViewParameter: Parameter<'static> {}

impl<T: Plain> SingleParameter for *const T {}
impl<T: Plain> SingleParameter for *mut T {}
impl<T: Plain> ViewParameter for &'static [T] {}
impl<T: Plain> ViewParameter for Global<'static, T> {}
impl<T: Plain> ViewParameter for GlobalMut<'static, T> {}

/// The number in the low bytes of a slot. It is read once for each thread, and without optimization a cast takes a
/// fraction of the time of functions of bytes.
macro_rules! number {
    (f32, $slot:expr) => {
        f32::from_bits($slot as u32)
    };
    (f64, $slot:expr) => {
        f64::from_bits($slot)
    };
    ($type:ty, $slot:expr) => {
        $slot as $type
    };
}

macro_rules! scalars {
    ($($type:tt),*) => {$(
        impl SingleParameter for $type {}

        impl ScalarParameter for $type {
            fn to_slot(self) -> u64 {
                let mut slot = [0; 8];
                let bytes = self.to_le_bytes();
                slot[..bytes.len()].copy_from_slice(&bytes);
                u64::from_le_bytes(slot)
            }
        }

        // SAFETY: the low bytes of the slot are the value: all hosts of CUDA are little-endian.
        unsafe impl Parameter<'_> for $type {
            const SLOTS: usize = 1;
            unsafe fn from_slots(slots: &[u64]) -> Self {
                number!($type, slots[0])
            }
        }
    )*};
}

scalars!(i8, u8, i16, u16, i32, u32, i64, u64, isize, usize, f32, f64);

// SAFETY: the slot is the address.
unsafe impl<T: Plain> Parameter<'_> for *const T {
    const SLOTS: usize = 1;
    unsafe fn from_slots(slots: &[u64]) -> Self {
        slots[0] as usize as *const T
    }
}

// SAFETY: the slot is the address.
unsafe impl<T: Plain> Parameter<'_> for *mut T {
    const SLOTS: usize = 1;
    unsafe fn from_slots(slots: &[u64]) -> Self {
        slots[0] as usize as *mut T
    }
}

// SAFETY: the slots are address and length.
unsafe impl<'launch, T: Plain> Parameter<'launch> for &'launch [T] {
    const SLOTS: usize = 2;
    const ELEMENT: Option<usize> = Some(size_of::<T>());
    unsafe fn from_slots(slots: &[u64]) -> Self {
        // SAFETY: as promised by the caller. An empty buffer has a dangling but aligned address.
        unsafe { core::slice::from_raw_parts(slots[0] as usize as *const T, slots[1] as usize) }
    }
}

// SAFETY: the slots are address and length.
unsafe impl<'launch, T: Plain> Parameter<'launch> for Global<'launch, T> {
    const SLOTS: usize = 2;
    const ELEMENT: Option<usize> = Some(size_of::<T>());
    unsafe fn from_slots(slots: &[u64]) -> Self {
        // SAFETY: as promised by the caller.
        unsafe { Global::from_raw(slots[0] as usize as *const T, slots[1] as usize) }
    }
}

// SAFETY: the slots are address and length.
unsafe impl<'launch, T: Plain> Parameter<'launch> for GlobalMut<'launch, T> {
    const SLOTS: usize = 2;
    const ELEMENT: Option<usize> = Some(size_of::<T>());
    unsafe fn from_slots(slots: &[u64]) -> Self {
        // SAFETY: as promised by the caller.
        unsafe { GlobalMut::from_raw(slots[0] as usize as *mut T, slots[1] as usize) }
    }
}

/// Reads parameters from a launch's slots, in order. They live no longer than the slots.
#[doc(hidden)]
pub struct Slots<'a>(&'a [u64]);

impl<'a> Slots<'a> {
    /// Starts at the first slot of a launch.
    pub fn new(slots: &'a [u64]) -> Self {
        Self(slots)
    }

    /// Reads the next parameter.
    ///
    /// # Safety
    /// As for [`Parameter::from_slots`].
    pub unsafe fn take<P: Parameter<'a>>(&mut self) -> P {
        let own = self.0;
        // Patterns, because without optimization `split_at` takes as long as the rest of a small kernel.
        self.0 = match (P::SLOTS, self.0) {
            (0, rest) | (1, [_, rest @ ..]) | (2, [_, _, rest @ ..]) => rest,
            (slots, all) => &all[slots..],
        };
        // SAFETY: as promised by the caller. A parameter reads its own slots, which are the first ones.
        unsafe { P::from_slots(own) }
    }
}

/// An instance of a generic kernel: implemented for the arguments that `#[kernel(instances = ...)]` lists.
#[diagnostic::on_unimplemented(
    message = "the kernel has no instance `{Self}`",
    label = "not among the instances that `#[kernel(instances = ...)]` lists for it",
    note = "choose one of the listed element types and block sizes, or add this one to the list"
)]
///
/// # Safety
/// [`Instance::THREAD`] runs this instance, [`Instance::PARAMETERS`] describe it, and [`Instance::ENTRY`] is its PTX
/// entry.
#[doc(hidden)]
pub unsafe trait Instance {
    /// The PTX entry.
    const ENTRY: &'static str;
    /// The block, if the kernel's type fixes it; else `[0; 3]`.
    const BLOCK: [u32; 3];
    /// The kernel's parameters, in order.
    const PARAMETERS: &'static [NamedParameter];
    /// Runs one thread of the instance on the CPU, from the slots of its arguments.
    const THREAD: unsafe fn(&[u64]);
}

/// For the expansion of `#[kernel]`: the code that runs a kernel on the CPU, and where there is no executor nothing of
/// it. So a kernel's instances are compiled for the CPU only if the feature `simt` of this crate is on.
#[cfg(feature = "simt")]
#[macro_export]
#[doc(hidden)]
macro_rules! __for_executor {
    ($($code:tt)*) => { $($code)* };
}

/// For the expansion of `#[kernel]`: the code that runs a kernel on the CPU, and where there is no executor nothing of
/// it. So a kernel's instances are compiled for the CPU only if the feature `simt` of this crate is on.
#[cfg(not(feature = "simt"))]
#[macro_export]
#[doc(hidden)]
macro_rules! __for_executor {
    ($($code:tt)*) => {};
}

/// For the expansion of `#[kernel]`: the given function where there is an executor, else one that panics.
#[cfg(feature = "simt")]
#[macro_export]
#[doc(hidden)]
macro_rules! __thread {
    ($thread:expr) => {
        $thread
    };
}

/// For the expansion of `#[kernel]`: the given function where there is an executor, else one that panics.
#[cfg(not(feature = "simt"))]
#[macro_export]
#[doc(hidden)]
macro_rules! __thread {
    ($thread:expr) => {
        $crate::launch::no_executor
    };
}

/// Stands in for the function that runs one thread of a kernel, where no executor could call it.
#[cfg(not(feature = "simt"))]
#[doc(hidden)]
pub fn no_executor(_slots: &[u64]) {
    panic!("there is no executor: enable the feature `simt` of `cuda_std`, or of `warpfold`");
}

/// A kernel that is compiled once per sizes of its element, state and output: see [`crate::erase`].
#[doc(hidden)]
pub trait ErasedKernel {
    /// Runs one thread of it from the slots of its arguments, with the current table.
    ///
    /// # Safety
    /// The slots hold the arguments of an instance whose types have the sizes of `T`, `S` and `U`.
    unsafe fn thread<T: Element, S: Plain, U: Plain>(slots: &[u64]);
}

/// The function that runs one thread of the instance of `K` for the operator `O` on elements `T`: enters the operator's
/// table, then runs the function for its sizes.
#[doc(hidden)]
pub const fn erased_thread<K: ErasedKernel, E: Erase<O, T>, O, T>() -> unsafe fn(&[u64]) {
    match E::SIZES.element {
        1 => by_state::<K, E, O, T, u8>(E::SIZES),
        2 => by_state::<K, E, O, T, u16>(E::SIZES),
        4 => by_state::<K, E, O, T, u32>(E::SIZES),
        8 => by_state::<K, E, O, T, u64>(E::SIZES),
        _ => panic!("an erased kernel's elements have 1, 2, 4 or 8 bytes"),
    }
}

const fn by_state<K: ErasedKernel, E: Erase<O, T>, O, T, B: Element>(sizes: Sizes) -> unsafe fn(&[u64]) {
    match sizes.state {
        1 => by_output::<K, E, O, T, B, u8>(sizes),
        2 => by_output::<K, E, O, T, B, u16>(sizes),
        4 => by_output::<K, E, O, T, B, u32>(sizes),
        8 => by_output::<K, E, O, T, B, u64>(sizes),
        16 => by_output::<K, E, O, T, B, u128>(sizes),
        _ => by_output::<K, E, O, T, B, [u64; 4]>(sizes),
    }
}

const fn by_output<K: ErasedKernel, E: Erase<O, T>, O, T, B: Element, S: Plain>(sizes: Sizes) -> unsafe fn(&[u64]) {
    match sizes.output {
        1 => by_table::<K, E, O, T, B, S, u8>,
        2 => by_table::<K, E, O, T, B, S, u16>,
        4 => by_table::<K, E, O, T, B, S, u32>,
        8 => by_table::<K, E, O, T, B, S, u64>,
        _ => by_table::<K, E, O, T, B, S, u128>,
    }
}

/// # Safety
/// As for [`ErasedKernel::thread`].
unsafe fn by_table<K: ErasedKernel, E: Erase<O, T>, O, T, B: Element, S: Plain, U: Plain>(slots: &[u64]) {
    E::enter::<B, S, U>();
    // SAFETY: as promised by the caller.
    unsafe { K::thread::<B, S, U>(slots) }
}
