//! Exact results of `f16` and `bf16`, rounded to the element type.

use half::{bf16, f16};
use rand::Rng;
use rand::rngs::SmallRng;
use warpfold::exact::{ExactDot, ExactSum};
use warpfold::ops::{Dot, InElementType, Mean, Norm, Sum, SumOfSquares};
use warpfold::{Gpu, Shape};

use crate::exact::{ALL, Exact, RESULTS, numbers};

macro_rules! element_types {
    ($($check:ident of $type:ident;)*) => {$(
        fn $check(gpu: &Gpu, rows: usize, len: usize, source: &mut SmallRng) -> Result<(), String> {
            let text = |error: warpfold::Error| error.to_string();
            let mut all = Vec::with_capacity(rows * len);
            for _ in 0..rows {
                all.extend(numbers::<$type>(ALL[source.random_range(0..ALL.len())], len, source));
            }
            let expected = |elements: &[$type]| -> [$type; 4] {
                let sum: ExactSum<$type> = elements.iter().copied().collect();
                let squares: ExactDot<$type> = elements.iter().map(|&x| (x, x)).collect();
                [sum.rounded(), sum.mean(), squares.rounded(), squares.sqrt()]
            };
            let input = gpu.upload(&all).map_err(text)?;
            let columns: Vec<Vec<$type>> =
                (0..len).map(|i| (0..rows).map(|row| all[row * len + i]).collect()).collect();
            let of_rows: Vec<[$type; 4]> = (0..rows).map(|row| expected(&all[row * len..][..len])).collect();
            let of_columns: Vec<[$type; 4]> = columns.iter().map(|column| expected(column)).collect();
            let of_all = [expected(&all)];
            let shapes = [
                ("all", Shape::all(rows * len), &of_all[..]),
                ("row", Shape::rows(rows, len), &of_rows),
                ("column", Shape::columns(rows, len), &of_columns),
            ];
            for (what, shape, right) in shapes {
                let found = [
                    gpu.reduce_to_buffer(InElementType(Sum), &input, shape).map_err(text)?,
                    gpu.reduce_to_buffer(InElementType(Mean), &input, shape).map_err(text)?,
                    gpu.reduce_to_buffer(InElementType(SumOfSquares), &input, shape).map_err(text)?,
                    gpu.reduce_to_buffer(InElementType(Norm), &input, shape).map_err(text)?,
                ];
                for (which, found) in found.iter().enumerate() {
                    same(&gpu.download(found).map_err(text)?, right, which, what)?;
                }
            }
            let offsets: Vec<u64> = (0..=rows).map(|row| (row * len) as u64).collect();
            let offsets = gpu.upload(&offsets).map_err(text)?;
            let found = [
                gpu.reduce_segments(InElementType(Sum), &input, &offsets).map_err(text)?,
                gpu.reduce_segments(InElementType(Mean), &input, &offsets).map_err(text)?,
                gpu.reduce_segments(InElementType(SumOfSquares), &input, &offsets).map_err(text)?,
                gpu.reduce_segments(InElementType(Norm), &input, &offsets).map_err(text)?,
            ];
            for (which, found) in found.iter().enumerate() {
                same(&gpu.download(found).map_err(text)?, &of_rows, which, "segment")?;
            }
            let dots = gpu
                .reduce_pairs(InElementType(Dot), &input, &input, Shape::rows(rows, len))
                .and_then(|dots| gpu.download(&dots))
                .map_err(text)?;
            same(&dots, &of_rows, 2, "dot product of a row with itself, of row")
        }
    )*};
}

element_types! {
    check_f16 of f16;
    check_bf16 of bf16;
}

/// Checks each result against the expected one of its row, column or segment.
fn same<T: Exact>(found: &[T], right: &[[T; 4]], which: usize, what: &str) -> Result<(), String> {
    let number = |x: T| ExactSum::from_iter([x]).rounded::<f64>();
    if found.len() != right.len() {
        return Err(format!("{} results of {} {what}s", found.len(), right.len()));
    }
    for (i, (found, right)) in found.iter().zip(right).enumerate() {
        let (found, right) = (number(*found), number(right[which]));
        if found.to_bits() != right.to_bits() && !(found.is_nan() && right.is_nan()) {
            let name = RESULTS[which];
            return Err(format!("the {name} of {} {what} {i} is {found:e}, expected {right:e}", T::NAME));
        }
    }
    Ok(())
}

/// Checks results of whole inputs, rows, columns and segments, each row with another kind of data.
///
/// # Errors
/// If a result is not the exact one, rounded once, or on an unexpected error.
pub fn check(gpu: &Gpu, rows: usize, len: usize, source: &mut SmallRng) -> Result<(), String> {
    check_f16(gpu, rows, len, source)?;
    check_bf16(gpu, rows, len, source)
}

/// Checks a sum that an intermediate rounding would change.
///
/// # Errors
/// If it is rounded twice.
pub fn is_rounded_once(gpu: &Gpu) -> Result<(), String> {
    let text = |error: warpfold::Error| error.to_string();
    // The sum is just above the midpoint of 2048 and 2050; rounded to `f32` first, it is the midpoint.
    let tied = [2048.0, 1.0, 2.0_f32.powi(-24)].map(f16::from_f32);
    let input = gpu.upload(&tied).map_err(text)?;
    let (own, single) = (gpu.reduce(InElementType(Sum), &input).map_err(text)?, gpu.sum(&input).map_err(text)?);
    if (own, single) == (f16::from_f32(2050.0), 2049.0) {
        return Ok(());
    }
    Err(format!("the sum of {tied:?} is {own} in f16 and {single} in f32"))
}
