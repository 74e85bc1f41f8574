//! Quotients and roots by one instruction of `f64`, beside the exact ones.

use exact_sum::Leading;
use exact_sum::round::{self, Rounded};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::times;

/// The fast result is the exact one, or there is none. Gives whether there is one.
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
            let fast = round::divide_for_single(leading, count);
            quotients += u32::from(agree(fast, round::divide(leading, count), position));
        }
        let square = Leading { is_negative: false, ..leading };
        let fast = round::root_for_single(square, position, f64::sqrt);
        roots += u32::from(agree(fast, round::root(square, position), 0));
    }
    assert!(quotients > cases / 2 && roots > cases / 2, "{quotients} and {roots} of {cases}");
}

/// Where a quotient or a root is the middle between two numbers, or next to it, the fast one says that it cannot tell.
#[test]
fn fast_quotients_and_roots_know_ties() {
    let mut rng = SmallRng::seed_from_u64(32);
    for _ in 0..times(20_000, 1_000_000) {
        let middle = 2 * rng.random_range(1_i128 << 23..1 << 24) + 1;
        let count = rng.random_range(1_u64..1 << 40);
        for beside in -1..=1 {
            let dividend = Leading::of(((middle * i128::from(count)) << 30) + beside, 0);
            let fast = round::divide_for_single(dividend, count);
            assert!(fast.is_none(), "{middle} and {beside} / 2^30 of {count}");
            let square = Leading::of(((middle * middle) << 60) + beside, 0);
            assert!(round::root_for_single(square, -60, f64::sqrt).is_none(), "{middle}^2 and {beside} / 2^60");
        }
    }
}
