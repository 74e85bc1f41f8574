//! One core's state: the block that it runs, the lanes of that block, and the fibres that run them.
//!
//! Scheduler and lanes take turns on one OS thread, the lanes see the block's [`Context`] through a thread-local pointer,
//! and so all of it is in [`Cell`]s and none of them is ever borrowed across a switch. The fibres are borrowed while one of
//! them runs, but only the scheduler can name them, and a lane never calls it.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, Location};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::{ptr, thread};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, Yielder};

use crate::block;
use crate::fault::{Fault, Place};
use crate::lane::{Barrier, Shuffle, Vote};
use crate::schedule::{Random, Schedule};
use crate::shared::SharedMemory;
use crate::watch::{LaunchWatch, Watcher};
use crate::{Dim3, Launch};

/// The threads that a block may have.
pub(crate) const MOST_THREADS: usize = 1024;

/// A stack's size. Only the pages that a kernel touches cost memory.
const STACK_BYTES: usize = 256 * 1024;

/// What a lane waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Barrier(Barrier),
    SyncWarp,
    Shuffle(Shuffle),
    Vote(Vote),
    ActiveMask,
}

/// Where a lane is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    NotStarted,
    /// Waits for others, at the slot's operation.
    Waiting,
    /// What it waited for has come, or it has let others go first: it can be resumed.
    Ready,
    Exited,
}

/// A lane of the block.
pub(crate) struct Slot {
    pub thread: Cell<Dim3>,
    pub state: Cell<State>,
    /// The fibre that a lane which has started and not exited is on.
    pub fibre: Cell<usize>,
    pub operation: Cell<Operation>,
    pub mask: Cell<u32>,
    pub value: Cell<u64>,
    pub operand: Cell<u32>,
    pub width: Cell<u32>,
    pub result: Cell<(u64, bool)>,
    pub location: Cell<&'static Location<'static>>,
}

impl Slot {
    #[track_caller]
    fn new() -> Self {
        Self {
            thread: Cell::new(Dim3::new(0, 0, 0)),
            state: Cell::new(State::NotStarted),
            fibre: Cell::new(usize::MAX),
            operation: Cell::new(Operation::SyncWarp),
            mask: Cell::new(0),
            value: Cell::new(0),
            operand: Cell::new(0),
            width: Cell::new(32),
            result: Cell::new((0, false)),
            location: Cell::new(Location::caller()),
        }
    }
}

/// What a fibre runs for a thread of the grid. The lifetime is erased: it is set for the length of one block.
type Thread = *const (dyn Fn() + Sync);

/// The block that runs on this core.
pub(crate) struct Context {
    /// At least as many as the block has threads.
    pub slots: Vec<Slot>,
    pub threads: Cell<usize>,
    pub block_idx: Cell<Dim3>,
    pub block_dim: Cell<Dim3>,
    pub grid_dim: Cell<Dim3>,
    pub shared: SharedMemory,
    pub shared_limit: Cell<usize>,
    pub fault: RefCell<Option<Fault>>,
    kernel: RefCell<String>,
    thread: Cell<Option<Thread>>,
    /// The block's number, and that of the first block with a fault.
    index: Cell<u64>,
    first_fault: Cell<*const AtomicU64>,
    /// The lane that runs now.
    current: Cell<usize>,
    /// Lanes from here to `start_end` are to be started, by whichever fibre comes first.
    start_next: Cell<usize>,
    start_end: Cell<usize>,
    /// Lanes that are resumed shall unwind: the block has a fault.
    abandoned: Cell<bool>,
    /// A lane has begun to unwind, and is not known to have stopped.
    unwinding: Cell<bool>,
    yielder: Cell<*const Yielder<(), ()>>,
    panic_location: RefCell<Option<String>>,
    /// What is noted of the block, while its launch is watched. Never borrowed across a switch.
    pub watcher: RefCell<Option<Box<Watcher>>>,
    /// Random numbers, if the launch's lanes run in a random order.
    pub random: RefCell<Option<Random>>,
    /// Then it is so many accesses until another lane is run; else 0.
    accesses_to_change: Cell<u32>,
    /// Whether any other lane could run now.
    pub could_change: Cell<bool>,
}

/// The core's fibres. Those not in `idle` hold a lane that waits.
struct Fibres {
    all: Vec<Coroutine<(), (), (), DefaultStack>>,
    idle: Vec<usize>,
}

/// A core: it runs one block after the other.
pub(crate) struct Worker {
    context: Context,
    /// That of the last watched launch: it is large, so it is kept.
    idle_watcher: RefCell<Option<Box<Watcher>>>,
    fibres: RefCell<Fibres>,
}

/// The payload of the unwinding that takes a lane off its stack. It is no panic: no hook sees it.
struct Abandoned;

thread_local! {
    /// The context while a lane runs, else null.
    static RUNNING: Cell<*const Context> = const { Cell::new(ptr::null()) };
}

