//! Completes operations of a warp. `lanes` are the slots of the warp, `first` is the index of its first thread.

use super::arrivals::{lanes_of, lanes_where, members_if_all_arrived};
use super::context::Context;
use super::fault::{Fault, Threads};
use super::monitor::Participant;
use super::operation::Operation;
use super::slot::{Slot, State};
use super::warp;

/// What [`complete_all`] has achieved.
pub(super) enum Progress {
    /// Some lanes have become ready.
    Made,
    /// Every lane has exited or waits at the block's barrier.
    None,
    /// This lane of the warp waits for others that cannot come.
    Stuck(usize),
}

/// Completes each operation that all lanes of its mask have reached. While a lane sleeps, the others wait for it.
pub(super) fn complete_all(context: &Context, first: usize, lanes: &[Slot]) -> Progress {
    if context.in_warp_operations.get() == 0 {
        return Progress::None;
    }
    let mut stuck = None;
    let mut made = false;
    for (lane, slot) in lanes.iter().enumerate() {
        if !slot.waits_for_warp() || slot.operation.get() == Operation::ActiveMask {
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
    // No other lane can run before one of these does, so these are the active lanes.
    let asks = |slot: &Slot| slot.waits_for_warp() && slot.operation.get() == Operation::ActiveMask;
    let active = lanes_where(lanes, asks);
    if active != 0 {
        for slot in lanes.iter().filter(|slot| asks(slot)) {
            slot.result.set((u64::from(active), true));
            slot.state.set(State::Ready);
        }
        context.in_warp_operations.update(|lanes| lanes - active.count_ones() as usize);
        return Progress::Made;
    }
    let may_come = lanes.iter().any(|slot| slot.state.get() == State::Asleep);
    stuck.filter(|_| !may_come).map_or(Progress::None, Progress::Stuck)
}

/// Completes the operation that `slot` waits at, if all of its members have arrived. Returns whether they have.
fn complete(context: &Context, first: usize, lanes: &[Slot], slot: &Slot) -> bool {
    let Some(members) = members_if_all_arrived(lanes, slot) else { return false };
    let operation = slot.operation.get();
    let members_of = || lanes.iter().enumerate().filter(move |(lane, _)| members >> lane & 1 == 1);
    emit(context, first, lanes, slot, members);
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
                // A lane outside the mask or the warp has no value. CUDA leaves the result undefined then, and
                // kernels that reduce a partial warp do not use it. Here they get their own value.
                let source = if members >> source & 1 == 1 { &lanes[source as usize] } else { member };
                member.result.set((source.value.get(), in_range));
            }
        }
        Operation::Match(kind) => {
            let mut values = [0; 32];
            for (lane, member) in members_of() {
                values[lane] = member.value.get();
            }
            for (lane, member) in members_of() {
                member.result.set((u64::from(warp::matching(kind, members, lane, &values)), true));
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

/// Passes an operation to the monitor.
fn emit(context: &Context, first: usize, lanes: &[Slot], slot: &Slot, members: u32) {
    let mut monitor = context.monitor.borrow_mut();
    let Some(monitor) = &mut *monitor else { return };
    let operation = slot.operation.get();
    let Some(collective) = operation.collective() else { return };
    let verb = operation.verb();
    let members_of = || lanes.iter().enumerate().filter(|(lane, _)| members >> lane & 1 == 1);
    let participant =
        |lane: usize, slot: &Slot| Participant { thread: first + lane, location: slot.location.get(), verb };
    let participants = members_of().map(|(lane, slot)| participant(lane, slot));
    monitor.collective(collective, members, lanes_of(lanes), slot.location.get(), participants, &context.fast);
    if let Operation::Shuffle(kind) = operation {
        monitor.missing_lanes(members_of().filter_map(|(lane, member)| {
            let (source, in_range) = warp::source(kind, lane as u32, member.operand.get(), member.width.get());
            let is_missing = in_range && members >> source & 1 == 0;
            is_missing.then(|| (participant(lane, member), (source as usize) < lanes.len()))
        }));
    }
}

/// The fault of a lane that waits for others that cannot come.
pub(super) fn stuck_fault(context: &Context, first: usize, lane: usize, lanes: &[Slot]) -> Fault {
    let slot = &lanes[lane];
    let (operation, mask) = (slot.operation.get(), slot.mask.get());
    let missing = mask & lanes_of(lanes) & !lanes_where(lanes, |other| other.is_at(operation, mask));
    let missing_lanes = || (0..lanes.len()).filter(move |lane| missing >> lane & 1 == 1);
    if let Some(monitor) = &*context.monitor.borrow() {
        let participant = |lane: usize| Participant {
            thread: first + lane,
            location: lanes[lane].location.get(),
            verb: lanes[lane].operation.get().verb(),
        };
        let absent = missing_lanes().map(|lane| (participant(lane), lanes[lane].state.get() == State::Exited));
        monitor.wrong_mask(participant(lane), absent);
    }
    Fault::WarpOperation {
        kernel: context.kernel(),
        place: context.place(first + lane),
        operation: operation.name(),
        mask,
        missing: Threads(missing_lanes().map(|lane| (first + lane) as u32).collect()),
        location: slot.location.get().to_string(),
    }
}
