//! Exact sums, and what is made of them.

use cuda_std::element::Element;
use cuda_std::global::{Global, GlobalMut};
use half::{bf16, f16};
use kernels::ops::{Dot, Mean, Norm, Sum, SumInF64, SumOfSquares};
use kernels::reduce::exact::columns::{blocks_at_once, exact_columns, exact_columns_in_f64, rows_in_flight};
use kernels::reduce::exact::rows::{self, exact_rows, least_lanes};
use kernels::reduce::exact::spans::{
    PACKS_IN_FLIGHT, PAIRS_IN_FLIGHT, exact_pairs, exact_spans, words_of_pairs_residue, words_of_residue,
};

use super::exact_segments::{ExactSegmentKernels, segment_kernels};
use super::plan::{AtOnce, Tiles};
use super::reducer::{check_elements, check_input};
use super::shape::Kind;
use super::workspace::Room;
use super::{Mailboxes, Shape, Tickets, pairs};
use crate::{AnyBlock, Buffer, Error, Gpu, Kernel, MULTIPROCESSORS, Transposition, View};

type Residues = GlobalMut<'static, i64>;

/// The parameters of [`exact_spans`](fn@kernels::reduce::exact::spans::exact_spans).
type SpansParameters<T, R> =
    (Global<'static, T>, usize, usize, u32, u32, u32, Mailboxes, Residues, GlobalMut<'static, R>);

