//! The text of a source line.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A cache of source files.
#[derive(Default)]
pub struct Sources {
    files: HashMap<&'static str, Option<Vec<String>>>,
}

impl Sources {
    /// The line, counted from 1, trimmed; `None` if the file does not exist here.
    pub fn line(&mut self, file: &'static str, line: u32) -> Option<String> {
        let lines = self.files.entry(file).or_insert_with(|| read(file));
        lines.as_ref()?.get(line.checked_sub(1)? as usize).map(|line| line.trim().to_owned())
    }
}

/// Reads a file whose path is relative to the working folder of the compiler, the root of a workspace: a folder at or
/// above the current one, or the workspace of this program's build.
fn read(file: &str) -> Option<Vec<String>> {
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = here
        .ancestors()
        .chain(built_in.ancestors().take(2))
        .find_map(|folder| fs::read_to_string(folder.join(file)).ok())?;
    Some(text.lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_and_missing_ones_are_none() {
        let mut sources = Sources::default();
        let first = sources.line("bench/src/profile/source.rs", 1);
        assert_eq!(first.as_deref(), Some("//! The text of a source line."));
        assert_eq!(sources.line("bench/src/profile/source.rs", 0), None);
        assert_eq!(sources.line("no/such/file.rs", 1), None);
    }
}
