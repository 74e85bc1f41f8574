//! Distributes work over all cores of the CPU.

use rayon::prelude::*;

use crate::memory;

/// The results of `work` for each number below `count`, computed on all cores. `work` is a `dyn Fn`, so that this
/// function is compiled once, not for each closure.
pub(super) fn in_parallel<R: Send>(count: usize, work: &(dyn Fn(usize) -> R + Sync)) -> anyhow::Result<Vec<R>> {
    let mut all = memory::list(count)?;
    (0..count).into_par_iter().map(work).collect_into_vec(&mut all);
    Ok(all)
}

/// [`in_parallel`] with a state that each core makes once in a while and uses for many numbers.
pub(super) fn in_parallel_with<S, R: Send>(
    count: usize,
    state: &(dyn Fn() -> S + Sync),
    work: &(dyn Fn(&mut S, usize) -> R + Sync),
) -> anyhow::Result<Vec<R>> {
    let mut all = memory::list(count)?;
    (0..count).into_par_iter().map_init(state, work).collect_into_vec(&mut all);
    Ok(all)
}
