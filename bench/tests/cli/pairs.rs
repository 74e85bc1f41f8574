//! Every pair of options of every command, with values that are not the defaults: both have an effect, or the program
//! refuses them.
//!
//! The options are those of `--help`. A new one needs a value in [`value`], and if the JSON report does not show its
//! effect, an entry in [`NOT_IN_JSON`].

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File};
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{BENCH, bench, npy, stdout};

/// A command with some options, so that it takes milliseconds. An option of a pair replaces the one of the same name.
struct Context {
    /// The command and its positional arguments.
    command: &'static [&'static str],
    base: &'static [(&'static str, &'static str)],
    /// What the options of a pair may do.
    may: May,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum May {
    /// Each pair runs, or is refused.
    Run,
    /// The command's own options are refused, each beside the base. Its cases would take minutes in the executor, so
    /// the options of all commands are tried in other contexts.
    OnlyBeRefused,
    /// The program ends with [`NO_PTX`], because a kernel's resources need PTX and `ptxas`. The effects of these
    /// options are tested in `device.rs`.
    ReachPtx,
}

const NO_PTX: &str = "has no PTX for sm_";
const REACH_PTX: [&str; 5] = ["arch", "ptx", "format", "wide", "device"];

const CONTEXTS: [Context; 24] = {
    const fn of(command: &'static [&'static str], base: &'static [(&'static str, &'static str)]) -> Context {
        Context { command, base, may: May::Run }
    }
    const fn refused(command: &'static [&'static str], base: &'static [(&'static str, &'static str)]) -> Context {
        Context { command, base, may: May::OnlyBeRefused }
    }
    const N: (&str, &str) = ("n", "200");
    const SIDES: [(&str, &str); 2] = [("rows", "5"), ("cols", "7")];
    const ALL: [(&str, &str); 3] = [N, SIDES[0], SIDES[1]];
    [
        of(&[], &ALL),
        of(&["device"], &[]),
        of(&["exact"], &[]),
        of(&["ladder"], &ALL),
        of(&["ladder", "reduce"], &[N]),
        of(&["ladder", "transpose"], &SIDES),
        of(&["ladder", "control-flow"], &[N]),
        of(&["profile", "sum"], &[N]),
        of(&["profile", "sequential"], &[N]),
        of(&["profile", "transpose"], &SIDES),
        of(&["profile", "sync_count"], &[N]),
        Context {
            command: &["occupancy", "sequential"],
            base: &[("arch", "sm_90"), ("ptx", "ptx")],
            may: May::ReachPtx,
        },
        of(&["sum"], &[N]),
        of(&["sum"], &[("input", "a.npy")]),
        of(&["sum"], &[N, ("rung", "neighbored")]),
        of(&["reduce"], &[("shape", "6x10:rows")]),
        of(&["reduce"], &[("input", "a.npy")]),
        refused(&["reduce"], &[("all", "")]),
        refused(&["reduce"], &[("table", "sums")]),
        of(&["transpose"], &[("rows", "6"), ("cols", "25")]),
        of(&["transpose"], &[("input", "a.npy")]),
        of(&["transpose"], &[("shape", "5x7")]),
        refused(&["transpose"], &[("all", "")]),
        refused(&["transpose"], &[("table", "transposes")]),
    ]
};

/// The value of an option in a pair, other than its default and than those of the contexts; empty for a flag.
fn value(context: &Context, option: &str) -> &'static str {
    let command = context.command;
    match option {
        "all" | "check" | "force" | "nvtx" | "wide" => "",
        "arch" => "sm_86",
        "axis" => "1",
        "block" => "64",
        "cols" => "50",
        "data" => "wide",
        "device" => "cuda:0",
        // A file has one type, and the other one is refused.
        "dtype" if context.base[0].0 == "input" => "i16",
        "dtype" => "f64",
        "format" => "csv",
        "input" => "b.npy",
        "kind" => "scaled",
        "latency-ns" => "500",
        "n" => "150",
        "offset" => "3",
        "op" => "max",
        "output" => "out.npy",
        "peers" => "peers",
        "plot" => "plot.svg",
        "ptx" => "other-ptx",
        "rows" => "3",
        // A rung of the context's ladder, or the one that two ladders have.
        "rung" => match command {
            ["ladder", "control-flow"] => "sync_or",
            ["ladder", "transpose"] | ["transpose"] => "tiled_8",
            ["ladder"] => "vectorized",
            _ => "sequential",
        },
        "samples" => "3",
        "schedule" => "seed=3",
        "seed" => "5",
        "shape" if command == ["transpose"] => "4x6",
        "shape" => "3x4:columns",
        "size" => "8",
        "table" if command == ["transpose"] => "permutations",
        "table" => "rows",
        _ => panic!("--{option} of {command:?}: give it a value in this table"),
    }
}

