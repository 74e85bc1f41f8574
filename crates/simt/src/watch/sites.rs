//! Places in the source, as small numbers.

use std::cell::Cell;
use std::collections::HashMap;
use std::panic::Location;
use std::sync::{Mutex, PoisonError};

use crate::lane::{Access, Space};

/// What lanes do at a place. Two different things in one column of a line are two sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    Memory(Space, Access, u8),
    Shuffle,
    Vote,
    SyncWarp,
    Barrier,
}

/// A site's number, the same on all cores of a launch.
pub(crate) type SiteId = u32;

/// The sites of a launch. One place may have several `Location`s, a copy in each crate that inlines it: they are compared by
/// what they say.
#[derive(Default)]
pub(crate) struct Sites {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    places: Vec<&'static Location<'static>>,
    numbers: HashMap<(&'static str, u32, u32, Action), SiteId>,
}

impl Sites {
    fn number(&self, location: &'static Location<'static>, action: Action) -> SiteId {
        let known = &mut *self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (location.file(), location.line(), location.column(), action);
        *known.numbers.entry(key).or_insert_with(|| {
            known.places.push(location);
            known.places.len() as SiteId - 1
        })
    }

    /// Where the site with that number is.
    pub fn place(&self, id: SiteId) -> &'static Location<'static> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).places[id as usize]
    }
}

/// A core's memory of the sites it has met last, which saves it the lock and the comparing of texts.
pub(crate) struct SiteCache {
    slots: Box<[Cell<Option<Cached>>; SLOTS]>,
}

const SLOTS: usize = 256;

#[derive(Clone, Copy)]
struct Cached {
    location: &'static Location<'static>,
    action: Action,
    id: SiteId,
}

impl SiteCache {
    pub fn new() -> Self {
        Self { slots: Box::new([const { Cell::new(None) }; SLOTS]) }
    }

    pub fn number(&self, sites: &Sites, location: &'static Location<'static>, action: Action) -> SiteId {
        let address = std::ptr::from_ref(location).addr();
        let kind = match action {
            Action::Memory(_, access, _) => access as usize,
            _ => 7,
        };
        // A `Location` is 24 bytes.
        let slot = &self.slots[(address / 8 + kind) % SLOTS];
        if let Some(cached) = slot.get()
            && std::ptr::eq(cached.location, location)
            && cached.action == action
        {
            return cached.id;
        }
        let id = sites.number(location, action);
        slot.set(Some(Cached { location, action, id }));
        id
    }
}
