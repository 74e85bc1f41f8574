//! Exact sums of wide data in the executor, in the lanes' superaccumulators.

use kernels::reduce::exact::lane_memory::LaneMemory;
use kernels::reduce::exact::result::DERIVED;
use kernels::reduce::exact::terms::{Elements, Terms};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use test_support::exact::{self, power};
use test_support::executor;
use warpfold::Gpu;
use warpfold::exact::ExactSum;

use crate::exact_edges::ByOneWarp;
use crate::exact_launches::{Launched, check_columns};

/// A block that has exactly the memory for its superaccumulators uses it.
#[test]
fn memory_is_used_to_the_last_byte() {
    fn of<K: Terms>(fewest: usize) {
        const STATIC: usize = 100;
        let memory = LaneMemory::of::<K>(STATIC, 1);
        let mut bytes = memory.bytes(32, usize::MAX);
        while bytes > fewest {
            assert_eq!(memory.bytes(32, STATIC + bytes), bytes);
            bytes /= 2;
            assert_eq!(memory.bytes(32, STATIC + 2 * bytes - 1), bytes);
        }
        assert_eq!(memory.bytes(32, STATIC + bytes), bytes);
        assert_eq!(memory.bytes(32, STATIC + bytes - 1), 0);
    }
    of::<Elements<f32>>(f32::SHARED);
    // Up to eight lanes share a superaccumulator.
    of::<Elements<f64>>(f64::SHARED / 8);
}

/// Only one power of two remains, so that one digit of a superaccumulator is 1 if the power is the digit's unit.
#[test]
fn one_unit_of_any_digit_is_not_lost() {
    fn of<T: ByOneWarp>(gpu: &Gpu, large: i32, exponents: std::ops::Range<i32>) {
        for exponent in exponents {
            let mut numbers = vec![T::of(0); T::STEP];
            (numbers[0], numbers[1], numbers[2]) =
                (T::power(large), T::power(exponent), T::of(-1).times(T::power(large)));
            let found = T::by_one_warp(gpu, &numbers, T::SHARED);
            assert!(found.bits() == T::power(exponent).bits(), "2^{exponent} and 2^{large} - 2^{large}: {found:?}");
        }
    }
    let gpu = executor();
    of::<f32>(&gpu, 126, -149..120);
    of::<f64>(&gpu, 1022, -1074..1000);
}

/// Columns whose large elements cancel, so that each small one counts. A block has fewer of them than superaccumulators
/// or more, rows for one more round of all lanes, and rows that other blocks share.
#[test]
fn each_element_of_wide_columns_counts() {
    fn of<T: Launched>(gpu: &Gpu, source: &mut SmallRng) {
        let large = power(100);
        for (shape, plan) in [
            ([1, 2048, 1], [1, 1, 1]),
            ([1, 2049, 1], [1, 1, 1]),
            // The highest bits alone do not suffice for means of this many elements.
            ([1, 65_537, 1], [1, 1, 1]),
            ([1, 4097, 1], [1, 2, 2]),
            ([2, 37, 28], [8, 3, 1]),
            ([1, 37, 100], [32, 1, 1]),
            ([1, 41, 100], [32, 4, 1]),
            ([2, 10, 300], [128, 1, 1]),
            ([1, 23, 300], [128, 2, 1]),
            // Threads without some of their columns.
            ([1, 23, 301], [256, 1, 1]),
        ] {
            let [batches, rows, columns] = shape;
            for unit in [T::EXPONENTS.1, -100] {
                for sign in [1.0, -1.0] {
                    let mut elements = vec![T::default(); batches * rows * columns];
                    for column in 0..batches * columns {
                        let mut of_column: Vec<f64> = (0..rows)
                            .map(|row| match row % 16 {
                                0 if row + 1 < rows => large,
                                1 => -large,
                                _ => sign * f64::from(source.random_range(1..16)) * power(unit),
                            })
                            .collect();
                        of_column[..rows - 1].shuffle(source);
                        let first = column / columns * rows * columns + column % columns;
                        for (row, x) in of_column.into_iter().enumerate() {
                            elements[first + row * columns] = T::nearest(x);
                        }
                    }
                    check_columns(gpu, &elements, shape, plan);
                }
            }
        }
    }
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(76));
    of::<f32>(&gpu, &mut source);
    of::<f64>(&gpu, &mut source);
}

