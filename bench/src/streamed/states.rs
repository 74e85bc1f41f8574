//! Running sums on the host, of every element type. They are integers, so that the order of additions does not matter.

use half::{bf16, f16};
use warpfold::exact::{ColumnSums, ExactDot, ExactSum, Matrix, integers};
use warpfold::{Axes, Error, ExactElement, Gpu, Reduces, host, ops};

use super::device::OnDevice;
use super::{Job, Kinds, Results, SummedBy};
use crate::element::Number;
use crate::number::Value;
use crate::reduce::Operator;

/// A running sum of the elements of one output, or of their squares.
pub trait State<T>: Clone + Default + Send {
    fn add(&mut self, elements: &[T]);

    fn merge(&mut self, other: &Self) -> Result<(), Error>;

    /// The result of an operator: of the sum, or of the mean or the norm.
    fn value(&self, is_derived: bool) -> Value;
}

/// The running sums of the columns of a matrix.
pub trait ColumnStates<T: Streamed>: Sized + Send {
    fn new(columns: usize) -> Self;

    /// Adds rows, one after the other in memory.
    fn add_rows(&mut self, rows: &[T]);

    fn merge_into(&self, sums: &mut [T::Sum]) -> Result<(), Error>;
}

/// An element type with running sums.
pub trait Streamed: Number {
    type Sum: State<Self>;
    type Squares: State<Self>;
    type Columns: ColumnStates<Self>;

    /// The results of an array that is read a chunk at a time: [`Job::reduce_on_host`] or [`Job::on_device`].
    fn reduce_chunks(
        job: &Job<'_>,
        gpu: &Gpu,
        extents: &[usize],
        is_reduced: &[bool],
        results: &mut Results,
    ) -> anyhow::Result<SummedBy>;

    /// The results of an operator for an array in memory, in C order.
    fn reduce(operator: Operator, array: &host::View<'_, Self>, axes: &Axes) -> Result<Vec<Value>, Error>;
}

impl<T: Number + ExactElement> State<T> for ExactSum<T>
where
    T::Sum: Number,
{
    fn add(&mut self, elements: &[T]) {
        self.add_slice(elements);
    }

    fn merge(&mut self, other: &Self) -> Result<(), Error> {
        Ok(ExactSum::merge(self, other)?)
    }

    fn value(&self, is_derived: bool) -> Value {
        if is_derived { self.mean::<T::Sum>().value() } else { self.rounded::<T::Sum>().value() }
    }
}

impl<T: Number + ExactElement> State<T> for ExactDot<T>
where
    T::Sum: Number,
{
    fn add(&mut self, elements: &[T]) {
        self.add_squares(elements);
    }

    fn merge(&mut self, other: &Self) -> Result<(), Error> {
        Ok(ExactDot::merge(self, other)?)
    }

    fn value(&self, is_derived: bool) -> Value {
        if is_derived { self.sqrt::<T::Sum>().value() } else { self.rounded::<T::Sum>().value() }
    }
}

/// An integer as an `i128`, which holds the exact sum of as many as a file can have.
pub trait Integer: Streamed {
    fn wide_integer(self) -> i128;

    /// The result of a sum: its lowest 64 bits.
    fn wrapped(sum: i128) -> Value;
}

/// A sum of integers.
#[derive(Clone, Copy, Default)]
pub struct IntegerSum {
    sum: i128,
    count: u64,
}

impl<T: Integer> State<T> for IntegerSum {
    fn add(&mut self, elements: &[T]) {
        // Blocks whose sums fit in 64 bits, of all but the widest types.
        for block in elements.chunks(1 << 16) {
            self.sum += match size_of::<T>() {
                8 => block.iter().map(|x| x.wide_integer()).sum::<i128>(),
                _ => i128::from(block.iter().map(|x| x.wide_integer() as i64).sum::<i64>()),
            };
        }
        self.count += elements.len() as u64;
    }

