//! Global memory, by relaxed atomics of the access's width. They compile to ordinary moves on the usual processors, and
//! they define the behaviour of kernels whose threads race: blocks run on several cores.

use core::mem::{size_of, transmute_copy};
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::lane::{self, Access, Space};
use crate::element::{Plain, VectorType};
use crate::global::L2Prefetch;

/// [`lane::access`] for any plain value. 32 bytes are two accesses, as on a GPU.
#[inline(always)]
#[track_caller]
pub(super) fn access(space: Space, access: Access, address: usize, bytes: usize) {
    if bytes == 32 {
        lane::access(space, access, address, 16);
        lane::access(space, access, address + 16, 16);
    } else {
        lane::access(space, access, address, bytes);
    }
}

/// Loads from global memory.
///
/// # Safety
/// `pointer` is valid for a read of `T`, aligned, and written only by this module meanwhile.
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn load<T: Plain>(pointer: *const T) -> T {
    access(Space::Global, Access::Load, pointer.addr(), size_of::<T>());
    // SAFETY: as promised by the caller.
    unsafe { read(pointer) }
}

/// Loads 16 bytes if `predicate`, else returns zeros.
///
/// # Safety
/// As for [`load`], if `predicate`.
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn load_vector_if<P: VectorType>(predicate: bool, pointer: *const P, _fetch: L2Prefetch) -> P {
    // SAFETY: as promised by the caller.
    if predicate { unsafe { load(pointer) } } else { P::from_words([0; 4]) }
}

/// [`load`] without notifying the executor's hooks.
///
/// # Safety
/// As for [`load`].
unsafe fn read<T: Plain>(pointer: *const T) -> T {
    // SAFETY: as promised by the caller; the width read is `T`'s, and any bits are a `T` (it is `Plain`).
    unsafe {
        match size_of::<T>() {
            1 => transmute_copy(&(*pointer.cast::<AtomicU8>()).load(Ordering::Relaxed)),
            2 => transmute_copy(&(*pointer.cast::<AtomicU16>()).load(Ordering::Relaxed)),
            4 => transmute_copy(&(*pointer.cast::<AtomicU32>()).load(Ordering::Relaxed)),
            8 => transmute_copy(&(*pointer.cast::<AtomicU64>()).load(Ordering::Relaxed)),
            16 => {
                // Neither these processors nor GPUs promise a single access of 16 bytes.
                let halves = pointer.cast::<AtomicU64>();
                transmute_copy(&[(*halves).load(Ordering::Relaxed), (*halves.add(1)).load(Ordering::Relaxed)])
            }
            32 => {
                let words = pointer.cast::<AtomicU64>();
                transmute_copy(&[0, 1, 2, 3].map(|k| (*words.add(k)).load(Ordering::Relaxed)))
            }
            _ => unreachable!("`Plain` types have 1, 2, 4, 8, 16 or 32 bytes"),
        }
    }
}

/// Stores to global memory.
///
/// # Safety
/// `pointer` is valid for a write of `T`, aligned, and accessed only by this module meanwhile.
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn store<T: Plain>(pointer: *mut T, value: T) {
    access(Space::Global, Access::Store, pointer.addr(), size_of::<T>());
    // SAFETY: as promised by the caller; the width written is `T`'s.
    unsafe {
        match size_of::<T>() {
            1 => (*pointer.cast::<AtomicU8>()).store(transmute_copy(&value), Ordering::Relaxed),
            2 => (*pointer.cast::<AtomicU16>()).store(transmute_copy(&value), Ordering::Relaxed),
            4 => (*pointer.cast::<AtomicU32>()).store(transmute_copy(&value), Ordering::Relaxed),
            8 => (*pointer.cast::<AtomicU64>()).store(transmute_copy(&value), Ordering::Relaxed),
            16 => {
                let halves = pointer.cast::<AtomicU64>();
                let [low, high]: [u64; 2] = transmute_copy(&value);
                (*halves).store(low, Ordering::Relaxed);
                (*halves.add(1)).store(high, Ordering::Relaxed);
            }
            32 => {
                let words: [u64; 4] = transmute_copy(&value);
                let pointers = pointer.cast::<AtomicU64>();
                words.iter().enumerate().for_each(|(k, &word)| (*pointers.add(k)).store(word, Ordering::Relaxed));
            }
            _ => unreachable!("`Plain` types have 1, 2, 4, 8, 16 or 32 bytes"),
        }
    }
}

