//! Files as NumPy writes them: in Fortran order, of bool, from standard input, and transposes of every type.

use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::arrays::parts;
use crate::{BENCH, Files, bench, npy, refused, stderr, stdout};

/// The result of the first row of a report in JSON, which is right.
fn result(arguments: &[&str]) -> Value {
    let output = bench(&[arguments, &["--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}{}", stdout(&output), stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let row = &report["sections"][0]["rows"][0];
    assert_eq!(row["correct"], true, "{report}");
    row["result"].clone()
}

/// The bytes of an array of 2 x 3 x 4, in C order and in Fortran order. The element at `[i, j, k]` is
/// `100 i + 10 j + k`.
fn both_orders() -> [Vec<u8>; 2] {
    let at = |i: i16, j: i16, k: i16| (100 * i + 10 * j + k).to_le_bytes();
    let c = (0..2).flat_map(|i| (0..3).flat_map(move |j| (0..4).flat_map(move |k| at(i, j, k)))).collect();
    let fortran = (0..4).flat_map(|k| (0..3).flat_map(move |j| (0..2).flat_map(move |i| at(i, j, k)))).collect();
    [c, fortran]
}

#[test]
fn fortran_order_has_the_same_axes_and_indices() {
    let files = Files::new();
    let [c, fortran] = both_orders();
    let c = files.write("c.npy", &npy("<i2", false, "(2, 3, 4)", &c));
    let fortran = files.write("fortran.npy", &npy("<i2", true, "(2, 3, 4)", &fortran));
    for axis in [None, Some("0"), Some("1"), Some("2"), Some("-1")] {
        let axis = axis.map_or(vec![], |axis| vec!["--axis", axis]);
        for command in [["sum"].as_slice(), &["reduce", "--op", "argmax"], &["reduce", "--op", "argmin"]] {
            let of = |file: &str| {
                let output = files.path("results.npy");
                let of_file = ["--input", file, "--output", &output, "--force"];
                (result(&[command, &of_file, &axis].concat()), fs::read(&output).expect("the results"))
            };
            assert_eq!(of(&fortran), of(&c), "{command:?} {axis:?}");
        }
    }
    let sums = result(&["sum", "--input", &fortran, "--axis", "0"]);
    assert_eq!(sums, json!([100, 102, 104, 106, 120, 122, 124, 126, 140, 142, 144, 146]));
}

/// Python writes the file: `numpy.save("t.npy", numpy.arange(6, dtype="f4").reshape(2, 3).T)`.
#[test]
fn a_transposed_array_of_numpy_is_transposed_back() {
    let files = Files::new();
    let bytes: Vec<u8> = (0..6_u8).flat_map(|i| f32::from(i).to_le_bytes()).collect();
    let input = files.write("t.npy", &npy("<f4", true, "(3, 2)", &bytes));
    let output = files.path("back.npy");
    assert_eq!(bench(&["transpose", "--input", &input, "--output", &output]).status.code(), Some(0));
    assert_eq!(parts(&output), ("<f4".to_owned(), "2,3,".to_owned(), bytes));
}

#[test]
fn transposes_of_every_type_keep_the_type() {
    let files = Files::new();
    let bits = |i: usize, size: usize| (0..size).map(move |byte| (i * 16 + byte * 37) as u8);
    for (descr, size) in [
        ("<f2", 2),
        ("<V2", 2),
        ("<f4", 4),
        ("<f8", 8),
        ("|i1", 1),
        ("<i2", 2),
        ("<i4", 4),
        ("<i8", 8),
        ("|u1", 1),
        ("<u2", 2),
        ("<u4", 4),
        ("<u8", 8),
    ] {
        let of = |order: &[usize]| order.iter().flat_map(|&i| bits(i, size)).collect::<Vec<_>>();
        let input = files.write("a.npy", &npy(descr, false, "(2, 3)", &of(&[0, 1, 2, 3, 4, 5])));
        let output = files.path("t.npy");
        let done = bench(&["transpose", "--input", &input, "--output", &output, "--force", "--format", "json"]);
        assert_eq!(done.status.code(), Some(0), "{descr}: {}", stderr(&done));
        assert_eq!(parts(&output), (descr.to_owned(), "3,2,".to_owned(), of(&[0, 3, 1, 4, 2, 5])));
    }
    let booleans = files.write("b.npy", &npy("|b1", false, "(1, 3)", &[1, 0, 1]));
    let output = files.path("bt.npy");
    assert_eq!(bench(&["transpose", "--input", &booleans, "--output", &output]).status.code(), Some(0));
    assert_eq!(parts(&output), ("|b1".to_owned(), "3,1,".to_owned(), vec![1, 0, 1]));
    // A big-endian file has the same elements.
    let big = files.write("big.npy", &npy(">i2", false, "(1, 2)", &[1, 2, 3, 4]));
    assert_eq!(bench(&["transpose", "--input", &big, "--output", &output, "--force"]).status.code(), Some(0));
    assert_eq!(parts(&output), ("<i2".to_owned(), "2,1,".to_owned(), vec![2, 1, 4, 3]));
}

#[test]
fn booleans_are_zeros_and_ones() {
    let files = Files::new();
    let input = files.write("b.npy", &npy("|b1", false, "(2, 3)", &[1, 0, 1, 0, 0, 0]));
    for (operator, all, rows) in [
        ("sum", json!(2), json!([2, 0])),
        ("any", json!(1), json!([1, 0])),
        ("all", json!(0), json!([0, 0])),
        ("count-nonzero", json!(2), json!([2, 0])),
        ("max", json!(1), json!([1, 0])),
        ("argmax", json!(0), json!([0, 0])),
    ] {
        assert_eq!(result(&["reduce", "--op", operator, "--input", &input]), all, "{operator}");
        assert_eq!(result(&["reduce", "--op", operator, "--input", &input, "--axis", "1"]), rows, "{operator}");
    }
    assert_eq!(result(&["sum", "--input", &input, "--dtype", "u8"]), 2);
    refused(&["sum", "--input", &input, "--dtype", "f32"], &["bool, which is read as u8", "--dtype is f32"]);
    let wrong = files.write("wrong.npy", &npy("|b1", true, "(2, 2)", &[0, 1, 2, 1]));
    for command in ["sum", "reduce", "transpose"] {
        refused(&[command, "--input", &wrong], &["wrong.npy", "the element at [0, 1] is 2", "numpy.uint8"]);
    }
}

/// The output of `bench` with a file as its standard input.
fn bench_with_input(input: Stdio, arguments: &[&str]) -> Output {
    let mut command = Command::new(&*BENCH);
    command.args(["--device", "simt"]).args(arguments).stdin(input).output().expect("bench starts")
}

#[test]
fn standard_input_is_read() {
    let files = Files::new();
    let bytes: Vec<u8> = [1.0_f32, 2.0, 3.5, 4.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let input = files.write("a.npy", &npy("<f4", false, "(2, 2)", &bytes));
    let open = || Stdio::from(fs::File::open(&input).expect("it exists"));
    for command in [["sum"].as_slice(), &["reduce"]] {
        let output = bench_with_input(open(), &[command, &["--input", "-"]].concat());
        assert!(stdout(&output).contains("sum = 10.5"), "{command:?}: {}{}", stdout(&output), stderr(&output));
        let output = bench_with_input(open(), &[command, &["--input", "-", "--axis", "2"]].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("standard input: --axis: there is no axis 2"), "{}", stderr(&output));
    }
    let transposed = files.path("t.npy");
    let output = bench_with_input(open(), &["transpose", "--input", "-", "--output", &transposed]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(fs::read(&transposed).expect("the output").ends_with(&[0, 0, 0x60, 0x40, 0, 0, 0, 0x40, 0, 0, 0x80, 0x40]));
    let output = bench_with_input(Stdio::null(), &["sum", "--input", "-"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("standard input is empty"), "{}", stderr(&output));
}

/// A link to a file that does not exist is refused before the work, which would take too long here.
#[cfg(unix)]
#[test]
fn a_dangling_link_is_not_an_output() {
    let files = Files::new();
    let input = files.write("a.npy", &npy("<f4", false, "(1, 2)", &[0; 8]));
    let (link, plot) = (files.path("link.npy"), files.path("link.svg"));
    std::os::unix::fs::symlink("no/such/file.npy", &link).expect("a link");
    std::os::unix::fs::symlink(&plot, &plot).expect("a link to itself");
    for force in [[].as_slice(), &["--force"]] {
        let parts = ["cannot write", "link.npy", "symbolic link to `no/such/file.npy`, which does not exist"];
        refused(&[&["transpose", "--input", &input, "--output", &link], force].concat(), &parts);
        refused(&[&["sum", "--input", &input, "--output", &link], force].concat(), &parts);
        refused(&[&["reduce", "--input", &input, "--output", &link], force].concat(), &parts);
    }
    refused(&["ladder", "reduce", "--n", "2^26", "--plot", &plot], &["cannot write", "symbolic link"]);
    assert!(fs::symlink_metadata(&link).expect("the link").is_symlink(), "the link is still there");
}
