//! Known hard cases, in random orders: ties, cancellation, the edges of the formats.

use exact_sum::{ExactDot, ExactSum, Summand};
use half::{bf16, f16};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use super::check::{check, check_repeated};
use super::integers::Format;
use super::times;

/// A tested type: `f32` or `f64`.
trait Element: Summand<Sum = Self> + Format + Into<f64> + std::ops::Neg<Output = Self> {
    const ONE: Self;
    const MAX: Self;
    /// The smallest positive number.
    const SMALLEST: Self;
    /// The number with these bits; higher bits are ignored.
    fn of_bits(bits: u64) -> Self;
    /// An integer times a power of two, which the type represents.
    fn scaled(whole: u64, exponent: i32) -> Self;
}

macro_rules! elements {
    ($($type:ident $word:ident)*) => {$(
        impl Element for $type {
            const ONE: Self = 1.0;
            const MAX: Self = Self::MAX;
            const SMALLEST: Self = Self::from_bits(1);
            fn of_bits(bits: u64) -> Self {
                Self::from_bits(bits as $word)
            }
            fn scaled(whole: u64, exponent: i32) -> Self {
                // In two steps, because the power itself may be out of range.
                let half = exponent / 2;
                whole as Self * Self::powi(2.0, half) * Self::powi(2.0, exponent - half)
            }
        }
    )*};
}

elements!(f32 u32 f64 u64);

/// Checks all results in several orders, with two dot products: with ones, which equals the sum, and with a shuffled
/// copy.
fn check_in_orders<T: Element>(mut x: Vec<T>, rng: &mut SmallRng) {
    let ones = vec![T::ONE; x.len()];
    check(&x, &ones);
    for _ in 0..times(2, 30) {
        let y = x.clone();
        x.shuffle(rng);
        check(&x, &ones);
        check(&x, &y);
    }
}

/// The exact sum of elements of `T`, rounded to `R`, as bits.
fn sum<T: Element, R: Format>(elements: &[T]) -> u64 {
    elements.iter().copied().collect::<ExactSum<T>>().rounded::<R>().bits()
}

/// Ties of sums, of means and of norms between two numbers of `R`, at each exponent at which `T` has half a unit.
fn ties<T: Element, R: Format>() {
    let mut rng = SmallRng::seed_from_u64(R::MANTISSA.into());
    let least_of = |bias: i32, mantissa: u32| 1 - bias - mantissa as i32;
    let lowest = least_of(R::BIAS, R::MANTISSA).max(least_of(T::BIAS, T::MANTISSA) + 1);
    let highest = (R::BIAS - R::MANTISSA as i32).min(T::BIAS - T::MANTISSA as i32);
    // Below all ties, except those of the smallest numbers.
    let (far_below, position_below) = if T::BIAS > 1000 { (T::scaled(1, -1000), -1000) } else { (T::SMALLEST, -149) };
    for exponent in (lowest..=highest).step_by(times(if T::BIAS > 1000 { 9 } else { 2 }, 1)) {
        let (unit, half) = (T::scaled(1, exponent), T::scaled(1, exponent - 1));
        // `unit` is the spacing of the numbers in a binade, or of the subnormal numbers.
        let is_subnormal = exponent == least_of(R::BIAS, R::MANTISSA);
        let whole = rng.random_range(if is_subnormal { 1 } else { 1 << R::MANTISSA }..(1 << (R::MANTISSA + 1)) - 1);
        let number = T::scaled(whole, exponent);
        let (even, next) = (sum::<T, R>(&[T::scaled(whole + whole % 2, exponent)]), sum::<T, R>(&[number, unit]));
        assert_eq!(sum::<T, R>(&[number, half]), even, "{whole} * 2^{exponent} in {}", R::NAME);
        check_in_orders(vec![number, half], &mut rng);
        check_in_orders(vec![-number, -half], &mut rng);
        // The mean of two adjacent numbers is the same tie.
        check_in_orders(vec![number, number, unit], &mut rng);
        check_in_orders(vec![number, T::scaled(whole + 1, exponent)], &mut rng);
        let below = if exponent - 1 > position_below { far_below } else { T::SMALLEST };
        if exponent - 1 > least_of(T::BIAS, T::MANTISSA) {
            assert_eq!(sum::<T, R>(&[below, number, half]), next, "{whole} * 2^{exponent} in {}", R::NAME);
            assert_eq!(sum::<T, R>(&[number, -below, half]), sum::<T, R>(&[number]));
            check_in_orders(vec![number, half, below], &mut rng);
            check_in_orders(vec![number, half, -below], &mut rng);
            check_in_orders(vec![number, T::scaled(whole + 1, exponent), below, -half, half], &mut rng);
        }
        // The norm of 3 and 4 times an odd number is 5 times that number: a tie if it is one bit too long.
        let fifth = (1_u64 << R::MANTISSA) / 5 * 2 + 1;
        let fifth = fifth + rng.random_range(0..1 + fifth / 20) * 2;
        let (short, long) = (T::scaled(3 * fifth, exponent - 1), T::scaled(4 * fifth, exponent - 1));
        check_in_orders(vec![short, -long], &mut rng);
        check_in_orders(vec![short, long, below], &mut rng);
    }
}

