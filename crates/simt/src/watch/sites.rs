//! Places in the source, as small numbers.

use std::collections::HashMap;
use std::panic::Location;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use crate::lane::{Access, Space};

/// A kind of access: its space, what is done, and of how many bytes, in one number, which kernels have as a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Kind(u32);

impl Kind {
    #[inline(always)]
    pub const fn new(space: Space, access: Access, bytes: usize) -> Self {
        Self((space as u32) << 2 | access as u32 | (bytes as u32) << 3)
    }

    pub fn space(self) -> Space {
        if self.0 & 4 == 0 { Space::Global } else { Space::Shared }
    }

    #[inline(always)]
    pub fn access(self) -> Access {
        match self.0 & 3 {
            0 => Access::Load,
            1 => Access::Store,
            _ => Access::Atomic,
        }
    }

    pub fn bytes(self) -> usize {
        (self.0 >> 3) as usize
    }
}

/// A load or store of a single element of global memory, and where in the source: one word, which kernels have as a
/// constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ElementSite {
    /// The `Location`'s address plus the code of what is done: the bytes as a power of two, and `STORE`.
    code: *const Location<'static>,
}

const STORE: usize = 4;
const CODES: usize = 2 * STORE;
const _: () =
    assert!(align_of::<Location<'static>>().is_multiple_of(CODES), "a code fits below a `Location`'s address");

impl ElementSite {
    pub const NONE: Self = Self { code: ptr::null() };

    /// `None` if it is no load or store of 1, 2, 4 or 8 bytes.
    #[inline(always)]
    pub fn new(access: Access, bytes: usize, location: &'static Location<'static>) -> Option<Self> {
        let code = match access {
            Access::Load => 0,
            Access::Store => STORE,
            Access::Atomic => return None,
        };
        let is_element = matches!(bytes, 1 | 2 | 4 | 8);
        let code = code + bytes.trailing_zeros() as usize;
        is_element.then(|| Self { code: ptr::from_ref(location).wrapping_byte_add(code) })
    }

    #[inline]
    pub fn kind(self) -> Kind {
        let access = if self.code.addr() & STORE == 0 { Access::Load } else { Access::Store };
        Kind::new(Space::Global, access, 1 << (self.code.addr() % STORE))
    }

    #[inline]
    pub fn location(self) -> &'static Location<'static> {
        // SAFETY: `new` has made it of such a reference, by adding this.
        unsafe { &*self.code.wrapping_byte_sub(self.code.addr() % CODES) }
    }

    /// Whether an element can be at an address.
    #[inline(always)]
    pub fn is_aligned(self, address: usize) -> bool {
        address & ((1 << (self.code.addr() % STORE)) - 1) == 0
    }

    /// A number below `count`, a power of two, for a table.
    #[inline(always)]
    pub fn slot(self, count: usize) -> usize {
        // Neighbours in the source have `Location`s beside each other. What is done there is to count too, so it is
        // added where it changes the slot.
        let code = self.code.addr();
        code.wrapping_mul(CODES + 1) / CODES % count
    }
}

/// What lanes do at a place. Two different things in one column of a line are two sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    Memory(Kind),
    Shuffle,
    Vote,
    SyncWarp,
    Barrier,
    LaunchDependents,
}

impl Action {
    /// A number, another one for each action.
    #[inline]
    fn code(self) -> u64 {
        match self {
            Self::Memory(kind) => u64::from(kind.0),
            // Below the memory's: no access has 0 bytes.
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

/// The sites of a launch. One place may have several `Location`s, a copy in each crate that inlines it: they are
/// compared by what they say.
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
    slots: Box<[Cached; SLOTS]>,
}

const SLOTS: usize = 256;

/// A site that has been met.
#[derive(Clone, Copy)]
struct Cached {
    /// The `Location`'s address and the action's code in one; 0 is none.
    key: u64,
    id: SiteId,
}

impl SiteCache {
    pub fn new() -> Self {
        Self { slots: Box::new([Cached { key: 0, id: 0 }; SLOTS]) }
    }

    #[inline]
    pub fn number(&mut self, sites: &Sites, location: &'static Location<'static>, action: Action) -> SiteId {
        let key = key_of(location, action);
        let slot = &mut self.slots[slot_of(key)];
        if slot.key != key {
            look_up(slot, key, sites, location, action);
        }
        slot.id
    }
}

#[inline(always)]
fn key_of(location: &'static Location<'static>, action: Action) -> u64 {
    // `Location`s are the program's own data, whose addresses are the same from bit 48 on.
    ptr::from_ref(location).addr() as u64 ^ action.code() << 48
}

#[inline(always)]
fn slot_of(key: u64) -> usize {
    // Neighbours in the source have neighbouring `Location`s and actions: a sum of the two would often be another's.
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - SLOTS.ilog2())) as usize
}

#[cold]
fn look_up(slot: &mut Cached, key: u64, sites: &Sites, location: &'static Location<'static>, action: Action) {
    *slot = Cached { key, id: sites.number(location, action) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_site_says_what_is_done_and_where() {
        let here = Location::caller();
        for access in [Access::Load, Access::Store] {
            for bytes in [1, 2, 4, 8] {
                let site = ElementSite::new(access, bytes, here).unwrap();
                assert_eq!((site.kind(), site.location()), (Kind::new(Space::Global, access, bytes), here));
                assert!(site.is_aligned(3 * bytes) && (bytes == 1 || !site.is_aligned(3 * bytes + bytes / 2)));
            }
            assert_eq!(ElementSite::new(access, 16, here), None);
        }
        assert_eq!(ElementSite::new(Access::Atomic, 4, here), None);
    }

    #[test]
    fn sites_of_a_line_have_slots_of_their_own() {
        let here = Location::caller();
        let sites = [Access::Load, Access::Store].map(|access| ElementSite::new(access, 4, here).unwrap().slot(256));
        assert_ne!(sites[0], sites[1]);
    }
}
