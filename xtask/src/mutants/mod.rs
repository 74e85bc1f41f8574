//! `cargo xtask mutants`: plants errors in the sources, and reports those that no test detects.
//!
//! All errors are compiled into one copy of the workspace, each selected at run time: `a - b` becomes
//! `(if ::mutant_switch::is(17) { a + b } else { a - b })`, and `MUTANT=17` in a test's environment selects it.
//!
//! | module | contents |
//! |---|---|
//! | `places`, `finder`, `macros` | the places where errors can be planted |
//! | `changes` | the changes at a place |
//! | `draw` | a selection of them, by a seed |
//! | `rewrite` | a source with selectable errors |
//! | `copy`, `switch` | the copy of the workspace, and its crate that selects an error |
//! | `build` | the copy's test programs, without the mutants that do not compile |
//! | `tests` | which test reaches which place |
//! | `trials` | runs the tests for one error after the other |
//! | `results`, `known`, `report` | the outcomes |

mod build;
mod changes;
mod copy;
mod draw;
mod finder;
mod known;
mod macros;
mod places;
mod report;
mod results;
mod rewrite;
#[cfg(test)]
mod rewriting_tests;
mod tests;
mod trials;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::thread;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::workspace;
use build::{Built, Package, Program};
use draw::{Mutant, Source};
use places::{Counts, LeftOut};
use report::Report;
use results::{Outcome, Results};
use tests::Test;

/// Kernels, plans, operators and the device library.
const FOLDERS: [&str; 6] = [
    "kernels/src/reduce",
    "kernels/src/transpose",
    "kernels/src/ops",
    "host/src/reduce",
    "host/src/transpose",
    "crates/cuda_std/src",
];

/// Options of a run.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The number of errors to plant
    #[arg(long, default_value_t = 300)]
    count: usize,
    /// The seed of the draw
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A folder or a file of Rust sources; may be repeated [default: kernels, plans, operators and cuda_std]
    #[arg(long = "in", value_name = "FOLDER")]
    folders: Vec<String>,
    /// Runs the tests of the packages that the errors are in, without those across crates
    #[arg(long)]
    own_tests: bool,
    /// Only tests with this in their name
    #[arg(long = "test", value_name = "TEXT", default_value = "")]
    only: String,
    /// The percentage that may survive without a reason in docs/notes/mutants.md
    #[arg(long, default_value_t = 2.0)]
    allowed: f64,
    /// The number of concurrent tests [default: one per core]
    #[arg(long)]
    jobs: Option<usize>,
    /// Prints the results as JSON
    #[arg(long)]
    json: bool,
    /// Prints the errors that would be planted, and exits
    #[arg(long)]
    list: bool,
}

