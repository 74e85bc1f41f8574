//! The SIMT executor as a backend: host memory, and kernels on the CPU's cores.

use std::alloc::{self, Layout};
use std::any::Any;
use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{mem, ptr, thread};

use cuda_std::launch::NamedParameter;
use cust::event::Event;
use simt::Profile;

use crate::backend::driver_errors::failed;
use crate::backend::host_memory::{free_bytes, meminfo};
use crate::backend::{Backend, Captured, KernelOccupancy, Launch, Owner, Recorded, SharedMemory};
use crate::interop::StreamId;
use crate::watch::SimtOptions;
use crate::{DeviceInfo, Dim3, Error, KernelId, MULTIPROCESSORS};

/// The alignment of CUDA's allocations.
const ALIGNMENT: usize = 256;

/// The executor.
pub(crate) struct Executor {
    /// In a recorder: the recorded steps.
    recording: Option<Mutex<Vec<Step>>>,
    shared: Arc<Shared>,
}

/// What all handles of an executor share.
struct Shared {
    options: SimtOptions,
    /// Held while memory is accessed, by the work of forks too: two threads must not write the same host memory at
    /// once.
    order: Mutex<()>,
}

/// An operation of the executor.
#[derive(Clone)]
enum Step {
    Launch {
        kernel: KernelId,
        grid: Dim3,
        block: Dim3,
        dynamic_shared: usize,
        slots: Vec<u64>,
        parameters: &'static [NamedParameter],
        thread: unsafe fn(&[u64]),
    },
    Copy {
        from: u64,
        to: u64,
        bytes: usize,
    },
    Fill {
        address: u64,
        byte: u8,
        bytes: usize,
    },
}

impl Step {
    fn operation(&self) -> &'static str {
        match self {
            Self::Launch { .. } => "launch",
            Self::Copy { .. } => "copy",
            Self::Fill { .. } => "fill",
        }
    }
}

impl Executor {
    /// An executor that runs kernels as `options` say.
    pub(crate) fn new(options: SimtOptions) -> Self {
        Self { recording: None, shared: Arc::new(Shared { options, order: Mutex::default() }) }
    }

    /// Runs a step, or records it.
    ///
    /// # Safety
    /// The memory that the step names exists, now and when a recording of the step is started.
    unsafe fn step(&self, step: Step) -> Result<(), Error> {
        match &self.recording {
            Some(recording) => recording.lock().unwrap_or_else(PoisonError::into_inner).push(step),
            // SAFETY: as promised by the caller.
            None => unsafe { self.shared.run(&step)? },
        }
        Ok(())
    }

    /// Refuses an operation that cannot be recorded.
    fn refuse_to_record(&self, operation: &'static str) -> Result<(), Error> {
        if self.recording.is_some() { Err(Error::Recording { operation }) } else { Ok(()) }
    }

    fn name() -> String {
        match cores() {
            1 => "SIMT executor on 1 CPU core".to_owned(),
            cores => format!("SIMT executor on {cores} CPU cores"),
        }
    }
}

fn cores() -> u32 {
    thread::available_parallelism().map_or(1, |cores| cores.get() as u32)
}

/// The executor's description of a launch.
fn simt_launch<'a>(launch: &Launch<'a>) -> simt::Launch<'a> {
    let Launch { kernel, grid, block, dynamic_shared, .. } = *launch;
    simt::Launch { dynamic_shared, ..simt::Launch::new(kernel.entry, grid, block) }
}

impl Backend for Executor {
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

    /// Those of an H200, so that the executor runs its launches.
    fn multiprocessors(&self) -> usize {
        MULTIPROCESSORS
    }

    fn has_fast_f64(&self) -> bool {
        true
    }

    fn is_gpu(&self) -> bool {
        false
    }

    fn free_memory(&self) -> Result<usize, Error> {
        Ok(free_bytes())
    }

