//! The bits of results, compared with stored hashes: `snapshots/cpu__bits__*.snap`.
//!
//! Other tests compare results with references: to the last bit only where a result is exact, otherwise within a
//! tolerance, and any NaN with any other. Here each changed bit is an error. If a change is intended, write the new
//! hashes with `INSTA_UPDATE=always cargo test -p warpfold-tests --test cpu bits::`, and say in the changelog which
//! results have other bits.
//!
//! The elements are those of one version of `rand`. So each file begins with a hash of elements: if that changes, the
//! other hashes do, too, though no result has other bits.

use std::fmt::{Display, Write};

use half::{bf16, f16};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use test_support::by_length::Trace;
use test_support::by_shape::ByShape;
use test_support::executor;
use test_support::reductions::data::{Kind, Random};
use test_support::reductions::shapes::Form;
use test_support::reductions::value::Values;
use test_support::reductions::{Case, PAIRS, dots};
use warpfold::ladder::{LadderElement, ReduceRung};
use warpfold::num_complex::{Complex32, Complex64};
use warpfold::ops::{InElementType, Mean, Norm, Product, Sum, SumOfSquares};
use warpfold::{Element, Error, Gpu, Reduction, ScaledElement, Scaling};

/// The lines of a file.
struct Hashes(String);

impl Hashes {
    fn new() -> Self {
        let mut hashes = Self(String::new());
        let (floats, integers) = (elements::<f64>(Kind::Special, 1000), elements::<u32>(Kind::Any, 1000));
        hashes.line([bytes(&floats), bytes(&integers)], "elements");
        hashes
    }

    /// Adds a line: the CRC-32 of each result's bits, and what the results are of.
    fn line(&mut self, results: impl IntoIterator<Item = Vec<u8>>, what: impl Display) {
        for bytes in results {
            write!(self.0, "{:08x} ", crc32fast::hash(&bytes)).expect("a string takes any text");
        }
        writeln!(self.0, "{what}").expect("a string takes any text");
    }
}

fn bytes<V: Values>(numbers: &[V]) -> Vec<u8> {
    numbers.iter().flat_map(Values::bytes).collect()
}

fn elements<T: Random>(kind: Kind, len: usize) -> Vec<T> {
    let mut source = SmallRng::seed_from_u64(len as u64);
    (0..len).map(|_| T::random(kind, &mut source)).collect()
}

/// The offsets of segments of lengths near the boundaries of lanes, warps and blocks.
fn offsets() -> Vec<u64> {
    let mut offsets = vec![1];
    for len in [0, 1, 2, 3, 31, 32, 33, 100, 257, 1000, 5000, 0, 20_000] {
        offsets.push(offsets[offsets.len() - 1] + len);
    }
    offsets
}

/// The bits of a reduction's results; of segments by offsets, if there is no form.
fn reduced<O, T>(gpu: &Gpu, operator: O, kind: Kind, form: Option<Form>) -> Vec<u8>
where
    O: Reduction<T, Output: Values>,
    T: Element + Random,
{
    let run = || {
        let output = if let Some(form) = form {
            // Some begin at multiples of 16 bytes, some do not.
            let (len, offset) = (form.elements(), form.elements() % 3);
            let input = gpu.upload(&elements::<T>(kind, len + offset))?;
            gpu.reduce_to_buffer(operator, input.view().slice(offset, len)?, form.shape()?)?
        } else {
            gpu.reduce_segments(operator, &gpu.upload(&elements::<T>(kind, 30_000))?, &gpu.upload(&offsets())?)?
        };
        Ok::<_, Error>(bytes(&gpu.download(&output)?))
    };
    run().unwrap_or_else(|error| panic!("{form:?}: {error}"))
}

/// Each line has a hash for each of these forms, with three kinds of data.
#[test]
fn every_operator_and_type() {
    let forms = [Form::All(4099), Form::Rows(9, 130, 133), Form::Columns(90, 33, 33), Form::Axis([3, 5, 40, 6], 2)];
    let (gpu, mut hashes) = (executor(), Hashes::new());
    for pair in PAIRS {
        let of_form = |form| -> Vec<u8> {
            let of_kind = |(offset, kind)| pair.run(&gpu, &Case { kind, seed: 1, form, offset }).unwrap().bits;
            [Kind::Special, Kind::NearOne, Kind::Few].into_iter().enumerate().flat_map(of_kind).collect()
        };
        hashes.line(forms.map(of_form), format_args!("{} of {}", pair.operator.name(), pair.dtype));
    }
    for (dtype, dot) in dots::CHECKS {
        let case =
            |(rows, len, pad, kind)| dots::Case { kind, seed: 2, rows, len, pitch: len + pad, offsets: [0, pad] };
        let cases = [(1, 4099, 1, Kind::Any), (9, 130, 3, Kind::NearOne), (3, 200, 0, Kind::Any)].map(case);
        hashes.line(cases.map(|case| dot(&gpu, &case).unwrap()), format_args!("dot of {dtype}"));
    }
    macro_rules! in_element_type {
        ($($operator:ident)*) => {$(
            let of_f16 = |form| reduced::<_, f16>(&gpu, InElementType($operator), Kind::Any, Some(form));
            hashes.line(forms.map(of_f16), concat!(stringify!($operator), " of f16, in f16"));
            let of_bf16 = |form| reduced::<_, bf16>(&gpu, InElementType($operator), Kind::Any, Some(form));
            hashes.line(forms.map(of_bf16), concat!(stringify!($operator), " of bf16, in bf16"));
        )*};
    }
    in_element_type!(Sum Mean SumOfSquares Norm);
    insta::assert_snapshot!("operators", hashes.0);
}

