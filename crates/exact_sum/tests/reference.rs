//! Sums compared with other implementations: big integers (num-bigint) that the standard library rounds when it parses
//! them, bitrep, and Python's `fractions` (`python.txt`, made by `python.py`).

use bitrep::SumF64;
use exact_sum::round::{self, Rounded};
use exact_sum::{
    Accumulator, Binary, Bins, Compact, ExactDot, ExactSum, Leading, Limbs, SINGLE_LIMBS, Specials, Window,
};
use half::{bf16, f16};
use num_bigint::BigInt;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

#[path = "proofs/data.rs"]
mod data;

use data::{ALL, numbers_f32, numbers_f64};

/// The number as an integer, in units of 2^-149.
fn integer_f32(x: f32) -> BigInt {
    let (bits, exponent) = (x.to_bits(), x.to_bits() >> 23 & 255);
    let mantissa = BigInt::from(bits & 0x7F_FFFF | if exponent > 0 { 0x80_0000 } else { 0 });
    let integer = mantissa << (exponent.max(1) - 1) as usize;
    if x.is_sign_negative() { -integer } else { integer }
}

/// The number as an integer, in units of 2^-1074.
fn integer_f64(x: f64) -> BigInt {
    let (bits, exponent) = (x.to_bits(), x.to_bits() >> 52 & 2047);
    let mantissa = BigInt::from(bits & ((1 << 52) - 1) | if exponent > 0 { 1 << 52 } else { 0 });
    let integer = mantissa << (exponent.max(1) - 1) as usize;
    if x.is_sign_negative() { -integer } else { integer }
}

/// `integer * 2^-places` as a decimal number, which the standard library parses to the nearest float.
fn decimal(integer: &BigInt, places: u32) -> String {
    format!("{}e-{places}", integer * BigInt::from(5).pow(places))
}

fn nearest_f32(integer: &BigInt, places: u32) -> f32 {
    // The result is never -0.0, because integers have no negative zero.
    decimal(integer, places).parse().unwrap()
}

fn nearest_f64(integer: &BigInt, places: u32) -> f64 {
    decimal(integer, places).parse().unwrap()
}

/// The sum as threads of a GPU compute it: each sums some tiles of 16 elements and some single elements, then states
/// are merged in pairs.
fn sum_by_threads(numbers: &[f32], threads: usize, window: Option<i32>) -> f32 {
    let mut limbs = Limbs::<SINGLE_LIMBS>::ZERO;
    let mut states: Vec<Compact<112>> = Vec::new();
    for thread in 0..threads {
        let (mut specials, mut has_limbs) = (Specials::EMPTY, false);
        let mut sum = window.map_or_else(Accumulator::<f32>::default, Accumulator::in_window);
        for (i, tile) in numbers.chunks(16).enumerate() {
            if i % threads != thread {
                continue;
            }
            for part in if tile.len() == 16 { vec![tile] } else { tile.chunks(1).collect() } {
                let count = part.len() as u32;
                if !sum.has_capacity(count) {
                    limbs.add(sum.value(), sum.position());
                    has_limbs = true;
                    sum = sum.cleared();
                }
                let bins = part.iter().fold(Bins::EMPTY, |bins, &x| sum.window().extract(bins, x));
                if bins.is_exact() {
                    sum = sum.with(bins, count);
                    continue;
                }
                has_limbs = true;
                for &x in part {
                    match x.decompose() {
                        Some((mantissa, position)) => limbs.add(mantissa.into(), position),
                        None if x.is_nan() => specials = specials.union(Specials::nan()),
                        None => specials = specials.union(Specials::infinity(x < 0.0)),
                    }
                }
            }
        }
        states.push(Compact { value: sum.value(), position: sum.position(), specials, has_limbs });
    }
    while states.len() > 1 {
        let half = states.len().div_ceil(2);
        let others = states.split_off(half);
        for (state, other) in states.iter_mut().zip(others) {
            let (sum, left) = state.combine(other);
            *state = sum;
            if let Some((value, position)) = left {
                limbs.add(value, position);
            }
        }
    }
    let mut sum = ExactSum::<f32>::new();
    sum.add_compact(states[0], numbers.len() as u64).unwrap();
    let mut rest = ExactSum::<f32>::new();
    for k in 0..SINGLE_LIMBS {
        let limb = limbs.limb(k);
        rest.add_compact(Compact::<112> { value: limb.into(), position: 32 * k as u32, ..Compact::ZERO }, 0).unwrap();
    }
    sum.merge(&rest).unwrap();
    sum.value()
}

