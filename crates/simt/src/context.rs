//! The block that runs on a core, and what a running lane does to it: park, give way, end with a fault.
//!
//! Scheduler and lanes take turns on one OS thread, the lanes see the block's [`Context`] through a thread-local
//! pointer, and so all of it is in [`Cell`]s and none of them is ever borrowed across a switch.

use std::cell::{Cell, RefCell};
use std::panic::{self, Location};
use std::ptr::{self, NonNull};
use std::thread;

use corosensei::Yielder;

use crate::fault::{Fault, Place};
use crate::lane::{Barrier, Shuffle, Vote};
use crate::schedule::{Random, Schedule};
use crate::shared::SharedMemory;
use crate::waiting::{ROUNDS, Running};
use crate::watch::{Near, Watcher};
use crate::{Dim3, Launch, block};

/// The threads that a block may have.
pub(crate) const MOST_THREADS: usize = 1024;

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
    /// That fibre's way back to the scheduler.
    pub yielder: Cell<Option<NonNull<Yielder<(), ()>>>>,
    pub operation: Cell<Operation>,
    pub mask: Cell<u32>,
    pub value: Cell<u64>,
    pub operand: Cell<u32>,
    pub width: Cell<u32>,
    pub result: Cell<(u64, bool)>,
    pub location: Cell<&'static Location<'static>>,
    /// It spins, since [`ROUNDS`] rounds at least.
    pub spins: Cell<bool>,
    /// The block's number of switches when this lane has last looked whether its block waits.
    switches: Cell<u64>,
}

impl Slot {
    #[track_caller]
    fn new() -> Self {
        Self {
            thread: Cell::new(Dim3::new(0, 0, 0)),
            state: Cell::new(State::NotStarted),
            fibre: Cell::new(usize::MAX),
            yielder: Cell::new(None),
            operation: Cell::new(Operation::SyncWarp),
            mask: Cell::new(0),
            value: Cell::new(0),
            operand: Cell::new(0),
            width: Cell::new(32),
            result: Cell::new((0, false)),
            location: Cell::new(Location::caller()),
            spins: Cell::new(false),
            switches: Cell::new(0),
        }
    }
}

/// What a fibre runs for a thread of the grid. The lifetime is erased: it is set for the length of one block.
pub(crate) type Thread = *const (dyn Fn() + Sync);

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
    pub thread: Cell<Option<Thread>>,
    /// The block's number, and what it has in common with the others of its launch.
    pub index: Cell<u64>,
    pub running: Cell<*const Running>,
    /// The lane that runs now.
    pub current: Cell<usize>,
    /// Lanes from here to `start_end` are to be started, by whichever fibre comes first.
    pub start_next: Cell<usize>,
    pub start_end: Cell<usize>,
    /// How many lanes have come to their end.
    pub exited: Cell<usize>,
    /// How many lanes wait for others of their warp.
    pub in_warp_operations: Cell<usize>,
    /// How often a lane has stopped so that another one could run.
    switches: Cell<u64>,
    /// How many lanes spin, since [`ROUNDS`] rounds at least.
    spinning: Cell<usize>,
    /// Lanes that are resumed shall unwind: the block has a fault.
    pub abandoned: Cell<bool>,
    /// A lane has begun to unwind, and is not known to have stopped.
    pub unwinding: Cell<bool>,
    pub panic_location: RefCell<Option<String>>,
    /// What is noted of the block, while its launch is watched. Never borrowed across a switch.
    pub watcher: RefCell<Option<Box<Watcher>>>,
    /// What it takes to note most accesses without the watcher.
    pub near: Near,
    /// Random numbers, if the launch's lanes run in a random order.
    pub random: RefCell<Option<Random>>,
    /// Then it is so many accesses until another lane is run; else 0.
    accesses_to_change: Cell<u32>,
    /// Whether any other lane could run now.
    pub could_change: Cell<bool>,
}

/// The payload of the unwinding that takes a lane off its stack. It is no panic: no hook sees it.
pub(crate) struct Abandoned;

thread_local! {
    /// The context while a lane runs, else null.
    pub(crate) static RUNNING: Cell<*const Context> = const { Cell::new(ptr::null()) };
}

/// Whether this code is called by a lane.
pub(crate) fn is_running() -> bool {
    !RUNNING.get().is_null()
}

