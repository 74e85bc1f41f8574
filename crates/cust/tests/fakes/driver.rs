//! A driver of two devices in the memory of the host, for the test `fake_driver`. It is stricter than a real one: an
//! object can only be used while its own context is current.
//!
//! It lacks `cuOccupancyAvailableDynamicSMemPerBlock`.

#![allow(clippy::missing_safety_doc, clippy::undocumented_unsafe_blocks)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::Mutex;

const INVALID_VALUE: u32 = 1;
const NOT_INITIALIZED: u32 = 3;
const INVALID_DEVICE: u32 = 101;
const INVALID_CONTEXT: u32 = 201;
const INVALID_PTX: u32 = 218;
const UNSUPPORTED_PTX_VERSION: u32 = 222;
const INVALID_HANDLE: u32 = 400;
const NOT_FOUND: u32 = 500;
const CONTEXT_IS_DESTROYED: u32 = 709;
const CAPTURE_UNMATCHED: u32 = 903;

type Code = Result<(), u32>;

/// A launch: the kernel's name and its arguments, each as 8 bytes.
type Launch = (String, Vec<u64>);

enum Object {
    Module,
    Function { name: String, module: u64 },
    Stream { captured: Option<Vec<Launch>>, flags: u32 },
    Event { is_recorded: bool },
    Graph(Vec<Launch>),
    Executable(Vec<Launch>),
    /// Memory, and whether it was allocated in the order of a stream.
    Memory(Box<[u128]>, bool),
}

struct State {
    is_initialized: bool,
    /// How often each device's primary context is retained.
    retained: [u64; 2],
    /// Each with the device that it is on.
    objects: BTreeMap<u64, (usize, Object)>,
    last_handle: u64,
    /// How often the legacy default stream was waited for.
    waits: u64,
}

static STATE: Mutex<State> =
    Mutex::new(State { is_initialized: false, retained: [0; 2], objects: BTreeMap::new(), last_handle: 1, waits: 0 });

