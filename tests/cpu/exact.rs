//! Exact sums of floats in the executor.

use kernels::reduce::exact::long_rows::{ExactLongRowArgs, exact_long_rows, words_of_superaccumulator};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use test_support::by_shape::ByShape;
use test_support::exact::{self, Data};
use test_support::shape::Shape;
use test_support::times;
use warpfold::exact::ExactSum;
use warpfold::ops::{Sum, SumOfSquares};
use warpfold::{Error, Gpu};

use crate::exact_launches::Launched;

#[test]
fn sums_of_any_data_are_exact() {
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(38));
    for len in [0, 1, 2, 31, 127, 128, 4095, 8193, 12_000] {
        exact::check(&gpu, len, &mut source).unwrap();
    }
    let (count, most) = times((3, 6_000), (60, 300_000));
    for _ in 0..count {
        exact::check(&gpu, source.random_range(0..most), &mut source).unwrap();
    }
}

#[test]
fn sums_of_rows_and_columns_are_exact() {
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(39));
    // Each number of lanes and of vectors, with and without padding; rows in one block, and in several.
    for (rows, len) in [
        (0, 5),
        (3, 0),
        (40, 1),
        (300, 4),
        (200, 8),
        (70, 16),
        (37, 33),
        (21, 64),
        (19, 127),
        (9, 250),
        (7, 512),
        (5, 600),
    ] {
        exact::rows_and_columns(&gpu, rows, len, &mut source).unwrap();
    }
    exact::rows_and_columns(&gpu, 2, 9_000, &mut source).unwrap();
    for _ in 0..times(2, 300) {
        let (rows, len) = (source.random_range(1..20), source.random_range(0..700));
        exact::rows_and_columns(&gpu, rows, len, &mut source).unwrap();
    }
}

#[test]
fn sums_of_columns_are_exact() {
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(40));
    // Few rows and many columns; as many rows as columns; rows shared by blocks; folded rows; more rows than one warp
    // sums.
    for (batches, rows, columns) in [
        (1, 0, 3),
        (1, 1, 1),
        (1, 3, 1030),
        (1, 16, 600),
        (1, 130, 70),
        (1, 70, 64),
        (3, 33, 9),
        (2, 200, 4),
        (1, 1500, 7),
        (1, 5_000, 2),
        (1, 20_000, 1),
    ] {
        exact::columns(&gpu, batches, rows, columns, &mut source).unwrap();
    }
    for _ in 0..times(2, 200) {
        let (rows, columns) = (source.random_range(1..300), source.random_range(1..60));
        exact::columns(&gpu, source.random_range(1..4), rows, columns, &mut source).unwrap();
    }
}

#[test]
fn sums_of_middle_axes_are_exact() {
    let gpu = Gpu::simt();
    let all: Vec<f32> = (0..2 * 5 * 3).map(|i| if i % 3 == 0 { 1e20 } else { i as f32 }).collect();
    let sums = gpu.reduce_to_buffer(Sum, &gpu.upload(&all).unwrap(), Shape::axis(&[2, 5, 3], 1).unwrap()).unwrap();
    let expected = [5e20, 35.0, 40.0, 5e20, 110.0, 115.0];
    assert_eq!(gpu.download(&sums).unwrap(), expected);
    let error = gpu.reduce_to_buffer(Sum, &gpu.upload(&all).unwrap(), Shape::rows(7, 5)).unwrap_err();
    assert!(error.to_string().contains("35"), "{error}");
}

/// A block that sums all of long columns fills its bins.
#[test]
fn bins_of_long_columns_propagate_carries() {
    const ROWS: usize = 5000;
    const COLUMNS: usize = 8;
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(41));
    // A bin's largest element is just below 2^17; an element far below makes warps sum everything again.
    let full = |i: usize| if i < COLUMNS { 1e-300 } else { 131_071.999_999 };
    let wide = exact::numbers::<f64>(Data::Wide, ROWS * COLUMNS, &mut source);
    let large = exact::numbers::<f64>(Data::Large, ROWS * COLUMNS, &mut source);
    let of_any = [(0..ROWS * COLUMNS).map(full).collect(), wide, large.iter().map(|x| x / 8192.0).collect::<Vec<_>>()];
    for (which, all) in of_any.into_iter().enumerate() {
        // One block has the whole matrix.
        let sums = f64::of_columns(&gpu, &all, [1, ROWS, COLUMNS], [2, 1, 1]);
        for (column, sum) in sums.into_iter().enumerate() {
            let right = (0..ROWS).map(|row| all[row * COLUMNS + column]).collect::<ExactSum<f64>>().value();
            assert_eq!(sum, right, "column {column} of data {which}");
        }
    }
}

