//! Arrays by the buffer protocol: `array.array`, `memoryview`, `bytearray`.

use pyo3::buffer::PyUntypedBuffer;
use pyo3::ffi;
use pyo3::prelude::*;

use super::{HostArray, Owner, unsupported};
use crate::dtype::DType;
use crate::layout::Layout;

/// The array of an object, if it has the protocol.
pub fn read(object: &Bound<'_, PyAny>) -> PyResult<Option<HostArray>> {
    // SAFETY: the object is alive, and the GIL is held.
    if unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } == 0 {
        return Ok(None);
    }
    let buffer = PyUntypedBuffer::get(object)?;
    let format = buffer.format().to_string_lossy().into_owned();
    let dtype = dtype(&format, buffer.item_size())?;
    if buffer.suboffsets().is_some_and(|offsets| offsets.iter().any(|offset| *offset >= 0)) {
        return Err(unsupported("pointers to rows", "copy them to a contiguous array"));
    }
    let layout = Layout::new(buffer.shape().to_vec(), Some(buffer.strides().to_vec()), dtype.size())?;
    let (address, is_read_only) = (buffer.buf_ptr() as usize, buffer.readonly());
    HostArray::at(address, dtype, layout, is_read_only, Owner::Buffer { _buffer: buffer }).map(Some)
}

/// The type of elements in a format of the module `struct`.
fn dtype(format: &str, size: usize) -> PyResult<DType> {
    let letters = format.trim_start_matches(['@', '=', '<', '|']);
    let is_other_order = letters.starts_with(['>', '!']);
    let kind = match letters.trim_start_matches(['>', '!']) {
        "?" => 'b',
        "b" | "h" | "i" | "l" | "q" | "n" => 'i',
        "B" | "H" | "I" | "L" | "Q" | "N" => 'u',
        "e" | "f" | "d" => 'f',
        "Zf" | "Zd" => 'c',
        _ => return Err(unsupported(&format!("format {format:?}"), "use an array of numbers")),
    };
    match DType::of_kind(kind, size) {
        Some(dtype) if is_other_order && size > 1 => {
            let name = dtype.name();
            Err(unsupported(&format!("big-endian {name}"), &format!("use numpy.asarray(x).astype('{name}')")))
        }
        Some(dtype) => Ok(dtype),
        None => Err(unsupported(&format!("format {format:?} with {size} bytes"), "use an array of numbers")),
    }
}
