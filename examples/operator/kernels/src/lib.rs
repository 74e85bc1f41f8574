//! An operator of one's own: the largest absolute value, NaN left out. warpfold's engine does the rest.
#![no_std]

use cuda_std::prelude::*;
use kernels::ops::Operator;
use kernels::reduce::spans::{PACKS_IN_FLIGHT, fold_spans};

/// The largest absolute value of those that are numbers.
pub struct Peak;

impl Operator<f32> for Peak {
    type State = f32;
    type Output = f32;
    const NEUTRAL: f32 = 0.0;

    fn lift(element: f32, _index: u64) -> f32 {
        if element.is_nan() { 0.0 } else { element.abs() }
    }
    fn combine(a: f32, b: f32) -> f32 {
        if a > b { a } else { b }
    }
    fn finish(state: f32, _count: u64) -> f32 {
        state
    }
}

/// The kernel for whole buffers and long rows.
///
/// # Safety
/// The arguments are those that `warpfold::reduce::Kernels` launches it with: nothing here checks them.
#[kernel(max_threads = 512, min_blocks = 2, early)]
pub unsafe fn peak(
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
    unsafe { fold_spans::<Peak, f32, PACKS_IN_FLIGHT>(&input, len, pitch, parts, tiles, longer, &mailboxes, &output) };
}
