//! Exact sums of segments of any lengths, whose offsets are in the device's memory.

use cuda_std::element::Element;
use cuda_std::global::{Global, GlobalMut};
use kernels::reduce::exact::long_segments::residues;
use kernels::reduce::segments::{self, NOTE_OF_FAULT};

use super::exact::private;
use super::workspace::Room;
use super::{ExactReduction, Partials, Tickets};
use crate::{Buffer, Error, Gpu, Kernel, MULTIPROCESSORS, View};

const OPERATION: &str = "sum segments exactly";

/// Warps that the segments are spread over before one gets a second segment: as many as an H200 runs at once.
const WARPS: usize = MULTIPROCESSORS * 32;

/// Blocks for long segments that it runs at once.
const BLOCKS: usize = 3 * MULTIPROCESSORS;

type Chunks = Global<'static, [u64; 2]>;
type ChunksMut = GlobalMut<'static, [u64; 2]>;
type Notes = GlobalMut<'static, u64>;
type Residues = GlobalMut<'static, i64>;

/// The parameters of [`exact_segments`](fn@kernels::reduce::exact::segments::exact_segments).
type SegmentsParameters<T, R> =
    (Global<'static, T>, Global<'static, u64>, u32, ChunksMut, Notes, GlobalMut<'static, R>);

/// The parameters of [`exact_long_segments`](fn@kernels::reduce::exact::long_segments::exact_long_segments).
type LongSegmentsParameters<T, R> =
    (Global<'static, T>, Chunks, Notes, Partials, Tickets, Residues, GlobalMut<'static, R>);

/// The kernels of an operator for segments by offsets.
#[doc(hidden)]
pub struct ExactSegmentKernels<T: Element, R: Element> {
    pub(super) segments: Kernel<SegmentsParameters<T, R>>,
    pub(super) long_segments: Kernel<LongSegmentsParameters<T, R>>,
}

/// The [`ExactSegmentKernels`] of an operator.
macro_rules! segment_kernels {
    ($operator:ty, $type:ty) => {{
        use kernels::reduce::exact::{long_segments::exact_long_segments, segments::exact_segments};
        // SAFETY: whoever has them cannot launch them: only `Gpu::exact_segments` does.
        let segments = unsafe { exact_segments::handle::<$operator, $type>() };
        // SAFETY: as above.
        let long_segments = unsafe { exact_long_segments::handle::<$operator, $type>() };
        $crate::reduce::exact_segments::ExactSegmentKernels { segments, long_segments }
    }};
}
pub(super) use segment_kernels;

impl Gpu {
    /// [`Gpu::exact`] of each segment of a view: segment `i` is the elements from `offsets[i]` up to `offsets[i + 1]`,
    /// that one not included, as in a sparse matrix in CSR. There is one offset more than there are segments, and a
    /// segment may be empty: then a mean is NaN, and all else 0.
    ///
    /// A segment's result is that of its elements alone, in any order, as a row or by themselves. Waits for the
    /// results, to know that all offsets were good.
    ///
    /// ```
    /// use warpfold::{Gpu, ops};
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// let (x, offsets) = (gpu.upload(&[1e20_f32, 1.0, -1e20, 2.0])?, gpu.upload(&[0_u64, 3, 3, 4])?);
    /// assert_eq!(gpu.download(&gpu.exact_segments(ops::Sum, &x, &offsets)?)?, [1.0, 0.0, 2.0]);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// There are no offsets, some are not in order or beyond the input (the first such segment is named), a view is
    /// another device's, there is no memory, or work before has failed.
    pub fn exact_segments<'i, 'o, O: ExactReduction<T>, T: Element>(
        &self,
        _operator: O,
        input: impl Into<View<'i, T>>,
        offsets: impl Into<View<'o, u64>>,
    ) -> Result<Buffer<O::Output>, Error> {
        let (kernels, input, offsets) = (O::kernels(private::Token), input.into(), offsets.into());
        let Some(segments) = offsets.len().checked_sub(1) else {
            return Err(Error::Length { operation: OPERATION, what: "the offsets", found: 0, expected: 1 });
        };
        for memory in [input.memory(), offsets.memory()] {
            self.own(memory, OPERATION)?;
        }
        let mut output = self.zeroed(segments)?;
        if segments == 0 {
            return Ok(output);
        }
        let per_warp = per_warp(segments);
        let grid = segments.div_ceil(per_warp * (segments::BLOCK / 32));
        let grid = u32::try_from(grid).ok().filter(|&grid| grid <= i32::MAX as u32).ok_or_else(|| Error::Shape {
            operation: OPERATION,
            what: "the number of segments",
            found: segments,
            expected: "more than a grid has blocks for".to_owned(),
        })?;
        let (size, elements) = (size_of::<T>(), input.len());
        // Without an element that one warp does not sum there is nothing to queue.
        let has_long = elements > segments::WARP_PACKS * (16 / size);
        let room = if has_long { segments::most_chunks(elements, size) } else { 0 };
        let residues = residues(elements, size) * kernels.words;
        let mut chunks = self.zeroed::<[u64; 2]>(room * segments::PLACES_OF_CHUNK)?;
        let mut notes = Buffer::<u64>::workspace(&self.machine(), 2)?;
        let mut workspace =
            self.workspaces().take(self, Room { residues, partials: room, tickets: 1 + room, ..Room::default() })?;
        let arguments = (input, offsets, per_warp as u32, chunks.view_mut(), notes.view_mut(), output.view_mut());
        self.launch(kernels.segments.segments, grid, arguments)?;
        if has_long {
            let (partials, tickets) = (workspace.partials.view_mut(), workspace.tickets.view_mut());
            let (notes, residues) = (notes.view_mut(), workspace.residues.view_mut());
            let arguments = (input, chunks.view(), notes, partials, tickets, residues, output.view_mut());
            self.launch(kernels.segments.long_segments, BLOCKS.min(room) as u32, arguments)?;
        }
        match self.download(&notes)?[NOTE_OF_FAULT] {
            0 => {
                self.workspaces().put_back(workspace);
                Ok(output)
            }
            fault => Err(Error::Offsets { segment: !fault }),
        }
    }
}

/// The segments of each warp: several, once all warps have one.
fn per_warp(segments: usize) -> usize {
    1 << (segments / WARPS).clamp(1, 32).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warps_share_segments_when_there_are_many() {
        assert_eq!([1, 4224, 8447].map(per_warp), [1, 1, 1]);
        assert_eq!([8448, 100_000, 10_000_000].map(per_warp), [2, 16, 32]);
    }

    #[test]
    fn each_segment_of_several_chunks_has_a_residue_of_its_own() {
        for size in [2, 4, 8] {
            let least = (1..).find(|&len| segments::chunks(len, size) > 1).unwrap();
            assert_eq!((residues(least - 1, size), residues(least, size)), (0, 2));
            assert!(residues(7 * least + 5, size) >= 7);
        }
    }
}
