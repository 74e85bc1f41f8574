//! The rung `single_launch`, which needs a ticket in addition to its partials.

use std::mem::size_of;

use kernels::ladder::reduce_shared::{MAX_BLOCKS, blocks_for, single_launch};

use crate::{Buffer, Element, Error, Gpu, Kernel};

/// The rung's kernel and workspace.
pub struct SingleLaunch<T: Element> {
    kernel: Kernel<single_launch::Args<'static, T>>,
    partials: Buffer<T>,
    /// 0 between launches: the kernel resets it.
    ticket: Buffer<u32>,
    output: Buffer<T>,
}

impl<T: Element> SingleLaunch<T> {
    pub(super) fn new(gpu: &Gpu, kernel: Kernel<single_launch::Args<'static, T>>) -> Result<Self, Error> {
        Ok(Self {
            kernel,
            partials: gpu.zeroed(MAX_BLOCKS)?,
            ticket: Buffer::workspace(&gpu.backend(), 1)?,
            output: gpu.zeroed(1)?,
        })
    }

    /// Starts the sum of `input`.
    pub(super) fn start(&mut self, gpu: &Gpu, input: &Buffer<T>) -> Result<(), Error> {
        let blocks = blocks_for(input.len(), size_of::<T>()) as u32;
        let Self { kernel, partials, ticket, output } = self;
        let arguments = single_launch::Args {
            input: input.view(),
            partials: partials.view_mut(),
            ticket: ticket.view_mut(),
            output: output.view_mut(),
        };
        gpu.launch(*kernel, blocks, arguments)
    }

    /// The result of the last start.
    pub(super) fn finish(&self, gpu: &Gpu) -> Result<T, Error> {
        Ok(gpu.download(&self.output)?[0])
    }
}
