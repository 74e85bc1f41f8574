//! The executor's counters compared with those of Nsight Compute on an H200 (`docs/benchmarks/h200-counters.csv` and
//! `h200-requests.csv`), and profiles in a user's test.

mod cost;
mod dependents;

use approx::abs_diff_eq;
use cuda_std::prelude::*;
use cuda_std::tile_state;
use test_support::by_shape::ByShape;
use test_support::shape::Shape;
use warpfold::ladder::{ControlFlowRung, ReduceRung, TransposeRung};
use warpfold::{Error, Gpu, KernelProfile, Profile, Schedule, SimtOptions, ops};

/// A launch and its counters from Nsight Compute.
struct Measured {
    kernel: &'static str,
    blocks: u32,
    load_efficiency: f64,
    store_efficiency: f64,
    load_conflicts: u64,
    store_conflicts: u64,
}

/// Kernels with their launches, in the order of the file.
fn measured() -> Vec<Vec<Measured>> {
    let mut kernels: Vec<Vec<Measured>> = Vec::new();
    for line in include_str!("../../../docs/benchmarks/h200-counters.csv").lines().skip(1) {
        // The grid and the block are quoted, because they contain commas.
        let parts: Vec<&str> = line.split('"').collect();
        let kernel = parts[0].split(',').nth(2).expect("a kernel");
        let grid = parts[1].trim_matches(['(', ')']).split(',').next().expect("a grid");
        let numbers: Vec<f64> = parts[4].split(',').filter_map(|number| number.parse().ok()).collect();
        let launch = Measured {
            kernel,
            blocks: grid.parse().expect("a number of blocks"),
            load_efficiency: numbers[0],
            store_efficiency: numbers[1],
            load_conflicts: numbers[2] as u64,
            store_conflicts: numbers[3] as u64,
        };
        match kernels.last_mut() {
            Some(last) if last[0].kernel == kernel => last.push(launch),
            _ => kernels.push(vec![launch]),
        }
    }
    kernels
}

fn unchecked() -> Gpu {
    Gpu::simt_with(SimtOptions { checks: false, schedule: Schedule::InOrder })
}

fn sum(gpu: &Gpu, rung: ReduceRung, n: usize) -> Result<Profile, Error> {
    let input = gpu.upload(&vec![1.0_f32; n])?;
    let mut sum = rung.prepare::<f32>(gpu, n, 256)?;
    sum.load(gpu, &input)?;
    gpu.profile(|| sum.start(gpu, &input))
}

fn assert_efficiency(own: &KernelProfile, measured: &Measured) {
    let total = own.total();
    let efficiencies = [
        ("load", total.global_loads.efficiency(), measured.load_efficiency),
        ("store", total.global_stores.efficiency(), measured.store_efficiency),
    ];
    for (what, own, expected) in efficiencies {
        let own = own.expect("a kernel loads and stores");
        let is_near = abs_diff_eq!(own, expected, epsilon = 0.006);
        assert!(is_near, "{}: {what} efficiency {own}, ncu {expected}", measured.kernel);
    }
}

#[test]
fn sums_count_what_an_h200_counts() {
    let mut compared = 0;
    for launches in measured() {
        let kernel = launches[0].kernel;
        let Some(rung) = ReduceRung::all()
            .find(|rung| kernel.strip_suffix("_f32").or(kernel.strip_suffix("_f32_256")) == Some(rung.name()))
        else {
            continue;
        };
        if launches.len() < 2 {
            continue;
        }
        // Each launch folds the partials of the previous one. The input here is as long as the partials of the first
        // launch, so that this long launch is left out.
        let profile = sum(&unchecked(), rung, launches[0].blocks as usize).unwrap();
        assert_eq!(profile.kernels.len(), launches.len() - 1, "{kernel}");
        for (own, measured) in profile.kernels.iter().zip(&launches[1..]) {
            assert_eq!((&*own.kernel, own.grid.x), (kernel, measured.blocks));
            assert_efficiency(own, measured);
            let total = own.total();
            let conflicts = (total.shared_loads.conflicts, total.shared_stores.conflicts);
            assert_eq!(conflicts, (measured.load_conflicts, measured.store_conflicts), "{kernel}");
            compared += 1;
        }
    }
    assert_eq!(compared, 29);
}

#[test]
fn transposes_count_what_an_h200_counts() {
    let gpu = unchecked();
    let matrix = gpu.upload(&vec![1.0_f32; 1 << 20]).unwrap().reshape(&[1024, 1024]).unwrap();
    let mut result = gpu.zeroed(1024 * 1024).unwrap().reshape(&[1024, 1024]).unwrap();
    let all: Vec<Measured> = measured().into_iter().flatten().collect();
    for rung in TransposeRung::ALL {
        let profile = gpu.profile(|| rung.start(&gpu, &matrix, &mut result)).unwrap();
        let own = &profile.kernels[0];
        let measured = all.iter().find(|launch| launch.kernel == own.kernel);
        let measured = measured.unwrap_or_else(|| panic!("{} was not measured", own.kernel));
        assert_efficiency(own, measured);
        let total = own.total();
        for (own, ncu) in [
            (total.shared_loads.conflicts, measured.load_conflicts),
            (total.shared_stores.conflicts, measured.store_conflicts),
        ] {
            // The surplus of ncu is other traffic in the same memory: `docs/counters.md`.
            assert!(own <= ncu && ncu - own <= 600 + own / 10, "{}: {own} conflicts, ncu {ncu}", measured.kernel);
        }
    }
}

