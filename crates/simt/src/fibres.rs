//! The coroutines that lanes run on.
//!
//! A fibre runs lane after lane. When one of them waits, the fibre is suspended inside of it, and the next lane gets
//! another. Fibres are borrowed while one of them runs, but only the scheduler can name them, and a lane never calls
//! it.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::ptr;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, Yielder};

use crate::context::{Abandoned, Context, MOST_THREADS, RUNNING, State};
use crate::fault::Fault;

/// A stack's size. Only the pages that a kernel touches cost memory.
const STACK_BYTES: usize = 256 * 1024;

/// The core's fibres. Those not in `idle` hold a lane that waits.
pub(crate) struct Fibres {
    all: Vec<Coroutine<(), (), (), DefaultStack>>,
    idle: Vec<usize>,
}

impl Fibres {
    pub(crate) fn new() -> Self {
        // They never grow: it would be when stacks have taken the memory, and a `Vec` ends the process then.
        Self { all: Vec::with_capacity(MOST_THREADS), idle: Vec::with_capacity(MOST_THREADS) }
    }

    /// Gives the stacks back. None of them may hold a lane.
    pub(crate) fn clear(&mut self) {
        self.idle.clear();
        self.all.clear();
    }
}

impl Context {
    /// Runs one lane to its end, on the fibre that calls.
    fn run_lane(&self, lane: usize, yielder: &Yielder<(), ()>) {
        self.current.set(lane);
        self.slots[lane].yielder.set(Some(yielder.into()));
        self.unwinding.set(false);
        let thread = self.thread.get().expect("a fibre runs only while its block does");
        // SAFETY: `run_block` has set it, and outlives the block.
        let end = panic::catch_unwind(AssertUnwindSafe(|| unsafe { (*thread)() }));
        self.slots[lane].state.set(State::Exited);
        self.exited.update(|lanes| lanes + 1);
        if let Err(payload) = end
            && !payload.is::<Abandoned>()
        {
            // No hook has seen a panic that comes from another thread, as rayon passes them on.
            let location = self.panic_location.take().unwrap_or_else(|| "an unknown place".to_owned());
            self.report(Fault::Panic {
                kernel: self.kernel(),
                place: self.place(lane),
                message: panic_message(&*payload),
                location,
            });
            drop_quietly(payload);
        }
    }

    /// The next lane to be started, if there is one.
    fn take_unstarted(&self) -> Option<usize> {
        let lane = self.start_next.get();
        if lane >= self.start_end.get() || self.has_fault() {
            return None;
        }
        self.start_next.set(lane + 1);
        Some(lane)
    }
}

/// Drops a panic's payload. Its destructor is the kernel's, and may panic again: that must not unwind the fibre. A
/// payload whose destructor panics with another such payload, and so on for ever, is left where it is.
fn drop_quietly(mut payload: Box<dyn Any + Send>) {
    for _ in 0..8 {
        match panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            Ok(()) => return,
            Err(again) => payload = again,
        }
    }
    std::mem::forget(payload);
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "(no message)".to_owned())
}

/// A fibre starts lanes for as long as there are any. When one of them waits, the fibre is suspended inside of it.
fn fibre() -> std::io::Result<Coroutine<(), (), (), DefaultStack>> {
    let stack = DefaultStack::new(STACK_BYTES)?;
    Ok(Coroutine::with_stack(stack, |yielder: &Yielder<(), ()>, ()| {
        loop {
            let running = RUNNING.get();
            // SAFETY: a fibre is resumed only by `switch_to`, which has set it to the context of this core.
            let context = unsafe { &*running };
            while let Some(lane) = context.take_unstarted() {
                context.run_lane(lane, yielder);
            }
            yielder.suspend(());
        }
    }))
}

/// The scheduler's side of the fibres.
pub(crate) struct Scheduler<'a> {
    pub context: &'a Context,
    fibres: &'a RefCell<Fibres>,
}

impl<'a> Scheduler<'a> {
    pub(crate) fn new(context: &'a Context, fibres: &'a RefCell<Fibres>) -> Self {
        Self { context, fibres }
    }

    /// Starts the lanes `from..to`, in order, each until it waits or exits.
    pub(crate) fn start(&self, from: usize, to: usize) -> std::io::Result<()> {
        self.context.start_next.set(from);
        self.context.start_end.set(to);
        while self.context.start_next.get() < to && !self.context.has_fault() {
            let idle = self.fibres.borrow_mut().idle.pop();
            let index = match idle {
                Some(index) => index,
                None => {
                    let new = fibre()?;
                    let mut fibres = self.fibres.borrow_mut();
                    fibres.all.push(new);
                    fibres.all.len() - 1
                }
            };
            self.switch_to(index);
        }
        Ok(())
    }

    /// Lets a lane go on until it waits again or exits.
    #[inline]
    pub(crate) fn resume(&self, lane: usize) {
        self.context.current.set(lane);
        self.switch_to(self.context.slots[lane].fibre.get());
    }

    /// Runs a fibre until it is suspended: inside of a lane, which then keeps it, or with nothing left to do.
    ///
    /// Each lane that goes on comes through here. Whether it is inlined is not left to how the crate is cut into
    /// pieces.
    #[inline(always)]
    fn switch_to(&self, index: usize) {
        RUNNING.set(self.context);
        let mut fibres = self.fibres.borrow_mut();
        fibres.all[index].resume(());
        RUNNING.set(ptr::null());
        let lane = self.context.current.get();
        let slot = &self.context.slots[lane];
        if matches!(slot.state.get(), State::Waiting | State::Ready) {
            slot.fibre.set(index);
        } else {
            fibres.idle.push(index);
        }
    }

    /// Unwinds every lane that waits.
    pub(crate) fn abandon(&self) {
        self.context.abandoned.set(true);
        self.context.start_end.set(0);
        for lane in 0..self.context.threads.get() {
            if matches!(self.context.slots[lane].state.get(), State::Waiting | State::Ready) {
                self.resume(lane);
            }
        }
        self.context.abandoned.set(false);
    }
}
