//! Which kernel reduces a shape, and in how many blocks.
//!
//! These are part of the order in which elements are combined. An operator that keeps an order has those of one span or
//! column of the same length, so the order is a function of the length and the types. Others have what is fastest for the shape.
//! Neither depends on the device.

use cuda_std::element::Plain;
use cuda_std::mailbox;
use kernels::reduce::columns::{self, in_order::Order};
use kernels::reduce::{rows, spans};

use super::shape::Kind;
use super::workspace::Room;
use crate::MULTIPROCESSORS;

/// Blocks of 512 threads that fold long spans and that an H200 runs at once: two in each multiprocessor.
const LARGE_BLOCKS: usize = 2 * MULTIPROCESSORS;

/// Blocks of 256 threads that it runs at once, whose threads have up to 64 registers.
const SMALL_BLOCKS: usize = 4 * MULTIPROCESSORS;

/// Spans of which a few blocks more or less at the end are not noticed.
const VERY_MANY_SPANS: usize = 16 * SMALL_BLOCKS;

/// Rows of at most so many 16-byte packs are folded by lanes of a warp, longer ones by blocks. A warp that has more to
/// load than a few rounds leaves too few bytes in flight.
const PACKS_OF_A_SHORT_ROW: usize = 128;

/// How a shape is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// There is no output.
    Nothing,
    Spans {
        spans: usize,
        len: usize,
        pitch: usize,
        blocks: Blocks,
    },
    Rows {
        rows: usize,
        len: usize,
        pitch: usize,
        lanes: u32,
        rows_of_block: u32,
    },
    Columns {
        batches: usize,
        rows: usize,
        columns: usize,
        pitch: usize,
        batch_pitch: usize,
        abreast: u32,
        lanes: u32,
        parts: u32,
        /// Matrices of which a block has a tile.
        batches_of_block: usize,
    },
}

impl Plan {
    /// How `elements` of this kind are reduced.
    pub(super) fn of(kind: Kind, elements: Elements) -> Self {
        let Elements { size, size_of_state, has_rows, is_any_order } = elements;
        match kind {
            Kind::Spans { spans: 0, .. } => Self::Nothing,
            Kind::Columns { batches, columns, .. } if batches == 0 || columns == 0 => Self::Nothing,
            Kind::Spans { spans, len, pitch } => {
                let packs = len.div_ceil(16 / size);
                if has_rows && packs <= PACKS_OF_A_SHORT_ROW && (spans > 1 || !is_any_order) {
                    let lanes = rows::lanes_of_row(packs);
                    let rows_of_block =
                        rows_of_block(spans, rows::rows_of_block(len, pitch, lanes, size), lanes) as u32;
                    return Self::Rows { rows: spans, len, pitch, lanes: lanes as u32, rows_of_block };
                }
                // Nothing is where the pitch says; and where that would be may be beyond any address.
                let pitch = if len == 0 { 0 } else { pitch };
                // In the order of one that is alone.
                let beside = if is_any_order { spans } else { 1 };
                Self::Spans { spans, len, pitch, blocks: Blocks::of_spans(beside, len, size, spans::PACKS_IN_FLIGHT) }
            }
            Kind::Columns { batches, rows, columns, pitch, batch_pitch } => {
                let in_flight = columns::rows_in_flight(size, size_of_state);
                let (Tiles { abreast, lanes, parts }, batches_of_block) = if is_any_order {
                    let at_once = AtOnce { rows: in_flight, blocks: SMALL_BLOCKS };
                    (Tiles::of(rows, columns, batches, size, at_once), 1)
                } else {
                    Tiles::in_order(rows, columns, in_flight)
                };
                // What separates nothing shall not look like bad alignment.
                let batch_pitch = if batches == 1 { 0 } else { batch_pitch };
                Self::Columns { batches, rows, columns, pitch, batch_pitch, abreast, lanes, parts, batches_of_block }
            }
        }
    }

