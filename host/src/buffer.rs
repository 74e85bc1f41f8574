//! Typed memory of a device.

use std::fmt;
use std::marker::PhantomData;
use std::mem::size_of;
use std::sync::Arc;

use cuda_std::element::{Plain, Stored, is_plain};

use crate::array::{IntoArrayView, IntoArrayViewMut};
use crate::backend::{Backend, Memory};
use crate::{Error, Gpu};

/// Elements in a device's memory.
///
/// A buffer belongs to the [`Gpu`] that made it. Its memory is freed when the buffer is dropped. Up to 64 MiB
/// of buffers of at most 16 MiB, which no other handle has used, are kept for the handle's next ones of the same size,
/// without waiting for its work.
pub struct Buffer<T> {
    memory: Memory,
    len: usize,
    elements: PhantomData<T>,
}

impl<T: Stored> Buffer<T> {
    pub(crate) fn new(backend: &Arc<dyn Backend>, len: usize, operation: &'static str) -> Result<Self, Error> {
        Ok(Self { memory: Memory::new(backend, bytes_of::<T>(len)?, operation)?, len, elements: PhantomData })
    }

    /// A workspace: zeroed memory that every kernel leaves zeroed. After a failed kernel, it is zeroed again before the
    /// next launch.
    pub(crate) fn workspace(backend: &Arc<dyn Backend>, len: usize) -> Result<Self, Error> {
        let memory = Memory::workspace(backend, bytes_of::<T>(len)?, "allocate a workspace")?;
        Ok(Self { memory, len, elements: PhantomData })
    }

    /// A buffer in host memory, zeroed, of a multiple of 16 bytes that is not 0.
    pub(crate) fn on_host(backend: &Arc<dyn Backend>, len: usize, operation: &'static str) -> Result<Self, Error> {
        let memory = Memory::on_host(backend, bytes_of::<T>(len)?, operation)?;
        Ok(Self { memory, len, elements: PhantomData })
    }

    /// What a kernel has written to the beginning of a buffer in host memory.
    ///
    /// # Safety
    /// All work that writes the buffer is done.
    pub(crate) unsafe fn read_on_host<U: Plain>(&self) -> U {
        // SAFETY: as promised by the caller.
        unsafe { self.memory.read_on_host() }
    }

    /// The elements of a buffer in host memory.
    ///
    /// # Safety
    /// No work that was started and is not done uses the buffer.
    pub(crate) unsafe fn slice_on_host(&mut self) -> &mut [T]
    where
        T: Plain,
    {
        let len = self.len;
        // SAFETY: as promised by the caller.
        unsafe { &mut self.memory.slice_on_host()[..len] }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The whole buffer, for a kernel to read.
    pub fn view(&self) -> View<'_, T> {
        let address = self.memory.address();
        View { memory: &self.memory, address, len: self.len, elements: PhantomData }
    }

    /// The whole buffer, for a kernel to read and write.
    pub fn view_mut(&mut self) -> ViewMut<'_, T> {
        ViewMut { address: self.memory.address(), memory: &self.memory, len: self.len, elements: PhantomData }
    }
}

/// The bytes of `len` elements.
fn bytes_of<T>(len: usize) -> Result<usize, Error> {
    let size = size_of::<T>();
    len.checked_mul(size).ok_or(Error::ShapeOverflow { rows: 1, columns: len, size })
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("len", &self.len).field("address", &self.memory.address()).finish()
    }
}

/// Elements that a kernel reads.
pub struct View<'a, T> {
    memory: &'a Memory,
    address: u64,
    len: usize,
    elements: PhantomData<&'a [T]>,
}

/// Elements that a kernel reads and writes. Nothing else can use the elements while the view exists.
pub struct ViewMut<'a, T> {
    memory: &'a Memory,
    address: u64,
    len: usize,
    elements: PhantomData<&'a mut [T]>,
}

impl<T> Clone for View<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for View<'_, T> {}

impl<'a, T: Stored> View<'a, T> {
    /// All elements of memory.
    pub(crate) fn of_memory(memory: &'a Memory) -> Self {
        View { memory, address: memory.address(), len: memory.bytes() / size_of::<T>(), elements: PhantomData }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// `len` elements from `start` on.
    ///
    /// # Errors
    /// The elements are not all in this view.
    pub fn slice(self, start: usize, len: usize) -> Result<Self, Error> {
        let address = slice(self.address, self.len, start, len, size_of::<T>())?;
        Ok(Self { address, len, ..self })
    }

    /// The elements from `start` on.
    pub(crate) fn skip(self, start: usize) -> Result<Self, Error> {
        let len = self.len.saturating_sub(start);
        self.slice(start, len)
    }

    /// The same memory as elements of another type. A remainder smaller than one element is left out.
    pub(crate) fn cast<U: Stored>(self) -> View<'a, U> {
        let len = self.len * size_of::<T>() / size_of::<U>();
        View { memory: self.memory, address: self.address, len, elements: PhantomData }
    }

