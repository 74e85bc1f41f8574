//! Exact sums in the executor, with launches that plans rarely make, and with rare data.

use exact_sum::Binary;
use kernels::reduce::columns::BLOCK;
use kernels::reduce::exact::columns::{ExactColumnArgs, WORDS_OF_TICKET, exact_columns, lane_memory, rows_in_flight};
use kernels::reduce::exact::long_rows::{ExactLongRowArgs, exact_long_rows, words_of_superaccumulator};
use kernels::reduce::exact::long_segments::{ExactLongSegmentArgs, exact_long_segments};
use kernels::reduce::exact::rows::{self, ExactRowArgs, exact_rows};
use kernels::reduce::exact::segments::{ExactSegmentArgs, exact_segments};
use kernels::reduce::exact::terms::Elements;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use test_support::by_shape::ByShape;
use test_support::exact::{self, Data, Exact, power};
use test_support::shape::Shape;
use warpfold::exact::{ExactDot, ExactSum};
use warpfold::ops::{Dot, Sum, SumOfSquares};
use warpfold::{Buffer, Gpu};

/// Compares the sums of matrices' columns with the host's. The shape is the batches, rows and columns.
pub fn check_columns<T: Launched>(gpu: &Gpu, elements: &[T], shape: [usize; 3], plan: [u32; 3]) {
    let [_, rows, columns] = shape;
    for (i, sum) in T::of_columns(gpu, elements, shape, plan).into_iter().enumerate() {
        let of_matrix = &elements[i / columns * rows * columns..][..rows * columns];
        let right: ExactSum<T> = of_matrix[i % columns..].iter().step_by(columns).copied().collect();
        exact::same(sum, right.value(), &format!("column {i} of {shape:?} {}, plan {plan:?}", T::NAME)).unwrap();
    }
}

/// A type whose sums are computed with the kernels' own parameters.
pub trait Launched: Exact<Sum = Self> + Binary {
    /// The sums of the segments between offsets, with this many in each warp.
    fn of_segments(gpu: &Gpu, elements: &[Self], offsets: &[u64], segments_per_warp: u32) -> Vec<Self>;
    /// The sums of rows of `len` elements, `pitch` elements apart, by `lanes` lanes with `rows_of_lane` rows each.
    fn of_rows(gpu: &Gpu, elements: &[Self], len: usize, pitch: usize, lanes: u32, rows_of_lane: u32) -> Vec<Self>;
    /// The sums of the columns of some matrices, by a plan: lanes, splits, and folded rows.
    fn of_columns(gpu: &Gpu, elements: &[Self], shape: [usize; 3], plan: [u32; 3]) -> Vec<Self> {
        Self::results_of_columns(gpu, elements, shape, plan, 0)
    }
    /// The results of the columns that `finish` selects: sums, or means.
    fn results_of_columns(gpu: &Gpu, elements: &[Self], shape: [usize; 3], plan: [u32; 3], finish: u32) -> Vec<Self>;
    /// Sums as the kernels have stored them.
    fn download(gpu: &Gpu, sums: &Buffer<u8>) -> Vec<Self>;
}

