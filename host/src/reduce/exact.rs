//! Exact sums and means.

use cuda_std::element::Element;
use cuda_std::global::{Global, GlobalMut};
use half::{bf16, f16};
use kernels::ops::{Mean, Sum};
use kernels::reduce::exact::rows::{self, exact_rows, least_lanes};
use kernels::reduce::exact::{PACKS_IN_FLIGHT, WORDS_OF_RESIDUE, exact_spans};

use super::reducer::{check_elements, check_input};
use super::shape::Kind;
use super::workspace::Room;
use super::{Mailboxes, Shape};
use crate::{AnyBlock, Buffer, Error, Gpu, Kernel, MULTIPROCESSORS, Transposition, View};

/// The parameters of [`exact_spans`](fn@kernels::reduce::exact::exact_spans).
type SpansParameters<T> =
    (Global<'static, T>, usize, usize, u32, u32, u32, Mailboxes, GlobalMut<'static, i64>, GlobalMut<'static, f32>);

/// The parameters of [`exact_rows`](fn@kernels::reduce::exact::rows::exact_rows).
type RowsParameters<T> = (Global<'static, T>, usize, usize, usize, u32, u32, u32, GlobalMut<'static, f32>);

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
    sum: KernelsOf<T>,
    mean: KernelsOf<T>,
}

