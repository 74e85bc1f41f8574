//! Dot products.

use std::marker::PhantomData;
use std::ops::Range;

use cuda_std::element::{Element, Plain};
use exact_sum::simd::{Instructions, Task, dispatch};
use exact_sum::{ExactDot, Rounded, Summand};
use half::{bf16, f16};
use kernels::ops::{Dot, Operator, PairOperator};

use super::Reduction;
use super::engine::Fold;
use super::exact::elements;
use super::form::{Form, Walk};
use super::memory::{BLOCK, Memory};

/// Elements whose dot products have results of type `R`.
pub(crate) trait OfPairs<R: Plain>: Element {
    /// Writes the dot products.
    fn reduce(reduction: &Reduction<'_, Self, 2>, output: &mut [R]);
}

macro_rules! of_integers {
    ($($type:ident)*) => {$(
        impl OfPairs<<Dot as Operator<$type>>::Output> for $type {
            fn reduce(reduction: &Reduction<'_, Self, 2>, output: &mut [<Dot as Operator<$type>>::Output]) {
                reduction.run(&OfIntegers, output);
            }
        }
    )*};
}

macro_rules! of_floats {
    ($($type:ident to $output:ident;)*) => {$(
        impl OfPairs<$output> for $type {
            fn reduce(reduction: &Reduction<'_, Self, 2>, output: &mut [$output]) {
                reduction.run(&OfFloats(PhantomData), output);
            }
        }
    )*};
}

of_integers!(i8 i16 i32 i64 u8 u16 u32 u64);
of_floats! {
    f16 to f32; bf16 to f32; f32 to f32; f64 to f64;
    f16 to f16; bf16 to bf16;
}

/// Calls `add` for each run of the elements of an output: the first byte in each input, the strides, and the length.
#[inline(always)]
fn runs(form: &Form<2>, kept: [isize; 2], mut add: impl FnMut([isize; 2], [isize; 2], usize)) {
    let (outer, extent, strides) = match form.reduced.split_last() {
        Some((run, outer)) => (outer, run.extent, run.strides),
        None => (&[][..], 1, [0, 0]),
    };
    let mut walk = Walk::new(outer, 0);
    for _ in 0..outer.iter().map(|axis| axis.extent).product() {
        add(std::array::from_fn(|input| form.starts[input] + kept[input] + walk.at[input]), strides, extent);
        walk.advance();
    }
}

/// Calls `add` with blocks of a run.
///
/// # Safety
/// The run is within the form of the inputs.
#[inline(always)]
unsafe fn blocks<T: Element>(
    inputs: &[Memory<'_, T>; 2],
    starts: [isize; 2],
    strides: [isize; 2],
    extent: usize,
    buffers: &mut [[T; BLOCK]; 2],
    mut add: impl FnMut(&[T], &[T]),
) {
    let [first, second] = buffers;
    for at in (0..extent).step_by(BLOCK) {
        let len = BLOCK.min(extent - at);
        let start = |input: usize| starts[input] + at as isize * strides[input];
        // SAFETY: as promised by the caller.
        let (x, y) = unsafe {
            (inputs[0].block(start(0), strides[0], len, first), inputs[1].block(start(1), strides[1], len, second))
        };
        add(x, y);
    }
}

/// Wrapping sums of products.
struct OfIntegers;

impl<T: Element, S: Plain> Fold<T, 2> for OfIntegers
where
    Dot: PairOperator<T> + Operator<T, State = S, Output = S>,
{
    type State = S;
    type Output = S;

    fn fold(&self, form: &Form<2>, inputs: &[Memory<'_, T>; 2], outputs: Range<usize>, states: &mut Vec<S>) {
        dispatch(Rows { form, inputs, outputs, states });
    }

    fn merge(&self, state: &mut S, other: &S) {
        *state = Dot::combine(*state, *other);
    }

    fn finish(&self, state: &S, count: u64) -> S {
        Dot.finish(*state, count)
    }
}

struct Rows<'a, 'b, T, S> {
    form: &'a Form<2>,
    inputs: &'a [Memory<'b, T>; 2],
    outputs: Range<usize>,
    states: &'a mut Vec<S>,
}

impl<T: Element, S: Plain> Task for Rows<'_, '_, T, S>
where
    Dot: PairOperator<T> + Operator<T, State = S, Output = S>,
{
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self) {
        let Self { form, inputs, outputs, states } = self;
        let mut buffers = [[T::default(); BLOCK]; 2];
        let mut kept = Walk::new(&form.kept, outputs.start);
        for _ in outputs {
            let mut state = Dot::NEUTRAL;
            runs(form, kept.at, |starts, strides, extent| {
                let add = |x: &[T], y: &[T]| {
                    let products = x.iter().zip(y).map(|(&x, &y)| Dot::lift_pair(x, y));
                    state = Dot::combine(state, products.fold(Dot::NEUTRAL, Dot::combine));
                };
                // SAFETY: a run of the form, whose loops reach the views' elements.
                unsafe { blocks(inputs, starts, strides, extent, &mut buffers, add) };
            });
            states.push(state);
            kept.advance();
        }
    }
}

/// Exact sums of products.
struct OfFloats<R>(PhantomData<fn() -> R>);

impl<T: Element + Summand, R: Rounded + Plain> Fold<T, 2> for OfFloats<R> {
    type State = ExactDot<T>;
    type Output = R;

    fn fold(&self, form: &Form<2>, inputs: &[Memory<'_, T>; 2], outputs: Range<usize>, states: &mut Vec<ExactDot<T>>) {
        let mut buffers = [[T::default(); BLOCK]; 2];
        let mut kept = Walk::new(&form.kept, outputs.start);
        for _ in outputs {
            let mut sum = ExactDot::new();
            runs(form, kept.at, |starts, strides, extent| {
                let of = |input: usize| elements(&inputs[input], starts[input], strides[input], extent);
                if let (Some(x), Some(y)) = (of(0), of(1)) {
                    return sum.add_elements(x, y).expect("equal lengths");
                }
                let add = |x: &[T], y: &[T]| sum.add_slices(x, y).expect("equal lengths");
                // SAFETY: a run of the form, whose loops reach the views' elements.
                unsafe { blocks(inputs, starts, strides, extent, &mut buffers, add) };
            });
            states.push(sum);
            kept.advance();
        }
    }

    fn merge(&self, state: &mut ExactDot<T>, other: &ExactDot<T>) {
        state.merge(other).expect("the elements of a reduction are counted");
    }

    fn finish(&self, state: &ExactDot<T>, _count: u64) -> R {
        state.rounded()
    }
}
