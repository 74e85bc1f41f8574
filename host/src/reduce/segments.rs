//! Segments of any lengths, with offsets in device memory.

use cuda_std::element::{Element, Plain};
use kernels::reduce::exact::lane_memory::LaneMemory;
use kernels::reduce::exact::long_segments::{
    self, ExactLongSegmentArgs, log2_min_tiles, max_superaccumulators, resident_threads,
};
use kernels::reduce::exact::segments::ExactSegmentArgs;
use kernels::reduce::reduction::{ExactHandles, Kernels, Reduction, StateHandles};
use kernels::reduce::segments::{self, INVALID_SEGMENT, LongSegmentArgs, SegmentArgs};

use super::lane_memory::lane_memory_bytes;
use crate::{Buffer, Error, Gpu, Kernel, View, ViewMut};

const OPERATION: &str = "reduce segments";

/// The resident warps of the first kernel and the resident blocks of the second, for elements of `size` bytes. No warp
/// gets a second segment before each of the resident warps has one.
fn resident(is_exact: bool, size: usize, multiprocessors: usize) -> (usize, usize) {
    let (warps, blocks) = if is_exact { (32, resident_threads(size) / long_segments::block(size)) } else { (64, 4) };
    (warps * multiprocessors, blocks * multiprocessors)
}

/// The two kernels of a reduction to results of type `R`. The first reduces short segments and queues long ones, which
/// the second reduces.
enum SegmentKernels<T: Element, R: Plain> {
    OfStates {
        /// The operator's value.
        operator: u64,
        segments: Kernel<SegmentArgs<'static, T, R>>,
        long_segments: Kernel<LongSegmentArgs<'static, T, R>>,
        /// The [entries](segments::entries_per_partial) that a state takes.
        entries_per_state: usize,
    },
    Exact {
        segments: Kernel<ExactSegmentArgs<'static, T>>,
        long_segments: Kernel<ExactLongSegmentArgs<'static, T>>,
        lane_memory: LaneMemory,
        /// Words of a superaccumulator.
        words: usize,
        /// Selects the result computed from the sums.
        finish: u32,
        /// The fields of a custom term.
        term: u64,
    },
}

impl<T: Element, R: Plain> SegmentKernels<T, R> {
    fn of<O: Reduction<T, Output = R>>(operator: O) -> Result<Self, Error> {
        match operator.kernels() {
            Kernels::OfStates(kernels) => {
                // SAFETY: only a `SegmentReducer` launches them.
                let StateHandles { segments, long_segments, .. } = *unsafe { kernels.handles() };
                let entries_per_state = segments::entries_per_partial(size_of::<O::State>());
                Ok(Self::OfStates { operator: kernels.operator(), segments, long_segments, entries_per_state })
            }
            Kernels::Exact(kernels) => {
                if let Some(operator) = kernels.nonzero_at_zero() {
                    return Err(Error::TermOfZero { operator });
                }
                // SAFETY: as above, and the results' type is the reducer's.
                let ExactHandles { segments, long_segments, .. } = *unsafe { kernels.handles() };
                let lane_memory = kernels.lane_memory();
                Ok(Self::Exact {
                    segments,
                    long_segments,
                    lane_memory,
                    words: kernels.words(),
                    finish: kernels.finish(),
                    term: kernels.term(),
                })
            }
        }
    }
}

/// A reduction of segments by one operator, with its workspace. Starting it neither allocates nor waits.
///
/// Segment `i` is the elements `offsets[i]..offsets[i + 1]`, so there is one more offset than segments, as in a sparse
/// matrix in CSR format. The result of an empty segment is the operator's result for no elements: 0 for a sum, 1 for a
/// product, NaN for a mean, the largest value for a minimum and the smallest for a maximum (the infinities, for
/// floats), and [`u64::MAX`] for the index of either.
///
/// The bits of a segment's result depend on the segment's elements alone. If an operator's result depends on the order
/// of the elements, the order in a segment by offsets may differ from that in a row of the same length.
///
/// Made by [`Gpu::segment_reducer`].
///
/// ```
/// use warpfold::{Gpu, ops::Sum};
///
/// let gpu = Gpu::first_or_simt()?;
/// let (x, offsets) = (gpu.upload(&[1.0_f32, 2.0, 3.0, 4.0])?, gpu.upload(&[0_u64, 3, 3, 4])?);
/// let mut sums = gpu.zeroed::<f32>(3)?;
/// let mut reducer = gpu.segment_reducer(Sum, 3, 4)?;
/// reducer.start(&x, &offsets, &mut sums)?;
/// reducer.check()?;
/// assert_eq!(gpu.download(&sums)?, [6.0, 0.0, 4.0]);
/// # Ok::<(), warpfold::Error>(())
/// ```
pub struct SegmentReducer<T: Element, R: Plain> {
    gpu: Gpu,
    kernels: SegmentKernels<T, R>,
    segments: usize,
    elements: usize,
    chunks: Buffer<[u64; 2]>,
    /// 0 between launches, except for a fault not yet read.
    status: Buffer<u64>,
    partials: Buffer<[u64; 2]>,
    /// 0 between launches.
    tickets: Buffer<u32>,
    /// For the parts of exact sums that do not fit in partials; 0 between launches.
    superaccumulators: Buffer<i64>,
}

