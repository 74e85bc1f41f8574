//! Runs the lanes of a block in an order.

use super::barrier;
use super::context::Context;
use super::fault::Fault;
use super::fibres::LaneRunner;
use super::slot::{Slot, State};
use super::warp_operations::{self, Progress};

/// Runs all lanes of the block to their ends, or to the block's first fault.
pub(super) fn run(runner: &mut LaneRunner<'_>) {
    let context = runner.context;
    let threads = context.threads.get();
    let is_random = context.random.borrow().is_some();
    loop {
        if is_random {
            run_in_random_order(runner, threads);
        } else {
            for first in (0..threads).step_by(32) {
                run_warp(runner, first, (first + 32).min(threads));
                if context.has_fault() {
                    break;
                }
            }
        }
        if context.has_fault() {
            return;
        }
        if context.exited.get() == threads {
            if context.left.get() > 0
                && let Err(fault) = barrier::release(context, &context.slots[..threads])
            {
                context.report(fault);
            }
            return;
        }
        if wake(&context.slots[..threads]) {
            continue;
        }
        // Both orders return only when each remaining lane waits at a barrier, or sleeps.
        if let Err(fault) = barrier::release(context, &context.slots[..threads]) {
            context.report(fault);
            return;
        }
    }
}

/// Makes the sleeping lanes ready. Returns whether there were any.
fn wake(lanes: &[Slot]) -> bool {
    let mut has_woken = false;
    let mut lane = 0;
    while lane < lanes.len() {
        if matches!(lanes[lane].state.get(), State::Asleep) {
            lanes[lane].state.set(State::Ready);
            has_woken = true;
        }
        lane += 1;
    }
    has_woken
}

/// Runs the lanes of one warp until each has exited, sleeps, or waits at the block's barrier.
fn run_warp(runner: &mut LaneRunner<'_>, first: usize, end: usize) {
    let context = runner.context;
    let lanes = &context.slots[first..end];
    if lanes[0].state.get() == State::NotStarted && (!start(runner, first, end) || context.has_fault()) {
        return;
    }
    loop {
        // A loop, because iterators are slow without optimization, and each switch comes here.
        let mut offset = 0;
        while offset < lanes.len() {
            if matches!(lanes[offset].state.get(), State::Ready) {
                runner.resume(first + offset);
                if context.has_fault() {
                    return;
                }
            }
            offset += 1;
        }
        if !complete_operations(context, first, end) {
            return;
        }
    }
}

/// Runs lanes of all warps in a random order, until each has exited, sleeps, or waits at the block's barrier.
fn run_in_random_order(runner: &mut LaneRunner<'_>, threads: usize) {
    let context = runner.context;
    let can_run = |lane: &usize| context.slots[*lane].can_run();
    let warp_of = |lane: usize| lane - lane % 32..(lane - lane % 32 + 32).min(threads);
    let mut ready: Vec<usize> = (0..threads).filter(can_run).collect();
    while !ready.is_empty() {
        let choice = context.random.borrow_mut().as_mut().map_or(0, |random| random.below(ready.len()));
        let lane = ready[choice];
        context.could_switch.set(ready.len() > 1);
        if context.slots[lane].state.get() == State::NotStarted {
            if !start(runner, lane, lane + 1) {
                return;
            }
        } else {
            runner.resume(lane);
        }
        if context.has_fault() {
            return;
        }
        if can_run(&lane) {
            continue;
        }
        ready.swap_remove(choice);
        let warp = warp_of(lane);
        if !warp.clone().any(|lane| can_run(&lane)) {
            complete_operations(context, warp.start, warp.end);
            if context.has_fault() {
                return;
            }
            ready.extend(warp.filter(can_run));
        }
    }
}

/// Starts the lanes `first..end`, in order. Returns false if there is no memory for their stacks.
fn start(runner: &mut LaneRunner<'_>, first: usize, end: usize) -> bool {
    let context = runner.context;
    let Err(error) = runner.start(first, end) else { return true };
    context.report(Fault::OutOfMemory { kernel: context.kernel(), reason: error.to_string() });
    false
}

/// Completes operations of the warp of lanes `first..end`, none of which can run. Returns whether some can run now.
fn complete_operations(context: &Context, first: usize, end: usize) -> bool {
    if let Some(monitor) = &mut *context.monitor.borrow_mut() {
        monitor.flush_warp(first, end, &context.fast);
    }
    let lanes = &context.slots[first..end];
    match warp_operations::complete_all(context, first, lanes) {
        Progress::Made => true,
        Progress::None => false,
        Progress::Stuck(lane) => {
            context.report(warp_operations::stuck_fault(context, first, lane, lanes));
            false
        }
    }
}
