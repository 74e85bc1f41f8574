//! Arrays of results in host memory.

use cuda_std::element::Plain;

use super::OPERATION;
use crate::{Error, Layout};

/// An array in host memory: the results of [`reduce`](super::reduce) and its siblings, in C order.
#[derive(Clone, Debug, PartialEq)]
pub struct Array<T> {
    extents: Vec<usize>,
    elements: Vec<T>,
}

impl<T: Plain> Array<T> {
    /// An array of zeros.
    pub(super) fn zeroed(extents: &[usize]) -> Result<Self, Error> {
        Self::filled(extents, T::zeroed())
    }
}

impl<T> Array<T> {
    /// An array whose elements are all the same.
    pub(super) fn filled(extents: &[usize], element: T) -> Result<Self, Error>
    where
        T: Copy,
    {
        let len = Layout::contiguous(extents)?.len();
        let mut elements = Vec::new();
        let bytes = len.saturating_mul(size_of::<T>()) as u64;
        elements.try_reserve_exact(len).map_err(|_| Error::HostMemory { operation: OPERATION, bytes })?;
        elements.resize(len, element);
        Ok(Self { extents: extents.to_vec(), elements })
    }

    /// The number of elements along each axis.
    pub fn extents(&self) -> &[usize] {
        &self.extents
    }

    /// The elements in C order.
    pub fn as_slice(&self) -> &[T] {
        &self.elements
    }

    /// The elements in C order, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.elements
    }

    /// The elements in C order.
    pub fn into_vec(self) -> Vec<T> {
        self.elements
    }

    /// The array as one of the crate `ndarray`.
    #[cfg(feature = "ndarray")]
    pub fn into_ndarray(self) -> ndarray::ArrayD<T> {
        let shape = ndarray::IxDyn(&self.extents);
        ndarray::ArrayD::from_shape_vec(shape, self.elements).expect("an array has the elements of its extents")
    }
}
