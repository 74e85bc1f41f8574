//! Items that the expansion of `#[kernel]` uses.

#[cfg(target_arch = "nvptx64")]
use crate::element::Stored;
#[cfg(target_arch = "nvptx64")]
use crate::global::{Global, GlobalMut};

/// Declares a PTX entry. The unstable ABI is in this macro so that a kernel crate needs no feature of its own.
#[cfg(target_arch = "nvptx64")]
#[macro_export]
#[doc(hidden)]
#[allow_internal_unstable(abi_ptx)]
macro_rules! __entry {
    ($name:ident ($($parameter:ident: $type:ty),* $(,)?) $body:block) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "ptx-kernel" fn $name($($parameter: $type),*) $body
    };
}

/// States the entry's block size in the PTX, as a comment that `cuda_builder` turns into `.reqntid`, because rustc has
/// no attribute for it. `ptxas` can then use all registers that such a block leaves to each thread, and the driver
/// refuses any other block size.
#[cfg(target_arch = "nvptx64")]
#[macro_export]
#[doc(hidden)]
#[allow_internal_unstable(asm_experimental_arch)]
macro_rules! __block {
    ($x:expr, $y:expr, $z:expr) => {
        // SAFETY: a comment.
        unsafe {
            ::core::arch::asm!(
                "// reqntid {x}, {y}, {z}",
                x = const $x,
                y = const $y,
                z = const $z,
                options(nomem, nostack, preserves_flags),
            )
        }
    };
}

/// States the entry's maximum block size in the PTX, as a comment like that of [`__block`](crate::__block).
#[cfg(target_arch = "nvptx64")]
#[macro_export]
#[doc(hidden)]
#[allow_internal_unstable(asm_experimental_arch)]
macro_rules! __max_threads {
    ($threads:expr) => {
        // SAFETY: a comment.
        unsafe {
            ::core::arch::asm!(
                "// maxntid {threads}",
                threads = const $threads,
                options(nomem, nostack, preserves_flags),
            )
        }
    };
}

/// States the entry's minimum number of resident blocks per multiprocessor in the PTX, as a comment like that of
/// [`__block`](crate::__block).
#[cfg(target_arch = "nvptx64")]
#[macro_export]
#[doc(hidden)]
#[allow_internal_unstable(asm_experimental_arch)]
macro_rules! __min_blocks {
    ($blocks:expr) => {
        // SAFETY: a comment.
        unsafe {
            ::core::arch::asm!(
                "// minnctapersm {blocks}",
                blocks = const $blocks,
                options(nomem, nostack, preserves_flags),
            )
        }
    };
}

/// States in the PTX the largest grid, in blocks along x, whose blocks read their parameters while they wait, as a
/// comment like that of [`__block`](crate::__block).
#[cfg(target_arch = "nvptx64")]
#[macro_export]
#[doc(hidden)]
#[allow_internal_unstable(asm_experimental_arch)]
macro_rules! __prefetch_blocks {
    ($blocks:expr) => {
        // SAFETY: a comment.
        unsafe {
            ::core::arch::asm!(
                "// prefetch_blocks {blocks}",
                blocks = const $blocks,
                options(nomem, nostack, preserves_flags),
            )
        }
    };
}

/// Waits for the previous grid of the stream; see `dependent_launch` of [`kernel`](crate::kernel).
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub fn wait_for_prerequisites() {
    crate::backend::wait_for_prerequisites();
}

/// A parameter that is an address and a length. A PTX entry takes them as two scalars, because loads through a slice or
/// struct that is passed whole are generic loads.
#[cfg(target_arch = "nvptx64")]
pub trait AddressAndLength {
    /// The address's type.
    type Pointer;
    /// Makes the parameter from an address and a length.
    ///
    /// # Safety
    /// Address and length are those of a view or slice of the host.
    unsafe fn from_parts(start: Self::Pointer, len: usize) -> Self;
}

#[cfg(target_arch = "nvptx64")]
impl<T: Stored> AddressAndLength for Global<'_, T> {
    type Pointer = *const T;
    #[inline(always)]
    unsafe fn from_parts(start: *const T, len: usize) -> Self {
        // SAFETY: as promised by the caller.
        unsafe { Global::from_raw(start, len) }
    }
}

#[cfg(target_arch = "nvptx64")]
impl<T: Stored> AddressAndLength for GlobalMut<'_, T> {
    type Pointer = *mut T;
    #[inline(always)]
    unsafe fn from_parts(start: *mut T, len: usize) -> Self {
        // SAFETY: as promised by the caller.
        unsafe { GlobalMut::from_raw(start, len) }
    }
}

#[cfg(target_arch = "nvptx64")]
impl<T: Stored> AddressAndLength for &[T] {
    type Pointer = *const T;
    #[inline(always)]
    unsafe fn from_parts(start: *const T, len: usize) -> Self {
        // SAFETY: as promised by the caller.
        unsafe { core::slice::from_raw_parts(start, len) }
    }
}

/// Defines [`EntryInput`], with an associated type for each parameter of an entry. Those of the type `()` are not in
/// the PTX. `ENTRY_PARAMETERS` in `cuda_std_macros` is the number of them.
#[cfg(target_arch = "nvptx64")]
macro_rules! entry_input {
    ($first:ident $($rest:ident)*) => {
        /// The type of a kernel's only parameter: an argument struct, whose fields are the parameters of the PTX entry,
        /// or a value, which is its only one.
        ///
        /// `#[arguments]` implements it.
        pub trait EntryInput: Sized {
            /// A parameter's type.
            type $first;
            $(
                /// A parameter's type, or `()`.
                type $rest;
            )*

            /// Evaluated before the entry is compiled. Fails for values that an entry cannot take.
            const CHECK: () = ();

            /// Makes the kernel's parameter from those of the entry.
            ///
            /// # Safety
            /// They are those that the host passes.
            unsafe fn from_parts(_: Self::$first $(, _: Self::$rest)*) -> Self;
        }

        impl<T: Stored> EntryInput for T {
            type $first = T;
            $(type $rest = ();)*

            const CHECK: () = crate::launch::assert_by_value::<T>();

            #[inline(always)]
            unsafe fn from_parts(value: T $(, _: Self::$rest)*) -> Self {
                value
            }
        }
    };
}

#[cfg(target_arch = "nvptx64")]
entry_input! {
    P0 P1 P2 P3 P4 P5 P6 P7 P8 P9 P10 P11 P12 P13 P14 P15
    P16 P17 P18 P19 P20 P21 P22 P23 P24 P25 P26 P27 P28 P29 P30 P31
    P32 P33 P34 P35 P36 P37 P38 P39 P40 P41 P42 P43 P44 P45 P46 P47
    P48 P49 P50 P51 P52 P53 P54 P55 P56 P57 P58 P59 P60 P61 P62 P63
}
