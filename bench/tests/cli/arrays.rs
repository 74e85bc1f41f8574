//! Reductions of arrays in files: of every type, along every axis, to files and back.

use std::fs;

use half::{bf16, f16};
use serde_json::{Value, json};

use crate::{Files, bench, npy, operators, refused, stderr, stdout};

/// The bytes of some numbers.
macro_rules! bytes {
    ($numbers:expr) => {
        $numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>()
    };
}

/// The bytes of a small number in a type.
type BytesOf = fn(i8) -> Vec<u8>;

/// The twelve types, as the command line and NumPy name them.
const TYPES: [(&str, &str, BytesOf); 12] = [
    ("f16", "<f2", |x| bytes!([f16::from_f32(x.into())])),
    ("bf16", "<V2", |x| bytes!([bf16::from_f32(x.into())])),
    ("f32", "<f4", |x| bytes!([f32::from(x)])),
    ("f64", "<f8", |x| bytes!([f64::from(x)])),
    ("i8", "|i1", |x| bytes!([x])),
    ("i16", "<i2", |x| bytes!([i16::from(x)])),
    ("i32", "<i4", |x| bytes!([i32::from(x)])),
    ("i64", "<i8", |x| bytes!([i64::from(x)])),
    ("u8", "|u1", |x| bytes!([x])),
    ("u16", "<u2", |x| bytes!([i16::from(x)])),
    ("u32", "<u4", |x| bytes!([i32::from(x)])),
    ("u64", "<u8", |x| bytes!([i64::from(x)])),
];

/// The first row of a report in JSON, whose results are right.
fn row(arguments: &[&str]) -> Value {
    let output = bench(&[arguments, &["--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}{}", stdout(&output), stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["sections"][0]["rows"][0]["correct"], true, "{report}");
    report["sections"][0]["rows"][0].clone()
}

/// The type and the extents of a file, as text from its header, and the bytes of its elements.
pub fn parts(file: &str) -> (String, String, Vec<u8>) {
    let bytes = fs::read(file).expect("the file exists");
    let len = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..len]).expect("a header is text");
    let between = |before: &str, after: &str| {
        let rest = header.split_once(before).expect("it has that key").1;
        rest.split_once(after).expect("it ends").0.replace(' ', "")
    };
    (between("'descr': '", "'"), between("'shape': (", ")"), bytes[len..].to_vec())
}

#[test]
fn files_of_every_type() {
    let files = Files::new();
    for (dtype, descr, number) in TYPES {
        let elements: Vec<u8> = [3, 1, 4, 1, 5, 9].into_iter().flat_map(number).collect();
        let input = files.write(&format!("{dtype}.npy"), &npy(descr, false, "(2, 3)", &elements));
        let output = files.path("results.npy");
        let run = |arguments: &[&str]| {
            row(&[arguments, &["--input", &input, "--dtype", dtype, "--output", &output, "--force"]].concat())
        };
        let float = |number: f64| if descr.contains(['f', 'V']) { json!(number) } else { json!(number as u64) };
        assert_eq!(run(&["sum"])["result"], float(23.0), "{dtype}");
        // The type of a sum has more bits than the elements.
        let sums = if descr.contains(['f', 'V']) { "<f4" } else { &format!("<{}8", &descr[1..2]) };
        let sums = if dtype == "f64" { "<f8" } else { sums };
        assert_eq!((parts(&output).0, parts(&output).1), (sums.to_owned(), String::new()), "{dtype}");
        // A maximum has the type of the elements. Its file is then read as an input.
        assert_eq!(
            run(&["reduce", "--op", "max", "--axis", "1"])["result"],
            json!([float(4.0), float(9.0)]),
            "{dtype}"
        );
        let maxima = [number(4), number(9)].concat();
        assert_eq!(parts(&output), (descr.to_owned(), "2,".to_owned(), maxima), "{dtype}");
        assert_eq!(row(&["sum", "--input", &output, "--dtype", dtype])["result"], float(13.0), "{dtype}");
    }
}

