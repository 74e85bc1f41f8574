//! Reductions along any axes, and permutations: of random elements, and of files in C and Fortran order.

use std::fs;

use crate::arrays::parts;
use crate::{Files, bench, npy, refused, stderr, stdout};

/// All indices of an array, in C order.
fn indices(extents: &[usize]) -> Vec<Vec<usize>> {
    extents.iter().fold(vec![vec![]], |all, &extent| {
        all.iter().flat_map(|index| (0..extent).map(move |i| [&index[..], &[i]].concat())).collect()
    })
}

/// The element at an index, which differs from those at others.
fn element(index: &[usize]) -> i32 {
    index.iter().fold(1, |number, &i| 7 * number + i as i32)
}

/// Two files of one array, in C order and in Fortran order.
fn both_orders(files: &Files, extents: &[usize]) -> [String; 2] {
    let bytes = |indices: Vec<Vec<usize>>| indices.iter().flat_map(|i| element(i).to_le_bytes()).collect::<Vec<_>>();
    let backwards = |index: &Vec<usize>| index.iter().rev().copied().collect::<Vec<_>>();
    let shape = format!("({},)", extents.iter().map(usize::to_string).collect::<Vec<_>>().join(", "));
    let fortran = indices(&backwards(&extents.to_vec())).iter().map(backwards).collect();
    let write = |name, is_fortran, indices| files.write(name, &npy("<i4", is_fortran, &shape, &bytes(indices)));
    [write("c.npy", false, indices(extents)), write("fortran.npy", true, fortran)]
}

/// The extents, as in a header.
fn shape_of(extents: &[usize]) -> String {
    extents.iter().map(|extent| format!("{extent},")).collect()
}

/// The extents and the bytes of a file; a shape of two and more extents has no comma at its end.
fn written(file: &str) -> (String, Vec<u8>) {
    let (_, shape, bytes) = parts(file);
    let shape = shape.trim_end_matches(',');
    (if shape.is_empty() { String::new() } else { format!("{shape},") }, bytes)
}

fn succeeds(arguments: &[&str]) -> String {
    let output = bench(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}{}", stdout(&output), stderr(&output));
    stdout(&output)
}

#[test]
fn random_elements_along_any_axes() {
    for (shape, axes, shown) in [
        ("2x3x4", "0,2", "2 x 3 x 4 along axes 0 2"),
        ("2x3x4", "-1", "2 x 3 x 4 along axis 2"),
        ("2x3x4", "2,0,1", "2 x 3 x 4"),
        ("40x1024", "1", "40 x 2^10 rows"),
        ("1024x40", "-2", "2^10 x 40 columns"),
        ("3x2x9x2x5", "0,-1,2", "3 x 2 x 9 x 2 x 5 along axes 0 2 4"),
        ("3x2x9x2x5", "1,3", "3 x 2 x 9 x 2 x 5 along axes 1 3"),
        ("3x0x2", "0", "3 x 0 x 2 along axis 0"),
    ] {
        let operators = "sum,mean,norm,product,pairwise-sum,count-nonzero,sum-of-squares";
        let arguments =
            ["reduce", "--op", operators, "--dtype", "f32,f16,f64", "--shape", shape, "--axis", axes, "--offset", "1"];
        let csv = succeeds(&[&arguments[..], &["--format", "csv"]].concat());
        assert_eq!(csv.matches(",true,").count(), 7 * 3, "{csv}");
        assert_eq!(csv.matches(&format!(",{shown},1,")).count(), 7 * 3, "{csv}");
    }
    let most = ["2"; 12].join("x") + &"x1".repeat(20);
    let csv = succeeds(&["reduce", "--op", "min-max", "--shape", &most, "--axis", "0,5,-21", "--format", "csv"]);
    assert!(csv.contains(" along axes 0 5 11,0,,16384,true,"), "{csv}");
    let csv = succeeds(&["reduce", "--shape", "5,2x5", "--axis", "-1", "--op", "argmax", "--format", "csv"]);
    assert!(csv.contains("argmax,f32,5,") && csv.contains("argmax,f32,2 x 5 rows,"), "{csv}");
}

