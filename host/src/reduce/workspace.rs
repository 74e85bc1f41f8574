//! The memory that a reduction needs besides its input.

use std::mem;
use std::sync::{Mutex, PoisonError};

use cuda_std::element::Plain;

use crate::backend::captured::free_released;
use crate::{Buffer, Error, Gpu, ViewMut};

/// How much of each kind of memory a reduction needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WorkspaceSize {
    pub tile_states: usize,
    pub superaccumulators: usize,
    pub partials: usize,
    pub tickets: usize,
}

/// The memory in which blocks exchange states.
#[derive(Debug)]
pub(super) struct Workspace {
    /// Empty between launches: the kernels clear them.
    pub(super) tile_states: Buffer<[u64; 2]>,
    /// For the parts of exact sums that do not fit in tile states; 0 between launches: the kernels clear them.
    pub(super) superaccumulators: Buffer<i64>,
    /// At least 16 bytes for each state, even for a smaller one.
    pub(super) partials: Buffer<[u64; 2]>,
    /// 0 between launches: the kernels clear them.
    pub(super) tickets: Buffer<u32>,
    /// Memory of the host for one result, if a call has needed it.
    result: Option<Buffer<[u64; 2]>>,
    /// The identifier of the capture by another library whose work uses it.
    capture: Option<u64>,
}

impl WorkspaceSize {
    /// The larger of the two sizes of each kind of memory.
    fn max(self, other: Self) -> Self {
        Self {
            tile_states: self.tile_states.max(other.tile_states),
            superaccumulators: self.superaccumulators.max(other.superaccumulators),
            partials: self.partials.max(other.partials),
            tickets: self.tickets.max(other.tickets),
        }
    }
}

impl Workspace {
    pub(super) fn new(gpu: &Gpu, size: WorkspaceSize) -> Result<Self, Error> {
        let WorkspaceSize { tile_states, superaccumulators, partials, tickets } = size;
        let backend = gpu.backend();
        Ok(Self {
            tile_states: Buffer::workspace(&backend, tile_states)?,
            superaccumulators: Buffer::workspace(&backend, superaccumulators)?,
            partials: gpu.zeroed(partials)?,
            tickets: Buffer::workspace(&backend, tickets)?,
            result: None,
            capture: backend.capture()?.map(|capture| capture.id()),
        })
    }

    /// The workspace's size.
    fn workspace_size(&self) -> WorkspaceSize {
        WorkspaceSize {
            tile_states: self.tile_states.len(),
            superaccumulators: self.superaccumulators.len(),
            partials: self.partials.len(),
            tickets: self.tickets.len(),
        }
    }
}

/// Enough for most reductions of a whole buffer.
const INITIAL_SIZE: WorkspaceSize =
    WorkspaceSize { tile_states: 1024, superaccumulators: 16, partials: 4096, tickets: 64 };

/// Workspaces that no call uses at the moment, for the next blocking calls.
///
/// A graph of another library may run at any time, so captured work and other work do not share a workspace. The work
/// of one capture does: it has an order.
#[derive(Default)]
pub(crate) struct Workspaces(Mutex<Vec<Workspace>>);

impl Workspaces {
    /// Takes a workspace with at least this capacity, or makes one.
    pub(super) fn take(&self, gpu: &Gpu, size: WorkspaceSize) -> Result<Workspace, Error> {
        free_released();
        let capture = gpu.backend().capture()?.map(|capture| capture.id());
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_earlier_captures = idle.extract_if(.., |idle| idle.capture.is_some() && idle.capture != capture);
        let of_earlier_captures: Vec<Workspace> = of_earlier_captures.collect();
        let is_usable = |idle: &Workspace| idle.capture == capture;
        let is_large_enough = |idle: &Workspace| idle.workspace_size().max(size) == idle.workspace_size();
        if let Some(at) = idle.iter().position(|idle| is_usable(idle) && is_large_enough(idle)) {
            let workspace = idle.swap_remove(at);
            drop(idle);
            drop(of_earlier_captures);
            return Ok(workspace);
        }
        // A workspace that is too small for this call is too small for similar ones, so a larger one replaces it.
        let too_small = idle.iter().rposition(is_usable).map(|at| idle.swap_remove(at));
        drop(idle);
        drop(of_earlier_captures);
        let previous = too_small.map_or(INITIAL_SIZE, |workspace| workspace.workspace_size());
        Workspace::new(gpu, previous.max(size))
    }

    /// Keeps a workspace whose work ended without an error: after an error, tile states may not be empty and tickets
    /// not 0.
    pub(super) fn put_back(&self, workspace: Workspace) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(workspace);
    }
}

/// The length of [`Workspace::result`], and its bytes: room for the result of any built-in operator.
const RESULT_LEN: usize = 2;
const RESULT_BYTES: usize = RESULT_LEN * size_of::<[u64; 2]>();

/// The name of the operation, for messages.
const ALLOCATE_RESULT: &str = "allocate memory for a result";

impl Gpu {
    /// Starts a reduction to one result, waits for it, and returns it. `launch` gets a workspace of this size, and the
    /// memory for the result.
    ///
    /// The kernel writes the result to memory of the host that stays allocated: this saves a copy from the device, and
    /// an allocation (`docs/notes/calls.md`).
    pub(super) fn one_result<R: Plain>(
        &self,
        size: WorkspaceSize,
        launch: impl FnOnce(&mut Workspace, ViewMut<'_, R>) -> Result<(), Error>,
    ) -> Result<R, Error> {
        self.refuse_to_record("return a result to the host")?;
        let mut workspace = self.workspaces().take(self, size)?;
        let result = if size_of::<R>() <= RESULT_BYTES {
            let slot = workspace.result.take();
            let mut slot = slot.map_or_else(|| Buffer::on_host(&self.backend(), RESULT_LEN, ALLOCATE_RESULT), Ok)?;
            let launched = launch(&mut workspace, slot.view_mut().cast::<R>().slice(0, 1)?);
            if let Err(error) = launched.and_then(|()| self.synchronize()) {
                if self.synchronize().is_err() {
                    // A kernel may still write it.
                    mem::forget(slot);
                }
                return Err(error);
            }
            // SAFETY: only the work above writes the slot, and it is done.
            let result = unsafe { slot.read_on_host() };
            workspace.result = Some(slot);
            result
        } else {
            let mut output = Buffer::new(&self.backend(), 1, "allocate memory for a result")?;
            launch(&mut workspace, output.view_mut())?;
            self.download(&output)?[0]
        };
        self.workspaces().put_back(workspace);
        Ok(result)
    }
}
