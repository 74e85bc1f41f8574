//! Exact sums of whole inputs in the executor.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use test_support::{exact, times};
use warpfold::Gpu;

#[test]
fn sums_of_any_data_are_exact() {
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(38));
    for len in [0, 1, 2, 31, 127, 128, 4095, 8192, 8193, 40_000] {
        exact::check(&gpu, len, &mut source).unwrap();
    }
    let (count, most) = times((6, 20_000), (60, 300_000));
    for _ in 0..count {
        exact::check(&gpu, source.random_range(0..most), &mut source).unwrap();
    }
}

/// So many elements for each lane that its integers are full more than once.
#[test]
fn sums_of_many_elements_are_exact() {
    let gpu = Gpu::simt();
    for x in [1.0_f32, -f32::MAX, f32::from_bits(1), 0.1] {
        let len = (1 << 20) + 5;
        let sum = gpu.exact_sum(&gpu.upload(&vec![x; len]).unwrap()).unwrap();
        let exact = f64::from(x) * len as f64;
        assert_eq!(sum, exact as f32, "{len} times {x}");
    }
}

/// A block's integer may be 1, which is not nothing.
#[test]
fn one_unit_of_the_least_number_is_not_lost() {
    let gpu = Gpu::simt();
    let least = f32::from_bits(1);
    let mut numbers = vec![0.0; 50_000];
    for place in [0, 20_000, 49_999] {
        numbers[place] = least;
    }
    assert_eq!(gpu.exact_sum(&gpu.upload(&numbers).unwrap()).unwrap(), 3.0 * least);
}

#[test]
fn what_blocks_leave_each_other_is_clean_afterwards() {
    exact::workspaces_are_left_clean(&Gpu::simt()).unwrap();
}

#[test]
fn the_case_that_no_order_of_additions_gets_right() {
    let gpu = Gpu::simt();
    let numbers = [1e20_f32, 1.0, -1e20, 3.0].repeat(50);
    assert_eq!(gpu.exact_sum(&gpu.upload(&numbers).unwrap()).unwrap(), 200.0);
}
