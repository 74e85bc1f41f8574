//! What the expansion of `#[kernel]` names.

#[cfg(target_arch = "nvptx64")]
use crate::element::Plain;
#[cfg(target_arch = "nvptx64")]
use crate::global::{Global, GlobalMut};

/// A PTX entry. The unstable ABI stands here so that a kernel crate needs no feature of its own.
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

/// Says in the PTX with which block the entry is launched, as a comment that `cuda_builder` makes a `.reqntid` of:
/// rustc has no attribute for it. The assembler then gives each thread the registers that such a block leaves it, and
/// the driver refuses any other block.
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

/// Says in the PTX how many threads a block of the entry has at most, as [`__block`](crate::__block) says the block.
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

/// Says in the PTX how many blocks of the entry a multiprocessor should have room for, as [`__block`](crate::__block)
/// says the block.
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

/// Says in the PTX up to how many blocks across a grid's blocks read their parameters while they wait, as
/// [`__block`](crate::__block) says the block.
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

/// Waits for the grid before this one; see `early` of [`kernel`](crate::kernel).
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub fn wait_for_prerequisites() {
    crate::backend::wait_for_prerequisites();
}

/// A parameter that is an address and a length: an entry takes the two apart, because every load through a slice or
/// struct that is passed whole is a generic one.
#[cfg(target_arch = "nvptx64")]
pub trait Span {
    /// The address's type.
    type Pointer;
    /// Puts the parameter together.
    ///
    /// # Safety
    /// Address and length are those of a view or slice of the host's.
    unsafe fn from_parts(start: Self::Pointer, len: usize) -> Self;
}

#[cfg(target_arch = "nvptx64")]
impl<T: Plain> Span for Global<'_, T> {
    type Pointer = *const T;
    #[inline(always)]
    unsafe fn from_parts(start: *const T, len: usize) -> Self {
        // SAFETY: as promised by the caller.
        unsafe { Global::from_raw(start, len) }
    }
}

#[cfg(target_arch = "nvptx64")]
impl<T: Plain> Span for GlobalMut<'_, T> {
    type Pointer = *mut T;
    #[inline(always)]
    unsafe fn from_parts(start: *mut T, len: usize) -> Self {
        // SAFETY: as promised by the caller.
        unsafe { GlobalMut::from_raw(start, len) }
    }
}

#[cfg(target_arch = "nvptx64")]
impl<T: Plain> Span for &[T] {
    type Pointer = *const T;
    #[inline(always)]
    unsafe fn from_parts(start: *const T, len: usize) -> Self {
        // SAFETY: as promised by the caller.
        unsafe { core::slice::from_raw_parts(start, len) }
    }
}
