//! Short rows, each folded by a few lanes of a warp.

mod stage;

use cuda_std::bits::funnel_shift_vector;
use cuda_std::prelude::*;

use super::fold::fold_lanes;
use super::thread_reduce::reduce_vectors;
pub use super::tuning::rows::{BLOCK, VECTORS_PER_LANE, min_blocks};
use super::tuning::rows::{DEPENDENT_LAUNCH_BLOCKS, ROWS_PER_LANE};
use crate::ops::builtin::*;
use crate::ops::{Operator, constant, tree};
use stage::{Stage, swizzled};

/// The maximum number of vectors in a block's rows.
const VECTORS: usize = BLOCK * VECTORS_PER_LANE;

/// The same if the rows have gaps between them: one more for each thread, since each row may begin inside a vector.
pub const VECTORS_WITH_GAPS: usize = BLOCK * (VECTORS_PER_LANE + 1);

/// The number of lanes that fold a row of `vectors` vectors: a power of two up to 32.
pub const fn lanes_per_row(vectors: usize) -> usize {
    let lanes = vectors.div_ceil(VECTORS_PER_LANE).next_power_of_two();
    if lanes < 32 { lanes } else { 32 }
}

/// The maximum number of vectors that a row of `len` elements of `size` bytes spans. At least 2, since it is a divisor.
pub const fn vectors_per_row(len: usize, size: usize) -> usize {
    let of_vector = 16 / size;
    let vectors = (len + of_vector - 1).div_ceil(of_vector);
    if vectors < 2 { 2 } else { vectors }
}

/// The number of rows of `len` elements, `pitch` elements apart, that a block takes. If enough rows fit, each group of
/// `lanes` lanes has the same number.
pub const fn rows_per_block(len: usize, pitch: usize, lanes: usize, size: usize) -> usize {
    let groups = BLOCK / lanes;
    let capacity = match (pitch == len, len) {
        (_, 0) => groups * ROWS_PER_LANE,
        (true, _) => VECTORS * (16 / size) / len,
        (false, _) => VECTORS_WITH_GAPS / vectors_per_row(len, size),
    };
    if capacity > groups * ROWS_PER_LANE {
        groups * ROWS_PER_LANE
    } else if capacity > groups {
        capacity / groups * groups
    } else {
        capacity
    }
}

/// The arguments of [`rows`](fn@rows), and of custom kernels that call it.
#[arguments]
pub struct RowArgs<T: Plain, R: Plain> {
    /// The operator's value: [`Operator::to_word`].
    pub operator: u64,
    /// The elements.
    pub input: Global<T>,
    /// Rows.
    pub rows: usize,
    /// Elements of a row.
    pub len: u32,
    /// Elements from the start of a row to that of the next one.
    pub pitch: usize,
    /// Lanes that fold a row.
    pub lanes: u32,
    /// Rows of a block.
    pub rows_per_block: u32,
    /// Vectors that a row takes in shared memory if there are gaps between rows.
    pub vectors_per_row: u32,
    /// A result for each row.
    pub output: GlobalMut<R>,
}

