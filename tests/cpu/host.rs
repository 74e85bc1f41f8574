//! Reductions in host memory: the cases that Python computed, long inputs and custom operators compared with the
//! executor, arrays of `ndarray`, and errors.

use ndarray::{Array2, ArrayView2, ShapeBuilder, s};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use test_kernels::operators::{
    Above, Between, Distance, Extent, Growth, Integer, Magnitude, Over, Peak, Positive, Scaled, Square, Third, Times,
};
use test_support::cases::{CASES, CaseElement, Elements, Place, Reduced, check_text};
use test_support::reductions::data::{Kind, Random};
use warpfold::exact::{ExactDot, ExactSum, Summand};
use warpfold::host::IntoView;
use warpfold::ops::Dot;
use warpfold::{ArrayView, Axes, Element, Error, Gpu, Layout, Plain, Reduces, Reduction, host, ops};

/// Cases in host memory, at addresses that are aligned for the elements or not.
struct Host {
    is_aligned: bool,
}

/// The bytes of elements at an odd address, and a view of them.
fn unaligned<'a, T: Element>(bytes: &'a mut Vec<u8>, x: Elements<'_, T>) -> Result<host::View<'a, T>, Error> {
    // The memory of a vector of bytes begins at an even address.
    *bytes = vec![0xFF];
    x.elements.iter().for_each(|x| bytes.extend(&x.to_four_words()[0].to_le_bytes()[..size_of::<T>()]));
    let size = size_of::<T>() as isize;
    let strides: Vec<isize> = x.layout.strides().iter().map(|stride| stride.wrapping_mul(size)).collect();
    host::View::from_bytes(bytes, x.layout.extents(), &strides, 1 + x.layout.offset() * size_of::<T>())
}

impl Place for Host {
    fn reduce<O: Reduction<T> + Default, T: CaseElement>(&self, x: Elements<'_, T>, axes: Axes) -> Reduced<O::Output> {
        let mut bytes = Vec::new();
        let view = match self.is_aligned {
            true => host::View::new(x.elements, x.layout)?,
            false => unaligned(&mut bytes, x)?,
        };
        let result = host::reduce(O::default(), view, axes)?;
        Ok((result.extents().to_vec(), result.into_vec()))
    }

    fn dot<T: CaseElement>(
        &self,
        x: Elements<'_, T>,
        y: Elements<'_, T>,
        axes: Axes,
    ) -> Reduced<<Dot as Reduces<T, 2>>::Output>
    where
        Dot: Reduces<T, 2>,
    {
        let [mut of_x, mut of_y] = [Vec::new(), Vec::new()];
        let views = match self.is_aligned {
            true => (host::View::new(x.elements, x.layout)?, host::View::new(y.elements, y.layout)?),
            false => (unaligned(&mut of_x, x)?, unaligned(&mut of_y, y)?),
        };
        let result = host::reduce(Dot, views, axes)?;
        Ok((result.extents().to_vec(), result.into_vec()))
    }
}

#[test]
fn reductions_have_the_bits_that_python_computed() {
    for is_aligned in [true, false] {
        check_text(&Host { is_aligned }, CASES).unwrap_or_else(|wrong| panic!("aligned: {is_aligned}\n{wrong}"));
    }
}

/// More elements than one thread takes: as a whole, by columns, and by rows from the last to the first.
#[test]
fn several_threads_have_the_bits_of_the_executor() {
    host::set_max_threads(3.try_into().unwrap());
    assert_eq!(host::max_threads().get(), 3);
    let gpu = Gpu::simt();
    macro_rules! each {
        ($($operator:ident, $name:literal of $([$type:ident])*;)*) => {
            $($(check_long::<ops::$operator, $type>(&gpu);)*)*
        };
    }
    use half::{bf16, f16};
    kernels::for_each_builtin! { each }
}

fn check_long<O: Reduction<T> + Default + Copy, T: Element + Random>(gpu: &Gpu) {
    let mut source = SmallRng::seed_from_u64(7);
    let (rows, columns) = (517, 509);
    let matrix = Layout::contiguous(&[rows, columns]).unwrap();
    let reversed = matrix.reverse(0).unwrap().permute_axes(&[1, 0]).unwrap();
    for (kind, layout, axes) in
        [(Kind::Special, matrix, Axes::ALL), (Kind::NearOne, matrix, 0.into()), (Kind::Special, reversed, 0.into())]
    {
        let elements: Vec<T> = (0..rows * columns).map(|_| T::random(kind, &mut source)).collect();
        check(gpu, O::default(), &elements, &layout, axes);
    }
}

