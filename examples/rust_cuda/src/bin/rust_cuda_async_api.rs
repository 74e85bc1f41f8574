//! Asynchronous copies and a kernel in a stream, timed with events, while the host counts.
//!
//! `cargo run --bin rust_cuda_async_api`

use std::time::Instant;

use anyhow::ensure;
use cust::device::Device;
use cust::event::{Event, EventFlags, EventStatus};
use cust::function::{BlockSize, GridSize};
use cust::launch;
use cust::memory::{AsyncCopyDestination, DeviceBuffer, LockedBuffer};
use cust::module::Module;
use cust::stream::{Stream, StreamFlags};

static PTX: &str = include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx"));

const LENGTH: usize = 16 << 20;

fn main() -> anyhow::Result<()> {
    let _context = cust::quick_init()?;
    println!("on {}", Device::get_device(0)?.name()?);
    let module = Module::from_ptx(PTX, &[])?;
    let increment = module.get_function("increment")?;
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;

    let value = 26_u32;
    let block = BlockSize::xy(512, 1);
    let grid = GridSize::xy(LENGTH as u32 / block.x, 1);
    // Only copies of page-locked memory are asynchronous.
    let mut host = LockedBuffer::new(&0_u32, LENGTH)?;
    let mut device = DeviceBuffer::from_slice(&vec![u32::MAX; LENGTH])?;
    let (start, stop) = (Event::new(EventFlags::DEFAULT)?, Event::new(EventFlags::DEFAULT)?);

    let called = Instant::now();
    start.record(&stream)?;
    // SAFETY: neither buffer is used or freed before `stop` has completed, and the grid has one thread per element.
    unsafe {
        device.async_copy_from(&host, &stream)?;
        launch!(increment<<<grid, block, 0, stream>>>(device.as_device_ptr(), value))?;
        device.async_copy_to(&mut host, &stream)?;
    }
    stop.record(&stream)?;
    let in_api_calls = called.elapsed();

    let mut queries = 0_u64;
    while stop.query()? == EventStatus::NotReady {
        queries += 1;
    }
    println!(
        "{:?} on the device, {in_api_calls:?} in API calls, {queries} queries by the host meanwhile",
        stop.elapsed(&start)?
    );

    let wrong = host.iter().position(|element| *element != value);
    ensure!(wrong.is_none(), "element {wrong:?} is not {value}");
    println!("{LENGTH} elements are right");
    Ok(())
}
