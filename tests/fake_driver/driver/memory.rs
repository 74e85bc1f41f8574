//! Memory, copies and fills.

use std::ffi::c_uint;

use super::log::functions;
use super::{Code, INVALID_VALUE, MEMORY_BYTES, OUT_OF_MEMORY, Object, with_state};

/// Allocates `bytes` bytes, and writes their address.
fn allocate(address: &mut u64, bytes: usize, is_ordered: bool) -> Code {
    with_state(|state| {
        state.check_capture()?;
        if bytes > MEMORY_BYTES {
            return Err(OUT_OF_MEMORY);
        }
        // A pattern that no test expects.
        let memory = vec![u128::MAX / 3; bytes.div_ceil(16)].into_boxed_slice();
        memory.as_ptr().expose_provenance();
        *address = state.add(Object::Memory(memory, is_ordered))?;
        Ok(())
    })
}

functions! {
    fn cuMemAlloc_v2(address: &mut u64, bytes: usize) {
        allocate(address, bytes, false)
    }

    fn cuMemAllocManaged(address: &mut u64, bytes: usize, _: c_uint) {
        allocate(address, bytes, false)
    }

    fn cuMemAllocHost_v2(address: &mut u64, bytes: usize) {
        allocate(address, bytes, false)
    }

    fn cuMemAllocAsync(address: &mut u64, bytes: usize, stream: u64) in stream {
        with_state(|state| state.check_stream(stream))?;
        allocate(address, bytes, true)
    }

    fn cuMemFree_v2(address: u64) {
        with_state(|state| state.destroy(address))
    }

    fn cuMemFreeHost(address: u64) {
        with_state(|state| state.destroy(address))
    }

    fn cuMemFreeAsync(address: u64, stream: u64) in stream {
        with_state(|state| {
            state.check_stream(stream)?;
            match state.get(address)? {
                Object::Memory(_, true) => state.remove(address),
                _ => Err(INVALID_VALUE),
            }
        })
    }
}

/// Copies, after a check of the device addresses. Without a stream, waits for the device.
///
/// # Safety
/// If `to` or `from` is not in `devices`, it is the address of `bytes` bytes of host memory.
unsafe fn copy(to: u64, from: u64, bytes: usize, devices: &[u64], stream: Option<u64>) -> Code {
    with_state(|state| {
        state.check_order(stream)?;
        devices.iter().try_for_each(|address| state.check(*address, bytes))?;
        let to = std::ptr::with_exposed_provenance_mut::<u8>(to as usize);
        // SAFETY: device addresses were checked; host addresses are promised by the caller.
        unsafe { to.copy_from(std::ptr::with_exposed_provenance(from as usize), bytes) };
        Ok(())
    })
}

functions! {
    fn cuMemcpyHtoD_v2(to: u64, from: u64, bytes: usize) {
        // SAFETY: as promised by the caller.
        unsafe { copy(to, from, bytes, &[to], None) }
    }

    fn cuMemcpyDtoH_v2(to: u64, from: u64, bytes: usize) {
        // SAFETY: as promised by the caller.
        unsafe { copy(to, from, bytes, &[from], None) }
    }

    fn cuMemcpyDtoD_v2(to: u64, from: u64, bytes: usize) {
        // SAFETY: as promised by the caller.
        unsafe { copy(to, from, bytes, &[to, from], None) }
    }

    fn cuMemcpyHtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) in stream {
        // SAFETY: as promised by the caller.
        unsafe { copy(to, from, bytes, &[to], Some(stream)) }
    }

    fn cuMemcpyDtoHAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) in stream {
        // SAFETY: as promised by the caller.
        unsafe { copy(to, from, bytes, &[from], Some(stream)) }
    }

    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) in stream {
        // SAFETY: as promised by the caller.
        unsafe { copy(to, from, bytes, &[to, from], Some(stream)) }
    }
}

/// Sets `count` words, after a check of the address. Without a stream, waits for the device.
///
/// # Safety
/// Any bits are a value of `W`.
unsafe fn set<W: Copy>(to: u64, value: W, count: usize, stream: Option<u64>) -> Code {
    with_state(|state| {
        state.check_order(stream)?;
        state.check(to, count * size_of::<W>())?;
        for i in 0..count {
            let word = std::ptr::with_exposed_provenance_mut::<W>(to as usize + i * size_of::<W>());
            // SAFETY: the word lies in the allocation that was checked.
            unsafe { *word = value };
        }
        Ok(())
    })
}

functions! {
    fn cuMemsetD8_v2(to: u64, value: u8, count: usize) {
        // SAFETY: any bits are an integer.
        unsafe { set(to, value, count, None) }
    }

    fn cuMemsetD32_v2(to: u64, value: u32, count: usize) {
        // SAFETY: any bits are an integer.
        unsafe { set(to, value, count, None) }
    }

    fn cuMemsetD8Async(to: u64, value: u8, count: usize, stream: u64) in stream {
        // SAFETY: any bits are an integer.
        unsafe { set(to, value, count, Some(stream)) }
    }
}
