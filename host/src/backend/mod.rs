//! The two backends that run kernels, behind one interface: memory, copies, launches, time.

pub(crate) mod captured;
pub(crate) mod cuda;
mod driver_errors;
#[cfg(feature = "simt")]
pub(crate) mod executor;
pub(crate) mod host_memory;
mod limits;
mod once_map;
mod recycled;

use std::any::Any;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cuda_std::element::Plain;
use cuda_std::launch::{Dim3, KernelId, NamedParameter};
use cust::event::Event;

use crate::interop::StreamId;
use crate::occupancy::Resources;
use crate::{DeviceInfo, Error};

pub use captured::Captured;
pub use limits::SharedMemory;

/// What keeps memory or a stream of another library.
pub type Owner = Box<dyn Any + Send + Sync>;

/// A backend. Its work runs in stream order: a call sees the effects of all earlier calls.
pub trait Backend: Send + Sync + Any {
    /// The device's description.
    fn info(&self) -> Result<DeviceInfo, Error>;

    /// The number of multiprocessors that reductions are planned for.
    fn multiprocessors(&self) -> usize;

    /// Whether arithmetic in `f64` is about half as fast as in `f32`, as on GPUs for data centers, and not much slower.
    fn has_fast_f64(&self) -> bool;

    /// Whether the backend's times are those of a GPU.
    fn is_gpu(&self) -> bool;

    /// Bytes of memory that are free.
    fn free_memory(&self) -> Result<usize, Error>;

