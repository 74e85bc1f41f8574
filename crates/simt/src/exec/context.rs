//! The state of the block that a core runs.
//!
//! The scheduler and the lanes take turns on one OS thread. The lanes reach the block's [`Context`] through a
//! thread-local pointer. So its fields are [`Cell`]s, and no `RefCell` stays borrowed across a switch.

use std::cell::{Cell, RefCell};
use std::ptr;

use super::deadlock::RunningBlocks;
use super::fault::{Fault, Place};
use super::launch::Launch;
use super::monitor::{FastPath, Monitor};
use super::schedule::Schedule;
use super::shared::SharedMemory;
use super::slot::{Slot, State};
use crate::dim::{Dim3, MAX_THREADS};
use crate::random::Random;

/// The kernel, as a fibre calls it for a thread of the grid. Its lifetime is erased: it is set for one block.
pub(crate) type Thread = *const (dyn Fn() + Sync);

/// The block that a core runs.
pub(crate) struct Context {
    /// [`MAX_THREADS`] slots, of which the block uses the first ones.
    pub slots: Box<[Slot]>,
    /// The number of threads of the block.
    pub threads: Cell<usize>,
    pub block_idx: Cell<Dim3>,
    pub block_dim: Cell<Dim3>,
    pub grid_dim: Cell<Dim3>,
    pub shared: SharedMemory,
    pub shared_limit: Cell<usize>,
    fault: RefCell<Option<Fault>>,
    /// Whether there is a fault: the scheduler asks after each switch.
    has_fault: Cell<bool>,
    kernel: RefCell<String>,
    pub thread: Cell<Option<Thread>>,
    /// The block's linear index.
    pub index: Cell<u64>,
    /// The state that all running blocks of the launch share.
    pub running: Cell<*const RunningBlocks>,
    /// The lane that runs now.
    pub current: Cell<usize>,
    /// The lanes from `start_next` to `start_end` have not started. The next free fibre starts them.
    pub start_next: Cell<usize>,
    pub start_end: Cell<usize>,
    /// The number of lanes that have exited.
    pub exited: Cell<usize>,
    /// The number of lanes that have [left](super::lane::leave) since the last barrier.
    pub left: Cell<usize>,
    /// Whether the running lane has left.
    pub is_leaving: Cell<bool>,
    /// The number of lanes that wait for lanes of their warp.
    pub in_warp_operations: Cell<usize>,
    /// The number of times that a lane has stopped to let another lane run.
    pub switches: Cell<u64>,
    /// The number of lanes that have spun for at least [`ROUNDS`](super::deadlock::ROUNDS) rounds.
    pub spinning: Cell<usize>,
    /// The block has a fault: lanes that are resumed unwind.
    pub abandoned: Cell<bool>,
    /// The running lane must not wait: the block is abandoned, or the lane has left. One flag for both, because each
    /// wait asks for it.
    pub must_end: Cell<bool>,
    /// A lane has begun to unwind, and is not known to have stopped.
    pub unwinding: Cell<bool>,
    pub panic_location: RefCell<Option<String>>,
    /// Takes the block's events, if the launch is monitored.
    pub monitor: RefCell<Option<Box<Monitor>>>,
    /// Records most accesses without the monitor.
    pub fast: FastPath,
    /// The generator, if lanes run in a random order.
    pub random: RefCell<Option<Random>>,
    /// In a random order, the number of accesses until the lane yields; else 0.
    pub accesses_to_yield: Cell<u32>,
    /// Whether another lane could run now.
    pub could_switch: Cell<bool>,
}

thread_local! {
    /// The context while a block runs, else null. Only the block's lanes and the scheduler run then.
    pub(crate) static RUNNING: Cell<*const Context> = const { Cell::new(ptr::null()) };
}

/// Whether the caller is a lane.
pub(crate) fn is_running() -> bool {
    !RUNNING.get().is_null()
}

/// Calls `f` with the context and the index of the running lane in its block.
#[inline]
pub(crate) fn with_lane<R>(f: impl FnOnce(&Context, usize) -> R) -> R {
    let (context, lane) = running_lane();
    f(context, lane)
}

/// The context and the index of the running lane in its block. The context outlives the lane, whose functions must not
/// keep the reference longer. Without optimization, this takes a third of the time of [`with_lane`].
#[inline(always)]
pub(super) fn running_lane<'a>() -> (&'a Context, usize) {
    let context = running_context();
    (context, context.current.get())
}

/// The context of the running lane: see [`running_lane`].
#[inline(always)]
pub(super) fn running_context<'a>() -> &'a Context {
    let running = running();
    if running as usize == 0 {
        no_lane();
    }
    // SAFETY: `run_block` has set the pointer to a context that it borrows until the block ends. The context is only
    // borrowed shared.
    unsafe { &*running }
}

