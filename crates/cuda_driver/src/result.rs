//! Result codes, and the errors of calls.

use std::fmt;

use crate::version::DriverVersion;

/// The result of a driver function: an integer, 0 for success.
///
/// A newer driver may return a code without a constant here. Such a code is an error like any other.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CUresult(pub u32);

macro_rules! codes {
    ($($name:ident = $code:literal, $doc:literal;)*) => {
        #[allow(missing_docs, reason = "each has its line in the list below")]
        impl CUresult {
            $(
                #[doc = $doc]
                pub const $name: Self = Self($code);
            )*
        }

        /// The codes in ascending order: number, name, description.
        const CODES: &[(u32, &str, &str)] = &[$(($code, stringify!($name), $doc)),*];
    };
}

codes! {
    CUDA_SUCCESS = 0, "no error";
    CUDA_ERROR_INVALID_VALUE = 1, "an argument is out of range";
    CUDA_ERROR_OUT_OF_MEMORY = 2, "out of memory";
    CUDA_ERROR_NOT_INITIALIZED = 3, "the driver is not initialized: call `cuInit` first";
    CUDA_ERROR_DEINITIALIZED = 4, "the driver is shutting down";
    CUDA_ERROR_PROFILER_DISABLED = 5, "the profiler is not running";
    CUDA_ERROR_PROFILER_NOT_INITIALIZED = 6, "the profiler is not initialized";
    CUDA_ERROR_PROFILER_ALREADY_STARTED = 7, "the profiler has started already";
    CUDA_ERROR_PROFILER_ALREADY_STOPPED = 8, "the profiler has stopped already";
    CUDA_ERROR_STUB_LIBRARY = 34, "the library is the CUDA toolkit's stub for linking, not a driver";
    CUDA_ERROR_DEVICE_UNAVAILABLE = 46, "another process holds the device exclusively";
    CUDA_ERROR_NO_DEVICE = 100, "the driver found no CUDA device";
    CUDA_ERROR_INVALID_DEVICE = 101, "no CUDA device has that number";
    CUDA_ERROR_DEVICE_NOT_LICENSED = 102, "the device has no license";
    CUDA_ERROR_INVALID_IMAGE = 200, "the module is damaged";
    CUDA_ERROR_INVALID_CONTEXT = 201, "no valid context is current on this thread";
    CUDA_ERROR_CONTEXT_ALREADY_CURRENT = 202, "the context is current already";
    CUDA_ERROR_MAP_FAILED = 205, "mapping memory failed";
    CUDA_ERROR_UNMAP_FAILED = 206, "unmapping memory failed";
    CUDA_ERROR_ARRAY_IS_MAPPED = 207, "the array is mapped and cannot be destroyed";
    CUDA_ERROR_ALREADY_MAPPED = 208, "the resource is mapped already";
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209, "the module has no code for this GPU";
    CUDA_ERROR_ALREADY_ACQUIRED = 210, "the resource is acquired already";
    CUDA_ERROR_NOT_MAPPED = 211, "the resource is not mapped";
    CUDA_ERROR_NOT_MAPPED_AS_ARRAY = 212, "the resource is not mapped as an array";
    CUDA_ERROR_NOT_MAPPED_AS_POINTER = 213, "the resource is not mapped as a pointer";
    CUDA_ERROR_ECC_UNCORRECTABLE = 214, "uncorrectable ECC error";
    CUDA_ERROR_UNSUPPORTED_LIMIT = 215, "the device does not support that limit";
    CUDA_ERROR_CONTEXT_ALREADY_IN_USE = 216, "the context is in use by another thread";
    CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217, "the devices cannot access each other's memory";
    CUDA_ERROR_INVALID_PTX = 218, "the driver's compiler rejected the PTX";
    CUDA_ERROR_INVALID_GRAPHICS_CONTEXT = 219, "invalid graphics context";
    CUDA_ERROR_NVLINK_UNCORRECTABLE = 220, "uncorrectable NVLink error";
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221, "the driver's PTX compiler (libnvidia-ptxjitcompiler) was not found";
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222, "the PTX version is newer than the driver supports";
    CUDA_ERROR_JIT_COMPILATION_DISABLED = 223, "the compilation of PTX is disabled (CUDA_DISABLE_PTX_JIT)";
    CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY = 224, "the device does not support that execution affinity";
    CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC = 225, "the PTX calls `cudaDeviceSynchronize`, which devices no longer support";
    CUDA_ERROR_CONTAINED = 226, "an error that was contained in this process";
    CUDA_ERROR_INVALID_SOURCE = 300, "the kernel's source is invalid";
    CUDA_ERROR_FILE_NOT_FOUND = 301, "the file was not found";
    CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND = 302, "a shared library lacks a symbol";
    CUDA_ERROR_SHARED_OBJECT_INIT_FAILED = 303, "a shared library could not be initialized";
    CUDA_ERROR_OPERATING_SYSTEM = 304, "a call to the operating system failed";
    CUDA_ERROR_INVALID_HANDLE = 400, "a handle is invalid, or belongs to another context";
    CUDA_ERROR_ILLEGAL_STATE = 401, "a resource is in the wrong state for the call";
    CUDA_ERROR_NOT_FOUND = 500, "no symbol has that name";
    CUDA_ERROR_NOT_READY = 600, "the work is not done yet";
    CUDA_ERROR_ILLEGAL_ADDRESS = 700, "a kernel accessed an invalid address; the context is lost";
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701, "the launch needs more registers or memory than the device has";
    CUDA_ERROR_LAUNCH_TIMEOUT = 702, "a kernel ran for too long; the context is lost";
    CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING = 703, "the launch uses an incompatible texturing mode";
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704, "peer access is enabled already";
    CUDA_ERROR_PEER_ACCESS_NOT_ENABLED = 705, "peer access is not enabled";
    CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708, "the primary context exists already";
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709, "the context that is current on this thread has been destroyed";
    CUDA_ERROR_ASSERT = 710, "an assertion in a kernel failed; the context is lost";
    CUDA_ERROR_TOO_MANY_PEERS = 711, "the device has reached its limit of peers";
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712, "the host memory is registered already";
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713, "the host memory is not registered";
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714, "a kernel damaged its call stack; the context is lost";
    CUDA_ERROR_ILLEGAL_INSTRUCTION = 715, "a kernel executed an illegal instruction; the context is lost";
    CUDA_ERROR_MISALIGNED_ADDRESS = 716, "a kernel accessed a misaligned address; the context is lost";
    CUDA_ERROR_INVALID_ADDRESS_SPACE = 717, "a kernel accessed a wrong address space; the context is lost";
    CUDA_ERROR_INVALID_PC = 718, "a kernel jumped to an invalid address; the context is lost";
    CUDA_ERROR_LAUNCH_FAILED = 719, "a kernel failed; the context is lost";
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720, "a cooperative launch has more blocks than can be resident";
    CUDA_ERROR_TENSOR_MEMORY_LEAK = 721, "a kernel ended without freeing its tensor memory; the context is lost";
    CUDA_ERROR_NOT_PERMITTED = 800, "the operation is not permitted";
    CUDA_ERROR_NOT_SUPPORTED = 801, "the operation is not supported by this device or driver";
    CUDA_ERROR_SYSTEM_NOT_READY = 802, "the system is not ready: a machine with NVSwitch needs the fabric manager";
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803, "the driver's kernel module and its library are of different versions";
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804, "this GPU does not support CUDA's forward compatibility package";
    CUDA_ERROR_MPS_CONNECTION_FAILED = 805, "cannot connect to the MPS server";
    CUDA_ERROR_MPS_RPC_FAILURE = 806, "a call to the MPS server failed";
    CUDA_ERROR_MPS_SERVER_NOT_READY = 807, "the MPS server is not ready";
    CUDA_ERROR_MPS_MAX_CLIENTS_REACHED = 808, "the MPS server has reached its limit of clients";
    CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED = 809, "the MPS server has reached its limit of connections";
    CUDA_ERROR_MPS_CLIENT_TERMINATED = 810, "the MPS server has terminated this client";
    CUDA_ERROR_CDP_NOT_SUPPORTED = 811, "the device does not support dynamic parallelism";
    CUDA_ERROR_CDP_VERSION_MISMATCH = 812, "the program mixes two versions of dynamic parallelism";
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900, "the operation is not permitted while a stream is captured";
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901, "an earlier error has invalidated the capture";
    CUDA_ERROR_STREAM_CAPTURE_MERGE = 902, "the operation would merge two captures";
    CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903, "the capture was begun on another stream";
    CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904, "the capture has a fork that was not joined";
    CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905, "a dependency would cross the boundary of the capture";
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906, "a captured stream cannot depend on the legacy default stream";
    CUDA_ERROR_CAPTURED_EVENT = 907, "the event was recorded in a captured stream";
    CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908, "the capture was begun on another thread";
    CUDA_ERROR_TIMEOUT = 909, "the wait timed out";
    CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910, "the graph cannot be updated in place";
    CUDA_ERROR_EXTERNAL_DEVICE = 911, "another device reported an error";
    CUDA_ERROR_INVALID_CLUSTER_SIZE = 912, "the thread block cluster is misconfigured";
    CUDA_ERROR_FUNCTION_NOT_LOADED = 913, "the function is not loaded";
    CUDA_ERROR_INVALID_RESOURCE_TYPE = 914, "a resource is of the wrong type";
    CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION = 915, "resources are insufficient or not applicable";
    CUDA_ERROR_KEY_ROTATION = 916, "the keys of confidential computing are being rotated";
    CUDA_ERROR_STREAM_DETACHED = 917, "the stream is detached";
    CUDA_ERROR_GRAPH_RECAPTURE_FAILURE = 918, "the graph could not be captured again";
    CUDA_ERROR_UNKNOWN = 999, "an unknown error inside the driver";
}

