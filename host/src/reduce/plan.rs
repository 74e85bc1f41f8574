//! The plan of a reduction along axes of arrays: what is copied, launched, and copied again.

use std::fmt;

use cuda_std::element::{Element, Plain};

use super::OPERATION;
use super::geometry::{Geometry, LaunchShape};
use super::launch::Launches;
use super::steps::{Parts, Steps};
use super::workspace::{Workspace, WorkspaceSize};
use crate::{ArrayView, ArrayViewMut, Buffer, Error, Gpu, Layout, ViewMut};

/// The reduction of `N` arrays of certain layouts along some axes by an operator. Its `Display` says how it will run.
pub struct Plan<T: Element, R: Plain, const N: usize> {
    steps: Steps<N>,
    launches: Launches<T, R, N>,
    /// [`Geometry::results`], and their number.
    results: Layout,
    results_len: usize,
    output: Layout,
}

impl<T: Element, R: Plain, const N: usize> Plan<T, R, N> {
    /// The plan of these launches, to an output of these extents.
    pub(super) fn new<K: LaunchShape>(
        geometry: &Geometry<N, K>,
        launches: Launches<T, R, N>,
        output_extents: &[usize],
    ) -> Result<Self, Error> {
        let (steps, results_len) = (Steps::of(geometry), geometry.outputs());
        let output = Layout::contiguous(output_extents)?;
        Ok(Self { steps, launches, results: geometry.results, results_len, output })
    }

    /// The layout of a new array for the results.
    pub(super) fn output(&self) -> &Layout {
        &self.output
    }

    pub(super) fn workspace_size(&self) -> WorkspaceSize {
        self.launches.workspace_size()
    }

    /// The memory for the copies of a reduction to an output, which may have gaps.
    pub(super) fn scratch(&self, gpu: &Gpu, output_is_contiguous: bool) -> Result<Scratch<T, R, N>, Error> {
        let results = (!(self.results.is_contiguous() && output_is_contiguous))
            .then(|| Buffer::new(&gpu.backend(), self.results_len, "allocate memory for results"))
            .transpose()?;
        Ok(Scratch { parts: self.steps.parts(gpu)?, results })
    }

    /// Launches the reduction of arrays of the planned layouts to an array of the output's extents. Allocates nothing.
    ///
    /// # Errors
    /// The scratch memory was made for an output without gaps, and this one has some; or a launch is refused.
    pub(super) fn launch(
        &self,
        gpu: &Gpu,
        workspace: &mut Workspace,
        scratch: &mut Scratch<T, R, N>,
        inputs: [ArrayView<'_, T>; N],
        output: ArrayViewMut<'_, R>,
    ) -> Result<(), Error> {
        let Scratch { parts, results } = scratch;
        let Some(results) = results else {
            return self.launch_all(gpu, workspace, parts, inputs, output.into_view()?);
        };
        self.launch_all(gpu, workspace, parts, inputs, results.view_mut())?;
        // Without gaps, the output may have other extents.
        let to = match output.layout() {
            layout if layout.is_contiguous() => self.output.with_offset(layout.offset()),
            layout => *layout,
        };
        let output = output.into_elements().cast();
        gpu.copy_bytes_of(size_of::<R>(), results.view().cast(), &self.results, output, &to)
    }

    /// [`Plan::launch`] of a reduction to one element.
    pub(super) fn launch_one(
        &self,
        gpu: &Gpu,
        workspace: &mut Workspace,
        inputs: [ArrayView<'_, T>; N],
        output: ViewMut<'_, R>,
    ) -> Result<(), Error> {
        self.launch_all(gpu, workspace, &mut self.steps.parts(gpu)?, inputs, output)
    }

    /// Launches the reduction to results in the launches' order.
    fn launch_all(
        &self,
        gpu: &Gpu,
        workspace: &mut Workspace,
        parts: &mut Parts<T, N>,
        inputs: [ArrayView<'_, T>; N],
        mut results: ViewMut<'_, R>,
    ) -> Result<(), Error> {
        let inputs = inputs.map(|input| (input.elements(), input.layout().offset()));
        self.steps.run(gpu, inputs, parts, |views, first, outputs| {
            self.launches.launch(gpu, workspace, views, results.reborrow().slice(first, outputs)?)
        })
    }
}

impl<T: Element, R: Plain, const N: usize> fmt::Display for Plan<T, R, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for copy in self.steps.copies() {
            write!(f, "copy of {copy}; ")?;
        }
        self.launches.fmt(f)?;
        if self.steps.len() > 1 {
            write!(f, "; {} times", self.steps.len())?;
        }
        if !self.results.is_contiguous() {
            write!(f, "; copy of the results to {}", self.output)?;
        }
        Ok(())
    }
}

/// Memory for copies of parts of the inputs, and of results that are copied to the output.
pub(super) struct Scratch<T, R, const N: usize> {
    parts: Parts<T, N>,
    results: Option<Buffer<R>>,
}

/// Checks that the inputs belong to this device.
pub(super) fn check_inputs<T: Element>(gpu: &Gpu, inputs: &[ArrayView<'_, T>]) -> Result<(), Error> {
    inputs.iter().try_for_each(|input| gpu.use_memory(input.elements().memory(), OPERATION))
}
