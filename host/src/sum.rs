//! `Gpu::sum`.

use std::mem::size_of;
use std::sync::{Mutex, PoisonError};

use cuda_std::global::{Global, GlobalMut};
use cuda_std::launch::Kernel;
use kernels::ops::Number;
use kernels::reduce::device::{MAX_BLOCKS, blocks_for, single_launch};

use crate::{Buffer, Error, Gpu};

/// The parameters of the kernel behind [`Gpu::sum`].
type Parameters<T> = (Global<'static, T>, GlobalMut<'static, T>, GlobalMut<'static, u32>, GlobalMut<'static, T>);

/// A number that [`Gpu::sum`] sums.
pub trait Summable: Number + private::Sealed {
    /// The sum of nothing.
    #[doc(hidden)]
    const ZERO: Self;
    #[doc(hidden)]
    fn kernel() -> Kernel<Parameters<Self>>;
    #[doc(hidden)]
    fn workspace(workspaces: &Workspaces) -> &Mutex<Option<Workspace<Self>>>;
}

mod private {
    pub trait Sealed {}
}

macro_rules! summable {
    ($($type:ident, $zero:literal;)*) => {$(
        impl private::Sealed for $type {}
        impl Summable for $type {
            const ZERO: Self = $zero;
            fn kernel() -> Kernel<Parameters<Self>> {
                single_launch::handle::<Self>()
            }
            fn workspace(workspaces: &Workspaces) -> &Mutex<Option<Workspace<Self>>> {
                &workspaces.$type
            }
        }
    )*};
}

summable! {
    f32, 0.0;
    f64, 0.0;
    i32, 0;
    i64, 0;
}

/// What a sum needs beside its input, kept from call to call.
#[doc(hidden)]
pub struct Workspace<T> {
    partials: Buffer<T>,
    /// 0 between launches: the kernel leaves it so.
    ticket: Buffer<u32>,
    output: Buffer<T>,
}

/// The workspaces of a device.
#[doc(hidden)]
#[derive(Default)]
pub struct Workspaces {
    f32: Mutex<Option<Workspace<f32>>>,
    f64: Mutex<Option<Workspace<f64>>>,
    i32: Mutex<Option<Workspace<i32>>>,
    i64: Mutex<Option<Workspace<i64>>>,
}

impl<T: Summable> Workspace<T> {
    pub(crate) fn new(gpu: &Gpu) -> Result<Self, Error> {
        Ok(Self { partials: gpu.zeroed(MAX_BLOCKS)?, ticket: gpu.zeroed(1)?, output: gpu.zeroed(1)? })
    }

    /// Starts the sum of `input`, which is not empty.
    pub(crate) fn start(&mut self, gpu: &Gpu, input: &Buffer<T>) -> Result<(), Error> {
        let blocks = blocks_for(input.len(), size_of::<T>()) as u32;
        let Self { partials, ticket, output } = self;
        gpu.launch(T::kernel(), blocks, (input.view(), partials.view_mut(), ticket.view_mut(), output.view_mut()))
    }

    /// The result of the last [`Workspace::start`].
    pub(crate) fn finish(&self, gpu: &Gpu) -> Result<T, Error> {
        Ok(gpu.download(&self.output)?[0])
    }
}

impl Gpu {
    /// The sum of a buffer: of nothing 0, of integers wrapping.
    ///
    /// Its bits depend on the elements, their number and their type alone: they are equal on every device, in every run,
    /// and in the executor. [`single_launch`](fn@single_launch) says in which order it adds.
    ///
    /// # Errors
    /// The buffer is another device's, there is no memory for the workspace (a few KiB, once for each device and type),
    /// or work before has failed.
    pub fn sum<T: Summable>(&self, input: &Buffer<T>) -> Result<T, Error> {
        self.own(input.memory(), "sum")?;
        if input.is_empty() {
            return Ok(T::ZERO);
        }
        let mut kept = T::workspace(self.workspaces()).lock().unwrap_or_else(PoisonError::into_inner);
        let mut workspace = match kept.take() {
            Some(workspace) => workspace,
            None => Workspace::new(self)?,
        };
        workspace.start(self, input)?;
        let sum = workspace.finish(self)?;
        // Only now: after an error the ticket may not be 0, and the next call makes a new one.
        *kept = Some(workspace);
        Ok(sum)
    }
}
