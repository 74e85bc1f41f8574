//! Reductions along axes of an array: a plan for the launches of one shape, and what is copied before and after them.

use cuda_std::element::{Element, Plain};
use kernels::reduce::reduction::{Kernels, Reduction};

use super::axes::{Axes, Reduced};
use super::geometry::{Allowed, Geometry, Order};
use super::planned::{OPERATION, Planned, check_input};
use super::reducer::plan_kernels;
use super::workspace::{Workspace, WorkspaceSize};
use crate::{ArrayView, ArrayViewMut, Buffer, Error, Gpu, Layout, View, ViewMut};

/// The reduction of arrays of one layout along some axes by an operator.
pub(super) struct AlongAxes<T: Element, R: Plain> {
    geometry: Geometry,
    planned: Planned<T, R>,
    output: Layout,
}

impl<T: Element, R: Plain> AlongAxes<T, R> {
    /// Plans the reduction, if possible.
    pub fn plan<O: Reduction<T, Output = R>>(
        gpu: &Gpu,
        operator: O,
        layout: &Layout,
        axes: Axes,
    ) -> Result<Self, Error> {
        let (kernels, reduced) = (operator.kernels(), axes.of(layout)?);
        let geometry = Geometry::new(layout, &reduced, allowed(&kernels, layout, &reduced)?)?;
        let planned = plan_kernels(gpu, kernels, geometry.shape())?;
        Ok(Self { geometry, planned, output: Layout::contiguous(&reduced.output_extents(layout))? })
    }

    /// The layout of a new array for the results.
    pub fn output(&self) -> &Layout {
        &self.output
    }

    pub fn workspace_size(&self) -> WorkspaceSize {
        self.planned.workspace_size()
    }

    /// Checks that the input belongs to this device.
    pub fn check_input(&self, gpu: &Gpu, input: &ArrayView<'_, T>) -> Result<(), Error> {
        gpu.use_memory(input.elements().memory(), OPERATION)
    }

    /// The memory for the copies of a reduction to an output, which may have gaps.
    pub fn scratch(&self, gpu: &Gpu, output_is_contiguous: bool) -> Result<Scratch<T, R>, Error> {
        let Geometry { copy, results, .. } = &self.geometry;
        let backend = gpu.backend();
        let part = copy.map(|copy| Buffer::new(&backend, copy.len(), "allocate memory for a copy")).transpose()?;
        let results = (!(results.is_contiguous() && output_is_contiguous))
            .then(|| Buffer::new(&backend, self.geometry.outputs(), "allocate memory for results"))
            .transpose()?;
        Ok(Scratch { part, results })
    }

    /// Launches the reduction of an array of the planned layout to an array of the output's extents. Allocates nothing.
    ///
    /// # Errors
    /// The scratch memory was made for an output without gaps, and this one has some; or a launch is refused.
    pub fn launch(
        &self,
        gpu: &Gpu,
        workspace: &mut Workspace,
        scratch: &mut Scratch<T, R>,
        input: ArrayView<'_, T>,
        output: ArrayViewMut<'_, R>,
    ) -> Result<(), Error> {
        let Scratch { part, results } = scratch;
        let (elements, first) = (input.elements(), input.layout().offset());
        let Some(results) = results else {
            return self.launch_all(gpu, workspace, part, elements, first, output.into_view()?);
        };
        self.launch_all(gpu, workspace, part, elements, first, results.view_mut())?;
        // Without gaps, the output may have other extents.
        let to = match output.layout() {
            layout if layout.is_contiguous() => self.output.with_offset(layout.offset()),
            layout => *layout,
        };
        let output = output.into_elements().cast();
        gpu.copy_bytes_of(size_of::<R>(), results.view().cast(), &self.geometry.results, output, &to)
    }

    /// [`AlongAxes::launch`] of a reduction to one element.
    pub fn launch_one(
        &self,
        gpu: &Gpu,
        workspace: &mut Workspace,
        input: ArrayView<'_, T>,
        output: ViewMut<'_, R>,
    ) -> Result<(), Error> {
        let Scratch { mut part, .. } = self.scratch(gpu, true)?;
        self.launch_all(gpu, workspace, &mut part, input.elements(), input.layout().offset(), output)
    }

    /// Launches the reduction to results in the launches' order. `first` is the input's offset.
    fn launch_all(
        &self,
        gpu: &Gpu,
        workspace: &mut Workspace,
        part: &mut Option<Buffer<T>>,
        input: View<'_, T>,
        first: usize,
        mut results: ViewMut<'_, R>,
    ) -> Result<(), Error> {
        let Geometry { copy, launches, .. } = &self.geometry;
        let shape = self.geometry.shape();
        for launch in launches {
            let results = results.reborrow().slice(launch.result, shape.outputs())?;
            // Of no elements, the offset may be anywhere.
            let at = if shape.elements() == Some(0) { 0 } else { first.wrapping_add_signed(launch.input) };
            let (Some(copy), Some(part)) = (copy, part.as_mut()) else {
                let input = input.skip(at)?;
                check_input(gpu, shape, input)?;
                self.planned.launch(gpu, workspace, input, results)?;
                continue;
            };
            let (from, to) = (copy.with_offset(at), Layout::contiguous(copy.extents())?);
            gpu.copy_bytes_of(size_of::<T>(), input.cast(), &from, part.view_mut().cast(), &to)?;
            self.planned.launch(gpu, workspace, part.view(), results)?;
        }
        Ok(())
    }
}

/// Memory for copies of a part of the input, and of results that are copied to the output.
pub(super) struct Scratch<T, R> {
    part: Option<Buffer<T>>,
    results: Option<Buffer<R>>,
}

/// What the operator's kernels allow for axes of a layout.
fn allowed<T: Element, S: Plain, R: Plain>(
    kernels: &Kernels<T, S, R>,
    layout: &Layout,
    reduced: &Reduced,
) -> Result<Allowed, Error> {
    let size = size_of::<T>();
    match kernels {
        Kernels::Exact(kernels) => {
            Ok(Allowed { order: Order::Any, columns: kernels.has_columns(), in_place: false, size })
        }
        Kernels::OfStates(kernels) => {
            let (rank, found) = (layout.rank(), reduced.count(layout.rank()));
            if kernels.uses_index() && found != 1 && found != rank {
                return Err(Error::IndexOverAxes { operator: kernels.name(), found, rank });
            }
            let is_any = kernels.is_any_order() && !kernels.uses_index();
            let order = if is_any { Order::Any } else { Order::OfView };
            Ok(Allowed { order, columns: true, in_place: false, size })
        }
    }
}
