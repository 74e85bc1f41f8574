//! Contexts: a process's state on a device.
//!
//! A [`Context`] is a device's primary context, which the CUDA runtime and other libraries use, too. Each thread has
//! one current context, [`CurrentContext`], in which new objects are created. An object keeps its context alive and
//! makes it current during its own operations, so it can be used and dropped on any thread.

use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use cuda_driver::{CUcontext, CUdevice, CUfunc_cache, CUlimit, Driver};

use crate::CudaApiVersion;
use crate::device::Device;
use crate::driver;
use crate::error::{CudaError, CudaResult, DropResult};
use crate::graph::RelaxedCapture;

bitflags::bitflags! {
    /// How threads wait for a device, and what a context allocates.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct ContextFlags: u32 {
        /// Spin: the lowest latency.
        const SCHED_SPIN = 0x01;
        /// Yield to other threads.
        const SCHED_YIELD = 0x02;
        /// Block: the lowest CPU load.
        const SCHED_BLOCKING_SYNC = 0x04;
        /// The driver chooses.
        const SCHED_AUTO = 0x00;
        /// Map page-locked host memory, which all current devices do anyway.
        const MAP_HOST = 0x08;
        /// Keep the local memory of a kernel allocated after the kernel.
        const LMEM_RESIZE_TO_MAX = 0x10;
    }
}

macro_rules! enumerations {
    ($(#[$doc:meta])* $name:ident of $raw:ident { $($(#[$variant_doc:meta])* $variant:ident = $constant:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $(
                $(#[$variant_doc])*
                $variant,
            )*
        }

        impl $name {
            pub(crate) fn to_raw(self) -> $raw {
                match self {
                    $(Self::$variant => $raw::$constant,)*
                }
            }
        }
    };
}

enumerations! {
    /// The preferred split of on-chip memory into L1 cache and shared memory.
    CacheConfig of CUfunc_cache {
        /// No preference.
        PreferNone = CU_FUNC_CACHE_PREFER_NONE,
        /// More shared memory.
        PreferShared = CU_FUNC_CACHE_PREFER_SHARED,
        /// More L1 cache.
        PreferL1 = CU_FUNC_CACHE_PREFER_L1,
        /// Equal sizes.
        PreferEqual = CU_FUNC_CACHE_PREFER_EQUAL,
    }
}

enumerations! {
    /// A limit of a context.
    ResourceLimit of CUlimit {
        /// The stack size of a thread in bytes.
        StackSize = CU_LIMIT_STACK_SIZE,
        /// The size of the buffer for `printf` in kernels, in bytes.
        PrintfFifoSize = CU_LIMIT_PRINTF_FIFO_SIZE,
        /// The size of the heap for `malloc` in kernels, in bytes.
        MallocHeapSize = CU_LIMIT_MALLOC_HEAP_SIZE,
        /// The maximum nesting depth at which a kernel may wait for kernels that it has launched.
        DeviceRuntimeSynchronizeDepth = CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH,
        /// The maximum number of pending launches from kernels.
        DeviceRuntimePendingLaunchCount = CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT,
        /// The maximum number of bytes that a miss fetches into L2.
        MaxL2FetchGranularity = CU_LIMIT_MAX_L2_FETCH_GRANULARITY,
    }
}

/// The range of stream priorities. A smaller number is a higher priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamPriorityRange {
    /// The lowest priority.
    pub least: i32,
    /// The highest priority.
    pub greatest: i32,
}

/// A device's primary context. Clones refer to the same context. The driver's context is released when the last clone
/// is dropped, and the last object that was created in it.
#[derive(Clone)]
pub struct Context {
    retained: Arc<Retained>,
}

/// A primary context that has been retained once.
struct Retained {
    driver: &'static Driver,
    raw: CUcontext,
    device: CUdevice,
}

// SAFETY: the driver takes a context's handle from any thread.
unsafe impl Send for Retained {}
// SAFETY: as above.
unsafe impl Sync for Retained {}