    /// The elements' address in device memory, for other libraries.
    ///
    /// From then on, the memory is freed only after all work of the device, as by `cuMemFree`.
    pub fn device_address(&self) -> u64 {
        self.memory.expose();
        self.address
    }

    /// The elements' address, for this library's own work.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    pub(crate) fn slots(&self) -> [u64; 2] {
        [self.address, self.len as u64]
    }

    pub(crate) fn memory(&self) -> &Memory {
        self.memory
    }

    /// The memory, for as long as the view borrows it.
    pub(crate) fn into_memory(self) -> &'a Memory {
        self.memory
    }
}

impl<'a, T: Stored> From<&'a Buffer<T>> for View<'a, T> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        buffer.view()
    }
}

impl<'a, T: Stored> From<&'a mut Buffer<T>> for ViewMut<'a, T> {
    fn from(buffer: &'a mut Buffer<T>) -> Self {
        buffer.view_mut()
    }
}

impl<'a, T: Stored> ViewMut<'a, T> {
    /// All elements of memory, which nothing else uses meanwhile.
    pub(crate) fn of_memory(memory: &'a Memory) -> Self {
        ViewMut { memory, address: memory.address(), len: memory.bytes() / size_of::<T>(), elements: PhantomData }
    }

    /// The same memory as elements of another type. A remainder smaller than one element is left out.
    pub(crate) fn cast<U: Stored>(self) -> ViewMut<'a, U> {
        let len = self.len * size_of::<T>() / size_of::<U>();
        ViewMut { memory: self.memory, address: self.address, len, elements: PhantomData }
    }

    /// A view of the same elements, to use this view for several kernels in turn. While the new view exists, this one
    /// cannot be used.
    pub fn reborrow(&mut self) -> ViewMut<'_, T> {
        ViewMut { memory: self.memory, address: self.address, len: self.len, elements: PhantomData }
    }

    /// A view of the same elements, for a kernel to read.
    pub fn as_view(&self) -> View<'_, T> {
        View { memory: self.memory, address: self.address, len: self.len, elements: PhantomData }
    }

    /// Two views of the same elements, for layouts that do not share any.
    pub(crate) fn twice(self) -> [Self; 2] {
        [(); 2].map(|()| Self { memory: self.memory, address: self.address, len: self.len, elements: PhantomData })
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// `len` elements from `start` on.
    ///
    /// # Errors
    /// The elements are not all in this view.
    pub fn slice(self, start: usize, len: usize) -> Result<Self, Error> {
        let address = slice(self.address, self.len, start, len, size_of::<T>())?;
        Ok(Self { address, len, ..self })
    }

    /// The elements from `start` on.
    pub(crate) fn skip(self, start: usize) -> Result<Self, Error> {
        let len = self.len.saturating_sub(start);
        self.slice(start, len)
    }

    /// The elements' address in device memory, for other libraries.
    ///
    /// From then on, the memory is freed only after all work of the device, as by `cuMemFree`.
    pub fn device_address(&self) -> u64 {
        self.memory.expose();
        self.address
    }

    /// The elements' address, for this library's own work.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    pub(crate) fn slots(&self) -> [u64; 2] {
        [self.address, self.len as u64]
    }

    pub(crate) fn memory(&self) -> &Memory {
        self.memory
    }

    /// The memory, for as long as the view borrows it.
    pub(crate) fn into_memory(self) -> &'a Memory {
        self.memory
    }
}

/// The address of element `start`, if the view of `whole` elements has `len` elements from there on.
fn slice(address: u64, whole: usize, start: usize, len: usize, size: usize) -> Result<u64, Error> {
    match start.checked_add(len) {
        Some(end) if end <= whole => Ok(address + (start * size) as u64),
        end => Err(Error::TooShort {
            operation: "slice",
            what: "the view",
            found: whole,
            minimum: end.unwrap_or(usize::MAX),
        }),
    }
}

/// Checks that the source and the target of a copy have the same length.
fn same_length(operation: &'static str, found: usize, expected: usize) -> Result<(), Error> {
    if found == expected { Ok(()) } else { Err(Error::Length { operation, what: "the target", found, expected }) }
}

