//! `cuda_std::vek::num_traits`.

use cuda_std::prelude::*;
use cuda_std::vek::num_traits::{Bounded, Num};

/// The sum of the numbers from `first` on, below `end`, and the type's maximum.
fn sum_below<T: Num + Bounded + Copy + PartialOrd>(first: T, end: T) -> [T; 2] {
    let (mut sum, mut next) = (T::zero(), first);
    while next < end {
        sum = sum + next;
        next = next + T::one();
    }
    [sum, T::max_value()]
}

/// # Safety
/// `output` has two elements for each thread.
#[kernel]
pub unsafe fn sums_of_numbers(end: i32, output: *mut [i32; 2], floats: *mut [f64; 2]) {
    let i = thread::index_1d() as usize;
    // SAFETY: as promised by the launch.
    unsafe {
        *output.add(i) = sum_below(i as i32, end);
        *floats.add(i) = sum_below(i as f64, f64::from(end));
    }
}

#[test]
fn generic_numbers() {
    let (mut output, mut floats) = ([[0_i32; 2]; 8], [[0.0_f64; 2]; 8]);
    let slots = [11, crate::pointer(&mut output), crate::pointer(&mut floats)];
    // SAFETY: two elements for each of the threads.
    unsafe { crate::launch(sums_of_numbers::handle().with_block(8), 1, &slots) }.unwrap();
    for (i, sum) in [55, 55, 54, 52, 49, 45, 40, 34].into_iter().enumerate() {
        assert_eq!((output[i], floats[i]), ([sum, i32::MAX], [f64::from(sum), f64::MAX]), "{i}");
    }
}
