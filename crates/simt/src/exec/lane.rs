//! The functions that a kernel can call. Each acts for the calling lane.
//!
//! # Panics
//! Every function except [`is_running`], [`is_on_own_stack`] and [`waits`] panics outside [`crate::run`], where no lane
//! is running.

use std::panic::Location;

use super::listener::listener;
use super::operation::Operation;
pub use super::operation::{Barrier, Match, Shuffle, Vote};
use super::shared::{AllocationError, Declaration};
use super::{context, hooks, park};
use crate::dim::Dim3;
pub use crate::events::access::{Access, Space};
use crate::events::access::{AccessKind, ElementAccess};
use crate::events::sync::Fence;

/// Reports a load or store of `bytes` bytes at `address`, before the access. `bytes` is a power of two up to 16. An
/// access that is not aligned to its size ends a watched launch with a fault.
///
/// An atomic operation on shared memory is reported here, too: the lanes of a block run on one core, one at a time, so
/// any operation is indivisible. [`atomic`] is for global memory.
#[inline(always)]
#[track_caller]
pub fn access(space: Space, access: Access, address: usize, bytes: usize) {
    access_at(Location::caller(), space, access, address, bytes);
}

/// [`access`] with an explicit source location.
#[inline(always)]
pub fn access_at(location: &'static Location<'static>, space: Space, access: Access, address: usize, bytes: usize) {
    if let Some(context) = listener() {
        if !matches!(bytes, 1 | 2 | 4 | 8 | 16) {
            invalid_size(bytes, location);
        }
        if matches!(space, Space::Global)
            && let Some(element) = ElementAccess::new(access, bytes, location)
        {
            hooks::element_access(context, element, address, location);
        } else {
            hooks::access(context, AccessKind::new(space, access, bytes), address, location);
        }
    }
}

#[cold]
#[inline(never)]
fn invalid_size(bytes: usize, location: &Location<'_>) {
    if is_running() {
        park::fault(format!("an access of {bytes} bytes; a kernel has accesses of 1, 2, 4, 8 and 16"), location);
    }
}

/// Reports a load from global memory of `bytes` bytes at any address, before the access. A GPU loads the aligned
/// 16-byte vectors that contain them.
#[inline(always)]
#[track_caller]
pub fn unaligned_load(address: usize, bytes: usize) {
    if listener().is_some() {
        hooks::unaligned_load(address, bytes, Location::caller());
    }
}

/// Runs `operation`, an atomic access of global memory. In a watched launch all atomic operations run in one order. The
/// access is recorded only if `counts` returns true for the result: an unsuccessful poll is not an access.
#[inline(always)]
#[track_caller]
pub fn atomic<R>(
    access: Access,
    address: usize,
    bytes: usize,
    is_of_block: bool,
    operation: impl FnOnce() -> R,
    counts: impl FnOnce(&R) -> bool,
) -> R {
    if listener().is_some() {
        let kind = AccessKind::new(Space::Global, access, bytes);
        hooks::atomic(kind, address, is_of_block, Location::caller(), operation, counts)
    } else {
        operation()
    }
}

/// Reports a fence. `is_of_block`: it orders only the threads of the block. `is_sequential`: it is sequentially
/// consistent (`fence.sc`), not only acquire-release.
#[inline(always)]
pub fn fence(is_of_block: bool, is_sequential: bool) {
    if listener().is_some() {
        hooks::fence(Fence { is_of_block, is_sequential });
    }
}

/// Reports that the lane lets the next grid start (`griddepcontrol.launch_dependents`).
#[track_caller]
pub fn launch_dependents() {
    if listener().is_some() {
        hooks::launch_dependents(Location::caller());
    }
}

/// Whether the caller is a lane.
pub fn is_running() -> bool {
    context::is_running()
}

/// The number of operations, such as barriers, shuffles and votes, at which the lane has waited. It wraps. 0 outside a
/// launch.
pub fn waits() -> u32 {
    context::with_lane_if_any(|context, lane| context.slots[lane].waits.get()).unwrap_or(0)
}

/// Whether the address is that of a variable on the lane's stack: local memory of a GPU's thread.
#[inline(never)]
pub fn is_on_own_stack(address: usize) -> bool {
    let here = 0_u8;
    let lowest = std::ptr::from_ref(&here).addr();
    let highest = context::with_lane_if_any(|context, lane| context.slots[lane].yielder.get());
    // A fibre's yielder lies at the base of its stack, which grows down.
    highest.flatten().is_some_and(|yielder| (lowest..yielder.addr().get()).contains(&address))
}

/// The thread's index in its block.
#[inline]
pub fn thread_idx() -> Dim3 {
    let context = context::running_context();
    context.slots[context.current.get()].thread.get()
}

/// The block's index in the grid.
#[inline]
pub fn block_idx() -> Dim3 {
    context::running_context().block_idx.get()
}

/// The block's shape.
#[inline]
pub fn block_dim() -> Dim3 {
    context::running_context().block_dim.get()
}

/// The grid's shape.
#[inline]
pub fn grid_dim() -> Dim3 {
    context::running_context().grid_dim.get()
}

/// The lane's index in its warp: the thread's linear index modulo 32.
pub fn lane_id() -> u32 {
    (context::running_context().current.get() % 32) as u32
}

