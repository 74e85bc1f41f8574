//! All results of some elements in all formats, compared with the reference.

use exact_sum::{Elements, ExactDot, ExactSum, Summand};
use half::{bf16, f16};

use super::integers::{Exact, Format};

/// The sums from which the results are computed.
struct Sums<T: Summand> {
    sum: ExactSum<T>,
    squares: ExactDot<T>,
    dot: ExactDot<T>,
}

/// The names of the results.
const RESULTS: [&str; 6] = ["sum", "mean", "sum of squares", "norm", "dot product", "root of the dot product"];

/// Compares all results of `x`, and its dot product with `y`, with the reference.
///
/// # Panics
/// If a bit differs.
pub fn check<T: Summand + Into<f64>>(x: &[T], y: &[T]) {
    let pairs = || x.iter().copied().zip(y.iter().copied());
    let found =
        Sums { sum: x.iter().copied().collect(), squares: x.iter().map(|&x| (x, x)).collect(), dot: pairs().collect() };
    check_slices(x, y, &found);
    let sum = Exact::sum(x.iter().map(|&x| x.into()));
    let squares = Exact::dot(x.iter().map(|&x| (x.into(), x.into())));
    let dot = Exact::dot(pairs().map(|(x, y)| (x.into(), y.into())));
    let some: Vec<f64> = x.iter().take(20).map(|&x| x.into()).collect();
    compare(&found, [sum, squares, dot], &some);
}

/// Compares the sums of slices with those of single elements.
fn check_slices<T: Summand>(x: &[T], y: &[T], found: &Sums<T>) {
    let (mut sum, mut squares, mut dot) = (ExactSum::new(), ExactDot::new(), ExactDot::new());
    let len = x.len().min(y.len());
    sum.add_slice(x);
    squares.add_squares(x);
    dot.add_slices(&x[..len], &y[..len]).unwrap();
    assert!(sum == found.sum && sum.specials() == found.sum.specials(), "a slice of {len} elements");
    assert!(squares == found.squares && dot == found.dot, "slices of {len} elements");
    let rounded = Elements::from(x).sum::<f64>();
    assert_eq!(rounded.to_bits(), sum.rounded::<f64>().to_bits(), "a slice of {len} elements");
}

/// Compares all results of `count` equal elements with the reference.
///
/// # Panics
/// If a bit differs.
pub fn check_repeated<T: Summand + Into<f64>>(x: T, count: u32) {
    let pairs = || std::iter::repeat_n((x, x), count as usize);
    let found = Sums { sum: pairs().map(|(x, _)| x).collect(), squares: pairs().collect(), dot: pairs().collect() };
    let sum = Exact::sum([x.into()].into_iter()).repeated(count);
    let square = Exact::dot([(x.into(), x.into())].into_iter()).repeated(count);
    compare(&found, [sum, square.clone(), square], &[x.into()]);
}

fn compare<T: Summand>(found: &Sums<T>, [sum, squares, dot]: [Exact; 3], some: &[f64]) {
    let (mean, norm, root) = (sum.over(found.sum.count()), squares.sqrt(), dot.sqrt());
    let expected = [sum, mean, squares, norm, dot, root];
    compare_in::<f16, T>(found, &expected, some);
    compare_in::<bf16, T>(found, &expected, some);
    compare_in::<f32, T>(found, &expected, some);
    compare_in::<f64, T>(found, &expected, some);
}

fn compare_in<R: Format, T: Summand>(Sums { sum, squares, dot }: &Sums<T>, expected: &[Exact; 6], some: &[f64]) {
    let found: [R; 6] = [sum.rounded(), sum.mean(), squares.rounded(), squares.sqrt(), dot.rounded(), dot.sqrt()];
    for ((what, found), expected) in RESULTS.into_iter().zip(found).zip(expected) {
        let (found, expected, len) = (found.bits(), expected.nearest::<R>(), sum.count());
        assert!(
            found == expected,
            "the {what} in {} of {len} elements is {found:x} instead of {expected:x}: {some:?}",
            R::NAME
        );
    }
}
