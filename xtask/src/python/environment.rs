//! Pythons of this machine, and virtual environments for them.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::{progress, workspace};

/// The oldest supported Python, as the crate's feature `abi3-py311`.
pub const OLDEST: (u32, u32) = (3, 11);

/// A Python that can make virtual environments.
#[derive(Clone, Debug)]
pub struct Python {
    pub program: PathBuf,
    pub version: (u32, u32),
}

impl Python {
    /// All supported versions that this machine has, one of each, the oldest first.
    pub fn all() -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for program in candidates() {
            if let Some(python) = Self::probe(&program)
                && python.version >= OLDEST
                && found.iter().all(|other| other.version != python.version)
            {
                found.push(python);
            }
        }
        found.sort_by_key(|python| python.version);
        found
    }

    /// The Python of this name, if there is one and it has `venv` and pip.
    fn probe(program: &Path) -> Option<Self> {
        let script = "import sys, venv, ensurepip; print(sys.version_info[0], sys.version_info[1], sys.executable)";
        let output = Command::new(program).args(["-c", script]).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let mut words = text.trim().splitn(3, ' ');
        let version = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Self { program: PathBuf::from(words.next()?), version })
    }
}

/// Where a Python may be: the variable `PYTHON`, the search path, and pyenv's folders.
fn candidates() -> Vec<PathBuf> {
    let named = env::var_os("PYTHON").map(PathBuf::from);
    let on_path = ["python3"].map(PathBuf::from).into_iter();
    let versions = (OLDEST.1..OLDEST.1 + 8).map(|minor| PathBuf::from(format!("python3.{minor}")));
    let pyenv = env::var_os("PYENV_ROOT").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".pyenv")));
    let of_pyenv = pyenv.and_then(|folder| fs::read_dir(folder.join("versions")).ok()).into_iter().flatten();
    let mut of_pyenv: Vec<PathBuf> = of_pyenv.flatten().map(|entry| entry.path().join("bin/python3")).collect();
    of_pyenv.sort();
    named.into_iter().chain(on_path).chain(versions).chain(of_pyenv).collect()
}

/// A virtual environment.
#[derive(Clone, Debug)]
pub struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// A new environment in a folder, whose contents are lost, with these packages.
    pub fn create(python: &Python, folder: &Path, packages: &[OsString]) -> anyhow::Result<Self> {
        let mut venv = Command::new(&python.program);
        venv.args(["-m", "venv", "--clear"]).arg(folder);
        workspace::output(&mut venv)?;
        let environment = Self { folder: folder.to_owned() };
        let mut pip = environment.python();
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages);
        progress::with_progress("installing Python packages", || workspace::output(&mut pip)).context("pip failed")?;
        Ok(environment)
    }

    /// An environment with the packages of a requirements file. It is kept, and made anew if the file or the version
    /// of Python has changed.
    pub fn with_requirements(python: &Python, folder: &Path, requirements: &Path) -> anyhow::Result<Self> {
        let list =
            fs::read_to_string(requirements).with_context(|| format!("cannot read `{}`", requirements.display()))?;
        let contents = format!("{:?} {}\n{list}", python.version, python.program.display());
        let stamp = folder.join("made-for");
        if fs::read_to_string(&stamp).is_ok_and(|made_for| made_for == contents) {
            return Ok(Self { folder: folder.to_owned() });
        }
        let environment = Self::create(python, folder, &["-r".into(), requirements.into()])?;
        fs::write(stamp, contents).context("cannot write to the environment")?;
        Ok(environment)
    }

    /// The environment's Python, without the caller's variables for Python.
    pub fn python(&self) -> Command {
        let mut python = Command::new(self.folder.join("bin/python"));
        for variable in ["PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"] {
            python.env_remove(variable);
        }
        python.env("PYTHONDONTWRITEBYTECODE", "1");
        python
    }

    /// A program of the environment.
    pub fn program(&self, name: &str) -> Command {
        let mut path = OsString::from(self.folder.join("bin"));
        if let Some(rest) = env::var_os("PATH") {
            path.push(":");
            path.push(rest);
        }
        let mut program = Command::new(self.folder.join("bin").join(name));
        program.env("PATH", path).env("VIRTUAL_ENV", &self.folder);
        program
    }
}

/// The oldest supported Python of this machine.
pub fn oldest_python() -> anyhow::Result<Python> {
    match Python::all().into_iter().next() {
        Some(python) => Ok(python),
        None => bail!("no Python of {}.{} or later with `venv` and `ensurepip`", OLDEST.0, OLDEST.1),
    }
}
