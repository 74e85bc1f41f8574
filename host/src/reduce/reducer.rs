//! A reduction that is planned once and started any number of times.

use std::fmt;

use cuda_std::element::{Element, Plain};

use super::OPERATION;
use super::inputs::IntoInputs;
use super::plan::{Plan, Scratch, check_inputs};
use super::workspace::Workspace;
use crate::array::{IntoArrayViewMut, check_apart};
use crate::{Error, Gpu, Layout};

/// A reduction of arrays of certain layouts along some axes by one operator, with its memory. Starting it neither
/// allocates nor waits. It reduces elements of type `T` to outputs of type `R`, and has `N` inputs.
///
/// Made by [`Gpu::reducer`]. Its `Display` says how it runs:
///
/// ```
/// use warpfold::{Gpu, Layout, ops};
///
/// let gpu = Gpu::first_or_simt()?;
/// let images = Layout::contiguous(&[8, 3, 100, 100])?;
/// let means = gpu.reducer::<_, f32, 1>(ops::Mean, &images, [0, 2, 3])?;
/// println!("{means}");
/// # Ok::<(), warpfold::Error>(())
/// ```
pub struct Reducer<T: Element, R: Plain, const N: usize = 1> {
    gpu: Gpu,
    layouts: [Layout; N],
    plan: Plan<T, R, N>,
    scratch: Scratch<T, R, N>,
    workspace: Workspace,
}

impl<T: Element, R: Plain, const N: usize> Reducer<T, R, N> {
    pub(super) fn new(gpu: &Gpu, layouts: [&Layout; N], plan: Plan<T, R, N>) -> Result<Self, Error> {
        let (scratch, workspace) = (plan.scratch(gpu, true)?, Workspace::new(gpu, plan.workspace_size())?);
        Ok(Self { gpu: gpu.clone(), layouts: layouts.map(|layout| *layout), plan, scratch, workspace })
    }

    /// The layout of each input. Their offsets do not count.
    pub fn layouts(&self) -> &[Layout; N] {
        &self.layouts
    }

    /// The extents of the output.
    pub fn output_extents(&self) -> &[usize] {
        self.plan.output().extents()
    }

    /// Starts the reduction of an input, or of a pair of inputs, to `output`, after all work that was started earlier.
    ///
    /// An input may begin anywhere in its memory. If the reducer was made for an array without gaps, any array without
    /// gaps and with as many elements is taken, and likewise as the output.
    ///
    /// # Errors
    /// An input's extents and strides are not those of the reducer's layout, the output's extents are not
    /// [`Reducer::output_extents`], the output has gaps (use [`Gpu::reduce_into`]), an input and the output overlap in
    /// memory, or one of them belongs to another device; the launch is refused.
    pub fn start<'i, 'o>(
        &mut self,
        inputs: impl IntoInputs<'i, T, N>,
        output: impl IntoArrayViewMut<'o, R>,
    ) -> Result<(), Error> {
        let Self { gpu, layouts, plan, scratch, workspace } = self;
        let (inputs, output) = (inputs.into_inputs(), output.into_array_view_mut());
        check_inputs(gpu, &inputs)?;
        gpu.use_memory(output.memory(), OPERATION)?;
        for (layout, input) in layouts.iter().zip(&inputs) {
            if !is_as_planned(layout, input.layout()) {
                let (expected, found) = (layout.to_string(), input.layout().to_string());
                return Err(Error::OtherLayout { operation: OPERATION, found, expected });
            }
        }
        let (found, expected) = (output.len(), plan.output().len());
        if found != expected {
            return Err(Error::Length { operation: OPERATION, what: "the output", found, expected });
        }
        if !output.layout().is_contiguous() {
            return Err(Error::NotNeighbours { layout: output.layout().to_string() });
        }
        inputs.iter().try_for_each(|input| check_apart(OPERATION, input, &output))?;
        plan.launch(gpu, workspace, scratch, inputs, output)
    }
}

impl<T: Element, R: Plain, const N: usize> fmt::Display for Reducer<T, R, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plan.fmt(f)
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