/// The requests of a launch, by kind of access: global loads, their sectors, stores, their sectors, atomics, shared
/// loads and stores.
type Requests = [u64; 7];

/// The first launch of each rung and its requests from Nsight Compute: kernel, blocks and requests.
fn measured_requests() -> Vec<(&'static str, u64, Requests)> {
    let row = |line: &'static str| {
        // The grid and the block are quoted, because they contain commas.
        let parts: Vec<&str> = line.split('"').collect();
        let kernel = parts[0].split(',').nth(2).expect("a kernel");
        let grid = parts[1].trim_matches(['(', ')']).split(',').map(|side| side.parse::<u64>().expect("a side"));
        let numbers: Vec<u64> = parts[4].split(',').filter_map(|number| number.parse().ok()).collect();
        (kernel, grid.product(), numbers[..7].try_into().expect("seven columns of requests"))
    };
    include_str!("../../../docs/benchmarks/h200-requests.csv").lines().skip(1).map(row).collect()
}

fn requests(profile: &KernelProfile) -> Requests {
    let total = profile.total();
    [
        total.global_loads.requests,
        total.global_loads.sectors,
        total.global_stores.requests,
        total.global_stores.sectors,
        total.atomics.requests,
        total.shared_loads.requests,
        total.shared_stores.requests,
    ]
}

