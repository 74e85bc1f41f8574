//! Arrays from and to the crate `ndarray`.

use cuda_std::element::Stored;
use ndarray::{ArrayD, Dimension, IxDyn};

use super::{Array, ArrayView};
use crate::{Error, Gpu};

impl<T: Stored> Array<T> {
    /// A copy of an array of the crate `ndarray`, of any layout, in a device's memory. If its elements are not in C
    /// order, they are brought to it on the host.
    ///
    /// # Errors
    /// It has more than 32 axes, or the device does not have enough memory.
    pub fn from_ndarray<'a, D: Dimension>(
        gpu: &Gpu,
        array: impl Into<ndarray::ArrayView<'a, T, D>>,
    ) -> Result<Self, Error>
    where
        T: 'a,
    {
        let array = array.into();
        let in_order = array.as_standard_layout();
        match in_order.as_slice() {
            Some(elements) => gpu.upload(elements)?.reshape(array.shape()),
            None => gpu.upload(&in_order.iter().copied().collect::<Vec<T>>())?.reshape(array.shape()),
        }
    }

    /// [`ArrayView::to_ndarray`].
    ///
    /// # Errors
    /// As there.
    pub fn to_ndarray(&self, gpu: &Gpu) -> Result<ArrayD<T>, Error> {
        self.view().to_ndarray(gpu)
    }
}

impl<T: Stored> ArrayView<'_, T> {
    /// Downloads the array, of any layout, to an array of the crate `ndarray` in C order.
    ///
    /// # Errors
    /// As for [`Gpu::download`].
    pub fn to_ndarray(&self, gpu: &Gpu) -> Result<ArrayD<T>, Error> {
        let elements = gpu.download(self)?;
        let (found, expected) = (elements.len(), self.len());
        ArrayD::from_shape_vec(IxDyn(self.extents()), elements).map_err(|_| Error::Length {
            operation: "download",
            what: "the array",
            found,
            expected,
        })
    }
}
