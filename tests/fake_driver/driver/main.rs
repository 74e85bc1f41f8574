//! A fake driver with two devices in host memory. It is stricter than a real driver: an object can be used only while
//! its own context is current.
//!
//! It runs one kernel, `add`. Launches of other kernels succeed and do nothing. It lacks
//! `cuOccupancyAvailableDynamicSMemPerBlock`, so that a test can call a missing function.

#![allow(clippy::missing_safety_doc, reason = "CUDA's documentation has the requirements of the driver's functions")]

mod graphs;
mod log;
mod memory;
mod work;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::env;
use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Mutex};

use graphs::{Graph, UserObject};

use log::functions;

const INVALID_VALUE: u32 = 1;
const OUT_OF_MEMORY: u32 = 2;
const NOT_INITIALIZED: u32 = 3;
const INVALID_DEVICE: u32 = 101;
const INVALID_CONTEXT: u32 = 201;
const INVALID_PTX: u32 = 218;
const UNSUPPORTED_PTX_VERSION: u32 = 222;
const INVALID_HANDLE: u32 = 400;
const NOT_FOUND: u32 = 500;
const NOT_READY: u32 = 600;
const CONTEXT_IS_DESTROYED: u32 = 709;
const NOT_PERMITTED: u32 = 800;
const CAPTURE_UNSUPPORTED: u32 = 900;
const CAPTURE_UNMATCHED: u32 = 903;

type Code = Result<(), u32>;

/// A launch: the kernel's name and its arguments, each as 8 bytes.
type Launch = (String, Vec<u64>);

enum Object {
    Module {
        entries: Vec<String>,
    },
    Function {
        name: String,
        module: u64,
    },
    Stream {
        /// The graph that the stream's work is captured into.
        captured: Option<u64>,
        flags: u32,
    },
    Event {
        is_recorded: bool,
        /// The graph of the captured stream in which it was recorded last.
        captured: Option<u64>,
    },
    Graph(Graph),
    Executable(Graph),
    /// An object that no graph keeps yet.
    OfUser(Arc<UserObject>),
    Memory(Box<[u128]>, MemoryKind),
}

/// How memory was allocated.
#[derive(Clone, Copy, PartialEq)]
enum MemoryKind {
    Device,
    /// Device memory, in stream order.
    Ordered,
    Managed,
    Host,
}

struct State {
    is_initialized: bool,
    /// The number of retains of each device's primary context.
    retained: [u64; 2],
    /// The objects, each with its device.
    objects: BTreeMap<u64, (usize, Object)>,
    last_handle: u64,
    /// The number of waits for the legacy default stream.
    waits: u64,
    /// Whether another library captures a stream in the global mode: see `fakeCapture`.
    is_captured: bool,
    /// The number of calls that such a capture would not have survived.
    lost_captures: u64,
}

static STATE: Mutex<State> = Mutex::new(State {
    is_initialized: false,
    retained: [0; 2],
    objects: BTreeMap::new(),
    last_handle: 1,
    waits: 0,
    is_captured: false,
    lost_captures: 0,
});

thread_local! {
    static CURRENT: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    /// The capture mode of this thread's calls: global.
    static CAPTURE_MODE: Cell<c_uint> = const { Cell::new(0) };
    /// Whether this thread runs the destructor of a user object, which may not call the driver.
    static IS_DESTRUCTOR: Cell<bool> = const { Cell::new(false) };
}

/// The size of each device's memory, and of the largest allocation.
const MEMORY_BYTES: usize = 1 << 31;

/// The legacy default stream, which is also 0.
const LEGACY: u64 = 1;

/// The mode of a thread whose calls do not disturb captures.
const RELAXED: c_uint = 2;

/// The handle of a device's primary context.
fn context_of(device: usize) -> u64 {
    0xc0_0000 + device as u64
}

/// The handle of this thread's current context, or 0.
fn current_context() -> u64 {
    CURRENT.with_borrow(|stack| stack.last().copied().unwrap_or(0))
}

fn device_of(context: u64) -> usize {
    (context - 0xc0_0000) as usize
}

impl State {
    /// The device of the current context.
    fn current(&self) -> Result<usize, u32> {
        let context = current_context();
        if context == 0 {
            return Err(INVALID_CONTEXT);
        }
        if self.retained[device_of(context)] == 0 { Err(CONTEXT_IS_DESTROYED) } else { Ok(device_of(context)) }
    }

    fn add(&mut self, object: Object) -> Result<u64, u32> {
        let device = self.current()?;
        self.last_handle += 1;
        let handle = match &object {
            Object::Memory(memory, _) => memory.as_ptr().addr() as u64,
            _ => self.last_handle << 8,
        };
        self.objects.insert(handle, (device, object));
        Ok(handle)
    }

    /// Refuses a call that a capture of another library does not survive, and counts it: an error of a drop is ignored.
    fn check_capture(&mut self) -> Code {
        if !self.is_captured || CAPTURE_MODE.get() == RELAXED {
            return Ok(());
        }
        self.lost_captures += 1;
        Err(CAPTURE_UNSUPPORTED)
    }