    /// What the blocks need to leave states of type `S` for each other.
    pub(super) fn room<S: Plain>(&self) -> Room {
        match *self {
            Self::Spans { spans, blocks, .. } => {
                blocks.room(blocks.spans_of_launch(spans), mailbox::boxes_of::<S>(), 0)
            }
            Self::Columns { batches, columns, abreast, lanes, parts, .. } if parts > 1 => {
                let abreast = abreast as usize;
                let tiles = tiles_of_columns(columns * abreast, lanes as usize);
                Room {
                    partials: batches * columns::partials_of(columns, abreast, parts as usize),
                    tickets: batches * columns::tickets_of(tiles, abreast),
                    ..Room::default()
                }
            }
            _ => Room::default(),
        }
    }

    /// Blocks in each direction of the grid: the largest, if there are several launches.
    pub(super) fn grid(&self) -> (usize, usize) {
        match *self {
            Self::Nothing => (0, 0),
            Self::Spans { spans, blocks, .. } => blocks.grid(blocks.spans_of_launch(spans)),
            Self::Rows { rows, rows_of_block, .. } => (rows.div_ceil(rows_of_block as usize), 1),
            Self::Columns { batches, columns, abreast, lanes, parts, batches_of_block, .. } => {
                let tiles = tiles_of_columns(columns * abreast as usize, lanes as usize);
                (tiles * parts as usize * batches.div_ceil(batches_of_block), 1)
            }
        }
    }
}

/// What is reduced, and by what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elements {
    /// Bytes of an element, and of a state.
    pub size: usize,
    pub size_of_state: usize,
    /// Whether there is a kernel for short rows.
    pub has_rows: bool,
    /// Whether the operator's results are the same [in any order](kernels::ops::Operator::ANY_ORDER).
    pub is_any_order: bool,
}

/// How blocks reduce long spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocks {
    pub parts: u32,
    /// Tiles of the shorter parts, and how many parts have one more.
    pub tiles: u32,
    pub longer: u32,
    pub threads: u32,
}

impl Blocks {
    /// Those that fold `spans` spans of `len` elements of `size` bytes by an [operator](kernels::ops::Operator), of which a
    /// thread has so many vectors in flight.
    pub(super) fn of_spans(spans: usize, len: usize, size: usize, in_flight: usize) -> Self {
        let threads = threads_of_span(len.div_ceil(16 / size), spans, in_flight);
        // The last one may be less than a tile.
        let tiles = len.div_ceil(threads * in_flight * (16 / size));
        Self::of(threads, tiles, parts_of_span(tiles, spans))
    }

    /// Those that sum spans exactly, at least one. A multiprocessor runs `at_once` blocks of 256 threads at once.
    /// They do not change the results.
    pub(super) fn exact(spans: usize, len: usize, size: usize, in_flight: usize, at_once: usize) -> Self {
        /// Threads of a block that is one of many.
        const THREADS: usize = 256;
        /// Threads of a block that sums all by itself, of which each has one tile.
        const ALONE: usize = 512;
        let packs = len.div_ceil(16 / size);
        let alone = packs.div_ceil(in_flight).next_power_of_two().max(32);
        let threads = if alone <= ALONE { alone } else { THREADS };
        let tiles = packs.div_ceil(threads * in_flight).max(1);
        Self::of(threads, tiles, tiles.min((at_once * MULTIPROCESSORS / spans).max(1)))
    }

    fn of(threads: usize, tiles: usize, parts: usize) -> Self {
        // No address space has more tiles than 32 bits count: one of a long span is at least 8 KiB.
        let (tiles, longer) = ((tiles / parts) as u32, (tiles % parts) as u32);
        Self { parts: parts as u32, tiles, longer, threads: threads as u32 }
    }

    /// What blocks that share spans leave each other: for each state `boxes` mailboxes, for each span a residue of
    /// `words` words.
    pub(super) fn room(&self, spans: usize, boxes: usize, words: usize) -> Room {
        let shared = if self.parts > 1 { spans } else { 0 };
        Room { mailboxes: self.parts as usize * shared * boxes, residues: words * shared, ..Room::default() }
    }

