//! Global memory, by relaxed atomics of the access's width. They compile to ordinary moves on x86-64 and aarch64, and
//! they define the behaviour of kernels whose threads race: blocks run on several cores.
//!
//! A user's debug build compiles this without optimization, with the checks that the standard library's pointer
//! functions have there. So the accesses use loops, casts and fields in place of iterators and functions.

use core::mem::size_of;
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

/// Does nothing, because it is a hint for GPUs.
///
/// # Safety
/// None is needed here.
pub(crate) unsafe fn prefetch_line(_pointer: *const u8) {}

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

/// The bits of a value as another type of at most its size. `transmute_copy` checks its pointers where a user's build
/// has debug assertions, which takes longer than the access.
///
/// # Safety
/// The first bytes of the value are a `To`.
#[inline(always)]
pub(crate) unsafe fn bits<From: Copy, To: Copy>(from: From) -> To {
    if size_of::<To>() > size_of::<From>() {
        panic!("cannot transmute a value to a larger type");
    }
    #[repr(C)]
    union Bits<From: Copy, To: Copy> {
        from: From,
        to: To,
    }
    // SAFETY: as promised by the caller; both fields begin at the union's start.
    unsafe { Bits { from }.to }
}

/// [`load`] without notifying the executor's hooks.
///
/// # Safety
/// As for [`load`].
unsafe fn read<T: Plain>(pointer: *const T) -> T {
    // SAFETY: as promised by the caller; the width read is `T`'s, and any bits are a `T` (it is `Plain`).
    unsafe {
        match size_of::<T>() {
            1 => bits((*(pointer as *const AtomicU8)).load(Ordering::Relaxed)),
            2 => bits((*(pointer as *const AtomicU16)).load(Ordering::Relaxed)),
            4 => bits((*(pointer as *const AtomicU32)).load(Ordering::Relaxed)),
            8 => bits((*(pointer as *const AtomicU64)).load(Ordering::Relaxed)),
            // Neither these processors nor GPUs promise a single access of 16 bytes.
            16 => {
                let words = pointer as *const [AtomicU64; 2];
                bits([(*words)[0].load(Ordering::Relaxed), (*words)[1].load(Ordering::Relaxed)])
            }
            32 => {
                let words = pointer as *const [AtomicU64; 4];
                let (first, second) = ((*words)[0].load(Ordering::Relaxed), (*words)[1].load(Ordering::Relaxed));
                bits([first, second, (*words)[2].load(Ordering::Relaxed), (*words)[3].load(Ordering::Relaxed)])
            }
            _ => unreachable!("`Plain` types have 1, 2, 4, 8, 16 or 32 bytes"),
        }
    }
}