/// Whether this code is called by a lane.
pub(crate) fn is_running() -> bool {
    !RUNNING.get().is_null()
}

/// Calls `f` with the context and the number of the lane that runs.
#[inline]
pub(crate) fn with_lane<R>(f: impl FnOnce(&Context, usize) -> R) -> R {
    with_lane_if_any(f).expect("no lane is running: this function is for kernels, inside of `simt::run`")
}

/// [`with_lane`], if a lane is running.
#[inline]
pub(crate) fn with_lane_if_any<R>(f: impl FnOnce(&Context, usize) -> R) -> Option<R> {
    let running = RUNNING.get();
    // SAFETY: `switch_to` has set it to a context that it borrows until the lane is off the core again. It is only ever
    // borrowed shared.
    let context = unsafe { running.as_ref() }?;
    Some(f(context, context.current.get()))
}

/// Parks the lane until the operation is done, and gives its result.
pub(crate) fn wait(
    operation: Operation,
    mask: u32,
    value: u64,
    operand: u32,
    width: u32,
    location: &'static Location<'static>,
) -> (u64, bool) {
    if thread::panicking() {
        // A destructor of a lane that is unwinding: nobody will come.
        return (value, false);
    }
    with_lane(|context, lane| {
        if context.abandoned.get() {
            // The kernel has caught the first unwinding. Nobody would resume the lane again.
            context.abandon_lane();
        }
        if mask >> (lane % 32) & 1 == 0 {
            fault(format!("lane {} is not in the mask {mask:#010x} of its own operation", lane % 32), location);
        }
        let slot = &context.slots[lane];
        slot.operation.set(operation);
        slot.mask.set(mask);
        slot.value.set(value);
        slot.operand.set(operand);
        slot.width.set(width);
        slot.location.set(location);
        slot.state.set(State::Waiting);
        suspend(context, lane);
        slot.result.get()
    })
}

/// Lets other lanes of the block run, now and then, if the order of lanes is random.
#[inline]
pub(crate) fn give_way(context: &Context, lane: usize) {
    match context.accesses_to_change.get() {
        0 => {}
        1 => change_lane(context, lane),
        left => context.accesses_to_change.set(left - 1),
    }
}

#[cold]
fn change_lane(context: &Context, lane: usize) {
    context.accesses_to_change.set(context.random.borrow_mut().as_mut().map_or(0, accesses_to_change));
    if !context.could_change.get() || thread::panicking() || context.abandoned.get() {
        return;
    }
    context.slots[lane].state.set(State::Ready);
    suspend(context, lane);
}

/// After how many accesses lanes change, in a random order: 8 on average.
fn accesses_to_change(random: &mut Random) -> u32 {
    1 + random.below(15) as u32
}

/// Leaves the lane until the scheduler resumes it.
fn suspend(context: &Context, lane: usize) {
    context.unwinding.set(false);
    let yielder = context.yielder.get();
    // SAFETY: the fibre that runs this lane has set it to its own, which lives as long as the fibre.
    unsafe { (*yielder).suspend(()) };
    context.yielder.set(yielder);
    context.current.set(lane);
    if context.abandoned.get() {
        context.abandon_lane();
    }
}

/// Lets others run, in a loop that waits for a block before this one. If one of those has a fault, nobody will come.
pub(crate) fn spin(location: &Location<'_>) {
    if thread::panicking() {
        return;
    }
    thread::yield_now();
    let is_in_vain = with_lane(|context, _| {
        // SAFETY: `run_block` has set it, and outlives the block.
        context.index.get() > unsafe { &*context.first_fault.get() }.load(Ordering::Relaxed)
    });
    if is_in_vain {
        fault("it waits for a block before it, and one of them has a fault".to_owned(), location);
    }
}

