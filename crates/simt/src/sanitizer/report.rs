//! Collects the findings of a launch.

use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};

use super::exact_cell::{Conflict, Effect};
use super::findings::{Check, Finding, Findings, ThreadEvent};
use super::stamp::Stamp;
use crate::dim::Dim3;
use crate::events::sites::SiteTable;
use crate::memory::{Argument, Element, NamedMemory};

/// The findings of a launch, and the names that describe them.
pub(crate) struct Reports {
    kernel: String,
    grid: Dim3,
    block: Dim3,
    arguments: NamedMemory,
    sites: Arc<SiteTable>,
    /// The findings with their blocks. For equal keys, the lowest block's finding is kept.
    findings: Mutex<BTreeMap<Key, (u32, Finding)>>,
}

/// The key by which findings are merged: the check and both lines.
type Key = (Check, Line, Option<Line>);
type Line = (&'static str, u32, u32);

/// A thread and its action at a line.
#[derive(Clone, Copy)]
pub(super) struct Actor {
    pub verb: &'static str,
    pub block: u32,
    pub thread: usize,
    pub location: &'static Location<'static>,
}

impl Reports {
    pub fn new(kernel: &str, grid: Dim3, block: Dim3, arguments: &[Argument<'_>], sites: Arc<SiteTable>) -> Self {
        Self {
            kernel: kernel.to_owned(),
            grid,
            block,
            arguments: NamedMemory::new(arguments),
            sites,
            findings: Mutex::default(),
        }
    }

    /// The findings in blocks up to `last`. `None` if there are none.
    pub fn up_to(&self, last: u64) -> Option<Findings> {
        let findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<&(u32, Finding)> = findings.values().filter(|(block, _)| u64::from(*block) <= last).collect();
        all.sort_by_key(|(block, _)| *block);
        (!all.is_empty()).then(|| Findings { all: all.into_iter().map(|(_, finding)| finding.clone()).collect() })
    }

    /// Reports an access of global memory.
    pub(super) fn global_access(&self, own: Stamp, effect: Effect, address: usize, conflict: Conflict) {
        let check = if matches!(conflict, Conflict::Scope(_)) { Check::Scope } else { Check::GlobalRace };
        self.access(check, own, effect, conflict, self.arguments.element_at(address));
    }

    /// Reports an access of shared memory.
    pub(super) fn shared_access(&self, own: Stamp, effect: Effect, element: Option<Element>, conflict: Conflict) {
        let check = if matches!(conflict, Conflict::Unwritten) { Check::Unwritten } else { Check::SharedRace };
        self.access(check, own, effect, conflict, element);
    }

    fn access(&self, check: Check, own: Stamp, effect: Effect, conflict: Conflict, element: Option<Element>) {
        let actor = |stamp: Stamp, verb| Actor {
            verb,
            block: stamp.block,
            thread: stamp.thread(),
            location: self.sites.location(stamp.site()),
        };
        let verb = match effect {
            Effect::Read => "reads",
            Effect::Write => "writes",
            Effect::ReadWrite => "changes it by an atomic operation",
        };
        let first = match conflict {
            Conflict::Write(stamp) | Conflict::Scope(stamp) => Some(actor(stamp, "writes")),
            Conflict::Read(stamp) => Some(actor(stamp, "reads")),
            Conflict::Unwritten => None,
        };
        let second = actor(own, verb);
        let hint = match (&first, check) {
            (_, Check::Scope) => "blocks share this memory: the scope must be the device",
            (None, _) => "no thread of the block has written it",
            (Some(first), _) if first.block != second.block => "no fence and atomic operation orders the blocks",
            (Some(first), _) if first.thread / 32 == second.thread / 32 => {
                "one warp, but no `sync_warp` and no barrier between"
            }
            _ => "no barrier between",
        };
        self.add(check, hint, second, first, element);
    }

    /// Adds a finding, or counts it if the same lines have one.
    pub(super) fn add(
        &self,
        check: Check,
        hint: &'static str,
        second: Actor,
        first: Option<Actor>,
        element: Option<Element>,
    ) {
        let line = |actor: &Actor| (actor.location.file(), actor.location.line(), actor.location.column());
        let key = (check, line(&second), first.as_ref().map(line));
        let mut findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        let times = match findings.get_mut(&key) {
            Some((block, finding)) if *block <= second.block => {
                finding.times += 1;
                return;
            }
            Some((_, finding)) => finding.times + 1,
            None => 1,
        };
        let event = |actor: Actor| ThreadEvent {
            verb: actor.verb,
            block: self.grid.index_of(u64::from(actor.block)),
            thread: self.block.index_of(actor.thread as u64),
            location: actor.location.to_string(),
        };
        let (array, index) = element.map_or((None, None), |element| (Some(element.array), Some(element.index)));
        let block = second.block;
        let (kernel, second, first) = (self.kernel.clone(), event(second), first.map(event));
        findings.insert(key, (block, Finding { check, kernel, array, index, second, first, hint, times }));
    }
}
