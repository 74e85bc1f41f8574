//! The parameters of kernels, and how their arguments become slots and values again.

use crate::arguments::Side;
use crate::element::Stored;
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
    fn global<T: Stored>(&mut self, view: OnSide::Global<'launch, T>);
    /// A writable view.
    fn global_mut<T: Stored>(&mut self, view: OnSide::GlobalMut<'launch, T>);
    /// A slice.
    fn slice<T: Stored>(&mut self, view: OnSide::Slice<'launch, T>);
    /// A read-only address.
    fn pointer<T: Stored>(&mut self, view: OnSide::Pointer<'launch, T>);
    /// A writable address.
    fn pointer_mut<T: Stored>(&mut self, view: OnSide::PointerMut<'launch, T>);
}

/// A type of a kernel's only parameter: an argument struct, or a value.
///
/// # Safety
/// It reads the parameters that [`Parameters::PARAMETERS`] of [`FromSlots::Args`] describes, and reaches no memory
/// after `'launch`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither an argument struct nor a value that a kernel takes",
    label = "plain data, a `bool`, a view, or a struct that `#[arguments]` has made; in an `unsafe fn` also a pointer \
             or a slice",
    note = "`#[kernel]` knows a view by its name: write `Global<..>` or `GlobalMut<..>`",
    note = "for a struct of plain fields, write `#[derive(Clone, Copy, cuda_std::Plain)]` and `#[repr(C)]`"
)]
pub unsafe trait FromSlots<'launch> {
    /// The argument struct of the kernel: the type itself, or for a value `Own`, which has a field for it.
    type Args<Own>;

    /// Makes the parameter from the next slots.
    ///
    /// # Safety
    /// As for [`Parameter::from_slots`].
    unsafe fn from_slots(slots: &mut Slots<'launch>) -> Self;
}

// SAFETY: a value reads its own slots, and reaches no memory.
#[diagnostic::do_not_recommend]
unsafe impl<'launch, T: Stored> FromSlots<'launch> for T {
    type Args<Own> = Own;

    unsafe fn from_slots(slots: &mut Slots<'launch>) -> Self {
        // SAFETY: as promised by the caller.
        unsafe { slots.take_scalar() }
    }
}

/// For the expansion of `#[kernel]`: `Static<fn(&()) -> T>` is `T` with `'static` for a lifetime that is left out. The
/// macro does not know whether `T` has one: argument structs do, values do not.
#[doc(hidden)]
pub type Static<F> = <F as WithLifetime<'static>>::Type;

/// See [`Static`].
#[doc(hidden)]
pub trait WithLifetime<'a> {
    /// The function's result for an argument that lives for `'a`.
    type Type;
}

impl<'a, F: Fn(&'a ()) -> T, T> WithLifetime<'a> for F {
    type Type = T;
}

/// For the expansion of `#[kernel]`: the only parameter of a kernel is a pattern, and so an argument struct.
#[doc(hidden)]
pub const fn assert_argument_struct<T: ArgumentStruct>() {}

/// An argument struct: what has the names of a kernel's parameters.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a kernel's parameter must be a name, unless it is an argument struct",
    label = "not an argument struct",
    note = "write `value: {Self}` in the kernel's signature, and `let {Self} {{ .. }} = value;` in the kernel"
)]
pub trait ArgumentStruct {}

#[diagnostic::do_not_recommend]
impl<T: Parameters> ArgumentStruct for T {}

/// A kernel's parameter by value: a number, a struct, an array, a vector of another crate, or a `bool`, if memory can
/// [hold](Stored) it. It contains no view and no pointer, so a GPU's loads through others stay loads from global
/// memory. Its alignment is at most 16 bytes.
#[diagnostic::on_unimplemented(
    message = "a kernel takes no `{Self}` by value",
    label = "neither plain data, nor a type whose bits can be checked, such as `bool`",
    note = "`#[kernel]` knows a view by its name: write `Global<..>` or `GlobalMut<..>`",
    note = "for a struct of plain fields, write `#[derive(Clone, Copy, cuda_std::Plain)]` and `#[repr(C)]`"
)]
pub trait ScalarParameter: Stored {
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
impl<T: Stored> ScalarParameter for T {
    const SLOTS: usize = {
        assert_by_value::<T>();
        size_of::<T>().div_ceil(8)
    };

