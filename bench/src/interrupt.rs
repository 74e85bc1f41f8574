//! Handles Ctrl-C, and SIGTERM and SIGHUP, which `timeout`, `kill` and a closed terminal send.
//!
//! Until the program has its first result, the first signal ends it at once: it may be waiting for input that never
//! comes, or copying for long, and nothing is lost. After that, the first signal ends the run after the current kernel,
//! and the results so far are printed. While they are printed, to a reader that may not read, a signal allows a second
//! for that. A second signal, at least a second after the first, ends the program at once. (`timeout` sends two at
//! once, to the program and to its process group.)
//!
//! A file that is being written is a temporary one, which is removed when the program ends.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

/// Signals within this time after the first are ignored. Printing that goes on is ended after this time.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// The exit code of a program that was ended by Ctrl-C, by convention of shells.
pub const EXIT_CODE: u8 = 130;

/// What the program does, as far as a signal is concerned.
#[derive(Debug)]
struct State {
    /// The time of the first signal.
    interrupted: Option<Instant>,
    /// Whether there is a result to print, or a part of one is already printed.
    has_results: bool,
    is_printing: bool,
    /// The temporary files that are being written.
    temporaries: Vec<PathBuf>,
}

static STATE: Mutex<State> =
    Mutex::new(State { interrupted: None, has_results: false, is_printing: false, temporaries: Vec::new() });

/// Notified when printing has ended.
static PRINTED: Condvar = Condvar::new();

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Catches the signals from now on.
pub fn catch() {
    // If the signals cannot be caught, they end the program as usual.
    let _ = ctrlc::set_handler(|| {
        let mut state = state();
        match state.interrupted {
            None => {
                state.interrupted = Some(Instant::now());
                if !state.has_results {
                    end(state, "interrupted: there was no result yet");
                }
                if state.is_printing {
                    // Not on this thread, which takes the second signal.
                    thread::spawn(end_if_blocked);
                } else {
                    eprintln!("stopping after this kernel; press Ctrl-C again to stop at once");
                }
            }
            Some(first) if first.elapsed() < MIN_INTERVAL => {}
            Some(_) => end(state, "interrupted again: stopped at once"),
        }
    });
}

/// Ends the program, unless the results are printed in time.
fn end_if_blocked() {
    let waited = PRINTED.wait_timeout_while(state(), MIN_INTERVAL, |state| state.is_printing);
    let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
    if state.is_printing {
        end(state, "interrupted: standard output was not read");
    }
}

/// Ends the program. No other thread can begin to print or to write a file, because that takes the lock.
fn end(state: MutexGuard<'_, State>, why: &str) -> ! {
    for file in &state.temporaries {
        let _ = std::fs::remove_file(file);
    }
    eprintln!("error: {why}");
    process::exit(EXIT_CODE.into())
}

/// Whether the run should end.
pub fn is_pending() -> bool {
    state().interrupted.is_some()
}

/// Notes that there is a result, which is printed even after a signal.
pub fn keep_results() {
    state().has_results = true;
}

/// The program prints until this value is dropped.
pub struct Printing(());

/// Notes that the program prints results.
pub fn printing() -> Printing {
    let mut state = state();
    (state.has_results, state.is_printing) = (true, true);
    Printing(())
}

impl Drop for Printing {
    fn drop(&mut self) {
        state().is_printing = false;
        PRINTED.notify_all();
    }
}

/// A temporary file, which is removed if the program ends before this value is dropped.
pub struct Temporary {
    path: PathBuf,
    file: Option<NamedTempFile>,
}

impl Temporary {
    /// Creates the file. No signal ends the program between its creation and this function's end.
    pub fn create(create: impl FnOnce() -> io::Result<NamedTempFile>) -> io::Result<Self> {
        let mut state = state();
        let file = create()?;
        let path = file.path().to_owned();
        state.temporaries.push(path.clone());
        Ok(Self { path, file: Some(file) })
    }

    /// The file.
    pub fn as_file_mut(&mut self) -> &mut File {
        self.file.as_mut().expect("it is there until it is renamed").as_file_mut()
    }

    /// Renames the file by `rename`.
    pub fn rename<R>(mut self, rename: impl FnOnce(NamedTempFile) -> R) -> R {
        rename(self.file.take().expect("it is renamed once"))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // The file is removed first, so that a signal in between finds nothing to remove.
        self.file = None;
        state().temporaries.retain(|path| *path != self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_file_is_known_while_it_exists() {
        let folder = tempfile::tempdir().unwrap();
        let create = || Temporary::create(|| tempfile::Builder::new().tempfile_in(folder.path())).unwrap();
        let is_known = || state().temporaries.iter().any(|file| file.starts_with(folder.path()));
        let temporary = create();
        assert!(is_known());
        drop(temporary);
        assert!(!is_known());
        let renamed = create().rename(|file| {
            assert!(is_known());
            file.persist(folder.path().join("a"))
        });
        assert!(renamed.is_ok() && !is_known() && folder.path().join("a").exists());
        assert!(Temporary::create(|| Err(io::ErrorKind::NotFound.into())).is_err());
    }
}