/// The parameters of [`exact_pairs`](fn@kernels::reduce::exact::spans::exact_pairs).
type PairsParameters<T, R> =
    (Global<'static, T>, Global<'static, T>, usize, usize, u32, u32, u32, Mailboxes, Residues, GlobalMut<'static, R>);

/// The parameters of [`exact_rows`](fn@kernels::reduce::exact::rows::exact_rows).
type RowsParameters<T, R> = (Global<'static, T>, usize, usize, usize, u32, u32, u32, GlobalMut<'static, R>);

/// The parameters of [`exact_columns`](fn@kernels::reduce::exact::columns::exact_columns).
type ColumnsParameters<T, R> =
    (Global<'static, T>, usize, usize, usize, usize, u32, u32, u32, u32, Residues, Tickets, GlobalMut<'static, R>);

/// An operator of floats whose results are exact sums, or made of them, and rounded once.
///
/// Nobody else can implement it.
pub trait ExactReduction<T: Element>: private::Sealed<T> {
    /// What sums are given out as: `f32`, or `f64` of `f64` and by [`SumInF64`].
    type Output: Element;
    #[doc(hidden)]
    fn kernels(_: private::Token) -> ExactKernels<T, Self::Output>;
}

/// A float whose products are summed exactly: `f16`, `bf16`, `f32` or `f64`.
///
/// Nobody else can implement it.
pub trait ExactElement: Element + private::Sealed<Self> {
    /// What sums are given out as: `f32`, or `f64` of `f64`.
    type Output: Element;
    #[doc(hidden)]
    fn dot(_: private::Token) -> DotKernel<Self, Self::Output>;
}

/// The kernels of an operator.
#[doc(hidden)]
pub struct ExactKernels<T: Element, R: Element> {
    spans: AnyBlock<SpansParameters<T, R>>,
    rows: Kernel<RowsParameters<T, R>>,
    /// The kernel for columns, and how many blocks of it a multiprocessor runs at once. If there is none, columns are
    /// transposed.
    columns: Option<(Kernel<ColumnsParameters<T, R>>, usize)>,
    pub(super) segments: ExactSegmentKernels<T, R>,
    /// Words of a residue.
    pub(super) words: usize,
    /// The result of no elements.
    of_nothing: R,
}

/// The kernel of a dot product.
#[doc(hidden)]
pub struct DotKernel<T: Element, R: Element> {
    pairs: AnyBlock<PairsParameters<T, R>>,
    words: usize,
}

pub(super) mod private {
    /// Only this crate can name it.
    pub struct Token;

    pub trait Sealed<T> {}
}

macro_rules! exact_reductions {
    ($($operator:ident of $($type:ident)*, to $output:ident, of nothing $of_nothing:expr, $columns:ident;)*) => {$($(
        impl private::Sealed<$type> for $operator {}

        impl ExactReduction<$type> for $operator {
            type Output = $output;

            fn kernels(_: private::Token) -> ExactKernels<$type, $output> {
                // SAFETY: whoever has them cannot launch them: only the functions below do.
                let spans = unsafe { exact_spans::handle::<Self, $type>() };
                // SAFETY: as above.
                let rows = unsafe { exact_rows::handle::<Self, $type>() };
                let columns = exact_reductions!($columns, $operator, $type);
                let (segments, words) = (segment_kernels!(Self, $type), words_of_residue::<Self, $type>());
                ExactKernels { spans, rows, columns, segments, words, of_nothing: $of_nothing }
            }
        }
    )*)*};
    (in_f32, $operator:ident, $type:ident) => {
        // SAFETY: as above.
        Some((unsafe { exact_columns::handle::<$operator, $type>() }, blocks_at_once(size_of::<f32>())))
    };
    (in_f64, $operator:ident, $type:ident) => {
        // SAFETY: as above.
        Some((unsafe { exact_columns_in_f64::handle::<$operator, $type>() }, blocks_at_once(size_of::<f64>())))
    };
    (transposed, $operator:ident, $type:ident) => {
        None
    };
}

exact_reductions! {
    Sum of f32 f16 bf16, to f32, of nothing 0.0, in_f32;
    Sum of f64, to f64, of nothing 0.0, in_f64;
    SumInF64 of f32, to f64, of nothing 0.0, in_f32;
    Mean of f32 f16 bf16, to f32, of nothing f32::NAN, in_f32;
    Mean of f64, to f64, of nothing f64::NAN, in_f64;
    SumOfSquares of f32 f16 bf16, to f32, of nothing 0.0, in_f64;
    SumOfSquares of f64, to f64, of nothing 0.0, transposed;
    Norm of f32 f16 bf16, to f32, of nothing 0.0, in_f64;
    Norm of f64, to f64, of nothing 0.0, transposed;
}

macro_rules! exact_dots {
    ($($type:ident to $output:ident),*) => {$(
        impl private::Sealed<$type> for $type {}

        impl ExactElement for $type {
            type Output = $output;

            fn dot(_: private::Token) -> DotKernel<$type, $output> {
                // SAFETY: as above.
                let pairs = unsafe { exact_pairs::handle::<Dot, $type>() };
                DotKernel { pairs, words: words_of_pairs_residue::<Dot, $type>() }
            }
        }
    )*};
}

exact_dots!(f32 to f32, f16 to f32, bf16 to f32, f64 to f64);

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
    pub fn exact_sum<'a, T: Element>(
        &self,
        input: impl Into<View<'a, T>>,
    ) -> Result<<Sum as ExactReduction<T>>::Output, Error>
    where
        Sum: ExactReduction<T>,
    {
        self.exact(Sum, input)
    }

    /// What is made of the exact sum of a whole view's elements, or of their squares, rounded once: a [`Sum`] or
    /// [`Mean`], [`SumOfSquares`] or [`Norm`], and of `f32` a sum rounded to `f64`, [`SumInF64`]. See
    /// [`Gpu::exact_sum`].
    ///
    /// The mean is the exact sum over the number of elements, of nothing NaN; the norm the root of the exact sum of the
    /// exact squares: both rounded once.
    ///
    /// ```
    /// use warpfold::{Gpu, ops};
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// let numbers = gpu.upload(&[3e-200_f64, 4e-200])?;
    /// assert_eq!(gpu.exact(ops::Norm, &numbers)?, 5e-200);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Gpu::exact_sum`].
    pub fn exact<'a, O: ExactReduction<T>, T: Element>(
        &self,
        _operator: O,
        input: impl Into<View<'a, T>>,
    ) -> Result<O::Output, Error> {
        let (kernels, input) = (O::kernels(private::Token), input.into());
        self.own(input.memory(), OPERATION)?;
        if input.is_empty() {
            return Ok(kernels.of_nothing);
        }
        Ok(self.download(&self.exact_by(kernels, input, Shape::all(input.len()))?)?[0])
    }

    /// [`Gpu::exact`] of each row, column or segment of a view.
    ///
    /// A row's result is the same alone and among others, and that of the same elements as a column, with any pitch.
    /// Columns are transposed first, to memory that is as large as the view.
    ///
    /// ```
    /// use warpfold::{Gpu, Shape, ops};
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// let matrix = gpu.upload(&[1e20_f32, 1.0, -1e20, 2.0, 3.0, 4.0])?;
    /// assert_eq!(gpu.download(&gpu.exact_to_buffer(ops::Sum, &matrix, Shape::rows(2, 3))?)?, [1.0, 9.0]);
    /// assert_eq!(gpu.download(&gpu.exact_to_buffer(ops::Sum, &matrix, Shape::columns(3, 2))?)?, [3.0, 7.0]);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Gpu::exact_sum`]; and the view is shorter than the shape.
    pub fn exact_to_buffer<'a, O: ExactReduction<T>, T: Element>(
        &self,
        _operator: O,
        input: impl Into<View<'a, T>>,
        shape: Shape,
    ) -> Result<Buffer<O::Output>, Error> {
        self.exact_by(O::kernels(private::Token), input.into(), shape)
    }

    /// The exact dot product of two vectors: exact products, their exact sum, rounded once. Of nothing 0. See
    /// [`Gpu::exact_sum`].
    ///
    /// ```
    /// use warpfold::Gpu;
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// let (x, y) = (gpu.upload(&[1e300_f64, 3.0, -1e300])?, gpu.upload(&[1e300_f64, 4.0, 1e300])?);
    /// assert_eq!(gpu.exact_dot(&x, &y)?, 12.0);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// Their lengths differ; and as [`Gpu::exact_sum`].
    pub fn exact_dot<'x, 'y, T: ExactElement>(
        &self,
        x: impl Into<View<'x, T>>,
        y: impl Into<View<'y, T>>,
    ) -> Result<T::Output, Error> {
        let (x, y) = (x.into(), y.into());
        if x.len() != y.len() {
            let (found, expected) = (y.len(), x.len());
            return Err(Error::Length { operation: "dot", what: "the second input", found, expected });
        }
        Ok(self.download(&self.exact_dots(x, y, Shape::all(x.len()))?)?[0])
    }

    /// [`Gpu::exact_dot`] of all of two inputs, or of each of their rows.
    ///
    /// # Errors
    /// A view is shorter than the shape, or the shape is one of columns; and as [`Gpu::exact_sum`].
    pub fn exact_dots<'x, 'y, T: ExactElement>(
        &self,
        x: impl Into<View<'x, T>>,
        y: impl Into<View<'y, T>>,
        shape: Shape,
    ) -> Result<Buffer<T::Output>, Error> {
        let (x, y, DotKernel { pairs, words }) = (x.into(), y.into(), T::dot(private::Token));
        let (spans, len, pitch) = pairs::spans::<T>(shape)?;
        pairs::check_inputs(self, shape, x, y)?;
        let mut output = self.zeroed(spans)?;
        if spans == 0 || len == 0 {
            return Ok(output);
        }
        let blocks = Blocks::of(spans, len, size_of::<T>(), PAIRS_IN_FLIGHT, 2);
        let mut workspace = self.workspaces().take(self, blocks.room(spans, words))?;
        let (mailboxes, residues) = (workspace.mailboxes.view_mut(), workspace.residues.view_mut());
        let Blocks { parts, tiles, longer, threads } = blocks;
        let arguments = (x, y, len, pitch, parts, tiles, longer, mailboxes, residues, output.view_mut());
        self.launch(pairs.with_block(threads), blocks.grid(spans)?, arguments)?;
        self.workspaces().put_back(workspace);
        Ok(output)
    }

    /// What kernels make of exact sums.
    fn exact_by<T: Element, R: Element>(
        &self,
        kernels: ExactKernels<T, R>,
        input: View<'_, T>,
        shape: Shape,
    ) -> Result<Buffer<R>, Error> {
        check_elements::<T>(shape)?;
        check_input(self, shape, input)?;
        match shape.kind {
            Kind::Spans { spans, len, pitch } => self.exact_spans(kernels, input, spans, len, pitch),
            Kind::Columns { batches, rows, columns, pitch, batch_pitch } => match kernels.columns {
                Some(_) if rows == 0 || columns == 0 || batches == 0 => {
                    self.upload(&vec![kernels.of_nothing; batches * columns])
                }
                Some((kernel, blocks)) => {
                    let at_once = AtOnce { rows: rows_in_flight(size_of::<T>()), blocks: blocks * MULTIPROCESSORS };
                    let split = Tiles::of(rows, columns, batches, size_of::<T>(), at_once);
                    // What separates nothing shall not look like bad alignment.
                    let batch_pitch = if batches == 1 { 0 } else { batch_pitch };
                    let Tiles { abreast, lanes, parts } = split;
                    let tiles = split.count(columns);
                    let grid = number_of_blocks(tiles.saturating_mul(parts as usize).saturating_mul(batches))?;
                    let mut output = self.zeroed(batches * columns)?;
                    let shared = if parts > 1 { batches } else { 0 };
                    let mut workspace = self.workspaces().take(
                        self,
                        Room {
                            residues: shared * columns * kernels.words,
                            tickets: shared * if abreast == 1 { tiles } else { 1 },
                            ..Room::default()
                        },
                    )?;
                    let (residues, tickets) = (workspace.residues.view_mut(), workspace.tickets.view_mut());
                    // No more than the grid has blocks.
                    let tiles = tiles as u32;
                    let arguments = (
                        input,
                        rows,
                        columns,
                        pitch,
                        batch_pitch,
                        abreast,
                        lanes,
                        tiles,
                        parts,
                        residues,
                        tickets,
                        output.view_mut(),
                    );
                    self.launch(kernel, (grid, 1), arguments)?;
                    self.workspaces().put_back(workspace);
                    Ok(output)
                }
                None => {
                    let turned = Transposition::new(rows, columns).batch(batches).with_input_pitch(pitch)?;
                    let mut as_rows = self.zeroed(batches * rows * columns)?;
                    self.transpose_views(turned, input, as_rows.view_mut())?;
                    self.exact_spans(kernels, as_rows.view(), batches * columns, rows, rows)
                }
            },
        }
    }

    fn exact_spans<T: Element, R: Element>(
        &self,
        kernels: ExactKernels<T, R>,
        input: View<'_, T>,
        spans: usize,
        len: usize,
        pitch: usize,
    ) -> Result<Buffer<R>, Error> {
        let size = size_of::<T>();
        if spans == 0 || len == 0 {
            return self.upload(&vec![kernels.of_nothing; spans]);
        }
        let mut output = self.zeroed(spans)?;
        let bytes = pitch.saturating_mul(size);
        let has_singles =
            !(len.is_multiple_of(16 / size) && bytes.is_multiple_of(16) && input.device_address().is_multiple_of(16));
        if let Some(Lanes { lanes, packs, rows_of_block }) = Lanes::of(spans, len, size, has_singles) {
            let grid = number_of_blocks(spans.div_ceil(rows_of_block))?;
            let arguments =
                (input, spans, len, pitch, lanes.ilog2(), packs.ilog2(), u32::from(has_singles), output.view_mut());
            self.launch(kernels.rows, (grid, 1), arguments)?;
            return Ok(output);
        }
        let blocks = Blocks::of(spans, len, size, PACKS_IN_FLIGHT, 3);
        let mut workspace = self.workspaces().take(self, blocks.room(spans, kernels.words))?;
        let (mailboxes, residues) = (workspace.mailboxes.view_mut(), workspace.residues.view_mut());
        let Blocks { parts, tiles, longer, threads } = blocks;
        let arguments = (input, len, pitch, parts, tiles, longer, mailboxes, residues, output.view_mut());
        self.launch(kernels.spans.with_block(threads), blocks.grid(spans)?, arguments)?;
        self.workspaces().put_back(workspace);
        Ok(output)
    }
}