fn check_f32(numbers: &[f32], rng: &mut SmallRng) {
    let exact: BigInt = numbers.iter().map(|&x| integer_f32(x)).sum();
    let expected = nearest_f32(&exact, 149);
    let sum: ExactSum<f32> = numbers.iter().copied().collect();
    assert_eq!(sum.value().to_bits(), expected.to_bits(), "{} numbers", numbers.len());
    let windows = [None, Some(Window::<f32>::LOWEST), Some(0), Some(Window::<f32>::HIGHEST)];
    let window = windows[rng.random_range(0..windows.len())];
    let threads = rng.random_range(1..70);
    assert_eq!(sum_by_threads(numbers, threads, window).to_bits(), expected.to_bits(), "{threads}, {window:?}");
    if !numbers.is_empty() {
        // The mean is the float nearest to a fraction. Truncating the scaled fraction cannot change it except at a tie.
        let scaled: BigInt = (exact << 80_usize) / numbers.len();
        let mean: f32 = sum.mean();
        let of_scaled = nearest_f32(&scaled, 149 + 80);
        if let Some(fast) = leading_of(&sum).and_then(|l| round::divide_for_f32(l, sum.count())) {
            assert!(!mean.is_normal() || mean == <f32 as Rounded>::round(fast, -149), "{mean}");
        }
        assert!(mean == of_scaled || (mean - of_scaled).abs() <= f32::MIN_POSITIVE, "{mean} {of_scaled}");
    }
}

/// The leading bits of a sum; `None` if it is 0.
fn leading_of(sum: &ExactSum<f32>) -> Option<Leading> {
    let bytes = sum.to_bytes();
    let limbs = &bytes[16..bytes.len() - 4];
    let mut all = Limbs::<SINGLE_LIMBS>::ZERO;
    for (k, limb) in limbs.chunks(4).enumerate() {
        let limb = i64::from(u32::from_le_bytes(limb.try_into().unwrap()));
        all.add_to_limb(k, if k + 1 == SINGLE_LIMBS { i64::from(limb as i32) } else { limb });
    }
    Some(all.leading()).filter(|leading| leading.bits != 0)
}

fn check_f64(numbers: &[f64]) {
    let sum: ExactSum<f64> = numbers.iter().copied().collect();
    let mut other = SumF64::default();
    numbers.iter().for_each(|&x| other.add(x));
    assert_eq!(sum.value().to_bits(), other.value().to_bits(), "{} numbers", numbers.len());
}

fn cases(count: usize, longest: usize, seed: u64) {
    let mut rng = SmallRng::seed_from_u64(seed);
    for i in 0..count {
        let len = rng.random_range(0..=longest);
        let data = ALL[i % ALL.len()];
        check_f32(&numbers_f32(data, len, &mut rng), &mut rng);
        check_f64(&numbers_f64(data, len, &mut rng));
    }
}

#[test]
fn random_sums_are_the_exact_ones() {
    cases(400, 40, 1);
    cases(60, 2000, 2);
}

#[test]
#[ignore = "ten seconds"]
fn half_a_million_random_sums_of_each_type_are_the_exact_ones() {
    cases(490_000, 100, 3);
    cases(10_000, 5000, 4);
}

#[test]
fn random_sums_of_f64_are_those_of_integers() {
    let mut rng = SmallRng::seed_from_u64(5);
    for i in 0..100 {
        let len = rng.random_range(0..30);
        let numbers = numbers_f64(ALL[i % ALL.len()], len, &mut rng);
        let exact: BigInt = numbers.iter().map(|&x| integer_f64(x)).sum();
        let sum: ExactSum<f64> = numbers.iter().copied().collect();
        assert_eq!(sum.value().to_bits(), nearest_f64(&exact, 1074).to_bits());
        assert_eq!(sum.rounded::<f32>().to_bits(), nearest_f32(&exact, 1074).to_bits());
    }
}

#[test]
fn random_products_are_those_of_integers() {
    let mut rng = SmallRng::seed_from_u64(6);
    for i in 0..200 {
        let (len, data) = (rng.random_range(0..30), ALL[i % ALL.len()]);
        let (x, y) = (numbers_f32(data, len, &mut rng), numbers_f32(data, len, &mut rng));
        let exact: BigInt = x.iter().zip(&y).map(|(&x, &y)| integer_f32(x) * integer_f32(y)).sum();
        let dot: ExactDot<f32> = x.iter().copied().zip(y).collect();
        assert_eq!(dot.value().to_bits(), nearest_f32(&exact, 298).to_bits());
        assert_eq!(dot.rounded::<f64>().to_bits(), nearest_f64(&exact, 298).to_bits());
        // The norm: its square is between the squares of the midpoints below and above.
        let squares: ExactDot<f32> = x.iter().map(|&x| (x, x)).collect();
        check_root(&x.iter().map(|&x| integer_f32(x) * integer_f32(x)).sum(), squares.sqrt());
        if i % 10 == 0 {
            let (x, y) = (numbers_f64(data, len, &mut rng), numbers_f64(data, len, &mut rng));
            let exact: BigInt = x.iter().zip(&y).map(|(&x, &y)| integer_f64(x) * integer_f64(y)).sum();
            let dot: ExactDot<f64> = x.iter().copied().zip(y).collect();
            assert_eq!(dot.value().to_bits(), nearest_f64(&exact, 2148).to_bits());
        }
    }
}

