//! Sums by the ladder's rungs, every reduction, dot products.

use kernels::ladder::reduce_shared::{MAX_BLOCKS, SINGLE_LAUNCH_BLOCK};
use libtest_mimic::Failed;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use test_support::reductions::data::KINDS;
use test_support::reductions::shapes::Form;
use test_support::reductions::{Case, Pair, dots};
use test_support::reference::{Sum, check_rung};
use test_support::{executor, sizes};
use warpfold::ladder::{BLOCKS, ReduceRung};
use warpfold::{Buffer, Error, Gpu};

use crate::is_sanitized;

/// Lengths around every boundary of blocks, segments and vectors; primes; and lengths above 2^24, where `f32` has no
/// more consecutive integers.
pub fn lengths() -> Vec<usize> {
    let mut lengths = sizes::lengths();
    lengths.extend(sizes::PRIMES);
    // The largest grid of a striding rung: one iteration, and the step to the next.
    lengths.extend(sizes::around(MAX_BLOCKS * SINGLE_LAUNCH_BLOCK));
    if !is_sanitized() {
        lengths.extend([(1 << 20) - 1, 1 << 20, (1 << 22) + 3, LONGEST]);
    }
    lengths
}

const LONGEST: usize = (1 << 24) + 1;

pub fn sums<T: Sum>(gpu: &Gpu, rung: ReduceRung) -> Result<(), Failed> {
    let executor = executor();
    let mut source = SmallRng::from_os_rng();
    for len in lengths() {
        let numbers: Vec<T> = (0..len).map(|_| T::random(&mut source)).collect();
        let (on_gpu, on_executor) = (gpu.upload(&numbers)?, executor.upload(&numbers)?);
        let blocks: &[usize] = if rung.has_fixed_block() { &[512] } else { &BLOCKS };
        for &block in blocks {
            let case = format!("{len} numbers, blocks of {block}");
            let found = sum_by(gpu, rung, block, &on_gpu)?;
            check_rung(rung, found, &numbers).map_err(|difference| format!("{case}: {difference}"))?;
            // The executor is slow: long inputs are compared for one block size, the longest for one rung.
            let is_compared = match len {
                LONGEST => rung == ReduceRung::SingleLaunch,
                _ => len < 20_000 || block == 512,
            };
            if is_compared {
                let simulated = sum_by(&executor, rung, block, &on_executor)?;
                if found.bits() != simulated.bits() {
                    return Err(format!("{case}: {found:?} on the GPU, {simulated:?} in the executor").into());
                }
            }
        }
    }
    Ok(())
}

fn sum_by<T: Sum>(gpu: &Gpu, rung: ReduceRung, block: usize, input: &Buffer<T>) -> Result<T, Error> {
    let mut reduction = rung.prepare::<T>(gpu, input.len(), block)?;
    reduction.load(gpu, input)?;
    reduction.start(gpu, input)?;
    reduction.finish(gpu)
}

/// Every shape and kind of element for one operator: correct, and equal to the executor bit for bit.
pub fn reductions(gpu: &Gpu, pair: &Pair) -> Result<(), Failed> {
    let mut source = SmallRng::from_os_rng();
    let simt = executor();
    for form in forms() {
        // Small inputs with all special values; a large one once.
        let kinds = if form.elements() > 10_000 || is_sanitized() { &KINDS[..1] } else { &KINDS[..] };
        for (i, &kind) in kinds.iter().enumerate() {
            let case = Case { kind, seed: source.random(), form, offset: i };
            let found = pair.check(gpu, &case)?;
            let expected = pair.run(&simt, &case)?;
            if found.bits != expected.bits {
                return Err(format!("{pair:?} {case:?}: other bits than in the executor").into());
            }
        }
    }
    Ok(())
}

/// Dot products of vectors and of rows: correct, and equal to the executor bit for bit.
pub fn dot_products(gpu: &Gpu, check: dots::Check) -> Result<(), Failed> {
    let mut source = SmallRng::from_os_rng();
    for (i, (rows, len)) in [(1, 1), (1, 17), (1, 4097), (1, 300_001), (7, 129), (3, 9001)].into_iter().enumerate() {
        let kinds = if is_sanitized() { &KINDS[..1] } else { &KINDS[..] };
        for &kind in kinds {
            let case = dots::Case { kind, seed: source.random(), rows, len, pitch: len + i % 2, offsets: [i, i % 3] };
            if check(gpu, &case)? != check(&executor(), &case)? {
                return Err(format!("{case:?}: other bits than in the executor").into());
            }
        }
    }
    Ok(())
}

/// Shapes that reach every kernel with one split and with several, and every kind of tail.
fn forms() -> Vec<Form> {
    if is_sanitized() {
        return vec![
            Form::All(1),
            Form::All(129),
            // Two tiles of one block, for every element size; and several tiles per block.
            Form::All(8192),
            Form::All(73_729),
            Form::Rows(33, 31, 32),
            Form::Rows(3, 9001, 9001),
            Form::Rows(70, 530, 530),
            Form::Columns(301, 37, 37),
            Form::Columns(301, 40, 40),
            Form::Columns(64, 16, 16),
            Form::Segments { count: 30, longest: 30_000, seed: 5 },
        ];
    }
    let mut forms: Vec<Form> = [1, 2, 3, 15, 16, 17, 31, 127, 128, 129, 1000, 4097, 8192, 8197].map(Form::All).to_vec();
    forms.extend(
        [(1, 1), (5, 3), (100, 16), (33, 31), (7, 127), (20, 129), (3, 1025)]
            .map(|(rows, columns)| Form::Rows(rows, columns, columns + rows % 2)),
    );
    forms.extend(
        [(1, 1), (3, 5), (16, 100), (31, 33), (127, 7), (129, 20), (1025, 3)]
            .map(|(rows, columns)| Form::Columns(rows, columns, columns + rows % 2)),
    );
    forms.extend([(0, 1), (3, 20), (40, 700)].map(|(count, longest)| Form::Segments { count, longest, seed: 7 }));
    forms.extend([Form::Axis([3, 5, 7, 11], 1), Form::Axis([2, 9, 4, 1], 2), Form::Axis([4, 6, 2, 3], 3)]);
    if !is_sanitized() {
        forms.extend([
            Form::All(73_729),
            Form::All(300_001),
            Form::Rows(5, 40_001, 40_001),
            Form::Columns(3001, 70, 70),
            Form::Columns(3001, 72, 72),
            Form::Columns(1003, 301, 302),
            Form::Rows(9001, 20, 20),
            Form::Segments { count: 50, longest: 200_000, seed: 5 },
            Form::Segments { count: 20_000, longest: 40, seed: 6 },
        ]);
    }
    forms
}
