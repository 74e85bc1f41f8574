//! The report: the survivors, and counts by kind and by folder.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::draw::Mutant;
use super::known::{self, Reason};
use super::places::{Counts, counts_as_json};
use super::results::Outcome;

/// A run's results.
pub struct Report<'r> {
    pub seed: u64,
    pub folders: &'r [String],
    /// The number of all places, before the draw.
    pub places: usize,
    pub left_out: Counts,
    pub mutants: Vec<(&'r Mutant, &'r Outcome)>,
    pub reasons: &'r [Reason],
    /// The percentage that may survive without a reason.
    pub allowed: f64,
}

impl Report<'_> {
    fn survivors(&self) -> impl Iterator<Item = (&Mutant, &Outcome, Option<&Reason>)> {
        let survivors = self.mutants.iter().filter(|(_, outcome)| !outcome.is_noticed());
        survivors.map(|(mutant, outcome)| (*mutant, *outcome, self.reasons.iter().find(|reason| reason.is_of(mutant))))
    }

    fn without_reason(&self) -> usize {
        self.survivors().filter(|(_, _, reason)| reason.is_none()).count()
    }

    fn percent(&self, count: usize) -> f64 {
        100.0 * count as f64 / self.mutants.len().max(1) as f64
    }

    /// Whether few enough survive without a reason.
    pub fn is_good(&self) -> bool {
        !self.mutants.is_empty() && self.percent(self.without_reason()) <= self.allowed
    }

    /// The report for people.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        lines.push(format!("{} places in {}", self.places, self.folders.join(", ")));
        lines.extend(self.left_out.iter().map(|(reason, count)| format!("  {count} more left out: {reason}")));
        for (title, is_known) in [("Survivors without a reason", false), ("Survivors with a reason", true)] {
            let mut survivors = self.survivors().filter(|(_, _, reason)| reason.is_some() == is_known).peekable();
            if survivors.peek().is_some() {
                lines.push(format!("\n{title}:"));
            }
            for (mutant, outcome, reason) in survivors {
                let not_reached = if *outcome == Outcome::NotReached { ", which no test reaches" } else { "" };
                lines.push(format!("{}: {}{not_reached}", mutant.location(), mutant.place.kind));
                lines.push(format!("    {}", mutant.line_text));
                lines.push(format!("    {}", mutant.change()));
                match reason {
                    Some(Reason { reason, .. }) => lines.push(format!("    {reason}")),
                    None => lines.push(format!("    {}", known::row(mutant))),
                }
            }
        }
        for (title, of) in [("kind", kind as fn(&Mutant) -> String), ("folder", folder)] {
            lines.push(format!(
                "\n{title:<44} {:>7} {:>8} {:>8} {:>11}",
                "planted", "noticed", "reasons", "not noticed"
            ));
            for (name, [planted, noticed, reasons]) in self.summary(of) {
                let open = planted - noticed - reasons;
                lines.push(format!("{name:<44} {planted:>7} {noticed:>8} {reasons:>8} {open:>11}"));
            }
        }
        let (survivors, open) = (self.survivors().count(), self.without_reason());
        lines.push(format!(
            "\nseed {}: {} planted, {survivors} survive ({:.1} %), \
             {open} of them without a reason ({:.1} %; {} % are allowed)",
            self.seed,
            self.mutants.len(),
            self.percent(survivors),
            self.percent(open),
            self.allowed,
        ));
        lines.join("\n")
    }

    /// The numbers of planted and detected mutants, and of survivors with a reason.
    fn summary(&self, of: fn(&Mutant) -> String) -> BTreeMap<String, [usize; 3]> {
        let mut table: BTreeMap<String, [usize; 3]> = BTreeMap::new();
        for (mutant, outcome) in &self.mutants {
            let row = table.entry(of(mutant)).or_default();
            row[0] += 1;
            row[1] += usize::from(outcome.is_noticed());
            row[2] += usize::from(!outcome.is_noticed() && self.reasons.iter().any(|reason| reason.is_of(mutant)));
        }
        table
    }

    /// The report as JSON.
    pub fn json(&self) -> Value {
        let mutants = self.mutants.iter().map(|(mutant, outcome)| {
            let mut value = outcome.as_json();
            let reason = self.reasons.iter().find(|reason| reason.is_of(mutant)).map(|reason| &reason.reason);
            value["file"] = json!(mutant.path);
            value["line"] = json!(mutant.line);
            value["column"] = json!(mutant.column);
            value["kind"] = json!(mutant.place.kind.to_string());
            value["text"] = json!(mutant.line_text);
            value["from"] = json!(mutant.from);
            value["to"] = json!(mutant.to);
            value["reason"] = json!(reason);
            value
        });
        json!({
            "seed": self.seed,
            "folders": self.folders,
            "places": self.places,
            "left_out": counts_as_json(&self.left_out),
            "mutants": mutants.collect::<Vec<_>>(),
            "survivors": self.survivors().count(),
            "survivors_without_reason": self.without_reason(),
            "is_good": self.is_good(),
        })
    }
}

fn kind(mutant: &Mutant) -> String {
    mutant.place.kind.to_string()
}

fn folder(mutant: &Mutant) -> String {
    mutant.folder().to_owned()
}
