//! Inputs and outputs in files.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::{BENCH, Files, bench, bench_in, npy, refused, stderr, stdout};

fn floats(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

#[test]
fn sums_of_files() {
    let files = Files::new();
    let f32s = files.write("f.npy", &npy("<f4", false, "(2, 3)", &floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.5])));
    assert!(stdout(&bench(&["sum", "--input", &f32s])).contains("sum = 21.5"));
    let csv = stdout(&bench(&["sum", "--input", &f32s, "--format", "csv"]));
    assert_eq!(csv.lines().nth(1).and_then(|row| row.split(',').nth(4)), Some("21.5"), "{csv}");
    let i32s: Vec<u8> = [i32::MAX, 1, 5].iter().flat_map(|x| x.to_le_bytes()).collect();
    let i32s = files.write("i.npy", &npy("<i4", false, "(3,)", &i32s));
    assert!(stdout(&bench(&["sum", "--input", &i32s])).contains("sum = 2147483653\n"), "integers in 64 bits");
    let by_rung = stdout(&bench(&["sum", "--input", &i32s, "--rung", "vectorized"]));
    assert!(by_rung.contains("sum = -2147483643\n"), "a rung's integers wrap");
    let none = files.write("none.npy", &npy("<f4", false, "(0,)", &[]));
    assert!(stdout(&bench(&["sum", "--input", &none])).contains("sum = 0"));
    let nan = files.write("nan.npy", &npy("<f4", false, "(2,)", &floats(&[f32::NAN, 1.0])));
    assert_eq!(bench(&["sum", "--input", &nan]).status.code(), Some(0));
}

/// The rung with the library's kernel returns the exact sum. A rung that adds floats rounds each addition.
#[test]
fn the_exact_rung_rounds_once() {
    let files = Files::new();
    let cancelling = [1e20_f32, 1.0, -1e20, 3.0].repeat(50);
    let file = files.write("cancelling.npy", &npy("<f4", false, "(200,)", &floats(&cancelling)));
    let sum_by = |arguments: &[&str]| stdout(&bench(&[&["sum", "--input", &file], arguments].concat()));
    assert!(sum_by(&["--rung", "exact_long_rows"]).contains("sum = 200.0\n"));
    assert!(sum_by(&[]).contains("sum = 200.0\n"));
    assert!(sum_by(&["--rung", "single_launch"]).contains("sum = 150.0\n"));
}

#[test]
fn infinite_sums_and_nan() {
    let files = Files::new();
    let infinite = f32::INFINITY;
    for (name, numbers, word) in [
        ("inf.npy", [infinite, 1.0], "inf"),
        ("minus.npy", [-infinite, 1.0], "-inf"),
        ("nan.npy", [f32::NAN, 1.0], "nan"),
        ("none.npy", [infinite, -infinite], "nan"),
        ("over.npy", [f32::MAX, f32::MAX], "inf"),
    ] {
        let file = files.write(name, &npy("<f4", false, "(2,)", &floats(&numbers)));
        let of = |format: &str| stdout(&bench(&["sum", "--input", &file, "--format", format]));
        let report: serde_json::Value = serde_json::from_str(&of("json")).expect("JSON");
        assert_eq!(report["sections"][0]["rows"][0]["result"], word, "{report}");
        let csv = of("csv");
        assert_eq!(csv.lines().nth(1).and_then(|row| row.split(',').nth(4)), Some(word), "{csv}");
        assert!(of("table").contains(&format!("sum = {word}\n")));
    }
}

