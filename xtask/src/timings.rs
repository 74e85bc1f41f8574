//! `cargo xtask timings`: measures how long builds and tests take.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::ValueEnum;

use crate::{progress, workspace};

/// A group of steps in one clone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Row {
    /// The first `cargo xtask bench`
    Bench,
    /// The first `cargo xtask test`, a second one, and tests and PTX after edits
    Test,
    /// The benchmark's release build, as on a machine with a GPU of sm_90
    Gpu,
    /// The first `cargo xtask bundle`
    Bundle,
    /// The first `.ci/run`
    Ci,
}

/// A command to measure.
struct Step {
    name: &'static str,
    /// An edit before the command: the file, a text in it, and its replacement.
    edit: Option<(&'static str, &'static str, &'static str)>,
    command: &'static str,
    /// The time that the command should take at most, in seconds.
    goal: Option<u64>,
}

const fn step(name: &'static str, command: &'static str, minutes: u64, seconds: u64) -> Step {
    Step { name, edit: None, command, goal: Some(60 * minutes + seconds) }
}

/// A line of a kernel, and an equivalent line that triggers a build.
const KERNEL: (&str, &str, &str) = (
    "kernels/src/transpose/tiled/access/unaligned.rs",
    "let mask = (1 << self.shape.log2_down) - 1;",
    "let mask = (1_u32 << self.shape.log2_down).wrapping_sub(1);",
);

/// A line of a plan, and an equivalent line that triggers a build.
const PLAN: (&str, &str, &str) = (
    "host/src/reduce/method.rs",
    "if vectors <= MAX_SHORT_ROW_VECTORS && (rows > 1 || !is_any_order) {",
    "if (rows > 1 || !is_any_order) && vectors <= MAX_SHORT_ROW_VECTORS {",
);

impl Row {
    fn steps(self) -> Vec<Step> {
        match self {
            Self::Bench => vec![step("xtask bench, fresh clone, no GPU", "cargo xtask bench", 3, 0)],
            Self::Test => vec![
                step("xtask test, fresh clone", "cargo xtask test", 6, 0),
                step("xtask test again, nothing changed", "cargo xtask test", 1, 30),
                Step {
                    edit: Some(KERNEL),
                    ..step("a kernel edited, its tests", "cargo xtask test --test cpu transposes", 1, 0)
                },
                step("the PTX after it, one architecture", "cargo xtask build-ptx --arch sm_90", 1, 0),
                Step {
                    edit: Some(PLAN),
                    ..step("a plan edited, its tests", "cargo xtask test --test cpu reductions", 0, 40)
                },
            ],
            // With this variable, xtask builds as on a machine with a GPU.
            Self::Gpu => {
                vec![step("release build of bench, fresh clone", "WARPFOLD_ARCHS=sm_90 cargo xtask bench --help", 5, 0)]
            }
            Self::Bundle => vec![step("xtask bundle, fresh clone", "cargo xtask bundle", 8, 0)],
            Self::Ci => vec![step(".ci/run, fresh clone", "CI=true .ci/run", 10, 0)],
        }
    }
}

/// Measures these rows, or all, and prints the table.
pub fn run(rows: &[Row]) -> anyhow::Result<()> {
    let rows = if rows.is_empty() { Row::value_variants() } else { rows };
    let folder = workspace::target().join("timings");
    let mut table = Vec::new();
    for row in rows {
        let clone = clone_to(&folder.join(format!("{row:?}").to_lowercase()))?;
        for step in row.steps() {
            let time = measure(&clone, &step)?;
            eprintln!("xtask: {}: {}", step.name, minutes_and_seconds(time));
            table.push((step, time));
        }
        fs::remove_dir_all(&clone).context("cannot remove the clone")?;
    }
    println!("{:<42} {:>6} {:>6}  command", "what", "time", "goal");
    for (Step { name, command, goal, .. }, time) in table {
        let goal = goal.map(|seconds| minutes_and_seconds(Duration::from_secs(seconds))).unwrap_or_default();
        println!("{name:<42} {:>6} {goal:>6}  {command}", minutes_and_seconds(time));
    }
    Ok(())
}

/// Clones the last commit to a folder.
fn clone_to(folder: &Path) -> anyhow::Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(folder).context("cannot remove an old clone")?;
    }
    workspace::output(Command::new("git").args(["clone", "--quiet"]).arg(workspace::root()).arg(folder))?;
    Ok(folder.to_owned())
}

/// Measures a step in a clone. Its output goes to a file next to the clone.
fn measure(clone: &Path, step: &Step) -> anyhow::Result<Duration> {
    if let Some((file, from, to)) = step.edit {
        let path = clone.join(file);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read `{file}`"))?;
        ensure!(
            text.contains(from),
            "`{file}` no longer contains the line `{from}`: change it in xtask/src/timings.rs"
        );
        fs::write(&path, text.replacen(from, to, 1)).with_context(|| format!("cannot write `{file}`"))?;
    }
    let log = clone.with_extension("log");
    let output = fs::File::create(&log).with_context(|| format!("cannot create `{}`", log.display()))?;
    let errors = output.try_clone().context("cannot write the log twice")?;
    let mut command = Command::new("bash");
    command.current_dir(clone).args(["-c", step.command]).stdout(output).stderr(errors);
    // The cargo that runs xtask has set these variables.
    for variable in ["CARGO", "CARGO_TARGET_DIR", "CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", "WARPFOLD_ARCHS"] {
        command.env_remove(variable);
    }
    let start = Instant::now();
    let code = progress::run(&mut command, step.name)?;
    ensure!(code == 0, "`{}` ended with exit code {code}: see `{}`", step.command, log.display());
    Ok(start.elapsed())
}

/// The time in minutes and seconds.
fn minutes_and_seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edited_lines_exist() {
        for (file, from, _) in [KERNEL, PLAN] {
            let text = fs::read_to_string(workspace::root().join(file)).unwrap();
            assert_eq!(text.matches(from).count(), 1, "{file}");
        }
    }

    #[test]
    fn times_are_minutes_and_seconds() {
        assert_eq!(
            [59, 60, 3601].map(|seconds| minutes_and_seconds(Duration::from_secs(seconds))),
            ["0:59", "1:00", "60:01"]
        );
    }
}
