//! What another library in the process could notice of a call of warpfold.

use std::collections::BTreeSet;

use fake_driver::{Call, ThreadState, capture, take_calls, thread_state};
use warpfold::Gpu;

/// Functions that need no current context. All others are called only while the device's context is current.
const WITHOUT_CONTEXT: [&str; 12] = [
    "cuCtxGetCurrent",
    "cuCtxPopCurrent_v2",
    "cuCtxPushCurrent_v2",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDeviceTotalMem_v2",
    "cuInit",
    "cuThreadExchangeStreamCaptureMode",
];

/// Functions that a capture in the global mode may not survive: those that allocate, free, load, unload, destroy or
/// wait. They are called only in the relaxed mode.
const DISTURBING: [&str; 14] = [
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuEventDestroy_v2",
    "cuEventSynchronize",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuMemAllocHost_v2",
    "cuMemAlloc_v2",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuModuleLoadDataEx",
    "cuModuleUnload",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
];

/// The functions that launch a kernel.
const LAUNCHES: [&str; 2] = ["cuLaunchKernel", "cuLaunchKernelEx"];

/// The other functions.
const OTHERS: [&str; 19] = [
    "cuEventCreate",
    "cuEventElapsedTime",
    "cuEventRecord",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
    "cuMemGetInfo_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemsetD8Async",
    "cuModuleGetFunction",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    "cuStreamBeginCapture_v2",
    "cuStreamCreateWithPriority",
    "cuStreamEndCapture",
    "cuStreamIsCapturing",
    "cuStreamWaitEvent",
];

/// The stream of a handle, or of this thread's recording on it.
pub fn stream_of(gpu: &Gpu) -> u64 {
    gpu.cuda_stream().expect("a CUDA device").addr() as u64
}

/// What a call may do.
pub struct Allowed {
    /// The stream of its work.
    pub stream: u64,
    /// A stream that it may wait for, too.
    pub waits_for: Option<u64>,
    /// Whether it may use one more stream, its own.
    pub has_copies: bool,
    /// An error of the driver that it reports.
    pub code: Option<u32>,
}

impl From<u64> for Allowed {
    fn from(stream: u64) -> Self {
        Self { stream, waits_for: None, has_copies: false, code: None }
    }
}

/// Another library in this process, which verifies the state of its thread and the log of the driver after each call of
/// warpfold on device 0.
pub struct Witness {
    thread: ThreadState,
    /// The context of device 0.
    context: u64,
    /// Whether the library captures a stream.
    is_captured: bool,
    /// The function that must be among those that launch kernels.
    launch: &'static str,
    functions: BTreeSet<&'static str>,
    calls: BTreeSet<&'static str>,
}

impl Witness {
    /// Begins, and with `is_captured` begins a capture.
    pub fn new(context: u64, is_captured: bool, launch: &'static str) -> Self {
        assert_eq!(capture(is_captured), 0, "captures before this one have survived");
        take_calls();
        let thread = thread_state();
        assert_eq!(thread.capture_mode, 0, "no call has left another mode than the global one");
        let (functions, calls) = (BTreeSet::new(), BTreeSet::new());
        Self { thread, context, is_captured, launch, functions, calls }
    }

    /// Verifies a call of warpfold.
    pub fn verify(&mut self, call: &'static str, allowed: impl Into<Allowed>) {
        let Allowed { stream, waits_for, has_copies, code: allowed_code } = allowed.into();
        let mut of_copies = None;
        self.calls.insert(call);
        let lost = capture(self.is_captured);
        for made in take_calls() {
            let Call { function, context, stream: of_call, is_relaxed, code, .. } = made;
            let what = format!("{call}: {made:?}");
            assert!(code == 0 || Some(code) == allowed_code, "{what} fails");
            assert!(is_known(function), "{what}: add the function to a list in witness.rs");
            if !WITHOUT_CONTEXT.contains(&function) {
                assert_eq!(context, self.context, "{what}: the current context is the device's");
            }
            if DISTURBING.contains(&function) {
                assert!(is_relaxed, "{what}: a capture of another library survives");
            }
            let is_wait = ["cuStreamSynchronize", "cuEventRecord", "cuStreamIsCapturing"].contains(&function);
            let is_allowed_wait = is_wait && of_call == waits_for;
            if let Some(of_call) = of_call.filter(|_| !is_allowed_wait) {
                let is_other = has_copies && of_call != stream;
                let expected = if is_other { *of_copies.get_or_insert(of_call) } else { stream };
                assert_eq!(of_call, expected, "{what}: the stream is the handle's");
            }
            self.functions.insert(function);
        }
        assert_eq!(lost, 0, "{call}: a capture of another library survives");
        assert_eq!(thread_state(), self.thread, "{call}: the thread's state is the one before");
    }

    /// Verifies that each function in the lists has been called, and each of these functions of warpfold.
    pub fn finish(&self, of_warpfold: &[String]) {
        let lists = WITHOUT_CONTEXT.into_iter().chain(DISTURBING).chain(OTHERS).chain([self.launch]);
        let missing: Vec<_> = lists.filter(|function| !self.functions.contains(function)).collect();
        assert!(missing.is_empty(), "no call has reached {missing:?}: remove them from the lists in witness.rs");
        let missing: Vec<_> = of_warpfold.iter().filter(|function| !self.calls.contains(function.as_str())).collect();
        assert!(missing.is_empty(), "add {missing:?} to calls.rs");
    }
}

/// Whether a list has the function.
fn is_known(function: &str) -> bool {
    [&WITHOUT_CONTEXT[..], &DISTURBING, &LAUNCHES, &OTHERS].iter().any(|list| list.contains(&function))
}
