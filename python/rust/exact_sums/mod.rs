//! The class `ExactSums`: an array of exact sums, and the functions that make one.

mod bytes;
mod states;

use std::sync::{Mutex, MutexGuard};

use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyTuple, PyType};

use self::states::States;
pub use self::states::{Finish, Kind};
use crate::arguments::{axes, exception};
use crate::array::{AnyArray, type_name};
use crate::dtype::DType;
use crate::gpu::exact_sums::GpuSums;
use crate::operators::Operand;
use crate::output::{new_array, shape};
use crate::states::{different, no_float, not_rounded_to};
use crate::words;

/// Exact sums in C order.
struct Sums {
    extents: Vec<usize>,
    states: Box<dyn States>,
}

impl Clone for Sums {
    fn clone(&self) -> Self {
        Self { extents: self.extents.clone(), states: self.states.copy() }
    }
}

impl PartialEq for Sums {
    fn eq(&self, other: &Self) -> bool {
        self.extents == other.extents && self.states.is_equal(&*other.states)
    }
}

impl Sums {
    /// Adds the terms of other sums, if these are of the same kind, type and shape.
    fn merge(&mut self, other: &Self) -> PyResult<()> {
        self.states.merge(&*other.states).map_err(|error| PyValueError::new_err(error.to_string()))
    }
}

/// Exact sums in host memory or on a GPU.
enum Place {
    Host(Sums),
    Gpu(GpuSums),
}

impl Place {
    /// The sums of an array along axes.
    fn of(kind: Kind, x: &Bound<'_, PyAny>, axis: Option<&Bound<'_, PyAny>>, keepdims: bool) -> PyResult<Self> {
        let operation = match kind {
            Kind::Sum => "exact_sums",
            Kind::SumOfSquares => "exact_sums_of_squares",
        };
        let (py, axes, array) = (x.py(), axes(axis, keepdims)?, AnyArray::new(x, operation)?);
        if !array.dtype().is_float() {
            return Err(no_float(array.dtype()));
        }
        match array {
            AnyArray::Host(array) => {
                let operand = Operand::from(&array);
                let reduced = py.detach(|| states::of_array(kind, &operand, axes.axes));
                let (extents, states) = reduced.map_err(|error| exception(&error))?;
                Ok(Self::Host(Sums { extents, states }))
            }
            AnyArray::Gpu(array) => GpuSums::of(py, kind, &array, &axes).map(Self::Gpu),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Host(sums) => sums.states.kind(),
            Self::Gpu(sums) => sums.kind,
        }
    }

    fn dtype(&self) -> DType {
        match self {
            Self::Host(sums) => sums.states.dtype(),
            Self::Gpu(sums) => sums.dtype,
        }
    }

    fn extents(&self) -> &[usize] {
        match self {
            Self::Host(sums) => &sums.extents,
            Self::Gpu(sums) => &sums.extents,
        }
    }

    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        match self {
            Self::Host(sums) => Ok(Self::Host(py.detach(|| sums.clone()))),
            Self::Gpu(sums) => sums.copy(py).map(Self::Gpu),
        }
    }

    /// Calls a function with the sums in host memory, to which those on a GPU are copied.
    fn on_host<R: Send>(&self, py: Python<'_>, f: impl FnOnce(&Sums) -> R + Send) -> PyResult<R> {
        match self {
            Self::Host(sums) => Ok(py.detach(|| f(sums))),
            Self::Gpu(sums) => {
                let (words, kind, dtype, extents) = (sums.download(py)?, sums.kind, sums.dtype, sums.extents.clone());
                let states = py.detach(|| states::from_words(kind, dtype, &words)).map_err(words::exception)?;
                Ok(py.detach(|| f(&Sums { extents, states })))
            }
        }
    }

    /// Adds the terms of other sums, if these are of the same kind, type and shape, and in the same place.
    fn merge(&mut self, py: Python<'_>, other: &Self) -> PyResult<()> {
        let (a, b) = (self.kind(), other.kind());
        if a != b {
            let (a, b) = (a.name(), b.name());
            return Err(PyTypeError::new_err(format!("ExactSums of kinds {a:?} and {b:?} have no common sums")));
        }
        if self.dtype() != other.dtype() {
            return Err(different(self.dtype(), other.dtype()));
        }
        if self.extents() != other.extents() {
            let (a, b) = (shape(self.extents()), shape(other.extents()));
            return Err(PyValueError::new_err(format!("ExactSums of shapes {a} and {b}: they must be equal")));
        }
        match (self, other) {
            (Self::Host(own), Self::Host(other)) => py.detach(|| own.merge(other)),
            (Self::Gpu(own), Self::Gpu(other)) => own.merge(py, other),
            _ => Err(PyTypeError::new_err(
                "one ExactSums is in host memory, and the other on a GPU: ExactSums.from_bytes(bytes(s)) copies sums \
                 to host memory",
            )),
        }
    }
}

