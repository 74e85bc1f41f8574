//! Custom operators and custom exact sums in the executor; with its checks only where they are fast enough.

use rand::SeedableRng;
use rand::rngs::SmallRng;
use test_support::custom::{SHAPES, check, errors, order_of_products};
use test_support::exact::{ALL, Data};
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
