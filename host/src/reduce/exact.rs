//! Exact sums of floats, and the results computed from them.

use cuda_std::element::{Element, Plain};
use exact_sum::{MAX_ELEMENTS, TooManyElements};
use kernels::reduce::columns::BLOCK;
use kernels::reduce::exact::columns::{ExactColumnArgs, MIN_BLOCKS, WORDS_OF_TICKET, rows_in_flight};
use kernels::reduce::exact::long_rows::{ExactLongRowArgs, MAX_THREADS, VECTORS_IN_FLIGHT};
use kernels::reduce::exact::rows::{self, ExactRowArgs, min_lanes};
use kernels::reduce::reduction::ExactKernels;
use kernels::reduce::tuning::exact_rows::{BLOCKS_OF_SEVERAL_STEPS, COALESCED_LANES};

use super::Shape;
use super::lane_memory::{lane_memory_bytes, required_lane_memory_bytes};
use super::plan::{Blocks, Concurrency, Tiles};
use super::planned::{Launches, OPERATION, Planned, grid};
use super::shape::Kind;
use super::workspace::{Workspace, WorkspaceSize};
use crate::{Error, Gpu, View, ViewMut};

/// The reduction of a shape by exact sums.
pub(super) struct Exact<T: Element, R: Plain> {
    kernels: ExactKernels<T, R>,
    plan: Plan,
}

/// How a shape is launched. It does not change the results.
#[derive(Clone, Copy)]
enum Plan {
    /// There is no output.
    Nothing,
    LongRows {
        rows: usize,
        len: usize,
        pitch: usize,
        blocks: Blocks,
    },
    Rows {
        rows: usize,
        len: usize,
        pitch: usize,
    },
    Columns {
        batches: usize,
        rows: usize,
        columns: usize,
        pitch: usize,
        batch_pitch: usize,
        tiles: Tiles,
    },
}

impl Plan {
    /// The plan of short rows, or of long ones.
    fn of_rows<T: Element>(rows: usize, len: usize, pitch: usize, multiprocessors: usize) -> Self {
        let size = size_of::<T>();
        if rows == 0 {
            Self::Nothing
        } else if rows > 1 && len > 0 && Lanes::can_reduce(len, size) {
            Self::Rows { rows, len, pitch }
        } else {
            // Empty rows have no use for the pitch, which may be any number, so 0 replaces it.
            let pitch = if len == 0 { 0 } else { pitch };
            let blocks = Blocks::exact(rows, len, size, VECTORS_IN_FLIGHT, multiprocessors);
            Self::LongRows { rows, len, pitch, blocks }
        }
    }
}

impl<T: Element, R: Plain> Exact<T, R> {
    /// Plans the reduction of a shape, if possible.
    pub(super) fn plan(
        kernels: ExactKernels<T, R>,
        shape: Shape,
        multiprocessors: usize,
    ) -> Result<Planned<T, R>, Error> {
        if let Some(operator) = kernels.nonzero_at_zero() {
            return Err(Error::TermOfZero { operator });
        }
        // An array that repeats its elements may have more than any memory.
        let count = shape.elements_each() as u64;
        if count > MAX_ELEMENTS {
            return Err(TooManyElements { count }.into());
        }
        let size = size_of::<T>();
        let plan = match shape.kind {
            Kind::Rows { rows, len, pitch } => Plan::of_rows::<T>(rows, len, pitch, multiprocessors),
            Kind::Columns { .. } if shape.elements_each() == 0 => {
                Plan::of_rows::<T>(shape.outputs(), 0, 0, multiprocessors)
            }
            Kind::Columns { .. } if shape.outputs() == 0 => Plan::Nothing,
            Kind::Columns { batches, rows, columns, pitch, batch_pitch } => {
                if !kernels.has_columns() {
                    let expected = "but the operator's kernels take rows: copy the columns to rows first".to_owned();
                    return Err(Error::Shape {
                        operation: OPERATION,
                        what: "the number of columns",
                        found: columns,
                        expected,
                    });
                }
                let concurrency =
                    Concurrency { rows_in_flight: rows_in_flight(size), resident_blocks: MIN_BLOCKS * multiprocessors };
                let tiles = Tiles::filling(rows, columns, batches, size, concurrency);
                // A single matrix has no use for the batch pitch, which must not make the input look misaligned.
                let batch_pitch = if batches == 1 { 0 } else { batch_pitch };
                Plan::Columns { batches, rows, columns, pitch, batch_pitch, tiles }
            }
        };
        Ok(Planned::new(Self { kernels, plan }))
    }

