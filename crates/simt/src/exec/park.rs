//! How a running lane leaves its core: it waits for others, yields to them, or ends with a fault.

use std::panic::{self, Location};
use std::ptr::NonNull;
use std::thread;

use super::context::{Context, random_accesses, running_lane, with_lane};
use super::fault::Fault;
use super::operation::{Barrier, Operation};
use super::slot::{State, Wait};
use super::stack::{FibreYielder, suspend};

/// The payload of the unwinding that takes a lane off its stack. It is not a panic: no hook sees it.
pub(crate) struct Abandoned;

/// Parks the lane until its operation is complete, and returns the result.
///
/// This function and its callers must be inlined into the kernel. A processor predicts that each `ret` returns to the
/// last `call`. After a switch of stacks the prediction is wrong, for the function that switched and for each of its
/// callers, and every misprediction costs dozens of instructions. Kernels rarely return after a wait. Code that does
/// not switch stacks is in separate functions, to keep kernels small.
///
/// In a debug build it is a function, because inlined code of different places shares no stack there, and the stacks of
/// a block's lanes would not fit in the caches.
#[cfg_attr(debug_assertions, inline(never))]
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn wait(
    operation: Operation,
    mask: u32,
    value: u64,
    operand: u32,
    width: u32,
    location: &'static Location<'static>,
) -> (u64, bool) {
    let wait = Wait { operation, mask, value, operand, width, location };
    if cfg!(debug_assertions) {
        // One read of the thread-local context: without optimization, it takes longer than a switch of stacks.
        if thread::panicking() {
            return (value, false);
        }
        let (context, lane) = running_lane();
        let Some(yielder) = context.park(lane, wait) else { return (value, false) };
        // SAFETY: as below.
        unsafe { suspend(yielder) };
        return context.result(lane);
    }
    let Some(yielder) = park(wait) else {
        // A destructor of a lane that unwinds: no other lane will come.
        return (value, false);
    };
    // SAFETY: the yielder is the one of the fibre that runs this lane.
    unsafe { suspend(yielder) };
    result()
}

/// [`Context::leave`] of the running lane.
#[inline(never)]
pub(super) fn leave(location: &'static Location<'static>) {
    if !thread::panicking() {
        let (context, lane) = running_lane();
        context.leave(lane, location);
    }
}

/// [`Context::park`] of the running lane. `None` if the lane is unwinding.
#[inline(never)]
fn park(wait: Wait) -> Option<NonNull<FibreYielder>> {
    if thread::panicking() {
        return None;
    }
    let (context, lane) = running_lane();
    context.park(lane, wait)
}

/// [`Context::result`] of the running lane. It reads the context again: a kernel that kept it across the switch would
/// have another value alive.
#[inline(never)]
fn result() -> (u64, bool) {
    let (context, lane) = running_lane();
    context.result(lane)
}

#[cold]
#[inline(never)]
fn not_in_mask(lane: usize, mask: u32, location: &Location<'_>) -> ! {
    fault(format!("lane {} is not in the mask {mask:#010x} of its own operation", lane % 32), location);
}

/// Called before a memory access. A lane that has left must not make one. In a random order, other lanes of the block
/// sometimes run first.
#[inline(always)]
pub(super) fn before_access(context: &Context, lane: usize, location: &Location<'_>) {
    if context.is_leaving.get() {
        refuse_access(location);
    }
    match context.accesses_to_yield.get() {
        0 => {}
        1 => yield_lane(context, lane),
        left => context.accesses_to_yield.set(left - 1),
    }
}

#[cold]
#[inline(never)]
fn refuse_access(location: &Location<'_>) {
    // A lane that unwinds runs destructors.
    if !thread::panicking() {
        fault("it accesses memory after it has left the block".to_owned(), location);
    }
}

#[cold]
fn yield_lane(context: &Context, lane: usize) {
    context.accesses_to_yield.set(context.random.borrow_mut().as_mut().map_or(0, random_accesses));
    if !context.could_switch.get() || thread::panicking() || context.abandoned.get() {
        return;
    }
    let_others_run(context, lane, State::Ready);
}

