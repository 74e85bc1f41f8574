//! Stand-ins for the executor's functions, for builds without the executor. They behave as the executor's do outside a
//! launch: accesses are not recorded, and functions that need a lane panic.

use std::panic::Location;
use std::string::String;

use crate::launch::Dim3;

#[derive(Clone, Copy)]
pub(crate) enum Space {
    Global,
    Shared,
}

#[derive(Clone, Copy)]
pub(crate) enum Access {
    Load,
    Store,
    Atomic,
}

#[derive(Clone, Copy)]
pub(crate) enum Barrier {
    Sync,
    Count,
    And,
    Or,
}

#[derive(Clone, Copy)]
pub(crate) enum Shuffle {
    Down,
    Up,
    Idx,
    Xor,
}

#[derive(Clone, Copy)]
pub(crate) enum Vote {
    All,
    Any,
    Ballot,
    ReduceAdd,
    ReduceMin,
    ReduceMax,
    ReduceMinSigned,
    ReduceMaxSigned,
    ReduceAnd,
    ReduceOr,
    ReduceXor,
}

#[derive(Clone, Copy)]
pub(crate) enum Match {
    Any,
    All,
}

#[cold]
#[track_caller]
fn no_lane() -> ! {
    panic!("a kernel's function was called outside of a kernel: no lane is running")
}

#[track_caller]
pub(crate) fn fault(message: String) -> ! {
    panic!("{message}")
}

pub(crate) fn fault_at(_: &'static Location<'static>, message: String) -> ! {
    fault(message)
}

pub(crate) fn access(_: Space, _: Access, _address: usize, _bytes: usize) {}

pub(crate) fn access_at(_: &'static Location<'static>, _: Space, _: Access, _address: usize, _bytes: usize) {}

pub(crate) fn unaligned_load(_address: usize, _bytes: usize) {}

pub(crate) fn atomic<R>(
    _: Access,
    _address: usize,
    _bytes: usize,
    _is_of_block: bool,
    operation: impl FnOnce() -> R,
    _counts: impl FnOnce(&R) -> bool,
) -> R {
    operation()
}

pub(crate) fn fence(_is_of_block: bool, _is_sequential: bool) {}

pub(crate) fn launch_dependents() {}

pub(crate) fn waits() -> u32 {
    0
}

pub(crate) fn is_on_own_stack(_address: usize) -> bool {
    false
}

macro_rules! of_a_lane {
    ($($name:ident($($argument:ty),*) -> $result:ty;)*) => {$(
        #[track_caller]
        pub(crate) fn $name($(_: $argument),*) -> $result {
            no_lane()
        }
    )*};
}

of_a_lane! {
    thread_idx() -> Dim3;
    block_idx() -> Dim3;
    block_dim() -> Dim3;
    grid_dim() -> Dim3;
    lane_id() -> u32;
    barrier(Barrier, bool) -> u32;
    leave() -> ();
    sync_warp(u32) -> ();
    shuffle_at(&'static Location<'static>, Shuffle, u32, u64, u32, u32) -> (u64, bool);
    vote(Vote, u32, u32) -> u32;
    matching(Match, u32, u64) -> u32;
    sleep() -> ();
    active_mask() -> u32;
    shared_array(u64, usize, usize) -> *mut u8;
    shared_array_at(&'static Location<'static>, u64, usize, usize) -> *mut u8;
    dynamic_shared() -> (*mut u8, usize);
    spin(u32) -> ();
    end_spin(u32) -> ();
}
