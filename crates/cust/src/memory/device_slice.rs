//! Slices of device memory.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeToInclusive;
use std::ops::{Bound, Index, IndexMut, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo};
use std::ptr::{self, NonNull};

use super::copy::{self, AsyncCopyDestination, CopyDestination};
use super::{DeviceBuffer, DeviceCopy, DevicePointer};
use crate::driver;
use crate::error::CudaResult;
use crate::private::Sealed;
use crate::stream::Stream;

/// A slice of device memory, borrowed as `&DeviceSlice<T>` or `&mut DeviceSlice<T>`.
///
/// A `DeviceSlice` is to a [`DeviceBuffer`] what a slice is to a `Vec`. The synchronous operations require that a
/// context is current on the thread, of any device that can access the memory.
///
/// ```no_run
/// use cust::prelude::*;
///
/// # fn halves() -> Result<(), cust::error::CudaError> {
/// let mut buffer = [1_u32, 2, 3, 4].as_dbuf()?;
/// let (left, right) = buffer.split_at_mut(2);
/// left.copy_from(&*right)?;
/// assert_eq!(buffer[1..].as_host_vec()?, [4, 3, 4]);
/// # Ok(())
/// # }
/// ```
// Its elements have size 0. So a reference has the device address and the length, but covers no host memory at that
// address.
#[repr(transparent)]
pub struct DeviceSlice<T: DeviceCopy>([Element<T>]);

/// A placeholder of size 0 for an element on the device.
#[repr(transparent)]
struct Element<T>(PhantomData<T>);

impl<T: DeviceCopy> DeviceSlice<T> {
    /// The number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the slice has no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The address of the slice; null if the slice has no bytes.
    #[inline]
    pub fn as_device_ptr(&self) -> DevicePointer<T> {
        match self.bytes() {
            0 => DevicePointer::null(),
            _ => DevicePointer::from_raw(self.0.as_ptr().addr() as u64),
        }
    }

    /// The size of the slice in bytes.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        size_of::<T>() * self.len()
    }

    /// The pointer to the slice of `len` elements at an address.
    fn pointer(pointer: DevicePointer<T>, len: usize) -> *mut Self {
        let address = NonNull::new(ptr::without_provenance_mut(pointer.as_raw() as usize));
        let first: NonNull<Element<T>> = address.unwrap_or(NonNull::dangling());
        ptr::slice_from_raw_parts_mut(first.as_ptr(), len) as *mut Self
    }

    /// The slice of `len` elements at an address.
    ///
    /// # Safety
    /// During `'a`, `len` initialized elements of device memory are at the address. They are not freed, and not written
    /// except through slices of this memory.
    pub unsafe fn from_raw_parts<'a>(pointer: DevicePointer<T>, len: usize) -> &'a Self {
        // SAFETY: the elements have size 0, and the pointer is not null and aligned to 1.
        unsafe { &*Self::pointer(pointer, len) }
    }

    /// The mutable slice of `len` elements at an address.
    ///
    /// # Safety
    /// During `'a`, `len` initialized elements of device memory are at the address. They are not freed, and accessed
    /// only through this slice.
    pub unsafe fn from_raw_parts_mut<'a>(pointer: DevicePointer<T>, len: usize) -> &'a mut Self {
        // SAFETY: the elements have size 0, so no two references overlap. The pointer is not null and aligned to 1.
        unsafe { &mut *Self::pointer(pointer, len) }
    }

    /// A subslice. An index selects a slice of one element.
    ///
    /// # Panics
    /// The index or range is out of bounds.
    #[allow(clippy::should_implement_trait, reason = "Rust-CUDA's name; the trait is implemented, too")]
    pub fn index(&self, index: impl DeviceSliceIndex) -> &Self {
        let range = index.range(self.len());
        // SAFETY: a part of this slice, borrowed for as long as this slice is.
        unsafe { Self::from_raw_parts(self.as_device_ptr().wrapping_add(range.start), range.len()) }
    }

    /// A subslice. An index selects a slice of one element.
    ///
    /// # Panics
    /// The index or range is out of bounds.
    #[allow(clippy::should_implement_trait, reason = "as `index`")]
    pub fn index_mut(&mut self, index: impl DeviceSliceIndex) -> &mut Self {
        let range = index.range(self.len());
        // SAFETY: a part of this slice, borrowed for as long as this slice is.
        unsafe { Self::from_raw_parts_mut(self.as_device_ptr().wrapping_add(range.start), range.len()) }
    }

    /// The first `mid` elements, and the rest.
    ///
    /// # Panics
    /// The slice has fewer than `mid` elements.
    pub fn split_at(&self, mid: usize) -> (&Self, &Self) {
        (self.index(..mid), self.index(mid..))
    }

    /// The first `mid` elements, and the rest.
    ///
    /// # Panics
    /// The slice has fewer than `mid` elements.
    pub fn split_at_mut(&mut self, mid: usize) -> (&mut Self, &mut Self) {
        let others = (mid..).range(self.len());
        let first = self.as_device_ptr();
        // SAFETY: two disjoint parts of this slice, borrowed for as long as this slice is.
        unsafe {
            (
                Self::from_raw_parts_mut(first, mid),
                Self::from_raw_parts_mut(first.wrapping_add(others.start), others.len()),
            )
        }
    }

    /// Copies the elements to the host.
    ///
    /// # Errors
    /// No context is current, or an error of the driver.
    pub fn as_host_vec(&self) -> CudaResult<Vec<T>> {
        let mut values: Vec<T> = Vec::with_capacity(self.len());
        // SAFETY: `values` has the capacity for all elements of the slice.
        unsafe { copy::to_host(driver()?, values.as_mut_ptr().cast(), self.as_device_ptr().as_raw(), self.bytes())? };
        // SAFETY: the elements have been copied. A slice has valid values of its type: copied there, or written by a
        // kernel as promised at its launch.
        unsafe { values.set_len(self.len()) };
        Ok(values)
    }
}