    fn allocate(&self, bytes: usize, operation: &'static str) -> Result<(u64, bool), Error> {
        self.refuse_to_record(operation)?;
        let free = free_bytes();
        let refusal = || Error::OutOfMemory { operation, requested: bytes, free, device: Self::name() };
        // Linux would grant more memory than is free, and kill the process when it is used.
        if bytes > free {
            return Err(refusal());
        }
        let layout = Layout::from_size_align(bytes, ALIGNMENT).map_err(|_| refusal())?;
        // SAFETY: the layout's size is not 0. The memory is zeroed, because reading uninitialized host memory is
        // undefined behaviour, whereas new device memory only has arbitrary bits.
        let address = unsafe { alloc::alloc_zeroed(layout) };
        if address.is_null() { Err(refusal()) } else { Ok((address.expose_provenance() as u64, true)) }
    }

    fn allocate_on_host(&self, bytes: usize, operation: &'static str) -> Result<u64, Error> {
        self.allocate(bytes, operation).map(|(address, _)| address)
    }

    unsafe fn free_on_host(&self, address: u64, bytes: usize) {
        // SAFETY: as promised by the caller.
        unsafe { self.free(address, bytes, true) };
    }

    unsafe fn free(&self, address: u64, bytes: usize, _is_own: bool) {
        // SAFETY: `allocate` used this layout.
        unsafe {
            let layout = Layout::from_size_align_unchecked(bytes, ALIGNMENT);
            alloc::dealloc(ptr::with_exposed_provenance_mut(address as usize), layout);
        }
    }

    unsafe fn upload(&self, from: &[u8], to: u64) -> Result<(), Error> {
        self.refuse_to_record("upload")?;
        let _in_order = self.shared.in_order("upload")?;
        // SAFETY: as promised by the caller.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), pointer_to(to), from.len()) };
        Ok(())
    }

    /// The copy is done at once.
    unsafe fn start_upload(&self, from: u64, to: u64, bytes: usize) -> Result<(), Error> {
        self.refuse_to_record("upload")?;
        let _in_order = self.shared.in_order("upload")?;
        // SAFETY: as promised by the caller.
        unsafe { ptr::copy_nonoverlapping(pointer_to(from).cast_const(), pointer_to(to), bytes) };
        Ok(())
    }

    unsafe fn download(&self, from: u64, to: *mut u8, bytes: usize) -> Result<(), Error> {
        self.refuse_to_record("download")?;
        let _in_order = self.shared.in_order("download")?;
        // SAFETY: as promised by the caller.
        unsafe { ptr::copy_nonoverlapping(pointer_to(from).cast_const(), to, bytes) };
        Ok(())
    }

    unsafe fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<(), Error> {
        // SAFETY: as promised by the caller.
        unsafe { self.step(Step::Copy { from, to, bytes }) }
    }

    unsafe fn fill(&self, address: u64, byte: u8, bytes: usize) -> Result<(), Error> {
        // SAFETY: as promised by the caller.
        unsafe { self.step(Step::Fill { address, byte, bytes }) }
    }

    unsafe fn zero(&self, address: u64, bytes: usize) -> Result<(), Error> {
        // SAFETY: as promised by the caller.
        unsafe { self.fill(address, 0, bytes) }
    }

    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<(), Error> {
        let Launch { kernel, grid, block, dynamic_shared, slots, parameters, thread } = *launch;
        simt_launch(launch).check().map_err(Error::from)?;
        // SAFETY: as promised by the caller.
        unsafe {
            self.step(Step::Launch { kernel, grid, block, dynamic_shared, slots: slots.to_vec(), parameters, thread })
        }
    }

    fn resources(&self, _: KernelId, _: u32) -> Result<Option<KernelOccupancy>, Error> {
        Ok(None)
    }

    fn shared_memory(&self) -> SharedMemory {
        let of_block = simt::Limits::default().shared_bytes;
        SharedMemory { of_block, of_multiprocessor: usize::MAX, reserved: 0 }
    }

    fn synchronize(&self) -> Result<(), Error> {
        self.refuse_to_record("synchronize")
    }

    fn fork(&self) -> Result<Arc<dyn Backend>, Error> {
        Ok(Arc::new(Self { recording: None, shared: self.shared.clone() }))
    }

    /// The memory is the child's own.
    fn check_process(&self) -> Result<(), Error> {
        Ok(())
    }

    unsafe fn on_stream(&self, _: *mut c_void, _: Option<Owner>) -> Result<Arc<dyn Backend>, Error> {
        Err(Error::NoStreams { operation: "on_stream" })
    }