    /// Launches the plan's kernel.
    fn reduce(
        &self,
        gpu: &Gpu,
        workspace: &mut Workspace,
        input: View<'_, T>,
        output: ViewMut<'_, u8>,
    ) -> Result<(), Error> {
        let (finish, term, size) = (self.kernels.finish(), self.kernels.term(), size_of::<T>());
        // SAFETY: the arguments are what the plan says, for views that have the shape's elements and outputs.
        let kernels = unsafe { self.kernels.handles() };
        let Workspace { tile_states, superaccumulators, tickets, .. } = workspace;
        let (tile_states, superaccumulators, tickets) =
            (tile_states.view_mut(), superaccumulators.view_mut(), tickets.view_mut());
        match self.plan {
            Plan::Nothing => Ok(()),
            Plan::LongRows { rows, len, pitch, blocks } => {
                let Blocks { splits, tiles, longer_splits, threads } = blocks;
                let arguments = ExactLongRowArgs {
                    input,
                    len,
                    pitch,
                    splits,
                    tiles,
                    longer_splits,
                    tile_states,
                    superaccumulators,
                    finish,
                    output,
                    term,
                };
                let shared = lane_memory_bytes(gpu, self.kernels.lane_memory(), threads as usize, MAX_THREADS);
                let kernel = kernels.long_rows.with_block(threads).with_dynamic_shared(shared);
                gpu.launch(kernel, grid(blocks.grid(rows), OPERATION)?, arguments)
            }
            Plan::Rows { rows, len, pitch } => {
                let is_even = len.is_multiple_of(16 / size) && pitch.saturating_mul(size).is_multiple_of(16);
                let has_singles = !(is_even && input.address().is_multiple_of(16));
                let Lanes { lanes, vectors, rows_per_block } =
                    Lanes::of(len, size, has_singles).with_steps(rows, gpu.multiprocessors());
                let grid = grid((rows.div_ceil(rows_per_block), 1), OPERATION)?;
                let rows_of_lane = rows_per_block / (rows::BLOCK / lanes as usize);
                let (lanes_log, vectors_log, rows_log) = (lanes.ilog2(), vectors.ilog2(), rows_of_lane.ilog2());
                let has_singles = u32::from(has_singles);
                let arguments = ExactRowArgs {
                    input,
                    rows,
                    len,
                    pitch,
                    lanes_log,
                    vectors_log,
                    rows_log,
                    has_singles,
                    finish,
                    output,
                    term,
                };
                gpu.launch(kernels.rows, grid, arguments)
            }
            Plan::Columns { batches, rows, columns, pitch, batch_pitch, tiles } => {
                let Some(kernel) = kernels.columns else { return Ok(()) };
                let (count, Tiles { folded_rows, lanes, .. }) = (tiles.count(columns), tiles);
                let (splits, rows_of_split) = tiles.rows_of_split(rows);
                let blocks = count.saturating_mul(splits as usize).saturating_mul(batches);
                let grid = grid((blocks, 1), OPERATION)?;
                let arguments = ExactColumnArgs {
                    input,
                    rows,
                    columns,
                    pitch,
                    batch_pitch,
                    folded_rows,
                    lanes,
                    // Fits in a `u32`, because the grid has at least this number of blocks.
                    tiles: count as u32,
                    splits,
                    rows_of_split,
                    superaccumulators,
                    tickets,
                    finish,
                    output,
                    term,
                };
                let shared =
                    required_lane_memory_bytes(gpu, self.kernels.lane_memory_of_columns(), BLOCK, MIN_BLOCKS * BLOCK);
                gpu.launch(kernel.with_dynamic_shared(shared), grid, arguments)
            }
        }
    }
}

impl<T: Element, R: Plain> Launches<T, R> for Exact<T, R> {
    fn workspace_size(&self) -> WorkspaceSize {
        let words = self.kernels.words();
        match self.plan {
            Plan::Nothing | Plan::Rows { .. } => WorkspaceSize::default(),
            Plan::LongRows { rows, blocks, .. } => blocks.workspace_size(rows, self.kernels.states_per_split(), words),
            Plan::Columns { batches, columns, tiles, .. } => {
                let shared = if tiles.splits > 1 { batches } else { 0 };
                let tickets = shared * if tiles.folded_rows == 1 { tiles.count(columns) } else { 1 };
                let superaccumulators = shared * columns * words;
                WorkspaceSize { superaccumulators, tickets: tickets * WORDS_OF_TICKET, ..WorkspaceSize::default() }
            }
        }
    }

