//! Exact sums of elements and of squares.

use std::marker::PhantomData;
use std::ops::Range;

use cuda_std::element::{Element, Plain};
use exact_sum::{ColumnSums, Elements, ExactDot, ExactSum, Matrix, Rounded, Summand};

use super::engine::Fold;
use super::form::{Axis, Form, Walk};
use super::memory::{BLOCK, Memory};

/// What is summed of each element.
pub(super) trait Terms<T>: Sync {
    /// The sum.
    type Sum: Send;
    /// A result.
    type Output: Copy + Send;
    /// The sum of no elements.
    fn empty(&self) -> Self::Sum;
    /// Adds elements.
    fn add(&self, sum: &mut Self::Sum, elements: &Run<'_, T>);
    /// Adds the elements of another sum.
    fn merge(&self, sum: &mut Self::Sum, other: &Self::Sum);
    /// The result.
    fn result(&self, sum: &Self::Sum) -> Self::Output;
    /// Calls `each` with the sum of each column of matrices, if there is a faster way than one column after the other.
    fn columns(&self, matrices: &Matrices<'_, T>, each: impl FnMut(Self::Sum)) -> bool {
        let _ = (matrices, each);
        false
    }
    /// Appends the results of all rows of a matrix or all columns of matrices, if there is a faster way than by sums.
    fn results(&self, rows_or_columns: RowsOrColumns<'_, '_, T>, results: &mut Vec<Self::Output>) -> bool {
        let _ = (rows_or_columns, results);
        false
    }
}

/// Elements that an output has.
pub(super) enum Run<'a, T> {
    Elements(Elements<'a, T>),
    /// Of memory between whose elements others may write: a part of them.
    Block(&'a [T]),
}

/// Matrices of equal shapes, whose columns are summed.
pub(super) struct Matrices<'a, T> {
    memory: &'a Memory<'a, T>,
    form: &'a Form<1>,
    start: isize,
    column: Axis<1>,
    columns: usize,
}

/// What [`Terms::results`] sums.
pub(super) enum RowsOrColumns<'a, 'b, T> {
    Rows(Matrix<'a, T>),
    Columns(&'b Matrices<'a, T>),
}

/// An exact sum of terms.
pub(super) struct Exact<K>(pub K);

/// Columns that are summed at a time: the bins of these are in the L2 cache.
const COLUMNS: usize = 1 << 12;

/// Columns that are summed one after the other from copies, and rows of the copies.
const COPIED: usize = 16;

impl<T: Element + Summand, K: Terms<T>> Fold<T, 1> for Exact<K> {
    type State = K::Sum;
    type Output = K::Output;

    fn fold(&self, form: &Form<1>, inputs: &[Memory<'_, T>; 1], outputs: Range<usize>, states: &mut Vec<K::Sum>) {
        self.each(form, &inputs[0], outputs, |sum| states.push(sum));
    }

    fn merge(&self, state: &mut K::Sum, other: &K::Sum) {
        self.0.merge(state, other);
    }

    fn finish(&self, state: &K::Sum, _count: u64) -> K::Output {
        self.0.result(state)
    }

    fn results(
        &self,
        form: &Form<1>,
        inputs: &[Memory<'_, T>; 1],
        outputs: Range<usize>,
        results: &mut Vec<K::Output>,
    ) {
        let input = &inputs[0];
        for (start, of, range) in pieces(form, outputs, COLUMNS) {
            let is_done = match (of, &form.reduced[..]) {
                (Some(column), [.., _]) if form.is_columns() => {
                    let matrices = Matrices { memory: input, form, start, column, columns: range.len() };
                    self.0.results(RowsOrColumns::Columns(&matrices), results)
                }
                (Some(row), [run]) => match matrix(input, start, [&row, run], [range.len(), run.extent]) {
                    Some(matrix) => self.0.results(RowsOrColumns::Rows(matrix), results),
                    None => false,
                },
                _ => false,
            };
            if !is_done {
                self.each(form, input, range, |sum| results.push(self.0.result(&sum)));
            }
        }
    }
}

/// Parts of some outputs that are along the last of the kept axes, if there is one, of at most `most` outputs each: the
/// first byte, that axis, and the outputs.
fn pieces(
    form: &Form<1>,
    outputs: Range<usize>,
    most: usize,
) -> impl Iterator<Item = (isize, Option<Axis<1>>, Range<usize>)> + '_ {
    let mut next = outputs.start;
    std::iter::from_fn(move || {
        if next >= outputs.end {
            return None;
        }
        let first = next;
        let Some((axis, outer)) = form.kept.split_last() else {
            next += 1;
            return Some((form.starts[0], None, first..next));
        };
        let (row, column) = (first / axis.extent, first % axis.extent);
        next += most.min(axis.extent - column).min(outputs.end - first);
        let start = form.starts[0] + Walk::new(outer, row).at[0] + column as isize * axis.strides[0];
        Some((start, Some(*axis), first..next))
    })
}

impl<K> Exact<K> {
    /// Calls `each` with the sum of each output.
    fn each<T: Element + Summand>(
        &self,
        form: &Form<1>,
        input: &Memory<'_, T>,
        outputs: Range<usize>,
        mut each: impl FnMut(K::Sum),
    ) where
        K: Terms<T>,
    {
        if !form.is_columns() {
            let mut kept = Walk::new(&form.kept, outputs.start);
            for _ in outputs {
                let mut sum = self.0.empty();
                runs(form, input, form.starts[0] + kept.at[0], |run| self.0.add(&mut sum, run));
                each(sum);
                kept.advance();
            }
            return;
        }
        for (start, column, range) in pieces(form, outputs, COLUMNS) {
            let Some(column) = column else { continue };
            let matrices = Matrices { memory: input, form, start, column, columns: range.len() };
            if !self.0.columns(&matrices, &mut each) {
                for first in (0..range.len()).step_by(COPIED) {
                    let start = start + first as isize * column.strides[0];
                    self.copied_columns(form, input, start, column, COPIED.min(range.len() - first), &mut each);
                }
            }
        }
    }