#[test]
fn transposes_of_files() {
    let files = Files::new();
    let input = files.write("a.npy", &npy("<f4", false, "(2, 3)", &floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])));
    let output = files.path("t.npy");
    let done = bench(&["transpose", "--input", &input, "--output", &output]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    assert_eq!(stderr(&done), format!("wrote {output}\n"));
    let written = fs::read(&output).expect("the output exists");
    assert!(written.ends_with(&floats(&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0])), "{written:?}");
    assert!(String::from_utf8_lossy(&written).contains("(3, 2"));
    // `bench` can read its own output.
    let back = files.path("back.npy");
    assert_eq!(bench(&["transpose", "--input", &output, "--output", &back]).status.code(), Some(0));
    assert!(fs::read(&back).unwrap().ends_with(&floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])));
    // A rung transposes the matrix of a file, too.
    let by_rung = ["transpose", "--input", &output, "--rung", "tiled_8", "--output", &back, "--force"];
    assert_eq!(bench(&by_rung).status.code(), Some(0));
    assert!(fs::read(&back).unwrap().ends_with(&floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])));
    let fortran = files.write("f.npy", &npy("<f4", true, "(3, 2)", &floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])));
    let by_rung = ["transpose", "--input", &fortran, "--rung", "tiled_8", "--output", &back, "--force"];
    assert_eq!(bench(&by_rung).status.code(), Some(0));
    assert!(fs::read(&back).unwrap().ends_with(&floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])));
    let flat = files.write("flat.npy", &npy("<f4", false, "(6,)", &floats(&[1.0; 6])));
    refused(&["transpose", "--input", &flat], &["flat.npy", "at least 2"]);
    refused(&["transpose", "--input", &flat, "--rung", "tiled_8"], &["one matrix", "--rung"]);
}

#[test]
fn outputs_are_never_lost() {
    let files = Files::new();
    let input = files.write("a.npy", &npy("<f4", false, "(1, 2)", &floats(&[1.0, 2.0])));
    let precious = files.write("precious.npy", b"precious");
    refused(&["transpose", "--input", &input, "--output", &precious], &["exists", "--force"]);
    assert_eq!(fs::read(&precious).unwrap(), b"precious");
    assert_eq!(bench(&["transpose", "--input", &input, "--output", &precious, "--force"]).status.code(), Some(0));
    assert_ne!(fs::read(&precious).unwrap(), b"precious");
    refused(
        &["transpose", "--input", &input, "--output", &files.path("no/such/t.npy")],
        &["cannot write", "no folder"],
    );
    refused(&["transpose", "--input", &input, "--output", &files.path(""), "--force"], &["is a folder"]);
    refused(&["transpose", "--input", &input, "--output", "/dev/null", "--force"], &["not a regular file"]);
    let left: Vec<_> = fs::read_dir(files.0.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "only the two files: {left:?}");
    // A path without a folder is relative to the working folder.
    assert_eq!(
        bench_in(files.0.path(), &["transpose", "--input", "a.npy", "--output", "t.npy"]).status.code(),
        Some(0)
    );
    assert!(files.0.path().join("t.npy").exists());
}

#[test]
fn files_that_cannot_be_read() {
    let files = Files::new();
    let data = floats(&[1.0, 2.0, 3.0, 4.0]);
    let good = npy("<f4", false, "(2, 2)", &data);
    let check = |name: &str, contents: &[u8], parts: &[&str]| {
        let file = files.write(name, contents);
        for command in ["sum", "reduce", "transpose"] {
            refused(&[command, "--input", &file], &[&[name], parts].concat());
        }
    };
    check("empty.npy", b"", &["empty"]);
    check("text.npy", b"hello, this is no array\n", &["not an .npy file"]);
    check("magic.npy", &good[..6], &["not an .npy file"]);
    check("header.npy", &good[..40], &["not an .npy file"]);
    check("truncated.npy", &good[..good.len() - 1], &["truncated"]);
    check("huge.npy", &npy("<f4", false, "(4294967296, 4294967296)", &data), &["larger than any memory"]);
    check("long.npy", &npy("<f4", false, "(1000000000,)", &data), &["truncated"]);
    check("b1.npy", &npy("|b1", false, "(16,)", &data), &["NumPy's bool", "element at [2] is 128", "numpy.uint8"]);
    check("c8.npy", &npy("<c8", false, "(2,)", &data), &["complex", "`<c8`", "f32", "astype"]);
    check("text.npy", &npy("<U4", false, "(1,)", &data), &["text", "`<U4`", "f32", "astype"]);
    check("object.npy", &npy("|O", false, "(1,)", &data), &["Python objects", "`|O`"]);
    let fields = "[('mass', '<f4'), ('count', '<i4')]";
    let records = String::from_utf8_lossy(&npy("X", false, "(2,)", &[])).replace("'X'", fields);
    let records = [&b"\x93NUMPY\x01\x00"[..], &((records.len() - 12) as u16).to_le_bytes(), &records.as_bytes()[12..]];
    check("records.npy", &records.concat(), &["records", "structured dtype", "`mass`, `count`", "one field"]);
    refused(&["sum", "--input", &files.path("missing.npy")], &["missing.npy", "cannot open"]);
    refused(&["sum", "--input", &files.path("")], &["folder"]);
    let i32s = files.write("i.npy", &npy("<i4", false, "(2, 2)", &data));
    refused(&["transpose", "--input", &i32s, "--rung", "tiled_8"], &["f32", "i32", "--rung"]);
}

