//! A fake CUDA driver for tests, with two devices in host memory. The folder `driver` has its source.
//!
//! A process loads a driver only once, and the machine may have a real one. So a test runs itself again in a child
//! process with the fake driver:
//!
//! ```no_run
//! #[test]
//! fn the_driver_has_two_devices() {
//!     fake_driver::in_child!("the_driver_has_two_devices", fake_driver::path());
//!     // In the child process, `cuda_driver::load` loads the fake driver.
//! }
//! ```
//!
//! The fake driver runs one kernel, `add`. Launches of other kernels succeed and do nothing.

use std::env;
use std::path::Path;
use std::process::Command;

/// The variable with the fake driver's version, as `cuDriverGetVersion` returns it. The default is 12040.
pub const VERSION: &str = "FAKE_DRIVER_VERSION";

/// The variable that marks a child process.
const CHILD: &str = "FAKE_DRIVER_CHILD";

/// The path of the fake driver.
pub fn path() -> &'static Path {
    Path::new(env!("FAKE_DRIVER"))
}

/// Runs the test with this name again, in a child process with the driver at this path, and returns. In the child
/// process, does nothing. The driver `none` stands for a machine without one. Environment variables of the child, as
/// pairs, may follow.
#[macro_export]
macro_rules! in_child {
    ($test:literal, $driver:expr $(, $variables:expr)?) => {
        if !$crate::is_child() {
            return $crate::run_child($test, $driver, &[$(($variables.0, $variables.1))?]);
        }
    };
}

/// Whether this is the child process of [`in_child`].
pub fn is_child() -> bool {
    env::var_os(CHILD).is_some()
}

/// Runs a test again in a child process.
///
/// # Panics
/// The test fails there, or this program has no test of this name.
pub fn run_child(test: &str, driver: &Path, variables: &[(&str, &str)]) {
    let mut child = Command::new(env::current_exe().expect("this program's path"));
    child.args([test, "--exact", "--nocapture"]).env(CHILD, test).env(cuda_driver::OVERRIDE_VARIABLE, driver);
    let output = child.envs(variables.iter().copied()).output().expect("this program starts again");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "in the child process:\n{text}\n{errors}");
}

/// What exists in the fake driver.
#[derive(Debug, PartialEq, Eq)]
pub struct Report {
    /// The number of objects.
    pub objects: u64,
    /// The number of retains of each device's primary context.
    pub retains: [u64; 2],
    /// The number of waits for the legacy default stream.
    pub waits: u64,
    /// The depth of this thread's stack of contexts.
    pub depth: u64,
}

/// What exists in the fake driver now.
pub fn report() -> Report {
    let mut report = [0; 5];
    // SAFETY: the function has this type.
    let function: extern "system" fn(&mut [u64; 5]) = unsafe { std::mem::transmute(function("fakeReport")) };
    function(&mut report);
    let [objects, first, second, waits, depth] = report;
    Report { objects, retains: [first, second], waits, depth }
}

/// This thread's state in the driver, which a library must leave as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadState {
    /// The current context, or 0.
    pub context: u64,
    /// The depth of the stack of contexts.
    pub depth: u64,
    /// The capture mode: 0 is global, 2 relaxed.
    pub capture_mode: u64,
}

/// This thread's state in the fake driver.
pub fn thread_state() -> ThreadState {
    let mut state = [0; 3];
    // SAFETY: the function has this type.
    let function: extern "system" fn(&mut [u64; 3]) = unsafe { std::mem::transmute(function("fakeThreadState")) };
    function(&mut state);
    let [context, depth, capture_mode] = state;
    ThreadState { context, depth, capture_mode }
}

/// Begins or ends the capture of a stream by another library, in the global mode. Meanwhile the fake driver refuses
/// calls that such a capture does not survive, unless the thread's mode is relaxed. Returns how many calls it has
/// refused, in all captures.
pub fn capture(is_captured: bool) -> u64 {
    // SAFETY: the function has this type.
    let function: extern "system" fn(u64) -> u64 = unsafe { std::mem::transmute(function("fakeCapture")) };
    function(is_captured.into())
}

/// Lets the calls of a function of CUDA fail for want of memory, after a number of calls that do not, instead of those
/// of another one.
pub fn fail(name: &str, before: u64) {
    // SAFETY: the function has this type, and reads the name's bytes.
    unsafe {
        let function: unsafe extern "system" fn(*const u8, usize, u64) = std::mem::transmute(function("fakeFail"));
        function(name.as_ptr(), name.len(), before);
    }
}

/// A call of the fake driver, with the state of its thread when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The function's name.
    pub function: &'static str,
    /// The current context, or 0.
    pub context: u64,
    /// The stream that the function was called for, if it has one. 0 is the legacy default stream.
    pub stream: Option<u64>,
    /// The event that was recorded or waited for.
    pub event: Option<u64>,
    /// Whether the thread's capture mode was relaxed.
    pub is_relaxed: bool,
    /// The result code.
    pub code: u32,
}

/// The calls of all threads since the last time that this function was called, in the order in which they ended.
pub fn take_calls() -> Vec<Call> {
    let mut length = 0;
    // SAFETY: the function has this type.
    let function: extern "system" fn(&mut usize) -> *const u8 =
        unsafe { std::mem::transmute(function("fakeTakeCalls")) };
    let text = function(&mut length);
    // SAFETY: the function returns the address of a string that is never freed, and has written its length.
    let text: &'static str = unsafe { std::str::from_utf8_unchecked(std::slice::from_raw_parts(text, length)) };
    let call = |line: &'static str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [function, context, stream, event, mode, code] = words[..] else { panic!("`{line}` is not a call") };
        let number = |word: &str| word.parse::<u64>().unwrap_or_else(|error| panic!("`{line}`: {error}"));
        let [stream, event] = [stream, event].map(|handle| (handle != "-").then(|| number(handle)));
        Call { function, context: number(context), stream, event, is_relaxed: mode == "2", code: number(code) as u32 }
    };
    text.lines().map(call).collect()
}

/// A function of the fake driver that CUDA does not have.
fn function(name: &str) -> *mut () {
    let driver = cuda_driver::load().expect("the fake driver loads");
    driver.function(name).unwrap_or_else(|| panic!("`{}` has no `{name}`", driver.path().display()))
}