/// Takes the lane off its core in a state in which the scheduler resumes it.
fn let_others_run(context: &Context, lane: usize, state: State) {
    let slot = &context.slots[lane];
    slot.state.set(state);
    context.switches.update(|switches| switches.wrapping_add(1));
    context.unwinding.set(false);
    if let Some(yielder) = slot.yielder.get() {
        // SAFETY: as in `wait`.
        unsafe { suspend(yielder) };
    }
    if context.abandoned.get() {
        context.abandon_lane();
    }
}

/// Lets every other runnable lane of the block run before this lane continues.
pub(super) fn sleep(location: &Location<'_>) {
    if thread::panicking() {
        return;
    }
    // Another core may run the block that this one waits for.
    thread::yield_now();
    let is_in_vain = with_lane(|context, lane| {
        if context.must_end.get() {
            context.refuse_wait(location);
        }
        if context.running().has_fault_before(context.index.get()) {
            return true;
        }
        let_others_run(context, lane, State::Asleep);
        false
    });
    if is_in_vain {
        fault("it sleeps, and an earlier block, for which it may wait, has a fault".to_owned(), location);
    }
}

/// Ends the launch with [`Fault::Access`].
pub(crate) fn fault(message: String, location: &Location<'_>) -> ! {
    with_lane(|context, lane| {
        context.report(Fault::Access {
            kernel: context.kernel(),
            place: context.place(lane),
            message,
            location: location.to_string(),
        });
        context.abandon_lane()
    })
}

impl Context {
    /// Stores the operation at which the running lane waits, and returns its fibre's yielder.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn park(&self, lane: usize, wait: Wait) -> Option<NonNull<FibreYielder>> {
        if self.must_end.get() {
            self.refuse_wait(wait.location);
        }
        if wait.mask >> (lane % 32) & 1 == 0 {
            not_in_mask(lane, wait.mask, wait.location);
        }
        if !matches!(wait.operation, Operation::Barrier(_)) {
            self.in_warp_operations.set(self.in_warp_operations.get() + 1);
        }
        let slot = &self.slots[lane];
        slot.wait.set(wait);
        slot.waits.set(slot.waits.get().wrapping_add(1));
        slot.state.set(State::Waiting);
        self.switches.set(self.switches.get().wrapping_add(1));
        self.unwinding.set(false);
        slot.yielder.get()
    }

    /// The result of the running lane's operation, after the scheduler has resumed it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn result(&self, lane: usize) -> (u64, bool) {
        if self.abandoned.get() {
            self.abandon_lane();
        }
        self.slots[lane].result.get()
    }

    /// Ends the running lane, which must not wait any more.
    #[cold]
    #[inline(never)]
    fn refuse_wait(&self, location: &Location<'_>) -> ! {
        if self.is_leaving.get() {
            fault("it waits after it has left the block".to_owned(), location);
        }
        // The kernel has caught the first unwinding. The scheduler would never resume the lane again.
        self.abandon_lane()
    }

    /// The running lane arrives at the block's barrier without waiting: see [`leave`](super::lane::leave).
    pub(super) fn leave(&self, lane: usize, location: &'static Location<'static>) {
        if self.must_end.get() {
            self.refuse_wait(location);
        }
        let operation = Operation::Barrier(Barrier::Sync);
        self.slots[lane].wait.set(Wait { operation, mask: u32::MAX, value: 0, operand: 0, width: 32, location });
        self.left.set(self.left.get() + 1);
        self.is_leaving.set(true);
        self.must_end.set(true);
        // The lane's next access goes through the hooks, which refuse it.
        self.fast.end_epoch(lane / 32);
    }

    /// Takes the calling lane off its stack.
    #[cold]
    #[inline(never)]
    fn abandon_lane(&self) -> ! {
        self.unwinding.set(true);
        panic::resume_unwind(Box::new(Abandoned))
    }
}
