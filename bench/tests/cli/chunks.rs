//! `--memory`: files that are read a chunk at a time.

use std::fs::{self, File};
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread::{self, sleep};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::{BENCH, Files, bench, npy, refused, stderr, stdout};

/// Numbers whose sum by plain additions is wrong: each scale cancels but for a small rest.
fn numbers(count: usize) -> Vec<f64> {
    let scale = |i: usize| [1e20, 1.0, -1e20, 1e-10, 3.0][i % 5];
    (0..count).map(|i| scale(i) * (1 + i % 7) as f64).collect()
}

fn bytes<T: Copy, const N: usize>(numbers: &[T], to_bytes: fn(T) -> [u8; N]) -> Vec<u8> {
    numbers.iter().flat_map(|&x| to_bytes(x)).collect()
}

/// The file that a run writes.
fn written(files: &Files, arguments: &[&str]) -> Vec<u8> {
    let out = files.path("out.npy");
    let output = bench(&[arguments, &["--output", &out, "--force"]].concat());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    fs::read(out).expect("the output")
}

/// Files of several types and byte orders, in C and in Fortran order, along all axes that are possible.
#[test]
fn results_are_those_of_the_whole_array() {
    let files = Files::new();
    let all = numbers(100 * 12 * 10);
    let (shape, singles) = ("(100, 12, 10)", all.iter().map(|&x| x as f32).collect::<Vec<_>>());
    let integers: Vec<i64> = (0..all.len() as i64).map(|i| i.wrapping_mul(0x1E37_79B9_7F4A_7C15)).collect();
    let inputs = [
        ("f8", npy("<f8", false, shape, &bytes(&all, f64::to_le_bytes))),
        ("fortran", npy("<f8", true, shape, &bytes(&all, f64::to_le_bytes))),
        ("big", npy(">f4", false, shape, &bytes(&singles, f32::to_be_bytes))),
        ("i8", npy("<i8", false, shape, &bytes(&integers, i64::to_le_bytes))),
    ];
    for (name, contents) in inputs {
        let input = files.write(&format!("{name}.npy"), &contents);
        for (axes, memory) in [
            (None, "16K"),
            (None, "1G"),
            (Some("0"), "24K"),
            (Some("0"), "1M"),
            (Some("0,1"), "64K"),
            (Some("0,2"), "64K"),
            (Some("2"), "1M"),
            (Some("1,2"), "32K"),
        ] {
            for operator in ["sum", "mean", "norm", "sum-of-squares"] {
                let mut command = vec!["reduce", "--op", operator, "--input", &input];
                command.extend(axes.iter().flat_map(|axes| ["--axis", axes]));
                let whole = written(&files, &command);
                command.extend(["--memory", memory]);
                assert!(written(&files, &command) == whole, "{command:?}");
            }
        }
    }
}

/// Arrays without elements, or without results; and runs of neighbours that do not fit in a buffer.
#[test]
fn odd_shapes_have_the_results_of_the_whole_array() {
    let files = Files::new();
    let long: Vec<f32> = numbers(2 * 2 * 300_000).into_iter().map(|x| x as f32).collect();
    let long = bytes(&long, f32::to_le_bytes);
    for (dtype, shape, axes, elements) in [
        ("<f4", "(0, 5)", "0", &[][..]),
        ("<f4", "(0, 5)", "1", &[]),
        ("|u1", "(5, 0)", "0", &[]),
        ("<i2", "(5, 0)", "1", &[]),
        (">f8", "(3, 4, 0)", "0,2", &[]),
        ("<f2", "(3, 100, 0)", "0,2", &[]),
        ("<f4", "(1125899906842624, 0, 3)", "2", &[]),
        ("<f4", "(2, 2, 300000)", "0,2", &long),
        ("<f4", "(2, 300000, 2)", "0", &long),
        ("<f4", "(2, 2, 300000)", "1", &long),
        ("<f4", "(2, 2, 300000)", "2", &long),
        ("<f4", "(1200000,)", "0", &long),
    ] {
        // The long ones take longer.
        let all = ["sum", "norm", "mean", "sum-of-squares"];
        let (operators, orders) = if elements.is_empty() { (&all[..], 2) } else { (&all[..2], 1) };
        for is_fortran in [false, true].into_iter().take(orders) {
            let input = files.write("odd.npy", &npy(dtype, is_fortran, shape, elements));
            for operator in operators {
                let command = ["reduce", "--op", operator, "--input", &input, "--axis", axes];
                let whole = written(&files, &command);
                let chunked = written(&files, &[&command[..], &["--memory", "200M"]].concat());
                assert!(chunked == whole, "{command:?} of {dtype} {shape}, Fortran order: {is_fortran}");
            }
        }
    }
}