/// The kernels of a type and of what is made of a sum.
struct KernelsOf<T: Element> {
    spans: AnyBlock<SpansParameters<T>>,
    rows: Kernel<RowsParameters<T>>,
    /// The result of no elements.
    of_nothing: f32,
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
                    let (spans, rows) = (exact_spans::handle::<Sum, $type>(), exact_rows::handle::<Sum, $type>());
                    let sum = KernelsOf { spans, rows, of_nothing: 0.0 };
                    let (spans, rows) = (exact_spans::handle::<Mean, $type>(), exact_rows::handle::<Mean, $type>());
                    ExactKernels { sum, mean: KernelsOf { spans, rows, of_nothing: f32::NAN } }
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
        self.exact_of_all(T::kernels(private::Token).sum, input.into())
    }

    /// The exact sum of a whole view over the number of its elements, rounded once; of nothing NaN. See
    /// [`Gpu::exact_sum`].
    ///
    /// # Errors
    /// As there.
    pub fn exact_mean<'a, T: ExactElement>(&self, input: impl Into<View<'a, T>>) -> Result<f32, Error> {
        self.exact_of_all(T::kernels(private::Token).mean, input.into())
    }

    /// The exact sum of each row, column or segment of a view, rounded once. See [`Gpu::exact_sum`].
    ///
    /// A row's sum is the same alone and among others, and that of the same elements as a column, with any pitch.
    /// Columns are transposed first, to memory that is as large as the view.
    ///
    /// ```
    /// use warpfold::{Gpu, Shape};
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// let matrix = gpu.upload(&[1e20_f32, 1.0, -1e20, 2.0, 3.0, 4.0])?;
    /// assert_eq!(gpu.download(&gpu.exact_sums(&matrix, Shape::rows(2, 3))?)?, [1.0, 9.0]);
    /// assert_eq!(gpu.download(&gpu.exact_sums(&matrix, Shape::columns(3, 2))?)?, [3.0, 7.0]);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Gpu::exact_sum`]; and the view is shorter than the shape.
    pub fn exact_sums<'a, T: ExactElement>(
        &self,
        input: impl Into<View<'a, T>>,
        shape: Shape,
    ) -> Result<Buffer<f32>, Error> {
        self.exact(T::kernels(private::Token).sum, input.into(), shape)
    }

    /// The exact mean of each row, column or segment of a view, rounded once. See [`Gpu::exact_sums`].
    ///
    /// # Errors
    /// As there.
    pub fn exact_means<'a, T: ExactElement>(
        &self,
        input: impl Into<View<'a, T>>,
        shape: Shape,
    ) -> Result<Buffer<f32>, Error> {
        self.exact(T::kernels(private::Token).mean, input.into(), shape)
    }

    fn exact_of_all<T: ExactElement>(&self, kernels: KernelsOf<T>, input: View<'_, T>) -> Result<f32, Error> {
        self.own(input.memory(), OPERATION)?;
        if input.is_empty() {
            return Ok(kernels.of_nothing);
        }
        Ok(self.download(&self.exact(kernels, input, Shape::all(input.len()))?)?[0])
    }

    /// What kernels make of exact sums.
    fn exact<T: ExactElement>(
        &self,
        kernels: KernelsOf<T>,
        input: View<'_, T>,
        shape: Shape,
    ) -> Result<Buffer<f32>, Error> {
        check_elements::<T>(shape)?;
        check_input(self, shape, input)?;
        match shape.kind {
            Kind::Spans { spans, len, pitch } => self.exact_spans(kernels, input, spans, len, pitch),
            Kind::Columns { batches, rows, columns, pitch, .. } => {
                let turned = Transposition::new(rows, columns).batch(batches).with_input_pitch(pitch)?;
                let mut as_rows = self.zeroed(batches * rows * columns)?;
                self.transpose_views(turned, input, as_rows.view_mut())?;
                self.exact_spans(kernels, as_rows.view(), batches * columns, rows, rows)
            }
        }
    }

    fn exact_spans<T: ExactElement>(
        &self,
        kernels: KernelsOf<T>,
        input: View<'_, T>,
        spans: usize,
        len: usize,
        pitch: usize,
    ) -> Result<Buffer<f32>, Error> {
        let size = size_of::<T>();
        if spans == 0 || len == 0 {
            return self.upload(&vec![kernels.of_nothing; spans]);
        }
        let mut output = self.zeroed(spans)?;
        let bytes = pitch.saturating_mul(size);
        let has_singles =
            !(len.is_multiple_of(16 / size) && bytes.is_multiple_of(16) && input.device_address().is_multiple_of(16));
        if let Some(Lanes { lanes, packs, rows_of_block }) = Lanes::of(spans, len, size, has_singles) {
            let grid = blocks(spans.div_ceil(rows_of_block))?;
            let arguments =
                (input, spans, len, pitch, lanes.ilog2(), packs.ilog2(), u32::from(has_singles), output.view_mut());
            self.launch(kernels.rows, (grid, 1), arguments)?;
            return Ok(output);
        }
        let Blocks { parts, tiles, longer, threads } = Blocks::of(spans, len, size);
        let shared = if parts > 1 { spans } else { 0 };
        let room = Room { mailboxes: parts as usize * shared, residues: WORDS_OF_RESIDUE * shared, ..Room::default() };
        let mut workspace = self.workspaces().take(self, room)?;
        let (mailboxes, residues) = (workspace.mailboxes.view_mut(), workspace.residues.view_mut());
        let arguments = (input, len, pitch, parts, tiles, longer, mailboxes, residues, output.view_mut());
        let spans = blocks(spans)?;
        let grid = if parts > 1 { (parts, spans) } else { (spans, 1) };
        self.launch(kernels.spans.with_block(threads), grid, arguments)?;
        self.workspaces().put_back(workspace);
        Ok(output)
    }
}

/// The operation's name, for messages.
const OPERATION: &str = "sum exactly";

/// A number of blocks, if a grid has as many.
fn blocks(count: usize) -> Result<u32, Error> {
    const MOST: usize = i32::MAX as usize;
    u32::try_from(count).ok().filter(|_| count <= MOST).ok_or_else(|| Error::Shape {
        operation: OPERATION,
        what: "the number of blocks",
        found: count,
        expected: format!("and a grid has at most {MOST}"),
    })
}

/// How lanes take short rows. It does not change the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lanes {
    /// Lanes of a row.
    lanes: u32,
    /// Packs of a row that each of them has.
    packs: u32,
    rows_of_block: usize,
}

