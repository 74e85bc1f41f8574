//! What is known of a class of arrays: its library, and how its arrays are read. It is looked up once for each class.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use crate::dlpack::exchange::Table;
use crate::dtype::DType;

/// The library of a class of arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    Torch,
    CuPy,
    Jax,
    /// This package.
    Warpfold,
    Other,
}

/// A class of arrays.
#[derive(Clone, Copy)]
pub struct Class {
    pub library: Library,
    pub table: Option<Table>,
    /// Whether its arrays have the attribute `requires_grad`.
    has_gradients: bool,
    /// Whether its arrays have the methods `is_conj` and `is_neg`: elements may be conjugated or negated when read.
    is_lazy: bool,
    /// NumPy's arrays with a mask.
    pub is_masked: bool,
    /// NumPy's scalars.
    pub is_scalar: bool,
}

/// The maximum number of classes that are remembered.
const CAPACITY: usize = 64;

/// Classes, each by its address, which a reference keeps from being reused.
static CLASSES: Mutex<Vec<(usize, Py<PyType>, Class)>> = Mutex::new(Vec::new());

impl Class {
    /// The class of an object.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let address = object.get_type_ptr() as usize;
        // The lock is never held while Python runs.
        let find = || {
            let classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
            classes.iter().find(|(found, ..)| *found == address).map(|(.., class)| *class)
        };
        if let Some(class) = find() {
            return Ok(class);
        }
        let class = object.get_type();
        let read = Self::read(&class)?;
        let entry = (address, class.unbind(), read);
        let mut classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
        // Programs have few classes of arrays; those that make classes as they run lose the speed, not memory.
        let forgotten = if classes.len() < CAPACITY { Vec::new() } else { std::mem::take(&mut *classes) };
        classes.push(entry);
        drop(classes);
        // Python may run while these references are dropped.
        drop(forgotten);
        Ok(read)
    }

    fn read(class: &Bound<'_, PyType>) -> PyResult<Self> {
        let py = class.py();
        let (mut library, mut is_masked, mut is_scalar) = (Library::Other, false, false);
        let bases = class.getattr(intern!(py, "__mro__"))?.cast_into::<PyTuple>()?;
        for base in bases.iter() {
            let text = |attribute: &Bound<'_, PyAny>| attribute.extract::<String>().unwrap_or_default();
            let name = text(&base.getattr(intern!(py, "__name__"))?);
            let module = text(&base.getattr(intern!(py, "__module__"))?);
            let package = module.split('.').next().unwrap_or_default();
            match (package, name.as_str()) {
                ("torch", "Tensor") => library = Library::Torch,
                ("cupy", "ndarray") => library = Library::CuPy,
                ("warpfold", "Array") => library = Library::Warpfold,
                ("jax" | "jaxlib", _) => library = Library::Jax,
                ("numpy", "MaskedArray") => is_masked = true,
                ("numpy", "generic") => is_scalar = true,
                _ => {}
            }
        }
        let has_gradients = class.hasattr(intern!(py, "requires_grad"))?;
        let is_lazy = class.hasattr(intern!(py, "is_conj"))? && class.hasattr(intern!(py, "is_neg"))?;
        Ok(Self { library, table: Table::of(class)?, has_gradients, is_lazy, is_masked, is_scalar })
    }

    /// Refuses arrays whose elements, of type `dtype` if that is known, are not those in memory, or that would lose a
    /// gradient.
    pub fn refuse_lazy(self, object: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<()> {
        let py = object.py();
        let refused = |what: &str| Err(PyTypeError::new_err(what.to_owned()));
        if self.has_gradients && object.getattr(intern!(py, "requires_grad"))?.is_truthy()? && is_grad_enabled(py)? {
            return refused("this tensor requires grad, and no gradient is computed here: use x.detach()");
        }
        if !self.is_lazy || dtype.is_some_and(|dtype| dtype.is_integer() || dtype == DType::Bool) {
            return Ok(());
        }
        let is_real = dtype.is_some_and(DType::is_float);
        if !is_real && object.call_method0(intern!(py, "is_conj"))?.is_truthy()? {
            return refused("the elements of this tensor are conjugated when they are read: use x.resolve_conj()");
        }
        if object.call_method0(intern!(py, "is_neg"))?.is_truthy()? {
            return refused("the elements of this tensor are negated when they are read: use x.resolve_neg()");
        }
        Ok(())
    }
}

/// Whether PyTorch now records what gradients need.
fn is_grad_enabled(py: Python<'_>) -> PyResult<bool> {
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
    match modules.call_method1(intern!(py, "get"), (intern!(py, "torch"),))? {
        torch if torch.is_none() => Ok(true),
        torch => torch.call_method0(intern!(py, "is_grad_enabled"))?.is_truthy(),
    }
}