/// The value of [`RUNNING`].
#[inline(always)]
fn running() -> *const Context {
    // `try_with` and casts, because `LocalKey::get` and `is_null` are further calls without optimization. There is no
    // error: the variable has no destructor.
    match RUNNING.try_with(Cell::get) {
        Ok(running) => running,
        Err(_) => ptr::null(),
    }
}

#[cold]
#[inline(never)]
fn no_lane() -> ! {
    panic!("no lane is running: this function is for kernels, inside `simt::run`")
}

/// [`with_lane`], if a lane is running.
#[inline(always)]
pub(crate) fn with_lane_if_any<R>(f: impl FnOnce(&Context, usize) -> R) -> Option<R> {
    let running = running();
    if running as usize == 0 {
        return None;
    }
    // SAFETY: as in `running_context`.
    let context = unsafe { &*running };
    Some(f(context, context.current.get()))
}

/// The number of accesses until the lane yields, in a random order: 8 on average.
pub(super) fn random_accesses(random: &mut Random) -> u32 {
    1 + random.below(15) as u32
}

impl Context {
    pub(crate) fn new() -> Self {
        let nowhere = Dim3::new(0, 0, 0);
        Self {
            slots: (0..MAX_THREADS).map(|_| Slot::new()).collect(),
            threads: Cell::new(0),
            block_idx: Cell::new(nowhere),
            block_dim: Cell::new(nowhere),
            grid_dim: Cell::new(nowhere),
            shared: SharedMemory::default(),
            shared_limit: Cell::new(0),
            fault: RefCell::new(None),
            has_fault: Cell::new(false),
            kernel: RefCell::new(String::new()),
            thread: Cell::new(None),
            index: Cell::new(0),
            running: Cell::new(ptr::null()),
            current: Cell::new(0),
            start_next: Cell::new(0),
            start_end: Cell::new(0),
            exited: Cell::new(0),
            left: Cell::new(0),
            is_leaving: Cell::new(false),
            in_warp_operations: Cell::new(0),
            switches: Cell::new(0),
            spinning: Cell::new(0),
            abandoned: Cell::new(false),
            must_end: Cell::new(false),
            unwinding: Cell::new(false),
            panic_location: RefCell::new(None),
            monitor: RefCell::new(None),
            fast: FastPath::new(),
            random: RefCell::new(None),
            accesses_to_yield: Cell::new(0),
            could_switch: Cell::new(false),
        }
    }

    /// The kernel's name.
    pub(crate) fn kernel(&self) -> String {
        self.kernel.borrow().clone()
    }

    /// The position of a lane in the grid.
    pub(crate) fn place(&self, lane: usize) -> Place {
        Place { block: self.block_idx.get(), thread: self.slots[lane].thread.get() }
    }

    /// Keeps the block's first fault.
    pub(crate) fn report(&self, fault: Fault) {
        self.fault.borrow_mut().get_or_insert(fault);
        self.has_fault.set(true);
    }

    /// The source location of the last panic.
    pub(crate) fn take_panic_location(&self) -> String {
        self.panic_location.take().unwrap_or_else(|| "an unknown place".to_owned())
    }

    /// Ends a block: returns its fault, if it has one.
    pub(crate) fn take_fault(&self) -> Option<Fault> {
        self.has_fault.set(false);
        self.fault.take()
    }

    pub(crate) fn has_fault(&self) -> bool {
        self.has_fault.get()
    }

    /// The state that all running blocks of the launch share.
    pub(crate) fn running(&self) -> &RunningBlocks {
        // SAFETY: `run_block` has set the pointer. The pointee outlives the block, and only lanes of the block call
        // this.
        unsafe { &*self.running.get() }
    }

    /// Begins block `index` of a launch.
    pub(crate) fn begin(&self, launch: &Launch<'_>, index: u64, running: &RunningBlocks) {
        let block_idx = launch.grid.index_of(index);
        let threads = launch.block.count() as usize;
        if self.block_dim.get() != launch.block {
            for (lane, slot) in self.slots[..threads].iter().enumerate() {
                slot.thread.set(launch.block.index_of(lane as u64));
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
        self.shared.begin_block(launch.dynamic_shared);
        let slots = &self.slots[..threads];
        let mut lane = 0;
        while lane < slots.len() {
            slots[lane].state.set(State::NotStarted);
            lane += 1;
        }
        self.exited.set(0);
        self.left.set(0);
        self.in_warp_operations.set(0);
        self.index.set(index);
        self.running.set(running);
        let mut random = match launch.schedule {
            Schedule::InOrder => None,
            Schedule::Seed(seed) => Some(Random::new(seed, index)),
        };
        self.accesses_to_yield.set(random.as_mut().map_or(0, random_accesses));
        self.random.replace(random);
    }
}