/// `found` is the float nearest to the square root of `square * 2^-298`.
fn check_root(square: &BigInt, found: f32) {
    if !found.is_finite() {
        assert!(*square >= (BigInt::from(1) << (2 * 277_usize)), "{found}");
        return;
    }
    // In units of 2^-150: halves of the smallest number.
    let double = |x: f32| integer_f32(x) << 1_usize;
    let (above, below) = (f32::from_bits(found.to_bits() + 1), f32::from_bits(found.to_bits().saturating_sub(1)));
    let square: BigInt = square << 2_usize;
    let midpoint = |a: f32, b: f32| -> BigInt { (double(a) + double(b)) / 2 };
    if above.is_finite() {
        assert!(square <= midpoint(found, above).pow(2), "{found} is below the nearest");
    }
    assert!(square >= midpoint(found, below).pow(2), "{found} is above the nearest");
}

#[test]
fn results_in_short_formats_are_rounded_once() {
    let mut rng = SmallRng::seed_from_u64(7);
    for _ in 0..3000 {
        let len = rng.random_range(1..20);
        let numbers: Vec<f16> =
            (0..len).map(|_| f16::from_bits(rng.random::<u16>())).filter(|x| x.is_finite()).collect();
        let sum: ExactSum<f16> = numbers.iter().copied().collect();
        // A sum of so few f16 is exact in f64. (half's conversion from f64 is not to the nearest.)
        let exact: f64 = numbers.iter().map(|x| x.to_f64()).sum();
        assert_eq!(sum.value(), exact as f32 + 0.0);
        check_short(exact, sum.rounded::<f16>().to_bits(), 0x7C00, |bits| f16::from_bits(bits).to_f64());
        check_short(exact, sum.rounded::<bf16>().to_bits(), 0x7F80, |bits| bf16::from_bits(bits).to_f64());
    }
    // 1 + 2^-11 + 2^-40 is just above the midpoint of two f16; rounded to f32 first, it is the midpoint.
    let sum: ExactSum<f64> = [1.0, 2_f64.powi(-11), 2_f64.powi(-40)].into_iter().collect();
    assert_eq!(sum.rounded::<f16>(), f16::from_f64(1.0 + 2_f64.powi(-10)));
    assert_eq!(f16::from_f32(sum.rounded::<f32>()), f16::ONE, "rounding twice gives another number");
}

/// Checks that the 16-bit float `bits` is nearest to `exact`: each neighbour is farther, or equally far and odd.
fn check_short(exact: f64, bits: u16, infinity: u16, value: impl Fn(u16) -> f64) {
    let (sign, magnitude) = (bits & 0x8000, bits & 0x7FFF);
    // Infinity counts as the number after the largest one.
    let at = |magnitude: u16| match magnitude {
        _ if magnitude < infinity => value(sign | magnitude),
        _ => 2.0 * value(sign | (infinity - 1)) - value(sign | (infinity - 2)),
    };
    let distance = (exact - at(magnitude)).abs();
    for neighbour in [magnitude.saturating_sub(1), (magnitude + 1).min(infinity)] {
        let other = (exact - at(neighbour)).abs();
        let is_nearest = distance < other || distance == other && (magnitude % 2 == 0 || neighbour == magnitude);
        // Beyond that number, the result is infinite.
        assert!(is_nearest || magnitude == infinity, "{exact}: {bits:x}");
    }
    assert_eq!(sign != 0, exact < 0.0);
}

/// Lines of `name: elements = sum`, as bits from Python's `struct` and `fractions`.
#[test]
fn sums_are_those_of_python() {
    let mut lines = 0;
    for line in include_str!("python.txt").lines().filter(|line| !line.starts_with('#')) {
        let (kind, rest) = line.split_once(": ").unwrap();
        let (elements, expected) = rest.split_once(" = ").unwrap();
        let words: Vec<u64> = elements.split(' ').map(|word| u64::from_str_radix(word, 16).unwrap()).collect();
        let expected = u64::from_str_radix(expected, 16).unwrap();
        match kind {
            "f32" => {
                let sum: ExactSum<f32> = words.iter().map(|&bits| f32::from_bits(bits as u32)).collect();
                assert_eq!(u64::from(sum.value().to_bits()), expected, "{line}");
            }
            "f64" => {
                let sum: ExactSum<f64> = words.iter().map(|&bits| f64::from_bits(bits)).collect();
                assert_eq!(sum.value().to_bits(), expected, "{line}");
            }
            "mean" => {
                let sum: ExactSum<f64> = words.iter().map(|&bits| f64::from_bits(bits)).collect();
                assert_eq!(sum.mean::<f64>().to_bits(), expected, "{line}");
            }
            other => panic!("unknown kind `{other}`"),
        }
        lines += 1;
    }
    assert_eq!(lines, 600);
}
