//! Streams, captures and memory of other libraries.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cuda_driver::{CU_STREAM_PER_THREAD, CUmemorytype, CUpointer_attribute};
use cust::error::CudaError;
use cust::stream::{Stream, StreamFlags};

use super::{CudaDevice, failed};
use crate::Error;
use crate::backend::Owner;
use crate::backend::captured::{Captured, GraphMemory, OwnedByGraph};

/// The last capture of a stream by another library, while its graph exists.
#[derive(Default)]
pub(super) struct LastCapture(Mutex<(u64, Weak<GraphMemory>)>);

const CAPTURE: &str = "find out whether another library captures the stream";

impl CudaDevice {
    /// A handle of the device whose work goes to a stream of another library.
    ///
    /// # Safety
    /// As for [`Backend::on_stream`](crate::backend::Backend::on_stream).
    pub(super) unsafe fn on_borrowed(&self, stream: *mut c_void, owner: Option<Owner>) -> Result<Self, Error> {
        if stream.cast() == CU_STREAM_PER_THREAD {
            return Err(Error::PerThreadStream);
        }
        self.shared.check_process()?;
        // SAFETY: as promised by the caller.
        let stream = unsafe { Stream::borrow(stream.cast(), &self.shared.context) }.map_err(|error| match error {
            CudaError::InvalidContext => Error::OtherContext,
            other => failed("borrow a stream")(other),
        })?;
        let mut device = Self::with_stream(&self.shared, stream, false);
        (device.is_shared, device.owner_of_stream) = (AtomicBool::new(true), owner);
        Ok(device)
    }

    /// Whether another library captures the stream's work.
    pub(super) fn is_captured(&self) -> Result<bool, Error> {
        if self.is_recorder || !self.has_shared_stream() {
            return Ok(false);
        }
        self.shared.check_process()?;
        self.stream.is_captured().map_err(failed(CAPTURE))
    }

    /// The capture by another library that the stream's work goes to. Its graph keeps the memory in it.
    pub(super) fn current_capture(&self) -> Result<Option<Captured>, Error> {
        if !self.is_captured()? {
            return Ok(None);
        }
        // All work on a stream whose capture has become invalid is refused by the driver.
        let Some(capture) = self.stream.capture().map_err(failed(CAPTURE))? else { return Ok(None) };
        let mut last = self.capture.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (id, memory) = &*last;
        if let Some(memory) = memory.upgrade().filter(|_| *id == capture.id()) {
            return Ok(Some(Captured { id: capture.id(), memory }));
        }
        let memory = Arc::new(GraphMemory::default());
        // SAFETY: the capture is in progress: the owner of a stream begins or ends none during a call.
        unsafe { capture.keep(Box::new(OwnedByGraph(memory.clone()))) }
            .map_err(failed("let a graph of another library keep memory"))?;
        *last = (capture.id(), Arc::downgrade(&memory));
        Ok(Some(Captured { id: capture.id(), memory }))
    }

    /// Sets memory to 0 at once, while another library captures the stream.
    ///
    /// # Safety
    /// Nothing else uses the memory.
    pub(super) unsafe fn zero_at_once(&self, address: u64, bytes: usize) -> Result<(), Error> {
        const OPERATION: &str = "fill new memory of the device";
        let _entered = self.enter_as_guest()?;
        // Neither a capture nor the legacy default stream concerns this stream.
        let stream = Stream::new(StreamFlags::NON_BLOCKING, None).map_err(failed(OPERATION))?;
        // SAFETY: as promised by the caller.
        unsafe { self.shared.driver.cuMemsetD8Async(address, 0, bytes, stream.as_inner()) }
            .map_err(failed(OPERATION))?;
        stream.synchronize().map_err(failed(OPERATION))
    }

    /// Checks that memory of another library is on this device, and not longer than its allocation. In a pool of
    /// another library, the allocation is the pool.
    pub(super) fn check_borrowed(&self, address: u64, bytes: usize) -> Result<(), Error> {
        let _entered = self.enter()?;
        let mut place = CUmemorytype(0);
        let (mut is_managed, mut ordinal): (c_uint, c_int) = (0, 0);
        let (mut start, mut size): (u64, usize) = (0, 0);
        let mut attributes = [
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED,
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE,
        ];
        let mut values: [*mut c_void; 5] = [
            (&raw mut place).cast(),
            (&raw mut is_managed).cast(),
            (&raw mut ordinal).cast(),
            (&raw mut start).cast(),
            (&raw mut size).cast(),
        ];
        let (count, data) = (attributes.len() as c_uint, values.as_mut_ptr());
        // SAFETY: writes values of these types, and does not access the memory at the address.
        unsafe { self.shared.driver.cuPointerGetAttributes(count, attributes.as_mut_ptr(), data, address) }
            .map_err(failed("query the memory of another library"))?;
        let own = self.shared.device.as_raw();
        let found = match place {
            CUmemorytype::CU_MEMORYTYPE_DEVICE if is_managed == 0 && ordinal != own => {
                format!("is memory of device {ordinal}, not of device {own}")
            }
            // The driver may not know the range.
            CUmemorytype::CU_MEMORYTYPE_DEVICE if size == 0 || is_inside(address, bytes, start, size) => return Ok(()),
            CUmemorytype::CU_MEMORYTYPE_DEVICE => {
                format!(
                    "and the {bytes} bytes from there on are not inside their allocation, {size} bytes at {start:#x}"
                )
            }
            CUmemorytype::CU_MEMORYTYPE_HOST if is_managed != 0 => return Ok(()),
            CUmemorytype::CU_MEMORYTYPE_HOST => "is host memory".to_owned(),
            _ => "is no memory that the CUDA driver knows".to_owned(),
        };
        Err(Error::NotDeviceMemory { address, found })
    }
}

/// Whether `bytes` bytes lie in an allocation.
fn is_inside(address: u64, bytes: usize, start: u64, size: usize) -> bool {
    let (begin, end) = (u128::from(address), u128::from(address) + bytes as u128);
    u128::from(start) <= begin && end <= u128::from(start) + size as u128
}