impl CUresult {
    /// `Ok` for success.
    ///
    /// # Errors
    /// Any other code.
    #[inline]
    pub const fn result(self) -> Result<(), DriverError> {
        match self {
            Self::CUDA_SUCCESS => Ok(()),
            code => Err(DriverError::Code(code)),
        }
    }

    /// The constant's name, such as `CUDA_ERROR_INVALID_VALUE`; `None` for a code without a constant here.
    pub fn name(self) -> Option<&'static str> {
        self.entry().map(|(_, name, _)| *name)
    }

    /// A short description of the code; `None` for a code without a constant here.
    pub fn description(self) -> Option<&'static str> {
        self.entry().map(|(_, _, description)| *description)
    }

    fn entry(self) -> Option<&'static (u32, &'static str, &'static str)> {
        CODES.binary_search_by_key(&self.0, |(code, _, _)| *code).ok().map(|i| &CODES[i])
    }
}

impl fmt::Display for CUresult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.entry() {
            Some((code, name, description)) => write!(f, "{description} ({name}, code {code})"),
            None => write!(f, "the CUDA driver returned the unknown code {}", self.0),
        }
    }
}

impl fmt::Debug for CUresult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "CUresult({})", self.0),
        }
    }
}

/// A function that the loaded driver does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[error("the driver supports CUDA {driver_version}, but `{name}` needs CUDA {since}: install a newer driver")]
#[non_exhaustive]
pub struct MissingFunction {
    /// The function's name.
    pub name: &'static str,
    /// The version of CUDA that introduced it.
    pub since: DriverVersion,
    /// The version of CUDA that the driver implements.
    pub driver_version: DriverVersion,
}

