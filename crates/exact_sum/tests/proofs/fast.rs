//! Quotients and roots by one `f64` instruction, compared with the exact ones.

use exact_sum::round::{self, Rounded};
use exact_sum::{Leading, Limbs};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::times;

/// Whether the fast result exists. If so, it must be the exact one.
fn agree(fast: Option<Leading>, exact: Leading, unit: i32) -> bool {
    let exact = <f32 as Rounded>::round(exact, unit);
    match fast {
        Some(fast) if exact.is_normal() => {
            assert_eq!(<f32 as Rounded>::round(fast, unit).to_bits(), exact.to_bits());
            true
        }
        other => other.is_some(),
    }
}

#[test]
fn fast_quotients_and_roots_are_the_exact_ones() {
    let mut rng = SmallRng::seed_from_u64(31);
    let (mut quotients, mut roots, cases) = (0, 0, times(50_000, 5_000_000));
    for _ in 0..cases {
        let product = i128::from(rng.random::<i64>()) * i128::from(rng.random::<i64>());
        let value = product >> rng.random_range(0..120);
        let (leading, position) = (Leading::of(value, rng.random_range(-40..40)), rng.random_range(-90..20));
        if value == 0 {
            continue;
        }
        let count = rng.random::<u64>() >> rng.random_range(14..64);
        if count > 0 {
            let fast = round::divide_for_f32(leading, count);
            quotients += u32::from(agree(fast, round::divide(leading, count), position));
        }
        let square = Leading { is_negative: false, ..leading };
        let fast = round::root_for_f32(square, position, f64::sqrt);
        roots += u32::from(agree(fast, round::root(square, position), 0));
    }
    assert!(quotients > cases / 2 && roots > cases / 2, "{quotients} and {roots} of {cases}");
}

/// The fast path declines quotients and roots at or next to the midpoint of two numbers.
#[test]
fn fast_quotients_and_roots_decline_ties() {
    let mut rng = SmallRng::seed_from_u64(32);
    for _ in 0..times(20_000, 1_000_000) {
        let middle = 2 * rng.random_range(1_i128 << 23..1 << 24) + 1;
        let count = rng.random_range(1_u64..1 << 40);
        for beside in -1..=1 {
            let dividend = Leading::of(((middle * i128::from(count)) << 30) + beside, 0);
            let fast = round::divide_for_f32(dividend, count);
            assert!(fast.is_none(), "{middle} and {beside} / 2^30 of {count}");
            let square = Leading::of(((middle * middle) << 60) + beside, 0);
            assert!(round::root_for_f32(square, -60, f64::sqrt).is_none(), "{middle}^2 and {beside} / 2^60");
        }
    }
}

/// A quotient's bits and its sticky bit equal those of `u128` division, for counts of any length.
#[test]
fn quotients_are_those_of_integers() {
    let mut rng = SmallRng::seed_from_u64(33);
    let edges = [1, 2, 3, (1 << 16) + 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 50) - 1, 1 << 50];
    for case in 0..times(50_000, 5_000_000) {
        let count =
            if case % 2 == 0 { edges[case as usize / 2 % 10] } else { rng.random::<u64>() >> 14 >> (case % 50) };
        // Digits that are 0, all ones, or next to a multiple of the count.
        let bits = match case % 7 {
            0 => u128::MAX,
            1 => 1 << 127,
            2 => {
                let most = (u128::MAX - u128::from(rng.random::<u32>())) / u128::from(count.max(1));
                (most * u128::from(count)) | (1 << 127)
            }
            3 => (u128::from(count) << 64).wrapping_sub(1) | (1 << 127),
            4 => (u128::from(rng.random::<u64>()) << 64) | (1 << 127),
            _ => rng.random::<u128>() | (1 << 127),
        };
        let count = count.max(1);
        let (quotient, remainder) = (bits / u128::from(count), bits % u128::from(count));
        let leading = Leading { is_negative: case % 3 == 0, bits, position: 7, is_inexact: false };
        let found = round::divide(leading, count);
        let zeros = quotient.leading_zeros();
        let expected =
            Leading { bits: quotient << zeros, position: 7 - zeros as i32, is_inexact: remainder != 0, ..leading };
        assert_eq!(found, expected, "{bits} / {count}");
    }
}

/// A quotient or a root computed in `f64` gives the same `f32` as the exact one, or `None`.
#[test]
fn approximate_numbers_are_rounded_to_f32_or_declined() {
    let mut rng = SmallRng::seed_from_u64(34);
    let (mut found, cases) = (0, times(50_000, 5_000_000));
    for case in 0..cases {
        let (value, exponent) = (rng.random::<i64>() >> (case % 64), rng.random_range(-149..40));
        let count = rng.random::<u64>() >> 14 >> (case % 50);
        let number = value as f64 * f64::from(exponent).exp2();
        let leading = Leading::of(value.into(), 0);
        let quotient = round::try_round_to_f32(number / count as f64);
        if let Some(quotient) = quotient.filter(|_| count > 0) {
            found += 1;
            let exact = <f32 as Rounded>::round(round::divide(leading, count), exponent);
            assert_eq!(quotient.to_bits(), exact.to_bits(), "{value} * 2^{exponent} / {count}");
        }
        let square = Leading { is_negative: false, ..leading };
        if let Some(root) = round::try_round_to_f32(number.abs().sqrt()) {
            let exact = <f32 as Rounded>::round(round::root(square, exponent), 0);
            assert_eq!(root.to_bits(), exact.to_bits(), "root of {value} * 2^{exponent}");
        }
    }
    assert!(found > cases / 2, "{found} of {cases}");
    assert_eq!(round::try_round_to_f32(0.0).map(f32::to_bits), Some(0));
    assert_eq!(round::try_round_to_f32(f64::NAN), None);
    assert_eq!(round::try_round_to_f32(f64::from(f32::MIN_POSITIVE) / 2.0), None);
}

/// The leading bits of the sum of two integers equal those of limbs, at all positions.
#[test]
fn leading_bits_of_two_are_those_of_limbs() {
    let mut rng = SmallRng::seed_from_u64(35);
    for case in 0..times(50_000, 5_000_000) {
        let mut number = || {
            let bits = rng.random::<i128>() >> rng.random_range(8..128);
            let value = bits >> (bits.trailing_zeros().min(rng.random_range(0..100)));
            (if case % 11 == 0 { value.signum() << rng.random_range(0..119) } else { value }, rng.random_range(0..200))
        };
        let (a, mut b) = (number(), number());
        if case % 5 == 0 {
            // The two cancel, almost or exactly.
            b = (-a.0 + i128::from(rng.random_range(-1_i8..2)), a.1);
        }
        let mut limbs = Limbs::<16>::ZERO;
        limbs.add(a.0, a.1);
        limbs.add(b.0, b.1);
        let found = Leading::of_two(a, b);
        assert_eq!(found.is_none(), a.1.abs_diff(b.1) >= 128);
        if let Some(found) = found {
            assert_eq!(found, limbs.leading(), "{a:?} and {b:?}");
        }
    }
}