/// Checks that `part` times the requests of the first launch of `run` are the measured ones.
fn assert_requests(run: impl FnOnce() -> Result<Profile, Error>, part: u64, all: &[(&'static str, u64, Requests)]) {
    let own = &run().unwrap().kernels[0];
    let is_it = |&&(kernel, blocks, _): &&(&str, u64, Requests)| kernel == own.kernel && blocks == part * own.blocks();
    let (kernel, _, measured) =
        all.iter().find(is_it).unwrap_or_else(|| panic!("{} in {} blocks was not measured", own.kernel, own.blocks()));
    assert_eq!(requests(own).map(|count| count * part), *measured, "{kernel}");
}

#[test]
fn requests_and_sectors_are_those_of_an_h200() {
    let (gpu, all) = (unchecked(), measured_requests());
    // `exact_long_rows` is not in the table: its requests depend on the data.
    let sums = || ReduceRung::all().filter(|rung| !rung.is_exact());
    for rung in sums() {
        // Where the grid stops growing, a block's share depends on the length. Otherwise all blocks do the same work.
        let grid_stops = matches!(rung.name(), "grid_stride" | "warp_shuffle" | "vectorized" | "single_launch");
        let part = if grid_stops { 1 } else { 64 };
        assert_requests(|| sum(&gpu, rung, (1 << 22) / part), part as u64, &all);
    }
    let matrix = gpu.upload(&vec![1.0_f32; 1 << 20]).unwrap().reshape(&[1024, 1024]).unwrap();
    let mut result = gpu.zeroed(1024 * 1024).unwrap().reshape(&[1024, 1024]).unwrap();
    for rung in TransposeRung::ALL {
        assert_requests(|| gpu.profile(|| rung.start(&gpu, &matrix, &mut result)), 1, &all);
    }
    let words = gpu.upload(&(0..1 << 14).collect::<Vec<u32>>()).unwrap();
    let mut result = gpu.zeroed::<u32>(1 << 14).unwrap();
    for rung in ControlFlowRung::ALL {
        assert_requests(|| gpu.profile(|| rung.start(&gpu, &words, &mut result)), 64, &all);
    }
    let rungs = sums().count() + TransposeRung::ALL.len() + ControlFlowRung::ALL.len();
    assert_eq!(all.len(), rungs, "each row is of a different rung");
}

#[test]
fn conflicts_are_those_of_the_index_arithmetic() {
    let profile = sum(&unchecked(), ReduceRung::StridedIndex, 10 * 256).unwrap();
    let first = &profile.kernels[0];
    assert_eq!(first.total().shared_loads.conflicts, 10 * 70);
    assert_eq!(first.total().shared_stores.conflicts, 10 * 35);
    assert_eq!(first.total().shared_loads.worst_ways, 8);
    assert_eq!(sum(&unchecked(), ReduceRung::Sequential, 2560).unwrap().bank_conflicts(), 0);
}

#[test]
fn barriers_of_a_block_are_those_that_the_rungs_state() {
    for (rung, barriers) in
        [(ReduceRung::Sequential, 9.0), (ReduceRung::UnrollLastWarp, 3.0), (ReduceRung::WarpShuffle, 1.0)]
    {
        assert_eq!(sum(&unchecked(), rung, 5000).unwrap().barriers_per_block(), barriers, "{}", rung.name());
    }
}

/// The counters depend only on the kernel and its arguments.
#[test]
fn every_run_and_order_counts_the_same() {
    let expected = sum(&Gpu::simt(), ReduceRung::StridedIndex, 3000).unwrap();
    for schedule in [Schedule::InOrder, Schedule::Seed(1), Schedule::Seed(2)] {
        let gpu = Gpu::simt_with(SimtOptions { checks: false, schedule });
        assert_eq!(sum(&gpu, ReduceRung::StridedIndex, 3000).unwrap(), expected, "{schedule:?}");
    }
}

/// Adds rows of a tile, one row per lane: if `COLUMNS` is a multiple of 32, all lanes access the same bank.
#[kernel(instances = [32, 33])]
fn columns_of_a_tile<const COLUMNS: usize>(output: GlobalMut<f32>) {
    const ROWS: usize = 32;
    let tile = shared_tile![f32; ROWS x COLUMNS];
    let lane = thread::thread_idx_x() as usize;
    for column in 0..COLUMNS {
        tile.store(lane, column, 1.0);
    }
    output.store(lane, tile.load(lane, 0));
}

#[test]
fn a_users_test_has_three_lines() {
    let gpu = Gpu::simt();
    let mut output = gpu.zeroed::<f32>(32).unwrap();

    let kernel = columns_of_a_tile::handle::<33>().with_block(32);
    let profile = gpu.profile(|| gpu.launch(kernel, 1, columns_of_a_tile::Args { output: output.view_mut() })).unwrap();
    assert_eq!(profile.bank_conflicts(), 0);

    let kernel = columns_of_a_tile::handle::<32>().with_block(32);
    let profile = gpu.profile(|| gpu.launch(kernel, 1, columns_of_a_tile::Args { output: output.view_mut() })).unwrap();
    assert_eq!(profile.bank_conflicts(), 31 * 33);
    let lines = &profile.kernels[0].lines;
    assert!(lines.iter().all(|line| line.file == "tests/cpu/counters/mod.rs"), "{lines:?}");
    assert_eq!(lines.iter().map(|line| line.counters.shared_stores.requests).sum::<u64>(), 32);
}

/// The second block waits for a value that the first publishes.
#[kernel]
fn hand_over(tile_states: GlobalMut<[u64; 2]>, output: GlobalMut<u64>) {
    if thread::thread_idx_x() > 0 {
        return;
    }
    if thread::block_idx_x() == 0 {
        tile_state::publish(&tile_states, 0, 7_u64);
    } else {
        output.store(0, tile_state::wait(&tile_states, 0));
    }
}

/// However long a block waits for a tile state, it counts as one read.
#[test]
fn waiting_counts_as_one_request() {
    for schedule in [Schedule::InOrder, Schedule::Seed(1), Schedule::Seed(2)] {
        let gpu = Gpu::simt_with(SimtOptions { checks: false, schedule });
        let (mut tile_states, mut output) = (gpu.zeroed::<[u64; 2]>(1).unwrap(), gpu.zeroed::<u64>(1).unwrap());
        let arguments = hand_over::Args { tile_states: tile_states.view_mut(), output: output.view_mut() };
        let profile = gpu.profile(|| gpu.launch(hand_over::handle().with_block(32), 2, arguments)).unwrap();
        let total = profile.total();
        assert_eq!((total.global_loads.requests, total.global_stores.requests), (1, 3), "{schedule:?}");
        assert_eq!(gpu.download(&output).unwrap(), [7]);
    }
}

#[test]
fn profiles_within_profiles_count_for_both() {
    let gpu = Gpu::simt();
    let x = gpu.upload(&[1.0_f32; 100]).unwrap();
    let mut inner = Profile::default();
    let outer = gpu
        .profile(|| {
            gpu.sum(&x)?;
            inner = gpu.profile(|| gpu.sum(&x).map(|_| ()))?;
            Ok(())
        })
        .unwrap();
    assert_eq!(outer.total().requests(), 2 * inner.total().requests());
    assert!(inner.total().requests() > 0);
}

/// Results of neighbouring columns are stored in one access of 16 bytes, where alignment allows it.
#[test]
fn columns_are_stored_together() {
    let gpu = unchecked();
    let input = gpu.upload(&vec![1.0_f32; 4 * 1024]).unwrap();
    let stores = |before: usize| {
        let mut maxima = gpu.zeroed::<f32>(1024 + before).unwrap();
        let mut reducer = gpu.reducer_of(ops::Max, Shape::columns(4, 1024)).unwrap();
        let output = maxima.view_mut().slice(before, 1024).unwrap();
        gpu.profile(|| reducer.start(&input, output)).unwrap().total().global_stores.requests
    };
    assert_eq!([stores(0), stores(1), stores(4)], [8, 32, 8]);
}
