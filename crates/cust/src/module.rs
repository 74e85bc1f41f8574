//! Modules: PTX or binaries that are loaded into a context.

use std::error::Error;
use std::ffi::{CStr, CString, c_void};
use std::fmt;
use std::fs;
use std::path::Path;
use std::ptr;

use cuda_driver::{CUjit_option, CUmodule};

use crate::context::{Context, CurrentContext};
use crate::driver;
use crate::error::{CudaError, CudaResult, DropResult};

/// The optimization level of the driver's compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OptLevel {
    /// No optimization.
    O0 = 0,
    /// A few optimizations.
    O1 = 1,
    /// More than [`OptLevel::O1`].
    O2 = 2,
    /// More than [`OptLevel::O2`].
    O3 = 3,
    /// All optimizations, the default.
    O4 = 4,
}

/// The compute capability to compile for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum JitTarget {
    Compute50 = 50,
    Compute52 = 52,
    Compute53 = 53,
    Compute60 = 60,
    Compute61 = 61,
    Compute62 = 62,
    Compute70 = 70,
    Compute72 = 72,
    Compute75 = 75,
    Compute80 = 80,
    Compute86 = 86,
    Compute87 = 87,
    Compute89 = 89,
    Compute90 = 90,
    Compute100 = 100,
    Compute120 = 120,
}

/// What to do if no binary matches the GPU exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JitFallback {
    /// Compile the PTX.
    PreferPtx = 0,
    /// Load a compatible binary.
    PreferCompatibleBinary = 1,
}

/// An option for the driver's compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModuleJitOption {
    /// The maximum number of registers per thread.
    MaxRegisters(u32),
    /// The optimization level.
    OptLevel(OptLevel),
    /// Compile for the device of the current context, which is the default.
    DetermineTargetFromContext,
    /// Compile for this compute capability.
    Target(JitTarget),
    /// What to do if no binary matches the GPU exactly.
    Fallback(JitFallback),
    /// Whether to generate debug information.
    GenerateDebugInfo(bool),
    /// Whether to generate line numbers, for a profiler.
    GenerateLineInfo(bool),
}

impl ModuleJitOption {
    /// The driver's number of the option, and its value as the driver takes it, in place of a pointer.
    fn to_raw(self) -> (CUjit_option, *mut c_void) {
        let (option, value) = match self {
            Self::MaxRegisters(count) => (CUjit_option::CU_JIT_MAX_REGISTERS, count as usize),
            Self::OptLevel(level) => (CUjit_option::CU_JIT_OPTIMIZATION_LEVEL, level as usize),
            Self::DetermineTargetFromContext => (CUjit_option::CU_JIT_TARGET_FROM_CUCONTEXT, 0),
            Self::Target(target) => (CUjit_option::CU_JIT_TARGET, target as usize),
            Self::Fallback(fallback) => (CUjit_option::CU_JIT_FALLBACK_STRATEGY, fallback as usize),
            Self::GenerateDebugInfo(is_on) => (CUjit_option::CU_JIT_GENERATE_DEBUG_INFO, usize::from(is_on)),
            Self::GenerateLineInfo(is_on) => (CUjit_option::CU_JIT_GENERATE_LINE_INFO, usize::from(is_on)),
        };
        (option, ptr::without_provenance_mut(value))
    }
}

/// Code that is loaded into a context.
#[derive(Debug)]
pub struct Module {
    /// Null after the module is unloaded.
    raw: CUmodule,
    context: Context,
}

// SAFETY: the driver takes a module's handle from any thread.
unsafe impl Send for Module {}
// SAFETY: as above. No function changes a module.
unsafe impl Sync for Module {}

