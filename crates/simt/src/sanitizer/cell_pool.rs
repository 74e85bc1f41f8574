//! Allocates shadow cells, and keeps whole chunks of them for later launches.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The shadow cells of neighbouring elements, one word each.
pub(super) type ShadowCells = Box<[AtomicU64]>;

/// The number of cells of a chunk. A chunk is allocated when its first cell is needed; the last of an array may be
/// shorter.
pub(super) const CHUNK: usize = 32768;

/// Chunks of launches that have ended. Memory that goes back to the system returns page by page, each by a page fault
/// that takes as long as the checks of a hundred accesses.
static SPARE: Mutex<Vec<ShadowCells>> = Mutex::new(Vec::new());

/// The maximum number of spare chunks: 16 MiB.
const MAX_SPARE: usize = 64;

/// Allocates empty cells.
pub(super) fn allocate(cells: usize) -> ShadowCells {
    let spare = if cells == CHUNK { spare_chunks().pop() } else { None };
    let Some(mut chunk) = spare else {
        return (0..cells).map(|_| AtomicU64::new(0)).collect();
    };
    chunk.iter_mut().for_each(|cell| *cell.get_mut() = 0);
    chunk
}

/// Keeps cells for later launches.
pub(super) fn recycle(cells: impl Iterator<Item = ShadowCells>) {
    let mut spare = spare_chunks();
    let free = MAX_SPARE.saturating_sub(spare.len());
    spare.extend(cells.filter(|cells| cells.len() == CHUNK).take(free));
}

fn spare_chunks() -> MutexGuard<'static, Vec<ShadowCells>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}
