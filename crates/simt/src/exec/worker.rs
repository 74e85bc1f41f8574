//! Runs blocks on a core, one after the other.

use std::cell::RefCell;
use std::sync::{Arc, Once};
use std::{panic, ptr};

use super::context::{Context, RUNNING, Thread};
use super::deadlock::RunningBlocks;
use super::fault::Fault;
use super::fibres::{Fibres, LaneRunner};
use super::launch::Launch;
use super::listener::Listening;
use super::monitor::{LaunchMonitor, Monitor};
use super::scheduler;

/// A core's state, kept from block to block.
pub(crate) struct Worker {
    context: Context,
    /// The monitor of the last monitored launch. It is large, so it is reused.
    idle_monitor: RefCell<Option<Box<Monitor>>>,
    fibres: RefCell<Fibres>,
}

impl Worker {
    pub(crate) fn new() -> Self {
        silence_panics_of_lanes();
        RUNNING.set(ptr::null());
        Self { context: Context::new(), idle_monitor: RefCell::new(None), fibres: RefCell::new(Fibres::new()) }
    }

    /// Has this core's monitor take the events of a launch, until the guard is dropped.
    pub(crate) fn monitor(&self, launch: Option<&Arc<LaunchMonitor>>) -> Monitored<'_> {
        if let Some(launch) = launch {
            let monitor = match self.idle_monitor.take() {
                Some(mut idle) => {
                    idle.begin_launch(Arc::clone(launch));
                    idle
                }
                None => Box::new(Monitor::new(Arc::clone(launch))),
            };
            self.context.monitor.replace(Some(monitor));
        }
        Monitored(self)
    }

    /// Has this core's lanes report their accesses, until the guard is dropped.
    pub(crate) fn listen(&self) -> Listening<'_> {
        Listening::begin(&self.context)
    }

    /// Whether a block runs on this core, so that lanes may be on their stacks.
    pub(crate) fn is_in_block(&self) -> bool {
        self.context.thread.get().is_some()
    }

    /// The source location of the last panic in a block.
    pub(crate) fn take_panic_location(&self) -> String {
        self.context.take_panic_location()
    }

    /// Runs block `index` of a launch. `running` is the state that the launch's blocks share.
    pub(crate) fn run_block(
        &self,
        launch: &Launch<'_>,
        index: u64,
        running: &RunningBlocks,
        thread: &(dyn Fn() + Sync),
    ) -> Result<(), Fault> {
        let context = &self.context;
        running.begin_block();
        context.begin(launch, index, running);
        if let Some(monitor) = &mut *context.monitor.borrow_mut() {
            monitor.begin_block(index, context.threads.get(), launch.limits.shared_bytes, &context.fast);
        }
        // SAFETY: only the lifetime changes. Only lanes of this block use the pointer, and it is reset below.
        let erased = unsafe { std::mem::transmute::<*const (dyn Fn() + Sync + '_), Thread>(thread) };
        context.thread.set(Some(erased));
        let mut fibres = self.fibres.borrow_mut();
        let mut runner = LaneRunner::new(context, &mut fibres);
        RUNNING.set(context);
        scheduler::run(&mut runner);
        if context.has_fault() {
            runner.abandon();
        }
        RUNNING.set(ptr::null());
        context.end_spins();
        context.thread.set(None);
        context.running.set(ptr::null());
        running.end_block(index);
        let fault = context.take_fault();
        if let Some(Fault::OutOfMemory { .. }) = fault {
            // No lane is on a stack any more. Other cores and the caller need the memory.
            fibres.clear();
        }
        fault.map_or(Ok(()), Err)
    }
}

/// The monitor takes a launch's events until this guard is dropped.
pub(crate) struct Monitored<'a>(&'a Worker);

impl Drop for Monitored<'_> {
    fn drop(&mut self) {
        if let Some(mut monitor) = self.0.context.monitor.take() {
            monitor.end_launch(&self.0.context.fast);
            self.0.idle_monitor.replace(Some(monitor));
        }
    }
}

/// Keeps the process's panic hook from printing panics of lanes: they become the launch's fault.
///
/// The executor's own threads call this function, because a thread that panics cannot set the hook.
fn silence_panics_of_lanes() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let running = RUNNING.get();
            if running.is_null() {
                return others(info);
            }
            // SAFETY: as in `with_lane_if_any`.
            let context = unsafe { &*running };
            context.panic_location.replace(info.location().map(|location| location.to_string()));
            // A panic during an unwinding aborts the process, so it must be printed.
            if context.unwinding.replace(true) {
                others(info);
            }
        }));
    });
}