/// A pipe is read once, in chunks that grow to its rows.
#[test]
fn a_pipe_may_have_long_rows() {
    let files = Files::new();
    let contents = npy("<f8", false, "(3, 200000)", &bytes(&numbers(600_000), f64::to_le_bytes));
    let input = files.write("rows.npy", &contents);
    let whole = written(&files, &["sum", "--axis", "0", "--input", &input]);
    let of_pipe = |memory: &str, threads: &str| {
        let out = files.path("piped.npy");
        let mut command = Command::new(&*BENCH);
        command.args(["sum", "--device", "simt", "--axis", "0", "--input", "-", "--memory", memory, "--output", &out]);
        command.env("WARPFOLD_THREADS", threads);
        let input = File::open(&input).expect("it exists");
        let mut cat = Command::new("cat").stdin(input).stdout(Stdio::piped()).spawn().expect("cat starts");
        let output = command.arg("--force").stdin(cat.stdout.take().expect("a pipe")).output().expect("bench runs");
        // The reader may have refused before the end of the pipe, of which the command has an end, too.
        drop(command);
        let _ = cat.wait();
        (output.status.code(), stderr(&output), fs::read(out).ok())
    };
    for threads in ["1", "3", "64"] {
        let (code, message, piped) = of_pipe("1G", threads);
        assert_eq!(code, Some(0), "{message}");
        assert!(piped.as_ref() == Some(&whole), "the results of the pipe differ");
    }
    let (code, message, _) = of_pipe("64M", "2");
    assert_eq!(code, Some(2));
    assert!(
        message.contains("200000 columns") && message.contains("only a file can be read several times"),
        "{message}"
    );
}

#[test]
fn a_chunked_run_says_what_it_has_summed() {
    let files = Files::new();
    let input =
        files.write("a.npy", &npy("<f4", false, "(5,)", &bytes(&[1e20_f32, 1.0, -1e20, 3.0, 0.5], f32::to_le_bytes)));
    let text = stdout(&bench(&["sum", "--input", &input, "--memory", "1M"]));
    assert!(text.contains("5 f32 in `") && text.contains("\nsum = 4.5\n") && text.contains("On the host"), "{text}");
    let json = stdout(&bench(&["reduce", "--op", "mean,sum", "--input", &input, "--memory", "1M", "--format", "json"]));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["summed_by"], &json["bytes"]), (&"host".into(), &20.into()), "{json}");
    assert_eq!((&json["rows"][0]["result"], &json["rows"][1]["result"]), (&0.9.into(), &4.5.into()), "{json}");
    let output = bench(&["sum", "--input", &input, "--memory", "1M", "--format", "csv"]);
    let (csv, messages) = (stdout(&output), stderr(&output));
    assert!(csv.lines().nth(1).is_some_and(|row| row.starts_with("sum,5 f32,4.5,host,")), "{csv}");
    // A progress bar is for terminals.
    assert_eq!(messages, "");
    let bools = files.write("bool.npy", &npy("|b1", false, "(2, 2)", &[0, 1, 2, 1]));
    refused(&["sum", "--input", &bools, "--memory", "1M"], &["NumPy's bool", "element at [1, 0] is 2"]);
}

#[test]
fn what_cannot_be_chunked_is_refused() {
    let files = Files::new();
    let input = files.write("a.npy", &npy("<f4", false, "(6, 5, 4, 3)", &[0; 4 * 360]));
    let of = |more: &[&'static str]| [&["reduce", "--input", &input, "--memory", "1M"], more].concat();
    refused(&of(&["--op", "sum,max"]), &["--op max", "choose from sum, mean, sum-of-squares, norm"]);
    refused(&of(&["--axis", "0,2"]), &["--memory", "choose another --axis"]);
    refused(&of(&["--axis", "4"]), &["no axis 4"]);
    refused(&of(&["--op", "sum,mean", "--output", "x.npy"]), &["--output takes the results of one operator"]);
    refused(&of(&["--samples", "3"]), &["--samples has no effect with --memory"]);
    refused(&["sum", "--input", &input, "--memory", "1M", "--rung", "neighbored"], &["--rung has no effect with"]);
    refused(&["sum", "--memory", "1M"], &["--memory has no effect without --input"]);
    refused(&["sum", "--input", &input, "--memory", "1K"], &["at least 16K"]);
    refused(&["sum", "--input", &input, "--memory", "2X"], &["'2X' for '--memory <SIZE>'", "such as 512M"]);
    refused(&["sum", "--input", &input, "--axis", "3", "--memory", "16K"], &["120 results alone need"]);
    refused(&["sum", "--input", &files.path("none.npy"), "--memory", "1M"], &["cannot open"]);
}

#[test]
fn a_truncated_file_is_refused() {
    let files = Files::new();
    let whole = npy("<f4", false, "(100000,)", &[0; 400_000]);
    for len in [whole.len() - 1, whole.len() - 100, 1000, 100, 20, 5] {
        let input = files.write("short.npy", &whole[..len]);
        refused(&["sum", "--input", &input, "--memory", "64K"], &["short.npy"]);
    }
    // A pipe, whose length is known at its end.
    let pipe = files.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()), "mkfifo");
    for (len, parts) in [(whole.len(), None), (whole.len() - 1, Some("is truncated: its header promises 100000"))] {
        let (path, contents) = (pipe.clone(), whole[..len].to_vec());
        let writer = thread::spawn(move || File::options().write(true).open(path)?.write_all(&contents));
        match parts {
            Some(part) => refused(&["sum", "--input", &pipe, "--memory", "64K"], &[part]),
            None => assert!(stdout(&bench(&["sum", "--input", &pipe, "--memory", "64K"])).contains("sum = 0.0")),
        }
        // The reader may have ended first.
        let _ = writer.join().expect("the writer does not panic");
    }
}

