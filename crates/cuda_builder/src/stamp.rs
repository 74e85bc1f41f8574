//! Whether a compilation can be skipped because its inputs are unchanged.
//!
//! Cargo detects that for one architecture, but not if architectures alternate: each change of flags compiles the last
//! crate again. So a stamp next to the PTX records the flags, and the length and time of each source file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The source files of the PTX, if the stamp in `file` has this `key` and none of the files has changed since.
pub(crate) fn unchanged(file: &Path, key: &str) -> Option<Vec<PathBuf>> {
    let text = fs::read_to_string(file).ok()?;
    let sources: Vec<PathBuf> =
        text.lines().filter_map(|line| line.strip_prefix("source ")).map(PathBuf::from).collect();
    (contents(key, &sources)? == text).then_some(sources)
}

/// Writes the stamp.
pub(crate) fn write(file: &Path, key: &str, sources: &[PathBuf]) -> io::Result<()> {
    match contents(key, sources) {
        Some(text) => fs::write(file, text),
        // A file has disappeared since the compilation. Without a stamp, the next build compiles again.
        None => Ok(()),
    }
}

/// The stamp of the files as they are now; `None` if one is missing.
fn contents(key: &str, sources: &[PathBuf]) -> Option<String> {
    let mut text = format!("key {}\n", key.replace('\n', " "));
    for source in sources {
        let metadata = fs::metadata(source).ok()?;
        let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        text.push_str(&format!("source {}\n{} bytes, {} ns\n", source.display(), metadata.len(), modified.as_nanos()));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_holds_until_a_file_or_the_key_changes() {
        let dir = tempfile::tempdir().unwrap();
        let (stamp, source) = (dir.path().join("stamp"), dir.path().join("a b.rs"));
        fs::write(&source, "one").unwrap();
        assert_eq!(unchanged(&stamp, "key"), None);
        write(&stamp, "key", std::slice::from_ref(&source)).unwrap();
        assert_eq!(unchanged(&stamp, "key"), Some(vec![source.clone()]));
        assert_eq!(unchanged(&stamp, "other key"), None);
        fs::write(&source, "three").unwrap();
        assert_eq!(unchanged(&stamp, "key"), None);
        fs::remove_file(&source).unwrap();
        assert_eq!(unchanged(&stamp, "key"), None);
    }
}
