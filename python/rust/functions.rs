//! The functions that reduce.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::arguments::{AxesArgument, Wanted, axes, exception, one_axis, result, two_places, wanted};
use crate::array::{AnyArray, HostArray};
use crate::dtype::{DType, numpy};
use crate::gpu;
use crate::layout::Layout;
use crate::operators::{self, Function, Operand, Reduced};
use crate::output::{Output, scalar, shape};
use crate::states::different;

type Object<'py> = Bound<'py, PyAny>;

/// Reduces an array to one result for each element of the other axes.
fn reduce<'py>(
    function: Function,
    x: &Object<'py>,
    axes: AxesArgument,
    dtype: Option<&Object<'py>>,
    out: Option<&Object<'py>>,
) -> PyResult<Object<'py>> {
    let py = x.py();
    let array = AnyArray::new(x, function.name())?;
    let to = match wanted(function, array.dtype(), dtype)? {
        Wanted::Result(to) => to,
        Wanted::OfConverted(to) => return reduce(function, &converted(x, &array, to)?, axes, None, out),
    };
    let array = match &array {
        AnyArray::Host(array) => array,
        AnyArray::Gpu(array) => return gpu::reduce::reduce(py, function, array, &axes, to, out),
    };
    // The operator's results may have more bits than these.
    let of_operator = operators::results(function, array.dtype);
    let of_operator = if of_operator.contains(&to) { to } else { of_operator[0] };
    let operand = Operand::from(array);
    let reduced = py.detach(|| operators::reduce(function, &operand, axes.axes, of_operator));
    let reduced = reduced.map_err(|error| exception(&error))?;
    write(py, &reduced, 0, to, out, &[array])
}

/// An array's elements, converted to floats by NumPy or by the array's library.
fn converted<'py>(x: &Object<'py>, array: &AnyArray, to: DType) -> PyResult<Object<'py>> {
    let py = x.py();
    let class = match array {
        AnyArray::Host(array) => array.maker,
        AnyArray::Gpu(array) => Some(array.class),
    };
    if let Some(class) = class {
        return gpu::library::converted(x, class, to);
    }
    let x = numpy(py)?.call_method1(pyo3::intern!(py, "asarray"), (x,))?;
    x.call_method1(pyo3::intern!(py, "astype"), (to.to_numpy(py)?,))
}

/// Writes results, or those at byte `start` of each, to `out` or a new array.
fn write<'py>(
    py: Python<'py>,
    reduced: &Reduced,
    start: usize,
    dtype: DType,
    out: Option<&Object<'py>>,
    inputs: &[&HostArray],
) -> PyResult<Object<'py>> {
    // The low bytes of each result.
    let bytes = &reduced.bytes()[start.min(reduced.bytes().len())..];
    if out.is_none() && reduced.extents.is_empty() {
        return scalar(py, dtype, &bytes[..dtype.size()], inputs[0]);
    }
    let mut output = Output::new(py, out, dtype, &reduced.extents, inputs)?;
    output.write(bytes, &Layout::spread(&reduced.extents, reduced.stride, dtype.size()));
    Ok(output.into_array())
}

/// The sum of all elements, or along axes.
///
/// Floats: the exact sum, rounded once, to the type of the elements, or to a wider type `dtype`. Integers and bool: in
/// 64 bits, or in the integer type `dtype`, and wraps; with a type of floats, the exact sum of the elements as such
/// floats. `out` is an array for the result. An array on a GPU has results there, of its library.
///
/// >>> import numpy as np, warpfold as wf
/// >>> float(wf.sum(np.array([1e308, 1e308, -1e308])))
/// 1e+308
/// >>> wf.sum(np.array([[1, 2, 3], [4, 5, 6]]), axis=0)
/// array([5, 7, 9])
/// >>> wf.sum(np.ones((2, 3), np.float32), axis=(0, -1), dtype='float64', keepdims=True)
/// array([[6.]])
#[pyfunction]
#[pyo3(signature = (x, /, *, axis=None, dtype=None, keepdims=false, out=None))]
pub fn sum<'py>(
    x: &Object<'py>,
    axis: Option<&Object<'py>>,
    dtype: Option<&Object<'py>>,
    keepdims: bool,
    out: Option<&Object<'py>>,
) -> PyResult<Object<'py>> {
    reduce(Function::Sum, x, axes(axis, keepdims)?, dtype, out)
}

/// The product of all elements, or along axes.
///
/// Floats: rounded at each multiplication, in an order that depends only on the shape and the axes; float16 and
/// bfloat16 are multiplied as float32. In host memory this is slow, 7 to 30 ns an element and 0.3 ms a call on two
/// cores: it runs the kernels of the GPU on the host. Integers and bool: in 64 bits, or in the integer type `dtype`,
/// and wraps.
///
/// >>> import numpy as np, warpfold as wf
/// >>> int(wf.prod(np.arange(1, 11)))
/// 3628800
#[pyfunction]
#[pyo3(signature = (x, /, *, axis=None, dtype=None, keepdims=false, out=None))]
pub fn prod<'py>(
    x: &Object<'py>,
    axis: Option<&Object<'py>>,
    dtype: Option<&Object<'py>>,
    keepdims: bool,
    out: Option<&Object<'py>>,
) -> PyResult<Object<'py>> {
    reduce(Function::Prod, x, axes(axis, keepdims)?, dtype, out)
}