/// Compares the bits of a reduction on the host with those of the executor.
fn check<O: Reduces<T, 1> + Copy, T: Element>(gpu: &Gpu, operator: O, elements: &[T], layout: &Layout, axes: Axes) {
    let input = gpu.upload(elements).unwrap();
    let expected = gpu.reduce(operator, ArrayView::new(input.view(), layout).unwrap(), axes).unwrap();
    let expected = gpu.download(&expected).unwrap();
    let found = host::reduce(operator, host::View::new(elements, layout).unwrap(), axes).unwrap();
    let bits = |result: &O::Output| result.to_four_words();
    let wrong = found.as_slice().iter().zip(&expected).position(|(found, expected)| bits(found) != bits(expected));
    let name = std::any::type_name::<(O, T)>();
    assert_eq!(found.as_slice().len(), expected.len(), "{name}, {axes:?} of {layout}");
    if let Some(at) = wrong {
        let (found, expected) = (bits(&found.as_slice()[at]), bits(&expected[at]));
        panic!("{name}, {axes:?} of {layout}: result {at} is {found:x?} and not {expected:x?}");
    }
}

#[test]
fn custom_operators_have_the_bits_of_the_executor() {
    fn each<O: Reduces<T, 1> + Copy, T: Element + Plain>(gpu: &Gpu, operator: O, elements: &[T]) {
        let matrix = Layout::contiguous(&[30, 40]).unwrap();
        for layout in [
            matrix,
            matrix.permute_axes(&[1, 0]).unwrap(),
            matrix.slice(1, .., 2).unwrap(),
            matrix.slice(0, 1.., 3).unwrap().reverse(1).unwrap(),
        ] {
            for axes in [Axes::ALL, 0.into(), 1.into()] {
                check(gpu, operator, elements, &layout, axes);
            }
        }
    }
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(11));
    let singles: Vec<f32> = (0..1200).map(|_| source.random_range(-5.0..5.0)).collect();
    let doubles: Vec<f64> = singles.iter().map(|&x| f64::from(x) * 1e-3).collect();
    let bytes: Vec<u8> = (0..1200).map(|_| source.random_range(0..3)).collect();
    let shorts: Vec<i16> = (0..1200).map(|_| source.random()).collect();
    let integers: Vec<i32> = (0..1200).map(|_| source.random()).collect();
    each(&gpu, Peak { limit: 2.0 }, &singles);
    each(&gpu, Growth, &doubles);
    each(&gpu, Extent, &bytes);
    each(&gpu, Above::<3, u64>::default(), &singles);
    each(&gpu, Above::<3, u64>::default(), &shorts);
    each(&gpu, Over { limit: 1.5 }, &singles);
    each(&gpu, Scaled { factor: 1.0 / 3.0 }, &doubles);
    each(&gpu, Between::default(), &shorts);
    each(&gpu, Distance::default(), &doubles);
    each(&gpu, Positive, &singles);
    each(&gpu, Times::<4>, &singles);
    each(&gpu, Square, &singles);
    each(&gpu, Third, &doubles);
    each(&gpu, Magnitude, &doubles);
    each(&gpu, Integer, &integers);
}

/// One element decides, wherever it is.
#[test]
fn any_and_all_see_each_element() {
    let mut elements = vec![0_i16; 5000];
    for at in [0, 1, 31, 32, 1023, 1024, 4999] {
        elements[at] = 7;
        assert_eq!(host::reduce_all(ops::Any, &elements).unwrap(), 1, "{at}");
        assert_eq!(host::reduce_all(ops::CountNonzero, &elements).unwrap(), 1, "{at}");
        assert_eq!(host::reduce_all(ops::ArgMax, &elements).unwrap(), at as u64);
        elements[at] = 0;
        let mut others = vec![-1.0_f32; 5000];
        others[at] = -0.0;
        assert_eq!(host::reduce_all(ops::All, &others).unwrap(), 0, "{at}");
        assert_eq!(host::reduce_all(ops::ArgMax, &others).unwrap(), at as u64);
    }
    assert_eq!(host::reduce_all(ops::Any, &elements).unwrap(), 0);
    assert_eq!(host::reduce_all(ops::All, &[1.0_f64, f64::NAN, -1.0]).unwrap(), 1);
}

