//! A device, and launches on it.

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cuda_std::launch::{Dim3, Kernel, KernelId, Parameters};

use crate::argument::{Host, Slots};
use crate::backend::cuda::CudaDevice;
#[cfg(feature = "simt")]
use crate::backend::executor::Executor;
use crate::backend::{Backend, KernelOccupancy, Launch, Memory};
use crate::embedded::KERNELS;
use crate::ptx::Library;
use crate::reduce::Workspaces;
#[cfg(feature = "simt")]
use crate::watch::SimtOptions;
use crate::{DeviceInfo, Error};

/// A CUDA device, or the SIMT executor, which runs the same kernels on the CPU.
///
/// A clone is another handle of the same device. The work of a handle and its clones runs in the order in which it was
/// started, as on a CUDA stream. A call returns once its work is started; a call that returns data to the host, once
/// the work is done. [`Gpu::fork`] makes a handle with a stream of its own, and [`Gpu::record`] records work, to start
/// it all at once.
///
/// The feature `simt` (`cargo add warpfold --features simt`) adds the executor, `Gpu::simt` and `Gpu::first_or_simt`.
#[derive(Clone)]
pub struct Gpu {
    shared: Arc<Shared>,
}

struct Shared {
    // Buffers in the workspaces keep the backend alive, so the workspaces are dropped first.
    workspaces: Workspaces,
    backend: Arc<dyn Backend>,
    /// The number of multiprocessors that reductions are planned for.
    multiprocessors: usize,
}

impl Gpu {
    /// The CUDA device `ordinal`, counted from 0.
    ///
    /// # Errors
    /// There is no driver or no such device, or the device cannot be used now.
    pub fn new(ordinal: u32) -> Result<Self, Error> {
        Self::with_libraries(ordinal, &[])
    }

