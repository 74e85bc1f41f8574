//! PyTorch, which runs in a separate process.

use std::io::{BufRead, BufReader, Write};
#[cfg(unix)]
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, bail, ensure};

use crate::peers::Called;

/// `peers/pytorch.py`, which answers each line with a line.
pub struct PyTorch {
    process: Child,
    /// `None` once the process has ended.
    pipes: Option<(ChildStdin, BufReader<ChildStdout>)>,
}

impl PyTorch {
    /// Starts PyTorch if it is installed; otherwise prints why it cannot be started.
    pub fn find(folder: &Path) -> Option<Self> {
        Self::start(&folder.join("pytorch.py")).inspect_err(|error| eprintln!("without PyTorch: {error:#}")).ok()
    }

    fn start(script: &Path) -> anyhow::Result<Self> {
        let found = Command::new("python3").args(["-c", "import torch; torch.cuda.current_device()"]).output();
        let found = found.context("there is no python3")?;
        if !found.status.success() {
            let message = String::from_utf8_lossy(&found.stderr);
            bail!("{}", message.lines().last().unwrap_or("python3 cannot import torch"));
        }
        let mut command = Command::new("python3");
        command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Ctrl-C must not end PyTorch, because this program first finishes its current measurement, which needs
        // PyTorch.
        #[cfg(unix)]
        command.process_group(0);
        let mut process = command.spawn().context("cannot start python3")?;
        let questions = process.stdin.take().context("it has no input")?;
        let answers = process.stdout.take().context("it has no output")?;
        Ok(Self { process, pipes: Some((questions, BufReader::new(answers))) })
    }

    /// PyTorch's time in microseconds for a question, if it has an answer. If the process has ended, prints that once.
    pub fn time(&mut self, question: &serde_json::Value) -> Option<Called<f64>> {
        let pipes = self.pipes.as_mut()?;
        match ask(pipes, question) {
            Ok(answer) => Some(Called::new(answer["call"].as_str()?, answer["us"].as_f64()?)),
            Err(error) => {
                eprintln!("without PyTorch from here on: {error:#}");
                self.pipes = None;
                None
            }
        }
    }
}

fn ask(
    (questions, answers): &mut (ChildStdin, BufReader<ChildStdout>),
    question: &serde_json::Value,
) -> anyhow::Result<serde_json::Value> {
    writeln!(questions, "{question}").context("the process has ended")?;
    let mut answer = String::new();
    let bytes = answers.read_line(&mut answer).context("its answer cannot be read")?;
    ensure!(bytes > 0, "the process has ended");
    serde_json::from_str(&answer).context("its answer is not JSON")
}

impl Drop for PyTorch {
    fn drop(&mut self) {
        // The process exits at the end of its input.
        self.pipes = None;
        let _ = self.process.wait();
    }
}
