//! Element types, and their names in Python, NumPy and DLPack.

use pyo3::exceptions::{PyImportError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DType {
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Float16,
    BFloat16,
    Float32,
    Float64,
    /// Only for functions that move elements.
    Complex64,
    /// Only for functions that move elements.
    Complex128,
}

use DType::*;

/// All types, each with its name and the size of an element.
pub const TYPES: [(DType, &str, usize); 15] = [
    (Bool, "bool", 1),
    (Int8, "int8", 1),
    (Int16, "int16", 2),
    (Int32, "int32", 4),
    (Int64, "int64", 8),
    (UInt8, "uint8", 1),
    (UInt16, "uint16", 2),
    (UInt32, "uint32", 4),
    (UInt64, "uint64", 8),
    (Float16, "float16", 2),
    (BFloat16, "bfloat16", 2),
    (Float32, "float32", 4),
    (Float64, "float64", 8),
    (Complex64, "complex64", 8),
    (Complex128, "complex128", 16),
];

impl DType {
    fn row(self) -> (Self, &'static str, usize) {
        TYPES[self as usize]
    }

    /// NumPy's name.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The size of an element in bytes.
    pub fn size(self) -> usize {
        self.row().2
    }

    /// The type of this name.
    pub fn named(name: &str) -> Option<Self> {
        TYPES.iter().find(|(_, found, _)| *found == name).map(|row| row.0)
    }

    /// The type of elements of a kind, a letter of `__array_interface__`, and a size in bytes.
    pub fn of_kind(kind: char, size: usize) -> Option<Self> {
        let kinds = match kind {
            'b' => &[Bool][..],
            'i' => &[Int8, Int16, Int32, Int64],
            'u' => &[UInt8, UInt16, UInt32, UInt64],
            'f' => &[Float16, Float32, Float64],
            'c' => &[Complex64, Complex128],
            _ => &[],
        };
        kinds.iter().copied().find(|dtype| dtype.size() == size)
    }

    /// The type in `__cuda_array_interface__`. That has no bfloat16: two bytes without a type stand for it, as in
    /// PyTorch.
    pub fn typestr(self) -> String {
        let kind = match self {
            Bool => 'b',
            BFloat16 => 'V',
            Complex64 | Complex128 => 'c',
            dtype if dtype.is_signed() => 'i',
            dtype if dtype.is_integer() => 'u',
            _ => 'f',
        };
        format!("{}{kind}{}", if self.size() == 1 { '|' } else { '<' }, self.size())
    }

    /// Whether this is an integer type; `bool` is none.
    pub fn is_integer(self) -> bool {
        self.is_signed() || matches!(self, UInt8 | UInt16 | UInt32 | UInt64)
    }

    /// Whether this is a type of real floats.
    pub fn is_float(self) -> bool {
        matches!(self, Float16 | BFloat16 | Float32 | Float64)
    }

    /// Whether this is a signed integer type.
    pub fn is_signed(self) -> bool {
        matches!(self, Int8 | Int16 | Int32 | Int64)
    }

    /// The type that an argument `dtype` names: a string, or what NumPy takes for one.
    pub fn from_argument(argument: &Bound<'_, PyAny>) -> PyResult<Self> {
        let unknown = |name: &str| {
            let names: Vec<&str> = TYPES.iter().map(|row| row.1).collect();
            PyTypeError::new_err(format!("there is no dtype {name:?} here: the dtypes are {}", names.join(", ")))
        };
        if let Ok(name) = argument.cast::<PyString>() {
            let name = name.to_cow()?;
            if let Some(dtype) = Self::named(&name) {
                return Ok(dtype);
            }
        }
        let py = argument.py();
        let dtype = numpy(py)?.call_method1(pyo3::intern!(py, "dtype"), (argument,))?;
        let name: String = dtype.getattr(pyo3::intern!(py, "name"))?.extract()?;
        let is_native: bool = dtype.getattr(pyo3::intern!(py, "isnative"))?.extract()?;
        match Self::named(&name) {
            Some(dtype) if is_native => Ok(dtype),
            _ => Err(unknown(&dtype.str()?.to_cow()?)),
        }
    }

    /// NumPy's object for this type.
    pub fn to_numpy(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static OBJECTS: [PyOnceLock<Py<PyAny>>; TYPES.len()] = [const { PyOnceLock::new() }; TYPES.len()];
        let object = OBJECTS[self as usize].get_or_try_init(py, || {
            let dtype = match self {
                BFloat16 => bfloat16(py)?,
                _ => PyString::new(py, self.name()).into_any(),
            };
            numpy(py)?.call_method1("dtype", (dtype,)).map(Bound::unbind)
        })?;
        Ok(object.bind(py).clone())
    }
}

/// The module `numpy`, which makes the results.
pub fn numpy(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    static NUMPY: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = NUMPY.get_or_try_init(py, || {
        let found = py.import("numpy").map_err(|error| {
            let missing =
                PyImportError::new_err("results are NumPy arrays, and NumPy cannot be imported: pip install numpy");
            missing.set_cause(py, Some(error));
            missing
        })?;
        NDARRAY.get_or_try_init(py, || found.getattr("ndarray").map(Bound::unbind))?;
        Ok::<_, PyErr>(found.unbind())
    })?;
    Ok(module.bind(py).clone())
}

/// Whether an object is an array of NumPy's own class. Known only after the first use of [`numpy`].
pub fn is_numpy_array(object: &Bound<'_, PyAny>) -> bool {
    NDARRAY.get(object.py()).is_some_and(|class| object.get_type().is(class))
}

static NDARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The class `bfloat16` of ml_dtypes.
fn bfloat16(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    match py.import("ml_dtypes") {
        Ok(module) => module.getattr("bfloat16"),
        Err(error) => {
            let missing = PyImportError::new_err(
                "a result of bfloat16 needs the package ml_dtypes, which cannot be imported: pip install ml_dtypes",
            );
            missing.set_cause(py, Some(error));
            Err(missing)
        }
    }
}
