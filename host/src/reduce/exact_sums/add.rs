//! Adds elements, squares and products to exact sums on a device.

use cuda_std::element::Element;
use exact_sum::{ExactDot, ExactSum};
use kernels::reduce::exact::long_rows::{MAX_THREADS, PAIRS_IN_FLIGHT, VECTORS_IN_FLIGHT};
use kernels::reduce::exact::states::columns::StateColumnArgs;
use kernels::reduce::exact::states::long_rows::{StatePairArgs, exact_states_of_long_rows};
use kernels::reduce::exact::states::rows::exact_states_of_rows;

use super::columns::Columns;
use super::kind::{LongRowKernel, StateKernels};
use super::{ExactElement, ExactState, ExactStates, OPERATION};
use crate::array::{IntoArrayView, broadcast};
use crate::reduce::Axes;
use crate::reduce::geometry::{Allowed, Geometry, Kind, LaunchShape, Order, Pairs};
use crate::reduce::inputs::IntoInputs;
use crate::reduce::lane_memory::lane_memory_bytes;
use crate::reduce::launch::{Lanes, RowLanes, grid};
use crate::reduce::method::Blocks;
use crate::reduce::steps::Steps;
use crate::{ArrayView, Error, Gpu, Layout, View, ViewMut};

/// What the kernels allow that add to states, for elements of type `T`.
fn allowed<T: Element>(columns: bool) -> Allowed {
    Allowed { order: Order::Any, columns, in_place: true, size: size_of::<T>() }
}

impl<T: ExactElement> ExactStates<ExactSum<T>> {
    /// Adds the elements along these axes of an array: those of each index of the other axes, in C order, to the sum of
    /// the same number. The device does this after all work that was started earlier; the host does not wait.
    ///
    /// # Errors
    /// The array does not have one index of the other axes for each sum, an axis does not exist or is named twice, the
    /// array belongs to another device, a sum would have more than 2^50 elements, memory for a copy runs out, or an
    /// earlier [`all_reduce`](ExactStates::all_reduce) has failed: then nothing is added. Or a launch is refused: then
    /// nothing is added, unless the array is copied in several parts.
    pub fn add<'a>(&mut self, input: impl IntoArrayView<'a, T>, axes: impl Into<Axes>) -> Result<(), Error> {
        let input = input.into_array_view();
        let layout = *input.layout();
        let geometry = Geometry::<1, Kind>::new(&layout, &axes.into().of(&layout)?, allowed::<T>(true))?;
        self.add_inputs(&geometry, [input], [layout], |gpu, kernels, kind, [input], states| {
            add_elements(gpu, kernels, kind, input, states)
        })
    }
}

impl<T: ExactElement> ExactStates<ExactDot<T>> {
    /// Adds the squares of the elements along these axes of an array, as [`ExactSums::add`](ExactStates::add) adds
    /// elements.
    ///
    /// # Errors
    /// As for [`ExactSums::add`](ExactStates::add).
    pub fn add_squares<'a>(&mut self, input: impl IntoArrayView<'a, T>, axes: impl Into<Axes>) -> Result<(), Error> {
        let input = input.into_array_view();
        let layout = *input.layout();
        let geometry = Geometry::<1, Kind>::new(&layout, &axes.into().of(&layout)?, allowed::<T>(false))?;
        self.add_inputs(&geometry, [input], [layout], |gpu, kernels, kind, [input], states| match kind {
            Kind::Rows { rows, len, pitch } => add_long_rows(gpu, &kernels.squares, (rows, len, pitch), input, states),
            Kind::Columns { .. } => unreachable!("a geometry without columns has rows"),
        })
    }

    /// Adds the products of the elements along these axes of two arrays, whose extents are broadcast as in NumPy, as
    /// [`ExactSums::add`](ExactStates::add) adds elements.
    ///
    /// # Errors
    /// As for [`ExactSums::add`](ExactStates::add); or the arrays cannot be broadcast.
    pub fn add_products<'a>(&mut self, inputs: impl IntoInputs<'a, T, 2>, axes: impl Into<Axes>) -> Result<(), Error> {
        let inputs = inputs.into_inputs();
        let layouts = broadcast(OPERATION, inputs.each_ref().map(|input| input.layout()))?;
        let reduced = axes.into().of(&layouts[0])?;
        let geometry = Geometry::<2, Pairs>::of_pairs(layouts.each_ref(), &reduced, allowed::<T>(false))?;
        self.add_inputs(&geometry, inputs, layouts, add_pairs)
    }
}

