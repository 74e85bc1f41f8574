//! Uploads of data that is larger than the device's memory, a chunk at a time, beside the kernels that use it.

use std::fmt;
use std::mem::{ManuallyDrop, replace};
use std::ops::{Deref, DerefMut};

use cuda_std::element::Plain;
use cust::event::Event;

use crate::{Buffer, Error, Gpu, View};

/// The names of operations, for messages.
const ALLOCATE: &str = "allocate staging buffers";
const OPERATION: &str = "copy a chunk to the device";

/// Two buffers through which data goes to the device a chunk at a time. Made by [`Gpu::staging_buffers`].
///
/// Each has page-locked host memory and device memory. While one is filled by the host, the other is copied by a stream
/// of its own, and kernels use the chunks before. The host waits only for the copy from the buffer that it is to fill.
/// In the executor the host memory is ordinary memory, and a copy is done at once.
///
/// ```
/// use warpfold::{ArrayView, Gpu, Layout};
///
/// let gpu = Gpu::first_or_simt()?;
/// let mut sums = gpu.exact_sums::<f32>(2)?;
/// // The sums of the columns of a matrix of 1,000 rows, which are made, or read, 64 at a time.
/// let mut buffers = gpu.staging_buffers::<f32>(2 * 64)?;
/// for first in (0..1000).step_by(64) {
///     let rows = 64.min(1000 - first);
///     let mut buffer = buffers.next_buffer()?;
///     for (row, to) in buffer.chunks_exact_mut(2).take(rows).enumerate() {
///         to.copy_from_slice(&[0.5, (first + row) as f32]);
///     }
///     let layout = Layout::contiguous(&[rows, 2])?;
///     buffer.submit(2 * rows, |chunk| sums.add(ArrayView::new(chunk, &layout)?, 0))?;
/// }
/// assert_eq!(gpu.download(&sums.values()?)?, [500.0, 499_500.0]);
/// # Ok::<(), warpfold::Error>(())
/// ```
pub struct StagingBuffers<T: Plain> {
    slots: [Slot<T>; 2],
    /// The slot to fill next.
    next: usize,
    /// The handle whose work uses the chunks.
    gpu: Gpu,
    /// The handle whose stream has the copies.
    copies: Gpu,
}

/// Host memory, and device memory of the same length.
struct Slot<T: Plain> {
    host: ManuallyDrop<Buffer<T>>,
    device: Buffer<T>,
    /// The copy from `host` to `device`.
    copy: Pending,
    /// The work that uses `device`.
    work: Pending,
}

/// Work that may have been started.
enum Pending {
    Nothing,
    /// It is done when the event is.
    Until(Event),
    /// There is no event after it.
    Unknown,
}

impl Pending {
    /// Notes that the handle's work so far may not be done.
    fn note(&mut self, gpu: &Gpu) -> Result<(), Error> {
        *self = Self::Unknown;
        *self = gpu.own_backend().record_event()?.map_or(Self::Nothing, Self::Until);
        Ok(())
    }
}

/// A buffer to fill, which dereferences to its elements. Made by [`StagingBuffers::next_buffer`].
///
/// If it is dropped and not submitted, nothing is copied.
pub struct StagingBuffer<'a, T: Plain> {
    elements: &'a mut [T],
    /// The address of the elements.
    address: u64,
    device: &'a Buffer<T>,
    copy: &'a mut Pending,
    work: &'a mut Pending,
    next: &'a mut usize,
    gpu: &'a Gpu,
    copies: &'a Gpu,
}

