//! `bench sum` and `bench reduce`.

use std::fs;

use crate::{DTYPES, Files, bench, operators, refused, stderr, stdout};

#[test]
fn random_numbers_have_the_same_sum_everywhere() {
    let result = |arguments: &[&str]| {
        let output = bench(&[&["sum", "--n", "10000", "--format", "json"], arguments].concat());
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        report["sections"][0]["rows"][0]["result"].as_f64().expect("a result")
    };
    // A fixed value, which must be the same on every machine, and must not change if the generator is updated.
    assert_eq!(result(&[]), 353.0);
    assert_eq!(result(&["--rung", "neighbored"]), 353.0);
    assert_eq!(result(&["--rung", "single_launch"]), 353.0);
    assert_eq!(result(&["--rung", "exact_long_rows"]), 353.0);
    assert_ne!(result(&["--seed", "2"]), 353.0);
    for dtype in ["f64", "f16", "bf16", "i8", "i16", "i32", "i64"] {
        assert_eq!(result(&["--dtype", dtype]), 353.0, "{dtype}");
    }
    // Each element is 8 more if the type is unsigned.
    for dtype in ["u8", "u16", "u32", "u64"] {
        assert_eq!(result(&["--dtype", dtype]), 80_353.0, "{dtype}");
    }
    let text = stdout(&bench(&["sum", "--n", "100", "--rung", "sequential"]));
    for part in ["neighbours read neighbours", "\nsum = ", "seed 1"] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn without_a_rung_the_library_sums() {
    let row = |arguments: &[&str]| {
        let output = bench(&[&["sum", "--n", "1000", "--format", "json"], arguments].concat());
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        report["sections"][0]["rows"][0].clone()
    };
    let (library, rung) = (row(&[]), row(&["--rung", "single_launch"]));
    assert_eq!((&library["kernel"], &rung["kernel"]), (&"sum".into(), &"single_launch".into()));
    assert_eq!((&library["correct"], &library["result"]), (&true.into(), &rung["result"]));
}

#[test]
fn lengths_around_a_warp_and_zero() {
    for n in ["0", "1", "31", "33"] {
        for arguments in [["sum", "--n", n].as_slice(), &["ladder", "reduce", "--n", n]] {
            let output = bench(arguments);
            assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}{}", stdout(&output), stderr(&output));
        }
    }
    for shape in ["0x5", "1x1", "1x33", "33x1"] {
        for rung in [[].as_slice(), &["--rung", "tiled_8"]] {
            let output = bench(&[&["transpose", "--shape", shape], rung].concat());
            assert_eq!(output.status.code(), Some(0), "{shape}: {}", stderr(&output));
        }
    }
}

