//! The driver's functions: looked up by name when the driver is loaded, and called through methods of [`Driver`].

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_ushort, c_void};
use std::fmt;
use std::path::{Path, PathBuf};

use libloading::Library;

use crate::result::{CUresult, DriverError, MissingFunction};
use crate::types::*;
use crate::version::DriverVersion;

/// The driver that this process uses, with a method for each of its functions.
pub struct Driver {
    functions: Functions,
    version: DriverVersion,
    path: PathBuf,
    /// Keeps the library loaded, so that the functions' addresses stay valid.
    library: Library,
}

impl Driver {
    /// Looks up the functions of a library. `version` is the driver's version.
    ///
    /// # Safety
    /// The library is a driver. The value is never dropped, because its functions stay in use.
    pub(crate) unsafe fn new(library: Library, version: DriverVersion, path: PathBuf) -> Self {
        // SAFETY: the driver exports each function under that name. The addresses are valid until the process ends,
        // because the caller never drops the library.
        let functions = unsafe { Functions::find(|symbol| address_in(&library, symbol)) };
        Self { functions, version, path, library }
    }

    /// The newest version of CUDA that this driver implements.
    ///
    /// PTX of a newer version cannot be loaded.
    pub fn version(&self) -> DriverVersion {
        self.version
    }

    /// The path of the loaded library: on Unix as the dynamic linker resolved it, elsewhere as it was requested.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The address of a driver function, for those without a method here. It is valid until the process ends.
    pub fn function(&self, symbol: &str) -> Option<*mut ()> {
        address_in(&self.library, symbol)
    }

    /// The driver's name for a code, such as `CUDA_ERROR_INVALID_VALUE`. The driver may know codes for which
    /// [`CUresult`] has no constant.
    pub fn error_name(&self, code: CUresult) -> Option<&'static str> {
        // SAFETY: the function writes a pointer to a string that lives as long as the driver, or leaves it null.
        self.text(|text| unsafe { self.cuGetErrorName(code, text) }.is_ok())
    }

    /// The driver's description of a code.
    pub fn error_string(&self, code: CUresult) -> Option<&'static str> {
        // SAFETY: as for `cuGetErrorName`.
        self.text(|text| unsafe { self.cuGetErrorString(code, text) }.is_ok())
    }

    /// The string that `write` points to, if it succeeds.
    fn text(&self, write: impl FnOnce(*mut *const c_char) -> bool) -> Option<&'static str> {
        let mut text = std::ptr::null();
        if !write(&mut text) || text.is_null() {
            return None;
        }
        // SAFETY: a nul-terminated string in the driver's memory, and the driver is never unloaded.
        unsafe { CStr::from_ptr(text) }.to_str().ok()
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("version", &self.version).field("path", &self.path).finish_non_exhaustive()
    }
}

/// The address of a function of this library, or of a library that it depends on.
pub(crate) fn address_in(library: &Library, symbol: &str) -> Option<*mut ()> {
    // SAFETY: the symbol is taken as an address only. Nothing is read or called through it here.
    let address: *mut () = *unsafe { library.get(symbol) }.ok()?;
    (!address.is_null()).then_some(address)
}

macro_rules! functions {
    ($(($major:literal, $minor:literal) $doc:literal $name:ident($($argument:ident: $type:ty),* $(,)?);)*) => {
        /// The names of the functions that [`Driver`] has, each with the version of CUDA that introduced it.
        pub const FUNCTIONS: &[(&str, DriverVersion)] =
            &[$((stringify!($name), DriverVersion { major: $major, minor: $minor })),*];

        /// The address of each function, if the driver has it.
        #[allow(non_snake_case, reason = "the driver's names")]
        pub(crate) struct Functions {
            $($name: Option<unsafe extern "system" fn($($type),*) -> CUresult>,)*
        }

        impl Functions {
            /// Looks up every function.
            ///
            /// # Safety
            /// `address` returns the address of the driver's function with the given name, which stays valid until
            /// the process ends, or `None`.
            pub(crate) unsafe fn find(address: impl Fn(&str) -> Option<*mut ()>) -> Self {
                Self {
                    $(
                        $name: address(stringify!($name)).map(|address| {
                            // SAFETY: a function pointer has the size of an address, and cuda.h declares the function
                            // of this name with this type.
                            unsafe {
                                std::mem::transmute::<*mut (), unsafe extern "system" fn($($type),*) -> CUresult>(
                                    address,
                                )
                            }
                        }),
                    )*
                }
            }
        }

        /// The driver's functions.
        #[allow(non_snake_case, reason = "the driver's names")]
        impl Driver {
            $(
                #[doc = $doc]
                #[doc = ""]
                #[doc = concat!("Since CUDA ", $major, ".", $minor, ".")]
                #[doc = ""]
                #[doc = "# Safety"]
                #[doc = "The arguments meet the requirements in the driver API's documentation: pointers are valid for \
                         what the function reads and writes, and handles are alive."]
                #[doc = ""]
                #[doc = "# Errors"]
                #[doc = "The function returned a code other than success, or the driver does not have it."]
                #[inline]
                #[allow(clippy::too_many_arguments)]
                pub unsafe fn $name(&self, $($argument: $type),*) -> Result<(), DriverError> {
                    match self.functions.$name {
                        // SAFETY: as promised by the caller.
                        Some(function) => unsafe { function($($argument),*) }.result(),
                        None => Err(self.missing_function(
                            stringify!($name),
                            DriverVersion { major: $major, minor: $minor },
                        )),
                    }
                }
            )*
        }
    };
}

