//! One run of the program, and what it reports.

use std::env;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Context, value};
use crate::{BENCH, npy};

/// How a run shows its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    Json,
    Csv,
    Table,
}

impl Shown {
    /// By the options of a run, which has `--format json` unless they say otherwise.
    fn by(options: &[&str]) -> Self {
        match options {
            options if options.contains(&"format") => Self::Csv,
            options if options.contains(&"wide") => Self::Table,
            _ => Self::Json,
        }
    }
}

/// A run of the program.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    pub has_plot: bool,
    pub shown: Shown,
    output: Option<Vec<u8>>,
}

impl Run {
    /// Whether --output has the results. A file that --force replaces has other contents before.
    pub fn has_results(&self) -> bool {
        self.output.as_ref().is_some_and(|bytes| bytes.starts_with(b"\x93NUMPY"))
    }

    /// The report without what differs between two runs: times, and sums of numbers that no seed determines.
    pub fn report(&self, context: &Context) -> Value {
        let report = match self.shown {
            Shown::Json => serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}")),
            Shown::Csv => rows_of_csv(&self.stdout),
            Shown::Table => Value::String(without_times(&self.stdout)),
        };
        stripped(report, matches!(context.command, [] | ["ladder", ..]))
    }
}

fn stripped(value: Value, is_random: bool) -> Value {
    match value {
        Value::Object(fields) => {
            let differs = |name: &str| {
                let is_time = ["_us", "_ms", "gigabytes_per_second"].iter().any(|end| name.ends_with(end));
                is_time || is_random && name == "result"
            };
            let same = fields.into_iter().filter(|(name, _)| !differs(name));
            same.map(|(name, value)| (name, stripped(value, is_random))).collect()
        }
        Value::Array(values) => values.into_iter().map(|value| stripped(value, is_random)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

/// The rows of CSV, each as an object whose fields are named by the header.
fn rows_of_csv(text: &str) -> Value {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers().unwrap_or_else(|error| panic!("{error}: {text}")).clone();
    let object = |row: csv::StringRecord| {
        let fields = names.iter().zip(row.iter());
        fields.map(|(name, field)| (name.to_owned(), Value::String(field.to_owned()))).collect::<Value>()
    };
    reader.records().map(|row| object(row.unwrap_or_else(|error| panic!("{error}: {text}")))).collect()
}

/// Tables with the times and bandwidths left out. What depends on their widths goes too: blanks and lines.
fn without_times(text: &str) -> String {
    let line = |line: &str| {
        let mut words: Vec<&str> = Vec::new();
        let mut is_bandwidth = false;
        for word in line.split_whitespace() {
            if is_bandwidth {
                is_bandwidth = false;
            } else if ["ns", "us", "ms", "s"].contains(&word) {
                // The number before the unit, and the bandwidth after it.
                words.pop();
                is_bandwidth = true;
            } else if !word.starts_with(['┌', '└', '╞']) {
                words.push(word);
            }
        }
        words.join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The folder of the inputs, the stand-in for a profiler, and a folder for each run.
pub struct Place {
    pub profiler: Option<PathBuf>,
    folder: tempfile::TempDir,
    runs: AtomicUsize,
}

impl Place {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, file: Vec<u8>| fs::write(folder.path().join(name), file).expect("a file");
        let singles = (0..150_u8).flat_map(|i| f32::from(i).to_le_bytes()).collect::<Vec<_>>();
        let doubles = (9..159_u8).flat_map(|i| f64::from(i).to_le_bytes()).collect::<Vec<_>>();
        write("a.npy", npy("<f4", false, "(10, 15)", &singles));
        // The report of a transpose shows only the type and the extents of a file.
        write("b.npy", npy("<f8", false, "(5, 30)", &doubles));
        let tool = folder.path().join("tool.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fakes/nvtx_tool.rs");
        let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let built =
            Command::new(rustc).args(["--edition", "2024", "--crate-type", "cdylib", source, "-o"]).arg(&tool).status();
        let is_built = built.is_ok_and(|status| status.success());
        // A bundle's tests run on machines without a compiler.
        assert!(is_built || env::var_os("WARPFOLD_BENCH").is_some(), "rustc cannot build the tool");
        Self { folder, profiler: is_built.then_some(tool), runs: AtomicUsize::new(0) }
    }

    /// Runs the context's command with some of its options.
    pub fn run(&self, context: &Context, options: &[&str]) -> Run {
        let folder = self.folder.path().join(self.runs.fetch_add(1, Ordering::Relaxed).to_string());
        fs::create_dir(&folder).expect("a folder");
        let file = |name: &str| folder.join(name).display().to_string();
        let mut arguments: Vec<String> = context.command.iter().map(|&argument| argument.to_owned()).collect();
        let base = context.base.iter().filter(|(option, _)| !options.contains(option)).copied();
        for (option, value) in base.chain(options.iter().map(|option| (*option, value(context, option)))) {
            arguments.push(format!("--{option}"));
            arguments.extend(match (option, value) {
                (_, "") => None,
                ("input", name) => Some(self.folder.path().join(name).display().to_string()),
                ("output" | "plot", name) => Some(file(name)),
                (_, value) => Some(value.to_owned()),
            });
        }
        let shown = Shown::by(options);
        if shown == Shown::Json {
            arguments.extend(["--format".to_owned(), "json".to_owned()]);
        }
        if options.contains(&"force") {
            fs::write(file("out.npy"), "precious").expect("a file");
        }
        let mut command = Command::new(&*BENCH);
        command.args(&arguments).current_dir(&folder).env("WARPFOLD_LIBCUDA", "none");
        command.envs(self.profiler.as_ref().map(|tool| ("NVTX_INJECTION64_PATH", tool)));
        let create = |name: &str| File::create(folder.join(name)).expect("a file");
        command.stdout(create("stdout")).stderr(create("stderr"));
        let mut child = command.spawn().expect("bench starts");
        let code = ended_within(Duration::from_secs(60), &mut child, &arguments);
        let read = |name: &str| fs::read(folder.join(name)).ok();
        let text = |name: &str| String::from_utf8_lossy(&read(name).unwrap_or_default()).into_owned();
        let (output, has_plot) = (read("out.npy"), folder.join("plot.svg").exists());
        let run = Run { code, stdout: text("stdout"), stderr: text("stderr"), has_plot, shown, output };
        fs::remove_dir_all(&folder).expect("the folder is removed");
        assert!([0, 2].contains(&code), "bench {}: exit code {code}: {}", arguments.join(" "), run.stderr);
        run
    }
}

/// The exit code of a program, which is killed after some time.
fn ended_within(limit: Duration, child: &mut Child, arguments: &[String]) -> i32 {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("the child is known") {
            return status.code().unwrap_or(-1);
        }
        if start.elapsed() > limit {
            child.kill().expect("it is killed");
            child.wait().expect("it ends");
            panic!("bench {} runs for {limit:?}", arguments.join(" "));
        }
        thread::sleep(Duration::from_millis(1));
    }
}
