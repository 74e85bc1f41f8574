//! Arrays of cudarc for warpfold, and back. Copy this file: it needs nothing else of this example.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, DevicePtrMut, SyncOnDrop};
use warpfold::interop::{self, Borrowed, BorrowedMut};
use warpfold::{ArrayView, ArrayViewMut, Buffer, Error, Gpu, Stored};

/// A stream of cudarc, and a handle of warpfold whose work goes to it.
pub struct OnCudarc {
    gpu: Gpu,
    stream: Arc<CudaStream>,
}

impl OnCudarc {
    /// `gpu` is any handle of the stream's device. Keep the value: it has workspaces.
    pub fn new(gpu: &Gpu, stream: &Arc<CudaStream>) -> Result<Self, Error> {
        // SAFETY: the handle keeps the stream as its owner. Captures of cudarc begin and end between calls.
        let gpu = unsafe { interop::on_stream_of(gpu, stream.cu_stream().cast(), stream.clone())? };
        Ok(Self { gpu, stream: stream.clone() })
    }

    /// The handle, for warpfold's calls.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// A slice or a view of cudarc as an array of these extents in C order, for calls of [`OnCudarc::gpu`] to read.
    pub fn read<'a, T: Stored>(
        &'a self,
        from: &'a impl DevicePtr<T>,
        extents: &[usize],
    ) -> Result<Input<'a, T>, Error> {
        check(from.len(), extents)?;
        // The stream waits for writes on other streams. The guard tells cudarc that the reads so far are to be waited
        // for.
        let (address, guard) = from.device_ptr(&self.stream);
        // SAFETY: cudarc's slice has the elements, is borrowed as long, and is not written before the guard's event.
        let array = unsafe { interop::borrow(&self.gpu, address, extents, &strides(extents))? };
        Ok(Input { array, _guard: guard })
    }

    /// A slice or a view of cudarc as an array of these extents in C order, for calls of [`OnCudarc::gpu`] to write.
    pub fn write<'a, T: Stored>(
        &'a self,
        to: &'a mut impl DevicePtrMut<T>,
        extents: &[usize],
    ) -> Result<Output<'a, T>, Error> {
        check(to.len(), extents)?;
        let (address, guard) = to.device_ptr_mut(&self.stream);
        // SAFETY: as in `read`, and the slice is borrowed mutably.
        let array = unsafe { interop::borrow_mut(&self.gpu, address, extents, &strides(extents))? };
        Ok(Output { array, _guard: guard })
    }

    /// A buffer of warpfold as a slice of cudarc, for its kernels and copies on this stream.
    pub fn lend<'a, T: Stored>(&self, buffer: &'a mut Buffer<T>) -> Lent<'a, T> {
        let (address, len) = (buffer.view_mut().device_address(), buffer.len());
        // SAFETY: the buffer has the elements, is borrowed mutably as long, and frees them itself.
        let slice = unsafe { self.stream.upgrade_device_ptr(address, len) };
        Lent { slice: ManuallyDrop::new(slice), _buffer: buffer }
    }
}

/// The stream of a handle of warpfold, for work of cudarc that is in order with the handle's. `None` in the executor.
///
/// # Safety
/// The handle outlives the stream and what cudarc makes with it.
pub unsafe fn stream_of(gpu: &Gpu, context: &Arc<CudaContext>) -> Option<Arc<CudaStream>> {
    // SAFETY: a handle's stream is of the device's primary context, as cudarc's contexts are; the rest is promised.
    gpu.cuda_stream().map(|stream| unsafe { context.wrap_borrowed_stream(stream.cast()) })
}

/// An array of cudarc that warpfold reads. Drop it after the call.
pub struct Input<'a, T> {
    array: Borrowed<'a, T>,
    _guard: SyncOnDrop<'a>,
}

impl<T: Stored> Input<'_, T> {
    /// The array.
    pub fn view(&self) -> ArrayView<'_, T> {
        self.array.view()
    }
}

/// An array of cudarc that warpfold writes. Drop it after the call.
pub struct Output<'a, T> {
    array: BorrowedMut<'a, T>,
    _guard: SyncOnDrop<'a>,
}

impl<T: Stored> Output<'_, T> {
    /// The array.
    pub fn view_mut(&mut self) -> ArrayViewMut<'_, T> {
        self.array.view_mut()
    }
}

/// A buffer of warpfold that is lent to cudarc.
pub struct Lent<'a, T> {
    slice: ManuallyDrop<CudaSlice<T>>,
    _buffer: &'a mut Buffer<T>,
}

impl<T> Deref for Lent<'_, T> {
    type Target = CudaSlice<T>;

    fn deref(&self) -> &CudaSlice<T> {
        &self.slice
    }
}

impl<T> Drop for Lent<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the slice is not used again.
        unsafe { ManuallyDrop::take(&mut self.slice) }.leak();
    }
}

/// Strides in C order, in elements.
fn strides(extents: &[usize]) -> Vec<isize> {
    let from = |axis: usize| extents[axis + 1..].iter().product::<usize>() as isize;
    (0..extents.len()).map(from).collect()
}

/// Checks that a slice has as many elements as an array of these extents.
fn check(found: usize, extents: &[usize]) -> Result<(), Error> {
    let expected = extents.iter().try_fold(1_usize, |count, &extent| count.checked_mul(extent)).unwrap_or(usize::MAX);
    let (operation, what) = ("borrow from cudarc", "the slice");
    if found == expected { Ok(()) } else { Err(Error::Length { operation, what, found, expected }) }
}
