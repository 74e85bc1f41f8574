use super::*;

/// The plan of an operator whose results do not depend on the order.
fn plan(kind: Kind, size: usize) -> StateMethod {
    StateMethod::of(kind, Elements { size, size_of_state: 8, is_any_order: true }, 132)
}

fn in_order(kind: Kind, size: usize) -> StateMethod {
    StateMethod::of(kind, Elements { size, size_of_state: 8, is_any_order: false }, 132)
}

fn rows(rows: usize, len: usize, size: usize) -> StateMethod {
    plan(Kind::Rows { rows, len, pitch: len }, size)
}

#[test]
fn splits_cover_every_tile_once() {
    for size in [1, 2, 4, 8] {
        for len in [1_usize, 100, 5000, 1 << 16, (1 << 20) + 3, 1 << 30, (1 << 32) + 7] {
            for count in [1, 3, 100] {
                let StateMethod::LongRows { blocks: Blocks { splits, tiles, longer_splits, threads }, .. } =
                    rows(count, len, size)
                else {
                    continue;
                };
                let all = tiles as usize * splits as usize + longer_splits as usize;
                assert_eq!(
                    all,
                    len.div_ceil(long_rows::tile(threads as usize, size)),
                    "{count} x {len} of {size} bytes"
                );
                assert!(longer_splits < splits && (threads as usize).is_power_of_two() && threads <= 512);
                assert!(splits == 1 || tiles > 0, "no split is empty");
            }
        }
    }
}

