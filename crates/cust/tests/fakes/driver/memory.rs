//! Memory, copies and fills.

use std::ffi::c_uint;

use super::{INVALID_VALUE, Object, with_state};

fn allocate(bytes: usize, is_ordered: bool) -> Result<u64, u32> {
    let mut address = 0;
    let code = with_state(|state| {
        state.check_capture()?;
        // A pattern that no test expects.
        let memory = vec![u128::MAX / 3; bytes.div_ceil(16)].into_boxed_slice();
        memory.as_ptr().expose_provenance();
        address = state.add(Object::Memory(memory, is_ordered))?;
        Ok(())
    });
    if code == 0 { Ok(address) } else { Err(code) }
}

fn write<T>(to: &mut T, value: Result<T, u32>) -> u32 {
    match value {
        Ok(value) => {
            *to = value;
            0
        }
        Err(code) => code,
    }
}

fn free(address: u64) -> u32 {
    with_state(|state| state.destroy(address))
}

#[unsafe(no_mangle)]
extern "system" fn cuMemAlloc_v2(address: &mut u64, bytes: usize) -> u32 {
    write(address, allocate(bytes, false))
}

#[unsafe(no_mangle)]
extern "system" fn cuMemAllocManaged(address: &mut u64, bytes: usize, _: c_uint) -> u32 {
    write(address, allocate(bytes, false))
}

#[unsafe(no_mangle)]
extern "system" fn cuMemAllocHost_v2(address: &mut u64, bytes: usize) -> u32 {
    write(address, allocate(bytes, false))
}

#[unsafe(no_mangle)]
extern "system" fn cuMemAllocAsync(address: &mut u64, bytes: usize, stream: u64) -> u32 {
    match with_state(|state| state.get(stream).map(|_| ())) {
        0 => write(address, allocate(bytes, true)),
        code => code,
    }
}

#[unsafe(no_mangle)]
extern "system" fn cuMemFree_v2(address: u64) -> u32 {
    free(address)
}

#[unsafe(no_mangle)]
extern "system" fn cuMemFreeHost(address: u64) -> u32 {
    free(address)
}

#[unsafe(no_mangle)]
extern "system" fn cuMemFreeAsync(address: u64, stream: u64) -> u32 {
    with_state(|state| {
        state.get(stream)?;
        match state.get(address)? {
            Object::Memory(_, true) => state.remove(address),
            _ => Err(INVALID_VALUE),
        }
    })
}

/// Copies, after a check of the device addresses.
///
/// # Safety
/// If `to` or `from` is not in `devices`, it is the address of `bytes` bytes of host memory.
unsafe fn copy(to: u64, from: u64, bytes: usize, devices: &[u64]) -> u32 {
    with_state(|state| {
        state.current()?;
        devices.iter().try_for_each(|address| state.check(*address, bytes))?;
        let to = std::ptr::with_exposed_provenance_mut::<u8>(to as usize);
        // SAFETY: device addresses were checked; host addresses are promised by the caller.
        unsafe { to.copy_from(std::ptr::with_exposed_provenance(from as usize), bytes) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuMemcpyHtoD_v2(to: u64, from: u64, bytes: usize) -> u32 {
    // SAFETY: as promised by the caller.
    unsafe { copy(to, from, bytes, &[to]) }
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuMemcpyDtoH_v2(to: u64, from: u64, bytes: usize) -> u32 {
    // SAFETY: as promised by the caller.
    unsafe { copy(to, from, bytes, &[from]) }
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuMemcpyDtoD_v2(to: u64, from: u64, bytes: usize) -> u32 {
    // SAFETY: as promised by the caller.
    unsafe { copy(to, from, bytes, &[to, from]) }
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuMemcpyHtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) -> u32 {
    match with_state(|state| state.get(stream).map(|_| ())) {
        // SAFETY: as promised by the caller.
        0 => unsafe { copy(to, from, bytes, &[to]) },
        code => code,
    }
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuMemcpyDtoHAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) -> u32 {
    match with_state(|state| state.get(stream).map(|_| ())) {
        // SAFETY: as promised by the caller.
        0 => unsafe { copy(to, from, bytes, &[from]) },
        code => code,
    }
}

/// Sets `count` words, after a check of the address.
///
/// # Safety
/// Any bits are a value of `W`.
unsafe fn set<W: Copy>(to: u64, value: W, count: usize) -> u32 {
    with_state(|state| {
        state.current()?;
        state.check(to, count * size_of::<W>())?;
        for i in 0..count {
            let word = std::ptr::with_exposed_provenance_mut::<W>(to as usize + i * size_of::<W>());
            // SAFETY: the word lies in the allocation that was checked.
            unsafe { *word = value };
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuMemsetD8_v2(to: u64, value: u8, count: usize) -> u32 {
    // SAFETY: as promised by the caller.
    unsafe { set(to, value, count) }
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuMemsetD32_v2(to: u64, value: u32, count: usize) -> u32 {
    // SAFETY: as promised by the caller.
    unsafe { set(to, value, count) }
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuMemsetD8Async(to: u64, value: u8, count: usize, stream: u64) -> u32 {
    match with_state(|state| state.get(stream).map(|_| ())) {
        // SAFETY: as promised by the caller.
        0 => unsafe { set(to, value, count) },
        code => code,
    }
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) -> u32 {
    match with_state(|state| state.get(stream).map(|_| ())) {
        // SAFETY: as promised by the caller.
        0 => unsafe { copy(to, from, bytes, &[to, from]) },
        code => code,
    }
}