#[cfg(feature = "bytemuck")]
mod fill {
    use bytemuck::{Pod, Zeroable};

    use super::{DeviceCopy, DeviceSlice, Stream, copy, driver};
    use crate::error::{CudaError, CudaResult};

    impl<T: DeviceCopy> DeviceSlice<T> {
        /// The length of the slice in aligned words of type `W`, or an error if it is not a whole number of them.
        fn words<W>(&self) -> CudaResult<usize> {
            let address = self.as_device_ptr().as_raw() as usize;
            let is_whole = self.bytes().is_multiple_of(size_of::<W>()) && address.is_multiple_of(size_of::<W>());
            if is_whole { Ok(self.bytes() / size_of::<W>()) } else { Err(CudaError::InvalidValue) }
        }
    }

    /// Defines a fill and its asynchronous form.
    macro_rules! fills {
        ($($fill:ident, $fill_async:ident, $word:ty, $sync:ident, $async:ident, $what:literal;)*) => {
            impl<T: DeviceCopy + Pod> DeviceSlice<T> {
                $(
                    #[doc = concat!("Sets all ", $what, " of the slice to `value`.")]
                    ///
                    /// # Errors
                    #[doc = concat!("The slice does not consist of aligned ", $what, ", or an error of the driver.")]
                    pub fn $fill(&mut self, value: $word) -> CudaResult<()> {
                        let words = self.words::<$word>()?;
                        if words == 0 {
                            return Ok(());
                        }
                        let driver = driver()?;
                        // SAFETY: the words are those of the slice, and any bits are a value of `T`.
                        unsafe { driver.$sync(self.as_device_ptr().as_raw(), value, words)? };
                        copy::finish(driver)
                    }

                    #[doc = concat!("Sets all ", $what, " of the slice to `value`, in stream order.")]
                    ///
                    /// # Safety
                    /// Until the fill has completed in the stream, the memory is neither accessed nor freed.
                    ///
                    /// # Errors
                    #[doc = concat!("The slice does not consist of aligned ", $what, ", or an error of the driver.")]
                    pub unsafe fn $fill_async(&mut self, value: $word, stream: &Stream) -> CudaResult<()> {
                        let words = self.words::<$word>()?;
                        if words == 0 {
                            return Ok(());
                        }
                        let (to, entered) = (self.as_device_ptr().as_raw(), stream.context().enter()?);
                        // SAFETY: the words are those of the slice; the rest is promised by the caller.
                        unsafe { entered.driver().$async(to, value, words, stream.as_inner())? };
                        Ok(())
                    }
                )*
            }
        };
    }