    /// How many of `spans` spans a launch folds: all, unless blocks share a span, and a grid is not as high as there are
    /// spans.
    pub(super) fn spans_of_launch(&self, spans: usize) -> usize {
        const HIGHEST_GRID: usize = 65_535;
        if self.parts > 1 { spans.min(HIGHEST_GRID) } else { spans }
    }

    /// Blocks in each direction of the grid.
    pub(super) fn grid(&self, spans: usize) -> (usize, usize) {
        if self.parts > 1 { (self.parts as usize, spans) } else { (spans, 1) }
    }
}

/// Rows that a block folds, of `rows` and up to `most`: so that there is a block for each place that a device has, and a whole
/// number for each group of `lanes` lanes. It does not change how a row is folded.
fn rows_of_block(rows: usize, most: usize, lanes: usize) -> usize {
    let places = SMALL_BLOCKS * columns::BLOCK / rows::BLOCK;
    rows.div_ceil(places).next_multiple_of(rows::BLOCK / lanes).min(most)
}

/// What a device has at once of a kernel for columns.
#[derive(Clone, Copy)]
pub(super) struct AtOnce {
    /// Rows that a thread has in flight.
    pub rows: usize,
    /// Blocks that run.
    pub blocks: usize,
}

/// How blocks share a matrix's columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiles {
    pub abreast: u32,
    pub lanes: u32,
    pub parts: u32,
}

impl Tiles {
    /// Those of `batches` matrices of `rows` rows of `columns` elements of `size` bytes, in any order.
    pub(super) fn of(rows: usize, columns: usize, batches: usize, size: usize, at_once: AtOnce) -> Self {
        let abreast = rows_abreast(rows, columns, batches, size, at_once);
        let (lanes, parts) = blocks_of_columns(rows / abreast, columns * abreast, batches, at_once);
        Self { abreast: abreast as u32, lanes: lanes as u32, parts: parts as u32 }
    }

    /// Those of matrices of `rows` rows by an operator that keeps an order: parts by the number of rows alone. And how
    /// many matrices a block has a tile of.
    fn in_order(rows: usize, columns: usize, in_flight: usize) -> (Self, usize) {
        let order = Order::of(rows, in_flight);
        let lanes = order.lanes(columns.div_ceil(columns::COLUMNS).next_power_of_two());
        let tiles = Self { abreast: 1, lanes: lanes as u32, parts: order.parts(rows) as u32 };
        (tiles, order.batches_of_block(lanes))
    }

    /// Those for exact sums. If [`Tiles::of`] gives fewer blocks than the device runs at once,
    /// tiles are two or four times as wide, if that gives more blocks.
    pub(super) fn filling(rows: usize, columns: usize, batches: usize, size: usize, at_once: AtOnce) -> Self {
        let first = Self::of(rows, columns, batches, size, at_once);
        let blocks = |tiles: &Self| tiles.count(columns).saturating_mul(tiles.parts as usize).saturating_mul(batches);
        let wider = |lanes: u32| {
            let tiles = Self { lanes, ..first };
            let rounds = (rows / tiles.abreast as usize).div_ceil(columns::BLOCK / lanes as usize * at_once.rows);
            let parts = (at_once.blocks / (tiles.count(columns) * batches).max(1)).clamp(1, rounds.max(1));
            Self { parts: parts as u32, ..tiles }
        };
        [2, 4]
            .map(|times| first.lanes * times)
            .into_iter()
            .filter(|&lanes| lanes as usize <= columns::BLOCK && blocks(&first) < at_once.blocks)
            .map(wider)
            .fold(first, |best, tiles| if blocks(&tiles) * 10 > blocks(&best) * 11 { tiles } else { best })
    }

    /// The number of tiles of a matrix with `columns` columns.
    pub(super) fn count(self, columns: usize) -> usize {
        tiles_of_columns(columns * self.abreast as usize, self.lanes as usize)
    }
}

