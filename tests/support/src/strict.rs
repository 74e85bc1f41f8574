//! A reduction that can be made to fail.

use cuda_std::prelude::*;
use kernels::ops::Operator;
use kernels::reduce::columns;
use kernels::reduce::spans::{PACKS_IN_FLIGHT, fold_spans};
use warpfold::reduce::Kernels;

/// A sum that stops at a number that is none.
pub struct Strict;

impl Operator<f32> for Strict {
    type State = f32;
    type Output = f32;
    const NEUTRAL: f32 = 0.0;

    fn lift(element: f32, _index: u64) -> f32 {
        assert!(!element.is_nan(), "it is no number");
        element
    }
    fn combine(a: f32, b: f32) -> f32 {
        a + b
    }
    fn finish(state: f32, _count: u64) -> f32 {
        state
    }
}

/// Its kernel.
///
/// # Safety
/// The arguments are those of a plan.
#[kernel(max_threads = 512)]
pub unsafe fn strict(
    input: Global<f32>,
    len: usize,
    pitch: usize,
    parts: u32,
    tiles: u32,
    longer: u32,
    mailboxes: GlobalMut<[u64; 2]>,
    output: GlobalMut<f32>,
) {
    // SAFETY: the arguments are the engine's.
    unsafe {
        fold_spans::<Strict, f32, PACKS_IN_FLIGHT>(&input, len, pitch, parts, tiles, longer, &mailboxes, &output)
    };
}

/// Its kernel for columns.
///
/// # Safety
/// The arguments are those of a plan.
#[kernel(block = columns::BLOCK)]
pub unsafe fn strict_columns(
    input: Global<f32>,
    rows: usize,
    columns: usize,
    pitch: usize,
    batch_pitch: usize,
    abreast: u32,
    lanes: u32,
    tiles: u32,
    parts: u32,
    partials: GlobalMut<f32>,
    tickets: GlobalMut<u32>,
    output: GlobalMut<f32>,
) {
    // SAFETY: the arguments are the engine's.
    unsafe {
        columns::columns::<Strict, f32>(
            input,
            rows,
            columns,
            pitch,
            batch_pitch,
            abreast,
            lanes,
            tiles,
            parts,
            partials,
            tickets,
            output,
        )
    };
}

/// Its kernels.
pub fn strict_kernels() -> Kernels<Strict, f32> {
    // SAFETY: only the plans of `Kernels` launch them.
    unsafe { Kernels::new("the strict sum", strict::handle()).with_columns(strict_columns::handle()) }
}
