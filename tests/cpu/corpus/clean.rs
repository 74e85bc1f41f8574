//! warpfold's own kernels, in which the checks must find nothing, in any order of the lanes.
//!
//! `WARPFOLD_SCHEDULES=100 cargo test -p warpfold-tests --test cpu corpus::clean::` tries each of them in 100 orders.
//! By default, kernels that exist for every operator, type or element size are tried in fewer, to keep the test quick.

use test_support::by_shape::ByShape;
use test_support::reductions::data::Kind;
use test_support::reductions::shapes::Form;
use test_support::reductions::{Case as Reduction, PAIRS, dots};
use test_support::shape::Shape;
use test_support::tiles::TILE_CHECKS;
use test_support::transposes::{
    CHECKS, Case as Transpose, EVERY_SIZE, IN_PLACE_CHECKS, ORDERS, PERMUTE_CHECKS, SCALED_CHECKS,
};
use test_support::{device_library, times};
use warpfold::ladder::{ControlFlowRung, ReduceRung, TransposeRung};
use warpfold::{Error, Gpu, Schedule, SimtOptions, ops, under_schedules};

/// The number of lane orders: `WARPFOLD_SCHEDULES`, or `otherwise`.
fn orders(otherwise: u64) -> u64 {
    std::env::var("WARPFOLD_SCHEDULES").ok().and_then(|orders| orders.parse().ok()).unwrap_or(otherwise)
}

fn clean(run: impl FnMut(&Gpu) -> Result<(), Error>) {
    under_schedules(orders(times(10, 100)), run).unwrap_or_else(|error| panic!("{error}"));
}

/// Tries each case of a long list in a few orders. `run` gets the case's index and the seed of the order.
fn each_clean<T>(all: &[T], run: impl Fn(&Gpu, &T, u64, u64) -> Result<(), String>) {
    for (one, i) in all.iter().zip(0..) {
        for seed in 0..orders(times(3, 12)) {
            let gpu = Gpu::simt_with(SimtOptions { checks: true, schedule: Schedule::Seed(seed) });
            run(&gpu, one, i, seed).unwrap_or_else(|wrong| panic!("in the lane order of seed {seed}: {wrong}"));
        }
    }
}

/// Two blocks and part of a third, for the rungs with the longest segments.
const N: usize = 2 * 8 * 128 + 77;

#[test]
fn sums_of_every_rung() {
    // Integers whose sum is below 2^24: no rung rounds.
    let numbers: Vec<f32> = (1..=N).map(|i| i as f32).collect();
    clean(|gpu| {
        let input = gpu.upload(&numbers)?;
        for rung in ReduceRung::all() {
            let mut sum = rung.prepare::<f32>(gpu, N, 128)?;
            sum.load(gpu, &input)?;
            sum.start(gpu, &input)?;
            assert_eq!(sum.finish(gpu)?, (N * (N + 1) / 2) as f32, "{}", rung.name());
        }
        Ok(())
    });
}

#[test]
fn transposes_of_every_rung() {
    let (rows, columns) = (70, 45);
    let elements: Vec<f32> = (0..rows * columns).map(|i| i as f32).collect();
    clean(|gpu| {
        let matrix = gpu.upload(&elements)?.reshape(&[rows, columns])?;
        for rung in TransposeRung::ALL {
            let mut result = gpu.zeroed(columns * rows)?.reshape(&[columns, rows])?;
            rung.start(gpu, &matrix, &mut result)?;
            let found = gpu.download(&result)?;
            let at = |i: usize| if rung.is_copy() { i } else { i % rows * columns + i / rows };
            assert!((0..found.len()).all(|i| found[i] == elements[at(i)]), "{}", rung.name());
        }
        Ok(())
    });
}

#[test]
fn control_flow_of_every_rung() {
    let words: Vec<u32> = (0..600).map(|i| i * 7).collect();
    clean(|gpu| {
        let input = gpu.upload(&words)?;
        for rung in ControlFlowRung::ALL {
            let mut result = gpu.zeroed::<u32>(words.len())?;
            rung.start(gpu, &input, &mut result)?;
            assert_eq!(gpu.download(&result)?, rung.expected(&words), "{}", rung.name());
        }
        Ok(())
    });
}

#[test]
fn reductions_of_every_shape() {
    let numbers: Vec<f32> = (0..20_000).map(|i| (i * 37 % 101) as f32).collect();
    let bytes: Vec<i8> = (0..20_000).map(|i| (i * 37 % 101) as i8).collect();
    let reduce = |gpu: &Gpu| {
        let (x, y) = (gpu.upload(&numbers)?, gpu.upload(&bytes)?);
        let shapes = [
            Shape::all(numbers.len()),
            // Two tiles of one block, for either type.
            Shape::all(8192),
            Shape::rows(40, 500),
            Shape::rows(2000, 10),
            Shape::columns(500, 40),
            // Four folded rows.
            Shape::columns(499, 39),
            Shape::columns(10, 2000),
        ];
        let mut sums = Vec::new();
        for shape in shapes {
            // For a large input, sums use one tile state per block and argmin two; for columns both draw tickets.
            sums.push(gpu.download(&gpu.reduce_to_buffer(ops::Sum, &x, shape)?)?);
            gpu.reduce_to_buffer(ops::ArgMin, &x, shape)?;
            gpu.reduce_to_buffer(ops::Max, &y, shape)?;
        }
        Ok(sums)
    };
    let expected = reduce(&Gpu::simt()).unwrap_or_else(|error: Error| panic!("{error}"));
    clean(|gpu| {
        assert_eq!(reduce(gpu)?, expected);
        Ok(())
    });
}

