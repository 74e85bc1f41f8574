//! The SIMT executor as a machine: memory of the host, kernels on its cores.

use std::alloc::{self, Layout};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use std::{fs, ptr, thread};

use crate::machine::{Call, KernelOccupancy, Machine};
use crate::{DeviceInfo, Error, KernelId};

/// The alignment of CUDA's allocations.
const ALIGNMENT: usize = 256;

/// The executor.
#[derive(Default)]
pub(crate) struct Executor {
    /// Launches are in one order, as on a stream.
    order: Mutex<()>,
}

impl Executor {
    fn name() -> String {
        format!("SIMT executor on {} CPU cores", cores())
    }
}

fn cores() -> u32 {
    thread::available_parallelism().map_or(1, |cores| cores.get() as u32)
}

/// Bytes of the host's memory that are free; all that there could be, where it does not say.
pub(crate) fn free_host_memory() -> usize {
    meminfo("MemAvailable").unwrap_or(usize::MAX)
}

/// A line of `/proc/meminfo`, in bytes. Without one, no limit is known.
fn meminfo(key: &str) -> Option<usize> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok().map(|kib| kib * 1024)
}

impl Machine for Executor {
    fn info(&self) -> Result<DeviceInfo, Error> {
        Ok(DeviceInfo {
            name: Self::name(),
            compute_capability: None,
            multiprocessors: cores(),
            memory_bytes: meminfo("MemTotal").unwrap_or(usize::MAX),
            l2_bytes: None,
            memory_clock_khz: None,
            memory_bus_bits: None,
            clock_khz: None,
            multiprocessor: None,
            driver: None,
        })
    }

    fn is_gpu(&self) -> bool {
        false
    }

    fn allocate(&self, bytes: usize, operation: &'static str) -> Result<u64, Error> {
        let free = free_host_memory();
        let refusal = || Error::OutOfMemory { operation, requested: bytes, free, device: Self::name() };
        // Linux would hand out more than there is, and end the process when it is used.
        if bytes > free {
            return Err(refusal());
        }
        let layout = Layout::from_size_align(bytes, ALIGNMENT).map_err(|_| refusal())?;
        // SAFETY: the layout's size is not 0. Zeroed, because device memory is any bits but never undefined ones.
        let address = unsafe { alloc::alloc_zeroed(layout) };
        if address.is_null() { Err(refusal()) } else { Ok(address.expose_provenance() as u64) }
    }

    unsafe fn free(&self, address: u64, bytes: usize) {
        // SAFETY: `allocate` has made this layout before.
        unsafe {
            let layout = Layout::from_size_align_unchecked(bytes, ALIGNMENT);
            alloc::dealloc(ptr::with_exposed_provenance_mut(address as usize), layout);
        }
    }

    unsafe fn upload(&self, from: &[u8], to: u64) -> Result<(), Error> {
        // SAFETY: as promised by the caller.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), ptr::with_exposed_provenance_mut(to as usize), from.len()) };
        Ok(())
    }

    unsafe fn download(&self, from: u64, to: *mut u8, bytes: usize) -> Result<(), Error> {
        // SAFETY: as promised by the caller.
        unsafe { ptr::copy_nonoverlapping(ptr::with_exposed_provenance(from as usize), to, bytes) };
        Ok(())
    }

    unsafe fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<(), Error> {
        // SAFETY: as promised by the caller.
        unsafe {
            ptr::copy_nonoverlapping::<u8>(
                ptr::with_exposed_provenance(from as usize),
                ptr::with_exposed_provenance_mut(to as usize),
                bytes,
            );
        }
        Ok(())
    }

    unsafe fn fill(&self, address: u64, byte: u8, bytes: usize) -> Result<(), Error> {
        // SAFETY: as promised by the caller.
        unsafe { ptr::write_bytes::<u8>(ptr::with_exposed_provenance_mut(address as usize), byte, bytes) };
        Ok(())
    }

    unsafe fn launch(&self, call: &Call<'_>) -> Result<(), Error> {
        let launch = call.as_simt_launch(simt::Limits::default());
        let (thread, slots) = (call.thread, call.slots);
        // SAFETY: as promised by the caller; a lane of this launch calls it.
        let lane = || unsafe { thread(slots) };
        let _in_order = self.order.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        simt::run(&launch, &lane).map_err(Error::from)
    }

    fn resources(&self, _: KernelId, _: u32) -> Result<Option<KernelOccupancy>, Error> {
        Ok(None)
    }

    fn synchronize(&self) -> Result<(), Error> {
        Ok(())
    }

    fn time(&self, work: &mut dyn FnMut() -> Result<(), Error>) -> Result<Duration, Error> {
        let start = Instant::now();
        work()?;
        Ok(start.elapsed())
    }
}
