//! Global memory: ordinary, volatile and 16-byte accesses.

use core::arch::asm;
use core::mem::{size_of, transmute_copy};

use crate::element::{Plain, VectorType};
use crate::global::Fetch;

/// Loads 16 bytes, as words: what of L2's lines is fetched with them is part of the instruction, which older devices do
/// not have.
macro_rules! load_words {
    ($instruction:literal, $is_there:expr, $place:expr) => {{
        let (a, b, c, d): (u32, u32, u32, u32);
        asm!(
            "{{",
            ".reg .pred there;",
            ".reg .b64 global;",
            "setp.ne.u32 there, {is_there}, 0;",
            "cvta.to.global.u64 global, {place};",
            "mov.b32 {a}, 0;",
            "mov.b32 {b}, 0;",
            "mov.b32 {c}, 0;",
            "mov.b32 {d}, 0;",
            concat!("@there ", $instruction, " {{{a}, {b}, {c}, {d}}}, [global];"),
            "}}",
            a = out(reg32) a, b = out(reg32) b, c = out(reg32) c, d = out(reg32) d,
            is_there = in(reg32) u32::from($is_there), place = in(reg64) $place,
            options(pure, readonly, nostack, preserves_flags)
        );
        [a, b, c, d]
    }};
    ($instruction:literal, $place:expr) => {{
        let (a, b, c, d): (u32, u32, u32, u32);
        asm!(
            "{{",
            ".reg .b64 global;",
            "cvta.to.global.u64 global, {place};",
            concat!($instruction, " {{{a}, {b}, {c}, {d}}}, [global];"),
            "}}",
            a = out(reg32) a, b = out(reg32) b, c = out(reg32) c, d = out(reg32) d, place = in(reg64) $place,
            options(pure, readonly, nostack, preserves_flags)
        );
        [a, b, c, d]
    }};
}

/// Reads global memory.
///
/// # Safety
/// `place` is valid for a read of `T` on this device, and aligned.
#[inline(always)]
pub(crate) unsafe fn load<T: Plain>(place: *const T) -> T {
    if size_of::<T>() == 16 {
        // LLVM would take an ordinary 16-byte load apart as soon as an unaligned path reads the same elements.
        // SAFETY: as promised by the caller; any bits are a `T` (it is `Plain`).
        return unsafe { transmute_copy(&load_words!("ld.global.v4.b32", place)) };
    }
    // SAFETY: as promised by the caller.
    unsafe { place.read() }
}

/// Reads 16 bytes.
///
/// # Safety
/// As [`load`].
#[inline(always)]
pub(crate) unsafe fn load_vector<P: VectorType>(place: *const P, fetch: Fetch) -> P {
    // SAFETY: as promised by the caller.
    P::from_words(unsafe {
        match fetch {
            #[cfg(cuda_arch_at_least = "90")]
            Fetch::Line => load_words!("ld.global.L2::128B.v4.b32", place),
            #[cfg(cuda_arch_at_least = "90")]
            Fetch::TwoLines => load_words!("ld.global.L2::256B.v4.b32", place),
            _ => load_words!("ld.global.v4.b32", place),
        }
    })
}

/// Reads 16 bytes, or nothing: zeros. A predicate, where LLVM would make a branch and wait for what is loaded at its
/// end.
///
/// # Safety
/// As [`load`], if there is something.
#[inline(always)]
pub(crate) unsafe fn load_vector_if<P: VectorType>(is_there: bool, place: *const P, fetch: Fetch) -> P {
    // SAFETY: as promised by the caller.
    P::from_words(unsafe {
        match fetch {
            #[cfg(cuda_arch_at_least = "90")]
            Fetch::Line => load_words!("ld.global.L2::128B.v4.b32", is_there, place),
            #[cfg(cuda_arch_at_least = "90")]
            Fetch::TwoLines => load_words!("ld.global.L2::256B.v4.b32", is_there, place),
            _ => load_words!("ld.global.v4.b32", is_there, place),
        }
    })
}

