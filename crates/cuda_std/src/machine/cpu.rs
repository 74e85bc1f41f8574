//! The primitives on the CPU: calls into the executor.
//!
//! Global memory is read and written by relaxed atomics of the access's width. On the usual processors that is an
//! ordinary move, and it makes kernels whose threads race defined programs here too: blocks run on several cores.

use core::mem::{size_of, transmute_copy};
use core::sync::atomic::{AtomicI32, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};
use std::format;
use std::panic::Location;

use simt::lane::{self, Access, Barrier, Shuffle, Space, Vote};

use crate::atomic::Scope;
use crate::element::{Packed, Plain};

/// The address of shared memory.
pub(crate) type SharedAddress = *mut u8;

#[track_caller]
#[cold]
pub(crate) fn out_of_bounds(array: &'static str, index: usize, len: usize) -> ! {
    lane::fault(format!("index {index} of {array} of length {len}"))
}

#[track_caller]
#[cold]
pub(crate) fn wrong_block(threads: usize) -> ! {
    lane::fault(format!("the block is {}, larger than the {threads} threads of the kernel's type", lane::block_dim()))
}

#[track_caller]
#[cold]
pub(crate) fn misaligned(array: &'static str, index: usize) -> ! {
    lane::fault(format!("a 16-byte access at index {index} of {array}, which is not at a multiple of 16 bytes"))
}

pub(crate) mod index {
    //! Special registers.
    use simt::lane;

    macro_rules! registers {
        ($($name:ident = $dim:ident.$axis:ident),* $(,)?) => {$(
            pub(crate) fn $name() -> u32 {
                lane::$dim().$axis
            }
        )*};
    }

    registers! {
        thread_idx_x = thread_idx.x, thread_idx_y = thread_idx.y, thread_idx_z = thread_idx.z,
        block_idx_x = block_idx.x, block_idx_y = block_idx.y, block_idx_z = block_idx.z,
        block_dim_x = block_dim.x, block_dim_y = block_dim.y, block_dim_z = block_dim.z,
        grid_dim_x = grid_dim.x, grid_dim_y = grid_dim.y, grid_dim_z = grid_dim.z,
    }

    pub(crate) fn lane_id() -> u32 {
        lane::lane_id()
    }
}

#[track_caller]
pub(crate) fn barrier() {
    lane::barrier(Barrier::Sync, false);
}

#[track_caller]
pub(crate) fn barrier_count(predicate: bool) -> u32 {
    lane::barrier(Barrier::Count, predicate)
}

#[track_caller]
pub(crate) fn barrier_and(predicate: bool) -> bool {
    lane::barrier(Barrier::And, predicate) != 0
}

#[track_caller]
pub(crate) fn barrier_or(predicate: bool) -> bool {
    lane::barrier(Barrier::Or, predicate) != 0
}

#[track_caller]
pub(crate) fn sync_warp(mask: u32) {
    lane::sync_warp(mask);
}

#[track_caller]
pub(crate) fn active_mask() -> u32 {
    lane::active_mask()
}

#[track_caller]
pub(crate) fn vote_all(mask: u32, predicate: bool) -> bool {
    lane::vote(Vote::All, mask, u32::from(predicate)) != 0
}

#[track_caller]
pub(crate) fn vote_any(mask: u32, predicate: bool) -> bool {
    lane::vote(Vote::Any, mask, u32::from(predicate)) != 0
}

#[track_caller]
pub(crate) fn vote_ballot(mask: u32, predicate: bool) -> u32 {
    lane::vote(Vote::Ballot, mask, u32::from(predicate))
}

/// A place in the source.
pub(crate) type Place = &'static Location<'static>;

/// Where the caller's caller stands: a closure, through which a shuffle may go, forgets it.
#[track_caller]
pub(crate) fn here() -> Place {
    Location::caller()
}

macro_rules! shuffles {
    ($($name:ident = $kind:ident),*) => {$(
        pub(crate) fn $name(place: Place, mask: u32, value: u64, operand: u32, width: u32, _words: usize) -> u64 {
            lane::shuffle_at(place, Shuffle::$kind, mask, value, operand, width).0
        }
    )*};
}

shuffles!(shuffle_down = Down, shuffle_up = Up, shuffle_idx = Idx, shuffle_xor = Xor);

macro_rules! reductions {
    ($($name:ident = $kind:ident),* $(,)?) => {$(
        #[track_caller]
        pub(crate) fn $name(mask: u32, value: u32) -> u32 {
            lane::vote(Vote::$kind, mask, value)
        }
    )*};
}

reductions! {
    reduce_add = ReduceAdd, reduce_min = ReduceMin, reduce_max = ReduceMax,
    reduce_min_signed = ReduceMinSigned, reduce_max_signed = ReduceMaxSigned,
    reduce_and = ReduceAnd, reduce_or = ReduceOr, reduce_xor = ReduceXor,
}

// Lanes of a block run on one core, but blocks do not, and the host's order is not the device's: all fences are full.

pub(crate) fn fence_block() {
    lane::fence(true, true);
    fence(Ordering::SeqCst);
}