/// Reads 16 bytes at any address, by accesses as wide as its alignment allows.
///
/// # Safety
/// As for [`load`], except for the alignment.
unsafe fn read_words(pointer: *const u8) -> [u32; 4] {
    // SAFETY: as promised by the caller; the matches check the alignment.
    unsafe {
        match pointer as usize % 8 {
            0 => {
                let words = pointer as *const [AtomicU64; 2];
                bits([(*words)[0].load(Ordering::Relaxed), (*words)[1].load(Ordering::Relaxed)])
            }
            4 => {
                let words = pointer as *const [AtomicU32; 4];
                let (first, second) = ((*words)[0].load(Ordering::Relaxed), (*words)[1].load(Ordering::Relaxed));
                [first, second, (*words)[2].load(Ordering::Relaxed), (*words)[3].load(Ordering::Relaxed)]
            }
            2 | 6 => {
                let words = pointer as *const [AtomicU16; 8];
                let (mut read, mut k) = ([0_u16; 8], 0);
                while k < 8 {
                    read[k] = (*words)[k].load(Ordering::Relaxed);
                    k += 1;
                }
                bits(read)
            }
            _ => {
                let bytes = pointer as *const [AtomicU8; 16];
                let (mut read, mut k) = ([0_u8; 16], 0);
                while k < 16 {
                    read[k] = (*bytes)[k].load(Ordering::Relaxed);
                    k += 1;
                }
                bits(read)
            }
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
    // SAFETY: as promised by the caller; the width written is `T`'s, and any bytes are integers.
    unsafe {
        match size_of::<T>() {
            1 => (*(pointer as *const AtomicU8)).store(bits(value), Ordering::Relaxed),
            2 => (*(pointer as *const AtomicU16)).store(bits(value), Ordering::Relaxed),
            4 => (*(pointer as *const AtomicU32)).store(bits(value), Ordering::Relaxed),
            8 => (*(pointer as *const AtomicU64)).store(bits(value), Ordering::Relaxed),
            16 => {
                let [low, high]: [u64; 2] = bits(value);
                let words = pointer as *const [AtomicU64; 2];
                (*words)[0].store(low, Ordering::Relaxed);
                (*words)[1].store(high, Ordering::Relaxed);
            }
            32 => {
                let values: [u64; 4] = bits(value);
                let words = pointer as *const [AtomicU64; 4];
                let mut k = 0;
                while k < 4 {
                    (*words)[k].store(values[k], Ordering::Relaxed);
                    k += 1;
                }
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

/// The address's offset from a multiple of 16, in bytes. The CPU loads a vector correctly at any offset.
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
    // SAFETY: as promised by the caller.
    let vector: [u8; 16] = unsafe { bits(read_words(pointer as *const u8)) };
    let mut bytes = [0_u8; 32];
    let mut i = 0;
    while i < 16 {
        bytes[off + i] = vector[i];
        i += 1;
    }
    // SAFETY: `P` is a vector of 16 bytes, and any bytes are one (it is `Plain`).
    unsafe { bits(bytes) }
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
/// The elements are valid for reads.
#[track_caller]
pub(crate) unsafe fn load_partial<T: Plain, P: VectorType<Item = T>>(pointer: *const T, from: usize, to: usize) -> P {
    let first = pointer.wrapping_add(from);
    lane::unaligned_load(first.addr(), (to - from) * size_of::<T>());
    if to - from == P::LEN {
        // SAFETY: as promised by the caller.
        return P::from_words(unsafe { read_words(first as *const u8) });
    }
    let mut vector = P::from_words([0; 4]);
    let mut k = from;
    while k < to {
        // SAFETY: as promised by the caller.
        vector = vector.with(k, unsafe { read(pointer.wrapping_add(k)) });
        k += 1;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Element;

    /// Loads parts of vectors at each alignment of `T` from the numbers 0, 1, 2, ...
    fn check<T: Element>(number: impl Fn(usize) -> T) {
        let len = T::Vector::LEN;
        let mut numbers: std::vec::Vec<T> = (0..3 * len).map(&number).collect();
        let start = numbers.as_mut_ptr().cast_const();
        for first in 0..2 * len {
            for to in 1..=len {
                for from in 0..to {
                    // SAFETY: inside the numbers.
                    let vector: T::Vector = unsafe { load_partial(start.add(first), from, to) };
                    for k in 0..len {
                        let expected = if (from..to).contains(&k) { number(first + k) } else { T::default() };
                        assert_eq!(vector.get(k), expected, "{first} {from} {to} {k}");
                    }
                }
            }
            let off = first % len * size_of::<T>();
            // SAFETY: inside the numbers.
            let pair = unsafe { load_aligned_pair(start.add(first).cast::<T::Vector>(), off) };
            for k in 0..len {
                let at = off / size_of::<T>() + k;
                assert_eq!(pair[at / len].get(at % len), number(first + k), "{first} {k}");
            }
        }
    }

    #[test]
    fn vectors_and_their_parts_are_loaded_at_any_alignment() {
        check(|i| i as u8 + 1);
        check(|i| i as u16 + 1);
        check(|i| i as u32 + 1);
        check(|i| i as f64 + 1.0);
    }
}
