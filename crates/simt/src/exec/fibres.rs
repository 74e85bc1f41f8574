//! The fibres: coroutines that lanes run on.
//!
//! A fibre runs lane after lane. When a lane waits, its fibre is suspended inside it, and the next lane gets another
//! fibre. Only [`LaneRunner`] accesses the fibres, and no lane calls it.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};

use corosensei::Coroutine;
use corosensei::stack::DefaultStack;

use super::context::{Context, RUNNING};
use super::fault::Fault;
use super::park::Abandoned;
use super::slot::State;
use super::stack::{Fibre, FibreYielder, NOTHING};
use crate::dim::MAX_THREADS;

/// The size of a stack. Only the pages that a kernel touches take memory.
const STACK_BYTES: usize = 256 * 1024;

/// A core's fibres. Those that are not idle hold a lane that waits.
pub(crate) struct Fibres {
    all: Vec<Fibre>,
    idle: Vec<usize>,
}

impl Fibres {
    pub(crate) fn new() -> Self {
        // The full capacity from the start: growing could fail when stacks have used up the memory, and a failed
        // allocation of a `Vec` ends the process.
        Self { all: Vec::with_capacity(MAX_THREADS), idle: Vec::with_capacity(MAX_THREADS) }
    }

    /// Frees the stacks. No fibre may hold a lane.
    pub(crate) fn clear(&mut self) {
        self.idle.clear();
        self.all.clear();
    }
}

impl Context {
    /// Runs a lane to its end, on the calling fibre.
    fn run_lane(&self, lane: usize, yielder: &FibreYielder) {
        self.current.set(lane);
        self.slots[lane].yielder.set(Some(yielder.into()));
        self.unwinding.set(false);
        let thread = self.thread.get().expect("a fibre runs only while its block does");
        // SAFETY: `run_block` has set the pointer, and the pointee outlives the block.
        let end = panic::catch_unwind(AssertUnwindSafe(|| unsafe { (*thread)() }));
        let is_leaving = self.is_leaving.replace(false);
        self.slots[lane].state.set(if is_leaving { State::Left } else { State::Exited });
        self.must_end.set(self.abandoned.get());
        self.exited.update(|lanes| lanes + 1);
        if let Err(payload) = end
            && !payload.is::<Abandoned>()
        {
            // rayon passes on a panic of another thread, which no hook of this thread has seen.
            let location = self.take_panic_location();
            self.report(Fault::Panic {
                kernel: self.kernel(),
                place: self.place(lane),
                message: panic_message(&*payload),
                location,
            });
            drop_quietly(payload);
        }
    }

    /// The next lane to start, if any.
    fn take_unstarted(&self) -> Option<usize> {
        let lane = self.start_next.get();
        if lane >= self.start_end.get() || self.has_fault() {
            return None;
        }
        self.start_next.set(lane + 1);
        Some(lane)
    }
}

/// Drops a panic's payload. Its destructor belongs to the kernel and may panic again, which must not unwind the fibre.
/// A payload whose destructors keep panicking with new payloads is leaked.
fn drop_quietly(mut payload: Box<dyn Any + Send>) {
    for _ in 0..8 {
        match panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            Ok(()) => return,
            Err(again) => payload = again,
        }
    }
    std::mem::forget(payload);
}

/// The message of a panic.
pub(super) fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "(no message)".to_owned())
}

/// A new fibre. It starts lanes until none is left, then suspends.
fn fibre() -> std::io::Result<Fibre> {
    let stack = DefaultStack::new(STACK_BYTES)?;
    Ok(Coroutine::with_stack(stack, |yielder: &FibreYielder, _| {
        loop {
            let running = RUNNING.get();
            // SAFETY: only `switch_to` resumes a fibre. It is called while a block runs, and `run_block` has set the
            // pointer to the context of this core.
            let context = unsafe { &*running };
            while let Some(lane) = context.take_unstarted() {
                context.run_lane(lane, yielder);
            }
            yielder.suspend(NOTHING);
        }
    }))
}

/// Starts and resumes the lanes of a block.
pub(crate) struct LaneRunner<'a> {
    pub context: &'a Context,
    fibres: &'a mut Fibres,
}

impl<'a> LaneRunner<'a> {
    pub(crate) fn new(context: &'a Context, fibres: &'a mut Fibres) -> Self {
        Self { context, fibres }
    }

    /// Starts the lanes `from..to`, in order. Each runs until it waits or exits.
    pub(crate) fn start(&mut self, from: usize, to: usize) -> std::io::Result<()> {
        self.context.start_next.set(from);
        self.context.start_end.set(to);
        while self.context.start_next.get() < to && !self.context.has_fault() {
            let idle = self.fibres.idle.pop();
            let index = match idle {
                Some(index) => index,
                None => {
                    self.fibres.all.push(fibre()?);
                    self.fibres.all.len() - 1
                }
            };
            self.switch_to(index);
        }
        Ok(())
    }

    /// Resumes a lane until it waits again or exits.
    #[inline]
    pub(crate) fn resume(&mut self, lane: usize) {
        self.context.current.set(lane);
        self.switch_to(self.context.slots[lane].fibre.get());
    }

    /// Runs a fibre until it is suspended: inside a lane, which then keeps it, or idle.
    ///
    /// Every switch to a lane goes through this function, so it is inlined whatever the codegen units are.
    #[inline(always)]
    fn switch_to(&mut self, index: usize) {
        let fibres = self.fibres.all.as_mut_slice();
        fibres[index].resume(NOTHING);
        let lane = self.context.current.get();
        let slot = &self.context.slots[lane];
        if slot.is_on_a_fibre() {
            slot.fibre.set(index);
        } else {
            self.fibres.idle.push(index);
        }
    }

    /// Unwinds every lane that waits.
    pub(crate) fn abandon(&mut self) {
        self.context.abandoned.set(true);
        self.context.must_end.set(true);
        self.context.start_end.set(0);
        for lane in 0..self.context.threads.get() {
            if self.context.slots[lane].is_on_a_fibre() {
                self.resume(lane);
            }
        }
        self.context.abandoned.set(false);
        self.context.must_end.set(false);
    }
}
