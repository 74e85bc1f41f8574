//! Exact sums of floats, and the results computed from them.

use std::fmt;

use cuda_std::element::{Element, Plain};
use exact_sum::{MAX_ELEMENTS, TooManyElements};
use kernels::reduce::columns::{BLOCK, COLUMNS};
use kernels::reduce::exact::columns::{ExactColumnArgs, MIN_BLOCKS, WORDS_OF_TICKET, rows_in_flight};
use kernels::reduce::exact::few_columns::{self, FewColumnArgs};
use kernels::reduce::exact::few_rows::{self, FewRowArgs};
use kernels::reduce::exact::long_rows::{ExactLongRowArgs, MAX_THREADS, VECTORS_IN_FLIGHT};
use kernels::reduce::exact::rows::{self, ExactRowArgs, min_lanes};
use kernels::reduce::reduction::ExactKernels;
use kernels::reduce::tuning::exact_rows::{BLOCKS_OF_SEVERAL_STEPS, COALESCED_LANES};

use super::{Launch, Launches, grid};
use crate::reduce::OPERATION;
use crate::reduce::geometry::{Kind, LaunchShape};
use crate::reduce::lane_memory::{lane_memory_bytes, required_lane_memory_bytes};
use crate::reduce::method::{Blocks, Concurrency, Method, Tiles};
use crate::reduce::workspace::{Workspace, WorkspaceSize};
use crate::{Error, Gpu, View, ViewMut};

/// The reduction of a shape by exact sums.
pub(in crate::reduce) struct Exact<T: Element, R: Plain> {
    kernels: ExactKernels<T, R>,
    method: ExactMethod,
    /// Whether the method is that of [`ExactMethod::of_few`].
    is_of_few: bool,
}

/// Checks the number of elements of each sum: an array that repeats its elements may have more than any memory.
pub(super) fn check_count(shape: &impl LaunchShape) -> Result<(), TooManyElements> {
    let count = shape.elements_each() as u64;
    if count > MAX_ELEMENTS { Err(TooManyElements { count }) } else { Ok(()) }
}

/// How exact sums are launched. It does not change the results.
type ExactMethod = Method<ShortRows, Tiles>;

impl ExactMethod {
    /// The method for elements of `size` bytes.
    fn of(kind: Kind, size: usize, multiprocessors: usize) -> Self {
        match kind {
            Kind::Columns { .. } if kind.elements_each() == 0 => {
                Self::of_rows(kind.outputs(), 0, 0, size, multiprocessors)
            }
            Kind::Columns { .. } if kind.outputs() == 0 => Self::Nothing,
            Kind::Rows { rows, len, pitch } => Self::of_rows(rows, len, pitch, size, multiprocessors),
            Kind::Columns { batches, rows, columns, pitch, batch_pitch } => {
                let concurrency =
                    Concurrency { rows_in_flight: rows_in_flight(size), resident_blocks: MIN_BLOCKS * multiprocessors };
                let tiles = Tiles::filling(rows, columns, batches, size, concurrency);
                Self::columns(batches, rows, columns, (pitch, batch_pitch), tiles)
            }
        }
    }

    /// The method of columns of few rows, or of rows of few elements, if there are enough of them to occupy a block.
    fn of_few(kind: Kind, size: usize) -> Option<Self> {
        let (batches, rows, columns, pitches) = match kind {
            // Rows of one element are one row of columns.
            Kind::Rows { rows: columns, len: 1, pitch: 1 } => (1, 1, columns, (columns, columns)),
            Kind::Rows { rows, len, pitch } => {
                let is_few = (1..=few_columns::max_len(size)).contains(&len) && rows >= few_columns::min_rows(len);
                return is_few.then_some(Self::Rows { rows, len, pitch, lanes: ShortRows::OneThread });
            }
            // A single row may have any pitch: with this one, its elements are loaded four at a time.
            Kind::Columns { batches: 1, rows: 1, columns, .. } => (1, 1, columns, (columns, columns)),
            Kind::Columns { batches, rows, columns, pitch, batch_pitch } => {
                (batches, rows, columns, (pitch, batch_pitch))
            }
        };
        let is_slow = size >= 4 && !columns.is_multiple_of(COLUMNS);
        let max_rows = if is_slow { few_rows::MAX_SINGLE_ROWS } else { few_rows::MAX_ROWS };
        let is_few = (1..=max_rows).contains(&rows) && columns >= few_rows::MIN_COLUMNS && batches > 0;
        is_few.then(|| Self::columns(batches, rows, columns, pitches, Tiles::OF_FEW_ROWS))
    }