    fills! {
        set_8, set_8_async, u8, cuMemsetD8_v2, cuMemsetD8Async, "bytes";
        set_16, set_16_async, u16, cuMemsetD16_v2, cuMemsetD16Async, "2-byte words";
        set_32, set_32_async, u32, cuMemsetD32_v2, cuMemsetD32Async, "4-byte words";
    }

    impl<T: DeviceCopy + Zeroable> DeviceSlice<T> {
        /// Fills the slice with zero bytes.
        ///
        /// # Errors
        /// An error of the driver.
        pub fn set_zero(&mut self) -> CudaResult<()> {
            if self.bytes() == 0 {
                return Ok(());
            }
            let driver = driver()?;
            // SAFETY: the bytes are those of the slice, and zeros are a value of `T`.
            unsafe { driver.cuMemsetD8_v2(self.as_device_ptr().as_raw(), 0, self.bytes())? };
            copy::finish(driver)
        }

        /// Fills the slice with zero bytes, in stream order.
        ///
        /// # Safety
        /// Until the fill has completed in the stream, the memory is neither accessed nor freed.
        ///
        /// # Errors
        /// An error of the driver.
        pub unsafe fn set_zero_async(&mut self, stream: &Stream) -> CudaResult<()> {
            if self.bytes() == 0 {
                return Ok(());
            }
            let (to, entered) = (self.as_device_ptr().as_raw(), stream.context().enter()?);
            // SAFETY: the bytes are those of the slice; the rest is promised by the caller.
            unsafe { entered.driver().cuMemsetD8Async(to, 0, self.bytes(), stream.as_inner())? };
            Ok(())
        }
    }
}

impl<T: DeviceCopy> fmt::Debug for DeviceSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceSlice({:p}, {} elements)", self.as_device_ptr(), self.len())
    }
}

impl<T: DeviceCopy, I: DeviceSliceIndex> Index<I> for DeviceSlice<T> {
    type Output = Self;

    fn index(&self, index: I) -> &Self {
        self.index(index)
    }
}

impl<T: DeviceCopy, I: DeviceSliceIndex> IndexMut<I> for DeviceSlice<T> {
    fn index_mut(&mut self, index: I) -> &mut Self {
        self.index_mut(index)
    }
}

/// An index or a range of a [`DeviceSlice`].
pub trait DeviceSliceIndex: Sealed {
    /// The range of the selected elements, in a slice of `len` elements.
    ///
    /// # Panics
    /// The index or range is out of bounds.
    fn range(self, len: usize) -> Range<usize>;
}

/// # Panics
/// The index or range is out of bounds.
fn checked(range: &impl RangeBounds<usize>, len: usize) -> Range<usize> {
    let start = match range.start_bound() {
        Bound::Included(start) => *start,
        Bound::Excluded(before) => before.checked_add(1).expect("the range's start fits in a `usize`"),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(last) => last.checked_add(1).expect("the range's end fits in a `usize`"),
        Bound::Excluded(end) => *end,
        Bound::Unbounded => len,
    };
    assert!(start <= end && end <= len, "range {start}..{end} is out of bounds of a device slice of {len} elements");
    start..end
}

impl Sealed for usize {}
impl DeviceSliceIndex for usize {
    fn range(self, len: usize) -> Range<usize> {
        assert!(self < len, "index {self} is out of bounds of a device slice of {len} elements");
        self..self + 1
    }
}

