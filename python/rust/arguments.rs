//! Arguments of the functions that reduce, and their errors.

use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use warpfold::{Axes, Error};

use crate::array::type_name;
use crate::dtype::DType;
use crate::operators::{Function, results};

/// The arguments `axis` and `keepdims`.
pub struct AxesArgument {
    pub axes: Axes,
    /// The axes, if not all are reduced.
    named: Option<Vec<isize>>,
    keepdims: bool,
}

/// The axes that an argument names: None for all, an integer, or a tuple or list of integers.
pub fn axes(axis: Option<&Bound<'_, PyAny>>, keepdims: bool) -> PyResult<AxesArgument> {
    let (axes, named) = match axis {
        None => (Axes::ALL, None),
        Some(axis) if axis.is_instance_of::<PyTuple>() || axis.is_instance_of::<PyList>() => {
            let named: Vec<isize> = axis.try_iter()?.map(|axis| one_axis(&axis?)).collect::<PyResult<_>>()?;
            (Axes::from(&named[..]), Some(named))
        }
        Some(axis) => {
            let axis = one_axis(axis)?;
            (Axes::from(axis), Some(vec![axis]))
        }
    };
    Ok(AxesArgument { axes: if keepdims { axes.keep_dims() } else { axes }, named, keepdims })
}

impl AxesArgument {
    /// The extents of the result of a reduction of an array of these extents.
    pub fn output_extents(&self, extents: &[usize]) -> Result<Vec<usize>, Error> {
        let (operation, rank) = ("reduce", extents.len());
        let mut names = vec![None; rank];
        for &name in self.named.iter().flatten() {
            let axis = if name < 0 { name.checked_add_unsigned(rank) } else { Some(name) };
            let axis = axis.and_then(|axis| usize::try_from(axis).ok()).filter(|axis| *axis < rank);
            let axis = axis.ok_or(Error::Axis { operation, axis: name, rank })?;
            if let Some(first) = names[axis].replace(name) {
                return Err(Error::RepeatedAxis { operation, axis, first, second: name });
            }
        }
        let axes = extents.iter().zip(names);
        let kept = axes.filter_map(|(&extent, name)| match (self.named.is_some() && name.is_none(), self.keepdims) {
            (true, _) => Some(extent),
            (false, true) => Some(1),
            (false, false) => None,
        });
        Ok(kept.collect())
    }
}

/// The axis that an integer names.
pub fn one_axis(axis: &Bound<'_, PyAny>) -> PyResult<isize> {
    axis.extract().map_err(|error: PyErr| match error.is_instance_of::<PyTypeError>(axis.py()) {
        true => PyTypeError::new_err(format!("an axis is an integer, not `{}`", type_name(axis))),
        false => PyValueError::new_err("there is no axis of such a number"),
    })
}

/// The type of a function's results, and how the argument `dtype` is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The elements are reduced as they are.
    Result(DType),
    /// The elements are converted first, as the array API standard says.
    OfConverted(DType),
}

/// The type of a function's results: that of the argument `dtype`, or the usual one.
pub fn wanted(function: Function, dtype: DType, argument: Option<&Bound<'_, PyAny>>) -> PyResult<Wanted> {
    if let Some(argument) = argument {
        let wanted = DType::from_argument(argument)?;
        // A conversion to a narrower type of floats would round elements.
        let widens = dtype.is_integer() || dtype == DType::Bool || dtype.size() < wanted.size();
        let is_direct = results(function, dtype).contains(&wanted);
        if wanted.is_float() && widens && !is_direct && results(function, wanted).contains(&wanted) {
            return Ok(Wanted::OfConverted(wanted));
        }
    }
    result(function, dtype, argument).map(Wanted::Result)
}

/// The type of a function's results without a conversion of the elements.
pub fn result(function: Function, dtype: DType, argument: Option<&Bound<'_, PyAny>>) -> PyResult<DType> {
    let possible = results(function, dtype);
    let name = function.name();
    let Some(&usual) = possible.first() else {
        let remedy = match dtype {
            DType::Complex64 | DType::Complex128 => "use x.real and x.imag",
            _ => "use x.astype('float64')",
        };
        return Err(PyTypeError::new_err(format!("{name} takes no elements of {}: {remedy}", dtype.name())));
    };
    let Some(argument) = argument else { return Ok(usual) };
    let wanted = DType::from_argument(argument)?;
    if possible.contains(&wanted) || (usual.is_integer() && wanted.is_integer()) {
        return Ok(wanted);
    }
    let names: Vec<&str> = possible.iter().map(|dtype| dtype.name()).collect();
    let (found, wanted) = (dtype.name(), wanted.name());
    let or = if usual.is_integer() { ", or of another type of integers or floats" } else { "" };
    Err(PyTypeError::new_err(format!(
        "{name} of {found} has results of {}{or}, not of {wanted}: use x.astype('{wanted}')",
        names.join(" or ")
    )))
}

/// Python's exception for an error.
pub fn exception(error: &Error) -> PyErr {
    let text = match error {
        Error::NoDriver(why) => format!("this array is on a GPU, and no CUDA driver was found ({why}): see wf.info()"),
        Error::Captured { .. } => {
            format!("{error}. A function with `out=`, as wf.sum(x, out=y), writes to memory of the device")
        }
        _ => error.to_string(),
    };
    match error {
        Error::OutOfMemory { .. } | Error::HostMemory { .. } => PyMemoryError::new_err(text),
        Error::Axis { .. }
        | Error::RepeatedAxis { .. }
        | Error::TooManyAxes { .. }
        | Error::TooFewAxes { .. }
        | Error::IndexOverAxes { .. }
        | Error::Empty { .. }
        | Error::Shape { .. }
        | Error::Extent { .. }
        | Error::Offsets { .. }
        | Error::NotDeviceMemory { .. }
        | Error::Unaligned { .. }
        | Error::ShapeOverflow { .. }
        | Error::ArrayTooLarge { .. }
        | Error::TooManyElements(_) => PyValueError::new_err(text),
        _ => PyRuntimeError::new_err(text),
    }
}

/// The error of two arrays of which one is on a GPU and one is not.
pub fn two_places() -> PyErr {
    PyTypeError::new_err("one array is on a GPU and the other in host memory: copy one to where the other is")
}
