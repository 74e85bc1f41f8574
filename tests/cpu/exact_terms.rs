//! Exact sums of custom terms, in the executor; `examples/operator` has one for any device.

use cuda_std::float::multiply_add;
use cuda_std::prelude::*;
use kernels::reduce::exact::custom::{ExactTerm, TermArgs, sum_terms};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use test_support::exact::{ALL, Data, numbers};
use warpfold::exact::{ExactDot, ExactSum};
use warpfold::reduce::TermKernels;
use warpfold::{Error, Gpu, Shape};

/// The element if it is positive.
struct Positive;

impl ExactTerm for Positive {
    type Element = f32;
    type Term = f32;
    fn term(x: f32) -> f32 {
        if x > 0.0 { x } else { 0.0 }
    }
}

/// A square, which is exact in `f64`.
struct Square;

impl ExactTerm for Square {
    type Element = f32;
    type Term = f64;
    fn term(x: f32) -> f64 {
        f64::from(x) * f64::from(x)
    }
}

/// A product with a constant, as two terms.
struct Third;

const THIRD: f64 = 1.0 / 3.0;

impl ExactTerm for Third {
    type Element = f64;
    type Term = f64;
    const HAS_LOW: bool = true;
    fn term(x: f64) -> f64 {
        x * THIRD
    }
    fn low(x: f64, term: f64) -> f64 {
        multiply_add(x, THIRD, -term)
    }
}

/// An integer, which is exact in `f64`.
struct Integer;

impl ExactTerm for Integer {
    type Element = i32;
    type Term = f64;
    fn term(x: i32) -> f64 {
        f64::from(x)
    }
}

/// A term that is not 0 for an element of 0.
struct Successor;

impl ExactTerm for Successor {
    type Element = f32;
    type Term = f32;
    fn term(x: f32) -> f32 {
        x + 1.0
    }
}

macro_rules! kernels {
    ($($name:ident of $term:ident, $element:ident to $output:ident;)*) => {$(
        /// # Safety
        /// As for [`sum_terms`].
        #[kernel(max_threads = 512, min_blocks = 1, dependent_launch)]
        unsafe fn $name(args: TermArgs<$element, $output>) {
            // SAFETY: the arguments are those of the engine.
            unsafe { sum_terms::<$term, _>(args) };
        }
    )*};
}

kernels! {
    positives of Positive, f32 to f32;
    squares of Square, f32 to f64;
    thirds of Third, f64 to f64;
    integers of Integer, i32 to f64;
    successors of Successor, f32 to f32;
}

/// The sums of `rows` rows by a term's kernel.
macro_rules! sums {
    ($term:ident, $kernel:ident, $gpu:expr, $elements:expr, $rows:expr) => {{
        // SAFETY: `TermKernels` launches it with the arguments of its engine.
        let kernels = TermKernels::<$term, _>::new("the sum", unsafe { $kernel::handle() }).unwrap();
        let (input, mut output) = ($gpu.upload($elements).unwrap(), $gpu.zeroed($rows).unwrap());
        let shape = Shape::rows($rows, $elements.len() / $rows);
        $gpu.exact_reducer_by(kernels, shape).unwrap().start(&input, &mut output).unwrap();
        $gpu.download(&output).unwrap()
    }};
}

fn bits(all: impl IntoIterator<Item = impl Into<f64>>) -> Vec<u64> {
    // All NaN count as equal here.
    let of_number = |x: f64| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() };
    all.into_iter().map(|x| of_number(x.into())).collect()
}

#[test]
fn sums_of_custom_terms_are_exact() {
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(60));
    for (rows, len) in [(1, 0), (1, 1), (1, 127), (1, 9001), (1, 40_000), (5, 33), (3, 4099)] {
        for data in ALL {
            let case = format!("{rows} x {len} of {data:?}");
            let (singles, doubles) = (
                numbers::<f32>(data, rows * len, &mut source),
                // Numbers whose products with a third have no bits below the least number.
                numbers::<f64>(if rows == 1 { Data::Normal } else { Data::Uniform }, rows * len, &mut source),
            );
            let of_rows = |row: usize| row * len..(row + 1) * len;
            let found = sums!(Positive, positives, gpu, &singles, rows);
            let right = (0..rows).map(|row| {
                let positive = singles[of_rows(row)].iter().copied().filter(|&x| x > 0.0);
                positive.collect::<ExactSum<f32>>().value()
            });
            assert_eq!(bits(found), bits(right), "positives of {case}");
            let found = sums!(Square, squares, gpu, &singles, rows);
            let right = (0..rows).map(|row| {
                let squares = singles[of_rows(row)].iter().map(|&x| (x, x));
                squares.collect::<ExactDot<f32>>().rounded::<f64>()
            });
            assert_eq!(bits(found), bits(right), "squares of {case}");
            let found = sums!(Third, thirds, gpu, &doubles, rows);
            let right = (0..rows).map(|row| {
                let thirds = doubles[of_rows(row)].iter().map(|&x| (x, THIRD));
                thirds.collect::<ExactDot<f64>>().value()
            });
            assert_eq!(bits(found), bits(right), "thirds of {rows} x {len}");
            let of_bits: Vec<i32> = singles.iter().map(|x| x.to_bits() as i32).collect();
            let found = sums!(Integer, integers, gpu, &of_bits, rows);
            let right = (0..rows).map(|row| of_bits[of_rows(row)].iter().map(|&x| i64::from(x)).sum::<i64>() as f64);
            assert_eq!(bits(found), bits(right), "integers of {case}");
        }
    }
}

#[test]
fn what_is_no_term_or_has_no_kernel_is_an_error() {
    let gpu = Gpu::simt();
    // SAFETY: `TermKernels` launches them with the arguments of their engine.
    let (successors, positives) = unsafe { (successors::handle(), positives::handle()) };
    let error = TermKernels::<Successor, f32>::new("the sum of successors", successors).err().unwrap();
    assert!(matches!(error, Error::TermOfZero { operator: "the sum of successors" }), "{error}");
    let kernels = || TermKernels::<Positive, f32>::new("the sum of positives", positives).unwrap();
    let error = gpu.exact_reducer_by(kernels(), Shape::columns(3, 2)).err().unwrap();
    assert!(matches!(error, Error::NoReductionKernel { shape: "columns", .. }), "{error}");
    let error = gpu.exact_reducer_by(kernels(), Shape::rows(usize::MAX, 2)).err().unwrap();
    assert!(matches!(error, Error::Shape { .. }), "{error}");
    let mut of_none = gpu.exact_reducer_by(kernels(), Shape::rows(0, 2)).unwrap();
    of_none.start(&gpu.zeroed(0).unwrap(), &mut gpu.zeroed(0).unwrap()).unwrap();
}
