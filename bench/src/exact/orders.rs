//! Exact sums of the same elements in several orders and layouts.

use serde::Serialize;
use warpfold::exact::ExactSum;
use warpfold::{Error, Gpu, ops};

use super::numbers::{Kind, Random, vectors};
use crate::number::Value;

/// A table of sums that should be equal.
#[derive(Debug, Serialize)]
pub struct Table {
    pub name: &'static str,
    pub input: String,
    pub rows: Vec<Row>,
    /// What the table shows.
    #[serde(skip)]
    pub note: &'static str,
}

/// One way to sum the elements.
#[derive(Debug, Serialize)]
pub struct Row {
    pub case: &'static str,
    /// The sum by a plain loop over the elements in this order.
    pub f32_loop: Option<Value>,
    pub f64_loop: Option<Value>,
    pub exact: Value,
    pub bits: String,
    pub expected_bits: String,
    pub correct: bool,
}

impl Row {
    fn new(case: &'static str, exact: f32, expected: f32) -> Self {
        let (bits, expected_bits) = (Value::F32(exact).hex(), Value::F32(expected).hex());
        let correct = bits == expected_bits;
        Self { case, f32_loop: None, f64_loop: None, exact: Value::F32(exact), bits, expected_bits, correct }
    }

    /// Adds the sums by plain loops. If there are several parts, each is summed, and then the sums are added.
    fn with_loops(self, parts: &[&[f32]]) -> Self {
        let single = |all: &[f32]| all.iter().fold(0.0_f32, |sum, x| sum + x);
        let double = |all: &[f32]| all.iter().fold(0.0_f64, |sum, &x| sum + f64::from(x));
        let f32_loop = parts.iter().fold(0.0_f32, |sum, part| sum + single(part));
        let f64_loop = parts.iter().fold(0.0_f64, |sum, part| sum + double(part));
        Self { f32_loop: Some(Value::F32(f32_loop)), f64_loop: Some(Value::F64(f64_loop)), ..self }
    }
}

/// A sum for which loops give a wrong result, in `f32` and in `f64`.
pub fn cancellation(gpu: &Gpu) -> Result<Table, Error> {
    let numbers = [1e20_f32, 1.0, -1e20, 3.0].repeat(50);
    let row = Row::new("in this order", gpu.sum(&gpu.upload(&numbers)?)?, 200.0).with_loops(&[&numbers]);
    Ok(Table {
        name: "cancellation",
        input: "[1e20, 1, -1e20, 3], fifty times".to_owned(),
        rows: vec![row],
        note: "A loop rounds each addition: 1e20 + 1 is 1e20. The exact sum is rounded once, at the end.",
    })
}

/// The same elements in several orders, misaligned, and in parts.
pub fn orders(gpu: &Gpu) -> Result<Table, Error> {
    const LEN: usize = 20_000;
    let mut random = Random(2);
    let [numbers, _] = vectors::<f32>(Kind::Cancelling, LEN, &mut random);
    let expected = numbers.iter().copied().collect::<ExactSum<f32>>().value();
    let row = |case, numbers: &[f32]| -> Result<Row, Error> {
        let exact = gpu.sum(&gpu.upload(numbers)?)?;
        Ok(Row::new(case, exact, expected).with_loops(&[numbers]))
    };
    let reversed: Vec<f32> = numbers.iter().rev().copied().collect();
    let mut shuffled = numbers.clone();
    random.shuffle(&mut shuffled);

    let one_more = gpu.upload(&[&[1.0], &numbers[..]].concat())?;
    let misaligned = gpu.sum(one_more.view().slice(1, LEN)?)?;

    let parts: Vec<&[f32]> = numbers.chunks(LEN / 3).collect();
    let mut merged = ExactSum::<f32>::new();
    for part in parts.iter().rev() {
        let sum: ExactSum<f32> = part.iter().copied().collect();
        merged.merge(&sum).expect("there are fewer than 2^50 elements");
    }
    Ok(Table {
        name: "orders",
        input: format!("{LEN} random f32 from 2^-47 to 2^47, most of which cancel"),
        rows: vec![
            row("in order", &numbers)?,
            row("reversed", &reversed)?,
            row("shuffled", &shuffled)?,
            Row::new("misaligned by one element", misaligned, expected).with_loops(&[&numbers]),
            Row::new("in parts, merged", merged.value(), expected).with_loops(&parts),
        ],
        note: "The results of the loops depend on the order. The exact sum has the same bits in every row. The parts \
               were summed on the host, and merged from the last to the first.",
    })
}

/// A row alone, as one of several rows, and as a column.
pub fn neighbours(gpu: &Gpu) -> Result<Table, Error> {
    const LEN: usize = 100;
    const COLUMNS: usize = 7;
    let mut random = Random(3);
    let [row, _] = vectors::<f32>(Kind::Wide, LEN, &mut random);
    let [others, _] = vectors::<f32>(Kind::Wide, 1000 * LEN, &mut random);
    let expected = row.iter().copied().collect::<ExactSum<f32>>().value();
    let sum_at = |matrix: &[f32], extents: [usize; 2], axis: isize, at: usize| -> Result<f32, Error> {
        let matrix = gpu.upload(matrix)?.reshape(&extents)?;
        Ok(gpu.download(&gpu.reduce(ops::Sum, &matrix, axis)?)?[at])
    };
    let row_among = |rows: usize, at: usize| {
        let mut matrix = others[..rows * LEN].to_vec();
        matrix[at * LEN..][..LEN].copy_from_slice(&row);
        sum_at(&matrix, [rows, LEN], 1, at)
    };
    let mut matrix = others[..LEN * COLUMNS].to_vec();
    matrix.iter_mut().skip(4).step_by(COLUMNS).zip(&row).for_each(|(to, &x)| *to = x);
    let as_column = sum_at(&matrix, [LEN, COLUMNS], 0, 4)?;
    Ok(Table {
        name: "neighbours",
        input: format!("one row of {LEN} random f32 from 2^-47 to 2^47"),
        rows: vec![
            Row::new("alone", row_among(1, 0)?, expected),
            Row::new("row 2 of 2", row_among(2, 1)?, expected),
            Row::new("row 618 of 1000", row_among(1000, 617)?, expected),
            Row::new("column 5 of 7", as_column, expected),
        ],
        note: "Other rows and the layout of the matrix do not change a bit of this row's sum.",
    })
}
