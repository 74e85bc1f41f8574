//! The copies of an input on the device that a measurement rotates through.

use warpfold::{Buffer, Element, Error, Gpu, View};

use crate::measure::Plan;

/// Copies of an input. A measurement rotates through them, so that a copy is no longer in the cache when it is used
/// again.
pub struct Inputs<T> {
    buffers: Vec<Buffer<T>>,
    offset: usize,
    len: usize,
}

impl<T: Element> Inputs<T> {
    /// Copies of `all` without the first `offset` elements.
    pub fn new(gpu: &Gpu, plan: &Plan, all: &[T], offset: usize) -> Result<Self, Error> {
        let mut buffers = vec![gpu.upload(all)?];
        for _ in 1..plan.rotation(size_of_val(all)) {
            let mut copy = gpu.zeroed(all.len())?;
            gpu.copy_array(&buffers[0], &mut copy)?;
            buffers.push(copy);
        }
        Ok(Self { buffers, offset, len: all.len() - offset })
    }

    /// The input of iteration `i`.
    pub fn view(&self, i: usize) -> Result<View<'_, T>, Error> {
        self.buffer(i).view().slice(self.offset, self.len)
    }

    /// The whole buffer of iteration `i`, including the first `offset` elements.
    pub fn buffer(&self, i: usize) -> &Buffer<T> {
        &self.buffers[i % self.buffers.len()]
    }

    /// The address of each copy.
    pub fn addresses(&self) -> Result<Vec<u64>, Error> {
        (0..self.buffers.len()).map(|i| Ok(self.view(i)?.device_address())).collect()
    }
}