macro_rules! ranges {
    ($($range:ty)*) => {
        $(
            impl Sealed for $range {}
            impl DeviceSliceIndex for $range {
                fn range(self, len: usize) -> Range<usize> {
                    checked(&self, len)
                }
            }
        )*
    };
}

ranges! {
    Range<usize> RangeFrom<usize> RangeFull RangeInclusive<usize> RangeTo<usize> RangeToInclusive<usize>
}

/// # Panics
/// The lengths differ.
fn check_lengths(one: usize, other: usize) {
    assert_eq!(one, other, "a copy between slices of different lengths");
}

impl<T: DeviceCopy> Sealed for DeviceSlice<T> {}

impl<T: DeviceCopy, I: AsRef<[T]> + AsMut<[T]> + ?Sized> CopyDestination<I> for DeviceSlice<T> {
    fn copy_from(&mut self, source: &I) -> CudaResult<()> {
        let source = source.as_ref();
        check_lengths(self.len(), source.len());
        // SAFETY: both have that many bytes.
        unsafe { copy::to_device(driver()?, self.as_device_ptr().as_raw(), source.as_ptr().cast(), self.bytes()) }
    }

    fn copy_to(&self, destination: &mut I) -> CudaResult<()> {
        let destination = destination.as_mut();
        check_lengths(self.len(), destination.len());
        // SAFETY: both have that many bytes, which are values of `T`.
        unsafe {
            copy::to_host(driver()?, destination.as_mut_ptr().cast(), self.as_device_ptr().as_raw(), self.bytes())
        }
    }
}

impl<T: DeviceCopy> CopyDestination<Self> for DeviceSlice<T> {
    fn copy_from(&mut self, source: &Self) -> CudaResult<()> {
        check_lengths(self.len(), source.len());
        let (to, from) = (self.as_device_ptr().as_raw(), source.as_device_ptr().as_raw());
        // SAFETY: both have that many bytes; one is borrowed mutably, so they do not overlap.
        unsafe { copy::on_device(driver()?, to, from, self.bytes()) }
    }

    fn copy_to(&self, destination: &mut Self) -> CudaResult<()> {
        destination.copy_from(self)
    }
}

impl<T: DeviceCopy> CopyDestination<DeviceBuffer<T>> for DeviceSlice<T> {
    fn copy_from(&mut self, source: &DeviceBuffer<T>) -> CudaResult<()> {
        self.copy_from(source.as_slice())
    }

    fn copy_to(&self, destination: &mut DeviceBuffer<T>) -> CudaResult<()> {
        destination.as_mut_slice().copy_from(self)
    }
}

impl<T: DeviceCopy, I: AsRef<[T]> + AsMut<[T]> + ?Sized> AsyncCopyDestination<I> for DeviceSlice<T> {
    unsafe fn async_copy_from(&mut self, source: &I, stream: &Stream) -> CudaResult<()> {
        let source = source.as_ref();
        check_lengths(self.len(), source.len());
        if self.bytes() == 0 {
            return Ok(());
        }
        let (to, from) = (self.as_device_ptr().as_raw(), source.as_ptr().cast());
        let entered = stream.context().enter()?;
        // SAFETY: both have that many bytes; the rest is promised by the caller.
        unsafe { entered.driver().cuMemcpyHtoDAsync_v2(to, from, self.bytes(), stream.as_inner())? };
        Ok(())
    }

    unsafe fn async_copy_to(&self, destination: &mut I, stream: &Stream) -> CudaResult<()> {
        let destination = destination.as_mut();
        check_lengths(self.len(), destination.len());
        if self.bytes() == 0 {
            return Ok(());
        }
        let (to, from) = (destination.as_mut_ptr().cast(), self.as_device_ptr().as_raw());
        let entered = stream.context().enter()?;
        // SAFETY: both have that many bytes; the rest is promised by the caller.
        unsafe { entered.driver().cuMemcpyDtoHAsync_v2(to, from, self.bytes(), stream.as_inner())? };
        Ok(())
    }
}