    fn merge(&mut self, other: &Self) -> Result<(), Error> {
        self.sum += other.sum;
        self.count += other.count;
        Ok(())
    }

    fn value(&self, is_derived: bool) -> Value {
        if is_derived { Value::F64(integers::mean(self.sum, self.count)) } else { T::wrapped(self.sum) }
    }
}

/// A sum of squares of integers, in 192 bits.
#[derive(Clone, Copy, Default)]
pub struct IntegerSquares {
    low: u128,
    high: u64,
}

impl IntegerSquares {
    fn add_one(&mut self, square: u128) {
        let (low, carries) = self.low.overflowing_add(square);
        (self.low, self.high) = (low, self.high + u64::from(carries));
    }
}

impl<T: Integer> State<T> for IntegerSquares {
    fn add(&mut self, elements: &[T]) {
        for x in elements {
            let magnitude = x.wide_integer().unsigned_abs();
            self.add_one(magnitude * magnitude);
        }
    }

    fn merge(&mut self, other: &Self) -> Result<(), Error> {
        self.add_one(other.low);
        self.high += other.high;
        Ok(())
    }

    fn value(&self, is_derived: bool) -> Value {
        match is_derived {
            true => Value::F64(integers::norm_of_words([self.low as u64, (self.low >> 64) as u64, self.high, 0])),
            false => T::wrapped(self.low as i128),
        }
    }
}

/// The sums of the columns of a matrix of integers.
pub struct IntegerColumns(Vec<IntegerSum>);

impl<T: Integer<Sum = IntegerSum>> ColumnStates<T> for IntegerColumns {
    fn new(columns: usize) -> Self {
        Self(vec![IntegerSum::default(); columns])
    }

    fn add_rows(&mut self, rows: &[T]) {
        let Self(sums) = self;
        for row in rows.chunks_exact(sums.len()) {
            sums.iter_mut().zip(row).for_each(|(sum, x)| {
                sum.sum += x.wide_integer();
                sum.count += 1;
            });
        }
    }

