//! Exact results on the CPU, for the exact operators on floats. A kernel's results must equal them.
//!
//! They are sums of big integers, which share no code with the library's sums.

use std::ops::Range;

use half::{bf16, f16};

use super::bins::{BigSum, Bins, Terms};
use super::form::{Axis, Form};
use super::operators::Operator;
use super::parallel::in_parallel_with;
use super::rounding::Exact;
use super::tally::Expected;
use crate::element::{ElementType, Format, Number, Wide};
use crate::number::Value;

/// The number of elements that one thread sums at a time.
const EACH: usize = 1 << 20;

/// The maximum number of columns that one thread sums at a time: the number of `f32` in a cache line.
const COLUMNS_EACH: usize = 16;

/// The expected results of an exact operator; `None` for other operators. `offsets` are the offsets of segments, if
/// any.
pub fn results<T: Number>(
    operator: Operator,
    form: &Form,
    offsets: &[u64],
    numbers: &[T],
) -> anyhow::Result<Option<Vec<Expected>>> {
    let Some(digits) = digits(T::TYPE) else { return Ok(None) };
    let format = if operator == Operator::SumInF64 { Format::Double } else { T::MEANS };
    let sum: &(dyn Fn(&mut Bins, &[T]) + Sync) = &|bins, numbers| numbers.iter().for_each(|x| bins.add(real(x)));
    let squares: &(dyn Fn(&mut Bins, &[T]) + Sync) =
        &|bins, numbers| numbers.iter().for_each(|x| bins.add_product(real(x), real(x)));
    let (terms, add): (_, &Add<T>) = match operator {
        Operator::Sum | Operator::SumInF64 | Operator::Mean => (Terms::Numbers, sum),
        Operator::SumOfSquares | Operator::Norm => (Terms::Products, squares),
        _ => return Ok(None),
    };
    let result = |sum: Exact| match operator {
        Operator::Mean => sum.mean(format),
        Operator::Norm => sum.root(format),
        _ => sum.sum(format),
    };
    let found = each(form, offsets, numbers, &|| Bins::new(terms, digits), add, &result)?;
    Ok(Some(found.into_iter().map(exactly).collect()))
}

/// The expected dot product of two inputs of floats; `None` for integers.
pub fn dot<T: Number>(a: &[T], b: &[T]) -> anyhow::Result<Option<Expected>> {
    let Some(digits) = digits(T::TYPE) else { return Ok(None) };
    let sum = whole(a.len(), &|| Bins::new(Terms::Products, digits), &|bins, range| {
        let pairs = a[range.clone()].iter().zip(&b[range]);
        pairs.for_each(|(a, b)| bins.add_product(real(a), real(b)));
    })?;
    Ok(Some(exactly(sum.sum(T::MEANS))))
}

/// Adds numbers, or their squares.
type Add<T> = dyn Fn(&mut Bins, &[T]) + Sync;

fn exactly(value: f64) -> Expected {
    Expected::exactly(Value::F64(value))
}

fn real<T: Number>(x: &T) -> f64 {
    x.wide().to_f64()
}

/// The number of bits of a float's significand; `None` for integers.
fn digits(dtype: ElementType) -> Option<u32> {
    match dtype {
        ElementType::F16 => Some(f16::MANTISSA_DIGITS),
        ElementType::Bf16 => Some(bf16::MANTISSA_DIGITS),
        ElementType::F32 => Some(f32::MANTISSA_DIGITS),
        ElementType::F64 => Some(f64::MANTISSA_DIGITS),
        _ => None,
    }
}

/// The sum of all terms. `add` adds the terms of a range.
fn whole(
    len: usize,
    bins: &(dyn Fn() -> Bins + Sync),
    add: &(dyn Fn(&mut Bins, Range<usize>) + Sync),
) -> anyhow::Result<Exact> {
    let parts = in_parallel_with(len.div_ceil(EACH), bins, &|bins, part| {
        add(bins, part * EACH..len.min((part + 1) * EACH));
        bins.take_total()
    })?;
    let mut all = BigSum::default();
    parts.into_iter().for_each(|part| all.merge(part));
    Ok(all.exact())
}

