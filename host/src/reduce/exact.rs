//! Exact sums and means of whole inputs.

use cuda_std::element::Element;
use cuda_std::global::{Global, GlobalMut};
use half::{bf16, f16};
use kernels::ops::{Mean, Sum};
use kernels::reduce::exact::{PACKS_IN_FLIGHT, WORDS_OF_RESIDUE, exact_spans};

use super::Mailboxes;
use super::workspace::Room;
use crate::{AnyBlock, Error, Gpu, MULTIPROCESSORS, View};

/// The parameters of [`exact_spans`](fn@kernels::reduce::exact::exact_spans).
type Parameters<T> =
    (Global<'static, T>, usize, usize, u32, u32, u32, Mailboxes, GlobalMut<'static, i64>, GlobalMut<'static, f32>);

/// A float whose sums are exact: `f32`, `f16` or `bf16`.
///
/// Nobody else can implement it.
pub trait ExactElement: Element + private::Sealed {
    #[doc(hidden)]
    fn kernels(_: private::Token) -> ExactKernels<Self>;
}

/// The kernels of a type.
#[doc(hidden)]
pub struct ExactKernels<T: Element> {
    sum: AnyBlock<Parameters<T>>,
    mean: AnyBlock<Parameters<T>>,
}

mod private {
    /// Only this crate can name it.
    pub struct Token;

    pub trait Sealed {}
}

macro_rules! exact_elements {
    ($($type:ident)*) => {$(
        impl private::Sealed for $type {}

        impl ExactElement for $type {
            fn kernels(_: private::Token) -> ExactKernels<Self> {
                // SAFETY: whoever has them cannot launch them: only `Gpu::exact` does.
                unsafe {
                    let (sum, mean) = (exact_spans::handle::<Sum, $type>(), exact_spans::handle::<Mean, $type>());
                    ExactKernels { sum, mean }
                }
            }
        }
    )*};
}

exact_elements!(f32 f16 bf16);

impl Gpu {
    /// The exact sum of a whole view, rounded once, to nearest even.
    ///
    /// There is one right answer, and this is it: the same for the elements in any order, at any alignment, on every
    /// device and in the executor. `[1e20, 1.0, -1e20]` is 1. It is infinite only if the exact sum is beyond the
    /// largest `f32`, or an element is infinite; NaN if an element is, or infinities of both signs are there; a sum
    /// that is 0 is +0.0.
    ///
    /// [`Gpu::sum`] takes less time for short inputs, and rounds more than once. A sum that goes on is
    /// [`warpfold::exact::ExactSum`](crate::exact::ExactSum), on the host.
    ///
    /// ```
    /// use warpfold::Gpu;
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// let numbers = [1e20_f32, 1.0, -1e20, 3.0].repeat(50);
    /// assert_eq!(gpu.exact_sum(&gpu.upload(&numbers)?)?, 200.0);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// The view is another device's, there is no memory for the workspace, or work before has failed.
    pub fn exact_sum<'a, T: ExactElement>(&self, input: impl Into<View<'a, T>>) -> Result<f32, Error> {
        self.exact(T::kernels(private::Token).sum, input.into(), 0.0)
    }

    /// The exact sum of a whole view over the number of its elements, rounded once; of nothing NaN. See
    /// [`Gpu::exact_sum`].
    ///
    /// # Errors
    /// As there.
    pub fn exact_mean<'a, T: ExactElement>(&self, input: impl Into<View<'a, T>>) -> Result<f32, Error> {
        self.exact(T::kernels(private::Token).mean, input.into(), f32::NAN)
    }

    /// What a kernel makes of the exact sum of a view.
    fn exact<T: Element>(
        &self,
        kernel: AnyBlock<Parameters<T>>,
        input: View<'_, T>,
        of_nothing: f32,
    ) -> Result<f32, Error> {
        self.own(input.memory(), "sum exactly")?;
        if input.is_empty() {
            return Ok(of_nothing);
        }
        let len = input.len();
        let Blocks { parts, tiles, longer, threads } = Blocks::of(len, size_of::<T>());
        let room = Room { mailboxes: parts as usize, residues: WORDS_OF_RESIDUE, ..Room::default() };
        let (mut workspace, mut output) = (self.workspaces().take(self, room)?, self.zeroed(1)?);
        let (mailboxes, residues) = (workspace.mailboxes.view_mut(), workspace.residues.view_mut());
        let arguments = (input, len, 0, parts, tiles, longer, mailboxes, residues, output.view_mut());
        self.launch(kernel.with_block(threads), (parts, 1), arguments)?;
        self.workspaces().put_back(workspace);
        Ok(self.download(&output)?[0])
    }
}

/// How blocks sum a whole input. It does not change the result.
#[derive(Clone, Copy, Debug)]
struct Blocks {
    parts: u32,
    /// Tiles of the shorter parts, and how many parts have one more.
    tiles: u32,
    longer: u32,
    threads: u32,
}

impl Blocks {
    /// Those of `len` elements of `size` bytes.
    fn of(len: usize, size: usize) -> Self {
        /// Threads of a block that is one of many, of which three run in each multiprocessor.
        const THREADS: usize = 256;
        const MOST: usize = 3 * MULTIPROCESSORS;
        /// Threads of a block that sums all by itself, of which each has one tile.
        const ALONE: usize = 512;
        let packs = len.div_ceil(16 / size);
        let alone = packs.div_ceil(PACKS_IN_FLIGHT).next_power_of_two().max(32);
        let threads = if alone <= ALONE { alone } else { THREADS };
        let tiles = packs.div_ceil(threads * PACKS_IN_FLIGHT);
        let parts = tiles.clamp(1, MOST);
        // No address space has more tiles than 32 bits count: one of a long input is at least 16 KiB.
        let (tiles, longer) = ((tiles / parts) as u32, (tiles % parts) as u32);
        Self { parts: parts as u32, tiles, longer, threads: threads as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_all_tiles_once_and_sums_that_fit() {
        for size in [2, 4] {
            for len in [1, 100, 8192, 8193, 16384, 16385, (1 << 20) + 3, (1 << 32) + 7] {
                let Blocks { parts, tiles, longer, threads } = Blocks::of(len, size);
                let tile = threads as usize * PACKS_IN_FLIGHT * 16 / size;
                let all = tiles as usize * parts as usize + longer as usize;
                assert_eq!(all, len.div_ceil(tile), "{len} of {size} bytes");
                assert!(longer < parts && tiles > 0 && threads.is_power_of_two());
                // `fold_block` says so.
                assert!(threads <= 256 || parts == 1 && tiles == 1, "{len} of {size} bytes");
            }
        }
    }

    #[test]
    fn long_inputs_fill_the_device_once() {
        let parts = |len| Blocks::of(len, 4).parts;
        assert_eq!([1 << 12, 1 << 13, 1 << 14, 1 << 20, 1 << 30].map(parts), [1, 1, 4, 256, 396]);
    }
}