/// Checks that a `T` has each of these bits.
fn check_values<T: Stored>(bits: &[T::Bits]) -> Result<(), Error> {
    if is_plain::<T>() {
        return Ok(());
    }
    match bits.iter().position(|&bits| T::try_from_stored(bits).is_none()) {
        Some(index) => Err(Error::NotAValue { index, ty: std::any::type_name::<T>() }),
        None => Ok(()),
    }
}

impl Gpu {
    /// A new buffer of `len` elements whose bits are all 0: numbers that are 0, and `bool`s that are `false`.
    ///
    /// # Errors
    /// The device does not have enough memory.
    pub fn zeroed<T: Stored>(&self, len: usize) -> Result<Buffer<T>, Error> {
        let buffer = Buffer::new(&self.backend(), len, "allocate a buffer")?;
        if !buffer.is_empty() {
            // SAFETY: the buffer's own memory, which earlier work of this handle has used at most.
            unsafe { self.backend().zero(buffer.memory.address(), buffer.memory.bytes())? };
        }
        Ok(buffer)
    }

    /// Sets every bit of a view's elements to 0.
    pub(crate) fn fill_with_zeros<T: Stored>(&self, view: ViewMut<'_, T>) -> Result<(), Error> {
        if view.is_empty() {
            return Ok(());
        }
        self.use_memory(view.memory, "fill")?;
        // SAFETY: the view's own memory.
        unsafe { self.backend().fill(view.address, 0, view.len * size_of::<T>()) }
    }

    /// A new buffer with a copy of `elements`.
    ///
    /// # Errors
    /// The device does not have enough memory.
    pub fn upload<T: Stored>(&self, elements: &[T]) -> Result<Buffer<T>, Error> {
        let mut buffer = Buffer::new(&self.backend(), elements.len(), "upload")?;
        self.upload_into(elements, &mut buffer)?;
        Ok(buffer)
    }

