//! A local registry of the packages and their dependencies, in a folder outside the workspace.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use tempfile::TempDir;

use super::{Package, REQUIRED_FILES};
use crate::workspace;

/// A cargo configuration that replaces crates.io by the registry, for crates in the folder `home`.
const CONFIG: &str = "\
[source.crates-io]
replace-with = \"packages\"

[source.packages]
directory = \"../registry\"
";

/// A temporary folder: `registry` has the packages, `home` has crates that use them.
pub struct Registry {
    folder: TempDir,
    packages: Vec<Package>,
}

impl Registry {
    /// Unpacks the packages that cargo has made.
    pub fn create(packages: &[Package]) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("warpfold-packages-")
            .tempdir()
            .context("cannot create a temporary folder")?;
        let registry = Self { folder, packages: packages.to_vec() };
        let config = registry.home().join(".cargo");
        fs::create_dir_all(registry.packages_folder()).context("cannot create the registry")?;
        fs::create_dir_all(&config).context("cannot create a folder for cargo's configuration")?;
        fs::write(config.join("config.toml"), CONFIG).context("cannot write cargo's configuration")?;
        for package in packages {
            let mut tar = Command::new("tar");
            tar.arg("-xzf").arg(package.file()).arg("-C").arg(registry.packages_folder());
            workspace::output(&mut tar)?;
            let unpacked = registry.folder_of(&package.name)?;
            for file in REQUIRED_FILES {
                ensure!(unpacked.join(file).is_file(), "the package `{}` has no `{file}`", package.name);
            }
            // Cargo requires this list of the files' digests, which may be empty.
            fs::write(unpacked.join(".cargo-checksum.json"), "{\"files\":{}}").context("cannot write a checksum")?;
        }
        Ok(registry)
    }

    fn packages_folder(&self) -> PathBuf {
        self.folder.path().join("registry")
    }

    /// The folder for crates that use the packages. Its cargo configuration selects the registry.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The folder of an unpacked package.
    pub fn folder_of(&self, name: &str) -> anyhow::Result<PathBuf> {
        Ok(self.packages_folder().join(self.package(name)?.full_name()))
    }

    /// The package of this name.
    pub fn package(&self, name: &str) -> anyhow::Result<&Package> {
        let package = self.packages.iter().find(|package| package.name == name);
        package.with_context(|| format!("there is no package `{name}`"))
    }

    /// Adds the dependencies from crates.io of the crate in `user`, in the versions of the workspace's lock file.
    pub fn add_dependencies_of(&self, user: &Path) -> anyhow::Result<()> {
        let lock = user.join("Cargo.lock");
        fs::copy(workspace::root().join("Cargo.lock"), &lock).context("cannot copy Cargo.lock")?;
        let mut cargo = workspace::cargo();
        cargo.current_dir(user).args(["vendor", "--quiet", "--no-delete", "--versioned-dirs"]);
        for package in &self.packages {
            let folder = self.folder_of(&package.name)?;
            cargo.arg("--config").arg(format!("patch.crates-io.{}.path={:?}", package.name, folder));
        }
        workspace::output(cargo.arg(self.packages_folder()))?;
        // This lock file names the packages by their folders. Without it, cargo takes all from the registry.
        fs::remove_file(lock).context("cannot remove Cargo.lock")
    }

    /// The files of the workspace's packages, with their lengths and modification times.
    pub fn files(&self) -> anyhow::Result<BTreeMap<PathBuf, (u64, std::time::SystemTime)>> {
        let mut files = BTreeMap::new();
        for package in &self.packages {
            collect(&self.folder_of(&package.name)?, &mut files)?;
        }
        Ok(files)
    }
}

fn collect(folder: &Path, files: &mut BTreeMap<PathBuf, (u64, std::time::SystemTime)>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list `{}`", folder.display()))? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            collect(&entry.path(), files)?;
        } else {
            files.insert(entry.path(), (metadata.len(), metadata.modified()?));
        }
    }
    Ok(())
}
