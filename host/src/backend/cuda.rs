//! A CUDA device as a backend, through `cust`.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cuda_driver::{
    CUfunction, CUfunction_attribute, CUlaunchAttribute, CUlaunchConfig, CUresult, Driver, DriverVersion,
};
use cust::CudaFlags;
use cust::context::{Context, Entered};
use cust::device::{Device, DeviceAttribute};
use cust::error::CudaError;
use cust::event::{Event, EventFlags};
use cust::graph::{CaptureMode, GraphExec, RelaxedCapture};
use cust::module::{Module, PtxError};
use cust::stream::{Stream, StreamFlags};

use crate::backend::driver_errors::{failed, name, refuses_ptx};
use crate::backend::host_memory::free_bytes;
use crate::backend::limits::Limits;
use crate::backend::once_map::OnceMap;
use crate::backend::recycled::{Block, Recycled};
use crate::backend::{Backend, KernelOccupancy, Launch, Recorded, SharedMemory};
use crate::occupancy::{Multiprocessor, Resources};
use crate::ptx::{self, Library};
use crate::{DeviceInfo, Error, KernelId};

/// A device, and the stream that all work of this handle goes to.
pub(crate) struct CudaDevice {
    // Fields are dropped in this order, and the context must be last.
    stream: Stream,
    /// Freed memory that only this stream has used.
    recycled: Mutex<Recycled>,
    /// Whether it is a recorder, whose stream captures its work.
    is_recorder: bool,
    shared: Arc<Shared>,
}

/// What all handles of a device share: its primary context, and what is loaded in it.
struct Shared {
    kernels: OnceMap<KernelId, Loaded>,
    device: Device,
    compute: u32,
    multiprocessors: usize,
    limits: Limits,
    driver: &'static Driver,
    /// Whether the driver supports programmatic dependent launches, including in graphs.
    has_dependent_launches: bool,
    libraries: Vec<&'static Library>,
    /// The process that made the context.
    process: u32,
    context: Context,
}

/// A kernel loaded in the context, with its module.
#[derive(Clone)]
struct Loaded {
    function: CUfunction,
    /// Whether it may be a programmatic dependent launch: it waits for its prerequisites itself.
    is_dependent: bool,
    _module: Arc<Module>,
}

// SAFETY: the driver accepts the handle from any thread.
unsafe impl Send for Loaded {}

/// Work on the stream is ordered with the legacy default stream, which PyTorch uses.
const STREAM_FLAGS: StreamFlags = StreamFlags::DEFAULT;

const ENTER: &str = "make the device's context current";

/// The first driver version that supports programmatic dependent launches in graphs.
const DEPENDENT_LAUNCHES: DriverVersion = DriverVersion { major: 12, minor: 3 };

/// Loads the driver and starts it.
fn driver() -> Result<&'static Driver, Error> {
    let driver = cuda_driver::load()?;
    match cust::init(CudaFlags::empty()) {
        Ok(()) => Ok(driver),
        // Only a forked child of a process that uses CUDA gets this code from the first call.
        Err(CudaError::NotInitialized) => Err(Error::Forked),
        Err(CudaError::NoDevice) => Err(Error::NoDevice { ordinal: 0, count: 0 }),
        Err(code) => Err(failed("start the CUDA driver")(code)),
    }
}

impl CudaDevice {
    /// The device `ordinal`, with the kernels of `libraries`.
    pub(crate) fn new(ordinal: u32, libraries: Vec<&'static Library>) -> Result<Self, Error> {
        let driver = driver().map_err(|error| match error {
            Error::NoDevice { count, .. } => Error::NoDevice { ordinal, count },
            other => other,
        })?;
        let count = Device::num_devices().map_err(failed("count the CUDA devices"))?;
        if ordinal >= count {
            return Err(Error::NoDevice { ordinal, count });
        }
        let device = Device::get_device(ordinal).map_err(failed("find the CUDA device"))?;
        let context = Context::retain(device).map_err(failed("create a context on the CUDA device"))?;
        let entered = Guest::enter(&context)?;
        let stream = Stream::new(STREAM_FLAGS, None).map_err(failed("create a CUDA stream"))?;
        let query = |attribute| attribute_of(device, attribute);
        let compute =
            10 * query(DeviceAttribute::ComputeCapabilityMajor)? + query(DeviceAttribute::ComputeCapabilityMinor)?;
        let limits = Limits {
            threads_per_block: query(DeviceAttribute::MaxThreadsPerBlock)?,
            block: (
                query(DeviceAttribute::MaxBlockDimX)?,
                query(DeviceAttribute::MaxBlockDimY)?,
                query(DeviceAttribute::MaxBlockDimZ)?,
            )
                .into(),
            grid: (
                query(DeviceAttribute::MaxGridDimX)?,
                query(DeviceAttribute::MaxGridDimY)?,
                query(DeviceAttribute::MaxGridDimZ)?,
            )
                .into(),
            shared: SharedMemory {
                of_block: query(DeviceAttribute::MaxSharedMemoryPerBlockOptin)? as usize,
                of_multiprocessor: query(DeviceAttribute::MaxSharedMemoryPerMultiprocessor)? as usize,
                reserved: query(DeviceAttribute::ReservedSharedMemoryPerBlock)? as usize,
            },
        };
        drop(entered);
        let has_dependent_launches = driver.version() >= DEPENDENT_LAUNCHES;
        let shared = Shared {
            kernels: OnceMap::default(),
            device,
            compute,
            multiprocessors: query(DeviceAttribute::MultiprocessorCount)?.max(1) as usize,
            limits,
            driver,
            has_dependent_launches,
            libraries,
            process: std::process::id(),
            context,
        };
        Ok(Self { stream, recycled: Mutex::default(), is_recorder: false, shared: Arc::new(shared) })
    }

