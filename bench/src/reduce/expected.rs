//! Expected results, computed on all cores of the CPU.

use super::exact;
use super::extent::Extent;
use super::form::{Axis, Form};
use super::operators::Operator;
use super::parallel::in_parallel;
pub use super::tally::Expected;
use super::tally::Tally;
use crate::element::{Number, Wide};
use crate::memory::{self, bytes_of};
use crate::number::Value;
use crate::strided;

/// The number of elements that one thread tallies at a time.
const EACH: usize = 1 << 20;

/// The maximum number of columns that one thread tallies at a time.
const COLUMNS_EACH: usize = 1 << 12;

/// The expected results in C order, of which `MinMax` has two for each. `numbers` are in memory order, and `offsets`
/// are the offsets of segments, if any.
pub fn expected<T: Number>(
    operator: Operator,
    extent: &Extent,
    offsets: &[u64],
    numbers: &[T],
) -> anyhow::Result<Vec<Expected>> {
    let Some(form) = extent.form() else {
        let (layout, form) = extent.by_result();
        return expected_of_form(operator, &form, offsets, &strided::in_c_order(numbers, &layout)?);
    };
    expected_of_form(operator, &form, offsets, numbers)
}

fn expected_of_form<T: Number>(
    operator: Operator,
    form: &Form,
    offsets: &[u64],
    numbers: &[T],
) -> anyhow::Result<Vec<Expected>> {
    match exact::results(operator, form, offsets, numbers)? {
        Some(results) => Ok(results),
        None => by_tallies(operator, form, offsets, numbers),
    }
}

/// The expected results by tallies. Sums of floats are approximate.
fn by_tallies<T: Number>(
    operator: Operator,
    form: &Form,
    offsets: &[u64],
    numbers: &[T],
) -> anyhow::Result<Vec<Expected>> {
    let Form { rows, columns, axis } = *form;
    let tallies = match axis {
        Axis::All => vec![tally(operator, numbers)?],
        Axis::Rows => in_parallel(rows, &|row| Tally::of(operator, 0, &numbers[row * columns..][..columns]))?,
        Axis::Skewed => {
            let segment = |i: usize| offsets[i] as usize..offsets[i + 1] as usize;
            in_parallel(offsets.len().saturating_sub(1), &|i| Tally::of(operator, 0, &numbers[segment(i)]))?
        }
        Axis::Columns => tally_columns(operator, columns, numbers)?,
        Axis::Middle(batches) => {
            let batch = |i: usize| &numbers[i * rows * columns..][..rows * columns];
            let of_batch = |i: usize| tally_rows(operator, columns, 0, batch(i), columns);
            let mut all = memory::list(form.results())?;
            in_parallel(batches, &of_batch)?.into_iter().for_each(|tallies| all.extend(tallies));
            all
        }
    };
    let mut expected = memory::list(operator.results_each() * tallies.len())?;
    expected.extend(tallies.iter().flat_map(|tally| tally.results::<T>(operator)));
    Ok(expected)
}

/// The expected result of a rung of a ladder: the sum in the elements' own type.
pub fn expected_by_rung<T: Number>(numbers: &[T]) -> anyhow::Result<Expected> {
    let operator = if T::TYPE.is_float() { Operator::Sum } else { Operator::WrappingSum };
    let all = Form { rows: 1, columns: numbers.len(), axis: Axis::All };
    let mut expected = by_tallies(operator, &all, &[], numbers)?.remove(0);
    // In a rung, each thread adds its share of the input sequentially, with a rounding for each addition.
    expected.bound *= 8.0 + numbers.len() as f64 / 524_288.0;
    Ok(expected)
}

/// The dot products of two inputs along axes.
pub fn expected_dots<T: Number>(extent: &Extent, a: &[T], b: &[T]) -> anyhow::Result<Vec<Expected>> {
    let (layout, Form { rows, columns, .. }) = extent.by_result();
    let (a, b) = (strided::in_c_order(a, &layout)?, strided::in_c_order(b, &layout)?);
    let row = |row: usize| row * columns..(row + 1) * columns;
    (0..rows).map(|i| expected_dot(&a[row(i)], &b[row(i)])).collect()
}

