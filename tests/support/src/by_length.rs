//! Orders of reduction that depend only on the length: the same bits alone, among other rows, and at any address.

use crate::by_shape::ByShape;
use crate::shape::Shape;
use cuda_std::prelude::*;
use half::{bf16, f16};
use kernels::ops::Operator;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use warpfold::{Error, Gpu, Reduction, View, ops};

use crate::order::{Fold, Place};
use crate::reductions::data::{Kind, Random};
use crate::reductions::value::Values;

/// A word that encodes the order in which elements were combined, and the index with which each was lifted.
#[derive(Clone, Copy, Default)]
pub struct Trace;

impl Operator<f32> for Trace {
    type State = u64;
    type Output = u64;
    const NEUTRAL: u64 = 0;

    fn lift(self, element: f32, index: u64) -> u64 {
        hashed(u64::from(element.to_bits()) ^ index << 32) | 1
    }
    fn combine(a: u64, b: u64) -> u64 {
        match (a, b) {
            (0, other) | (other, 0) => other,
            _ => hashed(hashed(a) ^ b.rotate_left(7)) | 1,
        }
    }
    fn finish(self, state: u64, count: u64) -> u64 {
        hashed(state ^ count)
    }
}

fn hashed(word: u64) -> u64 {
    let word = (word ^ word >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    word ^ word >> 29
}

kernels::reductions! {
    Trace of f32: "the trace";
}

/// Reduces a view with a shape; returns the bits of the outputs.
type Reduce<'a, T> = &'a dyn Fn(View<'_, T>, Shape) -> Result<Vec<u8>, Error>;

/// The bits of a reduction's outputs.
fn reduced<O: Reduction<T, Output: Values> + Copy, T: Element>(
    gpu: &Gpu,
    operator: O,
) -> impl Fn(View<'_, T>, Shape) -> Result<Vec<u8>, Error> {
    move |view, shape| {
        let outputs = gpu.download(&gpu.reduce_to_buffer(operator, view, shape)?)?;
        Ok(outputs.iter().flat_map(Values::bytes).collect())
    }
}

/// Elements whose product neither overflows nor underflows.
fn elements<T: Random>(len: usize) -> Vec<T> {
    let mut source = SmallRng::seed_from_u64(len as u64);
    (0..len).map(|_| T::random(Kind::NearOne, &mut source)).collect()
}

/// The maximum number of elements of an input, except for inputs of a few rows or columns.
const MAX_ELEMENTS: usize = 2_800_000;

/// Checks that products of rows, for every float type, and pairwise sums and means equal those of each row as a whole
/// input.
///
/// # Errors
/// If one has other bits, or on an error of the library.
pub fn products_of_rows(gpu: &Gpu) -> Result<(), String> {
    rows_of::<f32>(gpu, &reduced(gpu, ops::Product))?;
    rows_of::<f64>(gpu, &reduced(gpu, ops::Product))?;
    rows_of::<f16>(gpu, &reduced(gpu, ops::Product))?;
    rows_of::<f32>(gpu, &reduced(gpu, ops::PairwiseSum))?;
    rows_of::<bf16>(gpu, &reduced(gpu, ops::PairwiseMean))
}

/// Checks that a row's product of `f32` has the same bits alone and among this many rows, with and without a pitch, at
/// odd addresses.
///
/// # Errors
/// If one has other bits, or on an error of the library.
pub fn products_among(gpu: &Gpu, rows: usize) -> Result<(), String> {
    let text = |error: Error| error.to_string();
    let reduce = reduced::<_, f32>(gpu, ops::Product);
    for len in [1, 2, 3, 4, 17, 33] {
        let numbers = elements::<f32>(len);
        let alone = gpu.upload(&numbers).and_then(|row| reduce(row.view(), Shape::all(len))).map_err(text)?;
        for (pad, offset) in [(0, 0), (0, 1), (1, 0), (2, 3)] {
            let mut all = vec![0.0; offset];
            for _ in 0..rows {
                all.extend_from_slice(&numbers);
                // Would be noticed in a product.
                all.resize(all.len() + pad, f32::NAN);
            }
            let found = gpu.upload(&all).and_then(|buffer| {
                let view = buffer.view().slice(offset, rows * (len + pad))?;
                reduce(view, Shape::rows(rows, len).with_pitch(len + pad)?)
            });
            let found = found.map_err(text)?;
            if found.len() != rows * alone.len() {
                return Err(format!("{} bytes for {rows} rows", found.len()));
            }
            if let Some(row) = found.chunks(alone.len()).position(|bits| bits != alone) {
                return Err(format!(
                    "row {row} of {rows}, of {len}, {pad} apart, after {offset}: other bits than alone"
                ));
            }
        }
    }
    Ok(())
}

/// [`products_of_rows`] for a custom operator. Only in the executor.
///
/// # Errors
/// As for [`products_of_rows`].
pub fn traces_of_rows(gpu: &Gpu) -> Result<(), String> {
    rows_of::<f32>(gpu, &reduced(gpu, Trace))
}

/// Checks that products of columns, for every float type, and pairwise sums and means equal those of each column alone.
///
/// # Errors
/// If one has other bits, or on an error of the library.
pub fn products_of_columns(gpu: &Gpu) -> Result<(), String> {
    columns_of::<f32>(gpu, &reduced(gpu, ops::Product))?;
    columns_of::<f64>(gpu, &reduced(gpu, ops::Product))?;
    columns_of::<f16>(gpu, &reduced(gpu, ops::Product))?;
    columns_of::<f32>(gpu, &reduced(gpu, ops::PairwiseSum))?;
    columns_of::<bf16>(gpu, &reduced(gpu, ops::PairwiseMean))
}

/// [`products_of_columns`] for a custom operator. Only in the executor.
///
/// # Errors
/// As for [`products_of_columns`].
pub fn traces_of_columns(gpu: &Gpu) -> Result<(), String> {
    columns_of::<f32>(gpu, &reduced(gpu, Trace))
}

fn rows_of<T: Element + Random>(gpu: &Gpu, reduce: Reduce<'_, T>) -> Result<(), String> {
    let vector = 16 / size_of::<T>();
    let mut lengths = vec![0, 1, 2, 15, 16, 17, 31, 32, 33, 100];
    // In vectors: a lane's part of a short row; the longest short row; a block's part per iteration, and its maximum;
    // tiles that blocks share.
    for vectors in [1, 4, 8, 127, 128, 256, 1024, 4096, 4608, 9 * 512] {
        lengths.extend([vectors * vector - 1, vectors * vector, vectors * vector + 1]);
    }
    lengths.push(50_000 * vector + 3);
    for len in lengths {
        let numbers = elements::<T>(len);
        let same = |rows: usize, pad: usize, offset: usize, shape: Shape| {
            let mut all = vec![T::default(); offset];
            for _ in 0..rows {
                all.extend_from_slice(&numbers);
                all.resize(all.len() + pad, T::default());
            }
            let buffer = gpu.upload(&all)?;
            reduce(buffer.view().slice(offset, all.len() - offset)?, shape)
        };
        let failed = |error: Error| error.to_string();
        let expected = same(1, 0, 0, Shape::all(len)).map_err(failed)?;
        let check = |rows: usize, pad: usize, offset: usize| {
            let shape = Shape::rows(rows, len).with_pitch(len + pad).map_err(failed)?;
            let found = same(rows, pad, offset, shape).map_err(failed)?;
            match found.chunks(expected.len()).position(|bits| bits != expected) {
                Some(row) => Err(format!(
                    "row {row} of {rows}, of {len} {}, {pad} apart, {offset} past 16 bytes: other bits than alone",
                    std::any::type_name::<T>()
                )),
                None => Ok(()),
            }
        };
        for rows in [1, 2, 3, 528, 10_000] {
            if rows < 4 || rows * len <= MAX_ELEMENTS {
                check(rows, 0, 0)?;
            }
        }
        for offset in 0..vector {
            check(3, offset % 3, offset)?;
            check(1, 0, offset)?;
        }
    }
    Ok(())
}

fn columns_of<T: Element + Random>(gpu: &Gpu, reduce: Reduce<'_, T>) -> Result<(), String> {
    // Around a thread's rows in flight, the leaves of the reduction tree, and splits.
    for rows in [0, 1, 2, 3, 4, 15, 16, 17, 31, 33, 64, 100, 255, 256, 257, 511, 512, 513, 1024, 1025, 4097, 20_000] {
        let numbers = elements::<T>(rows);
        let same = |batches: usize, columns: usize, pad: usize, offset: usize| {
            let mut all = vec![T::default(); offset];
            for _ in 0..batches {
                for &number in &numbers {
                    all.resize(all.len() + columns, number);
                    all.resize(all.len() + pad, T::default());
                }
            }
            let buffer = gpu.upload(&all)?;
            let view = buffer.view().slice(offset, all.len() - offset)?;
            let shape = match batches {
                1 => Shape::columns(rows, columns).with_pitch(columns + pad)?,
                _ => Shape::axis(&[batches, rows, columns], 1)?,
            };
            reduce(view, shape)
        };
        let failed = |error: Error| error.to_string();
        // A single column is a row, so the column that is compared has another one beside it.
        let of_two = same(1, 2, 0, 0).map_err(failed)?;
        let expected = &of_two[..of_two.len() / 2];
        let single = same(1, 1, 0, 0).map_err(failed)?;
        let as_row = gpu.upload(&numbers).and_then(|row| reduce(row.view(), Shape::all(rows))).map_err(failed)?;
        if single != as_row {
            return Err(format!("a single column of {rows} {}: other bits than a row", std::any::type_name::<T>()));
        }
        let check = |batches: usize, columns: usize, pad: usize, offset: usize| {
            let found = same(batches, columns, pad, offset).map_err(failed)?;
            match found.chunks(expected.len()).position(|bits| bits != expected) {
                Some(column) => Err(format!(
                    "column {column} of {batches} x {columns}, of {rows} {}, {pad} apart, {offset} past 16 bytes: \
                     other bits than alone",
                    std::any::type_name::<T>()
                )),
                None => Ok(()),
            }
        };
        for columns in [2, 3, 4, 5, 16, 17, 33, 40, 64, 100, 257, 1030, 20_000] {
            if columns < 6 || columns * rows <= MAX_ELEMENTS / 4 {
                check(1, columns, 0, 0)?;
                check(1, columns, 1, 1)?;
            }
        }
        for (batches, columns) in [(2, 3), (3, 40), (70, 2), (300, 5)] {
            if batches * columns * rows <= MAX_ELEMENTS / 4 {
                check(batches, columns, 0, 0)?;
            }
        }
    }
    Ok(())
}

/// Checks that pairwise sums of long inputs, columns and segments are those of plain loops on the CPU. Shorter ones are
/// in [`exact_cross`](crate::exact_cross).
///
/// # Errors
/// If one has other bits, or on an error of the library.
pub fn long_pairwise_sums(gpu: &Gpu) -> Result<(), String> {
    let mut source = SmallRng::from_os_rng();
    // Around whole tiles; the last block has the remainder.
    for len in [100_000, (1 << 18) + 1, (1 << 20) + 8_191, (1 << 21) - 3] {
        let elements: Vec<f32> = (0..len).map(|_| source.random_range(-1.0..1.0)).collect();
        let fold = Fold { neutral: 0.0, combine: &|a: f32, b: f32| a + b, size: size_of::<f32>() };
        for place in [Place::Contiguous, Place::Strided, Place::Segment] {
            let found = gpu.upload(&elements).and_then(|x| {
                Ok(match place {
                    Place::Contiguous => gpu.reduce_all(ops::PairwiseSum, &x)?,
                    // A single column would be a row.
                    Place::Strided => {
                        let twice: Vec<f32> = elements.iter().flat_map(|&x| [x, x]).collect();
                        let columns = gpu.upload(&twice)?.reshape(&[len, 2])?;
                        gpu.download(&gpu.reduce(ops::PairwiseSum, &columns, 0)?)?[0]
                    }
                    Place::Segment => {
                        let offsets = gpu.upload(&[0, len as u64])?;
                        gpu.download(&gpu.reduce_segments(ops::PairwiseSum, &x, &offsets)?)?[0]
                    }
                })
            });
            let (found, expected) = (found.map_err(|error| error.to_string())?, fold.of(place, &elements));
            if found.to_bits() != expected.to_bits() {
                return Err(format!("{len} elements, {place:?}: {found:e}, on the CPU {expected:e}"));
            }
        }
    }
    Ok(())
}
