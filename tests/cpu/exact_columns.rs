//! Exact sums of columns in the executor, in which some elements are outside the columns' windows.

use half::{bf16, f16};
use kernels::reduce::columns::BLOCK;
use kernels::reduce::exact::columns::{ExactColumnArgs, exact_columns, lane_memory, rows_in_flight};
use kernels::reduce::exact::few_rows::{MAX_ROWS, MIN_COLUMNS};
use kernels::reduce::exact::terms::Squares;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use test_support::exact::{self, Data, Exact, power};
use test_support::executor;
use warpfold::exact::{ExactDot, ExactSum};
use warpfold::ops::{Mean, Sum, SumOfSquares};
use warpfold::{ArrayView, ArrayViewMut, Element, Gpu, Layout, Reduction};

use crate::exact_launches::{Launched, check_columns};

/// Two elements above the windows of their columns, in any two rows of three tiles. They fit in the integers beside the
/// bins.
#[test]
fn two_elements_above_the_window_are_added_once() {
    fn of<T: Launched>(gpu: &Gpu, source: &mut SmallRng) {
        let rows = 3 * rows_in_flight(size_of::<T>()) + 1;
        // With wide loads, and without.
        for columns in [8, 7] {
            for first in 0..rows {
                for second in 0..rows {
                    let mut elements: Vec<T> =
                        (0..rows * columns).map(|_| T::nearest(source.random_range(1..16).into())).collect();
                    for (row, large) in [(first, 3.0 * power(19)), (second, 5.0 * power(20))] {
                        elements[row * columns + source.random_range(0..columns)] = T::nearest(large);
                    }
                    check_columns(gpu, &elements, [1, rows, columns], [256, 1, 1]);
                }
            }
        }
    }
    let (gpu, mut source) = (executor(), SmallRng::seed_from_u64(81));
    of::<f32>(&gpu, &mut source);
    of::<f64>(&gpu, &mut source);
}

/// Columns of few rows have a kernel of their own.
#[test]
fn columns_of_few_rows() {
    let (gpu, mut source) = (executor(), SmallRng::seed_from_u64(82));
    for rows in 1..=MAX_ROWS + 1 {
        for (batches, columns) in [(1, 3), (1, MIN_COLUMNS), (2, MIN_COLUMNS + 3), (1, 1029)] {
            exact::columns(&gpu, batches, rows, columns, &mut source).unwrap();
        }
    }
    exact::columns(&Gpu::simt(), 2, 5, MIN_COLUMNS + 1, &mut source).unwrap();
}

/// Columns of few rows in arrays of any layout: batches with a gap, unaligned rows, one row for all, one of each two.
#[test]
fn columns_of_few_rows_of_views() {
    let (gpu, mut source) = (executor(), SmallRng::seed_from_u64(83));
    let elements: Vec<f32> =
        (0..20_000).map(|_| source.random_range(-1.0..1.0) * power(source.random_range(-40..40)) as f32).collect();
    let input = gpu.upload(&elements).unwrap();
    for (extents, strides, offset) in [
        ([2, 3, 700], [5000, 1000, 1], 4),
        ([2, 3, 701], [4999, 1001, 1], 3),
        ([3, 5, 1028], [0, 1028, 1], 0),
        ([2, 4, 600], [600, 0, 1], 1),
        ([1, 6, 1024], [0, 3000, 1], 8),
        ([2, 2, 800], [1600, 8000, 2], 5),
        ([1, 1, 2000], [0, 0, 1], 3),
    ] {
        let layout = Layout::strided(&extents, &strides, 0).unwrap();
        let view = input.view().slice(offset, elements.len() - offset).unwrap();
        let sums = gpu.reduce(Sum, ArrayView::new(view, &layout).unwrap(), 1).unwrap();
        let means = gpu.reduce(Mean, ArrayView::new(view, &layout).unwrap(), 1).unwrap();
        let (sums, means) = (gpu.download(&sums).unwrap(), gpu.download(&means).unwrap());
        let of_output = |batch: usize, column: usize| {
            (0..extents[1])
                .map(|row| {
                    let at = [batch, row, column].into_iter().zip(strides).map(|(i, stride)| i * stride as usize);
                    elements[offset + at.sum::<usize>()]
                })
                .collect::<ExactSum<f32>>()
        };
        for (i, (sum, mean)) in sums.iter().zip(&means).enumerate() {
            let right = of_output(i / extents[2], i % extents[2]);
            let what = format!("result {i} of {extents:?} at {strides:?}");
            assert_eq!(sum.to_bits(), right.value().to_bits(), "the sum: {what}");
            assert_eq!(mean.to_bits(), right.mean::<f32>().to_bits(), "the mean: {what}");
        }
        assert_eq!(sums.len(), extents[0] * extents[2]);
    }
}