/// How many rows stand abreast: so many that together they are whole lines of memory, of which two tiles then share none, and
/// that there are columns for many tiles, each shared by few blocks.
///
/// It takes a further ticket, some 2 us; so only where without it a block would have many partials to fold, or where there is
/// enough to read. At the end one block folds a state of each of the columns: they may be the more, the more there is to read.
fn rows_abreast(rows: usize, columns: usize, batches: usize, size: usize, at_once: AtOnce) -> usize {
    /// Bytes of a line of memory.
    const LINE: usize = 128;
    /// Partials that a thread folds in four rounds, of eight at once.
    const FEW: usize = 32;
    /// Columns of which each thread folds four at the end; and so many as are no burden once there is more to read.
    const ENOUGH: usize = 4 * columns::BLOCK;
    const MANY: usize = 16 * columns::BLOCK;
    let (lanes, parts) = blocks_of_columns(rows, columns, batches, at_once);
    let elements = rows.saturating_mul(columns).saturating_mul(batches);
    let is_much = elements >= at_once.blocks * columns::BLOCK * columns::COLUMNS * at_once.rows;
    if parts == 1 || !is_much && parts * lanes * columns::COLUMNS <= FEW * columns::BLOCK {
        return 1;
    }
    let most = if is_much { MANY.max(elements.saturating_mul(size) >> 17) } else { ENOUGH };
    let is_even = |abreast: usize| (columns * abreast * size).is_multiple_of(LINE) && columns * abreast >= ENOUGH;
    let is_possible = |abreast: usize| {
        columns * abreast <= most && blocks_of_columns(rows / abreast, columns * abreast, batches, at_once).1 > 1
    };
    let mut abreast = 1;
    while !is_even(abreast) && is_possible(2 * abreast) {
        abreast *= 2;
    }
    if (columns * abreast).is_multiple_of(columns::COLUMNS) { abreast } else { 1 }
}

/// Lanes of a tile of columns, and blocks that share its rows.
fn blocks_of_columns(rows: usize, columns: usize, batches: usize, at_once: AtOnce) -> (usize, usize) {
    let lanes = lanes_of_columns(rows, columns, batches, at_once);
    let tiles = tiles_of_columns(columns, lanes).saturating_mul(batches);
    // No part has less than a round of loads.
    let rounds = rows.div_ceil(columns::BLOCK / lanes * at_once.rows).max(1);
    (lanes, (at_once.blocks / tiles).clamp(1, rounds))
}

/// Tiles of columns of a matrix.
pub(super) fn tiles_of_columns(columns: usize, lanes: usize) -> usize {
    columns.div_ceil(lanes * columns::COLUMNS)
}

/// Threads that stand beside each other over the columns, as many as the columns need at most.
///
/// Half a block where there are columns enough for all blocks: the longer the run of a row that a block reads, the better. Else
/// a block's rows are shared by several blocks, and then the fewer columns it has, the fewer partials there are: half a warp,
/// or, where accesses are of single elements, a warp, for which these are a run. And more, up to the whole block, where there
/// are so few rows that further rows of threads would have no four rounds of loads each.
fn lanes_of_columns(rows: usize, columns: usize, batches: usize, at_once: AtOnce) -> usize {
    const HALF_A_BLOCK: usize = columns::BLOCK / 2;
    let needed = columns.div_ceil(columns::COLUMNS).next_power_of_two();
    let fewest = if tiles_of_columns(columns, HALF_A_BLOCK).saturating_mul(batches) >= at_once.blocks {
        HALF_A_BLOCK
    } else if columns.is_multiple_of(columns::COLUMNS) {
        16
    } else {
        32
    };
    let rows_of_threads = (rows / (4 * at_once.rows)).max(1);
    let widest = columns::BLOCK.div_ceil(rows_of_threads).next_power_of_two().clamp(fewest, columns::BLOCK);
    needed.min(widest)
}

