//! The full cross of exact sums: every shape, kind of data, element type and operator, compared with big integers.
//!
//! | a table | its rows |
//! |---|---|
//! | [`LAYOUTS`] | shapes |
//! | [`KINDS`] | kinds of data |
//! | [`Crossed::groups`] | the operators of an element type |
//! | [`Crossed::in_order`] | those that add in a fixed order, compared with the same additions on the CPU |
//! | [`extents`] | numbers of outputs, and of elements of each |
//! | [`EXAMPLES`] | inputs by their elements |

mod layouts;
mod operators;
mod reference;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use warpfold::{Error, Gpu};

pub use self::layouts::{Form, LAYOUTS, Layout, Placed};
pub use self::operators::{Crossed, Group, InOrder, Inputs, Operator};
pub use self::reference::{Format, Outcome, Total};
use crate::exact::{ALL, Data, numbers, power};
use crate::order::Place;

/// The data of a case.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// All outputs have this kind.
    Each(Data),
    /// Each output has another kind.
    Mixed,
}

/// Every kind.
pub const KINDS: [Kind; ALL.len() + 1] = {
    let mut kinds = [Kind::Mixed; ALL.len() + 1];
    let mut i = 0;
    while i < ALL.len() {
        kinds[i] = Kind::Each(ALL[i]);
        i += 1;
    }
    kinds
};

/// Small cases of every shape: outputs, and elements of each. In the last one, rows and columns have other orders.
pub const SHORT: [(usize, usize); 3] = [(1, 3), (3, 5), (1, 100)];

/// The lengths of [`extents`]: around vectors, warps, blocks, tiles, and the limits of the kernels for short rows and
/// short segments.
const LENGTHS: [usize; 32] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 100, 127, 129, 255, 257, 500, 513, 1000, 1025, 2049, 4097,
    5000, 9001, 20_000, 41_000, 70_000,
];

/// One output, a few and many.
const OUTPUTS: [usize; 4] = [1, 3, 42, 3000];

/// The maximum number of elements of a case with more than one output.
const MAX_ELEMENTS: usize = 220_000;

/// The numbers of outputs, and of elements of each.
pub fn extents() -> Vec<(usize, usize)> {
    let all = OUTPUTS.into_iter().flat_map(|outputs| LENGTHS.into_iter().map(move |len| (outputs, len)));
    all.filter(|(outputs, len)| outputs * len <= MAX_ELEMENTS).collect()
}

/// Inputs on which something has failed, or could.
pub const EXAMPLES: [&[f64]; 6] = [
    &[power(-1074)],
    &[1.0, power(-53), power(-1074)],
    &[1e-310, 3e-320, power(-1074)],
    // Next to a midpoint of `f16`: rounded to `f32` first, it is the midpoint.
    &[2048.0, 1.0, power(-24)],
    // The same for `f32`, where `f64` cannot hold the sum.
    &[1.0, power(-24), power(-149)],
    // The longest short row: in units of the terms above all windows, its sum has 64 bits.
    &[f64::MAX; 257],
];

/// The elements of a case.
struct Case<T> {
    name: String,
    x: Vec<Vec<T>>,
    y: Vec<Vec<T>>,
}

impl<T: Crossed> Case<T> {
    /// Random data.
    fn random(kind: Kind, (outputs, len): (usize, usize), seed: u64) -> Self {
        let mut source = SmallRng::seed_from_u64(seed);
        let (mut x, mut y) = (Vec::with_capacity(outputs), Vec::with_capacity(outputs));
        for _ in 0..outputs {
            let data = match kind {
                Kind::Each(data) => data,
                Kind::Mixed => ALL[source.random_range(0..ALL.len())],
            };
            x.push(numbers::<T>(data, len, &mut source));
            y.push(match source.random_range(0..3) {
                0 => numbers(data, len, &mut source),
                1 => numbers(Data::Normal, len, &mut source),
                _ => (0..len).map(|_| T::nearest(if source.random() { 1.0 } else { -1.0 })).collect(),
            });
        }
        Self { name: format!("{outputs} outputs of {len} {} of {kind:?}, seed {seed}", T::NAME), x, y }
    }

    /// Outputs of the same elements.
    fn of(elements: &[f64], outputs: usize) -> Self {
        let x = elements.iter().map(|&x| T::nearest(x)).collect();
        let y = elements.iter().rev().map(|&x| T::nearest(x)).collect();
        let name = format!("{outputs} outputs of {elements:?} as {}", T::NAME);
        Self { name, x: vec![x; outputs], y: vec![y; outputs] }
    }
}

/// What was tried.
#[derive(Debug, Default)]
pub struct Tally {
    /// The number of results.
    pub results: usize,
    /// The number of wrong ones.
    pub wrong: usize,
    /// The first wrong ones.
    messages: Vec<String>,
}

