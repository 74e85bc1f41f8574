//! A sample of the full cross of exact sums in the executor: see `test_support::exact_cross`. `gpu` tries all of it.

use half::{bf16, f16};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use test_support::exact_cross::{self, Crossed, KINDS, SHORT, Tally, extents};
use test_support::{executor, times};

/// Every shape, kind of data and operator at a short length; and random kinds of data at random extents.
fn sample<T: Crossed>(seed: u64) {
    let (gpu, mut source, mut tally) = (executor(), SmallRng::seed_from_u64(seed), Tally::default());
    exact_cross::examples::<T>(&gpu, &mut tally).unwrap();
    for kind in KINDS {
        for extent in SHORT {
            exact_cross::check::<T>(&gpu, kind, extent, source.random(), &mut tally).unwrap();
        }
    }
    let (count, most) = times((6, 3_000), (200, 100_000));
    let extents: Vec<_> = extents().into_iter().filter(|(outputs, len)| outputs * len <= most).collect();
    for _ in 0..count {
        let (kind, extent) =
            (KINDS[source.random_range(0..KINDS.len())], extents[source.random_range(0..extents.len())]);
        exact_cross::check::<T>(&gpu, kind, extent, source.random(), &mut tally).unwrap();
    }
    tally.checked().unwrap_or_else(|wrong| panic!("{wrong}"));
}

#[test]
fn every_shape_of_f32() {
    sample::<f32>(96);
}

#[test]
fn every_shape_of_f64() {
    sample::<f64>(97);
}

#[test]
fn every_shape_of_f16() {
    sample::<f16>(98);
}

#[test]
fn every_shape_of_bf16() {
    sample::<bf16>(99);
}