/// Defines a function with the arguments that most have.
macro_rules! reductions {
    ($($(#[doc = $doc:literal])* $name:ident, $function:ident;)*) => {$(
        $(#[doc = $doc])*
        #[pyfunction]
        #[pyo3(signature = (x, /, *, axis=None, keepdims=false, out=None))]
        pub fn $name<'py>(
            x: &Object<'py>,
            axis: Option<&Object<'py>>,
            keepdims: bool,
            out: Option<&Object<'py>>,
        ) -> PyResult<Object<'py>> {
            reduce(Function::$function, x, axes(axis, keepdims)?, None, out)
        }
    )*};
}

reductions! {
    /// The mean of all elements, or along axes: the exact mean, rounded once.
    ///
    /// It has the type of the elements, and of integers and bool float64. The mean of no elements is NaN.
    ///
    /// >>> import numpy as np, warpfold as wf
    /// >>> float(wf.mean(np.array([1e308, 1e308, 1e308])))
    /// 1e+308
    /// >>> wf.mean(np.array([[1, 2], [3, 5]]), axis=1)
    /// array([1.5, 4. ])
    mean, Mean;

    /// The smallest element, or along axes; NaN if there is a NaN.
    ///
    /// >>> import numpy as np, warpfold as wf
    /// >>> wf.min(np.array([[3, 1], [2, 4]]), axis=0)
    /// array([2, 1])
    min, Min;

    /// The largest element, or along axes; NaN if there is a NaN.
    ///
    /// >>> import numpy as np, warpfold as wf
    /// >>> wf.max(np.array([[3, 1], [2, 4]]), axis=0)
    /// array([3, 4])
    max, Max;

    /// Whether any element is not zero, or along axes. NaN is not zero. False without elements.
    ///
    /// >>> import numpy as np, warpfold as wf
    /// >>> wf.any(np.array([[0, 1], [0, 0]]), axis=1)
    /// array([ True, False])
    any, Any;

    /// Whether no element is zero, or along axes. NaN is not zero. True without elements.
    ///
    /// >>> import numpy as np, warpfold as wf
    /// >>> wf.all(np.array([[2, 1], [0, 1]]), axis=1)
    /// array([ True, False])
    all, All;

    /// The number of elements that are not zero, or along axes.
    ///
    /// >>> import numpy as np, warpfold as wf
    /// >>> int(wf.count_nonzero(np.array([0.0, 1.0, np.nan])))
    /// 2
    count_nonzero, CountNonzero;

    /// The number of NaN, or along axes.
    ///
    /// >>> import numpy as np, warpfold as wf
    /// >>> int(wf.count_nan(np.array([0.0, np.inf, np.nan])))
    /// 1
    count_nan, CountNan;

    /// The number of elements that are neither NaN nor infinite, or along axes.
    ///
    /// >>> import numpy as np, warpfold as wf
    /// >>> int(wf.count_finite(np.array([0.0, np.inf, np.nan])))
    /// 1
    count_finite, CountFinite;

    /// The sum of the squares of all elements, or along axes.
    ///
    /// Floats: the exact sum, rounded once, to the type of the elements. Integers: in 64 bits, and wraps.
    ///
    /// >>> import numpy as np, warpfold as wf
    /// >>> wf.sum_of_squares(np.array([[1, 2], [3, 4]]), axis=1)
    /// array([ 5, 25])
    sum_of_squares, SumOfSquares;
}

/// The index of the first smallest element: along an axis, or in C order of the whole array. NaN comes first.
///
/// >>> import numpy as np, warpfold as wf
/// >>> wf.argmin(np.array([[3, 1, 1], [2, 4, 6]]), axis=1)
/// array([1, 0])
#[pyfunction]
#[pyo3(signature = (x, /, *, axis=None, keepdims=false, out=None))]
pub fn argmin<'py>(
    x: &Object<'py>,
    axis: Option<&Object<'py>>,
    keepdims: bool,
    out: Option<&Object<'py>>,
) -> PyResult<Object<'py>> {
    axis.map(one_axis).transpose()?;
    reduce(Function::ArgMin, x, axes(axis, keepdims)?, None, out)
}

/// The index of the first largest element: along an axis, or in C order of the whole array. NaN comes first.
///
/// >>> import numpy as np, warpfold as wf
/// >>> int(wf.argmax(np.array([[3, 1, 1], [2, 4, 6]])))
/// 5
#[pyfunction]
#[pyo3(signature = (x, /, *, axis=None, keepdims=false, out=None))]
pub fn argmax<'py>(
    x: &Object<'py>,
    axis: Option<&Object<'py>>,
    keepdims: bool,
    out: Option<&Object<'py>>,
) -> PyResult<Object<'py>> {
    axis.map(one_axis).transpose()?;
    reduce(Function::ArgMax, x, axes(axis, keepdims)?, None, out)
}