macro_rules! launched {
    ($($type:ident)*) => {$(
        impl Launched for $type {
            fn download(gpu: &Gpu, sums: &Buffer<u8>) -> Vec<Self> {
                let bytes = gpu.download(sums).unwrap();
                bytes.chunks_exact(size_of::<Self>()).map(|sum| Self::from_le_bytes(sum.try_into().unwrap())).collect()
            }
            fn of_segments(gpu: &Gpu, elements: &[Self], offsets: &[u64], segments_per_warp: u32) -> Vec<Self> {
                let (input, of_device) = (gpu.upload(elements).unwrap(), gpu.upload(offsets).unwrap());
                let (mut chunks, mut status) = (gpu.zeroed(0).unwrap(), gpu.zeroed(2).unwrap());
                let segments = offsets.len() - 1;
                let mut sums = gpu.zeroed::<u8>(segments * size_of::<Self>()).unwrap();
                // SAFETY: the blocks' warps have all segments, each of which a warp sums, so that none is queued.
                let kernel = unsafe { exact_segments::handle::<Sum, $type>() };
                let arguments = ExactSegmentArgs {
                    input: input.view(),
                    offsets: of_device.view(),
                    segments_per_warp,
                    log2_min_tiles: 0,
                    chunks: chunks.view_mut(),
                    status: status.view_mut(),
                    finish: 0,
                    output: sums.view_mut(),
                    term: 0,
                };
                gpu.launch(kernel, (segments as u32).div_ceil(8 * segments_per_warp), arguments).unwrap();
                Self::download(gpu, &sums)
            }
            fn of_rows(
                gpu: &Gpu,
                elements: &[Self],
                len: usize,
                pitch: usize,
                lanes: u32,
                rows_of_lane: u32,
            ) -> Vec<Self> {
                let (input, rows) = (gpu.upload(elements).unwrap(), elements.len() / pitch);
                let mut sums = gpu.zeroed::<u8>(rows * size_of::<Self>()).unwrap();
                // SAFETY: the lanes' vectors cover a row, and the blocks have all rows.
                let kernel = unsafe { exact_rows::handle::<Sum, $type>() };
                let vector = 16 / size_of::<Self>();
                let arguments = ExactRowArgs {
                    input: input.view(),
                    rows,
                    len,
                    pitch,
                    lanes_log: lanes.ilog2(),
                    vectors_log: rows::VECTORS.ilog2(),
                    rows_log: rows_of_lane.ilog2(),
                    has_singles: u32::from(!(len.is_multiple_of(vector) && pitch.is_multiple_of(vector))),
                    finish: 0,
                    output: sums.view_mut(),
                    term: 0,
                };
                let rows_of_block = rows::BLOCK as u32 / lanes * rows_of_lane;
                gpu.launch(kernel, (rows as u32).div_ceil(rows_of_block), arguments).unwrap();
                Self::download(gpu, &sums)
            }
            fn results_of_columns(
                gpu: &Gpu,
                elements: &[Self],
                shape: [usize; 3],
                plan: [u32; 3],
                finish: u32,
            ) -> Vec<Self> {
                let ([batches, rows, columns], [lanes, splits, folded_rows]) = (shape, plan);
                // No split is empty.
                let folded = rows / folded_rows as usize;
                let of_split = folded.div_ceil(splits as usize).max(1);
                let splits = folded.div_ceil(of_split).max(1) as u32;
                let (sums, tiles) = (batches * columns, (columns as u32 * folded_rows).div_ceil(4 * lanes));
                let input = gpu.upload(elements).unwrap();
                let mut superaccumulators = gpu.zeroed(sums * words_of_superaccumulator::<Sum, $type>()).unwrap();
                let mut tickets = gpu.zeroed(WORDS_OF_TICKET * batches * tiles as usize).unwrap();
                let mut sums = gpu.zeroed::<u8>(sums * size_of::<Self>()).unwrap();
                // SAFETY: the arguments describe dense matrices, with a superaccumulator for each column and a ticket
                // for each tile; the grid has the blocks for all tiles.
                let kernel = unsafe { exact_columns::handle::<Sum, $type>() };
                let kernel = kernel.with_dynamic_shared(lane_memory::<Elements<$type>>().bytes(BLOCK, 48 * 1024));
                let arguments = ExactColumnArgs {
                    input: input.view(),
                    rows,
                    columns,
                    pitch: columns,
                    batch_pitch: rows * columns,
                    folded_rows,
                    lanes,
                    tiles,
                    splits,
                    rows_of_split: of_split * folded_rows as usize,
                    superaccumulators: superaccumulators.view_mut(),
                    tickets: tickets.view_mut(),
                    finish,
                    output: sums.view_mut(),
                    term: 0,
                };
                gpu.launch(kernel, tiles * splits * batches as u32, arguments).unwrap();
                assert!(gpu.download(&tickets).unwrap().iter().all(|&word| word == 0), "tickets are cleared");
                assert!(gpu.download(&superaccumulators).unwrap().iter().all(|&word| word == 0), "limbs are cleared");
                Self::download(gpu, &sums)
            }
        }
    )*};
}

launched! { f32 f64 }

