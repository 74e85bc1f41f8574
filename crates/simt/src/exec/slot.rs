//! The state of one lane of the block.

use std::cell::Cell;
use std::panic::Location;
use std::ptr::NonNull;

use super::operation::Operation;
use super::stack::FibreYielder;
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
    /// Has exited, and arrived at the block's next barrier before: see [`leave`](super::lane::leave).
    Left,
    /// Has exited.
    Exited,
}

/// An operation at which a lane waits, with its operands.
///
/// The fields are stored in one `Cell`: without optimization, a write to a `Cell` is half a dozen calls.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    pub operation: Operation,
    pub mask: u32,
    pub value: u64,
    pub operand: u32,
    pub width: u32,
    pub location: &'static Location<'static>,
}

/// The state of a lane.
pub(crate) struct Slot {
    pub thread: Cell<Dim3>,
    pub state: Cell<State>,
    /// The fibre that the lane is on, from its start to its exit.
    pub fibre: Cell<usize>,
    /// The fibre's yielder, which returns to the scheduler.
    pub yielder: Cell<Option<NonNull<FibreYielder>>>,
    /// The last operation that the lane has waited at.
    pub wait: Cell<Wait>,
    pub result: Cell<(u64, bool)>,
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
            wait: Cell::new(Wait {
                operation: Operation::SyncWarp,
                mask: 0,
                value: 0,
                operand: 0,
                width: 32,
                location: Location::caller(),
            }),
            result: Cell::new((0, false)),
            waits: Cell::new(0),
            spins: Cell::new(false),
            switches: Cell::new(0),
        }
    }

    /// Whether the lane has not started or can be resumed.
    pub fn can_run(&self) -> bool {
        matches!(self.state.get(), State::NotStarted | State::Ready)
    }

    /// Whether the lane has exited.
    pub fn has_exited(&self) -> bool {
        matches!(self.state.get(), State::Left | State::Exited)
    }

    /// Whether the lane has started and not exited.
    #[inline]
    pub fn is_on_a_fibre(&self) -> bool {
        matches!(self.state.get(), State::Waiting | State::Ready | State::Asleep)
    }

    /// Whether the lane waits for lanes of its warp.
    #[inline]
    pub fn waits_for_warp(&self) -> bool {
        matches!(self.state.get(), State::Waiting) && !matches!(self.wait.get().operation, Operation::Barrier(_))
    }

    /// Whether the lane waits at the operation of this [code](Operation::code) with this mask.
    #[inline(always)]
    pub fn is_at(&self, code: u32, mask: u32) -> bool {
        if !matches!(self.state.get(), State::Waiting) {
            return false;
        }
        let wait = self.wait.get();
        wait.mask == mask && wait.operation.code() == code
    }
}