thread_local! {
    static CURRENT: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// The handle of a device's primary context.
fn context_of(device: usize) -> u64 {
    0xc0_0000 + device as u64
}

fn device_of(context: u64) -> usize {
    (context - 0xc0_0000) as usize
}

impl State {
    /// The device of the current context.
    fn current(&self) -> Result<usize, u32> {
        let context = CURRENT.with_borrow(|stack| stack.last().copied().unwrap_or(0));
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

    /// Checks that `bytes` bytes lie in one allocation.
    fn check(&self, address: u64, bytes: usize) -> Code {
        let (begin, (_, object)) = self.objects.range(..=address).next_back().ok_or(INVALID_VALUE)?;
        match object {
            Object::Memory(memory, _) if address + bytes as u64 <= begin + size_of_val(&**memory) as u64 => Ok(()),
            _ => Err(INVALID_VALUE),
        }
    }

    fn run(&self, (name, arguments): &Launch) -> Code {
        let word = |address: u64, i: u64| std::ptr::with_exposed_provenance_mut::<u32>((address + 4 * i) as usize);
        match (name.as_str(), arguments.as_slice()) {
            // Sums of two slices.
            ("add", &[a, length, b, other_length, out]) => {
                for (address, length) in [(a, length), (b, other_length), (out, length)] {
                    self.check(address, 4 * length as usize)?;
                }
                for i in 0..length {
                    unsafe { *word(out, i) = *word(a, i) + *word(b, i) };
                }
                Ok(())
            }
            _ => Err(INVALID_VALUE),
        }
    }
}

fn with(work: impl FnOnce(&mut State) -> Code) -> u32 {
    let mut state = STATE.lock().unwrap();
    if !state.is_initialized {
        return NOT_INITIALIZED;
    }
    work(&mut state).err().unwrap_or(0)
}

/// Objects that exist, retains of each device's primary context, waits for the legacy default stream, depth of this
/// thread's stack of contexts.
#[unsafe(no_mangle)]
extern "system" fn fakeReport(report: &mut [u64; 5]) {
    let state = STATE.lock().unwrap();
    let objects = state.objects.values().filter(|(_, object)| !matches!(object, Object::Function { .. })).count();
    let depth = CURRENT.with_borrow(|stack| stack.iter().filter(|context| **context != 0).count());
    *report = [objects as u64, state.retained[0], state.retained[1], state.waits, depth as u64];
}

#[unsafe(no_mangle)]
extern "system" fn cuInit(flags: c_uint) -> u32 {
    STATE.lock().unwrap().is_initialized = flags == 0;
    if flags == 0 { 0 } else { INVALID_VALUE }
}

#[unsafe(no_mangle)]
extern "system" fn cuDriverGetVersion(version: &mut c_int) -> u32 {
    *version = 12040;
    0
}

#[unsafe(no_mangle)]
extern "system" fn cuDeviceGetCount(count: &mut c_int) -> u32 {
    with(|_| {
        *count = 2;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuDeviceGet(device: &mut c_int, ordinal: c_int) -> u32 {
    with(|_| {
        *device = ordinal;
        if ordinal < 2 { Ok(()) } else { Err(INVALID_DEVICE) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuDeviceGetName(name: *mut u8, length: c_int, device: c_int) -> u32 {
    let text = format!("Fake {device}\0");
    if text.len() > length as usize {
        return INVALID_VALUE;
    }
    unsafe { name.copy_from(text.as_ptr(), text.len()) };
    0
}

#[unsafe(no_mangle)]
extern "system" fn cuDeviceGetAttribute(value: &mut c_int, attribute: c_uint, _: c_int) -> u32 {
    *value = attribute as c_int * 100;
    0
}

#[unsafe(no_mangle)]
extern "system" fn cuDevicePrimaryCtxRetain(context: &mut u64, device: c_int) -> u32 {
    with(|state| {
        state.retained[device as usize] += 1;
        *context = context_of(device as usize);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> u32 {
    with(|state| {
        let count = &mut state.retained[device as usize];
        *count = count.checked_sub(1).ok_or(INVALID_CONTEXT)?;
        if *count == 0 {
            state.objects.retain(|_, (of, _)| *of != device as usize);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuDevicePrimaryCtxSetFlags_v2(_: c_int, _: c_uint) -> u32 {
    0
}

#[unsafe(no_mangle)]
extern "system" fn cuDevicePrimaryCtxGetState(device: c_int, flags: &mut c_uint, is_active: &mut c_int) -> u32 {
    with(|state| {
        (*flags, *is_active) = (0, c_int::from(state.retained[device as usize] > 0));
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuCtxSetCurrent(context: u64) -> u32 {
    CURRENT.with_borrow_mut(|stack| {
        stack.pop();
        stack.push(context);
    });
    0
}

#[unsafe(no_mangle)]
extern "system" fn cuCtxGetCurrent(context: &mut u64) -> u32 {
    *context = CURRENT.with_borrow(|stack| stack.last().copied().unwrap_or(0));
    0
}

#[unsafe(no_mangle)]
extern "system" fn cuCtxPushCurrent_v2(context: u64) -> u32 {
    CURRENT.with_borrow_mut(|stack| stack.push(context));
    0
}

#[unsafe(no_mangle)]
extern "system" fn cuCtxPopCurrent_v2(context: &mut u64) -> u32 {
    match CURRENT.with_borrow_mut(Vec::pop) {
        Some(popped) => {
            *context = popped;
            0
        }
        None => INVALID_CONTEXT,
    }
}

#[unsafe(no_mangle)]
extern "system" fn cuCtxGetDevice(device: &mut c_int) -> u32 {
    with(|state| {
        *device = state.current()? as c_int;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuCtxSynchronize() -> u32 {
    with(|state| state.current().map(|_| ()))
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuModuleLoadDataEx(
    module: &mut u64,
    image: *const c_char,
    option_count: c_uint,
    options: *const c_uint,
    values: *const *mut c_void,
) -> u32 {
    let ptx = unsafe { CStr::from_ptr(image) }.to_str().unwrap();
    let pairs = (0..option_count as usize).map(|i| unsafe { (*options.add(i), *values.add(i)) });
    let pairs: BTreeMap<u32, *mut c_void> = pairs.collect();
    with(|state| {
        if ptx.contains(".version 99") {
            return Err(UNSUPPORTED_PTX_VERSION);
        }
        if ptx.contains("nonsense") {
            // The buffer for the log and its size.
            if let (Some(buffer), Some(size)) = (pairs.get(&5), pairs.get(&6)) {
                let text = b"line 2: nonsense\0";
                assert!(text.len() <= size.addr());
                unsafe { buffer.cast::<u8>().copy_from(text.as_ptr(), text.len()) };
            }
            return Err(INVALID_PTX);
        }
        *module = state.add(Object::Module)?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuModuleUnload(module: u64) -> u32 {
    with(|state| {
        state.remove(module)?;
        let is_other = |object: &Object| !matches!(object, Object::Function { module: of, .. } if *of == module);
        state.objects.retain(|_, (_, object)| is_other(object));
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuModuleGetFunction(function: &mut u64, module: u64, name: *const c_char) -> u32 {
    let name = unsafe { CStr::from_ptr(name) }.to_str().unwrap().to_owned();
    with(|state| {
        state.get(module)?;
        if name != "add" {
            return Err(NOT_FOUND);
        }
        *function = state.add(Object::Function { name, module })?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuFuncGetAttribute(value: &mut c_int, attribute: c_uint, function: u64) -> u32 {
    with(|state| {
        state.get(function)?;
        *value = attribute as c_int * 10;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuOccupancyMaxPotentialBlockSize(
    grid: &mut c_int,
    block: &mut c_int,
    function: u64,
    _: usize,
    _: usize,
    limit: c_int,
) -> u32 {
    with(|state| {
        state.get(function)?;
        (*grid, *block) = (132, if limit == 0 { 1024 } else { limit });
        Ok(())
    })
}

#[unsafe(no_mangle)]
#[rustfmt::skip]
unsafe extern "system" fn cuLaunchKernel(
    function: u64,
    grid_x: c_uint, _: c_uint, _: c_uint,
    block_x: c_uint, _: c_uint, _: c_uint,
    _: c_uint,
    stream: u64,
    parameters: *const *const u64,
    _: *mut *mut c_void,
) -> u32 {
    with(|state| {
        if grid_x == 0 || block_x == 0 || block_x > 1024 {
            return Err(INVALID_VALUE);
        }
        let Object::Function { name, .. } = state.get(function)? else { return Err(INVALID_HANDLE) };
        let launch = (name.clone(), (0..5).map(|i| unsafe { **parameters.add(i) }).collect());
        match state.get(stream)? {
            Object::Stream { captured: Some(captured), .. } => captured.push(launch),
            Object::Stream { .. } => return state.run(&launch),
            _ => return Err(INVALID_HANDLE),
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuStreamCreateWithPriority(stream: &mut u64, flags: c_uint, _: c_int) -> u32 {
    with(|state| {
        *stream = state.add(Object::Stream { captured: None, flags })?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuStreamGetFlags(stream: u64, flags: &mut c_uint) -> u32 {
    with(|state| {
        let Object::Stream { flags: of_stream, .. } = state.get(stream)? else { return Err(INVALID_HANDLE) };
        *flags = *of_stream;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuStreamDestroy_v2(stream: u64) -> u32 {
    with(|state| state.remove(stream))
}

#[unsafe(no_mangle)]
extern "system" fn cuStreamSynchronize(stream: u64) -> u32 {
    with(|state| {
        if stream == 0 {
            state.waits += 1;
            return state.current().map(|_| ());
        }
        state.get(stream).map(|_| ())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuStreamWaitEvent(stream: u64, event: u64, _: c_uint) -> u32 {
    with(|state| {
        state.get(stream)?;
        state.get(event).map(|_| ())
    })
}

/// Calls it at once, on another thread, as a driver does.
#[unsafe(no_mangle)]
extern "system" fn cuLaunchHostFunc(stream: u64, function: unsafe extern "system" fn(*mut c_void), data: usize) -> u32 {
    let code = with(|state| state.get(stream).map(|_| ()));
    if code == 0 {
        let call = move || unsafe { function(std::ptr::with_exposed_provenance_mut(data)) };
        std::thread::spawn(call).join().unwrap();
    }
    code
}

#[unsafe(no_mangle)]
extern "system" fn cuStreamBeginCapture_v2(stream: u64, _: c_uint) -> u32 {
    with(|state| {
        let Object::Stream { captured, .. } = state.get(stream)? else { return Err(INVALID_HANDLE) };
        *captured = Some(Vec::new());
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuStreamEndCapture(stream: u64, graph: &mut u64) -> u32 {
    with(|state| {
        let Object::Stream { captured, .. } = state.get(stream)? else { return Err(INVALID_HANDLE) };
        let launches = captured.take().ok_or(CAPTURE_UNMATCHED)?;
        *graph = state.add(Object::Graph(launches))?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuGraphGetNodes(graph: u64, _: *mut *mut c_void, count: &mut usize) -> u32 {
    with(|state| {
        let Object::Graph(launches) = state.get(graph)? else { return Err(INVALID_HANDLE) };
        *count = launches.len();
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuGraphInstantiateWithFlags(executable: &mut u64, graph: u64, _: u64) -> u32 {
    with(|state| {
        let Object::Graph(launches) = state.get(graph)? else { return Err(INVALID_HANDLE) };
        let launches = launches.clone();
        *executable = state.add(Object::Executable(launches))?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuGraphLaunch(executable: u64, stream: u64) -> u32 {
    with(|state| {
        state.get(stream)?;
        let Object::Executable(launches) = state.get(executable)? else { return Err(INVALID_HANDLE) };
        launches.clone().iter().try_for_each(|launch| state.run(launch))
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuGraphDestroy(graph: u64) -> u32 {
    with(|state| state.remove(graph))
}

#[unsafe(no_mangle)]
extern "system" fn cuGraphExecDestroy(executable: u64) -> u32 {
    with(|state| state.remove(executable))
}

#[unsafe(no_mangle)]
extern "system" fn cuEventCreate(event: &mut u64, _: c_uint) -> u32 {
    with(|state| {
        *event = state.add(Object::Event { is_recorded: false })?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuEventRecord(event: u64, stream: u64) -> u32 {
    with(|state| {
        state.get(stream)?;
        let Object::Event { is_recorded } = state.get(event)? else { return Err(INVALID_HANDLE) };
        *is_recorded = true;
        Ok(())
    })
}

/// Not ready until it is recorded, so that a test sees both.
#[unsafe(no_mangle)]
extern "system" fn cuEventQuery(event: u64) -> u32 {
    with(|state| match state.get(event)? {
        Object::Event { is_recorded: true } => Ok(()),
        _ => Err(600),
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuEventSynchronize(event: u64) -> u32 {
    with(|state| state.get(event).map(|_| ()))
}

#[unsafe(no_mangle)]
extern "system" fn cuEventElapsedTime(milliseconds: &mut f32, start: u64, end: u64) -> u32 {
    with(|state| {
        state.get(start)?;
        state.get(end)?;
        *milliseconds = 1.5;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuEventDestroy_v2(event: u64) -> u32 {
    with(|state| state.remove(event))
}

fn allocate(bytes: usize, is_ordered: bool) -> Result<u64, u32> {
    let mut address = 0;
    let code = with(|state| {
        // Bits that no test expects.
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
    match with(|state| state.get(stream).map(|_| ())) {
        0 => write(address, allocate(bytes, true)),
        code => code,
    }
}

#[unsafe(no_mangle)]
extern "system" fn cuMemFree_v2(address: u64) -> u32 {
    with(|state| state.remove(address))
}

#[unsafe(no_mangle)]
extern "system" fn cuMemFreeHost(address: u64) -> u32 {
    with(|state| state.remove(address))
}

#[unsafe(no_mangle)]
extern "system" fn cuMemFreeAsync(address: u64, stream: u64) -> u32 {
    with(|state| {
        state.get(stream)?;
        match state.get(address)? {
            Object::Memory(_, true) => state.remove(address),
            _ => Err(INVALID_VALUE),
        }
    })
}

/// Copies, once the device's side is checked.
unsafe fn copy(to: u64, from: u64, bytes: usize, devices: &[u64]) -> u32 {
    with(|state| {
        state.current()?;
        devices.iter().try_for_each(|address| state.check(*address, bytes))?;
        let to = std::ptr::with_exposed_provenance_mut::<u8>(to as usize);
        unsafe { to.copy_from(std::ptr::with_exposed_provenance(from as usize), bytes) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuMemcpyHtoD_v2(to: u64, from: u64, bytes: usize) -> u32 {
    unsafe { copy(to, from, bytes, &[to]) }
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuMemcpyDtoH_v2(to: u64, from: u64, bytes: usize) -> u32 {
    unsafe { copy(to, from, bytes, &[from]) }
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuMemcpyDtoD_v2(to: u64, from: u64, bytes: usize) -> u32 {
    unsafe { copy(to, from, bytes, &[to, from]) }
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuMemcpyHtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) -> u32 {
    match with(|state| state.get(stream).map(|_| ())) {
        0 => unsafe { copy(to, from, bytes, &[to]) },
        code => code,
    }
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuMemcpyDtoHAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) -> u32 {
    match with(|state| state.get(stream).map(|_| ())) {
        0 => unsafe { copy(to, from, bytes, &[from]) },
        code => code,
    }
}

unsafe fn set<W: Copy>(to: u64, value: W, count: usize) -> u32 {
    with(|state| {
        state.current()?;
        state.check(to, count * size_of::<W>())?;
        for i in 0..count {
            let word = std::ptr::with_exposed_provenance_mut::<W>(to as usize + i * size_of::<W>());
            unsafe { *word = value };
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuMemsetD8_v2(to: u64, value: u8, count: usize) -> u32 {
    unsafe { set(to, value, count) }
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuMemsetD32_v2(to: u64, value: u32, count: usize) -> u32 {
    unsafe { set(to, value, count) }
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuMemsetD8Async(to: u64, value: u8, count: usize, stream: u64) -> u32 {
    match with(|state| state.get(stream).map(|_| ())) {
        0 => unsafe { set(to, value, count) },
        code => code,
    }
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) -> u32 {
    match with(|state| state.get(stream).map(|_| ())) {
        0 => unsafe { copy(to, from, bytes, &[to, from]) },
        code => code,
    }
}

#[unsafe(no_mangle)]
extern "system" fn cuMemGetInfo_v2(free: &mut usize, total: &mut usize) -> u32 {
    (*free, *total) = (1 << 30, 1 << 31);
    0
}

#[unsafe(no_mangle)]
extern "system" fn cuDeviceTotalMem_v2(bytes: &mut usize, _: c_int) -> u32 {
    *bytes = 1 << 31;
    0
}
