//! What a reduction needs beside its input.

use std::sync::{Mutex, PoisonError};

use cuda_std::element::Plain;
use kernels::reduce::spans;

use crate::{Buffer, Error, Gpu, ViewMut};

/// Room for partial states and tickets.
#[derive(Debug)]
pub(super) struct Workspace {
    /// 16 bytes for each state, of which it may need fewer.
    pub(super) partials: Buffer<[u64; 2]>,
    /// As many mailboxes, empty between launches.
    mailboxes: Buffer<[u64; 2]>,
    /// 0 between launches: the kernels leave them so.
    pub(super) tickets: Buffer<u32>,
}

impl Workspace {
    pub(super) fn new(gpu: &Gpu, partials: usize, tickets: usize) -> Result<Self, Error> {
        let (mailboxes, tickets) = (gpu.zeroed(partials)?, gpu.zeroed(tickets)?);
        Ok(Self { partials: gpu.zeroed(partials)?, mailboxes, tickets })
    }

    /// Partials and tickets for long spans with states of type `S`.
    pub(super) fn of_spans<S: Plain>(&mut self) -> (ViewMut<'_, [u64; 2]>, ViewMut<'_, u32>) {
        let partials = if spans::fits_mailbox::<S>() { &mut self.mailboxes } else { &mut self.partials };
        (partials.view_mut(), self.tickets.view_mut())
    }

    fn has_room(&self, partials: usize, tickets: usize) -> bool {
        self.partials.len() >= partials && self.tickets.len() >= tickets
    }
}

/// Workspaces that wait for the next blocking call.
#[derive(Default)]
pub(crate) struct Workspaces(Mutex<Vec<Workspace>>);

impl Workspaces {
    /// One with at least this room, new if there is none.
    pub(super) fn take(&self, gpu: &Gpu, partials: usize, tickets: usize) -> Result<Workspace, Error> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = waiting.iter().position(|workspace| workspace.has_room(partials, tickets)) {
            return Ok(waiting.swap_remove(at));
        }
        // Too small for this call, and so for the next like it: one that grows takes its place.
        waiting.pop();
        drop(waiting);
        // Most reductions of a whole buffer need no more.
        Workspace::new(gpu, partials.max(4096), tickets.max(64))
    }

    /// Keeps one whose work has been done without an error: after one, tickets may not be 0.
    pub(super) fn put_back(&self, workspace: Workspace) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(workspace);
    }
}