/// Plants errors and reports the survivors. Returns 1 if they are too many.
pub fn run(options: &Options) -> anyhow::Result<u8> {
    let files = copy::files()?;
    let folders: Vec<String> = match &options.folders[..] {
        [] => FOLDERS.map(str::to_owned).to_vec(),
        given => given.iter().map(|folder| folder.trim_end_matches('/').to_owned()).collect(),
    };
    let (sources, stamps, mut left_out) = read(&files, &folders)?;
    let places = sources.iter().map(|source| source.places.len()).sum();
    // More than requested, because some do not compile, and some only the compiler would run.
    let drawn = draw::draw(&sources, options.seed, options.count + options.count / 4 + 20);
    if options.list {
        for mutant in drawn.iter().take(options.count) {
            println!("{}: {}: {}", mutant.location(), mutant.place.kind, mutant.change());
        }
        return Ok(0);
    }
    let paths: Vec<String> = sources.iter().map(|source| source.path.clone()).collect();
    let packages = build::packages(&paths, options.own_tests)?;
    fs::create_dir_all(copy::folder()).context("cannot make a folder in target/")?;
    let (programs, built, broken) = build_all(&files, &sources, drawn, &packages)?;
    let jobs = options.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from)).max(1);
    let of_all = stamp(&files, &packages, &options.only)?;
    let tests = tests_of(&programs, &options.only, &built, of_all, jobs)?;
    let reached: BTreeSet<u32> = tests.iter().flat_map(|test| &test.reaches).copied().collect();
    let (only_constant, planted): (Vec<_>, Vec<_>) =
        built.into_iter().partition(|mutant| mutant.place.in_const_fn && !reached.contains(&mutant.number));
    let planted: Vec<Mutant> = planted.into_iter().take(options.count).collect();
    let last = planted.last().map_or(0, |mutant| mutant.number);
    let up_to_last = |mutants: &[Mutant]| mutants.iter().filter(|mutant| mutant.number < last).count();
    left_out.insert(LeftOut::DoesNotCompile, up_to_last(&broken));
    left_out.insert(LeftOut::ConstantFunctions, up_to_last(&only_constant));

    let reasons = known::load();
    let with_reason = planted.iter().filter(|mutant| reasons.iter().any(|reason| reason.is_of(mutant)));
    let mut results = Results::load(options.seed, stamps, of_all, &with_reason.map(Mutant::key).collect());
    trials::run(&planted, &tests, &mut results, jobs)?;
    let outcome = |mutant| results.get(&Mutant::key(mutant)).unwrap_or(&Outcome::NotReached);
    let mutants = planted.iter().map(|mutant| (mutant, outcome(mutant))).collect();
    let (seed, allowed) = (options.seed, options.allowed);
    let report = Report { seed, folders: &folders, places, left_out, mutants, reasons: &reasons, allowed };
    match options.json {
        true => println!("{:#}", report.json()),
        false => println!("{}", report.text()),
    }
    Ok(u8::from(!report.is_good()))
}

/// The sources in these folders with their places; a hash of each without its tests; the places left out.
fn read(files: &[String], folders: &[String]) -> anyhow::Result<(Vec<Source>, HashMap<String, u64>, Counts)> {
    let is_in = |file: &str| {
        file.ends_with(".rs") && folders.iter().any(|folder| file == folder || file.starts_with(&format!("{folder}/")))
    };
    let (mut sources, mut stamps, mut left_out) = (Vec::new(), HashMap::new(), Counts::new());
    let mut device_modules = Vec::new();
    for path in files.iter().filter(|file| is_in(file)) {
        let text = fs::read_to_string(workspace::root().join(path)).with_context(|| format!("cannot read `{path}`"))?;
        let found = finder::find(&text).with_context(|| format!("in `{path}`"))?;
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        device_modules.extend(found.device_modules.iter().map(|module| format!("{folder}/{module}")));
        stamps.insert(path.clone(), draw::hash(&without(&text, &found.tests)));
        sources.push((Source { path: path.clone(), text, places: found.places }, found.left_out));
    }
    ensure!(!sources.is_empty(), "no Rust sources in {}", folders.join(", "));
    let is_of_device = |path: &str| {
        device_modules.iter().any(|module| path == format!("{module}.rs") || path.starts_with(&format!("{module}/")))
    };
    for (source, of_source) in &mut sources {
        if is_of_device(&source.path) {
            let count = source.places.drain(..).len() + of_source.values().sum::<usize>();
            *of_source = Counts::from([(LeftOut::DeviceOnly, count)]);
        }
        for (reason, count) in of_source {
            *left_out.entry(*reason).or_default() += *count;
        }
    }
    Ok((sources.into_iter().map(|(source, _)| source).collect(), stamps, left_out))
}

fn without(text: &str, parts: &[std::ops::Range<usize>]) -> String {
    let mut kept = String::new();
    let mut at = 0;
    for part in parts {
        kept += text[at..part.start.max(at)].trim_end();
        at = part.end.max(at);
    }
    kept + text[at..].trim_end()
}