/// Reduces `rows` rows of `len` elements, `pitch` elements apart, to one output each.
///
/// `lanes` is [`lanes_per_row`]. A block takes up to [`rows_per_block`] rows, each of which spans at most
/// `vectors_per_row` vectors.
///
/// - *All loads of a block are in flight at once*: four aligned vectors in each thread, coalesced whatever the rows'
///   length and alignment. They go to shared memory unchanged.
/// - *Few lanes fold a row from shared memory*: the fewest with up to four vectors each, since fewer lanes need fewer
///   shuffles. The order in which a row is folded is the same at each alignment.
///
/// # Safety
/// The arguments are as described above, and the views have all elements that they name: accesses are not checked.
#[kernel(
    instances = builtin_operators!,
    block = BLOCK,
    min_blocks = min_blocks(size_of::<T>(), size_of::<<O as Operator<T>>::State>()),
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS, erase = crate::ops::Erased
)]
pub unsafe fn rows<O: Operator<T>, T: Element>(
    RowArgs { operator, input, rows, len, pitch, lanes, rows_per_block, vectors_per_row, output }: RowArgs<
        T,
        <O as Operator<T>>::Output,
    >,
) {
    let operator = O::from_word(operator);
    let tile = shared_array![T::Vector; stage::CAPACITY];
    if thread::grid_dim_x() <= DEPENDENT_LAUNCH_BLOCKS {
        thread::launch_dependents();
    }
    let first = thread::block_idx_x() as usize * rows_per_block as usize;
    let left = rows - first;
    let count = if left < rows_per_block as usize { left as u32 } else { rows_per_block };
    let stage = Stage::new(&input, first * pitch, (count, len), pitch);
    stage.copy_to(vectors_per_row, &tile);
    thread::sync_threads();

    let (thread, log2_lanes) = (thread::thread_idx_x(), lanes.trailing_zeros());
    let (lane, group, groups) = (thread & (lanes - 1), thread >> log2_lanes, BLOCK as u32 >> log2_lanes);
    let mut base = 0;
    while base < count {
        let row = base + group;
        // Lanes past the last row take part in the shuffles, too.
        let state = if row < count {
            let row = StagedRow { tile: &tile, start: stage.row_start(row, vectors_per_row), len, lane, log2_lanes };
            if stage.is_aligned() { row.fold::<O, true>(operator) } else { row.fold::<O, false>(operator) }
        } else {
            constant!(O::NEUTRAL)
        };
        let state = fold_lanes::<O, T>(state, lanes);
        if lane == 0 && row < count {
            output.store(first + row as usize, operator.finish(state, u64::from(len)));
        }
        base += groups;
    }
}

/// A row in shared memory, and one of the lanes that fold it.
struct StagedRow<'a, T: Element> {
    tile: &'a SharedArray<T::Vector, { stage::CAPACITY }>,
    /// The row's first element.
    start: u32,
    len: u32,
    lane: u32,
    log2_lanes: u32,
}

impl<T: Element> StagedRow<'_, T> {
    /// The lane's state. The lane has every `lanes`-th vector of the row, up to four, and elements after the last whole
    /// vector.
    #[inline(always)]
    fn fold<O: Operator<T>, const ALIGNED: bool>(&self, operator: O) -> O::State {
        let Self { len, lane, log2_lanes, .. } = *self;
        let (of_vector, whole) = (T::Vector::LEN as u32, len / T::Vector::LEN as u32);
        let nth = |k: usize| lane + ((k as u32) << log2_lanes);
        let mut state = if whole >> log2_lanes == VECTORS_PER_LANE as u32 {
            let vector = |k: usize| self.vector::<ALIGNED>(nth(k));
            reduce_vectors::<O, T, VECTORS_PER_LANE>(
                operator,
                [vector(0), vector(1), vector(2), vector(3)],
                (lane * of_vector) as usize,
                T::Vector::LEN << log2_lanes,
            )
        } else if whole > 0 {
            let of_lane = |k: usize| {
                if nth(k) >= whole {
                    return constant!(O::NEUTRAL);
                }
                operator.reduce_vector(self.vector::<ALIGNED>(nth(k)), u64::from(nth(k) * of_vector))
            };
            tree::<_, VECTORS_PER_LANE>(of_lane, O::combine)
        } else {
            constant!(O::NEUTRAL)
        };
        let mut i = whole * of_vector + lane;
        while i < len {
            let at = (self.start + i) as usize;
            let index = swizzled(at / T::Vector::LEN) * T::Vector::LEN + at % T::Vector::LEN;
            // SAFETY: the element is inside the row, and so inside the array.
            let element: T = unsafe { self.tile.load_element_unchecked(index) };
            state = O::combine(state, operator.lift(element, u64::from(i)));
            i += 1 << log2_lanes;
        }
        state
    }

    /// The row's `k`-th vector.
    #[inline(always)]
    fn vector<const ALIGNED: bool>(&self, k: u32) -> T::Vector {
        let at = self.start + k * T::Vector::LEN as u32;
        let (low, past) = ((at / T::Vector::LEN as u32) as usize, (at % T::Vector::LEN as u32) as usize);
        // SAFETY: `low` and `high` are the aligned vectors with the first and the last element of the row's vector.
        unsafe {
            if ALIGNED {
                return self.tile.load_unchecked(swizzled(low));
            }
            let high = low + usize::from(past > 0);
            funnel_shift_vector(self.tile.load_unchecked(swizzled(low)), self.tile.load_unchecked(swizzled(high)), past)
        }
    }
}