    /// Allocates `bytes` bytes, at least 1. Returns the address, which is a multiple of 256, and whether the memory is
    /// new, and not that of an earlier allocation of the same size.
    ///
    /// Earlier work of this backend may still use the memory. So work of another backend on it waits for this backend
    /// first.
    fn allocate(&self, bytes: usize, operation: &'static str) -> Result<(u64, bool), Error>;

    /// Allocates `bytes` bytes of host memory that the backend's kernels write, at the address that it returns: a
    /// multiple of 256.
    fn allocate_on_host(&self, bytes: usize, operation: &'static str) -> Result<u64, Error>;

    /// Frees memory of [`Backend::allocate_on_host`].
    ///
    /// # Safety
    /// The memory is from this backend, with this size, and is no longer used, also by no work that was started.
    unsafe fn free_on_host(&self, address: u64, bytes: usize);

    /// Frees memory.
    ///
    /// # Safety
    /// The memory is from [`Backend::allocate`] of this backend, with this size, and is no longer used, except by work
    /// that was started earlier. If `is_own`, that is work of this backend alone.
    unsafe fn free(&self, address: u64, bytes: usize, is_own: bool);

    /// Copies to the backend.
    ///
    /// # Safety
    /// `to` has space for `from` in one allocation of this backend.
    unsafe fn upload(&self, from: &[u8], to: u64) -> Result<(), Error>;

    /// Starts a copy to the backend, and does not wait for it.
    ///
    /// # Safety
    /// `from` is memory of [`Backend::allocate_on_host`] of a backend on this device, and `to` memory of this backend.
    /// Both have `bytes` bytes in one allocation each. Until the copy is done, `from` exists and is not written.
    unsafe fn start_upload(&self, from: u64, to: u64, bytes: usize) -> Result<(), Error>;

    /// Copies from the backend, after all work started earlier.
    ///
    /// # Safety
    /// `from` has `bytes` bytes in one allocation of this backend, and `to` is valid for writes of `bytes` bytes.
    unsafe fn download(&self, from: u64, to: *mut u8, bytes: usize) -> Result<(), Error>;

    /// Copies within the backend.
    ///
    /// # Safety
    /// Both have `bytes` bytes, each in one allocation of this backend, and do not overlap.
    unsafe fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<(), Error>;

    /// Sets bytes.
    ///
    /// # Safety
    /// `address` has `bytes` bytes in one allocation of this backend.
    unsafe fn fill(&self, address: u64, byte: u8, bytes: usize) -> Result<(), Error>;

    /// Sets memory to 0, as a part of its allocation: after earlier work, or at once if another library captures the
    /// stream, so that it is not a part of the graph.
    ///
    /// # Safety
    /// As for [`Backend::fill`], and only earlier work of this backend uses the memory.
    unsafe fn zero(&self, address: u64, bytes: usize) -> Result<(), Error>;

    /// Starts a kernel.
    ///
    /// # Safety
    /// `launch.slots` hold the arguments of `launch.thread` and of the PTX entry `launch.kernel`, and the memory that
    /// they refer to belongs to this backend.
    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<(), Error>;

    /// The resources of a kernel in blocks of `threads_per_block` threads, and how many blocks a multiprocessor runs at
    /// once. `None` in the executor, which has no registers.
    fn resources(&self, kernel: KernelId, threads_per_block: u32) -> Result<Option<KernelOccupancy>, Error>;

    /// The device's shared memory.
    fn shared_memory(&self) -> SharedMemory;

    /// Waits until all started work is done.
    fn synchronize(&self) -> Result<(), Error>;

    /// Another backend on the same device and memory, with a stream of its own.
    fn fork(&self) -> Result<Arc<dyn Backend>, Error>;

    /// [`Backend::fork`] for copies whose order with other work events alone give: no default stream waits for them.
    fn fork_for_copies(&self) -> Result<Arc<dyn Backend>, Error> {
        self.fork()
    }

    /// Refuses a child of `fork`, which cannot use the backend's memory.
    fn check_process(&self) -> Result<(), Error>;

    /// Another backend on the same device and memory, whose work goes to a stream of another library. It keeps the
    /// stream's owner, if there is one.
    ///
    /// # Safety
    /// `stream` is a stream of this process, and exists during each call of the backend, and until the owner is
    /// dropped. No thread begins or ends a capture of it during such a call. The drop of the backend, and of memory of
    /// it, does not use the stream.
    unsafe fn on_stream(&self, stream: *mut c_void, owner: Option<Owner>) -> Result<Arc<dyn Backend>, Error>;

    /// Notes that other libraries may use the stream from now on, and capture it.
    fn share_stream(&self);

    /// The identifier of a stream.
    ///
    /// # Safety
    /// `stream` is a stream of this process.
    unsafe fn stream_id(&self, stream: *mut c_void) -> Result<StreamId, Error>;

    /// The capture by another library that this backend's work goes to now. What the work uses is kept by it.
    fn capture(&self) -> Result<Option<Captured>, Error>;

    /// Checks that memory of another library can be used, as far as that can be found out. `bytes` is not 0.
    fn check_memory(&self, address: u64, bytes: usize) -> Result<(), Error>;

    /// An event after the work that was started so far; `None` if that is done.
    fn record_event(&self) -> Result<Option<Event>, Error>;

    /// Lets later work wait for an event.
    fn wait_event(&self, event: &Event) -> Result<(), Error>;

    /// Lets the host wait for an event.
    fn synchronize_event(&self, event: &Event) -> Result<(), Error>;

    /// An identifier that backends on one device and memory share.
    fn device_id(&self) -> usize;

    /// A backend on the same device and memory that records work instead of starting it, until
    /// [`Backend::end_recording`].
    fn recorder(&self) -> Result<Arc<dyn Backend>, Error>;

    /// Ends a recorder's recording and returns the recorded work. Can be called once.
    fn end_recording(&self) -> Result<Box<dyn Recorded>, Error>;

    /// The CUDA stream of the backend's work, for other libraries; `None` in the executor.
    fn stream(&self) -> Option<*mut c_void>;

    /// Counts the lanes' operations in all launches that this thread starts in `work`. Only the executor counts.
    #[cfg(feature = "simt")]
    fn profile(&self, work: &mut dyn FnMut() -> Result<(), Error>) -> Result<simt::Profile, Error>;

    /// Times the work that `work` starts, by the device's clock if it has one.
    fn time(&self, work: &mut dyn FnMut() -> Result<(), Error>) -> Result<Duration, Error>;
}

/// Recorded work.
pub trait Recorded: Send + Sync {
    /// Starts the work on the backend that it was recorded on. A recorder refuses it.
    ///
    /// # Safety
    /// All memory that the work uses still exists.
    unsafe fn start(&self, backend: &dyn Backend) -> Result<(), Error>;
}

/// A kernel's resources, and how many of its blocks a multiprocessor runs at once, as the driver computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelOccupancy {
    /// The kernel's resources.
    pub resources: Resources,
    /// Blocks that a multiprocessor runs at once.
    pub blocks: u32,
}

/// A launch, checked as far as its types allow.
#[cfg_attr(not(feature = "simt"), expect(dead_code, reason = "only the executor reads `thread`"))]
pub struct Launch<'a> {
    /// The kernel.
    pub kernel: KernelId,
    /// Blocks.
    pub grid: Dim3,
    /// Threads of a block.
    pub block: Dim3,
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: usize,
    /// The arguments, as 64-bit words.
    pub slots: &'a [u64],
    /// The parameters that the slots belong to.
    pub parameters: &'static [NamedParameter],
    /// Runs one thread on the CPU.
    pub thread: unsafe fn(&[u64]),
}