/// Threads of a block that folds a span of so many packs, one of `spans`; at most 512, which leaves every operator the
/// registers that it needs.
///
/// A thread has two tiles on their way at once: a span that one block can load so has no partials, and gets as few threads
/// as that takes, since every further warp makes the block's last fold longer. A single longer one is spread over the
/// multiprocessors first, in small blocks; where there is enough for all, in blocks of 512, of which two fit. Where there
/// are many spans, blocks are small, so that while one folds its last states others load; but of very many, whose last blocks are
/// a small part of all, long spans have as many threads as load them in two rounds, and so fewer last folds.
/// (`docs/benchmarks/h200.md`)
fn threads_of_span(packs: usize, spans: usize, in_flight: usize) -> usize {
    let of_one_round = packs.div_ceil(2 * in_flight).next_power_of_two();
    let most = match spans {
        1 if of_one_round <= 512 => 512,
        1 => packs.div_ceil(2 * in_flight * MULTIPROCESSORS).next_power_of_two().clamp(128, 512),
        2..LARGE_BLOCKS => 512,
        LARGE_BLOCKS..SMALL_BLOCKS => 256,
        SMALL_BLOCKS..VERY_MANY_SPANS => 128,
        _ => (of_one_round / 2).clamp(128, 512),
    };
    of_one_round.clamp(32, most)
}

