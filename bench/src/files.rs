//! Files that are written completely or not at all.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

/// Checks before a long computation whether [`write()`] can work.
pub fn check_writable(path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    ensure!(!path.is_dir(), "cannot write `{shown}`: it is a folder; name a file in it");
    // Replacing a device or a pipe by a file is never intended.
    ensure!(!path.exists() || path.is_file(), "cannot write `{shown}`: it is not a regular file; name another");
    let path = target(path);
    let folder = folder_of(&path);
    let there = folder.display();
    ensure!(
        folder.is_dir(),
        "cannot write `{shown}`: there is no folder `{there}`; create it, or name a file in one that exists"
    );
    temporary(&path)
        .with_context(|| format!("cannot write `{shown}`: no file can be created in the folder `{there}`"))?;
    Ok(())
}

/// Whether an existing file may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    Replace,
    Keep,
}

/// Writes a file by `contents`. On failure no new file exists, and an existing one is unchanged.
pub fn write(
    path: &Path,
    existing: Existing,
    contents: impl FnOnce(&mut File) -> io::Result<()>,
) -> anyhow::Result<()> {
    check_writable(path)?;
    let write = || {
        let path = target(path);
        let mut file = temporary(&path)?;
        contents(file.as_file_mut())?;
        match existing {
            Existing::Replace => file.persist(path),
            Existing::Keep => file.persist_noclobber(path),
        }
        .map_err(|error| error.error)
    };
    write().map(|_| ()).with_context(|| format!("cannot write `{}`", path.display()))
}

/// The file to replace: for a symbolic link, the link's target.
fn target(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// A file next to `path`, with the permissions of a new file, to be renamed when complete.
fn temporary(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder_of(path))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
