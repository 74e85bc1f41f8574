//! Exact sums, compared with those of `bitrep` and of `exact_sum` on the host, which the tests of that crate check.

mod data;
mod segments;

use crate::shape::Shape;
use bitrep::SumF64;
use half::{bf16, f16};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use warpfold::exact::{ExactDot, ExactSum};
use warpfold::ops::SumInF64;
use warpfold::{Error, Gpu};

pub use self::data::*;
pub use self::segments::*;

/// The expected [`RESULTS`].
fn expected<T: Exact>(elements: impl Iterator<Item = T>) -> [T::Sum; 4] {
    let (mut sum, mut squares) = (ExactSum::new(), ExactDot::new());
    elements.for_each(|x| {
        sum.add(x);
        squares.add(x, x);
    });
    [sum.value(), sum.mean(), squares.value(), squares.sqrt()]
}

/// Checks results of one length for each kind of data and each type, in two orders and at two addresses.
///
/// # Errors
/// If a result is not the exact one, or on an unexpected error.
pub fn check(gpu: &Gpu, len: usize, source: &mut SmallRng) -> Result<(), String> {
    for data in ALL {
        check_results::<f32>(gpu, data, len, source)?;
        check_results::<f64>(gpu, data, len, source)?;
        check_results::<f16>(gpu, data, len, source)?;
        check_results::<bf16>(gpu, data, len, source)?;

        // Compared with another implementation, including the f64 sum of f32.
        let (doubles, singles) = (numbers::<f64>(data, len, source), numbers::<f32>(data, len, source));
        let case = |what: &str| format!("compared with bitrep, the sum of {len} {what} of {data:?}");
        let of_bitrep = |all: &mut dyn Iterator<Item = f64>| {
            let mut sum = SumF64::new();
            all.for_each(|x| sum.add(x));
            // -0.0 becomes 0.0 here.
            sum.value() + 0.0
        };
        let found = gpu.sum(&gpu.upload(&doubles).map_err(text)?).map_err(text)?;
        same(found, of_bitrep(&mut doubles.iter().copied()), &case("f64"))?;
        let found = gpu.reduce_all(SumInF64, &gpu.upload(&singles).map_err(text)?).map_err(text)?;
        same(found, of_bitrep(&mut singles.iter().map(|&x| x.into())), &case("f32 in f64"))?;
    }
    Ok(())
}

/// Checks the results of an input, also of its elements in another order and unaligned, and products with another
/// input.
fn check_results<T: Exact>(gpu: &Gpu, data: Data, len: usize, source: &mut SmallRng) -> Result<(), String> {
    let elements = numbers::<T>(data, len, source);
    let right = expected(elements.iter().copied());
    let mut others = elements.clone();
    others.shuffle(source);
    let offset = source.random_range(1..8);
    let moved: Vec<T> = (0..offset).map(|_| T::default()).chain(others.iter().copied()).collect();
    let (input, moved) = (gpu.upload(&elements).map_err(text)?, gpu.upload(&moved).map_err(text)?);
    let moved = moved.view().slice(offset, len).map_err(text)?;
    for (how, view) in [("", input.view()), (", in another order", moved)] {
        let found = T::results(gpu, view).map_err(text)?;
        for ((what, found), right) in RESULTS.into_iter().zip(found).zip(right) {
            same(found, right, &format!("the {what} of {len} {} of {data:?}{how}", T::NAME))?;
        }
    }
    let with = ALL[source.random_range(0..ALL.len())];
    let further = numbers::<T>(with, len + 3, source);
    let expected = elements.iter().zip(&further[3..]).map(|(&x, &y)| (x, y)).collect::<ExactDot<T>>();
    let case = format!("the dot product of {len} {} of {data:?} and {with:?}", T::NAME);
    let further = gpu.upload(&further).map_err(text)?;
    let dot = |x, y| T::dots(gpu, x, y, Shape::all(len)).map(|dots| dots[0]).map_err(text);
    same(dot(input.view(), further.view().slice(3, len).map_err(text)?)?, expected.value(), &case)?;
    let of_others = others.iter().zip(&elements).map(|(&x, &y)| (x, y)).collect::<ExactDot<T>>();
    same(dot(moved, input.view())?, of_others.value(), &format!("{case}, moved"))
}

/// Compares a result with the expected one, bit by bit. All NaN count as equal.
///
/// # Errors
/// If they differ. The message has both.
pub fn same<R: Into<f64>>(found: R, expected: R, what: &str) -> Result<(), String> {
    let (found, expected) = (found.into(), expected.into());
    let is_same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
    if is_same { Ok(()) } else { Err(format!("{what} is {found:e}, expected {expected:e}")) }
}

/// An error's message.
pub fn text(error: Error) -> String {
    error.to_string()
}

/// Checks that extreme values, each in another block with ordinary data in between, leave the workspace clean.
///
/// # Errors
/// As for [`check`].
pub fn workspaces_are_left_clean(gpu: &Gpu) -> Result<(), String> {
    left_clean::<f32>(gpu)?;
    left_clean::<f64>(gpu)
}

