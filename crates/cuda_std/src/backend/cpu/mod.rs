//! The primitives on the CPU: calls into the executor.
//!
//! Without the feature `simt` there is no executor, and `lane` stands in for its functions: kernels compile, and
//! nothing runs them.

mod atomics;
mod global;
#[cfg(not(feature = "simt"))]
mod lane;
mod numbers;
mod shared;
mod table;

use core::sync::atomic::{Ordering, fence};
use std::format;
use std::panic::Location;

#[cfg(feature = "simt")]
use simt::lane;

pub(crate) use self::atomics::*;
pub(crate) use self::global::*;
use self::lane::{Barrier, Match, Shuffle, Vote};
pub(crate) use self::numbers::*;
pub(crate) use self::shared::*;
pub(crate) use self::table::*;
use crate::atomic::Scope;

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

#[track_caller]
#[cold]
pub(crate) fn misaligned_for(array: &'static str, size: usize) -> ! {
    lane::fault(format!("{array}, cast to elements of {size} bytes, does not begin at a multiple of {size} bytes"))
}

#[track_caller]
#[cold]
pub(crate) fn not_a_value(ty: &'static str) -> ! {
    lane::fault(format!("the loaded bits are no value of `{ty}`"))
}

#[track_caller]
#[cold]
pub(crate) fn u16x2_out_of_range(a: u32, b: u32) -> ! {
    lane::fault(format!("halves of {a:#010x} or {b:#010x} are not below 0x7c00"))
}

pub(crate) mod index {
    //! Special registers.
    use super::lane;

    macro_rules! registers {
        ($($name:ident = $dim:ident.$axis:ident),* $(,)?) => {$(
            #[inline(always)]
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

#[inline(always)]
#[track_caller]
pub(crate) fn barrier() {
    lane::barrier(Barrier::Sync, false);
}

#[inline(always)]
#[track_caller]
pub(crate) fn barrier_or_leave(stays: bool) {
    if stays {
        barrier();
    } else {
        lane::leave();
    }
}

#[inline(always)]
#[track_caller]
pub(crate) fn barrier_count(predicate: bool) -> u32 {
    lane::barrier(Barrier::Count, predicate)
}

#[inline(always)]
#[track_caller]
pub(crate) fn barrier_and(predicate: bool) -> bool {
    lane::barrier(Barrier::And, predicate) != 0
}

#[inline(always)]
#[track_caller]
pub(crate) fn barrier_or(predicate: bool) -> bool {
    lane::barrier(Barrier::Or, predicate) != 0
}

#[inline(always)]
#[track_caller]
pub(crate) fn sync_warp(mask: u32) {
    lane::sync_warp(mask);
}

#[inline(always)]
#[track_caller]
pub(crate) fn active_mask() -> u32 {
    lane::active_mask()
}

#[inline(always)]
#[track_caller]
pub(crate) fn vote_all(mask: u32, predicate: bool) -> bool {
    lane::vote(Vote::All, mask, u32::from(predicate)) != 0
}

#[inline(always)]
#[track_caller]
pub(crate) fn vote_any(mask: u32, predicate: bool) -> bool {
    lane::vote(Vote::Any, mask, u32::from(predicate)) != 0
}

#[inline(always)]
#[track_caller]
pub(crate) fn vote_ballot(mask: u32, predicate: bool) -> u32 {
    lane::vote(Vote::Ballot, mask, u32::from(predicate))
}

#[inline(always)]
#[track_caller]
pub(crate) fn match_any(mask: u32, value: u64, _words: usize) -> u32 {
    lane::matching(Match::Any, mask, value)
}

#[inline(always)]
#[track_caller]
pub(crate) fn match_all(mask: u32, value: u64, _words: usize) -> u32 {
    lane::matching(Match::All, mask, value)
}

/// A position in the source.
pub(crate) type SourceLocation = &'static Location<'static>;

/// The position of the caller's caller: a shuffle inside a closure would lose it.
#[track_caller]
pub(crate) const fn caller_location() -> SourceLocation {
    Location::caller()
}

macro_rules! shuffles {
    ($($name:ident = $kind:ident),*) => {$(
        #[inline(always)]
        pub(crate) fn $name(
            location: SourceLocation,
            mask: u32,
            value: u64,
            operand: u32,
            width: u32,
            _words: usize,
        ) -> u64 {
            lane::shuffle_at(location, Shuffle::$kind, mask, value, operand, width).0
        }
    )*};
}

shuffles!(shuffle_down = Down, shuffle_up = Up, shuffle_idx = Idx, shuffle_xor = Xor);

macro_rules! reductions {
    ($($name:ident = $kind:ident),* $(,)?) => {$(
        #[inline(always)]
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

// All fences are full ones: the lanes of a block run on one core, but blocks do not, and the host's memory order
// differs from the device's.

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

/// The executor runs one grid after another, and counts the blocks for which a GPU could overlap them.
#[inline(always)]
#[track_caller]
pub(crate) fn launch_dependents() {
    lane::launch_dependents();
}

/// No effect: lanes of the executor do not wait for loads.
#[inline(always)]
pub(crate) fn issue_loads() {}

/// No effect in the executor.
#[inline(always)]
pub(crate) fn compute_now(word: u32) -> u32 {
    word
}

/// No effect in the executor.
#[inline(always)]
pub(crate) fn compute_anew(number: usize) -> usize {
    number
}

pub(crate) fn keep_rolled(counter: u32) -> u32 {
    core::hint::black_box(counter)
}

/// The other lanes of the block run first.
#[track_caller]
pub(crate) fn nanosleep(_nanos: u32) {
    lane::sleep();
}

/// A clock that every thread of the process shares, in nanoseconds.
pub(crate) fn clock() -> u64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64
}

/// One polling round of a wait for an earlier block.
#[track_caller]
pub(crate) fn spin(round: u32) {
    lane::spin(round);
}

/// The end of a wait of `rounds` polling rounds.
pub(crate) fn end_spin(rounds: u32) {
    lane::end_spin(rounds);
}
