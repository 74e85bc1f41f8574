//! The scheduler of one block: which lane runs next, and when those that wait can go on.

use std::panic::Location;
use std::ptr;

use crate::context::{Context, Operation, Slot, State};
use crate::fault::{Fault, Threads, index};
use crate::fibres::Scheduler;
use crate::findings::Check;
use crate::lane::Barrier;
use crate::warp;
use crate::watch::Meeting;

/// Runs all lanes of the block to their ends, or to the block's first fault.
pub(crate) fn run(scheduler: &Scheduler<'_>) {
    let context = scheduler.context;
    let threads = context.threads.get();
    let is_random = context.random.borrow().is_some();
    loop {
        if is_random {
            run_in_random_order(scheduler, threads);
        } else {
            for first in (0..threads).step_by(32) {
                run_warp(scheduler, first, (first + 32).min(threads));
                if context.has_fault() {
                    break;
                }
            }
        }
        if context.has_fault() {
            return;
        }
        if context.exited.get() == threads {
            return;
        }
        // Every lane that is left waits at a barrier: neither order leaves any other.
        if let Err(fault) = release_barrier(context, &context.slots[..threads]) {
            context.report(fault);
            return;
        }
    }
}

/// Runs the lanes of one warp until each has exited or waits at the block's barrier.
fn run_warp(scheduler: &Scheduler<'_>, first: usize, end: usize) {
    let context = scheduler.context;
    let lanes = &context.slots[first..end];
    if lanes[0].state.get() == State::NotStarted && (!start(scheduler, first, end) || context.has_fault()) {
        return;
    }
    loop {
        for (offset, slot) in lanes.iter().enumerate() {
            if slot.state.get() == State::Ready {
                scheduler.resume(first + offset);
                if context.has_fault() {
                    return;
                }
            }
        }
        if !go_on(scheduler, first, lanes) {
            return;
        }
    }
}

/// Runs lanes of all warps in a random order, until each has exited or waits at the block's barrier.
fn run_in_random_order(scheduler: &Scheduler<'_>, threads: usize) {
    let context = scheduler.context;
    let can_run = |lane: &usize| matches!(context.slots[*lane].state.get(), State::NotStarted | State::Ready);
    let warp_of = |lane: usize| lane - lane % 32..(lane - lane % 32 + 32).min(threads);
    let mut ready: Vec<usize> = (0..threads).filter(can_run).collect();
    while !ready.is_empty() {
        let place = context.random.borrow_mut().as_mut().map_or(0, |random| random.below(ready.len()));
        let lane = ready[place];
        context.could_change.set(ready.len() > 1);
        if context.slots[lane].state.get() == State::NotStarted {
            if !start(scheduler, lane, lane + 1) {
                return;
            }
        } else {
            scheduler.resume(lane);
        }
        if context.has_fault() {
            return;
        }
        if can_run(&lane) {
            continue;
        }
        ready.swap_remove(place);
        let warp = warp_of(lane);
        if !warp.clone().any(|lane| can_run(&lane)) {
            go_on(scheduler, warp.start, &context.slots[warp.clone()]);
            if context.has_fault() {
                return;
            }
            ready.extend(warp.filter(can_run));
        }
    }
}

/// Starts the lanes `first..end`, in order. Whether there was memory for it.
fn start(scheduler: &Scheduler<'_>, first: usize, end: usize) -> bool {
    let context = scheduler.context;
    let Err(error) = scheduler.start(first, end) else { return true };
    context.report(Fault::OutOfMemory { kernel: context.kernel(), reason: error.to_string() });
    false
}