impl Driver {
    #[cold]
    fn missing_function(&self, name: &'static str, since: DriverVersion) -> DriverError {
        DriverError::Missing(MissingFunction { name, since, driver_version: self.version() })
    }
}

functions! {
    // The driver.
    (2, 0) "Initializes the driver; `flags` must be 0."
    cuInit(flags: c_uint);
    (2, 2) "The version of CUDA that the driver implements: 1000 times major plus 10 times minor."
    cuDriverGetVersion(version: *mut c_int);
    (6, 0) "The name of a code, a string that lives as long as the driver."
    cuGetErrorName(error: CUresult, name: *mut *const c_char);
    (6, 0) "The description of a code, a string that lives as long as the driver."
    cuGetErrorString(error: CUresult, text: *mut *const c_char);

    // Devices.
    (2, 0) "The number of devices."
    cuDeviceGetCount(count: *mut c_int);
    (2, 0) "The device with this ordinal."
    cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    (2, 0) "A device's name, nul-terminated, in at most `length` bytes."
    cuDeviceGetName(name: *mut c_char, length: c_int, device: CUdevice);
    (3, 2) "The size of a device's memory in bytes."
    cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice);
    (2, 0) "A property of a device."
    cuDeviceGetAttribute(value: *mut c_int, attribute: CUdevice_attribute, device: CUdevice);

    // Contexts.
    (7, 0) "Retains a device's primary context. The first retain creates it."
    cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
    (11, 0) "Releases a device's primary context. The last release destroys it."
    cuDevicePrimaryCtxRelease_v2(device: CUdevice);
    (11, 0) "Sets the flags of a device's primary context."
    cuDevicePrimaryCtxSetFlags_v2(device: CUdevice, flags: c_uint);
    (7, 0) "Whether a device's primary context exists, and its flags."
    cuDevicePrimaryCtxGetState(device: CUdevice, flags: *mut c_uint, is_active: *mut c_int);
    (11, 0) "Destroys a device's primary context and everything in it, even if it is in use."
    cuDevicePrimaryCtxReset_v2(device: CUdevice);
    (4, 0) "Makes a context current on this thread."
    cuCtxSetCurrent(context: CUcontext);
    (4, 0) "This thread's current context, or null."
    cuCtxGetCurrent(context: *mut CUcontext);
    (4, 0) "Pushes a context onto this thread's stack, which makes it current."
    cuCtxPushCurrent_v2(context: CUcontext);
    (4, 0) "Pops the current context from this thread's stack."
    cuCtxPopCurrent_v2(context: *mut CUcontext);
    (2, 0) "The current context's device."
    cuCtxGetDevice(device: *mut CUdevice);
    (7, 0) "The current context's flags."
    cuCtxGetFlags(flags: *mut c_uint);
    (3, 2) "The API version that a context was created with."
    cuCtxGetApiVersion(context: CUcontext, version: *mut c_uint);
    (2, 0) "Waits for all work in the current context."
    cuCtxSynchronize();
    (3, 1) "A limit of the current context."
    cuCtxGetLimit(value: *mut usize, limit: CUlimit);
    (3, 1) "Sets a limit of the current context."
    cuCtxSetLimit(limit: CUlimit, value: usize);
    (3, 2) "The current context's split of on-chip memory into L1 cache and shared memory."
    cuCtxGetCacheConfig(config: *mut CUfunc_cache);
    (3, 2) "Sets the current context's split of on-chip memory into L1 cache and shared memory."
    cuCtxSetCacheConfig(config: CUfunc_cache);
    (5, 5) "The lowest and the highest priority of streams."
    cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int);

    // Modules and kernels.
    (2, 1) "Loads PTX or a binary into the current context."
    cuModuleLoadDataEx(
        module: *mut CUmodule,
        image: *const c_void,
        option_count: c_uint,
        options: *mut CUjit_option,
        values: *mut *mut c_void,
    );
    (2, 0) "Unloads a module."
    cuModuleUnload(module: CUmodule);
    (2, 0) "A kernel of a module, by its name."
    cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
    (2, 2) "A property of a kernel."
    cuFuncGetAttribute(value: *mut c_int, attribute: CUfunction_attribute, function: CUfunction);
    (9, 0) "Sets a property of a kernel."
    cuFuncSetAttribute(function: CUfunction, attribute: CUfunction_attribute, value: c_int);
    (3, 0) "Sets a kernel's preferred split of on-chip memory into L1 cache and shared memory."
    cuFuncSetCacheConfig(function: CUfunction, config: CUfunc_cache);
    (6, 5) "The maximum number of a kernel's blocks that are resident on a multiprocessor at once."
    cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int,
        function: CUfunction,
        block_size: c_int,
        dynamic_shared: usize,
    );
    (6, 5) "The block size with the highest occupancy, and the smallest grid that fills the device with it."
    cuOccupancyMaxPotentialBlockSize(
        min_grid_size: *mut c_int,
        block_size: *mut c_int,
        function: CUfunction,
        dynamic_shared_of_block: Option<CUoccupancyB2DSize>,
        dynamic_shared: usize,
        block_size_limit: c_int,
    );
    (10, 2) "The maximum dynamic shared memory per block, in bytes, with which `blocks` blocks fit on a multiprocessor."
    cuOccupancyAvailableDynamicSMemPerBlock(
        dynamic_shared: *mut usize,
        function: CUfunction,
        blocks: c_int,
        block_size: c_int,
    );
    (4, 0) "Launches a kernel."
    cuLaunchKernel(
        function: CUfunction,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        dynamic_shared: c_uint,
        stream: CUstream,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    );
    (11, 6) "Launches a kernel with attributes."
    cuLaunchKernelEx(
        config: *const CUlaunchConfig,
        function: CUfunction,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    );

    // Streams and events.
    (5, 5) "Creates a stream."
    cuStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int);
    (4, 0) "Destroys a stream. Its pending work still completes."
    cuStreamDestroy_v2(stream: CUstream);
    (5, 5) "A stream's flags."
    cuStreamGetFlags(stream: CUstream, flags: *mut c_uint);
    (5, 5) "A stream's priority."
    cuStreamGetPriority(stream: CUstream, priority: *mut c_int);
    (9, 2) "A stream's context."
    cuStreamGetCtx(stream: CUstream, context: *mut CUcontext);
    (12, 0) "A stream's identifier, which no other stream of the process has, before or after."
    cuStreamGetId(stream: CUstream, id: *mut c_ulonglong);
    (2, 0) "Waits for a stream's work."
    cuStreamSynchronize(stream: CUstream);
    (2, 0) "Whether a stream's work has completed: success, or `CUDA_ERROR_NOT_READY`."
    cuStreamQuery(stream: CUstream);
    (3, 2) "Makes later work in a stream wait for an event."
    cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);
    (10, 0) "Calls a host function after the stream's earlier work."
    cuLaunchHostFunc(stream: CUstream, function: Option<CUhostFn>, data: *mut c_void);
    (2, 0) "Creates an event."
    cuEventCreate(event: *mut CUevent, flags: c_uint);
    (4, 0) "Destroys an event."
    cuEventDestroy_v2(event: CUevent);
    (2, 0) "Records an event in a stream."
    cuEventRecord(event: CUevent, stream: CUstream);
    (2, 0) "Whether an event has completed: success, or `CUDA_ERROR_NOT_READY`."
    cuEventQuery(event: CUevent);
    (2, 0) "Waits for an event."
    cuEventSynchronize(event: CUevent);
    (2, 0) "The time between two events, in milliseconds."
    cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent);

    // Memory.
    (3, 2) "The free and the total memory in bytes."
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    (7, 0) "Attributes of the memory at an address, each written to its pointer in `data`; zeros for unknown memory."
    cuPointerGetAttributes(
        count: c_uint,
        attributes: *mut CUpointer_attribute,
        data: *mut *mut c_void,
        address: CUdeviceptr,
    );
    (3, 2) "Allocates device memory."
    cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize);
    (3, 2) "Frees device memory, or managed memory, after the work that uses it."
    cuMemFree_v2(address: CUdeviceptr);
    (11, 2) "Allocates device memory in stream order."
    cuMemAllocAsync(address: *mut CUdeviceptr, bytes: usize, stream: CUstream);
    (11, 2) "Frees device memory in stream order."
    cuMemFreeAsync(address: CUdeviceptr, stream: CUstream);
    (6, 0) "Allocates managed memory, which host and devices share."
    cuMemAllocManaged(address: *mut CUdeviceptr, bytes: usize, flags: c_uint);
    (3, 2) "Allocates page-locked host memory."
    cuMemAllocHost_v2(address: *mut *mut c_void, bytes: usize);
    (2, 0) "Frees page-locked host memory."
    cuMemFreeHost(address: *mut c_void);
    (3, 2) "Copies from the host to the device."
    cuMemcpyHtoD_v2(to: CUdeviceptr, from: *const c_void, bytes: usize);
    (3, 2) "Copies from the device to the host."
    cuMemcpyDtoH_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize);
    (3, 2) "Copies on the device."
    cuMemcpyDtoD_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize);
    (3, 2) "Copies from the host to the device, in a stream."
    cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream);
    (3, 2) "Copies from the device to the host, in a stream."
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream);
    (3, 2) "Copies on the device, in a stream."
    cuMemcpyDtoDAsync_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream);
    (3, 2) "Fills memory with a byte."
    cuMemsetD8_v2(to: CUdeviceptr, value: u8, count: usize);
    (3, 2) "Fills memory with a 2-byte value."
    cuMemsetD16_v2(to: CUdeviceptr, value: c_ushort, count: usize);
    (3, 2) "Fills memory with a 4-byte value."
    cuMemsetD32_v2(to: CUdeviceptr, value: c_uint, count: usize);
    (3, 2) "Fills memory with a byte, in a stream."
    cuMemsetD8Async(to: CUdeviceptr, value: u8, count: usize, stream: CUstream);
    (3, 2) "Fills memory with a 2-byte value, in a stream."
    cuMemsetD16Async(to: CUdeviceptr, value: c_ushort, count: usize, stream: CUstream);
    (3, 2) "Fills memory with a 4-byte value, in a stream."
    cuMemsetD32Async(to: CUdeviceptr, value: c_uint, count: usize, stream: CUstream);

    // Graphs.
    (10, 1) "Begins capturing a stream's work into a graph."
    cuStreamBeginCapture_v2(stream: CUstream, mode: CUstreamCaptureMode);
    (10, 1) "Exchanges the capture mode of this thread's calls with the one in `mode`."
    cuThreadExchangeStreamCaptureMode(mode: *mut CUstreamCaptureMode);
    (10, 0) "Whether a stream's work is captured."
    cuStreamIsCapturing(stream: CUstream, status: *mut CUstreamCaptureStatus);
    (11, 3) "A stream's capture: its identifier, its graph, and the nodes that the next node depends on; each pointer \
             but the first may be null."
    cuStreamGetCaptureInfo_v2(
        stream: CUstream,
        status: *mut CUstreamCaptureStatus,
        id: *mut c_ulonglong,
        graph: *mut CUgraph,
        dependencies: *mut *const *mut c_void,
        dependency_count: *mut usize,
    );
    (10, 0) "Ends the capture of a stream."
    cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph);
    (11, 4) "Instantiates a graph."
    cuGraphInstantiateWithFlags(executable: *mut CUgraphExec, graph: CUgraph, flags: c_ulonglong);
    (10, 0) "Launches an instantiated graph."
    cuGraphLaunch(executable: CUgraphExec, stream: CUstream);
    (10, 0) "Destroys a graph."
    cuGraphDestroy(graph: CUgraph);
    (10, 0) "Destroys an instantiated graph."
    cuGraphExecDestroy(executable: CUgraphExec);
    (10, 0) "The number of a graph's nodes if `nodes` is null, else the nodes."
    cuGraphGetNodes(graph: CUgraph, nodes: *mut *mut c_void, count: *mut usize);
    (11, 3) "Creates an object whose references graphs can own. A thread of the driver calls `destroy` with `data` \
             after the last is released."
    cuUserObjectCreate(
        object: *mut CUuserObject,
        data: *mut c_void,
        destroy: Option<CUhostFn>,
        references: c_uint,
        flags: c_uint,
    );
    (11, 3) "Releases references to an object."
    cuUserObjectRelease(object: CUuserObject, references: c_uint);
    (11, 3) "Gives a graph references to an object. What is instantiated or cloned from the graph has them, too."
    cuGraphRetainUserObject(graph: CUgraph, object: CUuserObject, references: c_uint, flags: c_uint);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_function_is_listed_once() {
        let names: BTreeSet<_> = FUNCTIONS.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), FUNCTIONS.len());
        assert!(FUNCTIONS.iter().all(|(name, _)| name.starts_with("cu")));
    }
}