/// The sum of a lane's largest numbers needs the digit above theirs.
#[test]
fn the_highest_digit_takes_carries() {
    fn of<T: ByOneWarp>(gpu: &Gpu, largest: T, smallest: T) {
        for sign in [1, -1] {
            let mut numbers = vec![largest.times(T::of(sign)); 32 * 1400];
            numbers.iter_mut().step_by(64).for_each(|x| *x = smallest);
            let right = numbers.iter().copied().collect::<ExactSum<T>>().value();
            let found = T::by_one_warp(gpu, &numbers, T::SHARED);
            assert!(found.bits() == right.bits(), "{found:?}, expected {right:?}");
        }
    }
    let gpu = executor();
    of(&gpu, f32::MAX, 1e-42);
    of(&gpu, f64::MAX, 1e-320);
}

/// The digits of the lanes' superaccumulators are as large as they can be when they are added up: just before and just
/// after carries are propagated. With checks, because lanes read each other's digits.
#[test]
fn the_largest_digits_of_all_lanes_fit() {
    let gpu = Gpu::simt();
    for steps in [7, 8, 9, 15, 16, 31, 32] {
        // A digit has 52 bits, so one of these exponents gives a digit 52 ones.
        for exponent in 0..52 {
            for sign in [1.0, -1.0] {
                let largest = sign * ((1_u64 << 53) - 1) as f64 * power(exponent);
                let mut numbers = vec![largest; 256 * steps];
                // Each step of the warp has a wide range of exponents.
                numbers.iter_mut().step_by(64).for_each(|x| *x = power(-1000));
                let right = numbers.iter().copied().collect::<ExactSum<f64>>().value();
                let found = f64::by_one_warp(&gpu, &numbers, f64::SHARED);
                assert!(found.to_bits() == right.to_bits(), "{steps}, {exponent}: {found:?}, expected {right:?}");
            }
        }
    }
}

/// Each column has one element, so that a load past it may be outside the input.
#[test]
fn columns_of_one_element_may_be_infinite() {
    fn of<T: Launched>(gpu: &Gpu) {
        for x in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            for columns in [1, 5] {
                let sums = T::of_columns(gpu, &vec![T::nearest(x); columns], [1, 1, columns], [2, 1, 1]);
                sums.into_iter().for_each(|sum| exact::same(sum, T::nearest(x), T::NAME).unwrap());
            }
        }
    }
    let gpu = Gpu::simt();
    of::<f32>(&gpu);
    of::<f64>(&gpu);
}

/// A mean of many elements next to a midpoint, which times the count has more bits than a sum's highest bits.
#[test]
fn means_of_long_columns_are_next_to_midpoints() {
    const ROWS: usize = (1 << 18) - 1;
    let gpu = executor();
    // With one of these exponents, a digit of the superaccumulator ends so that 71 bits of the sum are above it.
    for exponent in 15..20 {
        for sign in [1.0, -1.0] {
            // The sum is the midpoint 2^54 - 1, times the count, and a small number.
            let mut elements = vec![0.0; ROWS];
            let terms = [power(72), -power(54), -power(18), 1.0].map(|x| x * power(exponent));
            elements[..4].copy_from_slice(&terms);
            elements[4] = sign * power(-200);
            let means = f64::results_of_columns(&gpu, &elements, [1, ROWS, 1], [1, 1, 1], DERIVED);
            let right = elements.iter().copied().collect::<ExactSum<f64>>().mean();
            assert_eq!(means, [right], "2^{exponent}, {sign}");
        }
    }
}
