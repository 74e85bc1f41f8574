//! Exact sums in the executor, at the edges of windows, of bins, and of the range of a lane's integers.

use exact_sum::{Binary, Window};
use kernels::reduce::exact::long_rows::{ExactLongRowArgs, exact_long_rows, lane_memory, words_of_superaccumulator};
use kernels::reduce::exact::terms::Elements;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use test_support::exact_edges;
use test_support::executor;
use warpfold::Gpu;
use warpfold::exact::ExactSum;
use warpfold::ops::Sum;

use crate::exact_launches::Launched;

/// A type whose sums one warp computes.
pub trait ByOneWarp:
    warpfold::Element + warpfold::exact::Summand<Binary = Self, Sum = Self> + Binary + Into<f64>
{
    /// The number of elements that a warp takes at a time.
    const STEP: usize;
    /// The number of bits by which the first window exceeds the first elements.
    const HEADROOM: i32;
    /// `2^exponent`.
    fn power(exponent: i32) -> Self;
    /// The next larger or smaller number; `self` is positive.
    fn neighbour(self, is_above: bool) -> Self;
    /// The product.
    fn times(self, factor: Self) -> Self;
    /// A small integer.
    fn of(integer: i32) -> Self;
    /// The dynamic shared memory, in bytes, that a warp needs for a superaccumulator for each lane.
    const SHARED: usize;
    /// The sum by one warp, with this much dynamic shared memory.
    fn by_one_warp(gpu: &Gpu, numbers: &[Self], shared: usize) -> Self;
}

macro_rules! by_one_warp {
    ($($type:ident $word:ident step $step:literal, headroom $headroom:literal;)*) => {$(
        impl ByOneWarp for $type {
            const STEP: usize = $step;
            const HEADROOM: i32 = $headroom;
            const SHARED: usize = lane_memory::<Elements<$type>>().bytes(32, usize::MAX);
            fn power(exponent: i32) -> Self {
                // In two steps: `powi` divides by a power that may overflow.
                let half = exponent / 2;
                Self::powi(2.0, half) * Self::powi(2.0, exponent - half)
            }
            fn neighbour(self, is_above: bool) -> Self {
                Self::from_bits(if is_above { self.to_bits() + 1 } else { self.to_bits() - 1 })
            }
            fn times(self, factor: Self) -> Self {
                self * factor
            }
            fn of(integer: i32) -> Self {
                integer as Self
            }
            fn by_one_warp(gpu: &Gpu, numbers: &[Self], shared: usize) -> Self {
                let input = gpu.upload(numbers).unwrap();
                let mut tile_states = gpu.zeroed::<[u64; 2]>(2).unwrap();
                let mut superaccumulators = gpu.zeroed(words_of_superaccumulator::<Sum, $type>()).unwrap();
                let mut sum = gpu.zeroed::<u8>(size_of::<Self>()).unwrap();
                // SAFETY: the arguments describe one segment, the whole input, with its tile states and a
                // superaccumulator.
                let kernel = unsafe { exact_long_rows::handle::<Sum, $type>() }.with_block(32);
                let kernel = kernel.with_dynamic_shared(shared);
                let arguments = ExactLongRowArgs {
                    input: input.view(),
                    len: numbers.len(),
                    pitch: 0,
                    splits: 1,
                    tiles: numbers.len().div_ceil($step / 4) as u32,
                    longer_splits: 0,
                    tile_states: tile_states.view_mut(),
                    superaccumulators: superaccumulators.view_mut(),
                    finish: 0,
                    output: sum.view_mut(),
                    term: 0,
                };
                gpu.launch(kernel, (1, 1), arguments).unwrap();
                Self::from_le_bytes(gpu.download(&sum).unwrap().try_into().unwrap())
            }
        }
    )*};
}

by_one_warp! {
    f32 u32 step 512, headroom 0;
    f64 u64 step 256, headroom 4;
}

/// Compares a warp's sums with the host's: wide data in superaccumulators of one, two, four or eight lanes each, and in
/// windows.
fn check<T: ByOneWarp>(gpu: &Gpu, numbers: &[T], what: &str) {
    let right: ExactSum<T> = numbers.iter().copied().collect();
    let right = right.value();
    for shared in [T::SHARED, T::SHARED / 2, T::SHARED / 4, T::SHARED / 8, 0] {
        let found = T::by_one_warp(gpu, numbers, shared);
        assert!(found.bits() == right.bits(), "{what}, {shared} bytes: {found:?}, expected {right:?}");
    }
}

