//! A CUDA device as a backend, through `cust`.

mod foreign;
mod shared;

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cuda_driver::{
    CUfunction_attribute, CUlaunchAttribute, CUlaunchConfig, CUresult, CUstreamCaptureStatus, DriverError,
};
use cust::context::Entered;
use cust::device::DeviceAttribute;
use cust::event::{Event, EventFlags};
use cust::graph::{CaptureMode, GraphExec};
use cust::stream::{Stream, StreamFlags, StreamWaitEventFlags};

use crate::backend::captured::Captured;
use crate::backend::driver_errors::failed;
use crate::backend::host_memory::free_bytes;
use crate::backend::recycled::{Block, Recycled};
use crate::backend::{Backend, KernelOccupancy, Launch, Owner, Recorded, SharedMemory};
use crate::interop::StreamId;
use crate::occupancy::{Multiprocessor, Resources};
use crate::ptx::Library;
use crate::{DeviceInfo, Error, KernelId};
use foreign::LastCapture;
use shared::{Guest, Loaded, Shared, attribute_of};

/// A device, and the stream that all work of this handle goes to.
pub(crate) struct CudaDevice {
    // Fields are dropped in this order, and the context must be last.
    stream: Stream,
    /// Freed memory that only this stream has used.
    recycled: Mutex<Recycled>,
    /// Whether it is a recorder, whose stream captures its work.
    is_recorder: bool,
    /// Whether other libraries may use the stream, and capture it.
    is_shared: AtomicBool,
    capture: LastCapture,
    /// What keeps the stream, if another library has made it.
    owner_of_stream: Option<Owner>,
    shared: Arc<Shared>,
}

/// Work on the stream is ordered with the legacy default stream, which PyTorch uses.
const STREAM_FLAGS: StreamFlags = StreamFlags::DEFAULT;

impl CudaDevice {
    /// The device `ordinal`, with the kernels of `libraries`.
    pub(crate) fn new(ordinal: u32, libraries: Vec<&'static Library>) -> Result<Self, Error> {
        Self::with_own_stream(&Arc::new(Shared::new(ordinal, libraries)?), false)
    }

