//! A reduction that is made once and started any number of times.

use cuda_std::element::{Element, Plain};
use kernels::reduce::columns::ColumnArgs;
use kernels::reduce::long_rows::LongRowArgs;
use kernels::reduce::reduction::{Kernels, Reduction, StateKernels};
use kernels::reduce::rows::{RowArgs, vectors_of_row};

use super::Shape;
use super::exact::Exact;
use super::plan::{Blocks, Elements, Plan, tiles_of_columns};
use super::workspace::{Workspace, WorkspaceSize};
use crate::{Error, Gpu, View, ViewMut};

/// A reduction of one shape by one operator, with all of its memory. Starting it neither allocates nor waits. It
/// reduces elements of type `T` to outputs of type `R`.
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

    /// The shape that it reduces.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Starts the reduction of `input` into `output`, after all work started earlier.
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

/// A reduction of one shape by an operator's kernels.
#[doc(hidden)]
pub struct Planned<T, R>(Box<dyn Launches<T, R>>);

/// What a [`Planned`] reduction needs, and its launch.
pub(super) trait Launches<T, R>: Send + Sync {
    fn workspace_size(&self) -> WorkspaceSize;

    /// Launches it in a workspace with enough capacity. The views belong to this device and have the shape's elements
    /// and outputs.
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

    /// Starts it in a workspace with enough capacity, if the views have the shape that it was planned for.
    pub(super) fn start(
        &self,
        gpu: &Gpu,
        shape: Shape,
        workspace: &mut Workspace,
        input: View<'_, T>,
        output: ViewMut<'_, R>,
    ) -> Result<(), Error> {
        check_input(gpu, shape, input)?;
        gpu.own(output.memory(), OPERATION)?;
        if output.len() != shape.outputs() {
            let (found, expected) = (output.len(), shape.outputs());
            return Err(Error::Length { operation: OPERATION, what: "the output", found, expected });
        }
        self.0.launch(gpu, workspace, input, output)
    }
}

/// The operation's name, for messages.
const OPERATION: &str = "reduce";

/// Checks that some memory could hold a shape's elements.
pub(super) fn check_elements<T: Element>(shape: Shape) -> Result<(), Error> {
    if shape.elements().and_then(|elements| elements.checked_mul(size_of::<T>())).is_none() {
        return Err(Error::Shape {
            operation: OPERATION,
            what: "the number of elements of each output",
            found: shape.elements_each(),
            expected: "with the outputs more than any memory has".to_owned(),
        });
    }
    Ok(())
}

/// Checks that an input belongs to this device and has the shape's elements, before outputs are allocated.
pub(super) fn check_input<T: Element>(gpu: &Gpu, shape: Shape, input: View<'_, T>) -> Result<(), Error> {
    gpu.own(input.memory(), OPERATION)?;
    if let Some((rows, columns)) = input.matrix() {
        shape.check_matrix(OPERATION, rows, columns)?;
    }
    match shape.elements().filter(|&elements| input.len() < elements) {
        Some(expected) => Err(Error::Length { operation: OPERATION, what: "the input", found: input.len(), expected }),
        None => Ok(()),
    }
}

/// The grid's extents, if a grid can have them.
pub(super) fn grid((x, y): (usize, usize), operation: &'static str) -> Result<(u32, u32), Error> {
    let too_many = |_| Error::Shape {
        operation,
        what: "the number of blocks",
        found: x,
        expected: "more than a grid has".to_owned(),
    };
    Ok((u32::try_from(x).map_err(too_many)?, u32::try_from(y).map_err(too_many)?))
}

/// Plans the reduction of a shape by an operator, if possible.
pub(super) fn plan<O: Reduction<T>, T: Element>(operator: O, shape: Shape) -> Result<Planned<T, O::Output>, Error> {
    check_elements::<T>(shape)?;
    match operator.kernels() {
        Kernels::OfStates(kernels) => OfStates::plan(kernels, shape),
        Kernels::Exact(kernels) => Exact::plan(kernels, shape),
    }
}

/// A shape's reduction by kernels that combine states.
struct OfStates<T: Element, S: Plain, R: Plain> {
    kernels: StateKernels<T, S, R>,
    plan: Plan,
}

impl<T: Element, S: Plain, R: Plain> OfStates<T, S, R> {
    fn plan(kernels: StateKernels<T, S, R>, shape: Shape) -> Result<Planned<T, R>, Error> {
        if shape.elements_each() == 0 && shape.outputs() > 0 && !kernels.has_empty() {
            return Err(Error::Empty { operator: kernels.name() });
        }
        let elements =
            Elements { size: size_of::<T>(), size_of_state: size_of::<S>(), is_any_order: kernels.is_any_order() };
        let plan = Plan::of(shape.kind, elements);
        Ok(Planned::new(Self { kernels, plan }))
    }
}