/// Plans give a warp several segments only if there are thousands of segments. Here a warp has up to one for each lane.
#[test]
fn warps_have_a_segment_for_each_lane() {
    fn of<T: Launched>(gpu: &Gpu, source: &mut SmallRng) {
        let vector = 16 / size_of::<T>();
        for segments_per_warp in [2, 8, 16, 32] {
            for most in [vector, 30 * vector, 100 * vector] {
                let (mut elements, mut offsets) = (Vec::new(), vec![0]);
                for _ in 0..3 * segments_per_warp + 1 {
                    let data = exact::ALL[source.random_range(0..exact::ALL.len())];
                    elements.extend(exact::numbers::<T>(data, source.random_range(0..most), source));
                    offsets.push(elements.len() as u64);
                }
                let sums = T::of_segments(gpu, &elements, &offsets, segments_per_warp);
                for (i, (ends, sum)) in offsets.windows(2).zip(sums).enumerate() {
                    let right: ExactSum<T> = elements[ends[0] as usize..ends[1] as usize].iter().copied().collect();
                    let case = format!("segment {i} of less than {most} {}, {segments_per_warp} in a warp", T::NAME);
                    exact::same(sum, right.value(), &case).unwrap();
                }
            }
        }
    }
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(71));
    for _ in 0..3 {
        of::<f32>(&gpu, &mut source);
        of::<f64>(&gpu, &mut source);
    }
}

/// An element outside its column's window, in each row, for many numbers of rows: after its tile come whole tiles, a
/// partial tile, one row, or nothing.
#[test]
fn columns_continue_after_a_tile_outside_the_window() {
    fn of<T: Launched>(gpu: &Gpu, source: &mut SmallRng) {
        let tile = rows_in_flight(size_of::<T>());
        // With wide loads, and without.
        for columns in [8, 7] {
            for rows in 1..=3 * tile + 1 {
                for (row, outlier) in
                    (0..rows).flat_map(|row| [power(-60), power(60), f64::INFINITY].map(|outlier| (row, outlier)))
                {
                    let mut elements: Vec<T> =
                        (0..rows * columns).map(|_| T::nearest(source.random_range(1..16).into())).collect();
                    elements[row * columns + source.random_range(0..columns)] = T::nearest(outlier);
                    for (column, sum) in
                        T::of_columns(gpu, &elements, [1, rows, columns], [256, 1, 1]).into_iter().enumerate()
                    {
                        let right: ExactSum<T> = elements[column..].iter().step_by(columns).copied().collect();
                        let case =
                            format!("column {column} of {rows} x {columns} {}, {outlier:e} in row {row}", T::NAME);
                        exact::same(sum, right.value(), &case).unwrap();
                    }
                }
            }
        }
    }
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(72));
    of::<f32>(&gpu, &mut source);
    of::<f64>(&gpu, &mut source);
}

/// Several matrices, each with tiles that several blocks share.
#[test]
fn blocks_find_their_matrix_tile_and_rows() {
    fn of<T: Launched>(gpu: &Gpu, source: &mut SmallRng) {
        // In the last two, a folded row has whole vectors, but matrices do not begin at multiples of a vector.
        for (shape, plan) in [
            ([3, 50, 20], [2, 1, 1]),
            ([1, 90, 20], [2, 3, 1]),
            ([3, 70, 27], [2, 2, 1]),
            ([2, 40, 9], [1, 4, 1]),
            ([3, 7, 2], [1, 2, 2]),
            ([4, 33, 9], [4, 2, 4]),
        ] {
            let [batches, rows, columns] = shape;
            check_columns(gpu, &exact::numbers::<T>(Data::Wide, batches * rows * columns, source), shape, plan);
        }
    }
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(75));
    of::<f32>(&gpu, &mut source);
    of::<f64>(&gpu, &mut source);
}

/// Rows past the last folded row, in columns whose windows differ, also from those of the same column in other rows of
/// the folded ones.
#[test]
fn rows_past_the_folded_ones_are_added_in_the_windows_of_their_columns() {
    fn of<T: Launched>(gpu: &Gpu, source: &mut SmallRng) {
        // With one row of threads, and with one element past the folded rows.
        for (shape, plan) in [
            ([1, 33, 9], [4, 2, 4]),
            ([2, 70, 5], [8, 3, 4]),
            ([1, 90, 6], [16, 2, 8]),
            ([1, 421, 5], [256, 2, 128]),
            ([1, 41, 1], [4, 2, 8]),
        ] {
            let [batches, rows, columns] = shape;
            let elements: Vec<T> = (0..batches * rows * columns)
                .map(|i| {
                    let (row, column) = (i / columns % rows, i % columns);
                    let scale = power(3 * (column + row % 4) as i32);
                    T::nearest(f64::from(source.random_range(-9999..10_000)) * scale)
                })
                .collect();
            check_columns(gpu, &elements, shape, plan);
        }
    }
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(77));
    of::<f32>(&gpu, &mut source);
    of::<f64>(&gpu, &mut source);
}