impl Drop for Retained {
    fn drop(&mut self) {
        // The lock prevents another thread from looking up this context while it is destroyed.
        let mut contexts = Contexts::lock();
        // As in `Context::enter_to_destroy`. Without it, the release may still succeed.
        let _relaxed = RelaxedCapture::begin();
        // SAFETY: the context was retained once for this value, and no object uses it any more.
        let _ = unsafe { self.driver.cuDevicePrimaryCtxRelease_v2(self.device) };
        contexts.0.retain(|(_, context)| context.strong_count() > 0);
    }
}

/// The retained contexts, by their handles.
///
/// No [`Context`] may be dropped while the list is locked: dropping the last clone locks it, too.
struct Contexts(Vec<(Handle, Weak<Retained>)>);

/// A context's handle, used only for comparisons.
#[derive(PartialEq)]
struct Handle(CUcontext);

// SAFETY: the handle is only compared with others.
unsafe impl Send for Handle {}

impl Contexts {
    fn lock() -> MutexGuard<'static, Self> {
        static CONTEXTS: Mutex<Contexts> = Mutex::new(Contexts(Vec::new()));
        CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, raw: CUcontext) -> Option<Context> {
        let of_handle = self.0.iter().filter(|(handle, _)| *handle == Handle(raw));
        let retained = of_handle.filter_map(|(_, context)| context.upgrade()).next()?;
        Some(Context { retained })
    }

    /// Finds a device's primary context in the list, or retains it.
    fn retain(&mut self, driver: &'static Driver, device: CUdevice) -> CudaResult<Context> {
        // A capture of another library must survive both calls. Without the guard, they may still succeed.
        let _relaxed = RelaxedCapture::begin();
        let mut raw = ptr::null_mut();
        // SAFETY: writes a handle, which is released once: below, or by the drop of the new value.
        unsafe { driver.cuDevicePrimaryCtxRetain(&mut raw, device)? };
        if let Some(context) = self.find(raw) {
            // SAFETY: the context was retained above, and `context` retains it, too.
            let _ = unsafe { driver.cuDevicePrimaryCtxRelease_v2(device) };
            return Ok(context);
        }
        let retained = Arc::new(Retained { driver, raw, device });
        self.0.push((Handle(raw), Arc::downgrade(&retained)));
        Ok(Context { retained })
    }
}

impl Context {
    /// Retains the primary context of a device, and makes it current on this thread.
    ///
    /// # Errors
    /// The driver cannot create it.
    pub fn new(device: Device) -> CudaResult<Self> {
        let context = Self::retain(device)?;
        CurrentContext::set_current(&context)?;
        Ok(context)
    }

    /// Retains the primary context of a device. The current context of this thread stays as it is.
    ///
    /// # Errors
    /// The driver cannot create it.
    pub fn retain(device: Device) -> CudaResult<Self> {
        Contexts::lock().retain(driver()?, device.device)
    }

    /// Destroys a device's primary context and everything in it.
    ///
    /// # Safety
    /// While the context is destroyed, no other code in this process uses it or an object that was created in it. Later
    /// uses of such objects are errors.
    ///
    /// # Errors
    /// An error of the driver.
    pub unsafe fn reset(device: &Device) -> CudaResult<()> {
        // SAFETY: as promised by the caller.
        unsafe { driver()?.cuDevicePrimaryCtxReset_v2(device.device)? };
        Ok(())
    }

    /// Sets how threads wait for the device.
    ///
    /// # Errors
    /// An error of the driver.
    pub fn set_flags(&self, flags: ContextFlags) -> CudaResult<()> {
        // SAFETY: passes integers.
        unsafe { self.driver().cuDevicePrimaryCtxSetFlags_v2(self.retained.device, flags.bits())? };
        Ok(())
    }

    /// The context's handle, valid as long as this value lives.
    pub fn as_raw(&self) -> CUcontext {
        self.retained.raw
    }