    /// Copies `elements` in C order to an existing array, buffer or view, after all work on it that was started
    /// earlier.
    ///
    /// ```
    /// # let gpu = warpfold::Gpu::simt();
    /// let mut x = gpu.zeroed::<f32>(3)?;
    /// gpu.upload_into(&[1.0, 2.0], x.view_mut().slice(1, 2)?)?;
    /// assert_eq!(gpu.download(&x)?, [0.0, 1.0, 2.0]);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// The lengths differ, the array's elements are not neighbours (upload to a buffer, and use [`Gpu::copy_array`]),
    /// or the memory belongs to another device.
    pub fn upload_into<'t, T: Stored>(&self, elements: &[T], to: impl IntoArrayViewMut<'t, T>) -> Result<(), Error> {
        let to = to.into_array_view_mut();
        self.use_memory(to.memory(), "upload")?;
        same_length("upload", to.len(), elements.len())?;
        let to = to.into_view()?;
        if elements.is_empty() {
            return Ok(());
        }
        // SAFETY: `Stored` types have no padding, so all of their bytes are initialized.
        let bytes = unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) };
        // SAFETY: the view has the length of `elements`.
        unsafe { self.backend().upload(bytes, to.address()) }
    }

    /// Downloads the elements of an array, a buffer or a view in C order, after all work on them that was started
    /// earlier. If they are not neighbours in that order, a copy on the device is.
    ///
    /// # Errors
    /// The memory belongs to another device, earlier work has failed, there is no memory for a copy, or the bits of an
    /// element are no value of its type (a `bool` that is neither 0 nor 1).
    pub fn download<'f, T: Stored>(&self, from: impl IntoArrayView<'f, T>) -> Result<Vec<T>, Error> {
        self.refuse_to_record("download")?;
        let from = from.into_array_view();
        match from.as_view() {
            Ok(view) => self.download_view(view),
            Err(_) => self.download_view(self.contiguous(from)?.buffer().view()),
        }
    }

    fn download_view<T: Stored>(&self, from: View<'_, T>) -> Result<Vec<T>, Error> {
        let mut elements: Vec<T> = Vec::new();
        elements.try_reserve_exact(from.len()).map_err(|_| Error::OutOfMemory {
            operation: "download",
            requested: from.len() * size_of::<T>(),
            free: crate::backend::host_memory::free_bytes(),
            device: "the host".to_owned(),
        })?;
        let bits = elements.as_mut_ptr().cast::<T::Bits>();
        // SAFETY: the vector has capacity for the view's elements, and the layout of a `T` is that of its bits. All
        // bits are values, as checked before the vector gets its length.
        unsafe {
            self.download_to(from, bits)?;
            check_values::<T>(std::slice::from_raw_parts(bits, from.len()))?;
            elements.set_len(from.len());
        }
        Ok(elements)
    }

    /// [`Gpu::download`] to a slice. The slice keeps its elements if the bits of an element on the device are no value
    /// of its type.
    ///
    /// # Errors
    /// As for [`Gpu::download`], or the lengths differ.
    pub fn download_into<'f, T: Stored>(&self, from: impl IntoArrayView<'f, T>, to: &mut [T]) -> Result<(), Error> {
        let from = from.into_array_view();
        same_length("download", to.len(), from.len())?;
        let Some(view) = from.as_view().ok().filter(|_| is_plain::<T>()) else {
            to.copy_from_slice(&self.download(from)?);
            return Ok(());
        };
        // SAFETY: the slice has the view's length, and any bits are an element.
        unsafe { self.download_to(view, to.as_mut_ptr().cast()) }
    }

    /// # Safety
    /// `to` is valid for writes of the view's elements.
    unsafe fn download_to<T: Stored>(&self, from: View<'_, T>, to: *mut T::Bits) -> Result<(), Error> {
        self.use_memory(from.memory(), "download")?;
        if from.is_empty() {
            return Ok(());
        }
        // SAFETY: the view has this number of bytes, and so has `to`, as promised by the caller.
        unsafe { self.backend().download(from.address(), to.cast(), from.len() * size_of::<T>()) }
    }

    /// Copies neighbouring bytes on the device, to others that do not overlap them.
    pub(crate) fn copy(&self, from: View<'_, u8>, to: ViewMut<'_, u8>) -> Result<(), Error> {
        self.use_memory(from.memory(), "copy")?;
        self.use_memory(to.memory(), "copy")?;
        same_length("copy", to.len(), from.len())?;
        if from.is_empty() {
            return Ok(());
        }
        // SAFETY: both have this number of bytes, and do not overlap, as promised by the caller.
        unsafe { self.backend().copy(from.address(), to.address(), from.len()) }
    }

    /// Checks that memory belongs to this device, and keeps it for an open recording, or a capture of another library.
    /// All uses of memory call this, or [`Gpu::use_memories`].
    pub(crate) fn use_memory(&self, memory: &Memory, operation: &'static str) -> Result<(), Error> {
        self.use_memories(&[memory], operation)
    }

    /// [`Gpu::use_memory`] of several memories.
    pub(crate) fn use_memories(&self, memories: &[&Memory], operation: &'static str) -> Result<(), Error> {
        for memory in memories {
            if !memory.belongs_to(self.own_backend()) {
                return Err(Error::OtherDevice { operation });
            }
            memory.share_with(self.own_backend())?;
        }
        self.keep_for_graph(memories, operation)
    }
}

#[cfg(test)]
mod tests {
    //! These tests launch no kernel, so that `cargo xtask soundness` can run them in Miri.

    use crate::{Error, Gpu};

