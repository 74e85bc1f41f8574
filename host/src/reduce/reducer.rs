//! A reduction that is planned once and started any number of times.

use cuda_std::element::{Element, Plain};
use kernels::reduce::reduction::Kernels;

use super::Shape;
use super::along_axes::{AlongAxes, Scratch};
use super::by_states::ByStates;
use super::exact::Exact;
use super::planned::{OPERATION, Planned, check_elements};
use super::workspace::Workspace;
use crate::array::{IntoArrayView, IntoArrayViewMut, check_apart};
use crate::{Error, Gpu, Layout};

/// A reduction of arrays of one layout along some axes by one operator, with its memory. Starting it neither allocates
/// nor waits. It reduces elements of type `T` to outputs of type `R`.
///
/// Made by [`Gpu::reducer`].
pub struct Reducer<T: Element, R: Plain> {
    gpu: Gpu,
    layout: Layout,
    along: AlongAxes<T, R>,
    scratch: Scratch<T, R>,
    workspace: Workspace,
}

impl<T: Element, R: Plain> Reducer<T, R> {
    pub(super) fn new(gpu: &Gpu, layout: &Layout, along: AlongAxes<T, R>) -> Result<Self, Error> {
        let (scratch, workspace) = (along.scratch(gpu, true)?, Workspace::new(gpu, along.workspace_size())?);
        Ok(Self { gpu: gpu.clone(), layout: *layout, along, scratch, workspace })
    }

    /// The layout of the input. Its offset does not count.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The extents of the output.
    pub fn output_extents(&self) -> &[usize] {
        self.along.output().extents()
    }

    /// Starts the reduction of `input` to `output`, after all work that was started earlier.
    ///
    /// The input may begin anywhere in its memory. If the reducer was made for an array without gaps, any array without
    /// gaps and with as many elements is taken, and likewise as the output.
    ///
    /// # Errors
    /// The input's extents and strides are not those of the reducer's layout, the output's extents are not
    /// [`Reducer::output_extents`], the output has gaps (use [`Gpu::reduce_into`]), the two overlap in memory, or one
    /// of them belongs to another device; the launch is refused.
    pub fn start<'i, 'o>(
        &mut self,
        input: impl IntoArrayView<'i, T>,
        output: impl IntoArrayViewMut<'o, R>,
    ) -> Result<(), Error> {
        let Self { gpu, layout, along, scratch, workspace } = self;
        let (input, output) = (input.into_array_view(), output.into_array_view_mut());
        along.check_input(gpu, &input)?;
        gpu.use_memory(output.memory(), OPERATION)?;
        if !is_as_planned(layout, input.layout()) {
            let (expected, found) = (layout.to_string(), input.layout().to_string());
            return Err(Error::OtherLayout { operation: OPERATION, found, expected });
        }
        let (found, expected) = (output.len(), along.output().len());
        if found != expected {
            return Err(Error::Length { operation: OPERATION, what: "the output", found, expected });
        }
        if !output.layout().is_contiguous() {
            return Err(Error::NotNeighbours { layout: output.layout().to_string() });
        }
        check_apart(OPERATION, &input, &output)?;
        along.launch(gpu, workspace, scratch, input, output)
    }
}

/// Whether the elements of a layout lie as those of the planned one do, from the offset on.
fn is_as_planned(planned: &Layout, layout: &Layout) -> bool {
    let axes = |layout: &Layout| {
        let all = layout.extents().iter().copied().zip(layout.strides().iter().copied());
        all.map(|(extent, stride)| (extent, if extent > 1 { stride } else { 0 })).collect::<Vec<_>>()
    };
    axes(planned) == axes(layout)
        || (planned.is_contiguous() && layout.is_contiguous() && planned.len() == layout.len())
}

/// Plans the reduction of a shape by an operator's kernels, if possible.
pub(super) fn plan_kernels<T: Element, S: Plain, R: Plain>(
    gpu: &Gpu,
    kernels: Kernels<T, S, R>,
    shape: Shape,
) -> Result<Planned<T, R>, Error> {
    check_elements::<T>(shape)?;
    match kernels {
        Kernels::OfStates(kernels) => ByStates::plan(kernels, shape, gpu.multiprocessors()),
        Kernels::Exact(kernels) => Exact::plan(kernels, shape, gpu.multiprocessors()),
    }
}