impl Gpu {
    /// A reduction of `segments` segments with its workspace, which can be started any number of times.
    ///
    /// Each input has at most `elements` elements. The workspace takes about 1/140 of the input's memory. For exact
    /// sums of `f32` it takes 1/110, of `f64` 1/60, and of squares of `f64` 1/40.
    ///
    /// # Errors
    /// Memory for the workspace runs out, or no memory could hold the input.
    pub fn segment_reducer<O: Reduction<T>, T: Element>(
        &self,
        operator: O,
        segments: usize,
        elements: usize,
    ) -> Result<SegmentReducer<T, O::Output>, Error> {
        let kernels = SegmentKernels::of(operator)?;
        let size = size_of::<T>();
        if elements.checked_mul(size).is_none() || segments == usize::MAX {
            let (what, found) = if segments == usize::MAX {
                ("the number of segments", segments)
            } else {
                ("the input's length", elements)
            };
            let expected = "more than any memory could hold".to_owned();
            return Err(Error::Shape { operation: OPERATION, what, found, expected });
        }
        // If one warp could fold the whole input, no segment is queued.
        let has_long = elements > segments::MAX_WARP_SEGMENT_VECTORS * (16 / size);
        let max_chunks = match &kernels {
            SegmentKernels::OfStates { .. } => segments::max_chunks,
            SegmentKernels::Exact { .. } => long_segments::max_chunks,
        };
        let capacity = if has_long { max_chunks(elements, size) } else { 0 };
        let (entries_per_state, superaccumulators) = match &kernels {
            SegmentKernels::OfStates { entries_per_state, .. } => (*entries_per_state, 0),
            SegmentKernels::Exact { words, .. } => (1, max_superaccumulators(elements, size) * words),
        };
        let backend = self.backend();
        Ok(SegmentReducer {
            gpu: self.clone(),
            kernels,
            segments,
            elements,
            chunks: self.zeroed(capacity * segments::ENTRIES_PER_CHUNK)?,
            status: Buffer::workspace(&backend, 2)?,
            partials: self.zeroed(capacity * entries_per_state)?,
            tickets: Buffer::workspace(&backend, 1 + capacity)?,
            superaccumulators: Buffer::workspace(&backend, superaccumulators)?,
        })
    }

    /// Reduces segments to a buffer with one output for each. [`SegmentReducer`] describes the offsets, and the result
    /// of an empty segment. Waits for the result, to check all offsets.
    ///
    /// ```
    /// use warpfold::{Gpu, ops::Max};
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// let (x, offsets) = (gpu.upload(&[1_i32, 5, 3])?, gpu.upload(&[0_u64, 2, 2, 3])?);
    /// let largest = gpu.reduce_segments(Max, &x, &offsets)?;
    /// assert_eq!(gpu.download(&largest)?, [5, i32::MIN, 3]);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// There are no offsets, they are not ascending or exceed the input, a view belongs to another device, memory runs
    /// out, or earlier work has failed.
    pub fn reduce_segments<'i, 'o, O: Reduction<T>, T: Element>(
        &self,
        operator: O,
        input: impl Into<View<'i, T>>,
        offsets: impl Into<View<'o, u64>>,
    ) -> Result<Buffer<O::Output>, Error> {
        self.refuse_to_record("check offsets on the host")?;
        let (input, offsets) = (input.into(), offsets.into());
        let Some(segments) = offsets.len().checked_sub(1) else {
            return Err(Error::TooShort { operation: OPERATION, what: "the array of offsets", found: 0, minimum: 1 });
        };
        let mut reducer = self.segment_reducer(operator, segments, input.len())?;
        let mut output = self.zeroed(segments)?;
        reducer.start(input, offsets, &mut output)?;
        reducer.check()?;
        Ok(output)
    }
}