/// Memory of a backend. Clones share the memory, which is freed when the last of them is dropped.
#[derive(Clone)]
pub struct Memory(Arc<Allocation>);

struct Allocation {
    backend: Arc<dyn Backend>,
    address: u64,
    bytes: usize,
    origin: Origin,
    /// Set once another backend may use the memory.
    shared: OnceLock<()>,
    /// Whether another library may have its address.
    is_exposed: AtomicBool,
    /// `None` for ordinary memory. A workspace is zeroed before and after each kernel: whether a failed kernel may have
    /// left it otherwise.
    is_dirty: Option<AtomicBool>,
}

/// Where memory is from.
enum Origin {
    /// [`Backend::allocate`].
    Device,
    /// [`Backend::allocate_on_host`].
    Host,
    /// Another library. The owner, if there is one, keeps it allocated.
    Borrowed { owner: Option<Owner> },
}

/// The address of empty memory: aligned for everything, and never accessed.
const EMPTY_ADDRESS: u64 = 256;

/// The width of the widest access of a kernel, in bytes. The size of an allocation is a multiple of it, so that an
/// access that begins inside the allocation also ends inside it.
const MAX_ACCESS_BYTES: usize = 16;

/// The size of an allocation for `bytes` bytes.
fn padded(backend: &dyn Backend, bytes: usize, operation: &'static str) -> Result<usize, Error> {
    bytes.checked_next_multiple_of(MAX_ACCESS_BYTES).ok_or_else(|| Error::OutOfMemory {
        operation,
        requested: bytes,
        free: backend.free_memory().unwrap_or(0),
        device: backend.info().map_or_else(|_| "the device".to_owned(), |info| info.name),
    })
}

/// A pointer to host memory: [`Backend::allocate_on_host`] has exposed its address.
fn host_pointer(address: u64) -> *mut u8 {
    ptr::with_exposed_provenance_mut(address as usize)
}

impl Memory {
    /// New memory with arbitrary contents.
    pub(crate) fn new(backend: &Arc<dyn Backend>, bytes: usize, operation: &'static str) -> Result<Self, Error> {
        Self::allocate(backend, bytes, operation, None)
    }

