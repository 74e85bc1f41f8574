//! Which blocks launch dependents. No result depends on it, only the time of consecutive launches.

use std::collections::BTreeSet;

use kernels::ops::Operator;
use kernels::reduce::columns::{BLOCK, ColumnArgs, columns};
use kernels::reduce::exact::columns::{ExactColumnArgs, exact_columns, lane_memory};
use kernels::reduce::exact::terms::Elements;
use kernels::reduce::{long_rows, pairs};
use test_support::by_shape::ByShape;
use test_support::executor;
use test_support::shape::Shape;
use test_support::transposes::{CHECKS, Case, IN_PLACE_CHECKS, PERMUTE_CHECKS, SCALED_CHECKS};
use warpfold::ops::{Dot, MaxOfFloats, Sum};
use warpfold::{Gpu, KernelProfile, ops};

/// Whether all blocks of a kernel launch dependents, or none: the next grid starts only after all have done so.
fn launches_dependents(kernel: &KernelProfile) -> bool {
    let blocks = kernel.total().launch_dependents;
    assert!(blocks == 0 || blocks == kernel.blocks(), "{blocks} of {}: {}", kernel.blocks(), kernel.kernel);
    blocks > 0
}

/// Whether a block that folds one segment of `tiles` tiles launches dependents, for one input and for two.
fn of_tiles(gpu: &Gpu, tiles: usize) -> [bool; 2] {
    let elements = |vectors_of_thread: usize| tiles * 32 * vectors_of_thread * 4;
    let mut largest = gpu.zeroed::<f32>(1).unwrap();
    let mut states_per_split = gpu.zeroed::<[u64; 2]>(1).unwrap();
    let len = elements(long_rows::VECTORS_IN_FLIGHT);
    let ones = gpu.upload(&vec![1.0_f32; len]).unwrap();
    // SAFETY: the arguments describe one segment, the whole input, folded by one block of one warp.
    let kernel = unsafe { long_rows::long_rows::handle::<MaxOfFloats, f32>() }.with_block(32);
    let arguments = long_rows::LongRowArgs {
        operator: 0,
        input: ones.view(),
        len,
        pitch: len,
        splits: 1,
        tiles: tiles as u32,
        longer_splits: 0,
        tile_states: states_per_split.view_mut(),
        output: largest.view_mut(),
    };
    let of_one = gpu.profile(|| gpu.launch(kernel, 1, arguments)).unwrap();
    assert_eq!(gpu.download(&largest).unwrap(), [1.0]);

    let len = elements(pairs::VECTORS_IN_FLIGHT);
    let ones = gpu.upload(&vec![1_i32; len]).unwrap();
    let mut output = gpu.zeroed::<i64>(1).unwrap();
    // SAFETY: as above.
    let kernel = unsafe { pairs::pairs::handle::<Dot, i32>() }.with_block(32);
    let arguments = pairs::PairArgs {
        first: ones.view(),
        second: ones.view(),
        rows: 1,
        len,
        pitch: len,
        second_pitch: len,
        group_pitch: len,
        second_group_pitch: len,
        splits: 1,
        tiles: tiles as u32,
        longer_splits: 0,
        tile_states: states_per_split.view_mut(),
        output: output.view_mut(),
    };
    let of_two = gpu.profile(|| gpu.launch(kernel, 1, arguments)).unwrap();
    assert_eq!(gpu.download(&output).unwrap(), [len as i64]);
    [of_one, of_two].map(|profile| launches_dependents(&profile.kernels[0]))
}

#[test]
fn blocks_of_short_segments_launch_dependents() {
    let gpu = executor();
    let found = [1, 2, 3, 32, 33].map(|tiles| of_tiles(&gpu, tiles));
    assert_eq!(found, [[true, true], [true, true], [true, false], [true, false], [false, false]]);
}