/// Sums of blocks with more bits than two words hold: the lowest bits go to limbs, and remain when the others cancel.
#[test]
fn sums_of_blocks_have_more_bits_than_two_words() {
    // The number of elements of each block, which has one warp: 1000 for each lane, which its integer holds.
    const OF_BLOCK: usize = 32 * 1000;
    let gpu = Gpu::simt();
    // Just below the edge of the window that begins 4 bits above the first elements, and a multiple of its unit.
    let (edge, unit) = (256.0 - power(-45), power(-97));
    for (low, sign) in [(unit, 1.0), (-3.0 * unit, 1.0), (5.0 * unit, -1.0)] {
        let mut elements = vec![sign * edge; OF_BLOCK];
        elements[..256].fill(15.0);
        let opposite: Vec<f64> = elements.iter().map(|x| if *x == 15.0 { 15.0 } else { -x }).collect();
        elements.extend(&opposite);
        let ends = [OF_BLOCK / 2, OF_BLOCK + OF_BLOCK / 2];
        for place in ends {
            let mut numbers = elements.clone();
            numbers[place] = low;
            numbers[ends[0] + ends[1] - place] = 0.0;
            // The first elements, which choose the windows, cancel too.
            numbers[256..512].fill(-15.0);
            numbers[OF_BLOCK + 256..OF_BLOCK + 512].fill(-15.0);
            assert_eq!(by_two_blocks(&gpu, &numbers), low, "{low:e} at {place}");
        }
    }
}

/// The sum by two blocks of one warp.
fn by_two_blocks(gpu: &Gpu, numbers: &[f64]) -> f64 {
    let input = gpu.upload(numbers).unwrap();
    let mut tile_states = gpu.zeroed::<[u64; 2]>(2).unwrap();
    let (mut superaccumulators, mut sum) =
        (gpu.zeroed(words_of_superaccumulator::<Sum, f64>()).unwrap(), gpu.zeroed::<u8>(8).unwrap());
    // SAFETY: the arguments describe one segment, the whole input, with its tile states and a superaccumulator.
    let kernel = unsafe { exact_long_rows::handle::<Sum, f64>() }.with_block(32);
    let arguments = ExactLongRowArgs {
        input: input.view(),
        len: numbers.len(),
        pitch: 0,
        splits: 2,
        tiles: (numbers.len() / 128) as u32,
        longer_splits: 0,
        tile_states: tile_states.view_mut(),
        superaccumulators: superaccumulators.view_mut(),
        finish: 0,
        output: sum.view_mut(),
        term: 0,
    };
    gpu.launch(kernel, (2, 1), arguments).unwrap();
    f64::from_le_bytes(gpu.download(&sum).unwrap().try_into().unwrap())
}

/// Ties that one bit breaks, at distances from just below two words to far below, with exponents in all limbs.
#[test]
fn ties_are_broken_by_bits_in_any_limb() {
    let gpu = Gpu::simt();
    let rows = |exponents: std::ops::Range<i32>, lowest: i32| -> Vec<[i32; 2]> {
        let distances = move |exponent: i32| (76..300).step_by(9).map(move |distance| [exponent, exponent - distance]);
        exponents.step_by(41).flat_map(distances).filter(|&[_, low]| low >= lowest).collect()
    };
    let numbers = |[high, low]: [i32; 2]| {
        [1.0, -1.0].into_iter().flat_map(move |sign| [(high, 1.0), (high - 53, 1.0), (low, sign)])
    };
    let all: Vec<f64> =
        rows(-600..1000, -1074).into_iter().flat_map(numbers).map(|(exponent, sign)| sign * power(exponent)).collect();
    let sums = gpu.reduce_to_buffer(Sum, &gpu.upload(&all).unwrap(), Shape::rows(all.len() / 3, 3)).unwrap();
    for (row, sum) in all.chunks(3).zip(gpu.download(&sums).unwrap()) {
        assert_eq!(sum, row.iter().copied().collect::<ExactSum<f64>>().value(), "{row:?}");
    }
    // Exponents of products are lower.
    let pairs = rows(-900..1000, -2100).into_iter().flat_map(numbers);
    let (x, y): (Vec<f64>, Vec<f64>) =
        pairs.map(|(exponent, sign)| (sign * power(exponent / 2), power(exponent - exponent / 2))).unzip();
    let shape = Shape::rows(x.len() / 3, 3);
    let dots = gpu.reduce_pairs(Dot, &gpu.upload(&x).unwrap(), &gpu.upload(&y).unwrap(), shape).unwrap();
    for ((x, y), dot) in x.chunks(3).zip(y.chunks(3)).zip(gpu.download(&dots).unwrap()) {
        let right = x.iter().copied().zip(y.iter().copied()).collect::<ExactDot<f64>>();
        assert_eq!(dot, right.value(), "{x:?} . {y:?}");
    }
}