#[test]
fn grids_are_within_the_limits_of_devices() {
    for kind in [
        Kind::Rows { rows: 1 << 33, len: 3, pitch: 3 },
        Kind::Rows { rows: 264, len: 1 << 24, pitch: 1 << 24 },
        Kind::Rows { rows: 1 << 20, len: 1 << 16, pitch: 1 << 16 },
        Kind::Rows { rows: 1 << 20, len: 1 << 17, pitch: 1 << 17 },
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
    let splits = |len: usize| match rows(1, len, 4) {
        StateMethod::LongRows { blocks, .. } => blocks.splits,
        other => panic!("{other:?}"),
    };
    assert_eq!([splits(1 << 10), splits(1 << 14), splits(1 << 16), splits(1 << 18)], [1, 1, 16, 64]);
    assert_eq!([splits(1 << 20), splits(1 << 24), splits(1 << 30)], [128, 264, 264]);
}

#[test]
fn many_columns_have_wide_tiles_and_few_columns_have_few_partials() {
    let concurrency = Concurrency { rows_in_flight: 4, resident_blocks: 4 * 132 };
    let lanes = |rows, columns| lanes_of_columns(rows, columns, 1, concurrency);
    assert_eq!(lanes(256, 1 << 20), 128);
    assert_eq!(lanes(16, 1 << 24), 256);
    assert_eq!(lanes(1 << 14, 1 << 14), 16);
    assert_eq!(lanes(1 << 20, 256), 16);
    assert_eq!(lanes(1_000_003, 127), 32);
    assert_eq!(lanes(1 << 24, 16), 4);
    assert_eq!(lanes(0, 1), 1);
}

#[test]
fn rows_are_folded_where_blocks_share_them() {
    let folded_rows = |rows: usize, columns: usize| {
        let kind = Kind::Columns { batches: 1, rows, columns, pitch: columns, batch_pitch: rows * columns };
        match plan(kind, 4) {
            StateMethod::Columns { tiles, .. } => tiles.folded_rows,
            other => panic!("{other:?}"),
        }
    };
    let of_many = [1, 2, 16, 100, 127, 256, 512, 1000].map(|columns| folded_rows(1 << 22, columns));
    assert_eq!(of_many, [1024, 512, 64, 16, 32, 4, 2, 4], "whole cache lines, and columns for many tiles");
    assert_eq!(folded_rows(1 << 14, 127), 8, "a small input with many partials");
    assert_eq!([folded_rows(1 << 20, 1024), folded_rows(1 << 20, 1056)], [1, 1], "whole lines");
    assert_eq!(folded_rows(1 << 12, 256), 1, "few partials");
    assert_eq!(folded_rows(16, 127), 1, "a block has all rows");
    assert_eq!(
        [folded_rows(1 << 20, 1001), folded_rows(1 << 20, 5001)],
        [16, 1],
        "one block folds all columns at the end"
    );
}

#[test]
fn tiles_fill_the_device() {
    let concurrency = Concurrency { rows_in_flight: 4, resident_blocks: 396 };
    let of = |rows, columns| {
        let Tiles { lanes, splits, .. } = Tiles::filling(rows, columns, 1, 4, concurrency);
        (lanes, splits)
    };
    assert_eq!(of(1 << 14, 1 << 14), (32, 3), "not 256 blocks");
    assert_eq!([of(256, 1 << 20), of(16, 1 << 24)], [(128, 1), (256, 1)], "more than enough");
    assert_eq!(of(100, 8), (2, 1), "too small for more blocks");
}

#[test]
fn a_block_has_the_capacity_of_its_rows() {
    for size in [1, 2, 4, 8] {
        for len in 1..=MAX_SHORT_ROW_VECTORS * (16 / size) {
            for pitch in [len, len + 1, len + 100] {
                let lanes = rows::lanes_per_row(len.div_ceil(16 / size));
                let most = rows::rows_per_block(len, pitch, lanes, size);
                assert!(most > 0 && lanes * 4 * (16 / size) >= len, "{len} of {size} bytes");
                let (vectors, capacity) = match pitch == len {
                    true => ((most * len).div_ceil(16 / size), rows::BLOCK * rows::VECTORS_PER_LANE),
                    false => (most * rows::vectors_per_row(len, size), rows::VECTORS_WITH_GAPS),
                };
                assert!(vectors <= capacity, "{most} rows of {len} of {size} bytes");
            }
        }
    }
}

#[test]
fn short_rows_have_a_lane_for_four_vectors() {
    assert!(matches!(rows(1000, 16, 4), StateMethod::Rows { lanes: StateLanes { lanes: 1, rows_per_block: 64 }, .. }));
    assert!(matches!(
        rows(1 << 24, 1, 4),
        StateMethod::Rows { lanes: StateLanes { lanes: 1, rows_per_block: 1024 }, .. }
    ));
    assert!(matches!(
        rows(1 << 20, 127, 4),
        StateMethod::Rows { lanes: StateLanes { lanes: 8, rows_per_block: 8 }, .. }
    ));
    assert!(matches!(
        rows(1 << 20, 512, 4),
        StateMethod::Rows { lanes: StateLanes { lanes: 32, rows_per_block: 2 }, .. }
    ));
    assert!(matches!(
        rows(1000, 4096, 4),
        StateMethod::LongRows { blocks: Blocks { splits: 1, threads: 128, .. }, .. }
    ));
}

#[test]
fn very_many_long_rows_have_two_rounds_each() {
    let threads = |count: usize, len: usize, size: usize| match rows(count, len, size) {
        StateMethod::LongRows { blocks, .. } => blocks.threads,
        other => panic!("{other:?}"),
    };
    assert_eq!([8, 4, 2, 1].map(|size| threads(1 << 14, 1 << 14, size)), [512, 256, 128, 128]);
    assert_eq!([1 << 10, 1 << 20].map(|len| threads(1 << 14, len, 4)), [32, 512]);
    assert_eq!(threads(1000, 1 << 14, 8), 128, "the last wave would be a large part of all");
}

#[test]
fn plans_of_columns_are_what_was_measured() {
    let tiles = |rows, columns, batches, size| {
        let kind = Kind::Columns { batches, rows, columns, pitch: columns, batch_pitch: rows * columns };
        match plan(kind, size) {
            StateMethod::Columns { tiles, .. } => (tiles.folded_rows, tiles.lanes, tiles.splits),
            other => panic!("{other:?}"),
        }
    };
    let single = [(1 << 22, 1), (1 << 16, 33), (65_535, 33), (3000, 127), (1 << 14, 1 << 14), (100, 5), (20_000, 12)];
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
            let of_rows = |rows: usize, pitch: usize| match in_order(Kind::Rows { rows, len, pitch }, size) {
                StateMethod::Rows { lanes, .. } => (lanes.lanes, None),
                StateMethod::LongRows { blocks, .. } => (0, Some(blocks)),
                other => panic!("{other:?}"),
            };
            let of_columns = |batches: usize, columns: usize| {
                let kind = Kind::Columns { batches, rows: len, columns, pitch: columns, batch_pitch: len * columns };
                match in_order(kind, size) {
                    // Lanes do not affect the order.
                    StateMethod::Columns { tiles, .. } => (tiles.folded_rows, tiles.splits),
                    other => panic!("{other:?}"),
                }
            };
            for others in [2, 3, 528, 10_000, 1 << 20] {
                assert_eq!(of_rows(1, len), of_rows(others, len + others % 2), "{others} of {len}");
                assert_eq!(of_columns(1, 1), of_columns(3, others), "{others} of {len}");
            }
        }
    }
}

