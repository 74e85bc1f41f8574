//! Reductions of every operator, type and shape in the executor, compared with an independent reference.

use proptest::prelude::*;
use test_support::by_shape::ByShape;
use test_support::executor;
use test_support::reductions::data::{KINDS, Kind};
use test_support::reductions::reference::Operator;
use test_support::reductions::shapes::Form;
use test_support::reductions::value::Value;
use test_support::reductions::{Case, PAIRS, Pair, dots, large, planned_for_other_devices};
use test_support::shape::Shape;
use warpfold::{Element, Error, Gpu, Reduction, ops};

fn any_pair() -> impl Strategy<Value = &'static Pair> {
    prop::sample::select((0..PAIRS.len()).collect::<Vec<_>>()).prop_map(|i| &PAIRS[i])
}

/// Lengths near the boundaries of vectors, tiles and splits, and any others.
fn any_len(most: usize) -> impl Strategy<Value = usize> {
    let near = (0..=most.ilog2()).prop_flat_map(|log| (Just(1_usize << log), 0_usize..5));
    prop_oneof![near.prop_map(move |(at, off)| (at + off).saturating_sub(2).clamp(1, most)), 1..=most]
}

fn any_form() -> impl Strategy<Value = Form> {
    let sides = |most: usize| (any_len(most), any_len(most)).prop_filter("not too many", |(a, b)| a * b <= 20_000);
    prop_oneof![
        any_len(40_000).prop_map(Form::All),
        (sides(5000), 0_usize..9).prop_map(|((rows, columns), pad)| Form::Rows(rows, columns, columns + pad)),
        (sides(5000), 0_usize..9).prop_map(|((rows, columns), pad)| Form::Columns(rows, columns, columns + pad)),
        (prop::array::uniform4(1_usize..12), 0_usize..4).prop_map(|(extents, axis)| Form::Axis(extents, axis)),
        (0_usize..70, any_len(5000), any::<u64>()).prop_map(|(count, longest, seed)| Form::Segments {
            count,
            longest,
            seed
        }),
    ]
}

/// Rows and columns: in tall matrices several blocks share the rows of a tile of columns.
fn wide_or_tall() -> impl Strategy<Value = (usize, usize)> {
    prop_oneof![(1_usize..40, any_len(500)), (40_usize..2000, 1_usize..30)]
}

fn any_kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(&KINDS[..])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 700, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_operator_type_and_shape(
        pair in any_pair(),
        kind in any_kind(),
        form in any_form(),
        offset in 0_usize..20,
        seed: u64,
    ) {
        pair.check(&Gpu::simt(), &Case { kind, seed, form, offset }).map_err(TestCaseError::fail)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// The same elements at another address, and padded rows: the same bits.
    #[test]
    fn neither_alignment_nor_pitch_changes_a_bit(
        pair in any_pair(),
        sides in wide_or_tall(),
        pad in 0_usize..9,
        offset in 1_usize..20,
        seed: u64,
    ) {
        let (gpu, (rows, columns)) = (Gpu::simt(), sides);
        let numbers: Vec<f32> = (0..rows * columns).map(|i| ((seed >> 40) as f32 + i as f32).sin()).collect();
        let mut shifted = vec![9.0; offset];
        for row in numbers.chunks(columns) {
            shifted.extend_from_slice(row);
            shifted.extend(std::iter::repeat_n(-7.0, pad));
        }
        let (plain, shifted) = (gpu.upload(&numbers)?, gpu.upload(&shifted)?);
        let shifted = shifted.view().slice(offset, rows * (columns + pad))?;
        for shape in [Shape::rows(rows, columns), Shape::columns(rows, columns)] {
            let pitched = shape.with_pitch(columns + pad)?;
            let bits = |sums: Vec<f32>| sums.into_iter().map(f32::to_bits).collect::<Vec<_>>();
            let expected = gpu.download(&gpu.reduce_to_buffer(ops::Sum, &plain, shape)?)?;
            let found = gpu.download(&gpu.reduce_to_buffer(ops::Sum, shifted, pitched)?)?;
            prop_assert_eq!(bits(found), bits(expected), "{:?}", pair);
        }
    }
}

