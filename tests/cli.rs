//! `bench` as a person uses it: every command in the executor, and everything that can be given to it wrong.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::{env, fs};

/// The program: where the bundle says it is, else built now.
static BENCH: LazyLock<PathBuf> = LazyLock::new(|| match env::var_os("WARPFOLD_BENCH") {
    Some(program) => PathBuf::from(program),
    None => {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
        let built = Command::new(cargo)
            .args(["build", "--quiet", "--package", "warpfold", "--bin", "bench", "--manifest-path", manifest])
            .status();
        assert!(built.is_ok_and(|status| status.success()), "cargo cannot build bench");
        // This test is at target/PROFILE/deps/cli-HASH.
        let target =
            env::current_exe().expect("a test has a path").ancestors().nth(3).expect("a target folder").to_owned();
        target.join("debug").join("bench")
    }
});

fn bench(arguments: &[&str]) -> Output {
    bench_in(Path::new("."), arguments)
}

fn bench_in(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(&*BENCH);
    command.current_dir(folder).arg("--device").arg("simt").args(arguments).output().expect("bench starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs `bench` with input that cannot be used: exit code 2, nothing on standard output, and a message with these parts.
fn refused(arguments: &[&str], parts: &[&str]) {
    let output = bench(arguments);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert_eq!(stdout(&output), "", "{arguments:?}");
    assert!(!message.contains("panicked"), "{arguments:?}: {message}");
    for part in parts {
        assert!(message.contains(part), "{arguments:?}: `{part}` is not in: {message}");
    }
}

#[test]
fn all_ladders_in_a_table_each() {
    let output = bench(&["--n", "5000", "--rows", "70", "--cols", "50"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for part in [
        "SIMT executor",
        "The times are not",
        "Transpose of 70 x 50 f32",
        "divergent_modulo",
        "single_launch",
        "tiled_padded",
        "right",
        "GB/s",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    assert!(!text.contains("WRONG"), "{text}");
    assert!(!text.contains('\x1b'), "no colours where standard output is no terminal");
    assert_eq!(stderr(&output), "", "no progress bar where standard error is no terminal");
}

#[test]
fn a_ladder_for_machines() {
    let output = bench(&[
        "ladder",
        "reduce",
        "--n",
        "4097",
        "--block",
        "128",
        "--dtype",
        "i32",
        "--format",
        "json",
        "--samples",
        "2",
    ]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["sections"][0]["rows"].as_array().expect("rows").len(), 9);
    let rows = report["sections"][1]["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 10);
    for row in rows {
        assert_eq!(row["correct"], true, "{row}");
        assert!(row["median_us"].as_f64().unwrap() > 0.0, "{row}");
    }
    // 4097 = 32 blocks of 128 and one element; 33 partials are one more block.
    assert_eq!(rows[0]["launches"], 2);
    assert_eq!(rows[9]["launches"], 1);

    let text = stdout(&bench(&["ladder", "transpose", "--rows", "33", "--cols", "65", "--format", "csv"]));
    let mut lines = text.lines();
    let columns = lines.next().unwrap().split(',').count();
    assert!(lines.clone().count() == 12 && lines.all(|line| line.split(',').count() == columns), "{text}");
}

#[test]
fn one_rung_of_a_ladder() {
    let kernels = |arguments: &[&str]| -> Vec<String> {
        let small = ["--n", "100", "--rows", "9", "--cols", "7", "--format", "csv"];
        let output = bench(&[&["ladder"], arguments, &small].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let rows = stdout(&output);
        rows.lines().skip(1).map(|row| row.split(',').take(3).collect::<Vec<_>>().join(",")).collect()
    };
    assert_eq!(kernels(&["reduce", "--rung", "unroll4"]), ["Sum in global memory,100 f32,unroll4"]);
    assert_eq!(kernels(&["transpose", "--rung", "tiled_8"]), ["Transpose,9 x 7 f32,tiled_8"]);
    assert_eq!(kernels(&["control-flow", "--rung", "sync_or"]), ["Control flow,100 u32,sync_or"]);
    // Two families have a rung of this name.
    assert_eq!(
        kernels(&["--rung", "vectorized"]),
        ["Sum in shared memory,100 f32,vectorized", "Transpose,9 x 7 f32,vectorized"]
    );
}

#[test]
fn random_numbers_have_the_same_sum_everywhere() {
    let result = |arguments: &[&str]| {
        let output = bench(&[&["sum", "--n", "10000", "--format", "json"], arguments].concat());
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        report["sections"][0]["rows"][0]["result"].as_f64().expect("a result")
    };
    // Written down: it must not change from machine to machine, nor by an update of the generator that nobody noticed.
    assert_eq!(result(&[]), 353.0);
    assert_eq!(result(&["--rung", "neighbored"]), 353.0);
    assert_ne!(result(&["--seed", "2"]), 353.0);
    let text = stdout(&bench(&["sum", "--n", "100", "--rung", "sequential"]));
    for part in ["neighbours read neighbours", "\nsum = ", "seed 1"] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn lengths_around_a_warp_and_none_at_all() {
    for n in ["0", "1", "31", "33"] {
        for arguments in [["sum", "--n", n].as_slice(), &["ladder", "reduce", "--n", n]] {
            let output = bench(arguments);
            assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}{}", stdout(&output), stderr(&output));
        }
    }
    for (rows, columns) in [("0", "5"), ("1", "1"), ("1", "33"), ("33", "1")] {
        let output = bench(&["transpose", "--rows", rows, "--cols", columns]);
        assert_eq!(output.status.code(), Some(0), "{rows} x {columns}: {}", stderr(&output));
    }
}

#[test]
fn the_sum_of_nothing_is_zero() {
    for rung in ["neighbored", "sequential", "single_launch"] {
        let output = bench(&["sum", "--n", "0", "--rung", rung, "--format", "json"]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let result = report["sections"][0]["rows"][0]["result"].as_f64().expect("a result");
        assert_eq!(result.to_bits(), 0.0_f64.to_bits(), "{rung}");
    }
}

#[test]
fn the_device_is_described() {
    let output = bench(&["device", "--format", "json"]);
    let device: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(device["backend"], "simt");
    assert!(stdout(&bench(&["device"])).contains("CPU cores"));
}

#[test]
fn occupancy_without_a_gpu() {
    refused(&["occupancy", "nonsense", "--arch", "sm_90"], &["`nonsense`"]);
    refused(&["occupancy", "sequential", "--arch", "sm_70"], &["sm_70", "sm_75"]);
    refused(&["occupancy", "sequential"], &["--arch"]);
    let output = bench(&["occupancy", "unroll_last_warp_f32", "--arch", "sm_86", "--format", "json"]);
    if stderr(&output).contains("--ptxas") {
        println!("skipped: no ptxas here");
        return;
    }
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 5);
    // 1536 threads: one block of 1024, six of 256.
    assert_eq!((&rows[4]["threads_per_block"], &rows[4]["blocks_per_multiprocessor"]), (&1024.into(), &1.into()));
    assert_eq!(rows[2]["blocks_per_multiprocessor"], 6);
    assert_eq!(rows[2]["limit"], "threads");
    // Two f32 of each of 1536 threads.
    assert_eq!(rows[2]["bytes_in_flight_per_thread"], 8);
    assert_eq!(rows[2]["bytes_in_flight_per_multiprocessor"], 8 * 1536);
    assert!(rows[2]["share_of_bytes_in_flight_needed"].is_null(), "an architecture has no bandwidth");
    let csv = stdout(&bench(&["occupancy", "unroll_last_warp_f32", "--arch", "sm_86", "--format", "csv"]));
    let row = csv.lines().nth(3).expect("a third block");
    assert!(row.starts_with("Sum in shared memory,unroll_last_warp_f32_256,256,"), "{csv}");
    assert!(row.ends_with(",threads,8,12288,"), "{csv}");
    assert!(stdout(&bench(&["occupancy", "unroll_last_warp_f32", "--arch", "sm_86"])).contains("12288 B"));
}

#[test]
fn ladders_as_charts() {
    let files = Files::new();
    let file = files.path("ladder.svg");
    let output = bench(&["ladder", "reduce", "--n", "1000", "--plot", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let svg = fs::read_to_string(&file).expect("the plot is there");
    for part in ["<svg", "GB/s", "divergent_modulo", "single_launch", "Sum in shared memory of 1000 f32"] {
        assert!(svg.contains(part), "`{part}` is not in the plot");
    }
    for unknown in ["ladder.jpg", "ladder", "png"] {
        refused(&["--plot", unknown], &[unknown, ".svg", ".png"]);
    }
    refused(&["ladder", "reduce", "--n", "10", "--plot", &files.path("no/such/folder/a.svg")], &["cannot write"]);
}

#[test]
fn ladders_as_pictures_for_print() {
    let files = Files::new();
    let file = files.path("ladder.png");
    let output = bench(&["ladder", "reduce", "--n", "1000", "--dtype", "f64", "--plot", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let bytes = fs::read(&file).expect("the plot is there");
    assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"));
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().expect("a PNG");
    let density = reader.info().pixel_dims.expect("it says how large its pixels are");
    assert!(f64::from(density.xppu) * 0.0254 > 200.0, "dots per inch of {density:?}");
    let (width, height) = (reader.info().width as usize, reader.info().height as usize);
    assert!(width >= 1800 && height > 400, "{width} x {height}");
    let mut pixels = vec![0; reader.output_buffer_size().expect("it fits in memory")];
    reader.next_frame(&mut pixels).expect("pixels");
    let dark_in = |columns: std::ops::Range<usize>| {
        let rows = pixels.chunks_exact(3 * width);
        rows.map(|row| {
            row[3 * columns.start..3 * columns.end].chunks_exact(3).filter(|p| p.iter().all(|&x| x < 100)).count()
        })
        .sum::<usize>()
    };
    // The kernels' names stand in the first fifth, with nothing else that is dark: without a font it is empty.
    assert!(dark_in(0..width / 5) > 1000, "no names of kernels");
    let bar = pixels.chunks_exact(3).filter(|pixel| pixel == &[70, 110, 160]).count();
    assert!(bar > width * height / 50, "no bars");
}

#[test]
fn the_help_teaches() {
    let text = stdout(&bench(&["--help"]));
    for part in [
        "Examples:",
        "bench ladder reduce --rung sequential",
        "bench sum --input samples.npy",
        "Exit code:",
        "--device",
        "--format",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn arguments_that_mean_nothing() {
    refused(&["--n", "-5"], &["-5"]);
    refused(&["--n", "1.5"], &["1.5", "whole number"]);
    refused(&["--samples", "0"], &["--samples"]);
    refused(&["--format", "xml"], &["xml", "json"]);
    refused(&["ladder", "sideways"], &["sideways", "reduce"]);
    refused(&["ladder", "--rung", "nonsense"], &["`nonsense`", "divergent_modulo", "diagonal", "sync_or"]);
    refused(&["ladder", "reduce", "--rung", "diagonal"], &["`diagonal`", "sequential"]);
    refused(&["ladder", "reduce", "--dtype", "f64", "--rung", "neighbored"], &["`f64`", "f32, i32"]);
    refused(&["sum", "--input", "a.npy", "--seed", "3"], &["--input", "--seed"]);
    refused(&["sum", "--rung", "nonsense"], &["`nonsense`", "divergent_modulo"]);
    refused(&["ladder", "reduce", "--n", "10", "--block", "100"], &["`100`", "64, 128, 256, 512, 1024"]);
    refused(&["transpose", "--force"], &["--output"]);
    refused(&["transpose", "--n", "5"], &["--n"]);
    refused(&["device", "--rows", "5"], &["--rows"]);
    refused(&["--n", "5", "sum"], &["--n", "after"]);
    refused(&["sum", "--input", "a.npy", "--n", "3"], &["--input", "--n"]);
}

#[test]
fn sizes_that_no_machine_has() {
    refused(&["sum", "--n", "2^50"], &["do not fit"]);
    refused(&["sum", "--n", "2^63"], &["do not fit"]);
    refused(&["sum", "--n", "2^64"], &["too large"]);
    refused(&["transpose", "--rows", "2^40", "--cols", "2^40"], &["larger than any memory"]);
    refused(&["transpose", "--rows", "2^25", "--cols", "2^25"], &["bytes"]);
}

#[test]
fn devices_that_are_not_there() {
    let at = |device: &str, driver: &str| {
        Command::new(&*BENCH)
            .args(["device", "--device", device])
            .env("WARPFOLD_LIBCUDA", driver)
            .output()
            .expect("bench starts")
    };
    let none = at("cuda:0", "none");
    assert_eq!(none.status.code(), Some(2));
    assert!(stderr(&none).contains("driver"), "{}", stderr(&none));
    assert_eq!(at("gpu", "none").status.code(), Some(2));
    // With a driver there is no tenth device; without one, no driver.
    let output = Command::new(&*BENCH).args(["device", "--device", "cuda:9"]).output().expect("bench starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        ["no CUDA device 9", "no CUDA driver"].iter().any(|part| stderr(&output).contains(part)),
        "{}",
        stderr(&output)
    );
    // And without being asked for one, the executor.
    let output = Command::new(&*BENCH).args(["device"]).env("WARPFOLD_LIBCUDA", "none").output().expect("bench starts");
    assert!(stdout(&output).contains("SIMT executor"), "{}", stderr(&output));
}

/// An `.npy` file of version 1.0, as NumPy writes it.
fn npy(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let fortran = if fortran { "True" } else { "False" };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

fn floats(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn write(&self, name: &str, contents: &[u8]) -> String {
        fs::write(self.0.path().join(name), contents).expect("a file is written");
        self.path(name)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }
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
    assert!(stdout(&bench(&["sum", "--input", &i32s])).contains("sum = -2147483643"), "integers wrap");
    let none = files.write("none.npy", &npy("<f4", false, "(0,)", &[]));
    assert!(stdout(&bench(&["sum", "--input", &none])).contains("sum = 0"));
    let nan = files.write("nan.npy", &npy("<f4", false, "(2,)", &floats(&[f32::NAN, 1.0])));
    assert_eq!(bench(&["sum", "--input", &nan]).status.code(), Some(0));
}

#[test]
fn transposes_of_files() {
    let files = Files::new();
    let input = files.write("a.npy", &npy("<f4", false, "(2, 3)", &floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])));
    let output = files.path("t.npy");
    let done = bench(&["transpose", "--input", &input, "--output", &output]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let written = fs::read(&output).expect("the output is there");
    assert!(written.ends_with(&floats(&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0])), "{written:?}");
    assert!(String::from_utf8_lossy(&written).contains("(3, 2"));
    // It reads its own output.
    let back = files.path("back.npy");
    assert_eq!(bench(&["transpose", "--input", &output, "--output", &back]).status.code(), Some(0));
    assert!(fs::read(&back).unwrap().ends_with(&floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])));
    // A flat file with the shape on the command line.
    let flat = files.write("flat.npy", &npy("<f4", false, "(6,)", &floats(&[1.0; 6])));
    assert_eq!(bench(&["transpose", "--input", &flat, "--rows", "3", "--cols", "2"]).status.code(), Some(0));
    refused(&["transpose", "--input", &flat], &["1 axes", "--rows"]);
    refused(&["transpose", "--input", &flat, "--rows", "4", "--cols", "2"], &["6 elements", "8"]);
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
    refused(&["transpose", "--input", &input, "--output", &files.path("no/such/folder/t.npy")], &["cannot write"]);
    refused(&["transpose", "--input", &input, "--output", &files.path(""), "--force"], &["not a regular file"]);
    refused(&["transpose", "--input", &input, "--output", "/dev/null", "--force"], &["not a regular file"]);
    let left: Vec<_> = fs::read_dir(files.0.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "only the two files: {left:?}");
    // A path without a folder is in the caller's.
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
        for command in ["sum", "transpose"] {
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
    check("f8.npy", &npy("<f8", false, "(2,)", &data), &["f8", "astype"]);
    check("u1.npy", &npy("|u1", false, "(16,)", &[0; 64]), &["u1"]);
    check("fortran.npy", &npy("<f4", true, "(2, 2)", &data), &["Fortran", "ascontiguousarray"]);
    refused(&["sum", "--input", &files.path("missing.npy")], &["missing.npy", "cannot open"]);
    refused(&["sum", "--input", &files.path("")], &["folder"]);
    let i32s = files.write("i.npy", &npy("<i4", false, "(2, 2)", &data));
    refused(&["transpose", "--input", &i32s], &["i32", "f32"]);
}

#[test]
fn reductions_of_any_kind() {
    let arguments = ["--op", "sum,argmax,min-max", "--dtype", "f16,i8", "--shape", "4096,30x50:rows,30x50:columns"];
    let table = bench(&[&["reduce"], &arguments[..]].concat());
    assert_eq!(table.status.code(), Some(0), "{}", stderr(&table));
    let text = stdout(&table);
    assert_eq!(text.matches(" right ").count(), 3 * 2 * 3, "{text}");
    for part in ["argmax", "f16", "2^12", "30 x 50 rows", "30 x 50 columns"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    let json = bench(&[&["reduce", "--format", "json", "--offset", "1"], &arguments[..]].concat());
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let rows = report["sections"][0]["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 18);
    assert!(rows.iter().all(|row| row["correct"] == true && row["offset"] == 1), "{report}");
    let csv = stdout(&bench(&["reduce", "--format", "csv", "--shape", "2^4..2^8"]));
    assert_eq!(csv.lines().count(), 1 + 3, "{csv}");
}

#[test]
fn bandwidth_over_length_as_a_chart() {
    let folder = Files::new();
    let file = folder.path("lengths.svg");
    let output = bench(&["reduce", "--shape", "2^6..2^12", "--plot", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let chart = fs::read_to_string(&file).expect("a chart");
    for part in ["<svg", "GB/s", "elements", "warpfold", "2^12"] {
        assert!(chart.contains(part), "{part} is not in the chart");
    }
}

#[test]
fn reductions_that_there_are_not() {
    refused(&["reduce", "--op", "median"], &["median", "argmin"]);
    refused(&["reduce", "--dtype", "f8"], &["f8", "bf16"]);
    refused(&["reduce", "--shape", "3x4"], &["3x4", "rows"]);
    refused(&["reduce", "--shape", "0", "--op", "min"], &["the minimum of no elements"]);
    refused(&["reduce", "--all", "--op", "sum"], &["--all"]);
}

#[test]
fn a_profile_names_lines_and_what_to_change() {
    let output = bench(&["profile", "strided_index", "--n", "2560"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for part in [
        "strided_index_f32_256: 10 blocks of 256 threads, 9 barriers in each block",
        "rung2_strided_index.rs:25: bank conflict: loads are up to 8-way, 700 extra passes",
    ] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    // A program that was carried elsewhere has not the source beside it.
    if env::var_os("WARPFOLD_BENCH").is_none() {
        assert!(text.contains("tile.store(left, tile.load(left).plus(tile.load(left + stride)));"), "{text}");
    }
    let uncoalesced = stdout(&bench(&["profile", "per_element", "--rows", "64", "--cols", "96"]));
    assert!(uncoalesced.contains("uncoalesced: stores use 12 % of their sectors"), "{uncoalesced}");
    assert!(uncoalesced.contains("256 bytes apart"), "{uncoalesced}");
    let divergent = stdout(&bench(&["profile", "neighbored", "--n", "2560"]));
    assert!(divergent.contains("divergent: "), "{divergent}");
}

#[test]
fn a_profile_for_machines() {
    let output = bench(&["profile", "tiled_32", "--rows", "64", "--cols", "64", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let kernel = &report["kernels"][0];
    assert_eq!((&kernel["kernel"], &kernel["grid"][0]), (&"tiled_f32_32".into(), &4.into()));
    // Each warp of a tile reads a column of it: 32-way.
    assert_eq!(kernel["total"]["shared_load_conflicts"], 4 * 32 * 31);
    assert_eq!(kernel["lines"][0]["findings"].as_array().map(Vec::len), Some(1));
    let csv = stdout(&bench(&["profile", "sum", "--n", "5000", "--format", "csv"]));
    let fields = csv.lines().next().map(|header| header.split(',').count());
    assert!(csv.lines().count() > 3 && csv.lines().all(|row| Some(row.split(',').count()) == fields), "{csv}");
    for name in ["sum", "transpose", "vectorized", "sync_count"] {
        let output = bench(&["profile", name, "--n", "1000", "--rows", "40", "--cols", "30"]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
    }
}

#[test]
fn a_ladder_with_its_counters() {
    let report = bench(&["ladder", "reduce", "--n", "2560", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&stdout(&report)).expect("JSON");
    let rows = report["sections"][1]["rows"].as_array().expect("rows");
    let of = |name: &str| rows.iter().find(|row| row["kernel"] == name).expect("the rung is there");
    assert_eq!(of("sequential")["counters"]["bank_conflicts"], 0);
    assert_eq!(of("strided_index")["counters"]["shared_load_conflicts"], 11 * 70);
    assert_eq!(of("unroll_last_warp")["barriers_per_block"], 3.0);
    let table = stdout(&bench(&["ladder", "transpose", "--rows", "64", "--cols", "64"]));
    for part in ["conflicts", "barriers", "12.5 %", "Counted by warp"] {
        assert!(table.contains(part), "{part} is not in: {table}");
    }
}

#[test]
fn checks_and_orders_of_lanes() {
    let output = bench(&["ladder", "reduce", "--n", "3000", "--check", "--schedule", "seed=5"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!stdout(&output).contains("WRONG"), "{}", stdout(&output));
    refused(&["ladder", "--schedule", "5"], &["seed=N"]);
    refused(&["profile", "nonsense"], &["nonsense", "strided_index", "tiled_32"]);
    let on_a_gpu =
        Command::new(&*BENCH).args(["profile", "sequential", "--device", "cuda:0"]).output().expect("starts");
    assert_eq!(on_a_gpu.status.code(), Some(2));
    assert!(stderr(&on_a_gpu).contains("only the executor"), "{}", stderr(&on_a_gpu));
}
