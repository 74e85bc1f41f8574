//! A reduction that is planned once and started any number of times.

use cuda_std::element::{Element, Plain};
use kernels::reduce::reduction::{Kernels, Reduction};

use super::Shape;
use super::by_states::ByStates;
use super::exact::Exact;
use super::planned::{Planned, check_elements};
use super::workspace::Workspace;
use crate::{Error, Gpu, View, ViewMut};

/// A reduction of one shape by one operator, with its workspace. Starting it neither allocates nor waits. It reduces
/// elements of type `T` to outputs of type `R`.
///
/// Made by [`Gpu::reducer`].
pub struct Reducer<T: Element, R: Plain> {
    gpu: Gpu,
    shape: Shape,
    planned: Planned<T, R>,
    workspace: Workspace,
}

impl<T: Element, R: Plain> Reducer<T, R> {
    pub(super) fn new(gpu: &Gpu, shape: Shape, planned: Planned<T, R>) -> Result<Self, Error> {
        let workspace = Workspace::new(gpu, planned.workspace_size())?;
        Ok(Self { gpu: gpu.clone(), shape, planned, workspace })
    }

    /// The shape of the input.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Starts the reduction of `input` to `output`, after all work that was started earlier.
    ///
    /// # Errors
    /// `input` is shorter than the shape (elements past the shape are ignored), `output` does not have one element for
    /// each of the shape's outputs, or one of them belongs to another device; the launch is refused.
    pub fn start<'i, 'o>(
        &mut self,
        input: impl Into<View<'i, T>>,
        output: impl Into<ViewMut<'o, R>>,
    ) -> Result<(), Error> {
        self.planned.start(&self.gpu, self.shape, &mut self.workspace, input.into(), output.into())
    }
}

/// Plans the reduction of a shape by an operator, if possible.
pub(super) fn plan<O: Reduction<T>, T: Element>(
    gpu: &Gpu,
    operator: O,
    shape: Shape,
) -> Result<Planned<T, O::Output>, Error> {
    check_elements::<T>(shape)?;
    match operator.kernels() {
        Kernels::OfStates(kernels) => ByStates::plan(kernels, shape, gpu.multiprocessors()),
        Kernels::Exact(kernels) => Exact::plan(kernels, shape, gpu.multiprocessors()),
    }
}