#[test]
fn views_of_ndarray_are_reduced_where_they_are() {
    let x = Array2::from_shape_fn((37, 41), |(i, j)| (i * 41 + j) as f32 * 0.37 - 250.0);
    let fortran = Array2::from_shape_fn((37, 41).f(), |(i, j)| x[[i, j]]);
    let views: [ArrayView2<'_, f32>; 6] = [
        x.view(),
        x.t(),
        fortran.view(),
        x.slice(s![..;2, ..;3]),
        x.slice(s![..;-1, 3..;-2]),
        fortran.slice(s![5.., ..;-1]),
    ];
    for view in views {
        let plain = |of: ndarray::ArrayView1<'_, f32>| of.iter().map(|&x| f64::from(x)).sum::<f64>() as f32;
        assert_eq!(host::sum(view).unwrap(), view.iter().map(|&x| f64::from(x)).sum::<f64>() as f32);
        let rows: Vec<f32> = view.rows().into_iter().map(plain).collect();
        assert_eq!(host::reduce(ops::Sum, view, 1).unwrap().into_vec(), rows);
        let columns = host::reduce(ops::Sum, view, Axes::from(0).keep_dims()).unwrap().into_ndarray();
        assert_eq!(columns.shape(), [1, view.ncols()]);
        assert!(columns.iter().copied().eq(view.columns().into_iter().map(plain)));
        let most: Vec<f32> = view.columns().into_iter().map(|c| c.iter().copied().fold(f32::MIN, f32::max)).collect();
        assert_eq!(host::reduce(ops::Max, view, 0).unwrap().into_vec(), most);
        let squares: f64 = view.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        assert!((f64::from(host::reduce_all(Dot, (view, view)).unwrap()) / squares - 1.0).abs() < 1e-6);
    }
    // Both halves of a matrix, of which one is written while the other is read.
    let mut both = Array2::<f64>::ones((10, 8));
    let (left, mut right) = both.multi_slice_mut((s![.., ..4], s![.., 4..]));
    right.fill(host::sum(left.view()).unwrap());
    assert_eq!(host::sum(&both).unwrap(), 40.0 + 40.0 * 40.0);
    let none = Array2::<i8>::zeros((0, 3));
    assert_eq!(host::reduce(ops::Sum, &none, 0).unwrap().into_vec(), [0; 3]);
}

/// In memory that is borrowed whole and in views between whose elements others may write; on one thread and on several.
#[test]
fn exact_sums_along_axes_are_those_of_single_rows_and_columns() {
    fn each<T: Element + Summand + Random>() {
        let mut source = SmallRng::seed_from_u64(13);
        for (rows, columns) in [(30, 40), (613, 509)] {
            let x = Array2::from_shape_fn((rows, columns), |_| T::random(Kind::NearOne, &mut source));
            let elements = x.as_slice().unwrap();
            let layout = Layout::contiguous(&[rows, columns]).unwrap();
            let whole = host::View::new(elements, &layout).unwrap();
            let turned = host::View::new(elements, &layout.permute_axes(&[1, 0]).unwrap()).unwrap();
            single_sums(x.view(), whole);
            single_sums(x.t(), turned);
            for view in [x.view(), x.t(), x.slice(s![..;-2, 1..;3])] {
                single_sums(view, view);
            }
        }
    }
    fn single_sums<'a, T: Element + Summand>(view: ArrayView2<'a, T>, input: impl IntoView<'a, T> + Copy) {
        let states = |axes: Axes| {
            let (sums, squares) =
                (host::exact_sums(input, axes).unwrap(), host::exact_sums_of_squares(input, axes).unwrap());
            assert_eq!(sums.extents(), squares.extents());
            let states = sums.as_slice().iter().zip(squares.as_slice());
            states.map(|(sum, squares)| (sum.to_bytes(), squares.to_bytes())).collect::<Vec<_>>()
        };
        let single = |elements: &mut dyn Iterator<Item = &T>| {
            let elements: Vec<T> = elements.copied().collect();
            let squares = elements.iter().map(|&x| (x, x)).collect::<ExactDot<T>>();
            (elements.into_iter().collect::<ExactSum<T>>().to_bytes(), squares.to_bytes())
        };
        let name = std::any::type_name::<T>();
        assert!(states(Axes::ALL) == [single(&mut view.iter())], "{name}");
        let rows = view.rows().into_iter().map(|row| single(&mut row.iter()));
        assert!(states(1.into()).into_iter().eq(rows), "rows of {name}");
        let columns = view.columns().into_iter().map(|column| single(&mut column.iter()));
        assert!(states(Axes::from(0).keep_dims()).into_iter().eq(columns), "columns of {name}");
    }
    host::set_max_threads(3.try_into().unwrap());
    each::<half::f16>();
    each::<half::bf16>();
    each::<f32>();
    each::<f64>();
    let none = Array2::<f32>::zeros((0, 3));
    let sums = host::exact_sums(&none, Axes::from(0).keep_dims()).unwrap();
    assert_eq!((sums.extents(), sums.as_slice()), (&[1, 3][..], &[ExactSum::new(); 3][..]));
    assert!(host::exact_sums(&none, 1).unwrap().as_slice().is_empty());
    assert!(matches!(host::exact_sums(&none, 2), Err(Error::Axis { .. })));
}