impl Module {
    /// Compiles PTX and loads it into the current context.
    ///
    /// # Errors
    /// [`CudaError::NoDriver`] without a driver, whatever the text is; [`CudaError::InvalidContext`] if no context is
    /// current; [`CudaError::InvalidPtx`] if the compiler rejects the PTX, for example because it is for a newer GPU,
    /// or if the text is not PTX; [`CudaError::UnsupportedPtxVersion`] if the PTX version is newer than the driver
    /// supports; another error of the driver.
    pub fn from_ptx<T: AsRef<str>>(ptx: T, options: &[ModuleJitOption]) -> CudaResult<Self> {
        driver()?;
        // The driver would ignore the text after a nul byte.
        let ptx = CString::new(ptx.as_ref()).map_err(|_| CudaError::InvalidPtx)?;
        Self::from_ptx_cstr(&ptx, options)
    }

    /// Does the same as [`Module::from_ptx`] with a nul-terminated string.
    ///
    /// # Errors
    /// As for [`Module::from_ptx`].
    pub fn from_ptx_cstr(ptx: &CStr, options: &[ModuleJitOption]) -> CudaResult<Self> {
        driver()?;
        check_ptx(ptx)?;
        // SAFETY: the string is nul-terminated, and not a binary.
        unsafe { Self::load(ptx.as_ptr().cast(), options, None) }
    }

    /// Does the same as [`Module::from_ptx`]. The error has the compiler's messages.
    ///
    /// # Errors
    /// As for [`Module::from_ptx`].
    pub fn from_ptx_with_log<T: AsRef<str>>(ptx: T, options: &[ModuleJitOption]) -> Result<Self, PtxError> {
        let mut log = vec![0_u8; 8 << 10];
        let mut load = || {
            driver()?;
            let ptx = CString::new(ptx.as_ref()).map_err(|_| CudaError::InvalidPtx)?;
            check_ptx(&ptx)?;
            // SAFETY: the string is nul-terminated, and not a binary.
            unsafe { Self::load(ptx.as_ptr().cast(), options, Some(&mut log)) }
        };
        load().map_err(|error| {
            let length = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
            PtxError { error, log: String::from_utf8_lossy(&log[..length]).trim_end().to_owned() }
        })
    }

    /// Reads PTX from a file, compiles it and loads it into the current context.
    ///
    /// # Errors
    /// [`CudaError::FileNotFound`] if the file cannot be read; otherwise as for [`Module::from_ptx`].
    pub fn from_file<P: AsRef<Path>>(path: P) -> CudaResult<Self> {
        driver()?;
        let bytes = fs::read(path).map_err(|_| CudaError::FileNotFound)?;
        Self::from_ptx(String::from_utf8(bytes).map_err(|_| CudaError::InvalidPtx)?, &[])
    }

    /// Loads a cubin into the current context.
    ///
    /// # Safety
    /// `bytes` is a complete cubin from a compiler. The driver reads the size from the header.
    ///
    /// # Errors
    /// The cubin is for another GPU, or an error of the driver.
    pub unsafe fn from_cubin_unchecked<T: AsRef<[u8]>>(bytes: T, options: &[ModuleJitOption]) -> CudaResult<Self> {
        // SAFETY: as promised by the caller.
        unsafe { Self::load(bytes.as_ref().as_ptr().cast(), options, None) }
    }

    /// Loads a fatbin into the current context.
    ///
    /// # Safety
    /// `bytes` is a complete fatbin from a compiler. The driver reads the size from the header.
    ///
    /// # Errors
    /// The fatbin has no code for this GPU, or an error of the driver.
    pub unsafe fn from_fatbin_unchecked<T: AsRef<[u8]>>(bytes: T, options: &[ModuleJitOption]) -> CudaResult<Self> {
        // SAFETY: as promised by the caller.
        unsafe { Self::load(bytes.as_ref().as_ptr().cast(), options, None) }
    }

