//! Global memory: ordinary, volatile and 16-byte accesses.

use core::arch::asm;
use core::mem::{size_of, transmute_copy};

use super::funnel;
use crate::element::{Plain, VectorType};
use crate::global::L2Prefetch;

/// Loads 16 bytes as four words. The L2 prefetch size is part of the instruction, which older devices lack.
macro_rules! load_words {
    ($instruction:literal, $predicate:expr, $pointer:expr) => {{
        let (a, b, c, d): (u32, u32, u32, u32);
        asm!(
            "{{",
            ".reg .pred there;",
            ".reg .b64 global;",
            "setp.ne.u32 there, {predicate}, 0;",
            "cvta.to.global.u64 global, {pointer};",
            "mov.b32 {a}, 0;",
            "mov.b32 {b}, 0;",
            "mov.b32 {c}, 0;",
            "mov.b32 {d}, 0;",
            concat!("@there ", $instruction, " {{{a}, {b}, {c}, {d}}}, [global];"),
            "}}",
            a = out(reg32) a, b = out(reg32) b, c = out(reg32) c, d = out(reg32) d,
            predicate = in(reg32) u32::from($predicate), pointer = in(reg64) $pointer,
            options(pure, readonly, nostack, preserves_flags)
        );
        [a, b, c, d]
    }};
    ($instruction:literal, $pointer:expr) => {{
        let (a, b, c, d): (u32, u32, u32, u32);
        asm!(
            "{{",
            ".reg .b64 global;",
            "cvta.to.global.u64 global, {pointer};",
            concat!($instruction, " {{{a}, {b}, {c}, {d}}}, [global];"),
            "}}",
            a = out(reg32) a, b = out(reg32) b, c = out(reg32) c, d = out(reg32) d, pointer = in(reg64) $pointer,
            options(pure, readonly, nostack, preserves_flags)
        );
        [a, b, c, d]
    }};
}

/// Loads from global memory.
///
/// # Safety
/// `pointer` is valid for a read of `T` on this device, and aligned.
#[inline(always)]
pub(crate) unsafe fn load<T: Plain>(pointer: *const T) -> T {
    if size_of::<T>() == 16 {
        // LLVM would split an ordinary 16-byte load as soon as an unaligned path reads the same elements.
        // SAFETY: as promised by the caller; any bits are a `T` (it is `Plain`).
        return unsafe { transmute_copy(&load_words!("ld.global.v4.b32", pointer)) };
    }
    // SAFETY: as promised by the caller.
    unsafe { pointer.read() }
}

/// Loads 16 bytes.
///
/// # Safety
/// As for [`load`].
#[inline(always)]
pub(crate) unsafe fn load_vector<P: VectorType>(pointer: *const P, prefetch: L2Prefetch) -> P {
    // SAFETY: as promised by the caller.
    P::from_words(unsafe {
        match prefetch {
            #[cfg(cuda_arch_at_least = "90")]
            L2Prefetch::Line => load_words!("ld.global.L2::128B.v4.b32", pointer),
            #[cfg(cuda_arch_at_least = "90")]
            L2Prefetch::TwoLines => load_words!("ld.global.L2::256B.v4.b32", pointer),
            _ => load_words!("ld.global.v4.b32", pointer),
        }
    })
}

/// Prefetches the 128-byte line of an address to L2.
///
/// # Safety
/// The address is inside an allocation of global memory.
#[inline(always)]
pub(crate) unsafe fn prefetch_line(pointer: *const u8) {
    // SAFETY: the address is one of global memory, as promised by the caller. Nothing is loaded or stored.
    unsafe {
        asm!(
            "{{ .reg .b64 global; cvta.to.global.u64 global, {}; prefetch.global.L2 [global]; }}",
            in(reg64) pointer, options(nostack, preserves_flags)
        );
    }
}

/// Loads 16 bytes if `predicate`, else returns zeros. The load is predicated; LLVM would make a branch and wait at its
/// end for the loaded value.
///
/// # Safety
/// As for [`load`], if `predicate`.
#[inline(always)]
pub(crate) unsafe fn load_vector_if<P: VectorType>(predicate: bool, pointer: *const P, prefetch: L2Prefetch) -> P {
    // SAFETY: as promised by the caller.
    P::from_words(unsafe {
        match prefetch {
            #[cfg(cuda_arch_at_least = "90")]
            L2Prefetch::Line => load_words!("ld.global.L2::128B.v4.b32", predicate, pointer),
            #[cfg(cuda_arch_at_least = "90")]
            L2Prefetch::TwoLines => load_words!("ld.global.L2::256B.v4.b32", predicate, pointer),
            _ => load_words!("ld.global.v4.b32", predicate, pointer),
        }
    })
}