    #[test]
    fn elements_of_each_size_come_back() {
        let gpu = Gpu::simt();
        for len in [0, 1, 7] {
            let bytes: Vec<u8> = (0..len as u8).collect();
            assert_eq!(gpu.download(&gpu.upload(&bytes).unwrap()).unwrap(), bytes);
            let wide: Vec<[u64; 2]> = (0..len as u64).map(|i| [i, !i]).collect();
            assert_eq!(gpu.download(&gpu.upload(&wide).unwrap()).unwrap(), wide);
            assert_eq!(gpu.download(&gpu.zeroed::<f64>(len).unwrap()).unwrap(), vec![0.0; len]);
        }
        let matrix = gpu.upload(&[1_u16, 2, 3, 4, 5, 6]).unwrap().reshape(&[2, 3]).unwrap();
        assert_eq!(gpu.download(&matrix).unwrap(), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn bools_come_back_only_if_their_bytes_are_0_or_1() {
        let gpu = Gpu::simt();
        let flags = [true, false, true, true];
        let mut x = gpu.upload(&flags).unwrap();
        assert_eq!(gpu.download(&x).unwrap(), flags);
        assert_eq!(gpu.download(&gpu.zeroed::<bool>(3).unwrap()).unwrap(), [false; 3]);
        assert_eq!(gpu.download(&gpu.upload(&flags).unwrap().reshape(&[2, 2]).unwrap()).unwrap(), flags);
        gpu.upload_into(&[1_u8, 0, 2, 255], x.view_mut().cast()).unwrap();
        let is_third = |error| matches!(error, Error::NotAValue { index: 2, ty: "bool" });
        assert!(is_third(gpu.download(&x).unwrap_err()));
        let mut kept = [true; 4];
        assert!(is_third(gpu.download_into(&x, &mut kept).unwrap_err()));
        assert_eq!(kept, [true; 4]);
        gpu.download_into(x.view().slice(0, 2).unwrap(), &mut kept[2..]).unwrap();
        assert_eq!(kept, [true, true, true, false]);
        assert_eq!(gpu.download(gpu.contiguous(&x).unwrap().buffer().view().cast::<u8>()).unwrap(), [1, 0, 2, 255]);
        let surrogates = gpu.upload(&[0xD800_u32]).unwrap();
        let error = gpu.download(surrogates.view().cast::<char>()).unwrap_err();
        assert!(error.to_string().contains("element 0") && error.to_string().contains("char"), "{error}");
    }

    #[test]
    fn a_slice_is_written_where_it_lies() {
        let gpu = Gpu::simt();
        let from = gpu.upload(&[1_u32, 2, 3, 4]).unwrap();
        let mut to = gpu.upload(&[9_u32; 5]).unwrap();
        let mut whole = to.view_mut();
        gpu.copy_array(from.view().slice(1, 2).unwrap(), whole.reborrow().slice(3, 2).unwrap()).unwrap();
        gpu.copy_array(from.view().slice(4, 0).unwrap(), whole.reborrow().slice(5, 0).unwrap()).unwrap();
        assert!(matches!(whole.reborrow().slice(4, 2), Err(Error::TooShort { found: 5, minimum: 6, .. })));
        assert!(matches!(whole.reborrow().slice(1, usize::MAX), Err(Error::TooShort { .. })));
        let bytes = whole.cast::<u8>();
        assert_eq!(bytes.len(), 20);
        gpu.copy_array(from.view().cast::<u8>().slice(12, 1).unwrap(), bytes.slice(1, 1).unwrap()).unwrap();
        assert_eq!(gpu.download(&to).unwrap(), [0x0409, 9, 9, 2, 3]);
    }

    #[test]
    fn memory_that_exists_is_filled_and_read() {
        let gpu = Gpu::simt();
        let mut x = gpu.upload(&[1_u16, 2, 3, 4]).unwrap();
        gpu.upload_into(&[8, 9], x.view_mut().slice(1, 2).unwrap()).unwrap();
        assert_eq!(gpu.download(x.view().slice(1, 3).unwrap()).unwrap(), [8, 9, 4]);
        let mut two = [0; 2];
        gpu.download_into(x.view().slice(2, 2).unwrap(), &mut two).unwrap();
        assert_eq!(two, [9, 4]);
        let copy = gpu.contiguous(&x).unwrap();
        gpu.upload_into(&[0; 4], &mut x).unwrap();
        assert_eq!(gpu.download(&copy).unwrap(), [1, 8, 9, 4]);
        gpu.upload_into(&[], x.view_mut().slice(4, 0).unwrap()).unwrap();
        gpu.download_into(x.view().slice(4, 0).unwrap(), &mut []).unwrap();
        assert!(gpu.contiguous(x.view().slice(0, 0).unwrap()).unwrap().is_empty());

        let is_length = |result| matches!(result, Err(Error::Length { found: 3, expected: 4, .. }));
        assert!(is_length(gpu.download_into(&x, &mut [0; 3])));
        let mut three = gpu.zeroed::<u16>(3).unwrap();
        assert!(is_length(gpu.upload_into(&[0; 4], &mut three)));
        let other = Gpu::simt();
        assert!(matches!(other.upload_into(&[0; 4], &mut x), Err(Error::OtherDevice { .. })));
        assert!(matches!(other.download_into(&x, &mut [0; 4]), Err(Error::OtherDevice { .. })));
        assert!(matches!(other.contiguous(&x), Err(Error::OtherDevice { .. })));
    }

    #[test]
    fn a_recorded_copy_keeps_its_memory() {
        let gpu = Gpu::simt();
        let mut to = gpu.zeroed::<u32>(2).unwrap();
        let from = gpu.upload(&[5_u32, 6]).unwrap();
        let recording = gpu.record(|| gpu.copy_array(&from, &mut to)).unwrap();
        drop(from);
        assert_eq!(gpu.download(&to).unwrap(), [0, 0]);
        recording.start().unwrap();
        assert_eq!(gpu.download(&to).unwrap(), [5, 6]);
        drop(to);
        recording.start().unwrap();
    }
}
