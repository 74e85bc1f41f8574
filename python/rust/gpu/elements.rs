//! Elements in the memory of another library.

use warpfold::interop::{self, Borrowed, BorrowedMut};
use warpfold::{Error, Gpu, Stored};

/// Where elements are on a device.
#[derive(Clone, Debug)]
pub struct Elements {
    /// The address of the element with all indices 0.
    pub address: u64,
    pub extents: Vec<usize>,
    /// In elements.
    pub strides: Vec<isize>,
    /// Whether the array's library has just allocated the memory, for this call.
    pub is_new: bool,
}

impl Elements {
    /// Elements in C order without gaps.
    pub fn contiguous(address: u64, extents: &[usize]) -> Self {
        let mut stride = 1_isize;
        let mut strides: Vec<isize> = Vec::with_capacity(extents.len());
        for &extent in extents.iter().rev() {
            strides.push(stride);
            stride = stride.wrapping_mul(extent.max(1) as isize);
        }
        strides.reverse();
        Self { address, extents: extents.to_vec(), strides, is_new: false }
    }

    /// The same elements with the axes in another order.
    pub fn permuted(&self, order: &[usize]) -> Self {
        let extents = order.iter().map(|&axis| self.extents[axis]).collect();
        let strides = order.iter().map(|&axis| self.strides[axis]).collect();
        Self { address: self.address, extents, strides, is_new: self.is_new }
    }

    /// Each element's part of `1 / parts` of its bytes, `index` parts after its first.
    pub fn part(&self, parts: usize, index: usize, part_size: usize) -> Self {
        let strides = self.strides.iter().map(|stride| stride * parts as isize).collect();
        let address = self.address + (index * part_size) as u64;
        Self { address, extents: self.extents.clone(), strides, is_new: self.is_new }
    }

    pub fn len(&self) -> usize {
        self.extents.iter().product()
    }

    pub fn is_contiguous(&self) -> bool {
        let contiguous = Self::contiguous(0, &self.extents).strides;
        let mut axes = self.extents.iter().zip(self.strides.iter().zip(&contiguous));
        self.len() == 0 || axes.all(|(extent, (stride, contiguous))| *extent == 1 || stride == contiguous)
    }

    /// The elements, to read.
    pub fn borrow<T: Stored>(&self, gpu: &Gpu) -> Result<Borrowed<'_, T>, Error> {
        // SAFETY: the array's library has given this address, these extents and strides, and a Python object of the
        // call keeps the memory. Work on it is in the library's stream, in which the library orders later uses, or
        // `Work` waits for it. That nobody writes meanwhile is the caller's part, as with the library's own functions.
        unsafe { interop::borrow(gpu, self.address, &self.extents, &self.strides) }
    }

    /// The elements, to write.
    pub fn borrow_mut<T: Stored>(&mut self, gpu: &Gpu) -> Result<BorrowedMut<'_, T>, Error> {
        let Self { address, extents, strides, is_new } = self;
        // SAFETY: as in `borrow`; the array is new, or the argument `out`, which is writable and overlaps no input. A
        // new array is on the device that its library was told.
        unsafe {
            if *is_new {
                interop::borrow_mut_unchecked(gpu, *address, extents, strides)
            } else {
                interop::borrow_mut(gpu, *address, extents, strides)
            }
        }
    }
}