/// Calls `f` with the context and the number of the lane that runs.
#[inline]
pub(crate) fn with_lane<R>(f: impl FnOnce(&Context, usize) -> R) -> R {
    with_lane_if_any(f).unwrap_or_else(no_lane)
}

#[cold]
#[inline(never)]
fn no_lane<R>() -> R {
    panic!("no lane is running: this function is for kernels, inside of `simt::run`")
}

/// [`with_lane`], if a lane is running.
#[inline(always)]
pub(crate) fn with_lane_if_any<R>(f: impl FnOnce(&Context, usize) -> R) -> Option<R> {
    let running = RUNNING.get();
    // SAFETY: `switch_to` has set it to a context that it borrows until the lane is off the core again. It is only ever
    // borrowed shared.
    let context = unsafe { running.as_ref() }?;
    Some(f(context, context.current.get()))
}

/// Parks the lane until the operation is done, and gives its result.
///
/// It has to be inlined into the kernel, and so have its callers. A processor takes it that each `ret` goes to where
/// the last `call` came from. That is wrong for whoever returns after a change of stacks, and then for each of its
/// callers too, and every wrong guess takes as long as dozens of instructions. Kernels seldom return after a wait. What
/// does not change stacks is in functions of its own, to keep kernels small.
#[inline(always)]
pub(crate) fn wait(
    operation: Operation,
    mask: u32,
    value: u64,
    operand: u32,
    width: u32,
    location: &'static Location<'static>,
) -> (u64, bool) {
    let Some(yielder) = park(operation, mask, value, operand, width, location) else {
        // A destructor of a lane that is unwinding: nobody will come.
        return (value, false);
    };
    // SAFETY: the fibre that runs this lane has given it, and it lives as long as the fibre.
    unsafe { yielder.as_ref() }.suspend(());
    result()
}

/// Notes what the lane waits for. Gives its way back to the scheduler, unless it is unwinding.
#[inline(never)]
fn park(
    operation: Operation,
    mask: u32,
    value: u64,
    operand: u32,
    width: u32,
    location: &'static Location<'static>,
) -> Option<NonNull<Yielder<(), ()>>> {
    if thread::panicking() {
        return None;
    }
    with_lane(|context, lane| {
        if context.abandoned.get() {
            // The kernel has caught the first unwinding. Nobody would resume the lane again.
            context.abandon_lane();
        }
        if mask >> (lane % 32) & 1 == 0 {
            not_in_mask(lane, mask, location);
        }
        if !matches!(operation, Operation::Barrier(_)) {
            context.in_warp_operations.update(|lanes| lanes + 1);
        }
        let slot = &context.slots[lane];
        slot.operation.set(operation);
        slot.mask.set(mask);
        slot.value.set(value);
        slot.operand.set(operand);
        slot.width.set(width);
        slot.location.set(location);
        slot.state.set(State::Waiting);
        context.switches.update(|switches| switches.wrapping_add(1));
        context.unwinding.set(false);
        slot.yielder.get()
    })
}

/// What the lane's operation has given, when the scheduler has resumed it.
#[inline(never)]
fn result() -> (u64, bool) {
    with_lane(|context, lane| {
        if context.abandoned.get() {
            context.abandon_lane();
        }
        context.slots[lane].result.get()
    })
}

#[cold]
#[inline(never)]
fn not_in_mask(lane: usize, mask: u32, location: &Location<'_>) -> ! {
    fault(format!("lane {} is not in the mask {mask:#010x} of its own operation", lane % 32), location);
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
    let slot = &context.slots[lane];
    slot.state.set(State::Ready);
    context.switches.update(|switches| switches.wrapping_add(1));
    context.unwinding.set(false);
    if let Some(yielder) = slot.yielder.get() {
        // SAFETY: as in `wait`.
        unsafe { yielder.as_ref() }.suspend(());
    }
    if context.abandoned.get() {
        context.abandon_lane();
    }
}

/// After how many accesses lanes change, in a random order: 8 on average.
fn accesses_to_change(random: &mut Random) -> u32 {
    1 + random.below(15) as u32
}