/// Waits at the block's barrier for all threads of the block. Returns what the kind computes of their predicates, and 0
/// for [`Barrier::Sync`].
#[track_caller]
#[inline(always)]
pub fn barrier(kind: Barrier, predicate: bool) -> u32 {
    park::wait(Operation::Barrier(kind), u32::MAX, u64::from(predicate), 0, 32, Location::caller()).0 as u32
}

/// Arrives at the block's barrier ([`Barrier::Sync`]) without waiting there. The lane has left: until it exits, it must
/// not wait, nor access memory that other threads access, because the barrier orders neither. In a watched launch an
/// access is a fault, and a wait always is.
///
/// A lane that has exited needs no stack, so the block's next lane runs on a stack that is in the cache.
#[track_caller]
#[inline(always)]
pub fn leave() {
    park::leave(Location::caller());
}

/// Waits for the lanes of `mask`.
#[track_caller]
#[inline(always)]
pub fn sync_warp(mask: u32) {
    park::wait(Operation::SyncWarp, mask, 0, 0, 32, Location::caller());
}

/// Returns another lane's `value`, and whether that lane is in range (PTX's `shfl.sync` with its predicate). `width`, a
/// power of two up to 32, divides the warp into segments.
#[track_caller]
#[inline(always)]
pub fn shuffle(kind: Shuffle, mask: u32, value: u64, operand: u32, width: u32) -> (u64, bool) {
    shuffle_at(Location::caller(), kind, mask, value, operand, width)
}

/// [`shuffle`] with an explicit source location.
#[inline(always)]
pub fn shuffle_at(
    place: &'static Location<'static>,
    kind: Shuffle,
    mask: u32,
    value: u64,
    operand: u32,
    width: u32,
) -> (u64, bool) {
    if !width.is_power_of_two() || width > 32 {
        park::fault(format!("a shuffle of width {width}, which is not 1, 2, 4, 8, 16 or 32"), place);
    }
    park::wait(Operation::Shuffle(kind), mask, value, operand, width, place)
}

/// Returns what the kind computes of the values of the lanes of `mask`.
#[track_caller]
#[inline(always)]
pub fn vote(kind: Vote, mask: u32, value: u32) -> u32 {
    park::wait(Operation::Vote(kind), mask, u64::from(value), 0, 32, Location::caller()).0 as u32
}

/// Returns the lanes of `mask` that the kind selects by comparing their values.
#[track_caller]
#[inline(always)]
pub fn matching(kind: Match, mask: u32, value: u64) -> u32 {
    park::wait(Operation::Match(kind), mask, value, 0, 32, Location::caller()).0 as u32
}

/// The active lanes: those of the warp that call this before any of them waits for a lane that does not call it.
#[track_caller]
#[inline(always)]
pub fn active_mask() -> u32 {
    park::wait(Operation::ActiveMask, u32::MAX, 0, 0, 32, Location::caller()).0 as u32
}

/// The block's static shared array `id`: `bytes` bytes in elements of `element` bytes, aligned to 16 bytes, at the same
/// address for every lane of the block. The first call allocates the array. A call with another size is a fault, and so
/// is an array that exceeds the limit.
#[track_caller]
pub fn shared_array(id: u64, bytes: usize, element: usize) -> *mut u8 {
    shared_array_at(Location::caller(), id, bytes, element)
}

/// [`shared_array`] with an explicit source location of the declaration.
pub fn shared_array_at(location: &'static Location<'static>, id: u64, bytes: usize, element: usize) -> *mut u8 {
    let declaration = Declaration { element, location };
    let context = context::running_context();
    match context.shared.array(id, bytes, declaration, context.shared_limit.get()) {
        Ok(address) => address,
        Err(AllocationError::OtherSize(before)) => {
            park::fault(format!("one shared array is declared with {before} bytes and with {bytes}"), location)
        }
        Err(AllocationError::TooLarge(total)) => {
            let limit = context.shared_limit.get();
            park::fault(format!("the block's shared memory is {total} bytes, the limit is {limit}"), location)
        }
    }
}

/// The launch's dynamic shared memory: its address, a multiple of 16, and its length in bytes. The block's static
/// arrays follow it, in the same allocation of 1 MiB.
pub fn dynamic_shared() -> (*mut u8, usize) {
    context::with_lane(|context, _| context.shared.dynamic())
}

/// Ends the launch with [`crate::Fault::Access`]: the caller did something invalid, which `message` describes.
#[track_caller]
#[cold]
pub fn fault(message: String) -> ! {
    park::fault(message, Location::caller())
}

/// Lets every other runnable lane of the block run before this lane continues (`nanosleep`). Ends the launch with a
/// fault if an earlier block has one. As on a GPU, a loop that sleeps until an event that never happens does not end.
#[track_caller]
pub fn sleep() {
    park::sleep(Location::caller());
}

/// [`fault`] with an explicit source location.
#[cold]
pub fn fault_at(location: &'static Location<'static>, message: String) -> ! {
    park::fault(message, location)
}

/// One round of a loop that waits for an earlier block to write something. A kernel calls this in each round, with the
/// number of the round, counted from 0. Blocks start in order, so the earlier block runs or has run. The call ends the
/// launch with a fault if an earlier block has one, or if all running blocks wait.
#[track_caller]
pub fn spin(round: u32) {
    super::spin::spin(round, Location::caller());
}

/// The end of a loop of [`spin`] calls. A kernel calls this after the loop, with the number of rounds.
pub fn end_spin(rounds: u32) {
    super::spin::end_spin(rounds);
}
