//! The state of one lane of the block.

use std::cell::Cell;
use std::panic::Location;
use std::ptr::NonNull;

use corosensei::Yielder;

use super::operation::Operation;
use crate::dim::Dim3;

/// Whether a lane can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    NotStarted,
    /// Waits for other lanes, at the slot's operation.
    Waiting,
    /// Can be resumed: its operation is complete, or it has yielded to other lanes.
    Ready,
    /// Lets all other lanes run first.
    Asleep,
    Exited,
}

/// The state of a lane, and the operands of the operation that it waits at.
pub(crate) struct Slot {
    pub thread: Cell<Dim3>,
    pub state: Cell<State>,
    /// The fibre that the lane is on, from its start to its exit.
    pub fibre: Cell<usize>,
    /// The fibre's yielder, which returns to the scheduler.
    pub yielder: Cell<Option<NonNull<Yielder<(), ()>>>>,
    pub operation: Cell<Operation>,
    pub mask: Cell<u32>,
    pub value: Cell<u64>,
    pub operand: Cell<u32>,
    pub width: Cell<u32>,
    pub result: Cell<(u64, bool)>,
    pub location: Cell<&'static Location<'static>>,
    /// The number of operations that the lane has waited at; it wraps.
    pub waits: Cell<u32>,
    /// The lane has spun for at least [`ROUNDS`](super::deadlock::ROUNDS) rounds.
    pub spins: Cell<bool>,
    /// The block's count of switches when the lane last checked whether the block waits.
    pub switches: Cell<u64>,
}

impl Slot {
    #[track_caller]
    pub fn new() -> Self {
        Self {
            thread: Cell::new(Dim3::new(0, 0, 0)),
            state: Cell::new(State::NotStarted),
            fibre: Cell::new(usize::MAX),
            yielder: Cell::new(None),
            operation: Cell::new(Operation::SyncWarp),
            mask: Cell::new(0),
            value: Cell::new(0),
            operand: Cell::new(0),
            width: Cell::new(32),
            result: Cell::new((0, false)),
            location: Cell::new(Location::caller()),
            waits: Cell::new(0),
            spins: Cell::new(false),
            switches: Cell::new(0),
        }
    }

    /// Whether the lane has not started or can be resumed.
    pub fn can_run(&self) -> bool {
        matches!(self.state.get(), State::NotStarted | State::Ready)
    }

    /// Whether the lane has started and not exited.
    #[inline]
    pub fn is_on_a_fibre(&self) -> bool {
        matches!(self.state.get(), State::Waiting | State::Ready | State::Asleep)
    }

    /// Whether the lane waits for lanes of its warp.
    pub fn waits_for_warp(&self) -> bool {
        self.state.get() == State::Waiting && !matches!(self.operation.get(), Operation::Barrier(_))
    }

    /// Whether the lane waits at this operation with this mask.
    pub fn is_at(&self, operation: Operation, mask: u32) -> bool {
        self.state.get() == State::Waiting && self.operation.get() == operation && self.mask.get() == mask
    }
}
