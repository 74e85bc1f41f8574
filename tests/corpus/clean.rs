//! warpfold's own kernels, in which the checks find nothing, whatever the order of lanes.

use warpfold::ladder::{ControlFlowRung, ReduceRung, TransposeRung};
use warpfold::{Error, Gpu, Shape, ops, under_schedules};
use warpfold_tests::device_library;

/// Orders of the lanes that each kernel is tried with; `WARPFOLD_SCHEDULES` sets another number.
fn orders() -> u64 {
    std::env::var("WARPFOLD_SCHEDULES").ok().and_then(|orders| orders.parse().ok()).unwrap_or(100)
}

fn clean(run: impl FnMut(&Gpu) -> Result<(), Error>) {
    under_schedules(orders(), run).unwrap_or_else(|error| panic!("{error}"));
}

/// Two blocks and a part of a third for the rungs with the longest runs.
const N: usize = 2 * 8 * 128 + 77;

#[test]
fn sums_of_every_rung() {
    let numbers: Vec<i32> = (1..=N as i32).collect();
    clean(|gpu| {
        let input = gpu.upload(&numbers)?;
        for rung in ReduceRung::all() {
            let mut sum = rung.prepare::<i32>(gpu, N, 128)?;
            sum.load(gpu, &input)?;
            sum.start(gpu, &input)?;
            assert_eq!(sum.finish(gpu)?, numbers.iter().sum(), "{}", rung.name());
        }
        Ok(())
    });
}

#[test]
fn transposes_of_every_rung() {
    let (rows, columns) = (70, 45);
    let elements: Vec<f32> = (0..rows * columns).map(|i| i as f32).collect();
    clean(|gpu| {
        let matrix = gpu.upload_matrix(&elements, rows, columns)?;
        for rung in TransposeRung::ALL {
            let mut result = gpu.zeroed_matrix(columns, rows)?;
            rung.start(gpu, &matrix, &mut result)?;
            let found = gpu.download_matrix(&result)?;
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
            Shape::rows(40, 500),
            Shape::rows(2000, 10),
            Shape::columns(500, 40),
            Shape::columns(10, 2000),
        ];
        let mut sums = Vec::new();
        for shape in shapes {
            // Sums leave partials in mailboxes, arguments of minima draw tickets.
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
        gpu.transpose(&gpu.upload_matrix(&bytes, 60, 50)?)?;
        gpu.transpose(&gpu.upload_matrix(&words, 30, 100)?)?;
        gpu.transpose(&gpu.upload_matrix(&bytes[..2997], 81, 37)?)?;
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