/// Offsets that are not in order may queue more chunks than the queue holds. The reducer can still be used afterwards.
#[test]
fn a_segment_reducer_works_after_invalid_offsets() {
    const LEN: u64 = 100_000;
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(73));
    let mut numbers: Vec<f32> = (0..LEN).map(|i| (i % 17) as f32).collect();
    numbers.shuffle(&mut source);
    let input = gpu.upload(&numbers).unwrap();
    // The queue has 55 chunks, and invalid offsets 72, or many more.
    for len in [24, 4000] {
        let none: Vec<u64> = (0..len).map(|i| if i % 2 == 0 { 0 } else { LEN }).collect();
        let good: Vec<u64> = (0..len).map(|i| if i == 0 { 0 } else { LEN - 10_000 }).collect();
        let mut reducer = gpu.segment_reducer(Sum, none.len() - 1, LEN as usize).unwrap();
        let mut sums = gpu.zeroed(reducer.segments()).unwrap();
        for _ in 0..2 {
            reducer.start(&input, &gpu.upload(&none).unwrap(), &mut sums).unwrap();
            reducer.check().unwrap_err();
            reducer.start(&input, &gpu.upload(&good).unwrap(), &mut sums).unwrap();
            reducer.check().unwrap();
            let found = gpu.download(&sums).unwrap();
            assert_eq!(found[0], numbers[..LEN as usize - 10_000].iter().sum::<f32>());
            assert!(found[1..].iter().all(|&sum| sum == 0.0));
        }
    }
}

/// The shortest input that needs a superaccumulator: one segment of two chunks, whose sums have more bits than two
/// words hold.
#[test]
fn the_shortest_segment_of_two_chunks_alone() {
    fn of<T: Exact>(gpu: &Gpu, source: &mut SmallRng) {
        let least = 5 * 1024 * (16 / size_of::<T>());
        for len in [least - 1, least, least + 1] {
            let numbers = exact::numbers::<T>(Data::AnyFinite, len, source);
            let (input, offsets) = (gpu.upload(&numbers).unwrap(), gpu.upload(&[0, len as u64]).unwrap());
            let [sums, ..] = T::results_of_segments(gpu, input.view(), offsets.view()).unwrap();
            let right = numbers.into_iter().collect::<ExactSum<T>>().value();
            exact::same(sums[0], right, &format!("the sum of a segment of {len} {}", T::NAME)).unwrap();
        }
    }
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(74));
    of::<f32>(&gpu, &mut source);
    of::<f64>(&gpu, &mut source);
}

/// If launches overlap, a queue may hold chunks of another launch's input, which is longer. No element is read then.
#[test]
fn chunks_of_another_input_are_not_read() {
    let gpu = Gpu::simt();
    for (len, chunks) in [
        (0, [[[0, 0], [0, 1]], [[0, 0], [5, 3]], [[0, 3], [0, 300_000]], [[0, 2], [u64::MAX, 100_000]]]),
        (10, [[[0, 0], [0, 11]], [[0, 0], [10, 1]], [[0, 0], [8, 3]], [[0, 0], [11, 0]]]),
        // The other launch had shorter chunks and more of them.
        (10_000, [[[0, 2], [0, 10_000]], [[0, 9], [0, 10_000]], [[0, 1], [5000, 5000]], [[0, 1], [0, 0]]]),
    ] {
        let input = gpu.zeroed::<f32>(len).unwrap();
        for chunk in chunks {
            let (chunks, mut status) = (gpu.upload(&chunk).unwrap(), gpu.upload(&[1_u64, 0]).unwrap());
            let (mut partials, mut tickets) = (gpu.zeroed(8).unwrap(), gpu.zeroed(9).unwrap());
            let mut superaccumulators = gpu.zeroed(words_of_superaccumulator::<Sum, f32>()).unwrap();
            let mut sum = gpu.zeroed::<u8>(4).unwrap();
            // SAFETY: there are one chunk and one segment, and memory for the chunk's sum and ticket.
            let kernel = unsafe { exact_long_segments::handle::<Sum, f32>() };
            let arguments = ExactLongSegmentArgs {
                input: input.view(),
                log2_min_tiles: 0,
                chunks: chunks.view(),
                status: status.view_mut(),
                partials: partials.view_mut(),
                tickets: tickets.view_mut(),
                superaccumulators: superaccumulators.view_mut(),
                finish: 0,
                output: sum.view_mut(),
                term: 0,
            };
            gpu.launch(kernel, 2, arguments).unwrap_or_else(|error| panic!("{chunk:?} of {len}: {error}"));
            assert_eq!(gpu.download(&status).unwrap(), [0, 0], "{chunk:?} of {len}");
            assert!(gpu.download(&tickets).unwrap().iter().all(|&ticket| ticket == 0), "{chunk:?} of {len}");
        }
    }
}

