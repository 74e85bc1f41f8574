//! Completes operations of a warp. `lanes` are the slots of the warp, `first` is the index of its first thread.

use super::arrivals::{lanes_of, lanes_where, members_if_all_arrived};
use super::context::Context;
use super::fault::{Fault, Threads};
use super::monitor::Participant;
use super::operation::Operation;
use super::slot::{Slot, State, Wait};
use super::warp;

/// The progress of [`complete_all`].
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
    // Loops here and below, because iterators are slow without optimization, and each operation comes here.
    let mut lane = 0;
    while lane < lanes.len() && context.in_warp_operations.get() > 0 {
        let slot = &lanes[lane];
        if slot.waits_for_warp() && !matches!(slot.wait.get().operation, Operation::ActiveMask) {
            match complete(context, first, lanes, slot) {
                true => made = true,
                false => stuck = stuck.or(Some(lane)),
            }
        }
        lane += 1;
    }
    if made {
        return Progress::Made;
    }
    // No other lane can run before one of these does, so these are the active lanes.
    let asks = |slot: &Slot| slot.waits_for_warp() && slot.wait.get().operation == Operation::ActiveMask;
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
    emit(context, first, lanes, slot, members);
    let operation = slot.wait.get().operation;
    let mut values = [0; 32];
    let mut lane = 0;
    while lane < lanes.len() {
        values[lane] = lanes[lane].wait.get().value;
        lane += 1;
    }
    let vote = match operation {
        Operation::Vote(kind) => warp::vote(kind, members, &values),
        _ => 0,
    };
    let mut lane = 0;
    while lane < lanes.len() {
        if members >> lane & 1 == 1 {
            let result = match operation {
                Operation::Vote(_) => (u64::from(vote), true),
                Operation::Shuffle(kind) => {
                    let Wait { operand, width, .. } = lanes[lane].wait.get();
                    let (source, in_range) = warp::source(kind, lane as u32, operand, width);
                    // A lane outside the mask or the warp has no value. In CUDA, the result of reading such a lane is
                    // undefined, and kernels that reduce a partial warp do not use it. Here, the reading lane gets its
                    // own value.
                    let source = if members >> source & 1 == 1 { source as usize } else { lane };
                    (values[source], in_range)
                }
                Operation::Match(kind) => (u64::from(warp::matching(kind, members, lane, &values)), true),
                Operation::SyncWarp | Operation::ActiveMask | Operation::Barrier(_) => (0, true),
            };
            lanes[lane].result.set(result);
            lanes[lane].state.set(State::Ready);
        }
        lane += 1;
    }
    context.in_warp_operations.update(|lanes| lanes - members.count_ones() as usize);
    true
}

/// Passes an operation to the monitor.
fn emit(context: &Context, first: usize, lanes: &[Slot], slot: &Slot, members: u32) {
    let mut monitor = context.monitor.borrow_mut();
    let Some(monitor) = &mut *monitor else { return };
    let operation = slot.wait.get().operation;
    let Some(collective) = operation.collective() else { return };
    let verb = operation.verb();
    let participant =
        |lane: usize| Participant { thread: first + lane, location: lanes[lane].wait.get().location, verb };
    monitor.collective(collective, members, lanes_of(lanes), slot.wait.get().location, participant, &context.fast);
    let Operation::Shuffle(kind) = operation else { return };
    let mut lane = 0;
    while lane < lanes.len() {
        if members >> lane & 1 == 1 {
            let Wait { operand, width, .. } = lanes[lane].wait.get();
            let (source, in_range) = warp::source(kind, lane as u32, operand, width);
            if in_range && members >> source & 1 == 0 {
                monitor.missing_lane(participant(lane), (source as usize) < lanes.len());
            }
        }
        lane += 1;
    }
}

/// The fault of a lane that waits for others that cannot come.
pub(super) fn stuck_fault(context: &Context, first: usize, lane: usize, lanes: &[Slot]) -> Fault {
    let slot = &lanes[lane];
    let Wait { operation, mask, .. } = slot.wait.get();
    let missing = mask & lanes_of(lanes) & !lanes_where(lanes, |other| other.is_at(operation.code(), mask));
    let missing_lanes = || (0..lanes.len()).filter(move |lane| missing >> lane & 1 == 1);
    if let Some(monitor) = &*context.monitor.borrow() {
        let participant = |lane: usize| Participant {
            thread: first + lane,
            location: lanes[lane].wait.get().location,
            verb: lanes[lane].wait.get().operation.verb(),
        };
        let absent = missing_lanes().map(|lane| (participant(lane), lanes[lane].has_exited()));
        monitor.wrong_mask(participant(lane), absent);
    }
    Fault::WarpOperation {
        kernel: context.kernel(),
        place: context.place(first + lane),
        operation: operation.name(),
        mask,
        missing: Threads(missing_lanes().map(|lane| (first + lane) as u32).collect()),
        location: slot.wait.get().location.to_string(),
    }
}
