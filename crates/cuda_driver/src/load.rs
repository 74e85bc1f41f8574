//! Finds and opens the driver's library.

use std::env;
use std::ffi::{OsStr, c_int};
use std::path::PathBuf;
use std::sync::OnceLock;

use libloading::Library;

use crate::error::{Attempt, LoadError};
use crate::functions::{Driver, address_in};
use crate::result::CUresult;
use crate::version::DriverVersion;

/// The environment variable that selects the driver library, `WARPFOLD_LIBCUDA`.
///
/// Its value is the path of the only library to try, or `none` to behave as on a machine without a driver. If it is
/// unset or empty, [`load`](crate::load()) tries the default libraries.
pub const OVERRIDE_VARIABLE: &str = "WARPFOLD_LIBCUDA";

/// The driver's library, as an error names it.
#[cfg(not(windows))]
pub(crate) const MAIN_LIBRARY: &str = "libcuda.so.1";
/// The driver's library, as an error names it.
#[cfg(windows)]
pub(crate) const MAIN_LIBRARY: &str = "nvcuda.dll";

/// The libraries to try, in order. WSL has the driver of the Windows host at the second path. Some containers have only
/// the third name.
#[cfg(not(windows))]
const DEFAULT_LIBRARIES: &[&str] = &[MAIN_LIBRARY, "/usr/lib/wsl/lib/libcuda.so.1", "libcuda.so"];

/// The library to try, from the system folder of Windows only.
#[cfg(windows)]
const DEFAULT_LIBRARIES: &[&str] = &[MAIN_LIBRARY];

/// Loads the NVIDIA driver.
///
/// The first call tries `libcuda.so.1`, then `/usr/lib/wsl/lib/libcuda.so.1` and `libcuda.so`; on Windows it tries
/// `nvcuda.dll`. If [`OVERRIDE_VARIABLE`] is set, it tries only the library that the variable names. Every later call,
/// from any thread, returns the result of the first one, even if a driver has been installed since.
///
/// This function does not initialize the driver: call `cuInit` or `cust::init`. The driver is never unloaded.
///
/// # Errors
///
/// - [`LoadError::NoDriver`] if no library could be opened.
/// - [`LoadError::NotADriver`], [`LoadError::StubLibrary`] or [`LoadError::NoVersion`] if the first library that could
///   be opened is not a usable driver.
#[inline]
pub fn load() -> Result<&'static Driver, LoadError> {
    static DRIVER: OnceLock<Result<Driver, LoadError>> = OnceLock::new();
    DRIVER.get_or_init(find).as_ref().map_err(LoadError::clone)
}

fn find() -> Result<Driver, LoadError> {
    let open_defaults = || open_first(DEFAULT_LIBRARIES.iter().map(|name| (OsStr::new(name), open_default as Open)));
    let (library, name) = match env::var_os(OVERRIDE_VARIABLE) {
        Some(choice) if choice == "none" => Err(vec![Attempt {
            library: format!("{OVERRIDE_VARIABLE}=none"),
            reason: "disables the driver, until the variable is unset".into(),
        }]),
        Some(choice) if !choice.is_empty() => open_first([(choice.as_os_str(), open as Open)]).map_err(|mut tried| {
            for attempt in &mut tried {
                attempt.reason += &format!("; no other library is tried while {OVERRIDE_VARIABLE} is set");
            }
            tried
        }),
        _ => open_defaults(),
    }
    .map_err(|tried| LoadError::NoDriver { tried })?;

    let function = |symbol: &'static str| {
        address_in(&library, symbol).ok_or_else(|| LoadError::NotADriver { path: name.clone(), missing: symbol })
    };
    let init = function("cuInit")?;
    let driver_get_version = function("cuDriverGetVersion")?;
    let path = path_of(init).unwrap_or_else(|| name.clone());
    // SAFETY: the library has `cuInit`, so it is a driver, and this is the address of its
    // `cuDriverGetVersion`.
    let version = unsafe { version_from(driver_get_version) }.map_err(|code| match code {
        CUresult::CUDA_ERROR_STUB_LIBRARY => LoadError::StubLibrary { path: path.clone() },
        CUresult(code) => LoadError::NoVersion { path: path.clone(), code },
    })?;

    // SAFETY: the library has a driver's functions, and `load` never drops the value.
    Ok(unsafe { Driver::new(library, version, path) })
}

