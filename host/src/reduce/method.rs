//! Chooses the kernel that reduces a shape, and its grid.
//!
//! The kernel and the grid determine the order in which elements are combined. If an operator's result depends on that
//! order, its kernel and grid are those of a single row or column of the same length, so that the order is a function
//! of the length and the types. For any other operator, they are the fastest for the shape and for the device's number
//! of multiprocessors.

use std::fmt;

use cuda_std::element::Plain;
use cuda_std::tile_state;
use kernels::reduce::columns::{self, in_order::Order};
use kernels::reduce::exact::superaccumulator_words::MAX_WARPS;
use kernels::reduce::tuning::columns::{
    CACHE_LINE, MAX_FOLDED_COLUMNS, MIN_FOLDED_COLUMNS, PARTIALS_PER_THREAD, WIDE_TILE_LANES,
};
use kernels::reduce::tuning::long_rows::{
    LARGE_BLOCKS_PER_MULTIPROCESSOR, MAX_SHORT_ROW_VECTORS, MAX_THREADS, SMALL_BLOCKS_PER_MULTIPROCESSOR,
    WAVES_WITHOUT_TAIL_EFFECT,
};
use kernels::reduce::tuning::{exact_long_rows, order};
use kernels::reduce::{long_rows, rows};

use super::geometry::Kind;
use super::workspace::WorkspaceSize;

/// How a shape is launched. `L` says how lanes share short rows, and `C` how blocks share columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method<L, C> {
    /// There is no output.
    Nothing,
    /// One block or several for each row.
    LongRows {
        rows: usize,
        len: usize,
        pitch: usize,
        blocks: Blocks,
    },
    /// Some lanes of a warp for each row.
    Rows {
        rows: usize,
        len: usize,
        pitch: usize,
        lanes: L,
    },
    Columns {
        batches: usize,
        rows: usize,
        columns: usize,
        pitch: usize,
        batch_pitch: usize,
        tiles: C,
    },
}

impl<L, C> Method<L, C> {
    /// Long rows in these blocks.
    pub fn long_rows(rows: usize, len: usize, pitch: usize, blocks: Blocks) -> Self {
        // Empty rows have no use for the pitch, which may be any number, so 0 replaces it.
        Self::LongRows { rows, len, pitch: if len == 0 { 0 } else { pitch }, blocks }
    }

    /// Columns in these tiles.
    pub fn columns(
        batches: usize,
        rows: usize,
        columns: usize,
        (pitch, batch_pitch): (usize, usize),
        tiles: C,
    ) -> Self {
        // A single matrix has no use for the batch pitch, which must not make the input look misaligned.
        let batch_pitch = if batches == 1 { 0 } else { batch_pitch };
        Self::Columns { batches, rows, columns, pitch, batch_pitch, tiles }
    }
}

impl<L: fmt::Display, C: fmt::Display> fmt::Display for Method<L, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("no outputs"),
            Self::LongRows { rows, len, blocks, .. } => write!(f, "{rows} x {len} by rows: {blocks}"),
            Self::Rows { rows, len, lanes, .. } => write!(f, "{rows} x {len} by rows: {lanes}"),
            Self::Columns { batches: 1, rows, columns, tiles, .. } => {
                write!(f, "{rows} x {columns} by columns: {tiles}")
            }
            Self::Columns { batches, rows, columns, tiles, .. } => {
                write!(f, "{batches} x {rows} x {columns} by columns: {tiles}")
            }
        }
    }
}

/// How lanes of a warp share short rows of states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StateLanes {
    /// Lanes of a row.
    pub lanes: u32,
    pub rows_per_block: u32,
}

impl fmt::Display for StateLanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lanes, rows_per_block } = self;
        write!(f, "{rows_per_block} rows a block, {lanes} lane{} each", if *lanes == 1 { "" } else { "s" })
    }
}

/// How an operator that combines states is launched.
pub(super) type StateMethod = Method<StateLanes, Tiles>;