/// Lets lanes of a warp, none of which can run, go on if what they wait for has come. Whether some can.
fn go_on(scheduler: &Scheduler<'_>, first: usize, lanes: &[Slot]) -> bool {
    let context = scheduler.context;
    if let Some(watcher) = &mut *context.watcher.borrow_mut() {
        watcher.flush(first, first + lanes.len(), &context.near);
    }
    match complete_warp_operations(context, first, lanes) {
        Progress::Made => true,
        Progress::None => false,
        Progress::Stuck(lane) => {
            context.report(stuck(scheduler, first, lane, lanes));
            false
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
fn complete_warp_operations(context: &Context, first: usize, lanes: &[Slot]) -> Progress {
    if context.in_warp_operations.get() == 0 {
        return Progress::None;
    }
    let mut stuck = None;
    let mut made = false;
    for (lane, slot) in lanes.iter().enumerate() {
        if !waits_for_warp(slot) || slot.operation.get() == Operation::ActiveMask {
            continue;
        }
        match complete(context, first, lanes, slot) {
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
        context.in_warp_operations.update(|lanes| lanes - active.count_ones() as usize);
        return Progress::Made;
    }
    stuck.map_or(Progress::None, Progress::Stuck)
}

fn waits_for_warp(slot: &Slot) -> bool {
    slot.state.get() == State::Waiting && !matches!(slot.operation.get(), Operation::Barrier(_))
}

/// Completes the operation that `slot` waits at, if all lanes of its mask that exist wait at it too. `first` is the
/// warp's first thread.
fn complete(context: &Context, first: usize, lanes: &[Slot], slot: &Slot) -> bool {
    let Some(members) = members_if_there(lanes, slot) else { return false };
    let operation = slot.operation.get();
    let members_of = || lanes.iter().enumerate().filter(move |(lane, _)| members >> lane & 1 == 1);
    note_meeting(context, first, lanes, slot, members);
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
    context.in_warp_operations.update(|lanes| lanes - members.count_ones() as usize);
    true
}

/// The lanes of the mask of the operation that `slot` waits at, if all that exist wait at it too.
fn members_if_there(lanes: &[Slot], slot: &Slot) -> Option<u32> {
    let (operation, mask) = (slot.operation.get(), slot.mask.get());
    let there = mask_of(lanes, |other| is_at(other, operation, mask));
    let members = mask & existing(lanes);
    (there & members == members).then_some(members)
}

/// Whether a lane that waits does so at an operation of its warp, `lanes`, that all have reached.
pub(crate) fn could_complete(lanes: &[Slot], slot: &Slot) -> bool {
    waits_for_warp(slot) && members_if_there(lanes, slot).is_some()
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
    report_wrong_mask(scheduler.context, first, lane, lanes, missing);
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

/// Tells the watcher where the lanes are that `lane` names in its mask, and that do not come.
fn report_wrong_mask(context: &Context, first: usize, lane: usize, lanes: &[Slot], missing: u32) {
    let watcher = context.watcher.borrow();
    let Some(watcher) = &*watcher else { return };
    let own = &lanes[lane];
    let at = |lane: usize| (first + lane, lanes[lane].location.get(), verb(lanes[lane].operation.get()));
    let absent = || (0..lanes.len()).filter(|lane| missing >> lane & 1 == 1);
    let has_left = |lane: &usize| lanes[*lane].state.get() == State::Exited;
    let has_other_mask = |lane: &usize| is_one_place(lanes[*lane].location.get(), own.location.get());
    if absent().any(|lane| has_left(&lane)) {
        watcher.report_meeting(Check::WrongMask, "its mask names lanes that have left the kernel", at(lane), None);
    }
    let waiting = || absent().filter(|lane| !has_left(lane));
    if let Some(other) = waiting().find(has_other_mask) {
        let hint = "its mask names lanes that are there with another mask";
        watcher.report_meeting(Check::WrongMask, hint, at(lane), Some(at(other)));
    }
    if let Some(other) = waiting().find(|lane| !has_other_mask(lane)) {
        let hint = "its mask names lanes that wait elsewhere";
        watcher.report_meeting(Check::WrongMask, hint, at(lane), Some(at(other)));
    }
}

/// What a lane does that waits at an operation.
fn verb(operation: Operation) -> &'static str {
    match operation {
        Operation::Shuffle(_) => "shuffles",
        Operation::Vote(_) => "votes",
        Operation::SyncWarp => "waits for its warp",
        Operation::ActiveMask => "asks for the active lanes",
        Operation::Barrier(_) => "waits for its block",
    }
}

/// Tells the watcher that lanes of a warp have met, and what is wrong with it.
fn note_meeting(context: &Context, first: usize, lanes: &[Slot], slot: &Slot, members: u32) {
    let mut watcher = context.watcher.borrow_mut();
    let Some(watcher) = &mut *watcher else { return };
    let operation = slot.operation.get();
    let meeting = match operation {
        Operation::Shuffle(_) => Meeting::Shuffle,
        Operation::Vote(_) => Meeting::Vote,
        Operation::SyncWarp => Meeting::SyncWarp,
        Operation::ActiveMask | Operation::Barrier(_) => return,
    };
    let verb = verb(operation);
    watcher.met(meeting, first / 32, members, existing(lanes), slot.location.get(), &context.near);
    let of_members = || lanes.iter().enumerate().filter(|(lane, _)| members >> lane & 1 == 1);
    let at = |(lane, slot): (usize, &Slot)| (first + lane, slot.location.get(), verb);
    let Some(leader) = of_members().next().map(at) else { return };
    // `sync_warp` is one instruction wherever it stands.
    if meeting != Meeting::SyncWarp
        && let Some(other) = of_members().map(at).find(|other| !is_one_place(other.1, leader.1))
    {
        let hint = "lanes of one mask must meet on the same line";
        watcher.report_meeting(Check::DivergentWarp, hint, other, Some(leader));
    }
    if let Operation::Shuffle(kind) = operation {
        for (lane, member) in of_members() {
            let (source, in_range) = warp::source(kind, lane as u32, member.operand.get(), member.width.get());
            if in_range && members >> source & 1 == 0 {
                let hint = match source as usize >= lanes.len() {
                    true => "the warp has not that many lanes: what is read is undefined",
                    false => "the lane that it reads is not in the mask: what is read is undefined",
                };
                watcher.report_meeting(Check::MissingLane, hint, at((lane, member)), None);
            }
        }
    }
}

/// Whether two locations are one place: most are even one `Location`, which saves the comparing of texts.
fn is_one_place(one: &'static Location<'static>, other: &'static Location<'static>) -> bool {
    ptr::eq(one, other) || one == other
}

/// Lets all lanes go on from the block's barrier, if all are there.
fn release_barrier(context: &Context, slots: &[Slot]) -> Result<(), Fault> {
    let threads_where = |holds: &dyn Fn(&Slot) -> bool| {
        Threads(slots.iter().enumerate().filter(|(_, slot)| holds(slot)).map(|(thread, _)| thread as u32).collect())
    };
    let first = slots.iter().find(|slot| slot.state.get() == State::Waiting).expect("not all have exited");
    if context.exited.get() > 0 {
        return Err(Fault::BarrierLeft {
            kernel: context.kernel(),
            block: index(context.block_idx.get()),
            waiting: threads_where(&|slot| slot.state.get() == State::Waiting),
            others: threads_where(&|slot| slot.state.get() == State::Exited),
            location: first.location.get().to_string(),
        });
    }
    let operation = first.operation.get();
    if let Some(other) = slots.iter().find(|slot| slot.operation.get() != operation) {
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
            locations: Box::new([first, other].map(|slot| slot.location.get().to_string())),
        });
    }
    let mut predicates = slots.iter().map(|slot| slot.value.get() != 0);
    let result = match operation {
        Operation::Barrier(Barrier::Count) => predicates.filter(|&holds| holds).count() as u64,
        Operation::Barrier(Barrier::And) => u64::from(predicates.all(|holds| holds)),
        Operation::Barrier(Barrier::Or) => u64::from(predicates.any(|holds| holds)),
        _ => 0,
    };
    if let Some(watcher) = &mut *context.watcher.borrow_mut() {
        let at = |(thread, slot): (usize, &Slot)| (thread, slot.location.get(), "waits");
        if let Some(other) = slots.iter().enumerate().map(at).find(|other| !is_one_place(other.1, first.location.get()))
        {
            let hint = "all threads of the block must meet in the same barrier";
            watcher.report_meeting(Check::DivergentBarrier, hint, other, slots.iter().enumerate().map(at).next());
        }
        watcher.barrier(slots.iter().step_by(32).map(|slot| slot.location.get()), &context.near);
    }
    for slot in slots {
        slot.result.set((result, true));
        slot.state.set(State::Ready);
    }
    Ok(())
}
