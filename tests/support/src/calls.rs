//! One call of every kind, compared with the CPU.

use std::fmt::Debug;

use crate::by_shape::ByShape;
use crate::shape::Shape;
use warpfold::ops::{ArgMax, Sum};
use warpfold::{Array, Buffer, Error, Gpu, Scaling};

/// The number of columns of the matrices, a multiple of [`DEPTH`].
const COLUMNS: usize = 170;

/// The extent of the innermost axis in permutations that keep it innermost.
const DEPTH: usize = 5;

/// Inputs on a device, with the expected results: integers, so that sums are exact.
pub struct Calls {
    rows: usize,
    numbers: Vec<i32>,
    input: Buffer<i32>,
    floats: Buffer<f32>,
    offsets: Buffer<u64>,
    matrix: Array<i32>,
    /// The matrix' first rows and columns.
    square: Array<i32>,
}

impl Calls {
    /// Inputs for a `seed`, which also determines their number.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn new(gpu: &Gpu, seed: usize) -> Result<Self, Error> {
        let rows = COLUMNS + seed % 50;
        let numbers: Vec<i32> = (0..rows * COLUMNS).map(|i| ((i + seed) * 7919 % 1009) as i32).collect();
        let floats: Vec<f32> = numbers.iter().map(|&x| x as f32).collect();
        Ok(Self {
            rows,
            input: gpu.upload(&numbers)?,
            floats: gpu.upload(&floats)?,
            offsets: gpu.upload(&[0, 7, 7, numbers.len() as u64])?,
            matrix: gpu.upload(&numbers)?.reshape(&[rows, COLUMNS])?,
            square: gpu.upload(&numbers[..COLUMNS * COLUMNS])?.reshape(&[COLUMNS, COLUMNS])?,
            numbers,
        })
    }

    /// Makes one call of each kind, and checks it.
    ///
    /// # Errors
    /// If a call fails, or a result is wrong.
    pub fn check(&mut self, gpu: &Gpu) -> Result<(), String> {
        self.check_all(gpu).map_err(|error| error.to_string())?
    }

    fn check_all(&mut self, gpu: &Gpu) -> Result<Result<(), String>, Error> {
        let Self { rows, ref numbers, ref input, ref offsets, .. } = *self;
        let sum = |numbers: &mut dyn Iterator<Item = &i32>| numbers.map(|&x| i64::from(x)).sum::<i64>();
        let first_largest = |numbers: &[i32]| {
            let largest = numbers.iter().max();
            numbers.iter().position(|x| Some(x) == largest).map_or(u64::MAX, |place| place as u64)
        };
        let transposed = |rows: usize, of: &dyn Fn(i32) -> i32| -> Vec<i32> {
            (0..rows * COLUMNS).map(|i| of(numbers[i % rows * COLUMNS + i / rows])).collect()
        };
        let to_floats = |numbers: Vec<i32>| -> Vec<f32> { numbers.into_iter().map(|x| x as f32).collect() };
        let permuted: Vec<i32> = (0..numbers.len())
            .map(|i| (i / DEPTH / rows, i / DEPTH % rows, i % DEPTH))
            .map(|(column, row, within)| numbers[row * COLUMNS + column * DEPTH + within])
            .collect();

        let all = vec![
            same("a sum", &gpu.sum(input)?, &sum(&mut numbers.iter())),
            same("the index of the maximum", &gpu.argmax(input)?, &first_largest(numbers)),
            same(
                "sums of columns",
                &gpu.download(&gpu.reduce_to_buffer(Sum, input, Shape::columns(rows, COLUMNS))?)?,
                &(0..COLUMNS).map(|column| sum(&mut numbers[column..].iter().step_by(COLUMNS))).collect(),
            ),
            same(
                "indices of the maxima of rows",
                &gpu.download(&gpu.reduce_to_buffer(ArgMax, input, Shape::rows(rows, COLUMNS))?)?,
                &numbers.chunks(COLUMNS).map(first_largest).collect(),
            ),
            same(
                "sums of segments",
                &gpu.download(&gpu.reduce_segments(Sum, input, offsets)?)?,
                &vec![sum(&mut numbers[..7].iter()), 0, sum(&mut numbers[7..].iter())],
            ),
            same("a dot product", &gpu.dot(input, input)?, &numbers.iter().map(|&x| i64::from(x) * i64::from(x)).sum()),
            same("a transpose", &gpu.download(&gpu.transpose(&self.matrix)?)?, &transposed(rows, &|x| x)),
            {
                let mut output = gpu.zeroed(numbers.len())?.reshape(&[COLUMNS, rows])?;
                let columns = self.floats.view().reshape(&[rows, COLUMNS])?.permute_axes(&[1, 0])?;
                gpu.copy_scaled(Scaling::by(-2.0), columns, &mut output)?;
                same("a scaled transpose", &gpu.download(&output)?, &to_floats(transposed(rows, &|x| -2 * x)))
            },
            {
                let segments = input.view().reshape(&[rows, COLUMNS / DEPTH, DEPTH])?;
                same("a permutation", &gpu.download(&gpu.permute(segments, &[1, 0, 2])?)?, &permuted)
            },
            {
                gpu.transpose_in_place(&mut self.square)?;
                let found = gpu.download(&self.square)?;
                gpu.transpose_in_place(&mut self.square)?;
                same("a transpose in place", &found, &transposed(COLUMNS, &|x| x))
            },
            same("a transpose in place, twice", &gpu.download(&self.square)?, &numbers[..COLUMNS * COLUMNS].to_vec()),
        ];
        Ok(all.into_iter().collect())
    }
}

/// Compares a result. The error shows the difference, shortened if it is long.
fn same<T: PartialEq + Debug>(what: &str, found: &T, expected: &T) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    let short = |x: &T| format!("{x:?}").chars().take(200).collect::<String>();
    Err(format!("{what}: {}, should be {}", short(found), short(expected)))
}