impl Lanes {
    /// Those of `rows` rows of `len` elements of `size` bytes, which may have singles beside whole packs; none if the
    /// rows are long, or there is one.
    fn of(rows: usize, len: usize, size: usize, has_singles: bool) -> Option<Self> {
        /// Lanes that take a row before one of them takes two packs of it: what they load is beside each other.
        const COALESCED: usize = 4;
        let packs_of_row = len / (16 / size);
        if rows == 1 || packs_of_row > 32 * rows::PACKS {
            return None;
        }
        let least = if has_singles { least_lanes(size) as usize } else { 1 };
        let lanes = packs_of_row.div_ceil(rows::PACKS).max(packs_of_row.min(COALESCED)).next_power_of_two().max(least);
        let packs = packs_of_row.div_ceil(lanes).next_power_of_two();
        let rows_of_block = rows::BLOCK / lanes * rows::PACKS / packs;
        Some(Self { lanes: lanes as u32, packs: packs as u32, rows_of_block })
    }
}

/// How blocks sum long spans. It does not change the results.
#[derive(Clone, Copy, Debug)]
struct Blocks {
    parts: u32,
    /// Tiles of the shorter parts, and how many parts have one more.
    tiles: u32,
    longer: u32,
    threads: u32,
}

impl Blocks {
    /// Those of `spans` spans of `len` elements of `size` bytes.
    fn of(spans: usize, len: usize, size: usize) -> Self {
        /// Threads of a block that is one of many, of which three run in each multiprocessor.
        const THREADS: usize = 256;
        const MOST: usize = 3 * MULTIPROCESSORS;
        /// Threads of a block that sums all by itself, of which each has one tile.
        const ALONE: usize = 512;
        let packs = len.div_ceil(16 / size);
        let alone = packs.div_ceil(PACKS_IN_FLIGHT).next_power_of_two().max(32);
        let threads = if alone <= ALONE { alone } else { THREADS };
        let tiles = packs.div_ceil(threads * PACKS_IN_FLIGHT).max(1);
        let parts = tiles.min((MOST / spans).max(1));
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
                let Blocks { parts, tiles, longer, threads } = Blocks::of(1, len, size);
                let tile = threads as usize * PACKS_IN_FLIGHT * 16 / size;
                let all = tiles as usize * parts as usize + longer as usize;
                assert_eq!(all, len.div_ceil(tile), "{len} of {size} bytes");
                assert!(longer < parts && tiles > 0 && threads.is_power_of_two());
            }
        }
    }

    #[test]
    fn lanes_hold_a_row() {
        for size in [2, 4] {
            for len in 1..=1100 {
                for has_singles in [false, true] {
                    let len = if has_singles { len } else { len * 16 / size };
                    let Some(found) = Lanes::of(1000, len, size, has_singles) else {
                        assert!(len * size > 32 * 4 * 16, "{len} of {size} bytes");
                        continue;
                    };
                    let Lanes { lanes, packs, rows_of_block } = found;
                    assert!((lanes * packs) as usize * 16 / size + if has_singles { 16 / size } else { 0 } > len - 1);
                    assert!(lanes <= 32 && packs <= 4 && lanes.is_power_of_two() && packs.is_power_of_two());
                    // Two singles of each lane: what is before the first pack and what is behind the last.
                    assert!(!has_singles || lanes as usize * 2 >= 2 * (16 / size - 1));
                    assert_eq!(rows_of_block, 128 / lanes as usize * 4 / packs as usize);
                }
            }
        }
        let of = |len| Lanes::of(9, len, 4, false).map(|found| (found.lanes, found.packs));
        let expected = [Some((1, 1)), Some((4, 1)), Some((4, 4)), Some((32, 4)), None];
        assert_eq!([4, 16, 64, 512, 516].map(of), expected);
    }

    #[test]
    fn long_inputs_fill_the_device_once() {
        let parts = |len| Blocks::of(1, len, 4).parts;
        assert_eq!([1 << 12, 1 << 13, 1 << 14, 1 << 20, 1 << 30].map(parts), [1, 1, 4, 256, 396]);
    }
}
