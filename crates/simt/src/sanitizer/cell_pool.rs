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

const _: () = assert!(align_of::<AtomicU64>() == align_of::<u64>(), "a box of `u64` can become one of `AtomicU64`");

/// Allocates empty cells. Without optimization, a loop over the cells would take half as long as the checks of their
/// accesses.
pub(super) fn allocate(cells: usize) -> ShadowCells {
    let spare = if cells == CHUNK { spare_chunks().pop() } else { None };
    let Some(mut chunk) = spare else {
        let zeros = Box::into_raw(vec![0_u64; cells].into_boxed_slice());
        // SAFETY: an `AtomicU64` has the size, the bits and, as asserted above, the alignment of a `u64`. Nothing else
        // points to the box.
        return unsafe { Box::from_raw(zeros as *mut [AtomicU64]) };
    };
    // SAFETY: the slice is borrowed mutably, and bytes of 0 are valid for an `AtomicU64`.
    unsafe { chunk.as_mut_ptr().write_bytes(0, chunk.len()) };
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