    fn merge_into(&self, sums: &mut [IntegerSum]) -> Result<(), Error> {
        sums.iter_mut().zip(&self.0).try_for_each(|(sum, own)| State::<T>::merge(sum, own))
    }
}

macro_rules! streamed {
    ($reduce:ident; $($type:ident: $sum:ty, $squares:ty, $columns:ty;)*) => {$(
        impl Streamed for $type {
            type Sum = $sum;
            type Squares = $squares;
            type Columns = $columns;

            fn reduce_chunks(
                job: &Job<'_>,
                gpu: &Gpu,
                extents: &[usize],
                is_reduced: &[bool],
                results: &mut Results,
            ) -> anyhow::Result<SummedBy> {
                $reduce::<$type>(job, gpu, extents, is_reduced, results)
            }

            fn reduce(operator: Operator, array: &host::View<'_, Self>, axes: &Axes) -> Result<Vec<Value>, Error> {
                fn values<R: Number>(results: host::Array<R>) -> Vec<Value> {
                    results.as_slice().iter().map(|x| x.value()).collect()
                }
                Ok(match operator {
                    Operator::Sum => values(host::reduce(ops::Sum, array, axes.clone())?),
                    Operator::Mean => values(host::reduce(ops::Mean, array, axes.clone())?),
                    Operator::SumOfSquares => values(host::reduce(ops::SumOfSquares, array, axes.clone())?),
                    Operator::Norm => values(host::reduce(ops::Norm, array, axes.clone())?),
                    _ => unreachable!("refused before"),
                })
            }
        }
    )*};
}

streamed! {
    on_either;
    f16: ExactSum<f16>, ExactDot<f16>, ColumnSums<f16>;
    bf16: ExactSum<bf16>, ExactDot<bf16>, ColumnSums<bf16>;
    f32: ExactSum<f32>, ExactDot<f32>, ColumnSums<f32>;
    f64: ExactSum<f64>, ExactDot<f64>, ColumnSums<f64>;
}

// The library has no running sums of integers on a GPU.
streamed! {
    on_host;
    i8: IntegerSum, IntegerSquares, IntegerColumns;
    i16: IntegerSum, IntegerSquares, IntegerColumns;
    i32: IntegerSum, IntegerSquares, IntegerColumns;
    i64: IntegerSum, IntegerSquares, IntegerColumns;
    u8: IntegerSum, IntegerSquares, IntegerColumns;
    u16: IntegerSum, IntegerSquares, IntegerColumns;
    u32: IntegerSum, IntegerSquares, IntegerColumns;
    u64: IntegerSum, IntegerSquares, IntegerColumns;
}

macro_rules! on_device {
    ($($type:ident to $result:ident;)*) => {$(
        impl OnDevice for $type {
            type Result = $result;
        }

        impl ColumnStates<$type> for ColumnSums<$type> {
            fn new(columns: usize) -> Self {
                Self::new(columns)
            }

            fn add_rows(&mut self, rows: &[$type]) {
                let matrix = Matrix::from_slice(rows, self.columns()).expect("whole rows");
                self.add_rows(matrix).expect("as many columns");
            }

            fn merge_into(&self, sums: &mut [ExactSum<$type>]) -> Result<(), Error> {
                let merge = |(column, sum): (usize, &mut ExactSum<$type>)| sum.merge(&self.sum(column));
                Ok(sums.iter_mut().enumerate().try_for_each(merge)?)
            }
        }
    )*};
}

on_device! {
    f16 to f32;
    bf16 to f32;
    f32 to f32;
    f64 to f64;
}

/// On the GPU if there is one, else on the host.
fn on_either<T: OnDevice>(
    job: &Job<'_>,
    gpu: &Gpu,
    extents: &[usize],
    is_reduced: &[bool],
    results: &mut Results,
) -> anyhow::Result<SummedBy>
where
    ops::Sum: Reduces<T, 1, Output = T::Result>,
    ops::Mean: Reduces<T, 1, Output = T::Result>,
    ops::SumOfSquares: Reduces<T, 1, Output = T::Result>,
    ops::Norm: Reduces<T, 1, Output = T::Result>,
{
    if !gpu.is_cuda() {
        return on_host::<T>(job, gpu, extents, is_reduced, results);
    }
    job.on_device::<T>(gpu, 0, extents, is_reduced, results)?;
    Ok(SummedBy::Gpu)
}

fn on_host<T: Streamed>(
    job: &Job<'_>,
    _: &Gpu,
    extents: &[usize],
    is_reduced: &[bool],
    results: &mut Results,
) -> anyhow::Result<SummedBy> {
    job.reduce_on_host::<T>(0, extents, is_reduced, results)?;
    Ok(SummedBy::Host)
}

macro_rules! integers {
    ($($type:ident as $wide:ident $variant:ident;)*) => {$(
        impl Integer for $type {
            fn wide_integer(self) -> i128 {
                self.into()
            }

            fn wrapped(sum: i128) -> Value {
                Value::$variant(sum as $wide)
            }
        }
    )*};
}

integers! {
    i8 as i64 I64; i16 as i64 I64; i32 as i64 I64; i64 as i64 I64;
    u8 as u64 U64; u16 as u64 U64; u32 as u64 U64; u64 as u64 U64;
}

/// The running sums of the outputs of a part of an array with axes `[rows, kept, inner]`, of which the first and the
/// last are reduced.
pub struct Running<T: Streamed> {
    inner: usize,
    elements: Option<Elements<T>>,
    squares: Vec<T::Squares>,
}

enum Elements<T: Streamed> {
    Columns(T::Columns),
    Each(Vec<T::Sum>),
}

/// The sums of several [`Running`].
pub struct Totals<T: Streamed> {
    pub sums: Vec<T::Sum>,
    pub squares: Vec<T::Squares>,
}

/// The number of columns of squares that are summed from one copy, and its rows.
const COPIED: (usize, usize) = (16, 1024);

impl<T: Streamed> Running<T> {
    pub fn new(kinds: Kinds, kept: usize, inner: usize) -> Self {
        let elements = kinds.elements.then(|| match inner == 1 && kept > 1 {
            true => Elements::Columns(T::Columns::new(kept)),
            false => Elements::Each(vec![T::Sum::default(); kept]),
        });
        let squares = vec![T::Squares::default(); if kinds.squares { kept } else { 0 }];
        Self { inner, elements, squares }
    }