/// Loads a word and its flag: a nonzero flag, the second word, says that the first is valid. With a flag of 0 the hooks
/// see no load.
///
/// # Safety
/// As for [`load`].
#[track_caller]
pub(crate) unsafe fn load_pair(pointer: *const [u64; 2]) -> [u64; 2] {
    let words = pointer.cast::<AtomicU64>();
    let load = || {
        // SAFETY: as promised by the caller.
        unsafe {
            let second = (*words.add(1)).load(Ordering::Acquire);
            [(*words).load(Ordering::Relaxed), second]
        }
    };
    lane::atomic(Access::Load, pointer.addr(), 16, false, load, |words| words[1] != 0)
}

/// Stores a word and its flag; see [`load_pair`].
///
/// # Safety
/// As for [`store`].
#[track_caller]
pub(crate) unsafe fn store_pair(pointer: *mut [u64; 2], [first, second]: [u64; 2]) {
    let words = pointer.cast::<AtomicU64>();
    let store = || {
        // SAFETY: as promised by the caller.
        unsafe {
            (*words).store(first, Ordering::Relaxed);
            (*words.add(1)).store(second, Ordering::Release);
        }
    };
    lane::atomic(Access::Store, pointer.addr(), 16, false, store, |()| true);
}

/// The address's offset from a multiple of 16, in bytes. It does not matter on the CPU, where the load of a vector is
/// any number of loads.
pub(crate) fn misalignment<T>(pointer: *const T) -> usize {
    pointer as usize % 16
}

/// Loads the 16 bytes at `pointer` to offset `off` of two vectors, and no other bytes. A GPU has to load both aligned
/// vectors: the hooks count that request, but check only the 16 bytes.
///
/// # Safety
/// `pointer` is valid for a read of 16 bytes.
#[track_caller]
pub(crate) unsafe fn load_aligned_pair<P: Plain>(pointer: *const P, off: usize) -> [P; 2] {
    lane::unaligned_load(pointer.addr(), 16);
    let mut bytes = [0_u8; 32];
    for (i, byte) in bytes[off..off + 16].iter_mut().enumerate() {
        // SAFETY: as promised by the caller.
        *byte = unsafe { read(pointer.cast::<u8>().add(i)) };
    }
    // SAFETY: any 16 bytes are a vector (it is `Plain`).
    unsafe { transmute_copy(&bytes) }
}

/// [`load_aligned_pair`] if `predicate`, else zeros.
///
/// # Safety
/// As for [`load_aligned_pair`], if `predicate`.
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn load_aligned_pair_if<P: VectorType>(predicate: bool, pointer: *const P, off: usize) -> [P; 2] {
    // SAFETY: as promised by the caller.
    if predicate { unsafe { load_aligned_pair(pointer, off) } } else { [P::from_words([0; 4]); 2] }
}

/// Loads elements `from..to` of the vector at `pointer`, counted as one or two loads of the aligned vectors that
/// contain them; the other elements are zeros.
///
/// # Safety
/// The elements are valid for a read.
#[track_caller]
pub(crate) unsafe fn load_part<T: Plain, P: VectorType<Item = T>>(pointer: *const T, from: usize, to: usize) -> P {
    lane::unaligned_load(pointer.wrapping_add(from).addr(), (to - from) * size_of::<T>());
    let mut vector = P::from_words([0; 4]);
    for k in from..to {
        // SAFETY: as promised by the caller.
        vector = vector.with(k, unsafe { read(pointer.wrapping_add(k)) });
    }
    vector
}

/// A volatile load: the same as an atomic one, which no compiler caches.
///
/// # Safety
/// As for [`load`].
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn load_volatile<T: Plain>(pointer: *const T) -> T {
    // SAFETY: as promised by the caller.
    unsafe { load(pointer) }
}

/// A volatile store; see [`load_volatile`].
///
/// # Safety
/// As for [`store`].
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn store_volatile<T: Plain>(pointer: *mut T, value: T) {
    // SAFETY: as promised by the caller.
    unsafe { store(pointer, value) }
}