type Open = fn(&OsStr) -> Result<Library, libloading::Error>;

/// Opens the library that the user chose.
fn open(name: &OsStr) -> Result<Library, libloading::Error> {
    // SAFETY: opening a library runs its initializers. The user has chosen this library, as with LD_PRELOAD.
    unsafe { Library::new(name) }
}

/// Opens one of the default libraries.
fn open_default(name: &OsStr) -> Result<Library, libloading::Error> {
    #[cfg(windows)]
    {
        use libloading::os::windows;
        // SAFETY: opening a library runs its initializers. In the system folder of Windows, this name is the driver's.
        unsafe { windows::Library::load_with_flags(name, windows::LOAD_LIBRARY_SEARCH_SYSTEM32) }.map(Library::from)
    }
    #[cfg(not(windows))]
    open(name)
}

/// Opens the first of these libraries that can be opened.
fn open_first<'a>(names: impl IntoIterator<Item = (&'a OsStr, Open)>) -> Result<(Library, PathBuf), Vec<Attempt>> {
    let mut tried = Vec::new();
    for (name, open) in names {
        match open(name) {
            Ok(library) => return Ok((library, name.into())),
            Err(error) => tried.push(failed_attempt(name, &error)),
        }
    }
    Err(tried)
}

fn failed_attempt(name: &OsStr, error: &libloading::Error) -> Attempt {
    let library = name.to_string_lossy().into_owned();
    // The system's message is in the error's source, and often begins with the library's name.
    let reason = std::error::Error::source(error).unwrap_or(error).to_string();
    let reason = match reason.strip_prefix(&format!("{library}: ")) {
        Some(rest) => rest.to_owned(),
        None => reason,
    };
    Attempt { library, reason }
}

/// Calls `cuDriverGetVersion`. Returns the version, or the function's code if that is not success.
///
/// # Safety
///
/// `address` is the address of a driver's `cuDriverGetVersion`.
unsafe fn version_from(address: *mut ()) -> Result<DriverVersion, CUresult> {
    type DriverGetVersion = unsafe extern "system" fn(*mut c_int) -> CUresult;
    // SAFETY: the caller promises that this is the function's type.
    let driver_get_version: DriverGetVersion = unsafe { std::mem::transmute(address) };
    let mut encoded: c_int = 0;
    // SAFETY: the argument is valid for a write of one `int`. The function needs no `cuInit`.
    match unsafe { driver_get_version(&mut encoded) } {
        CUresult::CUDA_SUCCESS => Ok(DriverVersion::decode(encoded.unsigned_abs())),
        code => Err(code),
    }
}

/// The file that the code at `address` was loaded from.
#[cfg(unix)]
fn path_of(address: *mut ()) -> Option<PathBuf> {
    use std::ffi::CStr;
    use std::mem::MaybeUninit;
    use std::os::unix::ffi::OsStrExt;

    let mut info = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: `dladdr` takes any address, and `info` is valid for a write.
    let found = unsafe { libc::dladdr(address.cast(), info.as_mut_ptr()) } != 0;
    if !found {
        return None;
    }
    // SAFETY: `dladdr` fills all of `info` when it succeeds.
    let file = unsafe { info.assume_init() }.dli_fname;
    if file.is_null() {
        return None;
    }
    // SAFETY: a nul-terminated string that the dynamic linker keeps while the library is open, and it is open.
    let file = unsafe { CStr::from_ptr(file) };
    Some(PathBuf::from(OsStr::from_bytes(file.to_bytes())))
}

#[cfg(not(unix))]
fn path_of(_: *mut ()) -> Option<PathBuf> {
    None
}