impl<T: DeviceCopy> AsyncCopyDestination<Self> for DeviceSlice<T> {
    unsafe fn async_copy_from(&mut self, source: &Self, stream: &Stream) -> CudaResult<()> {
        check_lengths(self.len(), source.len());
        if self.bytes() == 0 {
            return Ok(());
        }
        let (to, from) = (self.as_device_ptr().as_raw(), source.as_device_ptr().as_raw());
        let entered = stream.context().enter()?;
        // SAFETY: both have that many bytes; one is borrowed mutably, so they do not overlap. The rest is promised by
        // the caller.
        unsafe { entered.driver().cuMemcpyDtoDAsync_v2(to, from, self.bytes(), stream.as_inner())? };
        Ok(())
    }

    unsafe fn async_copy_to(&self, destination: &mut Self, stream: &Stream) -> CudaResult<()> {
        // SAFETY: as promised by the caller.
        unsafe { destination.async_copy_from(self, stream) }
    }
}

impl<T: DeviceCopy> AsyncCopyDestination<DeviceBuffer<T>> for DeviceSlice<T> {
    unsafe fn async_copy_from(&mut self, source: &DeviceBuffer<T>, stream: &Stream) -> CudaResult<()> {
        // SAFETY: as promised by the caller.
        unsafe { self.async_copy_from(source.as_slice(), stream) }
    }

    unsafe fn async_copy_to(&self, destination: &mut DeviceBuffer<T>, stream: &Stream) -> CudaResult<()> {
        // SAFETY: as promised by the caller.
        unsafe { destination.as_mut_slice().async_copy_from(self, stream) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slice of memory that does not exist. No test accesses it.
    fn slice<'a>(address: u64, len: usize) -> &'a mut DeviceSlice<u32> {
        // SAFETY: the tests use only the address and the length.
        unsafe { DeviceSlice::from_raw_parts_mut(DevicePointer::from_raw(address), len) }
    }

    fn parts(slice: &DeviceSlice<u32>) -> (u64, usize) {
        (slice.as_device_ptr().as_raw(), slice.len())
    }

    #[test]
    fn subslices_have_offsets_in_elements() {
        let whole = slice(0x7000_0000, 10);
        assert_eq!(parts(whole), (0x7000_0000, 10));
        assert_eq!(parts(&whole[3]), (0x7000_000c, 1));
        assert_eq!(parts(&whole[2..5]), (0x7000_0008, 3));
        assert_eq!(parts(&whole[2..=5]), (0x7000_0008, 4));
        assert_eq!(parts(&whole[..5]), (0x7000_0000, 5));
        assert_eq!(parts(&whole[..=5]), (0x7000_0000, 6));
        assert_eq!(parts(&whole[7..][1..]), (0x7000_0020, 2));
        assert_eq!(parts(&whole[..]), parts(whole));
        let (left, right) = whole.split_at_mut(4);
        assert_eq!((parts(left), parts(right)), ((0x7000_0000, 4), (0x7000_0010, 6)));
    }

    #[test]
    fn an_empty_subslice_has_a_null_address() {
        let whole = slice(0x7000_0000, 10);
        assert_eq!((parts(&whole[10..]), parts(&whole[4..4])), ((0, 0), (0, 0)));
        assert!(slice(0, 0).is_empty());
    }

    #[test]
    fn a_reference_covers_no_host_memory() {
        assert_eq!(size_of_val(slice(8, 1 << 40)), 0);
    }

    #[test]
    #[should_panic(expected = "range 3..11 is out of bounds of a device slice of 10 elements")]
    fn a_range_out_of_bounds_panics() {
        let _ = slice(0x7000_0000, 10).index(3..11);
    }

    #[test]
    #[should_panic(expected = "index 10 is out of bounds of a device slice of 10 elements")]
    fn an_index_out_of_bounds_panics() {
        let _ = slice(0x7000_0000, 10).index(10);
    }

    #[test]
    #[should_panic(expected = "different lengths")]
    fn a_copy_between_different_lengths_panics() {
        let _ = slice(0x7000_0000, 10).copy_from(&[0; 9]);
    }
}
