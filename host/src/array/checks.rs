//! Checks of the arrays of a call.

use cuda_std::element::Stored;

use super::{ArrayView, ArrayViewMut, Layout};
use crate::Error;

/// The names of two arrays that have the same extents, in messages.
pub(crate) struct Names {
    pub axes: &'static str,
    pub extent: &'static str,
    pub other: &'static str,
}

/// A copy's target, and its source.
pub(crate) const TARGET: Names =
    Names { axes: "the target's list of axes", extent: "the target's extent", other: "the source's" };

/// A second input, and the first one.
pub(crate) const SECOND_INPUT: Names =
    Names { axes: "the second input's list of axes", extent: "the second input's extent", other: "the first one's" };

/// Checks that an array has the same extents as another one.
pub(crate) fn same_extents(
    operation: &'static str,
    other: &Layout,
    layout: &Layout,
    names: Names,
) -> Result<(), Error> {
    if other.rank() != layout.rank() {
        let (found, expected) = (layout.rank(), other.rank());
        return Err(Error::Length { operation, what: names.axes, found, expected });
    }
    match (0..other.rank()).find(|&axis| other.extents()[axis] != layout.extents()[axis]) {
        None => Ok(()),
        Some(axis) => {
            let expected = format!("{}, as {}", other.extents()[axis], names.other);
            let found = layout.extents()[axis];
            Err(Error::Extent { operation, axis, what: names.extent, found, expected })
        }
    }
}

/// Two layouts, broadcast to common extents as in NumPy: axes are counted from the last, and an axis of one element, or
/// none, is repeated.
pub(crate) fn broadcast(operation: &'static str, [first, second]: [&Layout; 2]) -> Result<[Layout; 2], Error> {
    let rank = first.rank().max(second.rank());
    let extent = |layout: &Layout, axis: usize| match (axis + layout.rank()).checked_sub(rank) {
        Some(axis) => layout.extents()[axis],
        None => 1,
    };
    let mut extents = vec![1; rank];
    for (axis, common) in extents.iter_mut().enumerate() {
        *common = match (extent(first, axis), extent(second, axis)) {
            (of_first, 1) => of_first,
            (1, of_second) => of_second,
            (of_first, found) if of_first == found => found,
            (of_first, found) => {
                let (axis, what) = (axis + second.rank() - rank, "the second input's extent");
                return Err(Error::Extent { operation, axis, what, found, expected: format!("{of_first} or 1") });
            }
        };
    }
    Ok([first.broadcast_to(&extents)?, second.broadcast_to(&extents)?])
}

/// Checks that the addresses of the elements of an input and of an output, from the first to the last, do not overlap.
pub(crate) fn check_apart<T: Stored, U: Stored>(
    operation: &'static str,
    input: &ArrayView<'_, T>,
    output: &ArrayViewMut<'_, U>,
) -> Result<(), Error> {
    let range = |address: u64, layout: &Layout, size: usize| {
        let (first, last) = layout.positions()?;
        // Inside a view, so all of these fit.
        let byte = |position: i128| address + (position as usize * size) as u64;
        Some(byte(first)..byte(last + 1))
    };
    let of_input = range(input.elements().address(), input.layout(), size_of::<T>());
    match (of_input, range(output.address(), output.layout(), size_of::<U>())) {
        (Some(input), Some(output)) if input.start < output.end && output.start < input.end => {
            Err(Error::SharedMemory { operation })
        }
        _ => Ok(()),
    }
}