/// An all-reduce that has begun: the words to be replaced.
enum Begun {
    /// With the number of words of a sum, and the extents.
    Host(Vec<i64>, usize, Vec<usize>),
    /// The array that has them.
    Gpu(Py<PyAny>),
}

/// An array of exact sums of floats: wf.exact_sums and wf.exact_sums_of_squares make it. The sums of an array on a GPU
/// stay there, and so do their values.
///
/// Sums of the parts of an array, made by any threads, processes or machines, are merged in any order, and are the sums
/// of the whole, bit for bit. Only `values`, `means` and `norms` round, once. Sums are sent to another process as bytes
/// or by pickle. A sum of float64 has 292 bytes (568 in memory), and one of float32, float16 or bfloat16 has 64 (112).
/// A sum of squares has 552 (1088) or 96 (176).
///
/// >>> import numpy as np, warpfold as wf
/// >>> x = np.array([[1e308, 0.5], [1e308, 0.25], [-1e308, 0.0]])
/// >>> parts = [wf.exact_sums(part, axis=0) for part in np.split(x, 3)]
/// >>> s = sum(parts)
/// >>> s.values()
/// array([1.0e+308, 7.5e-001])
/// >>> wf.ExactSums.from_bytes(bytes(s)) == wf.exact_sums(x, axis=0)
/// True
#[pyclass(module = "warpfold", frozen)]
pub struct ExactSums(Mutex<Place>);

impl ExactSums {
    fn new(sums: Place) -> Self {
        Self(Mutex::new(sums))
    }

    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Place> {
        // A panic while the sums were locked has left them as they were or merged.
        self.0.lock_py_attached(py).unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn copy(&self, py: Python<'_>) -> PyResult<Place> {
        self.lock(py).copy(py)
    }

    /// Locks two arrays of sums, in the order of their addresses, so that no two threads wait for each other.
    fn lock_both<'a>(&'a self, other: &'a Self, py: Python<'_>) -> (MutexGuard<'a, Place>, MutexGuard<'a, Place>) {
        if std::ptr::from_ref(self) < std::ptr::from_ref(other) {
            let own = self.lock(py);
            (own, other.lock(py))
        } else {
            let other = other.lock(py);
            (self.lock(py), other)
        }
    }

    /// An array of results, each of one sum.
    fn finish<'py>(
        &self,
        py: Python<'py>,
        finish: Finish,
        dtype: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let own = self.lock(py);
        let (method, needed, maker) = match finish {
            Finish::Value => ("values", own.kind(), ""),
            Finish::Mean => ("means", Kind::Sum, "exact_sums"),
            Finish::Norm => ("norms", Kind::SumOfSquares, "exact_sums_of_squares"),
        };
        if own.kind() != needed {
            let (kind, needed) = (own.kind().name(), needed.name());
            return Err(PyTypeError::new_err(format!(
                "{method}() needs ExactSums of kind {needed:?}, and these are of kind {kind:?}: make them by \
                 wf.{maker}(x)"
            )));
        }
        let dtype = dtype.map_or_else(|| Ok(own.dtype()), DType::from_argument)?;
        if !dtype.is_float() {
            return Err(not_rounded_to(dtype));
        }
        let (results, extents) = match &*own {
            Place::Host(sums) => (py.detach(|| sums.states.finish(finish, dtype)), sums.extents.clone()),
            Place::Gpu(sums) => return sums.finish(py, finish, dtype),
        };
        drop(own);
        new_array(py, dtype, &extents, &results)
    }
}