/// Only one power of two remains of the products of a row: any bit of a lane's sum of first terms, or of second terms.
#[test]
fn one_bit_of_products_is_not_lost_at_any_distance() {
    let gpu = Gpu::simt();
    let exponents = || [0, 1, 501].into_iter().flat_map(|high| (1..180).map(move |distance| [high, high - distance]));
    for sign in [1.0, -1.0] {
        let (x, y): (Vec<f64>, Vec<f64>) = exponents()
            .flat_map(|[high, low]| [(high, 1.0), (low, sign), (high, -1.0)])
            .map(|(exponent, sign)| (sign * power(exponent / 2), power(exponent - exponent / 2)))
            .unzip();
        let shape = Shape::rows(x.len() / 3, 3);
        let dots = gpu.reduce_pairs(Dot, &gpu.upload(&x).unwrap(), &gpu.upload(&y).unwrap(), shape).unwrap();
        for ([high, low], dot) in exponents().zip(gpu.download(&dots).unwrap()) {
            assert_eq!(dot, sign * power(low), "2^{high}, 2^{low} and -2^{high}");
        }
    }
}

/// A number whose square has a rounding error of 2^-54, and one whose square is half a unit of the sum's last place.
const WITH_ERROR: [f64; 2] = [1.5 + power(-27), power(-26)];

/// Rows whose sums are at a midpoint, but for the rounding errors of squares in some of them. A lane has four rows, or
/// two.
#[test]
fn rounding_errors_of_squares_stay_in_their_rows() {
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(78));
    for len in [2, 4, 8] {
        let all: Vec<f64> = (0..700)
            .flat_map(|_| {
                let mut row = vec![0.0; len];
                row[..2].copy_from_slice(&[if source.random() { WITH_ERROR[0] } else { 1.5 }, WITH_ERROR[1]]);
                row.shuffle(&mut source);
                row
            })
            .collect();
        let input = gpu.upload(&all).unwrap();
        let sums = gpu.reduce_to_buffer(SumOfSquares, &input, Shape::rows(all.len() / len, len)).unwrap();
        for (row, sum) in all.chunks(len).zip(gpu.download(&sums).unwrap()) {
            assert_eq!(sum, row.iter().map(|&x| (x, x)).collect::<ExactDot<f64>>().value(), "{row:?}");
        }
    }
}

/// The rounding errors of products at any place count, beside large products that cancel.
#[test]
fn rounding_errors_of_products_remain_beside_large_ones() {
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(79));
    let [x, half] = WITH_ERROR;
    for len in [4, 16, 70] {
        let all: Vec<[f64; 2]> = (0..100)
            .flat_map(|_| {
                let mut row = vec![[0.0; 2]; len];
                row[..4].copy_from_slice(&[[x, x], [half, half], [1e200, 1.0], [1e200, -1.0]]);
                row.shuffle(&mut source);
                row
            })
            .collect();
        let [x, y] = [0, 1].map(|which| gpu.upload(&all.iter().map(|pair| pair[which]).collect::<Vec<_>>()).unwrap());
        let dots = gpu.download(&gpu.reduce_pairs(Dot, &x, &y, Shape::rows(100, len)).unwrap()).unwrap();
        let right = 2.25 + 3.0 * power(-27) + power(-51);
        assert!(dots.iter().all(|&dot| dot == right), "{len} pairs: {dots:?}, not {right:?}");
    }
}