impl Gpu {
    /// Two buffers of `len` elements each, through which this handle's work gets data from the host. It does not
    /// compile for types of size 0, or that are aligned to more than 256 bytes.
    ///
    /// # Errors
    /// The device or the host does not have enough memory, `len` is 0, or the driver has no more streams.
    pub fn staging_buffers<T: Plain>(&self, len: usize) -> Result<StagingBuffers<T>, Error> {
        const { assert!(size_of::<T>() > 0 && align_of::<T>() <= 256, "host memory is aligned to 256 bytes") };
        self.refuse_to_record(ALLOCATE)?;
        if len == 0 {
            let what = "the length of a buffer";
            return Err(Error::TooShort { operation: ALLOCATE, what, found: 0, minimum: 1 });
        }
        let copies = Self::on(self.own_backend().fork_for_copies()?);
        let memory = || {
            let device = Buffer::new(copies.own_backend(), len, ALLOCATE)?;
            // The first use by another handle than the memory's own waits for the own one, which has no work yet.
            self.use_memory(device.view().memory(), ALLOCATE)?;
            // The size of host memory is a multiple of 16 bytes.
            let padded = len.checked_next_multiple_of(16).unwrap_or(len);
            Ok::<_, Error>((Buffer::on_host(copies.own_backend(), padded, ALLOCATE)?, device))
        };
        // Both are made before either is one that only the drop of `StagingBuffers` frees.
        let slots = [memory()?, memory()?].map(Slot::new);
        Ok(StagingBuffers { slots, next: 0, gpu: self.clone(), copies })
    }
}

impl<T: Plain> Slot<T> {
    fn new((host, device): (Buffer<T>, Buffer<T>)) -> Self {
        Self { host: ManuallyDrop::new(host), device, copy: Pending::Nothing, work: Pending::Nothing }
    }
}

impl<T: Plain> StagingBuffers<T> {
    /// The buffer to fill next, with arbitrary elements. Waits until the copy from it is done.
    ///
    /// # Errors
    /// Earlier work has failed, this thread records on the handle, or another library captures its stream.
    pub fn next_buffer(&mut self) -> Result<StagingBuffer<'_, T>, Error> {
        self.gpu.refuse_to_record(OPERATION)?;
        let Self { slots, next, gpu, copies } = self;
        let Slot { host, device, copy, work } = &mut slots[*next];
        match copy {
            // Also in a forked child, which has no copies.
            Pending::Nothing => copies.own_backend().check_process()?,
            Pending::Until(event) => copies.own_backend().synchronize_event(event)?,
            Pending::Unknown => copies.synchronize()?,
        }
        *copy = Pending::Nothing;
        let address = host.view().address();
        // SAFETY: the copy is done, and no other work uses the memory.
        let elements = unsafe { &mut host.slice_on_host()[..device.len()] };
        Ok(StagingBuffer { elements, address, device, copy, work, next, gpu, copies })
    }

    /// The number of elements of a buffer.
    pub fn capacity(&self) -> usize {
        self.slots[0].device.len()
    }
}

impl<T: Plain> Drop for StagingBuffers<T> {
    fn drop(&mut self) {
        // If it is not known whether the copies are done, the memory that they read is leaked.
        if self.copies.synchronize().is_ok() {
            for slot in &mut self.slots {
                // SAFETY: it is dropped once, here.
                unsafe { ManuallyDrop::drop(&mut slot.host) };
            }
        }
    }
}

impl<T: Plain> StagingBuffer<'_, T> {
    /// Starts the copy of the first `len` elements to the device, and calls `work`, which starts what uses the copy, on
    /// the handle that has made the buffers: later work of this handle waits for the copy. The host does not wait.
    ///
    /// # Errors
    /// An error of `work`; `len` exceeds the buffer, or the device cannot do the copy.
    pub fn submit<R>(mut self, len: usize, work: impl FnOnce(View<'_, T>) -> Result<R, Error>) -> Result<R, Error> {
        let chunk = self.device.view().slice(0, len)?;
        self.start_copy(chunk)?;
        *self.work = Pending::Unknown;
        let done = work(chunk);
        // After an error, too: some of the work may have been started.
        let noted = self.work.note(self.gpu);
        let result = done?;
        noted?;
        Ok(result)
    }

    /// Starts the copy, after the work that uses the chunk before it, and before later work of the handle.
    fn start_copy(&mut self, chunk: View<'_, T>) -> Result<(), Error> {
        self.gpu.refuse_to_record(OPERATION)?;
        let (own, copying) = (self.gpu.own_backend(), self.copies.own_backend());
        // After an error it is unknown, and the next call waits.
        match replace(self.work, Pending::Unknown) {
            Pending::Nothing => {}
            Pending::Until(event) => copying.wait_event(&event)?,
            Pending::Unknown => self.gpu.synchronize()?,
        }
        *self.work = Pending::Nothing;
        if chunk.is_empty() {
            return Ok(());
        }
        *self.next = 1 - *self.next;
        *self.copy = Pending::Unknown;
        // SAFETY: both buffers have this number of elements. The elements are neither written nor freed before
        // `next_buffer` or the drop have waited for the copy.
        unsafe { copying.start_upload(self.address, chunk.address(), chunk.len() * size_of::<T>())? };
        self.copy.note(self.copies)?;
        match &*self.copy {
            Pending::Until(event) => own.wait_event(event),
            Pending::Nothing | Pending::Unknown => Ok(()),
        }
    }
}