    fn share_stream(&self) {}

    unsafe fn stream_id(&self, _: *mut c_void) -> Result<StreamId, Error> {
        Err(Error::NoStreams { operation: "stream_id" })
    }

    fn capture(&self) -> Result<Option<Captured>, Error> {
        Ok(None)
    }

    fn check_memory(&self, _: u64, _: usize) -> Result<(), Error> {
        Ok(())
    }

    fn record_event(&self) -> Result<Option<Event>, Error> {
        self.refuse_to_record("wait for another handle")?;
        Ok(None)
    }

    fn wait_event(&self, event: &Event) -> Result<(), Error> {
        self.refuse_to_record("wait for another handle")?;
        event.synchronize().map_err(failed("wait for a CUDA event"))
    }

    fn synchronize_event(&self, event: &Event) -> Result<(), Error> {
        event.synchronize().map_err(failed("wait for a CUDA event"))
    }

    fn device_id(&self) -> usize {
        Arc::as_ptr(&self.shared).addr()
    }

    fn recorder(&self) -> Result<Arc<dyn Backend>, Error> {
        Ok(Arc::new(Self { recording: Some(Mutex::default()), shared: self.shared.clone() }))
    }

    fn end_recording(&self) -> Result<Box<dyn Recorded>, Error> {
        let recording = self.recording.as_ref().map(|steps| steps.lock().unwrap_or_else(PoisonError::into_inner));
        let steps = recording.map(|mut steps| mem::take(&mut *steps)).unwrap_or_default();
        Ok(Box::new(Steps { steps }))
    }

    fn stream(&self) -> Option<*mut c_void> {
        None
    }

    fn profile(&self, work: &mut dyn FnMut() -> Result<(), Error>) -> Result<Profile, Error> {
        let profile = OpenProfile::begin(self.device_id());
        work()?;
        Ok(profile.end())
    }

    fn time(&self, work: &mut dyn FnMut() -> Result<(), Error>) -> Result<Duration, Error> {
        self.refuse_to_record("time")?;
        let start = Instant::now();
        work()?;
        Ok(start.elapsed())
    }
}

/// The address as a pointer: [`Executor::allocate`] has exposed it.
fn pointer_to(address: u64) -> *mut u8 {
    ptr::with_exposed_provenance_mut(address as usize)
}