pub(crate) fn fence_device() {
    lane::fence(false, true);
    fence(Ordering::SeqCst);
}

pub(crate) fn fence_system() {
    lane::fence(false, true);
    fence(Ordering::SeqCst);
}

pub(crate) fn fence_acquire_release(scope: Scope) {
    lane::fence(scope == Scope::Block, false);
    fence(Ordering::AcqRel);
}

/// The executor runs one grid after another.
pub(crate) fn admit_next_grid() {}

pub(crate) fn keep_rolled(counter: u32) -> u32 {
    core::hint::black_box(counter)
}

/// Reads global memory.
///
/// # Safety
/// `place` is valid for a read of `T`, aligned, and written by nothing but the functions of this module meanwhile.
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn load<T: Plain>(place: *const T) -> T {
    lane::access(Space::Global, Access::Load, place.addr(), size_of::<T>());
    // SAFETY: as promised by the caller.
    unsafe { read(place) }
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
            _ => unreachable!("`Plain` types have 1, 2, 4, 8 or 16 bytes"),
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
    lane::access(Space::Global, Access::Store, place.addr(), size_of::<T>());
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
            _ => unreachable!("`Plain` types have 1, 2, 4, 8 or 16 bytes"),
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

/// A round of waiting for a block before this one.
#[track_caller]
pub(crate) fn spin() {
    lane::spin();
}

/// Each of the selector's digits is less than 8.
pub(crate) fn permute_bytes(low: u32, high: u32, selector: u32) -> u32 {
    let bytes = (u64::from(high) << 32 | u64::from(low)).to_le_bytes();
    u32::from_le_bytes([0, 4, 8, 12].map(|digit| bytes[(selector >> digit & 7) as usize]))
}

/// How many bytes an address is past a multiple of 16: of no matter here, where an access of a pack is any number of
/// loads.
pub(crate) fn bytes_off_alignment<T>(place: *const T) -> usize {
    place as usize % 16
}

/// The 16 bytes at `place` at their places in two packs, `off` bytes into them, and nothing else: a GPU has to read around
/// them, which is for those who count requests, but not for those who check accesses.
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
    // SAFETY: any 16 bytes are a pack (it is `Plain`).
    unsafe { transmute_copy(&bytes) }
}

/// The 32 bits that begin `bits` bits, less than 32, into two words.
pub(crate) fn funnel(low: u32, high: u32, bits: u32) -> u32 {
    ((u64::from(high) << 32 | u64::from(low)) >> bits) as u32
}

/// Elements `from..to` of the pack at `place`, in one load or two of the aligned packs that they lie in; zeros for the others.
///
/// # Safety
/// Those elements are valid for a read.
#[track_caller]
pub(crate) unsafe fn load_part<T: Plain, P: Packed<Item = T>>(place: *const T, from: usize, to: usize) -> P {
    lane::unaligned_load(place.wrapping_add(from).addr(), (to - from) * size_of::<T>());
    let mut pack = P::from_words([0; 4]);
    for k in from..to {
        // SAFETY: as promised by the caller.
        pack = pack.with(k, unsafe { read(place.wrapping_add(k)) });
    }
    pack
}

