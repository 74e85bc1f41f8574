//! Random cases: five kinds of data, lengths up to 5,000.

use bitrep::{DotF64, SumF64};
use exact_sum::{ExactDot, ExactSum};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::check::check;
use super::data::{ALL, Data, numbers_f32, numbers_f64};
use super::times;

/// A length of up to 5,000, mostly short. For data that cancel it is a third, because they are three times as long.
fn length(data: Data, rng: &mut SmallRng) -> usize {
    let len = 5001_f64.powf(rng.random()) as usize - rng.random_range(0..=1);
    if matches!(data, Data::Cancelling) { len / 3 } else { len }
}

#[test]
fn a_million_random_results_are_those_of_the_references() {
    let mut rng = SmallRng::seed_from_u64(11);
    for i in 0..times(4_000, 1_000_000) {
        let (data, others) = (ALL[i % 5], ALL[i / 5 % 5]);
        let len = length(data, &mut rng);
        if i % 2 == 0 {
            let x = numbers_f32(data, len, &mut rng);
            let y = numbers_f32(others, x.len(), &mut rng);
            check(&x, &y[..x.len()]);
        } else {
            let x = numbers_f64(data, len, &mut rng);
            let y = numbers_f64(others, x.len(), &mut rng);
            check(&x, &y[..x.len()]);
            check_by_bitrep(&x, &y);
        }
    }
}

/// Compares sums with bitrep's, and dot products where bitrep's own are exact: products above 2^-968 that do not
/// overflow. (bitrep reports an underflow only below 2^-1022, and loses bits in between.)
fn check_by_bitrep(x: &[f64], y: &[f64]) {
    let (mut sum, mut dot) = (SumF64::default(), DotF64::default());
    x.iter().zip(y).for_each(|(&x, &y)| {
        sum.add(x);
        dot.push(x, y);
    });
    let found: ExactSum<f64> = x.iter().copied().collect();
    assert_eq!(found.value().to_bits(), sum.value().to_bits(), "{} elements", x.len());
    let least = 2_f64.powi(-968);
    if dot.value().is_finite() && x.iter().zip(y).all(|(x, y)| (x * y).abs() >= least || *x == 0.0 || *y == 0.0) {
        let found: ExactDot<f64> = x.iter().copied().zip(y.iter().copied()).collect();
        assert_eq!(found.value().to_bits(), dot.value().to_bits(), "{} pairs", x.len());
    }
}