#[test]
fn wrong_views_and_outputs_are_errors() {
    let x = [1_i32, 2, 3, 4, 5, 6];
    let error = |result: Result<_, Error>| result.map(|_: host::View<'_, i32>| ()).unwrap_err().to_string();
    let matrix = |rows, columns| Layout::contiguous(&[rows, columns]).unwrap();
    assert!(error(host::View::new(&x, &matrix(2, 4))).contains("the slice"));
    let bytes = [0_u8; 12];
    assert!(error(host::View::from_bytes(&bytes, &[3], &[4], 1)).contains("the memory"));
    assert!(matches!(host::View::<i32>::from_bytes(&bytes, &[3], &[-4], 4), Err(Error::BelowStart { .. })));
    assert!(error(host::View::from_bytes(&bytes, &[3], &[4, 4], 0)).contains("the list of strides"));
    let refused = |extents: &[usize], strides: &[isize]| {
        host::View::<i32>::from_bytes(&bytes, extents, strides, 0).map(|_| ()).unwrap_err()
    };
    assert!(matches!(refused(&[usize::MAX, 2], &[4, 4]), Error::ArrayTooLarge { .. }));
    assert!(matches!(refused(&[2, 2], &[isize::MAX; 2]), Error::PositionOverflow { .. }));
    assert!(matches!(refused(&[1; 33], &[0; 33]), Error::TooManyAxes { .. }));
    // Strides that are not used may be anything.
    let view = host::View::<i32>::from_bytes(&bytes, &[1, 0], &[isize::MIN, 7], 1000).unwrap();
    assert_eq!(host::sum(view).unwrap(), 0);
    let view = host::View::<i32>::from_bytes(&bytes, &[1, 3, 1], &[isize::MAX, 4, isize::MIN], 0).unwrap();
    assert_eq!((view.rank(), view.len(), host::sum(view).unwrap()), (3, 3, 0));
    let view = host::View::new(&x, &matrix(2, 3)).unwrap();
    let wrong = host::reduce_into(ops::Sum, view, 0, &mut [0; 2]).unwrap_err().to_string();
    assert!(wrong.contains("the output has 2 elements, expected 3"), "{wrong}");
    assert!(matches!(host::reduce(ops::ArgMin, &x[..0], 0), Err(Error::Empty { .. })));
    assert!(matches!(host::reduce(ops::Sum, view, 2), Err(Error::Axis { .. })));
    assert!(host::reduce(Dot, (view, &x[..2]), 1).unwrap_err().to_string().contains("second input"));
    // More elements than could be counted, of which all are the same one.
    let one = host::View::<u8>::from_bytes(&[1], &[1 << 51], &[0], 0).unwrap();
    assert!(matches!(host::sum(one), Err(Error::TooManyElements(_))));
    // More outputs than there is memory.
    let many = host::View::<u8>::from_bytes(&[1], &[1 << 49, 1], &[0, 0], 0).unwrap();
    assert!(matches!(host::reduce(ops::Sum, many, 1), Err(Error::HostMemory { .. })));
}
