//! Consequences of exact sums: the bits depend only on the elements.
//!
//! `docs/exact.md` names these tests next to the claims that they check.

use half::{bf16, f16};
use kernels::reduce::exact::long_rows::{ExactLongRowArgs, exact_long_rows, words_of_superaccumulator};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use test_support::by_shape::ByShape;
use test_support::exact::{Data, Exact, RESULTS, numbers};
use test_support::executor;
use test_support::shape::Shape;
use warpfold::exact::{ExactDot, ExactSum};
use warpfold::ops::Sum;
use warpfold::{Gpu, View};

/// The same check for each type.
macro_rules! of_each_type {
    ($check:ident($($argument:expr),*)) => {{
        $check::<f32>($($argument),*);
        $check::<f64>($($argument),*);
        $check::<f16>($($argument),*);
        $check::<bf16>($($argument),*);
    }};
}

fn to_f64<T: Exact>(x: T) -> f64 {
    ExactSum::from_iter([x]).rounded()
}

/// Elements with very different exponents that cancel, except one in eight, which is ordinary. Rounded additions lose
/// bits of the ordinary ones.
fn elements<T: Exact>(len: usize, source: &mut SmallRng) -> Vec<T> {
    let mut all = numbers::<T>(Data::Wide, len, source);
    let ordinary = numbers::<T>(Data::Normal, len, source);
    for i in 0..len.div_ceil(2) {
        let mirror = len - 1 - i;
        (all[i], all[mirror]) = match i % 8 {
            0 => (ordinary[i], ordinary[mirror]),
            _ => (all[i], T::nearest(-to_f64(all[i]))),
        };
    }
    all
}

/// The bits of a sum, a mean, a sum of squares and a norm.
type Bits = [u64; RESULTS.len()];

fn bits<T: Exact>(results: [T::Sum; RESULTS.len()]) -> Bits {
    results.map(|result| Into::<f64>::into(result).to_bits())
}

/// The results on the host.
fn on_host<T: Exact>(elements: &[T]) -> Bits {
    let sum: ExactSum<T> = elements.iter().copied().collect();
    let squares: ExactDot<T> = elements.iter().map(|&x| (x, x)).collect();
    bits::<T>([sum.value(), sum.mean(), squares.value(), squares.sqrt()])
}

/// The results of a whole view.
fn of_all<T: Exact>(gpu: &Gpu, view: View<'_, T>) -> Bits {
    bits::<T>(T::results(gpu, view).unwrap())
}

/// The results of each row or column.
fn of_each<T: Exact>(gpu: &Gpu, view: View<'_, T>, shape: Shape) -> Vec<Bits> {
    let results = T::results_of_each(gpu, view, shape).unwrap();
    (0..shape.outputs()).map(|i| bits::<T>(results.each_ref().map(|all| all[i]))).collect()
}

fn permuted<T: Exact>(len: usize, source: &mut SmallRng) {
    let gpu = executor();
    let mut all = elements::<T>(len, source);
    let expected = on_host(&all);
    let check = |all: &[T], order: &str| {
        assert_eq!(of_all(&gpu, gpu.upload(all).unwrap().view()), expected, "{len} {} {order}", T::NAME);
    };
    check(&all, "in order");
    all.reverse();
    check(&all, "reversed");
    all.sort_by(|&a, &b| to_f64(a).total_cmp(&to_f64(b)));
    check(&all, "ascending");
    all.sort_by(|&a, &b| to_f64(b).abs().total_cmp(&to_f64(a).abs()));
    check(&all, "descending by magnitude");
    all.shuffle(source);
    check(&all, "shuffled");
}

/// If additions of these elements did not depend on the order, the tests below would also pass for rounded sums.
#[test]
fn additions_of_floats_depend_on_the_order_of_these_elements() {
    let mut source = SmallRng::seed_from_u64(49);
    let loops = |all: &[f64]| [all.iter().sum::<f64>(), all.iter().rev().sum::<f64>()];
    let [forward, backward] = loops(&elements::<f64>(3000, &mut source));
    assert_ne!(forward, backward);
    let singles = elements::<f32>(3000, &mut source);
    assert_ne!(singles.iter().sum::<f32>(), singles.iter().rev().sum::<f32>());
    let [forward, backward] = loops(&singles.iter().copied().map(f64::from).collect::<Vec<_>>());
    assert_ne!(forward, backward, "sums of f32 in f64 depend on the order, too");
}

