//! `cargo xtask mutants`: mutation testing. Plants errors in the sources, and reports those that no test detects.
//!
//! All mutants are compiled into one copy of the workspace (mutant schemata). `a - b` becomes
//! `(if ::mutant_switch::is_active(17) { a + b } else { a - b })`, and `MUTANT=17` in a test's environment activates
//! that mutant.
//!
//! | module | contents |
//! |---|---|
//! | `finder`, `sites`, `macros` | the mutation sites of a source |
//! | `mutations` | the mutations of a site |
//! | `sample` | the sample of mutants that a seed selects |
//! | `rewrite` | a source with its mutants compiled in |
//! | `copy`, `switch` | the copy of the workspace, and the crate in it that activates a mutant |
//! | `build` | the copy's test programs, without the mutants that do not compile |
//! | `runner` | runs a test, and records the sites that it reaches |
//! | `trials` | runs the tests of one mutant after the other |
//! | `results`, `equivalents`, `report` | the outcomes |

mod build;
mod copy;
mod equivalents;
mod finder;
mod macros;
mod mutations;
mod report;
mod results;
mod rewrite;
mod runner;
mod sample;
mod sites;
#[cfg(test)]
mod tests;
mod trials;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::thread;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::workspace;
use build::{Built, Package, Program};
use report::Report;
use results::{Outcome, Results};
use runner::Test;
use sample::{Mutant, Source};
use sites::{Counts, Exclusion};

/// The default folders: kernels, operators, plans, and the device library.
const FOLDERS: [&str; 6] = [
    "kernels/src/reduce",
    "kernels/src/transpose",
    "kernels/src/ops",
    "host/src/reduce",
    "host/src/transpose",
    "crates/cuda_std/src",
];

/// The options of `cargo xtask mutants`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The number of mutants
    #[arg(long, value_name = "NUMBER", default_value_t = 300)]
    count: usize,
    /// The seed that selects the mutants
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Mutates this folder or file; may be repeated [default: kernels, operators, plans and cuda_std]
    #[arg(long = "in", value_name = "PATH")]
    folders: Vec<String>,
    /// Runs only the tests of the mutated packages, without those of the package `warpfold-tests`
    #[arg(long)]
    own_tests: bool,
    /// Runs only the tests whose names contain this text
    #[arg(long = "test", value_name = "TEXT", default_value = "", hide_default_value = true)]
    only: String,
    /// The percentage of mutants that may survive without a reason in docs/notes/mutants.md
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0)]
    allowed: f64,
    /// The number of tests that run concurrently [default: one per core]
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<usize>,
    /// Prints the report as JSON
    #[arg(long)]
    json: bool,
    /// Prints the mutants and exits, without a build or a test
    #[arg(long)]
    list: bool,
}

