//! The classes `ExactSum`, `ExactDot` and `ExactSumOfSquares`.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard};

use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyType};

use crate::array::AnyArray;
use crate::dtype::DType;
use crate::states::{Dot, State, Sum, different};
use crate::words;

/// A state that threads share. It is `None` until the type of its elements is known.
struct Shared<S>(Mutex<Option<S>>);

impl<S: State> Shared<S> {
    fn new(state: Option<S>) -> Self {
        Self(Mutex::new(state))
    }

    /// An empty state of the type that an argument names.
    fn empty(dtype: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let state = dtype.map(|dtype| S::empty(DType::from_argument(dtype)?)).transpose()?;
        Ok(Self::new(state))
    }

    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Option<S>> {
        // A panic while the state was locked has left it as it was or merged.
        self.0.lock_py_attached(py).unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn get(&self, py: Python<'_>) -> Option<S> {
        self.lock(py).clone()
    }

    /// The state, for an operation that needs the type of its elements.
    fn typed(&self, py: Python<'_>, operation: &str) -> PyResult<S> {
        self.get(py).ok_or_else(|| {
            PyValueError::new_err(format!(
                "{operation} of a sum without elements needs their type: make it with dtype='float64', for example"
            ))
        })
    }

    fn merge(&self, py: Python<'_>, other: Option<S>) -> PyResult<()> {
        let Some(other) = other else { return Ok(()) };
        match &mut *self.lock(py) {
            Some(state) => state.merge(&other),
            state => {
                *state = Some(other);
                Ok(())
            }
        }
    }

    /// Refuses elements of another type, before they are summed.
    fn check(&self, py: Python<'_>, dtype: DType) -> PyResult<()> {
        match self.lock(py).as_ref().map(State::dtype) {
            Some(own) if own != dtype => Err(different(own, dtype)),
            _ => Ok(()),
        }
    }

    /// The type to round to: the argument, else that of the elements; `None` if neither is known.
    fn rounding(&self, py: Python<'_>, dtype: Option<&Bound<'_, PyAny>>) -> PyResult<Option<(S, DType)>> {
        let dtype = dtype.map(DType::from_argument).transpose()?;
        match (self.get(py), dtype) {
            (Some(state), dtype) => Ok(Some((state.clone(), dtype.unwrap_or_else(|| state.dtype())))),
            (None, Some(dtype)) => Ok(Some((S::empty(DType::Float64)?, dtype))),
            (None, None) => Ok(None),
        }
    }

    fn value(&self, py: Python<'_>, dtype: Option<&Bound<'_, PyAny>>) -> PyResult<f64> {
        self.rounding(py, dtype)?.map_or(Ok(0.0), |(state, dtype)| state.value(dtype))
    }

    fn repr(&self, py: Python<'_>, class: &str) -> PyResult<String> {
        Ok(match self.get(py) {
            Some(state) => {
                let (value, count, dtype) = (state.value(state.dtype())?, state.count(), state.dtype().name());
                format!("<{class} of {count} {dtype}: {}>", pyo3::types::PyFloat::new(py, value).repr()?)
            }
            None => format!("<{class} of nothing>"),
        })
    }
}

/// Defines a class, with the methods that all have and those that only this one has.
macro_rules! sum_class {
    ($(#[doc = $doc:literal])* $class:ident of $state:ident, $name:literal; $($method:tt)*) => {
        $(#[doc = $doc])*
        #[pyclass(module = "warpfold", frozen)]
        pub struct $class(Shared<$state>);

        #[pymethods]
        impl $class {
            $($method)*

            /// Adds the terms of another sum, whose elements have the same dtype.
            fn merge(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
                self.0.merge(py, other.get().0.get(py))
            }

            /// The sum, rounded once to a dtype: that of the elements, if none is given.
            ///
            /// The result is a Python float, which represents numbers of all these types exactly.
            #[pyo3(signature = (dtype=None))]
            fn value(&self, py: Python<'_>, dtype: Option<&Bound<'_, PyAny>>) -> PyResult<f64> {
                self.0.value(py, dtype)
            }

            /// The number of terms.
            #[getter]
            fn count(&self, py: Python<'_>) -> u64 {
                self.0.lock(py).as_ref().map_or(0, State::count)
            }

            /// The name of the elements' dtype; None before the first elements, if none was given.
            #[getter]
            fn dtype(&self, py: Python<'_>) -> Option<&'static str> {
                self.0.lock(py).as_ref().map(|state| state.dtype().name())
            }

            /// Merges the sums of all ranks, by an engine's sum of integers: `warpfold.distributed.all_reduce` calls
            /// it.
            ///
            /// `reduce` gets an array of int64, and replaces each element by its sum over the ranks. If it fails, the
            /// sum is as before.
            #[pyo3(signature = (ranks, reduce, /))]
            fn all_reduce(&self, py: Python<'_>, ranks: &Bound<'_, PyAny>, reduce: &Bound<'_, PyAny>) -> PyResult<()> {
                words::ranks(ranks)?;
                let state = self.0.typed(py, "all_reduce()")?;
                let words = state.words();
                let words = words::replaced(py, &words, &[words.len()], reduce)?;
                let merged = state.with_words(&words)?;
                *self.0.lock(py) = Some(merged);
                Ok(())
            }

            /// The sum with these bytes, which `bytes(s)` has made.
            #[classmethod]
            #[pyo3(signature = (data, /))]
            fn from_bytes(_class: &Bound<'_, PyType>, data: &[u8]) -> PyResult<Self> {
                $state::from_bytes(data).map(|state| Self(Shared::new(Some(state))))
            }

            fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
                Ok(PyBytes::new(py, &self.0.typed(py, "bytes()")?.to_bytes()))
            }

            fn __add__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Self> {
                let sum = Shared::new(self.0.get(py));
                match other.cast::<Self>() {
                    Ok(other) => sum.merge(py, other.get().0.get(py))?,
                    // The first term of Python's own `sum`.
                    Err(_) if other.extract::<i64>().is_ok_and(|start| start == 0) => {}
                    Err(_) => {
                        let name = crate::array::type_name(other);
                        return Err(PyTypeError::new_err(format!(
                            concat!("only another ", $name, " can be added with `+`, not `{}`: use add(x) for arrays"),
                            name
                        )));
                    }
                }
                Ok(Self(sum))
            }

            fn __radd__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Self> {
                self.__add__(py, other)
            }

            fn __copy__(&self, py: Python<'_>) -> Self {
                Self(Shared::new(self.0.get(py)))
            }

            fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> Self {
                self.__copy__(py)
            }

            fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
                let class = py.get_type::<Self>();
                match self.0.get(py) {
                    Some(state) => {
                        let data = PyBytes::new(py, &state.to_bytes());
                        Ok((class.getattr("from_bytes")?, (data,).into_pyobject(py)?.into_any()))
                    }
                    None => Ok((class.into_any(), pyo3::types::PyTuple::empty(py).into_any())),
                }
            }

            fn __richcmp__(
                &self,
                py: Python<'_>,
                other: &Bound<'_, PyAny>,
                operator: CompareOp,
            ) -> PyResult<Py<PyAny>> {
                let Ok(other) = other.cast::<Self>() else { return Ok(py.NotImplemented()) };
                let is_equal = self.0.get(py) == other.get().0.get(py);
                let result = match operator {
                    CompareOp::Eq => is_equal,
                    CompareOp::Ne => !is_equal,
                    _ => return Ok(py.NotImplemented()),
                };
                Ok(result.into_pyobject(py)?.to_owned().into_any().unbind())
            }

            /// The hash of the bytes: it changes when terms are added.
            fn __hash__(&self, py: Python<'_>) -> u64 {
                let mut hasher = DefaultHasher::new();
                self.0.get(py).map(|state| state.to_bytes()).hash(&mut hasher);
                hasher.finish()
            }

            fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
                self.0.repr(py, $name)
            }
        }
    };
}

sum_class! {
    /// The exact sum of floats, which further arrays can be added to.
    ///
    /// It does not depend on the order of the elements, or on how they are split into arrays and merged sums. Only
    /// `value` and `mean` round, once. Elements are float16, bfloat16 (of ml_dtypes), float32 or float64; the first
    /// array determines the dtype, unless it is given. Several threads may add to one sum.
    ///
    /// NaN, or infinities of both signs, make the sum NaN. A sum of 0 is 0.0.
    ///
    /// >>> import numpy as np, warpfold as wf
    /// >>> s = wf.ExactSum(np.array([1e308, 1e308]))
    /// >>> s.add(np.array([-1e308, 1.0]))
    /// >>> s.value(), s.count, s.dtype
    /// (1e+308, 4, 'float64')
    ///
    /// Sums are merged with `merge` or `+`, also after they were sent to another process as bytes or by pickle:
    ///
    /// >>> parts = [wf.ExactSum(x) for x in np.array_split(np.full(10, 0.1), 3)]
    /// >>> total = sum(parts)
    /// >>> total.value()
    /// 1.0
    /// >>> wf.ExactSum.from_bytes(bytes(total)) == total
    /// True
    ExactSum of Sum, "ExactSum";

    #[new]
    #[pyo3(signature = (x=None, dtype=None))]
    fn new(py: Python<'_>, x: Option<&Bound<'_, PyAny>>, dtype: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let sum = Self(Shared::empty(dtype)?);
        x.map_or(Ok(()), |x| sum.add(py, x))?;
        Ok(sum)
    }

    /// Adds the elements of an array of any shape and layout, in host memory or on a GPU.
    #[pyo3(signature = (x, /))]
    fn add(&self, py: Python<'_>, x: &Bound<'_, PyAny>) -> PyResult<()> {
        let x = AnyArray::new(x, "ExactSum")?;
        self.0.check(py, x.dtype())?;
        let sum = match &x {
            AnyArray::Host(x) => Sum::of(py, x)?,
            AnyArray::Gpu(x) => Sum::of_gpu(py, x)?,
        };
        self.0.merge(py, Some(sum))
    }

    /// The exact sum divided by the number of elements, rounded once to a dtype: that of the elements, if none is
    /// given. NaN without elements.
    ///
    /// >>> import numpy as np, warpfold as wf
    /// >>> wf.ExactSum(np.array([1e308, 1e308, 1e308])).mean()
    /// 1e+308
    #[pyo3(signature = (dtype=None))]
    fn mean(&self, py: Python<'_>, dtype: Option<&Bound<'_, PyAny>>) -> PyResult<f64> {
        self.0.rounding(py, dtype)?.map_or(Ok(f64::NAN), |(state, dtype)| state.mean(dtype))
    }
}

sum_class! {
    /// The exact sum of the products of pairs of floats: a dot product.
    ///
    /// Further pairs of arrays can be added; only `value` rounds, once. See ExactSum for dtypes, merging and bytes.
    ///
    /// >>> import numpy as np, warpfold as wf
    /// >>> d = wf.ExactDot(np.array([1e300, 3.0]), np.array([1e300, 4.0]))
    /// >>> d.add(np.array([-1e300]), np.array([1e300]))
    /// >>> d.value(), d.count
    /// (12.0, 3)
    ExactDot of Dot, "ExactDot";

    #[new]
    #[pyo3(signature = (x=None, y=None, dtype=None))]
    fn new(
        py: Python<'_>,
        x: Option<&Bound<'_, PyAny>>,
        y: Option<&Bound<'_, PyAny>>,
        dtype: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let sum = Self(Shared::empty(dtype)?);
        match (x, y) {
            (Some(x), Some(y)) => sum.add(py, x, y)?,
            (None, None) => {}
            _ => return Err(PyTypeError::new_err("ExactDot takes two arrays, or none")),
        }
        Ok(sum)
    }

    /// Adds the products of the corresponding elements of two arrays of the same shape, each of any layout, both in
    /// host memory or both on a GPU.
    #[pyo3(signature = (x, y, /))]
    fn add(&self, py: Python<'_>, x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>) -> PyResult<()> {
        let (x, y) = (AnyArray::new(x, "ExactDot")?, AnyArray::new(y, "ExactDot")?);
        self.0.check(py, x.dtype())?;
        let sum = match (&x, &y) {
            (AnyArray::Host(x), AnyArray::Host(y)) => Dot::of(py, x, y)?,
            (AnyArray::Gpu(x), AnyArray::Gpu(y)) => Dot::of_gpu(py, x, y)?,
            _ => return Err(PyTypeError::new_err("one array is in host memory, and the other on a GPU: copy one")),
        };
        self.0.merge(py, Some(sum))
    }
}

sum_class! {
    /// The exact sum of the squares of floats, and their Euclidean norm.
    ///
    /// Further arrays can be added; only `value` and `norm` round, once. See ExactSum for dtypes, merging and bytes.
    ///
    /// >>> import numpy as np, warpfold as wf
    /// >>> s = wf.ExactSumOfSquares(np.array([3.0, 4.0]) * 2.0**600)
    /// >>> s.norm() / 2.0**600, s.value()
    /// (5.0, inf)
    ExactSumOfSquares of Dot, "ExactSumOfSquares";

    #[new]
    #[pyo3(signature = (x=None, dtype=None))]
    fn new(py: Python<'_>, x: Option<&Bound<'_, PyAny>>, dtype: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let sum = Self(Shared::empty(dtype)?);
        x.map_or(Ok(()), |x| sum.add(py, x))?;
        Ok(sum)
    }

    /// Adds the squares of the elements of an array of any shape and layout, in host memory or on a GPU.
    #[pyo3(signature = (x, /))]
    fn add(&self, py: Python<'_>, x: &Bound<'_, PyAny>) -> PyResult<()> {
        let x = AnyArray::new(x, "ExactSumOfSquares")?;
        self.0.check(py, x.dtype())?;
        let sum = match &x {
            AnyArray::Host(x) => Dot::of_squares(py, x)?,
            AnyArray::Gpu(x) => Dot::of_squares_on_gpu(py, x)?,
        };
        self.0.merge(py, Some(sum))
    }

    /// The square root of the sum, rounded once to a dtype: that of the elements, if none is given.
    #[pyo3(signature = (dtype=None))]
    fn norm(&self, py: Python<'_>, dtype: Option<&Bound<'_, PyAny>>) -> PyResult<f64> {
        self.0.rounding(py, dtype)?.map_or(Ok(0.0), |(state, dtype)| state.sqrt(dtype))
    }
}
