//! PyTorch, in a process of its own.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, bail};

/// `peers/pytorch.py`, which answers a line with a line.
pub struct PyTorch {
    process: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl PyTorch {
    /// Starts it, if it is on this machine; says so if not.
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
        let mut process = Command::new("python3")
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start python3")?;
        let questions = process.stdin.take();
        let answers = BufReader::new(process.stdout.take().context("it has no output")?);
        Ok(Self { process, questions, answers })
    }

    /// The time in microseconds of what is asked for, if PyTorch has it.
    pub fn time(&mut self, question: &serde_json::Value) -> anyhow::Result<Option<f64>> {
        let questions = self.questions.as_mut().context("PyTorch has ended")?;
        writeln!(questions, "{question}").context("PyTorch has ended")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer).context("PyTorch has ended")?;
        let answer: serde_json::Value = serde_json::from_str(&answer).context("PyTorch's answer is no JSON")?;
        Ok(answer["us"].as_f64())
    }
}

impl Drop for PyTorch {
    fn drop(&mut self) {
        // The end of its input ends it.
        self.questions = None;
        let _ = self.process.wait();
    }
}
