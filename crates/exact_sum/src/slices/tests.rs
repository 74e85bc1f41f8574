//! Sums of slices compared with sums of single elements, for each set of instructions.

use alloc::vec::Vec;
use core::fmt::Debug;
use std::format;

use half::{bf16, f16};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::MAX_ELEMENTS;
use crate::simd::Baseline;
use crate::words::Words;

/// An element of any type, for tests.
trait Element: Summand + Debug {
    const SIZE: usize = size_of::<Self>();
    fn of_bits(bits: u64) -> Self;
    fn bytes(self) -> Vec<u8>;
    /// The nearest number.
    fn of(number: f64) -> Self;
}

macro_rules! elements {
    ($($type:ident $word:ident, $of:expr;)*) => {$(
        impl Element for $type {
            fn of_bits(bits: u64) -> Self {
                Self::from_bits(bits as $word)
            }
            fn bytes(self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
            fn of(number: f64) -> Self {
                ($of)(number)
            }
        }
    )*};
}

elements! {
    f16 u16, f16::from_f64;
    bf16 u16, bf16::from_f64;
    f32 u32, |x| x as f32;
    f64 u64, |x| x;
}

/// A state's limbs, specials and count.
fn parts<L: Superaccumulator>(state: &State<L>) -> (Vec<i64>, u8, u64) {
    let canonical = state.canonical();
    ((0..L::LEN).map(|k| canonical.limbs.limb(k)).collect(), state.specials.bits(), state.count)
}

/// The sums of elements, of squares and of products, one after the other.
fn one_by_one<T: Element>(x: &[T], y: &[T]) -> [(Vec<i64>, u8, u64); 3] {
    let sum: ExactSum<T> = x.iter().copied().collect();
    let squares: ExactDot<T> = x.iter().map(|&x| (x, x)).collect();
    let dot: ExactDot<T> = x.iter().copied().zip(y.iter().copied()).collect();
    [parts(&sum.state), parts(&squares.state), parts(&dot.state)]
}

/// The same, by tasks for the baseline's instructions.
fn by_baseline<T: Element>(x: Elements<'_, T>, y: Elements<'_, T>) -> [(Vec<i64>, u8, u64); 3] {
    let (mut sum, mut squares, mut dot) = (ExactSum::<T>::new(), ExactDot::<T>::new(), ExactDot::<T>::new());
    sum.state.count_elements(x.len());
    squares.state.count_elements(x.len());
    dot.state.count_elements(x.len());
    SumTask { elements: x, state: &mut sum.state }.run::<Baseline>();
    DotTask { x, y: None, state: &mut squares.state }.run::<Baseline>();
    DotTask { x, y: Some(y), state: &mut dot.state }.run::<Baseline>();
    [parts(&sum.state), parts(&squares.state), parts(&dot.state)]
}

/// The same, by the public methods, in addition to the sums of other elements.
fn by_methods<T: Element>(x: Elements<'_, T>, y: Elements<'_, T>) -> [(Vec<i64>, u8, u64); 3] {
    let (mut sum, mut squares, mut dot) = (ExactSum::<T>::new(), ExactDot::<T>::new(), ExactDot::<T>::new());
    sum.add_elements(x);
    squares.add_squares_of(x);
    dot.add_elements(x, y).unwrap();
    [parts(&sum.state), parts(&squares.state), parts(&dot.state)]
}

fn check<T: Element>(x: &[T], y: &[T]) {
    let expected = one_by_one(x, y);
    let (all, others) = (Elements::from(x), Elements::from(y));
    let context = || format!("{} elements: {:?}", x.len(), &x[..x.len().min(20)]);
    assert_eq!(by_methods(all, others), expected, "{}", context());
    assert_eq!(by_baseline(all, others), expected, "{} (baseline)", context());
    check_rounded(x);
}

fn check_rounded<T: Element>(x: &[T]) {
    let sum: ExactSum<T> = x.iter().copied().collect();
    let all = Elements::from(x);
    assert_eq!(all.sum::<f64>().to_bits(), sum.rounded::<f64>().to_bits(), "{x:?}");
    assert_eq!(all.sum::<f32>().to_bits(), sum.rounded::<f32>().to_bits(), "{x:?}");
    assert_eq!(all.sum::<f16>().to_bits(), sum.rounded::<f16>().to_bits(), "{x:?}");
    assert_eq!(all.sum::<bf16>().to_bits(), sum.rounded::<bf16>().to_bits(), "{x:?}");
    if x.len() <= LONG
        && let Some(found) = WindowTask::<T, BLOCK>(all).run::<Baseline>()
    {
        assert_eq!(round::<T, f64>(found).to_bits(), sum.rounded::<f64>().to_bits());
    }
}

/// Kinds of data.
const KINDS: usize = 10;

fn number<T: Element>(kind: usize, rng: &mut SmallRng) -> T {
    let normal = (0..4).map(|_| rng.random::<f64>()).sum::<f64>() - 2.0;
    let range = T::Binary::MAX_EXPONENT / 2;
    match kind {
        0 | 1 => T::of(normal),
        2 => T::of(normal * 2_f64.powi(rng.random_range(-20..20))),
        3 => T::of(normal * 2_f64.powi(rng.random_range(-range..range))),
        // Subnormal numbers and small ones.
        4 => T::of_bits(rng.random::<u64>() >> (64 - 8 * T::SIZE as u32) >> rng.random_range(0..12)),
        // Any bits: also NaN and infinities.
        5 => T::of_bits(rng.random()),
        6 => T::of([0.0, -0.0, 1.0, -1.0, 1.5][rng.random_range(0..5)]),
        // The largest numbers.
        7 => T::of(normal * 2_f64.powi(T::Binary::MAX_EXPONENT - 2)),
        // Half units of a window's bins, and numbers at its edges.
        8 => {
            let exponent = [0, 1, 4, 8, -22, -23, -24, -45, -46, -47, -51, -52, -103, -104, -105, -127];
            T::of(
                [1.0, -1.0, 1.5, 1.0 - f64::EPSILON][rng.random_range(0..4)]
                    * 2_f64.powi(exponent[rng.random_range(0..16)]),
            )
        }
        _ => T::of([normal, normal, normal, f64::INFINITY][rng.random_range(0..4)]),
    }
}

/// Numbers of a kind, of which kind 1 has some outliers.
fn numbers<T: Element>(kind: usize, len: usize, rng: &mut SmallRng) -> Vec<T> {
    let outlier = |rng: &mut SmallRng| {
        [T::of(1e30), T::of(1e-30), T::of(f64::NAN), T::of(f64::NEG_INFINITY), T::of(f64::MAX), T::of(5e-324)]
            [rng.random_range(0..6)]
    };
    (0..len).map(|_| if kind == 1 && rng.random_ratio(1, 1500) { outlier(rng) } else { number(kind, rng) }).collect()
}

/// `few` in Miri.
fn times(all: usize, few: usize) -> usize {
    if cfg!(miri) { few } else { all }
}

fn every_length_at_every_alignment<T: Element>() {
    let mut rng = SmallRng::seed_from_u64(1);
    for len in (0..=100).step_by(times(1, 33)) {
        for at in 0..times(64 / T::SIZE, 2) {
            let kind = rng.random_range(0..KINDS);
            let all = numbers::<T>(kind, 2 * (at + len), &mut rng);
            let (x, y) = (&all[at..][..len], &all[at + len..][..len]);
            check(x, y);
            // Bytes at any address.
            let bytes = |elements: &[T], before: usize| -> Vec<u8> {
                std::iter::repeat_n(0xA5, before).chain(elements.iter().flat_map(|x| x.bytes())).collect()
            };
            let (left, right) = (at % 9, (at + len) % 9);
            let (x_bytes, y_bytes) = (bytes(x, left), bytes(y, right));
            let (x_bytes, y_bytes) = (
                Elements::<T>::from_bytes(&x_bytes[left..]).unwrap(),
                Elements::<T>::from_bytes(&y_bytes[right..]).unwrap(),
            );
            assert_eq!(by_methods(x_bytes, y_bytes), one_by_one(x, y), "{x:?}");
            assert_eq!(by_baseline(x_bytes, y_bytes), one_by_one(x, y), "{x:?}");
            assert_eq!(x_bytes.sum::<f64>().to_bits(), Elements::from(x).sum::<f64>().to_bits());
        }
    }
}

#[test]
fn every_length_at_every_alignment_of_f16() {
    every_length_at_every_alignment::<f16>();
}

#[test]
fn every_length_at_every_alignment_of_bf16() {
    every_length_at_every_alignment::<bf16>();
}

#[test]
fn every_length_at_every_alignment_of_f32() {
    every_length_at_every_alignment::<f32>();
}

#[test]
fn every_length_at_every_alignment_of_f64() {
    every_length_at_every_alignment::<f64>();
}

/// Several blocks of one kind or of several, so that windows move and blocks fail.
fn every_kind<T: Element>() {
    let mut rng = SmallRng::seed_from_u64(2);
    for round in 0..times(12, 1) {
        for kind in 0..KINDS {
            let len = rng.random_range(0..times(30 * BLOCK, 1200));
            let (x, y) = (numbers::<T>(kind, len, &mut rng), numbers::<T>(rng.random_range(0..KINDS), len, &mut rng));
            check(&x, &y);
            let mut mixed = Vec::new();
            for _ in 0..times(12, 2) {
                let len = rng.random_range(1..times(3 * BLOCK, 500));
                mixed.extend(numbers::<T>(rng.random_range(0..KINDS), len, &mut rng));
            }
            let other: Vec<T> = mixed.iter().rev().copied().collect();
            check(&mixed, if round % 2 == 0 { &other } else { &mixed });
        }
    }
}

#[test]
fn every_kind_of_f16() {
    every_kind::<f16>();
}

#[test]
fn every_kind_of_bf16() {
    every_kind::<bf16>();
}

#[test]
fn every_kind_of_f32() {
    every_kind::<f32>();
}

#[test]
fn every_kind_of_f64() {
    every_kind::<f64>();
}

/// Products at the edges of the range in which a product and its error are exact, and beyond.
#[test]
fn products_of_any_magnitude() {
    let mut rng = SmallRng::seed_from_u64(3);
    let edges = [0, -450, -449, -451, -500, -537, -1000, -1022, 450, 449, 451, 500, 899, 900, 901, 996, 1000, 1022];
    for _ in 0..times(3000, 5) {
        let len = rng.random_range(9..40);
        let (left, right) = (edges[rng.random_range(0..edges.len())], edges[rng.random_range(0..edges.len())]);
        let mut of = |exponent: i32| -> Vec<f64> {
            let number = |rng: &mut SmallRng| {
                let ones = f64::from_bits((1023 << 52) | (rng.random::<u64>() >> 12 >> (52 * rng.random_range(0..2))));
                let signed = if rng.random() { ones } else { -ones };
                if rng.random_ratio(1, 9) { 0.0 } else { signed * 2_f64.powi(exponent + rng.random_range(-1..2)) }
            };
            (0..len).map(|_| number(&mut rng)).collect()
        };
        check(&of(left), &of(right));
    }
}

/// Many blocks in one window, of the largest integers that a window has.
#[test]
fn a_window_is_flushed_before_its_sum_overflows() {
    let (len, blocks) = (times(2100, 3) * BLOCK, times(2100, 3));
    for value in [-8.0, 7.999] {
        let mut sum = ExactSum::<f64>::new();
        sum.add_elements(Elements::strided(&[value], 0, 0, len).unwrap());
        let mut one = ExactSum::<f64>::new();
        one.add_elements(Elements::strided(&[value], 0, 0, BLOCK).unwrap());
        let mut expected = ExactSum::<f64>::new();
        (0..blocks).for_each(|_| expected.merge(&one).unwrap());
        assert_eq!(sum, expected);
    }
}

#[test]
fn strides_of_either_sign() {
    let mut rng = SmallRng::seed_from_u64(4);
    let all = numbers::<f32>(2, times(3000, 60), &mut rng);
    let bytes: Vec<u8> = all.iter().flat_map(|x| x.to_le_bytes()).collect();
    for stride in [-7_isize, -2, -1, 0, 1, 2, 3, 10] {
        let len = 1 + (all.len() - 1) / stride.unsigned_abs().max(1);
        let start = if stride < 0 { (len - 1) * stride.unsigned_abs() } else { 0 };
        let x: Vec<f32> = (0..len as isize).map(|k| all[(start as isize + k * stride) as usize]).collect();
        let elements = Elements::strided(&all, start, stride, len).unwrap();
        assert!(elements.iter().eq(x.iter().copied()) && elements.len() == len && !elements.is_empty());
        assert_eq!(by_methods(elements, elements), one_by_one(&x, &x), "stride {stride}");
        let elements = Elements::<f32>::strided_bytes(&bytes, 4 * start, 4 * stride, len).unwrap();
        assert_eq!(by_methods(elements, elements), one_by_one(&x, &x), "stride {stride}");
        if stride != 0 {
            let further = Elements::strided(&all, start, stride, len + 1);
            assert_eq!(further.unwrap_err(), ElementsError::OutOfBounds { len: all.len() });
        }
    }
    // A stride that is not a multiple of the size.
    let overlapping = Elements::<f32>::strided_bytes(&bytes, 1, 3, 20).unwrap();
    let x: Vec<f32> = (0..20).map(|k| f32::from_le_bytes(*bytes[1 + 3 * k..].first_chunk().unwrap())).collect();
    assert_eq!(by_methods(overlapping, overlapping), one_by_one(&x, &x));
}

#[test]
fn bad_inputs_are_refused() {
    let mut sum = ExactSum::<f64>::new();
    let error = sum.add_unaligned_bytes(&[0; 15]).unwrap_err();
    assert_eq!(error, ElementsError::Length { bytes: 15, size: 8 });
    assert_eq!(format!("{error}"), "15 bytes are not a whole number of elements of 8 bytes");
    let mut dot = ExactDot::<f64>::new();
    let error = dot.add_slices(&[1.0, 2.0], &[1.0]).unwrap_err();
    assert_eq!(error, DifferentLengths { first: 2, second: 1 });
    assert_eq!(format!("{error}"), "2 elements and 1: the lengths must be equal");
    assert_eq!((sum.count(), dot.count()), (0, 0));
    let all = [1.0_f32; 4];
    for (start, stride, len) in
        [(4, 1, 1), (0, 1, 5), (0, -1, 2), (0, isize::MAX, 3), (usize::MAX, isize::MIN, usize::MAX)]
    {
        let error = Elements::strided(&all, start, stride, len).unwrap_err();
        assert_eq!(error, ElementsError::OutOfBounds { len: 4 });
        assert!(format!("{error}").contains("a memory of length 4"));
    }
    assert!(Elements::<f32>::strided_bytes(&[0; 7], 4, 0, 1).is_err());
    assert!(Elements::<f32>::strided_bytes(&[0; 8], 4, 0, 1).is_ok());
    // No elements have no address.
    for stride in [-5, 0, 1, 2] {
        let nothing = Elements::strided(&all, 100, stride, 0).unwrap();
        assert!(nothing.is_empty() && nothing.sum::<f32>().to_bits() == 0);
    }
}

#[test]
fn a_slice_too_long_is_refused_and_changes_nothing() {
    let words: [i64; 16] = core::array::from_fn(|k| if k == 15 { MAX_ELEMENTS as i64 - 100 } else { 0 });
    let mut sum = ExactSum::<f32>::from_words(&words).unwrap();
    sum.add_slice(&[0.0; 90]);
    let before = sum;
    for len in [11, 20, 1000] {
        let result = std::panic::catch_unwind(move || {
            let mut sum = before;
            let ones = std::vec![1.0; len];
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| sum.add_slice(&ones)));
            assert_eq!(sum, before);
            result
        });
        assert!(result.unwrap().is_err(), "{len}");
    }
    sum.add_slice(&[0.0; 10]);
    assert_eq!(sum.count(), MAX_ELEMENTS);
}