impl<T: Element, S: Plain, R: Plain> Launches<T, R> for OfStates<T, S, R> {
    fn workspace_size(&self) -> WorkspaceSize {
        self.plan.workspace_size::<S>()
    }

    fn launch(
        &self,
        gpu: &Gpu,
        workspace: &mut Workspace,
        input: View<'_, T>,
        mut output: ViewMut<'_, R>,
    ) -> Result<(), Error> {
        let Self { kernels, plan } = self;
        let operator = kernels.operator();
        // SAFETY: the arguments are what the plan says, for views that have the shape's elements and outputs.
        let kernels = unsafe { kernels.handles() };
        let grid = grid(plan.grid(), OPERATION)?;
        match *plan {
            Plan::Nothing => Ok(()),
            Plan::LongRows { rows, len, pitch, blocks } => {
                let bytes_between = if rows > 1 { pitch.saturating_mul(size_of::<T>()) } else { 0 };
                let is_aligned = input.device_address().is_multiple_of(16) && bytes_between.is_multiple_of(16);
                let kernel = match kernels.long_rows_unaligned {
                    Some(kernel) if !is_aligned => kernel,
                    _ => kernels.long_rows,
                };
                let each = blocks.rows_of_launch(rows);
                for first in (0..rows).step_by(each) {
                    let count = each.min(rows - first);
                    let output = output.reborrow().slice(first, count)?;
                    let (input, tile_states) = (input.behind(first * pitch)?, workspace.tile_states.view_mut());
                    let Blocks { splits, tiles, longer_splits, threads } = blocks;
                    let arguments =
                        LongRowArgs { operator, input, len, pitch, splits, tiles, longer_splits, tile_states, output };
                    gpu.launch(kernel.with_block(threads), self::grid(blocks.grid(count), OPERATION)?, arguments)?;
                }
                Ok(())
            }
            Plan::Rows { rows, len, pitch, lanes, rows_of_block } => {
                let vectors_of_row = vectors_of_row(len, size_of::<T>()) as u32;
                let len = len as u32;
                let arguments =
                    RowArgs { operator, input, rows, len, pitch, lanes, rows_of_block, vectors_of_row, output };
                gpu.launch(kernels.rows, grid, arguments)
            }
            Plan::Columns { rows, columns, pitch, batch_pitch, folded_rows, lanes, splits, .. } => {
                // At most the grid's blocks.
                let tiles = tiles_of_columns(columns * folded_rows as usize, lanes as usize) as u32;
                let partials = workspace.partials.view_mut().cast::<S>();
                let tickets = workspace.tickets.view_mut();
                let arguments = ColumnArgs {
                    operator,
                    input,
                    rows,
                    columns,
                    pitch,
                    batch_pitch,
                    folded_rows,
                    lanes,
                    tiles,
                    splits,
                    partials,
                    tickets,
                    output,
                };
                gpu.launch(kernels.columns, grid, arguments)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kernels::ops::Product;

    use super::*;
    use crate::SimtOptions;

    #[test]
    fn there_may_be_more_shared_rows_than_a_grid_is_high() {
        const ROWS: usize = 65_537;
        const LEN: usize = 257;
        let gpu = Gpu::simt_with(SimtOptions { checks: false, ..SimtOptions::default() });
        let Kernels::OfStates(kernels) = Reduction::<f64>::kernels(Product) else { panic!("it has no states") };
        // One of two splits is a tile, the other one element.
        let blocks = Blocks { splits: 2, tiles: 1, longer_splits: 0, threads: 32 };
        let plan = Plan::LongRows { rows: ROWS, len: LEN, pitch: LEN, blocks };
        let planned: Planned<f64, f64> = Planned::new(OfStates { kernels, plan });
        let mut numbers = vec![1.0; ROWS * LEN];
        numbers.chunks_mut(LEN).zip(1..).for_each(|(row, number)| row[LEN - 1] = f64::from(number));
        let input = gpu.upload(&numbers).unwrap();
        let mut output = gpu.zeroed(ROWS).unwrap();
        let mut workspace = Workspace::new(&gpu, planned.workspace_size()).unwrap();
        let shape = Shape::rows(ROWS, LEN);
        planned.start(&gpu, shape, &mut workspace, input.view(), output.view_mut()).unwrap();
        let found = gpu.download(&output).unwrap();
        assert!(found.into_iter().eq((1..=ROWS).map(|number| number as f64)));
    }
}
