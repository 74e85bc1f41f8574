//! Operators with an order of their own, in the executor.

use cuda_std::element::Element;
use threads::PerProcess;

use super::form::{Axis, Walk};
use super::memory::Memory;
use super::{OPERATION, Reduction};
use crate::{ArrayView, Error, Gpu, Layout, Reduces};

/// Writes the results of a reduction by the kernels, whose order the results have.
pub(crate) fn reduce<O: Reduces<T, 1>, T: Element>(
    operator: O,
    reduction: &Reduction<'_, T, 1>,
    output: &mut [O::Output],
) -> Result<(), Error> {
    static EXECUTOR: PerProcess<Gpu> = PerProcess::new();
    let gpu = EXECUTOR.get_or_make(Gpu::simt);
    let (view, axes) = (&reduction.views()[0], reduction.axes());
    let size = size_of::<T>();
    let (buffer, layout) = match view.as_slice() {
        Some(slice) => {
            let bytes = view.layout();
            let strides: Vec<isize> = bytes.strides().iter().map(|stride| stride / size as isize).collect();
            let layout = Layout::strided(bytes.extents(), &strides, bytes.offset() / size)?;
            (gpu.upload(&slice[..layout.required_len()])?, layout)
        }
        None => (gpu.upload(&copy(reduction)?)?, Layout::contiguous(view.extents())?),
    };
    let results = gpu.reduce(operator, ArrayView::new(buffer.view(), &layout)?, axes)?;
    gpu.download_into(&results, output)
}

/// The elements in C order.
fn copy<T: Element>(reduction: &Reduction<'_, T, 1>) -> Result<Vec<T>, Error> {
    let view = &reduction.views()[0];
    let (memory, layout) = (Memory::of(view), view.layout());
    let mut elements = Vec::new();
    let bytes = (layout.len() * size_of::<T>()) as u64;
    elements.try_reserve_exact(layout.len()).map_err(|_| Error::HostMemory { operation: OPERATION, bytes })?;
    let axes = layout.extents().iter().zip(layout.strides());
    let axes: Vec<Axis<1>> = axes.map(|(&extent, &stride)| Axis { extent, strides: [stride], step: 0 }).collect();
    let (mut walk, mut buffer) = (Walk::new(&axes, 0), [T::default()]);
    for _ in 0..layout.len() {
        // SAFETY: the walk is over the view's axes.
        elements.extend_from_slice(unsafe { memory.block(layout.offset() as isize + walk.at[0], 0, 1, &mut buffer) });
        walk.advance();
    }
    Ok(elements)
}
