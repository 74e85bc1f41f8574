//! What a running lane can do. Each function speaks for the lane that calls it.
//!
//! # Panics
//! Every function but [`is_running`] panics if no lane is running, that is outside of [`crate::run`].

use std::panic::Location;

use crate::Dim3;
use crate::context::{self, Operation};
use crate::listener::Listener;
use crate::shared::{Named, Refusal};
use crate::watch::{ElementSite, Fence, Kind, notes};

/// The kinds of the block's barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// Only waits.
    Sync,
    /// Counts the threads whose predicate is true.
    Count,
    /// 1 if all predicates are true.
    And,
    /// 1 if some predicate is true.
    Or,
}

/// The kinds of shuffle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shuffle {
    /// From the lane `operand` above.
    Down,
    /// From the lane `operand` below.
    Up,
    /// From lane `operand` of the segment.
    Idx,
    /// From the lane whose number is the caller's XOR `operand`.
    Xor,
}

/// The kinds of vote, and of reduction by `redux.sync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// 1 if all values are not 0.
    All,
    /// 1 if some value is not 0.
    Any,
    /// The lanes whose values are not 0, as bits.
    Ballot,
    /// The sum, wrapping.
    ReduceAdd,
    /// The least, unsigned.
    ReduceMin,
    /// The greatest, unsigned.
    ReduceMax,
    /// The least, signed.
    ReduceMinSigned,
    /// The greatest, signed.
    ReduceMaxSigned,
    /// AND of all bits.
    ReduceAnd,
    /// OR of all bits.
    ReduceOr,
    /// XOR of all bits.
    ReduceXor,
}

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Of the device: all blocks have it.
    Global,
    /// Of the block.
    Shared,
}

/// What is done with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// It is read.
    Load,
    /// It is written.
    Store,
    /// It is read and written in one.
    Atomic,
}

/// To be called before a load or store of `bytes` bytes, a power of two up to 16, at `address`. An access that is not
/// at a multiple of its size ends a watched launch with a fault.
#[inline(always)]
#[track_caller]
pub fn access(space: Space, access: Access, address: usize, bytes: usize) {
    let listener = Listener::own();
    if listener.is_there() {
        let location = Location::caller();
        if !matches!(bytes, 1 | 2 | 4 | 8 | 16) {
            no_access_of(bytes, location);
        }
        match ElementSite::new(access, bytes, location) {
            Some(site) if space == Space::Global => notes::note_element(listener, site, address),
            _ => notes::note_access(Kind::new(space, access, bytes), address, location),
        }
    }
}

#[cold]
#[inline(never)]
fn no_access_of(bytes: usize, location: &Location<'_>) {
    if is_running() {
        context::fault(format!("an access of {bytes} bytes: there are those of 1, 2, 4, 8 and 16"), location);
    }
}

/// To be called before a load from global memory of `bytes` bytes at any address, which a GPU does as loads of the
/// aligned 16 bytes that hold them.
#[inline(always)]
#[track_caller]
pub fn unaligned_load(address: usize, bytes: usize) {
    if Listener::own().is_there() {
        notes::note_unaligned_load(address, bytes, Location::caller());
    }
}

/// Does `operation`, an atomic access of global memory, in one order with the others of the launch if it is watched.
/// Only if the result `counts` has it happened: waiting for something is no access.
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
    if Listener::own().is_there() {
        notes::note_atomic(access, address, bytes, is_of_block, Location::caller(), operation, counts)
    } else {
        operation()
    }
}

/// To be called at a fence: for the threads of the block, or for all; in one order with all other such fences
/// (`fence.sc`), or only release and acquire.
#[inline(always)]
pub fn fence(is_of_block: bool, is_sequential: bool) {
    if Listener::own().is_there() {
        notes::note_fence(Fence { is_of_block, is_sequential });
    }
}

/// To be called where the lane lets the next grid start (`griddepcontrol.launch_dependents`).
#[track_caller]
pub fn launch_dependents() {
    if Listener::own().is_there() {
        notes::note_launch_dependents(Location::caller());
    }
}

/// Whether the caller is a lane.
pub fn is_running() -> bool {
    context::is_running()
}

/// The thread's index in its block.
#[inline]
pub fn thread_idx() -> Dim3 {
    context::with_lane(|context, lane| context.slots[lane].thread.get())
}