    /// The CUDA device `ordinal`, with kernels of other crates in addition to warpfold's.
    ///
    /// The executor needs no libraries: [`Gpu::simt`] runs any kernel.
    ///
    /// # Errors
    /// As for [`Gpu::new`].
    pub fn with_libraries(ordinal: u32, libraries: &[&'static Library]) -> Result<Self, Error> {
        let mut all = vec![&KERNELS];
        for &library in libraries {
            // A kernel's PTX is looked up by the name of its crate. If two crates had the same name, a kernel could be
            // launched with another's arguments.
            if all.iter().any(|other| other.name() == library.name()) {
                return Err(Error::DuplicateLibrary { library: library.name().to_owned() });
            }
            all.push(library);
        }
        Ok(Self::on(Arc::new(CudaDevice::new(ordinal, all)?)))
    }

    /// The executor, on this machine's cores, with checks.
    ///
    /// It checks every launch for races and other errors ([`SimtOptions::checks`]). Use it for tests.
    #[cfg(feature = "simt")]
    pub fn simt() -> Self {
        Self::simt_with(SimtOptions::default())
    }

    /// The executor with checks on or off, and lanes in a chosen order.
    #[cfg(feature = "simt")]
    pub fn simt_with(options: SimtOptions) -> Self {
        Self::on(Arc::new(Executor::new(options)))
    }

    /// The first CUDA device, or the executor, without checks, if there is no driver or no device.
    ///
    /// # Errors
    /// A device exists and cannot be used.
    #[cfg(feature = "simt")]
    pub fn first_or_simt() -> Result<Self, Error> {
        Self::first_or_simt_with_libraries(&[])
    }

    /// [`Gpu::first_or_simt`], with kernels of other crates in addition to warpfold's.
    ///
    /// # Errors
    /// A device exists and cannot be used.
    #[cfg(feature = "simt")]
    pub fn first_or_simt_with_libraries(libraries: &[&'static Library]) -> Result<Self, Error> {
        match Self::with_libraries(0, libraries) {
            Err(Error::NoDriver(_) | Error::NoDevice { .. }) => {
                Ok(Self::simt_with(SimtOptions { checks: false, ..SimtOptions::default() }))
            }
            other => other,
        }
    }

    pub(crate) fn on(backend: Arc<dyn Backend>) -> Self {
        let multiprocessors = backend.multiprocessors();
        Self { shared: Arc::new(Shared { workspaces: Workspaces::default(), backend, multiprocessors }) }
    }

    /// Another handle on this stream, whose reductions are planned for a device with this number of multiprocessors, at
    /// least 1. Only their times depend on it. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn planned_for(&self, multiprocessors: usize) -> Self {
        let (backend, multiprocessors) = (self.own_backend().clone(), multiprocessors.max(1));
        Self { shared: Arc::new(Shared { workspaces: Workspaces::default(), backend, multiprocessors }) }
    }

    /// The number of multiprocessors that reductions are planned for.
    pub(crate) fn multiprocessors(&self) -> usize {
        self.shared.multiprocessors
    }

    /// Whether arithmetic in `f64` is about half as fast as in `f32`, and not much slower.
    pub(crate) fn has_fast_f64(&self) -> bool {
        self.shared.backend.has_fast_f64()
    }

    /// The same device and memory with a stream of its own.
    ///
    /// Threads with separate handles do not wait for each other. Both handles can use the same buffers. Nothing orders
    /// the work of the two handles: before one uses what the other has written, call [`Gpu::wait_for`].
    ///
    /// # Errors
    /// The driver has no more streams.
    pub fn fork(&self) -> Result<Self, Error> {
        Ok(Self::on(self.backend().fork()?))
    }

    /// The CUDA stream (`CUstream`) of the work that this thread starts now; `None` in the executor.
    ///
    /// Another library can start its work on this stream, to be ordered with this handle's work. While this thread
    /// [records](Gpu::record), it is the recording's own stream, which exists until the recording ends; what another
    /// library starts on it is recorded, but the memory that this work uses is not kept. Otherwise it is this handle's
    /// stream, which exists as long as the handle or a buffer made by it. So call this function each time the stream is
    /// used.
    ///
    /// Another library may capture its work into a graph; see [`interop::on_stream`](crate::interop::on_stream).
    pub fn cuda_stream(&self) -> Option<*mut c_void> {
        let backend = self.backend();
        backend.share_stream();
        backend.stream()
    }

    /// Lets later work of this handle wait for the work that `other` has started, possibly on another device. The host
    /// does not wait, except for a CUDA device whose data the executor is to use.
    ///
    /// ```
    /// # let gpu = warpfold::Gpu::first_or_simt()?;
    /// let other = gpu.fork()?;
    /// let x = other.upload(&[1.0_f32, 2.0])?;
    /// let mut y = other.zeroed(2)?;
    /// other.copy_array(&x, &mut y)?;
    /// gpu.wait_for(&other)?;
    /// assert_eq!(gpu.download(&y)?, [1.0, 2.0]);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// This thread records on one of the handles, or work of `other` has failed.
    pub fn wait_for(&self, other: &Self) -> Result<(), Error> {
        match other.backend().record_event()? {
            Some(event) => self.backend().wait_event(&event),
            None => Ok(()),
        }
    }

    /// The backend that the handle was made for. Work goes to `Gpu::backend`.
    pub(crate) fn own_backend(&self) -> &Arc<dyn Backend> {
        &self.shared.backend
    }

    /// An identifier that clones share, and no other handle has.
    pub(crate) fn handle(&self) -> usize {
        Arc::as_ptr(&self.shared).addr()
    }

    pub(crate) fn workspaces(&self) -> &Workspaces {
        &self.shared.workspaces
    }

    /// Whether this is a CUDA device, not the executor.
    pub fn is_cuda(&self) -> bool {
        self.backend().is_gpu()
    }

    /// The device's description.
    ///
    /// # Errors
    /// The driver does not answer.
    pub fn info(&self) -> Result<DeviceInfo, Error> {
        self.backend().info()
    }

    /// Launches a kernel with a grid of `grid` blocks. The kernel determines the block size.
    ///
    /// `grid` is a number, or a tuple of two or three.
    ///
    /// The arguments are a struct with a field for each of the kernel's parameters, of the same name: `Args` in the
    /// kernel's module, or the struct that the kernel takes. Other arguments do not compile. Memory is passed as a
    /// [`View`](crate::View) or a [`ViewMut`](crate::ViewMut). The call returns once the kernel is started, in the
    /// executor once it is done.
    ///
    /// ```
    /// use cuda_std::prelude::*;
    /// use warpfold::Gpu;
    ///
    /// /// Multiplies every number by a factor.
    /// #[kernel]
    /// pub fn scale(numbers: GlobalMut<f32>, factor: f32) {
    ///     let i = thread::index_1d_wide();
    ///     if i < numbers.len() {
    ///         numbers.store(i, factor * numbers.load(i));
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), warpfold::Error> {
    /// let gpu = Gpu::simt();
    /// let mut numbers = gpu.upload(&[1.0_f32; 1024])?;
    /// let kernel = scale::handle().with_block(256);
    /// gpu.launch(kernel, 4, scale::Args { numbers: numbers.view_mut(), factor: 3.0 })?;
    /// assert_eq!(gpu.download(&numbers)?, [3.0; 1024]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The grid or the block exceeds a limit of the device, a buffer belongs to another device, or the kernel has no
    /// PTX for this device; in the executor also a fault of the kernel, which a CUDA device reports at a later call
    /// ([`Error::Trap`]).
    pub fn launch<'launch, Args: Parameters>(
        &self,
        kernel: Kernel<Args>,
        grid: impl Into<Dim3>,
        arguments: Args::On<'launch, Host>,
    ) -> Result<(), Error> {
        let mut collected = Slots::new();
        Args::visit(arguments, &mut collected);
        let Slots { slots, memories } = collected;
        let launch = Launch {
            kernel: kernel.id(),
            grid: grid.into(),
            block: kernel.block(),
            dynamic_shared: kernel.dynamic_shared(),
            slots: &slots,
            parameters: kernel.parameters(),
            thread: kernel.thread(),
        };
        // SAFETY: `Parameters` has made the slots for the parameters of this kernel, and listed the memory that they
        // refer to. The views borrow that memory, and all later uses of the memory come after the kernel in stream
        // order.
        unsafe { self.launch_untyped(&launch, &memories) }
    }