    /// The context's device.
    pub fn device(&self) -> Device {
        Device { device: self.retained.device }
    }

    /// The API version that the context was created with.
    ///
    /// # Errors
    /// An error of the driver.
    pub fn get_api_version(&self) -> CudaResult<CudaApiVersion> {
        let mut version = 0;
        // SAFETY: writes one integer; the context is retained.
        unsafe { self.driver().cuCtxGetApiVersion(self.as_raw(), &mut version)? };
        Ok(CudaApiVersion { version: version as i32 })
    }

    /// Drops a clone. The last one releases the context; an error of the release is ignored.
    ///
    /// # Errors
    /// None. The return type is that of the other `drop` functions.
    pub fn drop(context: Self) -> DropResult<Self> {
        drop(context);
        Ok(())
    }

    /// The driver.
    #[inline]
    pub(crate) fn driver(&self) -> &'static Driver {
        self.retained.driver
    }

    /// Makes the context current on this thread until the guard is dropped. Then the context before is current again:
    /// a library that enters contexts in this way changes nothing for its callers.
    ///
    /// # Errors
    /// An error of the driver.
    #[inline]
    pub fn enter(&self) -> CudaResult<Entered<'_>> {
        let mut current = ptr::null_mut();
        // SAFETY: writes one handle.
        unsafe { self.driver().cuCtxGetCurrent(&mut current)? };
        let is_pushed = current != self.as_raw();
        if is_pushed {
            // SAFETY: the context is retained for as long as the guard lives.
            unsafe { self.driver().cuCtxPushCurrent_v2(self.as_raw())? };
        }
        Ok(Entered { context: self, is_pushed, not_send: PhantomData })
    }

    /// [`Context::enter`] to destroy an object, which may happen at any time: a capture of another library must survive
    /// it.
    pub(crate) fn enter_to_destroy(&self) -> CudaResult<(Entered<'_>, RelaxedCapture)> {
        Ok((self.enter()?, RelaxedCapture::begin()?))
    }

    /// Whether both are the same context.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.as_raw() == other.as_raw()
    }
}

impl fmt::Debug for Entered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entered").field("context", self.context).finish()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("device", &self.retained.device).field("raw", &self.as_raw()).finish()
    }
}

/// The guard of [`Context::enter`]. The context is current until the guard is dropped.
#[must_use = "the context is current until this value is dropped"]
pub struct Entered<'a> {
    context: &'a Context,
    is_pushed: bool,
    not_send: PhantomData<*const ()>,
}

impl Entered<'_> {
    #[inline]
    pub(crate) fn driver(&self) -> &'static Driver {
        self.context.driver()
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if self.is_pushed {
            let mut popped = ptr::null_mut();
            // SAFETY: writes one handle. The pop matches the push on the same thread, because a guard is not `Send`.
            let _ = unsafe { self.driver().cuCtxPopCurrent_v2(&mut popped) };
        }
    }
}

/// This thread's current context.
#[derive(Clone, Copy, Debug)]
pub struct CurrentContext;

impl CurrentContext {
    /// Makes a context current on this thread.
    ///
    /// # Errors
    /// An error of the driver.
    #[inline]
    pub fn set_current(context: &Context) -> CudaResult<()> {
        // SAFETY: the context is retained. If it is destroyed while it is current, the driver returns errors.
        unsafe { context.driver().cuCtxSetCurrent(context.as_raw())? };
        Ok(())
    }

