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

/// The instruction that loads or stores one element of global memory: its operation, size and location in one word.
/// Kernels hold it as a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ElementAccess {
    /// The `Location`'s address. Its low bits hold log2 of the bytes, and `STORE` for a store.
    code: *const Location<'static>,
}

const STORE: usize = 4;
const CODES: usize = 2 * STORE;
const _: () =
    assert!(align_of::<Location<'static>>().is_multiple_of(CODES), "a code fits below a `Location`'s address");

impl ElementAccess {
    pub const NONE: Self = Self { code: ptr::null() };

    /// `None` unless the access is a load or store of 1, 2, 4 or 8 bytes.
    #[inline(always)]
    pub fn new(access: Access, bytes: usize, location: &'static Location<'static>) -> Option<Self> {
        // The sizes first: most vectors have 16 bytes. Without optimization, `bool::then` takes longer than the rest.
        let log2_bytes = match bytes {
            1 => 0,
            2 => 1,
            4 => 2,
            8 => 3,
            _ => return None,
        };
        let code = match access {
            Access::Load => log2_bytes,
            Access::Store => log2_bytes | STORE,
            Access::Atomic => return None,
        };
        Some(Self { code: ptr::from_ref(location).wrapping_byte_add(code) })
    }

    #[inline]
    pub fn kind(self) -> AccessKind {
        let access = if self.code.addr() & STORE == 0 { Access::Load } else { Access::Store };
        AccessKind::new(Space::Global, access, 1 << (self.code.addr() % STORE))
    }

    #[inline]
    pub fn location(self) -> &'static Location<'static> {
        // SAFETY: `new` made `code` from a `&'static Location` by adding the code that is subtracted here.
        unsafe { &*self.code.wrapping_byte_sub(self.code.addr() % CODES) }
    }

    /// Whether both are the same instruction.
    #[inline(always)]
    #[allow(clippy::ptr_eq, reason = "`ptr::eq` and `==` are calls without optimization")]
    pub fn is(self, other: Self) -> bool {
        self.code as usize == other.code as usize
    }

    /// Whether the address is a multiple of the element's size.
    #[inline(always)]
    pub fn is_aligned(self, address: usize) -> bool {
        address & ((1 << (self.code.addr() % STORE)) - 1) == 0
    }

    /// The slot of a hash table of `count` slots, a power of two.
    #[inline(always)]
    pub fn slot(self, count: usize) -> usize {
        // Neighbouring `Location`s lie next to each other in memory. The operation and size must change the slot too,
        // so the code is added above the bits that the division drops.
        let code = self.code.addr();
        code.wrapping_mul(CODES + 1) / CODES % count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_access_has_its_kind_and_location() {
        let here = Location::caller();
        for access in [Access::Load, Access::Store] {
            for bytes in [1, 2, 4, 8] {
                let element = ElementAccess::new(access, bytes, here).unwrap();
                let kind = AccessKind::new(Space::Global, access, bytes);
                assert_eq!((element.kind(), element.location()), (kind, here));
                assert!(element.is_aligned(3 * bytes) && (bytes == 1 || !element.is_aligned(3 * bytes + bytes / 2)));
            }
            assert_eq!(ElementAccess::new(access, 16, here), None);
        }
        assert_eq!(ElementAccess::new(Access::Atomic, 4, here), None);
    }

    #[test]
    fn a_load_and_a_store_of_one_line_have_different_slots() {
        let here = Location::caller();
        let slots = [Access::Load, Access::Store].map(|access| ElementAccess::new(access, 4, here).unwrap().slot(256));
        assert_ne!(slots[0], slots[1]);
    }
}
