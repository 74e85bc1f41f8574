//! The outcome of each mutant, kept between runs.

use std::collections::{HashMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use serde_json::{Value, json};

use super::copy;

/// The outcome of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A test detected it: the test's name, how it ended, and its message.
    Detected { test: String, end: String, message: String },
    /// All tests that reach its site pass.
    Survived,
    /// No test reaches its site.
    NotReached,
}

impl Outcome {
    pub fn is_detected(&self) -> bool {
        matches!(self, Self::Detected { .. })
    }

    pub fn as_json(&self) -> Value {
        match self {
            Self::Detected { test, end, message } => {
                json!({ "outcome": "detected", "test": test, "end": end, "message": message })
            }
            Self::Survived => json!({ "outcome": "survived" }),
            Self::NotReached => json!({ "outcome": "not reached" }),
        }
    }

    fn from_json(value: &Value) -> Option<Self> {
        match value["outcome"].as_str()? {
            "detected" => {
                let text = |name: &str| value[name].as_str().map(str::to_owned);
                Some(Self::Detected {
                    test: text("test")?,
                    end: text("end")?,
                    message: text("message").unwrap_or_default(),
                })
            }
            "survived" => Some(Self::Survived),
            "not reached" => Some(Self::NotReached),
            _ => None,
        }
    }
}

/// The outcomes of this run and of earlier ones, in a file with one line per mutant.
pub struct Results {
    path: PathBuf,
    known: HashMap<String, Outcome>,
    /// The hash of each mutated source without its tests, and the hash of the workspace.
    fingerprints: (HashMap<String, String>, String),
}

impl Results {
    /// Loads the outcomes of a seed. The outcome of a detected mutant, or of a survivor with a reason, is valid while
    /// its source is unchanged, apart from the source's tests. The outcome of another survivor is valid only while the
    /// workspace is unchanged.
    pub fn load(seed: u64, of_sources: HashMap<String, u64>, of_workspace: u64, equivalents: &HashSet<String>) -> Self {
        let of_sources: HashMap<_, _> =
            of_sources.into_iter().map(|(path, fingerprint)| (path, fingerprint.to_string())).collect();
        let of_workspace = of_workspace.to_string();
        let path = copy::folder().join(format!("results-{seed}.jsonl"));
        let mut known = HashMap::new();
        for line in fs::read_to_string(&path).unwrap_or_default().lines() {
            let Ok(value) = serde_json::from_str::<Value>(line) else { continue };
            let (Some(key), Some(outcome)) = (value["mutant"].as_str(), Outcome::from_json(&value)) else { continue };
            let source = value["source"].as_str().unwrap_or_default();
            let same_source = of_sources.get(source).is_some_and(|fingerprint| value["source_stamp"] == *fingerprint);
            let same_all = value["fingerprint"] == of_workspace;
            if same_source && (outcome.is_detected() || same_all || equivalents.contains(key)) {
                known.insert(key.to_owned(), outcome);
            } else {
                known.remove(key);
            }
        }
        Self { path, known, fingerprints: (of_sources, of_workspace) }
    }

    pub fn get(&self, key: &str) -> Option<&Outcome> {
        self.known.get(key)
    }

    pub fn add(&mut self, key: String, source: &str, outcome: Outcome) -> anyhow::Result<()> {
        let mut line = outcome.as_json();
        line["mutant"] = json!(key);
        line["source"] = json!(source);
        line["source_stamp"] = json!(self.fingerprints.0.get(source));
        line["fingerprint"] = json!(self.fingerprints.1);
        let file = OpenOptions::new().create(true).append(true).open(&self.path);
        let written = file.and_then(|mut file| writeln!(file, "{line}"));
        written.with_context(|| format!("cannot write `{}`", self.path.display()))?;
        self.known.insert(key, outcome);
        Ok(())
    }
}
