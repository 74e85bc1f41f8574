//! A library that looks like a small driver of CUDA 12.4, for the test `fake_driver`.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

static INITIALISED_WITH: AtomicU32 = AtomicU32::new(u32::MAX);

#[unsafe(no_mangle)]
extern "C" fn cuInit(flags: c_uint) -> c_int {
    INITIALISED_WITH.store(flags, Ordering::SeqCst);
    0
}

#[unsafe(no_mangle)]
extern "C" fn cuDriverGetVersion(version: &mut c_int) -> c_int {
    *version = 12040;
    0
}

/// Three devices, once `cuInit` was called with no flags; until then `CUDA_ERROR_NOT_INITIALIZED`.
#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetCount(count: &mut c_int) -> c_int {
    if INITIALISED_WITH.load(Ordering::SeqCst) != 0 {
        return 3;
    }
    *count = 3;
    0
}

/// Writes each argument to `extra`, which has room for eleven.
#[unsafe(no_mangle)]
#[rustfmt::skip]
extern "C" fn cuLaunchKernel(
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

/// Refuses every bias but 0.25: floating-point arguments travel in registers of their own.
#[unsafe(no_mangle)]
extern "C" fn cuTexRefSetMipmapLevelBias(_texture: *mut c_void, bias: f32) -> c_int {
    if bias == 0.25 { 0 } else { 1 }
}
