//! What the driver functions do where there is no driver behind them.
//!
//! Each stub stands in for functions with many different parameter lists. That is sound because in
//! the C calling convention of both supported machines the caller removes the arguments, so that a
//! function may be called with more of them than it knows.

use std::ffi::{CStr, c_char};

const CUDA_SUCCESS: i32 = 0;
const CUDA_ERROR_INVALID_VALUE: i32 = 1;
pub(crate) const CUDA_ERROR_STUB_LIBRARY: i32 = 34;
pub(crate) const CUDA_ERROR_NOT_FOUND: i32 = 500;

const NO_DRIVER: &CStr = c"no CUDA driver is loaded";

/// Any function, while no driver is loaded.
pub(crate) extern "C" fn stub_library() -> i32 {
    CUDA_ERROR_STUB_LIBRARY
}

/// A function that the loaded driver does not have.
pub(crate) extern "C" fn not_found() -> i32 {
    CUDA_ERROR_NOT_FOUND
}

/// `cuGetErrorString`, while no driver is loaded.
///
/// It succeeds because `cust` calls it to print an error, and panics in `to_string` if it fails.
///
/// # Safety
///
/// `text` is null or valid for a write.
pub(crate) unsafe extern "C" fn get_error_string(_code: i32, text: *mut *const c_char) -> i32 {
    if text.is_null() {
        return CUDA_ERROR_INVALID_VALUE;
    }
    // SAFETY: `text` is not null, so the caller promises that it is valid for a write.
    unsafe { text.write(NO_DRIVER.as_ptr()) };
    CUDA_SUCCESS
}
