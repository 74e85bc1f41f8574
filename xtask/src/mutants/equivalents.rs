//! Equivalent mutants, which change no result and so cannot be detected: the table of `docs/notes/mutants.md`.

use std::fs;

use super::sample::Mutant;
use crate::workspace;

pub const PATH: &str = "docs/notes/mutants.md";

/// A row of the table: a mutation that is known to change no result, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equivalent {
    path: String,
    line: String,
    mutation: String,
    pub reason: String,
}

impl Equivalent {
    /// Whether the row matches this mutant: by its file or folder, the text of its line, and its mutation. The mutation
    /// `*` matches any.
    pub fn matches(&self, mutant: &Mutant) -> bool {
        let is_in = mutant.path.strip_prefix(&self.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        is_in && self.line == mutant.line_text && (self.mutation == "*" || self.mutation == mutant.mutation())
    }
}

/// The rows of the table; empty if the note does not exist.
pub fn load() -> Vec<Equivalent> {
    parse(&fs::read_to_string(workspace::root().join(PATH)).unwrap_or_default())
}

/// The rows that have four cells, of which the first three are code.
fn parse(note: &str) -> Vec<Equivalent> {
    let code = |cell: &str| cell.strip_prefix('`')?.strip_suffix('`').map(str::to_owned);
    let row = |line: &str| {
        let line = line.strip_prefix("| ")?.strip_suffix(" |")?.replace("\\|", "\u{1}");
        let cells: Vec<String> = line.split(" | ").map(|cell| cell.trim().replace('\u{1}', "|")).collect();
        let [path, line, mutation, reason] = &cells[..] else { return None };
        Some(Equivalent { path: code(path)?, line: code(line)?, mutation: code(mutation)?, reason: reason.clone() })
    };
    note.lines().filter_map(row).collect()
}

/// A row for the table, in which a person fills in the reason.
pub fn row(mutant: &Mutant) -> String {
    let code = |text: &str| format!("`{}`", text.replace('|', "\\|"));
    format!("| {} | {} | {} | REASON |", code(&mutant.path), code(&mutant.line_text), code(&mutant.mutation()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_code_are_parsed() {
        let note = "| file | line | mutation | reason |\n|---|---|---|---|\n\
                    | `a.rs` | `x \\|\\| y` | `x \\|\\| y -> x && y` | Only faster. |\ntext\n";
        let reason = |text: &str| text.to_owned();
        let expected = Equivalent {
            path: reason("a.rs"),
            line: reason("x || y"),
            mutation: reason("x || y -> x && y"),
            reason: reason("Only faster."),
        };
        assert_eq!(parse(note), [expected]);
    }
}
