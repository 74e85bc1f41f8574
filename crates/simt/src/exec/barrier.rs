//! Completes the block's barrier.

use super::context::Context;
use super::fault::{Fault, Threads};
use super::monitor::Participant;
use super::operation::{Barrier, Operation};
use super::slot::{Slot, State};

/// Releases all threads of the block from its barrier, if all have arrived. Each of `slots` waits, has left or has
/// exited.
pub(super) fn release(context: &Context, slots: &[Slot]) -> Result<(), Fault> {
    let threads_where = |holds: &dyn Fn(&Slot) -> bool| {
        Threads(slots.iter().enumerate().filter(|(_, slot)| holds(slot)).map(|(thread, _)| thread as u32).collect())
    };
    let has_arrived = |slot: &Slot| slot.state.get() != State::Exited;
    let first = slots.iter().find(|&slot| has_arrived(slot)).expect("not all have exited before");
    if context.exited.get() > context.left.get() {
        return Err(Fault::BarrierLeft {
            kernel: context.kernel(),
            block: context.block_idx.get().as_index(),
            waiting: threads_where(&has_arrived),
            others: threads_where(&|slot| !has_arrived(slot)),
            location: first.wait.get().location.to_string(),
        });
    }
    let operation = first.wait.get().operation;
    // Loops here and below, because iterators are slow without optimization, and each barrier comes here.
    let mut same = 0;
    while same < slots.len() && slots[same].wait.get().operation.code() == operation.code() {
        same += 1;
    }
    if let Some(other) = slots.get(same) {
        return Err(Fault::BarrierMismatch {
            kernel: context.kernel(),
            block: context.block_idx.get().as_index(),
            first_kind: match operation {
                Operation::Barrier(Barrier::Count) => "sync_threads_count",
                Operation::Barrier(Barrier::And) => "sync_threads_and",
                Operation::Barrier(Barrier::Or) => "sync_threads_or",
                _ => "sync_threads",
            },
            first: threads_where(&|slot| slot.wait.get().operation == operation),
            others: threads_where(&|slot| slot.wait.get().operation != operation),
            locations: Box::new([first, other].map(|slot| slot.wait.get().location.to_string())),
        });
    }
    let mut predicates = slots.iter().map(|slot| slot.wait.get().value != 0);
    let result = match operation {
        Operation::Barrier(Barrier::Count) => predicates.filter(|&holds| holds).count() as u64,
        Operation::Barrier(Barrier::And) => u64::from(predicates.all(|holds| holds)),
        Operation::Barrier(Barrier::Or) => u64::from(predicates.any(|holds| holds)),
        _ => 0,
    };
    if let Some(monitor) = &mut *context.monitor.borrow_mut() {
        let participant =
            |thread: usize| Participant { thread, location: slots[thread].wait.get().location, verb: "waits" };
        monitor.barrier(slots.len(), participant, &context.fast);
    }
    let mut thread = 0;
    while thread < slots.len() {
        let slot = &slots[thread];
        if matches!(slot.state.get(), State::Waiting) {
            slot.result.set((result, true));
            slot.state.set(State::Ready);
        } else {
            // It has arrived at this barrier, not at the next one.
            slot.state.set(State::Exited);
        }
        thread += 1;
    }
    context.left.set(0);
    Ok(())
}