    /// The bytes of a running sum of one output, and of its share of [`Totals`].
    pub fn bytes_each(kinds: Kinds) -> usize {
        let elements = if kinds.elements { 2 * size_of::<T::Sum>() + 64 } else { 0 };
        elements + if kinds.squares { 2 * size_of::<T::Squares>() } else { 0 }
    }

    /// Adds whole rows. If there is one output, any elements.
    pub fn add(&mut self, rows: &[T]) {
        let inner = self.inner;
        match &mut self.elements {
            Some(Elements::Columns(columns)) => columns.add_rows(rows),
            Some(Elements::Each(sums)) => add_each(sums, rows, inner),
            None => {}
        }
        match inner == 1 && self.squares.len() > 1 {
            true => add_columns(&mut self.squares, rows),
            false => add_each(&mut self.squares, rows, inner),
        }
    }

    pub fn merge_into(&self, totals: &mut Totals<T>) -> Result<(), Error> {
        match &self.elements {
            Some(Elements::Columns(columns)) => columns.merge_into(&mut totals.sums)?,
            Some(Elements::Each(sums)) => {
                totals.sums.iter_mut().zip(sums).try_for_each(|(total, sum)| total.merge(sum))?;
            }
            None => {}
        }
        totals.squares.iter_mut().zip(&self.squares).try_for_each(|(total, sum)| total.merge(sum))
    }
}

/// Adds rows of `inner` elements for each state.
fn add_each<T, S: State<T>>(states: &mut [S], rows: &[T], inner: usize) {
    match states {
        [] => {}
        [one] => one.add(rows),
        several => {
            for row in rows.chunks_exact(several.len() * inner) {
                several.iter_mut().zip(row.chunks_exact(inner)).for_each(|(state, run)| state.add(run));
            }
        }
    }
}

/// Adds rows of one element for each state, from copies in which the elements of a state are neighbours.
fn add_columns<T: Number, S: State<T>>(states: &mut [S], rows: &[T]) {
    let (columns, most) = (states.len(), COPIED.1);
    let mut copy = vec![T::default(); COPIED.0 * most];
    for rows in rows.chunks(most * columns) {
        let count = rows.len() / columns;
        for (first, states) in (0..).step_by(COPIED.0).zip(states.chunks_mut(COPIED.0)) {
            for (at, row) in rows.chunks_exact(columns).enumerate() {
                row[first..].iter().zip(0..states.len()).for_each(|(&x, column)| copy[column * most + at] = x);
            }
            states.iter_mut().zip(copy.chunks(most)).for_each(|(state, column)| state.add(&column[..count]));
        }
    }
}

impl<T: Streamed> Totals<T> {
    pub fn new(kinds: Kinds, kept: usize) -> Self {
        Self {
            sums: vec![T::Sum::default(); if kinds.elements { kept } else { 0 }],
            squares: vec![T::Squares::default(); if kinds.squares { kept } else { 0 }],
        }
    }

    /// The results of an operator.
    pub fn values(&self, operator: Operator) -> Vec<Value> {
        let is_derived = matches!(operator, Operator::Mean | Operator::Norm);
        match Kinds::of(&[operator]).squares {
            true => self.squares.iter().map(|state| state.value(is_derived)).collect(),
            false => self.sums.iter().map(|state| state.value(is_derived)).collect(),
        }
    }
}
