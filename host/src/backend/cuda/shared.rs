//! What all handles of a CUDA device share.

use std::sync::Arc;

use cuda_driver::{CUfunction, CUfunction_attribute, Driver, DriverVersion};
use cust::CudaFlags;
use cust::context::{Context, Entered};
use cust::device::{Device, DeviceAttribute};
use cust::error::CudaError;
use cust::graph::RelaxedCapture;
use cust::module::{Module, PtxError};
use threads::Process;

use crate::backend::SharedMemory;
use crate::backend::driver_errors::{failed, name, refuses_ptx};
use crate::backend::limits::Limits;
use crate::backend::once_map::OnceMap;
use crate::ptx::{self, Library};
use crate::{Error, KernelId};

/// What all handles of a device share: its primary context, and what is loaded in it.
pub(super) struct Shared {
    pub(super) kernels: OnceMap<KernelId, Loaded>,
    pub(super) device: Device,
    pub(super) compute: u32,
    pub(super) multiprocessors: usize,
    pub(super) has_fast_f64: bool,
    pub(super) limits: Limits,
    pub(super) driver: &'static Driver,
    /// Whether the driver supports programmatic dependent launches, including in graphs.
    pub(super) has_dependent_launches: bool,
    pub(super) libraries: Vec<&'static Library>,
    /// The process that made the context.
    process: Process,
    pub(super) context: Context,
}

/// A kernel loaded in the context, with its module.
#[derive(Clone)]
pub(super) struct Loaded {
    pub(super) function: CUfunction,
    /// Whether it may be a programmatic dependent launch: it waits for its prerequisites itself.
    pub(super) is_dependent: bool,
    _module: Arc<Module>,
}

// SAFETY: the driver accepts the handle from any thread.
unsafe impl Send for Loaded {}

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

/// The context, current in this thread, and calls that a capture of another library does not notice.
pub(super) struct Guest<'a> {
    _relaxed: RelaxedCapture,
    _entered: Entered<'a>,
}

impl<'a> Guest<'a> {
    pub(super) fn enter(context: &'a Context) -> Result<Self, Error> {
        let entered = context.enter().map_err(failed(ENTER))?;
        let relaxed = RelaxedCapture::begin().map_err(failed("relax the capture mode of this thread"))?;
        Ok(Self { _relaxed: relaxed, _entered: entered })
    }
}

impl Shared {
    /// The device `ordinal`, with the kernels of `libraries`.
    pub(super) fn new(ordinal: u32, libraries: Vec<&'static Library>) -> Result<Self, Error> {
        // Before the driver is used, so that no later fork is missed.
        let process = Process::current();
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
        let has_dependent_launches = driver.version() >= DEPENDENT_LAUNCHES;
        Ok(Self {
            kernels: OnceMap::default(),
            device,
            compute,
            multiprocessors: query(DeviceAttribute::MultiprocessorCount)?.max(1) as usize,
            // 2 on GPUs for data centers, 32 or 64 on others.
            has_fast_f64: query(DeviceAttribute::SingleToDoublePrecisionPerfRatio)? <= 4,
            limits,
            driver,
            has_dependent_launches,
            libraries,
            process,
            context,
        })
    }

    pub(super) fn enter(&self) -> Result<Entered<'_>, Error> {
        self.check_process()?;
        self.context.enter().map_err(failed(ENTER))
    }

    /// [`Shared::enter`] for calls that a capture of another library would not survive, such as allocations.
    pub(super) fn enter_as_guest(&self) -> Result<Guest<'_>, Error> {
        self.check_process()?;
        Guest::enter(&self.context)
    }

    /// Refuses a process that has been forked from the one that made the context: CUDA works in none.
    pub(super) fn check_process(&self) -> Result<(), Error> {
        if self.process.is_current() { Ok(()) } else { Err(Error::Forked) }
    }

    /// The kernel, loaded when first used.
    pub(super) fn kernel(&self, kernel: KernelId) -> Result<Loaded, Error> {
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
    pub(super) fn attribute_of_kernel(
        &self,
        function: CUfunction,
        attribute: CUfunction_attribute,
    ) -> Result<u32, Error> {
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

pub(super) fn attribute_of(device: Device, attribute: DeviceAttribute) -> Result<u32, Error> {
    let value = device.get_attribute(attribute).map_err(failed("query an attribute of the CUDA device"))?;
    Ok(value.max(0) as u32)
}
