//! Launches of a reduction's kernels.

mod exact;
mod pairs;
mod states;

use std::fmt;

use cuda_std::element::{Element, Plain};

pub(super) use exact::{Exact, Lanes, RowLanes};
pub(super) use pairs::{ByPairs, HasPairKernel};
pub(super) use states::ByStates;

use super::workspace::{Workspace, WorkspaceSize};
use crate::{Error, Gpu, View, ViewMut};

/// A reduction of one shape of `N` inputs by an operator's kernels, of any kind. Its `Display` says how it is launched.
pub(super) struct Launches<T, R, const N: usize>(Box<dyn Launch<T, R, N>>);

/// The workspace and the launches of a reduction of one shape.
pub(super) trait Launch<T, R, const N: usize>: fmt::Display + Send + Sync {
    fn workspace_size(&self) -> WorkspaceSize;

    /// Launches the reduction in a workspace with enough capacity. The views belong to this device and have the shape's
    /// elements and outputs.
    fn launch(
        &self,
        gpu: &Gpu,
        workspace: &mut Workspace,
        inputs: [View<'_, T>; N],
        output: ViewMut<'_, R>,
    ) -> Result<(), Error>;
}

impl<T: Element, R: Plain, const N: usize> Launches<T, R, N> {
    pub fn new(launch: impl Launch<T, R, N> + 'static) -> Self {
        Self(Box::new(launch))
    }

    /// [`Launch::workspace_size`].
    pub fn workspace_size(&self) -> WorkspaceSize {
        self.0.workspace_size()
    }

    /// [`Launch::launch`].
    pub fn launch(
        &self,
        gpu: &Gpu,
        workspace: &mut Workspace,
        inputs: [View<'_, T>; N],
        output: ViewMut<'_, R>,
    ) -> Result<(), Error> {
        self.0.launch(gpu, workspace, inputs, output)
    }
}

impl<T, R, const N: usize> fmt::Display for Launches<T, R, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
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
