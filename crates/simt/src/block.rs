//! The scheduler of one block: which lane runs next, and when those that wait can go on.

use crate::fault::{Fault, Threads, index};
use crate::lane::Barrier;
use crate::warp;
use crate::worker::{Operation, Scheduler, Slot, State};

/// Runs all lanes of the block to their ends, or to the block's first fault.
pub(crate) fn run(scheduler: &Scheduler<'_>) {
    let context = scheduler.context;
    let threads = context.threads.get();
    loop {
        for first in (0..threads).step_by(32) {
            run_warp(scheduler, first, (first + 32).min(threads));
            if context.has_fault() {
                return;
            }
        }
        let slots = &context.slots[..threads];
        if slots.iter().all(|slot| slot.state.get() == State::Exited) {
            return;
        }
        // Every lane that is left waits at a barrier: `run_warp` leaves no other.
        if let Err(fault) = release_barrier(scheduler, slots) {
            context.report(fault);
            return;
        }
    }
}

/// Runs the lanes of one warp until each has exited or waits at the block's barrier.
fn run_warp(scheduler: &Scheduler<'_>, first: usize, end: usize) {
    let context = scheduler.context;
    let lanes = &context.slots[first..end];
    if lanes[0].state.get() == State::NotStarted
        && let Err(error) = scheduler.start(first, end)
    {
        context.report(Fault::OutOfMemory { kernel: context.kernel(), reason: error.to_string() });
        return;
    }
    loop {
        for (offset, slot) in lanes.iter().enumerate() {
            if context.has_fault() {
                return;
            }
            if slot.state.get() == State::Ready {
                scheduler.resume(first + offset);
            }
        }
        if context.has_fault() {
            return;
        }
        match complete_warp_operations(lanes) {
            Progress::Made => {}
            Progress::None => return,
            Progress::Stuck(lane) => {
                context.report(stuck(scheduler, first, lane, lanes));
                return;
            }
        }
    }
}

enum Progress {
    /// Lanes have become ready.
    Made,
    /// Every lane has exited or waits at the block's barrier.
    None,
    /// This lane of the warp waits for others that cannot come.
    Stuck(usize),
}

/// Completes each operation of the warp that all lanes of its mask have reached.
fn complete_warp_operations(lanes: &[Slot]) -> Progress {
    let mut stuck = None;
    let mut made = false;
    for (lane, slot) in lanes.iter().enumerate() {
        if !waits_for_warp(slot) || slot.operation.get() == Operation::ActiveMask {
            continue;
        }
        match complete(lanes, slot) {
            true => made = true,
            false => stuck = stuck.or(Some(lane)),
        }
    }
    if made {
        return Progress::Made;
    }
    // Nothing else can go on, so these are the lanes that are here together.
    let active = mask_of(lanes, |slot| waits_for_warp(slot) && slot.operation.get() == Operation::ActiveMask);
    if active != 0 {
        for slot in lanes.iter().filter(|slot| waits_for_warp(slot) && slot.operation.get() == Operation::ActiveMask) {
            slot.result.set((u64::from(active), true));
            slot.state.set(State::Ready);
        }
        return Progress::Made;
    }
    stuck.map_or(Progress::None, Progress::Stuck)
}

fn waits_for_warp(slot: &Slot) -> bool {
    slot.state.get() == State::Waiting && !matches!(slot.operation.get(), Operation::Barrier(_))
}

/// Completes the operation that `slot` waits at, if all lanes of its mask that exist wait at it too.
fn complete(lanes: &[Slot], slot: &Slot) -> bool {
    let (operation, mask) = (slot.operation.get(), slot.mask.get());
    let there = mask_of(lanes, |other| is_at(other, operation, mask));
    let members = mask & existing(lanes);
    if there & members != members {
        return false;
    }
    let members_of = || lanes.iter().enumerate().filter(move |(lane, _)| members >> lane & 1 == 1);
    match operation {
        Operation::Vote(kind) => {
            let mut values = [0; 32];
            for (lane, member) in members_of() {
                values[lane] = member.value.get() as u32;
            }
            let result = warp::vote(kind, members, &values);
            for (_, member) in members_of() {
                member.result.set((u64::from(result), true));
            }
        }
        Operation::Shuffle(kind) => {
            for (lane, member) in members_of() {
                let (source, in_range) = warp::source(kind, lane as u32, member.operand.get(), member.width.get());
                // A lane outside of the mask, or of the warp, has no value to give. CUDA leaves undefined what is read
                // then, and kernels that fold a partial warp rely on not using it: they get their own.
                let source = if members >> source & 1 == 1 { &lanes[source as usize] } else { member };
                member.result.set((source.value.get(), in_range));
            }
        }
        Operation::SyncWarp | Operation::ActiveMask | Operation::Barrier(_) => {}
    }
    for (_, member) in members_of() {
        member.state.set(State::Ready);
    }
    true
}