/// Each pair at least once, with lengths that have tiles, vectors and single elements.
#[test]
fn every_pair_once() {
    for (i, pair) in PAIRS.iter().enumerate() {
        let forms = [
            Form::All(70_001),
            Form::Rows(37, 129, 131),
            Form::Rows(3, 9001, 9001),
            Form::Columns(301, 37, 37),
            // Segments of every class, with long ones of one chunk and of several.
            Form::Segments { count: 40, longest: 120_000, seed: 4 + i as u64 % 4 },
        ];
        for form in forms {
            let case = Case { kind: KINDS[i % KINDS.len()], seed: i as u64, form, offset: i % 3 };
            pair.check(&Gpu::simt(), &case).unwrap_or_else(|message| panic!("{message}"));
        }
    }
}

/// Aligned inputs have two tiles in flight, others one, and both give the same bits.
#[test]
fn two_tiles_in_flight_give_the_same_bits() {
    let gpu = Gpu::simt();
    for pair in PAIRS {
        // Two tiles of one block, for every element size: without and with a tail.
        for len in [8192, 8197] {
            let bits_at = |offset| {
                let case = Case { kind: KINDS[0], seed: len as u64, form: Form::All(len), offset };
                pair.check(&gpu, &case).unwrap_or_else(|message| panic!("{message}")).bits
            };
            assert_eq!(bits_at(0), bits_at(1), "{pair:?} of {len}");
        }
    }
}

/// The last tile may be full, partial, shorter than the elements before the first aligned one, or absent.
#[test]
fn every_element_of_the_last_tiles_is_folded_once() {
    let gpu = Gpu::simt();
    for pair in PAIRS {
        let bits: usize = pair.dtype.trim_start_matches(char::is_alphabetic).parse().unwrap();
        // For blocks of 128 threads, with four vectors each.
        let tiles = 9 * 128 * 4 * 128 / bits;
        for len in [tiles - 1, tiles, tiles + 1] {
            let bits_at = |offset| {
                let case = Case { kind: KINDS[0], seed: len as u64, form: Form::All(len), offset };
                pair.check(&gpu, &case).unwrap_or_else(|message| panic!("{message}")).bits
            };
            assert_eq!(bits_at(0), bits_at(1), "{pair:?} of {len}");
        }
    }
}

/// A mean and a norm of integers, compared with those of wide integers.
fn check_mean_and_norm<T: Element>(gpu: &Gpu, numbers: &[T])
where
    ops::Mean: Reduction<T, Output = f64>,
    ops::Norm: Reduction<T, Output = f64>,
    Value: From<T>,
{
    let (input, dtype) = (gpu.upload(numbers).unwrap(), std::any::type_name::<T>());
    let values: Vec<Value> = numbers.iter().map(|&x| x.into()).collect();
    for (operator, found) in [(Operator::Mean, gpu.mean(&input).unwrap()), (Operator::Norm, gpu.norm(&input).unwrap())]
    {
        let expected = operator.expected(dtype, &values)[0];
        let len = numbers.len();
        assert!(expected.is(Value::Float(found)), "{operator:?} of {len} {dtype}: {found:e}, should be {expected:?}");
    }
}

#[test]
fn means_and_norms_of_integers_are_rounded_once() {
    let gpu = Gpu::simt();
    for len in [1, 2, 3, 7, 100, 4099, 70_001] {
        check_mean_and_norm(&gpu, &vec![i8::MIN; len]);
        check_mean_and_norm(&gpu, &vec![u8::MAX; len]);
        check_mean_and_norm(&gpu, &vec![i16::MIN; len]);
        check_mean_and_norm(&gpu, &vec![u16::MAX; len]);
        check_mean_and_norm(&gpu, &vec![i32::MIN; len]);
        check_mean_and_norm(&gpu, &vec![u32::MAX; len]);
        check_mean_and_norm(&gpu, &vec![i64::MIN; len]);
        check_mean_and_norm(&gpu, &vec![u64::MAX; len]);
        // Of both signs, so that most of the sum cancels.
        check_mean_and_norm(&gpu, &(0..len as i64).map(|i| (i64::MAX - i) * (1 - 2 * (i % 2))).collect::<Vec<_>>());
    }
    // At a midpoint of two floats the even one may be below or above.
    for number in [(1_i64 << 53) + 1, (1 << 53) + 3, (1 << 60) + (1 << 7), (1 << 60) + 3 * (1 << 7)] {
        check_mean_and_norm(&gpu, &[number]);
        check_mean_and_norm(&gpu, &[-number; 4]);
        check_mean_and_norm(&gpu, &[number, number + 1, number - 1]);
        check_mean_and_norm(&gpu, &[number, number + 1]);
    }
}