impl<T: Plain> Deref for StagingBuffer<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.elements
    }
}

impl<T: Plain> DerefMut for StagingBuffer<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.elements
    }
}

impl<T: Plain> fmt::Debug for StagingBuffers<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StagingBuffers").field("gpu", &self.gpu).field("capacity", &self.capacity()).finish()
    }
}

impl<T: Plain> fmt::Debug for StagingBuffer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StagingBuffer").field("len", &self.elements.len()).field("address", &self.address).finish()
    }
}

#[cfg(test)]
mod tests {
    //! These tests launch no kernel, so that `cargo xtask soundness` can run them in Miri.

    use crate::{Error, Gpu};

    #[test]
    fn chunks_come_to_the_device_in_turns() {
        let gpu = Gpu::simt();
        let mut buffers = gpu.staging_buffers::<u32>(5).unwrap();
        assert_eq!(buffers.capacity(), 5);
        let mut addresses = Vec::new();
        for (number, len) in [(1, 5), (2, 0), (3, 3), (4, 1), (5, 5)] {
            let mut buffer = buffers.next_buffer().unwrap();
            assert_eq!(buffer.len(), 5);
            buffer[..len].fill(number);
            let (found, address) =
                buffer.submit(len, |chunk| Ok((gpu.download(chunk)?, chunk.device_address()))).unwrap();
            assert_eq!(found, vec![number; len]);
            addresses.push(address);
        }
        // An empty chunk takes no turn.
        assert_eq!(addresses[1], addresses[2]);
        assert_eq!((addresses[0], addresses[2]), (addresses[3], addresses[4]));
        assert_ne!(addresses[0], addresses[2]);
    }

    #[test]
    fn the_elements_are_those_of_the_type() {
        let gpu = Gpu::simt();
        let mut buffers = gpu.staging_buffers::<[u8; 3]>(2).unwrap();
        let mut buffer = buffers.next_buffer().unwrap();
        buffer.copy_from_slice(&[[1, 2, 3], [4, 5, 6]]);
        assert_eq!(buffer.submit(2, |chunk| gpu.download(chunk)).unwrap(), [[1, 2, 3], [4, 5, 6]]);
    }

    #[test]
    fn errors_leave_the_buffers_usable() {
        let gpu = Gpu::simt();
        assert!(matches!(gpu.staging_buffers::<f32>(0), Err(Error::TooShort { minimum: 1, .. })));
        assert!(matches!(gpu.staging_buffers::<f32>(usize::MAX), Err(Error::ShapeOverflow { .. })));
        assert!(matches!(gpu.staging_buffers::<f32>(1 << 58), Err(Error::OutOfMemory { .. })));
        let mut buffers = gpu.staging_buffers::<f32>(2).unwrap();
        let too_long = buffers.next_buffer().unwrap().submit(3, |_| Ok(()));
        assert!(matches!(too_long, Err(Error::TooShort { found: 2, minimum: 3, .. })), "{too_long:?}");
        let refused: Result<(), _> = buffers.next_buffer().unwrap().submit(1, |_| Err(Error::Forked));
        assert!(matches!(refused, Err(Error::Forked)), "{refused:?}");
        let recording = gpu.record(|| buffers.next_buffer().map(drop));
        assert!(matches!(recording, Err(Error::Recording { .. })), "{recording:?}");
        let mut buffer = buffers.next_buffer().unwrap();
        buffer[0] = 7.0;
        assert_eq!(buffer.submit(1, |chunk| gpu.download(chunk)).unwrap(), [7.0]);
        // A buffer that is dropped is the next one again.
        buffers.next_buffer().unwrap()[1] = 8.0;
        assert_eq!(buffers.next_buffer().unwrap()[1], 8.0);
    }
}
