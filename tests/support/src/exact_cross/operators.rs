//! The operators of the cross, for each element type.

use crate::by_shape::AddByShape;
use crate::by_shape::ByShape;
use half::{bf16, f16};
use test_kernels::operators::{Huge, Magnitude, Positive, Square};
use warpfold::ops::{Dot, InElementType, Mean, Norm, PairwiseMean, PairwiseSum, Sum, SumInF64, SumOfSquares};
use warpfold::{Element, Error, ExactElement, Gpu, Reduces, Reduction, View};

use super::layouts::Form;
use super::reference::{Format, Outcome};
use crate::exact::{Exact, power};
use crate::order::{Fold, Place};

/// The inputs of a call.
#[derive(Clone, Copy)]
pub struct Inputs<'a, T: Element> {
    /// The elements.
    pub x: View<'a, T>,
    /// Those that are multiplied by them.
    pub y: View<'a, T>,
    /// The shape.
    pub form: &'a Form,
    /// The offsets of segments.
    pub offsets: View<'a, u64>,
}

/// The results of a call, or `None` if the operator does not take the shape.
type Results = Result<Option<Vec<f64>>, Error>;

/// Calls an operator.
type Call<T> = dyn Fn(&Gpu, Inputs<'_, T>) -> Results + Send + Sync;

/// An operator, as a row of a [`Group`].
pub struct Operator<T: Element> {
    /// Its name in messages.
    pub name: &'static str,
    /// What it computes from the sum.
    pub outcome: Outcome,
    /// The format of its results.
    pub format: Format,
    /// Calls it.
    pub run: Box<Call<T>>,
}

/// The operators that sum the same terms.
pub struct Group<T: Element> {
    /// The factors of the term of an element of `x` and the one of `y` at the same place.
    pub factors: fn(f64, f64) -> [f64; 2],
    /// The operators.
    pub operators: Vec<Operator<T>>,
}

const ELEMENT: fn(f64, f64) -> [f64; 2] = |x, _| [x, 1.0];
const SQUARE: fn(f64, f64) -> [f64; 2] = |x, _| [x, x];
const PRODUCT: fn(f64, f64) -> [f64; 2] = |x, y| [x, y];

/// An operator that adds in the library's order, as a row of [`Crossed::in_order`].
pub struct InOrder<T: Element> {
    /// Its name in messages.
    pub name: &'static str,
    /// Its result for elements that lie like this, by additions on the CPU.
    pub expected: fn(Place, &[T]) -> f64,
    /// Calls it.
    pub run: Box<Call<T>>,
}

/// The sum of numbers in the library's order, and its quotient by their number.
macro_rules! pairwise {
    ($name:ident in $sum:ident) => {
        fn $name<T: Element + Into<f64>>(place: Place, elements: &[T], is_mean: bool) -> f64 {
            let states: Vec<$sum> = elements.iter().map(|&x| x.into() as $sum).collect();
            let fold = Fold { neutral: 0.0, combine: &|a: $sum, b: $sum| a + b, size: size_of::<T>() };
            let sum = f64::from(fold.of(place, &states) + 0.0);
            f64::from(if is_mean { sum / elements.len() as f64 } else { sum } as $sum)
        }
    };
}

pairwise!(pairwise_in_f32 in f32);
pairwise!(pairwise_in_f64 in f64);

/// An element type of the cross.
pub trait Crossed: Exact + ExactElement + Sync {
    /// The format of sums.
    const OF_SUMS: Format;

    /// Every exact operator on this type. To add one, add a row.
    fn groups() -> Vec<Group<Self>>;

    /// Every operator on this type that adds in a fixed order. To add one, add a row.
    fn in_order() -> Vec<InOrder<Self>>;
}

impl Crossed for f32 {
    const OF_SUMS: Format = Format::SINGLE;

    fn groups() -> Vec<Group<Self>> {
        let mut all = of_every_type();
        all[0].operators.push(of("SumInF64", SumInF64, Outcome::Sum, Format::DOUBLE));
        all[1].operators.push(of("a custom square", Square, Outcome::Sum, Format::DOUBLE));
        all.push(Group {
            factors: |x, _| [if x > 0.0 { x } else { 0.0 }, 1.0],
            operators: vec![of("a custom sum of positives", Positive, Outcome::Sum, Format::SINGLE)],
        });
        all.push(Group {
            // An infinity if the term is one.
            factors: |x, _| [x * power(1020), 1.0],
            operators: vec![of("a custom sum of huge terms", Huge, Outcome::Sum, Format::DOUBLE)],
        });
        all
    }

    fn in_order() -> Vec<InOrder<Self>> {
        pairwise_operators(|place, x| pairwise_in_f32(place, x, false), |place, x| pairwise_in_f32(place, x, true))
    }
}

impl Crossed for f64 {
    const OF_SUMS: Format = Format::DOUBLE;

    fn groups() -> Vec<Group<Self>> {
        let mut all = of_every_type();
        all.push(Group {
            factors: |x, _| [x.abs(), 1.0],
            operators: vec![of("a custom sum of magnitudes", Magnitude, Outcome::Sum, Format::DOUBLE)],
        });
        all
    }

    fn in_order() -> Vec<InOrder<Self>> {
        pairwise_operators(|place, x| pairwise_in_f64(place, x, false), |place, x| pairwise_in_f64(place, x, true))
    }
}

impl Crossed for f16 {
    const OF_SUMS: Format = Format::SINGLE;

    fn groups() -> Vec<Group<Self>> {
        with_element_type(Format::HALF)
    }

    fn in_order() -> Vec<InOrder<Self>> {
        pairwise_operators(|place, x| pairwise_in_f32(place, x, false), |place, x| pairwise_in_f32(place, x, true))
    }
}

impl Crossed for bf16 {
    const OF_SUMS: Format = Format::SINGLE;

    fn groups() -> Vec<Group<Self>> {
        with_element_type(Format::BRAIN)
    }

    fn in_order() -> Vec<InOrder<Self>> {
        pairwise_operators(|place, x| pairwise_in_f32(place, x, false), |place, x| pairwise_in_f32(place, x, true))
    }
}

/// The operators of [`Crossed::in_order`].
fn pairwise_operators<T: Crossed>(sum: fn(Place, &[T]) -> f64, mean: fn(Place, &[T]) -> f64) -> Vec<InOrder<T>>
where
    PairwiseSum: Reduction<T, Output: Into<f64>>,
    PairwiseMean: Reduction<T, Output: Into<f64>>,
{
    let of_sum = of("PairwiseSum", PairwiseSum, Outcome::Sum, T::OF_SUMS);
    let of_mean = of("PairwiseMean", PairwiseMean, Outcome::Mean, T::OF_SUMS);
    vec![
        InOrder { name: of_sum.name, expected: sum, run: of_sum.run },
        InOrder { name: of_mean.name, expected: mean, run: of_mean.run },
    ]
}

/// The operators that every type has.
fn of_every_type<T: Crossed>() -> Vec<Group<T>>
where
    Sum: Reduction<T, Output: Into<f64>>,
    Mean: Reduction<T, Output: Into<f64>>,
    SumOfSquares: Reduction<T, Output: Into<f64>>,
    Norm: Reduction<T, Output: Into<f64>>,
    Dot: Reduces<T, 2, Output: Into<f64>>,
{
    let format = T::OF_SUMS;
    vec![
        Group {
            factors: ELEMENT,
            operators: vec![
                of("Sum", Sum, Outcome::Sum, format),
                of("Mean", Mean, Outcome::Mean, format),
                of_states("the values of ExactSums", Outcome::Sum),
                of_states("the means of ExactSums", Outcome::Mean),
            ],
        },
        Group {
            factors: SQUARE,
            operators: vec![
                of("SumOfSquares", SumOfSquares, Outcome::Sum, format),
                of("Norm", Norm, Outcome::Root, format),
            ],
        },
        Group { factors: PRODUCT, operators: vec![of_pairs("Dot", Dot, format)] },
    ]
}

/// The operators of a type of 16 bits.
fn with_element_type<T: Crossed>(own: Format) -> Vec<Group<T>>
where
    Sum: Reduction<T, Output: Into<f64>>,
    Mean: Reduction<T, Output: Into<f64>>,
    SumOfSquares: Reduction<T, Output: Into<f64>>,
    Norm: Reduction<T, Output: Into<f64>>,
    Dot: Reduces<T, 2, Output: Into<f64>>,
    InElementType<Sum>: Reduction<T, Output = T>,
    InElementType<Mean>: Reduction<T, Output = T>,
    InElementType<SumOfSquares>: Reduction<T, Output = T>,
    InElementType<Norm>: Reduction<T, Output = T>,
    InElementType<Dot>: Reduces<T, 2, Output = T>,
{
    let mut all = of_every_type();
    all[0].operators.push(of("InElementType(Sum)", InElementType(Sum), Outcome::Sum, own));
    all[0].operators.push(of("InElementType(Mean)", InElementType(Mean), Outcome::Mean, own));
    all[1].operators.push(of("InElementType(SumOfSquares)", InElementType(SumOfSquares), Outcome::Sum, own));
    all[1].operators.push(of("InElementType(Norm)", InElementType(Norm), Outcome::Root, own));
    all[2].operators.push(of_pairs("InElementType(Dot)", InElementType(Dot), own));
    all
}

/// A reduction of one input, in every shape.
fn of<T, O>(name: &'static str, operator: O, outcome: Outcome, format: Format) -> Operator<T>
where
    T: Element,
    O: Reduction<T, Output: Into<f64>> + Copy + Send + Sync + 'static,
{
    let run = move |gpu: &Gpu, inputs: Inputs<'_, T>| {
        let results = match inputs.form {
            Form::Rows(shape) | Form::Columns(shape) => gpu.reduce_to_buffer(operator, inputs.x, *shape)?,
            Form::Offsets(_) => gpu.reduce_segments(operator, inputs.x, inputs.offsets)?,
        };
        Ok(Some(gpu.download(&results)?.into_iter().map(Into::into).collect()))
    };
    Operator { name, outcome, format, run: Box::new(run) }
}

/// A reduction of two inputs: whole, rows or columns.
fn of_pairs<T, O>(name: &'static str, operator: O, format: Format) -> Operator<T>
where
    T: Element,
    O: Reduces<T, 2, Output: Into<f64>> + Copy + Send + Sync + 'static,
{
    let run = move |gpu: &Gpu, inputs: Inputs<'_, T>| match inputs.form {
        Form::Rows(shape) | Form::Columns(shape) => {
            let results = gpu.reduce_pairs(operator, inputs.x, inputs.y, *shape)?;
            Ok(Some(gpu.download(&results)?.into_iter().map(Into::into).collect()))
        }
        Form::Offsets(_) => Ok(None),
    };
    Operator { name, outcome: Outcome::Sum, format, run: Box::new(run) }
}

/// Sums that stay on the device. They take every shape but segments by offsets.
fn of_states<T: Crossed>(name: &'static str, outcome: Outcome) -> Operator<T> {
    let run = move |gpu: &Gpu, inputs: Inputs<'_, T>| {
        let (Form::Rows(shape) | Form::Columns(shape)) = inputs.form else { return Ok(None) };
        let mut sums = gpu.exact_sums::<T>(shape.outputs())?;
        sums.add_shape(inputs.x, *shape)?;
        let results = if outcome == Outcome::Mean { sums.means()? } else { sums.values()? };
        Ok(Some(gpu.download(&results)?.into_iter().map(Into::into).collect()))
    };
    Operator { name, outcome, format: T::OF_SUMS, run: Box::new(run) }
}
