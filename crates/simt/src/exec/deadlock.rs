//! Deadlocks between blocks: a block that waits for another block holds its core. If all running blocks wait, no
//! further block ever starts.

use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::fault::Place;

/// The launch is deadlocked if all cores have waited for this long, and no block or wait has begun or ended meanwhile.
/// A round of a wait is little more than a load, so each block has polled memory many times in this period.
const DEADLOCK_AFTER: Duration = Duration::from_secs(1);

/// The minimum number of polls of each waiting block in that period. A thread with fewer polls was preempted for most
/// of the period, and has not waited.
const MIN_POLLS: u32 = 16;

/// Rounds of a wait between checks for a deadlock. Most waits end after a few rounds.
pub(crate) const ROUNDS: u32 = 64;

/// The state that the running blocks of a launch share.
pub(crate) struct RunningBlocks {
    /// The lowest block that is known to have a fault; `u64::MAX` if none has.
    pub first_fault: AtomicU64,
    cores: Mutex<Cores>,
}

#[derive(Default)]
struct Cores {
    /// The number of cores that run a block.
    busy: usize,
    waiting: Vec<Wait>,
    /// When all cores began to wait, if they do.
    all_since: Option<Instant>,
    /// The waits of a deadlock, once there is one. Some of their blocks may not have reported it yet.
    deadlocked: Vec<Wait>,
}

impl Cores {
    /// A block or a wait has begun or ended.
    fn restart_timer(&mut self) {
        let are_all_waiting = self.busy > 0 && self.waiting.len() == self.busy;
        self.all_since = are_all_waiting.then(Instant::now);
        self.waiting.iter_mut().for_each(|wait| wait.polls = 0);
    }
}

/// A block that waits.
#[derive(Clone)]
struct Wait {
    block: u64,
    place: Place,
    location: &'static Location<'static>,
    /// The block's polls since the timer was restarted.
    polls: u32,
}

impl Default for RunningBlocks {
    fn default() -> Self {
        Self { first_fault: AtomicU64::new(u64::MAX), cores: Mutex::default() }
    }
}

impl RunningBlocks {
    fn cores(&self) -> std::sync::MutexGuard<'_, Cores> {
        self.cores.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A core begins a block.
    pub fn begin_block(&self) {
        let mut cores = self.cores();
        cores.busy += 1;
        cores.restart_timer();
    }

    /// A core has ended its block.
    pub fn end_block(&self, block: u64) {
        let mut cores = self.cores();
        cores.busy -= 1;
        cores.waiting.retain(|wait| wait.block != block);
        cores.restart_timer();
    }

    /// Whether a block of a lower index is known to have a fault.
    pub fn has_fault_before(&self, block: u64) -> bool {
        block > self.first_fault.load(Ordering::Relaxed)
    }

    /// Records whether a block waits, as one of its spinning lanes sees it. If the wait never ends, returns a message
    /// that says where the other blocks wait.
    pub fn poll(
        &self,
        block: u64,
        is_waiting: bool,
        place: Place,
        location: &'static Location<'static>,
    ) -> Option<String> {
        let mut cores = self.cores();
        let known = cores.waiting.iter().position(|wait| wait.block == block);
        let own = match (known, is_waiting) {
            (Some(known), true) => known,
            (Some(known), false) => {
                cores.waiting.swap_remove(known);
                cores.restart_timer();
                return None;
            }
            (None, true) => {
                cores.waiting.push(Wait { block, place, location, polls: 0 });
                cores.restart_timer();
                cores.waiting.len() - 1
            }
            (None, false) => return None,
        };
        cores.waiting[own].polls = cores.waiting[own].polls.saturating_add(1);
        let is_deadlock = cores.all_since.is_some_and(|since| since.elapsed() > DEADLOCK_AFTER)
            && cores.waiting.iter().all(|wait| wait.polls >= MIN_POLLS);
        if is_deadlock && cores.deadlocked.is_empty() {
            cores.deadlocked = cores.waiting.clone();
        }
        // The first block that reports the deadlock ends, and no longer waits. The others must report it nevertheless.
        if !is_deadlock && !cores.deadlocked.iter().any(|wait| wait.block == block) {
            return None;
        }
        let others = cores.deadlocked.iter().filter(|wait| wait.block != block);
        let others: Vec<String> = others.map(|wait| format!("{} (at {})", wait.place, wait.location)).collect();
        Some(match others.len() {
            0 => "it waits for another block, and no other block can run".to_owned(),
            _ => format!("it waits for another block, and so do all running blocks: {}", others.join("; ")),
        })
    }

    /// A wait of the block has ended.
    pub fn end_wait(&self, block: u64) {
        let mut cores = self.cores();
        cores.waiting.retain(|wait| wait.block != block);
        cores.restart_timer();
    }
}