/// [`load_vector_if`] of 8 bytes, as words.
///
/// # Safety
/// As there.
#[inline(always)]
pub(crate) unsafe fn load_half_if(is_there: bool, place: *const [u32; 2]) -> [u32; 2] {
    let (a, b): (u32, u32);
    // SAFETY: as promised by the caller.
    unsafe {
        asm!(
            "{{",
            ".reg .pred there;",
            ".reg .b64 global;",
            "setp.ne.u32 there, {is_there}, 0;",
            "cvta.to.global.u64 global, {place};",
            "mov.b32 {a}, 0;",
            "mov.b32 {b}, 0;",
            "@there ld.global.v2.b32 {{{a}, {b}}}, [global];",
            "}}",
            a = out(reg32) a, b = out(reg32) b,
            is_there = in(reg32) u32::from(is_there), place = in(reg64) place,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    [a, b]
}

/// What the next lane has. All lanes of the warp come here; the last one gets its own.
#[inline(always)]
pub(crate) fn of_next_lane(word: u32) -> u32 {
    super::shuffle_down((), u32::MAX, word.into(), 1, 32, 1) as u32
}

/// The 8 bytes that begin `off` bytes, less than 8, into `low` and, behind it, `high`.
#[inline(always)]
pub(crate) fn cut_half([a, b]: [u32; 2], [c, d]: [u32; 2], off: usize) -> [u32; 2] {
    let by_one = off & 4 != 0;
    let [a, b, c] = if by_one { [b, c, d] } else { [a, b, c] };
    let bits = off as u32 % 4 * 8;
    [funnel(a, b, bits), funnel(b, c, bits)]
}

/// Writes global memory.
///
/// # Safety
/// `place` is valid for a write of `T` on this device, and aligned.
#[inline(always)]
pub(crate) unsafe fn store<T: Plain>(place: *mut T, value: T) {
    if size_of::<T>() == 16 {
        // SAFETY: as promised by the caller.
        unsafe {
            let [a, b, c, d]: [u32; 4] = transmute_copy(&value);
            asm!(
                "{{",
                ".reg .b64 global;",
                "cvta.to.global.u64 global, {place};",
                "st.global.v4.b32 [global], {{{a}, {b}, {c}, {d}}};",
                "}}",
                a = in(reg32) a, b = in(reg32) b, c = in(reg32) c, d = in(reg32) d, place = in(reg64) place,
                options(nostack, preserves_flags)
            );
        }
        return;
    }
    // SAFETY: as promised by the caller.
    unsafe { place.write(value) }
}

/// Reads global memory past what compiler and L1 remember of it.
///
/// # Safety
/// As [`load`].
#[inline(always)]
pub(crate) unsafe fn load_volatile<T: Plain>(place: *const T) -> T {
    // Word by word: LLVM keeps a volatile access of an array in memory.
    // SAFETY: as promised by the caller; each arm reads a `T`'s bytes, any of which are one (it is `Plain`).
    unsafe {
        match size_of::<T>() {
            2 => transmute_copy(&place.cast::<u16>().read_volatile()),
            4 => transmute_copy(&place.cast::<u32>().read_volatile()),
            8 => transmute_copy(&place.cast::<u64>().read_volatile()),
            16 => {
                let halves = place.cast::<u64>();
                transmute_copy(&[halves.read_volatile(), halves.add(1).read_volatile()])
            }
            32 => {
                let words = place.cast::<u64>();
                let read = |k: usize| words.add(k).read_volatile();
                transmute_copy(&[read(0), read(1), read(2), read(3)])
            }
            _ => place.read_volatile(),
        }
    }
}

/// Writes global memory at once.
///
/// # Safety
/// As [`store`].
#[inline(always)]
pub(crate) unsafe fn store_volatile<T: Plain>(place: *mut T, value: T) {
    // SAFETY: as promised by the caller; each arm writes a `T`'s bytes, none of which is padding (it is `Plain`).
    unsafe {
        match size_of::<T>() {
            2 => place.cast::<u16>().write_volatile(transmute_copy(&value)),
            4 => place.cast::<u32>().write_volatile(transmute_copy(&value)),
            8 => place.cast::<u64>().write_volatile(transmute_copy(&value)),
            16 => {
                let [low, high]: [u64; 2] = transmute_copy(&value);
                let halves = place.cast::<u64>();
                halves.write_volatile(low);
                halves.add(1).write_volatile(high);
            }
            32 => {
                let [first, second, third, fourth]: [u64; 4] = transmute_copy(&value);
                let words = place.cast::<u64>();
                words.write_volatile(first);
                words.add(1).write_volatile(second);
                words.add(2).write_volatile(third);
                words.add(3).write_volatile(fourth);
            }
            _ => place.write_volatile(value),
        }
    }
}

/// Both words at once, as the device's memory has them.
///
/// # Safety
/// As [`load`].
#[inline(always)]
pub(crate) unsafe fn load_both(place: *const [u64; 2]) -> [u64; 2] {
    let (first, second);
    // SAFETY: as promised by the caller.
    unsafe {
        asm!(
            "{{",
            ".reg .b64 global;",
            "cvta.to.global.u64 global, {place};",
            "ld.relaxed.gpu.global.v2.b64 {{{first}, {second}}}, [global];",
            "}}",
            first = out(reg64) first, second = out(reg64) second, place = in(reg64) place,
            options(nostack, preserves_flags)
        );
    }
    [first, second]
}

/// Writes both words at once, for all of the device to see.
///
/// # Safety
/// As [`store`].
#[inline(always)]
pub(crate) unsafe fn store_both(place: *mut [u64; 2], [first, second]: [u64; 2]) {
    // SAFETY: as promised by the caller.
    unsafe {
        asm!(
            "{{",
            ".reg .b64 global;",
            "cvta.to.global.u64 global, {place};",
            "st.relaxed.gpu.global.v2.b64 [global], {{{first}, {second}}};",
            "}}",
            place = in(reg64) place, first = in(reg64) first, second = in(reg64) second,
            options(nostack, preserves_flags)
        );
    }
}

/// A round of waiting for a block before this one: nothing that would make the next one later.
#[inline(always)]
pub(crate) fn spin(_round: u32) {}

/// The end of so many rounds of waiting.
#[inline(always)]
pub(crate) fn end_spin(_rounds: u32) {}

/// How many bytes an address is past a multiple of 16.
#[inline(always)]
pub(crate) fn bytes_off_alignment<T>(place: *const T) -> usize {
    place as usize % 16
}

/// The two aligned vectors that the 16 bytes at `place` lie in, where `place` is `off` bytes past a multiple of 16.
///
/// # Safety
/// Both are valid for a read, and `off` is not 0.
#[inline(always)]
pub(crate) unsafe fn load_around<P: Plain>(place: *const P, off: usize) -> [P; 2] {
    // SAFETY: as promised by the caller.
    unsafe {
        let low = place.byte_sub(off);
        [load(low), load(low.byte_add(16))]
    }
}

/// [`load_around`], or nothing: zeros.
///
/// # Safety
/// As there, if there is something.
#[inline(always)]
pub(crate) unsafe fn load_around_if<P: VectorType>(is_there: bool, place: *const P, off: usize) -> [P; 2] {
    let low = place.wrapping_byte_sub(off);
    // SAFETY: as promised by the caller.
    unsafe {
        [
            load_vector_if(is_there, low, Fetch::Sectors),
            load_vector_if(is_there, low.wrapping_byte_add(16), Fetch::Sectors),
        ]
    }
}

/// Writes those of a vector's words that lie in elements `from..to`, and of the two words that a border may go through
/// those elements.
///
/// # Safety
/// The elements are valid for a write on this device; `place` is a multiple of 16.
#[inline(always)]
pub(crate) unsafe fn store_part(place: *mut u32, words: [u32; 4], size: usize, from: usize, to: usize) {
    let (from, to) = (from * size, to * size);
    let mut i = 0;
    while i < 4 {
        let (begin, end) = (4 * i, 4 * i + 4);
        // SAFETY: as promised by the caller.
        unsafe {
            let word = place.add(i);
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

/// The 16 bytes that begin `off` bytes, less than 16, into two vectors, which lie one behind the other and hold elements
/// of `size` bytes.
///
/// Registers have no index, so the words are moved in two steps of two words and one, each taken or not, and then all
/// by less than a word (`shf`), for elements that are smaller than one.
#[inline(always)]
pub(crate) fn cut<P: VectorType>(low: P, high: P, off: usize, size: usize) -> P {
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

/// The sum of a word's bytes and another.
#[inline(always)]
pub(crate) fn add_bytes(word: u32, sum: u32) -> u32 {
    let result: u32;
    // SAFETY: arithmetic only.
    unsafe {
        asm!(
            "dp4a.u32.u32 {}, {}, {}, {};",
            out(reg32) result, in(reg32) word, in(reg32) 0x0101_0101_u32, in(reg32) sum,
            options(pure, nomem, nostack, preserves_flags)
        )
    };
    result
}

/// The same of signed bytes.
#[inline(always)]
pub(crate) fn add_signed_bytes(word: u32, sum: i32) -> i32 {
    let result: i32;
    // SAFETY: arithmetic only.
    unsafe {
        asm!(
            "dp4a.s32.s32 {}, {}, {}, {};",
            out(reg32) result, in(reg32) word, in(reg32) 0x0101_0101_u32, in(reg32) sum,
            options(pure, nomem, nostack, preserves_flags)
        )
    };
    result
}

pub(crate) const COMPARES_HALVES: bool = cfg!(cuda_arch_at_least = "80");

/// Halves are below 0x7C00: no infinities and no NaN, and numbers below 2^-14 stay what they are.
#[inline(always)]
pub(crate) fn min_of_halves(a: u32, b: u32) -> u32 {
    #[cfg(cuda_arch_at_least = "80")]
    {
        let result: u32;
        // SAFETY: arithmetic only.
        unsafe {
            asm!(
                "min.f16x2 {}, {}, {};",
                out(reg32) result, in(reg32) a, in(reg32) b,
                options(pure, nomem, nostack, preserves_flags)
            )
        };
        result
    }
    #[cfg(not(cuda_arch_at_least = "80"))]
    {
        (a & 0xFFFF).min(b & 0xFFFF) | (a >> 16).min(b >> 16) << 16
    }
}

/// As [`min_of_halves`].
#[inline(always)]
pub(crate) fn max_of_halves(a: u32, b: u32) -> u32 {
    #[cfg(cuda_arch_at_least = "80")]
    {
        let result: u32;
        // SAFETY: arithmetic only.
        unsafe {
            asm!(
                "max.f16x2 {}, {}, {};",
                out(reg32) result, in(reg32) a, in(reg32) b,
                options(pure, nomem, nostack, preserves_flags)
            )
        };
        result
    }
    #[cfg(not(cuda_arch_at_least = "80"))]
    {
        (a & 0xFFFF).max(b & 0xFFFF) | (a >> 16).max(b >> 16) << 16
    }
}

/// Each of the selector's digits is less than 8.
#[inline(always)]
pub(crate) fn permute_bytes(low: u32, high: u32, selector: u32) -> u32 {
    let word: u32;
    // SAFETY: arithmetic only.
    unsafe {
        asm!(
            "prmt.b32 {}, {}, {}, {};",
            out(reg32) word, in(reg32) low, in(reg32) high, in(reg32) selector,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    word
}

#[inline(always)]
pub(crate) fn high_product(a: u32, b: u32) -> u32 {
    let word: u32;
    // SAFETY: arithmetic only.
    unsafe {
        asm!(
            "mul.hi.u32 {}, {}, {};",
            out(reg32) word, in(reg32) a, in(reg32) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    word
}

/// The 32 bits that begin `bits` bits into two words.
#[inline(always)]
pub(crate) fn funnel(low: u32, high: u32, bits: u32) -> u32 {
    let word: u32;
    // SAFETY: arithmetic only.
    unsafe {
        asm!(
            "shf.r.wrap.b32 {}, {}, {}, {};",
            out(reg32) word, in(reg32) low, in(reg32) high, in(reg32) bits,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    word
}
