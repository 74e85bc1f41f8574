//! Elements in host memory, as blocks of neighbours.

use std::ptr::NonNull;

use cuda_std::element::Element;

use super::View;

/// The number of elements that are read at a time: a buffer of them is in the L1 cache.
pub(super) const BLOCK: usize = 1024;

/// The memory of an input.
#[derive(Clone, Copy)]
pub(super) struct Memory<'a, T> {
    base: NonNull<u8>,
    /// All elements, if what lies between them may be read, too: as a slice if they are aligned, else as bytes.
    pub slice: Option<&'a [T]>,
    pub bytes: Option<&'a [u8]>,
}

// SAFETY: it reads elements, as a slice of them does.
unsafe impl<T: Sync> Send for Memory<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Memory<'_, T> {}

impl<'a, T: Element> Memory<'a, T> {
    pub fn of(view: &View<'a, T>) -> Self {
        Self { base: view.base(), slice: view.as_slice(), bytes: view.whole() }
    }

    /// `len` elements, at most [`BLOCK`]: the first at byte `start`, and each `stride` bytes after the one before it.
    /// Those in memory if they are neighbours and aligned, else copies in `buffer`.
    ///
    /// # Safety
    /// They are elements of the view.
    #[inline(always)]
    pub unsafe fn block<'b>(&self, start: isize, stride: isize, len: usize, buffer: &'b mut [T]) -> &'b [T]
    where
        'a: 'b,
    {
        let size = size_of::<T>() as isize;
        // SAFETY: the elements are of the view, which reads from its base on.
        let first = unsafe { self.base.as_ptr().offset(start) }.cast::<T>();
        if stride == size && first.is_aligned() {
            // SAFETY: neighbouring elements that can be read during `'a`, whose bits are values.
            return unsafe { std::slice::from_raw_parts(first, len) };
        }
        let buffer = &mut buffer[..len];
        if stride == 2 * size {
            // The compiler has better instructions for this stride.
            for (i, to) in buffer.iter_mut().enumerate() {
                // SAFETY: an element of the view.
                *to = unsafe { first.add(2 * i).read_unaligned() };
            }
        } else {
            for (i, to) in buffer.iter_mut().enumerate() {
                // SAFETY: as above.
                *to = unsafe { first.byte_offset(i as isize * stride).read_unaligned() };
            }
        }
        buffer
    }
}
