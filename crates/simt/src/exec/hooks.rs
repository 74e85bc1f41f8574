//! The hooks: how a lane reports its accesses to its core's monitor.

use std::panic::Location;

use super::context::{Context, is_running, with_lane, with_lane_if_any};
use super::park::{before_access, fault};
use crate::events::access::{Access, AccessKind, ElementAccess, MemoryAccess, Space};
use crate::events::sync::Fence;

/// Reports an access of global memory. Fast: watched launches call it for almost every access.
#[cold]
#[inline(never)]
pub(super) fn element_access(
    context: &Context,
    element: ElementAccess,
    address: usize,
    location: &'static Location<'static>,
) {
    // The slow paths are separate functions, so that this one needs no stack frame.
    if context.fast.is_counting() {
        return counted_element_access(context, element, address, location);
    }
    if !context.fast.check(context.current.get(), element, address) {
        access(context, element.kind(), address, location);
    }
}

/// [`element_access`] while accesses are counted.
#[inline(never)]
fn counted_element_access(
    context: &Context,
    element: ElementAccess,
    address: usize,
    location: &'static Location<'static>,
) {
    if !context.fast.check_and_count(context.current.get(), element, address) {
        access(context, element.kind(), address, location);
    }
}

/// Reports a load or store, or an atomic operation on shared memory.
#[cold]
#[inline(never)]
pub(super) fn access(context: &Context, kind: AccessKind, address: usize, location: &'static Location<'static>) {
    let thread = context.current.get();
    before_access(context, thread, location);
    let mut borrowed = context.monitor.borrow_mut();
    let Some(monitor) = &mut *borrowed else { return };
    let bytes = kind.bytes();
    // `bytes` is a power of two; a division would take as long as the rest of the function.
    if address & (bytes - 1) != 0 {
        // A fault leaves the lane's stack: nothing may stay borrowed.
        drop(borrowed);
        fault(format!("an access of {bytes} bytes at an address that is not a multiple of {bytes}"), location);
    }
    let address = match kind.space() {
        Space::Global => address,
        Space::Shared => context.shared.offset(address),
    };
    let access = MemoryAccess { thread, kind, address, location };
    monitor.plain(&access, &context.fast, |offset| context.shared.element_at(offset));
}

/// Reports a load from global memory of any number of bytes at any address.
#[cold]
pub(super) fn unaligned_load(address: usize, bytes: usize, location: &'static Location<'static>) {
    with_lane_if_any(|context, thread| {
        before_access(context, thread, location);
        if let Some(monitor) = &mut *context.monitor.borrow_mut() {
            let kind = AccessKind::new(Space::Global, Access::Load, bytes);
            monitor.unaligned_load(&MemoryAccess { thread, kind, address, location }, &context.fast);
        }
    });
}

/// Runs an atomic operation and records it, in one total order of the launch's atomic operations. It is recorded only
/// if `counts` returns true for the result.
#[cold]
pub(super) fn atomic<R>(
    kind: AccessKind,
    address: usize,
    is_of_block: bool,
    location: &'static Location<'static>,
    operation: impl FnOnce() -> R,
    counts: impl FnOnce(&R) -> bool,
) -> R {
    if !is_running() {
        return operation();
    }
    with_lane(|context, thread| {
        before_access(context, thread, location);
        let Some(monitor) = &mut *context.monitor.borrow_mut() else {
            return operation();
        };
        let launch = monitor.launch();
        let _locked = launch.lock_atomics();
        let result = operation();
        if counts(&result) {
            monitor.atomic(&MemoryAccess { thread, kind, address, location }, is_of_block, &context.fast);
        }
        result
    })
}

/// Reports a fence.
#[cold]
pub(super) fn fence(fence: Fence) {
    with_lane_if_any(|context, thread| {
        if let Some(monitor) = &mut *context.monitor.borrow_mut() {
            monitor.fence(thread, fence, &context.fast);
        }
    });
}

/// Reports a call of `griddepcontrol.launch_dependents`.
#[cold]
pub(super) fn launch_dependents(location: &'static Location<'static>) {
    with_lane_if_any(|context, _| {
        if let Some(monitor) = &mut *context.monitor.borrow_mut() {
            monitor.launch_dependents(location);
        }
    });
}
