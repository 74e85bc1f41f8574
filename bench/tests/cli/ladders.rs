//! `bench ladder`: tables, JSON and CSV, and charts as SVG and PNG.

use std::fs;

use crate::{Files, bench, refused, stderr, stdout};

#[test]
fn each_ladder_has_a_table() {
    let output = bench(&["--n", "5000", "--rows", "70", "--cols", "50"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for part in [
        "SIMT executor",
        "The times are not",
        "Transpose of 70 x 50 f32",
        "divergent_modulo",
        "single_launch",
        "exact_long_rows",
        "tiled_padded",
        "right",
        "conflicts",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    assert!(!text.contains("WRONG"), "{text}");
    assert!(!text.contains('\x1b'), "no colours if standard output is not a terminal");
    assert_eq!(stderr(&output), "", "no progress bar if standard error is not a terminal");
}

#[test]
fn a_ladder_as_json_and_csv() {
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
    assert_eq!(rows.len(), 10, "integers have no exact rung");
    for row in rows {
        assert_eq!(row["correct"], true, "{row}");
        assert!(row["median_us"].as_f64().unwrap() > 0.0, "{row}");
    }
    // 4097 elements are 33 blocks of 128 threads; their 33 partials need a second launch.
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
        let output = bench(&[&["ladder", "--format", "csv"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let rows = stdout(&output);
        rows.lines().skip(1).map(|row| row.split(',').take(3).collect::<Vec<_>>().join(",")).collect()
    };
    let (numbers, sides) = (["--n", "100"].as_slice(), ["--rows", "9", "--cols", "7"].as_slice());
    let of = |arguments: &[&str], sizes: &[&[&str]]| kernels(&[arguments, &sizes.concat()].concat());
    assert_eq!(of(&["reduce", "--rung", "unroll4"], &[numbers]), ["Sum in global memory,100 f32,unroll4"]);
    assert_eq!(
        of(&["reduce", "--rung", "exact_long_rows", "--dtype", "f64"], &[numbers]),
        ["Sum in shared memory,100 f64,exact_long_rows"]
    );
    assert_eq!(of(&["transpose", "--rung", "tiled_8"], &[sides]), ["Transpose,9 x 7 f32,tiled_8"]);
    assert_eq!(of(&["control-flow", "--rung", "sync_or"], &[numbers]), ["Control flow,100 u32,sync_or"]);
    // Two ladders have a rung of this name.
    assert_eq!(
        of(&["--rung", "vectorized"], &[numbers, sides]),
        ["Sum in shared memory,100 f32,vectorized", "Transpose,9 x 7 f32,vectorized"]
    );
}

#[test]
fn ladders_as_charts() {
    let files = Files::new();
    let file = files.path("ladder.svg");
    let output = bench(&["ladder", "reduce", "--n", "1000", "--plot", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output), format!("wrote {file}\n"));
    let svg = fs::read_to_string(&file).expect("the plot exists");
    for part in [
        "<svg",
        "divergent_modulo",
        "single_launch",
        "Sum in shared memory of 1000 f32",
        "requested bytes, % of the bytes of their sectors",
        "bank conflicts: extra passes",
        "active lanes of 32",
        // Loads and stores have charts of their own.
        ": loads from global memory",
        ": stores to global memory",
        ": loads from shared memory",
    ] {
        assert!(svg.contains(part), "`{part}` is not in the plot");
    }
    assert!(!svg.contains(".0\n"), "a tick has needless digits: {svg}");
    // The executor's times are those of a CPU, and are not drawn.
    assert!(!svg.contains("GB/s"), "{svg}");
    let nothing = files.path("nothing.svg");
    let output = bench(&["ladder", "transpose", "--rows", "0", "--plot", &nothing]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("nothing to draw") && stdout(&output).contains("tiled_32"));
    for unknown in ["ladder.jpg", "ladder", "png"] {
        refused(&["--plot", unknown], &[unknown, ".svg", ".png"]);
    }
}

#[test]
fn ladders_as_png_for_print() {
    let files = Files::new();
    let file = files.path("ladder.png");
    let output = bench(&["ladder", "reduce", "--n", "1000", "--dtype", "f64", "--plot", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let bytes = fs::read(&file).expect("the plot exists");
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
    // The first fifth has nothing dark but the names of the kernels: without a font it is empty.
    assert!(dark_in(0..width / 5) > 1000, "no names of kernels");
    let bar = pixels.chunks_exact(3).filter(|pixel| pixel == &[70, 110, 160]).count();
    assert!(bar > width * height / 50, "no bars");
}