/// Runs the tests of each mutant, and reports the survivors. Returns exit code 1 if too many survive.
pub fn run(options: &Options) -> anyhow::Result<u8> {
    let files = copy::files()?;
    let folders: Vec<String> = match &options.folders[..] {
        [] => FOLDERS.map(str::to_owned).to_vec(),
        given => given.iter().map(|folder| folder.trim_end_matches('/').to_owned()).collect(),
    };
    let (sources, fingerprints, mut excluded) = read(&files, &folders)?;
    let sites = sources.iter().map(|source| source.sites.len()).sum();
    ensure!(
        sites > 0,
        "nothing to mutate in {}: no operator, number or condition that a test can reach",
        folders.join(", ")
    );
    // More than requested, because some do not compile, and some are in code that only the compiler runs.
    let sampled = sample::sample(&sources, options.seed, options.count + options.count / 4 + 20);
    if options.list {
        for mutant in sampled.iter().take(options.count) {
            println!("{}: {}: {}", mutant.location(), mutant.site.kind, mutant.mutation());
        }
        return Ok(0);
    }
    let paths: Vec<String> = sources.iter().map(|source| source.path.clone()).collect();
    let packages = build::packages(&paths, options.own_tests)?;
    fs::create_dir_all(copy::folder()).context("cannot create `target/mutants`")?;
    let (programs, built, unviable) = build_viable(&files, &sources, sampled, &packages)?;
    let jobs = options.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from)).max(1);
    let of_workspace = fingerprint(&files, &packages, &options.only)?;
    let tests = load_or_measure(&programs, &options.only, &built, of_workspace, jobs)?;
    let reached: BTreeSet<u32> = tests.iter().flat_map(|test| &test.reaches).copied().collect();
    let (only_in_const, mutants): (Vec<_>, Vec<_>) =
        built.into_iter().partition(|mutant| mutant.site.in_const_fn && !reached.contains(&mutant.number));
    let mutants: Vec<Mutant> = mutants.into_iter().take(options.count).collect();
    let last = mutants.last().map_or(0, |mutant| mutant.number);
    let up_to_last = |mutants: &[Mutant]| mutants.iter().filter(|mutant| mutant.number < last).count();
    excluded.insert(Exclusion::Unviable, up_to_last(&unviable));
    excluded.insert(Exclusion::ConstantFunctions, up_to_last(&only_in_const));

    let equivalents = equivalents::load();
    let explained = mutants.iter().filter(|mutant| equivalents.iter().any(|equivalent| equivalent.matches(mutant)));
    let mut results = Results::load(options.seed, fingerprints, of_workspace, &explained.map(Mutant::key).collect());
    trials::run(&mutants, &tests, &mut results, jobs)?;
    let outcome = |mutant| results.get(&Mutant::key(mutant)).unwrap_or(&Outcome::NotReached);
    let mutants = mutants.iter().map(|mutant| (mutant, outcome(mutant))).collect();
    let (seed, allowed) = (options.seed, options.allowed);
    let report = Report { seed, folders: &folders, sites, excluded, mutants, equivalents: &equivalents, allowed };
    match options.json {
        true => println!("{:#}", report.json()),
        false => println!("{}", report.text()),
    }
    Ok(u8::from(!report.passes()))
}

/// Reads the sources in these folders. Returns each with its sites, the hash of each without its tests, and the numbers
/// of excluded sites.
fn read(files: &[String], folders: &[String]) -> anyhow::Result<(Vec<Source>, HashMap<String, u64>, Counts)> {
    let is_in = |file: &str| {
        file.ends_with(".rs") && folders.iter().any(|folder| file == folder || file.starts_with(&format!("{folder}/")))
    };
    let (mut sources, mut fingerprints, mut excluded) = (Vec::new(), HashMap::new(), Counts::new());
    let mut device_modules = Vec::new();
    for path in files.iter().filter(|file| is_in(file)) {
        let text = fs::read_to_string(workspace::root().join(path)).with_context(|| format!("cannot read `{path}`"))?;
        let found = finder::find(&text).with_context(|| format!("in `{path}`"))?;
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        device_modules.extend(found.device_modules.iter().map(|module| format!("{folder}/{module}")));
        fingerprints.insert(path.clone(), sample::hash(&without_ranges(&text, &found.tests)));
        sources.push((Source { path: path.clone(), text, sites: found.sites }, found.excluded));
    }
    ensure!(!sources.is_empty(), "no Rust sources in {}", folders.join(", "));
    let is_device_only = |path: &str| {
        device_modules.iter().any(|module| path == format!("{module}.rs") || path.starts_with(&format!("{module}/")))
    };
    for (source, of_source) in &mut sources {
        if is_device_only(&source.path) {
            let count = source.sites.drain(..).len() + of_source.values().sum::<usize>();
            *of_source = Counts::from([(Exclusion::DeviceOnly, count)]);
        }
        for (reason, count) in of_source {
            *excluded.entry(*reason).or_default() += *count;
        }
    }
    Ok((sources.into_iter().map(|(source, _)| source).collect(), fingerprints, excluded))
}

/// The text without these byte ranges.
fn without_ranges(text: &str, ranges: &[std::ops::Range<usize>]) -> String {
    let mut kept = String::new();
    let mut at = 0;
    for range in ranges {
        kept += text[at..range.start.max(at)].trim_end();
        at = range.end.max(at);
    }
    kept + text[at..].trim_end()
}

