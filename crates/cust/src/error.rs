//! The errors of the driver, and of this crate.

use std::error::Error;
use std::fmt;

use cuda_driver::{CUresult, DriverError, MissingFunction};

/// The result of a call that can fail.
pub type CudaResult<T> = Result<T, CudaError>;

/// The result of the `drop` functions. An error comes with the value that could not be dropped.
pub type DropResult<T> = Result<(), (CudaError, T)>;

macro_rules! errors {
    ($($variant:ident = $code:ident,)*) => {
        /// The error of a call: a result code of the driver, under Rust-CUDA's name, or an error of this crate.
        ///
        /// A code of a newer driver is [`CudaError::Other`], with its number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum CudaError {
            $(
                #[doc = concat!("`", stringify!($code), "`.")]
                $variant,
            )*
            /// A code without a variant here.
            Other(u32),
            /// No driver could be loaded. The error's message says why, as does [`cuda_driver::load`].
            NoDriver,
            /// The driver lacks a function that the call needs.
            MissingFunction(MissingFunction),
            /// The requested memory is larger than the address space, or needs an alignment of more than 256 bytes.
            InvalidMemoryAllocation,
        }

        impl CudaError {
            /// The error for a code; `None` for success.
            pub fn from_code(code: CUresult) -> Option<Self> {
                match code {
                    CUresult::CUDA_SUCCESS => None,
                    $(CUresult::$code => Some(Self::$variant),)*
                    CUresult(code) => Some(Self::Other(code)),
                }
            }

            /// The driver's code. For an error of this crate, it is the code with the nearest meaning.
            pub fn code(self) -> CUresult {
                match self {
                    $(Self::$variant => CUresult::$code,)*
                    Self::Other(code) => CUresult(code),
                    Self::NoDriver => CUresult::CUDA_ERROR_NOT_INITIALIZED,
                    Self::MissingFunction(_) => CUresult::CUDA_ERROR_NOT_FOUND,
                    Self::InvalidMemoryAllocation => CUresult::CUDA_ERROR_OUT_OF_MEMORY,
                }
            }
        }

        #[cfg(test)]
        const WITH_CODES: &[CudaError] = &[$(CudaError::$variant),*];
    };
}

errors! {
    InvalidValue = CUDA_ERROR_INVALID_VALUE,
    OutOfMemory = CUDA_ERROR_OUT_OF_MEMORY,
    NotInitialized = CUDA_ERROR_NOT_INITIALIZED,
    Deinitialized = CUDA_ERROR_DEINITIALIZED,
    ProfilerDisabled = CUDA_ERROR_PROFILER_DISABLED,
    ProfilerNotInitialized = CUDA_ERROR_PROFILER_NOT_INITIALIZED,
    ProfilerAlreadyStarted = CUDA_ERROR_PROFILER_ALREADY_STARTED,
    ProfilerAlreadyStopped = CUDA_ERROR_PROFILER_ALREADY_STOPPED,
    StubLibrary = CUDA_ERROR_STUB_LIBRARY,
    DeviceUnavailable = CUDA_ERROR_DEVICE_UNAVAILABLE,
    NoDevice = CUDA_ERROR_NO_DEVICE,
    InvalidDevice = CUDA_ERROR_INVALID_DEVICE,
    InvalidImage = CUDA_ERROR_INVALID_IMAGE,
    InvalidContext = CUDA_ERROR_INVALID_CONTEXT,
    ContextAlreadyCurrent = CUDA_ERROR_CONTEXT_ALREADY_CURRENT,
    MapFailed = CUDA_ERROR_MAP_FAILED,
    UnmapFailed = CUDA_ERROR_UNMAP_FAILED,
    ArrayIsMapped = CUDA_ERROR_ARRAY_IS_MAPPED,
    AlreadyMapped = CUDA_ERROR_ALREADY_MAPPED,
    NoBinaryForGpu = CUDA_ERROR_NO_BINARY_FOR_GPU,
    AlreadyAcquired = CUDA_ERROR_ALREADY_ACQUIRED,
    NotMapped = CUDA_ERROR_NOT_MAPPED,
    NotMappedAsArray = CUDA_ERROR_NOT_MAPPED_AS_ARRAY,
    NotMappedAsPointer = CUDA_ERROR_NOT_MAPPED_AS_POINTER,
    EccUncorrectable = CUDA_ERROR_ECC_UNCORRECTABLE,
    UnsupportedLimit = CUDA_ERROR_UNSUPPORTED_LIMIT,
    ContextAlreadyInUse = CUDA_ERROR_CONTEXT_ALREADY_IN_USE,
    PeerAccessUnsupported = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
    InvalidPtx = CUDA_ERROR_INVALID_PTX,
    InvalidGraphicsContext = CUDA_ERROR_INVALID_GRAPHICS_CONTEXT,
    NvlinkUncorrectable = CUDA_ERROR_NVLINK_UNCORRECTABLE,
    JitCompilerNotFound = CUDA_ERROR_JIT_COMPILER_NOT_FOUND,
    UnsupportedPtxVersion = CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
    JitCompilationDisabled = CUDA_ERROR_JIT_COMPILATION_DISABLED,
    InvalidSource = CUDA_ERROR_INVALID_SOURCE,
    FileNotFound = CUDA_ERROR_FILE_NOT_FOUND,
    SharedObjectSymbolNotFound = CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND,
    SharedObjectInitFailed = CUDA_ERROR_SHARED_OBJECT_INIT_FAILED,
    OperatingSystemError = CUDA_ERROR_OPERATING_SYSTEM,
    InvalidHandle = CUDA_ERROR_INVALID_HANDLE,
    IllegalState = CUDA_ERROR_ILLEGAL_STATE,
    NotFound = CUDA_ERROR_NOT_FOUND,
    NotReady = CUDA_ERROR_NOT_READY,
    IllegalAddress = CUDA_ERROR_ILLEGAL_ADDRESS,
    LaunchOutOfResources = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
    LaunchTimeout = CUDA_ERROR_LAUNCH_TIMEOUT,
    LaunchIncompatibleTexturing = CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING,
    PeerAccessAlreadyEnabled = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
    PeerAccessNotEnabled = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED,
    PrimaryContextActive = CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE,
    ContextIsDestroyed = CUDA_ERROR_CONTEXT_IS_DESTROYED,
    AssertError = CUDA_ERROR_ASSERT,
    TooManyPeers = CUDA_ERROR_TOO_MANY_PEERS,
    HostMemoryAlreadyRegistered = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
    HostMemoryNotRegistered = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
    HardwareStackError = CUDA_ERROR_HARDWARE_STACK_ERROR,
    IllegalInstruction = CUDA_ERROR_ILLEGAL_INSTRUCTION,
    MisalignedAddress = CUDA_ERROR_MISALIGNED_ADDRESS,
    InvalidAddressSpace = CUDA_ERROR_INVALID_ADDRESS_SPACE,
    InvalidProgramCounter = CUDA_ERROR_INVALID_PC,
    LaunchFailed = CUDA_ERROR_LAUNCH_FAILED,
    CooperativeLaunchTooLarge = CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
    NotPermitted = CUDA_ERROR_NOT_PERMITTED,
    NotSupported = CUDA_ERROR_NOT_SUPPORTED,
    SystemNotReady = CUDA_ERROR_SYSTEM_NOT_READY,
    SystemDriverMismatch = CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
    CompatNotSupportedOnDevice = CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
    StreamCaptureUnsupported = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
    StreamCaptureInvalidated = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
    StreamCaptureMerge = CUDA_ERROR_STREAM_CAPTURE_MERGE,
    StreamCaptureUnmatched = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
    StreamCaptureUnjoined = CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
    StreamCaptureIsolation = CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
    StreamCaptureImplicit = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
    CapturedEvent = CUDA_ERROR_CAPTURED_EVENT,
    StreamCaptureWrongThread = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
    UnknownError = CUDA_ERROR_UNKNOWN,
}

