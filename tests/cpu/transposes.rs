//! Transposes of any element size, shape, pitch and alignment in the executor.

use proptest::prelude::*;
use test_support::tiles::TILE_CHECKS;
use test_support::transposes::{
    ALIGNED, CHECKS, Case, Check, EVERY_SIZE, IN_PLACE_CHECKS, LARGE, MANY, PERMUTE_CHECKS, SCALED_CHECKS, SIDES, TALL,
};
use test_support::{executor, times};
use warpfold::{ArrayView, ArrayViewMut, Error, Gpu, Layout, Plain, Profile};

fn any_side() -> impl Strategy<Value = usize> {
    prop_oneof![prop::sample::select(&SIDES[..]), 0_usize..300, Just(2000)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_size_shape_pitch_and_alignment(
        which in 0..CHECKS.len(),
        sides in (any_side(), any_side()).prop_filter("not too many", |(a, b)| a * b <= 70_000),
        batch in 0_usize..4,
        pads in prop::array::uniform2(0_usize..6),
        offsets in prop::array::uniform2(0_usize..20),
        aligned: bool,
        seed: u64,
    ) {
        // Half of the cases allow 16-byte accesses, as far as the sides allow them.
        let (pads, offsets) = if aligned { ([0; 2], [0; 2]) } else { (pads, offsets) };
        let case = Case { rows: sides.0, columns: sides.1, batch, pads, offsets, seed };
        (CHECKS[which].1)(&Gpu::simt(), &case).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn every_number_scaled(
        which in 0..SCALED_CHECKS.len(),
        sides in (any_side(), any_side()).prop_filter("not too many", |(a, b)| a * b <= 20_000),
        batch in 0_usize..3,
        pads in prop::array::uniform2(0_usize..6),
        offsets in prop::array::uniform2(0_usize..20),
        aligned: bool,
        seed: u64,
    ) {
        let (pads, offsets) = if aligned { ([0; 2], [0; 2]) } else { (pads, offsets) };
        let case = Case { rows: sides.0, columns: sides.1, batch, pads, offsets, seed };
        (SCALED_CHECKS[which].1)(&Gpu::simt(), &case).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn every_square_in_place(
        which in 0..IN_PLACE_CHECKS.len(),
        side in prop_oneof![prop::sample::select(&SIDES[..]), 0_usize..300],
        batch in 0_usize..3,
        pad in 0_usize..6,
        before in 0_usize..20,
        seed: u64,
    ) {
        let case = Case { rows: side, columns: side, batch, pads: [pad; 2], offsets: [before; 2], seed };
        (IN_PLACE_CHECKS[which].1)(&Gpu::simt(), &case).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn elements_of_any_size(
        which in 0..EVERY_SIZE.len(),
        sides in (1_usize..60, 1_usize..60),
        seed: u64,
    ) {
        EVERY_SIZE[which].run(&executor(), sides.0, sides.1, seed).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn every_order_of_three_axes(
        which in 0..PERMUTE_CHECKS.len(),
        shape in prop::array::uniform3(prop_oneof![
            3 => 0_usize..20,
            2 => Just(1_usize),
            1 => Just(16),
            1 => Just(64),
            1 => 20_usize..70,
        ]),
        offsets in prop::array::uniform2(0_usize..20),
        aligned: bool,
        seed: u64,
    ) {
        let offsets = if aligned { [0; 2] } else { offsets };
        (PERMUTE_CHECKS[which].1)(&Gpu::simt(), shape, offsets, seed).map_err(TestCaseError::fail)?;
    }
}

/// A number of rows or columns of contiguous segments: a few, up to those of a tile, or many.
fn any_extent() -> impl Strategy<Value = usize> {
    prop_oneof![2_usize..8, 8_usize..120, Just(1000)]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: times(40, 100),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn matrices_of_segments(
        which in 0..PERMUTE_CHECKS.len(),
        rows in any_extent(),
        columns in any_extent(),
        len in prop_oneof![6 => 2_usize..20, 2 => 20_usize..600, 1 => 7_900_usize..10_100],
        offsets in prop::array::uniform2(0_usize..20),
        aligned: bool,
        seed: u64,
    ) {
        let offsets = if aligned { [0; 2] } else { offsets };
        let rows = rows.min(20_000 / len).max(2);
        let columns = columns.min(20_000 / (rows * len)).max(2);
        (PERMUTE_CHECKS[which].1)(&Gpu::simt(), [rows, columns, len], offsets, seed).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn thin_matrices_of_any_pitch_and_alignment(
        which in 0..CHECKS.len(),
        narrow in prop_oneof![2_usize..20, 2_usize..140],
        long in 1_usize..2500,
        is_short_wide: bool,
        batch in 1_usize..4,
        pads in prop::array::uniform2(prop_oneof![3 => Just(0_usize), 1 => 1_usize..6]),
        offsets in prop::array::uniform2(0_usize..40),
        seed: u64,
    ) {
        let long = (16 * narrow + long).min(120_000 / narrow);
        let (rows, columns) = if is_short_wide { (narrow, long) } else { (long, narrow) };
        let case = Case { rows, columns, batch, pads, offsets, seed };
        (CHECKS[which].1)(&Gpu::simt(), &case).map_err(TestCaseError::fail)?;
    }
}

/// The longest segments that are transposed by tiles, for each access width, and longer ones; and matrices so narrow
/// that all of their rows are one segment of the input, loaded by single elements.
#[test]
fn long_segments_and_narrow_matrices_of_short_ones() {
    let long = [[2, 3, 7999], [3, 2, 8999], [2, 3, 10_016], [3, 2, 16_385]];
    let narrow = [[900, 16, 3], [900, 20, 3], [700, 8, 31], [1100, 13, 5], [2000, 2, 9]];
    // Without checks, which take several times as long: `matrices_of_segments` has such segments, too.
    let long = long.map(|shape| (executor(), shape));
    for (i, (gpu, shape)) in long.into_iter().chain(narrow.map(|shape| (Gpu::simt(), shape))).enumerate() {
        for (k, (_, check)) in PERMUTE_CHECKS.iter().enumerate() {
            // Each element size meets each alignment, and so does each shape.
            let offsets = [[0; 2], [i, 5], [1, 0]];
            let first = (i + k) % offsets.len();
            for offsets in offsets.iter().cycle().skip(first).take(times(1, offsets.len())) {
                check(&gpu, shape, *offsets, i as u64).unwrap();
            }
        }
    }
}

#[test]
fn short_rows_of_segments_are_short_wide() {
    use kernels::transpose::packed::segments_short_wide::is_short_wide;
    assert_eq!(
        [is_short_wide(3, 42, 1), is_short_wide(8, 4, 4), is_short_wide(2, 31, 2), is_short_wide(2, 8, 8)],
        [true, false, true, false]
    );
}

/// Long segments of 1- and 2-byte elements. In the output, an unaligned segment spans one more vector.
#[test]
fn long_segments_of_bytes_at_any_alignment() {
    for (_, check) in &PERMUTE_CHECKS[..2] {
        for (len, offset) in [(18_016, 0), (18_016, 3), (18_023, 0)] {
            check(&executor(), [2, 1, len], [0, offset], 1).unwrap();
            check(&executor(), [2, 2, len], [1, offset], 1).unwrap();
        }
    }
}

#[test]
fn thin_matrices_of_every_width() {
    for (_, check) in CHECKS {
        for narrow in [1, 2, 3, 4, 5, 8, 16, 20, 48] {
            for (rows, columns) in [(narrow, 3000), (3000, narrow)] {
                let case = Case { rows, columns, batch: 1, pads: [0; 2], offsets: [0; 2], seed: narrow as u64 };
                check(&Gpu::simt(), &case).unwrap();
            }
        }
    }
}

/// Tall-skinny matrices by the kernels themselves, with blocks of full capacity, which the library uses only for long
/// matrices.
#[test]
fn thin_matrices_of_full_blocks() {
    use kernels::transpose::packed::{short_wide as rows, tall_skinny as columns};
    let gpu = executor();
    let refused = |error: Error| panic!("{error}");
    macro_rules! check {
        ($($type:ident in $tall_skinny:literal, $short_wide:literal;)*) => {$(
            let size = size_of::<$type>();
            for few in [3, 40, 128] {
                let width = rows::max_columns(few, size);
                let long = 2 * width - 3;
                let elements: Vec<$type> = (0..few * long).map(|i| (i * 7 / 3) as $type).collect();
                let expected = transposed(&elements, few, long);
                let mut output = gpu.zeroed::<$type>(few * long).unwrap();
                // SAFETY: the arguments are those of the plan for a matrix that the views hold.
                let kernel = unsafe { rows::short_wide::handle::<$type, $short_wide>() };
                let blocks = (long + rows::halo_columns(few, size)).div_ceil(width) as u32;
                let input = gpu.upload(&elements).unwrap();
                let arguments = rows::short_wide::Args {
                    input: input.view(),
                    output: output.view_mut(),
                    rows: few as u32,
                    columns: long,
                    input_pitch: long,
                    input_batch_pitch: few * long,
                    output_batch_pitch: few * long,
                    width: width as u32,
                    blocks,
                    vectors_per_segment: rows::vectors_per_segment(few, width, size) as u32,
                    segment_pitch: rows::segment_pitch(few, width, size) as u32,
                };
                gpu.launch(kernel, blocks, arguments).unwrap_or_else(refused);
                assert!(gpu.download(&output).unwrap() == expected, "{few} rows of {long} elements of {size} bytes");

                // The second block of three uses its full capacity.
                let height = columns::max_positions(few, size);
                let long = 3 * height - 3;
                let elements: Vec<$type> = (0..few * long).map(|i| (i * 7 / 3) as $type).collect();
                let expected = transposed(&elements, long, few);
                let mut output = gpu.zeroed::<$type>(few * long).unwrap();
                // SAFETY: as above.
                let kernel = unsafe { columns::tall_skinny::handle::<$type, $tall_skinny>() };
                let blocks = (long + columns::halo_rows(size)).div_ceil(height) as u32;
                let input = gpu.upload(&elements).unwrap();
                let arguments = columns::tall_skinny::Args {
                    input: input.view(),
                    output: output.view_mut(),
                    rows: long,
                    columns: few as u32,
                    output_pitch: long,
                    input_batch_pitch: few * long,
                    output_batch_pitch: few * long,
                    height: height as u32,
                    blocks,
                };
                let profile = gpu.profile(|| gpu.launch(kernel, blocks, arguments)).unwrap();
                if (columns_at_once(&profile) >= 4) != (size >= 4) {
                    panic!("{few} columns of {long} elements of {size} bytes: {:?}", profile.kernels[0].lines);
                }
                assert!(gpu.download(&output).unwrap() == expected, "{few} columns of {long} elements of {size} bytes");
            }
        )*};
    }
    check! {
        u8 in 49152, 32768;
        u16 in 24576, 16384;
        u32 in 12288, 8192;
        u64 in 6144, 4096;
    }
}

/// The number of consecutive stores of a thread that processes a whole block of a tall-skinny matrix: source lines with
/// equal request counts.
fn columns_at_once(profile: &Profile) -> usize {
    let lines = profile.kernels[0].lines.iter().filter(|line| line.file.ends_with("tall_skinny.rs"));
    let requests: Vec<u64> = lines.map(|line| line.counters.global_stores.requests).filter(|&n| n > 0).collect();
    let alike = |count: &u64| requests.iter().filter(|other| *other == count).count();
    requests.iter().map(alike).max().expect("something is stored")
}

fn transposed<T: Copy>(elements: &[T], rows: usize, columns: usize) -> Vec<T> {
    (0..rows * columns).map(|i| elements[i % rows * columns + i / rows]).collect()
}

/// Large matrices whose columns are not whole sectors use different tiles from small ones.
#[test]
fn large_matrices_at_any_alignment() {
    // Without checks, which take several times as long.
    let gpu = executor();
    for (i, ((_, check), bytes)) in CHECKS.iter().zip([1, 2, 4, 16, 4, 8, 8, 16]).enumerate() {
        // Types of one size use the same kernels.
        let is_first = CHECKS[..i].iter().zip([1, 2, 4, 16, 4, 8, 8, 16]).all(|(_, before)| before != bytes);
        for case in LARGE.into_iter().filter(|_| times(is_first, true)) {
            check(&gpu, &Case { seed: i as u64, ..as_many_bytes(case, bytes) }).unwrap();
        }
    }
    for (i, ((_, check), bytes)) in SCALED_CHECKS.iter().zip([2, 2, 4, 8, 8, 16]).enumerate() {
        for case in [LARGE[3], ALIGNED] {
            check(&gpu, &Case { seed: i as u64, ..as_many_bytes(case, bytes) }).unwrap();
        }
    }
}

/// A case scaled to `size`-byte elements: a tile has fewer elements the larger they are, so the number of tiles stays
/// the same.
fn as_many_bytes(case: Case, size: usize) -> Case {
    let size = times(size, 1);
    let (batch, columns) = (case.batch.div_ceil(size).max(case.batch.min(2)), (case.columns / size) | 1);
    match case {
        Case { batch: 1, rows: 2047, .. } => Case { columns, ..case },
        _ => Case { batch, ..case },
    }
}

#[test]
fn many_small_matrices() {
    let mut launched = Vec::new();
    for (seed, (name, check)) in (0..).zip(CHECKS.iter().chain(&SCALED_CHECKS)) {
        let gpu = Gpu::simt();
        let checked = || {
            check(&gpu, &Case { seed, ..MANY }).unwrap_or_else(|error| panic!("{name}: {error}"));
            Ok(())
        };
        launched.extend(gpu.profile(checked).unwrap().kernels.into_iter().map(|kernel| kernel.kernel));
    }
    for of_elements in ["u8_256", "u16_256", "u32_256", "u64_256", "u128_256"] {
        let name = format!("register_tiles_{of_elements}");
        assert!(launched.contains(&name), "{name} is not of {launched:?}");
    }
    for of_numbers in ["f16_256", "bf16_256", "f32_256", "f64_256", "Complex32_256", "Complex64_256"] {
        let name = format!("scaled_register_tiles_{of_numbers}");
        assert!(launched.contains(&name), "{name} is not of {launched:?}");
    }
}

#[test]
fn tall_matrices_are_transposed_in_panels() {
    let gpu = executor();
    let by_name = |checks: &[(&str, Check)], name| checks.iter().find(|check| check.0 == name).unwrap().1;
    let [vectors, sector_aligned] = TALL;
    by_name(&CHECKS, "u8")(&gpu, &sector_aligned).unwrap();
    // Panels of larger elements have fewer rows.
    by_name(&CHECKS, "f64")(&gpu, &Case { rows: 32_771, columns: 131, ..sector_aligned }).unwrap();
    by_name(&SCALED_CHECKS, "f64")(&gpu, &Case { rows: 32_771, columns: 131, ..sector_aligned }).unwrap();
    by_name(&CHECKS, "complex f64")(&gpu, &Case { rows: 8200, columns: 34, ..vectors }).unwrap();
    by_name(&SCALED_CHECKS, "complex f64")(&gpu, &Case { rows: 8200, columns: 34, ..vectors }).unwrap();
}

#[test]
fn many_squares_in_place() {
    // 16-byte aligned, and enough matrices that the large tiles are used.
    let case = Case { rows: 144, columns: 144, batch: 90, pads: [0; 2], offsets: [0; 2], seed: 1 };
    for (name, check) in IN_PLACE_CHECKS {
        check(&Gpu::simt(), &case).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// The number of additional passes through shared memory because of bank conflicts.
fn bank_conflicts<T: Plain + Default>(rows: usize, columns: usize) -> u64 {
    let gpu = Gpu::simt();
    let input = gpu.upload(&vec![T::default(); rows * columns]).unwrap();
    let matrix = input.view().reshape(&[rows, columns]).unwrap();
    gpu.profile(|| gpu.transpose(matrix).map(drop)).unwrap().bank_conflicts()
}

/// Bank conflicts in place, with enough squares that the large tiles are used.
fn bank_conflicts_in_place<T: Plain + Default>(side: usize, batch: usize) -> u64 {
    let gpu = Gpu::simt();
    let matrices = gpu.upload(&vec![T::default(); batch * side * side]).unwrap();
    let mut matrices = matrices.reshape(&[batch, side, side]).unwrap();
    gpu.profile(|| gpu.transpose_in_place(&mut matrices)).unwrap().bank_conflicts()
}

#[test]
fn transposes_have_no_bank_conflicts() {
    for (name, _, conflicts) in TILE_CHECKS {
        assert_eq!(conflicts(&Gpu::simt(), 512, 512).unwrap(), 0, "{name}");
    }
    // By sector-aligned tiles.
    assert_eq!(bank_conflicts::<u32>(1039, 1041), 0);
    assert_eq!(bank_conflicts::<u64>(1039, 1041), 0);
    // By 4-byte accesses.
    for (rows, columns) in [(61, 67), (161, 167)] {
        assert_eq!(bank_conflicts::<u32>(rows, columns) + bank_conflicts::<u64>(rows, columns), 0);
    }
    // By micro-tiles that two threads share.
    assert_eq!(bank_conflicts_in_place::<u8>(256, 90), 0);
    assert_eq!(bank_conflicts_in_place::<u16>(256, 30), 0);
    assert_eq!(bank_conflicts_in_place::<u32>(256, 30), 0);
}

/// For bytes, the rows of neighbouring lanes are eight apart.
#[test]
fn short_wide_bytes_are_read_in_few_passes() {
    let gpu = Gpu::simt();
    for rows in [40, 65, 100, 127, 128] {
        let input = gpu.upload(&vec![1_u8; rows * 4001]).unwrap().reshape(&[rows, 4001]).unwrap();
        let profile = gpu.profile(|| gpu.transpose(&input).map(drop)).unwrap();
        let ways = profile.kernel("short_wide_u8_32768").shared_loads.ways().unwrap();
        assert!(ways < 2.7, "{rows} rows: {ways} passes for one");
    }
}

#[test]
fn tiles_of_every_size() {
    for (i, (name, check, _)) in (0..).zip(TILE_CHECKS) {
        for (rows, columns) in [(16, 16), (48, 272), (272, 48), (528, 400)] {
            check(&Gpu::simt(), rows, columns, i).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

/// Every size that the library moves, by every call.
#[test]
fn elements_of_1_to_64_bytes() {
    let gpu = executor();
    for checks in &EVERY_SIZE {
        for (rows, columns) in [(2, 3), (19, 7)] {
            checks.run(&gpu, rows, columns, checks.size as u64).unwrap();
        }
    }
    // With checks of the kernels' accesses: the units are of 1, 2, 4, 8 and 16 bytes.
    for size in [3, 6, 12, 24, 48] {
        EVERY_SIZE[size - 1].run(&Gpu::simt(), 33, 40, 1).unwrap();
    }
}

/// What an outside trial found: no error, and 0, 3, 1, 2, 4, 5.
#[test]
fn four_numbers_are_one_element() {
    let gpu = Gpu::simt();
    let matrix = gpu.upload(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0].map(|x| [x; 4])).unwrap().reshape(&[2, 3]).unwrap();
    let transposed = gpu.download(&gpu.transpose(&matrix).unwrap()).unwrap();
    assert_eq!(transposed, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0].map(|x| [x; 4]));
}

#[test]
fn elements_of_more_bytes_and_of_none() {
    fn moved<const N: usize>() {
        let gpu = Gpu::simt();
        let element = |i: u8| -> [u8; N] { std::array::from_fn(|byte| i.wrapping_mul(37) ^ byte as u8) };
        let numbers: Vec<[u8; N]> = (0..6).map(element).collect();
        let matrix = gpu.upload(&numbers).unwrap().reshape(&[2, 3]).unwrap();
        let expected = [0, 3, 1, 4, 2, 5].map(element);
        assert_eq!(gpu.download(&gpu.transpose(&matrix).unwrap()).unwrap(), expected, "{N} bytes");
        let mut square = gpu.upload(&numbers[..4]).unwrap().reshape(&[2, 2]).unwrap();
        gpu.transpose_in_place(&mut square).unwrap();
        assert_eq!(gpu.download(&square).unwrap(), [0, 2, 1, 3].map(element), "{N} bytes");
    }
    moved::<0>();
    moved::<65>();
    moved::<128>();
    moved::<1000>();
}

#[test]
fn mismatched_arrays_are_errors() {
    let gpu = Gpu::simt();
    let six = gpu.upload(&[1_u16; 6]).unwrap().reshape(&[2, 3]).unwrap();
    let mut six_out = gpu.upload(&[7_u16; 6]).unwrap().reshape(&[2, 3]).unwrap();
    let message = |error: Error| error.to_string();
    let transposed = six.view().permute_axes(&[1, 0]).unwrap();
    let error = message(gpu.copy_array(transposed, &mut six_out).unwrap_err());
    assert!(error.contains("the target's extent is 2 on axis 0, expected 3"), "{error}");
    let error = message(gpu.copy_array(six.buffer(), &mut six_out).unwrap_err());
    assert!(error.contains("the target's list of axes has 2 elements, expected 1"), "{error}");
    let other = Gpu::simt().upload(&[1_u16; 6]).unwrap().reshape(&[2, 3]).unwrap();
    assert!(matches!(gpu.copy_array(&other, &mut six_out), Err(Error::OtherDevice { .. })));
    assert!(matches!(gpu.transpose(&other), Err(Error::OtherDevice { .. })));
    let error = message(gpu.permute(&six, &[0, -2]).unwrap_err());
    assert!(error.contains("axis 0 is named twice, as 0 and as -2"), "{error}");
    let error = message(gpu.permute(&six, &[0, 2]).unwrap_err());
    assert!(error.contains("there is no axis 2: the array has the axes 0 to 1, or -2 to -1"), "{error}");
    let error = message(gpu.permute(&six, &[1]).unwrap_err());
    assert!(error.contains("axis 0 is missing"), "{error}");
    let error = message(gpu.transpose(six.buffer()).unwrap_err());
    assert!(error.contains("the array has 1 axes, expected at least 2"), "{error}");
    let error = message(gpu.transpose_in_place(&mut six_out).unwrap_err());
    assert!(error.contains("the extent is 3 on axis 1, expected 2, as that before: only square"), "{error}");
    // Layouts that the view does not have.
    let layout = Layout::strided(&[2, 3], &[4, 1], 0).unwrap();
    let error = message(ArrayView::new(six.buffer().view(), &layout).unwrap_err());
    assert!(error.contains("the view has 6 elements, expected at least 7"), "{error}");
    // Outputs of which two elements would be one.
    let overlapping = Layout::strided(&[2, 3], &[2, 1], 0).unwrap();
    let error = message(ArrayViewMut::new(six_out.buffer_mut().view_mut(), &overlapping).unwrap_err());
    assert!(error.contains("along axis 0 of 2 x 3 with strides [2, 1], neighbours are 2 apart"), "{error}");
    assert!(error.contains("reach 2"), "{error}");
    let repeated = Layout::strided(&[2, 3], &[0, 1], 0).unwrap();
    assert!(matches!(
        ArrayViewMut::new(six_out.buffer_mut().view_mut(), &repeated),
        Err(Error::Overlap { axis: 0, stride: 0, reach: 0, .. })
    ));
    // Two parts of one array, whose elements alternate.
    let alternating = Layout::strided(&[2, 3], &[1, 2], 0).unwrap();
    let (first, second) =
        ArrayViewMut::new(six_out.buffer_mut().view_mut(), &alternating).unwrap().split_at(1).unwrap();
    let error = message(gpu.copy_array(first.as_array_view(), second).unwrap_err());
    assert!(error.contains("the same range of memory"), "{error}");
    assert_eq!(gpu.download(&six_out).unwrap(), [7; 6]);
    // Two that lie apart.
    let (mut first, second) = six_out.view_mut().split_at(1).unwrap();
    gpu.copy_array(&gpu.upload(&[4, 5, 6]).unwrap(), first.reborrow().remove_axis(0).unwrap()).unwrap();
    gpu.copy_array(first.as_array_view(), second).unwrap();
    assert_eq!(gpu.download(&six_out).unwrap(), [4, 5, 6, 4, 5, 6]);
    // Of nothing there is nothing to copy.
    let none = gpu.zeroed::<u8>(0).unwrap().reshape(&[1 << 40, 0, 1 << 20]).unwrap();
    assert_eq!(gpu.permute(&none, &[2, 1, 0]).unwrap().extents(), [1 << 20, 0, 1 << 40]);
}

/// The GPU test of more than 2^32 elements, with fewer elements.
#[test]
fn the_large_matrices_of_the_gpu_test_scaled_down() {
    let gpu = Gpu::simt();
    let sides = [[512, 1040], [1025, 1027], [3, 10_001], [10_001, 3]];
    test_support::large_transposes::check(&gpu, &sides, 512).unwrap();
    test_support::large_transposes::check_three_bytes(&gpu, [67, 129]).unwrap();
    let [rows, columns] = test_support::large_transposes::SIDES_OF_THREE_BYTES;
    assert!(3 * rows * columns > 1 << 31 && 3 * rows * rows > 1 << 31);
    assert!(test_support::large_transposes::SIDES.iter().all(|[rows, columns]| rows * columns > 1 << 32));
}

/// Of the word at the end of a tile's rows, one element is written. The elements after it are never loaded.
#[test]
fn short_wide_segments_read_nothing_past_a_tile() {
    let gpu = Gpu::simt();
    let profile = gpu.profile(|| {
        (PERMUTE_CHECKS[0].1)(&gpu, [2, 128, 16], [0, 1], 1).unwrap();
        Ok(())
    });
    let kernels = profile.unwrap().kernels;
    assert!(
        kernels.iter().any(|kernel| kernel.kernel == "packed_segments_short_wide_u8_32768" && kernel.grid.x == 2),
        "{kernels:?}"
    );
}

/// At the ends of unaligned rows, lanes process columns of different micro-tiles.
#[test]
fn ends_of_rows_have_at_most_two_way_bank_conflicts() {
    fn ways<T: Plain + Default>(side: usize) -> u64 {
        let gpu = executor();
        let matrices = gpu.upload(&vec![T::default(); 3 * side * side]).unwrap();
        let mut matrices = matrices.reshape(&[3, side, side]).unwrap();
        let profile = gpu.profile(|| gpu.transpose_in_place(&mut matrices)).unwrap();
        profile.total().shared_loads.worst_ways
    }
    for side in [127, 129, 255] {
        assert_eq!([ways::<u8>(side), ways::<u16>(side), ways::<u32>(side)], [2; 3], "{side}");
    }
}