impl<S: ExactState> ExactStates<S> {
    /// Adds inputs of a geometry. `launch` adds views of a launch's shape to its states.
    fn add_inputs<const N: usize, K: LaunchShape + Copy>(
        &mut self,
        geometry: &Geometry<N, K>,
        inputs: [ArrayView<'_, S::Element>; N],
        layouts: [Layout; N],
        launch: impl Fn(
            &Gpu,
            &StateKernels<S::Element>,
            K,
            [View<'_, S::Element>; N],
            ViewMut<'_, i64>,
        ) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.check_usable()?;
        inputs.iter().try_for_each(|input| self.gpu.use_memory(input.elements().memory(), OPERATION))?;
        self.check_len("the array's outputs", geometry.outputs())?;
        let elements = geometry.kind.elements_each() as u64;
        let max_count = self.max_count_with(elements)?;
        if self.len > 0 && elements > 0 {
            let Self { gpu, kernels, words, .. } = self;
            let offsets = layouts.map(|layout| layout.offset());
            let inputs = std::array::from_fn(|input| (inputs[input].elements(), offsets[input]));
            let mut parts = Steps::of(geometry).parts(gpu)?;
            for geometry in [Some(geometry), geometry.rest.as_deref()].into_iter().flatten() {
                Steps::of(geometry).run(gpu, inputs, &mut parts, |views, first, outputs| {
                    let states = words.view_mut().slice(first * S::WORDS, outputs * S::WORDS)?;
                    launch(gpu, kernels, geometry.kind, views, states)
                })?;
            }
        }
        self.max_count = max_count;
        Ok(())
    }
}

/// Adds rows or columns to states.
fn add_elements<T: ExactElement>(
    gpu: &Gpu,
    kernels: &StateKernels<T>,
    kind: Kind,
    input: View<'_, T>,
    states: ViewMut<'_, i64>,
) -> Result<(), Error> {
    match kind {
        Kind::Rows { rows, len, pitch } if rows > 1 && Lanes::can_reduce(len, size_of::<T>()) => {
            let (lanes, has_singles) = RowLanes::of(len, pitch, size_of::<T>()).at(input.address());
            let Lanes { lanes, vectors, rows_per_block } = lanes;
            let grid = grid((rows.div_ceil(rows_per_block), 1), OPERATION)?;
            let (lanes_log, vectors_log) = (lanes.ilog2(), vectors.ilog2());
            let has_singles = u32::from(has_singles);
            let arguments =
                exact_states_of_rows::Args { input, rows, len, pitch, lanes_log, vectors_log, has_singles, states };
            gpu.launch(kernels.rows, grid, arguments)
        }
        Kind::Rows { rows, len, pitch } => add_long_rows(gpu, &kernels.long_rows, (rows, len, pitch), input, states),
        Kind::Columns { batches, rows, columns, pitch, batch_pitch } => {
            let tiles = Columns::of(batches, rows, columns, gpu.multiprocessors());
            let Columns { folded, rows_of_split, tiles, splits } = tiles;
            let blocks = tiles.saturating_mul(splits).saturating_mul(batches);
            let grid = grid((blocks, 1), OPERATION)?;
            // These fit in a `u32`: `folded` is at most a block's threads, the others at most the grid's blocks.
            let (folded, tiles, splits) = (folded as u32, tiles as u32, splits as u32);
            let arguments = StateColumnArgs {
                input,
                rows,
                columns,
                pitch,
                batch_pitch,
                folded,
                rows_of_split,
                tiles,
                splits,
                states,
            };
            gpu.launch(kernels.columns, grid, arguments)
        }
    }
}

/// Adds rows of some length and pitch to states, with one block or several for each row.
fn add_long_rows<T: ExactElement>(
    gpu: &Gpu,
    LongRowKernel { kernel, lane_memory }: &LongRowKernel<exact_states_of_long_rows::Args<'static, T>>,
    (rows, len, pitch): (usize, usize, usize),
    input: View<'_, T>,
    states: ViewMut<'_, i64>,
) -> Result<(), Error> {
    let blocks = Blocks::exact(rows, len, size_of::<T>(), VECTORS_IN_FLIGHT, gpu.multiprocessors());
    let Blocks { splits, tiles, longer_splits, threads } = blocks;
    let arguments = exact_states_of_long_rows::Args { input, len, pitch, splits, tiles, longer_splits, states };
    let shared = lane_memory_bytes(gpu, *lane_memory, threads as usize, MAX_THREADS);
    let kernel = kernel.with_block(threads).with_dynamic_shared(shared);
    gpu.launch(kernel, grid(blocks.grid(rows), OPERATION)?, arguments)
}

/// Adds the products of two inputs' rows to states.
fn add_pairs<T: ExactElement>(
    gpu: &Gpu,
    kernels: &StateKernels<T>,
    pairs: Pairs,
    [first, second]: [View<'_, T>; 2],
    states: ViewMut<'_, i64>,
) -> Result<(), Error> {
    let (size, outputs) = (size_of::<T>(), pairs.outputs());
    let blocks = Blocks::exact(outputs, pairs.len, size, PAIRS_IN_FLIGHT, gpu.multiprocessors());
    let grid = grid(blocks.grid(outputs), OPERATION)?;
    let Pairs { rows, len, pitches: [pitch, second_pitch], group_pitches, .. } = pairs;
    let [group_pitch, second_group_pitch] = group_pitches;
    let Blocks { splits, tiles, longer_splits, threads } = blocks;
    let arguments = StatePairArgs {
        first,
        second,
        // Fits, because the grid has a block for each row.
        rows: rows as u32,
        len,
        pitch,
        second_pitch,
        group_pitch,
        second_group_pitch,
        splits,
        tiles,
        longer_splits,
        states,
    };
    let LongRowKernel { kernel, lane_memory } = &kernels.pairs;
    let shared = lane_memory_bytes(gpu, *lane_memory, threads as usize, MAX_THREADS);
    gpu.launch(kernel.with_block(threads).with_dynamic_shared(shared), grid, arguments)
}