/// The smallest and the largest element, in one pass, or along axes: a tuple of two results.
///
/// >>> import numpy as np, warpfold as wf
/// >>> wf.min_max(np.array([[3, 1], [2, 4]]), axis=0)
/// (array([2, 1]), array([3, 4]))
#[pyfunction]
#[pyo3(signature = (x, /, *, axis=None, keepdims=false))]
pub fn min_max<'py>(
    x: &Object<'py>,
    axis: Option<&Object<'py>>,
    keepdims: bool,
) -> PyResult<(Object<'py>, Object<'py>)> {
    let function = Function::MinMax;
    let array = AnyArray::new(x, function.name())?;
    let dtype = result(function, array.dtype(), None)?;
    let axes = axes(axis, keepdims)?;
    let array = match &array {
        AnyArray::Host(array) => array,
        AnyArray::Gpu(array) => return gpu::reduce::min_max(x.py(), array, &axes),
    };
    let operand = Operand::from(array);
    let reduced = x.py().detach(|| operators::reduce(function, &operand, axes.axes, dtype));
    let reduced = reduced.map_err(|error| exception(&error))?;
    // Each result is a pair.
    let part = |start| write(x.py(), &reduced, start, dtype, None, &[array]);
    Ok((part(0)?, part(dtype.size())?))
}

/// The Euclidean norm of all elements, or along axes: the root of the exact sum of squares, rounded once.
///
/// It has the type of the elements, and of integers float64. `ord` is 2.
///
/// >>> import numpy as np, warpfold as wf
/// >>> float(wf.vector_norm(np.array([3.0, 4.0]) * 2.0**1000)) / 2.0**1000
/// 5.0
#[pyfunction]
#[pyo3(signature = (x, /, *, axis=None, keepdims=false, ord=None, out=None))]
pub fn vector_norm<'py>(
    x: &Object<'py>,
    axis: Option<&Object<'py>>,
    keepdims: bool,
    ord: Option<f64>,
    out: Option<&Object<'py>>,
) -> PyResult<Object<'py>> {
    if ord.is_some_and(|ord| ord != 2.0) {
        return Err(PyValueError::new_err("vector_norm has the Euclidean norm only: ord=2"));
    }
    reduce(Function::VectorNorm, x, axes(axis, keepdims)?, None, out)
}

/// The dot products of two arrays along an axis; the other axes are broadcast.
///
/// Both have the same dtype, which the result has, too. Floats: the exact dot product, rounded once. Integers wrap.
///
/// >>> import numpy as np, warpfold as wf
/// >>> float(wf.vecdot(np.array([1e300, 3.0, -1e300]), np.array([1e300, 4.0, 1e300])))
/// 12.0
/// >>> wf.vecdot(np.array([[1, 2], [3, 4]]), np.array([1, 10]))
/// array([21, 43])
#[pyfunction]
#[pyo3(signature = (x1, x2, /, *, axis=-1, out=None), text_signature = "(x1, x2, /, *, axis=-1, out=None)")]
pub fn vecdot<'py>(
    x1: &Object<'py>,
    x2: &Object<'py>,
    axis: isize,
    out: Option<&Object<'py>>,
) -> PyResult<Object<'py>> {
    let py = x1.py();
    let (x, y) = (AnyArray::new(x1, "vecdot")?, AnyArray::new(x2, "vecdot")?);
    if x.dtype() != y.dtype() {
        return Err(different(x.dtype(), y.dtype()));
    }
    // What has a sum of squares has dot products.
    result(Function::SumOfSquares, x.dtype(), None).map_err(|_| {
        PyTypeError::new_err(format!("vecdot takes no elements of {}: use x.astype('float64')", x.dtype().name()))
    })?;
    // The axis is counted from the end, before arrays of different ranks are broadcast.
    let extent = |extents: &[usize]| {
        let at = if axis < 0 { extents.len().checked_add_signed(axis) } else { None };
        at.and_then(|at| extents.get(at).copied()).ok_or_else(|| {
            let (found, rank) = (shape(extents), extents.len());
            PyValueError::new_err(format!("vecdot: axis {axis} of an array of shape {found}: it is from -{rank} to -1"))
        })
    };
    let (a, b) = (extent(x.extents())?, extent(y.extents())?);
    if a != b {
        return Err(PyValueError::new_err(format!(
            "vecdot: {a} and {b} elements along axis {axis}: they must be equal"
        )));
    }
    let (x, y) = match (&x, &y) {
        (AnyArray::Host(x), AnyArray::Host(y)) => (x, y),
        (AnyArray::Gpu(x), AnyArray::Gpu(y)) => return gpu::reduce::vecdot(py, [x, y], axis, out),
        _ => return Err(two_places()),
    };
    let operands = (Operand::from(x), Operand::from(y));
    let reduced = py.detach(|| operators::vecdot(&operands.0, &operands.1, axis));
    let reduced = reduced.map_err(|error| exception(&error))?;
    write(py, &reduced, 0, x.dtype, out, &[x, y])
}