/// Operators whose results depend on the order: a custom one of f32, and products of f32, f64, f16 and bf16.
#[test]
fn operators_with_a_fixed_order() {
    let (gpu, mut hashes) = (executor(), Hashes::new());
    let lengths = [1, 2, 31, 33, 256, 1000, 4097, 20_011, 100_003].map(Form::All);
    let rows = [(1000, 3, 0), (37, 20, 1), (600, 33, 0), (5, 700, 3), (3, 5000, 0), (2, 40_001, 0)];
    let columns = [(150, 9, 0), (5000, 3, 1), (257, 64, 0), (1030, 40, 0), (20_000, 2, 0), (17, 300, 4)];
    let axes = [([3, 50, 7, 1], 1), ([70, 2, 2, 1], 1), ([4, 6, 5, 7], 0), ([2, 1000, 3, 1], 1)];
    let forms = (lengths.into_iter())
        .chain(rows.map(|(rows, columns, pad)| Form::Rows(rows, columns, columns + pad)))
        .chain(columns.map(|(rows, columns, pad)| Form::Columns(rows, columns, columns + pad)))
        .chain(axes.map(|(extents, axis)| Form::Axis(extents, axis)));
    for form in forms.map(Some).chain([None]) {
        let all = [
            reduced::<_, f32>(&gpu, Trace, Kind::Any, form),
            reduced::<_, f32>(&gpu, Product, Kind::NearOne, form),
            reduced::<_, f64>(&gpu, Product, Kind::NearOne, form),
            reduced::<_, f16>(&gpu, Product, Kind::NearOne, form),
            reduced::<_, bf16>(&gpu, Product, Kind::NearOne, form),
        ];
        hashes.line(all, form.map_or("segments by offsets".to_owned(), |form| format!("{form:?}")));
    }
    insta::assert_snapshot!("orders", hashes.0);
}

/// The bits of a rung's sum, if the rung has a kernel for the type.
fn of_rung<T: LadderElement + Random + Values>(gpu: &Gpu, rung: ReduceRung, block: usize) -> Option<Vec<u8>> {
    let input = gpu.upload(&elements::<T>(Kind::Any, 10_007)).unwrap();
    let mut sum = match rung.prepare::<T>(gpu, input.len(), block) {
        Err(Error::NoSuchRung { .. }) => return None,
        prepared => prepared.unwrap(),
    };
    sum.load(gpu, &input).and_then(|()| sum.start(gpu, &input)).unwrap();
    Some(bytes(&[sum.finish(gpu).unwrap()]))
}

/// Sums of f32 and f64 by additions of floats.
#[test]
fn rungs_of_the_reduction_ladders() {
    let (gpu, mut hashes) = (executor(), Hashes::new());
    for rung in ReduceRung::all() {
        for block in [64, 512] {
            let all = [of_rung::<f32>(&gpu, rung, block), of_rung::<f64>(&gpu, rung, block)];
            hashes.line(all.into_iter().flatten(), format_args!("{} with blocks of {block}", rung.name()));
        }
    }
    insta::assert_snapshot!("ladders", hashes.0);
}

/// Transposes by a factor; of complex numbers also to the conjugate, and both. (Plain transposes are compared with the
/// CPU to the last bit.)
#[test]
fn scaled_transposes() {
    fn scaled<T, const N: usize>(
        gpu: &Gpu,
        all: &[T],
        scalings: [Scaling<T>; N],
        bytes: impl Fn(&T) -> Vec<u8>,
    ) -> [Vec<u8>; N]
    where
        T: ScaledElement,
    {
        scalings.map(|scaling| {
            let (input, output) = (gpu.upload(all).unwrap(), gpu.upload(all).unwrap());
            let input = input.view().slice(0, 67 * 70).unwrap().reshape(&[67, 70]).unwrap();
            let mut output = output;
            let transposed = output.view_mut().slice(0, 67 * 70).unwrap().reshape(&[70, 67]).unwrap();
            gpu.copy_scaled(scaling, input.permute_axes(&[1, 0]).unwrap(), transposed).unwrap();
            gpu.download(&output).unwrap().iter().flat_map(&bytes).collect()
        })
    }
    fn real<T: ScaledElement + Random + Values + Copy>(gpu: &Gpu, len: usize) -> [Vec<u8>; 1] {
        let all = elements::<T>(Kind::Special, len);
        scaled(gpu, &all, [Scaling::by(all[1])], Values::bytes)
    }
    fn complex<T: ScaledElement + Copy>(gpu: &Gpu, all: &[T], bytes: impl Fn(&T) -> Vec<u8>) -> [Vec<u8>; 3] {
        let factor = Scaling::by(all[1]);
        scaled(gpu, all, [factor, Scaling::conjugate(), factor.and_conjugate()], bytes)
    }
    let (gpu, mut hashes) = (executor(), Hashes::new());
    let (singles, doubles) = (elements::<f32>(Kind::Special, 10_000), elements::<f64>(Kind::Special, 10_000));
    hashes.line(real::<f16>(&gpu, 5000), "f16");
    hashes.line(real::<bf16>(&gpu, 5000), "bf16");
    hashes.line(real::<f32>(&gpu, 10_000), "f32");
    hashes.line(real::<f64>(&gpu, 10_000), "f64");
    let all: Vec<Complex32> = singles.chunks(2).map(|pair| Complex32::new(pair[0], pair[1])).collect();
    hashes.line(complex(&gpu, &all, |x| bytes(&[x.re, x.im])), "complex f32");
    let all: Vec<Complex64> = doubles.chunks(2).map(|pair| Complex64::new(pair[0], pair[1])).collect();
    hashes.line(complex(&gpu, &all, |x| bytes(&[x.re, x.im])), "complex f64");
    insta::assert_snapshot!("scaled_transposes", hashes.0);
}
