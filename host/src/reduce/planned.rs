//! A planned reduction of one shape, by any kind of kernels.

use cuda_std::element::{Element, Plain};

use super::Shape;
use super::workspace::{Workspace, WorkspaceSize};
use crate::{Error, Gpu, View, ViewMut};

/// A reduction of one shape by an operator's kernels.
pub(super) struct Planned<T, R>(Box<dyn Launches<T, R>>);

/// The workspace and the launches of a [`Planned`] reduction.
pub(super) trait Launches<T, R>: Send + Sync {
    fn workspace_size(&self) -> WorkspaceSize;

    /// Launches the reduction in a workspace with enough capacity. The views belong to this device and have the shape's
    /// elements and outputs.
    fn launch(
        &self,
        gpu: &Gpu,
        workspace: &mut Workspace,
        input: View<'_, T>,
        output: ViewMut<'_, R>,
    ) -> Result<(), Error>;
}

impl<T: Element, R: Plain> Planned<T, R> {
    pub(super) fn new(launches: impl Launches<T, R> + 'static) -> Self {
        Self(Box::new(launches))
    }

    pub(super) fn workspace_size(&self) -> WorkspaceSize {
        self.0.workspace_size()
    }

    /// Starts the reduction in a workspace with enough capacity. [`check_input`] has checked the views, or they were
    /// made for the shape.
    pub(super) fn launch(
        &self,
        gpu: &Gpu,
        workspace: &mut Workspace,
        input: View<'_, T>,
        output: ViewMut<'_, R>,
    ) -> Result<(), Error> {
        self.0.launch(gpu, workspace, input, output)
    }
}

/// The operation's name, for messages.
pub(super) const OPERATION: &str = "reduce";

/// Checks that the size of a shape's elements does not overflow.
pub(super) fn check_elements<T: Element>(shape: Shape) -> Result<(), Error> {
    if shape.elements().and_then(|elements| elements.checked_mul(size_of::<T>())).is_none() {
        return Err(Error::Shape {
            operation: OPERATION,
            what: "the number of elements of each output",
            found: shape.elements_each(),
            expected: "but no memory could hold that many for each output".to_owned(),
        });
    }
    Ok(())
}

/// Checks that an input belongs to this device and is long enough for the shape, before outputs are allocated.
pub(super) fn check_input<T: Element>(gpu: &Gpu, shape: Shape, input: View<'_, T>) -> Result<(), Error> {
    gpu.use_memory(input.memory(), OPERATION)?;
    match shape.elements().filter(|&elements| input.len() < elements) {
        Some(minimum) => Err(Error::TooShort { operation: OPERATION, what: "the input", found: input.len(), minimum }),
        None => Ok(()),
    }
}

/// The grid's width and height, if they fit.
pub(super) fn grid((x, y): (usize, usize), operation: &'static str) -> Result<(u32, u32), Error> {
    let too_many = |_| Error::Shape {
        operation,
        what: "the number of blocks",
        found: x,
        expected: "more than a grid can have".to_owned(),
    };
    Ok((u32::try_from(x).map_err(too_many)?, u32::try_from(y).map_err(too_many)?))
}
