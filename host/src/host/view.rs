//! Views of arrays in host memory.

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use cuda_std::element::Element;

use crate::array::MAX_RANK;
use crate::{Error, Layout};

const OPERATION: &str = "view an array";

/// An array in host memory, to read: of any layout, aligned or not.
///
/// Slices and vectors are views, too, of one axis; and so are views of `ndarray`, with that feature.
pub struct View<'a, T> {
    /// The first byte of the memory that has the elements.
    base: NonNull<u8>,
    /// All of the memory, if what lies between elements may be read, too.
    whole: Option<&'a [u8]>,
    /// Strides and offset count bytes from the base. All elements of it can be read while the view exists.
    layout: Layout,
    elements: PhantomData<&'a [T]>,
}

// SAFETY: a view reads elements, as a slice of them does.
unsafe impl<T: Sync> Send for View<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for View<'_, T> {}

impl<T> Clone for View<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for View<'_, T> {}

impl<'a, T: Element> View<'a, T> {
    /// The elements of a slice in this layout.
    ///
    /// # Errors
    /// The slice does not have all elements of the layout.
    pub fn new(elements: &'a [T], layout: &Layout) -> Result<Self, Error> {
        let (found, minimum) = (elements.len(), layout.required_len());
        if found < minimum {
            return Err(Error::TooShort { operation: OPERATION, what: "the slice", found, minimum });
        }
        let size = size_of::<T>() as isize;
        let mut strides = [0; MAX_RANK];
        for (axis, &extent) in layout.extents().iter().enumerate() {
            // Other strides are not used, and could overflow.
            if extent > 1 && !layout.is_empty() {
                strides[axis] = layout.strides()[axis] * size;
            }
        }
        let start = if layout.is_empty() { 0 } else { layout.offset() * size_of::<T>() };
        let layout = Layout::strided(layout.extents(), &strides[..layout.rank()], start)?;
        Ok(Self::of_bytes(bytemuck::cast_slice(elements), layout))
    }

    /// Elements in memory at any address, as their bytes. `strides` count bytes, and need not be multiples of an
    /// element's size. `start` is the position of the first byte of the element whose indices are all 0.
    ///
    /// ```
    /// use warpfold::host;
    ///
    /// // Records of a byte and an `i16`, packed.
    /// let records = [9, 1, 0, 9, 2, 0, 9, 3, 0];
    /// let numbers = host::View::<i16>::from_bytes(&records, &[3], &[3], 1)?;
    /// assert_eq!(host::sum(&numbers)?, 6);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// An element is not within the bytes, there are more than 32 axes, or not one stride for each.
    pub fn from_bytes(bytes: &'a [u8], extents: &[usize], strides: &[isize], start: usize) -> Result<Self, Error> {
        let is_empty = extents.contains(&0);
        let mut used = [0; MAX_RANK];
        for ((used, &stride), &extent) in used.iter_mut().zip(strides).zip(extents) {
            *used = if extent > 1 && !is_empty { stride } else { 0 };
        }
        let strides =
            if strides.len() == extents.len() { used.get(..strides.len()).unwrap_or(strides) } else { strides };
        let layout = Layout::strided(extents, strides, if is_empty { 0 } else { start })?;
        if let Some((_, last)) = layout.positions() {
            let (found, minimum) = (bytes.len(), last as usize + size_of::<T>());
            if found < minimum {
                return Err(Error::TooShort { operation: OPERATION, what: "the memory", found, minimum });
            }
        }
        Ok(Self::of_bytes(bytes, layout))
    }

    fn of_bytes(bytes: &'a [u8], layout: Layout) -> Self {
        Self { base: NonNull::from(bytes).cast(), whole: Some(bytes), layout, elements: PhantomData }
    }

    /// Elements between which others may write.
    ///
    /// # Safety
    /// `first` is the address of the element whose indices are all 0. All elements can be read during `'a`, in which
    /// nobody writes them. `strides` count elements.
    #[cfg(feature = "ndarray")]
    pub(super) unsafe fn of_elements(first: NonNull<T>, extents: &[usize], strides: &[isize]) -> Result<Self, Error> {
        let size = size_of::<T>() as isize;
        let is_empty = extents.contains(&0);
        let (mut used, mut start) = (vec![0; strides.len()], 0);
        for ((used, &stride), &extent) in used.iter_mut().zip(strides).zip(extents) {
            if extent > 1 && !is_empty {
                *used = stride * size;
                start -= (*used * (extent as isize - 1)).min(0);
            }
        }
        let layout = Layout::strided(extents, &used, start as usize)?;
        // SAFETY: this is the address of the element with the lowest one, in the same allocation.
        let base = unsafe { first.cast::<u8>().offset(-start) };
        Ok(Self { base, whole: None, layout, elements: PhantomData })
    }

    /// The number of elements along each axis.
    pub fn extents(&self) -> &[usize] {
        self.layout.extents()
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.layout.rank()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.layout.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.layout.is_empty()
    }

    /// The address of the first byte of the memory that has the elements.
    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// The memory that has the elements, if what lies between them may be read, too.
    pub(super) fn whole(&self) -> Option<&'a [u8]> {
        self.whole
    }

    /// Where the elements are: strides and offset count bytes.
    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The bits of the elements as those of another type.
    pub(super) fn cast<U: Element>(&self) -> View<'a, U> {
        const { assert!(size_of::<U>() == size_of::<T>()) };
        View { base: self.base, whole: self.whole, layout: self.layout, elements: PhantomData }
    }

    /// The same memory in another layout, of which it has all elements.
    pub(super) fn with_layout(&self, layout: Layout) -> Self {
        Self { layout, ..*self }
    }

    /// The slice that has the elements, and others, if they are aligned and their distances are multiples of their
    /// size.
    pub(super) fn as_slice(&self) -> Option<&'a [T]> {
        let is_whole = |distance: usize| distance.is_multiple_of(size_of::<T>());
        if !is_whole(self.layout.offset())
            || !self.layout.strides().iter().all(|stride| is_whole(stride.unsigned_abs()))
        {
            return None;
        }
        let whole = self.whole?;
        bytemuck::try_cast_slice(&whole[..whole.len() / size_of::<T>() * size_of::<T>()]).ok()
    }
}

impl<T> fmt::Debug for View<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("byte_layout", &self.layout).finish_non_exhaustive()
    }
}
