//! The shared memory of the block that runs on this core.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::panic::Location;

use crate::watch::Element;

/// What shared memory holds before anybody writes it: no number that a kernel could want.
const UNWRITTEN: u8 = 0xA5;

/// One 16-byte unit, so that arrays are aligned for the widest access.
type Unit = UnsafeCell<u128>;

/// Static arrays, by their identity, and the launch's dynamic part.
pub(crate) struct SharedMemory {
    /// All that a block can have, always in one place: a kernel may keep an array's handle beyond its block, for
    /// another one that runs on the same core, and what it then accesses shall at least be shared memory.
    units: Box<[Unit]>,
    arrays: RefCell<Vec<Array>>,
    used: Cell<usize>,
    dynamic_bytes: Cell<usize>,
}

struct Array {
    id: u64,
    bytes: usize,
    offset: usize,
    named: Named,
}

/// What findings say of an array.
#[derive(Clone, Copy)]
pub(crate) struct Named {
    /// Bytes of an element.
    pub element: usize,
    /// Where it is declared.
    pub location: &'static Location<'static>,
}

/// A request for an array that cannot be met.
pub(crate) enum Refusal {
    /// The same array was asked for before, with this many bytes.
    OtherSize(usize),
    /// All arrays together would have this many bytes.
    TooLarge(usize),
}

/// The most shared memory that a block can have, whatever its launch's limits are.
pub(crate) const MOST_BYTES: usize = 1 << 20;

impl Default for SharedMemory {
    fn default() -> Self {
        // Zeroed by the system, page by page, as they are used.
        let units: Box<[u128]> = vec![0; MOST_BYTES / 16].into();
        // SAFETY: a cell has the layout of what is in it.
        let units = unsafe { Box::from_raw(Box::into_raw(units) as *mut [Unit]) };
        Self { units, arrays: RefCell::default(), used: Cell::new(0), dynamic_bytes: Cell::new(0) }
    }
}

impl SharedMemory {
    /// Forgets the arrays of the last block. The dynamic part comes first, at the start.
    pub(crate) fn begin_block(&self, dynamic_bytes: usize) {
        self.arrays.borrow_mut().clear();
        self.used.set(0);
        self.dynamic_bytes.set(dynamic_bytes);
        self.allocate(dynamic_bytes);
    }

    /// The array `id` of the block; the first to ask makes it.
    pub(crate) fn array(&self, id: u64, bytes: usize, named: Named, limit: usize) -> Result<*mut u8, Refusal> {
        let mut arrays = self.arrays.borrow_mut();
        if let Some(array) = arrays.iter().find(|array| array.id == id) {
            if array.bytes != bytes {
                return Err(Refusal::OtherSize(array.bytes));
            }
            return Ok(self.address(array.offset));
        }
        let total = self.used.get().saturating_add(bytes);
        if total > limit {
            return Err(Refusal::TooLarge(total));
        }
        let offset = self.allocate(bytes);
        arrays.push(Array { id, bytes, offset, named });
        Ok(self.address(offset))
    }

    /// How far an address is behind the start.
    pub(crate) fn offset(&self, address: usize) -> usize {
        address.wrapping_sub(self.address(0).addr())
    }

    /// The array and element at an offset. Bytes of dynamic memory are its elements: its users may see it as different
    /// ones.
    pub(crate) fn name_of(&self, offset: usize) -> Option<Element> {
        if offset < self.dynamic_bytes.get() {
            return Some(Element { array: "dynamic shared memory, in bytes".to_owned(), index: offset as u64 });
        }
        let arrays = self.arrays.borrow();
        let array = arrays.iter().find(|array| array.offset <= offset && offset - array.offset < array.bytes)?;
        let Named { element, location } = array.named;
        let name = format!("the shared array of {}:{}", location.file(), location.line());
        Some(Element { array: name, index: ((offset - array.offset) / element.max(1)) as u64 })
    }

    /// The dynamic part: address and bytes.
    pub(crate) fn dynamic(&self) -> (*mut u8, usize) {
        (self.address(0), self.dynamic_bytes.get())
    }

    /// Takes `bytes`, rounded up to whole units, and fills them; gives their offset. The caller has checked the limit.
    fn allocate(&self, bytes: usize) -> usize {
        let offset = self.used.get();
        let end = offset + bytes.next_multiple_of(16);
        for unit in &self.units[offset / 16..(end / 16).min(self.units.len())] {
            // SAFETY: nobody has the address of these units yet, in this block.
            unsafe { unit.get().write(u128::from_ne_bytes([UNWRITTEN; 16])) };
        }
        self.used.set(end);
        offset
    }

    fn address(&self, offset: usize) -> *mut u8 {
        // The pointer is of the whole slice, so that it is good for all of an array.
        UnsafeCell::raw_get(self.units.as_ptr()).cast::<u8>().wrapping_add(offset)
    }
}
