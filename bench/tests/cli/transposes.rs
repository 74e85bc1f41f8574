//! `bench transpose` for several shapes, element sizes and operations.

use crate::{bench, refused, stderr, stdout};

#[test]
fn every_kind_of_every_size_it_takes() {
    let kinds = "transpose,scaled,in-place";
    let shapes = "7x7,3x20x20";
    let output = bench(&["transpose", "--kind", kinds, "--size", "4,8,16", "--shape", shapes, "--format", "csv"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines[0][..4], ["shape", "kind", "size", "correct"]);
    assert_eq!(lines.len(), 1 + 3 * 3 * 2);
    assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{text}");
    assert!(lines[1..].iter().all(|line| line[3] == "true"), "{text}");
    assert_eq!(lines[1][..3], ["7 x 7", "transpose", "4"]);
    assert_eq!(lines[18][..3], ["3 x 20 x 20", "in-place", "16"]);
    let table = stdout(&bench(&["transpose", "--kind", "in-place", "--size", "1", "--shape", "9x9"]));
    assert!(table.contains("9 x 9, in place") && table.contains("right"), "{table}");
}

#[test]
fn an_impossible_operation_is_refused() {
    refused(&["transpose", "--kind", "in-place", "--shape", "3x4"], &["in-place takes square matrices", "3 x 4"]);
    refused(&["transpose", "--kind", "scaled", "--size", "2"], &["4, 8 and 16 bytes", "not of 2"]);
    refused(&["transpose", "--kind", "sideways"], &["sideways", "in-place"]);
    refused(&["transpose", "--kind", "scaled", "--all"], &["--all"]);
}
