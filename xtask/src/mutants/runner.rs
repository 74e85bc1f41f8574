//! Runs tests: each once without a mutant, to measure its time and the sites that it reaches, then with a mutant.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::build::Program;
use super::copy;
use crate::workspace;

/// Prefixes of tests whose code is built without the mutants: PTX, and the examples' own packages.
const EXCLUDED_TESTS: [&str; 2] = ["ptx::", "examples::"];

/// The limit of a test program's address space. With it, a mutant that allocates without end fails only its own test.
const ADDRESS_SPACE_KIB: &str = "16777216";

/// A test, measured without a mutant.
#[derive(Clone, Debug)]
pub struct Test {
    pub program: Program,
    pub name: String,
    pub time: Duration,
    /// The mutants whose sites the test reaches.
    pub reaches: BTreeSet<u32>,
}

impl Test {
    /// A unique name.
    pub fn full_name(&self) -> String {
        format!("{} {}", self.program.name, self.name)
    }

    /// The time limit with a mutant, generous because the machine may be busy.
    fn limit(&self) -> Duration {
        Duration::from_secs(10) + 6 * self.time
    }

    pub fn as_json(&self) -> Value {
        let seconds = self.time.as_secs_f64();
        json!({ "program": self.program.name, "name": self.name, "seconds": seconds, "reaches": self.reaches })
    }

    /// A test from an earlier run, if it still exists.
    pub fn from_json(value: &Value, programs: &[Program]) -> Option<Self> {
        let program = programs.iter().find(|program| program.name == value["program"])?.clone();
        let reaches =
            value["reaches"].as_array()?.iter().filter_map(Value::as_u64).map(|number| number as u32).collect();
        let time = Duration::from_secs_f64(value["seconds"].as_f64()?);
        Some(Self { program, name: value["name"].as_str()?.to_owned(), time, reaches })
    }
}

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Passed,
    Failed,
    /// A signal ended it
    Crashed,
    TimedOut,
}

impl End {
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Crashed => "crashed",
            Self::TimedOut => "timed out",
        }
    }
}

/// Runs a test with a mutant. Returns how it ended, and the message of its first panic.
pub fn run(test: &Test, mutant: u32) -> anyhow::Result<(End, String)> {
    let path = copy::folder().join(format!("output-{mutant}"));
    let output = File::create(&path).with_context(|| format!("cannot create `{}`", path.display()))?;
    let mut command = command(&test.program, &test.name, &mutant.to_string());
    let end = run_limited(command.stdout(output), test.limit())?;
    let output = String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned();
    let _ = fs::remove_file(&path);
    let message = output.lines().skip_while(|line| !line.contains("panicked at")).skip(1).take(3);
    Ok((end, message.collect::<Vec<_>>().join(" ").chars().take(300).collect()))
}

fn command(program: &Program, test: &str, mutant: &str) -> Command {
    let mut command = Command::new("sh");
    // The limit on processor time ends the test even if xtask was killed.
    let limits = format!("ulimit -v {ADDRESS_SPACE_KIB}; ulimit -c 0; ulimit -t 900; exec \"$@\"");
    command.args(["-c", &limits, "sh"]);
    command.arg(&program.executable).args(["--exact", test, "--quiet", "--test-threads", "1"]);
    command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder).env("MUTANT", mutant);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // The test gets its own process group, so that its child processes are killed with it.
    command.process_group(0);
    command
}

fn run_limited(command: &mut Command, limit: Duration) -> anyhow::Result<End> {
    let mut child = command.spawn().with_context(|| format!("cannot run {}", workspace::command_line(command)))?;
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for a test")? {
            return Ok(match status.code() {
                Some(0) => End::Passed,
                Some(_) => End::Failed,
                None => End::Crashed,
            });
        }
        if start.elapsed() > limit {
            kill(&mut child);
            return Ok(End::TimedOut);
        }
        thread::sleep(pause);
        pause = (pause * 5 / 4).min(Duration::from_millis(50));
    }
}

fn kill(child: &mut Child) {
    let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).stderr(Stdio::null()).status();
    let _ = child.kill();
    let _ = child.wait();
}

/// Runs the tests of these programs whose names contain `only`, each once without a mutant, with `jobs` workers.
pub fn measure(programs: &[Program], only: &str, jobs: usize) -> anyhow::Result<Vec<Test>> {
    let mut all = Vec::new();
    for program in programs {
        let mut command = Command::new(&program.executable);
        command.args(["--list", "--format", "terse"]).current_dir(&program.folder);
        let listed = String::from_utf8_lossy(&workspace::output(&mut command)?.stdout).into_owned();
        let names = listed.lines().filter_map(|line| line.strip_suffix(": test"));
        let names =
            names.filter(|name| name.contains(only) && !EXCLUDED_TESTS.iter().any(|prefix| name.starts_with(prefix)));
        all.extend(names.map(|name| (program, name.to_owned())));
    }
    let next = AtomicUsize::new(0);
    let measured = Mutex::new(Vec::new());
    let worker = |worker: usize| -> anyhow::Result<()> {
        let reached = copy::folder().join(format!("reached-{worker}"));
        while let Some((program, name)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let test = measure_test(program, name, &reached)?;
            measured.lock().expect("no worker panics").push(test);
        }
        Ok(())
    };
    crate::progress::with_progress("running each test without a mutant", || {
        thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs).map(|i| scope.spawn(move || worker(i))).collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("no worker panics"))
        })
    })?;
    let mut tests = measured.into_inner().expect("no worker panics");
    tests.sort_by_key(Test::full_name);
    Ok(tests)
}

fn measure_test(program: &Program, name: &str, reached: &Path) -> anyhow::Result<Test> {
    File::create(reached).with_context(|| format!("cannot create `{}`", reached.display()))?;
    let start = Instant::now();
    let mut command = command(program, name, "reached");
    let end = run_limited(command.env("MUTANT_REACHED", reached), Duration::from_secs(600))?;
    ensure!(end == End::Passed, "{} `{name}` has {} without a mutant", program.name, end.name());
    let numbers = fs::read_to_string(reached).with_context(|| format!("cannot read `{}`", reached.display()))?;
    let reaches = numbers.lines().filter_map(|number| number.parse().ok()).collect();
    Ok(Test { program: program.clone(), name: name.to_owned(), time: start.elapsed(), reaches })
}