/// The 16 bytes that begin `off` bytes, less than 16, into two packs.
pub(crate) fn cut<P: Packed>(low: P, high: P, off: usize, _size: usize) -> P {
    let mut bytes = [0_u8; 32];
    for (place, word) in bytes.chunks_exact_mut(4).zip(low.to_words().into_iter().chain(high.to_words())) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    let word = |i: usize| u32::from_le_bytes([0, 1, 2, 3].map(|k| bytes[off + 4 * i + k]));
    P::from_words([0, 1, 2, 3].map(word))
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

#[track_caller]
pub(crate) fn shared_declare<T, const LEN: usize, const ID: u64>() -> SharedAddress {
    lane::shared_array(ID, LEN * size_of::<T>(), size_of::<T>())
}

#[track_caller]
pub(crate) fn shared_declare_tile<T, const ROWS: usize, const COLUMNS: usize, const PAD: usize, const ID: u64>()
-> SharedAddress {
    lane::shared_array(ID, ROWS * (COLUMNS + PAD) * size_of::<T>(), size_of::<T>())
}

pub(crate) fn shared_dynamic() -> (SharedAddress, usize) {
    lane::dynamic_shared()
}

/// Reads shared memory.
///
/// # Safety
/// `base + offset` is inside of a shared array of this block, and a multiple of `T`'s size.
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn shared_load<T: Plain>(base: SharedAddress, offset: usize) -> T {
    lane::access(Space::Shared, Access::Load, base.addr() + offset, size_of::<T>());
    // SAFETY: as promised by the caller; the lanes of a block run on one core, so this is no race.
    unsafe { base.add(offset).cast::<T>().read() }
}

/// Writes shared memory.
///
/// # Safety
/// As [`shared_load`].
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn shared_store<T: Plain>(base: SharedAddress, offset: usize, value: T) {
    lane::access(Space::Shared, Access::Store, base.addr() + offset, size_of::<T>());
    // SAFETY: as promised by the caller; the lanes of a block run on one core, so this is no race.
    unsafe { base.add(offset).cast::<T>().write(value) }
}

/// Reads shared memory, from memory.
///
/// # Safety
/// As [`shared_load`].
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn shared_load_volatile<T: Plain>(base: SharedAddress, offset: usize) -> T {
    lane::access(Space::Shared, Access::Load, base.addr() + offset, size_of::<T>());
    // SAFETY: as promised by the caller.
    unsafe { base.add(offset).cast::<T>().read_volatile() }
}

/// Writes shared memory, to memory.
///
/// # Safety
/// As [`shared_load`].
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn shared_store_volatile<T: Plain>(base: SharedAddress, offset: usize, value: T) {
    lane::access(Space::Shared, Access::Store, base.addr() + offset, size_of::<T>());
    // SAFETY: as promised by the caller.
    unsafe { base.add(offset).cast::<T>().write_volatile(value) }
}

pub(crate) fn f32_from_f16(bits: u16) -> f32 {
    half::f16::from_bits(bits).to_f32()
}

/// The square root, rounded to nearest.
pub(crate) fn sqrt_f32(value: f32) -> f32 {
    value.sqrt()
}

/// The square root, rounded to nearest.
pub(crate) fn sqrt_f64(value: f64) -> f64 {
    value.sqrt()
}

/// The smaller; NaN if one is NaN.
pub(crate) fn minimum_f32(a: f32, b: f32) -> f32 {
    crate::float::minimum_by_comparing(a, b)
}

/// The larger; NaN if one is NaN.
pub(crate) fn maximum_f32(a: f32, b: f32) -> f32 {
    crate::float::maximum_by_comparing(a, b)
}

pub(crate) fn f16_from_f32(value: f32) -> u16 {
    half::f16::from_f32(value).to_bits()
}

pub(crate) fn bf16_from_f32(value: f32) -> u16 {
    half::bf16::from_f32(value).to_bits()
}

/// An atomic operation, in the order that those who watch see.
#[inline(always)]
#[track_caller]
fn in_order<T>(place: *mut T, scope: Scope, operation: impl FnOnce() -> T) -> T {
    lane::atomic(Access::Atomic, place.addr(), size_of::<T>(), scope == Scope::Block, operation, |_| true)
}

macro_rules! atomics {
    ($($name:ident: $type:ty, $atomic:ident, $method:ident;)*) => {$(
        /// # Safety
        /// `place` is valid for reads and writes of the type, aligned, and used by nothing but this module meanwhile.
        #[track_caller]
        pub(crate) unsafe fn $name(place: *mut $type, operand: $type, scope: Scope) -> $type {
            // SAFETY: as promised by the caller.
            in_order(place, scope, || unsafe { (*place.cast::<$atomic>()).$method(operand, Ordering::Relaxed) })
        }
    )*};
}

atomics! {
    atomic_add_u32: u32, AtomicU32, fetch_add;
    atomic_min_u32: u32, AtomicU32, fetch_min;
    atomic_max_u32: u32, AtomicU32, fetch_max;
    atomic_add_i32: i32, AtomicI32, fetch_add;
    atomic_min_i32: i32, AtomicI32, fetch_min;
    atomic_max_i32: i32, AtomicI32, fetch_max;
    atomic_add_u64: u64, AtomicU64, fetch_add;
    atomic_min_u64: u64, AtomicU64, fetch_min;
    atomic_max_u64: u64, AtomicU64, fetch_max;
    atomic_add_i64: i64, AtomicI64, fetch_add;
    atomic_min_i64: i64, AtomicI64, fetch_min;
    atomic_max_i64: i64, AtomicI64, fetch_max;
}

/// # Safety
/// `place` is valid for reads and writes, aligned, and used by nothing but this module meanwhile.
#[track_caller]
pub(crate) unsafe fn atomic_inc_u32(place: *mut u32, last: u32, scope: Scope) -> u32 {
    // SAFETY: as promised by the caller.
    let counter = unsafe { &*place.cast::<AtomicU32>() };
    let next = |count| Some(if count >= last { 0 } else { count + 1 });
    in_order(place, scope, || match counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
        Ok(before) | Err(before) => before,
    })
}

macro_rules! compare_and_swaps {
    ($($name:ident: $type:ty, $atomic:ident;)*) => {$(
        /// # Safety
        /// `place` is valid for reads and writes of the type, aligned, and used by nothing but this module meanwhile.
        #[track_caller]
        pub(crate) unsafe fn $name(place: *mut $type, expected: $type, new: $type, scope: Scope) -> $type {
            // SAFETY: as promised by the caller.
            let atomic = unsafe { &*place.cast::<$atomic>() };
            in_order(place, scope, || {
                match atomic.compare_exchange(expected, new, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(before) | Err(before) => before,
                }
            })
        }
    )*};
}

compare_and_swaps! {
    atomic_cas_u32: u32, AtomicU32;
    atomic_cas_i32: i32, AtomicI32;
    atomic_cas_u64: u64, AtomicU64;
    atomic_cas_i64: i64, AtomicI64;
}
