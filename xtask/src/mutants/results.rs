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
    /// A test detected it: its name, how it ended, and its message.
    Noticed { by: String, how: String, said: String },
    /// All tests that reach its place passed.
    Survived,
    /// No test reaches its place.
    NotReached,
}

impl Outcome {
    pub fn is_noticed(&self) -> bool {
        matches!(self, Self::Noticed { .. })
    }

    pub fn as_json(&self) -> Value {
        match self {
            Self::Noticed { by, how, said } => json!({ "outcome": "noticed", "by": by, "how": how, "said": said }),
            Self::Survived => json!({ "outcome": "survived" }),
            Self::NotReached => json!({ "outcome": "not reached" }),
        }
    }

    fn from_json(value: &Value) -> Option<Self> {
        match value["outcome"].as_str()? {
            "noticed" => {
                let text = |name: &str| value[name].as_str().map(str::to_owned);
                Some(Self::Noticed { by: text("by")?, how: text("how")?, said: text("said").unwrap_or_default() })
            }
            "survived" => Some(Self::Survived),
            "not reached" => Some(Self::NotReached),
            _ => None,
        }
    }
}

/// The results of this and earlier runs: a file with one line per mutant.
pub struct Results {
    path: PathBuf,
    known: HashMap<String, Outcome>,
    /// Hashes of the mutants' own sources, without their tests, and of the whole workspace.
    stamps: (HashMap<String, String>, String),
}

impl Results {
    /// Loads the results of a seed. A detected mutant stays valid while its own source is unchanged, apart from the
    /// source's tests; so does a survivor with a reason. Any other survivor stays valid only while the whole workspace
    /// is unchanged.
    pub fn load(seed: u64, of_sources: HashMap<String, u64>, of_all: u64, reasons: &HashSet<String>) -> Self {
        let of_sources: HashMap<_, _> = of_sources.into_iter().map(|(path, stamp)| (path, stamp.to_string())).collect();
        let of_all = of_all.to_string();
        let path = copy::folder().join(format!("results-{seed}.jsonl"));
        let mut known = HashMap::new();
        for line in fs::read_to_string(&path).unwrap_or_default().lines() {
            let Ok(value) = serde_json::from_str::<Value>(line) else { continue };
            let (Some(key), Some(outcome)) = (value["mutant"].as_str(), Outcome::from_json(&value)) else { continue };
            let source = value["source"].as_str().unwrap_or_default();
            let same_source = of_sources.get(source).is_some_and(|stamp| value["source_stamp"] == *stamp);
            let same_all = value["stamp"] == of_all;
            if same_source && (outcome.is_noticed() || same_all || reasons.contains(key)) {
                known.insert(key.to_owned(), outcome);
            } else {
                known.remove(key);
            }
        }
        Self { path, known, stamps: (of_sources, of_all) }
    }

    pub fn get(&self, key: &str) -> Option<&Outcome> {
        self.known.get(key)
    }

    pub fn add(&mut self, key: String, source: &str, outcome: Outcome) -> anyhow::Result<()> {
        let mut line = outcome.as_json();
        line["mutant"] = json!(key);
        line["source"] = json!(source);
        line["source_stamp"] = json!(self.stamps.0.get(source));
        line["stamp"] = json!(self.stamps.1);
        let file = OpenOptions::new().create(true).append(true).open(&self.path);
        let written = file.and_then(|mut file| writeln!(file, "{line}"));
        written.with_context(|| format!("cannot write `{}`", self.path.display()))?;
        self.known.insert(key, outcome);
        Ok(())
    }
}
