//! Mutants that change no result, with reasons: the table of `docs/notes/mutants.md`.

use std::fs;

use super::draw::Mutant;
use crate::workspace;

pub const PATH: &str = "docs/notes/mutants.md";

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    path: String,
    line: String,
    change: String,
    pub reason: String,
}

impl Reason {
    /// Whether the row matches this mutant: by its file or folder, the text of its line, and its change; `*` matches
    /// any change.
    pub fn is_of(&self, mutant: &Mutant) -> bool {
        let is_there =
            mutant.path.strip_prefix(&self.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        is_there && self.line == mutant.line_text && (self.change == "*" || self.change == mutant.change())
    }
}

/// The reasons in the note; empty if there is no note.
pub fn load() -> Vec<Reason> {
    parse(&fs::read_to_string(workspace::root().join(PATH)).unwrap_or_default())
}

/// The rows of four cells whose first three are code.
fn parse(note: &str) -> Vec<Reason> {
    let code = |cell: &str| cell.strip_prefix('`')?.strip_suffix('`').map(str::to_owned);
    let row = |line: &str| {
        let line = line.strip_prefix("| ")?.strip_suffix(" |")?.replace("\\|", "\u{1}");
        let cells: Vec<String> = line.split(" | ").map(|cell| cell.trim().replace('\u{1}', "|")).collect();
        let [path, line, change, reason] = &cells[..] else { return None };
        Some(Reason { path: code(path)?, line: code(line)?, change: code(change)?, reason: reason.clone() })
    };
    note.lines().filter_map(row).collect()
}

/// A row for the table, in which a person fills in the reason.
pub fn row(mutant: &Mutant) -> String {
    let code = |text: &str| format!("`{}`", text.replace('|', "\\|"));
    format!("| {} | {} | {} | REASON |", code(&mutant.path), code(&mutant.line_text), code(&mutant.change()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_code_are_reasons() {
        let note = "| file | line | change | reason |\n|---|---|---|---|\n\
                    | `a.rs` | `x \\|\\| y` | `x \\|\\| y -> x && y` | Only faster. |\ntext\n";
        let reason = |text: &str| text.to_owned();
        let expected = Reason {
            path: reason("a.rs"),
            line: reason("x || y"),
            change: reason("x || y -> x && y"),
            reason: reason("Only faster."),
        };
        assert_eq!(parse(note), [expected]);
    }
}
