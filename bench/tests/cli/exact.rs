//! `bench exact`.

use serde_json::Value;

use crate::{bench, refused, stderr, stdout};

/// The hashes of f32, f64, f16 and bf16: the same on every machine and in every version.
const HASHES: [&str; 4] = ["0x59cbfde5", "0x9a602fca", "0x7121e8c9", "0x8eeef461"];

fn report(arguments: &[&str]) -> Value {
    let output = bench(&[&["exact", "--format", "json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// One field of all rows of a table.
fn column<'a>(report: &'a Value, table: &str, field: &str) -> Vec<&'a Value> {
    let tables = report["tables"].as_array().expect("tables");
    let table = tables.iter().find(|found| found["name"] == table).expect("it has a name");
    table["rows"].as_array().expect("rows").iter().map(|row| &row[field]).collect()
}

#[test]
fn exact_sums_have_the_same_bits_in_any_order_and_layout() {
    let report = report(&[]);
    assert_eq!(column(&report, "cancellation", "f32_loop"), [3.0]);
    assert_eq!(column(&report, "cancellation", "f64_loop"), [3.0]);
    assert_eq!(column(&report, "cancellation", "exact"), [200.0]);
    assert_eq!(column(&report, "cancellation", "bits"), ["0x43480000"]);

    let cases = ["in order", "reversed", "shuffled", "misaligned by one element", "in parts, merged"];
    assert_eq!(column(&report, "orders", "case"), cases);
    assert_eq!(column(&report, "orders", "bits"), ["0xc2c52b52"; 5]);
    assert_eq!(column(&report, "orders", "exact"), [-98.58461; 5]);
    for field in ["f32_loop", "f64_loop"] {
        let loops: Vec<f64> = column(&report, "orders", field).iter().map(|sum| sum.as_f64().expect("sum")).collect();
        assert_eq!(loops[0], loops[3], "alignment does not affect a loop");
        for (i, sum) in loops.iter().enumerate() {
            assert!(*sum != -98.58461, "{loops:?}");
            assert_eq!(loops.iter().filter(|other| *other == sum).count(), if i % 3 == 0 { 2 } else { 1 }, "{loops:?}");
        }
    }

    let cases = ["alone", "row 2 of 2", "row 618 of 1000", "column 5 of 7"];
    assert_eq!(column(&report, "neighbours", "case"), cases);
    assert_eq!(column(&report, "neighbours", "bits"), ["0x5785cfd4"; 4]);
}

#[test]
fn hashes_of_exact_results_do_not_depend_on_the_run() {
    for arguments in [[].as_slice(), &["--check"], &["--schedule", "seed=3"]] {
        let report = report(arguments);
        let hashes = report["hashes"].as_array().expect("hashes");
        let of = |field: &str| hashes.iter().map(|row| row[field].clone()).collect::<Vec<_>>();
        assert_eq!(of("dtype"), ["f32", "f64", "f16", "bf16"]);
        assert_eq!(of("hash"), HASHES, "{arguments:?}");
        assert_eq!(of("stored"), HASHES);
        assert!(hashes.iter().all(|row| row["correct"] == true && row["wrong"].is_null()), "{report}");
        assert!(hashes.iter().all(|row| row["results"].as_u64().is_some_and(|results| results > 1000)), "{report}");
        assert!(report["hashes_stored_by"].as_str().is_some_and(|machine| machine.contains("x86-64")), "{report}");
    }
}

#[test]
fn tables_and_csv_have_the_same_results() {
    let output = bench(&["exact"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(text.matches(" right ").count(), 1 + 5 + 4 + 4, "{text}");
    let parts =
        ["Sum of [1e20, 1, -1e20, 3]", "loop in f32", "loop in f64", "1e20 + 1 is 1e20", "0x43480000", "CRC-32"];
    for part in parts.iter().chain(&HASHES) {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");

    let csv = stdout(&bench(&["exact", "--format", "csv"]));
    assert_eq!(csv.lines().count(), 1 + 1 + 5 + 4 + 4, "{csv}");
    for line in [
        "table,case,f32_loop,f64_loop,exact,bits,expected_bits,correct",
        "cancellation,in this order,3.0,3.0,200.0,0x43480000,0x43480000,true",
        "neighbours,alone,,,294255320000000.0,0x5785cfd4,0x5785cfd4,true",
        &format!("hashes,f64,,,,{0},{0},true", HASHES[1]),
    ] {
        assert!(csv.lines().any(|found| found == line), "`{line}` is not in:\n{csv}");
    }
    let markdown = stdout(&bench(&["exact", "--format", "markdown"]));
    assert!(markdown.contains("| in this order |") && markdown.contains("| f16 "), "{markdown}");
}

#[test]
fn options_without_effect_on_exact() {
    let file = env!("CARGO_MANIFEST_DIR").to_owned() + "/none.svg";
    for options in [["--samples", "5"].as_slice(), &["--plot", &file], &["--nvtx"]] {
        refused(&[&["exact"], options].concat(), &[options[0], "no effect", "compares results and times nothing"]);
    }
    refused(&["exact", "--format", "csv", "--wide"], &["--wide", "no effect"]);
    refused(&["exact", "--n", "5"], &["--n"]);
    refused(&["--n", "5", "exact"], &["--n", "after"]);
    refused(&["exact", "f32"], &["f32"]);
    refused(&["exact", "--device", "tpu"], &["simt", "cuda:N"]);
}