#[test]
fn every_operator_of_a_file() {
    let (files, operators) = (Files::new(), operators());
    for (dtype, descr, number) in TYPES {
        let least = if dtype.starts_with('u') { 0 } else { -5 };
        let elements: Vec<u8> = (0..3 * 100 * 7).flat_map(|i| number((i * i % 11) as i8 + least)).collect();
        let input = files.write(&format!("{dtype}.npy"), &npy(descr, false, "(3, 100, 7)", &elements));
        // A dot product takes two inputs, and a file is only one.
        let takes = |(operator, types): &&(String, String)| operator != "dot" && types.split(',').any(|of| of == dtype);
        let names: Vec<_> = operators.iter().filter(takes).map(|(operator, _)| operator.as_str()).collect();
        for axis in [None, Some("0"), Some("1"), Some("2")] {
            let axis = axis.map_or(vec![], |axis| vec!["--axis", axis]);
            let arguments =
                ["reduce", "--input", &input, "--dtype", dtype, "--op", &names.join(","), "--format", "csv"];
            let output = bench(&[&arguments[..], &axis].concat());
            assert_eq!(output.status.code(), Some(0), "{dtype} {axis:?}: {}{}", stdout(&output), stderr(&output));
            assert_eq!(stdout(&output).matches(",true,").count(), names.len(), "{}", stdout(&output));
        }
    }
}

#[test]
fn sums_along_each_axis() {
    let files = Files::new();
    let extents = [2, 3, 4];
    let at = |i: usize, j: usize, k: usize| (100 * i + 10 * j + k) as i64;
    let all = |of: &dyn Fn(usize, usize) -> i64, a: usize, b: usize| -> Vec<i64> {
        (0..a).flat_map(|i| (0..b).map(move |j| (i, j))).map(|(i, j)| of(i, j)).collect()
    };
    let elements: Vec<u8> = all(&|i, jk| at(i, jk / 4, jk % 4), 2, 12).iter().flat_map(|x| x.to_le_bytes()).collect();
    let input = files.write("a.npy", &npy("<i8", false, "(2, 3, 4)", &elements));
    let sums = [
        all(&|j, k| (0..2).map(|i| at(i, j, k)).sum(), 3, 4),
        all(&|i, k| (0..3).map(|j| at(i, j, k)).sum(), 2, 4),
        all(&|i, j| (0..4).map(|k| at(i, j, k)).sum(), 2, 3),
    ];
    for axis in -3..3_i32 {
        let from_start = axis.rem_euclid(3) as usize;
        let (sums, output) = (&sums[from_start], files.path(&format!("sums{axis}.npy")));
        for command in [["sum"].as_slice(), &["reduce"]] {
            let arguments = ["--input", &input, "--axis", &axis.to_string(), "--output", &output, "--force"];
            assert_eq!(row(&[command, &arguments].concat())["result"], json!(sums), "axis {axis}");
            let others: Vec<_> =
                (0..3).filter(|&axis| axis != from_start).map(|axis| extents[axis].to_string()).collect();
            let expected = ("<i8".to_owned(), others.join(",") + ",", bytes!(sums));
            let (descr, shape, data) = parts(&output);
            assert_eq!((descr, format!("{},", shape.trim_end_matches(',')), data), expected, "axis {axis}");
        }
    }
    // A table shows the first results, CSV all of them.
    let arguments = ["sum", "--input", &input, "--axis", "0"];
    assert!(stdout(&bench(&arguments)).contains("sum = 100 102 104 106 120 122 124 126 ... (12 results)"));
    let csv = stdout(&bench(&[&arguments[..], &["--format", "csv"]].concat()));
    assert!(csv.contains(",100 102 104 106 120 122 124 126 140 142 144 146,"), "{csv}");
}