fn left_clean<T: Exact>(gpu: &Gpu) -> Result<(), String> {
    const LEN: usize = 100_000;
    let mut source = SmallRng::seed_from_u64(7);
    let (highest, least) = T::EXPONENTS;
    let extremes = [power(highest), -power(highest), 1.0, power(-T::DIGITS), power(least), f64::INFINITY];
    for round in 0..20 {
        let mut all: Vec<T> =
            if round % 2 == 0 { vec![T::default(); LEN] } else { numbers(Data::Normal, LEN, &mut source) };
        if round % 2 == 0 {
            let few = if round % 4 == 0 { 5 } else { 6 };
            let distance = LEN / extremes.len();
            extremes[..few]
                .iter()
                .enumerate()
                .for_each(|(i, &x)| all[i * distance + source.random_range(0..distance)] = T::nearest(x));
        }
        let right = expected(all.iter().copied());
        let found = T::results(gpu, gpu.upload(&all).map_err(text)?.view()).map_err(text)?;
        for ((what, found), right) in RESULTS.into_iter().zip(found).zip(right) {
            same(found, right, &format!("the {what} of {} in round {round}", T::NAME))?;
        }
    }
    Ok(())
}

/// Checks results of the rows and the columns of one array, each row with another kind of data.
///
/// # Errors
/// As for [`check`].
pub fn rows_and_columns(gpu: &Gpu, rows: usize, len: usize, source: &mut SmallRng) -> Result<(), String> {
    rows_and_columns_of::<f32>(gpu, rows, len, source)?;
    rows_and_columns_of::<f64>(gpu, rows, len, source)?;
    rows_and_columns_of::<f16>(gpu, rows, len, source)?;
    rows_and_columns_of::<bf16>(gpu, rows, len, source)
}

fn rows_and_columns_of<T: Exact>(gpu: &Gpu, rows: usize, len: usize, source: &mut SmallRng) -> Result<(), String> {
    let pitch = len + if source.random() { source.random_range(0..9) } else { 0 };
    let offset = if source.random() { source.random_range(0..9) } else { 0 };
    let mut all = vec![T::nearest(f64::NAN); offset + rows * pitch];
    for row in 0..rows {
        let of_row = numbers(ALL[source.random_range(0..ALL.len())], len, source);
        all[offset + row * pitch..][..len].copy_from_slice(&of_row);
    }
    let input = gpu.upload(&all).map_err(text)?;
    let view = input.view().slice(offset, rows * pitch).map_err(text)?;
    for (what, shape, first, distance) in
        [("row", Shape::rows(rows, len), pitch, 1), ("column", Shape::columns(rows, len), 1, pitch)]
    {
        let shape = shape.with_pitch(pitch).map_err(text)?;
        let elements = |i: usize| (0..shape.elements_each()).map(move |k| offset + i * first + k * distance);
        let found = T::results_of_each(gpu, view, shape).map_err(text)?;
        for (which, found) in RESULTS.into_iter().zip(&found) {
            if found.len() != shape.outputs() {
                return Err(format!("{} {which}s of {} {what}s", found.len(), shape.outputs()));
            }
        }
        for i in 0..shape.outputs() {
            let right = expected(elements(i).map(|place| all[place]));
            for ((which, found), right) in RESULTS.into_iter().zip(&found).zip(right) {
                let (name, found) = (T::NAME, found[i]);
                let case = || format!("{name} {what} {i} of {rows} x {len}, {pitch} apart, {offset} in");
                same(found, right, &format!("the {which} of {}", case()))?;
            }
        }
        if what == "row" {
            let dots = T::dots(gpu, view, view, shape).map_err(text)?;
            for (i, &dot) in dots.iter().enumerate() {
                same(dot, found[2][i], &format!("the dot product of row {i} of {rows} x {len} with itself"))?;
            }
        }
    }
    Ok(())
}

/// Checks results of the columns of some matrices, each column with one kind of data, most of them ordinary.
///
/// # Errors
/// As for [`check`].
pub fn columns(gpu: &Gpu, batches: usize, rows: usize, columns: usize, source: &mut SmallRng) -> Result<(), String> {
    columns_of::<f32>(gpu, batches, rows, columns, source)?;
    columns_of::<f64>(gpu, batches, rows, columns, source)?;
    columns_of::<f16>(gpu, batches, rows, columns, source)?;
    columns_of::<bf16>(gpu, batches, rows, columns, source)
}

fn columns_of<T: Exact>(
    gpu: &Gpu,
    batches: usize,
    rows: usize,
    columns: usize,
    source: &mut SmallRng,
) -> Result<(), String> {
    let is_close = source.random();
    let pitch = columns + if is_close || batches > 1 { 0 } else { source.random_range(0..9) };
    let offset = if is_close { 0 } else { source.random_range(0..9) };
    let mut all = vec![T::nearest(f64::NAN); offset + batches * rows * pitch];
    for (batch, column) in (0..batches).flat_map(|batch| (0..columns).map(move |column| (batch, column))) {
        let data = if source.random_range(0..3) > 0 { Data::Normal } else { ALL[source.random_range(0..ALL.len())] };
        for (row, x) in numbers(data, rows, source).into_iter().enumerate() {
            all[offset + (batch * rows + row) * pitch + column] = x;
        }
    }
    let input = gpu.upload(&all).map_err(text)?;
    let view = input.view().slice(offset, batches * rows * pitch).map_err(text)?;
    let shape = if batches == 1 {
        Shape::columns(rows, columns).with_pitch(pitch)
    } else {
        Shape::axis(&[batches, rows, columns], 1)
    };
    let found = T::results_of_each(gpu, view, shape.map_err(text)?).map_err(text)?;
    for i in 0..batches * columns {
        let (batch, column) = (i / columns, i % columns);
        let elements = (0..rows).map(|row| all[offset + (batch * rows + row) * pitch + column]);
        for ((which, found), right) in RESULTS.into_iter().zip(&found).zip(expected(elements)) {
            let of = format!("{batches} x {rows} x {columns}, {pitch} apart, {offset} in");
            same(found[i], right, &format!("the {which} of {} column {column} in matrix {batch} of {of}", T::NAME))?;
        }
    }
    Ok(())
}
