//! Sites: source locations where lanes act, numbered per launch.

use std::collections::HashMap;
use std::panic::Location;
use std::sync::{Mutex, PoisonError};

use super::access::{AccessKind, key};

/// What lanes do at a site. Two different actions in one column of a line are two sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    Memory(AccessKind),
    Shuffle,
    Vote,
    SyncWarp,
    Barrier,
    LaunchDependents,
}

impl Action {
    /// The action's unique code.
    #[inline(always)]
    pub fn code(self) -> u32 {
        match self {
            Self::Memory(kind) => kind.code(),
            // Less than the code of any access: none has 0 bytes.
            Self::LaunchDependents => 3,
            Self::Shuffle => 4,
            Self::Vote => 5,
            Self::SyncWarp => 6,
            Self::Barrier => 7,
        }
    }
}

/// A site's number, the same on all cores of a launch.
pub(crate) type SiteId = u32;

/// The number of no site.
pub(crate) const UNKNOWN: SiteId = SiteId::MAX;

/// The sites of a launch.
#[derive(Default)]
pub(crate) struct SiteTable {
    known: Mutex<Known>,
}

/// A source position may have several `Location`s, one for each crate that inlines it. So the key is their content.
#[derive(Default)]
struct Known {
    locations: Vec<&'static Location<'static>>,
    ids: HashMap<(&'static str, u32, u32, Action), SiteId>,
}

impl SiteTable {
    fn id(&self, location: &'static Location<'static>, action: Action) -> SiteId {
        let known = &mut *self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (location.file(), location.line(), location.column(), action);
        *known.ids.entry(key).or_insert_with(|| {
            known.locations.push(location);
            known.locations.len() as SiteId - 1
        })
    }

    /// The location of a site.
    pub fn location(&self, id: SiteId) -> &'static Location<'static> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).locations[id as usize]
    }
}

/// One core's cache of a [`SiteTable`]. A hit takes no lock and compares no strings.
pub(crate) struct SiteCache {
    slots: Box<[Cached; SLOTS]>,
}

const SLOTS: usize = 256;
/// The shift that leaves as many bits of a hash as a slot's number has.
const SLOT_SHIFT: u32 = u64::BITS - SLOTS.ilog2();

#[derive(Clone, Copy)]
struct Cached {
    /// The [key](key()) of the location and the action; 0 marks an empty slot.
    key: u64,
    id: SiteId,
}

impl SiteCache {
    pub fn new() -> Self {
        Self { slots: Box::new([Cached { key: 0, id: 0 }; SLOTS]) }
    }

    /// The number of the site with this [key](key()), if it is in the cache, else [`UNKNOWN`]. Not an `Option`, which
    /// takes longer than the search without optimization.
    #[inline(always)]
    pub fn get(&self, key: u64) -> SiteId {
        let slot = &self.slots[slot_of(key)];
        if slot.key == key { slot.id } else { UNKNOWN }
    }

    /// The site's number from the table.
    #[cold]
    pub fn fill(&mut self, sites: &SiteTable, location: &'static Location<'static>, action: Action) -> SiteId {
        let (key, id) = (key(location, action.code()), sites.id(location, action));
        self.slots[slot_of(key)] = Cached { key, id };
        id
    }
}

#[inline(always)]
fn slot_of(key: u64) -> usize {
    // A multiplicative hash: neighbouring lines have neighbouring `Location`s and similar actions.
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> SLOT_SHIFT) as usize
}