#[test]
fn extents_of_results() {
    let files = Files::new();
    let input = files.write("a.npy", &npy("<f4", false, "(3,)", &bytes!([2.5_f32, -1.0, 0.5])));
    let point = files.write("point.npy", &npy("<f4", false, "()", &bytes!([7.0_f32])));
    let output = files.path("out.npy");
    for (input, arguments, shape, numbers) in [
        (&input, ["--op", "sum"].as_slice(), "", &[2.0_f32][..]),
        (&input, &["--op", "sum", "--axis", "0"], "", &[2.0]),
        (&input, &["--op", "min-max"], "2,", &[-1.0, 2.5]),
        (&point, &["--op", "max"], "", &[7.0]),
    ] {
        row(&[&["reduce", "--input", input, "--output", &output, "--force"], arguments].concat());
        assert_eq!(parts(&output), ("<f4".to_owned(), shape.to_owned(), bytes!(numbers)), "{arguments:?}");
    }
    // The sum of no elements is 0. An array without rows has no sums.
    let none = files.write("none.npy", &npy("<f4", false, "(0, 2)", &[]));
    assert_eq!(row(&["sum", "--input", &none, "--axis", "0"])["result"], json!([0.0, 0.0]));
    assert_eq!(row(&["sum", "--input", &none, "--axis", "1"])["result"], json!([]));
    refused(&["reduce", "--input", &none, "--axis", "0", "--op", "min"], &["minimum of no elements"]);
}

#[test]
fn results_read_back_to_the_same_bits() {
    let files = Files::new();
    let doubles = [0.1 + 0.2, 1.0 / 3.0, f64::MAX, f64::from_bits(1), -0.0, 1e22, 5e-324, 123_456_789.123_456_79];
    let singles = [0.1_f32, 1.0 / 3.0, f32::MAX, f32::from_bits(1), -0.0, 16_777_216.0, 1e10, 7.038_531e-26];
    let halves = [f16::from_f32(0.1), f16::MAX, f16::from_bits(1)];
    let integers = [i64::MIN, i64::MAX, 9_007_199_254_740_993, -1];
    let check = |name: &str, descr: &str, elements: &[u8], rows: usize| {
        let input = files.write(name, &npy(descr, false, &format!("({rows}, 1)"), elements));
        let output = files.path(&format!("of-{name}"));
        let printed = row(&["reduce", "--op", "max", "--input", &input, "--axis", "1", "--output", &output]);
        assert_eq!(parts(&output).2, elements, "{name}");
        let csv = stdout(&bench(&["reduce", "--op", "max", "--input", &input, "--axis", "1", "--format", "csv"]));
        let words: Vec<String> = csv.trim_end().rsplit(',').next().unwrap().split(' ').map(str::to_owned).collect();
        assert_eq!(words.len(), rows, "{csv}");
        (printed["result"].as_array().expect("a list").clone(), words)
    };
    let (json, words) = check("f64.npy", "<f8", &bytes!(doubles), doubles.len());
    for (i, number) in doubles.iter().enumerate() {
        assert_eq!(json[i].as_f64().unwrap().to_bits(), number.to_bits(), "{number}");
        assert_eq!(words[i].parse::<f64>().unwrap().to_bits(), number.to_bits(), "{number}");
    }
    // The shortest digits of the last number as an f32 are not enough: read as f64, they lie halfway between two f32.
    let (json, words) = check("f32.npy", "<f4", &bytes!(singles), singles.len());
    assert_eq!((json[0].to_string(), &words[0][..]), ("0.1".to_owned(), "0.1"), "not the digits of an f64");
    for (i, number) in singles.iter().enumerate() {
        assert_eq!((json[i].as_f64().unwrap() as f32).to_bits(), number.to_bits(), "{number}");
        assert_eq!(words[i].parse::<f32>().unwrap().to_bits(), number.to_bits(), "{number}");
    }
    let (json, _) = check("f16.npy", "<f2", &bytes!(halves), halves.len());
    for (printed, number) in json.iter().zip(halves) {
        assert_eq!(f16::from_f64(printed.as_f64().unwrap()).to_bits(), number.to_bits(), "{number}");
    }
    let (json, words) = check("i64.npy", "<i8", &bytes!(integers), integers.len());
    for (i, number) in integers.into_iter().enumerate() {
        assert_eq!((json[i].as_i64(), words[i].parse()), (Some(number), Ok(number)));
    }
    let (json, _) = check("u64.npy", "<u8", &bytes!([u64::MAX, 1]), 2);
    assert_eq!((json[0].as_u64(), json[1].as_u64()), (Some(u64::MAX), Some(1)));
}

