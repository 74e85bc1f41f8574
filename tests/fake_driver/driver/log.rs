//! Every call is logged, with the state of its thread when it began: `fakeTakeCalls` returns the log.

use std::fmt::Write;
use std::sync::Mutex;

use super::{CAPTURE_MODE, Code, OUT_OF_MEMORY, current_context};

/// The calls that have ended: a line for each.
static LOG: Mutex<String> = Mutex::new(String::new());

/// A function whose calls fail for want of memory, after a number of calls that do not.
static FAILING: Mutex<Option<(String, u64)>> = Mutex::new(None);

/// Whether this call of the function is to fail.
fn fails(function: &str) -> bool {
    let mut failing = FAILING.lock().unwrap();
    let Some((_, before)) = failing.as_mut().filter(|(name, _)| name == function) else { return false };
    let fails = *before == 0;
    *before = before.saturating_sub(1);
    fails
}

/// Lets the calls of a function fail for want of memory, after a number of calls that do not, instead of those of
/// another one. Its name is `length` bytes of UTF-8.
#[unsafe(no_mangle)]
unsafe extern "system" fn fakeFail(name: *const u8, length: usize, before: u64) {
    // SAFETY: as promised by the caller.
    let name = unsafe { std::slice::from_raw_parts(name, length) };
    *FAILING.lock().unwrap() = Some((String::from_utf8_lossy(name).into_owned(), before));
}

/// Makes a call, logs it, and returns its result as CUDA does.
pub fn call(function: &str, stream: Option<u64>, event: Option<u64>, work: impl FnOnce() -> Code) -> u32 {
    let (context, capture_mode) = (current_context(), CAPTURE_MODE.get());
    let result = if fails(function) { Err(OUT_OF_MEMORY) } else { work() };
    let code = result.err().unwrap_or(0);
    let [stream, event] = [stream, event].map(|handle| handle.map_or("-".to_owned(), |handle| handle.to_string()));
    writeln!(LOG.lock().unwrap(), "{function} {context} {stream} {event} {capture_mode} {code}").unwrap();
    code
}

/// Exports functions of CUDA, each of which logs its calls. `in stream` after the parameters says which stream a call
/// is for: a parameter, or a field of one. `with event` says which event.
macro_rules! functions {
    ($(
        $(#[$attribute:meta])*
        fn $name:ident($($argument:tt: $type:ty),* $(,)?) $(in $stream:tt$(.$field:ident)?)? $(with $event:ident)?
        $body:block
    )*) => {$(
        $(#[$attribute])*
        #[unsafe(no_mangle)]
        unsafe extern "system" fn $name($($argument: $type),*) -> u32 {
            let stream = None$(.or(Some($stream$(.$field)?)))?;
            let event = None$(.or(Some($event)))?;
            $crate::log::call(stringify!($name), stream, event, move || $body)
        }
    )*};
}

pub(crate) use functions;

/// Takes the log: the address of a text, which is never freed. Writes its length.
#[unsafe(no_mangle)]
extern "system" fn fakeTakeCalls(length: &mut usize) -> *const u8 {
    let text = std::mem::take(&mut *LOG.lock().unwrap()).leak();
    *length = text.len();
    text.as_ptr()
}
