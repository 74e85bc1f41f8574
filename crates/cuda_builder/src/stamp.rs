//! Whether a compilation would only make again what it made before.
//!
//! Cargo knows that for one architecture, but not for several in turn: the last crate is compiled again at each change
//! of flags. So a stamp beside the PTX says which flags and which files, of which length and time, it was made from.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The files that the PTX was made from, if the stamp in `file` is of this `key` and none of them has changed since.
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
        // A file has gone since it was compiled: without a stamp the next build looks again.
        None => Ok(()),
    }
}

/// The stamp of files as they are now; none if one of them is not there.
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