#[test]
fn ties_at_every_position() {
    ties::<f32, f32>();
    ties::<f32, bf16>();
    ties::<f32, f16>();
    ties::<f64, f64>();
    ties::<f64, f32>();
    ties::<f64, bf16>();
    ties::<f64, f16>();
}

/// The root of the first squares is a tie, which one lower bit breaks, at every position.
#[test]
fn roots_that_are_ties_but_for_one_bit() {
    let fifth = 2_f64.powi(-51) + 1.0;
    for squares in [vec![1.0 + 2_f64.powi(-24)], vec![1.5 + 2_f64.powi(-24)], vec![3.0 * fifth, 4.0 * fifth]] {
        for place in 50..400 {
            let x = [&squares[..], &[2_f64.powi(-place)]].concat();
            for sign in [1.0, -1.0] {
                check(&x, &[&squares[..], &[sign]].concat());
            }
        }
    }
}

#[test]
fn telescoping_sums_are_their_ends() {
    fn of<T: Element>(bits_of_one: u64) {
        let mut rng = SmallRng::seed_from_u64(21);
        for len in [2, 3, 10, 100, 3000] {
            // All positive and finite.
            let all: Vec<T> = (0..len).map(|_| T::of_bits(rng.random_range(0..2 * bits_of_one))).collect();
            let mut x: Vec<T> = all.windows(2).flat_map(|pair| [pair[0], -pair[1]]).collect();
            x.shuffle(&mut rng);
            assert_eq!(sum::<T, T>(&x), sum::<T, T>(&[all[0], -all[len - 1]]), "{len} numbers");
            check_in_orders(x, &mut rng);
        }
    }
    of::<f32>(f32::to_bits(1.0).into());
    of::<f64>(f64::to_bits(1.0));
}

#[test]
fn cancellation_may_leave_a_subnormal_number() {
    fn of<T: Element>(bits_of_max: u64) {
        let mut rng = SmallRng::seed_from_u64(22);
        for left in [1, 2, 3, 1000, (1 << T::MANTISSA) - 1, 1 << T::MANTISSA] {
            for large in [1, 2, 50, 700] {
                let numbers: Vec<T> = (0..large).map(|_| T::of_bits(rng.random_range(0..=bits_of_max))).collect();
                let left = T::of_bits(left);
                let x: Vec<T> = numbers.iter().flat_map(|&x| [x, -x]).chain([-left]).collect();
                assert_eq!(sum::<T, T>(&x), (-left).bits());
                check_in_orders(x, &mut rng);
            }
        }
    }
    of::<f32>(f32::MAX.to_bits().into());
    of::<f64>(f64::MAX.to_bits());
}