impl StateMethod {
    /// The method for `elements` of this kind, on a device with `multiprocessors` multiprocessors.
    pub fn of(kind: Kind, elements: Elements, multiprocessors: usize) -> Self {
        let Elements { size, size_of_state, is_any_order } = elements;
        match kind {
            Kind::Rows { rows: 0, .. } => Self::Nothing,
            Kind::Columns { batches, columns, .. } if batches == 0 || columns == 0 => Self::Nothing,
            Kind::Rows { rows, len, pitch } => {
                let vectors = len.div_ceil(16 / size);
                if vectors <= MAX_SHORT_ROW_VECTORS && (rows > 1 || !is_any_order) {
                    let lanes = rows::lanes_per_row(vectors);
                    let rows_per_block =
                        rows_per_block(rows, rows::rows_per_block(len, pitch, lanes, size), lanes, multiprocessors);
                    let lanes = StateLanes { lanes: lanes as u32, rows_per_block: rows_per_block as u32 };
                    return Self::Rows { rows, len, pitch, lanes };
                }
                // An order is that of a single row, on any device.
                let (planned_rows, multiprocessors) =
                    if is_any_order { (rows, multiprocessors) } else { (1, order::MULTIPROCESSORS) };
                let blocks = Blocks::of_rows(planned_rows, len, size, long_rows::VECTORS_IN_FLIGHT, multiprocessors);
                Self::long_rows(rows, len, pitch, blocks)
            }
            Kind::Columns { batches, rows, columns, pitch, batch_pitch } => {
                let in_flight = columns::rows_in_flight(size, size_of_state);
                let tiles = if is_any_order {
                    let resident_blocks = SMALL_BLOCKS_PER_MULTIPROCESSOR * multiprocessors;
                    let concurrency = Concurrency { rows_in_flight: in_flight, resident_blocks };
                    Tiles::of(rows, columns, batches, size, concurrency)
                } else {
                    Tiles::in_order(rows, columns, in_flight)
                };
                Self::columns(batches, rows, columns, (pitch, batch_pitch), tiles)
            }
        }
    }

    /// The memory in which blocks exchange states of type `S`.
    pub fn workspace_size<S: Plain>(&self) -> WorkspaceSize {
        match *self {
            Self::LongRows { rows, blocks, .. } => {
                blocks.workspace_size(blocks.rows_of_launch(rows), tile_state::tile_states_per_value::<S>(), 0)
            }
            Self::Columns { batches, columns, tiles: Tiles { folded_rows, lanes, splits, .. }, .. } if splits > 1 => {
                let folded_rows = folded_rows as usize;
                let tiles = tiles_of_columns(columns * folded_rows, lanes as usize);
                WorkspaceSize {
                    // An entry has 16 bytes.
                    partials: batches
                        * columns::partial_count(columns, folded_rows, splits as usize)
                        * size_of::<S>().div_ceil(16),
                    tickets: batches * columns::ticket_count(tiles, folded_rows),
                    ..WorkspaceSize::default()
                }
            }
            Self::Nothing | Self::Rows { .. } | Self::Columns { .. } => WorkspaceSize::default(),
        }
    }

    /// The grid's width and height in blocks; those of the largest grid, if there are several launches.
    pub fn grid(&self) -> (usize, usize) {
        match *self {
            Self::Nothing => (0, 0),
            Self::LongRows { rows, blocks, .. } => blocks.grid(blocks.rows_of_launch(rows)),
            Self::Rows { rows, lanes, .. } => (rows.div_ceil(lanes.rows_per_block as usize), 1),
            Self::Columns { batches, columns, tiles, .. } => {
                (tiles.count(columns) * tiles.splits as usize * batches.div_ceil(tiles.batches_of_block), 1)
            }
        }
    }
}

/// What a method depends on besides the shape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elements {
    /// Bytes of an element.
    pub size: usize,
    /// Bytes of a state.
    pub size_of_state: usize,
    /// Whether the operator's results are the same [in any order](kernels::ops::Operator::ANY_ORDER).
    pub is_any_order: bool,
}

/// How blocks reduce long rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocks {
    pub splits: u32,
    /// Tiles of the shorter splits. A tile has [`long_rows::VECTORS_IN_FLIGHT`] vectors for each thread; in an exact
    /// sum, one.
    pub tiles: u32,
    /// The number of splits that have one more tile.
    pub longer_splits: u32,
    pub threads: u32,
}

impl fmt::Display for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.splits == 1 { "" } else { "s" };
        write!(f, "{} block{plural} of {} threads a row", self.splits, self.threads)
    }
}

impl Blocks {
    /// The blocks that fold `rows` rows of `len` elements of `size` bytes by an [operator](kernels::ops::Operator). A
    /// thread has `in_flight` vectors in flight.
    pub(super) fn of_rows(rows: usize, len: usize, size: usize, in_flight: usize, multiprocessors: usize) -> Self {
        let threads = threads_of_row(len.div_ceil(16 / size), rows, in_flight, multiprocessors);
        // The last tile may be incomplete.
        let tiles = len.div_ceil(threads * in_flight * (16 / size));
        Self::of(threads, tiles, splits_of_row(tiles, rows, multiprocessors))
    }

