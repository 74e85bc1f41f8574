//! Global memory, by relaxed atomics of the access's width. On the usual processors that is an ordinary move, and it
//! makes kernels whose threads race defined programs here too: blocks run on several cores.

use core::mem::{size_of, transmute_copy};
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use simt::lane::{self, Access, Space};

use crate::element::{Plain, VectorType};
use crate::global::Fetch;

/// [`lane::access`] of any plain value: of 32 bytes a GPU makes two accesses.
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

/// Reads global memory.
///
/// # Safety
/// `place` is valid for a read of `T`, aligned, and written by nothing but the functions of this module meanwhile.
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn load<T: Plain>(place: *const T) -> T {
    access(Space::Global, Access::Load, place.addr(), size_of::<T>());
    // SAFETY: as promised by the caller.
    unsafe { read(place) }
}

/// Reads 16 bytes, or nothing: zeros.
///
/// # Safety
/// As [`load`], if there is something.
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn load_vector_if<P: VectorType>(is_there: bool, place: *const P, _fetch: Fetch) -> P {
    // SAFETY: as promised by the caller.
    if is_there { unsafe { load(place) } } else { P::from_words([0; 4]) }
}

/// [`load`], which nobody hears of.
///
/// # Safety
/// As [`load`].
unsafe fn read<T: Plain>(place: *const T) -> T {
    // SAFETY: as promised by the caller; the width read is `T`'s, and any bits are a `T` (it is `Plain`).
    unsafe {
        match size_of::<T>() {
            1 => transmute_copy(&(*place.cast::<AtomicU8>()).load(Ordering::Relaxed)),
            2 => transmute_copy(&(*place.cast::<AtomicU16>()).load(Ordering::Relaxed)),
            4 => transmute_copy(&(*place.cast::<AtomicU32>()).load(Ordering::Relaxed)),
            8 => transmute_copy(&(*place.cast::<AtomicU64>()).load(Ordering::Relaxed)),
            16 => {
                // No processor of ours promises 16 bytes at once, and neither does a GPU.
                let halves = place.cast::<AtomicU64>();
                transmute_copy(&[(*halves).load(Ordering::Relaxed), (*halves.add(1)).load(Ordering::Relaxed)])
            }
            32 => {
                let words = place.cast::<AtomicU64>();
                transmute_copy(&[0, 1, 2, 3].map(|k| (*words.add(k)).load(Ordering::Relaxed)))
            }
            _ => unreachable!("`Plain` types have 1, 2, 4, 8, 16 or 32 bytes"),
        }
    }
}

/// Writes global memory.
///
/// # Safety
/// `place` is valid for a write of `T`, aligned, and used by nothing but the functions of this module meanwhile.
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn store<T: Plain>(place: *mut T, value: T) {
    access(Space::Global, Access::Store, place.addr(), size_of::<T>());
    // SAFETY: as promised by the caller; the width written is `T`'s.
    unsafe {
        match size_of::<T>() {
            1 => (*place.cast::<AtomicU8>()).store(transmute_copy(&value), Ordering::Relaxed),
            2 => (*place.cast::<AtomicU16>()).store(transmute_copy(&value), Ordering::Relaxed),
            4 => (*place.cast::<AtomicU32>()).store(transmute_copy(&value), Ordering::Relaxed),
            8 => (*place.cast::<AtomicU64>()).store(transmute_copy(&value), Ordering::Relaxed),
            16 => {
                let halves = place.cast::<AtomicU64>();
                let [low, high]: [u64; 2] = transmute_copy(&value);
                (*halves).store(low, Ordering::Relaxed);
                (*halves.add(1)).store(high, Ordering::Relaxed);
            }
            32 => {
                let words: [u64; 4] = transmute_copy(&value);
                let places = place.cast::<AtomicU64>();
                words.iter().enumerate().for_each(|(k, &word)| (*places.add(k)).store(word, Ordering::Relaxed));
            }
            _ => unreachable!("`Plain` types have 1, 2, 4, 8, 16 or 32 bytes"),
        }
    }
}

