//! How a lane's word on what it does with memory reaches the watcher of its core.

use std::panic::Location;

use super::{Deed, ElementSite, Fence, Kind};
use crate::context::{Context, fault, give_way, is_running, with_lane, with_lane_if_any};
use crate::lane::{Access, Space};
use crate::listener::Listener;

/// Notes a load or store of a single element of global memory. Callers seldom come here, but when they do, it is to be
/// fast.
#[cold]
#[inline(never)]
pub(crate) fn note_element(listener: &Listener, site: ElementSite, address: usize) {
    // As several functions: the first needs no stack.
    if let Some(context) = listener.context() {
        if context.near.is_to_count() {
            return note_counted_element(context, site, address);
        }
        if context.near.check(context.current.get(), site, address) {
            return;
        }
    }
    note_access(site.kind(), address, site.location());
}

/// [`note_element`], where it is counted.
#[inline(never)]
fn note_counted_element(context: &Context, site: ElementSite, address: usize) {
    if !context.near.count(context.current.get(), site, address) {
        note_access(site.kind(), address, site.location());
    }
}

/// Notes a load or store.
#[cold]
#[inline(never)]
pub(crate) fn note_access(kind: Kind, address: usize, location: &'static Location<'static>) {
    // Accesses outside of a launch, in a test of a view, are nobody's.
    with_lane_if_any(|context, lane| {
        give_way(context, lane);
        let mut borrowed = context.watcher.borrow_mut();
        let Some(watcher) = &mut *borrowed else { return };
        let bytes = kind.bytes();
        // A power of two: a division would take as long as all the rest.
        if address & (bytes - 1) != 0 {
            // A fault leaves the lane's stack: nothing may be borrowed then.
            drop(borrowed);
            fault(format!("an access of {bytes} bytes at an address that is not a multiple of {bytes}"), location);
        }
        let deed = Deed { lane, space: kind.space(), access: kind.access(), address, bytes, location };
        watcher.plain(&deed, &context.shared, &context.near);
    });
}

/// Notes a load of bytes at any address, which a GPU does by aligned loads of 16 bytes.
#[cold]
pub(crate) fn note_unaligned_load(address: usize, bytes: usize, location: &'static Location<'static>) {
    with_lane_if_any(|context, lane| {
        give_way(context, lane);
        if let Some(watcher) = &mut *context.watcher.borrow_mut() {
            watcher.unaligned_load(lane, address, bytes, location, &context.shared, &context.near);
        }
    });
}

/// Does an atomic operation and notes it, in one order with the others of the launch.
#[cold]
pub(crate) fn note_atomic<R>(
    access: Access,
    address: usize,
    bytes: usize,
    is_of_block: bool,
    location: &'static Location<'static>,
    operation: impl FnOnce() -> R,
    counts: impl FnOnce(&R) -> bool,
) -> R {
    if !is_running() {
        return operation();
    }
    with_lane(|context, lane| {
        give_way(context, lane);
        let Some(watcher) = &mut *context.watcher.borrow_mut() else {
            return operation();
        };
        let launch = watcher.launch();
        let _in_order = launch.in_order();
        let result = operation();
        if counts(&result) {
            let deed = Deed { lane, space: Space::Global, access, address, bytes, location };
            watcher.atomic(&deed, is_of_block, &context.shared, &context.near);
        }
        result
    })
}

/// Notes a fence.
#[cold]
pub(crate) fn note_fence(fence: Fence) {
    with_lane_if_any(|context, lane| {
        if let Some(watcher) = &mut *context.watcher.borrow_mut() {
            watcher.fence(lane, fence, &context.near);
        }
    });
}

/// Notes that the next grid may start.
#[cold]
pub(crate) fn note_launch_dependents(location: &'static Location<'static>) {
    with_lane_if_any(|context, _| {
        if let Some(watcher) = &mut *context.watcher.borrow_mut() {
            watcher.launch_dependents(location);
        }
    });
}
