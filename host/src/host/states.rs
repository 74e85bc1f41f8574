//! Operators that combine states, in any order.

use std::marker::PhantomData;
use std::ops::Range;

use cuda_std::element::Element;
use exact_sum::simd::{Instructions, Task, dispatch};
use kernels::ops::Operator;

use super::engine::Fold;
use super::form::{Form, Walk};
use super::memory::{BLOCK, Memory};

/// An operator on elements of type `T`.
pub(super) struct ByStates<O, T> {
    /// The operator, as a word, which threads can share.
    word: u64,
    types: PhantomData<fn(O, T)>,
}

impl<T: Element, O: Operator<T>> ByStates<O, T> {
    pub fn new(operator: O) -> Self {
        Self { word: operator.to_word(), types: PhantomData }
    }

    fn operator(&self) -> O {
        O::from_word(self.word)
    }
}

impl<T: Element, O: Operator<T>> Fold<T, 1> for ByStates<O, T> {
    type State = O::State;
    type Output = O::Output;
    const RISES: bool = O::USES_INDEX;

    fn fold(&self, form: &Form<1>, inputs: &[Memory<'_, T>; 1], outputs: Range<usize>, states: &mut Vec<O::State>) {
        let (input, operator) = (&inputs[0], self.operator());
        if form.is_columns() {
            dispatch(Columns { operator, form, input, outputs, states });
        } else {
            dispatch(Rows { operator, form, input, outputs, states });
        }
    }

    fn merge(&self, state: &mut O::State, other: &O::State) {
        *state = O::combine(*state, *other);
    }

    fn finish(&self, state: &O::State, count: u64) -> O::Output {
        self.operator().finish(*state, count)
    }
}

/// The elements of an output are close together.
struct Rows<'a, 'b, T: Element, O: Operator<T>> {
    operator: O,
    form: &'a Form<1>,
    input: &'a Memory<'b, T>,
    outputs: Range<usize>,
    states: &'a mut Vec<O::State>,
}

impl<T: Element, O: Operator<T>> Task for Rows<'_, '_, T, O> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self) {
        let Self { operator, form, input, outputs, states } = self;
        let mut buffer = [T::default(); BLOCK];
        let mut kept = Walk::new(&form.kept, outputs.start);
        let (outer, runs, extent, stride, step) = match form.reduced.split_last() {
            Some((run, outer)) => {
                (outer, outer.iter().map(|axis| axis.extent).product(), run.extent, run.strides[0], run.step)
            }
            None => (&[][..], 1, 1, 0, 0),
        };
        for _ in outputs {
            let mut state = O::NEUTRAL;
            let start = form.starts[0] + kept.at[0];
            if runs == 1 {
                // SAFETY: the run is within the form, whose loops reach the view's elements.
                state =
                    unsafe { fold_run(operator, state, input, start, stride, extent, form.index, step, &mut buffer) };
            } else {
                let mut walk = Walk::new(outer, 0);
                for _ in 0..runs {
                    let (start, index) = (start + walk.at[0], form.index + walk.step);
                    // SAFETY: as above.
                    state =
                        unsafe { fold_run(operator, state, input, start, stride, extent, index, step, &mut buffer) };
                    if operator.is_settled(state) {
                        break;
                    }
                    walk.advance();
                }
            }
            states.push(state);
            kept.advance();
        }
    }
}

/// Folds `extent` elements: the first at byte `start` and with this index.
///
/// # Safety
/// They are elements of the view.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "a run is short, so that a struct of them costs time")]
unsafe fn fold_run<T: Element, O: Operator<T>>(
    operator: O,
    mut state: O::State,
    input: &Memory<'_, T>,
    start: isize,
    stride: isize,
    extent: usize,
    index: isize,
    step: isize,
    buffer: &mut [T; BLOCK],
) -> O::State {
    let mut at = 0;
    while at < extent {
        let len = BLOCK.min(extent - at);
        // SAFETY: as promised by the caller.
        let elements = unsafe { input.block(start + at as isize * stride, stride, len, buffer) };
        state = operator.fold_slice(state, elements, |i| (index + (at + i) as isize * step) as u64);
        if operator.is_settled(state) {
            break;
        }
        at += len;
    }
    state
}

/// The number of columns that are folded at a time: their states are in the L1 cache.
const TILE: usize = 256;

/// Neighbouring elements are of neighbouring outputs.
struct Columns<'a, 'b, T: Element, O: Operator<T>> {
    operator: O,
    form: &'a Form<1>,
    input: &'a Memory<'b, T>,
    outputs: Range<usize>,
    states: &'a mut Vec<O::State>,
}

impl<T: Element, O: Operator<T>> Task for Columns<'_, '_, T, O> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self) {
        let Self { operator, form, input, outputs, states } = self;
        let Some((columns, outer)) = form.kept.split_last() else { return };
        let stride = columns.strides[0];
        let mut buffer = [T::default(); BLOCK];
        let mut number = outputs.start;
        while number < outputs.end {
            let (row, column) = (number / columns.extent, number % columns.extent);
            let len = TILE.min(columns.extent - column).min(outputs.end - number);
            let start = form.starts[0] + Walk::new(outer, row).at[0] + column as isize * stride;
            let mut tile = [O::NEUTRAL; TILE];
            let tile = &mut tile[..len];
            let mut walk = Walk::new(&form.reduced, 0);
            for _ in 0..form.count() {
                // SAFETY: within the form, whose loops reach the view's elements.
                let elements = unsafe { input.block(start + walk.at[0], stride, len, &mut buffer) };
                let index = (form.index + walk.step) as u64;
                for (state, &element) in tile.iter_mut().zip(elements) {
                    *state = O::combine(*state, operator.lift(element, index));
                }
                walk.advance();
            }
            states.extend_from_slice(tile);
            number += len;
        }
    }
}
