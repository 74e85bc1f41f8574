//! How a lane waits for another block.

use std::panic::Location;
use std::thread;

use super::arrivals;
use super::context::{Context, with_lane};
use super::deadlock::ROUNDS;
use super::park::fault;
use super::slot::State;

/// A round of a loop that waits for an earlier block. Ends the launch with a fault if such a block has one, or if all
/// running blocks wait.
pub(crate) fn spin(round: u32, location: &'static Location<'static>) {
    if thread::panicking() {
        return;
    }
    thread::yield_now();
    let deadlock = with_lane(|context, lane| {
        let running = context.running();
        if running.has_fault_before(context.index.get()) {
            return Some("it waits for an earlier block, and an earlier block has a fault".to_owned());
        }
        if round == 0 || !round.is_multiple_of(ROUNDS) {
            return None;
        }
        let is_waiting = context.is_waiting(lane);
        running.poll(context.index.get(), is_waiting, context.place(lane), location)
    });
    if let Some(message) = deadlock {
        fault(message, location);
    }
}

/// The end of a loop of `rounds` calls of [`spin`].
pub(crate) fn end_spin(rounds: u32) {
    if rounds < ROUNDS {
        return;
    }
    with_lane(|context, lane| {
        if context.slots[lane].spins.replace(false) {
            context.spinning.update(|lanes| lanes - 1);
        }
        context.running().end_wait(context.index.get());
    });
}

impl Context {
    /// Whether the whole block waits, so that its lanes can only spin. `lane` has spun for a number of rounds.
    fn is_waiting(&self, lane: usize) -> bool {
        let slot = &self.slots[lane];
        if !slot.spins.replace(true) {
            self.spinning.update(|lanes| lanes + 1);
        }
        let switches = self.switches.get();
        if slot.switches.replace(switches) == switches {
            // No other lane has run since, because this one never yields the core.
            return true;
        }
        // If lanes run in order, each warp runs until all of its lanes wait at the block's barrier.
        let is_random = self.random.borrow().is_some();
        let first = if is_random { 0 } else { lane - lane % 32 };
        let end = if is_random { self.threads.get() } else { self.threads.get().min(first + 32) };
        let lanes = &self.slots[first..end];
        lanes.iter().all(|other| {
            other.spins.get()
                || match other.state.get() {
                    State::NotStarted | State::Ready | State::Asleep => false,
                    // A random order completes no operation of a warp while one of its lanes spins.
                    State::Waiting => is_random || !arrivals::could_complete(lanes, other),
                    State::Left | State::Exited => true,
                }
        })
    }

    /// Resets which lanes spin. The block has ended, and its waits may have ended with a fault.
    pub(crate) fn end_spins(&self) {
        if self.spinning.replace(0) > 0 {
            self.slots[..self.threads.get()].iter().for_each(|slot| slot.spins.set(false));
        }
    }
}
