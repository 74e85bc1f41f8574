//! The shared memory of the block that a core runs.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::panic::Location;

use crate::memory::Element;

/// The byte that fills unwritten shared memory, so that reading it gives no plausible value.
const UNWRITTEN: u8 = 0xA5;

/// 16 bytes, the alignment of the widest access.
type Unit = UnsafeCell<u128>;

/// The static arrays of a block, by their ids, and its dynamic shared memory.
pub(crate) struct SharedMemory {
    /// The maximum shared memory of a block, allocated once. A kernel may keep an array's handle beyond its block: an
    /// access through the handle is still inside this allocation.
    units: Box<[Unit]>,
    /// The address of `units`: computing it takes several calls without optimization.
    start: usize,
    arrays: RefCell<Vec<Array>>,
    used: Cell<usize>,
    dynamic_bytes: Cell<usize>,
}

struct Array {
    id: u64,
    bytes: usize,
    offset: usize,
    declaration: Declaration,
}

/// The description of an array, for findings.
#[derive(Clone, Copy)]
pub(crate) struct Declaration {
    /// The size of an element in bytes.
    pub element: usize,
    /// The source location of the declaration.
    pub location: &'static Location<'static>,
}

/// Why a block cannot have an array.
pub(crate) enum AllocationError {
    /// The array has another size: this many bytes.
    OtherSize(usize),
    /// All arrays together would exceed the limit, with this many bytes.
    TooLarge(usize),
}

/// The maximum shared memory of a block in bytes, whatever its launch's limits are.
pub(crate) const MAX_BYTES: usize = 1 << 20;

impl Default for SharedMemory {
    fn default() -> Self {
        // The system zeroes a page when it is first used.
        let units: Box<[u128]> = vec![0; MAX_BYTES / 16].into();
        // SAFETY: `UnsafeCell<u128>` has the layout of `u128`.
        let units = unsafe { Box::from_raw(Box::into_raw(units) as *mut [Unit]) };
        let start = units.as_ptr().addr();
        Self { units, start, arrays: RefCell::default(), used: Cell::new(0), dynamic_bytes: Cell::new(0) }
    }
}

impl SharedMemory {
    /// Drops the arrays of the last block. Dynamic shared memory comes first.
    pub(crate) fn begin_block(&self, dynamic_bytes: usize) {
        self.arrays.borrow_mut().clear();
        self.used.set(0);
        self.dynamic_bytes.set(dynamic_bytes);
        self.allocate(dynamic_bytes);
    }

    /// The array `id` of the block. The first call allocates it.
    pub(crate) fn array(
        &self,
        id: u64,
        bytes: usize,
        declaration: Declaration,
        limit: usize,
    ) -> Result<*mut u8, AllocationError> {
        let mut arrays = self.arrays.borrow_mut();
        // Each lane comes here for each array, and a loop is faster than an iterator without optimization.
        let known = arrays.as_slice();
        let mut position = 0;
        while position < known.len() {
            let array = &known[position];
            if array.id == id {
                if array.bytes != bytes {
                    return Err(AllocationError::OtherSize(array.bytes));
                }
                return Ok(self.address(array.offset));
            }
            position += 1;
        }
        let total = self.used.get().saturating_add(bytes);
        if total > limit {
            return Err(AllocationError::TooLarge(total));
        }
        let offset = self.allocate(bytes);
        arrays.push(Array { id, bytes, offset, declaration });
        Ok(self.address(offset))
    }

    /// The offset of an address from the start.
    #[inline(always)]
    pub(crate) fn offset(&self, address: usize) -> usize {
        address.wrapping_sub(self.start)
    }

    /// The element at an offset. Dynamic shared memory counts in bytes, because a kernel may use it as any type.
    pub(crate) fn element_at(&self, offset: usize) -> Option<Element> {
        if offset < self.dynamic_bytes.get() {
            return Some(Element { array: "dynamic shared memory, in bytes".to_owned(), index: offset as u64 });
        }
        let arrays = self.arrays.borrow();
        let array = arrays.iter().find(|array| array.offset <= offset && offset - array.offset < array.bytes)?;
        let Declaration { element, location } = array.declaration;
        let name = format!("the shared array of {}:{}", location.file(), location.line());
        Some(Element { array: name, index: ((offset - array.offset) / element.max(1)) as u64 })
    }

    /// The address and length of dynamic shared memory.
    pub(crate) fn dynamic(&self) -> (*mut u8, usize) {
        (self.address(0), self.dynamic_bytes.get())
    }

    /// Allocates `bytes` bytes, rounded up to whole units, and fills them. Returns their offset. The caller has checked
    /// the limit.
    fn allocate(&self, bytes: usize) -> usize {
        let offset = self.used.get();
        let end = offset + bytes.next_multiple_of(16);
        let units = &self.units[offset / 16..(end / 16).min(self.units.len())];
        // SAFETY: no lane of this block has the address of these units yet.
        unsafe { UnsafeCell::raw_get(units.as_ptr()).write_bytes(UNWRITTEN, units.len()) };
        self.used.set(end);
        offset
    }

    fn address(&self, offset: usize) -> *mut u8 {
        // Derived from the whole slice, so that it is valid for all bytes of an array.
        UnsafeCell::raw_get(self.units.as_ptr()).cast::<u8>().wrapping_add(offset)
    }
}
