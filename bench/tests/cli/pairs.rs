//! Every pair of options of every command, with values that are not the defaults: both have an effect, or the program
//! refuses them.
//!
//! The options are those of `--help`. A new one needs a value in [`value`], and if a report does not show its effect,
//! an entry in [`NOT_IN_REPORT`].

mod run;

use std::collections::BTreeSet;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use self::run::{Place, Run, Shown};
use crate::{bench, stdout};

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
    /// The program ends with [`NO_PTX`], because a kernel's resources need PTX and `ptxas`. The effects of these
    /// options are tested in `device.rs`.
    ReachPtx,
}

const NO_PTX: &str = "has no PTX for sm_";
const REACH_PTX: [&str; 5] = ["arch", "ptx", "format", "wide", "device"];

const CONTEXTS: [Context; 26] = {
    const fn of(command: &'static [&'static str], base: &'static [(&'static str, &'static str)]) -> Context {
        Context { command, base, may: May::Run }
    }
    const N: (&str, &str) = ("n", "200");
    const SIDES: [(&str, &str); 2] = [("rows", "5"), ("cols", "7")];
    const ALL: [(&str, &str); 3] = [N, SIDES[0], SIDES[1]];
    [
        of(&[], &ALL),
        of(&["calls"], &[N]),
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
        of(&["sum"], &[("input", "a.npy"), ("memory", "2M")]),
        of(&["sum"], &[N, ("rung", "neighbored")]),
        of(&["reduce"], &[("shape", "6x10"), ("axis", "0")]),
        of(&["reduce"], &[("input", "a.npy")]),
        of(&["reduce"], &[("all", ""), ("limit", "1")]),
        of(&["reduce"], &[("table", "sums"), ("limit", "1")]),
        of(&["transpose"], &[("rung", "tiled_16"), ("shape", "6x25")]),
        of(&["transpose"], &[("input", "a.npy")]),
        of(&["transpose"], &[("shape", "5x7")]),
        of(&["transpose"], &[("all", ""), ("limit", "1")]),
        of(&["transpose"], &[("table", "transposes"), ("limit", "1")]),
    ]
};

/// The value of an option in a pair, other than its default and than those of the contexts; empty for a flag.
fn value(context: &Context, option: &str) -> &'static str {
    let command = context.command;
    match option {
        "all" | "check" | "force" | "keep-dims" | "nvtx" | "wide" => "",
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
        "limit" => "2",
        "memory" => "1M",
        "n" => "150",
        "offset" => "3",
        "op" => "max",
        "output" => "out.npy",
        "peers" => "peers",
        "permute" => "10",
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
        "shape" => "3x4",
        "size" => "8",
        "table" if command == ["transpose"] => "permutations",
        "table" => "rows",
        _ => panic!("--{option} of {command:?}: give it a value in this table"),
    }
}

/// How the effect of an option shows where a report has none.
type HasEffect = fn(&Run) -> bool;

/// The options whose effect is in no report: why, and how it shows in another way.
const NOT_IN_REPORT: [(&str, &str, HasEffect); 8] = [
    ("device", "without a driver there is no other device", |run| run.code == 2),
    ("force", "it replaces a file", |run| run.has_results()),
    ("format", "it is the format, here CSV", |run| run.stdout.lines().next().is_some_and(|line| line.contains(','))),
    ("keep-dims", "it changes the extents in a file", |run| run.has_results()),
    ("nvtx", "a profiler gets the ranges", |run| run.stderr.contains("push ") && run.stderr.contains("pop")),
    ("output", "it writes a file", |run| run.has_results()),
    ("plot", "it writes a file", |run| run.has_plot),
    ("wide", "tables have more columns, and JSON all", |run| !run.stdout.contains("Left out to fit the width")),
];

/// The options that CSV and tables do not show, because they have a column for each result and none for how it came
/// about.
const ONLY_IN_JSON: [&str; 3] = ["check", "samples", "schedule"];
/// The options that tables do not show, because each kernel of a command has the same value.
const NOT_IN_TABLES: [&str; 2] = ["block", "offset"];

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
    for (option, other) in [(pair[0], alone[1]), (pair[1], alone[0])] {
        has_effect(place, context, option, &both, other, &shown());
    }
}

/// Checks that an option has an effect in a run, beside the run of the `other` option alone.
fn has_effect(place: &Place, context: &Context, option: &str, both: &Run, other: &Run, what: &str) {
    if let Some((_, why, has_effect)) = NOT_IN_REPORT.iter().find(|(name, ..)| *name == option) {
        // Without a compiler there is no stand-in for a profiler.
        let is_unseen = option == "nvtx" && place.profiler.is_none();
        assert!(is_unseen || has_effect(both), "{what}: --{option} has no effect ({why}): {both:?}");
        return;
    }
    let is_shown = match both.shown {
        Shown::Json => true,
        Shown::Csv => !ONLY_IN_JSON.contains(&option),
        Shown::Table => !ONLY_IN_JSON.contains(&option) && !NOT_IN_TABLES.contains(&option),
    };
    if is_shown && both.shown == other.shown && other.code != 2 {
        let is_same = both.report(context) == other.report(context);
        assert!(!is_same, "{what}: --{option} is ignored: {}", both.stdout);
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
    let singles: Vec<(&Context, String)> = CONTEXTS
        .iter()
        .flat_map(|context| options_of(context.command).into_iter().map(move |option| (context, option)))
        // These are what the context is about. Other tables begin with larger cases.
        .filter(|(context, option)| !["all", "table"].contains(&&option[..]) || context.base[0].0 != option)
        .collect();
    let alone = in_parallel(&singles, |(context, option)| place.run(context, &[option]));
    // The indices of two options of the same context.
    let pairs: Vec<(usize, usize)> = (0..singles.len())
        .flat_map(|first| (first + 1..singles.len()).map(move |second| (first, second)))
        .filter(|&(first, second)| std::ptr::eq(singles[first].0, singles[second].0))
        .collect();
    assert!(pairs.len() > 2000, "{} pairs", pairs.len());
    in_parallel(&pairs, |&(first, second)| {
        let (context, pair) = (singles[first].0, [&singles[first].1[..], &singles[second].1]);
        check(&place, context, pair, [&alone[first], &alone[second]]);
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