    fn launch(
        &self,
        gpu: &Gpu,
        workspace: &mut Workspace,
        input: View<'_, T>,
        output: ViewMut<'_, R>,
    ) -> Result<(), Error> {
        self.reduce(gpu, workspace, input, output.cast())
    }
}

/// How lanes share short rows. It does not change the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lanes {
    /// Lanes of a row.
    pub lanes: u32,
    /// Vectors of each of these lanes.
    pub vectors: u32,
    pub rows_per_block: usize,
}

impl Lanes {
    /// Whether the lanes of a warp can reduce a row of `len` elements of `size` bytes. Blocks reduce longer rows.
    pub fn can_reduce(len: usize, size: usize) -> bool {
        len / (16 / size) <= 32 * rows::VECTORS
    }

    /// The lanes of such rows. If `has_singles`, rows may have single elements outside of whole vectors.
    pub fn of(len: usize, size: usize, has_singles: bool) -> Self {
        let vectors_of_row = len / (16 / size);
        let least = if has_singles { min_lanes(size) as usize } else { 1 };
        let of_one_vector = vectors_of_row.next_power_of_two().max(least);
        let of_all_vectors = vectors_of_row.div_ceil(rows::VECTORS).next_power_of_two().max(least).max(COALESCED_LANES);
        // If all vectors of a lane are of one row, none is empty.
        let (lanes, vectors) = match of_all_vectors * rows::VECTORS == of_one_vector {
            true => (of_all_vectors, rows::VECTORS),
            false => (of_one_vector, 1),
        };
        let rows_per_block = rows::BLOCK / lanes * rows::VECTORS / vectors;
        Self { lanes: lanes as u32, vectors: vectors as u32, rows_per_block }
    }

    /// The same lanes. If there are enough of `rows` rows, each lane has as many of them as it loads vectors.
    fn with_steps(self, rows: usize, multiprocessors: usize) -> Self {
        let blocks = rows.div_ceil(self.rows_per_block);
        let steps = if blocks < BLOCKS_OF_SEVERAL_STEPS * multiprocessors { 1 } else { self.vectors as usize };
        Self { rows_per_block: self.rows_per_block * steps, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_take_several_rows_where_there_are_many() {
        let rows_of_lane = |len, rows| {
            let lanes = Lanes::of(len, 4, false).with_steps(rows, 132);
            lanes.rows_per_block * lanes.lanes as usize / rows::BLOCK
        };
        // 16 lanes, 8 rows for each block and step.
        assert_eq!([1 << 10, 1 << 13, 1 << 14, 1 << 20].map(|rows| rows_of_lane(256, rows)), [1, 1, 4, 4]);
        // Each vector is of another row.
        assert_eq!([2, 1 << 24].map(|rows| rows_of_lane(16, rows)), [4, 4]);
    }

    #[test]
    fn lanes_hold_a_row() {
        for size in [2, 4, 8] {
            for len in 1..=1100 {
                for has_singles in [false, true] {
                    let len = if has_singles { len } else { len * 16 / size };
                    if !Lanes::can_reduce(len, size) {
                        assert!(len * size > 32 * 4 * 16, "{len} of {size} bytes");
                        continue;
                    }
                    let Lanes { lanes, vectors, rows_per_block } = Lanes::of(len, size, has_singles);
                    assert!((lanes * vectors) as usize * 16 / size + if has_singles { 16 / size } else { 0 } > len - 1);
                    assert!(lanes <= 32 && lanes.is_power_of_two() && [1, 4].contains(&vectors));
                    // Two singles for each lane: those before the first vector and those after the last.
                    assert!(!has_singles || lanes as usize * 2 >= 2 * (16 / size - 1));
                    assert_eq!(rows_per_block, 128 / lanes as usize * 4 / vectors as usize);
                }
            }
        }
        let of = |len| {
            let Lanes { lanes, vectors, .. } = Lanes::of(len, 4, false);
            (lanes, vectors)
        };
        assert_eq!([4, 16, 32, 64, 512].map(of), [(1, 1), (4, 1), (8, 1), (4, 4), (32, 4)]);
        assert_eq!([512, 516].map(|len| Lanes::can_reduce(len, 4)), [true, false]);
    }
}
