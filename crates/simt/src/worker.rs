//! One core: it runs one block after the other.

use crate::waiting::Running;
use std::cell::RefCell;
use std::sync::{Arc, Once};
use std::{panic, ptr};

use crate::Launch;
use crate::block;
use crate::context::{Context, RUNNING, Thread};
use crate::fault::Fault;
use crate::fibres::{Fibres, Scheduler};
use crate::listener::Hearing;
use crate::watch::{LaunchWatch, Watcher};

/// A core: it runs one block after the other.
pub(crate) struct Worker {
    context: Context,
    /// That of the last watched launch: it is large, so it is kept.
    idle_watcher: RefCell<Option<Box<Watcher>>>,
    fibres: RefCell<Fibres>,
}

impl Worker {
    pub(crate) fn new() -> Self {
        silence_panics_of_lanes();
        RUNNING.set(ptr::null());
        Self { context: Context::new(), idle_watcher: RefCell::new(None), fibres: RefCell::new(Fibres::new()) }
    }

    /// Has this core note what the blocks of a launch do, until what is given back is dropped.
    pub(crate) fn watch(&self, launch: Option<&Arc<LaunchWatch>>) -> Watched<'_> {
        if let Some(launch) = launch {
            let watcher = match self.idle_watcher.take() {
                Some(idle) => idle.for_launch(launch.clone()),
                None => Box::new(Watcher::new(launch.clone())),
            };
            self.context.watcher.replace(Some(watcher));
        }
        Watched(self)
    }

    /// Has this core's lanes be heard, until what is given back is dropped.
    pub(crate) fn hear(&self) -> Hearing<'_> {
        Hearing::begin(&self.context)
    }

    /// Whether lanes of a block are on this core, perhaps on their stacks.
    pub(crate) fn is_in_block(&self) -> bool {
        self.context.thread.get().is_some()
    }

    /// Runs block `index` of a launch on this core. `running` is what its blocks have in common.
    pub(crate) fn run_block(
        &self,
        launch: &Launch<'_>,
        index: u64,
        running: &Running,
        thread: &(dyn Fn() + Sync),
    ) -> Result<(), Fault> {
        let context = &self.context;
        running.begin_block();
        context.begin(launch, index, running);
        if let Some(watcher) = &mut *context.watcher.borrow_mut() {
            watcher.begin_block(index, context.threads.get(), launch.limits.shared_bytes, &context.near);
        }
        // SAFETY: only the lifetime changes; the pointer is used by lanes of this block alone, and taken back below.
        let erased = unsafe { std::mem::transmute::<*const (dyn Fn() + Sync + '_), Thread>(thread) };
        context.thread.set(Some(erased));
        let scheduler = Scheduler::new(context, &self.fibres);
        block::run(&scheduler);
        if context.has_fault() {
            scheduler.abandon();
        }
        context.end_spins();
        context.thread.set(None);
        context.running.set(ptr::null());
        running.end_block(index);
        let fault = context.fault.take();
        if let Some(Fault::OutOfMemory { .. }) = fault {
            // All stacks are idle now. Other cores, and the caller, need the memory more.
            self.fibres.borrow_mut().clear();
        }
        fault.map_or(Ok(()), Err)
    }
}

/// A core that notes what blocks do.
pub(crate) struct Watched<'a>(&'a Worker);

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        if let Some(mut watcher) = self.0.context.watcher.take() {
            watcher.end_launch(&self.0.context.near);
            self.0.idle_watcher.replace(Some(watcher));
        }
    }
}

/// A panic of a lane is reported as the launch's fault: the process's hook must not print it too.
///
/// Called on the executor's own threads, as the hook cannot be set on one that is panicking.
fn silence_panics_of_lanes() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let running = RUNNING.get();
            if running.is_null() {
                return others(info);
            }
            // SAFETY: as in `with_lane`.
            let context = unsafe { &*running };
            context.panic_location.replace(info.location().map(|location| location.to_string()));
            // A panic within an unwinding aborts the process, which must not happen without a word.
            if context.unwinding.replace(true) {
                others(info);
            }
        }));
    });
}