/// The block's index in the grid.
#[inline]
pub fn block_idx() -> Dim3 {
    context::with_lane(|context, _| context.block_idx.get())
}

/// The block's size.
#[inline]
pub fn block_dim() -> Dim3 {
    context::with_lane(|context, _| context.block_dim.get())
}

/// The grid's size.
#[inline]
pub fn grid_dim() -> Dim3 {
    context::with_lane(|context, _| context.grid_dim.get())
}

/// The lane's number in its warp: the thread's linear index modulo 32.
pub fn lane_id() -> u32 {
    context::with_lane(|_, lane| (lane % 32) as u32)
}

/// Waits at the block's barrier for all threads of the block. Gives what the kind computes of their predicates; for
/// [`Barrier::Sync`] 0.
#[track_caller]
#[inline(always)]
pub fn barrier(kind: Barrier, predicate: bool) -> u32 {
    context::wait(Operation::Barrier(kind), u32::MAX, u64::from(predicate), 0, 32, Location::caller()).0 as u32
}

/// Waits for the lanes of `mask`.
#[track_caller]
#[inline(always)]
pub fn sync_warp(mask: u32) {
    context::wait(Operation::SyncWarp, mask, 0, 0, 32, Location::caller());
}

/// Gives another lane's `value`, and whether that lane is in range (PTX's `shfl.sync` with its predicate). `width`, a
/// power of two up to 32, cuts the warp into segments.
#[track_caller]
#[inline(always)]
pub fn shuffle(kind: Shuffle, mask: u32, value: u64, operand: u32, width: u32) -> (u64, bool) {
    shuffle_at(Location::caller(), kind, mask, value, operand, width)
}

/// [`shuffle`], which stands at another place in the source than this call.
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
        context::fault(format!("a shuffle of width {width}, which is not 1, 2, 4, 8, 16 or 32"), place);
    }
    context::wait(Operation::Shuffle(kind), mask, value, operand, width, place)
}

/// Gives what the kind computes of the values of the lanes of `mask`.
#[track_caller]
#[inline(always)]
pub fn vote(kind: Vote, mask: u32, value: u32) -> u32 {
    context::wait(Operation::Vote(kind), mask, u64::from(value), 0, 32, Location::caller()).0 as u32
}

/// The lanes that come here together: those of the warp that do, before any of it must wait for a lane that does not.
#[track_caller]
#[inline(always)]
pub fn active_mask() -> u32 {
    context::wait(Operation::ActiveMask, u32::MAX, 0, 0, 32, Location::caller()).0 as u32
}

/// The block's static shared array `id`: `bytes` bytes at a multiple of 16, at the same address for every lane of the
/// block, in elements of `element` bytes. The first lane to ask makes it. A fault if the block has it with another
/// size, or has no room for it.
#[track_caller]
pub fn shared_array(id: u64, bytes: usize, element: usize) -> *mut u8 {
    let named = Named { element, location: Location::caller() };
    let array = context::with_lane(|context, _| context.shared.array(id, bytes, named, context.shared_limit.get()));
    match array {
        Ok(address) => address,
        Err(Refusal::OtherSize(before)) => {
            fault(format!("one shared array is declared with {before} bytes and with {bytes}"))
        }
        Err(Refusal::TooLarge(total)) => {
            let limit = context::with_lane(|context, _| context.shared_limit.get());
            fault(format!("the block's shared memory is {total} bytes, the limit is {limit}"))
        }
    }
}

/// The launch's dynamic shared memory: its address, a multiple of 16, and its bytes.
pub fn dynamic_shared() -> (*mut u8, usize) {
    context::with_lane(|context, _| context.shared.dynamic())
}

/// Ends the launch with [`crate::Fault::Access`]: the caller did something that a kernel must not, as `message` says.
#[track_caller]
#[cold]
pub fn fault(message: String) -> ! {
    context::fault(message, Location::caller())
}

/// To be called in each round, counted from 0, of a loop that waits for what a block before this one writes: blocks are
/// started in order, so it comes, unless that block has a fault, or waits itself as all others do: then this one has a
/// fault too.
#[track_caller]
pub fn spin(round: u32) {
    context::spin(round, Location::caller());
}

/// To be called behind such a loop, with its number of rounds.
pub fn end_spin(rounds: u32) {
    context::end_spin(rounds);
}