    /// The method of short rows, or of long ones.
    fn of_rows(rows: usize, len: usize, pitch: usize, size: usize, multiprocessors: usize) -> Self {
        if rows == 0 {
            Self::Nothing
        } else if rows > 1 && len > 0 && Lanes::can_reduce(len, size) {
            let lanes = RowLanes::of(len, pitch, size).with_steps(rows, multiprocessors);
            Self::Rows { rows, len, pitch, lanes: ShortRows::Lanes(lanes) }
        } else {
            Self::long_rows(rows, len, pitch, Blocks::exact(rows, len, size, VECTORS_IN_FLIGHT, multiprocessors))
        }
    }
}

impl<T: Element, R: Plain> Exact<T, R> {
    /// Plans the reduction, if possible.
    pub fn plan(
        kernels: ExactKernels<T, R>,
        kind: Kind,
        multiprocessors: usize,
        has_fast_f64: bool,
    ) -> Result<Launches<T, R, 1>, Error> {
        if let Some(operator) = kernels.nonzero_at_zero() {
            return Err(Error::TermOfZero { operator });
        }
        check_count(&kind)?;
        let of_few = if has_fast_f64 && kernels.has_few() { ExactMethod::of_few(kind, size_of::<T>()) } else { None };
        let method = of_few.unwrap_or_else(|| ExactMethod::of(kind, size_of::<T>(), multiprocessors));
        Ok(Launches::new(Self { kernels, method, is_of_few: of_few.is_some() }))
    }

    /// Launches the method's kernel.
    fn reduce(
        &self,
        gpu: &Gpu,
        workspace: &mut Workspace,
        input: View<'_, T>,
        output: ViewMut<'_, u8>,
    ) -> Result<(), Error> {
        let (finish, term) = (self.kernels.finish(), self.kernels.term());
        // SAFETY: the arguments are what the plan says, for views that have the shape's elements and outputs.
        let kernels = unsafe { self.kernels.handles() };
        let Workspace { tile_states, superaccumulators, tickets, .. } = workspace;
        let (tile_states, superaccumulators, tickets) =
            (tile_states.view_mut(), superaccumulators.view_mut(), tickets.view_mut());
        match self.method {
            Method::Nothing => Ok(()),
            Method::LongRows { rows, len, pitch, blocks } => {
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
            Method::Rows { rows, len, pitch, lanes: ShortRows::OneThread } => {
                let Some(kernel) = kernels.few_columns else {
                    let expected = "but the operator has no kernel for it".to_owned();
                    let what = "the number of elements of a row";
                    return Err(Error::Shape { operation: OPERATION, what, found: len, expected });
                };
                let has_fours = u32::from(is_aligned_for_fours(input) && has_fours(len, pitch, size_of::<T>()));
                let grid = grid((rows.div_ceil(few_columns::ROWS_OF_BLOCK), 1), OPERATION)?;
                gpu.launch(kernel, grid, FewColumnArgs { input, rows, len, pitch, has_fours, finish, output, term })
            }
            Method::Rows { rows, len, pitch, lanes: ShortRows::Lanes(lanes) } => {
                let (Lanes { lanes, vectors, rows_per_block }, has_singles) = lanes.at(input.address());
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
            Method::Columns { batches, rows, columns, pitch, batch_pitch, tiles } if self.is_of_few => {
                let Some(kernel) = kernels.few_rows else {
                    let expected = "but the operator has no kernel for it".to_owned();
                    return Err(Error::Shape {
                        operation: OPERATION,
                        what: "the number of rows",
                        found: rows,
                        expected,
                    });
                };
                let tiles = tiles.count(columns);
                let grid = grid((tiles.saturating_mul(batches), 1), OPERATION)?;
                let has_fours = is_aligned_for_fours(input)
                    && output.address().is_multiple_of((COLUMNS * size_of::<R>()).min(16) as u64)
                    && has_fours(columns, pitch, size_of::<T>())
                    && has_fours(columns, batch_pitch, size_of::<T>());
                let arguments = FewRowArgs {
                    input,
                    rows,
                    columns,
                    pitch,
                    batch_pitch,
                    // Fits in a `u32`, because the grid has at least this number of blocks.
                    tiles: tiles as u32,
                    has_fours: u32::from(has_fours),
                    finish,
                    output,
                    term,
                };
                gpu.launch(kernel, grid, arguments)
            }
            Method::Columns { batches, rows, columns, pitch, batch_pitch, tiles } => {
                let Some(kernel) = kernels.columns else {
                    // The geometry takes rows for such an operator.
                    let (what, expected) = ("the number of columns", "but the operator's kernels take rows".to_owned());
                    return Err(Error::Shape { operation: OPERATION, what, found: columns, expected });
                };
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
                let memory = self.kernels.lane_memory_of_columns();
                let shared = required_lane_memory_bytes(gpu, memory, BLOCK, MIN_BLOCKS * BLOCK);
                gpu.launch(kernel.with_dynamic_shared(shared), grid, arguments)
            }
        }
    }
}

impl<T: Element, R: Plain> fmt::Display for Exact<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.method.fmt(f)
    }
}

