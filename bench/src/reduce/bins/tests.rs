//! Cases that are hard to round, and comparisons with the library's sums.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use warpfold::exact::{ExactDot, ExactSum};

use super::*;
use crate::element::Format::{Double, Single};

fn sum_of(x: &[f64]) -> Exact {
    let mut bins = Bins::new(Terms::Numbers, f64::MANTISSA_DIGITS);
    x.iter().for_each(|&x| bins.add(x));
    bins.take()
}

fn dot_of(pairs: &[(f64, f64)]) -> Exact {
    let mut bins = Bins::new(Terms::Products, f64::MANTISSA_DIGITS);
    pairs.iter().for_each(|&(a, b)| bins.add_product(a, b));
    bins.take()
}

fn sum(x: &[f64]) -> f64 {
    sum_of(x).sum(Double)
}

fn two(exponent: i32) -> f64 {
    if exponent < -1022 { f64::from_bits(1 << (exponent + 1074)) } else { 2.0_f64.powi(exponent) }
}

#[track_caller]
fn assert_same(found: f64, expected: f64) {
    assert!(found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan(), "{found} {expected}");
}

#[test]
fn ties_are_rounded_to_even() {
    let ulp = f64::EPSILON;
    assert_eq!(sum(&[1.0, ulp / 2.0]), 1.0);
    assert_eq!(sum(&[1.0, ulp, ulp / 2.0]), 1.0 + 2.0 * ulp);
    assert_eq!(sum(&[-1.0, -ulp, -ulp / 2.0]), -1.0 - 2.0 * ulp);
    for tie_breaker in [two(-1000), two(-1074)] {
        assert_eq!(sum(&[1.0, ulp / 2.0, tie_breaker]), 1.0 + ulp);
        assert_eq!(sum(&[1.0, ulp, ulp / 2.0, -tie_breaker]), 1.0 + ulp);
        assert_eq!(sum(&[-1.0, -ulp / 2.0, -tie_breaker]), -1.0 - ulp);
        // Half of an f32's ulp, which rounding to f64 first would lose.
        let half = two(-24);
        assert_eq!(sum_of(&[1.0, half, tie_breaker]).sum(Single), 1.0 + 2.0 * half);
        assert_eq!(sum_of(&[1.0, 3.0 * half, -tie_breaker]).sum(Single), 1.0 + 2.0 * half);
    }
    assert_eq!(sum_of(&[1.0, two(-24)]).sum(Single), 1.0);
    assert_eq!(sum_of(&[1.0, 3.0 * two(-24)]).sum(Single), 1.0 + two(-22));
    // A tie at every position.
    for exponent in -1020..900 {
        let x = two(exponent);
        assert_eq!(sum(&[x, x * ulp / 2.0]), x, "2^{exponent}");
        assert_eq!(sum(&[x, x * ulp / 2.0, two(-1074)]), x.next_up(), "2^{exponent}");
    }
}

#[test]
fn sums_may_be_subnormal_or_zero() {
    let least = f64::from_bits(1);
    assert_eq!(sum(&[1e300, least, -1e300, least]), 2.0 * least);
    assert_eq!(sum(&[f64::MIN_POSITIVE, -least]), f64::MIN_POSITIVE.next_down());
    assert_eq!(sum(&[f64::MAX, -3.0 * least, -f64::MAX]), -3.0 * least);
    for zero in [sum(&[]), sum(&[-0.0; 3]), sum(&[0.0, -0.0]), sum(&[1e300, -1e300]), sum(&[least, -least])] {
        assert_eq!(zero.to_bits(), 0);
    }
    // The smallest f32 is 2^-149.
    assert_eq!(sum_of(&[two(-150)]).sum(Single), 0.0);
    assert_eq!(sum_of(&[two(-150), two(-1074)]).sum(Single), two(-149));
    assert_eq!(sum_of(&[3.0 * two(-150)]).sum(Single), two(-148));
    assert_eq!(sum_of(&[two(-151), two(-1074)]).sum(Single), 0.0);
    assert_eq!(dot_of(&[(least, least)]).sum(Double), 0.0);
    assert_eq!(dot_of(&[(two(-600), two(-475))]).sum(Double), 0.0);
    assert_eq!(dot_of(&[(two(-600), two(-475)), (least, least)]).sum(Double), least);
    assert_eq!(dot_of(&[(least, least); 9]).root(Double), 3.0 * least);
}

#[test]
fn overflow_is_decided_when_the_sum_is_rounded() {
    let half_ulp = two(970);
    assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]), f64::MAX);
    assert_eq!(sum(&[f64::MAX, half_ulp]), f64::INFINITY);
    assert_eq!(sum(&[-f64::MAX, -half_ulp]), f64::NEG_INFINITY);
    assert_eq!(sum(&[f64::MAX, half_ulp, -two(-1074)]), f64::MAX);
    assert_eq!(sum(&[f64::MAX; 1000]), f64::INFINITY);
    assert_eq!(sum_of(&[f64::MAX; 1000]).mean(Double), f64::MAX);
    let most = f64::from(f32::MAX);
    assert_eq!(sum_of(&[most, two(103)]).sum(Single), f64::INFINITY);
    assert_eq!(sum_of(&[most, two(103), -two(-1074)]).sum(Single), most);
    assert_eq!(sum_of(&[1e300]).sum(Single), f64::INFINITY);
    assert_eq!(dot_of(&[(1e300, 1e300), (1e300, -1e300), (2.0, 3.0)]).sum(Double), 6.0);
    assert_eq!(dot_of(&[(f64::MAX, f64::MAX)]).sum(Double), f64::INFINITY);
    assert_eq!(dot_of(&[(f64::MAX, f64::MAX)]).root(Double), f64::MAX);
}