/// [`load_vector_if`] for 8 bytes, as two words.
///
/// # Safety
/// As for [`load_vector_if`].
#[inline(always)]
pub(crate) unsafe fn load_half_if(predicate: bool, pointer: *const [u32; 2]) -> [u32; 2] {
    let (a, b): (u32, u32);
    // SAFETY: as promised by the caller.
    unsafe {
        asm!(
            "{{",
            ".reg .pred there;",
            ".reg .b64 global;",
            "setp.ne.u32 there, {predicate}, 0;",
            "cvta.to.global.u64 global, {pointer};",
            "mov.b32 {a}, 0;",
            "mov.b32 {b}, 0;",
            "@there ld.global.v2.b32 {{{a}, {b}}}, [global];",
            "}}",
            a = out(reg32) a, b = out(reg32) b,
            predicate = in(reg32) u32::from(predicate), pointer = in(reg64) pointer,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    [a, b]
}

/// The next lane's word. All lanes of the warp must call it; the last lane gets its own.
#[inline(always)]
pub(crate) fn shuffle_from_next_lane(word: u32) -> u32 {
    super::shuffle_down((), u32::MAX, word.into(), 1, 32, 1) as u32
}

/// The 8 bytes that start `off` bytes into the concatenation of `low` and `high`. `off` is less than 8.
#[inline(always)]
pub(crate) fn funnel_half([a, b]: [u32; 2], [c, d]: [u32; 2], off: usize) -> [u32; 2] {
    let by_one = off & 4 != 0;
    let [a, b, c] = if by_one { [b, c, d] } else { [a, b, c] };
    let bits = off as u32 % 4 * 8;
    [funnel(a, b, bits), funnel(b, c, bits)]
}

/// Stores to global memory.
///
/// # Safety
/// `pointer` is valid for a write of `T` on this device, and aligned.
#[inline(always)]
pub(crate) unsafe fn store<T: Plain>(pointer: *mut T, value: T) {
    if size_of::<T>() == 16 {
        // SAFETY: as promised by the caller.
        unsafe {
            let [a, b, c, d]: [u32; 4] = transmute_copy(&value);
            asm!(
                "{{",
                ".reg .b64 global;",
                "cvta.to.global.u64 global, {pointer};",
                "st.global.v4.b32 [global], {{{a}, {b}, {c}, {d}}};",
                "}}",
                a = in(reg32) a, b = in(reg32) b, c = in(reg32) c, d = in(reg32) d, pointer = in(reg64) pointer,
                options(nostack, preserves_flags)
            );
        }
        return;
    }
    // SAFETY: as promised by the caller.
    unsafe { pointer.write(value) }
}

/// A volatile load from global memory: not from a register, and not from L1.
///
/// # Safety
/// As for [`load`].
#[inline(always)]
pub(crate) unsafe fn load_volatile<T: Plain>(pointer: *const T) -> T {
    // Word by word: LLVM would keep a volatile access of an array in local memory.
    // SAFETY: as promised by the caller; each arm reads the bytes of a `T`, for which any bits are valid (it is
    // `Plain`).
    unsafe {
        match size_of::<T>() {
            2 => transmute_copy(&pointer.cast::<u16>().read_volatile()),
            4 => transmute_copy(&pointer.cast::<u32>().read_volatile()),
            8 => transmute_copy(&pointer.cast::<u64>().read_volatile()),
            16 => {
                let halves = pointer.cast::<u64>();
                transmute_copy(&[halves.read_volatile(), halves.add(1).read_volatile()])
            }
            32 => {
                let words = pointer.cast::<u64>();
                let read = |k: usize| words.add(k).read_volatile();
                transmute_copy(&[read(0), read(1), read(2), read(3)])
            }
            _ => pointer.read_volatile(),
        }
    }
}

/// A volatile store to global memory.
///
/// # Safety
/// As for [`store`].
#[inline(always)]
pub(crate) unsafe fn store_volatile<T: Plain>(pointer: *mut T, value: T) {
    // SAFETY: as promised by the caller; each arm writes a `T`'s bytes, none of which is padding (it is `Plain`).
    unsafe {
        match size_of::<T>() {
            2 => pointer.cast::<u16>().write_volatile(transmute_copy(&value)),
            4 => pointer.cast::<u32>().write_volatile(transmute_copy(&value)),
            8 => pointer.cast::<u64>().write_volatile(transmute_copy(&value)),
            16 => {
                let [low, high]: [u64; 2] = transmute_copy(&value);
                let halves = pointer.cast::<u64>();
                halves.write_volatile(low);
                halves.add(1).write_volatile(high);
            }
            32 => {
                let [first, second, third, fourth]: [u64; 4] = transmute_copy(&value);
                let words = pointer.cast::<u64>();
                words.write_volatile(first);
                words.add(1).write_volatile(second);
                words.add(2).write_volatile(third);
                words.add(3).write_volatile(fourth);
            }
            _ => pointer.write_volatile(value),
        }
    }
}

/// Loads a word and its flag in one access, coherent across the device.
///
/// # Safety
/// As for [`load`].
#[inline(always)]
pub(crate) unsafe fn load_pair(pointer: *const [u64; 2]) -> [u64; 2] {
    let (first, second);
    // SAFETY: as promised by the caller.
    unsafe {
        asm!(
            "{{",
            ".reg .b64 global;",
            "cvta.to.global.u64 global, {pointer};",
            "ld.relaxed.gpu.global.v2.b64 {{{first}, {second}}}, [global];",
            "}}",
            first = out(reg64) first, second = out(reg64) second, pointer = in(reg64) pointer,
            options(nostack, preserves_flags)
        );
    }
    [first, second]
}

/// Stores a word and its flag in one access, coherent across the device.
///
/// # Safety
/// As for [`store`].
#[inline(always)]
pub(crate) unsafe fn store_pair(pointer: *mut [u64; 2], [first, second]: [u64; 2]) {
    // SAFETY: as promised by the caller.
    unsafe {
        asm!(
            "{{",
            ".reg .b64 global;",
            "cvta.to.global.u64 global, {pointer};",
            "st.relaxed.gpu.global.v2.b64 [global], {{{first}, {second}}};",
            "}}",
            pointer = in(reg64) pointer, first = in(reg64) first, second = in(reg64) second,
            options(nostack, preserves_flags)
        );
    }
}

/// One polling round of a wait for an earlier block. A pause would delay the next round, so it does nothing.
#[inline(always)]
pub(crate) fn spin(_round: u32) {}

/// The end of a wait.
#[inline(always)]
pub(crate) fn end_spin(_rounds: u32) {}

/// The address's offset from a multiple of 16, in bytes.
#[inline(always)]
pub(crate) fn misalignment<T>(pointer: *const T) -> usize {
    pointer as usize % 16
}

/// Loads the two aligned vectors that contain the 16 bytes at `pointer`, which is `off` bytes past a multiple of 16.
///
/// # Safety
/// Both are valid for a read, and `off` is not 0.
#[inline(always)]
pub(crate) unsafe fn load_aligned_pair<P: Plain>(pointer: *const P, off: usize) -> [P; 2] {
    // SAFETY: as promised by the caller.
    unsafe {
        let low = pointer.byte_sub(off);
        [load(low), load(low.byte_add(16))]
    }
}

/// [`load_aligned_pair`] if `predicate`, else zeros.
///
/// # Safety
/// As for [`load_aligned_pair`], if `predicate`.
#[inline(always)]
pub(crate) unsafe fn load_aligned_pair_if<P: VectorType>(predicate: bool, pointer: *const P, off: usize) -> [P; 2] {
    let low = pointer.wrapping_byte_sub(off);
    // SAFETY: as promised by the caller.
    unsafe {
        [
            load_vector_if(predicate, low, L2Prefetch::Sectors),
            load_vector_if(predicate, low.wrapping_byte_add(16), L2Prefetch::Sectors),
        ]
    }
}

/// Stores elements `from..to` of a vector: word by word, and element by element in the words that are only partly
/// stored.
///
/// # Safety
/// The elements are valid for a write on this device; `pointer` is a multiple of 16.
#[inline(always)]
pub(crate) unsafe fn store_partial(pointer: *mut u32, words: [u32; 4], size: usize, from: usize, to: usize) {
    let (from, to) = (from * size, to * size);
    let mut i = 0;
    while i < 4 {
        let (begin, end) = (4 * i, 4 * i + 4);
        // SAFETY: as promised by the caller.
        unsafe {
            let word = pointer.add(i);
            if from <= begin && end <= to {
                word.write(words[i]);
            } else if size == 2 {
                let halves: [u16; 2] = transmute_copy(&words[i]);
                let mut k = 0;
                while k < 2 {
                    if from <= begin + 2 * k && begin + 2 * k < to {
                        word.cast::<u16>().add(k).write(halves[k]);
                    }
                    k += 1;
                }
            } else if size == 1 {
                let bytes = words[i].to_le_bytes();
                let mut k = 0;
                while k < 4 {
                    if from <= begin + k && begin + k < to {
                        word.cast::<u8>().add(k).write(bytes[k]);
                    }
                    k += 1;
                }
            }
        }
        i += 1;
    }
}

/// The 16 bytes that start `off` bytes into two adjacent vectors with elements of `size` bytes. `off` is less than 16.
///
/// Registers cannot be indexed, so the words move in two predicated steps, by two words and by one; elements smaller
/// than a word then need a funnel shift (`shf`).
#[inline(always)]
pub(crate) fn funnel_vector<P: VectorType>(low: P, high: P, off: usize, size: usize) -> P {
    let ([a, b, c, d], [e, f, g, h]) = (low.to_words(), high.to_words());
    let by_two = off & 8 != 0;
    let pick = |taken: bool, moved: u32, kept: u32| if taken { moved } else { kept };
    let [a, b, c, d] = [pick(by_two, c, a), pick(by_two, d, b), pick(by_two, e, c), pick(by_two, f, d)];
    if size == 8 {
        return P::from_words([a, b, c, d]);
    }
    let [e, f] = [pick(by_two, g, e), pick(by_two, h, f)];
    let by_one = off & 4 != 0;
    let [a, b, c, d, e] =
        [pick(by_one, b, a), pick(by_one, c, b), pick(by_one, d, c), pick(by_one, e, d), pick(by_one, f, e)];
    if size == 4 {
        return P::from_words([a, b, c, d]);
    }
    let bits = off as u32 % 4 * 8;
    P::from_words([funnel(a, b, bits), funnel(b, c, bits), funnel(c, d, bits), funnel(d, e, bits)])
}