    /// The blocks that sum `rows` rows exactly; `rows` is at least 1. The blocks do not change the results.
    pub(super) fn exact(rows: usize, len: usize, size: usize, in_flight: usize, multiprocessors: usize) -> Self {
        use exact_long_rows::{MAX_THREADS, THREADS};
        const { assert!(MAX_THREADS <= 32 * MAX_WARPS) };
        let vectors = len.div_ceil(16 / size);
        let steps = |threads: usize| vectors.div_ceil(threads * in_flight).max(1);
        let alone = vectors.div_ceil(in_flight).next_power_of_two().max(32);
        let threads = if rows > 1 {
            // Blocks small enough that all rows run at once, but of at least one warp. Other blocks load while one
            // rounds.
            let of_row = (MAX_THREADS * multiprocessors / rows).clamp(32, MAX_THREADS);
            alone.min(1 << of_row.ilog2())
        } else if alone <= MAX_THREADS {
            alone
        } else if 2 * steps(THREADS) > 3 * multiprocessors {
            MAX_THREADS
        } else {
            THREADS
        };
        // Each block has at least one load by all of its threads, and at most one tile more than any other block.
        let splits = steps(threads).min((MAX_THREADS / threads * multiprocessors / rows).max(1));
        Self::of(threads, vectors.div_ceil(threads).max(1), splits)
    }

    fn of(threads: usize, tiles: usize, splits: usize) -> Self {
        // Tile counts fit in a `u32`: a tile of a long row is at least 4 KiB.
        let (tiles, longer_splits) = ((tiles / splits) as u32, (tiles % splits) as u32);
        Self { splits: splits as u32, tiles, longer_splits, threads: threads as u32 }
    }

    /// The workspace of blocks that share a row. Each state takes `states_per_split` tile states, and each row takes a
    /// superaccumulator of `words` words.
    pub(super) fn workspace_size(&self, rows: usize, states_per_split: usize, words: usize) -> WorkspaceSize {
        let shared = if self.splits > 1 { rows } else { 0 };
        WorkspaceSize {
            tile_states: self.splits as usize * shared * states_per_split,
            superaccumulators: words * shared,
            ..WorkspaceSize::default()
        }
    }

    /// How many of `rows` rows a launch folds: all, unless blocks share a row and the grid would exceed its maximum
    /// height.
    pub(super) fn rows_of_launch(&self, rows: usize) -> usize {
        const MAX_GRID_HEIGHT: usize = 65_535;
        if self.splits > 1 { rows.min(MAX_GRID_HEIGHT) } else { rows }
    }

    /// The grid's width and height in blocks.
    pub(super) fn grid(&self, rows: usize) -> (usize, usize) {
        if self.splits > 1 { (self.splits as usize, rows) } else { (rows, 1) }
    }
}

/// How many of `rows` rows a block folds, at most `max_rows`. If possible, all blocks run in one wave. Each group of
/// `lanes` lanes has the same number of rows. The number does not change how a row is folded.
fn rows_per_block(rows: usize, max_rows: usize, lanes: usize, multiprocessors: usize) -> usize {
    let resident_blocks = SMALL_BLOCKS_PER_MULTIPROCESSOR * multiprocessors * columns::BLOCK / rows::BLOCK;
    rows.div_ceil(resident_blocks).next_multiple_of(rows::BLOCK / lanes).min(max_rows)
}

/// How much work of a kernel for columns a device has in progress at once.
#[derive(Clone, Copy)]
pub(super) struct Concurrency {
    /// Rows that a thread has in flight.
    pub rows_in_flight: usize,
    /// Blocks that run at once.
    pub resident_blocks: usize,
}

/// How blocks share a matrix's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tiles {
    pub folded_rows: u32,
    pub lanes: u32,
    pub splits: u32,
    /// The number of matrices in which a block reduces a tile.
    pub batches_of_block: usize,
}

impl fmt::Display for Tiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.splits == 1 { "" } else { "s" };
        let width = self.lanes as usize * columns::COLUMNS;
        write!(f, "tiles of {width} columns, {} block{plural} each", self.splits)?;
        if self.folded_rows > 1 { write!(f, ", {} rows folded", self.folded_rows) } else { Ok(()) }
    }
}