/// A file of 400 MB, without blocks, whose reading takes longer than the test waits.
fn large(files: &Files, name: &str) -> String {
    let path = files.write(name, &npy("<f8", false, "(50000000,)", &[]));
    let file = File::options().write(true).open(&path).expect("it exists");
    file.set_len(fs::metadata(&path).expect("it exists").len() + 400_000_000).expect("a sparse file");
    path
}

/// Either the file is read before it changes, or the message names the change.
#[test]
fn a_file_that_changes_while_it_is_read_is_named() {
    let files = Files::new();
    let mut found = 0;
    for (round, part) in
        ["became shorter", "became longer", "was written while"].into_iter().cycle().take(9).enumerate()
    {
        let input = large(&files, "changing.npy");
        let mut command = Command::new(&*BENCH);
        command.args(["sum", "--device", "simt", "--input", &input, "--memory", "64K"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("bench starts");
        sleep(Duration::from_millis(20 + 10 * round as u64));
        let mut file = File::options().append(part != "was written while").write(true).open(&input).expect("a file");
        match part {
            "became shorter" => file.set_len(1000).expect("it is truncated"),
            "became longer" => file.write_all(&[0]).expect("it is longer"),
            _ => file.write_all(b"\x93").expect("it is written"),
        }
        let output = child.wait_with_output().expect("bench ends");
        let message = stderr(&output);
        match output.status.code() {
            Some(0) => assert!(stdout(&output).contains("sum = 0.0"), "{message}"),
            // The file may have changed before it was opened.
            code => {
                assert_eq!(code, Some(2), "{message}");
                assert!(message.contains(part) || message.contains("is truncated: according to"), "{message}");
                found += u32::from(message.contains(part));
            }
        }
    }
    assert!(found > 0, "no change was while the file was read");
}

/// Kills the program at twenty random moments. The output is then absent or whole.
#[test]
fn a_killed_run_leaves_no_half_of_its_output() {
    let files = Files::new();
    let input = files.write("a.npy", &npy("<f8", false, "(1000, 500)", &bytes(&numbers(500_000), f64::to_le_bytes)));
    let whole = written(&files, &["sum", "--input", &input, "--axis", "0", "--memory", "1M"]);
    fs::remove_file(files.path("out.npy")).expect("it was written");
    let (mut source, mut killed) = (SmallRng::seed_from_u64(26), 0);
    for round in 0..20 {
        let (signal, out) = (if round % 2 == 0 { "-KILL" } else { "-INT" }, files.path("killed.npy"));
        let mut command = Command::new(&*BENCH);
        command.args(["sum", "--device", "simt", "--input", &input, "--axis", "0", "--memory", "1M", "--output", &out]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("bench starts");
        sleep(Duration::from_micros(source.random_range(0..60_000)));
        let _ = Command::new("kill").args([signal, &child.id().to_string()]).stderr(Stdio::null()).status();
        let output = child.wait_with_output().expect("bench ends");
        killed += u32::from(!output.status.success());
        match fs::read(&out) {
            Ok(found) => assert_eq!(found, whole, "round {round}"),
            Err(_) => assert!(!output.status.success(), "round {round}"),
        }
        let _ = fs::remove_file(&out);
        for file in fs::read_dir(files.0.path()).expect("a folder") {
            let path = file.expect("a file").path();
            if path.file_name().is_none_or(|name| name != "a.npy") {
                // On Linux a file has its name when it is whole. SIGKILL can be before that name is the right one.
                assert_eq!((signal, fs::read(&path).ok()), ("-KILL", Some(whole.clone())), "round {round}: {path:?}");
                fs::remove_file(&path).expect("it is removed");
            }
        }
    }
    assert!(killed > 0, "each run has ended before the signal");
}
