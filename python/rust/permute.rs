//! Permutations of axes.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arguments::one_axis;
use crate::array::AnyArray;
use crate::gpu;
use crate::layout::Layout;
use crate::output::{Output, shape};

/// A new array in C order with the axes of `x` in another order: that of the tuple `axes`, whose numbers may be
/// negative.
///
/// Elements may also be complex.
///
/// >>> import numpy as np, warpfold as wf
/// >>> wf.permute_dims(np.zeros((2, 3, 4)), (2, 0, 1)).shape
/// (4, 2, 3)
#[pyfunction]
#[pyo3(signature = (x, /, axes))]
pub fn permute_dims<'py>(x: &Bound<'py, PyAny>, axes: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let axes: Vec<isize> = axes.try_iter()?.map(|axis| one_axis(&axis?)).collect::<PyResult<_>>()?;
    let array = AnyArray::new(x, "permute_dims")?;
    let rank = array.extents().len();
    let from_start = |axis: isize| if axis < 0 { axis.checked_add_unsigned(rank) } else { Some(axis) };
    let order: Option<Vec<usize>> =
        axes.iter().map(|&axis| usize::try_from(from_start(axis)?).ok().filter(|axis| *axis < rank)).collect();
    let is_permutation = |order: &Vec<usize>| order.len() == rank && (0..rank).all(|axis| order.contains(&axis));
    let order = order.filter(is_permutation).ok_or_else(|| {
        PyValueError::new_err(format!("axes {axes:?} are no permutation of the {rank} axes of an array"))
    })?;
    permuted(x.py(), &array, &order)
}

/// A new array in C order with the matrices of `x`, its last two axes, transposed.
///
/// >>> import numpy as np, warpfold as wf
/// >>> wf.matrix_transpose(np.array([[1, 2, 3], [4, 5, 6]]))
/// array([[1, 4],
///        [2, 5],
///        [3, 6]])
#[pyfunction]
#[pyo3(signature = (x, /))]
pub fn matrix_transpose<'py>(x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let array = AnyArray::new(x, "matrix_transpose")?;
    let extents = array.extents();
    let mut order: Vec<usize> = (0..extents.len()).collect();
    let Some(first) = extents.len().checked_sub(2) else {
        return Err(PyValueError::new_err(format!("an array of shape {} has no matrices", shape(extents))));
    };
    order.swap(first, first + 1);
    permuted(x.py(), &array, &order)
}

fn permuted<'py>(py: Python<'py>, array: &AnyArray, order: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    let array = match array {
        AnyArray::Host(array) => array,
        AnyArray::Gpu(array) => return gpu::permute::permuted(py, array, order),
    };
    let extents: Vec<usize> = order.iter().map(|&axis| array.layout.extents[axis]).collect();
    let strides = order.iter().map(|&axis| array.layout.strides[axis]).collect();
    let layout = Layout::new(extents, Some(strides), array.layout.size)?;
    let mut output = Output::new(py, None, array.dtype, &layout.extents, &[array])?;
    output.write(array.bytes(), &layout);
    Ok(output.into_array())
}
