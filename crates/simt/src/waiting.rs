//! Whether the blocks that run can go on: a block that waits for another's state holds its core, and where all do so,
//! for each other, nobody would ever say so.

use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::fault::Place;

/// How long all cores have to wait, none having begun or ended a block or a wait, before it is said that they wait for
/// ever. Between two rounds of a wait lies no more than a look at memory: in this time each has looked many times at
/// what the others had left.
const FOR_EVER: Duration = Duration::from_secs(1);

/// How often each waiting block has to have looked in that time: one that did not run for most of it has not waited for
/// it.
const LOOKS: u32 = 16;

/// Rounds of a wait before its time is looked at. Most are over after a few.
pub(crate) const ROUNDS: u32 = 64;

/// What the blocks of a launch have in common while they run.
pub(crate) struct Running {
    /// The first block that is known to have a fault; without one, the number of no block.
    pub first_fault: AtomicU64,
    cores: Mutex<Cores>,
}

#[derive(Default)]
struct Cores {
    /// How many run a block.
    busy: usize,
    waiting: Vec<Wait>,
    /// Since when all of them wait, if they do.
    all_since: Option<Instant>,
    /// The waits that are known to be for ever, of blocks that may not have said so yet.
    for_ever: Vec<Wait>,
}

impl Cores {
    /// Something has changed.
    fn note_change(&mut self) {
        let do_all_wait = self.busy > 0 && self.waiting.len() == self.busy;
        self.all_since = do_all_wait.then(Instant::now);
        self.waiting.iter_mut().for_each(|wait| wait.looks = 0);
    }
}

/// A core whose block waits.
#[derive(Clone)]
struct Wait {
    block: u64,
    place: Place,
    location: &'static Location<'static>,
    /// How often it has looked since something has changed.
    looks: u32,
}

impl Default for Running {
    fn default() -> Self {
        Self { first_fault: AtomicU64::new(u64::MAX), cores: Mutex::default() }
    }
}

impl Running {
    fn cores(&self) -> std::sync::MutexGuard<'_, Cores> {
        self.cores.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A core begins a block.
    pub fn begin_block(&self) {
        let mut cores = self.cores();
        cores.busy += 1;
        cores.note_change();
    }

    /// A core has ended its block.
    pub fn end_block(&self, block: u64) {
        let mut cores = self.cores();
        cores.busy -= 1;
        cores.waiting.retain(|wait| wait.block != block);
        cores.note_change();
    }

    /// Whether a block before that one is known to have a fault.
    pub fn has_fault_before(&self, block: u64) -> bool {
        block > self.first_fault.load(Ordering::Relaxed)
    }

    /// A look at whether a block waits, by one of its lanes that does. What is said of it, if the wait will never end:
    /// where the others wait.
    pub fn look(
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
                cores.note_change();
                return None;
            }
            (None, true) => {
                cores.waiting.push(Wait { block, place, location, looks: 0 });
                cores.note_change();
                cores.waiting.len() - 1
            }
            (None, false) => return None,
        };
        cores.waiting[own].looks = cores.waiting[own].looks.saturating_add(1);
        let is_in_vain = cores.all_since.is_some_and(|since| since.elapsed() > FOR_EVER)
            && cores.waiting.iter().all(|wait| wait.looks >= LOOKS);
        if is_in_vain && cores.for_ever.is_empty() {
            cores.for_ever = cores.waiting.clone();
        }
        // The first block that says so ends, and then no longer waits. The others say the same as if it still did.
        if !is_in_vain && !cores.for_ever.iter().any(|wait| wait.block == block) {
            return None;
        }
        let others = cores.for_ever.iter().filter(|wait| wait.block != block);
        let others: Vec<String> = others.map(|wait| format!("{} (at {})", wait.place, wait.location)).collect();
        Some(match others.len() {
            0 => "it waits for another block, and no other can go on".to_owned(),
            _ => format!("it waits for another block, and so do all that run: {}", others.join("; ")),
        })
    }

    /// A lane of a block has what it waited for, so the block can go on.
    pub fn go_on(&self, block: u64) {
        let mut cores = self.cores();
        cores.waiting.retain(|wait| wait.block != block);
        cores.note_change();
    }
}