/// Results of few rows and of few elements at any alignment: four at once, and one by one.
#[test]
fn results_of_few_are_stored_at_any_place() {
    fn of<T: Exact>(gpu: &Gpu, source: &mut SmallRng)
    where
        Sum: Reduction<T, Output: Element>,
    {
        let elements: Vec<T> = exact::numbers(Data::Normal, 3 * 2 * (MIN_COLUMNS + 4), source);
        let input = gpu.upload(&elements).unwrap();
        for (extents, axis) in [([2, 3, MIN_COLUMNS + 4], 1), ([2, MIN_COLUMNS + 4, 3], 2)] {
            let layout = Layout::contiguous(&extents).unwrap();
            let right = gpu.reduce(Sum, ArrayView::new(input.view(), &layout).unwrap(), axis).unwrap();
            let right = gpu.download(&right).unwrap();
            for place in 0..5 {
                let mut sums = gpu.zeroed(right.len() + 8).unwrap();
                let layout_of_sums = Layout::contiguous(&[2, MIN_COLUMNS + 4]).unwrap();
                let view = sums.view_mut().slice(place, right.len()).unwrap();
                let output = ArrayViewMut::new(view, &layout_of_sums).unwrap();
                gpu.reduce_into(Sum, ArrayView::new(input.view(), &layout).unwrap(), axis, output).unwrap();
                let sums = gpu.download(&sums).unwrap();
                let zero = <Sum as Reduction<T>>::Output::default();
                assert!(sums[place..][..right.len()] == right, "{} at {place}", T::NAME);
                let is_outside = |i: usize| i < place || i >= place + right.len();
                assert!((0..sums.len()).filter(|&i| is_outside(i)).all(|i| sums[i] == zero), "{} at {place}", T::NAME);
            }
        }
    }
    let (gpu, mut source) = (executor(), SmallRng::seed_from_u64(86));
    of::<f32>(&gpu, &mut source);
    of::<f64>(&gpu, &mut source);
    of::<f16>(&gpu, &mut source);
    of::<bf16>(&gpu, &mut source);
}

/// The sums of squares of a matrix's columns, by blocks of `lanes` columns of threads.
fn squares_of_columns(gpu: &Gpu, elements: &[f32], rows: usize, columns: usize, lanes: u32) -> Vec<f32> {
    let (mut superaccumulators, mut tickets) = (gpu.zeroed(0).unwrap(), gpu.zeroed(0).unwrap());
    let mut sums = gpu.zeroed::<u8>(columns * 4).unwrap();
    let input = gpu.upload(elements).unwrap();
    let tiles = (columns as u32).div_ceil(4 * lanes);
    // SAFETY: the arguments describe a dense matrix; the grid has a block for each tile, which has all rows.
    let kernel = unsafe { exact_columns::handle::<SumOfSquares, f32>() };
    let kernel = kernel.with_dynamic_shared(lane_memory::<Squares<f32>>().bytes(BLOCK, 48 * 1024));
    let arguments = ExactColumnArgs {
        input: input.view(),
        rows,
        columns,
        pitch: columns,
        batch_pitch: 0,
        folded_rows: 1,
        lanes,
        tiles,
        splits: 1,
        rows_of_split: rows,
        superaccumulators: superaccumulators.view_mut(),
        tickets: tickets.view_mut(),
        finish: 0,
        output: sums.view_mut(),
        term: 0,
    };
    gpu.launch(kernel, tiles, arguments).unwrap();
    let bytes = gpu.download(&sums).unwrap();
    bytes.chunks_exact(4).map(|sum| f32::from_le_bytes(sum.try_into().unwrap())).collect()
}

/// Squares in several tiles, whose sums fit in the windows.
#[test]
fn squares_in_one_window_are_added_once() {
    const COLUMNS: usize = 9;
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(82));
    for lanes in [4, 128, 256] {
        for rows in (1..20).chain([64, 1000, 1300]) {
            let all = exact::numbers::<f32>(Data::Normal, rows * COLUMNS, &mut source);
            for (column, sum) in squares_of_columns(&gpu, &all, rows, COLUMNS, lanes).into_iter().enumerate() {
                let right: ExactDot<f32> = all[column..].iter().step_by(COLUMNS).map(|&x| (x, x)).collect();
                assert_eq!(sum.to_bits(), right.value().to_bits(), "column {column} of {rows} rows, {lanes} lanes");
            }
        }
    }
}

/// In each column, only one bit remains: in its bins, or in the 46 places below them. Several blocks add it, or one.
#[test]
fn one_bit_below_a_window_is_not_lost() {
    const COLUMNS: usize = 80;
    let gpu = executor();
    for rows in [8, 40] {
        for splits in [1, 2] {
            for at in [1, 5, rows - 2] {
                let mut elements = vec![0.0_f32; rows * COLUMNS];
                for column in 0..COLUMNS {
                    elements[column] = 1.0;
                    elements[at * COLUMNS + column] = power(-90 + column as i32) as f32;
                    elements[(rows - 1) * COLUMNS + column] = -1.0;
                }
                check_columns(&gpu, &elements, [1, rows, COLUMNS], [32, splits, 1]);
            }
        }
    }
}

/// Each thread of a column has as many elements above the window as it can add one by one. Their sum over all threads
/// would exceed 128 bits.
#[test]
fn elements_above_the_window_do_not_overflow() {
    fn of<T: Launched>(gpu: &Gpu, large: f64) {
        const THREADS: usize = 256;
        const ROWS: usize = 1100 * THREADS;
        let tile = rows_in_flight(size_of::<T>());
        let number = |row: usize| if row / THREADS / tile % 4 == 3 { large } else { 1.0 };
        let elements: Vec<T> = (0..ROWS).map(|row| T::nearest(number(row))).collect();
        check_columns(gpu, &elements, [1, ROWS, 1], [1, 1, 1]);
    }
    let gpu = executor();
    // The units are 2^-87 and 2^-86, and elements have the most bits, 112.
    of::<f32>(&gpu, 1.5 * power(24));
    of::<f64>(&gpu, 1.5 * power(25));
}
