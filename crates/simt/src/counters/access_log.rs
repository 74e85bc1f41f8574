//! The access logs: the accesses of each lane since its log was last read.
//!
//! Most accesses come from an instruction that has run before on this core. `exec` appends those to the lane's log by
//! [`AccessLogs::append`], without a call of the [`Recorder`](super::recorder::Recorder).

use std::cell::Cell;

use crate::dim::MAX_THREADS;
use crate::events::access::{Access, AccessKind, ElementAccess, Space};
use crate::events::sites::SiteId;

/// A memory instruction of the kernel: its site and kind. A site has one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub site: SiteId,
    pub kind: AccessKind,
}

impl Instruction {
    pub const NONE: Self = Self { site: 0, kind: AccessKind::new(Space::Global, Access::Load, 0) };

    #[inline(always)]
    pub fn at(self, address: usize) -> LogEntry {
        LogEntry { address: address as u64, instruction: self }
    }
}

/// One access of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogEntry {
    pub address: u64,
    pub instruction: Instruction,
}

/// Entries of a lane's log. The log takes about half a KiB, so that the logs of a warp fit in the L1 cache.
const CAPACITY: usize = 32;

/// The accesses of one lane, in program order.
pub(crate) struct AccessLog {
    len: Cell<usize>,
    entries: [Cell<LogEntry>; CAPACITY],
}

impl AccessLog {
    fn new() -> Self {
        Self {
            len: Cell::new(0),
            entries: [const { Cell::new(LogEntry { address: 0, instruction: Instruction::NONE }) }; CAPACITY],
        }
    }

    /// Appends an access. `false` if the log is full.
    #[inline(always)]
    pub fn push(&self, entry: LogEntry) -> bool {
        let len = self.len.get();
        let free = self.entries.get(len);
        if let Some(free) = free {
            free.set(entry);
            self.len.set(len + 1);
        }
        free.is_some()
    }

    fn clear(&self) {
        self.len.set(0);
    }

    /// Empties the log and yields what it held.
    pub fn take(&self) -> impl Iterator<Item = LogEntry> {
        self.entries[..self.len.replace(0)].iter().map(Cell::get)
    }
}

/// Slots of the table of instructions.
const SLOTS: usize = 256;

/// The logs of a core's lanes, and a table of the instructions that have run on it.
pub(crate) struct AccessLogs {
    is_on: Cell<bool>,
    logs: Box<[AccessLog]>,
    /// The last instruction of each hash. All are empty unless lanes run in order: in a random order, each access must
    /// reach the scheduler.
    instructions: [KnownInstruction; SLOTS],
}

struct KnownInstruction {
    element: Cell<ElementAccess>,
    instruction: Cell<Instruction>,
}

impl KnownInstruction {
    const fn empty() -> Self {
        Self { element: Cell::new(ElementAccess::NONE), instruction: Cell::new(Instruction::NONE) }
    }
}

impl AccessLogs {
    pub fn new() -> Self {
        Self {
            is_on: Cell::new(false),
            logs: (0..MAX_THREADS).map(|_| AccessLog::new()).collect(),
            instructions: [const { KnownInstruction::empty() }; SLOTS],
        }
    }

    /// Whether accesses are counted.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.is_on.get()
    }

    /// Appends an access by an instruction that is in the table. Returns false if the instruction is unknown, the
    /// address is not aligned or the log is full: then the recorder must take the access.
    #[inline(always)]
    pub fn append(&self, thread: usize, element: ElementAccess, address: usize) -> bool {
        let known = self.slot(element);
        known.element.get() == element
            && element.is_aligned(address)
            && self.logs[thread % MAX_THREADS].push(known.instruction.get().at(address))
    }

    #[inline(always)]
    fn slot(&self, element: ElementAccess) -> &KnownInstruction {
        &self.instructions[element.slot::<SLOTS>()]
    }

    /// A thread's log.
    pub fn log(&self, thread: usize) -> &AccessLog {
        &self.logs[thread]
    }

    /// Puts an instruction into the table.
    pub fn remember(&self, element: ElementAccess, instruction: Instruction) {
        let slot = self.slot(element);
        slot.element.set(element);
        slot.instruction.set(instruction);
    }

    /// Begins a block. A block that ended with a fault may have left entries, which are dropped.
    pub fn begin_block(&self, is_on: bool, threads: usize) {
        self.is_on.set(is_on);
        if is_on {
            self.logs[..threads].iter().for_each(AccessLog::clear);
        }
    }

    /// Empties the table.
    pub fn forget(&self) {
        self.instructions.iter().for_each(|slot| slot.element.set(ElementAccess::NONE));
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::*;

    #[test]
    fn accesses_by_a_known_instruction_are_logged_while_there_is_space() {
        let logs = AccessLogs::new();
        let element = ElementAccess::new(Access::Store, 4, Location::caller()).unwrap();
        let instruction = Instruction { site: 7, kind: element.kind() };
        assert!(!logs.append(33, element, 64), "unknown");
        logs.remember(element, instruction);
        logs.begin_block(true, 64);
        assert!(!logs.append(33, element, 4098), "not a multiple of 4");
        let len = (0..1000).take_while(|i| logs.append(33, element, 4 * i)).count();
        let expected: Vec<_> = (0..len).map(|i| instruction.at(4 * i)).collect();
        assert!(len > 1 && logs.log(32).take().next().is_none());
        assert_eq!(logs.log(33).take().collect::<Vec<_>>(), expected);
        assert!(logs.append(33, element, 64));
        logs.begin_block(true, 64);
        assert_eq!(logs.log(33).take().next(), None);
        logs.forget();
        assert!(!logs.append(33, element, 64), "forgotten");
    }
}