/// Whether a run shows the effect of an option.
type HasEffect = fn(&Run) -> bool;

/// The options whose effect is not in the JSON report: why, and how it shows in another way.
const NOT_IN_JSON: [(&str, &str, HasEffect); 7] = [
    ("device", "without a driver there is no other device", |run| run.code == 2),
    ("force", "it replaces a file", |run| run.has_results()),
    ("format", "it is the format, here CSV", |run| run.stdout.lines().next().is_some_and(|line| line.contains(','))),
    ("nvtx", "a profiler gets the ranges", |run| run.stderr.contains("push ") && run.stderr.contains("pop")),
    ("output", "it writes a file", |run| run.has_results()),
    ("plot", "it writes a file", |run| run.has_plot),
    ("wide", "tables have more columns, and JSON all", |run| !run.stdout.contains("Left out to fit the width")),
];

/// A run of the program.
#[derive(Debug)]
struct Run {
    code: i32,
    stdout: String,
    stderr: String,
    output: Option<Vec<u8>>,
    has_plot: bool,
}

impl Run {
    /// Whether --output has the results. A file that --force replaces has other contents before.
    fn has_results(&self) -> bool {
        self.output.as_ref().is_some_and(|bytes| bytes.starts_with(b"\x93NUMPY"))
    }