/// The operation's name, for messages.
const OPERATION: &str = "sum exactly";

/// A number of blocks, if a grid has as many.
fn number_of_blocks(count: usize) -> Result<u32, Error> {
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
    /// Those of `spans` spans of `len` elements of `size` bytes, of which a thread has so many vectors in flight, where
    /// a multiprocessor runs so many blocks of 256 threads at once.
    fn of(spans: usize, len: usize, size: usize, in_flight: usize, at_once: usize) -> Self {
        /// Threads of a block that is one of many.
        const THREADS: usize = 256;
        /// Threads of a block that sums all by itself, of which each has one tile.
        const ALONE: usize = 512;
        let packs = len.div_ceil(16 / size);
        let alone = packs.div_ceil(in_flight).next_power_of_two().max(32);
        let threads = if alone <= ALONE { alone } else { THREADS };
        let tiles = packs.div_ceil(threads * in_flight).max(1);
        let parts = tiles.min((at_once * MULTIPROCESSORS / spans).max(1));
        // No address space has more tiles than 32 bits count: one of a long input is at least 16 KiB.
        let (tiles, longer) = ((tiles / parts) as u32, (tiles % parts) as u32);
        Self { parts: parts as u32, tiles, longer, threads: threads as u32 }
    }

    /// What blocks that share spans leave each other, with residues of so many words.
    fn room(&self, spans: usize, words: usize) -> Room {
        let shared = if self.parts > 1 { spans } else { 0 };
        Room { mailboxes: self.parts as usize * shared, residues: words * shared, ..Room::default() }
    }

    fn grid(&self, spans: usize) -> Result<(u32, u32), Error> {
        let spans = number_of_blocks(spans)?;
        Ok(if self.parts > 1 { (self.parts, spans) } else { (spans, 1) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_all_tiles_once_and_sums_that_fit() {
        for size in [2, 4, 8] {
            for len in [1, 100, 8192, 8193, 16384, 16385, (1 << 20) + 3, (1 << 32) + 7] {
                let Blocks { parts, tiles, longer, threads } = Blocks::of(1, len, size, PACKS_IN_FLIGHT, 3);
                let tile = threads as usize * PACKS_IN_FLIGHT * 16 / size;
                let all = tiles as usize * parts as usize + longer as usize;
                assert_eq!(all, len.div_ceil(tile), "{len} of {size} bytes");
                assert!(longer < parts && tiles > 0 && threads.is_power_of_two());
            }
        }
    }

    #[test]
    fn lanes_hold_a_row() {
        for size in [2, 4, 8] {
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
        let parts = |len| Blocks::of(1, len, 4, PACKS_IN_FLIGHT, 3).parts;
        assert_eq!([1 << 12, 1 << 13, 1 << 14, 1 << 20, 1 << 30].map(parts), [1, 1, 4, 256, 396]);
    }
}