#[test]
fn short_grids_of_rows_and_columns_launch_dependents() {
    let gpu = executor();
    let of = |shape: Shape, len: usize, maxima: usize| {
        let input = gpu.zeroed::<f32>(len).unwrap();
        let mut reducer = gpu.reducer_of(ops::Max, shape).unwrap();
        let mut maxima = gpu.zeroed(maxima).unwrap();
        let profile = gpu.profile(|| reducer.start(&input, &mut maxima)).unwrap();
        let kernel = &profile.kernels[0];
        (kernel.kernel.split_once('_').unwrap().0.to_owned(), kernel.grid.x, launches_dependents(kernel))
    };
    let rows = [(4096, 100), (1 << 16, 16)].map(|(rows, columns)| of(Shape::rows(rows, columns), rows * columns, rows));
    assert_eq!(rows, [("rows".to_owned(), 512, true), ("rows".to_owned(), 1024, false)]);
    let columns = [528, 529].map(|tiles| of(Shape::columns(2, tiles * 1024), tiles * 2048, tiles * 1024));
    assert_eq!(columns.map(|(_, grid, starts)| (grid, starts)), [(528, true), (529, false)]);
    let of_exact_columns = |tiles: usize| {
        let input = gpu.zeroed::<f32>(tiles * 2048).unwrap();
        let mut reducer = gpu.reducer_of(Sum, Shape::columns(2, tiles * 1024)).unwrap();
        let mut sums = gpu.zeroed(tiles * 1024).unwrap();
        let profile = gpu.profile(|| reducer.start(&input, &mut sums)).unwrap();
        (profile.kernels[0].grid.x, launches_dependents(&profile.kernels[0]))
    };
    assert_eq!([528, 529].map(of_exact_columns), [(528, true), (529, false)]);
}

#[test]
fn blocks_of_columns_with_few_rows_launch_dependents() {
    type State = <MaxOfFloats as Operator<f32>>::State;
    let gpu = executor();
    let starts = |rows: usize| {
        let input = gpu.upload(&vec![1.0_f32; rows * 256]).unwrap();
        let (mut partials, mut tickets) = (gpu.zeroed::<State>(1).unwrap(), gpu.zeroed::<u32>(1).unwrap());
        let mut maxima = gpu.zeroed::<f32>(256).unwrap();
        // SAFETY: the arguments describe one matrix, the whole input, that is one tile of one block.
        let kernel = unsafe { columns::handle::<MaxOfFloats, f32>() };
        let arguments = ColumnArgs {
            operator: 0,
            input: input.view(),
            rows,
            columns: 256,
            pitch: 256,
            batch_pitch: 0,
            folded_rows: 1,
            lanes: 64,
            tiles: 1,
            splits: 1,
            partials: partials.view_mut(),
            tickets: tickets.view_mut(),
            output: maxima.view_mut(),
        };
        let profile = gpu.profile(|| gpu.launch(kernel, 1, arguments)).unwrap();
        assert_eq!(gpu.download(&maxima).unwrap(), [1.0; 256]);
        launches_dependents(&profile.kernels[0])
    };
    // Four threads per column, 16 rows each.
    assert_eq!([64, 65].map(starts), [true, false]);
    let starts = |rows: usize| {
        let input = gpu.upload(&vec![1.0_f32; rows * 256]).unwrap();
        let (mut superaccumulators, mut tickets) = (gpu.zeroed(0).unwrap(), gpu.zeroed(0).unwrap());
        let mut sums = gpu.zeroed::<u8>(256 * 4).unwrap();
        // SAFETY: as above.
        let kernel = unsafe { exact_columns::handle::<Sum, f32>() };
        let kernel = kernel.with_dynamic_shared(lane_memory::<Elements<f32>>().bytes(BLOCK, 48 * 1024));
        let arguments = ExactColumnArgs {
            input: input.view(),
            rows,
            columns: 256,
            pitch: 256,
            batch_pitch: 0,
            folded_rows: 1,
            lanes: 64,
            tiles: 1,
            splits: 1,
            rows_of_split: rows,
            superaccumulators: superaccumulators.view_mut(),
            tickets: tickets.view_mut(),
            finish: 0,
            output: sums.view_mut(),
            term: 0,
        };
        let profile = gpu.profile(|| gpu.launch(kernel, 1, arguments)).unwrap();
        assert_eq!(gpu.download(&sums).unwrap(), (rows as f32).to_le_bytes().repeat(256));
        launches_dependents(&profile.kernels[0])
    };
    assert_eq!([64, 65].map(starts), [true, false]);
}

