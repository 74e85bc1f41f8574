//! Work that all processors share.

use rayon::prelude::*;

use crate::memory;

/// `work` for each number below `count`, by as many threads as there are processors. Of a `dyn Fn`, so that it is
/// compiled once, not for each type of element.
pub(super) fn in_parallel<R: Send>(count: usize, work: &(dyn Fn(usize) -> R + Sync)) -> anyhow::Result<Vec<R>> {
    let mut all = memory::list(count)?;
    (0..count).into_par_iter().map(work).collect_into_vec(&mut all);
    Ok(all)
}