/// A hash of all sources that the tests are built from, and of the selection of tests.
fn fingerprint(files: &[String], packages: &[Package], only: &str) -> anyhow::Result<u64> {
    let is_input = |file: &&String| {
        file.ends_with(".rs") && !file.starts_with("xtask/") || file.ends_with("Cargo.toml") || *file == "Cargo.lock"
    };
    let mut all = format!("{packages:?} {only}");
    for file in files.iter().filter(is_input) {
        let text = fs::read_to_string(workspace::root().join(file)).with_context(|| format!("cannot read `{file}`"))?;
        all += &format!("{file} {:x}\n", sample::hash(&text));
    }
    Ok(sample::hash(&all))
}

/// Builds the copy with these mutants, without those that do not compile. Each build finds some of these; the last one
/// succeeds. Returns the test programs, the mutants that compile, and those that do not.
fn build_viable(
    files: &[String],
    sources: &[Source],
    sampled: Vec<Mutant>,
    packages: &[Package],
) -> anyhow::Result<(Vec<Program>, Vec<Mutant>, Vec<Mutant>)> {
    let owners: BTreeSet<String> =
        packages.iter().filter(|package| package.has_lib).map(|p| p.folder.clone()).collect();
    let path = copy::folder().join("unviable.json");
    let known: BTreeSet<String> = fs::read(&path).ok().and_then(|text| keys_from_json(&text)).unwrap_or_default();
    let (mut unviable, mut viable): (Vec<_>, Vec<_>) =
        sampled.into_iter().partition(|mutant| known.contains(&mutant.key()));
    loop {
        let (mut texts, mut sites) = (BTreeMap::new(), BTreeMap::new());
        for source in sources {
            let here: Vec<&Mutant> = viable.iter().filter(|mutant| mutant.path == source.path).collect();
            let rewritten = rewrite::rewrite(&source.text, &here);
            texts.insert(source.path.clone(), rewritten.text);
            sites.insert(source.path.clone(), rewritten.mutants);
        }
        copy::update(files, &texts, &owners)?;
        match build::build(packages, &sites)? {
            Built::Programs(programs) => return Ok((programs, viable, unviable)),
            Built::Unviable(numbers) => {
                eprintln!("xtask: {} mutants do not compile, and are excluded", numbers.len());
                let (out, rest): (Vec<_>, Vec<_>) = viable.into_iter().partition(|m| numbers.contains(&m.number));
                viable = rest;
                unviable.extend(out);
                let keys: BTreeSet<String> = unviable.iter().map(Mutant::key).chain(known.iter().cloned()).collect();
                fs::write(&path, json!(keys).to_string()).context("cannot write `target/mutants/unviable.json`")?;
            }
        }
    }
}

fn keys_from_json(text: &[u8]) -> Option<BTreeSet<String>> {
    let value: Value = serde_json::from_slice(text).ok()?;
    Some(value.as_array()?.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// The tests, with the mutants that each reaches: from an earlier run if nothing has changed since.
fn load_or_measure(
    programs: &[Program],
    only: &str,
    mutants: &[Mutant],
    of_workspace: u64,
    jobs: usize,
) -> anyhow::Result<Vec<Test>> {
    let numbered: Vec<String> = mutants.iter().map(|mutant| format!("{} {}", mutant.number, mutant.key())).collect();
    let fingerprint = format!("{of_workspace} {}", sample::hash(&numbered.join("\n")));
    let path = copy::folder().join("tests.json");
    let kept: Value = fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    if kept["fingerprint"] == fingerprint {
        let values = kept["tests"].as_array().map(Vec::as_slice).unwrap_or_default().iter();
        if let Some(tests) = values.map(|test| Test::from_json(test, programs)).collect::<Option<Vec<_>>>() {
            return Ok(tests);
        }
    }
    let tests = runner::measure(programs, only, jobs)?;
    let kept = json!({ "fingerprint": fingerprint, "tests": tests.iter().map(Test::as_json).collect::<Vec<_>>() });
    fs::write(&path, kept.to_string()).context("cannot write `target/mutants/tests.json`")?;
    Ok(tests)
}
