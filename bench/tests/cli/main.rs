//! `bench` as a user runs it: every command in the executor, and every kind of invalid input.

mod arguments;
mod arrays;
mod axes;
#[cfg(unix)]
mod chunks;
mod device;
mod exact;
mod files;
mod ladders;
mod numpy;
mod outcomes;
mod pairs;
mod profiles;
mod reductions;
#[cfg(unix)]
mod signals;
mod transposes;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::{env, fs};

/// The program: from the bundle, or from cargo.
static BENCH: LazyLock<PathBuf> =
    LazyLock::new(|| env::var_os("WARPFOLD_BENCH").unwrap_or_else(|| env!("CARGO_BIN_EXE_bench").into()).into());

fn bench(arguments: &[&str]) -> Output {
    bench_in(Path::new("."), arguments)
}

fn bench_in(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(&*BENCH);
    command.current_dir(folder).arg("--device").arg("simt").args(arguments).output().expect("bench starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs `bench` with invalid input, and checks for exit code 2, an empty standard output, and a message with these
/// parts.
fn refused(arguments: &[&str], parts: &[&str]) {
    let output = bench(arguments);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert_eq!(stdout(&output), "", "{arguments:?}");
    assert!(!message.contains("panicked"), "{arguments:?}: {message}");
    for part in parts {
        assert!(message.contains(part), "{arguments:?}: `{part}` is not in: {message}");
    }
}

/// The element types, as the command line names them.
const DTYPES: &str = "f32,f64,f16,bf16,i8,i16,i32,i64,u8,u16,u32,u64";

/// The operators of `bench reduce`, and the element types that each takes, joined by commas.
///
/// They are taken from error messages in which the program lists what it accepts, so no operator can be missing.
fn operators() -> Vec<(String, String)> {
    let between = |message: &str, before: &str, after: &str| {
        let rest = message.split_once(before).and_then(|(_, rest)| rest.split_once(after));
        rest.unwrap_or_else(|| panic!("`{before}` and `{after}` are not in: {message}")).0.to_owned()
    };
    let unknown = stderr(&bench(&["reduce", "--op", "unknown"]));
    let types = |operator: &str| {
        let output = bench(&["reduce", "--op", operator, "--dtype", DTYPES, "--shape", "1"]);
        match output.status.code() {
            Some(0) => DTYPES.to_owned(),
            _ => between(&stderr(&output), " takes --dtype ", ", and not "),
        }
    };
    let operators = between(&unknown, "[possible values: ", "]");
    operators.split(", ").map(|operator| (operator.to_owned(), types(operator))).collect()
}

/// A temporary folder for files.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn write(&self, name: &str, contents: &[u8]) -> String {
        fs::write(self.0.path().join(name), contents).expect("a file is written");
        self.path(name)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }
}

/// An `.npy` file of version 1.0, as NumPy writes it.
fn npy(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let fortran = if fortran { "True" } else { "False" };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(data);
    file
}