/// Ends the launch: the lane did what it must not.
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
    pub(crate) fn kernel(&self) -> String {
        self.kernel.borrow().clone()
    }

    pub(crate) fn place(&self, lane: usize) -> Place {
        Place { block: self.block_idx.get(), thread: self.slots[lane].thread.get() }
    }

    /// Keeps the block's first fault.
    pub(crate) fn report(&self, fault: Fault) {
        self.fault.borrow_mut().get_or_insert(fault);
    }

    pub(crate) fn has_fault(&self) -> bool {
        self.fault.borrow().is_some()
    }

    /// Takes the lane that calls off its stack.
    fn abandon_lane(&self) -> ! {
        self.unwinding.set(true);
        panic::resume_unwind(Box::new(Abandoned))
    }

    /// Runs one lane to its end, on the fibre that calls.
    fn run_lane(&self, lane: usize) {
        self.current.set(lane);
        self.unwinding.set(false);
        let thread = self.thread.get().expect("a fibre runs only while its block does");
        // SAFETY: `run_block` has set it, and outlives the block.
        let end = panic::catch_unwind(AssertUnwindSafe(|| unsafe { (*thread)() }));
        self.slots[lane].state.set(State::Exited);
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

/// Drops a panic's payload. Its destructor is the kernel's, and may panic again: that must not unwind the fibre.
fn drop_quietly(payload: Box<dyn Any + Send>) {
    if let Err(again) = panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(again);
    }
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
            context.yielder.set(yielder);
            while let Some(lane) = context.take_unstarted() {
                context.run_lane(lane);
                context.yielder.set(yielder);
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

impl Scheduler<'_> {
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
    pub(crate) fn resume(&self, lane: usize) {
        self.switch_to(self.context.slots[lane].fibre.get());
    }

    /// Runs a fibre until it is suspended: inside of a lane, which then keeps it, or with nothing left to do.
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

impl Worker {
    pub(crate) fn new() -> Self {
        silence_panics_of_lanes();
        RUNNING.set(ptr::null());
        let nowhere = Dim3::new(0, 0, 0);
        Self {
            context: Context {
                slots: (0..MOST_THREADS).map(|_| Slot::new()).collect(),
                threads: Cell::new(0),
                block_idx: Cell::new(nowhere),
                block_dim: Cell::new(nowhere),
                grid_dim: Cell::new(nowhere),
                shared: SharedMemory::default(),
                shared_limit: Cell::new(0),
                fault: RefCell::new(None),
                kernel: RefCell::new(String::new()),
                thread: Cell::new(None),
                index: Cell::new(0),
                first_fault: Cell::new(ptr::null()),
                current: Cell::new(0),
                start_next: Cell::new(0),
                start_end: Cell::new(0),
                abandoned: Cell::new(false),
                unwinding: Cell::new(false),
                yielder: Cell::new(ptr::null()),
                panic_location: RefCell::new(None),
                watcher: RefCell::new(None),
                random: RefCell::new(None),
                accesses_to_change: Cell::new(0),
                could_change: Cell::new(false),
            },
            idle_watcher: RefCell::new(None),
            // They never grow: it would be when stacks have taken the memory, and a `Vec` ends the process then.
            fibres: RefCell::new(Fibres {
                all: Vec::with_capacity(MOST_THREADS),
                idle: Vec::with_capacity(MOST_THREADS),
            }),
        }
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

    /// Runs block `index` of a launch on this core. `first_fault` is the first block that is known to have a fault.
    pub(crate) fn run_block(
        &self,
        launch: &Launch<'_>,
        index: u64,
        first_fault: &AtomicU64,
        thread: &(dyn Fn() + Sync),
    ) -> Result<(), Fault> {
        let context = &self.context;
        context.begin(launch, launch.grid.place(index));
        context.index.set(index);
        context.first_fault.set(first_fault);
        let mut random = match launch.schedule {
            Schedule::InOrder => None,
            Schedule::Seed(seed) => Some(Random::new(seed, index)),
        };
        context.accesses_to_change.set(random.as_mut().map_or(0, accesses_to_change));
        context.random.replace(random);
        if let Some(watcher) = &mut *context.watcher.borrow_mut() {
            watcher.begin_block(index, context.threads.get(), launch.limits.shared_bytes);
        }
        // SAFETY: only the lifetime changes; the pointer is used by lanes of this block alone, and taken back below.
        let erased = unsafe { std::mem::transmute::<*const (dyn Fn() + Sync + '_), Thread>(thread) };
        context.thread.set(Some(erased));
        let scheduler = Scheduler { context, fibres: &self.fibres };
        block::run(&scheduler);
        if context.has_fault() {
            scheduler.abandon();
        }
        context.thread.set(None);
        context.first_fault.set(ptr::null());
        let fault = context.fault.take();
        if let Some(Fault::OutOfMemory { .. }) = fault {
            // All stacks are idle now. Other cores, and the caller, need the memory more.
            let mut fibres = self.fibres.borrow_mut();
            fibres.idle.clear();
            fibres.all.clear();
        }
        fault.map_or(Ok(()), Err)
    }
}

/// A core that notes what blocks do.
pub(crate) struct Watched<'a>(&'a Worker);

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        if let Some(mut watcher) = self.0.context.watcher.take() {
            watcher.end_launch();
            self.0.idle_watcher.replace(Some(watcher));
        }
    }
}

impl Context {
    fn begin(&self, launch: &Launch<'_>, block_idx: Dim3) {
        let threads = launch.block.count() as usize;
        if self.block_dim.get() != launch.block {
            for (lane, slot) in self.slots[..threads].iter().enumerate() {
                slot.thread.set(launch.block.place(lane as u64));
            }
        }
        if *self.kernel.borrow() != launch.kernel {
            self.kernel.replace(launch.kernel.to_owned());
        }
        self.threads.set(threads);
        self.block_idx.set(block_idx);
        self.block_dim.set(launch.block);
        self.grid_dim.set(launch.grid);
        self.shared_limit.set(launch.limits.shared_bytes);
        self.shared.begin_block(launch.limits.shared_bytes, launch.dynamic_shared);
        for slot in &self.slots[..threads] {
            slot.state.set(State::NotStarted);
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