#[test]
fn infinities_and_nan() {
    let (infinite, nan) = (f64::INFINITY, f64::NAN);
    assert_same(sum(&[infinite, -f64::MAX, 1.0]), infinite);
    assert_same(sum(&[-infinite, -infinite, f64::MAX]), -infinite);
    assert_same(sum(&[infinite, -infinite]), nan);
    assert_same(sum(&[1.0, nan, infinite]), nan);
    assert_same(sum_of(&[1.0, -infinite]).mean(Single), -infinite);
    assert_same(sum_of(&[]).mean(Double), nan);
    assert_same(dot_of(&[(infinite, 0.0)]).sum(Double), nan);
    assert_same(dot_of(&[(infinite, -f64::from_bits(1))]).sum(Double), -infinite);
    assert_same(dot_of(&[(-infinite, -infinite), (2.0, 2.0)]).root(Double), infinite);
    assert_same(dot_of(&[(-1.0, 1.0)]).root(Double), nan);
    assert_same(dot_of(&[]).root(Double), 0.0);
}

#[test]
fn all_exponents_at_once() {
    let all: Vec<f64> = (-1074..1024).map(two).collect();
    // All bits are 1.
    assert_eq!(sum(&all), f64::INFINITY);
    assert_eq!(sum(&all[..2097]), two(1023));
    let with_negative: Vec<f64> = all.iter().copied().chain([-two(1023), -two(1022)]).collect();
    assert_eq!(sum(&with_negative), two(1022));
    let negative: Vec<f64> = all.iter().map(|x| -x).collect();
    assert_eq!(sum(&[&all[..], &negative, &[two(-1074)]].concat()), two(-1074));
    let pairs: Vec<(f64, f64)> = all.iter().map(|&x| (x, x)).collect();
    assert_eq!(dot_of(&pairs[..1075]).sum(Double), 4.0 / 3.0);
    assert_eq!(dot_of(&pairs[..1075]).root(Double), (4.0_f64 / 3.0).sqrt());
}

#[test]
fn means_are_rounded_once() {
    let ulp = f64::EPSILON;
    // (1 + (1 + ulp)) / 2 lies halfway between two numbers, as do the next ones.
    assert_eq!(sum_of(&[1.0, 1.0 + ulp]).mean(Double), 1.0);
    assert_eq!(sum_of(&[1.0 + ulp, 1.0 + 2.0 * ulp]).mean(Double), 1.0 + 2.0 * ulp);
    assert_eq!(
        sum_of(&[1.0, 1.0 + ulp, two(-1000), 1.0, 1.0 + ulp, 1.0, 1.0 + ulp, 0.0]).mean(Double),
        0.75 + 0.375 * ulp
    );
    assert_eq!(sum_of(&[3.0, 3.0 * ulp / 2.0, 0.0]).mean(Double), 1.0);
    assert_eq!(sum_of(&[3.0, 3.0 * ulp / 2.0, two(-1000)]).mean(Double), 1.0 + ulp);
    assert_eq!(sum_of(&[3.0, 3.0 * two(-24), 0.0]).mean(Single), 1.0);
    assert_eq!(sum_of(&[3.0, 3.0 * two(-24), two(-1000)]).mean(Single), 1.0 + two(-23));
    // The tie-breaker is a remainder of the division, a bit that was dropped before, or changes the quotient.
    for exponent in -140..-100 {
        assert_eq!(sum_of(&[3.0, 3.0 * ulp / 2.0, two(exponent)]).mean(Double), 1.0 + ulp, "2^{exponent}");
    }
    // 2^-1074 / 2 is a tie to 0, and 3 * 2^-1074 / 2 one to 2 * 2^-1074.
    let least = f64::from_bits(1);
    assert_eq!(sum_of(&[least, 0.0]).mean(Double), 0.0);
    assert_eq!(sum_of(&[least, 2.0 * least]).mean(Double), 2.0 * least);
    assert_eq!(sum_of(&[1.0, 0.0, 0.0]).mean(Double), 1.0 / 3.0);
}

