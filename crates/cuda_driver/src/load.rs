//! Finds the driver's library and its functions.

use std::env;
use std::ffi::{CStr, OsStr, c_char, c_int};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::Library;

use crate::error::{Attempt, LoadError};
use crate::functions::Functions;
use crate::result::CUresult;
use crate::version::DriverVersion;

/// The environment variable that chooses the driver library, `WARPFOLD_LIBCUDA`.
///
/// Its value is the path of the only library to try, or `none` for acting as though the machine had
/// no driver. Unset and empty mean the usual search.
pub const OVERRIDE_VARIABLE: &str = "WARPFOLD_LIBCUDA";

/// Where a driver may be, the likeliest first. The second is where WSL keeps the driver of the
/// Windows host, and the third the name that some containers give it.
#[cfg(not(windows))]
const USUAL_LIBRARIES: &[&str] = &["libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", "libcuda.so"];

/// Where a driver may be: it is looked for among Windows' own libraries only.
#[cfg(windows)]
const USUAL_LIBRARIES: &[&str] = &["nvcuda.dll"];

/// The driver that this process uses: a method for each of its functions.
pub struct Driver {
    functions: Functions,
    version: DriverVersion,
    path: PathBuf,
    /// Keeps the functions' addresses valid.
    library: Library,
}

impl Driver {
    /// The newest version of CUDA that this driver implements.
    ///
    /// A kernel whose PTX is of a newer version does not load on it.
    pub fn version(&self) -> DriverVersion {
        self.version
    }

    /// The library that was loaded: on Linux as the dynamic linker found it, elsewhere as it was asked for.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The address of one of the driver's functions, for those that have no method here. It is valid for as long as
    /// the process runs.
    pub fn function(&self, symbol: &str) -> Option<*mut ()> {
        address_in(&self.library, symbol)
    }

    /// The driver's name for a code, `CUDA_ERROR_...`: it may know a code that [`CUresult`] has no constant for.
    pub fn error_name(&self, code: CUresult) -> Option<&'static str> {
        // SAFETY: the function writes a pointer to a string that lives as long as the driver, or leaves it null.
        self.text(|text| unsafe { self.cuGetErrorName(code, text) }.is_ok())
    }

    /// What a code means, in the driver's words.
    pub fn error_string(&self, code: CUresult) -> Option<&'static str> {
        // SAFETY: as above.
        self.text(|text| unsafe { self.cuGetErrorString(code, text) }.is_ok())
    }

    /// The string that `write` points to, if it succeeds.
    fn text(&self, write: impl FnOnce(*mut *const c_char) -> bool) -> Option<&'static str> {
        let mut text = std::ptr::null();
        if !write(&mut text) || text.is_null() {
            return None;
        }
        // SAFETY: a string with a zero behind it in the driver's own memory, and the driver is never unloaded.
        unsafe { CStr::from_ptr(text) }.to_str().ok()
    }

    #[inline]
    pub(crate) fn functions(&self) -> &Functions {
        &self.functions
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("version", &self.version).field("path", &self.path).finish_non_exhaustive()
    }
}

/// Finds the NVIDIA driver.
///
/// The first call looks for `libcuda.so.1`, then for `/usr/lib/wsl/lib/libcuda.so.1` and `libcuda.so`, on Windows for
/// `nvcuda.dll`, or only for what [`OVERRIDE_VARIABLE`] says. Every later call, from any thread, returns what the first
/// one did: a driver that is installed while the process runs is not seen.
///
/// The driver is not initialized: `cuInit`, or `cust::init`, is still to be called. It is never unloaded.
///
/// # Errors
///
/// - [`LoadError::NoDriver`] if no library could be opened.
/// - [`LoadError::NotADriver`], [`LoadError::StubLibrary`] or [`LoadError::NoVersion`] if the first library that could
///   be opened is of no use.
#[inline]
pub fn load() -> Result<&'static Driver, LoadError> {
    static DRIVER: OnceLock<Result<Driver, LoadError>> = OnceLock::new();
    DRIVER.get_or_init(find).as_ref().map_err(LoadError::clone)
}

fn find() -> Result<Driver, LoadError> {
    let usual = || open_first(USUAL_LIBRARIES.iter().map(|name| (OsStr::new(name), open_usual as Open)));
    let (library, name) = match env::var_os(OVERRIDE_VARIABLE) {
        Some(choice) if choice == "none" => Err(vec![Attempt {
            library: format!("{OVERRIDE_VARIABLE}=none"),
            reason: "asks to do without a driver".into(),
        }]),
        Some(choice) if !choice.is_empty() => open_first([(choice.as_os_str(), open as Open)]),
        _ => usual(),
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

    // SAFETY: each address is what the driver exports by that name, and `load` never drops the `Driver` that holds the
    // library.
    let functions = unsafe { Functions::find(|symbol| address_in(&library, symbol)) };
    Ok(Driver { functions, version, path, library })
}

type Open = fn(&OsStr) -> Result<Library, libloading::Error>;

/// Opens the library that the person who started the process chose.
fn open(name: &OsStr) -> Result<Library, libloading::Error> {
    // SAFETY: opening a library runs its initializers. The user chose this library by hand, as with LD_PRELOAD.
    unsafe { Library::new(name) }
}

/// Opens a driver under one of its usual names.
fn open_usual(name: &OsStr) -> Result<Library, libloading::Error> {
    #[cfg(windows)]
    {
        use libloading::os::windows;
        // SAFETY: opening a library runs its initializers. Among Windows' own libraries that name is the driver's.
        unsafe { windows::Library::load_with_flags(name, windows::LOAD_LIBRARY_SEARCH_SYSTEM32) }.map(Library::from)
    }
    #[cfg(not(windows))]
    open(name)
}

/// Opens the first of these libraries that exists.
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
    // The system's own message is in the source, and often begins with the name.
    let reason = std::error::Error::source(error).unwrap_or(error).to_string();
    let reason = match reason.strip_prefix(&format!("{library}: ")) {
        Some(rest) => rest.to_owned(),
        None => reason,
    };
    Attempt { library, reason }
}

/// The address of a function of this library or of one that it depends on.
fn address_in(library: &Library, symbol: &str) -> Option<*mut ()> {
    // SAFETY: the type is that of an address; nothing is read or called through it here.
    let address: *mut () = *unsafe { library.get(symbol) }.ok()?;
    (!address.is_null()).then_some(address)
}

/// The version, or the code that the function returned.
///
/// # Safety
///
/// `address` is that of a driver's `cuDriverGetVersion`.
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
    // SAFETY: a string that the dynamic linker keeps while the library is open, and it is open.
    let file = unsafe { CStr::from_ptr(file) };
    Some(PathBuf::from(OsStr::from_bytes(file.to_bytes())))
}

#[cfg(not(unix))]
fn path_of(_: *mut ()) -> Option<PathBuf> {
    None
}