impl CudaError {
    /// The driver's name of the error, such as `CUDA_ERROR_INVALID_VALUE`. A code that neither the driver nor this
    /// crate knows is `CUDA error` with the number.
    pub fn name(self) -> String {
        let code = self.code();
        // The driver is asked first, because it may know more codes than this crate.
        let of_driver = cuda_driver::load().ok().and_then(|driver| driver.error_name(code));
        of_driver.or(code.name()).map_or_else(|| format!("CUDA error {}", code.0), str::to_owned)
    }

    /// How to correct the error, if that is known.
    fn advice(self) -> Option<&'static str> {
        Some(match self {
            Self::NotInitialized => "call `cust::init` or `cust::quick_init` first",
            Self::NoDevice => "check that `nvidia-smi` lists one, and that CUDA_VISIBLE_DEVICES does not hide it",
            Self::InvalidContext => "create a `Context` on this thread, or call `CurrentContext::set_current`",
            Self::UnsupportedPtxVersion => "install a newer driver, or build the PTX with an older toolchain",
            Self::InvalidPtx => {
                "`Module::from_ptx_with_log` returns the compiler's messages; PTX for a newer GPU also causes this \
                 error"
            }
            Self::NoBinaryForGpu => "build it for this GPU's compute capability, or as PTX for that or an older one",
            Self::SystemDriverMismatch => "reboot, or load the kernel module of the installed driver",
            _ => return None,
        })
    }
}

impl fmt::Display for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDriver => match cuda_driver::load() {
                Err(error) => error.fmt(f),
                Ok(_) => f.write_str("no CUDA driver is loaded"),
            },
            Self::MissingFunction(missing) => missing.fmt(f),
            Self::InvalidMemoryAllocation => f.write_str(
                "the allocation is larger than the address space, or needs an alignment of more than 256 bytes",
            ),
            Self::Other(code) => {
                let of_driver = cuda_driver::load().ok().and_then(|driver| driver.error_string(CUresult(*code)));
                match of_driver {
                    Some(meaning) => write!(f, "{meaning} ({}, code {code})", self.name()),
                    None => self.code().fmt(f),
                }
            }
            error => {
                error.code().fmt(f)?;
                error.advice().map_or(Ok(()), |advice| write!(f, ": {advice}"))
            }
        }
    }
}

impl Error for CudaError {}

impl From<DriverError> for CudaError {
    #[inline]
    fn from(error: DriverError) -> Self {
        match error {
            DriverError::Missing(missing) => Self::MissingFunction(missing),
            // `from_code` returns `None` only for success, which is not an error.
            error => Self::from_code(error.code()).unwrap_or(Self::UnknownError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_one_error() {
        for error in WITH_CODES {
            assert_eq!(CudaError::from_code(error.code()), Some(*error));
            assert!(error.to_string().contains(error.code().name().unwrap()), "{error}");
        }
        assert_eq!(CudaError::from_code(CUresult::CUDA_SUCCESS), None);
    }

    #[test]
    fn an_unknown_code_keeps_its_number() {
        let error = CudaError::from(DriverError::Code(CUresult(4321)));
        assert_eq!((error, error.code()), (CudaError::Other(4321), CUresult(4321)));
        assert!(error.to_string().contains("4321"), "{error}");
        assert!(error.name().contains("4321"), "{}", error.name());
    }

    #[test]
    fn an_error_displays_its_remedy() {
        let message = CudaError::UnsupportedPtxVersion.to_string();
        assert!(message.contains("222") && message.contains("install a newer driver"), "{message}");
    }
}