/// The elements of one step: multiples of `2^exponent` of mixed signs, of which the first is the largest.
fn step<T: ByOneWarp>(exponent: i32, source: &mut SmallRng) -> Vec<T> {
    let scale = T::power(exponent);
    let number = |i: usize, source: &mut SmallRng| if i == 0 { 15 } else { source.random_range(-15..=15) };
    (0..T::STEP).map(|i| T::of(number(i, source)).times(scale)).collect()
}

/// The window moves at each step: up, down, and alternating; by less than a bin, and by more than all bins.
#[test]
fn windows_move_at_each_step() {
    fn of<T: ByOneWarp>(reach: i32) {
        let (gpu, mut source) = (executor(), SmallRng::seed_from_u64(61));
        for by in [1, 3, 4, 5, 7, 8, 9, 12, 13, 40, 60, 110] {
            let steps = (2 * reach / by).min(12);
            let up = |i: i32| (i - steps / 2) * by;
            let ways: [(&str, &dyn Fn(i32) -> i32); 4] = [
                ("up", &up),
                ("down", &|i| up(steps - 1 - i)),
                ("in turn", &|i| if i % 2 == 0 { 0 } else { by }),
                ("in turn, each twice", &|i| if i / 2 % 2 == 0 { -by / 2 } else { by / 2 }),
            ];
            for (way, exponent) in ways {
                let numbers: Vec<T> = (0..steps).flat_map(|i| step(exponent(i), &mut source)).collect();
                check(&gpu, &numbers, &format!("{way} by 2^{by} at each step"));
                // Each element but the first cancels with a later one.
                let opposite: Vec<T> = numbers[1..].iter().map(|&x| x.times(T::of(-1))).collect();
                check(&gpu, &[&numbers[..], &opposite].concat(), &format!("{way} by 2^{by} and back"));
            }
        }
    }
    of::<f32>(110);
    of::<f64>(900);
}

/// A number at or next to the edge of a window, in the step that chooses the window, and in later ones.
#[test]
fn numbers_on_the_edge_of_a_window() {
    fn of<T: ByOneWarp>(windows: [i32; 6]) {
        let (gpu, mut source) = (executor(), SmallRng::seed_from_u64(62));
        for exponent in windows {
            let ordinary: Vec<T> = (0..3).flat_map(|_| step(exponent - 4 - T::HEADROOM, &mut source)).collect();
            let edge = T::power(exponent);
            for x in [edge, edge.neighbour(false), edge.neighbour(true), edge.times(T::of(2)).neighbour(false)] {
                for sign in [1, -1] {
                    for place in [1, T::STEP + 77, 3 * T::STEP - 1] {
                        let mut numbers = ordinary.clone();
                        numbers[place] = x.times(T::of(sign));
                        check(&gpu, &numbers, &format!("{sign} * {x:?} at {place}, window {exponent}"));
                        // Many times: at the edge, an extraction gives the largest integer.
                        numbers[T::STEP..].fill(x.times(T::of(sign)));
                        check(&gpu, &numbers, &format!("{sign} * {x:?} many times, window {exponent}"));
                    }
                }
            }
        }
    }
    let (lowest, highest) = (Window::<f32>::LOWEST, Window::<f32>::HIGHEST);
    of::<f32>([lowest, lowest + 4, -20, 16, highest, 126]);
    let (lowest, highest) = (Window::<f64>::LOWEST, Window::<f64>::HIGHEST);
    of::<f64>([lowest, lowest + 3, -20, 16, highest, 1022]);
}

/// Numbers halfway between two multiples of a bin's unit, for each bin of each window.
#[test]
fn ties_of_each_bin() {
    fn of<T: ByOneWarp>(window: i32, bins: i32) {
        let (gpu, mut source) = (executor(), SmallRng::seed_from_u64(63));
        let first = T::of(15).times(T::power(window - 4 - T::HEADROOM));
        // The first two elements choose the window and cancel, so that all bits of the others remain.
        let mut zeros = vec![T::of(0); 3 * T::STEP];
        (zeros[0], zeros[1]) = (first, first.times(T::of(-1)));
        let ordinary: Vec<T> = (0..3).flat_map(|_| step(window - 4 - T::HEADROOM, &mut source)).collect();
        let mut together = zeros.clone();
        for bin in 1..=bins {
            let half = window - bin * T::MANTISSA as i32;
            if half < T::MIN_EXPONENT - T::MANTISSA as i32 {
                break;
            }
            for others in [&zeros, &ordinary] {
                let mut numbers = others.clone();
                for (i, odd) in [1, 3, 5, -1, -3, -7, 255, -257].into_iter().enumerate() {
                    let tie = T::power(half).times(T::of(odd));
                    numbers[T::STEP + 31 * i] = tie;
                    together[T::STEP + 8 * bin as usize + i] = tie;
                }
                check(&gpu, &numbers, &format!("bin {bin} of a window below 2^{window}"));
            }
        }
        check(&gpu, &together, &format!("all bins of a window below 2^{window}"));
    }
    for window in [126, 40, 0, -60, -104] {
        of::<f32>(window, 13);
    }
    for window in [1020, 0, -900] {
        of::<f64>(window, 8);
    }
}

