//! Loads and stores of values of any size: one access where the backends have one of that size, else pieces as large as
//! the type's alignment.

use core::mem::{MaybeUninit, align_of, size_of};

use crate::backend::{self, SharedAddress};
use crate::element::{Plain, Stored, Vector};
use crate::stored::{from_memory, to_memory};

/// Whether the backends move a `T` as a whole.
const fn is_whole<T>() -> bool {
    matches!(size_of::<T>(), 1 | 2 | 4 | 8 | 16 | 32)
}

/// A plain type of 16 bytes, aligned to 16.
type Sixteen = Vector<u32, 4>;

macro_rules! global {
    ($load:ident, $load_pieces:ident, $store:ident, $store_pieces:ident) => {
        /// Loads a value of any size from global memory.
        ///
        /// # Safety
        /// As for the backend's function of this name, for each piece.
        #[inline(always)]
        #[track_caller]
        pub(crate) unsafe fn $load<T: Stored>(pointer: *const T) -> T {
            // SAFETY: as promised by the caller; the bits have the layout of a `T`, and pieces of the alignment's size
            // fill them, aligned.
            let bits = unsafe {
                match align_of::<T>() {
                    _ if const { is_whole::<T>() } => backend::$load(pointer.cast::<T::Bits>()),
                    1 => $load_pieces::<T::Bits, u8>(pointer.cast()),
                    2 => $load_pieces::<T::Bits, u16>(pointer.cast()),
                    4 => $load_pieces::<T::Bits, u32>(pointer.cast()),
                    8 => $load_pieces::<T::Bits, u64>(pointer.cast()),
                    _ => $load_pieces::<T::Bits, Sixteen>(pointer.cast()),
                }
            };
            from_memory!(T, bits)
        }

        /// # Safety
        /// As above; the sizes of `P` and of its alignment divide those of `T`.
        #[inline(always)]
        #[track_caller]
        unsafe fn $load_pieces<T: Plain, P: Plain>(pointer: *const T) -> T {
            let mut value = MaybeUninit::<T>::uninit();
            let mut i = 0;
            while i < size_of::<T>() / size_of::<P>() {
                // SAFETY: inside the value, as promised by the caller.
                unsafe { value.as_mut_ptr().cast::<P>().add(i).write(backend::$load(pointer.cast::<P>().add(i))) };
                i += 1;
            }
            // SAFETY: all bytes are written, and any bytes are a `T` (it is `Plain`).
            unsafe { value.assume_init() }
        }

        /// Stores a value of any size to global memory.
        ///
        /// # Safety
        /// As for the backend's function of this name, for each piece.
        #[inline(always)]
        #[track_caller]
        pub(crate) unsafe fn $store<T: Stored>(pointer: *mut T, value: T) {
            // SAFETY: as promised by the caller; the bits have the layout of a `T`, and pieces of the alignment's size
            // fill them, aligned.
            unsafe {
                match align_of::<T>() {
                    _ if const { is_whole::<T>() } => {
                        backend::$store(pointer.cast::<T::Bits>(), to_memory!(T, value));
                    }
                    1 => $store_pieces::<T::Bits, u8>(pointer.cast(), &to_memory!(T, value)),
                    2 => $store_pieces::<T::Bits, u16>(pointer.cast(), &to_memory!(T, value)),
                    4 => $store_pieces::<T::Bits, u32>(pointer.cast(), &to_memory!(T, value)),
                    8 => $store_pieces::<T::Bits, u64>(pointer.cast(), &to_memory!(T, value)),
                    _ => $store_pieces::<T::Bits, Sixteen>(pointer.cast(), &to_memory!(T, value)),
                }
            }
        }

        /// # Safety
        /// As above; the sizes of `P` and of its alignment divide those of `T`.
        #[inline(always)]
        #[track_caller]
        unsafe fn $store_pieces<T: Plain, P: Plain>(pointer: *mut T, value: &T) {
            let mut i = 0;
            while i < size_of::<T>() / size_of::<P>() {
                // SAFETY: inside the value, as promised by the caller; any bytes are a `P` (it is `Plain`).
                unsafe {
                    let piece = core::ptr::from_ref(value).cast::<P>().add(i).read();
                    backend::$store(pointer.cast::<P>().add(i), piece);
                }
                i += 1;
            }
        }
    };
}

