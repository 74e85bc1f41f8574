//! The highest bits of sums whose parts come from the highest downwards, against big integers.

use exact_sum::round::{divide, root};
use exact_sum::{HighestBits, Leading, Rounded};
use num_bigint::{BigInt, BigUint};
use proptest::prelude::*;

/// The leading bits of an integer, in units of `2^position`.
fn leading_of(sum: &BigInt, position: i32) -> Leading {
    let magnitude: &BigUint = sum.magnitude();
    let bits = magnitude.bits() as i32;
    if bits == 0 {
        return Leading::ZERO;
    }
    let shift = bits - 128;
    let (top, is_inexact) = if shift >= 0 {
        let top = magnitude >> shift as u32;
        let is_inexact = &(&top << shift as u32) != magnitude;
        (top, is_inexact)
    } else {
        (magnitude << (-shift) as u32, false)
    };
    let is_negative = sum.sign() == num_bigint::Sign::Minus;
    Leading { is_negative, bits: top.try_into().unwrap(), position: position + shift, is_inexact }
}

fn round<F: Rounded>(leading: Leading, unit: i32) -> F {
    F::round(leading, unit)
}

/// Checks each rounding of a sum of parts, each with its places.
fn check(parts: &[(i128, u32)]) {
    let (mut sum, mut found, mut position) = (BigInt::ZERO, HighestBits::new(0), 0);
    for &(part, places) in parts {
        (sum, position) = ((sum << places) + part, position - places as i32);
        found.push(part, places);
    }
    let (expected, found) = (leading_of(&sum, position), found.leading());
    for unit in [0, -100, -1000, 80] {
        assert_eq!(round::<f64>(found, unit).to_bits(), round::<f64>(expected, unit).to_bits(), "{parts:?} {unit}");
        assert_eq!(round::<f32>(found, unit).to_bits(), round::<f32>(expected, unit).to_bits(), "{parts:?} {unit}");
        for count in [1, 3, 7, 1000, 65_535, 65_536] {
            let mean = |leading| round::<f64>(divide(leading, count), unit).to_bits();
            assert_eq!(mean(found), mean(expected), "{parts:?} {unit} {count}");
        }
        let root = |leading| round::<f32>(root(Leading { is_negative: false, ..leading }, unit), 0).to_bits();
        assert_eq!(root(found), root(expected), "{parts:?} {unit}");
    }
}

/// Parts of which each is less than `2^14` units of the previous one.
fn parts() -> impl Strategy<Value = Vec<(i128, u32)>> {
    let places = prop_oneof![Just(23_u32), Just(46), Just(52), 1..=52_u32];
    let part = (any::<i64>(), 0..=66_u32, places).prop_map(|(bits, zeros, places)| {
        let most = places + 14;
        // A few high bits, or any; often 0.
        let part = i128::from(bits) >> (zeros.min(63));
        (part.clamp(-(1 << most), 1 << most), places)
    });
    prop::collection::vec(part, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn parts_are_rounded_as_their_exact_sum(parts in parts(), first in any::<i128>(), shift in 8..128_u32) {
        check(&[&[(first >> shift, 30)], &parts[..]].concat());
    }
}

#[test]
fn ties_are_broken_far_below() {
    for tie in [(1_i128 << 80) + (1 << 27), (1 << 80) + (3 << 27), -(1 << 80) - (1 << 27), (1 << 69) + 1, 1 << 70] {
        for low in [-1, 0, 1, 1 << 10, -(1 << 30), 1 << 51, -(1 << 51), 1 << 52, -(1 << 52)] {
            for zeros in 0..6 {
                let mut parts = vec![(tie, 52)];
                parts.extend(std::iter::repeat_n((0, 52), zeros));
                parts.push((low, 52));
                check(&parts);
                parts.push((-low, 46));
                check(&parts);
            }
        }
    }
}

#[test]
fn what_cancels_is_followed_downwards() {
    for places in [23, 46, 52] {
        // Each part is the previous part, negated, plus a small number.
        let mut parts = vec![(1_i128, places)];
        for k in 0..20 {
            parts.push((-(1 << places) + if k % 2 == 0 { 1 } else { 2 }, places));
            check(&parts);
        }
        check(&[&parts[..], &[(-(1 << places), places)]].concat());
    }
    check(&[(0, 5), (0, 52), (0, 52)]);
}

/// A tail that is not decided changes its sign by a part of almost `2^MARGIN` of its units.
#[test]
fn the_largest_parts_follow_tails_near_the_margin() {
    const LIMIT: i128 = 1 << HighestBits::MARGIN;
    for tie in [(1_i128 << 80) + (1 << 27), -(1 << 80) - (1 << 27), (1 << 69) + 1, 1 << 70] {
        for tail in [LIMIT / 2 - 1, LIMIT / 2, LIMIT - 2, LIMIT - 1, LIMIT, LIMIT + 1, 2 * LIMIT - 1] {
            for sign in [1, -1] {
                for places in [23, 46, 52] {
                    let parts = [(tie, 52), (sign * tail, 17), ((-sign * (LIMIT - 1)) << places, places)];
                    check(&parts);
                    let last = ((sign * (LIMIT - 1)) << 52, 52);
                    check(&[&parts[..], &[last]].concat());
                    check(&[&parts[..], &[(0, 52), last]].concat());
                    // Two parts that together exceed `2^MARGIN` units of the tail.
                    let largest = |places: u32| (-sign * ((LIMIT << places) - 1), places);
                    check(&[(tie, 52), (sign * tail, 17), largest(places), largest(52)]);
                }
            }
        }
    }
}

#[test]
fn a_decided_sum_ignores_what_follows() {
    let mut sum = HighestBits::new(0);
    sum.push(1 << 80, 0);
    assert!(!sum.is_decided());
    sum.push(0, 52);
    assert!(!sum.is_decided());
    sum.push(1 << (HighestBits::MARGIN + 1), 52);
    assert!(sum.is_decided());
    let before = sum.leading();
    sum.push(-1, 52);
    assert_eq!((sum.leading().bits, sum.leading().is_inexact), (before.bits, true));
}