impl Shared {
    /// Waits until nothing else accesses memory. A call inside a kernel cannot wait: it would wait for its own launch.
    fn in_order(&self, operation: &'static str) -> Result<MutexGuard<'_, ()>, Error> {
        if simt::lane::is_running() {
            return Err(Error::InsideKernel { operation });
        }
        Ok(self.order.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs a step.
    ///
    /// # Safety
    /// The memory that the step names exists.
    unsafe fn run(&self, step: &Step) -> Result<(), Error> {
        let _in_order = self.in_order(step.operation())?;
        // SAFETY: as promised by the caller; each lane calls the launch's thread function with the launch's slots.
        unsafe {
            match step {
                Step::Copy { from, to, bytes } => {
                    ptr::copy_nonoverlapping(pointer_to(*from).cast_const(), pointer_to(*to), *bytes);
                    Ok(())
                }
                Step::Fill { address, byte, bytes } => {
                    ptr::write_bytes(pointer_to(*address), *byte, *bytes);
                    Ok(())
                }
                Step::Launch { kernel, grid, block, dynamic_shared, slots, parameters, thread } => {
                    let launch = Launch {
                        kernel: *kernel,
                        grid: *grid,
                        block: *block,
                        dynamic_shared: *dynamic_shared,
                        slots,
                        parameters,
                        thread: *thread,
                    };
                    self.launch(&launch, &|| thread(slots))
                }
            }
        }
    }

    /// Runs a launch with the options, and counts it if a profile is open.
    fn launch(&self, launch: &Launch<'_>, lane: &(dyn Fn() + Sync)) -> Result<(), Error> {
        let SimtOptions { checks, schedule } = self.options;
        let arguments = arguments(launch.parameters, launch.slots);
        let launch = simt::Launch {
            watch: if checks { simt::Watch::CHECKS } else { simt::Watch::NOTHING },
            schedule,
            arguments: &arguments,
            ..simt_launch(launch)
        };
        let device = ptr::from_ref(self).addr();
        if OpenProfile::is_open(device) {
            OpenProfile::add(device, simt::profile(&launch, lane)?);
        } else {
            simt::run(&launch, lane)?;
        }
        Ok(())
    }
}

thread_local! {
    /// The open profiles in which this thread's launches are counted, each with the identifier of its device. The last
    /// profile of a device is the innermost.
    static PROFILES: RefCell<Vec<(usize, Profile)>> = const { RefCell::new(Vec::new()) };
}

/// A profile that counts this thread's launches on one device. The counting ends when it is dropped, even by a panic.
struct OpenProfile {
    device: usize,
    is_open: bool,
}

impl OpenProfile {
    fn begin(device: usize) -> Self {
        PROFILES.with_borrow_mut(|profiles| profiles.push((device, Profile::default())));
        Self { device, is_open: true }
    }

    fn is_open(device: usize) -> bool {
        PROFILES.with_borrow(|profiles| profiles.iter().any(|(of, _)| *of == device))
    }

    fn add(device: usize, counted: Profile) {
        PROFILES.with_borrow_mut(|profiles| {
            if let Some((_, profile)) = profiles.iter_mut().rev().find(|(of, _)| *of == device) {
                profile.merge(counted);
            }
        });
    }

    /// Ends the counting and returns the counts, which are also added to the enclosing profile.
    fn end(mut self) -> Profile {
        self.close()
    }

    fn close(&mut self) -> Profile {
        if !mem::take(&mut self.is_open) {
            return Profile::default();
        }
        let (_, counted) = PROFILES.with_borrow_mut(Vec::pop).unwrap_or_default();
        Self::add(self.device, counted.clone());
        counted
    }
}

impl Drop for OpenProfile {
    fn drop(&mut self) {
        self.close();
    }
}

/// The memory that a launch's slots refer to.
fn arguments(parameters: &[NamedParameter], mut slots: &[u64]) -> Vec<simt::Argument<'static>> {
    let mut arguments = Vec::new();
    // A pointer has no length, so it may reach any argument.
    let has_pointer = parameters.iter().any(|parameter| parameter.is_writable && parameter.element.is_none());
    for parameter in parameters {
        let Some((own, rest)) = slots.split_at_checked(parameter.slots) else { break };
        slots = rest;
        if let (Some(element), &[address, len]) = (parameter.element, own) {
            let (address, bytes) = (address as usize, len as usize * element);
            let is_written = parameter.is_writable || has_pointer;
            arguments.push(simt::Argument { name: parameter.name, address, bytes, element, is_written });
        }
    }
    arguments
}

/// A recording of the executor.
struct Steps {
    steps: Vec<Step>,
}

impl Recorded for Steps {
    unsafe fn start(&self, backend: &dyn Backend) -> Result<(), Error> {
        let backend: &dyn Any = backend;
        let Some(executor) = backend.downcast_ref::<Executor>() else {
            return Err(Error::OtherDevice { operation: "start a recording" });
        };
        // As on CUDA, where a graph cannot be launched into a stream that is being captured.
        executor.refuse_to_record("start a recording")?;
        // SAFETY: as promised by the caller.
        self.steps.iter().try_for_each(|step| unsafe { executor.shared.run(step) })
    }
}

#[cfg(test)]
mod tests {
    use cuda_std::global::{Global, GlobalMut};

    use super::*;

    #[test]
    fn a_kernel_with_a_pointer_may_write_to_every_argument() {
        let are_written = |parameters: &[NamedParameter]| -> Vec<bool> {
            let slots = [4096, 8, 8192, 8, 4096];
            arguments(parameters, &slots).iter().map(|argument| argument.is_written).collect()
        };
        let views = [
            NamedParameter::view::<Global<'static, f32>>("input"),
            NamedParameter::view::<GlobalMut<'static, f32>>("output"),
        ];
        assert_eq!(are_written(&views), [false, true]);
        let [input, output] = views;
        assert_eq!(are_written(&[input, output, NamedParameter::scalar::<u64>("len")]), [false, true]);
        assert_eq!(are_written(&[input, output, NamedParameter::pointer::<*mut f32>("to")]), [true, true]);
    }
}