#[test]
fn the_sum_of_no_elements_is_zero() {
    for rung in ["neighbored", "sequential", "single_launch", "exact_long_rows"] {
        let output = bench(&["sum", "--n", "0", "--rung", rung, "--format", "json"]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let result = report["sections"][0]["rows"][0]["result"].as_f64().expect("a result");
        assert_eq!(result.to_bits(), 0.0_f64.to_bits(), "{rung}");
    }
}

#[test]
fn reductions_of_any_kind() {
    let arguments = ["--op", "sum,argmax,min-max", "--dtype", "f16,i8", "--shape", "4096,30x50,30x50:skewed"];
    let table = bench(&[&["reduce"], &arguments[..]].concat());
    assert_eq!(table.status.code(), Some(0), "{}", stderr(&table));
    let text = stdout(&table);
    assert_eq!(text.matches(" right ").count(), 3 * 2 * 3, "{text}");
    for part in ["argmax", "f16", "2^12", "30 x 50 ", "30 x 50 skewed"] {
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
fn every_operator_of_every_type() {
    let all = operators();
    assert_eq!((&*all[0].0, &*all[0].1), ("sum", DTYPES));
    for (operator, types) in &all {
        // A dot product takes no segments by offsets.
        let all: [(_, &[&str]); 3] =
            [("1,33,5000,20x30:skewed", &[]), ("30x50", &["--axis", "0"]), ("30x50", &["--axis", "1"])];
        let of_pairs: [(_, &[&str]); 3] =
            [("1,33,5000", &[]), ("30x50", &["--axis", "0"]), ("6x5x4,30x50x1", &["--axis", "0,-1"])];
        let runs = if operator == "dot" { &of_pairs } else { &all };
        let run = |shapes: &str, axis: &[&str], offset: &str| {
            let arguments = ["reduce", "--op", operator, "--dtype", types, "--shape", shapes, "--offset", offset];
            bench(&[&arguments[..], axis, &["--format", "csv"]].concat())
        };
        for (offset, (shapes, axis)) in
            ["0", "1"].into_iter().flat_map(|offset| runs.iter().map(move |of| (offset, of)))
        {
            let output = run(shapes, axis, offset);
            assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
            let cases = types.split(',').count() * shapes.split(',').count();
            assert_eq!(stdout(&output).matches(",true,").count(), cases, "{operator}: {}", stdout(&output));
        }
        // An operator like `min` has no value for no elements.
        let empty = run("0", &[], "0");
        let is_refused = empty.status.code() == Some(2) && stderr(&empty).contains("of no elements has no value");
        let is_right = stdout(&empty).matches(",true,").count() == types.split(',').count();
        assert!(is_refused || is_right, "{operator}: {}{}", stdout(&empty), stderr(&empty));
    }
    // By default the type is one that the operator accepts.
    let usual = stdout(&bench(&["reduce", "--op", "sum,wrapping-sum,count-nan", "--shape", "9", "--format", "csv"]));
    for row in ["sum,f32,9", "wrapping-sum,i32,9", "count-nan,f32,9"] {
        assert!(usual.contains(row), "{usual}");
    }
    refused(&["reduce", "--op", "sum,count-nan", "--dtype", "f32,i8"], &["count-nan", "f32,f64,f16,bf16", "not i8"]);
    refused(&["reduce", "--op", "wrapping-sum", "--dtype", "f32"], &["wrapping-sum", "i8,i16", "not f32"]);
    refused(&["reduce", "--op", "sum-in-f64", "--dtype", "f64"], &["takes --dtype f32", "not f64"]);
}

#[test]
fn the_times_of_a_cpu_are_not_drawn() {
    let folder = Files::new();
    let file = folder.path("lengths.svg");
    for command in
        [["reduce", "--shape", "2^6..2^12"].as_slice(), &["sum"], &["transpose"], &["transpose", "--shape", "3x3"]]
    {
        refused(&[command, &["--plot", &file]].concat(), &["--plot", "no effect", "bench ladder --plot"]);
    }
    assert!(!fs::exists(&file).unwrap());
}

#[test]
fn reductions_that_do_not_exist() {
    refused(&["reduce", "--op", "median"], &["median", "argmin"]);
    refused(&["reduce", "--dtype", "f8"], &["f8", "bf16"]);
    refused(&["reduce", "--shape", "0", "--op", "min"], &["the minimum of no elements"]);
    refused(&["reduce", "--all", "--op", "sum"], &["--all"]);
    refused(&["reduce", "--table", "sums", "--op", "sum"], &["--table"]);
    refused(&["reduce", "--table", "nonsense"], &["nonsense", "operators"]);
    refused(&["reduce", "--data", "wide", "--op", "max"], &["--data", "max of f32"]);
    refused(&["reduce", "--data", "wide", "--dtype", "i8"], &["--data", "sum of i8"]);
}

#[test]
fn exact_results_of_every_kind_of_data() {
    const KINDS: &str = "ordinary,wide,subnormal,cancelling,ascending,descending,scales,largest,extremes,nans,\
                         one-large,one-infinity,one-nan,20-exponents,250-exponents";
    let which = ["reduce", "--data", KINDS, "--dtype", "f32,f16", "--op", "sum,norm", "--shape", "300,50"];
    let text = stdout(&bench(&[which.as_slice(), &["--format", "csv"]].concat()));
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 1 + 15 * 2 * 2 * 2);
    for kind in KINDS.split(',') {
        assert_eq!(lines.iter().filter(|line| line[4] == kind).count(), 8, "{text}");
    }
    assert!(lines[1..].iter().all(|line| line[6] == "true"), "{text}");
    refused(&["reduce", "--data", "narrow"], &["narrow", "descending", "250-exponents"]);
}