    /// The current context, retained.
    ///
    /// # Errors
    /// [`CudaError::InvalidContext`] if no context is current, or the current one is not a device's primary context.
    pub fn get_current() -> CudaResult<Context> {
        let driver = driver()?;
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle.
        unsafe { driver.cuCtxGetCurrent(&mut raw)? };
        if raw.is_null() {
            return Err(CudaError::InvalidContext);
        }
        let mut contexts = Contexts::lock();
        if let Some(context) = contexts.find(raw) {
            return Ok(context);
        }
        // The context was created outside this crate, or has been destroyed, which the next call reports.
        let (mut device, mut flags, mut is_active) = (0, 0, 0);
        // SAFETY: writes one integer.
        unsafe { driver.cuCtxGetDevice(&mut device)? };
        // SAFETY: writes two integers.
        unsafe { driver.cuDevicePrimaryCtxGetState(device, &mut flags, &mut is_active)? };
        if is_active == 0 {
            return Err(CudaError::InvalidContext);
        }
        let primary = contexts.retain(driver, device)?;
        drop(contexts);
        if primary.as_raw() == raw { Ok(primary) } else { Err(CudaError::InvalidContext) }
    }

    /// The current context's device.
    ///
    /// # Errors
    /// No context is current.
    pub fn get_device() -> CudaResult<Device> {
        let mut device = 0;
        // SAFETY: writes one integer.
        unsafe { driver()?.cuCtxGetDevice(&mut device)? };
        Ok(Device { device })
    }

    /// The current context's flags.
    ///
    /// # Errors
    /// No context is current.
    pub fn get_flags() -> CudaResult<ContextFlags> {
        let mut flags = 0;
        // SAFETY: writes one integer.
        unsafe { driver()?.cuCtxGetFlags(&mut flags)? };
        Ok(ContextFlags::from_bits_truncate(flags))
    }

    /// The current context's split of on-chip memory; [`CacheConfig::PreferNone`] for a value without a name here.
    ///
    /// # Errors
    /// No context is current.
    pub fn get_cache_config() -> CudaResult<CacheConfig> {
        let mut config = CUfunc_cache::CU_FUNC_CACHE_PREFER_NONE;
        // SAFETY: writes one integer.
        unsafe { driver()?.cuCtxGetCacheConfig(&mut config)? };
        let all = [CacheConfig::PreferShared, CacheConfig::PreferL1, CacheConfig::PreferEqual];
        Ok(all.into_iter().find(|known| known.to_raw() == config).unwrap_or(CacheConfig::PreferNone))
    }

    /// Sets the current context's preferred split of on-chip memory. The driver may choose another one.
    ///
    /// # Errors
    /// No context is current.
    pub fn set_cache_config(config: CacheConfig) -> CudaResult<()> {
        // SAFETY: passes an integer.
        unsafe { driver()?.cuCtxSetCacheConfig(config.to_raw())? };
        Ok(())
    }

    /// A limit of the current context.
    ///
    /// # Errors
    /// No context is current, or the device does not support the limit.
    pub fn get_resource_limit(resource: ResourceLimit) -> CudaResult<usize> {
        let mut limit = 0;
        // SAFETY: writes one size.
        unsafe { driver()?.cuCtxGetLimit(&mut limit, resource.to_raw())? };
        Ok(limit)
    }

    /// Sets a limit of the current context.
    ///
    /// # Errors
    /// No context is current, or the device does not support the limit.
    pub fn set_resource_limit(resource: ResourceLimit, limit: usize) -> CudaResult<()> {
        // SAFETY: passes integers.
        unsafe { driver()?.cuCtxSetLimit(resource.to_raw(), limit)? };
        Ok(())
    }

    /// The priorities that a stream may have.
    ///
    /// # Errors
    /// No context is current.
    pub fn get_stream_priority_range() -> CudaResult<StreamPriorityRange> {
        let mut range = StreamPriorityRange { least: 0, greatest: 0 };
        // SAFETY: writes two integers.
        unsafe { driver()?.cuCtxGetStreamPriorityRange(&mut range.least, &mut range.greatest)? };
        Ok(range)
    }

    /// Waits for all work in the current context.
    ///
    /// # Errors
    /// No context is current, or work in it has failed.
    pub fn synchronize() -> CudaResult<()> {
        // SAFETY: passes nothing.
        unsafe { driver()?.cuCtxSynchronize()? };
        Ok(())
    }
}
