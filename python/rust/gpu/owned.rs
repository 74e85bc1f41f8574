//! Arrays of this package, for results from arrays of libraries that cannot be asked for memory.

use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use warpfold::{Buffer, Gpu};

use super::handles;
use super::work::Work;
use crate::arguments::exception;
use crate::dlpack::exchange::Allocated;
use crate::dlpack::{self, CUDA, VERSION};
use crate::dtype::DType;
use crate::output::shape;

/// A result on a GPU, in C order, for the array's own library to take over: by DLPack, as
/// `jax.dlpack.from_dlpack(a)`, or by `__cuda_array_interface__`, as `numba.cuda.as_cuda_array(a)`.
///
/// Results are of this class where an array is from a library other than PyTorch and CuPy. The memory is freed with
/// the last object that uses it.
///
/// >>> import warpfold as wf
/// >>> wf.Array.__name__
/// 'Array'
#[pyclass(module = "warpfold", frozen)]
pub struct Array {
    pub gpu: Gpu,
    pub device: u32,
    pub dtype: DType,
    pub extents: Vec<usize>,
    memory: Buffer<u8>,
    /// Whether the call that made the result has waited for it.
    is_done: bool,
}

impl Array {
    /// A new array, for the results of this work.
    pub fn allocate<'py>(
        py: Python<'py>,
        work: &Work,
        device: u32,
        dtype: DType,
        extents: &[usize],
    ) -> PyResult<Allocated<'py>> {
        let bytes = extents.iter().product::<usize>() * dtype.size();
        // The driver may wait for the device.
        let memory = work.run_and_wait(py, |gpu| gpu.zeroed::<u8>(bytes))?;
        let (gpu, extents, is_done) = (work.gpu.clone(), extents.to_vec(), work.waits);
        let array = Self { gpu, device, dtype, extents, memory, is_done };
        let address = array.address() as usize;
        Ok(Allocated { object: Bound::new(py, array)?.into_any(), address })
    }

    /// The address of the first element; 0 if there are none.
    pub fn address(&self) -> u64 {
        if self.memory.is_empty() { 0 } else { self.memory.view().device_address() }
    }
}

#[pymethods]
impl Array {
    /// The extents, as a tuple.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.extents)
    }

    /// The name of the elements' dtype.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.dtype.name()
    }

    /// The kind and the number of the device, as DLPack has them.
    fn __dlpack_device__(&self) -> (i32, u32) {
        (CUDA, self.device)
    }

    /// A capsule of DLPack. The consumer's stream waits for the result.
    // Older versions of JAX pass the stream without its name.
    #[pyo3(signature = (stream=None, *, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<i64>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, u32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, array) = (slf.py(), slf.get());
        if dl_device.is_some_and(|device| device != (CUDA, array.device)) || copy == Some(true) {
            return Err(PyBufferError::new_err("a result of warpfold is exported only where it lies, without a copy"));
        }
        match stream.unwrap_or(1) {
            -1 => {}
            0 => return Err(PyValueError::new_err("stream 0 has two meanings: 1 is the legacy default stream")),
            _ if array.is_done => {}
            stream => {
                let stream = usize::try_from(stream).map_err(|_| {
                    PyValueError::new_err(format!("there is no stream {stream}: it is a handle, 1 or 2"))
                })?;
                // SAFETY: the protocol says that the consumer's stream exists.
                let consumer = unsafe { handles::of_stream(py, array.device, stream as *mut _) }?;
                if consumer.cuda_stream() != array.gpu.cuda_stream() {
                    consumer.wait_for(&array.gpu).map_err(|error| exception(&error))?;
                }
            }
        }
        let is_versioned = max_version.is_some_and(|version| version.0 >= VERSION.0);
        dlpack::export::capsule(slf.as_any(), array.device, array.address(), array.dtype, &array.extents, is_versioned)
    }

    /// The dict of Numba's protocol, version 3.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("shape", PyTuple::new(py, &self.extents)?)?;
        interface.set_item("typestr", self.dtype.typestr())?;
        interface.set_item("data", (self.address(), false))?;
        interface.set_item("strides", py.None())?;
        interface.set_item("version", 3)?;
        let stream = if self.is_done { None } else { self.gpu.cuda_stream().map(|stream| (stream as usize).max(1)) };
        interface.set_item("stream", stream)?;
        Ok(interface)
    }

    fn __repr__(&self) -> String {
        format!("<warpfold.Array of {} {} on device {}>", shape(&self.extents), self.dtype.name(), self.device)
    }
}