/// A hash of all sources of the tests, and of which of them are run.
fn stamp(files: &[String], packages: &[Package], only: &str) -> anyhow::Result<u64> {
    let counts = |file: &&String| {
        file.ends_with(".rs") && !file.starts_with("xtask/") || file.ends_with("Cargo.toml") || *file == "Cargo.lock"
    };
    let mut all = format!("{packages:?} {only}");
    for file in files.iter().filter(counts) {
        let text = fs::read_to_string(workspace::root().join(file)).with_context(|| format!("cannot read `{file}`"))?;
        all += &format!("{file} {:x}\n", draw::hash(&text));
    }
    Ok(draw::hash(&all))
}

/// Builds the copy with these mutants, leaving out more of them until it compiles. Returns those that compile and those
/// that do not.
fn build_all(
    files: &[String],
    sources: &[Source],
    drawn: Vec<Mutant>,
    packages: &[Package],
) -> anyhow::Result<(Vec<Program>, Vec<Mutant>, Vec<Mutant>)> {
    let owners: BTreeSet<String> =
        packages.iter().filter(|package| package.has_lib).map(|p| p.folder.clone()).collect();
    let path = copy::folder().join("broken.json");
    let kept: BTreeSet<String> = fs::read(&path).ok().and_then(|text| of_json(&text)).unwrap_or_default();
    let (mut broken, mut good): (Vec<_>, Vec<_>) = drawn.into_iter().partition(|mutant| kept.contains(&mutant.key()));
    loop {
        let (mut texts, mut places) = (BTreeMap::new(), BTreeMap::new());
        for source in sources {
            let here: Vec<&Mutant> = good.iter().filter(|mutant| mutant.path == source.path).collect();
            let rewritten = rewrite::rewrite(&source.text, &here);
            texts.insert(source.path.clone(), rewritten.text);
            places.insert(source.path.clone(), rewritten.mutants);
        }
        copy::update(files, &texts, &owners)?;
        match build::build(packages, &places)? {
            Built::Programs(programs) => return Ok((programs, good, broken)),
            Built::Broken(numbers) => {
                eprintln!("xtask: {} mutants do not compile, and are left out", numbers.len());
                let (out, rest): (Vec<_>, Vec<_>) = good.into_iter().partition(|m| numbers.contains(&m.number));
                good = rest;
                broken.extend(out);
                let keys: BTreeSet<String> = broken.iter().map(Mutant::key).chain(kept.iter().cloned()).collect();
                fs::write(&path, json!(keys).to_string()).context("cannot keep what does not compile")?;
            }
        }
    }
}

fn of_json(text: &[u8]) -> Option<BTreeSet<String>> {
    let value: Value = serde_json::from_slice(text).ok()?;
    Some(value.as_array()?.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// The tests and the places that each reaches: from an earlier run if nothing has changed since.
fn tests_of(
    programs: &[Program],
    only: &str,
    mutants: &[Mutant],
    of_all: u64,
    jobs: usize,
) -> anyhow::Result<Vec<Test>> {
    let numbered: Vec<String> = mutants.iter().map(|mutant| format!("{} {}", mutant.number, mutant.key())).collect();
    let stamp = format!("{of_all} {}", draw::hash(&numbered.join("\n")));
    let path = copy::folder().join("tests.json");
    let kept: Value = fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    if kept["stamp"] == stamp {
        let of_kept = kept["tests"].as_array().map(Vec::as_slice).unwrap_or_default().iter();
        if let Some(tests) = of_kept.map(|test| Test::from_json(test, programs)).collect::<Option<Vec<_>>>() {
            return Ok(tests);
        }
    }
    let tests = tests::measure(programs, only, jobs)?;
    let kept = json!({ "stamp": stamp, "tests": tests.iter().map(Test::as_json).collect::<Vec<_>>() });
    fs::write(&path, kept.to_string()).context("cannot keep what tests reach")?;
    Ok(tests)
}
