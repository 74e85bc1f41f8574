//! What a lane did last, until there is time to count it.

use std::cell::Cell;

use super::requests::{Act, Entry};

/// The last accesses of a lane, in their order.
pub(crate) struct Tape {
    len: Cell<usize>,
    entries: [Cell<Entry>; ROOM],
}

/// Half a page: a warp's tapes lie in a core's nearest cache.
const ROOM: usize = 32;

impl Tape {
    pub fn new() -> Self {
        Self { len: Cell::new(0), entries: [const { Cell::new(Entry { address: 0, act: Act::NONE }) }; ROOM] }
    }

    /// Notes an access, if there is room for it. Gives whether there was.
    #[inline(always)]
    pub fn push(&self, entry: Entry) -> bool {
        let len = self.len.get();
        let room = self.entries.get(len);
        if let Some(room) = room {
            room.set(entry);
            self.len.set(len + 1);
        }
        room.is_some()
    }

    pub fn clear(&self) {
        self.len.set(0);
    }

    /// Empties it.
    pub fn take(&self) -> impl Iterator<Item = Entry> {
        self.entries[..self.len.replace(0)].iter().map(Cell::get)
    }
}