/// The sum of a whole input by `splits` blocks of one warp, which share tiles of 128 elements.
fn by_warps(gpu: &Gpu, numbers: &[f32], splits: u32) -> f32 {
    let input = gpu.upload(numbers).unwrap();
    let all = numbers.len().div_ceil(128) as u32;
    let mut tile_states = gpu.zeroed::<[u64; 2]>(splits as usize).unwrap();
    let (mut superaccumulators, mut sum) =
        (gpu.zeroed(words_of_superaccumulator::<Sum, f32>()).unwrap(), gpu.zeroed::<u8>(4).unwrap());
    // SAFETY: the arguments describe one segment, the whole input, with its tile states and a superaccumulator.
    let kernel = unsafe { exact_long_rows::handle::<Sum, f32>() }.with_block(32);
    let arguments = ExactLongRowArgs {
        input: input.view(),
        len: numbers.len(),
        pitch: 0,
        splits,
        tiles: all / splits,
        longer_splits: all % splits,
        tile_states: tile_states.view_mut(),
        superaccumulators: superaccumulators.view_mut(),
        finish: 0,
        output: sum.view_mut(),
        term: 0,
    };
    gpu.launch(kernel, (splits, 1), arguments).unwrap();
    assert!(gpu.download(&superaccumulators).unwrap().iter().all(|&limb| limb == 0));
    assert!(gpu.download(&tile_states).unwrap().iter().all(|&words| words == [0, 0]));
    f32::from_le_bytes(gpu.download(&sum).unwrap().try_into().unwrap())
}

/// The sum on the host.
fn exact_sum_of(numbers: &[f32]) -> f32 {
    numbers.iter().copied().collect::<ExactSum<f32>>().value()
}

/// A lane's integers hold 511 elements. The library's plans give a lane more than that only for some fifty million
/// elements.
#[test]
fn lanes_take_more_elements_than_their_integers_hold() {
    let gpu = Gpu::simt();
    // Just below a window's edge, all of one sign: the largest integers.
    let edge = 16.0 - 16.0 * f32::EPSILON / 2.0;
    for (x, steps) in [(edge, 31), (edge, 32), (-edge, 33), (1.0, 70), (-f32::MAX, 70), (f32::from_bits(1), 70)] {
        for splits in [1, 2] {
            // With a remainder of less than a vector, of part of a tile, and of more than one tile.
            for more in [3, 103, 300] {
                let numbers = vec![x; (splits * steps * 512) as usize + more];
                let case = format!("{steps} steps of {x:e} and {more} more in {splits} splits");
                assert_eq!(by_warps(&gpu, &numbers, splits), exact_sum_of(&numbers), "{case}");
            }
        }
    }
}

/// The sum of a lane's elements goes to limbs before the sum of all lanes exceeds 64 bits.
#[test]
fn lanes_take_more_elements_than_64_bits_hold() {
    let gpu = Gpu::simt();
    let edge = 16.0 - 16.0 * f32::EPSILON / 2.0;
    for sign in [1.0, -1.0] {
        // 600 steps of 16 elements of 2^45 units in each of 32 lanes. The last step needs another window.
        let mut numbers = vec![sign * edge; 600 * 512];
        numbers.extend([1e30, -1e30]);
        assert_eq!(by_warps(&gpu, &numbers, 1), exact_sum_of(&numbers));
    }
}