    /// Makes the context current in this thread, as long as the value lives. Every call that reaches the driver begins
    /// with this one or with [`CudaDevice::enter_as_guest`].
    fn enter(&self) -> Result<Entered<'_>, Error> {
        self.shared.enter()
    }

    /// [`CudaDevice::enter`] for calls that a capture of another library would not survive, such as allocations.
    fn enter_as_guest(&self) -> Result<Guest<'_>, Error> {
        self.shared.check_process()?;
        Guest::enter(&self.shared.context)
    }

    /// The same device with its own stream.
    fn with_own_stream(&self, is_recorder: bool) -> Result<Self, Error> {
        let _entered = self.enter_as_guest()?;
        let stream = Stream::new(STREAM_FLAGS, None).map_err(failed("create a CUDA stream"))?;
        Ok(Self { stream, recycled: Mutex::default(), is_recorder, shared: self.shared.clone() })
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
}

/// The context, current in this thread, and calls that a capture of another library does not notice.
struct Guest<'a> {
    _relaxed: RelaxedCapture,
    _entered: Entered<'a>,
}

impl<'a> Guest<'a> {
    fn enter(context: &'a Context) -> Result<Self, Error> {
        let entered = context.enter().map_err(failed(ENTER))?;
        let relaxed = RelaxedCapture::begin().map_err(failed("relax the capture mode of this thread"))?;
        Ok(Self { _relaxed: relaxed, _entered: entered })
    }
}

