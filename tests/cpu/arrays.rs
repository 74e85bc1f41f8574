//! Copies of arrays of any rank, strides, gaps and element size, and reductions along any axes, in the executor.

use proptest::prelude::*;
use test_support::arrays::{CHECKS, check_reduced, positions};
use test_support::pairs::check_pairs;
use test_support::{executor, times};
use warpfold::num_complex::Complex32;
use warpfold::{ArrayView, ArrayViewMut, Error, Gpu, Layout, Plain, Scaling, ops};

proptest! {
    #![proptest_config(ProptestConfig {
        cases: times(150, 3000),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_layout_to_every_other(
        which in 0..CHECKS.len(),
        most in prop_oneof![1_usize..200, 200_usize..5000],
        seed: u64,
    ) {
        (CHECKS[which].1)(&Gpu::simt(), seed, most).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn reductions_along_any_axes(most in prop_oneof![1_usize..200, 200_usize..5000], seed: u64) {
        check_reduced(&executor(), seed, most).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn dot_products_along_any_axes(most in prop_oneof![1_usize..200, 200_usize..5000], seed: u64) {
        check_pairs(&executor(), seed, most).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn larger_arrays(which in 0..CHECKS.len(), seed: u64) {
        (CHECKS[which].1)(&executor(), seed, 60_000).map_err(TestCaseError::fail)?;
    }
}

/// As tensor networks have them: 20 axes of two elements, in an order in which none can be merged.
#[test]
fn twenty_axes_take_one_launch() {
    let gpu = executor();
    let numbers: Vec<u32> = (0..1 << 20).collect();
    let x = gpu.upload(&numbers).unwrap().reshape(&[2; 20]).unwrap();
    let axes: Vec<isize> = (0..20).map(|axis| axis * 7 % 20).collect();
    let permuted = x.view().permute_axes(&axes).unwrap();
    let profile = gpu.profile(|| gpu.contiguous(permuted).map(drop)).unwrap();
    assert_eq!(profile.kernels.len(), 1, "{profile}");
    let expected: Vec<u32> = positions(permuted.layout()).into_iter().map(|at| at as u32).collect();
    assert_eq!(gpu.download(&gpu.contiguous(permuted).unwrap()).unwrap(), expected);
}

/// What no transpose takes goes element by element, and is scaled as well.
#[test]
fn every_layout_is_scaled() {
    let gpu = Gpu::simt();
    let numbers: Vec<Complex32> = (0..720).map(|i| Complex32::new(i as f32, 0.5 - i as f32)).collect();
    let x = gpu.upload(&numbers).unwrap().reshape(&[2, 3, 4, 5, 6]).unwrap();
    let layouts = [
        x.view(),
        x.view().permute_axes(&[0, 1, 2, 4, 3]).unwrap(),
        x.view().permute_axes(&[4, 2, 0, 3, 1]).unwrap(),
        x.view().reverse(4).unwrap().slice(3, 1.., 2).unwrap(),
        x.view().slice(0, 1.., 1).unwrap().broadcast_to(&[3, 3, 4, 5, 6]).unwrap(),
    ];
    let factor = Complex32::new(2.0, -1.0);
    let scaling = Scaling::by(factor).and_conjugate();
    for from in layouts {
        let mut output = gpu.upload(&vec![Complex32::new(7.0, 7.0); 2 * from.len()]).unwrap();
        // Every second element of the output, in reverse.
        let to = output.view_mut().reshape(&[from.len(), 2]).unwrap().slice(1, ..1, 1).unwrap();
        let to = to.reverse(0).unwrap().reshape(from.extents()).unwrap();
        gpu.copy_scaled(scaling, from, to).unwrap();
        let found = gpu.download(&output).unwrap();
        let expected = positions(from.layout()).into_iter().map(|at| factor * numbers[at].conj());
        let written: Vec<Complex32> = found.iter().rev().skip(1).step_by(2).copied().collect();
        assert_eq!(written, expected.collect::<Vec<_>>(), "{}", from.layout());
        assert!(found.iter().skip(1).step_by(2).all(|x| *x == Complex32::new(7.0, 7.0)), "{}", from.layout());
    }
}

/// Kernels read whole vectors, but nothing after the last element: here memory ends there.
#[test]
fn views_end_with_their_last_element() {
    fn transposed<T: Plain + Default + PartialEq + std::fmt::Debug>(of: impl Fn(usize) -> T) {
        let gpu = Gpu::simt();
        for (rows, columns, pitch) in [(61, 67, 70), (3, 500, 501), (300, 5, 7), (130, 257, 260), (260, 128, 144)] {
            let layout = Layout::strided(&[rows, columns], &[pitch, 1], 0).unwrap();
            let numbers: Vec<T> = (0..layout.required_len()).map(&of).collect();
            let x = gpu.upload(&numbers).unwrap();
            let from = ArrayView::new(x.view(), &layout).unwrap().permute_axes(&[1, 0]).unwrap();
            let expected: Vec<T> = positions(from.layout()).into_iter().map(|at| numbers[at]).collect();
            // The output, too, ends with its last element.
            let to = Layout::strided(from.extents(), &[rows as isize + 3, 1], 0).unwrap();
            let mut y = gpu.zeroed::<T>(to.required_len()).unwrap();
            gpu.copy_array(from, ArrayViewMut::new(y.view_mut(), &to).unwrap()).unwrap();
            let found = gpu.download(ArrayView::new(y.view(), &to).unwrap()).unwrap();
            assert_eq!(found, expected, "{rows} x {columns} at {pitch}, of {} bytes", size_of::<T>());
        }
    }
    transposed(|i| (i * 7) as u8);
    transposed(|i| (i * 7) as u16);
    transposed(|i| i as u32);
    transposed(|i| i as u64);
    transposed(|i| i as u128);
    transposed(|i| [i as u8, (i >> 8) as u8, 7]);
}

#[test]
fn repeated_elements_have_a_limit_too() {
    let gpu = Gpu::simt();
    let x = gpu.upload(&[1.0_f32]).unwrap();
    let many = x.view().reshape(&[1]).unwrap().broadcast_to(&[(1 << 50) + 1]).unwrap();
    assert!(matches!(gpu.sum(many), Err(Error::TooManyElements(_))));
    let some = x.view().reshape(&[1, 1]).unwrap().broadcast_to(&[1000, 3]).unwrap();
    assert_eq!(gpu.download(&gpu.reduce(ops::Sum, some, 0).unwrap()).unwrap(), [1000.0; 3]);
    assert_eq!(gpu.sum(some).unwrap(), 3000.0);
}

/// Dot products read both inputs where they are: rows with one vector, all rows with all rows, and gaps.
#[test]
fn broadcast_inputs_are_not_copied() {
    let gpu = executor();
    let kernels = |x: ArrayView<'_, f32>, y: ArrayView<'_, f32>, axis: isize| {
        let profile = gpu.profile(|| gpu.reduce(ops::Dot, (x, y), axis).map(drop)).unwrap();
        profile.kernels.iter().map(|kernel| kernel.kernel.clone()).collect::<Vec<_>>()
    };
    let numbers: Vec<f32> = (0..6000).map(|i| i as f32).collect();
    let x = gpu.upload(&numbers).unwrap().reshape(&[60, 100]).unwrap();
    let vector = x.view().slice(0, 7..8, 1).unwrap().remove_axis(0).unwrap();
    let (left, right) = (x.view().insert_axis(1).unwrap(), x.view().insert_axis(0).unwrap());
    let part = x.view().slice(1, ..90, 1).unwrap();
    let of_rows = [
        kernels(x.view(), vector, 1),
        kernels(vector, x.view(), -1),
        kernels(left, right, 2),
        kernels(part, vector.slice(0, 10.., 1).unwrap(), 1),
        kernels(part.reshape(&[6, 10, 90]).unwrap(), part.slice(0, ..10, 1).unwrap(), 2),
    ];
    for names in of_rows {
        assert!(names.len() == 1 && names[0].contains("exact_pairs"), "{names:?}");
    }
    // Columns with one vector: only the columns are copied.
    let column = x.view().slice(1, 3..4, 1).unwrap();
    let names = kernels(x.view(), column, 0);
    assert!(names.len() == 3 && names[2].contains("exact_pairs"), "{names:?}");
    let reducer = gpu.reducer::<_, f32, 2>(ops::Dot, (x.layout(), &Layout::contiguous(&[100]).unwrap()), 1).unwrap();
    let plan = reducer.to_string();
    assert_eq!(plan, "60 x 100 of both inputs by rows: 1 block of 32 threads a row");
}

#[test]
fn a_reducer_says_how_it_runs() {
    let gpu = executor();
    let plan = |extents: &[usize], axes: &[isize]| {
        let layout = Layout::contiguous(extents).unwrap();
        gpu.reducer::<_, f32, 1>(ops::Max, &layout, axes).unwrap().to_string()
    };
    assert_eq!(plan(&[1000, 16], &[1]), "1000 x 16 by rows: 64 rows a block, 1 lane each");
    assert_eq!(plan(&[1 << 20], &[0]), "1 x 1048576 by rows: 128 blocks of 256 threads a row");
    assert_eq!(plan(&[5000, 100], &[0]), "5000 x 100 by columns: tiles of 64 columns, 79 blocks each");
    assert_eq!(
        plan(&[6, 5, 7, 4], &[0, 2, 3]),
        "copy of 5 x 6 x 7 x 4 with strides [28, 140, 4, 1]; 5 x 168 by rows: 4 rows a block, 16 lanes each"
    );
}

/// Halves of one buffer whose elements alternate: apart, but in the same range of addresses. Nothing is written.
#[test]
fn an_input_and_an_output_in_one_range_of_memory_are_errors() {
    let gpu = executor();
    let numbers: Vec<i64> = (1..=8).collect();
    let mut buffer = gpu.upload(&numbers).unwrap();
    let other = gpu.upload(&[1_i64; 4]).unwrap();
    type Call<'a> = &'a dyn Fn(ArrayView<'_, i64>, ArrayViewMut<'_, i64>) -> Result<(), Error>;
    let mut refused = |call: Call<'_>| {
        let pairs = buffer.view_mut().reshape(&[4, 2]).unwrap().permute_axes(&[1, 0]).unwrap();
        let (even, odd) = pairs.split_at(1).unwrap();
        let result = call(even.as_array_view().remove_axis(0).unwrap(), odd.remove_axis(0).unwrap());
        assert!(matches!(result, Err(Error::SharedMemory { .. })), "{result:?}");
        assert_eq!(gpu.download(&buffer).unwrap(), numbers);
    };
    let none: &[isize] = &[];
    refused(&|even, odd| gpu.copy_array(even, odd));
    refused(&|even, odd| gpu.reduce_into(ops::Sum, even, none, odd));
    refused(&|even, odd| gpu.reduce_into(ops::Dot, (even, &other), none, odd));
    refused(&|even, odd| gpu.reduce_into(ops::Dot, (&other, even), none, odd));
}

#[test]
fn inputs_that_cannot_be_broadcast_are_errors() {
    let gpu = Gpu::simt();
    let x = gpu.upload(&[1, 2, 3, 4, 5, 6]).unwrap().reshape(&[2, 3]).unwrap();
    let y = gpu.upload(&[1, 2]).unwrap();
    let error = gpu.reduce(ops::Dot, (&x, &y), 1).unwrap_err().to_string();
    assert!(error.contains("the second input's extent is 2 on axis 0, expected 3 or 1"), "{error}");
    let error = gpu.dot(&x, &y).unwrap_err().to_string();
    assert!(error.contains("the second input's list of axes has 1 elements, expected 2"), "{error}");
    let error = gpu.reduce(ops::Dot, (&x, &x), [1, -1]).unwrap_err().to_string();
    assert!(error.contains("axis 1 is named twice, as 1 and as -1"), "{error}");
    let other = Gpu::simt().upload(&[1, 2, 3]).unwrap();
    assert!(matches!(gpu.reduce(ops::Dot, (&x, &other), 1), Err(Error::OtherDevice { .. })));
    assert!(matches!(gpu.reduce_all(ops::Dot, (&other, &x)), Err(Error::OtherDevice { .. })));
    // Beside the inputs in one buffer.
    let mut buffer = gpu.upload(&[1_i64, 2, 3, 4]).unwrap();
    let (input, output) = buffer.view_mut().reshape(&[4]).unwrap().split_at(2).unwrap();
    let (input, output) = (input.as_array_view(), output.slice(0, ..1, 1).unwrap().remove_axis(0).unwrap());
    gpu.reduce_into(ops::Dot, (input, input), 0, output).unwrap();
    assert_eq!(gpu.download(&buffer).unwrap(), [1, 2, 5, 4]);
    // No elements, and no outputs.
    let none = gpu.zeroed::<f32>(0).unwrap().reshape(&[2, 0]).unwrap();
    assert_eq!(gpu.download(&gpu.reduce(ops::Dot, (&none, &none), 1).unwrap()).unwrap(), [0.0; 2]);
    assert!(gpu.reduce(ops::Dot, (&none, &none), 0).unwrap().is_empty());
    // A pair repeated too often.
    let one = gpu.upload(&[1.0_f32]).unwrap();
    let many = one.view().reshape(&[1]).unwrap().broadcast_to(&[(1 << 50) + 1]).unwrap();
    assert!(matches!(gpu.dot(many, many), Err(Error::TooManyElements(_))));
}

#[test]
fn wrong_axes_of_a_reduction_are_errors() {
    let gpu = Gpu::simt();
    let x = gpu.upload(&[1, 2, 3, 4, 5, 6]).unwrap().reshape(&[1, 2, 3]).unwrap();
    let message = |axes: &[isize]| gpu.reduce(ops::Sum, &x, axes).unwrap_err().to_string();
    assert!(message(&[3]).contains("there is no axis 3: the array has the axes 0 to 2, or -3 to -1"));
    assert!(message(&[-4]).contains("there is no axis -4"));
    assert!(message(&[1, -2]).contains("axis 1 is named twice, as 1 and as -2"));
    assert!(message(&[0; 33]).contains("at most 32 axes, not 33"));
    let error = gpu.reduce(ops::ArgMax, &x, [1, 2]).unwrap_err().to_string();
    assert!(error.contains("over 2 of 3 axes"), "{error}");
    let mut wrong = gpu.upload(&[7_i64; 2]).unwrap();
    let error = gpu.reduce_into(ops::Sum, &x, 1, &mut wrong).unwrap_err().to_string();
    assert!(error.contains("the target's list of axes has 1 elements, expected 2"), "{error}");
    let mut wrong = wrong.reshape(&[2, 1]).unwrap();
    let error = gpu.reduce_into(ops::Sum, &x, 1, &mut wrong).unwrap_err().to_string();
    assert!(error.contains("the target's extent is 2 on axis 0, expected 1"), "{error}");
    assert_eq!(gpu.download(&wrong).unwrap(), [7; 2]);
    let none = gpu.zeroed::<f32>(0).unwrap().reshape(&[2, 0]).unwrap();
    assert!(matches!(gpu.reduce(ops::Max, &none, 1), Err(Error::Empty { .. })));
    assert!(gpu.reduce(ops::Max, &none, 0).unwrap().is_empty());
    // A reducer takes arrays that lie as it was told.
    let mut reducer = gpu.reducer::<_, i32, 1>(ops::Sum, &Layout::strided(&[2, 3], &[1, 2], 0).unwrap(), 0).unwrap();
    let mut sums = gpu.zeroed(3).unwrap();
    let error = reducer.start(&x, &mut sums).unwrap_err().to_string();
    assert!(
        error.contains("the input is 1 x 2 x 3, and the reducer was made for 2 x 3 with strides [1, 2]"),
        "{error}"
    );
    let columns = x.view().reshape(&[3, 2]).unwrap().permute_axes(&[1, 0]).unwrap();
    reducer.start(columns, &mut sums).unwrap();
    assert_eq!(gpu.download(&sums).unwrap(), [3, 7, 11]);
    assert!(matches!(Gpu::simt().reduce(ops::Sum, &x, 0), Err(Error::OtherDevice { .. })));
}

#[test]
fn bools_and_characters_are_moved() {
    let gpu = Gpu::simt();
    let flags = [true, false, false, true, true, false];
    let x = gpu.upload(&flags).unwrap().reshape(&[2, 3]).unwrap();
    assert_eq!(gpu.download(&gpu.transpose(&x).unwrap()).unwrap(), [true, true, false, true, false, false]);
    let letters = gpu.upload(&['a', 'b', 'c', 'd']).unwrap();
    assert_eq!(gpu.download(letters.view().reshape(&[4]).unwrap().reverse(0).unwrap()).unwrap(), ['d', 'c', 'b', 'a']);
}

#[test]
fn matrices_of_any_layout_are_transposed_in_place() {
    let gpu = Gpu::simt();
    let numbers: Vec<u32> = (0..3000).collect();
    let layouts = [
        Layout::strided(&[5, 5], &[5, 1], 3).unwrap(),
        Layout::strided(&[5, 5], &[1, 5], 3).unwrap(),
        Layout::strided(&[5, 5], &[7, 1], 0).unwrap(),
        Layout::strided(&[5, 5], &[-7, 1], 40).unwrap(),
        Layout::strided(&[5, 5], &[-1, -7], 40).unwrap(),
        Layout::strided(&[3, 4, 6, 6], &[200, 40, 6, 1], 9).unwrap(),
        Layout::strided(&[3, 4, 6, 6], &[-40, 130, 1, 6], 90).unwrap(),
        Layout::strided(&[2, 3, 4, 4], &[1, 2, 6, 24], 1).unwrap(),
        Layout::strided(&[1, 40, 40], &[0, 40, 1], 0).unwrap(),
        Layout::strided(&[2, 1, 1], &[2, 9, 9], 1).unwrap(),
        Layout::strided(&[2, 0, 0], &[2, 9, 9], 1).unwrap(),
    ];
    for layout in layouts {
        let mut buffer = gpu.upload(&numbers).unwrap();
        gpu.transpose_in_place(ArrayViewMut::new(buffer.view_mut(), &layout).unwrap()).unwrap();
        let rank = layout.rank() as isize;
        let mut axes: Vec<isize> = (0..rank).collect();
        axes.swap(rank as usize - 1, rank as usize - 2);
        let exchanged = layout.permute_axes(&axes).unwrap();
        let mut expected = numbers.clone();
        for (at, from) in positions(&layout).into_iter().zip(positions(&exchanged)) {
            expected[at] = numbers[from];
        }
        assert_eq!(gpu.download(&buffer).unwrap(), expected, "{layout:?}");
        let read = gpu.download(ArrayView::new(buffer.view(), &exchanged).unwrap()).unwrap();
        assert_eq!(read, positions(&layout).into_iter().map(|at| numbers[at]).collect::<Vec<_>>(), "{layout:?}");
    }
}

#[test]
fn arrays_come_from_ndarray_and_go_back() {
    use ndarray::{Array3, Axis, s};
    let gpu = Gpu::simt();
    let x = Array3::from_shape_fn((4, 5, 6), |(i, j, k)| (100 * i + 10 * j + k) as i32);
    let reversed = x.slice(s![..;-1, 1.., ..;2]);
    let transposed = x.view().reversed_axes();
    let first = x.index_axis(Axis(1), 2);
    let device = warpfold::Array::from_ndarray(&gpu, &x).unwrap();
    assert_eq!(device.extents(), [4, 5, 6]);
    assert_eq!(device.to_ndarray(&gpu).unwrap(), x.clone().into_dyn());
    let again = warpfold::Array::from_ndarray(&gpu, reversed).unwrap();
    assert_eq!(again.to_ndarray(&gpu).unwrap(), reversed.to_owned().into_dyn());
    let again = warpfold::Array::from_ndarray(&gpu, transposed).unwrap();
    assert_eq!(again.to_ndarray(&gpu).unwrap(), transposed.to_owned().into_dyn());
    let again = warpfold::Array::from_ndarray(&gpu, first).unwrap();
    assert_eq!(again.to_ndarray(&gpu).unwrap(), first.to_owned().into_dyn());
    // The same layouts on the device.
    let on_device = device.view().permute_axes(&[2, 1, 0]).unwrap();
    assert_eq!(on_device.to_ndarray(&gpu).unwrap(), transposed.to_owned().into_dyn());
    let on_device = device.view().reverse(0).unwrap().slice(1, 1.., 1).unwrap().slice(2, .., 2).unwrap();
    assert_eq!(on_device.to_ndarray(&gpu).unwrap(), reversed.to_owned().into_dyn());
}