#[test]
fn segments_between_offsets() {
    let numbers: Vec<f32> = (0..20_000).map(|i| (i * 37 % 101) as f32).collect();
    // Empty, short, and long enough for several blocks.
    let offsets = [0_u64, 0, 3, 40, 41, 900, 12_000, 12_000, 20_000];
    clean(|gpu| {
        let (x, offsets) = (gpu.upload(&numbers)?, gpu.upload(&offsets)?);
        gpu.reduce_segments(ops::Sum, &x, &offsets)?;
        gpu.reduce_segments(ops::ArgMax, &x, &offsets)?;
        Ok(())
    });
}

#[test]
fn segments_and_transposes_of_any_element() {
    let bytes: Vec<u8> = (0..3000).map(|i| (i % 251) as u8).collect();
    let words: Vec<u64> = (0..3000).collect();
    clean(|gpu| {
        gpu.transpose(&gpu.upload(&bytes)?.reshape(&[60, 50])?)?;
        gpu.transpose(&gpu.upload(&words)?.reshape(&[30, 100])?)?;
        gpu.transpose(&gpu.upload(&bytes[..2997])?.reshape(&[81, 37])?)?;
        Ok(())
    });
}

#[test]
fn the_device_library() {
    clean(|gpu| {
        for (name, run) in device_library::RUNS {
            run(gpu).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        Ok(())
    });
}

#[test]
fn reductions_by_every_operator_of_every_type() {
    let forms = [
        Form::All(9001),
        Form::Rows(5, 260, 263),
        Form::Rows(150, 6, 6),
        Form::Columns(70, 33, 40),
        Form::Axis([3, 4, 5, 6], 1),
        Form::Segments { count: 12, longest: 300, seed: 1 },
    ];
    each_clean(PAIRS, |gpu, pair, i, seed| {
        let form = forms[(i + seed) as usize % forms.len()];
        pair.check(gpu, &Reduction { kind: Kind::Few, seed: i, form, offset: i as usize % 5 }).map(|_| ())
    });
}

#[test]
fn dot_products_of_every_type() {
    each_clean(dots::CHECKS, |gpu, (_, check), i, _| {
        let case = dots::Case { kind: Kind::Few, seed: i, rows: 3, len: 700, pitch: 703, offsets: [0, 1] };
        check(gpu, &case).map(|_| ())
    });
}

/// Aligned and unaligned, with and without padding after the rows.
fn transposes(sides: [(usize, usize); 2], seed: u64) -> [Transpose; 2] {
    let case = |(rows, columns), pads, offsets| Transpose { rows, columns, batch: 2, pads, offsets, seed };
    [case(sides[0], [0; 2], [0; 2]), case(sides[1], [3, 1], [1, 5])]
}

#[test]
fn transposes_of_every_size_of_element() {
    each_clean(&CHECKS, |gpu, (_, check), i, _| {
        transposes([(64, 96), (37, 70)], i).iter().try_for_each(|case| check(gpu, case))
    });
    each_clean(TILE_CHECKS, |gpu, (_, check, _), i, _| check(gpu, 80, 144, i));
}

#[test]
fn scaled_transposes_of_every_number() {
    each_clean(&SCALED_CHECKS, |gpu, (_, check), i, _| {
        transposes([(64, 32), (19, 45)], i).iter().try_for_each(|case| check(gpu, case))
    });
}

#[test]
fn transposes_in_place() {
    each_clean(&IN_PLACE_CHECKS, |gpu, (_, check), i, seed| {
        let case = |side, batch, pad, before| Transpose {
            rows: side,
            columns: side,
            batch,
            pads: [pad; 2],
            offsets: [before; 2],
            seed: i,
        };
        if seed % 6 == 0 {
            // Enough tiles that the large ones are used.
            check(gpu, &if i == 0 { case(144, 88, 0, 0) } else { case(80, 88, 0, 0) })?;
        }
        [case(64, 2, 0, 0), case(71, 2, 3, 1)].iter().try_for_each(|case| check(gpu, case))
    });
}

#[test]
fn three_axes_in_any_order() {
    // Units of 1, 2, 4, 8 and 16 bytes.
    each_clean(&[3, 6, 12, 24, 48], |gpu, size, i, _| EVERY_SIZE[size - 1].run(gpu, 9, 13, i));
    each_clean(&PERMUTE_CHECKS, |gpu, (_, check), i, _| {
        check(gpu, [16, 4, 32], [0; 2], i)?;
        check(gpu, [7, 5, 19], [1, 3], i)?;
        check(gpu, [64, 16, 3], [0; 2], i)?;
        check(gpu, [3, 16, 64], [0; 2], i)?;
        // Short and long contiguous segments of every element size.
        check(gpu, [40, 30, 3], [1, 0], i)?;
        check(gpu, [5, 6, 51], [2, 1], i)?;
        check(gpu, [2, 2, 10_001], [2, 1], i)
    });
    assert_eq!(ORDERS.len(), 6, "a check tries each of them");
}
