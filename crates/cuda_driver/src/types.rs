//! The types of `cuda.h`, under its names.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

/// An address in a device's memory.
pub type CUdeviceptr = u64;

/// A device's handle, which may differ from its ordinal.
pub type CUdevice = c_int;

macro_rules! handles {
    ($($opaque:ident $name:ident, $doc:literal;)*) => {
        $(
            #[doc = concat!("The opaque type that a [`", stringify!($name), "`] points to.")]
            #[allow(non_camel_case_types)]
            #[repr(C)]
            #[derive(Debug)]
            pub struct $opaque {
                _private: [u8; 0],
            }

            #[doc = $doc]
            pub type $name = *mut $opaque;
        )*
    };
}

handles! {
    CUctx_st CUcontext, "A context.";
    CUmod_st CUmodule, "A module: code loaded into a context.";
    CUfunc_st CUfunction, "A kernel in a module.";
    CUstream_st CUstream, "A stream; null is the legacy default stream.";
    CUevent_st CUevent, "An event.";
    CUgraph_st CUgraph, "A graph.";
    CUgraphExec_st CUgraphExec, "An instantiated graph, which can be launched.";
    CUuserObject_st CUuserObject, "An object that graphs keep.";
}

/// C enumerations, as integers with constants: the driver may return a value that has no constant here.
macro_rules! enumerations {
    ($($(#[$doc:meta])* $name:ident { $($(#[$constant_doc:meta])* $constant:ident = $value:literal;)* })*) => {
        $(
            $(#[$doc])*
            #[allow(non_camel_case_types)]
            #[repr(transparent)]
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub struct $name(pub c_uint);

            impl $name {
                $(
                    $(#[$constant_doc])*
                    pub const $constant: Self = Self($value);
                )*
            }
        )*
    };
}

enumerations! {
    /// A property of a device, for `cuDeviceGetAttribute`. `cust::device::DeviceAttribute` has the constants.
    CUdevice_attribute {}

    /// A property of a kernel, for `cuFuncGetAttribute`.
    CUfunction_attribute {
        /// The maximum number of threads of the kernel's blocks.
        CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0;
        /// Bytes of static shared memory.
        CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1;
        /// Bytes of constant memory.
        CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2;
        /// Bytes of local memory per thread.
        CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3;
        /// Registers per thread.
        CU_FUNC_ATTRIBUTE_NUM_REGS = 4;
        /// Ten times the PTX version that the kernel was compiled for.
        CU_FUNC_ATTRIBUTE_PTX_VERSION = 5;
        /// Ten times the compute capability that the kernel was compiled for.
        CU_FUNC_ATTRIBUTE_BINARY_VERSION = 6;
        /// Whether global loads are cached in L1.
        CU_FUNC_ATTRIBUTE_CACHE_MODE_CA = 7;
        /// The maximum number of bytes of dynamic shared memory in a launch. It can be set.
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8;
        /// Percentage of the L1 cache that is preferred as shared memory. It can be set.
        CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9;
    }

    /// A kernel's preferred split of on-chip memory into L1 cache and shared memory.
    CUfunc_cache {
        /// No preference.
        CU_FUNC_CACHE_PREFER_NONE = 0;
        /// More shared memory.
        CU_FUNC_CACHE_PREFER_SHARED = 1;
        /// More L1 cache.
        CU_FUNC_CACHE_PREFER_L1 = 2;
        /// Equal sizes.
        CU_FUNC_CACHE_PREFER_EQUAL = 3;
    }

    /// A limit of a context.
    CUlimit {
        /// The size of a thread's stack in bytes.
        CU_LIMIT_STACK_SIZE = 0;
        /// The size of the buffer for `printf` in kernels, in bytes.
        CU_LIMIT_PRINTF_FIFO_SIZE = 1;
        /// The size of the heap for `malloc` in kernels, in bytes.
        CU_LIMIT_MALLOC_HEAP_SIZE = 2;
        /// The maximum nesting depth at which a kernel may wait for kernels that it has launched.
        CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH = 3;
        /// The maximum number of pending launches from kernels.
        CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT = 4;
        /// The maximum number of bytes that a miss fetches into L2.
        CU_LIMIT_MAX_L2_FETCH_GRANULARITY = 5;
    }

    /// An option of `cuModuleLoadDataEx`. Its value is passed in the place of a pointer.
    CUjit_option {
        /// The maximum number of registers per thread.
        CU_JIT_MAX_REGISTERS = 0;
        /// A buffer for the compiler's error messages.
        CU_JIT_ERROR_LOG_BUFFER = 5;
        /// The size of that buffer. The driver replaces it with the length of the messages.
        CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6;
        /// The optimization level, 0 to 4.
        CU_JIT_OPTIMIZATION_LEVEL = 7;
        /// Compile for the device of the current context; takes no value.
        CU_JIT_TARGET_FROM_CUCONTEXT = 8;
        /// Ten times the compute capability to compile for.
        CU_JIT_TARGET = 9;
        /// If no binary matches the GPU exactly: 0 compiles the PTX, 1 takes a compatible binary.
        CU_JIT_FALLBACK_STRATEGY = 10;
        /// Whether to generate debug information.
        CU_JIT_GENERATE_DEBUG_INFO = 11;
        /// Whether to generate line numbers.
        CU_JIT_GENERATE_LINE_INFO = 13;
    }

    /// Which calls are errors while a stream is captured.
    CUstreamCaptureMode {
        /// Calls, by any thread, that a graph cannot contain.
        CU_STREAM_CAPTURE_MODE_GLOBAL = 0;
        /// Such calls by the capturing thread.
        CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1;
        /// None: such calls are executed at once.
        CU_STREAM_CAPTURE_MODE_RELAXED = 2;
    }

    /// Whether a stream's work is captured.
    CUstreamCaptureStatus {
        /// It is not.
        CU_STREAM_CAPTURE_STATUS_NONE = 0;
        /// It is.
        CU_STREAM_CAPTURE_STATUS_ACTIVE = 1;
        /// It is, in a capture that an error has made invalid.
        CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2;
    }

    /// A property of the memory at an address, with the type of its value.
    CUpointer_attribute {
        /// [`CUmemorytype`]: where the memory is.
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2;
        /// `c_uint`: whether it is managed memory.
        CU_POINTER_ATTRIBUTE_IS_MANAGED = 8;
        /// `c_int`: the ordinal of its device.
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9;
        /// [`CUdeviceptr`]: the start of its allocation.
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11;
        /// `usize`: the bytes of its allocation.
        CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12;
    }

    /// Where memory is; 0 for memory that the driver does not know.
    CUmemorytype {
        /// On the host.
        CU_MEMORYTYPE_HOST = 1;
        /// On a device.
        CU_MEMORYTYPE_DEVICE = 2;
    }

    /// An attribute of a launch.
    CUlaunchAttributeID {
        /// The kernel may start before the previous kernel in the stream has ended.
        CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6;
    }
}

/// A flag of a stream: no synchronization with the legacy default stream.
pub const CU_STREAM_NON_BLOCKING: c_uint = 1;

/// The legacy default stream, as a handle that is not null.
pub const CU_STREAM_LEGACY: CUstream = ptr::without_provenance_mut(1);

/// The default stream of the calling thread.
pub const CU_STREAM_PER_THREAD: CUstream = ptr::without_provenance_mut(2);

/// A flag of a user object: nothing waits for its destructor. All user objects must have it.
pub const CU_USER_OBJECT_NO_DESTRUCTOR_SYNC: c_uint = 1;

/// A flag of a graph's references to a user object: the caller's become the graph's.
pub const CU_GRAPH_USER_OBJECT_MOVE: c_uint = 1;

/// A flag of an allocation of managed memory: any stream may use it.
pub const CU_MEM_ATTACH_GLOBAL: c_uint = 1;

/// A host function that a stream calls, `CUhostFn`.
pub type CUhostFn = unsafe extern "system" fn(data: *mut c_void);

/// A function that returns the dynamic shared memory in bytes for a block size, `CUoccupancyB2DSize`.
pub type CUoccupancyB2DSize = unsafe extern "system" fn(block_size: c_int) -> usize;

/// The configuration of a launch by `cuLaunchKernelEx`.
#[repr(C)]
#[derive(Debug)]
#[allow(non_snake_case, reason = "the names of cuda.h")]
pub struct CUlaunchConfig {
    /// Blocks along x.
    pub gridDimX: c_uint,
    /// Blocks along y.
    pub gridDimY: c_uint,
    /// Blocks along z.
    pub gridDimZ: c_uint,
    /// Threads of a block along x.
    pub blockDimX: c_uint,
    /// Threads of a block along y.
    pub blockDimY: c_uint,
    /// Threads of a block along z.
    pub blockDimZ: c_uint,
    /// Bytes of dynamic shared memory.
    pub sharedMemBytes: c_uint,
    /// The stream.
    pub hStream: CUstream,
    /// `numAttrs` attributes; may be null if `numAttrs` is 0.
    pub attrs: *mut CUlaunchAttribute,
    /// The number of attributes.
    pub numAttrs: c_uint,
}

impl Default for CUlaunchConfig {
    /// One block of one thread in the legacy default stream.
    fn default() -> Self {
        Self {
            gridDimX: 1,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 1,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            hStream: ptr::null_mut(),
            attrs: ptr::null_mut(),
            numAttrs: 0,
        }
    }
}

/// An attribute of a launch, with its value, a union of 64 bytes with the alignment of a pointer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUlaunchAttribute {
    id: CUlaunchAttributeID,
    pad: [u8; 4],
    value: [u64; 8],
}

impl CUlaunchAttribute {
    /// Allows the kernel to start before the previous kernel in the stream has ended: programmatic dependent launch.
    pub const fn programmatic_stream_serialization() -> Self {
        let mut value = [0; 8];
        // The union's `int` is in the first four bytes, because every machine with a CUDA driver is little-endian.
        value[0] = 1;
        Self { id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, pad: [0; 4], value }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::{align_of, offset_of, size_of};

    use super::*;

    /// The layouts of cuda.h on a 64-bit machine.
    #[test]
    fn layouts_equal_those_of_cuda_h() {
        assert_eq!((size_of::<CUdevice>(), size_of::<CUdeviceptr>(), size_of::<CUjit_option>()), (4, 8, 4));
        assert_eq!((size_of::<CUlaunchConfig>(), align_of::<CUlaunchConfig>()), (56, 8));
        assert_eq!(offset_of!(CUlaunchConfig, blockDimX), 12);
        assert_eq!(offset_of!(CUlaunchConfig, sharedMemBytes), 24);
        assert_eq!(offset_of!(CUlaunchConfig, hStream), 32);
        assert_eq!(offset_of!(CUlaunchConfig, attrs), 40);
        assert_eq!(offset_of!(CUlaunchConfig, numAttrs), 48);
        assert_eq!((size_of::<CUlaunchAttribute>(), align_of::<CUlaunchAttribute>()), (72, 8));
        assert_eq!(offset_of!(CUlaunchAttribute, value), 8);
        assert_eq!(size_of::<Option<CUhostFn>>(), size_of::<usize>());
    }
}
