//! Custom operators and custom exact sums in the executor; with its checks only where they are fast enough.

use rand::SeedableRng;
use rand::rngs::SmallRng;
use test_kernels::operators::Huge;
use test_support::by_shape::ByShape;
use test_support::custom::{SHAPES, check, check_layouts, errors, fields_of_reducers, order_of_products};
use test_support::exact::{ALL, Data};
use test_support::shape::Shape;
use test_support::{executor, times};
use warpfold::Gpu;

#[test]
fn custom_operators_reduce_every_shape() {
    let (gpu, mut source) = (executor(), SmallRng::seed_from_u64(60));
    for (rows, columns) in SHAPES {
        check(&gpu, rows, columns, Data::Normal, &mut source).unwrap();
    }
}

#[test]
fn custom_exact_sums_are_exact_for_any_data() {
    let (gpu, mut source) = (executor(), SmallRng::seed_from_u64(61));
    for data in ALL {
        for (rows, columns) in [(33, 40), times((3, 1500), (3, 30_000))] {
            check(&gpu, rows, columns, data, &mut source).unwrap_or_else(|error| panic!("{data:?}: {error}"));
        }
    }
}

/// 512 terms of 2^1023 have more bits than an `i64` holds in units of the last place of such terms. Rows of 508 of them
/// and four others are the longest that a few lanes sum.
#[test]
fn custom_exact_sums_of_huge_terms() {
    let gpu = executor();
    for len in [100, 508, 512] {
        let row = |pattern: [f32; 4]| pattern.into_iter().cycle().take(len);
        let cancelling = row([15.0, -15.0, 15.0, -15.0]).chain([0.25; 4]);
        let all: Vec<f32> =
            row([15.0; 4]).chain([0.0; 4]).chain(row([-15.0; 4])).chain([1.0; 4]).chain(cancelling).collect();
        let input = gpu.upload(&all).unwrap();
        let rows = gpu.reduce_to_buffer(Huge, &input, Shape::rows(3, len + 4)).unwrap();
        let offsets: Vec<u64> = (0..4).map(|row| row * (len as u64 + 4)).collect();
        let segments = gpu.reduce_segments(Huge, &input, &gpu.upload(&offsets).unwrap()).unwrap();
        let expected = [f64::INFINITY, f64::NEG_INFINITY, f64::from_bits((1023 + 1020) << 52)];
        assert_eq!(gpu.download(&rows).unwrap(), expected, "{len}");
        assert_eq!(gpu.download(&segments).unwrap(), expected, "{len}");
    }
}

#[test]
fn custom_operators_reduce_rows_of_any_pitch_and_alignment() {
    let mut source = SmallRng::seed_from_u64(64);
    // Short rows, and long ones.
    for (rows, columns, data) in [(3, 5, Data::Normal), (12, 127, Data::Wide), (3, 2050, Data::Normal)] {
        check_layouts(&executor(), rows, columns, data, &mut source).unwrap();
    }
    check_layouts(&Gpu::simt(), 6, 17, Data::Wide, &mut source).unwrap();
}

#[test]
fn custom_reducers_keep_their_fields() {
    let mut source = SmallRng::seed_from_u64(65);
    for (rows, columns) in [(7, 40), (40, 7), (3, 5000)] {
        fields_of_reducers(&executor(), rows, columns, &mut source).unwrap();
    }
}

#[test]
fn custom_operators_have_no_race() {
    check(&Gpu::simt(), 37, 130, Data::Wide, &mut SmallRng::seed_from_u64(62)).unwrap();
}

#[test]
fn custom_operators_keep_the_order_of_built_in_ones() {
    let (gpu, mut source) = (executor(), SmallRng::seed_from_u64(63));
    for (rows, columns) in SHAPES {
        order_of_products(&gpu, rows, columns, &mut source).unwrap();
    }
}

#[test]
fn invalid_reductions_are_errors() {
    errors(&executor()).unwrap();
}