#[test]
fn nan_and_infinity_are_words() {
    let files = Files::new();
    let (infinite, nan) = (f32::INFINITY, f32::NAN);
    let rows = [[nan, 1.0], [infinite, 1.0], [1.0, -infinite], [infinite, -infinite], [1.0, 2.0]];
    let input = files.write("a.npy", &npy("<f4", false, "(5, 2)", &bytes!(rows.as_flattened())));
    let words = json!(["nan", "inf", "-inf", "nan", 3.0]);
    assert_eq!(row(&["sum", "--input", &input, "--axis", "1"])["result"], words);
    assert_eq!(row(&["reduce", "--input", &input, "--axis", "1"])["result"], words);
    assert_eq!(row(&["reduce", "--input", &input])["result"], "nan");
    let text = stdout(&bench(&["reduce", "--input", &input, "--axis", "1"]));
    assert!(text.contains("sum = nan inf -inf nan 3.0\n"), "{text}");
    assert_eq!(row(&["reduce", "--input", &input, "--op", "argmax", "--axis", "1"])["result"], json!([0, 0, 0, 0, 1]));
}

#[test]
fn outputs_are_kept_without_force() {
    let files = Files::new();
    let input = files.write("a.npy", &npy("<i2", false, "(2,)", &bytes!([1_i16, 2])));
    let precious = files.write("precious.npy", b"precious");
    for command in ["sum", "reduce"] {
        refused(&[command, "--input", &input, "--output", &precious], &["exists", "--force"]);
        refused(&[command, "--input", &input, "--output", &files.path("no/such.npy")], &["cannot write", "no folder"]);
    }
    assert_eq!(fs::read(&precious).unwrap(), b"precious");
    row(&["sum", "--input", &input, "--output", &precious, "--force"]);
    assert_eq!(parts(&precious), ("<i8".to_owned(), String::new(), bytes!([3_i64])));
    let two = ["reduce", "--input", &input, "--op", "min,max"];
    refused(&[&two[..], &["--output", &files.path("b.npy")]].concat(), &["--output", "one --op"]);
    let text = stdout(&bench(&two));
    assert!(text.contains("\nmin = 1\nmax = 2\n"), "{text}");
    let left = fs::read_dir(files.0.path()).unwrap().count();
    assert_eq!(left, 2, "only the input and the output");
}

#[test]
fn axes_and_types_that_a_file_does_not_have() {
    let files = Files::new();
    let input = files.write("a.npy", &npy("<f4", false, "(1, 2)", &bytes!([1.0_f32, 2.0])));
    let point = files.write("point.npy", &npy("<f4", false, "()", &bytes!([1.0_f32])));
    let bf16s = files.write("bf16.npy", &npy("<V2", false, "(2,)", &bytes!([bf16::from_f32(1.5); 2])));
    let void = files.write("void.npy", &npy("|V2", false, "(2,)", &bytes!([bf16::from_f32(1.5); 2])));
    for command in ["sum", "reduce"] {
        let refused = |input: &str, more: &[&str], parts: &[&str]| {
            refused(&[&[command, "--input", input], more].concat(), parts);
        };
        refused(&point, &["--axis", "0"], &["point.npy", "no axis 0: the array has none"]);
        refused(&input, &["--dtype", "i8"], &["holds f32 (NumPy's `<f4`), and --dtype is i8", "astype"]);
        refused(&bf16s, &["--dtype", "f16"], &["holds bf16 (NumPy's `<V2`), and --dtype is f16"]);
        for file in [&bf16s, &void] {
            refused(file, &[], &["V2", "ml_dtypes", "--dtype bf16"]);
            assert_eq!(row(&[command, "--input", file, "--dtype", "bf16"])["result"], 3.0);
        }
    }
    refused(&["sum", "--input", &bf16s, "--dtype", "bf16", "--rung", "vectorized"], &["`bf16`", "f32, f64, i32, i64"]);
    refused(&["reduce", "--input", &input, "--op", "wrapping-sum"], &["i8,i16", "not f32"]);
    refused(&["reduce", "--input", &input, "--op", "dot"], &["dot takes two inputs", "--input"]);
}