#[test]
fn empty_inputs_have_a_sum_and_no_minimum() {
    let gpu = Gpu::simt();
    let none = gpu.upload::<f32>(&[]).unwrap();
    assert_eq!(gpu.sum(&none).unwrap().to_bits(), 0.0_f32.to_bits());
    assert_eq!(gpu.product(&none).unwrap(), 1.0);
    assert_eq!(gpu.norm(&none).unwrap(), 0.0);
    assert!(gpu.mean(&none).unwrap().is_nan());
    assert_eq!((gpu.any(&none).unwrap(), gpu.all(&none).unwrap()), (false, true));
    assert_eq!((gpu.count_nonzero(&none).unwrap(), gpu.reduce_all(ops::CountNan, &none).unwrap()), (0, 0));
    for error in [gpu.min(&none).unwrap_err(), gpu.max(&none).unwrap_err()] {
        assert!(matches!(error, Error::Empty { .. }), "{error}");
    }
    let error = gpu.argmax(&none).unwrap_err().to_string();
    assert!(error.contains("the index of the maximum of no elements"), "{error}");
    // The result of an empty row is the identity; if the operator has none, it is an error.
    let sums = gpu.reduce_to_buffer(ops::Sum, &none, Shape::rows(3, 0)).unwrap();
    assert_eq!(gpu.download(&sums).unwrap(), [0.0; 3]);
    let bytes = gpu.upload::<u8>(&[]).unwrap();
    let far_apart = Shape::rows(3, 0).with_pitch(usize::MAX).unwrap();
    assert_eq!(gpu.download(&gpu.reduce_to_buffer(ops::Sum, &bytes, far_apart).unwrap()).unwrap(), [0; 3]);
    let products = gpu.reduce_to_buffer(ops::Product, &none, Shape::columns(0, 5)).unwrap();
    assert_eq!(gpu.download(&products).unwrap(), [1.0; 5]);
    assert!(matches!(gpu.reduce_to_buffer(ops::Min, &none, Shape::rows(3, 0)), Err(Error::Empty { .. })));
    // Without outputs there is no error, not even over an empty axis.
    let (of_cube, of_rows) = (Shape::axis(&[0, 0, 4], 1).unwrap(), Shape::axis(&[4, 0, 0], 1).unwrap());
    for shape in [Shape::rows(0, 3), Shape::rows(0, 0), Shape::columns(0, 0), of_cube, of_rows] {
        assert_eq!(gpu.reduce_to_buffer(ops::Min, &none, shape).unwrap().len(), 0, "{shape:?}");
        assert_eq!(gpu.reduce_to_buffer(ops::ArgMax, &none, shape).unwrap().len(), 0, "{shape:?}");
        let mut nothing = gpu.zeroed::<u64>(0).unwrap();
        gpu.reducer_of(ops::ArgMin, shape).unwrap().start(&none, &mut nothing).unwrap();
    }
    // One output over an empty axis is an error.
    for shape in [Shape::axis(&[0, 4], 0).unwrap(), Shape::axis(&[4, 0, 1], 1).unwrap()] {
        assert!(matches!(gpu.reduce_to_buffer(ops::ArgMin, &none, shape), Err(Error::Empty { .. })), "{shape:?}");
    }
}

