//! Arrays by `__array_interface__`, NumPy's protocol, and what it has in common with `__cuda_array_interface__`.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::{HostArray, Owner, unsupported};
use crate::dtype::DType;
use crate::layout::Layout;

/// The array of an object, if it has the protocol.
pub fn read<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<HostArray>> {
    let py = object.py();
    let Some(interface) = object.getattr_opt(intern!(py, "__array_interface__"))? else { return Ok(None) };
    let interface = interface.cast_into::<PyDict>().map_err(|_| wrong("is not a dict"))?;
    let entry = |key: &Bound<'py, PyString>| -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(interface.get_item(key)?.filter(|value| !value.is_none()))
    };
    if entry(intern!(py, "mask"))?.is_some() {
        return Err(unsupported("elements with a mask", "pass those without it"));
    }
    let typestr = entry(intern!(py, "typestr"))?.ok_or_else(|| wrong("has no `typestr`"))?;
    let typestr: String = typestr.extract().map_err(|_| wrong("has a `typestr` that is no string"))?;
    let dtype = dtype(&typestr, object)?;

    let extents = entry(intern!(py, "shape"))?.ok_or_else(|| wrong("has no `shape`"))?;
    let extents = integers(&extents, "shape")?;
    let strides = entry(intern!(py, "strides"))?.map(|strides| integers(&strides, "strides")).transpose()?;
    let layout = Layout::new(extents, strides, dtype.size())?;

    let data = entry(intern!(py, "data"))?.ok_or_else(|| wrong("has no `data`"))?;
    let (address, is_read_only): (usize, bool) = data.extract().map_err(|_| wrong("has no address in its `data`"))?;
    // The dict belongs to the object, and the object keeps the memory.
    let owner = Owner::Object { _object: object.clone().unbind() };
    HostArray::at(address, dtype, layout, is_read_only, owner).map(Some)
}

fn wrong(what: &str) -> PyErr {
    PyTypeError::new_err(format!("the `__array_interface__` {what}"))
}

/// The integers of a tuple.
pub fn integers<'py, T: FromPyObjectOwned<'py>>(tuple: &Bound<'py, PyAny>, key: &str) -> PyResult<Vec<T>> {
    let tuple = tuple.cast::<PyTuple>().map_err(|_| wrong(&format!("has a `{key}` that is no tuple")))?;
    let integer = |value: Bound<'py, PyAny>| {
        let shown = value.repr().map_or_else(|_| "?".to_owned(), |shown| shown.to_string());
        value.extract().map_err(|_| PyValueError::new_err(format!("{shown} is no number for `{key}`")))
    };
    tuple.iter().map(integer).collect()
}

/// The type of the elements.
pub fn dtype(typestr: &str, object: &Bound<'_, PyAny>) -> PyResult<DType> {
    let mut letters = typestr.chars();
    let (Some(order), Some(kind)) = (letters.next(), letters.next()) else {
        return Err(wrong(&format!("has the `typestr` {typestr:?}")));
    };
    let size: usize = letters.as_str().parse().unwrap_or(0);
    match kind {
        'O' => return Err(unsupported("objects", "use x.astype('float64') if they are numbers")),
        'M' | 'm' => return Err(unsupported("times", "use x.view('int64')")),
        'S' | 'U' => return Err(unsupported("strings", "use x.astype('float64') if they are numbers")),
        'V' => return extended(object, size),
        _ => {}
    }
    let Some(dtype) = DType::of_kind(kind, size) else {
        return Err(unsupported(&format!("type {typestr:?}"), "use x.astype('float64')"));
    };
    if order == '>' && size > 1 {
        let name = dtype.name();
        return Err(unsupported(&format!("big-endian {name}"), &format!("use x.astype('{name}')")));
    }
    Ok(dtype)
}

/// The type of elements that NumPy does not define: bfloat16 of ml_dtypes. Others, and structures, are refused.
fn extended(object: &Bound<'_, PyAny>, size: usize) -> PyResult<DType> {
    let py = object.py();
    let dtype = object.getattr_opt(intern!(py, "dtype"))?;
    let name = match dtype.as_ref().map(|dtype| dtype.getattr_opt(intern!(py, "name"))) {
        Some(name) => name?.map(|name| name.str()).transpose()?.map(|name| name.to_string()),
        None => None,
    };
    match name.as_deref() {
        Some("bfloat16") if size == 2 => Ok(DType::BFloat16),
        Some(name) if !name.starts_with("void") && !name.starts_with("record") => {
            Err(unsupported(name, "use x.astype('float32')"))
        }
        _ => Err(unsupported("structures", "pass one field, x['name']")),
    }
}