impl Tiles {
    /// The tiles of `batches` matrices of `rows` x `columns` elements of `size` bytes, for operators whose results do
    /// not depend on the order.
    pub(super) fn of(rows: usize, columns: usize, batches: usize, size: usize, concurrency: Concurrency) -> Self {
        let folded_rows = rows_to_fold(rows, columns, batches, size, concurrency);
        let (lanes, splits) = blocks_of_columns(rows / folded_rows, columns * folded_rows, batches, concurrency);
        let (folded_rows, lanes, splits) = (folded_rows as u32, lanes as u32, splits as u32);
        Self { folded_rows, lanes, splits, batches_of_block: 1 }
    }

    /// The tiles of matrices of few rows: each thread has columns of its own.
    pub(super) const OF_FEW_ROWS: Self =
        Self { folded_rows: 1, lanes: columns::BLOCK as u32, splits: 1, batches_of_block: 1 };

    /// The tiles for an operator whose results depend on the order. The number of splits depends on the number of rows
    /// alone.
    fn in_order(rows: usize, columns: usize, in_flight: usize) -> Self {
        let order = Order::new(rows, in_flight);
        let lanes = order.lanes(columns.div_ceil(columns::COLUMNS).next_power_of_two());
        let (batches_of_block, splits) = (order.batches_of_block(lanes), order.splits(rows) as u32);
        Self { folded_rows: 1, lanes: lanes as u32, splits, batches_of_block }
    }

    /// The tiles for exact sums: those of [`Tiles::of`], or, if these are fewer blocks than the device runs at once,
    /// tiles that are two or four times as wide and give more blocks.
    pub(super) fn filling(rows: usize, columns: usize, batches: usize, size: usize, concurrency: Concurrency) -> Self {
        let first = Self::of(rows, columns, batches, size, concurrency);
        let blocks = |tiles: &Self| tiles.count(columns).saturating_mul(tiles.splits as usize).saturating_mul(batches);
        let wider = |lanes: u32| {
            let tiles = Self { lanes, ..first };
            let rounds = (rows / tiles.folded_rows as usize)
                .div_ceil(columns::BLOCK / lanes as usize * concurrency.rows_in_flight);
            let splits =
                (concurrency.resident_blocks / (tiles.count(columns) * batches).max(1)).clamp(1, rounds.max(1));
            Self { splits: splits as u32, ..tiles }
        };
        [2, 4]
            .map(|times| first.lanes * times)
            .into_iter()
            .filter(|&lanes| lanes as usize <= columns::BLOCK && blocks(&first) < concurrency.resident_blocks)
            .map(wider)
            .fold(first, |best, tiles| if blocks(&tiles) * 10 > blocks(&best) * 11 { tiles } else { best })
    }

    /// The number of splits of `rows` rows, at most [`Tiles::splits`], and the rows of each but the last: whole folded
    /// rows, and about equally many.
    pub(super) fn rows_of_split(self, rows: usize) -> (u32, usize) {
        let folded = rows / self.folded_rows as usize;
        let of_split = folded.div_ceil(self.splits as usize).max(1);
        // The rounded-up number of rows may need fewer splits.
        (folded.div_ceil(of_split).max(1) as u32, of_split * self.folded_rows as usize)
    }

    /// The number of tiles of a matrix with `columns` columns.
    pub(super) fn count(self, columns: usize) -> usize {
        tiles_of_columns(columns * self.folded_rows as usize, self.lanes as usize)
    }
}

/// How many rows are folded into one.
///
/// A folded row consists of whole cache lines, so that no two tiles share a line. It is so wide that there are many
/// tiles, each shared by few blocks.
///
/// Folding takes another ticket, about 2 us. So rows are folded only if a block would otherwise have many partials to
/// fold, or if the input is large. At the end one block folds a state for each column of the folded row, so its width
/// is limited: the larger the input, the wider it may be.
fn rows_to_fold(rows: usize, columns: usize, batches: usize, size: usize, concurrency: Concurrency) -> usize {
    let (lanes, splits) = blocks_of_columns(rows, columns, batches, concurrency);
    let elements = rows.saturating_mul(columns).saturating_mul(batches);
    let is_large =
        elements >= concurrency.resident_blocks * columns::BLOCK * columns::COLUMNS * concurrency.rows_in_flight;
    if splits == 1 || !is_large && splits * lanes * columns::COLUMNS <= PARTIALS_PER_THREAD * columns::BLOCK {
        return 1;
    }
    let max_columns =
        if is_large { MAX_FOLDED_COLUMNS.max(elements.saturating_mul(size) >> 17) } else { MIN_FOLDED_COLUMNS };
    let is_even = |folded_rows: usize| {
        (columns * folded_rows * size).is_multiple_of(CACHE_LINE) && columns * folded_rows >= MIN_FOLDED_COLUMNS
    };
    let is_possible = |folded_rows: usize| {
        columns * folded_rows <= max_columns
            && blocks_of_columns(rows / folded_rows, columns * folded_rows, batches, concurrency).1 > 1
    };
    let mut folded_rows = 1;
    while !is_even(folded_rows) && is_possible(2 * folded_rows) {
        folded_rows *= 2;
    }
    if (columns * folded_rows).is_multiple_of(columns::COLUMNS) { folded_rows } else { 1 }
}