    /// New zeroed host memory, which kernels write; `bytes` is a multiple of 16 and not 0. It must be forgotten, and
    /// not dropped, while work that was started may write it.
    pub(crate) fn on_host(backend: &Arc<dyn Backend>, bytes: usize, operation: &'static str) -> Result<Self, Error> {
        debug_assert!(bytes > 0 && bytes.is_multiple_of(MAX_ACCESS_BYTES));
        let address = backend.allocate_on_host(bytes, operation)?;
        // SAFETY: the memory's own bytes, which nothing else uses yet.
        unsafe { host_pointer(address).write_bytes(0, bytes) };
        Ok(Self(Arc::new(Allocation::new(backend, address, bytes, Origin::Host, None))))
    }

    /// A value that a kernel has written to the beginning of host memory.
    ///
    /// # Safety
    /// All work that writes the memory is done.
    pub(crate) unsafe fn read_on_host<T: Plain>(&self) -> T {
        let Allocation { address, bytes, ref origin, .. } = *self.0;
        assert!(matches!(origin, Origin::Host) && size_of::<T>() <= bytes, "it is not host memory, or too short");
        // SAFETY: the memory has these bytes, is aligned and initialized, and any bits are a `T`. Nothing writes it
        // now, as promised by the caller.
        unsafe { host_pointer(address).cast::<T>().cast_const().read_volatile() }
    }

    /// The elements in host memory, from its beginning on.
    ///
    /// # Safety
    /// No work that was started and is not done uses the memory.
    pub(crate) unsafe fn slice_on_host<T: Plain>(&mut self) -> &mut [T] {
        let Allocation { address, bytes, ref origin, .. } = *self.0;
        assert!(
            matches!(origin, Origin::Host) && Arc::strong_count(&self.0) == 1,
            "it is not host memory, or is shared"
        );
        // SAFETY: the memory has these bytes, is aligned to 256 bytes and initialized, and any bits are a `T`. Nothing
        // else uses it: no work, as promised by the caller, and no clone.
        unsafe { std::slice::from_raw_parts_mut(host_pointer(address).cast(), bytes / size_of::<T>()) }
    }

    /// Memory of another library, which `owner` keeps allocated if there is one.
    ///
    /// # Safety
    /// As for [`interop::borrow_mut`](crate::interop::borrow_mut), or for memory that is only read, as for
    /// [`interop::borrow`](crate::interop::borrow).
    pub(crate) unsafe fn borrowed(
        backend: &Arc<dyn Backend>,
        address: u64,
        bytes: usize,
        owner: Option<Owner>,
    ) -> Self {
        let address = if bytes == 0 { EMPTY_ADDRESS } else { address };
        Self(Arc::new(Allocation::new(backend, address, bytes, Origin::Borrowed { owner }, None)))
    }

    /// The same borrowed memory, which nothing uses yet, with an owner.
    ///
    /// # Safety
    /// The memory is allocated until the owner is dropped.
    pub(crate) unsafe fn with_owner(&self, owner: Owner) -> Self {
        let Allocation { backend, address, bytes, .. } = &*self.0;
        // SAFETY: as promised by the caller.
        unsafe { Self::borrowed(backend, *address, *bytes, Some(owner)) }
    }

    /// An identifier that clones share, and no other memory has.
    pub(crate) fn id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Whether the memory is allocated as long as this value exists. That of another library without an owner is
    /// allocated only as long as it is borrowed.
    pub(crate) fn is_kept(&self) -> bool {
        !matches!(self.0.origin, Origin::Borrowed { owner: None })
    }

    /// New zeroed memory. Every kernel leaves it zeroed, unless the kernel fails.
    pub(crate) fn workspace(backend: &Arc<dyn Backend>, bytes: usize, operation: &'static str) -> Result<Self, Error> {
        let memory = Self::allocate(backend, bytes, operation, Some(AtomicBool::new(true)))?;
        memory.clean()?;
        Ok(memory)
    }

