//! Memory that graphs of other libraries use.
//!
//! Another library may capture the stream of a handle into a graph, and start the graph at any later time. So a graph
//! keeps the memory that captured work uses, as a [`Recording`](crate::Recording) does. The driver tells on a thread of
//! its own that a graph is gone, where its functions may not be called. So the memory waits in a list, and the next
//! call that allocates, or takes a workspace, frees it.

use std::collections::BTreeMap;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::Memory;

/// A capture by another library.
#[derive(Clone)]
pub struct Captured {
    pub(super) id: u64,
    pub(super) memory: Arc<GraphMemory>,
}

impl Captured {
    /// The capture's identifier, which no other capture of the process has.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Keeps memory allocated until the graph is gone.
    pub(crate) fn keep(&self, memory: &Memory) {
        self.memory.0.lock().unwrap_or_else(PoisonError::into_inner).insert(memory.id(), memory.clone());
    }
}

/// The memory that a graph's work uses, by its identifiers.
#[derive(Default)]
pub(super) struct GraphMemory(Mutex<BTreeMap<usize, Memory>>);

/// What a graph owns. It is dropped where no function of the driver may be called.
pub(super) struct OwnedByGraph(pub Arc<GraphMemory>);

impl Drop for OwnedByGraph {
    fn drop(&mut self) {
        let memory = mem::take(&mut *self.0.0.lock().unwrap_or_else(PoisonError::into_inner));
        RELEASED.lock().unwrap_or_else(PoisonError::into_inner).extend(memory.into_values());
        IS_ANY_RELEASED.store(true, Ordering::Release);
    }
}

/// The memory of graphs that are gone.
static RELEASED: Mutex<Vec<Memory>> = Mutex::new(Vec::new());
static IS_ANY_RELEASED: AtomicBool = AtomicBool::new(false);

/// Frees the memory of graphs that are gone.
pub(crate) fn free_released() {
    if IS_ANY_RELEASED.load(Ordering::Relaxed) && IS_ANY_RELEASED.swap(false, Ordering::Acquire) {
        // Dropped after the lock is released, because a drop calls the driver.
        let released = mem::take(&mut *RELEASED.lock().unwrap_or_else(PoisonError::into_inner));
        drop(released);
    }
}
