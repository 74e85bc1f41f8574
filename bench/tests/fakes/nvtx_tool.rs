//! A stand-in for a profiler. For NVTX, a profiler is a library that replaces the functions of NVTX in the program.
//! This one writes every range to standard error.
//!
//! The types are those of NVTX 3's `nvtxTypes.h`.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;

const CALLBACKS: c_int = 1;
const MODULE_CORE: c_int = 1;
const RANGE_PUSH: usize = 9;
const RANGE_POP: usize = 11;

/// For each function, the address of the pointer through which the program calls it.
type FunctionTable = *mut *mut *const c_void;

/// The table with this number.
#[repr(C)]
pub struct Callbacks {
    size: usize,
    function_table: extern "C" fn(module: c_int, table: *mut FunctionTable, len: *mut c_uint) -> c_int,
}

/// NVTX calls this function at the program's first range, with a function that returns the tables.
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjectionNvtx2(export_table: extern "C" fn(c_int) -> *const Callbacks) -> c_int {
    let (mut table, mut len): (FunctionTable, c_uint) = (ptr::null_mut(), 0);
    // SAFETY: NVTX returns the table with that number, and its functions are replaced by others of the same types.
    unsafe {
        ((*export_table(CALLBACKS)).function_table)(MODULE_CORE, &mut table, &mut len);
        assert!(len as usize > RANGE_POP, "the table has {len} functions");
        **table.add(RANGE_PUSH) = push as *const c_void;
        **table.add(RANGE_POP) = pop as *const c_void;
    }
    1
}

extern "C" fn push(name: *const c_char) -> c_int {
    // SAFETY: NVTX passes a C string.
    eprintln!("push {}", unsafe { CStr::from_ptr(name) }.to_string_lossy());
    0
}

extern "C" fn pop() -> c_int {
    eprintln!("pop");
    0
}