/// Lanes of a tile of columns, and blocks that share its rows.
fn blocks_of_columns(rows: usize, columns: usize, batches: usize, concurrency: Concurrency) -> (usize, usize) {
    let lanes = lanes_of_columns(rows, columns, batches, concurrency);
    let tiles = tiles_of_columns(columns, lanes).saturating_mul(batches);
    // Each split has at least one round of loads.
    let rounds = rows.div_ceil(columns::BLOCK / lanes * concurrency.rows_in_flight).max(1);
    (lanes, (concurrency.resident_blocks / tiles).clamp(1, rounds))
}

/// The number of tiles of a matrix's columns.
pub(super) fn tiles_of_columns(columns: usize, lanes: usize) -> usize {
    columns.div_ceil(lanes * columns::COLUMNS)
}

/// The number of lanes of a row of threads, which is the width of a tile. It is no more than the columns need.
///
/// If all blocks have enough columns, it is half a block: the longer the contiguous segment of a row that a block
/// reads, the better. Otherwise several blocks share a tile's rows, and narrower tiles mean fewer partials. The width
/// is then half a warp, or a warp if accesses are of single elements, so that a warp's accesses are contiguous. It is
/// more, up to the whole block, if there are too few rows for more rows of threads with four rounds of loads each.
fn lanes_of_columns(rows: usize, columns: usize, batches: usize, concurrency: Concurrency) -> usize {
    let needed = columns.div_ceil(columns::COLUMNS).next_power_of_two();
    let fewest = if tiles_of_columns(columns, WIDE_TILE_LANES).saturating_mul(batches) >= concurrency.resident_blocks {
        WIDE_TILE_LANES
    } else if columns.is_multiple_of(columns::COLUMNS) {
        16
    } else {
        32
    };
    let rows_of_threads = (rows / (4 * concurrency.rows_in_flight)).max(1);
    let widest = columns::BLOCK.div_ceil(rows_of_threads).next_power_of_two().clamp(fewest, columns::BLOCK);
    needed.min(widest)
}

/// Threads of a block that folds one of `rows` rows of `vectors` vectors; at most [`MAX_THREADS`].
///
/// With many rows, blocks are small, so that other blocks load while one folds its last states. With very many rows,
/// the last wave is a small part of all: a long row gets the threads that load it in two rounds, and so has fewer last
/// folds. (`docs/notes/whole-inputs.md`)
fn threads_of_row(vectors: usize, rows: usize, in_flight: usize, multiprocessors: usize) -> usize {
    let of_one_round = vectors.div_ceil(2 * in_flight).next_power_of_two();
    let (large, small) =
        (LARGE_BLOCKS_PER_MULTIPROCESSOR * multiprocessors, SMALL_BLOCKS_PER_MULTIPROCESSOR * multiprocessors);
    let max_threads = if rows == 1 {
        return order::threads_of_row(vectors, in_flight, multiprocessors);
    } else if rows < large {
        MAX_THREADS
    } else if rows < small {
        256
    } else if rows < WAVES_WITHOUT_TAIL_EFFECT * small {
        128
    } else {
        (of_one_round / 2).clamp(128, MAX_THREADS)
    };
    of_one_round.clamp(32, max_threads)
}

/// How many blocks share a row of `tiles` tiles, if there are `rows` rows.
///
/// Together the blocks of all rows fill the device once, but each block has at least two tiles, as for a single row.
fn splits_of_row(tiles: usize, rows: usize, multiprocessors: usize) -> usize {
    order::splits_of_row(tiles, multiprocessors).min((LARGE_BLOCKS_PER_MULTIPROCESSOR * multiprocessors / rows).max(1))
}

#[cfg(test)]
mod tests;