    /// Loads an image. The compiler's messages are written to `log`.
    ///
    /// # Safety
    /// `image` points to nul-terminated PTX or to a complete binary.
    unsafe fn load(image: *const c_void, options: &[ModuleJitOption], log: Option<&mut [u8]>) -> CudaResult<Self> {
        let mut module = Self { raw: ptr::null_mut(), context: CurrentContext::get_current()? };
        let mut raw: Vec<_> = options.iter().map(|option| option.to_raw()).collect();
        if let Some(log) = log {
            let size = ptr::without_provenance_mut(log.len());
            raw.push((CUjit_option::CU_JIT_ERROR_LOG_BUFFER, log.as_mut_ptr().cast()));
            raw.push((CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, size));
        }
        let (mut options, mut values): (Vec<_>, Vec<_>) = raw.into_iter().unzip();
        let entered = module.context.enter()?;
        // SAFETY: `image` is as promised by the caller. Each option has a value, and the log's size is the last value.
        // Writes a handle, which is unloaded with the value.
        unsafe {
            entered.driver().cuModuleLoadDataEx(
                &mut module.raw,
                image,
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )?;
        }
        drop(entered);
        Ok(module)
    }

    #[inline]
    pub(crate) fn as_inner(&self) -> CUmodule {
        self.raw
    }

    #[inline]
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Unloads the module.
    ///
    /// # Errors
    /// An error of the driver, together with the module.
    pub fn drop(mut module: Self) -> DropResult<Self> {
        module.unload().map_err(|error| (error, module))
    }

    fn unload(&mut self) -> CudaResult<()> {
        if self.raw.is_null() {
            return Ok(());
        }
        let (entered, _relaxed) = self.context.enter_to_destroy()?;
        // SAFETY: the handle is alive, and is not used again. The driver waits for running kernels.
        unsafe { entered.driver().cuModuleUnload(self.raw)? };
        self.raw = ptr::null_mut();
        Ok(())
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        let _ = self.unload();
    }
}

/// Checks that a string begins like PTX, with a directive or a comment. The driver could take another string for a
/// binary, and read beyond its end.
fn check_ptx(ptx: &CStr) -> CudaResult<()> {
    let first = ptx.to_bytes().trim_ascii_start().first();
    if matches!(first, Some(b'.' | b'/')) { Ok(()) } else { Err(CudaError::InvalidPtx) }
}

/// The error of loading PTX, with the compiler's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PtxError {
    /// The error.
    pub error: CudaError,
    /// The compiler's messages; empty if there are none.
    pub log: String,
}

impl fmt::Display for PtxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.log.as_str() {
            "" => self.error.fmt(f),
            log => write!(f, "{}\n{log}", self.error),
        }
    }
}

impl Error for PtxError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_the_drivers_numbers_and_values() {
        let raw = |option: ModuleJitOption| {
            let (option, value) = option.to_raw();
            (option.0, value.addr())
        };
        assert_eq!(raw(ModuleJitOption::MaxRegisters(64)), (0, 64));
        assert_eq!(raw(ModuleJitOption::OptLevel(OptLevel::O3)), (7, 3));
        assert_eq!(raw(ModuleJitOption::DetermineTargetFromContext), (8, 0));
        assert_eq!(raw(ModuleJitOption::Target(JitTarget::Compute90)), (9, 90));
        assert_eq!(raw(ModuleJitOption::Fallback(JitFallback::PreferCompatibleBinary)), (10, 1));
        assert_eq!(raw(ModuleJitOption::GenerateDebugInfo(true)), (11, 1));
        assert_eq!(raw(ModuleJitOption::GenerateLineInfo(false)), (13, 0));
    }

    #[test]
    fn a_binary_is_not_accepted_as_ptx() {
        for ptx in [c"// a comment\n.version 7.0", c"\n  .version 7.0"] {
            assert_eq!(check_ptx(ptx), Ok(()));
        }
        for binary in [c"\x7fELF\x02\x01", c"BC\xc0\xde", c"", c"P\xed\x55\xba"] {
            assert_eq!(check_ptx(binary), Err(CudaError::InvalidPtx));
        }
    }

    #[test]
    fn an_error_ends_with_the_compilers_messages() {
        let mut error = PtxError { error: CudaError::InvalidPtx, log: String::new() };
        assert_eq!(error.to_string(), CudaError::InvalidPtx.to_string());
        error.log = "line 3: unknown instruction".to_owned();
        assert!(error.to_string().ends_with("\nline 3: unknown instruction"), "{error}");
    }
}
