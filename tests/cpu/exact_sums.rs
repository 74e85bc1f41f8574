//! Exact sums that stay on the device, in the executor.

use kernels::ops::Sum;
use kernels::reduce::exact::grid::{Doubles, Grid, Singles};
use kernels::reduce::exact::states::{LIMB_BITS, long_rows::exact_states_of_long_rows, words_of_state};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use test_support::exact::{self, Data, Exact};
use test_support::{exact_sums, exact_words, times};
use warpfold::exact::ExactSum;
use warpfold::exact::words::Words;
use warpfold::{Gpu, Kernel, Schedule, SimtOptions};

#[test]
fn exact_sums_are_merged_to_the_whole() {
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(50));
    for len in [0, 1, 5, 127, 1000] {
        exact_sums::parts(&gpu, len, &mut source).unwrap();
    }
    let (count, most) = times((1, 20_000), (40, 200_000));
    for _ in 0..count {
        exact_sums::parts(&gpu, source.random_range(0..most), &mut source).unwrap();
    }
}

#[test]
fn additions_of_all_shapes_are_exact() {
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(51));
    for (outputs, most) in [(0, 5), (1, 3000), (2, 700), (3, 100), (9, 1), (24, 40), (40, 130), (300, 20), (700, 9)] {
        exact_sums::shapes(&gpu, outputs, most, &mut source).unwrap();
    }
    for _ in 0..times(4, 200) {
        let outputs = source.random_range(1..60);
        exact_sums::shapes(&gpu, outputs, source.random_range(1..300), &mut source).unwrap();
    }
}

/// Blocks and lanes add to the same states. The checks find no race, and the sums are correct in any order.
#[test]
fn any_order_of_lanes_is_right() {
    for seed in 0..times(3, 30) {
        let gpu = Gpu::simt_with(SimtOptions { checks: true, schedule: Schedule::Seed(seed) });
        let mut source = SmallRng::seed_from_u64(seed);
        exact_sums::shapes(&gpu, 6, 300, &mut source).unwrap();
        exact_sums::shapes(&gpu, 1, 9000, &mut source).unwrap();
    }
}

#[test]
fn a_thousand_additions_do_not_overflow() {
    exact_sums::many_additions(&Gpu::simt(), 1000).unwrap();
}

#[test]
fn invalid_additions_are_errors() {
    exact_sums::errors(&Gpu::simt()).unwrap();
}

#[test]
fn products_and_squares_are_exact() {
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(53));
    for (rows, columns) in [(0, 5), (5, 0), (1, 1), (1, 5000), (3000, 1), (40, 70), (7, 1000), (129, 3)] {
        exact_words::products(&gpu, rows, columns, &mut source).unwrap();
    }
    for _ in 0..times(6, 200) {
        exact_words::products(&gpu, source.random_range(1..60), source.random_range(1..300), &mut source).unwrap();
    }
    for seed in 0..times(2, 30) {
        let gpu = Gpu::simt_with(SimtOptions { checks: true, schedule: Schedule::Seed(seed) });
        exact_words::products(&gpu, 3, 2000, &mut source).unwrap();
    }
}

#[test]
fn added_words_are_those_of_merged_sums() {
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(54));
    for len in [1, 3, 300] {
        exact_words::all_reduce(&gpu, len, &mut source).unwrap();
    }
    exact_words::many_ranks(&gpu).unwrap();
}

#[test]
fn failed_all_reduces_are_errors() {
    exact_words::errors(&Gpu::simt()).unwrap();
}

#[test]
fn recordings_add() {
    exact_sums::recorded(&Gpu::simt()).unwrap();
}

/// Limbs lose no bits in a thousand additions of the largest numbers of one sign, and of the limbs of several blocks.
#[test]
fn limbs_keep_their_bits() {
    // SAFETY: they are launched with the arguments of one segment, the whole input, and of its state.
    let (singles, doubles) =
        unsafe { (exact_states_of_long_rows::handle::<Sum, f32>(), exact_states_of_long_rows::handle::<Sum, f64>()) };
    limbs_of::<f32, Singles>(singles.with_block(32));
    limbs_of::<f64, Doubles>(doubles.with_block(32));
}

/// Adds an input to a state in 1000 launches, and checks the state's limbs.
fn limbs_of<T: Exact, G: Grid>(kernel: Kernel<exact_states_of_long_rows::Args<'static, T>>) {
    const SPLITS: u32 = 3;
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(52));
    let len = SPLITS as usize * 32 * 4 * (16 / size_of::<T>());
    for data in [Data::AtTheEdge, Data::AnyFinite, Data::Uniform] {
        let mut elements = exact::numbers::<T>(data, len, &mut source);
        if let Data::AtTheEdge = data {
            elements.fill(T::nearest(-T::GREATEST));
        }
        let input = gpu.upload(&elements).unwrap();
        let mut state = gpu.zeroed::<i64>(words_of_state::<G>()).unwrap();
        let (of_one, mut right) = (elements.iter().copied().collect::<ExactSum<T>>(), ExactSum::<T>::new());
        let mut largest = 0;
        for launch in 0..1000 {
            let arguments = exact_states_of_long_rows::Args {
                input: input.view(),
                len,
                pitch: 0,
                splits: SPLITS,
                tiles: 4,
                longer_splits: 0,
                states: state.view_mut(),
            };
            gpu.launch(kernel, (SPLITS, 1), arguments).unwrap();
            right.merge(&of_one).unwrap();
            if launch % 50 == 49 {
                let words = gpu.download(&state).unwrap();
                let limbs = &words[..G::LIMBS as usize];
                largest = limbs.iter().fold(largest, |largest: u64, limb| largest.max(limb.unsigned_abs()));
                assert!(largest <= 1 << (LIMB_BITS - 1), "{limbs:?} after {launch} launches");
                assert_eq!(
                    ExactSum::<T>::from_words(&words),
                    Ok(right),
                    "{} of {data:?} after {launch} launches",
                    T::NAME
                );
            }
        }
        // Otherwise the test would not show that carries are delayed.
        assert!(largest > 1 << 33, "no carry was delayed: {largest:x}");
    }
}