    /// Sums columns from copies of some rows, in which a column's elements are neighbours.
    fn copied_columns<T: Element + Summand>(
        &self,
        form: &Form<1>,
        input: &Memory<'_, T>,
        start: isize,
        column: Axis<1>,
        columns: usize,
        each: &mut impl FnMut(K::Sum),
    ) where
        K: Terms<T>,
    {
        let mut sums: Vec<K::Sum> = (0..columns).map(|_| self.0.empty()).collect();
        let (mut buffer, mut row) = (vec![T::default(); COPIED * BLOCK], [T::default(); COPIED]);
        let mut walk = Walk::new(&form.reduced, 0);
        let count = form.count();
        for first in (0..count).step_by(BLOCK) {
            let len = BLOCK.min(count - first);
            for at in 0..len {
                // SAFETY: within the form, whose loops reach the view's elements.
                let row = unsafe { input.block(start + walk.at[0], column.strides[0], columns, &mut row) };
                row.iter().enumerate().for_each(|(column, &element)| buffer[column * BLOCK + at] = element);
                walk.advance();
            }
            for (sum, column) in sums.iter_mut().zip(buffer.chunks(BLOCK)) {
                self.0.add(sum, &Run::Elements(column[..len].into()));
            }
        }
        sums.into_iter().for_each(each);
    }
}

/// Calls `add` with the elements of an output, whose first is at byte `start`.
fn runs<T: Element + Summand>(form: &Form<1>, input: &Memory<'_, T>, start: isize, mut add: impl FnMut(&Run<'_, T>)) {
    let (outer, extent, stride) = match form.reduced.split_last() {
        Some((run, outer)) => (outer, run.extent, run.strides[0]),
        None => (&[][..], 1, 0),
    };
    let mut walk = Walk::new(outer, 0);
    let mut buffer = None;
    for _ in 0..outer.iter().map(|axis| axis.extent).product() {
        let start = start + walk.at[0];
        match elements(input, start, stride, extent) {
            Some(elements) => add(&Run::Elements(elements)),
            None => {
                let buffer = buffer.get_or_insert_with(|| vec![T::default(); BLOCK]);
                for at in (0..extent).step_by(BLOCK) {
                    let (start, len) = (start + at as isize * stride, BLOCK.min(extent - at));
                    // SAFETY: within the form, whose loops reach the view's elements.
                    add(&Run::Block(unsafe { input.block(start, stride, len, buffer) }));
                }
            }
        }
        walk.advance();
    }
}

/// Elements at a stride, if what lies between them may be read.
pub(super) fn elements<'a, T: Element + Summand>(
    input: &Memory<'a, T>,
    start: isize,
    stride: isize,
    len: usize,
) -> Option<Elements<'a, T>> {
    let elements = match (input.slice, input.bytes) {
        (Some(slice), _) => {
            let size = size_of::<T>() as isize;
            Elements::strided(slice, (start / size) as usize, stride / size, len)
        }
        (None, Some(bytes)) => Elements::strided_bytes(bytes, start as usize, stride, len),
        (None, None) => return None,
    };
    Some(elements.expect("a view's elements are in its memory"))
}

/// Rows and columns along two axes, if what lies between the elements may be read.
fn matrix<'a, T: Element + Summand>(
    input: &Memory<'a, T>,
    start: isize,
    axes: [&Axis<1>; 2],
    shape: [usize; 2],
) -> Option<Matrix<'a, T>> {
    let strides = axes.map(|axis| axis.strides[0]);
    let matrix = match (input.slice, input.bytes) {
        (Some(slice), _) => {
            let size = size_of::<T>() as isize;
            Matrix::strided(slice, (start / size) as usize, shape, strides.map(|stride| stride / size))
        }
        (None, Some(bytes)) => Matrix::strided_bytes(bytes, start as usize, shape, strides),
        (None, None) => return None,
    };
    Some(matrix.expect("a view's elements are in its memory"))
}

