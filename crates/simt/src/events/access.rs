//! Memory accesses.

use std::panic::Location;
use std::ptr;

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// The device's memory, which all blocks share.
    Global,
    /// The block's shared memory.
    Shared,
}

/// The effect of an access on memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Reads it.
    Load,
    /// Writes it.
    Store,
    /// Reads and writes it in one step.
    Atomic,
}

/// The space, operation and size of an access, packed into one number. Kernels hold it as a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AccessKind(u32);

impl AccessKind {
    #[inline(always)]
    pub const fn new(space: Space, access: Access, bytes: usize) -> Self {
        Self((space as u32) << 2 | access as u32 | (bytes as u32) << 3)
    }

    #[inline(always)]
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

    #[inline(always)]
    pub fn bytes(self) -> usize {
        (self.0 >> 3) as usize
    }

    /// The kind's unique code.
    #[inline(always)]
    pub fn code(self) -> u32 {
        self.0
    }
}

/// A memory access by one thread.
#[derive(Clone, Copy)]
pub(crate) struct MemoryAccess {
    /// The thread's linear index in its block.
    pub thread: usize,
    pub kind: AccessKind,
    /// The address in global memory, or the offset in the block's shared memory.
    pub address: usize,
    pub location: &'static Location<'static>,
}

/// An instruction that loads or stores an element of global memory, or loads a vector of 16 bytes. One word holds its
/// location and kind. Kernels hold it as a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ElementAccess(u64);

impl ElementAccess {
    pub const NONE: Self = Self(0);

    /// `bytes` is a power of two. `None` unless the access is a load of up to 16 bytes, or a store of up to 8.
    #[inline(always)]
    pub fn new(access: Access, bytes: usize, location: &'static Location<'static>) -> Option<Self> {
        let is_load = matches!(access, Access::Load);
        if is_load && bytes <= 16 || matches!(access, Access::Store) && bytes <= 8 {
            Some(Self(key(location, AccessKind::new(Space::Global, access, bytes).code())))
        } else {
            None
        }
    }

    #[inline(always)]
    pub fn kind(self) -> AccessKind {
        AccessKind((self.0 >> CODE_SHIFT) as u32)
    }

    /// Whether both are the same instruction.
    #[inline(always)]
    pub fn is(self, other: Self) -> bool {
        self.0 == other.0
    }

    /// Whether the address is a multiple of the access's size.
    #[inline(always)]
    pub fn is_aligned(self, address: usize) -> bool {
        address & (self.kind().bytes() - 1) == 0
    }

    /// The slot of a hash table of `COUNT` slots, a power of two. It is a constant, because without optimization a
    /// remainder by anything else is a division.
    #[inline(always)]
    pub fn slot<const COUNT: usize>(self) -> usize {
        // Neighbouring `Location`s lie next to each other in memory, at multiples of 8. The kind must change the slot,
        // too.
        (self.0 / 8 + (self.0 >> CODE_SHIFT)) as usize % COUNT
    }
}

/// The bits of a [key](key()) below the code.
const CODE_SHIFT: u32 = 48;

/// A location and the code of what happens there, in one word. No two locations and codes of less than 2^16 have the
/// same one: `Location`s are static data of the program, whose addresses have 48 bits.
#[inline(always)]
pub(crate) fn key(location: &'static Location<'static>, code: u32) -> u64 {
    // Shifts and casts, because this is a part of each access without optimization.
    ptr::from_ref(location) as usize as u64 | (code as u64) << CODE_SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_access_has_its_kind() {
        let here = Location::caller();
        for access in [Access::Load, Access::Store] {
            for bytes in [1, 2, 4, 8] {
                let element = ElementAccess::new(access, bytes, here).unwrap();
                assert_eq!(element.kind(), AccessKind::new(Space::Global, access, bytes));
                assert!(element.is_aligned(3 * bytes) && (bytes == 1 || !element.is_aligned(3 * bytes + bytes / 2)));
            }
        }
        let vector = ElementAccess::new(Access::Load, 16, here).unwrap();
        assert_eq!(vector.kind(), AccessKind::new(Space::Global, Access::Load, 16));
        assert!(vector.is_aligned(48) && !vector.is_aligned(56));
        assert_eq!(ElementAccess::new(Access::Store, 16, here), None);
        assert_eq!(ElementAccess::new(Access::Atomic, 4, here), None);
    }

    #[test]
    fn a_load_and_a_store_of_one_line_have_different_slots() {
        let here = Location::caller();
        let slots =
            [Access::Load, Access::Store].map(|access| ElementAccess::new(access, 4, here).unwrap().slot::<256>());
        assert_ne!(slots[0], slots[1]);
    }
}
