//! The primitives on a GPU: LLVM's NVPTX intrinsics and PTX.
//!
//! **Convergent operations are intrinsics, never `asm!`.** rustc before 1.97 does not mark inline assembly convergent,
//! so LLVM could duplicate a barrier into both arms of a branch (rust#137086). The intrinsics carry the attribute. For
//! the same reason every function that contains one is `#[inline(always)]`.
//!
//! **Shared memory is accessed by `asm!`.** rustc has no statics in an address space (rust#135516), and a generic
//! pointer to shared memory makes loads generic. So `asm!` declares an array and takes its 32-bit shared address, and
//! `ld.shared` and `st.shared` access it.

mod atomic;
mod bits;
mod floats;
mod global;
mod shared;

use core::arch::asm;
use core::arch::nvptx;

pub(crate) use atomic::*;
pub(crate) use bits::*;
pub(crate) use floats::*;
pub(crate) use global::*;
pub(crate) use shared::*;

use crate::warp::FULL_MASK;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    trap()
}

/// Stops the grid; the host sees an illegal instruction.
#[inline(always)]
pub(crate) fn trap() -> ! {
    // SAFETY: `trap` ends the kernel and accesses no memory.
    unsafe { nvptx::trap() }
}

/// Traps on an index outside an array: a GPU prints no message.
#[inline(always)]
pub(crate) fn out_of_bounds(_array: &'static str, _index: usize, _len: usize) -> ! {
    trap()
}

/// Traps on a block that is larger than the kernel's type says.
#[inline(always)]
pub(crate) fn wrong_block(_threads: usize) -> ! {
    trap()
}

/// Traps if the caller is not in its own mask: PTX leaves the operation undefined. The executor checks that itself.
#[inline(always)]
fn check_mask(mask: u32) {
    if mask != FULL_MASK && mask >> index::lane_id() & 1 == 0 {
        trap();
    }
}

/// Traps on an address that is not a multiple of the access's size.
#[inline(always)]
pub(crate) fn misaligned(_array: &'static str, _index: usize) -> ! {
    trap()
}

/// Traps on an address that is not a multiple of the access's size.
#[inline(always)]
pub(crate) fn misaligned_for(_array: &'static str, _size: usize) -> ! {
    trap()
}

/// Traps on bits in memory that are no value of their type.
#[inline(always)]
pub(crate) fn not_a_value(_ty: &'static str) -> ! {
    trap()
}

/// No effect: nothing is erased on a GPU.
#[inline(always)]
pub(crate) fn enter_table<V: Sync>(_table: &'static V) {}

/// Never called on a GPU; see [`enter_table`].
#[inline(always)]
pub(crate) fn table<V: Sync>() -> &'static V {
    trap()
}

pub(crate) mod index {
    //! Special registers.
    use core::arch::nvptx;

    macro_rules! registers {
        ($($name:ident = $intrinsic:ident),* $(,)?) => {$(
            #[inline(always)]
            pub(crate) fn $name() -> u32 {
                // SAFETY: reads a register that every thread has.
                unsafe { nvptx::$intrinsic() }
            }
        )*};
    }

    registers! {
        thread_idx_x = _thread_idx_x, thread_idx_y = _thread_idx_y, thread_idx_z = _thread_idx_z,
        block_idx_x = _block_idx_x, block_idx_y = _block_idx_y, block_idx_z = _block_idx_z,
        block_dim_x = _block_dim_x, block_dim_y = _block_dim_y, block_dim_z = _block_dim_z,
        grid_dim_x = _grid_dim_x, grid_dim_y = _grid_dim_y, grid_dim_z = _grid_dim_z,
    }

    unsafe extern "C" {
        #[link_name = "llvm.nvvm.read.ptx.sreg.laneid"]
        fn laneid() -> u32;
    }

    #[inline(always)]
    pub(crate) fn lane_id() -> u32 {
        // SAFETY: reads a register that every thread has.
        unsafe { laneid() }
    }
}