    /// [`Gpu::launch`] without generics: compiled once.
    ///
    /// # Safety
    /// The slots are for the parameters of this kernel, and refer to no memory but `memories`, which exists as long as
    /// the kernel runs.
    unsafe fn launch_untyped(&self, launch: &Launch<'_>, memories: &[&Memory]) -> Result<(), Error> {
        self.use_memories(memories, "launch")?;
        memories.iter().try_for_each(|memory| memory.clean())?;
        // SAFETY: as promised by the caller, and the memory is this device's.
        let launched = unsafe { self.backend().launch(launch) };
        if launched.is_err() {
            memories.iter().for_each(|memory| memory.mark_dirty());
        }
        launched
    }

    /// A kernel's resources and occupancy in blocks of `threads_per_block` threads, as the driver computes them. `None`
    /// in the executor, which has no registers.
    ///
    /// # Errors
    /// The kernel has no PTX for this device.
    pub fn kernel_occupancy(&self, kernel: KernelId, threads_per_block: u32) -> Result<Option<KernelOccupancy>, Error> {
        self.backend().resources(kernel, threads_per_block)
    }

    /// The device's free memory, in bytes.
    ///
    /// # Errors
    /// The driver does not answer.
    pub fn free_memory(&self) -> Result<usize, Error> {
        self.backend().free_memory()
    }

    /// Waits until all started work is done.
    ///
    /// # Errors
    /// Some of it has failed.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.backend().synchronize()
    }

    /// Times the work that `work` starts on the device, by the device's clock (CUDA events); in the executor, by the
    /// host's clock.
    ///
    /// # Errors
    /// An error of `work`, or failed work on the device.
    pub fn time(&self, mut work: impl FnMut() -> Result<(), Error>) -> Result<Duration, Error> {
        self.backend().time(&mut work)
    }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_cuda() { "Gpu(CUDA)" } else { "Gpu(SIMT executor)" })
    }
}