/// The dot product of two inputs.
fn expected_dot<T: Number>(a: &[T], b: &[T]) -> anyhow::Result<Expected> {
    if let Some(dot) = exact::dot(a, b)? {
        return Ok(dot);
    }
    // The products and sums of the integers are far below 2^53, so they are exact in any order.
    let of_part = |part: usize| -> f64 {
        let range = part * EACH..((part + 1) * EACH).min(a.len());
        a[range.clone()].iter().zip(&b[range]).map(|(a, b)| a.wide().to_f64() * b.wide().to_f64()).sum()
    };
    let dot: f64 = in_parallel(a.len().div_ceil(EACH), &of_part)?.into_iter().sum();
    Ok(Expected::exactly(Value::F64(dot)))
}

/// The bytes of host memory for expected results: the copy in another order, if any, the tallies, and for each result
/// up to two values of 8 bytes and their two expected values.
pub fn bytes_expected<T: Number>(extent: &Extent) -> u128 {
    let (form, copy) =
        extent.form().map_or_else(|| (extent.by_result().1, bytes_of::<T>(extent.elements())), |form| (form, 0));
    let (results, threads) = (form.results() as u128, rayon::current_num_threads() as u128);
    let tallies = match form.axis {
        Axis::All => form.elements().div_ceil(EACH) as u128,
        Axis::Rows | Axis::Skewed => results,
        Axis::Columns => results * if form.columns > COLUMNS_EACH { 2 } else { threads + 1 },
        Axis::Middle(batches) => 2 * results + batches as u128,
    };
    copy + tallies * size_of::<Tally<T::Wide>>() as u128 + results * 2 * (size_of::<Expected>() as u128 + 8)
}

/// A message about the first wrong result.
pub fn first_wrong<T: Number>(found: &[T], expected: &[Expected]) -> Option<String> {
    let mut pairs = found.iter().map(|found| found.value()).zip(expected).enumerate();
    let (i, (found, expected)) = pairs.find(|(_, (found, expected))| !expected.accepts(*found))?;
    Some(format!("result {i} is {found} and should be {}", expected.value))
}

/// The tally of all numbers, computed on all cores.
fn tally<T: Number>(operator: Operator, numbers: &[T]) -> anyhow::Result<Tally<T::Wide>> {
    let of_part = |part: usize| {
        let first = part * EACH;
        Tally::of(operator, first, &numbers[first..numbers.len().min(first + EACH)])
    };
    Ok(in_parallel(numbers.len().div_ceil(EACH), &of_part)?.into_iter().fold(Tally::new(), Tally::join))
}

/// The tallies of the first `count` columns of some rows. `first` is the index of the first row.
fn tally_rows<T: Number>(
    operator: Operator,
    columns: usize,
    first: usize,
    rows: &[T],
    count: usize,
) -> Vec<Tally<T::Wide>> {
    let mut tallies = vec![Tally::new(); count];
    for (row, numbers) in rows.chunks(columns.max(1)).enumerate() {
        tallies.iter_mut().zip(numbers).for_each(|(tally, x)| tally.count(operator, first + row, x.wide()));
    }
    tallies
}