impl Shared {
    fn enter(&self) -> Result<Entered<'_>, Error> {
        self.check_process()?;
        self.context.enter().map_err(failed(ENTER))
    }

    /// Refuses a process that has been forked from the one that made the context: CUDA works in none.
    fn check_process(&self) -> Result<(), Error> {
        match std::process::id() == self.process {
            true => Ok(()),
            false => Err(Error::Forked),
        }
    }

    /// The kernel, loaded when first used.
    fn kernel(&self, kernel: KernelId) -> Result<Loaded, Error> {
        self.kernels.get(kernel, || self.load(kernel))
    }

    fn load(&self, kernel: KernelId) -> Result<Loaded, Error> {
        let _entered = Guest::enter(&self.context)?;
        let library = self.libraries.iter().find(|library| library.name() == kernel.library);
        let unknown = || Error::UnknownKernel { entry: kernel.entry.to_owned(), library: kernel.library.to_owned() };
        let library = library.ok_or_else(unknown)?;
        let text = library.ptx(kernel.entry, self.compute).or_else(|error| match error {
            Error::NoPtx { .. } => ptx::stub(self.driver, kernel.entry).ok_or(error),
            _ => Err(error),
        })?;
        let module = match self.cubin(library, kernel.entry)? {
            Some(module) => module,
            None => {
                // The driver's own error for PTX that is too new names no versions.
                ptx::check_driver(self.driver.version(), kernel, &text)?;
                Module::from_ptx_with_log(&text, &[]).map_err(|error| self.not_loaded(kernel, error))?
            }
        };
        let module = Arc::new(module);
        let function = module.get_function(kernel.entry).map_err(failed("find a kernel in its module"))?.to_raw();
        self.allow_dynamic_shared(function)?;
        // Only a kernel whose PTX has the wait may be a dependent launch.
        let is_dependent = text.contains("griddepcontrol.wait") && self.has_dependent_launches;
        Ok(Loaded { function, is_dependent, _module: module })
    }

    /// The module of an entry's cubin, if the library has one for this device and the driver takes it. A driver may be
    /// older than the cubin; then it compiles the entry's PTX.
    fn cubin(&self, library: &Library, entry: &str) -> Result<Option<Module>, Error> {
        let Some(cubin) = library.cubin(entry, self.compute)? else { return Ok(None) };
        // SAFETY: a library's cubins are complete, as whoever made the library has promised; the archive's checksums
        // have found no change since.
        Ok(unsafe { Module::from_cubin_unchecked(cubin, &[]) }.ok())
    }

    /// The error for a kernel whose module the driver does not load: of its PTX, or any other.
    fn not_loaded(&self, kernel: KernelId, PtxError { error, log, .. }: PtxError) -> Error {
        if !refuses_ptx(error.code()) {
            return failed("load a kernel's module")(error);
        }
        Error::RefusedPtx {
            kernel: kernel.entry.to_owned(),
            library: kernel.library.to_owned(),
            device: self.compute,
            driver: self.driver.version(),
            code: error.code().0,
            name: name(error),
            log,
        }
    }

    /// An attribute of a function of a loaded module.
    fn attribute_of_kernel(&self, function: CUfunction, attribute: CUfunction_attribute) -> Result<u32, Error> {
        let mut value = 0;
        // SAFETY: writes one integer; the function belongs to a loaded module.
        unsafe { self.driver.cuFuncGetAttribute(&mut value, attribute, function) }
            .map_err(failed("query a kernel's attribute"))?;
        Ok(value.max(0) as u32)
    }

    /// Lets launches of a kernel have all shared memory of a block that the kernel's arrays leave. Without this call,
    /// both together are limited to 48 KiB.
    fn allow_dynamic_shared(&self, function: CUfunction) -> Result<(), Error> {
        let arrays = self.attribute_of_kernel(function, CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        let max_dynamic = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let bytes = self.limits.shared.of_block.saturating_sub(arrays as usize);
        // SAFETY: the function belongs to a loaded module, and the driver checks the value.
        unsafe { self.driver.cuFuncSetAttribute(function, max_dynamic, bytes as i32) }
            .map_err(failed("let a kernel have more dynamic shared memory"))
    }
}

fn attribute_of(device: Device, attribute: DeviceAttribute) -> Result<u32, Error> {
    let value = device.get_attribute(attribute).map_err(failed("query an attribute of the CUDA device"))?;
    Ok(value.max(0) as u32)
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
        if let Some(address) = self.recycled().take(bytes) {
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
        // A kernel that writes it may still run. Errors are those of earlier work, which other calls report.
        let Ok(_entered) = self.enter_as_guest() else { return };
        if self.stream.synchronize().is_ok() {
            let address = std::ptr::with_exposed_provenance_mut(address as usize);
            // SAFETY: as promised by the caller; no kernel of this stream runs.
            let _ = unsafe { self.shared.driver.cuMemFreeHost(address) };
        }
    }

    unsafe fn free(&self, address: u64, bytes: usize, is_own: bool) {
        let block = Block { address, bytes };
        // The guard is dropped before the driver is called.
        let freed = if is_own { self.recycled().put(block) } else { vec![block] };
        self.free_blocks(&freed);
    }

    unsafe fn upload(&self, from: &[u8], to: u64) -> Result<(), Error> {
        let _entered = self.enter_unrecorded("upload")?;
        // SAFETY: as promised by the caller; `from` lives until the stream is done, below.
        unsafe {
            self.shared.driver.cuMemcpyHtoDAsync_v2(to, from.as_ptr().cast(), from.len(), self.stream.as_inner())
        }
        .map_err(failed("copy to the device"))?;
        self.stream.synchronize().map_err(failed("copy to the device"))
    }

    unsafe fn download(&self, from: u64, to: *mut u8, bytes: usize) -> Result<(), Error> {
        let _entered = self.enter_unrecorded("download")?;
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
        let _entered = self.enter_unrecorded("synchronize")?;
        self.stream.synchronize().map_err(failed("wait for the device"))
    }

    fn fork(&self) -> Result<Arc<dyn Backend>, Error> {
        Ok(Arc::new(self.with_own_stream(false)?))
    }

    fn device_id(&self) -> usize {
        Arc::as_ptr(&self.shared).addr()
    }

    fn recorder(&self) -> Result<Arc<dyn Backend>, Error> {
        // Only this recording uses the stream, so the work of other threads runs as usual and is not recorded. The mode
        // is relaxed, because those threads may call any function of the driver.
        let recorder = self.with_own_stream(true)?;
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
        let _entered = self.enter_unrecorded("time")?;
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