#[test]
fn any_permutation_has_the_same_bits() {
    let mut source = SmallRng::seed_from_u64(50);
    // One warp, one block, several blocks.
    for len in [100, 3000, 40_003] {
        of_each_type!(permuted(len, &mut source));
    }
}

fn shifted<T: Exact>(source: &mut SmallRng) {
    const LEN: usize = 3001;
    const ROWS: usize = 5;
    const COLUMNS: usize = 130;
    let gpu = executor();
    let nan = T::nearest(f64::NAN);
    let all = elements::<T>(LEN, source);
    let expected = on_host(&all);
    for offset in 0..=16 / size_of::<T>() {
        let moved: Vec<T> = [&vec![nan; offset], &all[..], &[nan; 3]].concat();
        let buffer = gpu.upload(&moved).unwrap();
        let view = buffer.view().slice(offset, LEN).unwrap();
        assert_eq!(of_all(&gpu, view), expected, "{} {offset} in", T::NAME);
    }
    let matrix = &all[..ROWS * COLUMNS];
    let rows: Vec<Bits> = matrix.chunks(COLUMNS).map(on_host).collect();
    let column = |i: usize| matrix.iter().skip(i).step_by(COLUMNS).copied().collect::<Vec<T>>();
    let columns: Vec<Bits> = (0..COLUMNS).map(|i| on_host(&column(i))).collect();
    for (pad, offset) in [(0, 0), (0, 1), (1, 0), (2, 3), (6, 0), (8, 5)] {
        let pitch = COLUMNS + pad;
        let mut padded = vec![nan; offset + ROWS * pitch];
        for (row, elements) in matrix.chunks(COLUMNS).enumerate() {
            padded[offset + row * pitch..][..COLUMNS].copy_from_slice(elements);
        }
        let buffer = gpu.upload(&padded).unwrap();
        let view = buffer.view().slice(offset, ROWS * pitch).unwrap();
        let with_pitch = |shape: Shape| shape.with_pitch(pitch).unwrap();
        let case = format!("{}, pitch {pitch}, {offset} in", T::NAME);
        assert_eq!(of_each(&gpu, view, with_pitch(Shape::rows(ROWS, COLUMNS))), rows, "rows of {case}");
        assert_eq!(of_each(&gpu, view, with_pitch(Shape::columns(ROWS, COLUMNS))), columns, "columns of {case}");
    }
}

#[test]
fn any_alignment_and_pitch_has_the_same_bits() {
    let mut source = SmallRng::seed_from_u64(51);
    of_each_type!(shifted(&mut source));
}

/// The sum of one row among `rows`: its neighbours are NaN, the other rows ordinary.
fn sum_among<T: Exact>(gpu: &Gpu, row: &[T], rows: usize, at: usize) -> u64
where
    Sum: warpfold::Reduction<T, Output = T::Sum>,
{
    let mut all = vec![T::nearest(1.0); rows * row.len()];
    for near in at.saturating_sub(1)..(at + 2).min(rows) {
        all[near * row.len()..][..row.len()].fill(T::nearest(f64::NAN));
    }
    all[at * row.len()..][..row.len()].copy_from_slice(row);
    let sums = gpu.reduce_to_buffer(Sum, &gpu.upload(&all).unwrap(), Shape::rows(rows, row.len())).unwrap();
    Into::<f64>::into(gpu.download(&sums).unwrap()[at]).to_bits()
}

fn among_others<T: Exact>(len: usize, many: usize, source: &mut SmallRng)
where
    Sum: warpfold::Reduction<T, Output = T::Sum>,
{
    let gpu = executor();
    let row = elements::<T>(len, source);
    let [expected, ..] = on_host(&row);
    for rows in [1, 2, 528, many] {
        let at = source.random_range(0..rows);
        assert_eq!(sum_among(&gpu, &row, rows, at), expected, "row {at} of {rows} of {len} {}", T::NAME);
    }
}

#[test]
fn a_row_has_the_same_bits_alone_and_among_others() {
    let mut source = SmallRng::seed_from_u64(52);
    // Lanes of a warp sum a row of a hundred elements, for any number of rows.
    of_each_type!(among_others(100, 6000, &mut source));
    // Three blocks share the longer row if it is alone; among 528 rows, one block has all of it.
    among_others::<f32>(9001, 100, &mut source);
    among_others::<f64>(1501, 1000, &mut source);
}