#[test]
fn the_edge_of_overflow() {
    fn of<T: Element, R: Format>() {
        let mut rng = SmallRng::seed_from_u64(23);
        let infinity = (2 * R::BIAS as u64 + 1) << R::MANTISSA;
        let exponent = R::BIAS - R::MANTISSA as i32;
        let max = T::scaled((1 << (R::MANTISSA + 1)) - 1, exponent);
        let half = T::scaled(1, exponent - 1);
        for (x, expected) in [
            (vec![max], infinity - 1),
            (vec![max, half], infinity),
            (vec![max, half, -T::SMALLEST], infinity - 1),
            (vec![max, half, T::SMALLEST, -T::SMALLEST, -T::SMALLEST], infinity - 1),
            (vec![max, max, -max], infinity - 1),
            (vec![max, max, -max, -max, T::SMALLEST], sum::<T, R>(&[T::SMALLEST])),
            (vec![max; 5], infinity),
        ] {
            assert_eq!(sum::<T, R>(&x), expected, "{}", R::NAME);
            check_in_orders(x.iter().map(|&x| -x).collect(), &mut rng);
            check_in_orders(x, &mut rng);
        }
        // The sum is infinite, but neither the mean nor the norm of one element is.
        let all: ExactSum<T> = [max; 7].into_iter().collect();
        assert_eq!((all.rounded::<R>().bits(), all.mean::<R>().bits()), (infinity, infinity - 1));
        let square: ExactDot<T> = [(max, max)].into_iter().collect();
        assert_eq!((square.rounded::<R>().bits(), square.sqrt::<R>().bits()), (infinity, infinity - 1));
    }
    of::<f32, f32>();
    of::<f32, bf16>();
    of::<f32, f16>();
    of::<f64, f64>();
    of::<f64, f32>();
    of::<f64, bf16>();
    of::<f64, f16>();
}

#[test]
fn alternating_extremes() {
    fn of<T: Element>() {
        let mut rng = SmallRng::seed_from_u64(24);
        for count in [1, 2, 33, 1000] {
            let all = [T::MAX, -T::MAX, T::SMALLEST, T::MAX, -T::SMALLEST, -T::MAX, T::SMALLEST].repeat(count);
            assert_eq!(sum::<T, T>(&all), count as u64, "in units of the smallest number");
            check_in_orders(all, &mut rng);
            check_in_orders([T::MAX, T::SMALLEST, T::MAX, -T::SMALLEST].repeat(count), &mut rng);
        }
    }
    of::<f32>();
    of::<f64>();
}

#[test]
fn all_exponents_once() {
    fn of<T: Element>() {
        let mut rng = SmallRng::seed_from_u64(25);
        let powers: Vec<T> = (1 - T::BIAS - T::MANTISSA as i32..=T::BIAS).map(|e| T::scaled(1, e)).collect();
        let some = &powers[..powers.len() - 1];
        // The sum is one unit below the highest power, to which it rounds.
        assert_eq!(sum::<T, T>(some), powers[powers.len() - 1].bits());
        check_in_orders(some.to_vec(), &mut rng);
        check_in_orders(powers.iter().enumerate().map(|(i, &x)| if i % 2 == 0 { x } else { -x }).collect(), &mut rng);
        for _ in 0..times(3, 100) {
            check_in_orders(powers.iter().map(|&x| if rng.random() { x } else { -x }).collect(), &mut rng);
        }
        check_in_orders(powers, &mut rng);
    }
    of::<f32>();
    of::<f64>();
}

/// A number repeated many times: the result has other bits than the number.
#[test]
fn one_number_many_times() {
    const COUNT: u32 = 1 << 23;
    let all = [0.1, -1.0, f32::MAX, -f32::from_bits(1), 1.0 + f32::EPSILON, 2_f32.powi(-126)];
    for x in all.into_iter().take(times(2, 6)) {
        check_repeated(x, COUNT);
        check_repeated(x, COUNT + 1);
    }
    for x in [0.1, -f64::MAX, f64::from_bits(1), 1.0 - f64::EPSILON / 2.0].into_iter().take(times(2, 4)) {
        check_repeated(x, COUNT);
        check_repeated(x, COUNT + 1);
    }
}