#[pymethods]
impl ExactSums {
    /// The shape of the array.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.lock(py).extents())
    }

    /// The name of the elements' dtype.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> &'static str {
        self.lock(py).dtype().name()
    }

    /// What is summed of each element: 'sum' for the element, 'sum_of_squares' for its square.
    #[getter]
    fn kind(&self, py: Python<'_>) -> &'static str {
        self.lock(py).kind().name()
    }

    /// The number of terms of each sum: an array of int64.
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (extents, counts) = match &*self.lock(py) {
            Place::Host(sums) => (sums.extents.clone(), sums.states.counts()),
            Place::Gpu(sums) => return sums.counts(py),
        };
        new_array(py, DType::Int64, &extents, bytemuck::cast_slice(&counts))
    }

    /// Adds the terms of other sums, of the same shape, dtype and kind.
    fn merge(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        let other = other.get();
        if std::ptr::eq(self, other) {
            let copy = self.copy(py)?;
            return self.lock(py).merge(py, &copy);
        }
        let (mut own, other) = self.lock_both(other, py);
        own.merge(py, &other)
    }

    /// The words of the sums along a last axis: int64, which an engine for several processes adds. Those of sums on a
    /// GPU are the sums' own memory.
    #[getter]
    fn words<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let ((words, of_each), mut extents) = match &*self.lock(py) {
            Place::Host(sums) => (py.detach(|| sums.states.words()), sums.extents.clone()),
            Place::Gpu(sums) => return Ok(sums.words(py)?.into_bound(py)),
        };
        extents.push(of_each);
        new_array(py, DType::Int64, &extents, bytemuck::cast_slice(&words))
    }

    /// Merges the sums of all ranks, by an engine's sum of integers: `warpfold.distributed.all_reduce` calls it.
    ///
    /// `reduce` gets `words`, and replaces each element by its sum over the ranks, in place. If it fails, sums in host
    /// memory are as before, and sums on a GPU are unusable.
    ///
    /// >>> import numpy as np, warpfold as wf
    /// >>> s = wf.exact_sums(np.array([[1e308, 1.0], [1e308, 2.0]]), axis=1)
    /// >>> def reduce(words):                          # as if there were three ranks with the same sums
    /// ...     words *= 3
    /// >>> s.all_reduce(3, reduce)
    /// >>> s.counts()
    /// array([6, 6])
    #[pyo3(signature = (ranks, reduce, /))]
    fn all_reduce(&self, py: Python<'_>, ranks: &Bound<'_, PyAny>, reduce: &Bound<'_, PyAny>) -> PyResult<()> {
        let ranks = words::ranks(ranks)?;
        // Unlocked while `reduce` runs, which may use the sums.
        let begun = match &mut *self.lock(py) {
            Place::Host(sums) => {
                let (words, of_each) = py.detach(|| sums.states.words());
                Begun::Host(words, of_each, sums.extents.clone())
            }
            Place::Gpu(sums) => Begun::Gpu(sums.begin_all_reduce(py, ranks)?),
        };
        let reduced = match begun {
            Begun::Gpu(words) => {
                reduce.call1((words,))?;
                None
            }
            Begun::Host(words, of_each, mut extents) => {
                extents.push(of_each);
                Some(words::replaced(py, &words, &extents, reduce)?)
            }
        };
        match (&mut *self.lock(py), reduced) {
            (Place::Host(sums), Some(words)) => {
                let (kind, dtype) = (sums.states.kind(), sums.states.dtype());
                sums.states = py.detach(|| states::from_words(kind, dtype, &words)).map_err(words::exception)?;
                Ok(())
            }
            (Place::Gpu(sums), None) => sums.end_all_reduce(py, ranks),
            _ => unreachable!("sums stay where they are"),
        }
    }

    /// The sums, each rounded once to a dtype of floats: that of the elements, if none is given.
    #[pyo3(signature = (dtype=None))]
    fn values<'py>(&self, py: Python<'py>, dtype: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        self.finish(py, Finish::Value, dtype)
    }

    /// The means, each rounded once to a dtype of floats: that of the elements, if none is given. NaN without elements.
    ///
    /// >>> import numpy as np, warpfold as wf
    /// >>> wf.exact_sums(np.array([[1e308, 1e308], [1.0, 2.0]]), axis=1).means()
    /// array([1.0e+308, 1.5e+000])
    #[pyo3(signature = (dtype=None))]
    fn means<'py>(&self, py: Python<'py>, dtype: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        self.finish(py, Finish::Mean, dtype)
    }

    /// The square roots of sums of squares, each rounded once to a dtype of floats: that of the elements, if none is
    /// given.
    #[pyo3(signature = (dtype=None))]
    fn norms<'py>(&self, py: Python<'py>, dtype: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        self.finish(py, Finish::Norm, dtype)
    }

    /// The sums with these bytes, which `bytes(s)` has made: `bytes`, or any buffer of bytes.
    #[classmethod]
    #[pyo3(signature = (data, /))]
    fn from_bytes(_class: &Bound<'_, PyType>, data: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = data.py();
        if let Ok(bytes) = data.extract::<&[u8]>() {
            return py.detach(|| bytes::read(bytes)).map(Place::Host).map(Self::new);
        }
        let refused =
            || PyTypeError::new_err(format!("from_bytes takes bytes, not `{}`: use bytes(s)", type_name(data)));
        match AnyArray::new(data, "from_bytes").map_err(|_| refused())? {
            AnyArray::Host(array) if array.dtype == DType::UInt8 && array.layout.is_contiguous() => {
                let bytes = array.bytes();
                py.detach(|| bytes::read(bytes)).map(Place::Host).map(Self::new)
            }
            _ => Err(refused()),
        }
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.lock(py).on_host(py, bytes::write)?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((py.get_type::<Self>().getattr("from_bytes")?, (self.__bytes__(py)?,)))
    }

    fn __add__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut sums = self.copy(py)?;
        match other.cast::<Self>() {
            Ok(other) => {
                sums.merge(py, &other.get().lock(py))?;
            }
            // The first term of Python's own `sum`.
            Err(_) if other.extract::<i64>().is_ok_and(|start| start == 0) => {}
            Err(_) => {
                return Err(PyTypeError::new_err(format!(
                    "only another ExactSums can be added with `+`, not `{}`: use wf.exact_sums(x) for arrays",
                    type_name(other)
                )));
            }
        }
        Ok(Self::new(sums))
    }

    fn __radd__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.__add__(py, other)
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.copy(py).map(Self::new)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.__copy__(py)
    }

    fn __richcmp__(&self, py: Python<'_>, other: &Bound<'_, PyAny>, operator: CompareOp) -> PyResult<Py<PyAny>> {
        let (Ok(other), CompareOp::Eq | CompareOp::Ne) = (other.cast::<Self>(), operator) else {
            return Ok(py.NotImplemented());
        };
        let other = other.get();
        let is_equal = std::ptr::eq(self, other) || {
            let (own, other) = self.lock_both(other, py);
            match (&*own, &*other) {
                (Place::Host(own), Place::Host(other)) => py.detach(|| own == other),
                // Sums on a GPU have unique bytes, but not words.
                (own, other) => own.on_host(py, bytes::write)? == other.on_host(py, bytes::write)?,
            }
        };
        let result = is_equal == matches!(operator, CompareOp::Eq);
        Ok(result.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    /// The size in memory, for sys.getsizeof and for Dask's scheduler.
    fn __sizeof__(&self, py: Python<'_>) -> usize {
        let own = self.lock(py);
        let of_states = match &*own {
            Place::Host(sums) => sums.states.size(),
            // They are those of the array of words.
            Place::Gpu(_) => 0,
        };
        size_of::<Self>() + size_of_val(own.extents()) + of_states
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let own = self.lock(py);
        let (kind, dtype) = (own.kind().name(), own.dtype().name());
        format!("<ExactSums of shape {}, kind {kind:?}, {dtype}>", shape(own.extents()))
    }
}

/// The exact sums of an array's elements along axes, before they are rounded: ExactSums of the shape of the other axes.
///
/// The elements are float16, bfloat16, float32 or float64, in host memory or on a GPU.
///
/// >>> import numpy as np, warpfold as wf
/// >>> s = wf.exact_sums(np.full((2, 10), 0.1), axis=1)
/// >>> s.shape, s.dtype, s.kind, s.counts()
/// ((2,), 'float64', 'sum', array([10, 10]))
/// >>> s.merge(wf.exact_sums(np.full((2, 1), 1e-17), axis=1))
/// >>> s.values()
/// array([1., 1.])
#[pyfunction]
#[pyo3(signature = (x, /, *, axis=None, keepdims=false))]
pub fn exact_sums(x: &Bound<'_, PyAny>, axis: Option<&Bound<'_, PyAny>>, keepdims: bool) -> PyResult<ExactSums> {
    Place::of(Kind::Sum, x, axis, keepdims).map(ExactSums::new)
}

/// The exact sums of the squares of an array's elements along axes, before they are rounded: ExactSums of the shape of
/// the other axes. Their roots are norms.
///
/// The elements are float16, bfloat16, float32 or float64, in host memory or on a GPU.
///
/// >>> import numpy as np, warpfold as wf
/// >>> s = wf.exact_sums_of_squares(np.array([[3.0, 4.0], [5.0, 12.0]]), axis=1)
/// >>> s.norms(), s.values(), s.kind
/// (array([ 5., 13.]), array([ 25., 169.]), 'sum_of_squares')
#[pyfunction]
#[pyo3(signature = (x, /, *, axis=None, keepdims=false))]
pub fn exact_sums_of_squares(
    x: &Bound<'_, PyAny>,
    axis: Option<&Bound<'_, PyAny>>,
    keepdims: bool,
) -> PyResult<ExactSums> {
    Place::of(Kind::SumOfSquares, x, axis, keepdims).map(ExactSums::new)
}
