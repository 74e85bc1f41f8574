//! Means and norms of integers: the midpoints to a result's neighbours are compared with the exact result, by big
//! integers.

use exact_sum::integers::{mean, norm, norm_of_words};
use num_bigint::{BigInt, BigUint};
use proptest::prelude::*;

/// A float as `integer * 2^exponent`.
fn parts(x: f64) -> (BigInt, i32) {
    let field = (x.to_bits() >> 52) as i32 % 2048;
    let mantissa = (x.to_bits() % (1 << 52)) as i64 + if field == 0 { 0 } else { 1 << 52 };
    (BigInt::from(if x < 0.0 { -mantissa } else { mantissa }), field.max(1) - 1075)
}

/// The midpoint of `x` and `y` as `integer * 2^exponent`.
fn midpoint(x: f64, y: f64) -> (BigInt, i32) {
    let ((x, of_x), (y, of_y)) = (parts(x), parts(y));
    let exponent = of_x.min(of_y);
    ((x << (of_x - exponent)) + (y << (of_y - exponent)), exponent - 1)
}

/// Whether `found` is the float nearest to a number, ties to even. `compare(integer, exponent)` compares the number
/// with `integer * 2^exponent`.
fn is_nearest(found: f64, compare: impl Fn(BigInt, i32) -> std::cmp::Ordering) -> bool {
    let is_even = found.to_bits().is_multiple_of(2);
    let (below, above) = (midpoint(found.next_down(), found), midpoint(found, found.next_up()));
    let (of_below, of_above) = (compare(below.0, below.1), compare(above.0, above.1));
    (of_below.is_gt() || of_below.is_eq() && is_even) && (of_above.is_lt() || of_above.is_eq() && is_even)
}

fn is_mean(found: f64, sum: i128, count: u64) -> bool {
    // sum / count against integer * 2^exponent.
    is_nearest(found, |integer, exponent| {
        let (sum, product) = (BigInt::from(sum), integer * count);
        if exponent < 0 { (sum << -exponent).cmp(&product) } else { sum.cmp(&(product << exponent)) }
    })
}

fn is_norm(found: f64, square: &BigUint) -> bool {
    is_nearest(found, |integer, exponent| {
        // The float below the smallest positive one is negative, and no root is.
        let product = if integer < BigInt::from(0) { -BigInt::from(1) } else { integer.pow(2) };
        let square = BigInt::from(square.clone());
        let exponent = 2 * exponent;
        if exponent < 0 { (square << -exponent).cmp(&product) } else { square.cmp(&(product << exponent)) }
    })
}

fn check_norm(square: u128) {
    let found = norm(square, f64::sqrt);
    assert!(is_norm(found, &BigUint::from(square)), "the root of {square} is not {found:e}");
    assert_eq!(found, norm_of_words([square as u64, (square >> 64) as u64, 0, 0]), "{square}");
}

fn check_mean(sum: i128, count: u64) {
    let found = mean(sum, count);
    assert!(is_mean(found, sum, count), "{sum} / {count} is not {found:e}");
}

#[test]
fn the_mean_of_nothing_is_nan_and_zeros_are_positive() {
    assert!(mean(0, 0).is_nan());
    assert_eq!(mean(0, 5).to_bits(), 0);
    assert_eq!(norm(0, f64::sqrt).to_bits(), 0);
    assert_eq!(norm_of_words([0; 4]).to_bits(), 0);
}

/// Ties, powers of two and their neighbours, the longest numbers.
#[test]
fn edges() {
    for shift in 0..127 {
        for beside in -3..=3 {
            let number = (1_i128 << shift) + beside;
            for count in [1, 2, 3, 5, 7, (1 << 31) - 1, 1 << 50, (1 << 53) + 1, (1 << 62) + 3] {
                check_mean(number, count);
                check_mean(-number, count);
            }
            check_norm(number.unsigned_abs());
        }
    }
    for mantissa in
        [1_u128 << 53, (1 << 53) + 1, (1 << 53) + 2, (1 << 54) - 1, (1 << 54) - 3, (1 << 53) + 0x1_2345_6789]
    {
        // Midpoints of two floats, as a mean and as a root, and their neighbours.
        for shift in 0..8 {
            check_mean((mantissa as i128) << shift, 1);
            check_mean(3 * mantissa as i128, 3);
            for beside in [0, 1, 2] {
                check_mean((3 * mantissa as i128) + beside, 3);
                check_norm(((mantissa * mantissa) << (2 * shift)) + beside as u128);
                check_norm(((mantissa * mantissa) << (2 * shift)) - beside as u128);
            }
        }
    }
    check_norm(u128::MAX);
    check_mean(i128::MAX >> 14, 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn means(sum: i128, shift in 14..128_u32, count: u64, count_shift in 1..64_u32) {
        let (sum, count) = (sum >> shift.min(127), (count >> count_shift).max(1));
        prop_assert!(is_mean(mean(sum, count), sum, count), "{} / {} is not {:e}", sum, count, mean(sum, count));
    }

    /// A multiple of the count, or half of one, and nearby numbers.
    #[test]
    fn means_near_to_floats(quotient: u64, count in 1..1_u64 << 50, beside in -2_i128..3) {
        let sum = i128::from(quotient) * i128::from(count) / 2 + beside;
        prop_assert!(is_mean(mean(sum, count), sum, count), "{} / {}", sum, count);
    }

    #[test]
    fn norms(square: u128, shift in 0..128_u32) {
        check_norm(square >> shift);
    }

    #[test]
    fn norms_near_to_floats(root: u64, shift in 0..64_u32, beside in -2_i64..3) {
        let root = u128::from(root >> shift);
        check_norm((root * root).saturating_add_signed(beside.into()));
    }

    #[test]
    fn long_norms(words: [u64; 4], zeros in 0..256_u32) {
        let square = words.iter().rev().fold(BigUint::ZERO, |number, &word| (number << 64) + word) >> zeros;
        let mut digits = square.to_u64_digits();
        digits.resize(4, 0);
        let found = norm_of_words(digits.try_into().unwrap());
        prop_assert!(is_norm(found, &square), "the root of {} is not {:e}", square, found);
    }
}