/// Each warp accumulates residuals in an integer of 64 bits: 512 steps of the largest fill it.
#[test]
fn residuals_fill_their_integer() {
    let gpu = Gpu::simt();
    // In the window below 2^4 these elements are entirely residual, of the largest magnitude.
    let left = 2_f32.powi(-42) * (1.0 - f32::EPSILON);
    for sign in [1.0, -1.0] {
        let mut numbers = vec![sign * left; 1100 * 512 + 5];
        numbers.iter_mut().step_by(512).for_each(|x| *x = 15.0);
        assert_eq!(by_warps(&gpu, &numbers, 1), exact_sum_of(&numbers));
        // Without the large elements, only residuals remain.
        let opposite = numbers.clone().into_iter().map(|x| if x == 15.0 { -15.0 } else { x });
        let both: Vec<f32> = numbers.iter().copied().chain(opposite).collect();
        assert_eq!(by_warps(&gpu, &both, 1), exact_sum_of(&both));
    }
}

/// A lane adds the sums of several blocks, in windows that share no bit.
#[test]
fn sums_of_blocks_may_be_far_apart() {
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(40));
    for splits in [33_u32, 40, 70] {
        let numbers: Vec<f32> = (0..splits)
            .flat_map(|_| {
                let scale = 2_f32.powi(source.random_range(-120..120));
                (0..512).map(|i| scale * (i - 300) as f32).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(by_warps(&gpu, &numbers, splits), exact_sum_of(&numbers));
        let both: Vec<f32> = numbers.iter().copied().chain(numbers.iter().rev().map(|x| -x)).chain([3.0]).collect();
        assert_eq!(by_warps(&gpu, &both, 2 * splits), 3.0);
    }
}

/// The sum of one warp may be a single unit, and the sums of the others much larger.
#[test]
fn one_unit_beside_larger_ones_is_not_lost() {
    let gpu = Gpu::simt();
    // Elements of eight warps; the last warp's sum is 0.
    let mut numbers = vec![0.0; 4096];
    for (warp, x) in [1.0, -1.0, f32::from_bits(1), 1.0, -1.0, 1.0, -1.0, 1.0].into_iter().enumerate() {
        numbers[512 * warp + 3 * warp] = x;
    }
    numbers[4000] = -1.0;
    assert_eq!(gpu.sum(&gpu.upload(&numbers).unwrap()).unwrap(), f32::from_bits(1));
}

/// A block's integer may be 1, which must not be taken for 0.
#[test]
fn one_unit_of_the_smallest_number_is_not_lost() {
    let gpu = Gpu::simt();
    let least = f32::from_bits(1);
    let mut numbers = vec![0.0; 50_000];
    for place in [0, 20_000, 49_999] {
        numbers[place] = least;
    }
    assert_eq!(gpu.sum(&gpu.upload(&numbers).unwrap()).unwrap(), 3.0 * least);
}

#[test]
fn workspaces_are_left_clean() {
    exact::workspaces_are_left_clean(&Gpu::simt()).unwrap();
}

#[test]
fn the_case_that_no_order_of_additions_gets_right() {
    let gpu = Gpu::simt();
    let numbers = [1e20_f32, 1.0, -1e20, 3.0].repeat(50);
    assert_eq!(gpu.sum(&gpu.upload(&numbers).unwrap()).unwrap(), 200.0);
}

/// Lengths at which segments are summed differently: a vector, a worker's vectors, a batch's vectors, the maximum of a
/// warp.
fn limits(vector: usize, source: &mut SmallRng) -> Vec<usize> {
    let limits = [0, 1, 2, 4, 8, 124, 128, 132, 256, 508, 512].map(|vectors| vectors * vector);
    let mut lengths: Vec<usize> = limits.iter().flat_map(|&len| [len.saturating_sub(1), len, len + 1]).collect();
    lengths.shuffle(source);
    lengths
}

#[test]
fn sums_of_segments_are_exact() {
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(41));
    for kinds in [&exact::ALL[..], &[Data::Normal]] {
        exact::segments(&gpu, &limits, kinds, &mut source).unwrap();
    }
    // All segments with the same kind of data, and each with a random kind.
    for kinds in exact::ALL.iter().map(std::slice::from_ref).chain([&exact::ALL[..]]) {
        let short = |vector, source: &mut SmallRng| -> Vec<usize> {
            (0..40).map(|_| source.random_range(0..40 * vector)).map(|len| len * len / (40 * vector)).collect()
        };
        exact::segments(&gpu, &short, kinds, &mut source).unwrap();
    }
    // Segments of equal length, no segments, and empty ones.
    for (count, len) in [(70, 1), (40, 16), (33, 3), (0, 0), (1, 0), (100, 0)] {
        exact::segments(&gpu, &|_, _| vec![len; count], &[Data::Normal, Data::Rising], &mut source).unwrap();
    }
    for _ in 0..times(2, 300) {
        let any = |_: usize, source: &mut SmallRng| -> Vec<usize> {
            let most = source.random_range(1..2000);
            (0..source.random_range(0..60)).map(|_| source.random_range(0..most)).collect()
        };
        exact::segments(&gpu, &any, &exact::ALL, &mut source).unwrap();
    }
}