/// The tally of each column. Each thread gets a part of the rows, or, if there are many columns, all rows of a part of
/// the columns.
fn tally_columns<T: Number>(operator: Operator, columns: usize, numbers: &[T]) -> anyhow::Result<Vec<Tally<T::Wide>>> {
    let rows = numbers.len() / columns.max(1);
    let rows_each = rows.div_ceil(if columns > COLUMNS_EACH { 1 } else { rayon::current_num_threads() }).max(1);
    let (wide, high) = (columns.div_ceil(COLUMNS_EACH), rows.div_ceil(rows_each));
    let of_part = |part: usize| {
        let (first, column) = (part / wide * rows_each, part % wide * COLUMNS_EACH);
        let last = (first + rows_each).min(rows);
        let rows = &numbers[first * columns + column..last * columns];
        tally_rows(operator, columns, first, rows, COLUMNS_EACH.min(columns - column))
    };
    let mut all = memory::list(columns)?;
    all.resize(columns, Tally::new());
    for (part, tallies) in in_parallel(wide * high, &of_part)?.into_iter().enumerate() {
        let of_columns = &mut all[part % wide * COLUMNS_EACH..];
        of_columns.iter_mut().zip(tallies).for_each(|(tally, part)| *tally = tally.join(part));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::super::data::numbers;
    use super::super::operators::Data;
    use super::*;
    use crate::axes::AxisList;
    use warpfold::Layout;

    fn value(expected: &Expected) -> f64 {
        expected.value.to_f64()
    }

    #[test]
    fn threads_count_the_same_as_one_thread() {
        let middle = Layout::contiguous(&[7, 300, 5]).unwrap();
        let middle = Extent::along(middle, Some(&AxisList(vec![1]))).unwrap();
        for extent in [Extent::columns(40_000, 3), Extent::columns(3, 40_000), middle] {
            let Form { rows, columns, .. } = extent.form().unwrap();
            let numbers = numbers::<i32>(Data::Whole, 0, extent.elements()).unwrap();
            let of = |result: usize| {
                let matrix = &numbers[result / columns * rows * columns..][..rows * columns];
                matrix.iter().skip(result % columns).step_by(columns).copied().enumerate()
            };
            let sums = expected(Operator::Sum, &extent, &[], &numbers).unwrap();
            let indices = expected(Operator::ArgMin, &extent, &[], &numbers).unwrap();
            let extremes = expected(Operator::MinMax, &extent, &[], &numbers).unwrap();
            assert_eq!((sums.len(), indices.len(), extremes.len()), (extent.results(), sums.len(), 2 * sums.len()));
            for i in 0..sums.len() {
                assert_eq!(value(&sums[i]), f64::from(of(i).map(|(_, x)| x).sum::<i32>()));
                let (first_of_least, least) = of(i).min_by_key(|&(_, x)| x).unwrap();
                assert_eq!(value(&indices[i]), first_of_least as f64);
                assert_eq!(value(&extremes[2 * i]), f64::from(least));
                assert_eq!(value(&extremes[2 * i + 1]), f64::from(of(i).map(|(_, x)| x).max().unwrap()));
            }
        }
    }

    #[test]
    fn axes_that_alternate_are_reduced_in_c_order() {
        let of = |operator, layout, axes: &[isize], numbers: &[i64]| -> Vec<f64> {
            let extent = Extent::along(layout, Some(&AxisList(axes.to_vec()))).unwrap();
            expected(operator, &extent, &[], numbers).unwrap().iter().map(value).collect()
        };
        // At [i, j, k] the element is 100 i + 10 j + k.
        let c = [0, 1, 10, 11, 100, 101, 110, 111, 200, 201, 210, 211];
        let layout = Layout::contiguous(&[3, 2, 2]).unwrap();
        assert_eq!(of(Operator::Sum, layout, &[0, 2], &c), [603.0, 663.0]);
        let fortran = [0, 100, 200, 10, 110, 210, 1, 101, 201, 11, 111, 211];
        let layout = strided::fortran(&[3, 2, 2]).unwrap();
        assert_eq!(of(Operator::Sum, layout, &[0, 2], &fortran), [603.0, 663.0]);
        assert_eq!(of(Operator::ArgMax, layout, &[1], &fortran), [1.0; 6]);
        assert_eq!(of(Operator::ArgMax, layout, &[0, 1, 2], &fortran), [11.0]);
    }

    #[test]
    fn the_index_is_that_of_the_first_of_equal_numbers() {
        let mut numbers = vec![1_u8; EACH + 10];
        (numbers[EACH - 1], numbers[EACH + 1]) = (9, 9);
        let all = Extent::all(numbers.len());
        let index = |operator| value(&expected(operator, &all, &[], &numbers).unwrap()[0]);
        assert_eq!([index(Operator::ArgMax), index(Operator::ArgMin)], [(EACH - 1) as f64, 0.0]);
    }

    #[test]
    fn a_wrong_result_is_named() {
        let expected = expected(Operator::Sum, &Extent::all(2), &[], &[1_u8, 2]).unwrap();
        assert_eq!(first_wrong(&[3_u64], &expected), None);
        assert_eq!(first_wrong(&[4_u64], &expected).unwrap(), "result 0 is 4 and should be 3");
    }
}