mod intrinsic {
    //! LLVM's names and types.
    unsafe extern "C" {
        #[link_name = "llvm.nvvm.barrier0.popc"]
        pub(super) fn barrier_popc(predicate: i32) -> i32;
        #[link_name = "llvm.nvvm.barrier0.and"]
        pub(super) fn barrier_and(predicate: i32) -> i32;
        #[link_name = "llvm.nvvm.barrier0.or"]
        pub(super) fn barrier_or(predicate: i32) -> i32;

        #[link_name = "llvm.nvvm.bar.warp.sync"]
        pub(super) fn bar_warp_sync(mask: u32);
        #[link_name = "llvm.nvvm.activemask"]
        pub(super) fn activemask() -> u32;
        #[link_name = "llvm.nvvm.shfl.sync.down.i32"]
        pub(super) fn shfl_down(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
        #[link_name = "llvm.nvvm.shfl.sync.up.i32"]
        pub(super) fn shfl_up(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
        #[link_name = "llvm.nvvm.shfl.sync.idx.i32"]
        pub(super) fn shfl_idx(mask: u32, value: u32, lane: u32, clamp: u32) -> u32;
        #[link_name = "llvm.nvvm.shfl.sync.bfly.i32"]
        pub(super) fn shfl_bfly(mask: u32, value: u32, lanes: u32, clamp: u32) -> u32;
        #[link_name = "llvm.nvvm.vote.all.sync"]
        pub(super) fn vote_all(mask: u32, predicate: bool) -> bool;
        #[link_name = "llvm.nvvm.vote.any.sync"]
        pub(super) fn vote_any(mask: u32, predicate: bool) -> bool;
        #[link_name = "llvm.nvvm.vote.ballot.sync"]
        pub(super) fn vote_ballot(mask: u32, predicate: bool) -> u32;

        #[link_name = "llvm.nvvm.match.any.sync.i32"]
        pub(super) fn match_any_32(mask: u32, value: u32) -> u32;
        #[link_name = "llvm.nvvm.match.any.sync.i64"]
        pub(super) fn match_any_64(mask: u32, value: u64) -> u32;

        #[link_name = "llvm.nvvm.membar.cta"]
        pub(super) fn membar_cta();
        #[link_name = "llvm.nvvm.membar.gl"]
        pub(super) fn membar_gl();
        #[link_name = "llvm.nvvm.membar.sys"]
        pub(super) fn membar_sys();
    }

    /// A pair as LLVM returns it: the lanes, and whether all values are equal.
    type LanesAndPredicate = (u32, bool);

    #[allow(improper_ctypes, reason = "this ABI passes LLVM's own types")]
    unsafe extern "unadjusted" {
        #[link_name = "llvm.nvvm.match.all.sync.i32p"]
        pub(super) fn match_all_32(mask: u32, value: u32) -> LanesAndPredicate;
        #[link_name = "llvm.nvvm.match.all.sync.i64p"]
        pub(super) fn match_all_64(mask: u32, value: u64) -> LanesAndPredicate;
    }

    #[cfg(cuda_arch_at_least = "80")]
    unsafe extern "C" {
        #[link_name = "llvm.nvvm.redux.sync.add"]
        pub(super) fn redux_add(value: u32, mask: u32) -> u32;
        #[link_name = "llvm.nvvm.redux.sync.umin"]
        pub(super) fn redux_umin(value: u32, mask: u32) -> u32;
        #[link_name = "llvm.nvvm.redux.sync.umax"]
        pub(super) fn redux_umax(value: u32, mask: u32) -> u32;
        #[link_name = "llvm.nvvm.redux.sync.min"]
        pub(super) fn redux_min(value: u32, mask: u32) -> u32;
        #[link_name = "llvm.nvvm.redux.sync.max"]
        pub(super) fn redux_max(value: u32, mask: u32) -> u32;
        #[link_name = "llvm.nvvm.redux.sync.and"]
        pub(super) fn redux_and(value: u32, mask: u32) -> u32;
        #[link_name = "llvm.nvvm.redux.sync.or"]
        pub(super) fn redux_or(value: u32, mask: u32) -> u32;
        #[link_name = "llvm.nvvm.redux.sync.xor"]
        pub(super) fn redux_xor(value: u32, mask: u32) -> u32;
    }
}

// Every barrier, shuffle and vote below is sound to call: a wrong mask, or a barrier in divergent code, yields
// undefined values or hangs, but accesses no other thread's memory.

#[inline(always)]
pub(crate) fn barrier() {
    // SAFETY: see above.
    unsafe { nvptx::_syncthreads() }
}

#[inline(always)]
pub(crate) fn barrier_or_leave(_stays: bool) {
    barrier();
}

#[inline(always)]
pub(crate) fn barrier_count(predicate: bool) -> u32 {
    // SAFETY: see above.
    unsafe { intrinsic::barrier_popc(i32::from(predicate)) as u32 }
}

#[inline(always)]
pub(crate) fn barrier_and(predicate: bool) -> bool {
    // SAFETY: see above.
    unsafe { intrinsic::barrier_and(i32::from(predicate)) != 0 }
}

#[inline(always)]
pub(crate) fn barrier_or(predicate: bool) -> bool {
    // SAFETY: see above.
    unsafe { intrinsic::barrier_or(i32::from(predicate)) != 0 }
}

#[inline(always)]
pub(crate) fn sync_warp(mask: u32) {
    check_mask(mask);
    // SAFETY: see above.
    unsafe { intrinsic::bar_warp_sync(mask) }
}

#[inline(always)]
pub(crate) fn active_mask() -> u32 {
    // SAFETY: see above.
    unsafe { intrinsic::activemask() }
}

#[inline(always)]
pub(crate) fn vote_all(mask: u32, predicate: bool) -> bool {
    check_mask(mask);
    // SAFETY: see above.
    unsafe { intrinsic::vote_all(mask, predicate) }
}

#[inline(always)]
pub(crate) fn vote_any(mask: u32, predicate: bool) -> bool {
    check_mask(mask);
    // SAFETY: see above.
    unsafe { intrinsic::vote_any(mask, predicate) }
}

#[inline(always)]
pub(crate) fn vote_ballot(mask: u32, predicate: bool) -> u32 {
    check_mask(mask);
    // SAFETY: see above.
    unsafe { intrinsic::vote_ballot(mask, predicate) }
}

/// The lanes of `mask` with the caller's `value`, of one or two words.
#[inline(always)]
pub(crate) fn match_any(mask: u32, value: u64, words: usize) -> u32 {
    check_mask(mask);
    // SAFETY: see above.
    unsafe {
        if words == 1 { intrinsic::match_any_32(mask, value as u32) } else { intrinsic::match_any_64(mask, value) }
    }
}

/// The lanes of `mask` if all have the same `value`, else 0.
#[inline(always)]
pub(crate) fn match_all(mask: u32, value: u64, words: usize) -> u32 {
    check_mask(mask);
    // SAFETY: see above.
    let (lanes, are_equal) = unsafe {
        if words == 1 { intrinsic::match_all_32(mask, value as u32) } else { intrinsic::match_all_64(mask, value) }
    };
    if are_equal { lanes } else { 0 }
}

/// The third operand of PTX's `shfl.sync`: the segment mask in bits 8 to 12, the clamp in bits 0 to 4.
#[inline(always)]
const fn segments_of(width: u32, clamp: u32) -> u32 {
    ((32 - width) << 8) | clamp
}

/// Moves 64 bits as two words. A caller with 32 bits drops the upper half, and LLVM drops its shuffle.
#[inline(always)]
fn by_words(value: u64, shuffle: impl Fn(u32) -> u32) -> u64 {
    u64::from(shuffle(value as u32)) | (u64::from(shuffle((value >> 32) as u32)) << 32)
}

/// A position in the source: unused on a GPU.
pub(crate) type SourceLocation = ();

/// The position of the caller's caller.
#[inline(always)]
pub(crate) const fn caller_location() {}

macro_rules! shuffles {
    ($($name:ident = $intrinsic:ident, clamp $clamp:expr;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name(_: (), mask: u32, value: u64, operand: u32, width: u32, words: usize) -> u64 {
            check_mask(mask);
            let segments = segments_of(width, $clamp);
            // SAFETY: see above.
            let shuffle = |word| unsafe { intrinsic::$intrinsic(mask, word, operand, segments) };
            if words == 1 { u64::from(shuffle(value as u32)) } else { by_words(value, shuffle) }
        }
    )*};
}

shuffles! {
    shuffle_down = shfl_down, clamp 31;
    shuffle_up = shfl_up, clamp 0;
    shuffle_idx = shfl_idx, clamp 31;
    shuffle_xor = shfl_bfly, clamp 31;
}

/// `redux.sync` from sm_80 on, shuffles before.
macro_rules! reductions {
    ($($name:ident = $intrinsic:ident, $combine:expr;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name(mask: u32, value: u32) -> u32 {
            check_mask(mask);
            #[cfg(cuda_arch_at_least = "80")]
            // SAFETY: see above.
            return unsafe { intrinsic::$intrinsic(value, mask) };
            #[cfg(not(cuda_arch_at_least = "80"))]
            return masked_reduction(mask, value, $combine);
        }
    )*};
}

/// Combines the values of the lanes of `mask` by an associative and commutative operation; every lane of the mask gets
/// the result. A whole warp takes five butterfly shuffles, other masks a shuffle for each lane.
#[cfg(not(cuda_arch_at_least = "80"))]
#[inline(always)]
fn masked_reduction(mask: u32, value: u32, combine: impl Fn(u32, u32) -> u32) -> u32 {
    if mask == u32::MAX {
        // SAFETY: see above.
        let step =
            |value, lanes| combine(value, unsafe { intrinsic::shfl_bfly(mask, value, lanes, segments_of(32, 31)) });
        return step(step(step(step(step(value, 16), 8), 4), 2), 1);
    }
    let mut remaining = mask;
    let mut result = None;
    while remaining != 0 {
        let lane = remaining.trailing_zeros();
        // SAFETY: see above; the loop is the same for all lanes of the mask.
        let next = unsafe { intrinsic::shfl_idx(mask, value, lane, segments_of(32, 31)) };
        result = Some(match result {
            None => next,
            Some(so_far) => combine(so_far, next),
        });
        remaining &= remaining - 1;
    }
    match result {
        None => value,
        Some(all) => all,
    }
}

reductions! {
    reduce_add = redux_add, |a, b| a.wrapping_add(b);
    reduce_min = redux_umin, |a, b| if b < a { b } else { a };
    reduce_max = redux_umax, |a, b| if b > a { b } else { a };
    reduce_min_signed = redux_min, |a, b| if (b as i32) < a as i32 { b } else { a };
    reduce_max_signed = redux_max, |a, b| if (b as i32) > a as i32 { b } else { a };
    reduce_and = redux_and, |a, b| a & b;
    reduce_or = redux_or, |a, b| a | b;
    reduce_xor = redux_xor, |a, b| a ^ b;
}

#[inline(always)]
pub(crate) fn fence_block() {
    // SAFETY: orders memory accesses and makes none.
    unsafe { intrinsic::membar_cta() }
}

#[inline(always)]
pub(crate) fn fence_device() {
    // SAFETY: orders memory accesses and makes none.
    unsafe { intrinsic::membar_gl() }
}

#[inline(always)]
pub(crate) fn fence_system() {
    // SAFETY: orders memory accesses and makes none.
    unsafe { intrinsic::membar_sys() }
}

/// `griddepcontrol.wait`. The host requests a programmatic dependent launch only for a kernel whose PTX contains it.
#[inline(always)]
pub(crate) fn wait_for_prerequisites() {
    #[cfg(cuda_arch_at_least = "90")]
    // SAFETY: waits and orders memory, and accesses none. Not `nomem`: no access may move before it.
    unsafe {
        asm!("griddepcontrol.wait;", options(nostack, preserves_flags));
    }
}

/// `griddepcontrol.launch_dependents`: the next grid may start once all blocks have executed it or ended.
#[inline(always)]
pub(crate) fn launch_dependents() {
    #[cfg(cuda_arch_at_least = "90")]
    // SAFETY: signals the scheduler; accesses no memory.
    unsafe {
        asm!("griddepcontrol.launch_dependents;", options(nostack, preserves_flags));
    }
}

#[inline(always)]
pub(crate) fn nanosleep(nanos: u32) {
    // SAFETY: pauses, and accesses no memory. Not `nomem`: a loop reads memory anew after it.
    unsafe { asm!("nanosleep.u32 {};", in(reg32) nanos, options(nostack, preserves_flags)) };
}

/// The multiprocessor's clock, in cycles.
#[inline(always)]
pub(crate) fn clock() -> u64 {
    let cycles: u64;
    // SAFETY: reads a register. Not `pure` or `nomem`: it is read anew, and between the same accesses.
    unsafe { asm!("mov.u64 {}, %clock64;", out(reg64) cycles, options(nostack, preserves_flags)) };
    cycles
}

/// LLVM must assume that this writes any memory, so it moves no load past it.
#[inline(always)]
pub(crate) fn issue_loads() {
    // SAFETY: emits no instruction. Deliberately not `nomem`.
    unsafe { asm!("", options(nostack, preserves_flags)) };
}

/// LLVM must assume that the counter changes here, so it knows no trip count. The pragma at the loop's head tells
/// `ptxas`.
#[inline(always)]
pub(crate) fn keep_rolled(counter: u32) -> u32 {
    let mut counter = counter;
    // SAFETY: a directive that emits no instruction.
    unsafe { asm!(".pragma \"nounroll\"; // {}", inlateout(reg32) counter, options(nomem, nostack, preserves_flags)) };
    counter
}

/// LLVM must assume that this changes the word, so it computes the word here.
#[inline(always)]
pub(crate) fn compute_now(word: u32) -> u32 {
    let mut word = word;
    // SAFETY: emits no instruction.
    unsafe { asm!("// {}", inlateout(reg32) word, options(nomem, nostack, preserves_flags)) };
    word
}

/// LLVM must assume that this changes the number, so it computes values that depend on it again.
#[inline(always)]
pub(crate) fn compute_anew(number: usize) -> usize {
    let mut number = number;
    // SAFETY: emits no instruction. Not `pure`: LLVM would merge two calls with the same number.
    unsafe { asm!("// {}", inlateout(reg64) number, options(nomem, nostack, preserves_flags)) };
    number
}
