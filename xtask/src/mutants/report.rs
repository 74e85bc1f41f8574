//! The report: the survivors, and counts by kind and by folder.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::equivalents::{self, Equivalent};
use super::results::Outcome;
use super::sample::Mutant;
use super::sites::{Counts, counts_as_json};

/// A run's results.
pub struct Report<'r> {
    pub seed: u64,
    pub folders: &'r [String],
    /// The number of all sites, of which the mutants are a sample.
    pub sites: usize,
    pub excluded: Counts,
    pub mutants: Vec<(&'r Mutant, &'r Outcome)>,
    pub equivalents: &'r [Equivalent],
    /// The percentage of mutants that may survive without a reason.
    pub allowed: f64,
}

impl Report<'_> {
    fn survivors(&self) -> impl Iterator<Item = (&Mutant, &Outcome, Option<&Equivalent>)> {
        let survivors = self.mutants.iter().filter(|(_, outcome)| !outcome.is_detected());
        survivors.map(|(mutant, outcome)| (*mutant, *outcome, self.equivalent(mutant)))
    }

    /// The row for this mutant in the table of equivalent mutants.
    fn equivalent(&self, mutant: &Mutant) -> Option<&Equivalent> {
        self.equivalents.iter().find(|equivalent| equivalent.matches(mutant))
    }

    /// The number of survivors without a reason.
    fn unexplained(&self) -> usize {
        self.survivors().filter(|(_, _, equivalent)| equivalent.is_none()).count()
    }

    fn percent(&self, count: usize) -> f64 {
        100.0 * count as f64 / self.mutants.len().max(1) as f64
    }

    /// Whether the percentage of unexplained survivors is within the limit.
    pub fn passes(&self) -> bool {
        !self.mutants.is_empty() && self.percent(self.unexplained()) <= self.allowed
    }

    /// The report as text.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        lines.push(format!("{} sites in {}", self.sites, self.folders.join(", ")));
        lines.extend(self.excluded.iter().map(|(reason, count)| format!("  {count} more excluded: {reason}")));
        for (title, is_explained) in [("Survivors without a reason", false), ("Survivors with a reason", true)] {
            let mut survivors =
                self.survivors().filter(|(_, _, equivalent)| equivalent.is_some() == is_explained).peekable();
            if survivors.peek().is_some() {
                lines.push(format!("\n{title}:"));
            }
            for (mutant, outcome, equivalent) in survivors {
                let not_reached = if *outcome == Outcome::NotReached { ", which no test reaches" } else { "" };
                lines.push(format!("{}: {}{not_reached}", mutant.location(), mutant.site.kind));
                lines.push(format!("    {}", mutant.line_text));
                lines.push(format!("    {}", mutant.mutation()));
                match equivalent {
                    Some(Equivalent { reason, .. }) => lines.push(format!("    {reason}")),
                    None => lines.push(format!("    {}", equivalents::row(mutant))),
                }
            }
        }
        for (title, of) in [("kind", kind as fn(&Mutant) -> String), ("folder", folder)] {
            lines.push(format!(
                "\n{title:<44} {:>7} {:>8} {:>9} {:>11}",
                "mutants", "detected", "explained", "unexplained"
            ));
            for (name, [mutants, detected, explained]) in self.summary(of) {
                let unexplained = mutants - detected - explained;
                lines.push(format!("{name:<44} {mutants:>7} {detected:>8} {explained:>9} {unexplained:>11}"));
            }
        }
        let (survivors, unexplained) = (self.survivors().count(), self.unexplained());
        lines.push(format!(
            "\nseed {}: {} mutants, {survivors} survive ({:.1} %), \
             {unexplained} of them without a reason ({:.1} %; {} % are allowed)",
            self.seed,
            self.mutants.len(),
            self.percent(survivors),
            self.percent(unexplained),
            self.allowed,
        ));
        lines.join("\n")
    }

    /// The numbers of mutants, of detected ones, and of survivors with a reason, by what `of` returns.
    fn summary(&self, of: fn(&Mutant) -> String) -> BTreeMap<String, [usize; 3]> {
        let mut table: BTreeMap<String, [usize; 3]> = BTreeMap::new();
        for (mutant, outcome) in &self.mutants {
            let row = table.entry(of(mutant)).or_default();
            row[0] += 1;
            row[1] += usize::from(outcome.is_detected());
            row[2] += usize::from(!outcome.is_detected() && self.equivalent(mutant).is_some());
        }
        table
    }

    /// The report as JSON.
    pub fn json(&self) -> Value {
        let mutants = self.mutants.iter().map(|(mutant, outcome)| {
            let mut value = outcome.as_json();
            let reason = self.equivalent(mutant).map(|equivalent| &equivalent.reason);
            value["file"] = json!(mutant.path);
            value["line"] = json!(mutant.line);
            value["column"] = json!(mutant.column);
            value["kind"] = json!(mutant.site.kind.to_string());
            value["text"] = json!(mutant.line_text);
            value["from"] = json!(mutant.from);
            value["to"] = json!(mutant.to);
            value["reason"] = json!(reason);
            value
        });
        json!({
            "seed": self.seed,
            "folders": self.folders,
            "sites": self.sites,
            "excluded": counts_as_json(&self.excluded),
            "mutants": mutants.collect::<Vec<_>>(),
            "survivors": self.survivors().count(),
            "unexplained_survivors": self.unexplained(),
            "passes": self.passes(),
        })
    }
}

fn kind(mutant: &Mutant) -> String {
    mutant.site.kind.to_string()
}

fn folder(mutant: &Mutant) -> String {
    mutant.folder().to_owned()
}
