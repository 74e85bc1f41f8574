//! Memory of other libraries.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;

use cuda_std::element::Stored;

use crate::backend::Memory;
use crate::{ArrayView, ArrayViewMut, Error, ExactState, ExactStates, Gpu, Layout, View, ViewMut};

/// An array in the memory of another library, to be read. Made by [`borrow`].
pub struct Borrowed<'m, T> {
    memory: Memory,
    layout: Layout,
    elements: PhantomData<&'m [T]>,
}

/// An array in the memory of another library, to be read and written. Made by [`borrow_mut`].
pub struct BorrowedMut<'m, T> {
    memory: Memory,
    layout: Layout,
    elements: PhantomData<&'m mut [T]>,
}

/// An array in memory of another library, to be read where it lies.
///
/// `address` is that of the element with all indices 0, as DLPack and `__cuda_array_interface__` have it, and strides
/// are in elements; they may be negative or 0. On a CUDA device it is an address in the device's memory or in managed
/// memory. In the executor it is an address of host memory, which was exposed (`pointer.expose_provenance()`).
///
/// ```
/// use warpfold::{Gpu, interop, ops};
///
/// let gpu = Gpu::simt();
/// let numbers = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let address = numbers.as_ptr().expose_provenance() as u64;
/// // SAFETY: nobody writes the numbers.
/// let columns = unsafe { interop::borrow::<f32>(&gpu, address, &[3, 2], &[1, 3])? };
/// let sums = gpu.reduce(ops::Sum, columns.view(), 1)?;
/// assert_eq!(gpu.download(&sums)?, [5.0, 7.0, 9.0]);
/// # Ok::<(), warpfold::Error>(())
/// ```
///
/// # Safety
/// - Each element lies in one allocation, which exists and is not written for `'m`, and until all work on the value
///   that was started meanwhile is done. For work of `gpu` it is enough if the memory is freed and written in the order
///   of its stream; for work that another library captures, until its graph is gone.
/// - All bits of the elements are values of `T`.
/// - On a CUDA device, each aligned 16 bytes in which an element lies are in the allocation, as in those of CUDA.
///
/// # Errors
/// The address is not aligned for `T`, the extents and strides are invalid ([`Layout::strided`]), the driver knows that
/// the memory is not this device's or that it is shorter, or it does not answer. A pool of another library is one
/// allocation for the driver, so a wrong length inside a pool is not found.
pub unsafe fn borrow<'m, T: Stored>(
    gpu: &Gpu,
    address: u64,
    extents: &[usize],
    strides: &[isize],
) -> Result<Borrowed<'m, T>, Error> {
    let layout = layout_of(extents, strides)?;
    // SAFETY: as promised by the caller.
    let memory = unsafe { memory_of::<T>(gpu, address, &layout)? };
    check_by_driver(gpu, &memory)?;
    Ok(Borrowed { memory, layout, elements: PhantomData })
}

/// An array in memory of another library, to be read and written where it lies.
///
/// `address` and strides are those of [`borrow`].
///
/// # Safety
/// As for [`borrow`], and nothing else reads or writes the elements for `'m` and until the work is done. The elements
/// need not have values.
///
/// # Errors
/// As for [`borrow`], or two elements could share memory ([`ArrayViewMut::new`]).
pub unsafe fn borrow_mut<'m, T: Stored>(
    gpu: &Gpu,
    address: u64,
    extents: &[usize],
    strides: &[isize],
) -> Result<BorrowedMut<'m, T>, Error> {
    // SAFETY: as promised by the caller.
    let borrowed = unsafe { borrow_mut_unchecked(gpu, address, extents, strides)? };
    check_by_driver(gpu, &borrowed.memory)?;
    Ok(borrowed)
}

/// Exact sums whose [words](crate::exact::words) lie in the memory of another library, one sum after the other: zeros
/// for sums of no elements. `max_count` is at least the number of elements of each sum.
///
/// ```
/// use warpfold::exact::ExactSum;
/// use warpfold::{ExactSums, Gpu, interop};
///
/// let gpu = Gpu::simt();
/// let words: &'static mut [i64] = Box::leak(Box::new([0; 16]));
/// let address = words.as_mut_ptr().expose_provenance() as u64;
/// // SAFETY: the words exist for ever, and nothing else uses them until the sum is gone.
/// let words = unsafe { interop::borrow_mut(&gpu, address, &[16], &[1])? };
/// let mut sums: ExactSums<f32> = interop::exact_states(&gpu, words, 0)?;
/// sums.add(&gpu.upload(&[1e20_f32, 1.0, -1e20])?, 0)?;
/// assert_eq!(sums.download()?, [ExactSum::from_iter([1e20_f32, 1.0, -1e20])]);
/// # Ok::<(), warpfold::Error>(())
/// ```
///
/// # Errors
/// The words have gaps, or are not those of a whole number of sums; they belong to another device; or `max_count`
/// exceeds 2^50.
pub fn exact_states<S: ExactState>(
    gpu: &Gpu,
    words: BorrowedMut<'static, i64>,
    max_count: u64,
) -> Result<ExactStates<S>, Error> {
    ExactStates::in_words(gpu, words, max_count)
}