impl<T: Element, R: Plain> SegmentReducer<T, R> {
    /// The number of segments.
    pub fn segments(&self) -> usize {
        self.segments
    }

    /// The maximum number of elements of an input.
    pub fn elements(&self) -> usize {
        self.elements
    }

    /// Starts the reduction of `input`'s segments to `output`, after all work that was started earlier.
    ///
    /// Only the device reads the offsets, so errors in them are reported later, by [`SegmentReducer::check`]. A segment
    /// whose offsets are not ascending or exceed the input counts as empty, and the outputs of the other segments are
    /// unreliable.
    ///
    /// # Errors
    /// A view has the wrong length, or belongs to another device; the launch is refused.
    pub fn start<'i, 'f, 'o>(
        &mut self,
        input: impl Into<View<'i, T>>,
        offsets: impl Into<View<'f, u64>>,
        output: impl Into<ViewMut<'o, R>>,
    ) -> Result<(), Error> {
        let (input, offsets, mut output) = (input.into(), offsets.into(), output.into());
        let length = |what, found, expected| Err(Error::Length { operation: OPERATION, what, found, expected });
        if input.len() > self.elements {
            return Err(Error::Shape {
                operation: OPERATION,
                what: "the input's length",
                found: input.len(),
                expected: format!("but the reducer was made for at most {}", self.elements),
            });
        }
        if offsets.len() != self.segments + 1 {
            return length("the array of offsets", offsets.len(), self.segments + 1);
        }
        if output.len() != self.segments {
            return length("the output", output.len(), self.segments);
        }
        for memory in [input.memory(), offsets.memory(), output.memory()] {
            self.gpu.use_memory(memory, OPERATION)?;
        }
        if self.segments == 0 {
            return Ok(());
        }
        let is_exact = matches!(self.kernels, SegmentKernels::Exact { .. });
        let (warps, blocks) = resident(is_exact, size_of::<T>(), self.gpu.multiprocessors());
        let segments_per_warp = segments_per_warp(self.segments, warps);
        let grid = u32::try_from(blocks_of(self.segments, segments_per_warp)).map_err(|_| Error::Shape {
            operation: OPERATION,
            what: "the number of segments",
            found: self.segments,
            expected: "more than the blocks of a grid can reduce".to_owned(),
        })?;
        let has_long = !self.chunks.is_empty();
        let long_grid = blocks.min(self.partials.len()) as u32;
        let segments_per_warp = segments_per_warp as u32;
        let (chunks, status) = (self.chunks.view_mut(), self.status.view_mut());
        match self.kernels {
            SegmentKernels::OfStates { operator, segments, long_segments, .. } => {
                let arguments = SegmentArgs {
                    operator,
                    input,
                    offsets,
                    segments_per_warp,
                    chunks,
                    status,
                    output: output.reborrow(),
                };
                self.gpu.launch(segments, grid, arguments)?;
                if !has_long {
                    return Ok(());
                }
                let (status, partials, tickets) =
                    (self.status.view_mut(), self.partials.view_mut(), self.tickets.view_mut());
                let chunks = self.chunks.view();
                let arguments = LongSegmentArgs { operator, input, chunks, status, partials, tickets, output };
                self.gpu.launch(long_segments, long_grid, arguments)
            }
            SegmentKernels::Exact { segments, long_segments, lane_memory, finish, term, .. } => {
                let mut results = output.cast::<u8>();
                let output = results.reborrow();
                let log2_min_tiles = log2_min_tiles(input.len(), size_of::<T>());
                let arguments = ExactSegmentArgs {
                    input,
                    offsets,
                    segments_per_warp,
                    log2_min_tiles,
                    chunks,
                    status,
                    finish,
                    output,
                    term,
                };
                self.gpu.launch(segments, grid, arguments)?;
                if !has_long {
                    return Ok(());
                }
                let (status, partials, tickets) =
                    (self.status.view_mut(), self.partials.view_mut(), self.tickets.view_mut());
                let arguments = ExactLongSegmentArgs {
                    input,
                    log2_min_tiles,
                    chunks: self.chunks.view(),
                    status,
                    partials,
                    tickets,
                    superaccumulators: self.superaccumulators.view_mut(),
                    finish,
                    output: results,
                    term,
                };
                let threads = long_segments::block(size_of::<T>());
                let shared = lane_memory_bytes(&self.gpu, lane_memory, threads, resident_threads(size_of::<T>()));
                self.gpu.launch(long_segments.with_dynamic_shared(shared), long_grid, arguments)
            }
        }
    }

    /// Waits for the reductions started so far, and checks all of their offsets.
    ///
    /// # Errors
    /// Some offsets were not ascending or exceeded their input, or work has failed. The error names the first segment
    /// with such offsets, and is reported only once.
    pub fn check(&mut self) -> Result<(), Error> {
        let fault = self.gpu.download(&self.status)?[INVALID_SEGMENT];
        if fault == 0 {
            return Ok(());
        }
        self.gpu.fill_with_zeros(self.status.view_mut())?;
        Err(Error::Offsets { segment: !fault })
    }
}

