//! Checks of the arrays of a call.

use cuda_std::element::Stored;

use super::{ArrayView, ArrayViewMut, Layout};
use crate::Error;

/// Checks that two arrays have the same extents.
pub(crate) fn same_extents(operation: &'static str, from: &Layout, to: &Layout) -> Result<(), Error> {
    if from.rank() != to.rank() {
        let (found, expected) = (to.rank(), from.rank());
        return Err(Error::Length { operation, what: "the target's list of axes", found, expected });
    }
    match (0..from.rank()).find(|&axis| from.extents()[axis] != to.extents()[axis]) {
        None => Ok(()),
        Some(axis) => {
            let expected = format!("{}, as the source's", from.extents()[axis]);
            let found = to.extents()[axis];
            Err(Error::Extent { operation, axis, what: "the target's extent", found, expected })
        }
    }
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