/// [`borrow_mut`] without the question to the driver, which takes a part of a short call's time: for memory that the
/// other library's allocator has just returned.
///
/// # Safety
/// As for [`borrow_mut`]; and on a CUDA device, the memory is this device's, or managed.
///
/// # Errors
/// The address is not aligned for `T`, the extents and strides are invalid ([`Layout::strided`]), or two elements could
/// share memory ([`ArrayViewMut::new`]).
pub unsafe fn borrow_mut_unchecked<'m, T: Stored>(
    gpu: &Gpu,
    address: u64,
    extents: &[usize],
    strides: &[isize],
) -> Result<BorrowedMut<'m, T>, Error> {
    let layout = layout_of(extents, strides)?;
    // SAFETY: as promised by the caller.
    let memory = unsafe { memory_of::<T>(gpu, address, &layout)? };
    layout.check_apart()?;
    Ok(BorrowedMut { memory, layout, elements: PhantomData })
}

/// Asks the driver whether borrowed memory is this device's, or managed, and not longer than its allocation.
fn check_by_driver(gpu: &Gpu, memory: &Memory) -> Result<(), Error> {
    match memory.bytes() {
        0 => Ok(()),
        bytes => gpu.own_backend().check_memory(memory.address(), bytes),
    }
}

/// The layout of an array in the memory from its lowest element on.
fn layout_of(extents: &[usize], strides: &[isize]) -> Result<Layout, Error> {
    // How far the negative strides reach back, in elements.
    let back: u128 = match extents.contains(&0) {
        true => 0,
        false => extents
            .iter()
            .zip(strides)
            .filter(|&(_, &stride)| stride < 0)
            .map(|(&extent, &stride)| (extent as u128 - 1) * stride.unsigned_abs() as u128)
            .fold(0, u128::saturating_add),
    };
    // An offset that no memory could have is refused with the layout.
    Layout::strided(extents, strides, usize::try_from(back).unwrap_or(usize::MAX))
}

/// The memory of an array from its lowest element on. `address` is that of the element with all indices 0.
///
/// # Safety
/// As for [`borrow`] or [`borrow_mut_unchecked`].
unsafe fn memory_of<T: Stored>(gpu: &Gpu, address: u64, layout: &Layout) -> Result<Memory, Error> {
    let (size, alignment) = (size_of::<T>(), align_of::<T>());
    let backend = gpu.own_backend();
    if layout.is_empty() {
        // SAFETY: no byte is accessed.
        return Ok(unsafe { Memory::borrowed(backend, 0, 0, None) });
    }
    if !address.is_multiple_of(alignment as u64) {
        return Err(Error::Unaligned { address, ty: std::any::type_name::<T>(), alignment });
    }
    let outside = || Error::NotDeviceMemory { address, found: format!("has elements outside of it, in {layout}") };
    let lowest = (layout.offset() as u64).checked_mul(size as u64).and_then(|bytes| address.checked_sub(bytes));
    let bytes = layout.required_len().checked_mul(size);
    let (Some(lowest), Some(bytes)) = (lowest, bytes) else { return Err(outside()) };
    if lowest == 0 || lowest.checked_add(bytes as u64).is_none() {
        return Err(outside());
    }
    // SAFETY: as promised by the caller.
    Ok(unsafe { Memory::borrowed(backend, lowest, bytes, None) })
}

impl<'m, T: Stored> Borrowed<'m, T> {
    /// The array, for calls that read it.
    pub fn view(&self) -> ArrayView<'_, T> {
        ArrayView::unchecked(View::of_memory(&self.memory), self.layout)
    }

    /// The same array with an owner, which is dropped with the last value that uses the memory. A
    /// [`Recording`](crate::Recording) keeps such memory, and so does a graph of another library; the owner is then
    /// dropped on any thread.
    ///
    /// # Safety
    /// The memory is what [`borrow`] requires, not for `'m` alone, but until the owner is dropped.
    pub unsafe fn with_owner(self, owner: impl Any + Send + Sync) -> Borrowed<'static, T> {
        // SAFETY: as promised by the caller.
        let memory = unsafe { self.memory.with_owner(Box::new(owner)) };
        Borrowed { memory, layout: self.layout, elements: PhantomData }
    }
}

impl<'m, T: Stored> BorrowedMut<'m, T> {
    /// The array, for calls that read it.
    pub fn view(&self) -> ArrayView<'_, T> {
        ArrayView::unchecked(View::of_memory(&self.memory), self.layout)
    }

    /// The array, for calls that write it.
    pub fn view_mut(&mut self) -> ArrayViewMut<'_, T> {
        ArrayViewMut::unchecked(ViewMut::of_memory(&self.memory), self.layout)
    }

    /// The same array with an owner: see [`Borrowed::with_owner`].
    ///
    /// # Safety
    /// The memory is what [`borrow_mut`] requires, not for `'m` alone, but until the owner is dropped.
    pub unsafe fn with_owner(self, owner: impl Any + Send + Sync) -> BorrowedMut<'static, T> {
        // SAFETY: as promised by the caller.
        let memory = unsafe { self.memory.with_owner(Box::new(owner)) };
        BorrowedMut { memory, layout: self.layout, elements: PhantomData }
    }
}

impl<T> fmt::Debug for Borrowed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Borrowed").field("layout", &self.layout).field("address", &self.memory.address()).finish()
    }
}

impl<T> fmt::Debug for BorrowedMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BorrowedMut").field("layout", &self.layout).field("address", &self.memory.address()).finish()
    }
}