#[test]
fn files_along_any_axes() {
    let (files, extents) = (Files::new(), [3, 2, 4, 1, 5]);
    let inputs = both_orders(&files, &extents);
    let output = files.path("sums.npy");
    for (axes, reduced) in [
        (None, &[0, 1, 2, 3, 4][..]),
        (Some("0,2"), &[0, 2]),
        (Some("-1,1"), &[1, 4]),
        (Some("3"), &[3]),
        (Some("-5"), &[0]),
        (Some("4,2,3"), &[2, 3, 4]),
    ] {
        let kept = |index: &[usize]| -> Vec<usize> {
            (0..5).map(|axis| if reduced.contains(&axis) { 0 } else { index[axis] }).collect()
        };
        let of_each = |index: &Vec<usize>| {
            let all = indices(&extents).into_iter().filter(|other| kept(other) == *index);
            all.map(|index| i64::from(element(&index))).sum::<i64>()
        };
        let with_dims: Vec<usize> =
            (0..5).map(|axis| if reduced.contains(&axis) { 1 } else { extents[axis] }).collect();
        let without: Vec<usize> = (0..5).filter(|axis| !reduced.contains(axis)).map(|axis| extents[axis]).collect();
        let sums: Vec<u8> = indices(&with_dims).iter().flat_map(|index| of_each(index).to_le_bytes()).collect();
        for input in &inputs {
            for command in ["sum", "reduce"] {
                let axes = axes.map_or(vec![], |axes| vec!["--axis", axes]);
                let arguments = [&[command, "--input", input, "--output", &output, "--force"], &axes[..]].concat();
                succeeds(&arguments);
                assert_eq!(written(&output), (shape_of(&without), sums.clone()), "{arguments:?}");
                succeeds(&[&arguments[..], &["--keep-dims"]].concat());
                assert_eq!(written(&output), (shape_of(&with_dims), sums.clone()), "{arguments:?}");
            }
        }
    }
    // Each operator has the same results in both orders; an index counts in C order.
    for (operator, axes) in [("argmax", vec![]), ("argmin", vec!["--axis", "2"]), ("min-max", vec!["--axis", "0,4"])] {
        let [c, fortran] = inputs.each_ref().map(|input| {
            let file = ["--op", operator, "--input", input, "--output", &output, "--force"];
            succeeds(&[&["reduce"], &file[..], &axes].concat());
            parts(&output)
        });
        assert_eq!(c, fortran, "{operator}");
    }
    assert!(
        succeeds(&["reduce", "--input", &inputs[1], "--axis", "0,2"]).contains(" along axes 0 2 in Fortran order ")
    );
    assert!(succeeds(&["sum", "--input", &inputs[1], "--rung", "sequential"]).contains(" right "));
}

#[test]
fn permutations_of_random_elements() {
    let shown = |shape, axes| {
        let csv = succeeds(&["transpose", "--shape", shape, "--permute", axes, "--size", "1,8", "--format", "csv"]);
        assert_eq!(csv.matches(",true,").count(), 2, "{csv}");
        csv
    };
    assert!(shown("4x3x5x7", "0231").contains("4 x 3 x 5 x 7,permute-0231,1,"));
    assert!(shown("4x3x5x7", "0,2,-1,1").contains("4 x 3 x 5 x 7,permute-0231,8,"));
    assert!(shown("2x3x2x3x9", "43012").contains("permute-43012"));
    assert!(shown("9", "0").contains("9,permute-0,1,"));
    assert!(shown("3x0x2", "201").contains("permute-201"));
    let axes: Vec<String> = (0..32).rev().map(|axis: i32| axis.to_string()).collect();
    let shape = ["2"; 10].join("x") + &"x1".repeat(22);
    assert!(shown(&shape, &axes.join(",")).contains("\"permute-31,30,"));
    let table = succeeds(&["transpose", "--shape", "4x3x5x7", "--permute", "0231"]);
    assert!(table.contains("4 x 3 x 5 x 7, axes 0 2 3 1"), "{table}");
    // Without a permutation, the last two axes change places.
    let csv = succeeds(&["transpose", "--shape", "2x3x4x5", "--format", "csv"]);
    assert!(csv.contains("2 x 3 x 4 x 5,transpose,4,true,"), "{csv}");
}

#[test]
fn permutations_of_files() {
    let (files, extents) = (Files::new(), [3, 2, 4, 1, 5]);
    let (inputs, output) = (both_orders(&files, &extents), files.path("t.npy"));
    for (permute, axes) in [
        (None, [0, 1, 2, 4, 3]),
        (Some("43210"), [4, 3, 2, 1, 0]),
        (Some("02143"), [0, 2, 1, 4, 3]),
        (Some("2,-1,0,1,3"), [2, 4, 0, 1, 3]),
        (Some("01234"), [0, 1, 2, 3, 4]),
    ] {
        let permuted = axes.map(|axis| extents[axis]);
        let bytes = indices(&permuted).into_iter().flat_map(|to| {
            let mut from = [0; 5];
            axes.iter().zip(to).for_each(|(&axis, i)| from[axis] = i);
            element(&from).to_le_bytes()
        });
        let expected = (shape_of(&permuted), bytes.collect::<Vec<u8>>());
        for input in &inputs {
            let permute = permute.map_or(vec![], |axes| vec!["--permute", axes]);
            let arguments = [&["transpose", "--input", input, "--output", &output, "--force"], &permute[..]].concat();
            succeeds(&arguments);
            assert_eq!(written(&output), expected, "{arguments:?}");
        }
    }
    let text = succeeds(&["transpose", "--input", &inputs[1], "--permute", "43210"]);
    assert!(text.contains("3 x 2 x 4 x 1 x 5 in Fortran order, axes 4 3 2 1 0"), "{text}");
    // A file of one axis in another order is its own permutation.
    let flat = files.write("flat.npy", &npy("|u1", true, "(3,)", &[7, 8, 9]));
    succeeds(&["transpose", "--input", &flat, "--permute", "0", "--output", &output, "--force"]);
    assert_eq!(fs::read(&output).expect("the output")[128..], [7, 8, 9]);
}

