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
    /// Whether the kernel may write through it.
    pub is_writable: bool,
}

impl NamedParameter {
    /// For the expansion of `#[kernel]`: a number or plain data, by value.
    #[doc(hidden)]
    pub const fn scalar<T: ScalarParameter>(name: &'static str) -> Self {
        Self { name, slots: T::SLOTS, element: None, is_writable: false }
    }

    /// For the expansion of `#[kernel]`: a pointer.
    #[doc(hidden)]
    pub const fn pointer<P: PointerParameter>(name: &'static str) -> Self {
        Self { name, slots: P::SLOTS, element: P::ELEMENT, is_writable: P::IS_WRITABLE }
    }

    /// For the expansion of `#[kernel]`: a parameter that the PTX entry takes as an address and a length.
    #[doc(hidden)]
    pub const fn view<P: ViewParameter>(name: &'static str) -> Self {
        Self { name, slots: P::SLOTS, element: P::ELEMENT, is_writable: P::IS_WRITABLE }
    }
}

/// A kernel's parameter that is memory: a view, a slice or a pointer. It lives for `'launch` only, so nothing that
/// outlives the launch can hold one.
///
/// # Safety
/// `from_slots` makes the value from [`Parameter::SLOTS`] slots exactly as the PTX entry does from its parameters, and
/// the value reaches no memory after `'launch`.
#[diagnostic::on_unimplemented(
    message = "a kernel has no parameter of the type `{Self}`",
    label = "plain data, a `Global` or a `GlobalMut`; in an `unsafe fn` also a pointer or a slice"
)]
pub unsafe trait Parameter<'launch> {
    /// The number of slots: 1 for a pointer, 2 for a view or a slice.
    const SLOTS: usize;

    /// The size of an element in bytes, if a report can name the element that was accessed.
    const ELEMENT: Option<usize> = None;

    /// Whether a kernel may write through the parameter.
    const IS_WRITABLE: bool = true;

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

/// A kernel's parameter by value: a number, a struct, an array, or a vector of another crate, if it is [plain](Plain).
/// It holds no view and no pointer, so a GPU's loads through others stay loads from global memory.
#[diagnostic::on_unimplemented(
    message = "a kernel takes no `{Self}` by value",
    label = "not plain data",
    note = "`#[kernel]` knows a view by its name: write `Global<..>` or `GlobalMut<..>`",
    note = "for a struct of plain fields, write `#[derive(Clone, Copy, cuda_std::Plain)]` and `#[repr(C)]`"
)]
pub trait ScalarParameter: Plain {
    /// The number of slots: one for each 8 bytes.
    const SLOTS: usize;

    /// Passes the value's bytes to `push`, slot by slot. The last slot ends with zeros.
    fn to_slots(self, push: impl FnMut(u64));

    /// Makes the value from its slots.
    ///
    /// # Safety
    /// `slots` begins with [`ScalarParameter::SLOTS`] slots.
    #[doc(hidden)]
    unsafe fn from_slots(slots: &[u64]) -> Self;
}

// All hosts of CUDA are little-endian: the first bytes of the slots are the value.
#[diagnostic::do_not_recommend]
impl<T: Plain> ScalarParameter for T {
    const SLOTS: usize = {
        assert!(size_of::<T>() > 0, "a kernel's parameter has a size");
        size_of::<T>().div_ceil(8)
    };

    fn to_slots(self, mut push: impl FnMut(u64)) {
        let mut left = size_of::<T>();
        let mut bytes = (&raw const self).cast::<u8>();
        while left > 0 {
            let (mut slot, count) = (0_u64, left.min(8));
            // SAFETY: `bytes` has `left` bytes of the value, none of which is padding, and `slot` has 8.
            unsafe {
                bytes.copy_to_nonoverlapping((&raw mut slot).cast(), count);
                bytes = bytes.add(count);
            }
            push(slot);
            left -= count;
        }
    }

    unsafe fn from_slots(slots: &[u64]) -> Self {
        let value = slots as *const [u64] as *const T;
        // SAFETY: as promised by the caller the slots have the bytes of a `T`, for which any bits are valid. They are
        // aligned to 8 bytes.
        unsafe {
            match align_of::<T>() <= 8 {
                // Each thread reads its parameters. Without optimization this takes a fraction of a function's time.
                true => *value,
                false => value.read_unaligned(),
            }
        }
    }
}

/// A parameter that a PTX entry takes only as an address.
#[doc(hidden)]
pub trait PointerParameter: Parameter<'static> {}

/// A parameter that is an address and a length.
#[doc(hidden)]
pub trait ViewParameter: Parameter<'static> {}

impl<T: Plain> PointerParameter for *const T {}
impl<T: Plain> PointerParameter for *mut T {}
impl<T: Plain> ViewParameter for &'static [T] {}
impl<T: Plain> ViewParameter for Global<'static, T> {}
impl<T: Plain> ViewParameter for GlobalMut<'static, T> {}

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
    const IS_WRITABLE: bool = false;
    const ELEMENT: Option<usize> = Some(size_of::<T>());
    unsafe fn from_slots(slots: &[u64]) -> Self {
        // SAFETY: as promised by the caller. An empty buffer has a dangling but aligned address.
        unsafe { core::slice::from_raw_parts(slots[0] as usize as *const T, slots[1] as usize) }
    }
}

// SAFETY: the slots are address and length.
unsafe impl<'launch, T: Plain> Parameter<'launch> for Global<'launch, T> {
    const SLOTS: usize = 2;
    const IS_WRITABLE: bool = false;
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

    /// Reads the next parameter, which is memory.
    ///
    /// # Safety
    /// As for [`Parameter::from_slots`].
    pub unsafe fn take<P: Parameter<'a>>(&mut self) -> P {
        // SAFETY: as promised by the caller. A parameter reads its own slots, which are the first ones.
        unsafe { P::from_slots(self.next(P::SLOTS)) }
    }

    /// Reads the next parameter, which is a value.
    ///
    /// # Safety
    /// As for [`ScalarParameter::from_slots`].
    pub unsafe fn take_scalar<T: ScalarParameter>(&mut self) -> T {
        // Most values have one slot. This takes a third of the time without optimization.
        if const { size_of::<T>() <= 8 && align_of::<T>() <= 8 }
            && let [own, rest @ ..] = self.0
        {
            self.0 = rest;
            // SAFETY: as promised by the caller the slot has the bytes of a `T`, for which any bits are valid.
            return unsafe { *(own as *const u64 as *const T) };
        }
        // SAFETY: as promised by the caller. A parameter reads its own slots, which are the first ones.
        unsafe { T::from_slots(self.next(T::SLOTS)) }
    }

    /// The slots from the next parameter's on, which has this number of them.
    #[inline(always)]
    fn next(&mut self, count: usize) -> &'a [u64] {
        let own = self.0;
        // Patterns, because without optimization `split_at` takes as long as the rest of a small kernel.
        self.0 = match own {
            [_, rest @ ..] if count == 1 => rest,
            [_, _, rest @ ..] if count == 2 => rest,
            all => &all[count..],
        };
        own
    }
}