/// Lets others run, in a loop that waits for a block before this one. If one of those has a fault, or all wait, nobody
/// will come.
pub(crate) fn spin(round: u32, location: &'static Location<'static>) {
    if thread::panicking() {
        return;
    }
    thread::yield_now();
    let in_vain = with_lane(|context, lane| {
        let running = context.running();
        if running.has_fault_before(context.index.get()) {
            return Some("it waits for a block before it, and one of them has a fault".to_owned());
        }
        if round == 0 || !round.is_multiple_of(ROUNDS) {
            return None;
        }
        let is_waiting = context.is_waiting(lane);
        running.look(context.index.get(), is_waiting, context.place(lane), location)
    });
    if let Some(message) = in_vain {
        fault(message, location);
    }
}

/// What [`spin`] waited for has come, after so many rounds.
pub(crate) fn end_spin(rounds: u32) {
    if rounds < ROUNDS {
        return;
    }
    with_lane(|context, lane| {
        if context.slots[lane].spins.replace(false) {
            context.spinning.update(|lanes| lanes - 1);
        }
        context.running().go_on(context.index.get());
    });
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
    pub(crate) fn new() -> Self {
        let nowhere = Dim3::new(0, 0, 0);
        Self {
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
            running: Cell::new(ptr::null()),
            current: Cell::new(0),
            start_next: Cell::new(0),
            start_end: Cell::new(0),
            exited: Cell::new(0),
            in_warp_operations: Cell::new(0),
            switches: Cell::new(0),
            spinning: Cell::new(0),
            abandoned: Cell::new(false),
            unwinding: Cell::new(false),
            panic_location: RefCell::new(None),
            watcher: RefCell::new(None),
            near: Near::new(),
            random: RefCell::new(None),
            accesses_to_change: Cell::new(0),
            could_change: Cell::new(false),
        }
    }

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
    #[cold]
    #[inline(never)]
    fn abandon_lane(&self) -> ! {
        self.unwinding.set(true);
        panic::resume_unwind(Box::new(Abandoned))
    }

    /// Whether the block waits as a whole, as seen by a lane that has spun for a number of rounds: none of its lanes
    /// could do anything else.
    fn is_waiting(&self, lane: usize) -> bool {
        let slot = &self.slots[lane];
        if !slot.spins.replace(true) {
            self.spinning.update(|lanes| lanes + 1);
        }
        let switches = self.switches.get();
        if slot.switches.replace(switches) == switches {
            // It has the core for itself, as it stops for nobody.
            return true;
        }
        // In order, warps run one after the other until they meet at the block's barrier.
        let is_random = self.random.borrow().is_some();
        let first = if is_random { 0 } else { lane - lane % 32 };
        let end = if is_random { self.threads.get() } else { self.threads.get().min(first + 32) };
        let lanes = &self.slots[first..end];
        lanes.iter().all(|other| {
            other.spins.get()
                || match other.state.get() {
                    State::NotStarted | State::Ready => false,
                    // A random order completes no operation of a warp while a lane of it spins.
                    State::Waiting => is_random || !block::could_complete(lanes, other),
                    State::Exited => true,
                }
        })
    }

    /// Forgets which lanes spin: the block has ended, and some of them perhaps without what they waited for.
    pub(crate) fn end_spins(&self) {
        if self.spinning.replace(0) > 0 {
            self.slots[..self.threads.get()].iter().for_each(|slot| slot.spins.set(false));
        }
    }

    /// What the launch's blocks have in common.
    fn running(&self) -> &Running {
        // SAFETY: `run_block` has set it, and outlives the block, which only runs then.
        unsafe { &*self.running.get() }
    }

    /// Makes it block `index` of a launch, one of those that are `running`.
    pub(crate) fn begin(&self, launch: &Launch<'_>, index: u64, running: &Running) {
        let block_idx = launch.grid.place(index);
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
        self.shared.begin_block(launch.dynamic_shared);
        for slot in &self.slots[..threads] {
            slot.state.set(State::NotStarted);
        }
        self.exited.set(0);
        self.in_warp_operations.set(0);
        self.index.set(index);
        self.running.set(running);
        let mut random = match launch.schedule {
            Schedule::InOrder => None,
            Schedule::Seed(seed) => Some(Random::new(seed, index)),
        };
        self.accesses_to_change.set(random.as_mut().map_or(0, accesses_to_change));
        self.random.replace(random);
    }
}
