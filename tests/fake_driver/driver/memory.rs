//! Memory, copies and fills.

use std::ffi::c_uint;

use super::log::functions;
use super::{Code, INVALID_VALUE, MEMORY_BYTES, MemoryKind, OUT_OF_MEMORY, Object, with_state};

/// The names of work that is no kernel's, with the arguments `to`, `from` and `bytes`, or `to`, `value` and `bytes`.
pub const COPY: &str = "a copy";
pub const FILL: &str = "a fill";

/// Allocates `bytes` bytes, and writes their address.
fn allocate(address: &mut u64, bytes: usize, kind: MemoryKind) -> Code {
    with_state(|state| {
        state.check_capture()?;
        if bytes > MEMORY_BYTES {
            return Err(OUT_OF_MEMORY);
        }
        // A pattern that no test expects.
        let memory = vec![u128::MAX / 3; bytes.div_ceil(16)].into_boxed_slice();
        memory.as_ptr().expose_provenance();
        *address = state.add(Object::Memory(memory, kind))?;
        Ok(())
    })
}

functions! {
    fn cuMemAlloc_v2(address: &mut u64, bytes: usize) {
        allocate(address, bytes, MemoryKind::Device)
    }

    fn cuMemAllocManaged(address: &mut u64, bytes: usize, _: c_uint) {
        allocate(address, bytes, MemoryKind::Managed)
    }

    fn cuMemAllocHost_v2(address: &mut u64, bytes: usize) {
        allocate(address, bytes, MemoryKind::Host)
    }

    fn cuMemAllocAsync(address: &mut u64, bytes: usize, stream: u64) in stream {
        with_state(|state| state.check_stream(stream))?;
        allocate(address, bytes, MemoryKind::Ordered)
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
                Object::Memory(_, MemoryKind::Ordered) => state.remove(address),
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
        state.start(stream.unwrap_or(0), (COPY.to_owned(), vec![to, from, bytes as u64]))
    })
}

/// # Safety
/// Both have `bytes` bytes.
pub unsafe fn move_bytes(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: as promised by the caller.
    unsafe { to.copy_from(from, bytes) };
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

/// Sets `count` words, after a check of the address, and waits for the device.
///
/// # Safety
/// Any bits are a value of `W`.
unsafe fn set<W: Copy>(to: u64, value: W, count: usize) -> Code {
    with_state(|state| {
        state.check_order(None)?;
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
        unsafe { set(to, value, count) }
    }

    fn cuMemsetD32_v2(to: u64, value: u32, count: usize) {
        // SAFETY: any bits are an integer.
        unsafe { set(to, value, count) }
    }

    fn cuMemsetD8Async(to: u64, value: u8, count: usize, stream: u64) in stream {
        with_state(|state| {
            state.check_order(Some(stream))?;
            state.check(to, count)?;
            state.start(stream, (FILL.to_owned(), vec![to, value.into(), count as u64]))
        })
    }
}

/// The attributes of memory that `cuda.h` numbers so.
const MEMORY_TYPE: c_uint = 2;
const IS_MANAGED: c_uint = 8;
const DEVICE_ORDINAL: c_uint = 9;
const RANGE_START: c_uint = 11;
const RANGE_SIZE: c_uint = 12;

functions! {
    /// Memory that the driver does not know has zeros.
    fn cuPointerGetAttributes(count: c_uint, attributes: *const c_uint, data: *const *mut u64, address: u64) {
        with_state(|state| {
            let found = state.objects.range(..=address).next_back().and_then(|(begin, (device, object))| {
                let Object::Memory(memory, kind) = object else { return None };
                (address < begin + size_of_val(&**memory) as u64).then_some((*begin, memory, *kind, *device))
            });
            for i in 0..count as usize {
                // SAFETY: the caller passes `count` attributes, and a pointer for the value of each.
                let (attribute, to) = unsafe { (*attributes.add(i), *data.add(i)) };
                let value = found.map_or(0, |(begin, memory, kind, device)| match attribute {
                    MEMORY_TYPE => if kind == MemoryKind::Host { 1 } else { 2 },
                    IS_MANAGED => u64::from(kind == MemoryKind::Managed),
                    DEVICE_ORDINAL => device as u64,
                    RANGE_START => begin,
                    RANGE_SIZE => size_of_val(&**memory) as u64,
                    _ => unreachable!("attribute {attribute}"),
                });
                // SAFETY: the value has this type.
                unsafe {
                    match attribute {
                        RANGE_START | RANGE_SIZE => *to = value,
                        _ => *to.cast::<c_uint>() = value as c_uint,
                    }
                }
            }
            Ok(())
        })
    }
}