/// The result of each row, column or segment.
fn each<T: Number>(
    form: &Form,
    offsets: &[u64],
    numbers: &[T],
    bins: &(dyn Fn() -> Bins + Sync),
    add: &Add<T>,
    result: &(dyn Fn(Exact) -> f64 + Sync),
) -> anyhow::Result<Vec<f64>> {
    let Form { rows, columns, axis } = *form;
    // A thread sums a panel of neighbouring columns, because these share cache lines.
    let width = (columns / rayon::current_num_threads()).clamp(1, COLUMNS_EACH);
    let panels = columns.div_ceil(width);
    let of_panel = |bins: &mut Vec<Bins>, matrix: usize, panel: usize| -> Vec<f64> {
        let matrix = &numbers[matrix * rows * columns..][..rows * columns];
        let range = panel * width..columns.min((panel + 1) * width);
        for row in matrix.chunks(columns) {
            bins.iter_mut().zip(row[range.clone()].chunks(1)).for_each(|(bins, x)| add(bins, x));
        }
        bins.iter_mut().take(range.len()).map(|bins| result(bins.take())).collect()
    };
    let of_panels = |batches: usize| {
        let many = || (0..width).map(|_| bins()).collect();
        let panels = in_parallel_with(batches * panels, &many, &|bins, i| of_panel(bins, i / panels, i % panels))?;
        Ok(panels.into_iter().flatten().collect())
    };
    let of_segment = |bins: &mut Bins, segment: &[T]| {
        add(bins, segment);
        result(bins.take())
    };
    match axis {
        Axis::All => Ok(vec![result(whole(numbers.len(), bins, &|bins, range| add(bins, &numbers[range]))?)]),
        Axis::Rows => in_parallel_with(rows, bins, &|bins, row| of_segment(bins, &numbers[row * columns..][..columns])),
        Axis::Skewed => in_parallel_with(offsets.len().saturating_sub(1), bins, &|bins, i| {
            of_segment(bins, &numbers[offsets[i] as usize..offsets[i + 1] as usize])
        }),
        Axis::Columns => of_panels(1),
        Axis::Middle(batches) => of_panels(batches),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one<T: Number>(operator: Operator, numbers: &[T]) -> Expected {
        let all = Form { rows: 1, columns: numbers.len(), axis: Axis::All };
        results(operator, &all, &[], numbers).unwrap().unwrap()[0]
    }

    #[test]
    fn results_are_rounded_once() {
        assert!(one(Operator::Sum, &[1e20_f64, 1.0, -1e20]).accepts(Value::F64(1.0)));
        let sum = one(Operator::Sum, &[0.1_f32; 10]);
        assert!(sum.accepts(Value::F32(1.0)) && !sum.accepts(Value::F32(1.0 + f32::EPSILON)));
        assert!(one(Operator::SumInF64, &[0.1_f32; 10]).accepts(Value::F64(10.0 * f64::from(0.1_f32))));
        assert!(one(Operator::Mean, &[f32::MAX, f32::MAX]).accepts(Value::F32(f32::MAX)));
        assert!(one(Operator::Mean, &[0.0_f32; 0]).accepts(Value::F32(f32::NAN)));
        assert!(one(Operator::SumOfSquares, &[1e30_f32]).accepts(Value::F32(f32::INFINITY)));
        assert!(one(Operator::Norm, &[1e30_f32]).accepts(Value::F32(1e30)));
        assert!(one(Operator::Norm, &[3e-30_f32, 4e-30]).accepts(Value::F32(5e-30)));
        let sum = one(Operator::Sum, &[f32::MAX, f32::MAX, -f32::MAX]);
        assert!(sum.accepts(Value::F32(f32::MAX)) && !sum.accepts(Value::F32(f32::INFINITY)));
        assert!(one(Operator::Sum, &[f32::INFINITY, f32::MAX]).accepts(Value::F32(f32::INFINITY)));
        assert!(one(Operator::Sum, &[f64::INFINITY, f64::NEG_INFINITY]).accepts(Value::F64(f64::NAN)));
    }

    #[test]
    fn dot_products_are_rounded_once() {
        let of = |a: &[f32], b: &[f32]| dot(a, b).unwrap().unwrap();
        assert!(of(&[1e20, 1.0, -1e20], &[1e20, 3.0, 1e20]).accepts(Value::F32(3.0)));
        assert!(of(&[1e-30, 1e-30], &[1e-30, 1e-30]).accepts(Value::F32(0.0)));
        assert!(of(&[], &[]).accepts(Value::F32(0.0)));
        let ones = vec![f16::ONE; 2 * EACH + 1];
        assert!(dot(&ones, &ones).unwrap().unwrap().accepts(Value::F32((2 * EACH + 1) as f32)));
        let (a, b) = ([1e200, 1e200, 1e-200], [1e200, -1e200, 1e200]);
        assert!(dot(&a, &b).unwrap().unwrap().accepts(Value::F64(1.0)));
        assert!(dot(&[1], &[2]).unwrap().is_none());
    }

    #[test]
    fn each_result_is_of_its_own_elements() {
        let numbers = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        let of = |rows, columns, axis, offsets: &[u64]| -> Vec<f64> {
            let form = Form { rows, columns, axis };
            let found = results(Operator::Sum, &form, offsets, &numbers).unwrap().unwrap();
            found.iter().map(|expected| expected.value.to_f64()).collect()
        };
        assert_eq!(of(2, 4, Axis::Rows, &[]), [10.0, 26.0]);
        assert_eq!(of(2, 4, Axis::Columns, &[]), [6.0, 8.0, 10.0, 12.0]);
        assert_eq!(of(2, 2, Axis::Middle(2), &[]), [4.0, 6.0, 12.0, 14.0]);
        assert_eq!(of(2, 4, Axis::Skewed, &[0, 3, 8]), [6.0, 30.0]);
        let all = |columns| Form { rows: 1, columns, axis: Axis::All };
        assert!(results(Operator::Max, &all(8), &[], &numbers).unwrap().is_none());
        assert!(results(Operator::Sum, &all(2), &[], &[1, 2]).unwrap().is_none());
    }
}