#[test]
fn exact_splits_cover_every_tile_once() {
    for size in [2, 4, 8] {
        for len in [1, 100, 8192, 8193, 16384, 16385, (1 << 20) + 3, (1 << 32) + 7] {
            let Blocks { splits, tiles, longer_splits, threads } =
                Blocks::exact(1, len, size, long_rows::VECTORS_IN_FLIGHT, 132);
            let all = tiles as usize * splits as usize + longer_splits as usize;
            assert_eq!(all, len.div_ceil(threads as usize * 16 / size), "{len} of {size} bytes");
            assert!(longer_splits < splits && tiles > 0 && threads.is_power_of_two());
            assert!(splits == 1 || tiles as usize + 1 >= long_rows::VECTORS_IN_FLIGHT, "{len} of {size} bytes");
        }
    }
}

#[test]
fn many_long_rows_have_few_threads_each() {
    let threads = |rows, len| Blocks::exact(rows, len, 4, long_rows::VECTORS_IN_FLIGHT, 132).threads;
    assert_eq!(
        [2, 132, 264, 528, 1024, 2112, 1 << 20].map(|rows| threads(rows, 1 << 16)),
        [512, 512, 256, 128, 64, 32, 32]
    );
    // Only the threads that load the row at once.
    assert_eq!([512, 1024, 1500, 4096].map(|len| threads(2, len)), [32, 64, 128, 256]);
}

#[test]
fn long_inputs_fill_the_device_once() {
    let splits = |len| Blocks::exact(1, len, 4, long_rows::VECTORS_IN_FLIGHT, 132).splits;
    assert_eq!([1 << 12, 1 << 13, 1 << 14, 1 << 19, 1 << 20, 1 << 30].map(splits), [1, 1, 4, 128, 128, 132]);
}

#[test]
fn splits_of_columns_cover_every_row_once() {
    for rows in 1..400 {
        for folded_rows in [1, 2, 8] {
            for splits in 1..=(rows as u32 / folded_rows).max(1) {
                let tiles = Tiles { folded_rows, lanes: 16, splits, batches_of_block: 1 };
                let (splits, of_split) = tiles.rows_of_split(rows);
                assert!(splits <= tiles.splits && of_split.is_multiple_of(folded_rows as usize));
                let folded = rows - rows % folded_rows as usize;
                let before_last = (splits as usize - 1) * of_split;
                assert!(before_last < folded.max(1) && folded <= before_last + of_split, "{rows} rows, {tiles:?}");
                assert!(tiles.splits == 1 || splits > 1, "rows are folded only if blocks share them");
            }
        }
    }
}