impl Tally {
    /// The number of results.
    ///
    /// # Errors
    /// Some are wrong. The message has the first ones.
    pub fn checked(self) -> Result<usize, String> {
        match self.wrong {
            0 => Ok(self.results),
            wrong => Err(format!("{wrong} of {} results are wrong:\n{}", self.results, self.messages.join("\n"))),
        }
    }

    /// Counts a result.
    fn record(&mut self, found: f64, expected: f64, what: impl FnOnce() -> String) {
        const SHOWN: usize = 20;
        self.results += 1;
        if found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan() {
            return;
        }
        self.wrong += 1;
        if self.wrong <= SHOWN {
            self.messages.push(format!("{}: {found:e}, expected {expected:e}", what()));
        }
    }
}

/// Checks one kind of data of one type at an extent: every shape and every operator. Wrong results are counted.
///
/// # Errors
/// As for [`Gpu::reduce_all`].
pub fn check<T: Crossed>(
    gpu: &Gpu,
    kind: Kind,
    extent: (usize, usize),
    seed: u64,
    tally: &mut Tally,
) -> Result<(), Error> {
    check_case(gpu, &Case::random(kind, extent, seed), &T::groups(), tally)
}

/// Checks [`EXAMPLES`] in every shape by every operator.
///
/// # Errors
/// As for [`check`].
pub fn examples<T: Crossed>(gpu: &Gpu, tally: &mut Tally) -> Result<(), Error> {
    let groups = T::groups();
    for elements in EXAMPLES {
        for outputs in [1, 9] {
            check_case(gpu, &Case::of(elements, outputs), &groups, tally)?;
        }
    }
    Ok(())
}

fn check_case<T: Crossed>(gpu: &Gpu, case: &Case<T>, groups: &[Group<T>], tally: &mut Tally) -> Result<(), Error> {
    let (outputs, len) = (case.x.len(), case.x[0].len());
    // They are the same in every shape.
    let expected: Vec<Vec<Vec<f64>>> = groups.iter().map(|group| expected(case, group)).collect();
    for layout in LAYOUTS {
        let Some(placed) = (layout.place)(outputs, len) else { continue };
        let (of_x, of_y) = (gpu.upload(&buffer_of(&case.x, &placed))?, gpu.upload(&buffer_of(&case.y, &placed))?);
        let offsets: &[u64] = if let Form::Offsets(offsets) = &placed.form { offsets } else { &[] };
        let offsets = gpu.upload(offsets)?;
        let (x, y) = (of_x.view().slice(placed.before, placed.len)?, of_y.view().slice(placed.before, placed.len)?);
        let inputs = Inputs { x, y, form: &placed.form, offsets: offsets.view() };
        for (group, expected) in groups.iter().zip(&expected) {
            for (operator, expected) in group.operators.iter().zip(expected) {
                let Some(found) = (operator.run)(gpu, inputs)? else { continue };
                let found: Vec<f64> = found.into_iter().step_by(placed.results_apart).collect();
                assert_eq!(found.len(), outputs, "{}: the results of {}", layout.name, operator.name);
                for (i, (&found, &expected)) in found.iter().zip(expected).enumerate() {
                    let what = || format!("{}, {}, {}, output {i}", layout.name, case.name, operator.name);
                    tally.record(found, expected, what);
                }
            }
        }
        let place = match placed.form {
            Form::Rows(_) => Place::Contiguous,
            Form::Columns(_) => Place::Strided,
            Form::Offsets(_) => Place::Segment,
        };
        for operator in T::in_order() {
            let Some(found) = (operator.run)(gpu, inputs)? else { continue };
            for (i, &found) in found.iter().step_by(placed.results_apart).enumerate() {
                let what = || format!("{}, {}, {}, output {i}", layout.name, case.name, operator.name);
                tally.record(found, (operator.expected)(place, &case.x[i]), what);
            }
        }
    }
    Ok(())
}

/// The results of each operator of a group.
fn expected<T: Crossed>(case: &Case<T>, group: &Group<T>) -> Vec<Vec<f64>> {
    let factors = |(&x, &y): (&T, &T)| (group.factors)(x.into(), y.into());
    let totals: Vec<Total> = case.x.iter().zip(&case.y).map(|(x, y)| Total::of(x.iter().zip(y).map(factors))).collect();
    let of =
        |operator: &Operator<T>| totals.iter().map(|total| total.rounded(operator.outcome, operator.format)).collect();
    group.operators.iter().map(of).collect()
}

/// A buffer with the elements at their places, and NaN at all others.
fn buffer_of<T: Crossed>(elements: &[Vec<T>], placed: &Placed) -> Vec<T> {
    const AFTER: usize = 2;
    let mut buffer = vec![T::nearest(f64::NAN); placed.before + placed.len + AFTER];
    for (i, of_output) in elements.iter().enumerate() {
        for (k, &x) in of_output.iter().enumerate() {
            buffer[placed.before + (placed.index)(i, k)] = x;
        }
    }
    buffer
}