/// Segments of each warp: more than one only if every resident warp has one.
fn segments_per_warp(segments: usize, warps: usize) -> usize {
    let each = (segments / warps).clamp(1, 32);
    1 << each.ilog2()
}

/// The blocks for all segments, `segments_per_warp` in each warp.
fn blocks_of(segments: usize, segments_per_warp: usize) -> usize {
    segments.div_ceil(segments_per_warp * (segments::BLOCK / 32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_block_is_without_a_segment() {
        let warps = segments::BLOCK / 32;
        for segments_per_warp in [1, 8] {
            for blocks in [1, 2, 40, 1000] {
                let segments = blocks * warps * segments_per_warp;
                let of = [segments - 1, segments, segments + 1].map(|segments| blocks_of(segments, segments_per_warp));
                assert_eq!(of, [blocks, blocks, blocks + 1], "{segments} segments, {segments_per_warp} each warp");
            }
        }
    }

    #[test]
    fn warps_share_segments_when_there_are_many() {
        let segments_per_warp = |segments| segments_per_warp(segments, 8448);
        assert_eq!([1, 8448, 16_895].map(segments_per_warp), [1, 1, 1]);
        assert_eq!([16_896, 100_000, 10_000_000].map(segments_per_warp), [2, 8, 32]);
    }

    /// Segments of an input, each of the fewest elements with several chunks, have different superaccumulators, and
    /// there are as many in the workspace, whichever input it was made for.
    #[test]
    fn each_segment_of_several_chunks_has_a_superaccumulator() {
        for size in [2, 4, 8] {
            let tile = segments::MAX_WARP_SEGMENT_VECTORS * (16 / size) * 2;
            assert_eq!((max_superaccumulators(2 * tile - 1, size), max_superaccumulators(2 * tile, size)), (0, 3));
            for tiles in [2, 3, 8, 263, 264, 527, 528, 529, 1055, 1056, 1057, 10_000] {
                let elements = tiles * tile + 5;
                let log2_min_tiles = log2_min_tiles(elements, size);
                let has_several = |len: &usize| segments::chunks(*len, size, 1 << log2_min_tiles) > 1;
                let least = (1..=8).map(|tiles| tiles * tile).find(has_several).unwrap();
                assert!(!has_several(&(least - 1)));
                let granularity = tile << log2_min_tiles;
                assert!(least > granularity, "{least} of {elements}");
                let last = (elements - 1) / granularity;
                for of_workspace in [elements, 2 * elements, 10_000 * tile + 5] {
                    assert!(of_workspace < elements || last < max_superaccumulators(of_workspace, size));
                }
            }
        }
    }

    #[test]
    fn the_capacity_holds_every_chunk() {
        for size in [1, 2, 4, 8] {
            let longest_of_warp = segments::MAX_WARP_SEGMENT_VECTORS * (16 / size);
            for elements in [longest_of_warp + 1, 1 << 20, (1 << 20) + 1, 1 << 22, 1 << 31, (1 << 33) + 7] {
                // The most long segments possible, a single one, and numbers between.
                for len in [longest_of_warp + 1, 3 * longest_of_warp, 1 << 17, 1 << 19, elements] {
                    if len > elements || len <= longest_of_warp {
                        continue;
                    }
                    let count = elements / len;
                    for (min_tiles, capacity) in [
                        (segments::MIN_CHUNK_TILES, segments::max_chunks(elements, size)),
                        (1 << log2_min_tiles(elements, size), long_segments::max_chunks(elements, size)),
                    ] {
                        let needed = count * segments::chunks(len, size, min_tiles);
                        assert!(needed <= capacity, "{count} of {len}: {needed} chunks, capacity {capacity}");
                    }
                }
            }
        }
    }
}