    fn allocate(
        backend: &Arc<dyn Backend>,
        bytes: usize,
        operation: &'static str,
        is_dirty: Option<AtomicBool>,
    ) -> Result<Self, Error> {
        captured::free_released();
        let (address, is_new) = match bytes {
            0 => (EMPTY_ADDRESS, false),
            _ => backend.allocate(padded(backend.as_ref(), bytes, operation)?, operation)?,
        };
        let memory = Self(Arc::new(Allocation::new(backend, address, bytes, Origin::Device, is_dirty)));
        if is_new && !bytes.is_multiple_of(MAX_ACCESS_BYTES) {
            // Kernels load 16 bytes even if they use fewer, and compute-sanitizer would report the padding as
            // uninitialized.
            let last = (bytes / MAX_ACCESS_BYTES * MAX_ACCESS_BYTES) as u64;
            // SAFETY: the memory's own last 16 bytes.
            unsafe { backend.zero(address + last, MAX_ACCESS_BYTES)? };
        }
        if let Some(capture) = backend.capture()? {
            capture.keep(&memory);
        }
        Ok(memory)
    }

    /// Lets work of `backend` use the memory.
    ///
    /// If it is another backend than the memory's own, its first use waits for the own backend: the memory may have
    /// been that of a freed buffer, which earlier work still uses.
    pub(crate) fn share_with(&self, backend: &Arc<dyn Backend>) -> Result<(), Error> {
        if Arc::ptr_eq(&self.0.backend, backend) {
            return Ok(());
        }
        if self.0.shared.get().is_none() {
            // Two threads may both wait.
            self.0.backend.synchronize()?;
            let _ = self.0.shared.set(());
        }
        Ok(())
    }

    /// Notes that another library may use the memory.
    pub(crate) fn expose(&self) {
        self.0.is_exposed.store(true, Ordering::Relaxed);
    }

    /// Records that work on this memory has failed.
    pub(crate) fn mark_dirty(&self) {
        if let Some(is_dirty) = &self.0.is_dirty {
            is_dirty.store(true, Ordering::SeqCst);
        }
    }

    /// Zeroes a workspace if work on it has failed.
    pub(crate) fn clean(&self) -> Result<(), Error> {
        let Allocation { backend, address, bytes, is_dirty, .. } = &*self.0;
        if *bytes > 0 && is_dirty.as_ref().is_some_and(|is_dirty| is_dirty.load(Ordering::SeqCst)) {
            // SAFETY: the memory's own bytes.
            unsafe { backend.zero(*address, *bytes)? };
            self.0.is_dirty.iter().for_each(|is_dirty| is_dirty.store(false, Ordering::SeqCst));
        }
        Ok(())
    }

    pub(crate) fn address(&self) -> u64 {
        self.0.address
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// Whether the memory belongs to `backend`, or to another backend on the same device.
    pub(crate) fn belongs_to(&self, backend: &Arc<dyn Backend>) -> bool {
        Arc::ptr_eq(&self.0.backend, backend) || self.0.backend.device_id() == backend.device_id()
    }
}

impl Allocation {
    /// Memory that only its backend uses so far.
    fn new(
        backend: &Arc<dyn Backend>,
        address: u64,
        bytes: usize,
        origin: Origin,
        is_dirty: Option<AtomicBool>,
    ) -> Self {
        let (shared, is_exposed) = (OnceLock::new(), AtomicBool::new(false));
        Self { backend: backend.clone(), address, bytes, origin, shared, is_exposed, is_dirty }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let bytes = self.bytes.next_multiple_of(MAX_ACCESS_BYTES);
        // SAFETY: `allocate` or `on_host` allocated the memory with this size unless it is borrowed, and nothing uses
        // it after this.
        unsafe {
            match (&self.origin, self.bytes) {
                (Origin::Borrowed { .. }, _) | (_, 0) => {}
                (Origin::Device, _) => {
                    let is_own = self.shared.get().is_none() && !*self.is_exposed.get_mut();
                    self.backend.free(self.address, bytes, is_own);
                }
                (Origin::Host, _) => self.backend.free_on_host(self.address, bytes),
            }
        }
    }
}