global!(load, load_pieces, store, store_pieces);
global!(load_volatile, load_volatile_pieces, store_volatile, store_volatile_pieces);

macro_rules! shared {
    ($load:ident, $load_pieces:ident, $store:ident, $store_pieces:ident) => {
        /// Loads a value of any size from shared memory.
        ///
        /// # Safety
        /// As for the backend's function of this name, for each piece.
        #[inline(always)]
        #[track_caller]
        pub(crate) unsafe fn $load<T: Plain>(base: SharedAddress, offset: usize) -> T {
            // SAFETY: as promised by the caller; pieces of the alignment's size fill the value, aligned.
            unsafe {
                match align_of::<T>() {
                    _ if const { is_whole::<T>() } => backend::$load(base, offset),
                    1 => $load_pieces::<T, u8>(base, offset),
                    2 => $load_pieces::<T, u16>(base, offset),
                    4 => $load_pieces::<T, u32>(base, offset),
                    8 => $load_pieces::<T, u64>(base, offset),
                    _ => $load_pieces::<T, Sixteen>(base, offset),
                }
            }
        }

        /// # Safety
        /// As above; the sizes of `P` and of its alignment divide those of `T`.
        #[inline(always)]
        #[track_caller]
        unsafe fn $load_pieces<T: Plain, P: Plain>(base: SharedAddress, offset: usize) -> T {
            let mut value = MaybeUninit::<T>::uninit();
            let mut i = 0;
            while i < size_of::<T>() / size_of::<P>() {
                // SAFETY: inside the value, as promised by the caller.
                unsafe {
                    let piece = backend::$load::<P>(base, offset + i * size_of::<P>());
                    value.as_mut_ptr().cast::<P>().add(i).write(piece);
                }
                i += 1;
            }
            // SAFETY: all bytes are written, and any bytes are a `T` (it is `Plain`).
            unsafe { value.assume_init() }
        }

        /// Stores a value of any size to shared memory.
        ///
        /// # Safety
        /// As for the backend's function of this name, for each piece.
        #[inline(always)]
        #[track_caller]
        pub(crate) unsafe fn $store<T: Plain>(base: SharedAddress, offset: usize, value: T) {
            // SAFETY: as promised by the caller; pieces of the alignment's size fill the value, aligned.
            unsafe {
                match align_of::<T>() {
                    _ if const { is_whole::<T>() } => backend::$store(base, offset, value),
                    1 => $store_pieces::<T, u8>(base, offset, &value),
                    2 => $store_pieces::<T, u16>(base, offset, &value),
                    4 => $store_pieces::<T, u32>(base, offset, &value),
                    8 => $store_pieces::<T, u64>(base, offset, &value),
                    _ => $store_pieces::<T, Sixteen>(base, offset, &value),
                }
            }
        }

        /// # Safety
        /// As above; the sizes of `P` and of its alignment divide those of `T`.
        #[inline(always)]
        #[track_caller]
        unsafe fn $store_pieces<T: Plain, P: Plain>(base: SharedAddress, offset: usize, value: &T) {
            let mut i = 0;
            while i < size_of::<T>() / size_of::<P>() {
                // SAFETY: inside the value, as promised by the caller; any bytes are a `P` (it is `Plain`).
                unsafe {
                    let piece = core::ptr::from_ref(value).cast::<P>().add(i).read();
                    backend::$store(base, offset + i * size_of::<P>(), piece);
                }
                i += 1;
            }
        }
    };
}

shared!(shared_load, shared_load_pieces, shared_store, shared_store_pieces);
shared!(shared_load_volatile, shared_load_volatile_pieces, shared_store_volatile, shared_store_volatile_pieces);