#[test]
fn a_matrix_is_reduced_by_its_own_rows_and_columns() {
    let gpu = Gpu::simt();
    let matrix = gpu.upload(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap().reshape(&[2, 3]).unwrap();
    let sums = |shape| gpu.reduce_to_buffer(ops::Sum, &matrix, shape).map(|sums| gpu.download(&sums).unwrap());
    assert_eq!(sums(Shape::rows(2, 3)).unwrap(), [6.0, 15.0]);
    assert_eq!(sums(Shape::columns(2, 3)).unwrap(), [5.0, 7.0, 9.0]);
    assert_eq!(sums(Shape::axis(&[2, 3], 1).unwrap()).unwrap(), [6.0, 15.0]);
    assert_eq!(sums(Shape::all(6)).unwrap(), [21.0]);
    // The first rows and columns of the matrix.
    assert_eq!(sums(Shape::rows(1, 3)).unwrap(), [6.0]);
    assert_eq!(sums(Shape::rows(2, 2).with_pitch(3).unwrap()).unwrap(), [3.0, 9.0]);
    assert_eq!(sums(Shape::columns(1, 3)).unwrap(), [1.0, 2.0, 3.0]);
    // A matrix's buffer is an ordinary vector.
    let pairs = gpu.reduce_to_buffer(ops::Sum, matrix.buffer(), Shape::rows(3, 2)).unwrap();
    assert_eq!(gpu.download(&pairs).unwrap(), [3.0, 7.0, 11.0]);
}

#[test]
fn mismatched_views_are_errors() {
    let gpu = Gpu::simt();
    let six = gpu.upload(&[1.0_f32; 6]).unwrap();
    let message = gpu.reduce_to_buffer(ops::Sum, &six, Shape::rows(2, 4)).unwrap_err().to_string();
    assert!(message.contains("6 elements, expected at least 8"), "{message}");
    let mut reducer = gpu.reducer_of(ops::Sum, Shape::rows(2, 3)).unwrap();
    let mut three = gpu.zeroed::<f32>(3).unwrap();
    let message = reducer.start(&six, &mut three).unwrap_err().to_string();
    assert!(message.contains("the output has 3 elements, expected 2"), "{message}");
    assert!(gpu.reducer_of::<_, f64>(ops::Sum, Shape::rows(usize::MAX, 2)).is_err());
    assert!(matches!(Gpu::simt().sum(&six), Err(Error::OtherDevice { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn dot_products(
        which in 0..dots::CHECKS.len(),
        kind in any_kind(),
        rows in 0_usize..5,
        len in any_len(20_000),
        pad in 0_usize..5,
        offsets in prop::array::uniform2(0_usize..20),
        seed: u64,
    ) {
        let case = dots::Case { kind, seed, rows, len, pitch: len + pad, offsets };
        (dots::CHECKS[which].1)(&Gpu::simt(), &case).map_err(TestCaseError::fail)?;
    }
}

#[test]
fn invalid_dot_products_are_errors() {
    let gpu = Gpu::simt();
    let (two, three) = (gpu.upload(&[1.0_f32; 2]).unwrap(), gpu.upload(&[1.0_f32; 3]).unwrap());
    let message = gpu.dot(&two, &three).unwrap_err().to_string();
    assert!(message.contains("the second input's extent is 3 on axis 0, expected 2, as the first one's"), "{message}");
    let none = gpu.upload::<f32>(&[]).unwrap();
    assert_eq!(gpu.dot(&none, &none).unwrap().to_bits(), 0);
    assert!(matches!(gpu.dot(&two, &Gpu::simt().upload(&[1.0_f32; 2]).unwrap()), Err(Error::OtherDevice { .. })));
}

/// A segment has the same bits alone, among others, and at any alignment.
#[test]
fn a_segment_depends_on_its_own_elements_alone() {
    let gpu = Gpu::simt();
    let form = Form::Segments { count: 300, longest: 60_000, seed: 11 };
    let numbers: Vec<f32> = (0..form.elements()).map(|i| (i as f32 * 0.7).sin()).collect();
    let offsets = form.offsets();
    let input = gpu.upload(&numbers).unwrap();
    let together = gpu.reduce_segments(ops::Sum, &input, &gpu.upload(&offsets).unwrap()).unwrap();
    let together = gpu.download(&together).unwrap();
    for (segment, ends) in offsets.windows(2).enumerate().step_by(7) {
        let own = gpu.upload(&numbers[ends[0] as usize..ends[1] as usize]).unwrap();
        let alone = gpu.reduce_segments(ops::Sum, &own, &gpu.upload(&[0, ends[1] - ends[0]]).unwrap()).unwrap();
        assert_eq!(gpu.download(&alone).unwrap()[0].to_bits(), together[segment].to_bits(), "segment {segment}");
    }
}

#[test]
fn invalid_offsets_are_reported_and_leave_nothing_behind() {
    let gpu = Gpu::simt();
    let numbers = gpu.upload(&vec![1_i32; 100_000]).unwrap();
    let mut reducer = gpu.segment_reducer(ops::Sum, 3, 100_000).unwrap();
    let mut sums = gpu.zeroed::<i64>(3).unwrap();
    for wrong in [[0_u64, 5, 4, 9], [0, 5, 9, 100_001], [0, u64::MAX, 5, 7], [90_000, 100_000, 0, 100_000]] {
        reducer.start(&numbers, &gpu.upload(&wrong).unwrap(), &mut sums).unwrap();
        let error = reducer.check().unwrap_err();
        let first = wrong.windows(2).position(|ends| ends[0] > ends[1] || ends[1] > 100_000).unwrap() as u64;
        assert!(matches!(error, Error::Offsets { segment } if segment == first), "{wrong:?}: {error}");
    }
    // More long segments than valid offsets can have. They must leave nothing behind.
    let many: Vec<u64> = (0..4000).map(|i| if i % 2 == 0 { 0 } else { 100_000 }).collect();
    let error = gpu.reduce_segments(ops::Sum, &numbers, &gpu.upload(&many).unwrap()).unwrap_err();
    assert!(matches!(error, Error::Offsets { segment: 1 }), "{error}");
    // The same reducer still works.
    reducer.start(&numbers, &gpu.upload(&[0_u64, 1, 90_001, 90_001]).unwrap(), &mut sums).unwrap();
    reducer.check().unwrap();
    assert_eq!(gpu.download(&sums).unwrap(), [1, 90_000, 0]);
}

#[test]
fn mismatched_segments_are_errors() {
    let gpu = Gpu::simt();
    let six = gpu.upload(&[1.0_f32; 6]).unwrap();
    let none = gpu.upload::<u64>(&[]).unwrap();
    let message = gpu.reduce_segments(ops::Sum, &six, &none).unwrap_err().to_string();
    assert!(message.contains("the array of offsets has 0 elements"), "{message}");
    assert_eq!(gpu.reduce_segments(ops::Sum, &six, &gpu.upload(&[3_u64]).unwrap()).unwrap().len(), 0);
    let mut reducer = gpu.segment_reducer::<_, f32>(ops::Sum, 2, 5).unwrap();
    let mut two = gpu.zeroed::<f32>(2).unwrap();
    let offsets = gpu.upload(&[0_u64, 1, 2]).unwrap();
    let message = reducer.start(&six, &offsets, &mut two).unwrap_err().to_string();
    assert!(message.contains("the input's length is 6, but the reducer was made for at most 5"), "{message}");
    let five = six.view().slice(0, 5).unwrap();
    assert!(reducer.start(five, offsets.view().slice(0, 2).unwrap(), &mut two).is_err());
    assert!(reducer.start(five, &offsets, &mut gpu.zeroed::<f32>(3).unwrap()).is_err());
    assert!(reducer.start(five, &offsets, &mut two).is_ok());
    assert!(gpu.segment_reducer::<_, f64>(ops::Sum, 1, usize::MAX).is_err());
    assert!(gpu.segment_reducer::<_, f64>(ops::Sum, usize::MAX, 1).is_err());
}

/// The trial on a GPU has 2^32 + 1 elements.
#[test]
fn sums_of_equal_elements() {
    large::equal(&executor(), 641 * 3001, 641).unwrap().unwrap();
}

#[test]
fn infinities_and_nan() {
    large::special(&Gpu::simt(), 200_003).unwrap();
}

#[test]
fn a_reducer_can_be_started_repeatedly() {
    let gpu = Gpu::simt();
    let numbers: Vec<i32> = (0..100_000).collect();
    let input = gpu.upload(&numbers).unwrap();
    let mut reducer = gpu.reducer_of(ops::Sum, Shape::all(numbers.len())).unwrap();
    let mut sum = gpu.zeroed::<i64>(1).unwrap();
    for _ in 0..3 {
        reducer.start(&input, &mut sum).unwrap();
        assert_eq!(gpu.download(&sum).unwrap(), [4_999_950_000]);
    }
}

#[test]
fn recordings_are_started_again_and_keep_their_memory() {
    test_support::streams::recordings(&Gpu::simt()).unwrap();
    test_support::streams::recordings_of_each_kind(&Gpu::simt()).unwrap();
    test_support::streams::recordings_of_exact_sums(&Gpu::simt()).unwrap();
    test_support::streams::freed_memory(&executor()).unwrap();
}

#[test]
fn threads_have_a_stream_each() {
    test_support::streams::threads(&Gpu::simt(), 8, std::time::Duration::from_millis(300)).unwrap();
}

#[test]
fn results_do_not_depend_on_the_number_of_multiprocessors() {
    planned_for_other_devices(&executor(), 20_000).unwrap();
}
