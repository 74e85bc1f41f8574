//! The rung `single_launch`, which needs more than its partials.

use std::mem::size_of;

use kernels::reduce::device::{MAX_BLOCKS, blocks_for, single_launch};

use super::reduce::LadderElement;
use crate::{Buffer, Error, Gpu};

/// What the rung needs beside its input.
pub struct SingleLaunch<T> {
    partials: Buffer<T>,
    /// 0 between launches: the kernel leaves it so.
    ticket: Buffer<u32>,
    output: Buffer<T>,
}

impl<T: LadderElement> SingleLaunch<T> {
    pub(super) fn new(gpu: &Gpu) -> Result<Self, Error> {
        Ok(Self {
            partials: gpu.zeroed(MAX_BLOCKS)?,
            ticket: Buffer::workspace(&gpu.backend(), 1)?,
            output: gpu.zeroed(1)?,
        })
    }

    /// Starts the sum of `input`.
    pub(super) fn start(&mut self, gpu: &Gpu, input: &Buffer<T>) -> Result<(), Error> {
        let blocks = blocks_for(input.len(), size_of::<T>()) as u32;
        let Self { partials, ticket, output } = self;
        let arguments = single_launch::Args {
            input: input.view(),
            partials: partials.view_mut(),
            ticket: ticket.view_mut(),
            output: output.view_mut(),
        };
        gpu.launch(T::single_launch(), blocks, arguments)
    }

    /// The result of the last start.
    pub(super) fn finish(&self, gpu: &Gpu) -> Result<T, Error> {
        Ok(gpu.download(&self.output)?[0])
    }
}