/// The integers of a lane hold 4,095 elements of `f64`.
#[test]
fn lanes_take_more_doubles_than_their_integers_hold() {
    let gpu = executor();
    // Just below the edge of the window that begins 4 bits above the first elements.
    let edge = 256.0_f64.neighbour(false);
    for (x, elements) in [(edge, 4094), (edge, 4096), (-edge, 4104), (-f64::MAX, 4096), (f64::from_bits(1), 4096)] {
        for more in [0, 3] {
            let mut numbers = vec![x; 32 * elements + more];
            if x.abs() == edge {
                numbers[..256].fill(15.0);
            }
            check(&gpu, &numbers, &format!("{elements} elements of each lane, {x:e}, and {more}"));
        }
    }
}

/// A digit of a lane's superaccumulator holds 254 terms of `f32`, and 2,045 of `f64` by the lanes that share it.
#[test]
fn lanes_take_more_terms_than_a_digit_holds() {
    fn of<T: ByOneWarp>(gpu: &Gpu, largest: T, smallest: T) {
        for terms in [240, 256, 416, 800] {
            for sign in [1, -1] {
                let mut numbers = vec![largest.times(T::of(sign)); 32 * terms];
                // In each step, so that its terms have too many exponents for windows; two of them cancel.
                numbers.iter_mut().step_by(64).for_each(|x| *x = smallest);
                numbers.iter_mut().skip(7).step_by(T::STEP / 4).for_each(|x| *x = T::power(90));
                numbers.iter_mut().skip(8).step_by(T::STEP / 4).for_each(|x| *x = T::of(-1).times(T::power(90)));
                check(gpu, &numbers, &format!("{terms} terms of each lane, {largest:?} times {sign}"));
            }
        }
    }
    let gpu = executor();
    // Integers of all ones that are shifted by one place less than a digit, and by none.
    for position in [31, 32, 95, 96, 127, 128] {
        of(&gpu, f32::from_bits((position + 1) << 23 | 0x7f_ffff), 1e-42);
    }
    for position in [51, 52, 20 * 52 - 1, 20 * 52, 23 * 52 - 1] {
        of(&gpu, f64::from_bits((position + 1) << 52 | 0xf_ffff_ffff_ffff), 1e-320);
    }
}

/// The integers of a thread hold 511 rows of a column: after 508, another tile of four does not fit.
#[test]
fn threads_take_more_rows_than_their_integers_hold() {
    // Four for each of a block's threads, so that a thread has all rows.
    const COLUMNS: usize = 1024;
    let gpu = executor();
    // Just below the edge of the window that begins 3 bits above the first rows.
    let edge = 16.0 * (1.0 - f32::EPSILON / 2.0);
    for x in [edge, -edge, 16.0] {
        for rows in [508, 509, 512, 513, 1100] {
            let row = |row: usize| if row < 8 { 1.0 } else { x };
            let input: Vec<f32> = (0..rows * COLUMNS).map(|i| row(i / COLUMNS)).collect();
            // One block has the whole matrix.
            let sums = f32::of_columns(&gpu, &input, [1, rows, COLUMNS], [COLUMNS as u32 / 4, 1, 1]);
            let right = (0..rows).map(row).collect::<ExactSum<f32>>().value();
            assert!(sums.iter().all(|sum| sum.to_bits() == right.to_bits()), "{rows} rows of {x}");
        }
    }
}

#[test]
fn elements_on_rare_paths_change_no_bit_at_any_position() {
    exact_edges::elements_on_rare_paths(&executor()).unwrap();
}

#[test]
fn recordings_alternate_between_extremes_and_ordinary_data() {
    exact_edges::extremes_in_recordings(&Gpu::simt()).unwrap();
}