/// Both words at once: the second is what says that the first is there. Without it nothing has been read, for those who
/// watch.
///
/// # Safety
/// As [`load`].
#[track_caller]
pub(crate) unsafe fn load_both(place: *const [u64; 2]) -> [u64; 2] {
    let words = place.cast::<AtomicU64>();
    let load = || {
        // SAFETY: as promised by the caller.
        unsafe {
            let second = (*words.add(1)).load(Ordering::Acquire);
            [(*words).load(Ordering::Relaxed), second]
        }
    };
    lane::atomic(Access::Load, place.addr(), 16, false, load, |words| words[1] != 0)
}

/// As [`load_both`].
///
/// # Safety
/// As [`store`].
#[track_caller]
pub(crate) unsafe fn store_both(place: *mut [u64; 2], [first, second]: [u64; 2]) {
    let words = place.cast::<AtomicU64>();
    let store = || {
        // SAFETY: as promised by the caller.
        unsafe {
            (*words).store(first, Ordering::Relaxed);
            (*words.add(1)).store(second, Ordering::Release);
        }
    };
    lane::atomic(Access::Store, place.addr(), 16, false, store, |()| true);
}

/// How many bytes an address is past a multiple of 16: of no matter here, where an access of a vector is any number of
/// loads.
pub(crate) fn bytes_off_alignment<T>(place: *const T) -> usize {
    place as usize % 16
}

/// The 16 bytes at `place` at their places in two vectors, `off` bytes into them, and nothing else: a GPU has to read
/// around them, which is for those who count requests, but not for those who check accesses.
///
/// # Safety
/// `place` is valid for a read of 16 bytes.
#[track_caller]
pub(crate) unsafe fn load_around<P: Plain>(place: *const P, off: usize) -> [P; 2] {
    lane::unaligned_load(place.addr(), 16);
    let mut bytes = [0_u8; 32];
    for (i, byte) in bytes[off..off + 16].iter_mut().enumerate() {
        // SAFETY: as promised by the caller.
        *byte = unsafe { read(place.cast::<u8>().add(i)) };
    }
    // SAFETY: any 16 bytes are a vector (it is `Plain`).
    unsafe { transmute_copy(&bytes) }
}

/// [`load_around`], or nothing: zeros.
///
/// # Safety
/// As there, if there is something.
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn load_around_if<P: VectorType>(is_there: bool, place: *const P, off: usize) -> [P; 2] {
    // SAFETY: as promised by the caller.
    if is_there { unsafe { load_around(place, off) } } else { [P::from_words([0; 4]); 2] }
}

/// Elements `from..to` of the vector at `place`, in one load or two of the aligned vectors that they lie in; zeros for the
/// others.
///
/// # Safety
/// Those elements are valid for a read.
#[track_caller]
pub(crate) unsafe fn load_part<T: Plain, P: VectorType<Item = T>>(place: *const T, from: usize, to: usize) -> P {
    lane::unaligned_load(place.wrapping_add(from).addr(), (to - from) * size_of::<T>());
    let mut vector = P::from_words([0; 4]);
    for k in from..to {
        // SAFETY: as promised by the caller.
        vector = vector.with(k, unsafe { read(place.wrapping_add(k)) });
    }
    vector
}

/// An atomic access is never remembered: a volatile one is the same here.
///
/// # Safety
/// As [`load`].
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn load_volatile<T: Plain>(place: *const T) -> T {
    // SAFETY: as promised by the caller.
    unsafe { load(place) }
}

/// As [`load_volatile`].
///
/// # Safety
/// As [`store`].
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn store_volatile<T: Plain>(place: *mut T, value: T) {
    // SAFETY: as promised by the caller.
    unsafe { store(place, value) }
}