/// The error of calling a driver function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// The function returned this code, which is not success.
    #[error("{0}")]
    Code(CUresult),

    /// The driver does not have the function; nothing was called.
    #[error(transparent)]
    Missing(MissingFunction),
}

impl DriverError {
    /// The code that the function returned. For a missing function, it is [`CUresult::CUDA_ERROR_NOT_FOUND`].
    pub const fn code(self) -> CUresult {
        match self {
            Self::Code(code) => code,
            Self::Missing(_) => CUresult::CUDA_ERROR_NOT_FOUND,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted() {
        assert!(CODES.is_sorted_by(|(a, ..), (b, ..)| a < b));
    }

    #[test]
    fn every_code_but_success_is_an_error() {
        assert_eq!(CUresult(0).result(), Ok(()));
        for (code, name, _) in &CODES[1..] {
            assert_eq!(CUresult(*code).result(), Err(DriverError::Code(CUresult(*code))), "{name}");
        }
    }

    #[test]
    fn an_unknown_code_is_an_error_with_its_number() {
        for unknown in [9, 1234, u32::MAX] {
            let code = CUresult(unknown);
            assert_eq!(code.result(), Err(DriverError::Code(code)));
            assert_eq!((code.name(), code.description()), (None, None));
            assert!(code.to_string().contains(&unknown.to_string()), "{code}");
            assert_eq!(format!("{code:?}"), format!("CUresult({unknown})"));
        }
    }

    #[test]
    fn a_known_code_displays_its_description() {
        let code = CUresult::CUDA_ERROR_NO_DEVICE;
        assert_eq!(code.name(), Some("CUDA_ERROR_NO_DEVICE"));
        assert_eq!(code.to_string(), "the driver found no CUDA device (CUDA_ERROR_NO_DEVICE, code 100)");
        assert_eq!(format!("{code:?}"), "CUDA_ERROR_NO_DEVICE");
    }

    #[test]
    fn a_missing_function_displays_its_name_and_both_versions() {
        let version = |major, minor| DriverVersion { major, minor };
        let missing =
            MissingFunction { name: "cuLaunchKernelEx", since: version(11, 6), driver_version: version(11, 4) };
        let error = DriverError::Missing(missing);
        let message = error.to_string();
        assert!(["`cuLaunchKernelEx`", "11.6", "11.4"].iter().all(|part| message.contains(part)), "{message}");
        assert_eq!(error.code(), CUresult::CUDA_ERROR_NOT_FOUND);
    }
}