impl<T: Element, R: Plain> Launch<T, R, 1> for Exact<T, R> {
    fn workspace_size(&self) -> WorkspaceSize {
        let words = self.kernels.words();
        match self.method {
            Method::Nothing | Method::Rows { .. } => WorkspaceSize::default(),
            Method::LongRows { rows, blocks, .. } => {
                blocks.workspace_size(rows, self.kernels.states_per_split(), words)
            }
            Method::Columns { batches, columns, tiles, .. } => {
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
        [input]: [View<'_, T>; 1],
        output: ViewMut<'_, R>,
    ) -> Result<(), Error> {
        self.reduce(gpu, workspace, input, output.cast())
    }
}

/// Who sums a short row. It does not change the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShortRows {
    /// Lanes of a warp.
    Lanes(RowLanes),
    /// A thread, which has several rows: see [`few_columns`].
    OneThread,
}

impl fmt::Display for ShortRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lanes(lanes) => lanes.fmt(f),
            Self::OneThread => write!(f, "{} rows a block, 1 lane each", few_columns::ROWS_OF_BLOCK),
        }
    }
}

/// Whether four elements can be loaded at once from the first element on.
fn is_aligned_for_fours<T: Element>(input: View<'_, T>) -> bool {
    input.address().is_multiple_of((COLUMNS * size_of::<T>()).min(16) as u64)
}

/// Whether rows that begin at an aligned address are aligned groups of four elements of `size` bytes.
fn has_fours(len: usize, pitch: usize, size: usize) -> bool {
    len.is_multiple_of(COLUMNS) && pitch.saturating_mul(size).is_multiple_of((COLUMNS * size).min(16))
}

/// How lanes share short rows, which depends on where the rows begin. It does not change the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reduce) struct RowLanes {
    /// For an input that begins at a multiple of 16 bytes, if then all rows do.
    aligned: Option<Lanes>,
    unaligned: Lanes,
}

impl RowLanes {
    /// The lanes of rows of `len` elements of `size` bytes, `pitch` elements apart.
    pub fn of(len: usize, pitch: usize, size: usize) -> Self {
        let is_even = len.is_multiple_of(16 / size) && pitch.saturating_mul(size).is_multiple_of(16);
        let aligned = is_even.then(|| Lanes::of(len, size, false));
        Self { aligned, unaligned: Lanes::of(len, size, true) }
    }

    /// [`Lanes::with_steps`].
    fn with_steps(self, rows: usize, multiprocessors: usize) -> Self {
        let with_steps = |lanes: Lanes| lanes.with_steps(rows, multiprocessors);
        Self { aligned: self.aligned.map(with_steps), unaligned: with_steps(self.unaligned) }
    }

    /// The lanes for an input at this address, and whether rows may have elements outside of whole vectors.
    pub fn at(self, address: u64) -> (Lanes, bool) {
        match self.aligned.filter(|_| address.is_multiple_of(16)) {
            Some(lanes) => (lanes, false),
            None => (self.unaligned, true),
        }
    }
}

impl fmt::Display for RowLanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Lanes { lanes, rows_per_block, .. } = self.aligned.unwrap_or(self.unaligned);
        write!(f, "{rows_per_block} rows a block, {lanes} lane{} each", if lanes == 1 { "" } else { "s" })
    }
}

/// How lanes share short rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reduce) struct Lanes {
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
