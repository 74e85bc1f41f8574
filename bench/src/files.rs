//! Files that are written completely or not at all.

use std::fs::File;
use std::io::{self, Seek};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use tempfile::{Builder, NamedTempFile};

use crate::interrupt::Temporary;

/// Checks, before a long computation, whether [`write()`] will be able to write the file.
pub fn check_writable(path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    ensure!(!path.is_dir(), "cannot write `{shown}`: it is a folder; name a file in it");
    if path.is_symlink() && !path.exists() {
        let target = path.read_link().map(|target| target.display().to_string()).unwrap_or_default();
        bail!(
            "cannot write `{shown}`: it is a symbolic link to `{target}`, which does not exist; remove the link, or \
             name the file itself"
        );
    }
    // A device or a pipe is never meant to be replaced by a file.
    ensure!(!path.exists() || path.is_file(), "cannot write `{shown}`: it is not a regular file; name another file");
    let path = target(path);
    let folder = folder_of(&path);
    let folder_name = folder.display();
    ensure!(
        folder.is_dir(),
        "cannot write `{shown}`: there is no folder `{folder_name}`; create it, or name a file in an existing folder"
    );
    // On Linux, a file without a name, which nothing has to remove.
    tempfile::tempfile_in(folder)
        .with_context(|| format!("cannot write `{shown}`: no file can be created in the folder `{folder_name}`"))?;
    Ok(())
}

/// Whether an existing file may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    Replace,
    Keep,
}

/// Writes a file with `contents`. On failure there is no new file, and an existing file is unchanged.
pub fn write(
    path: &Path,
    existing: Existing,
    contents: impl FnOnce(&mut File) -> io::Result<()>,
) -> anyhow::Result<()> {
    check_writable(path)?;
    let write = || {
        let path = target(path);
        let file = match unnamed::create_in(folder_of(&path)) {
            Some(mut file) => {
                contents(&mut file)?;
                match temporary(&path, |builder, folder| builder.make_in(folder, |name| unnamed::name(&file, name))) {
                    Ok(named) => named,
                    // Some file systems have files without names, but give them none later.
                    Err(_) => {
                        let mut named = temporary(&path, |builder, folder| builder.tempfile_in(folder))?;
                        file.rewind()?;
                        io::copy(&mut file, named.as_file_mut())?;
                        named
                    }
                }
            }
            None => {
                let mut file = temporary(&path, |builder, folder| builder.tempfile_in(folder))?;
                contents(file.as_file_mut())?;
                file
            }
        };
        file.rename(|file| match existing {
            Existing::Replace => file.persist(path),
            Existing::Keep => file.persist_noclobber(path),
        })
        .map_err(|error| error.error)
    };
    write().map(|_| ()).with_context(|| format!("cannot write `{}`", path.display()))
}

/// The file to replace: for a symbolic link, the link's target.
fn target(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// A temporary file next to `path`, with the permissions of any new file, which is renamed when it is complete.
fn temporary(
    path: &Path,
    create: impl FnOnce(&Builder<'_, '_>, &Path) -> io::Result<NamedTempFile>,
) -> io::Result<Temporary> {
    let mut builder = Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    Temporary::create(|| create(&builder, folder_of(path)))
}

/// Files that have no name while they are written, so that nothing is left of one if the program is killed.
#[cfg(target_os = "linux")]
mod unnamed {
    use std::fs::{File, OpenOptions};
    use std::io;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    use std::path::{Path, PathBuf};

    use rustix::fs::{AtFlags, CWD, OFlags, linkat};

    /// Creates a file, which is none where the file system has no files without names.
    pub fn create_in(folder: &Path) -> Option<File> {
        let flags = OFlags::TMPFILE.bits().cast_signed();
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(folder).ok()?;
        path_of(&file).exists().then_some(file)
    }

    /// Gives the file a name that no other file has.
    pub fn name(file: &File, name: &Path) -> io::Result<File> {
        linkat(CWD, path_of(file), CWD, name, AtFlags::SYMLINK_FOLLOW)?;
        file.try_clone()
    }

    fn path_of(file: &File) -> PathBuf {
        format!("/proc/self/fd/{}", file.as_raw_fd()).into()
    }
}

/// Other systems have no such files.
#[cfg(not(target_os = "linux"))]
mod unnamed {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub fn create_in(_: &Path) -> Option<File> {
        None
    }

    pub fn name(_: &File, _: &Path) -> io::Result<File> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