/// The conversions to `f32` are those of `half`, but for the quiet bit of NaN.
#[test]
fn all_half_floats_are_converted_exactly() {
    for bits in (0..=u16::MAX).step_by(times(1, 77)) {
        let (number, brain) = (f16::from_bits(bits), bf16::from_bits(bits));
        for (found, expected) in [(number.to_binary(), number.to_f32()), (brain.to_binary(), brain.to_f32())] {
            assert!(found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan(), "{bits:x}");
        }
    }
}

/// Longer than two parts, so that several threads have some of the elements.
#[test]
fn parts_on_several_threads_have_the_sum_of_one() {
    fn check<T: Element>(rng: &mut SmallRng) {
        let len = (1 << 20) + 77;
        let x: Vec<T> = (0..len).map(|_| T::of_bits(rng.random())).collect();
        let y: Vec<T> = (0..len).map(|_| T::of(rng.random_range(-1e3..1e3))).collect();
        for elements in [&x, &y] {
            let of_two = |threads: usize| {
                threads::set_max(threads.try_into().unwrap());
                let (mut sum, mut squares, mut dot) = (ExactSum::new(), ExactDot::new(), ExactDot::new());
                sum.add_slice(elements);
                squares.add_squares(elements);
                dot.add_slices(elements, &y).unwrap();
                [parts(&sum.state), parts(&squares.state), parts(&dot.state)]
            };
            let of_one = of_two(1);
            assert_eq!(of_one[0].2, len as u64);
            for threads in [2, 3, 7] {
                assert!(of_two(threads) == of_one, "{threads} threads");
            }
        }
    }
    let mut rng = SmallRng::seed_from_u64(7);
    check::<f16>(&mut rng);
    check::<bf16>(&mut rng);
    check::<f32>(&mut rng);
    check::<f64>(&mut rng);
}
