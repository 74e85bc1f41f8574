//! The parameters of kernels, and how their arguments become slots and values again.

use crate::arguments::Side;
use crate::element::Plain;
use crate::global::{Global, GlobalMut};

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

/// A type that a kernel's parameter may have. A view lives for `'launch` only, so nothing that outlives the launch can
/// hold one.
///
/// # Safety
/// `from_slots` makes the value from [`Parameter::SLOTS`] slots exactly as the PTX entry does from its parameters, and
/// the value reaches no memory after `'launch`.
#[diagnostic::on_unimplemented(
    message = "a kernel has no parameter of the type `{Self}`",
    label = "a number, a `Plain` struct, a `Global` or a `GlobalMut`; in an `unsafe fn` also a pointer or a slice"
)]
pub unsafe trait Parameter<'launch> {
    /// The number of slots: 1 for a number or a pointer, 2 for a view or a slice, one for each 8 bytes of a struct.
    const SLOTS: usize;

    /// The size of an element in bytes, if the parameter is memory.
    const ELEMENT: Option<usize> = None;

    /// Makes the parameter from its slots.
    ///
    /// # Safety
    /// `slots` begins with [`Parameter::SLOTS`] slots, made from an argument for this parameter type. Memory that they
    /// refer to is valid for `'launch`.
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

/// A number, or a struct of plain data by value, which `#[derive(Plain)]` makes a parameter. A struct holds no view and
/// no pointer, so a GPU's loads through others stay loads from global memory.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is a view by another name",
    note = "`#[kernel]` knows a view by its name: write `Global<..>` or `GlobalMut<..>`"
)]
pub trait ScalarParameter: SingleParameter + Copy {
    /// Gives out the bits of the value, slot by slot.
    fn to_slots(self, push: impl FnMut(u64));
}

/// A parameter that a PTX entry takes as one: a number, a pointer or a struct.
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
            fn to_slots(self, push: impl FnMut(u64)) {
                plain_to_slots(&self, push);
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

/// For `#[derive(Plain)]`: the number of slots of a struct.
#[doc(hidden)]
pub const fn slots_of_plain<T: bytemuck::Pod>() -> usize {
    assert!(size_of::<T>() > 0, "a kernel's parameter has a size");
    size_of::<T>().div_ceil(8)
}

/// For `#[derive(Plain)]`: gives out the bytes of a value, slot by slot; the last slot ends with zeros.
#[doc(hidden)]
pub fn plain_to_slots<T: bytemuck::Pod>(value: &T, mut push: impl FnMut(u64)) {
    for bytes in bytemuck::bytes_of(value).chunks(8) {
        let mut slot = [0; 8];
        slot[..bytes.len()].copy_from_slice(bytes);
        push(u64::from_le_bytes(slot));
    }
}

/// For `#[derive(Plain)]`: the value in the first bytes of the slots.
#[doc(hidden)]
pub fn plain_from_slots<T: bytemuck::Pod>(slots: &[u64]) -> T {
    bytemuck::pod_read_unaligned(&bytemuck::cast_slice(slots)[..size_of::<T>()])
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