/// How many blocks fold a span of so many tiles, one of `spans`: as many as run at once, and none for a single tile where
/// others have two, since two that are on their way at once take less time than the partials of two.
fn parts_of_span(tiles: usize, spans: usize) -> usize {
    (LARGE_BLOCKS / spans).clamp(1, tiles.div_ceil(2).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In any order.
    fn plan(kind: Kind, size: usize) -> Plan {
        Plan::of(kind, Elements { size, size_of_state: 8, has_rows: true, is_any_order: true })
    }

    fn in_order(kind: Kind, size: usize) -> Plan {
        Plan::of(kind, Elements { size, size_of_state: 8, has_rows: true, is_any_order: false })
    }

    fn spans(spans: usize, len: usize, size: usize) -> Plan {
        plan(Kind::Spans { spans, len, pitch: len }, size)
    }

    #[test]
    fn parts_are_all_tiles_once() {
        for size in [1, 2, 4, 8] {
            for len in [1_usize, 100, 5000, 1 << 16, (1 << 20) + 3, 1 << 30, (1 << 32) + 7] {
                for count in [1, 3, 100] {
                    let Plan::Spans { blocks: Blocks { parts, tiles, longer, threads }, .. } = spans(count, len, size)
                    else {
                        continue;
                    };
                    let all = tiles as usize * parts as usize + longer as usize;
                    assert_eq!(
                        all,
                        len.div_ceil(spans::tile(threads as usize, size)),
                        "{count} x {len} of {size} bytes"
                    );
                    assert!(longer < parts && (threads as usize).is_power_of_two() && threads <= 512);
                    assert!(parts == 1 || tiles > 0, "no part is empty");
                }
            }
        }
    }

    #[test]
    fn a_grid_is_one_that_devices_take() {
        for kind in [
            Kind::Spans { spans: 1 << 33, len: 3, pitch: 3 },
            Kind::Spans { spans: 264, len: 1 << 24, pitch: 1 << 24 },
            Kind::Spans { spans: 1 << 20, len: 1 << 16, pitch: 1 << 16 },
            Kind::Spans { spans: 1 << 20, len: 1 << 17, pitch: 1 << 17 },
            Kind::Columns { batches: 1 << 20, rows: 1 << 10, columns: 3, pitch: 3, batch_pitch: 3 << 10 },
            Kind::Columns { batches: 1, rows: 16, columns: 1 << 34, pitch: 1 << 34, batch_pitch: 1 << 38 },
        ] {
            let (x, y) = plan(kind, 1).grid();
            assert!(x < 1 << 31 && y <= 65535, "{kind:?}: {x} x {y}");
            let (x, y) = in_order(kind, 1).grid();
            assert!(x < 1 << 31 && y <= 65535, "in order, {kind:?}: {x} x {y}");
        }
    }

    #[test]
    fn a_sum_fills_the_device_once() {
        let parts = |len: usize| match spans(1, len, 4) {
            Plan::Spans { blocks, .. } => blocks.parts,
            other => panic!("{other:?}"),
        };
        assert_eq!([parts(1 << 10), parts(1 << 14), parts(1 << 16), parts(1 << 18)], [1, 1, 16, 64]);
        assert_eq!([parts(1 << 20), parts(1 << 24), parts(1 << 30)], [128, 264, 264]);
    }

    #[test]
    fn columns_have_long_runs_where_there_are_many_and_few_partials_where_there_are_few() {
        let at_once = AtOnce { rows: 4, blocks: SMALL_BLOCKS };
        let lanes = |rows, columns| lanes_of_columns(rows, columns, 1, at_once);
        assert_eq!(lanes(256, 1 << 20), 128);
        assert_eq!(lanes(16, 1 << 24), 256);
        assert_eq!(lanes(1 << 14, 1 << 14), 16);
        assert_eq!(lanes(1 << 20, 256), 16);
        assert_eq!(lanes(1_000_003, 127), 32);
        assert_eq!(lanes(1 << 24, 16), 4);
        assert_eq!(lanes(0, 1), 1);
    }

    #[test]
    fn rows_stand_abreast_where_blocks_share_them() {
        let abreast = |rows: usize, columns: usize| {
            let kind = Kind::Columns { batches: 1, rows, columns, pitch: columns, batch_pitch: rows * columns };
            match plan(kind, 4) {
                Plan::Columns { abreast, .. } => abreast,
                other => panic!("{other:?}"),
            }
        };
        let of_many = [1, 2, 16, 100, 127, 256, 512, 1000].map(|columns| abreast(1 << 22, columns));
        assert_eq!(of_many, [1024, 512, 64, 16, 32, 4, 2, 4], "whole lines, and columns for many tiles");
        assert_eq!(abreast(1 << 14, 127), 8, "many partials of little to read");
        assert_eq!([abreast(1 << 20, 1024), abreast(1 << 20, 1056)], [1, 1], "whole lines");
        assert_eq!(abreast(1 << 12, 256), 1, "few partials");
        assert_eq!(abreast(16, 127), 1, "a block has all rows");
        assert_eq!([abreast(1 << 20, 1001), abreast(1 << 20, 5001)], [16, 1], "a block folds all columns at the end");
    }

    #[test]
    fn tiles_fill_the_device() {
        let at_once = AtOnce { rows: 4, blocks: 396 };
        let of = |rows, columns| {
            let Tiles { lanes, parts, .. } = Tiles::filling(rows, columns, 1, 4, at_once);
            (lanes, parts)
        };
        assert_eq!(of(1 << 14, 1 << 14), (32, 3), "not 256 blocks");
        assert_eq!([of(256, 1 << 20), of(16, 1 << 24)], [(128, 1), (256, 1)], "more than enough");
        assert_eq!(of(100, 8), (2, 1), "too little for more");
    }

    #[test]
    fn a_block_has_room_for_its_rows() {
        for size in [1, 2, 4, 8] {
            for len in 1..=PACKS_OF_A_SHORT_ROW * (16 / size) {
                for pitch in [len, len + 1, len + 100] {
                    let lanes = rows::lanes_of_row(len.div_ceil(16 / size));
                    let most = rows::rows_of_block(len, pitch, lanes, size);
                    assert!(most > 0 && lanes * 4 * (16 / size) >= len, "{len} of {size} bytes");
                    let (packs, room) = match pitch == len {
                        true => ((most * len).div_ceil(16 / size), rows::BLOCK * rows::PACKS_EACH),
                        false => (most * rows::packs_of_row(len, size), rows::PACKS_WITH_GAPS),
                    };
                    assert!(packs <= room, "{most} rows of {len} of {size} bytes");
                }
            }
        }
    }

    #[test]
    fn short_rows_have_a_lane_for_four_packs() {
        assert!(matches!(spans(1000, 16, 4), Plan::Rows { lanes: 1, rows_of_block: 64, .. }));
        assert!(matches!(spans(1 << 24, 1, 4), Plan::Rows { lanes: 1, rows_of_block: 1024, .. }));
        assert!(matches!(spans(1 << 20, 127, 4), Plan::Rows { lanes: 8, rows_of_block: 8, .. }));
        assert!(matches!(spans(1 << 20, 512, 4), Plan::Rows { lanes: 32, rows_of_block: 2, .. }));
        assert!(matches!(spans(1000, 4096, 4), Plan::Spans { blocks: Blocks { parts: 1, threads: 128, .. }, .. }));
    }

    #[test]
    fn very_many_long_spans_have_two_rounds_each() {
        let threads = |count: usize, len: usize, size: usize| match spans(count, len, size) {
            Plan::Spans { blocks, .. } => blocks.threads,
            other => panic!("{other:?}"),
        };
        assert_eq!([8, 4, 2, 1].map(|size| threads(1 << 14, 1 << 14, size)), [512, 256, 128, 128]);
        assert_eq!([1 << 10, 1 << 20].map(|len| threads(1 << 14, len, 4)), [32, 512]);
        assert_eq!(threads(1000, 1 << 14, 8), 128, "few blocks at the end would be many of all");
    }

    #[test]
    fn plans_of_columns_are_what_was_measured() {
        let tiles = |rows, columns, batches, size| {
            let kind = Kind::Columns { batches, rows, columns, pitch: columns, batch_pitch: rows * columns };
            match plan(kind, size) {
                Plan::Columns { abreast, lanes, parts, .. } => (abreast, lanes, parts),
                other => panic!("{other:?}"),
            }
        };
        let single =
            [(1 << 22, 1), (1 << 16, 33), (65_535, 33), (3000, 127), (1 << 14, 1 << 14), (100, 5), (20_000, 12)];
        assert_eq!(
            single.map(|(rows, columns)| tiles(rows, columns, 1, 4)),
            [(1024, 16, 33), (32, 16, 31), (16, 16, 58), (8, 16, 6), (1, 16, 2), (1, 2, 1), (1, 4, 79)]
        );
        assert_eq!(
            [(1, 1), (2, 8), (300, 8)].map(|(batches, size)| tiles(5000, 100, batches, size)),
            [(1, 16, 40), (1, 16, 79), (1, 16, 1)]
        );
    }

    #[test]
    fn an_order_depends_on_the_length_alone() {
        for size in [1, 2, 4, 8] {
            for len in [0, 1, 17, 128, 129, 500, 3000, 1 << 15, 1 << 20, (1 << 24) + 5] {
                let of_spans = |spans: usize, pitch: usize| match in_order(Kind::Spans { spans, len, pitch }, size) {
                    Plan::Rows { lanes, .. } => (lanes, None),
                    Plan::Spans { blocks, .. } => (0, Some(blocks)),
                    other => panic!("{other:?}"),
                };
                let of_columns = |batches: usize, columns: usize| {
                    let kind =
                        Kind::Columns { batches, rows: len, columns, pitch: columns, batch_pitch: len * columns };
                    match in_order(kind, size) {
                        // Which lanes there are is nothing to the order.
                        Plan::Columns { abreast, parts, .. } => (abreast, parts),
                        other => panic!("{other:?}"),
                    }
                };
                for others in [2, 3, 528, 10_000, 1 << 20] {
                    assert_eq!(of_spans(1, len), of_spans(others, len + others % 2), "{others} of {len}");
                    assert_eq!(of_columns(1, 1), of_columns(3, others), "{others} of {len}");
                }
            }
        }
    }

    #[test]
    fn exact_blocks_have_all_tiles_once_and_sums_that_fit() {
        for size in [2, 4, 8] {
            for len in [1, 100, 8192, 8193, 16384, 16385, (1 << 20) + 3, (1 << 32) + 7] {
                let Blocks { parts, tiles, longer, threads } = Blocks::exact(1, len, size, spans::PACKS_IN_FLIGHT, 3);
                let tile = threads as usize * spans::PACKS_IN_FLIGHT * 16 / size;
                let all = tiles as usize * parts as usize + longer as usize;
                assert_eq!(all, len.div_ceil(tile), "{len} of {size} bytes");
                assert!(longer < parts && tiles > 0 && threads.is_power_of_two());
            }
        }
    }

    #[test]
    fn long_inputs_fill_the_device_once() {
        let parts = |len| Blocks::exact(1, len, 4, spans::PACKS_IN_FLIGHT, 3).parts;
        assert_eq!([1 << 12, 1 << 13, 1 << 14, 1 << 20, 1 << 30].map(parts), [1, 1, 4, 256, 396]);
    }
}