    /// Checks that a stream is of the current context. 0 and 1 are the legacy default stream, whose use no capture of
    /// another library survives.
    fn check_stream(&mut self, stream: u64) -> Code {
        if stream <= LEGACY {
            self.check_capture()?;
            return self.current().map(|_| ());
        }
        match self.get(stream)? {
            Object::Stream { .. } => Ok(()),
            _ => Err(INVALID_HANDLE),
        }
    }

    /// [`State::check_stream`] for a call in stream order, or without a stream for one that waits for the device.
    fn check_order(&mut self, stream: Option<u64>) -> Code {
        self.check_stream(stream.unwrap_or(0))
    }

    /// An object of the current context.
    fn get(&mut self, handle: u64) -> Result<&mut Object, u32> {
        let current = self.current()?;
        match self.objects.get_mut(&handle) {
            Some((device, object)) if *device == current => Ok(object),
            _ => Err(INVALID_HANDLE),
        }
    }

    fn remove(&mut self, handle: u64) -> Code {
        self.get(handle)?;
        self.objects.remove(&handle);
        Ok(())
    }

    /// [`State::remove`] by a call that a capture of another library does not survive.
    fn destroy(&mut self, handle: u64) -> Code {
        self.check_capture()?;
        self.remove(handle)
    }

    /// Checks that `bytes` bytes lie in one allocation.
    fn check(&self, address: u64, bytes: usize) -> Code {
        let (begin, (_, object)) = self.objects.range(..=address).next_back().ok_or(INVALID_VALUE)?;
        match object {
            Object::Memory(memory, _) if address + bytes as u64 <= begin + size_of_val(&**memory) as u64 => Ok(()),
            _ => Err(INVALID_VALUE),
        }
    }

    /// Runs work, or adds it to the graph that its stream captures.
    fn start(&mut self, stream: u64, work: Launch) -> Code {
        match self.graph_of(stream) {
            Some(graph) => graph.launches.push(work),
            None => self.run(&work)?,
        }
        Ok(())
    }

