//! Runs a reduction on several threads.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use cuda_std::element::Element;

use super::form::{Form, Walk};
use super::memory::Memory;
use super::mode::DefaultMode;
use super::{OPERATION, View};
use crate::array::broadcast;
use crate::reduce::Reduced;
use crate::{Axes, Error, Layout};

/// A reduction of arrays along axes, by any operator.
pub struct Reduction<'a, T, const N: usize> {
    views: [View<'a, T>; N],
    axes: Axes,
    reduced: Reduced,
}

/// A part has at least this many elements: they take longer than to wake a thread.
const LEAST: usize = 1 << 17;

/// Outputs that are folded at a time.
const OUTPUTS: usize = 1 << 12;

/// The maximum number of elements of an output, and of all outputs: what a reduction counts does not overflow.
const MAX_ELEMENTS: u64 = exact_sum::MAX_ELEMENTS;

/// An operator, as it folds elements of `N` inputs of type `T`.
pub(super) trait Fold<T, const N: usize>: Sync {
    /// What is known of the elements of an output.
    type State: Send;
    /// A result.
    type Output: Copy + Send;

    /// Whether the indices of the elements that [`Fold::fold`] folds must rise.
    const RISES: bool = false;

    /// Folds the elements of some outputs, which are numbered in the order of the kept axes, and appends their states.
    fn fold(&self, form: &Form<N>, inputs: &[Memory<'_, T>; N], outputs: Range<usize>, states: &mut Vec<Self::State>);

    /// Adds the elements of another state.
    fn merge(&self, state: &mut Self::State, other: &Self::State);

    /// The result of `count` elements.
    fn finish(&self, state: &Self::State, count: u64) -> Self::Output;

    /// Appends the results of some outputs. There may be a faster way than by states.
    fn results(
        &self,
        form: &Form<N>,
        inputs: &[Memory<'_, T>; N],
        outputs: Range<usize>,
        results: &mut Vec<Self::Output>,
    ) {
        let (count, mut states) = (form.count() as u64, Vec::with_capacity(outputs.len()));
        self.fold(form, inputs, outputs, &mut states);
        results.extend(states.iter().map(|state| self.finish(state, count)));
    }
}

impl<'a, T: Element, const N: usize> Reduction<'a, T, N> {
    /// The reduction of these arrays, broadcast to common extents, along these axes.
    pub(super) fn new(views: [View<'a, T>; N], axes: Axes) -> Result<Self, Error> {
        let views = match &views[..] {
            [first, second] => {
                let layouts = broadcast(OPERATION, [first.layout(), second.layout()])?;
                let mut layouts = layouts.into_iter();
                views.map(|view| layouts.next().map_or(view, |layout| view.with_layout(layout)))
            }
            _ => views,
        };
        let reduced = axes.of(views[0].layout())?;
        let count = views[0].extents().iter().try_fold(1_u64, |count, &extent| count.checked_mul(extent as u64));
        match count {
            Some(count) if count <= MAX_ELEMENTS => Ok(Self { views, axes, reduced }),
            _ => Err(exact_sum::TooManyElements { count: count.unwrap_or(u64::MAX) }.into()),
        }
    }

    /// The same reduction of the bits of the elements as those of another type.
    pub(super) fn cast<U: Element>(&self) -> Reduction<'a, U, N> {
        Reduction { views: self.views.each_ref().map(View::cast), axes: self.axes, reduced: self.reduced }
    }

    /// The extents of the result.
    pub(super) fn output_extents(&self) -> Vec<usize> {
        self.reduced.output_extents(self.layout())
    }

    /// The number of outputs.
    pub(super) fn outputs(&self) -> Result<usize, Error> {
        Ok(Layout::contiguous(&self.output_extents())?.len())
    }

    pub(super) fn layout(&self) -> &Layout {
        self.views[0].layout()
    }

    #[cfg(feature = "simt")]
    pub(super) fn views(&self) -> &[View<'a, T>; N] {
        &self.views
    }

    #[cfg(feature = "simt")]
    pub(super) fn axes(&self) -> Axes {
        self.axes
    }

    /// The number of axes that are reduced.
    pub(super) fn axes_reduced(&self) -> usize {
        self.reduced.count(self.layout().rank())
    }

    /// The number of elements of an output.
    pub(super) fn count(&self) -> usize {
        let extents = self.layout().extents().iter().enumerate();
        extents.filter(|(axis, _)| self.reduced.has(*axis)).map(|(_, extent)| extent).product()
    }

    /// Writes the results to `output`, in C order.
    pub(super) fn run<F: Fold<T, N>>(&self, fold: &F, output: &mut [F::Output]) {
        let form = Form::new(self.views.each_ref().map(|view| view.layout()), &self.reduced, F::RISES);
        let inputs = self.views.each_ref().map(Memory::of);
        let (outputs, count) = (output.len(), form.count());
        if outputs == 0 {
            return;
        }
        let all = outputs.saturating_mul(count);
        let _mode = DefaultMode::enter();
        let parts = (all / LEAST).clamp(1, threads::max().get());
        if parts == 1 {
            return ranges(outputs, OUTPUTS).for_each(|range| {
                let mut results = Vec::with_capacity(range.len());
                fold.results(&form, &inputs, range.clone(), &mut results);
                store(&form, range, &results, output);
            });
        }
        match form.longest() {
            // Each part has some of the elements of all outputs.
            Some(axis) if outputs < 4 * parts && form.reduced[axis].extent >= parts => {
                let each = form.reduced[axis].extent.div_ceil(parts);
                let parts: Vec<_> = ranges(form.reduced[axis].extent, each).collect();
                let states = Mutex::new(Vec::<F::State>::new());
                threads::run(parts.len(), &|number| {
                    let _mode = DefaultMode::enter();
                    let part = form.part(axis, parts[number].start, parts[number].len());
                    let mut of_part = Vec::with_capacity(outputs);
                    fold.fold(&part, &inputs, 0..outputs, &mut of_part);
                    let mut states = states.lock().unwrap_or_else(PoisonError::into_inner);
                    if states.is_empty() {
                        *states = of_part;
                    } else {
                        states.iter_mut().zip(&of_part).for_each(|(state, other)| fold.merge(state, other));
                    }
                });
                let states = states.into_inner().unwrap_or_else(PoisonError::into_inner);
                let results: Vec<_> = states.iter().map(|state| fold.finish(state, count as u64)).collect();
                store(&form, 0..outputs, &results, output);
            }
            // Each part has some of the outputs.
            _ => {
                let each = outputs.div_ceil(4 * parts).min(OUTPUTS.max(outputs / (16 * parts)));
                let parts: Vec<_> = ranges(outputs, each).collect();
                let output = Mutex::new(output);
                threads::run(parts.len(), &|number| {
                    let _mode = DefaultMode::enter();
                    let mut results = Vec::with_capacity(each);
                    fold.results(&form, &inputs, parts[number].clone(), &mut results);
                    let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
                    store(&form, parts[number].clone(), &results, &mut output);
                });
            }
        }
    }
}

/// The ranges of `0..len`, of `each` elements but for the last.
fn ranges(len: usize, each: usize) -> impl Iterator<Item = Range<usize>> {
    (0..len).step_by(each.max(1)).map(move |first| first..len.min(first + each))
}

/// Writes the results of some outputs, which are numbered in the order of the kept axes, to where they are in C order.
fn store<R: Copy, const N: usize>(form: &Form<N>, outputs: Range<usize>, results: &[R], output: &mut [R]) {
    match form.kept[..] {
        [] => output[..1].copy_from_slice(results),
        [axis] if axis.step == 1 => output[outputs].copy_from_slice(results),
        _ => {
            let mut walk = Walk::new(&form.kept, outputs.start);
            for &result in results {
                output[(form.output + walk.step) as usize] = result;
                walk.advance();
            }
        }
    }
}