    /// The report without what differs between two runs: times, and sums of numbers that no seed determines.
    fn report(&self, context: &Context) -> Value {
        fn strip(value: &mut Value, is_random: bool) {
            match value {
                Value::Object(fields) => {
                    let differs = |name: &str| {
                        let is_time = ["_us", "_ms", "gigabytes_per_second"].iter().any(|end| name.ends_with(end));
                        is_time || is_random && name == "result"
                    };
                    fields.retain(|name, _| !differs(name));
                    fields.values_mut().for_each(|value| strip(value, is_random));
                }
                Value::Array(values) => values.iter_mut().for_each(|value| strip(value, is_random)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        let mut report = serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        strip(&mut report, matches!(context.command, [] | ["ladder", ..]));
        report
    }
}

/// The folder of the inputs, the stand-in for a profiler, and a folder for each run.
struct Place {
    folder: tempfile::TempDir,
    profiler: Option<PathBuf>,
    runs: AtomicUsize,
}

impl Place {
    fn new() -> Self {
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
    fn run(&self, context: &Context, options: &[&str]) -> Run {
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
        if !options.iter().any(|option| ["format", "wide"].contains(option)) {
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
        let code = ended_within(Duration::from_secs(60), &mut command, &arguments);
        let read = |name: &str| fs::read(folder.join(name)).ok();
        let text = |name: &str| String::from_utf8_lossy(&read(name).unwrap_or_default()).into_owned();
        let (output, has_plot) = (read("out.npy"), folder.join("plot.svg").exists());
        let run = Run { code, stdout: text("stdout"), stderr: text("stderr"), output, has_plot };
        fs::remove_dir_all(&folder).expect("the folder is removed");
        assert!([0, 2].contains(&code), "bench {}: exit code {code}: {}", arguments.join(" "), run.stderr);
        run
    }
}

/// The exit code of a program, which is killed after some time.
fn ended_within(limit: Duration, command: &mut Command, arguments: &[String]) -> i32 {
    let mut child = command.spawn().expect("bench starts");
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

/// The names of the options in a help text.
fn options_of(command: &[&str]) -> Vec<String> {
    let help = stdout(&bench(&[&command[..command.len().min(1)], &["--help"]].concat()));
    let lines = help.lines().filter_map(|line| line.strip_prefix("      --"));
    let name = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    let options: Vec<_> = lines.map(name).collect();
    assert!(options.iter().any(|option| option == "format"), "{help}");
    options
}

/// Checks that the options of a pair have effects, or are refused by a message that names one of them.
fn check(place: &Place, context: &Context, pair: [&str; 2], alone: [&Run; 2]) {
    let both = place.run(context, &pair);
    let shown = || format!("bench {:?} {:?} --{} --{}", context.command, context.base, pair[0], pair[1]);
    if both.code == 2 {
        assert_eq!(both.stdout, "", "{}", shown());
        // By its name, or by its value.
        let is_named = pair.iter().any(|option| {
            let (name, value) = (format!("--{option}"), value(context, option));
            both.stderr.contains(&name) || !value.is_empty() && both.stderr.contains(&format!("`{value}`"))
        });
        let is_no_driver = pair.contains(&"device") && both.stderr.contains("no CUDA driver");
        let is_no_ptx = context.may == May::ReachPtx && both.stderr.contains(NO_PTX);
        let is_reached = is_no_ptx && pair.iter().all(|option| REACH_PTX.contains(option));
        assert!(is_named || is_no_driver || is_reached, "{} is refused, but not named: {}", shown(), both.stderr);
        return;
    }
    let shows_json = |options: &[&str]| !options.iter().any(|option| ["format", "wide"].contains(option));
    for (option, other) in [(pair[0], alone[1]), (pair[1], alone[0])] {
        if let Some((_, why, has_effect)) = NOT_IN_JSON.iter().find(|(name, ..)| *name == option) {
            // Without a compiler there is no stand-in for a profiler.
            let is_unseen = option == "nvtx" && place.profiler.is_none();
            assert!(is_unseen || has_effect(&both), "{}: --{option} has no effect ({why}): {both:?}", shown());
        } else if shows_json(&pair) && other.code == 0 {
            let is_same = both.report(context) == other.report(context);
            assert!(!is_same, "{}: --{option} is ignored: {}", shown(), both.stdout);
        }
    }
}

/// Runs `work` for each item, on all cores, and returns its results in the order of the items.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let (results, failures) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let worker = || {
        while let Some((i, item)) = Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, items.get(i)?))) {
            // Each failure is reported, not only the first.
            match panic::catch_unwind(AssertUnwindSafe(|| work(item))) {
                Ok(result) => results.lock().unwrap().push((i, result)),
                Err(failure) => {
                    let text = failure.downcast_ref::<String>().cloned();
                    failures.lock().unwrap().push(text.unwrap_or_else(|| "a failure above".to_owned()));
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(worker);
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    let mut results = results.into_inner().unwrap();
    results.sort_unstable_by_key(|(i, _)| *i);
    results.into_iter().map(|(_, result)| result).collect()
}

#[test]
fn no_option_of_a_pair_is_ignored() {
    let place = Place::new();
    let contexts = CONTEXTS.iter().filter(|context| context.may != May::OnlyBeRefused);
    let singles: Vec<(&Context, String)> = contexts
        .flat_map(|context| options_of(context.command).into_iter().map(move |option| (context, option)))
        .collect();
    let alone = in_parallel(&singles, |(context, option)| place.run(context, &[option]));
    // The indices of two options of the same context.
    let pairs: Vec<(usize, usize)> = (0..singles.len())
        .flat_map(|first| (first + 1..singles.len()).map(move |second| (first, second)))
        .filter(|&(first, second)| std::ptr::eq(singles[first].0, singles[second].0))
        .collect();
    assert!(pairs.len() > 1500, "{} pairs", pairs.len());
    in_parallel(&pairs, |&(first, second)| {
        let (context, pair) = (singles[first].0, [&singles[first].1[..], &singles[second].1]);
        check(&place, context, pair, [&alone[first], &alone[second]]);
    });
}

#[test]
fn the_tables_take_no_options_of_single_cases() {
    let place = Place::new();
    let globals: BTreeSet<String> = options_of(&["device"]).into_iter().collect();
    let contexts = CONTEXTS.iter().filter(|context| context.may == May::OnlyBeRefused);
    let own = contexts.flat_map(|context| {
        let options = options_of(context.command).into_iter();
        let is_own = |option: &String| !globals.contains(option) && context.base[0].0 != option;
        options.filter(is_own).map(move |option| (context, option)).collect::<Vec<_>>()
    });
    let own: Vec<(&Context, String)> = own.collect();
    assert!(own.len() > 40, "{} options", own.len());
    in_parallel(&own, |(context, option)| {
        let run = place.run(context, &[option]);
        assert_eq!(run.code, 2, "{:?} --{option}", context.base);
        assert!(run.stderr.contains(&format!("--{option}")), "{:?} --{option}: {}", context.base, run.stderr);
    });
}

/// The comparison of two reports would pass if they differed in any case.
#[test]
fn a_report_without_its_times_is_the_same_again() {
    let place = Place::new();
    for context in CONTEXTS.iter().filter(|context| context.may == May::Run && context.command != ["exact"]) {
        let [first, second] = [(); 2].map(|()| place.run(context, &[]));
        assert_eq!(first.code, 0, "{:?} {:?}: {}", context.command, context.base, first.stderr);
        assert_eq!(first.report(context), second.report(context), "{:?} {:?}", context.command, context.base);
    }
}

#[test]
fn every_command_has_its_pairs() {
    let help = stdout(&bench(&["--help"]));
    let (_, commands) = help.split_once("\nCommands:\n").expect("it lists the commands");
    let names = commands.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.strip_prefix("  "));
    let names: BTreeSet<&str> =
        names.filter(|line| !line.starts_with(' ')).filter_map(|line| line.split(' ').next()).collect();
    let tried: BTreeSet<&str> =
        CONTEXTS.iter().filter_map(|context| context.command.first().copied()).chain(["help"]).collect();
    assert_eq!(names, tried, "{help}");
}
