//! Signals: Ctrl-C sends SIGINT, and `timeout` and `kill` send SIGTERM.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::{BENCH, Files, npy, stderr, stdout};

/// Starts `bench`, with pipes that the test writes and reads.
fn start(arguments: &[&str]) -> Child {
    let mut bench = Command::new(&*BENCH);
    bench.args(arguments).args(["--device", "simt"]);
    bench.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("bench starts")
}

fn send(signal: &str, bench: &Child) {
    let sent = Command::new("kill").args([signal, &bench.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "bench has ended before {signal}");
}

/// Waits until the program sleeps in a system call, so that it has no more to do before it gets input.
fn wait_until_it_sleeps(bench: &Child) {
    let start = Instant::now();
    let mut asleep = 0;
    while asleep < 5 {
        assert!(start.elapsed() < Duration::from_secs(60), "bench does not wait");
        sleep(Duration::from_millis(20));
        // The state follows the name in brackets. Elsewhere than on Linux, a second is enough.
        let state = fs::read_to_string(format!("/proc/{}/stat", bench.id())).ok();
        let is_asleep = state.map(|state| state.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S')));
        asleep = if is_asleep.unwrap_or(start.elapsed() > Duration::from_secs(1)) { asleep + 1 } else { 0 };
    }
}

/// Checks that the program has ended soon after one signal, with exit code 130. Returns its output and its messages.
fn ends_soon(mut bench: Child, what: &str) -> (String, String) {
    let start = Instant::now();
    while bench.try_wait().expect("bench is known").is_none() {
        if start.elapsed() > Duration::from_secs(10) {
            bench.kill().expect("bench is killed");
            panic!("{what}: bench still runs 10 seconds after the signal");
        }
        sleep(Duration::from_millis(5));
    }
    drop(bench.stdin.take());
    let output = bench.wait_with_output().expect("bench ends");
    assert_eq!(output.status.code(), Some(130), "{what}: {}", stderr(&output));
    (stdout(&output), stderr(&output))
}

/// What reaches the program before it waits.
#[derive(Clone, Copy, Debug)]
enum Input {
    /// A pipe that nobody opens for writing.
    UnopenedPipe,
    /// A pipe with this many bytes of a file.
    Pipe(usize),
    /// Standard input with this many bytes of a file.
    Stdin(usize),
}

#[test]
fn the_first_signal_ends_a_program_that_waits_for_input() {
    let files = Files::new();
    let file = npy("<f4", false, "(3, 100)", &[0; 1200]);
    let commands = [["sum"].as_slice(), &["reduce", "--op", "max"], &["transpose"]];
    // Within the magic bytes, the header, the elements, and before any byte.
    let inputs = [
        Input::UnopenedPipe,
        Input::Pipe(0),
        Input::Pipe(5),
        Input::Pipe(40),
        Input::Pipe(file.len() - 1),
        Input::Stdin(0),
        Input::Stdin(300),
    ];
    for (i, input) in inputs.into_iter().enumerate() {
        let command = commands[i % commands.len()];
        let pipe = files.path(&format!("pipe{i}"));
        assert!(Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()), "mkfifo");
        let output = files.path("out.npy");
        let of = |input: &str| start(&[command, &["--input", input, "--output", &output]].concat());
        let (mut bench, mut writer) = (None, None);
        match input {
            Input::UnopenedPipe => bench = Some(of(&pipe)),
            Input::Pipe(bytes) => {
                bench = Some(of(&pipe));
                let mut opened = File::options().write(true).open(&pipe).expect("bench reads the pipe");
                opened.write_all(&file[..bytes]).expect("the pipe takes them");
                writer = Some(opened);
            }
            Input::Stdin(bytes) => {
                let started = bench.insert(of("-"));
                started.stdin.as_mut().expect("a pipe").write_all(&file[..bytes]).expect("the pipe takes them");
            }
        }
        let bench = bench.expect("it is started");
        wait_until_it_sleeps(&bench);
        send(if i % 2 == 0 { "-TERM" } else { "-INT" }, &bench);
        let (printed, message) = ends_soon(bench, &format!("{command:?} {input:?}"));
        drop(writer);
        assert_eq!(printed, "", "{command:?} {input:?}");
        assert!(message.contains("interrupted: there was no result yet"), "{message}");
        let left: Vec<_> = fs::read_dir(files.0.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(left.len(), i + 1, "only the pipes: {left:?}");
    }
}

/// The numbers are made, copied and checked for longer than the test waits.
#[test]
fn the_first_signal_ends_a_program_without_results() {
    for (signal, command) in [
        ("-TERM", ["sum", "--n", "2^28", "--dtype", "f64"].as_slice()),
        ("-INT", &["sum", "--rung", "neighbored", "--n", "2^27"]),
        ("-HUP", &["reduce", "--shape", "2^28"]),
        ("-INT", &["transpose", "--shape", "2^14x2^14"]),
        ("-TERM", &["profile", "sequential", "--n", "2^24"]),
    ] {
        let bench = start(command);
        sleep(Duration::from_millis(300));
        send(signal, &bench);
        let (printed, message) = ends_soon(bench, &format!("{command:?}"));
        assert_eq!(printed, "", "{command:?}");
        assert!(message.contains("interrupted: there was no result yet"), "{command:?}: {message}");
    }
}

#[test]
fn one_signal_ends_a_program_whose_output_is_not_read() {
    let files = Files::new();
    // Each sum is printed, and a pipe holds 64 KiB.
    let input = files.write("a.npy", &npy("<f4", false, "(100000, 1)", &[1; 400_000]));
    let mut bench = start(&["sum", "--input", &input, "--axis", "1", "--format", "csv"]);
    // The first bytes are read, so that the program is known to print.
    let mut first = [0; 10];
    bench.stdout.as_mut().expect("a pipe").read_exact(&mut first).expect("bench prints");
    wait_until_it_sleeps(&bench);
    send("-TERM", &bench);
    let (_, message) = ends_soon(bench, "a full pipe");
    assert!(message.contains("standard output was not read"), "{message}");
}

#[test]
fn a_second_signal_ends_at_once() {
    // The first case has a result soon, and the second one takes longer than the test.
    for seconds in [1, 2, 4, 8, 16] {
        let mut bench = start(&["reduce", "--shape", "1x16,2^24x16", "--axis", "1"]);
        sleep(Duration::from_secs(seconds));
        send("-INT", &bench);
        // Within a second, the second signal would be ignored.
        sleep(Duration::from_millis(1500));
        // On a busy machine there was no result yet.
        if bench.try_wait().expect("bench is known").is_some() {
            ends_soon(bench, "no result");
            continue;
        }
        send("-INT", &bench);
        let (printed, message) = ends_soon(bench, "a second signal");
        assert_eq!(printed, "");
        assert!(message.contains("stopping after this kernel") && message.contains("interrupted again"), "{message}");
        return;
    }
    panic!("the first case has no result after 16 seconds");
}

/// The output of `bench` when it is interrupted after some seconds.
fn interrupted(signal: &str, command: &[&str], seconds: u64) -> String {
    let bench = start(&[command, &["--format", "csv"]].concat());
    sleep(Duration::from_secs(seconds));
    send(signal, &bench);
    let output = bench.wait_with_output().expect("bench ends");
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(130), "{command:?}: {message}");
    let parts: &[&str] = match stdout(&output).is_empty() {
        true => &["interrupted: there was no result yet"],
        false => &["stopping after this kernel", "interrupted: the results so far are printed above"],
    };
    assert!(parts.iter().all(|part| message.contains(part)), "{command:?}: {message}");
    stdout(&output)
}

#[test]
fn an_interrupted_run_prints_its_results() {
    let shapes = format!("2^20{}", ",2^25".repeat(100));
    for (signal, command) in [
        ("-INT", ["ladder", "reduce", "--n", "2^22"].as_slice()),
        ("-TERM", &["ladder", "reduce", "--n", "2^22"]),
        ("-INT", &["reduce", "--shape", &shapes]),
        ("-INT", &["sum", "--n", "2^14", "--samples", "100000"]),
    ] {
        // This is far too little time for the whole run, even on 16 cores. On a busy machine the first measurement may
        // take longer, so the time is doubled until there is a result.
        let mut texts = [1, 2, 4, 8, 16, 32].into_iter().map(|seconds| interrupted(signal, command, seconds));
        let text = texts.find(|text| text.contains("true"));
        let text = text.unwrap_or_else(|| panic!("{command:?} has measured nothing"));
        assert!(command[0] != "ladder" || !text.contains("single_launch"), "{text}");
    }
}