    /// Makes the context current in this thread, as long as the value lives. Every call that reaches the driver begins
    /// with this one or with [`CudaDevice::enter_as_guest`].
    fn enter(&self) -> Result<Entered<'_>, Error> {
        self.shared.enter()
    }

    /// [`CudaDevice::enter`] for calls that a capture of another library would not survive, such as allocations.
    fn enter_as_guest(&self) -> Result<Guest<'_>, Error> {
        self.shared.enter_as_guest()
    }

    /// A handle of the device with its own stream.
    fn with_own_stream(shared: &Arc<Shared>, is_recorder: bool) -> Result<Self, Error> {
        Self::with_new_stream(shared, is_recorder, STREAM_FLAGS)
    }

    fn with_new_stream(shared: &Arc<Shared>, is_recorder: bool, flags: StreamFlags) -> Result<Self, Error> {
        let _entered = shared.enter_as_guest()?;
        let stream = Stream::new(flags, None).map_err(failed("create a CUDA stream"))?;
        Ok(Self::with_stream(shared, stream, is_recorder))
    }

    fn with_stream(shared: &Arc<Shared>, stream: Stream, is_recorder: bool) -> Self {
        Self {
            stream,
            recycled: Mutex::default(),
            is_recorder,
            is_shared: AtomicBool::new(false),
            capture: LastCapture::default(),
            owner_of_stream: None,
            shared: shared.clone(),
        }
    }

    fn recycled(&self) -> MutexGuard<'_, Recycled> {
        self.recycled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the memory that waits for an allocation to the driver.
    fn free_recycled(&self) {
        let blocks = self.recycled().take_all();
        self.free_blocks(&blocks);
    }

    /// Returns memory that nothing but started work uses to the driver.
    fn free_blocks(&self, blocks: &[Block]) {
        if blocks.is_empty() {
            return;
        }
        let Ok(_entered) = self.enter_as_guest() else { return };
        for block in blocks {
            // SAFETY: `allocate` has allocated it, and its last owner has given it up. The driver waits for work that
            // uses the memory. An error here comes from earlier work, and another call reports it.
            let _ = unsafe { self.shared.driver.cuMemFree_v2(block.address) };
        }
    }

    /// [`CudaDevice::enter`] for a call that cannot be recorded: the driver would discard the whole recording.
    fn enter_unrecorded(&self, operation: &'static str) -> Result<Guest<'_>, Error> {
        if self.is_recorder {
            return Err(Error::Recording { operation });
        }
        self.enter_as_guest()
    }

    /// [`CudaDevice::enter_unrecorded`] for a call that waits for the stream, which a capture of another library would
    /// not survive in any mode.
    fn enter_to_wait(&self, operation: &'static str) -> Result<Guest<'_>, Error> {
        let entered = self.enter_unrecorded(operation)?;
        if self.is_captured()? { Err(Error::Captured { operation }) } else { Ok(entered) }
    }

    /// Whether other libraries may use the stream.
    fn has_shared_stream(&self) -> bool {
        self.is_shared.load(Ordering::Relaxed)
    }
}

impl Drop for CudaDevice {
    fn drop(&mut self) {
        self.free_recycled();
    }
}

impl Backend for CudaDevice {
    fn info(&self) -> Result<DeviceInfo, Error> {
        let query = |attribute| attribute_of(self.shared.device, attribute);
        let known = Multiprocessor::of(self.shared.compute);
        Ok(DeviceInfo {
            name: self.shared.device.name().map_err(failed("query the CUDA device's name"))?,
            compute_capability: Some((self.shared.compute / 10, self.shared.compute % 10)),
            multiprocessors: query(DeviceAttribute::MultiprocessorCount)?,
            memory_bytes: self.shared.device.total_memory().map_err(failed("query the CUDA device's memory"))?,
            l2_bytes: Some(query(DeviceAttribute::L2CacheSize)? as usize),
            memory_clock_khz: Some(query(DeviceAttribute::MemoryClockRate)?),
            memory_bus_bits: Some(query(DeviceAttribute::GlobalMemoryBusWidth)?),
            clock_khz: Some(query(DeviceAttribute::ClockRate)?),
            multiprocessor: Some(Multiprocessor {
                compute: self.shared.compute,
                threads: query(DeviceAttribute::MaxThreadsPerMultiprocessor)?,
                blocks: query(DeviceAttribute::MaxBlocksPerMultiprocessor)?,
                registers: query(DeviceAttribute::MaxRegistersPerMultiprocessor)?,
                shared_bytes: query(DeviceAttribute::MaxSharedMemoryPerMultiprocessor)?,
                // The architecture's numbers, as in the executor: the driver does not report the granularity.
                reserved_shared_bytes: known.map_or(1024, |known| known.reserved_shared_bytes),
                shared_granularity: known.map_or(128, |known| known.shared_granularity),
            }),
            driver: Some(self.shared.driver.version()),
        })
    }

    fn multiprocessors(&self) -> usize {
        self.shared.multiprocessors
    }

    fn has_fast_f64(&self) -> bool {
        self.shared.has_fast_f64
    }

    fn is_gpu(&self) -> bool {
        true
    }

    fn free_memory(&self) -> Result<usize, Error> {
        let _entered = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two sizes.
        unsafe { self.shared.driver.cuMemGetInfo_v2(&mut free, &mut total) }
            .map_err(failed("query the free memory"))?;
        Ok(free)
    }

    fn allocate(&self, bytes: usize, operation: &'static str) -> Result<(u64, bool), Error> {
        // Captured work may run at any time later, together with earlier work of the stream.
        if !self.is_captured()?
            && let Some(address) = self.recycled().take(bytes)
        {
            return Ok((address, false));
        }
        let _entered = self.enter_unrecorded(operation)?;
        let mut address = 0;
        // SAFETY: writes the address of new memory.
        let mut allocate = || unsafe { self.shared.driver.cuMemAlloc_v2(&mut address, bytes) };
        let allocated = allocate().or_else(|_| {
            self.free_recycled();
            allocate()
        });
        match allocated {
            Ok(()) => Ok((address, true)),
            Err(error) if error.code() == CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                let free = self.free_memory().unwrap_or(0);
                let device = self.shared.device.name().unwrap_or_else(|_| "the device".to_owned());
                Err(Error::OutOfMemory { operation, requested: bytes, free, device })
            }
            Err(error) => Err(failed(operation)(error)),
        }
    }

    fn allocate_on_host(&self, bytes: usize, operation: &'static str) -> Result<u64, Error> {
        let _entered = self.enter_unrecorded(operation)?;
        let mut address = std::ptr::null_mut();
        // With unified addressing, which every 64-bit system with a supported device has, page-locked memory has the
        // same address on the device.
        // SAFETY: writes the address of new memory.
        match unsafe { self.shared.driver.cuMemAllocHost_v2(&mut address, bytes) } {
            Ok(()) => Ok(address.expose_provenance() as u64),
            Err(error) if error.code() == CUresult::CUDA_ERROR_OUT_OF_MEMORY => Err(Error::OutOfMemory {
                operation,
                requested: bytes,
                free: free_bytes(),
                device: "page-locked memory of the host".to_owned(),
            }),
            Err(error) => Err(failed(operation)(error)),
        }
    }

    unsafe fn free_on_host(&self, address: u64, _bytes: usize) {
        let Ok(_entered) = self.enter_as_guest() else { return };
        let address = std::ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: as promised by the caller. An error is that of earlier work, which other calls report.
        let _ = unsafe { self.shared.driver.cuMemFreeHost(address) };
    }

    unsafe fn free(&self, address: u64, bytes: usize, is_own: bool) {
        let block = Block { address, bytes };
        // The guard is dropped before the driver is called.
        let freed = if is_own { self.recycled().put(block) } else { vec![block] };
        self.free_blocks(&freed);
    }

    unsafe fn upload(&self, from: &[u8], to: u64) -> Result<(), Error> {
        let _entered = self.enter_to_wait("upload")?;
        // SAFETY: as promised by the caller; `from` lives until the stream is done, below.
        unsafe {
            self.shared.driver.cuMemcpyHtoDAsync_v2(to, from.as_ptr().cast(), from.len(), self.stream.as_inner())
        }
        .map_err(failed("copy to the device"))?;
        self.stream.synchronize().map_err(failed("copy to the device"))
    }

    unsafe fn start_upload(&self, from: u64, to: u64, bytes: usize) -> Result<(), Error> {
        let _entered = self.enter_to_wait("upload")?;
        let from = std::ptr::with_exposed_provenance(from as usize);
        // SAFETY: as promised by the caller.
        unsafe { self.shared.driver.cuMemcpyHtoDAsync_v2(to, from, bytes, self.stream.as_inner()) }
            .map_err(failed("copy to the device"))
    }

    unsafe fn download(&self, from: u64, to: *mut u8, bytes: usize) -> Result<(), Error> {
        let _entered = self.enter_to_wait("download")?;
        // SAFETY: as promised by the caller; `to` lives until the stream is done, below.
        unsafe { self.shared.driver.cuMemcpyDtoHAsync_v2(to.cast(), from, bytes, self.stream.as_inner()) }
            .map_err(failed("copy from the device"))?;
        self.stream.synchronize().map_err(failed("copy from the device"))
    }

    unsafe fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<(), Error> {
        let _entered = self.enter()?;
        // SAFETY: as promised by the caller.
        unsafe { self.shared.driver.cuMemcpyDtoDAsync_v2(to, from, bytes, self.stream.as_inner()) }
            .map_err(failed("copy on the device"))
    }

    unsafe fn fill(&self, address: u64, byte: u8, bytes: usize) -> Result<(), Error> {
        let _entered = self.enter()?;
        // SAFETY: as promised by the caller.
        unsafe { self.shared.driver.cuMemsetD8Async(address, byte, bytes, self.stream.as_inner()) }
            .map_err(failed("fill memory of the device"))
    }

    unsafe fn zero(&self, address: u64, bytes: usize) -> Result<(), Error> {
        // SAFETY: as promised by the caller.
        unsafe {
            match self.is_captured()? {
                true => self.zero_at_once(address, bytes),
                false => self.fill(address, 0, bytes),
            }
        }
    }

    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<(), Error> {
        self.shared.limits.check(launch)?;
        let _entered = self.enter()?;
        let Loaded { function, is_dependent, .. } = self.shared.kernel(launch.kernel)?;
        let mut arguments = Vec::with_capacity(launch.slots.len());
        let mut slots = launch.slots;
        for parameter in launch.parameters {
            let (own, rest) = slots.split_at(parameter.slots);
            slots = rest;
            // A memory argument is two parameters of the entry: an address and a length. Any other argument is one
            // parameter, of any size.
            arguments.push(own.as_ptr().cast_mut().cast::<c_void>());
            if parameter.element.is_some() {
                arguments.push(own[1..].as_ptr().cast_mut().cast());
            }
        }
        let Launch { grid, block, .. } = launch;
        if is_dependent {
            let mut attribute = CUlaunchAttribute::programmatic_stream_serialization();
            let config = CUlaunchConfig {
                gridDimX: grid.x,
                gridDimY: grid.y,
                gridDimZ: grid.z,
                blockDimX: block.x,
                blockDimY: block.y,
                blockDimZ: block.z,
                sharedMemBytes: launch.dynamic_shared as u32,
                hStream: self.stream.as_inner(),
                attrs: &mut attribute,
                numAttrs: 1,
            };
            let (arguments, extra) = (arguments.as_mut_ptr(), std::ptr::null_mut());
            // SAFETY: as promised by the caller; the kernel waits for its prerequisites.
            return unsafe { self.shared.driver.cuLaunchKernelEx(&config, function, arguments, extra) }
                .map_err(failed("launch a kernel"));
        }
        // SAFETY: as promised by the caller. The driver copies the arguments before it returns.
        unsafe {
            self.shared.driver.cuLaunchKernel(
                function,
                grid.x,
                grid.y,
                grid.z,
                block.x,
                block.y,
                block.z,
                launch.dynamic_shared as u32,
                self.stream.as_inner(),
                arguments.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        }
        .map_err(failed("launch a kernel"))
    }

    fn resources(&self, kernel: KernelId, threads_per_block: u32) -> Result<Option<KernelOccupancy>, Error> {
        let _entered = self.enter()?;
        let function = self.shared.kernel(kernel)?.function;
        let query = |attribute| self.shared.attribute_of_kernel(function, attribute);
        let resources = Resources {
            threads_per_block,
            registers_per_thread: query(CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            shared_bytes: query(CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
        };
        let mut blocks = 0;
        // SAFETY: writes one integer; the function belongs to a loaded module.
        unsafe {
            self.shared.driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut blocks,
                function,
                threads_per_block as i32,
                0,
            )
        }
        .map_err(failed("query a kernel's occupancy"))?;
        Ok(Some(KernelOccupancy { resources, blocks: blocks.max(0) as u32 }))
    }

    fn shared_memory(&self) -> SharedMemory {
        self.shared.limits.shared
    }

    fn synchronize(&self) -> Result<(), Error> {
        let _entered = self.enter_to_wait("synchronize")?;
        self.stream.synchronize().map_err(failed("wait for the device"))
    }

    fn fork(&self) -> Result<Arc<dyn Backend>, Error> {
        Ok(Arc::new(Self::with_own_stream(&self.shared, false)?))
    }

    fn fork_for_copies(&self) -> Result<Arc<dyn Backend>, Error> {
        Ok(Arc::new(Self::with_new_stream(&self.shared, false, StreamFlags::NON_BLOCKING)?))
    }

    fn check_process(&self) -> Result<(), Error> {
        self.shared.check_process()
    }

    unsafe fn on_stream(&self, stream: *mut c_void, owner: Option<Owner>) -> Result<Arc<dyn Backend>, Error> {
        // SAFETY: as promised by the caller.
        Ok(Arc::new(unsafe { self.on_borrowed(stream, owner)? }))
    }

    fn share_stream(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    unsafe fn stream_id(&self, stream: *mut c_void) -> Result<StreamId, Error> {
        const OPERATION: &str = "query a stream's identifier";
        let _entered = self.enter()?;
        let (driver, stream) = (self.shared.driver, stream.cast());
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: writes one integer; the stream exists, as promised by the caller.
        unsafe { driver.cuStreamIsCapturing(stream, &mut status) }.map_err(failed(OPERATION))?;
        if status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE {
            // In any mode, a capture does not survive the query below.
            return Ok(StreamId::Captured);
        }
        let mut id = 0;
        // SAFETY: as above.
        match unsafe { driver.cuStreamGetId(stream, &mut id) } {
            Ok(()) => Ok(StreamId::Known(id)),
            Err(DriverError::Missing(_)) => Ok(StreamId::Unknown),
            Err(error) => Err(failed(OPERATION)(error)),
        }
    }

    fn capture(&self) -> Result<Option<Captured>, Error> {
        self.current_capture()
    }

    fn check_memory(&self, address: u64, bytes: usize) -> Result<(), Error> {
        self.check_borrowed(address, bytes)
    }

    fn record_event(&self) -> Result<Option<Event>, Error> {
        let _entered = self.enter_unrecorded("wait for another handle")?;
        let event = Event::new(EventFlags::DISABLE_TIMING).map_err(failed("create a CUDA event"))?;
        event.record(&self.stream).map_err(failed("record a CUDA event"))?;
        Ok(Some(event))
    }

    fn wait_event(&self, event: &Event) -> Result<(), Error> {
        let _entered = self.enter_unrecorded("wait for another handle")?;
        // If another library captures the event's stream, this one joins the capture.
        self.share_stream();
        self.stream.wait_event(event, StreamWaitEventFlags::DEFAULT).map_err(failed("wait for a CUDA event"))
    }

    fn synchronize_event(&self, event: &Event) -> Result<(), Error> {
        let _entered = self.enter_unrecorded("wait for a copy")?;
        event.synchronize().map_err(failed("wait for a CUDA event"))
    }

    fn device_id(&self) -> usize {
        Arc::as_ptr(&self.shared).addr()
    }

    fn recorder(&self) -> Result<Arc<dyn Backend>, Error> {
        // Only this recording uses the stream, so the work of other threads runs as usual and is not recorded. The mode
        // is relaxed, because those threads may call any function of the driver.
        let recorder = Self::with_own_stream(&self.shared, true)?;
        recorder.stream.begin_capture(CaptureMode::Relaxed).map_err(failed("begin a recording"))?;
        Ok(Arc::new(recorder))
    }

    fn end_recording(&self) -> Result<Box<dyn Recorded>, Error> {
        let _entered = self.enter()?;
        let graph = self.stream.end_capture().map_err(failed("end a recording"))?;
        let executable = graph.instantiate().map_err(failed("make a graph of a recording"))?;
        Ok(Box::new(Graph { executable, shared: self.shared.clone() }))
    }

    fn stream(&self) -> Option<*mut c_void> {
        Some(self.stream.as_inner().cast())
    }

    #[cfg(feature = "simt")]
    fn profile(&self, _: &mut dyn FnMut() -> Result<(), Error>) -> Result<simt::Profile, Error> {
        Err(Error::NoCounters)
    }

    fn time(&self, work: &mut dyn FnMut() -> Result<(), Error>) -> Result<Duration, Error> {
        let _entered = self.enter_to_wait("time")?;
        let event = || Event::new(EventFlags::DEFAULT).map_err(failed("create a CUDA event"));
        let (start, end) = (event()?, event()?);
        start.record(&self.stream).map_err(failed("record a CUDA event"))?;
        work()?;
        end.record(&self.stream).map_err(failed("record a CUDA event"))?;
        end.synchronize().map_err(failed("wait for the device"))?;
        let milliseconds = end.elapsed_time_f32(&start).map_err(failed("read a CUDA event"))?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds) / 1e3))
    }
}

/// A CUDA graph.
struct Graph {
    // Dropped before the context.
    executable: GraphExec,
    shared: Arc<Shared>,
}

impl Recorded for Graph {
    unsafe fn start(&self, backend: &dyn Backend) -> Result<(), Error> {
        const OPERATION: &str = "start a recording";
        let Some(stream) = backend.stream() else { return Err(Error::OtherDevice { operation: OPERATION }) };
        let _entered = self.shared.enter()?;
        // SAFETY: the graph is complete, and its memory exists, as promised by the caller.
        unsafe { self.shared.driver.cuGraphLaunch(self.executable.as_raw(), stream.cast()) }.map_err(failed(OPERATION))
    }
}