/// Enough segments that a warp has several.
#[test]
fn sums_of_many_segments_are_exact() {
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(42));
    let many = |_: usize, source: &mut SmallRng| (0..9000).map(|_| source.random_range(0..6)).collect();
    exact::segments(&gpu, &many, &[Data::Normal], &mut source).unwrap();
}

#[test]
fn sums_of_long_segments_are_exact() {
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(43));
    // One chunk, one chunk and a tile, and several chunks, at and near the boundaries of tiles.
    let long = |vector: usize, _: &mut SmallRng| {
        [(513, 0), (1024, 1), (4096, -1), (4096, 0), (5119, 3), (5120, 0), (5120, 1), (9000, 2)]
            .iter()
            .flat_map(|&(vectors, more)| [(vectors * vector).saturating_add_signed(more), 3])
            .collect()
    };
    for kinds in [&exact::ALL[..], &[Data::Normal]] {
        exact::segments(&gpu, &long, kinds, &mut source).unwrap();
    }
    exact::segments_leave_workspaces_clean(&gpu).unwrap();
}

/// All squares are exact in one window, and only their rounding errors break a tie.
#[test]
fn rounding_errors_of_squares_in_long_segments_count() {
    let gpu = Gpu::simt();
    // In one chunk, and in several.
    for len in [4096, 40_960] {
        let mut numbers = vec![0.0_f64; len];
        // The sum is 2^11 + 2^-15 + 2^-43, and half a unit of its last place, 2^-42.
        numbers[..2048].fill(1.0 + exact::power(-27));
        numbers[len - 1] = exact::power(-21);
        let offsets = gpu.upload(&[0, len as u64]).unwrap();
        let sums = gpu.reduce_segments(SumOfSquares, &gpu.upload(&numbers).unwrap(), &offsets).unwrap();
        let right = 2048.0 + exact::power(-15) + exact::power(-41);
        assert_eq!(gpu.download(&sums).unwrap(), [right], "{len} elements");
    }
}

#[test]
fn invalid_offsets_of_exact_segments_are_reported() {
    let gpu = Gpu::simt();
    let numbers = gpu.upload(&vec![1.0_f32; 100_000]).unwrap();
    let sums = |offsets: &[u64]| gpu.reduce_segments(Sum, &numbers, &gpu.upload(offsets).unwrap());
    for wrong in [[0_u64, 5, 4, 9], [0, 5, 9, 100_001], [0, u64::MAX, 5, 7], [90_000, 100_000, 0, 100_000]] {
        let error = sums(&wrong).unwrap_err();
        let first = wrong.windows(2).position(|ends| ends[0] > ends[1] || ends[1] > 100_000).unwrap() as u64;
        assert!(matches!(error, Error::Offsets { segment } if segment == first), "{wrong:?}: {error}");
    }
    // More long segments than valid offsets can have.
    let many: Vec<u64> = (0..4000).map(|i| if i % 2 == 0 { 0 } else { 100_000 }).collect();
    assert!(matches!(sums(&many), Err(Error::Offsets { segment: 1 })));
    assert_eq!(gpu.download(&sums(&[0, 1, 90_001, 90_001]).unwrap()).unwrap(), [1.0, 90_000.0, 0.0]);
    let message = sums(&[]).unwrap_err().to_string();
    assert!(message.contains("the array of offsets has 0 elements"), "{message}");
    assert_eq!(sums(&[3]).unwrap().len(), 0);
    let others = Gpu::simt().upload(&[0_u64, 1]).unwrap();
    assert!(matches!(gpu.reduce_segments(Sum, &numbers, &others), Err(Error::OtherDevice { .. })));
}
