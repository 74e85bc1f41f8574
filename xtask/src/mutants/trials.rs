//! Runs the tests for one error after the other, until a test detects it.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use super::draw::Mutant;
use super::results::{Outcome, Results};
use super::tests::{self, End, Test};

/// The detections so far: tests that are fast and have detected many errors of a file run first.
#[derive(Default)]
pub struct History {
    noticed: HashMap<(String, String), f64>,
}

impl History {
    fn add(&mut self, test: &str, path: &str) {
        *self.noticed.entry((test.to_owned(), path.to_owned())).or_default() += 1.0;
        *self.noticed.entry((test.to_owned(), String::new())).or_default() += 1.0;
    }

    /// The expected seconds of a test per detected error.
    fn cost(&self, test: &Test, path: &str) -> f64 {
        let name = test.full_name();
        let of = |path: &str| self.noticed.get(&(name.clone(), path.to_owned())).copied().unwrap_or_default();
        (test.time.as_secs_f64() + 0.02) / (0.1 + of(path) + 0.1 * of(""))
    }

    /// The tests in the order in which they run.
    fn order<'t>(&self, tests: &[&'t Test], path: &str) -> Vec<&'t Test> {
        let mut by_cost: Vec<_> = tests.iter().map(|test| (self.cost(test, path), *test)).collect();
        by_cost.sort_by(|a, b| a.0.total_cmp(&b.0));
        by_cost.into_iter().map(|(_, test)| test).collect()
    }
}

/// Tries the `mutants` without a result, with `jobs` workers.
pub fn run(mutants: &[Mutant], all: &[Test], results: &mut Results, jobs: usize) -> anyhow::Result<()> {
    let mut history = History::default();
    for mutant in mutants {
        if let Some(Outcome::Noticed { by, .. }) = results.get(&mutant.key()) {
            history.add(by, &mutant.path);
        }
    }
    let open: Vec<&Mutant> = mutants.iter().filter(|mutant| results.get(&mutant.key()).is_none()).collect();
    if open.len() < mutants.len() {
        eprintln!("xtask: {} of {} mutants have results of an earlier run", mutants.len() - open.len(), mutants.len());
    }
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (history, results) = (Mutex::new(history), Mutex::new(results));
    let worker = || -> anyhow::Result<()> {
        while let Some(mutant) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
            let start = Instant::now();
            let outcome = try_one(mutant, all, &history)?;
            let said = match &outcome {
                Outcome::Noticed { by, how, .. } => format!("noticed by {by} ({how})"),
                Outcome::Survived => "SURVIVED".to_owned(),
                Outcome::NotReached => "NOT REACHED".to_owned(),
            };
            results.lock().expect("no worker panics").add(mutant.key(), &mutant.path, outcome)?;
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            let seconds = start.elapsed().as_secs_f64();
            eprintln!("xtask: {done}/{} {} {said}, {seconds:.1} s", open.len(), mutant.location());
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no worker panics"))
    })
}

fn try_one(mutant: &Mutant, all: &[Test], history: &Mutex<History>) -> anyhow::Result<Outcome> {
    let reaching: Vec<&Test> = all.iter().filter(|test| test.reaches.contains(&mutant.number)).collect();
    if reaching.is_empty() {
        return Ok(Outcome::NotReached);
    }
    let order = history.lock().expect("no worker panics").order(&reaching, &mutant.path);
    for test in order {
        let (end, said) = tests::run(test, mutant.number)?;
        if end != End::Passed {
            let by = test.full_name();
            history.lock().expect("no worker panics").add(&by, &mutant.path);
            return Ok(Outcome::Noticed { by, how: end.name().to_owned(), said });
        }
    }
    Ok(Outcome::Survived)
}
