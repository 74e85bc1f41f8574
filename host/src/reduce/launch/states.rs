//! Reductions by kernels that combine states.

use std::fmt;

use cuda_std::element::{Element, Plain};
use kernels::reduce::columns::ColumnArgs;
use kernels::reduce::long_rows::LongRowArgs;
use kernels::reduce::reduction::StateKernels;
use kernels::reduce::rows::{RowArgs, vectors_per_row};

use super::{Launch, Launches, grid};
use crate::reduce::OPERATION;
use crate::reduce::geometry::{Kind, LaunchShape};
use crate::reduce::method::{Blocks, Elements, Method, StateLanes, StateMethod, Tiles};
use crate::reduce::workspace::{Workspace, WorkspaceSize};
use crate::{Error, Gpu, View, ViewMut};

/// A shape's reduction by kernels that combine states.
pub(in crate::reduce) struct ByStates<T: Element, S: Plain, R: Plain> {
    kernels: StateKernels<T, S, R>,
    method: StateMethod,
}

impl<T: Element, S: Plain, R: Plain> ByStates<T, S, R> {
    /// Plans the reduction, if possible.
    pub fn plan(
        kernels: StateKernels<T, S, R>,
        kind: Kind,
        multiprocessors: usize,
    ) -> Result<Launches<T, R, 1>, Error> {
        if kind.elements_each() == 0 && kind.outputs() > 0 && !kernels.has_empty_result() {
            return Err(Error::Empty { operator: kernels.name() });
        }
        let elements =
            Elements { size: size_of::<T>(), size_of_state: size_of::<S>(), is_any_order: kernels.is_any_order() };
        let method = StateMethod::of(kind, elements, multiprocessors);
        Ok(Launches::new(Self { kernels, method }))
    }
}

impl<T: Element, S: Plain, R: Plain> fmt::Display for ByStates<T, S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.method.fmt(f)
    }
}

impl<T: Element, S: Plain, R: Plain> Launch<T, R, 1> for ByStates<T, S, R> {
    fn workspace_size(&self) -> WorkspaceSize {
        self.method.workspace_size::<S>()
    }

    fn launch(
        &self,
        gpu: &Gpu,
        workspace: &mut Workspace,
        [input]: [View<'_, T>; 1],
        mut output: ViewMut<'_, R>,
    ) -> Result<(), Error> {
        let Self { kernels, method } = self;
        let operator = kernels.operator();
        // SAFETY: the arguments are what the plan says, for views that have the shape's elements and outputs.
        let kernels = unsafe { kernels.handles() };
        let grid = grid(method.grid(), OPERATION)?;
        match *method {
            Method::Nothing => Ok(()),
            Method::LongRows { rows, len, pitch, blocks } => {
                let bytes_between = if rows > 1 { pitch.saturating_mul(size_of::<T>()) } else { 0 };
                let is_aligned = input.address().is_multiple_of(16) && bytes_between.is_multiple_of(16);
                let kernel = match kernels.long_rows_unaligned {
                    Some(kernel) if !is_aligned => kernel,
                    _ => kernels.long_rows,
                };
                let each = blocks.rows_of_launch(rows);
                for first in (0..rows).step_by(each) {
                    let count = each.min(rows - first);
                    let output = output.reborrow().slice(first, count)?;
                    let (input, tile_states) = (input.skip(first * pitch)?, workspace.tile_states.view_mut());
                    let Blocks { splits, tiles, longer_splits, threads } = blocks;
                    let arguments =
                        LongRowArgs { operator, input, len, pitch, splits, tiles, longer_splits, tile_states, output };
                    gpu.launch(kernel.with_block(threads), super::grid(blocks.grid(count), OPERATION)?, arguments)?;
                }
                Ok(())
            }
            Method::Rows { rows, len, pitch, lanes: StateLanes { lanes, rows_per_block } } => {
                let vectors_per_row = vectors_per_row(len, size_of::<T>()) as u32;
                let len = len as u32;
                let arguments =
                    RowArgs { operator, input, rows, len, pitch, lanes, rows_per_block, vectors_per_row, output };
                gpu.launch(kernels.rows, grid, arguments)
            }
            Method::Columns { rows, columns, pitch, batch_pitch, tiles, .. } => {
                let (count, Tiles { folded_rows, lanes, splits, .. }) = (tiles.count(columns), tiles);
                // Fits in a `u32`, because the grid has at least this number of blocks.
                let tiles = count as u32;
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
    use kernels::reduce::reduction::{Kernels, Reduction};

    use super::*;
    use crate::SimtOptions;

    #[test]
    fn split_rows_may_exceed_the_height_of_a_grid() {
        const ROWS: usize = 65_537;
        const LEN: usize = 257;
        let gpu = Gpu::simt_with(SimtOptions { checks: false, ..SimtOptions::default() });
        let Kernels::OfStates(kernels) = Reduction::<f64>::kernels(Product) else { panic!("it has no states") };
        // Each row has two splits: one tile, and one element.
        let blocks = Blocks { splits: 2, tiles: 1, longer_splits: 0, threads: 32 };
        let method = Method::LongRows { rows: ROWS, len: LEN, pitch: LEN, blocks };
        let launches: Launches<f64, f64, 1> = Launches::new(ByStates { kernels, method });
        let mut numbers = vec![1.0; ROWS * LEN];
        numbers.chunks_mut(LEN).zip(1..).for_each(|(row, number)| row[LEN - 1] = f64::from(number));
        let input = gpu.upload(&numbers).unwrap();
        let mut output = gpu.zeroed(ROWS).unwrap();
        let mut workspace = Workspace::new(&gpu, launches.workspace_size()).unwrap();
        launches.launch(&gpu, &mut workspace, [input.view()], output.view_mut()).unwrap();
        let found = gpu.download(&output).unwrap();
        assert!(found.into_iter().eq((1..=ROWS).map(|number| number as f64)));
    }
}
