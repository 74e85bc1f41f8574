//! Reductions by any operator, of any type and shape, compared with results of the CPU that do not depend on any
//! kernel.
//!
//! | module | contents |
//! |---|---|
//! | [`value`] | numbers of any type, as they are compared |
//! | [`reference`](mod@reference) | the expected results of each operator |
//! | [`shapes`] | shapes, and the elements of each output |
//! | [`data`] | the elements |
//! | [`dots`] | dot products |
//! | [`large`] | long inputs |
//!
//! Tests choose an operator and a type at run time from [`PAIRS`], which has all built-in ones.

pub mod data;
pub mod dots;
pub mod large;
pub mod reference;
pub mod shapes;
pub mod value;

use crate::by_shape::ByShape;
use half::{bf16, f16};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use warpfold::{Element, Error, Gpu, Reduction, ops};

use data::{Kind, Random};
use reference::Operator;
use shapes::Form;
use value::{Value, Values};

/// An operator and a type that it has kernels for.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// The operator.
    pub operator: Operator,
    /// The type's name.
    pub dtype: &'static str,
    run: fn(&Gpu, &Case) -> Result<Outcome, Error>,
}

/// The input of a reduction.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The kind of data.
    pub kind: Kind,
    /// The seed of the elements.
    pub seed: u64,
    /// The shape.
    pub form: Form,
    /// The number of elements before the view.
    pub offset: usize,
}

/// The result of a reduction.
#[derive(Debug)]
pub struct Outcome {
    /// The elements of the view.
    pub elements: Vec<Value>,
    /// The numbers of each output: one, or two for [`ops::MinMax`].
    pub outputs: Vec<Vec<Value>>,
    /// The outputs' bits.
    pub bits: Vec<u8>,
}

impl Pair {
    /// Runs the reduction.
    ///
    /// # Errors
    /// On an error of the library.
    pub fn run(&self, gpu: &Gpu, case: &Case) -> Result<Outcome, Error> {
        (self.run)(gpu, case)
    }

    /// Runs the reduction and compares every output with the expected one.
    ///
    /// # Errors
    /// If an output is wrong, or on an error of the library. The message has the output and the expected one.
    pub fn check(&self, gpu: &Gpu, case: &Case) -> Result<Outcome, String> {
        let outcome = self.run(gpu, case).map_err(|error| format!("{self:?} {case:?}: {error}"))?;
        let groups = case.form.groups();
        if groups.len() != outcome.outputs.len() {
            return Err(format!("{self:?} {case:?}: {} outputs, should be {}", outcome.outputs.len(), groups.len()));
        }
        for (i, (group, found)) in groups.iter().zip(&outcome.outputs).enumerate() {
            let elements: Vec<Value> = group.iter().map(|&at| outcome.elements[at]).collect();
            let expected = self.operator.expected(self.dtype, &elements);
            if expected.len() != found.len() || expected.iter().zip(found).any(|(expected, found)| !expected.is(*found))
            {
                return Err(format!(
                    "{} of {}, {case:?}: output {i} is {found:?}, should be {expected:?}",
                    self.operator.name(),
                    self.dtype
                ));
            }
        }
        Ok(outcome)
    }
}

/// Reduces with operator `O`.
fn run<O: Reduction<T> + Default, T: Element + Random>(gpu: &Gpu, case: &Case) -> Result<Outcome, Error>
where
    O::Output: Values,
    Value: From<T>,
{
    let mut source = SmallRng::seed_from_u64(case.seed);
    let len = case.form.elements();
    // The elements of the view are made first, so that they are the same at every offset.
    let mut all: Vec<T> = (0..len + case.offset).map(|_| T::random(case.kind, &mut source)).collect();
    all.rotate_right(case.offset);
    let buffer = gpu.upload(&all)?;
    let view = buffer.view().slice(case.offset, len)?;
    let output = match case.form {
        Form::Segments { .. } => gpu.reduce_segments(O::default(), view, &gpu.upload(&case.form.offsets())?)?,
        _ => gpu.reduce_to_buffer(O::default(), view, case.form.shape()?)?,
    };
    let outputs = gpu.download(&output)?;
    Ok(Outcome {
        elements: all[case.offset..].iter().copied().map(Value::from).collect(),
        bits: outputs.iter().flat_map(Values::bytes).collect(),
        outputs: outputs.iter().map(Values::values).collect(),
    })
}

macro_rules! pairs {
    ($($operator:ident, $name:literal of $([$type:ident])*;)*) => {
        /// Every operator with every type that it has kernels for.
        pub const PAIRS: &[Pair] = &[$($(
            Pair { operator: Operator::$operator, dtype: stringify!($type), run: run::<ops::$operator, $type> },
        )*)*];
    };
}

kernels::for_each_builtin! { pairs }

/// Numbers of multiprocessors of devices: of small ones, an A100, an RTX 4090, and a B200.
const MULTIPROCESSORS: [usize; 5] = [1, 64, 108, 128, 148];

/// Checks that the bits of no result depend on the number of multiprocessors that it is planned for.
///
/// # Errors
/// If one does, or on an error of the library.
pub fn planned_for_other_devices(gpu: &Gpu, elements: usize) -> Result<(), String> {
    let (rows, seed) = (elements / 300, 53);
    let forms = [
        Form::All(elements),
        Form::Rows(3, elements / 3, elements / 3),
        Form::Rows(rows, 300, 301),
        Form::Columns(300, rows, rows),
        Form::Columns(elements / 9, 8, 9),
        Form::Segments { count: 40, longest: elements / 10, seed },
    ];
    for pair in PAIRS {
        for form in forms {
            let kind = if pair.operator == Operator::Product { Kind::NearOne } else { Kind::Any };
            let case = Case { kind, seed, form, offset: 1 };
            let run = |gpu: &Gpu| match pair.run(gpu, &case) {
                Ok(outcome) => Ok(outcome.bits),
                Err(error) => Err(format!("{pair:?} {case:?}: {error}")),
            };
            let expected = run(gpu)?;
            for multiprocessors in MULTIPROCESSORS {
                if run(&gpu.planned_for(multiprocessors))? != expected {
                    return Err(format!("{pair:?} {case:?}: other bits for {multiprocessors} multiprocessors"));
                }
            }
        }
    }
    Ok(())
}
