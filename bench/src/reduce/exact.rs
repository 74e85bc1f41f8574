//! Exact results on the CPU, for the exact operators on floats. A kernel's results must equal them.

use warpfold::exact::{ExactDot, ExactSum};

use super::operators::Operator;

use super::extent::{Axis, Extent};
use super::parallel::in_parallel;
use super::tally::Expected;
use crate::element::{Format, Number, Wide};
use crate::number::Value;

/// The number of elements that one thread sums at a time.
const EACH: usize = 1 << 20;

/// The maximum number of columns that one thread sums at a time: the number of `f32` in a cache line.
const COLUMNS_EACH: usize = 16;

/// An exact sum of elements, or of their squares.
trait Exact: Default + Send {
    fn add(&mut self, x: f64);
    fn merge(&mut self, other: &Self);
}

impl Exact for ExactSum<f64> {
    fn add(&mut self, x: f64) {
        self.add(x);
    }
    fn merge(&mut self, other: &Self) {
        self.merge(other).expect("no memory has 2^50 elements");
    }
}

impl Exact for ExactDot<f64> {
    fn add(&mut self, x: f64) {
        self.add(x, x);
    }
    fn merge(&mut self, other: &Self) {
        self.merge(other).expect("no memory has 2^50 elements");
    }
}

/// The expected results of an exact operator; `None` for other operators. `offsets` are the offsets of segments, if
/// any.
pub fn results<T: Number>(
    operator: Operator,
    extent: &Extent,
    offsets: &[u64],
    numbers: &[T],
) -> anyhow::Result<Option<Vec<Expected>>> {
    if !T::TYPE.is_float() {
        return Ok(None);
    }
    let is_single = T::MEANS == Format::Single && operator != Operator::SumInF64;
    macro_rules! rounded {
        ($method:ident) => {
            &|sum| if is_single { sum.$method::<f32>().into() } else { sum.$method::<f64>() }
        };
    }
    let found = match operator {
        Operator::Sum | Operator::SumInF64 => each::<ExactSum<f64>, T>(extent, offsets, numbers, rounded!(rounded)),
        Operator::Mean => each::<ExactSum<f64>, T>(extent, offsets, numbers, rounded!(mean)),
        Operator::SumOfSquares | Operator::Dot => each::<ExactDot<f64>, T>(extent, offsets, numbers, rounded!(rounded)),
        Operator::Norm => each::<ExactDot<f64>, T>(extent, offsets, numbers, rounded!(sqrt)),
        _ => return Ok(None),
    };
    Ok(Some(found?.into_iter().map(|value| Expected::exactly(Value::F64(value))).collect()))
}

/// The sum of each row, column or segment.
fn each<E: Exact, T: Number>(
    extent: &Extent,
    offsets: &[u64],
    numbers: &[T],
    result: &(dyn Fn(&E) -> f64 + Sync),
) -> anyhow::Result<Vec<f64>> {
    let Extent { rows, columns, axis } = *extent;
    // A thread sums a panel of neighbouring columns, because these share cache lines.
    let width = (columns / rayon::current_num_threads()).clamp(1, COLUMNS_EACH);
    let panels = columns.div_ceil(width);
    let of_panel = |matrix: usize, panel: usize| -> Vec<f64> {
        let matrix = &numbers[matrix * rows * columns..][..rows * columns];
        let range = panel * width..columns.min((panel + 1) * width);
        let mut sums: Vec<E> = range.clone().map(|_| E::default()).collect();
        for row in matrix.chunks(columns) {
            sums.iter_mut().zip(&row[range.clone()]).for_each(|(sum, x)| sum.add(x.wide().to_f64()));
        }
        sums.iter().map(result).collect()
    };
    let of_panels = |batches: usize| {
        let panels = in_parallel(batches * panels, &|i| of_panel(i / panels, i % panels))?;
        Ok(panels.into_iter().flatten().collect())
    };
    match axis {
        Axis::All => {
            let parts = in_parallel(numbers.len().div_ceil(EACH), &|part| {
                sum::<E, T>(numbers[part * EACH..].iter().take(EACH))
            })?;
            let mut all = E::default();
            parts.iter().for_each(|part| all.merge(part));
            Ok(vec![result(&all)])
        }
        Axis::Rows => in_parallel(rows, &|row| result(&sum(&numbers[row * columns..][..columns]))),
        Axis::Skewed => in_parallel(offsets.len().saturating_sub(1), &|i| {
            result(&sum(&numbers[offsets[i] as usize..offsets[i + 1] as usize]))
        }),
        Axis::Columns => of_panels(1),
        Axis::Middle(batches) => of_panels(batches),
    }
}

fn sum<'a, E: Exact, T: Number>(numbers: impl IntoIterator<Item = &'a T>) -> E {
    let mut sum = E::default();
    numbers.into_iter().for_each(|x| sum.add(x.wide().to_f64()));
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one<T: Number>(operator: Operator, numbers: &[T]) -> Expected {
        results(operator, &Extent::all(numbers.len()), &[], numbers).unwrap().unwrap()[0]
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
    fn each_result_is_of_its_own_elements() {
        let numbers = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        let of = |rows, columns, axis, offsets: &[u64]| -> Vec<f64> {
            let extent = Extent { rows, columns, axis };
            let found = results(Operator::Sum, &extent, offsets, &numbers).unwrap().unwrap();
            found.iter().map(|expected| expected.value.to_f64()).collect()
        };
        assert_eq!(of(2, 4, Axis::Rows, &[]), [10.0, 26.0]);
        assert_eq!(of(2, 4, Axis::Columns, &[]), [6.0, 8.0, 10.0, 12.0]);
        assert_eq!(of(2, 2, Axis::Middle(2), &[]), [4.0, 6.0, 12.0, 14.0]);
        assert_eq!(of(2, 4, Axis::Skewed, &[0, 3, 8]), [6.0, 30.0]);
        assert!(results(Operator::Max, &Extent::all(8), &[], &numbers).unwrap().is_none());
        assert!(results(Operator::Sum, &Extent::all(2), &[], &[1, 2]).unwrap().is_none());
    }
}
