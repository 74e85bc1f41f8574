//! A fake driver of CUDA 12.4 with a few functions, for the test `fake_driver`.

use std::ffi::{c_char, c_int, c_uint};
use std::sync::atomic::{AtomicU32, Ordering};

static INITIALIZED_WITH: AtomicU32 = AtomicU32::new(u32::MAX);

#[unsafe(no_mangle)]
extern "system" fn cuInit(flags: c_uint) -> c_int {
    INITIALIZED_WITH.store(flags, Ordering::SeqCst);
    0
}

#[unsafe(no_mangle)]
extern "system" fn cuDriverGetVersion(version: &mut c_int) -> c_int {
    *version = 12040;
    0
}

/// Reports three devices after `cuInit(0)`, and `CUDA_ERROR_NOT_INITIALIZED` before it.
#[unsafe(no_mangle)]
extern "system" fn cuDeviceGetCount(count: &mut c_int) -> c_int {
    if INITIALIZED_WITH.load(Ordering::SeqCst) != 0 {
        return 3;
    }
    *count = 3;
    0
}

/// Returns a code that no real driver has.
#[unsafe(no_mangle)]
extern "system" fn cuCtxSynchronize() -> c_uint {
    4321
}

/// Only the code 4321 has a name.
#[unsafe(no_mangle)]
extern "system" fn cuGetErrorName(code: c_uint, name: &mut *const c_char) -> c_int {
    if code != 4321 {
        return 1;
    }
    *name = c"CUDA_ERROR_OF_THE_FUTURE".as_ptr();
    0
}

/// Writes all eleven arguments to `extra`.
#[unsafe(no_mangle)]
#[rustfmt::skip]
extern "system" fn cuLaunchKernel(
    function: usize,
    grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
    block_x: c_uint, block_y: c_uint, block_z: c_uint,
    shared_bytes: c_uint,
    stream: usize,
    parameters: usize,
    extra: *mut [usize; 11],
) -> c_int {
    let arguments = [
        function,
        grid_x as usize, grid_y as usize, grid_z as usize,
        block_x as usize, block_y as usize, block_z as usize,
        shared_bytes as usize,
        stream,
        parameters,
        extra as usize,
    ];
    // SAFETY: the test passes an array of its own.
    unsafe { *extra = arguments };
    0
}
