//! Marks of neighbouring elements, and where they are kept from launch to launch.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A mark and flags for each of some neighbours, which are made together.
pub(super) type Marks = Box<[AtomicU64]>;

/// So many are made together, when the first of them is needed; fewer at an array's end.
pub(super) const CHUNK: usize = 32768;

/// Marks of whole chunks, of launches that have ended. Memory that was given back to the system comes back page by
/// page, each by a fault that takes as long as the checks of a hundred accesses.
static SPARE: Mutex<Vec<Marks>> = Mutex::new(Vec::new());

/// So many are kept: 16 MiB of them.
const MOST_SPARE: usize = 64;

pub(super) fn no_marks(cells: usize) -> Marks {
    let used = if cells == CHUNK { spare().pop() } else { None };
    let Some(mut marks) = used else {
        return (0..cells).map(|_| AtomicU64::new(0)).collect();
    };
    marks.iter_mut().for_each(|mark| *mark.get_mut() = 0);
    marks
}

/// Keeps marks for launches to come.
pub(super) fn keep(marks: impl Iterator<Item = Marks>) {
    let mut spare = spare();
    let room = MOST_SPARE.saturating_sub(spare.len());
    spare.extend(marks.filter(|marks| marks.len() == CHUNK).take(room));
}

fn spare() -> MutexGuard<'static, Vec<Marks>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}
