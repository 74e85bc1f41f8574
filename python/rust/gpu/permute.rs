//! Copies of arrays on a GPU with their axes in another order.

use pyo3::prelude::*;
use warpfold::{Error, Gpu};

use super::array::GpuArray;
use super::elements::Elements;
use super::target::Target;
use super::work::Work;

/// A new array in C order with the axes of another one in this order.
pub fn permuted<'py>(py: Python<'py>, array: &GpuArray, order: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    let from = array.elements.permuted(order);
    let work = Work::new(py, &[array])?;
    let mut target = Target::new(py, &work, array, array.dtype, &from.extents)?;
    work.run(|gpu| copy(gpu, array.dtype.size(), &from, &mut target.elements))?;
    work.finish(py)?;
    Ok(target.object)
}

/// Copies elements of `size` bytes to an array of the same extents.
pub fn copy(gpu: &Gpu, size: usize, from: &Elements, to: &mut Elements) -> Result<(), Error> {
    macro_rules! copy {
        ($type:ty) => {
            gpu.copy_array(from.borrow::<$type>(gpu)?.view(), to.borrow_mut::<$type>(gpu)?.view_mut())
        };
    }
    match size {
        1 => copy!(u8),
        2 => copy!(u16),
        4 => copy!(u32),
        8 => copy!(u64),
        16 => copy!(u128),
        size => unreachable!("elements of {size} bytes"),
    }
}