#[test]
fn roots_at_midpoints_are_rounded_to_even() {
    // The square of 1 + 2^-53, halfway between 1 and the next number, is 1 + 2^-52 + 2^-106. So it is in f32.
    for (format, half) in [(Double, two(-53)), (Single, two(-24))] {
        for (odd, rounded) in [(1.0, 1.0), (3.0, 1.0 + 4.0 * half)] {
            // (1 + odd * half)^2 as three exact terms.
            let square = [(1.0, 1.0), (2.0 * odd, half), (odd * half, odd * half)];
            let with = |more: f64| dot_of(&[&square[..], &[(more, two(-1000))]].concat()).root(format);
            assert_eq!(with(0.0), rounded);
            assert_eq!(with(1.0), 1.0 + (odd + 1.0) * half);
            assert_eq!(with(-1.0), 1.0 + (odd - 1.0) * half);
        }
    }
    assert_eq!(dot_of(&[(3.0, 3.0), (4.0, 4.0)]).root(Double), 5.0);
    assert_eq!(dot_of(&[(1.0, 1.0), (1.0, 1.0)]).root(Double), 2.0_f64.sqrt());
}

#[test]
fn more_additions_than_a_bin_takes() {
    let mut bins = Bins::new(Terms::Products, f64::MANTISSA_DIGITS);
    let (x, count) = (f64::MAX, 4 * MAX_UNFOLDED + 3);
    (0..count).for_each(|_| bins.add_product(x, x));
    (0..count).for_each(|_| bins.add_product(-x, x));
    bins.add_product(1.5, 3.0);
    assert_eq!(bins.take().sum(Double), 4.5);
    assert!(bins.bins.iter().all(|&bin| bin == 0) && bins.used == [0; BINS / WORD]);
    // The same bins again.
    bins.add_product(2.0, 3.0);
    assert_eq!(bins.take().sum(Double), 6.0);
}

/// A random float of one of several kinds.
fn random(source: &mut SmallRng, kind: u32) -> f64 {
    let sign = if source.random() { 1.0 } else { -1.0 };
    match kind {
        0 => source.random_range(-1.0..1.0),
        1 => f64::from(source.random_range(-3..=3)) * two(source.random_range(-60..60)),
        2 => sign * two(source.random_range(-1074..1024)),
        3 => f64::from_bits(source.random()),
        4 => sign * f64::from_bits(source.random_range(0..1 << 53)),
        5 => Some(f64::from_bits(source.random())).filter(|x| x.is_finite()).unwrap_or(0.0),
        _ => f64::from(source.random_range(-1.0_f32..1.0)) * two(source.random_range(-20..20)),
    }
}

#[test]
fn agrees_with_the_librarys_sums() {
    let source = &mut SmallRng::seed_from_u64(1);
    let mut numbers = Bins::new(Terms::Numbers, f64::MANTISSA_DIGITS);
    let mut products = Bins::new(Terms::Products, f64::MANTISSA_DIGITS);
    for i in 0..4000 {
        let len = source.random_range(0..if i % 100 == 0 { 5000 } else { 40 });
        let (of_x, of_y) = (source.random_range(0..7), source.random_range(0..7));
        let mut x: Vec<f64> = (0..len).map(|_| random(source, of_x)).collect();
        if i % 3 == 0 {
            // What is left after cancellation is small.
            x.extend_from_within(..);
            x[len..].iter_mut().for_each(|x| *x = -*x);
            x.extend((0..3).map(|_| random(source, of_x)));
        }
        let y: Vec<f64> = x.iter().map(|_| random(source, of_y)).collect();
        let (mut sum, mut dot, mut squares) = (ExactSum::<f64>::new(), ExactDot::<f64>::new(), ExactDot::new());
        for (&x, &y) in x.iter().zip(&y) {
            sum.add(x);
            dot.add(x, y);
            squares.add(x, x);
            numbers.add(x);
            products.add_product(x, y);
        }
        let (found, of_pairs) = (numbers.take(), products.take());
        x.iter().for_each(|&x| products.add_product(x, x));
        let of_squares = products.take();
        assert_same(found.sum(Double), sum.rounded::<f64>());
        assert_same(found.sum(Single), sum.rounded::<f32>().into());
        assert_same(found.mean(Double), sum.mean::<f64>());
        assert_same(found.mean(Single), sum.mean::<f32>().into());
        assert_same(of_pairs.sum(Double), dot.rounded::<f64>());
        assert_same(of_pairs.sum(Single), dot.rounded::<f32>().into());
        assert_same(of_squares.sum(Double), squares.rounded::<f64>());
        assert_same(of_squares.root(Double), squares.sqrt::<f64>());
        assert_same(of_squares.root(Single), squares.sqrt::<f32>().into());
    }
}

#[test]
fn narrow_sums_are_the_same_as_wide_ones() {
    let source = &mut SmallRng::seed_from_u64(2);
    for _ in 0..1000 {
        let x: Vec<f64> = (0..source.random_range(1..40)).map(|_| random(source, 0)).collect();
        let narrow = sum_of(&x);
        let mut bins = Bins::new(Terms::Numbers, f64::MANTISSA_DIGITS);
        x.iter().for_each(|&x| bins.add(x));
        assert!(bins.narrow_sum().is_some() || x.iter().any(|x| x.abs() < two(-50)));
        let wide = bins.take_total().exact();
        assert_same(narrow.sum(Double), wide.sum(Double));
        assert_same(narrow.mean(Single), wide.mean(Single));
    }
}