/// For these 152 bytes, a general parser of Python literals takes minutes.
#[test]
fn headers_with_nested_brackets_are_refused_quickly() {
    let files = Files::new();
    let nested = format!("{}{}", "[".repeat(36), "]".repeat(36));
    for (name, header) in [
        ("descr.npy", format!("{{'descr': {nested}, 'fortran_order': False, 'shape': (2,), }}")),
        ("shape.npy", format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {nested}, }}")),
        ("open.npy", format!("{{'descr': '<f4', 'shape': {}", "(".repeat(9000))),
        ("all.npy", nested),
        ("list.npy", format!("{}{}", "[".repeat(4), "1,".repeat(4900))),
        ("braces.npy", format!("{}{}", "{".repeat(4), "1,".repeat(4900))),
    ] {
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        let file = files.write(name, &file);
        for command in ["sum", "transpose"] {
            let start = Instant::now();
            refused(&[command, "--input", &file], &[name, "not an .npy file"]);
            assert!(start.elapsed() < Duration::from_secs(10), "{name}: {:?}", start.elapsed());
        }
    }
}

#[cfg(unix)]
#[test]
fn pipes_are_read() {
    let files = Files::new();
    let good = npy("<f4", false, "(2, 3)", &floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.5]));
    files.write("good.npy", &good);
    files.write("short.npy", &good[..good.len() - 3]);
    files.write("empty.npy", b"");
    files.write("huge.npy", &npy("<f4", false, "(35184372088832,)", &[]));
    let by_shell = |script: &str| {
        let mut command = Command::new("sh");
        command.current_dir(files.0.path()).args(["-c", script]).arg(&*BENCH).output().expect("a shell starts")
    };
    for script in [
        "cat good.npy | \"$0\" sum --device simt --input /dev/stdin",
        "\"$0\" sum --device simt --input /dev/stdin < good.npy",
        "mkfifo pipe; cat good.npy > pipe & \"$0\" sum --device simt --input pipe",
    ] {
        let output = by_shell(script);
        assert_eq!(output.status.code(), Some(0), "{script}: {}", stderr(&output));
        assert!(stdout(&output).contains("sum = 21.5"), "{script}: {}", stdout(&output));
    }
    let output = by_shell("cat good.npy | \"$0\" transpose --device simt --input /dev/stdin --output t.npy");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for (name, part) in [("short", "truncated"), ("empty", "is empty"), ("huge", "needs 128.0 TiB")] {
        let output = by_shell(&format!("cat {name}.npy | \"$0\" sum --device simt --input /dev/stdin"));
        assert_eq!(output.status.code(), Some(2), "{name}: {}", stderr(&output));
        assert!(stderr(&output).contains(part), "{name}: {}", stderr(&output));
    }
}
