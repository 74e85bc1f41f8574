//! Exact sums of custom terms.

use std::marker::PhantomData;
use std::ops::Range;

use cuda_std::element::{Element, Plain};
use exact_sum::{Binary, ExactSum, Rounded};
use kernels::reduce::exact::custom::ExactTerm;

use super::engine::Fold;
use super::form::{Form, Walk};
use super::memory::{BLOCK, Memory};

/// The exact sum of a custom term of each element. A term of either format is an `f64`.
pub(super) struct ByTerm<E: ExactTerm> {
    /// The term's fields, as a word, which threads can share.
    word: u64,
    term: PhantomData<fn() -> E>,
}

impl<E: ExactTerm> ByTerm<E> {
    pub fn new(term: E) -> Self {
        Self { word: E::FIELDS.word_of(term), term: PhantomData }
    }
}

impl<T: Element, R: Plain + Rounded, E: ExactTerm<Element = T, Sum = R>> Fold<T, 1> for ByTerm<E> {
    type State = ExactSum<f64>;
    type Output = R;

    fn fold(&self, form: &Form<1>, inputs: &[Memory<'_, T>; 1], outputs: Range<usize>, states: &mut Vec<Self::State>) {
        let term = E::FIELDS.of_word(self.word);
        let (mut buffer, mut terms) = ([T::default(); BLOCK], [0.0; BLOCK]);
        let mut kept = Walk::new(&form.kept, outputs.start);
        let (outer, extent, stride) = match form.reduced.split_last() {
            Some((run, outer)) => (outer, run.extent, run.strides[0]),
            None => (&[][..], 1, 0),
        };
        for _ in outputs {
            let mut sum = ExactSum::new();
            let mut walk = Walk::new(outer, 0);
            for _ in 0..outer.iter().map(|axis| axis.extent).product() {
                let start = form.starts[0] + kept.at[0] + walk.at[0];
                for at in (0..extent).step_by(BLOCK) {
                    let (start, len) = (start + at as isize * stride, BLOCK.min(extent - at));
                    // SAFETY: within the form, whose loops reach the view's elements.
                    let elements = unsafe { inputs[0].block(start, stride, len, &mut buffer) };
                    let mut add = |of: &dyn Fn(T) -> E::Term| {
                        terms.iter_mut().zip(elements).for_each(|(to, &element)| *to = of(element).to_f64());
                        sum.add_slice(&terms[..len]);
                    };
                    add(&|element| term.term(element));
                    if let Some(low) = E::LOW {
                        add(&|element| low(term, element, term.term(element)));
                    }
                }
                walk.advance();
            }
            states.push(sum);
            kept.advance();
        }
    }

    fn merge(&self, state: &mut Self::State, other: &Self::State) {
        state.merge(other).expect("the elements of a reduction are counted");
    }

    fn finish(&self, state: &Self::State, _count: u64) -> R {
        state.rounded()
    }
}