#[test]
fn short_grids_of_transposes_launch_dependents() {
    let gpu = executor();
    let case = |rows, columns| Case { rows, columns, batch: 1, pads: [0; 2], offsets: [0; 2], seed: 1 };
    let (transpose, scale) = (CHECKS[4].1, SCALED_CHECKS[2].1);
    let profile = gpu.profile(|| {
        for (_, check) in CHECKS.iter().chain(&SCALED_CHECKS) {
            for (rows, columns) in [(64, 64), (61, 67), (3, 500), (500, 3), (500, 501)] {
                check(&gpu, &case(rows, columns)).unwrap();
            }
        }
        // The maximum of a small grid, and one block more.
        for blocks in [264, 265] {
            transpose(&gpu, &Case { batch: blocks, ..case(64, 64) }).unwrap();
            scale(&gpu, &Case { batch: blocks, ..case(64, 64) }).unwrap();
            let segments = gpu.zeroed::<[f64; 2]>(blocks * 2048)?.reshape(&[2, 2, blocks * 512])?;
            gpu.permute(&segments, &[1, 0, 2])?;
        }
        for (_, check) in IN_PLACE_CHECKS {
            check(&gpu, &case(65, 65)).unwrap();
            check(&gpu, &case(64, 64)).unwrap();
        }
        for (_, check) in &PERMUTE_CHECKS {
            for shape in [[40, 200, 3], [2, 200, 3], [2, 3, 10_016], [64, 64, 4]] {
                check(&gpu, shape, [0; 2], 1).unwrap();
            }
        }
        Ok(())
    });
    let kernels = profile.unwrap().kernels;
    for (name, blocks) in
        ["tiles_u32_4096_8", "copy_aligned_segments_u128"].into_iter().flat_map(|name| [(name, 264), (name, 265)])
    {
        assert!(kernels.iter().any(|kernel| kernel.kernel == name && kernel.grid.x == blocks), "{name}: {blocks}");
    }
    let mut with_dependents = BTreeSet::new();
    for kernel in &kernels {
        // The type, and a length if there is one, follow the name.
        let is_part = |part: &&str| part.chars().all(|c| c.is_ascii_lowercase());
        let name = kernel.kernel.split('_').take_while(is_part).collect::<Vec<_>>().join("_");
        if launches_dependents(kernel) {
            with_dependents.insert(name.clone());
        }
        match &*name {
            "register_tiles" | "scaled_register_tiles" => assert!(launches_dependents(kernel), "{kernel:?}"),
            "in_place_tiles" | "aligned_in_place_tiles" => assert!(!launches_dependents(kernel), "{kernel:?}"),
            _ => assert_eq!(
                launches_dependents(kernel),
                kernel.grid.x <= 264,
                "{} of {} blocks",
                kernel.kernel,
                kernel.grid.x
            ),
        }
    }
    let all = "aligned_interleaved_tiles aligned_scaled_tiles copy_aligned_segments interleaved_tiles narrow_tiles \
               packed_segments packed_segments_short_wide register_tiles scaled_narrow_tiles scaled_register_tiles \
               scaled_tiles short_wide tall_skinny tiles";
    assert_eq!(with_dependents.into_iter().collect::<Vec<_>>().join(" "), all);
}