impl<T: Element + Summand> Matrices<'_, T> {
    /// The sums of the columns, if what lies between the elements may be read.
    fn sums(&self) -> Option<ColumnSums<T>> {
        let (rows, outer) = self.form.reduced.split_last()?;
        let mut sums = ColumnSums::new(self.columns);
        let mut walk = Walk::new(outer, 0);
        for _ in 0..outer.iter().map(|axis| axis.extent).product() {
            let shape = [rows.extent, self.columns];
            let matrix = matrix(self.memory, self.start + walk.at[0], [rows, &self.column], shape)?;
            sums.add_rows(matrix).expect("as many columns");
            walk.advance();
        }
        Some(sums)
    }
}

/// Elements.
pub(super) struct OfElements<R> {
    is_mean: bool,
    output: PhantomData<fn() -> R>,
}

impl<R> OfElements<R> {
    pub fn new(is_mean: bool) -> Self {
        Self { is_mean, output: PhantomData }
    }
}

impl<T: Element + Summand, R: Rounded + Plain> Terms<T> for OfElements<R> {
    type Sum = ExactSum<T>;
    type Output = R;

    fn empty(&self) -> ExactSum<T> {
        ExactSum::new()
    }
    fn add(&self, sum: &mut ExactSum<T>, run: &Run<'_, T>) {
        match run {
            Run::Elements(elements) => sum.add_elements(*elements),
            Run::Block(block) => sum.add_slice(block),
        }
    }
    fn merge(&self, sum: &mut ExactSum<T>, other: &ExactSum<T>) {
        sum.merge(other).expect("the elements of a reduction are counted");
    }
    fn result(&self, sum: &ExactSum<T>) -> R {
        if self.is_mean { sum.mean() } else { sum.rounded() }
    }
    fn columns(&self, matrices: &Matrices<'_, T>, each: impl FnMut(ExactSum<T>)) -> bool {
        let sums = matrices.sums();
        let is_done = sums.is_some();
        sums.iter().flat_map(|sums| (0..matrices.columns).map(|column| sums.sum(column))).for_each(each);
        is_done
    }
    fn results(&self, rows_or_columns: RowsOrColumns<'_, '_, T>, results: &mut Vec<R>) -> bool {
        match rows_or_columns {
            RowsOrColumns::Columns(matrices) => {
                let Some(sums) = matrices.sums() else { return false };
                let result = |column| -> R { if self.is_mean { sums.mean(column) } else { sums.rounded(column) } };
                results.extend((0..matrices.columns).map(result));
            }
            RowsOrColumns::Rows(matrix) => {
                let first = results.len();
                results.resize(first + matrix.rows(), R::zeroed());
                let results = &mut results[first..];
                let done = if self.is_mean { matrix.mean_rows(results) } else { matrix.sum_rows(results) };
                done.expect("as many results as rows");
            }
        }
        true
    }
}

/// Squares of elements.
pub(super) struct OfSquares<R> {
    is_norm: bool,
    output: PhantomData<fn() -> R>,
}

impl<R> OfSquares<R> {
    pub fn new(is_norm: bool) -> Self {
        Self { is_norm, output: PhantomData }
    }
}

impl<T: Element + Summand, R: Rounded + Plain> Terms<T> for OfSquares<R> {
    type Sum = ExactDot<T>;
    type Output = R;

    fn empty(&self) -> ExactDot<T> {
        ExactDot::new()
    }
    fn add(&self, sum: &mut ExactDot<T>, run: &Run<'_, T>) {
        match run {
            Run::Elements(elements) => sum.add_squares_of(*elements),
            Run::Block(block) => sum.add_squares(block),
        }
    }
    fn merge(&self, sum: &mut ExactDot<T>, other: &ExactDot<T>) {
        sum.merge(other).expect("the elements of a reduction are counted");
    }
    fn result(&self, sum: &ExactDot<T>) -> R {
        if self.is_norm { sum.sqrt() } else { sum.rounded() }
    }
}

/// Results that are the sums themselves, before they are rounded.
pub(super) struct Unrounded<K>(pub K);

impl<T, K: Terms<T, Sum: Copy>> Terms<T> for Unrounded<K> {
    type Sum = K::Sum;
    type Output = K::Sum;

    fn empty(&self) -> K::Sum {
        self.0.empty()
    }
    fn add(&self, sum: &mut K::Sum, run: &Run<'_, T>) {
        self.0.add(sum, run);
    }
    fn merge(&self, sum: &mut K::Sum, other: &K::Sum) {
        self.0.merge(sum, other);
    }
    fn result(&self, sum: &K::Sum) -> K::Sum {
        *sum
    }
    fn columns(&self, matrices: &Matrices<'_, T>, each: impl FnMut(K::Sum)) -> bool {
        self.0.columns(matrices, each)
    }
}