fn is_at(slot: &Slot, operation: Operation, mask: u32) -> bool {
    slot.state.get() == State::Waiting && slot.operation.get() == operation && slot.mask.get() == mask
}

/// The lanes for which `holds`, as bits.
fn mask_of(lanes: &[Slot], holds: impl Fn(&Slot) -> bool) -> u32 {
    lanes.iter().enumerate().filter(|(_, slot)| holds(slot)).fold(0, |mask, (lane, _)| mask | 1 << lane)
}

/// The lanes that the warp has: the last of a block may have fewer than 32.
fn existing(lanes: &[Slot]) -> u32 {
    u32::MAX >> (32 - lanes.len())
}

fn stuck(scheduler: &Scheduler<'_>, first: usize, lane: usize, lanes: &[Slot]) -> Fault {
    let slot = &lanes[lane];
    let (operation, mask) = (slot.operation.get(), slot.mask.get());
    let missing = mask & existing(lanes) & !mask_of(lanes, |other| is_at(other, operation, mask));
    Fault::WarpOperation {
        kernel: scheduler.context.kernel(),
        place: scheduler.context.place(first + lane),
        operation: match operation {
            Operation::SyncWarp => "sync_warp",
            Operation::Shuffle(_) => "a shuffle",
            Operation::Vote(_) => "a vote",
            Operation::ActiveMask => "activemask",
            Operation::Barrier(_) => "a barrier",
        },
        mask,
        missing: Threads((0..32).filter(|bit| missing >> bit & 1 == 1).map(|bit| first as u32 + bit).collect()),
        location: slot.location.get().to_string(),
    }
}

/// Lets all lanes go on from the block's barrier, if all are there.
fn release_barrier(scheduler: &Scheduler<'_>, slots: &[Slot]) -> Result<(), Fault> {
    let context = scheduler.context;
    let threads_where = |holds: &dyn Fn(&Slot) -> bool| {
        Threads(slots.iter().enumerate().filter(|(_, slot)| holds(slot)).map(|(thread, _)| thread as u32).collect())
    };
    let first = slots.iter().find(|slot| slot.state.get() == State::Waiting).expect("not all have exited");
    if slots.iter().any(|slot| slot.state.get() == State::Exited) {
        return Err(Fault::BarrierLeft {
            kernel: context.kernel(),
            block: index(context.block_idx.get()),
            waiting: threads_where(&|slot| slot.state.get() == State::Waiting),
            others: threads_where(&|slot| slot.state.get() == State::Exited),
            location: first.location.get().to_string(),
        });
    }
    let operation = first.operation.get();
    if slots.iter().any(|slot| slot.operation.get() != operation) {
        return Err(Fault::BarrierMismatch {
            kernel: context.kernel(),
            block: index(context.block_idx.get()),
            first_kind: match operation {
                Operation::Barrier(Barrier::Count) => "sync_threads_count",
                Operation::Barrier(Barrier::And) => "sync_threads_and",
                Operation::Barrier(Barrier::Or) => "sync_threads_or",
                _ => "sync_threads",
            },
            first: threads_where(&|slot| slot.operation.get() == operation),
            others: threads_where(&|slot| slot.operation.get() != operation),
        });
    }
    let mut predicates = slots.iter().map(|slot| slot.value.get() != 0);
    let result = match operation {
        Operation::Barrier(Barrier::Count) => predicates.filter(|&holds| holds).count() as u64,
        Operation::Barrier(Barrier::And) => u64::from(predicates.all(|holds| holds)),
        Operation::Barrier(Barrier::Or) => u64::from(predicates.any(|holds| holds)),
        _ => 0,
    };
    for slot in slots {
        slot.result.set((result, true));
        slot.state.set(State::Ready);
    }
    Ok(())
}
