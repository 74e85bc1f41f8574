//! What the cores that run a launch have in common when it is watched.

use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Watch;
use super::arrays::Arrays;
use super::eras::Eras;
use super::releases::Releases;
use super::shadow::{Conflict, Effect, GlobalCells};
use super::sites::Sites;
use super::stamp::Stamp;
use crate::findings::{Check, Deed, Finding, Findings};
use crate::launch::Argument;
use crate::profile::{Counters, KernelProfile, Line, by_line};
use crate::{Dim3, Launch, Schedule};

/// A watched launch.
pub(crate) struct LaunchWatch {
    pub watch: Watch,
    /// Whether most accesses may be noted by a look at what is near alone: lanes do not change at accesses.
    pub may_be_near: bool,
    pub sites: Sites,
    pub eras: Eras,
    pub arrays: Arrays,
    pub global: GlobalCells,
    kernel: String,
    grid: Dim3,
    block: Dim3,
    arguments: Vec<NamedMemory>,
    releases: Mutex<Releases>,
    /// Held while an atomic operation is done and noted, so that both have one order.
    order: Mutex<()>,
    counters: Mutex<Vec<Counters>>,
    findings: Mutex<BTreeMap<FindingKey, (u32, Finding)>>,
}

/// Findings on the same lines are one: the check, and both places.
type FindingKey = (Check, Place, Option<Place>);
type Place = (&'static str, u32, u32);

struct NamedMemory {
    name: String,
    address: usize,
    bytes: usize,
    element: usize,
}

/// Who does something where.
#[derive(Clone, Copy)]
pub(crate) struct Subject {
    pub verb: &'static str,
    pub block: u32,
    pub thread: usize,
    pub location: &'static Location<'static>,
}

/// An element of an array.
pub(crate) struct Element {
    pub array: String,
    pub index: u64,
}

impl LaunchWatch {
    /// `has_one_core` promises that no two cores run its blocks.
    pub fn new(launch: &Launch<'_>, has_one_core: bool) -> Self {
        let named = |argument: &Argument<'_>| NamedMemory {
            name: argument.name.to_owned(),
            address: argument.address,
            bytes: argument.bytes,
            element: argument.element,
        };
        Self {
            watch: launch.watch,
            may_be_near: launch.schedule == Schedule::InOrder,
            sites: Sites::default(),
            eras: Eras::new(),
            arrays: Arrays::new(if launch.watch.checks { launch.arguments } else { &[] }, has_one_core),
            global: GlobalCells::new(),
            kernel: launch.kernel.to_owned(),
            grid: launch.grid,
            block: launch.block,
            arguments: launch.arguments.iter().map(named).collect(),
            releases: Mutex::default(),
            order: Mutex::default(),
            counters: Mutex::default(),
            findings: Mutex::default(),
        }
    }

    pub fn in_order(&self) -> MutexGuard<'_, ()> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn releases(&self) -> MutexGuard<'_, Releases> {
        self.releases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add_counters(&self, of_core: &[Counters]) {
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        if counters.len() < of_core.len() {
            counters.resize_with(of_core.len(), Counters::default);
        }
        counters.iter_mut().zip(of_core).for_each(|(sum, &own)| *sum += own);
    }

    /// What was counted.
    pub fn profile(&self) -> KernelProfile {
        let counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = counters.iter().enumerate().filter(|(_, counters)| **counters != Counters::default());
        let lines = lines.map(|(id, &counters)| {
            let location = self.sites.place(id as u32);
            Line { file: location.file(), line: location.line(), counters }
        });
        KernelProfile {
            kernel: self.kernel.clone(),
            grid: self.grid,
            block: self.block,
            launches: 1,
            lines: by_line(lines),
        }
    }

    /// What was found in blocks up to `last`, if anything was.
    pub fn findings(&self, last: u64) -> Option<Findings> {
        let findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<&(u32, Finding)> = findings.values().filter(|(block, _)| u64::from(*block) <= last).collect();
        all.sort_by_key(|(block, _)| *block);
        (!all.is_empty()).then(|| Findings { all: all.into_iter().map(|(_, finding)| finding.clone()).collect() })
    }

    /// The element of the kernel's arguments at an address.
    pub fn name_of(&self, address: usize) -> Option<Element> {
        let argument = self
            .arguments
            .iter()
            .find(|argument| argument.address <= address && address - argument.address < argument.bytes)?;
        let index = ((address - argument.address) / argument.element.max(1)) as u64;
        Some(Element { array: format!("`{}`", argument.name), index })
    }

    /// Reports an access that is in conflict with another, or with none.
    pub fn report_access(
        &self,
        check: Check,
        own: Stamp,
        effect: Effect,
        conflict: Conflict,
        element: Option<Element>,
    ) {
        let subject = |stamp: Stamp, verb| Subject {
            verb,
            block: stamp.block,
            thread: stamp.thread(),
            location: self.sites.place(stamp.site()),
        };
        let verb = match effect {
            Effect::Read => "reads",
            Effect::Write => "writes",
            Effect::ReadWrite => "changes it by an atomic operation",
        };
        let first = match conflict {
            Conflict::Write(stamp) | Conflict::Scope(stamp) => Some(subject(stamp, "writes")),
            Conflict::Read(stamp) => Some(subject(stamp, "reads")),
            Conflict::Unwritten => None,
        };
        let second = subject(own, verb);
        let hint = match (&first, check) {
            (_, Check::Scope) => "the scope must be the device where blocks meet",
            (None, _) => "nobody of the block has written it",
            (Some(first), _) if first.block != second.block => "no fence and atomic operation orders the blocks",
            (Some(first), _) if first.thread / 32 == second.thread / 32 => {
                "one warp, but no `sync_warp` and no barrier between"
            }
            _ => "no barrier between",
        };
        self.report(check, hint, second, first, element);
    }

    /// Keeps a finding, or counts it with one on the same lines.
    pub fn report(
        &self,
        check: Check,
        hint: &'static str,
        second: Subject,
        first: Option<Subject>,
        element: Option<Element>,
    ) {
        let place = |subject: &Subject| (subject.location.file(), subject.location.line(), subject.location.column());
        let key = (check, place(&second), first.as_ref().map(place));
        let mut findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        let times = match findings.get_mut(&key) {
            Some((block, finding)) if *block <= second.block => {
                finding.times += 1;
                return;
            }
            Some((_, finding)) => finding.times + 1,
            None => 1,
        };
        let deed = |subject: Subject| Deed {
            verb: subject.verb,
            block: self.grid.place(u64::from(subject.block)),
            thread: self.block.place(subject.thread as u64),
            location: subject.location.to_string(),
        };
        let (array, index) = element.map_or((None, None), |element| (Some(element.array), Some(element.index)));
        let block = second.block;
        let (kernel, second, first) = (self.kernel.clone(), deed(second), first.map(deed));
        findings.insert(key, (block, Finding { check, kernel, array, index, second, first, hint, times }));
    }
}