    fn to_slots(self, mut push: impl FnMut(u64)) {
        let bits = self.to_stored();
        let mut left = size_of::<T>();
        let mut bytes = (&raw const bits).cast::<u8>();
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
        let value = slots as *const [u64] as *const T::Bits;
        // SAFETY: as promised by the caller the slots have the bytes of a `T`. They are aligned to 8 bytes.
        let bits = unsafe {
            match align_of::<T>() <= 8 {
                // Each thread reads its parameters. Without optimization this takes a fraction of a function's time.
                true => *value,
                false => value.read_unaligned(),
            }
        };
        T::from_stored(bits)
    }
}

/// Fails to compile if a PTX entry cannot take a `T` by value.
#[doc(hidden)]
pub const fn assert_by_value<T>() {
    assert!(size_of::<T>() > 0, "a kernel's parameter by value has a size of 0: leave it out");
    assert!(
        align_of::<T>() <= 16,
        "a kernel's parameter by value is aligned to more than 16 bytes, which PTX does not allow: pass the struct in \
         a buffer, or reduce its alignment, `repr(align(..))`, to 16"
    );
}

/// A parameter that a PTX entry takes only as an address.
#[doc(hidden)]
pub trait PointerParameter: Parameter<'static> {}

/// A parameter that is an address and a length.
#[doc(hidden)]
pub trait ViewParameter: Parameter<'static> {}

impl<T: Stored> PointerParameter for *const T {}
impl<T: Stored> PointerParameter for *mut T {}
impl<T: Stored> ViewParameter for &'static [T] {}
impl<T: Stored> ViewParameter for Global<'static, T> {}
impl<T: Stored> ViewParameter for GlobalMut<'static, T> {}

// SAFETY: the slot is the address.
unsafe impl<T: Stored> Parameter<'_> for *const T {
    const SLOTS: usize = 1;
    unsafe fn from_slots(slots: &[u64]) -> Self {
        slots[0] as usize as *const T
    }
}

// SAFETY: the slot is the address.
unsafe impl<T: Stored> Parameter<'_> for *mut T {
    const SLOTS: usize = 1;
    unsafe fn from_slots(slots: &[u64]) -> Self {
        slots[0] as usize as *mut T
    }
}

// SAFETY: the slots are address and length.
unsafe impl<'launch, T: Stored> Parameter<'launch> for &'launch [T] {
    const SLOTS: usize = 2;
    const IS_WRITABLE: bool = false;
    const ELEMENT: Option<usize> = Some(size_of::<T>());
    unsafe fn from_slots(slots: &[u64]) -> Self {
        // SAFETY: as promised by the caller. An empty buffer has a dangling but aligned address.
        unsafe { core::slice::from_raw_parts(slots[0] as usize as *const T, slots[1] as usize) }
    }
}

// SAFETY: the slots are address and length.
unsafe impl<'launch, T: Stored> Parameter<'launch> for Global<'launch, T> {
    const SLOTS: usize = 2;
    const IS_WRITABLE: bool = false;
    const ELEMENT: Option<usize> = Some(size_of::<T>());
    unsafe fn from_slots(slots: &[u64]) -> Self {
        // SAFETY: as promised by the caller.
        unsafe { Global::from_raw(slots[0] as usize as *const T, slots[1] as usize) }
    }
}

// SAFETY: the slots are address and length.
unsafe impl<'launch, T: Stored> Parameter<'launch> for GlobalMut<'launch, T> {
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
            // SAFETY: as promised by the caller the slot has the bytes of a `T`.
            return T::from_stored(unsafe { *(own as *const u64 as *const T::Bits) });
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