fn transposed<T: Exact>(rows: usize, columns: usize, source: &mut SmallRng) {
    let gpu = executor();
    let all: Vec<T> = (0..rows).flat_map(|_| elements(columns, source)).collect();
    let matrix = gpu.upload(&all).unwrap().reshape(&[rows, columns]).unwrap();
    let transpose = gpu.transpose(&matrix).unwrap();
    let expected: Vec<Bits> = all.chunks(columns).map(on_host).collect();
    let case = format!("{rows} x {columns} {}", T::NAME);
    assert_eq!(of_each(&gpu, matrix.buffer().view(), Shape::rows(rows, columns)), expected, "rows of {case}");
    let of_columns = of_each(&gpu, transpose.buffer().view(), Shape::columns(columns, rows));
    assert_eq!(of_columns, expected, "columns of the transpose of {case}");
}

#[test]
fn rows_of_a_matrix_and_columns_of_its_transpose_have_the_same_bits() {
    let mut source = SmallRng::seed_from_u64(53);
    for (rows, columns) in [(1, 700), (3, 9001), (37, 130), (300, 20)] {
        of_each_type!(transposed(rows, columns, &mut source));
    }
}

/// The sum of all numbers by `blocks` blocks of `threads` threads each.
fn by_blocks(gpu: &Gpu, numbers: &[f32], blocks: u32, threads: u32) -> u32 {
    let input = gpu.upload(numbers).unwrap();
    // A tile is a vector of four elements per thread.
    let tiles = numbers.len().div_ceil(threads as usize * 4) as u32;
    assert!(blocks <= tiles, "each block has a tile");
    let mut tile_states = gpu.zeroed::<[u64; 2]>(blocks as usize).unwrap();
    let mut superaccumulators = gpu.zeroed::<i64>(words_of_superaccumulator::<Sum, f32>()).unwrap();
    let mut sum = gpu.zeroed::<u8>(4).unwrap();
    // SAFETY: the arguments describe one input, with a tile state for each block and one superaccumulator.
    let kernel = unsafe { exact_long_rows::handle::<Sum, f32>() }.with_block(threads);
    let arguments = ExactLongRowArgs {
        input: input.view(),
        len: numbers.len(),
        pitch: 0,
        splits: blocks,
        tiles: tiles / blocks,
        longer_splits: tiles % blocks,
        tile_states: tile_states.view_mut(),
        superaccumulators: superaccumulators.view_mut(),
        finish: 0,
        output: sum.view_mut(),
        term: 0,
    };
    gpu.launch(kernel, (blocks, 1), arguments).unwrap();
    u32::from_le_bytes(gpu.download(&sum).unwrap().try_into().unwrap())
}

#[test]
fn any_number_of_blocks_and_threads_has_the_same_bits() {
    let (gpu, mut source) = (executor(), SmallRng::seed_from_u64(54));
    let numbers = elements::<f32>(40_003, &mut source);
    let expected = numbers.iter().copied().collect::<ExactSum<f32>>().value().to_bits();
    assert_eq!(gpu.sum(&gpu.upload(&numbers).unwrap()).unwrap().to_bits(), expected, "by the library's plan");
    for (threads, most) in [(32, 79), (64, 40), (128, 20), (256, 10), (512, 5)] {
        for blocks in [1, 2, 3, 7, 32, most] {
            if blocks <= most {
                assert_eq!(by_blocks(&gpu, &numbers, blocks, threads), expected, "{blocks} blocks of {threads}");
            }
        }
    }
}

/// With appended zeros the library's plan uses more blocks, but the sum is the same.
#[test]
fn zeros_change_the_number_of_blocks_and_no_bit() {
    let (gpu, mut source) = (executor(), SmallRng::seed_from_u64(55));
    let mut numbers = elements::<f32>(5000, &mut source);
    let [expected, ..] = on_host(&numbers);
    for len in [5000, 9000, 50_000, 500_000] {
        numbers.resize(len, -0.0);
        let sum = gpu.sum(&gpu.upload(&numbers).unwrap()).unwrap();
        assert_eq!(f64::from(sum).to_bits(), expected, "with zeros to {len}");
    }
}
