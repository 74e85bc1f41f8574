//! Finds the driver library and connects the trampolines to it.

use std::env;
use std::ffi::{CStr, OsStr, c_int};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::Library;

use crate::error::{Attempt, LoadError};
use crate::stub::CUDA_ERROR_STUB_LIBRARY;
use crate::trampoline::{self, Address};
use crate::version::DriverVersion;

/// The environment variable that chooses the driver library, `WARPFOLD_LIBCUDA`.
///
/// Its value is the path of the only library to try, or `none` for acting as though the machine had
/// no driver. Unset and empty mean the usual search.
pub const OVERRIDE_VARIABLE: &str = "WARPFOLD_LIBCUDA";

/// Where a driver may be, the likeliest first. The second is where WSL keeps the driver of the
/// Windows host, and the third the name that some containers give it.
const USUAL_LIBRARIES: [&str; 3] = ["libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", "libcuda.so"];

/// The driver that this process uses.
#[derive(Debug)]
pub struct Driver {
    version: DriverVersion,
    path: PathBuf,
    /// Keeps the addresses in the table valid.
    library: Library,
}

impl Driver {
    /// The newest version of CUDA that this driver implements.
    ///
    /// A kernel whose PTX is of a newer version does not load on it.
    pub fn version(&self) -> DriverVersion {
        self.version
    }

    /// The library that was loaded, as the dynamic linker found it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The address of one of the driver's functions, for those that are younger than `cust`. It is valid for as long as
    /// the process runs.
    pub fn function(&self, symbol: &str) -> Option<*mut ()> {
        address_in(&self.library, symbol)
    }
}

/// Finds the NVIDIA driver and connects the functions that `cust` calls to it.
///
/// The first call looks for `libcuda.so.1`, then for `/usr/lib/wsl/lib/libcuda.so.1` and
/// `libcuda.so`, or only for what [`OVERRIDE_VARIABLE`] says. Every later call, from any thread,
/// returns what the first one did: a driver that is installed while the process runs is not seen.
///
/// A function that this driver does not have returns `CUDA_ERROR_NOT_FOUND` (500) from then on. The
/// driver is not initialised: `cuInit`, or `cust::init`, is still to be called.
///
/// # Errors
///
/// - [`LoadError::NoDriver`] if no library could be opened.
/// - [`LoadError::NotADriver`], [`LoadError::StubLibrary`] or [`LoadError::NoVersion`] if the first library that could
///   be opened is of no use.
///
/// The functions keep returning `CUDA_ERROR_STUB_LIBRARY` (34) after an error.
pub fn load() -> Result<&'static Driver, LoadError> {
    static DRIVER: OnceLock<Result<Driver, LoadError>> = OnceLock::new();
    DRIVER.get_or_init(find_and_connect).as_ref().map_err(LoadError::clone)
}

fn find_and_connect() -> Result<Driver, LoadError> {
    let (library, name) = match env::var_os(OVERRIDE_VARIABLE) {
        Some(choice) if choice == "none" => Err(vec![Attempt {
            library: format!("{OVERRIDE_VARIABLE}=none"),
            reason: "asks to do without a driver".into(),
        }]),
        Some(choice) if !choice.is_empty() => open_first(&[&choice]),
        _ => open_first(&USUAL_LIBRARIES.map(OsStr::new)),
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
        CUDA_ERROR_STUB_LIBRARY => LoadError::StubLibrary { path: path.clone() },
        code => LoadError::NoVersion { path: path.clone(), code },
    })?;

    // SAFETY: each address is what the driver exports by that name, and `load` never drops the
    // `Driver` that holds the library.
    unsafe { trampoline::connect(|symbol| address_in(&library, symbol)) };
    Ok(Driver { version, path, library })
}

/// Opens the first of these libraries that there is.
fn open_first(names: &[&OsStr]) -> Result<(Library, PathBuf), Vec<Attempt>> {
    let mut tried = Vec::new();
    for name in names {
        // SAFETY: opening a library runs its initialisers. These names are the driver's own, or
        // what the person who started the process chose, as with LD_PRELOAD.
        match unsafe { Library::new(*name) } {
            Ok(library) => return Ok((library, name.into())),
            Err(error) => tried.push(failed_attempt(name, &error)),
        }
    }
    Err(tried)
}

fn failed_attempt(name: &OsStr, error: &libloading::Error) -> Attempt {
    let library = name.to_string_lossy().into_owned();
    // What `dlopen` has to say is in the source, and often begins with the name.
    let reason = std::error::Error::source(error).unwrap_or(error).to_string();
    let reason = match reason.strip_prefix(&format!("{library}: ")) {
        Some(rest) => rest.to_owned(),
        None => reason,
    };
    Attempt { library, reason }
}

/// The address of a function of this library or of one that it depends on.
fn address_in(library: &Library, symbol: &str) -> Option<Address> {
    // SAFETY: the type is that of an address; nothing is read or called through it here.
    let address: Address = *unsafe { library.get(symbol) }.ok()?;
    // A jump from a trampoline to itself would never end.
    (!address.is_null() && !trampoline::contains(address)).then_some(address)
}

/// The `CUresult` is the error.
///
/// # Safety
///
/// `address` is that of a driver's `cuDriverGetVersion`.
unsafe fn version_from(address: Address) -> Result<DriverVersion, i32> {
    type DriverGetVersion = unsafe extern "C" fn(*mut c_int) -> i32;
    // SAFETY: the caller promises that this is the function's type.
    let driver_get_version: DriverGetVersion = unsafe { std::mem::transmute(address) };
    let mut encoded: c_int = 0;
    // SAFETY: the argument is valid for a write of one `int`. The function needs no `cuInit`.
    let code = unsafe { driver_get_version(&mut encoded) };
    match code {
        0 => Ok(DriverVersion::decode(encoded.unsigned_abs())),
        code => Err(code),
    }
}

/// The file that the code at `address` was loaded from.
fn path_of(address: Address) -> Option<PathBuf> {
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
