//! Runs the tests of one mutant after the other, until a test detects it.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use super::results::{Outcome, Results};
use super::runner::{self, End, Test};
use super::sample::Mutant;

/// The detections so far. Tests that are fast, and have detected many mutants of the same file, run first.
#[derive(Default)]
pub struct History {
    /// By the names of the test and of the file; an empty name stands for all files.
    detections: HashMap<(String, String), f64>,
}

impl History {
    fn add(&mut self, test: &str, path: &str) {
        *self.detections.entry((test.to_owned(), path.to_owned())).or_default() += 1.0;
        *self.detections.entry((test.to_owned(), String::new())).or_default() += 1.0;
    }

    /// The expected seconds of a test per detected mutant.
    fn cost(&self, test: &Test, path: &str) -> f64 {
        let name = test.full_name();
        let of = |path: &str| self.detections.get(&(name.clone(), path.to_owned())).copied().unwrap_or_default();
        (test.time.as_secs_f64() + 0.02) / (0.1 + of(path) + 0.1 * of(""))
    }

    /// The tests in ascending order of cost.
    fn order<'t>(&self, tests: &[&'t Test], path: &str) -> Vec<&'t Test> {
        let mut by_cost: Vec<_> = tests.iter().map(|test| (self.cost(test, path), *test)).collect();
        by_cost.sort_by(|a, b| a.0.total_cmp(&b.0));
        by_cost.into_iter().map(|(_, test)| test).collect()
    }
}

/// Tries the mutants that have no outcome yet, with `jobs` workers.
pub fn run(mutants: &[Mutant], all: &[Test], results: &mut Results, jobs: usize) -> anyhow::Result<()> {
    let mut history = History::default();
    for mutant in mutants {
        if let Some(Outcome::Detected { test, .. }) = results.get(&mutant.key()) {
            history.add(test, &mutant.path);
        }
    }
    let untried: Vec<&Mutant> = mutants.iter().filter(|mutant| results.get(&mutant.key()).is_none()).collect();
    if untried.len() < mutants.len() {
        eprintln!(
            "xtask: {} of {} mutants have an outcome from an earlier run",
            mutants.len() - untried.len(),
            mutants.len()
        );
    }
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (history, results) = (Mutex::new(history), Mutex::new(results));
    let worker = || -> anyhow::Result<()> {
        while let Some(mutant) = untried.get(next.fetch_add(1, Ordering::Relaxed)) {
            let start = Instant::now();
            let outcome = try_mutant(mutant, all, &history)?;
            let shown = match &outcome {
                Outcome::Detected { test, end, .. } => format!("detected by {test} ({end})"),
                Outcome::Survived => "SURVIVED".to_owned(),
                Outcome::NotReached => "NOT REACHED".to_owned(),
            };
            results.lock().expect("no worker panics").add(mutant.key(), &mutant.path, outcome)?;
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            let seconds = start.elapsed().as_secs_f64();
            eprintln!("xtask: {done}/{} {} {shown}, {seconds:.1} s", untried.len(), mutant.location());
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no worker panics"))
    })
}

fn try_mutant(mutant: &Mutant, all: &[Test], history: &Mutex<History>) -> anyhow::Result<Outcome> {
    let reaching: Vec<&Test> = all.iter().filter(|test| test.reaches.contains(&mutant.number)).collect();
    if reaching.is_empty() {
        return Ok(Outcome::NotReached);
    }
    let order = history.lock().expect("no worker panics").order(&reaching, &mutant.path);
    for test in order {
        let (end, message) = runner::run(test, mutant.number)?;
        if end != End::Passed {
            let test = test.full_name();
            history.lock().expect("no worker panics").add(&test, &mutant.path);
            return Ok(Outcome::Detected { test, end: end.name().to_owned(), message });
        }
    }
    Ok(Outcome::Survived)
}