#[test]
fn axes_that_an_array_does_not_have() {
    let files = Files::new();
    let [c, fortran] = both_orders(&files, &[2, 3, 4]);
    let range = "the array has the axes 0 to 2, or -3 to -1";
    for (axes, parts) in [
        ("3", &["no axis 3", range][..]),
        ("0,-4", &["no axis -4", range]),
        ("9223372036854775807", &["no axis 9223372036854775807", range]),
        ("-9223372036854775808", &["no axis -9223372036854775808", range]),
        ("1,1", &["axis 1 is named twice, as 1 and as 1"]),
        ("-1,0,2", &["axis 2 is named twice, as -1 and as 2", "at most once"]),
        ("x", &["`x`", "joined by commas, such as 0,2 or -1"]),
        ("0 1", &["joined by commas"]),
        ("(0, 1)", &["joined by commas"]),
        ("", &["joined by commas"]),
        (&["0"; 40].join(","), &["axis 0 is named twice"]),
    ] {
        let parts: Vec<&str> = parts.iter().map(|part| part.trim_matches('`')).chain(["--axis"]).collect();
        refused(&["reduce", "--shape", "2x3x4", "--axis", axes], &parts);
        for file in [&c, &fortran] {
            refused(&["reduce", "--input", file, "--axis", axes], &parts);
            refused(&["sum", "--input", file, "--axis", axes], &parts);
        }
    }
    refused(&["reduce", "--shape", "2x3x4,5", "--axis", "1"], &["--shape 5", "--axis", "the array has one, 0 or -1"]);
    refused(&["reduce", "--axis", "1"], &["--shape 1048576", "--axis", "the array has one, 0 or -1"]);
    refused(&["reduce", "--shape", "3x4:skewed", "--axis", "1"], &["--axis", "segments by offsets", "leave out"]);
    refused(&["reduce", "--op", "argmin", "--shape", "2x3x4", "--axis", "0,1"], &["2 of 3 axes", "C order", "reshape"]);
    refused(&["sum", "--input", &c, "--keep-dims"], &["--keep-dims", "no effect without --output"]);
}

#[test]
fn permutations_that_do_not_exist() {
    let files = Files::new();
    let [c, fortran] = both_orders(&files, &[2, 3, 4]);
    for (axes, parts) in [
        ("013", &["no axis 3", "the array has the axes 0 to 2, or -3 to -1"][..]),
        ("01", &["axis 2 is missing", "name each axis once"]),
        ("0112", &["axis 1 is named twice, as 1 and as 1"]),
        ("0,2,-1", &["axis 2 is named twice, as 2 and as -1"]),
        ("0a2", &["0a2", "as digits such as 0231, or joined by commas such as 0,2,3,1"]),
        ("-1", &["as digits such as 0231"]),
        ("", &["as digits such as 0231"]),
        ("0,1,", &["joined by commas"]),
    ] {
        let parts = [parts, &["--permute"]].concat();
        refused(&["transpose", "--shape", "2x3x4", "--permute", axes], &parts);
        for file in [&c, &fortran] {
            refused(&["transpose", "--input", file, "--permute", axes], &parts);
        }
    }
    refused(&["transpose", "--shape", "5"], &["--shape 5", "at least 2"]);
    refused(&["transpose", "--shape", "5x5", "--permute", "10", "--kind", "scaled"], &["--kind", "--permute"]);
    refused(&["transpose", "--all", "--permute", "10"], &["--permute", "--all"]);
}

#[test]
fn shapes_that_no_memory_holds() {
    for command in ["reduce", "transpose"] {
        let refused = |shape: &str, parts: &[&str]| {
            refused(&[command, "--shape", shape], &[parts, &["--shape", shape]].concat());
        };
        refused("2^40x2^40", &["axis 1 of extent 1099511627776", "more elements than any memory"]);
        refused("0x2^40x2^40", &["axis 2 of extent 1099511627776", "extents of 0 do not count"]);
        refused("2^64x2", &["too large"]);
        refused(&["1"; 33].join("x"), &["at most 32 axes, not 33"]);
        refused("3x", &["whole number"]);
        refused("axb", &["whole number"]);
        refused("2x-3", &["whole number"]);
    }
    refused(&["reduce", "--shape", "2^15x2^15x2^15", "--axis", "0,2"], &["needs", "free", "choose a smaller --shape"]);
    refused(&["transpose", "--shape", "2^15x2^15x2^15", "--permute", "201"], &["needs", "free", "--shape"]);
    refused(&["reduce", "--shape", "3x4:rows"], &["`rows`", "COUNTxMEAN:skewed", "--axis 1"]);
    refused(&["reduce", "--shape", "3x4x5:skewed"], &["COUNTxMEAN:skewed"]);
    let files = Files::new();
    let shape = format!("({})", "1, ".repeat(33));
    for (is_fortran, name) in [(false, "c.npy"), (true, "fortran.npy")] {
        let file = files.write(name, &npy("|u1", is_fortran, &shape, &[7]));
        for command in ["sum", "reduce", "transpose"] {
            refused(&[command, "--input", &file], &[name, "at most 32 axes, not 33"]);
        }
    }
}