    fn run(&self, (name, arguments): &Launch) -> Code {
        let word = |address: u64, i: u64| std::ptr::with_exposed_provenance_mut::<u32>((address + 4 * i) as usize);
        match (name.as_str(), arguments.as_slice()) {
            // The sums of two slices.
            ("add", &[a, length, b, other_length, out]) => {
                for (address, length) in [(a, length), (b, other_length), (out, length)] {
                    self.check(address, 4 * length as usize)?;
                }
                for i in 0..length {
                    // SAFETY: the words lie in the allocations that were checked above.
                    unsafe { *word(out, i) = *word(a, i) + *word(b, i) };
                }
                Ok(())
            }
            (memory::COPY, &[to, from, bytes]) => {
                let [to, from] = [to, from].map(|address| std::ptr::with_exposed_provenance_mut(address as usize));
                // SAFETY: device addresses were checked when the copy was started; host addresses were promised then.
                unsafe { memory::move_bytes(to, from, bytes as usize) };
                Ok(())
            }
            (memory::FILL, &[to, value, bytes]) => {
                self.check(to, bytes as usize)?;
                let to = std::ptr::with_exposed_provenance_mut::<u8>(to as usize);
                // SAFETY: the bytes lie in an allocation, as checked above.
                unsafe { to.write_bytes(value as u8, bytes as usize) };
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn with_state(work: impl FnOnce(&mut State) -> Code) -> Code {
    if IS_DESTRUCTOR.get() {
        return Err(NOT_PERMITTED);
    }
    let mut state = STATE.lock().unwrap();
    if state.is_initialized { work(&mut state) } else { Err(NOT_INITIALIZED) }
}

/// Writes the number of objects, the number of retains of each device's primary context, the number of waits for the
/// legacy default stream, and the depth of this thread's stack of contexts.
#[unsafe(no_mangle)]
extern "system" fn fakeReport(report: &mut [u64; 5]) {
    let state = STATE.lock().unwrap();
    let objects = state.objects.values().filter(|(_, object)| !matches!(object, Object::Function { .. })).count();
    *report = [objects as u64, state.retained[0], state.retained[1], state.waits, depth()];
}

/// The depth of this thread's stack of contexts.
fn depth() -> u64 {
    CURRENT.with_borrow(|stack| stack.iter().filter(|context| **context != 0).count() as u64)
}

/// Writes this thread's current context, or 0, the depth of its stack of contexts, and its capture mode.
#[unsafe(no_mangle)]
extern "system" fn fakeThreadState(thread: &mut [u64; 3]) {
    *thread = [current_context(), depth(), CAPTURE_MODE.get().into()];
}

/// Tells a library that no kernel runs here, so that it may load stubs.
#[unsafe(no_mangle)]
extern "system" fn warpfoldFakeDriver() {}

/// Begins or ends the capture of a stream by another library. Meanwhile, threads whose mode is not relaxed can neither
/// allocate nor load a module nor destroy nor wait. Returns how many calls have tried, in all captures.
#[unsafe(no_mangle)]
extern "system" fn fakeCapture(is_captured: u64) -> u64 {
    let mut state = STATE.lock().unwrap();
    state.is_captured = is_captured != 0;
    state.lost_captures
}

/// An attribute of each device: what kernels need as on an H200, any other 100 times its number.
fn attribute_of_device(attribute: c_uint) -> c_int {
    match attribute {
        // Threads per block, and the block's sides.
        1..=3 => 1024,
        4 => 64,
        // The grid's sides.
        5 => c_int::MAX,
        6 | 7 => 65535,
        // Multiprocessors, their threads, registers and blocks.
        16 => 132,
        39 => 2048,
        82 => 65536,
        // The ratio of f32 to f64 performance.
        87 => 2,
        106 => 32,
        // The compute capability.
        75 => 9,
        76 => 0,
        // Bytes of shared memory: of a multiprocessor, of a block, reserved.
        81 => 233_472,
        97 => 232_448,
        111 => 1024,
        _ => attribute as c_int * 100,
    }
}

functions! {
    fn cuThreadExchangeStreamCaptureMode(mode: &mut c_uint) {
        *mode = CAPTURE_MODE.replace(*mode);
        Ok(())
    }

    fn cuInit(flags: c_uint) {
        STATE.lock().unwrap().is_initialized = flags == 0;
        if flags == 0 { Ok(()) } else { Err(INVALID_VALUE) }
    }

    fn cuDriverGetVersion(version: &mut c_int) {
        *version = env::var("FAKE_DRIVER_VERSION").map_or(12040, |version| version.parse().unwrap());
        Ok(())
    }

    fn cuDeviceGetCount(count: &mut c_int) {
        with_state(|_| {
            *count = 2;
            Ok(())
        })
    }

    fn cuDeviceGet(device: &mut c_int, ordinal: c_int) {
        with_state(|_| {
            *device = ordinal;
            if ordinal < 2 { Ok(()) } else { Err(INVALID_DEVICE) }
        })
    }

    fn cuDeviceGetName(name: *mut u8, length: c_int, device: c_int) {
        let text = format!("Fake {device}\0");
        if text.len() > length as usize {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the caller passes a buffer of `length` bytes, and the text is not longer.
        unsafe { name.copy_from(text.as_ptr(), text.len()) };
        Ok(())
    }

    fn cuDeviceGetAttribute(value: &mut c_int, attribute: c_uint, _: c_int) {
        *value = attribute_of_device(attribute);
        Ok(())
    }

    fn cuDevicePrimaryCtxRetain(context: &mut u64, device: c_int) {
        with_state(|state| {
            state.check_capture()?;
            state.retained[device as usize] += 1;
            *context = context_of(device as usize);
            Ok(())
        })
    }

    fn cuDevicePrimaryCtxRelease_v2(device: c_int) {
        with_state(|state| {
            state.check_capture()?;
            let count = &mut state.retained[device as usize];
            *count = count.checked_sub(1).ok_or(INVALID_CONTEXT)?;
            if *count == 0 {
                state.objects.retain(|_, (of, _)| *of != device as usize);
            }
            Ok(())
        })
    }

    fn cuDevicePrimaryCtxSetFlags_v2(_: c_int, _: c_uint) {
        Ok(())
    }

    fn cuDevicePrimaryCtxGetState(device: c_int, flags: &mut c_uint, is_active: &mut c_int) {
        with_state(|state| {
            (*flags, *is_active) = (0, c_int::from(state.retained[device as usize] > 0));
            Ok(())
        })
    }

    fn cuCtxSetCurrent(context: u64) {
        CURRENT.with_borrow_mut(|stack| {
            stack.pop();
            stack.push(context);
        });
        Ok(())
    }

    fn cuCtxGetCurrent(context: &mut u64) {
        *context = current_context();
        Ok(())
    }

    fn cuCtxPushCurrent_v2(context: u64) {
        CURRENT.with_borrow_mut(|stack| stack.push(context));
        Ok(())
    }

    fn cuCtxPopCurrent_v2(context: &mut u64) {
        match CURRENT.with_borrow_mut(Vec::pop) {
            Some(popped) => {
                *context = popped;
                Ok(())
            }
            None => Err(INVALID_CONTEXT),
        }
    }

    fn cuCtxGetDevice(device: &mut c_int) {
        with_state(|state| {
            *device = state.current()? as c_int;
            Ok(())
        })
    }

    fn cuCtxSynchronize() {
        with_state(|state| state.check_order(None))
    }

    fn cuMemGetInfo_v2(free: &mut usize, total: &mut usize) {
        (*free, *total) = (1 << 30, MEMORY_BYTES);
        Ok(())
    }

    fn cuDeviceTotalMem_v2(bytes: &mut usize, _: c_int) {
        *bytes = MEMORY_BYTES;
        Ok(())
    }
}
