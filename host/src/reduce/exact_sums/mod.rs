//! Running exact sums that stay on the device.

mod columns;

use std::fmt;

use cuda_std::element::{Element, Plain};
use exact_sum::{ExactSum, MAX_ELEMENTS, Specials, Summand, TooManyElements};
use half::{bf16, f16};
use kernels::ops::Sum;
use kernels::reduce::exact::lane_memory::LaneMemory;
use kernels::reduce::exact::long_rows::{MAX_THREADS, VECTORS_IN_FLIGHT, lane_memory};
use kernels::reduce::exact::result::DERIVED;
use kernels::reduce::exact::states::all::{BLOCK, exact_state_values, exact_states_merge};
use kernels::reduce::exact::states::columns::{StateColumnArgs, exact_states_of_columns};
use kernels::reduce::exact::states::long_rows::exact_states_of_long_rows;
use kernels::reduce::exact::states::rows::exact_states_of_rows;
use kernels::reduce::exact::states::words_of_state;
use kernels::reduce::exact::superaccumulator_words::Special;
use kernels::reduce::exact::terms;

use columns::Columns;

use super::axes::Axes;
use super::geometry::{Allowed, Geometry, Kind, LaunchShape, Order};
use super::lane_memory::lane_memory_bytes;
use super::launch::{Lanes, RowLanes, grid};
use super::method::{Blocks, Method};
use super::private::Token;
use super::steps::Steps;
use crate::array::IntoArrayView;
use crate::{AnyBlock, Buffer, Error, Gpu, Kernel, View, ViewMut};

/// The operation's name, for messages.
const OPERATION: &str = "add to exact sums";

/// A type of elements whose sums are exact: `f16`, `bf16`, `f32` or `f64`.
///
/// Sealed: only this crate implements it.
pub trait ExactElement: Element + Summand<Sum: Plain> {
    /// The kernels for states.
    #[doc(hidden)]
    fn states(_: Token) -> StateKernels<Self>;
}

/// The kernels for states of sums of one type.
#[doc(hidden)]
pub struct StateKernels<T: ExactElement> {
    long_rows: AnyBlock<exact_states_of_long_rows::Args<'static, T>>,
    rows: Kernel<exact_states_of_rows::Args<'static, T>>,
    columns: Kernel<StateColumnArgs<'static, T>>,
    values: Kernel<exact_state_values::Args<'static>>,
    /// The dynamic shared memory of `long_rows`.
    lane_memory: LaneMemory,
    /// Words of a state: limbs, one for each kind of non-finite element, and the number of elements.
    words: usize,
}

macro_rules! exact_elements {
    ($($type:ident to $sum:ident;)*) => {$(
        impl ExactElement for $type {
            fn states(_: Token) -> StateKernels<Self> {
                // SAFETY: no holder of the handles can launch them: only `ExactSums` does, with what it has checked.
                let (long_rows, rows, columns) = unsafe {
                    (
                        exact_states_of_long_rows::handle::<Self>(),
                        exact_states_of_rows::handle::<Self>(),
                        exact_states_of_columns::handle::<Self>(),
                    )
                };
                // The sums of `f16` and `bf16` are sums of `f32`.
                let values = exact_state_values::handle::<Sum, $sum>();
                let words = words_of_state::<<Self as terms::Summand>::Grid>();
                let lane_memory = lane_memory::<terms::Elements<Self>>();
                StateKernels { long_rows, rows, columns, values, lane_memory, words }
            }
        }
    )*};
}

exact_elements! {
    f16 to f32;
    bf16 to f32;
    f32 to f32;
    f64 to f64;
}

/// How additions to sums are launched. It does not change the sums.
type AddMethod = Method<RowLanes, Columns>;

impl AddMethod {
    /// The method for elements of `size` bytes, at least one for each sum.
    fn of(kind: Kind, size: usize, multiprocessors: usize) -> Self {
        match kind {
            Kind::Rows { rows, len, pitch } if rows > 1 && Lanes::can_reduce(len, size) => {
                Self::Rows { rows, len, pitch, lanes: RowLanes::of(len, pitch, size) }
            }
            Kind::Rows { rows, len, pitch } => {
                Self::long_rows(rows, len, pitch, Blocks::exact(rows, len, size, VECTORS_IN_FLIGHT, multiprocessors))
            }
            Kind::Columns { batches, rows, columns, pitch, batch_pitch } => {
                let tiles = Columns::of(batches, rows, columns, multiprocessors);
                Self::columns(batches, rows, columns, (pitch, batch_pitch), tiles)
            }
        }
    }
}

/// Words of a state besides its limbs.
const OTHER_WORDS: usize = 4;

/// Running exact sums on a device.
///
/// Each is the exact sum of all elements added to it so far, and is rounded only when its value is read.
///
/// A sum does not depend on how its elements were divided among additions, merged sums, or devices: the merged sums of
/// parts have the bits of the sum of the whole. On the host each sum is an [`ExactSum`].
///
/// ```
/// use warpfold::Gpu;
///
/// let gpu = Gpu::first_or_simt()?;
/// // The sums of the columns of a matrix, which comes in two parts, as if each rank had one.
/// let mut sums = gpu.exact_sums::<f32>(2)?;
/// sums.add(&gpu.upload(&[1e20_f32, 1.0, 3.0, 2.0])?.reshape(&[2, 2])?, 0)?;
/// let mut others = gpu.exact_sums::<f32>(2)?;
/// others.add(&gpu.upload(&[-1e20_f32, 4.0])?.reshape(&[1, 2])?, 0)?;
/// sums.merge(&others)?;
/// assert_eq!(gpu.download(&sums.values()?)?, [3.0, 7.0]);
///
/// // Through the host to another device, or to a file.
/// let bytes = sums.download()?[0].to_bytes();
/// let sum = warpfold::exact::ExactSum::<f32>::from_bytes(&bytes).expect("a sum");
/// let again = gpu.upload_exact_sums(&[sum])?;
/// assert_eq!(gpu.download(&again.values()?)?, [3.0]);
/// # Ok::<(), warpfold::Error>(())
/// ```
///
/// Each sum has at most 2^50 elements. An addition that could exceed this limit is an [`Error::TooManyElements`], and
/// adds nothing. The check uses the largest number of elements of any of the sums, so after a merge it may fail below
/// 2^50, if the largest numbers were at different indices. Elements that a [`Recording`](crate::Recording) adds are
/// counted once when they are recorded; when the sums are downloaded, they are counted once for each start.
///
/// A sum takes 128 bytes of device memory, 576 for `f64`.
pub struct ExactSums<T: ExactElement> {
    gpu: Gpu,
    kernels: StateKernels<T>,
    words: Buffer<i64>,
    len: usize,
    /// An upper bound of the number of elements of any sum.
    max_count: u64,
}

impl<T: ExactElement> fmt::Debug for ExactSums<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExactSums").field("len", &self.len).field("address", &self.words.view().address()).finish()
    }
}

impl Gpu {
    /// The exact sum of an array as the host's running sum.
    ///
    /// It merges with sums of other views, of other devices or of the host, can be stored, and is rounded when its
    /// [value](ExactSum::value) is read.
    ///
    /// ```
    /// use warpfold::Gpu;
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// let mut sum = gpu.exact_sum(&gpu.upload(&[1e20_f32, 1.0])?)?;
    /// sum.merge(&gpu.exact_sum(&gpu.upload(&[3.0_f32, -1e20])?)?)?;
    /// assert_eq!((sum.value(), sum.count()), (4.0, 4));
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// The array belongs to another device, memory runs out, or earlier work has failed.
    pub fn exact_sum<'a, T: ExactElement>(&self, input: impl IntoArrayView<'a, T>) -> Result<ExactSum<T>, Error> {
        self.refuse_to_record("return a sum to the host")?;
        let mut sums = self.exact_sums(1)?;
        sums.add(input, Axes::ALL)?;
        Ok(sums.download()?[0])
    }

    /// `len` exact sums on this device, all 0. [`ExactSums::add`] adds elements to them.
    ///
    /// # Errors
    /// The device does not have enough memory.
    pub fn exact_sums<T: ExactElement>(&self, len: usize) -> Result<ExactSums<T>, Error> {
        let kernels = T::states(Token);
        let size = kernels.words * size_of::<i64>();
        let words = len.checked_mul(kernels.words).ok_or(Error::ShapeOverflow { rows: 1, columns: len, size })?;
        Ok(ExactSums { gpu: self.clone(), kernels, words: self.zeroed(words)?, len, max_count: 0 })
    }

    /// Uploads exact sums from the host to this device, where elements can be added to them.
    ///
    /// # Errors
    /// The device does not have enough memory.
    pub fn upload_exact_sums<T: ExactElement>(&self, sums: &[ExactSum<T>]) -> Result<ExactSums<T>, Error> {
        let kernels = T::states(Token);
        let mut words = Vec::with_capacity(sums.len() * kernels.words);
        for sum in sums {
            let first = words.len();
            words.extend(sum.limbs());
            words.resize(first + kernels.words, 0);
            let limbs = first + kernels.words - OTHER_WORDS;
            for (special, specials) in SPECIALS {
                let is_present = sum.specials().union(specials) == sum.specials();
                words[limbs + special as usize] = is_present.into();
            }
            // Fits in an `i64`: a count is at most 2^50.
            words[first + kernels.words - 1] = sum.count() as i64;
        }
        let max_count = sums.iter().map(ExactSum::count).max().unwrap_or(0);
        Ok(ExactSums { gpu: self.clone(), kernels, words: self.upload(&words)?, len: sums.len(), max_count })
    }
}

/// The kinds of non-finite elements, in the order of a state's words.
const SPECIALS: [(Special, Specials); 3] = [
    (Special::Nan, Specials::nan()),
    (Special::Infinity, Specials::infinity(false)),
    (Special::NegativeInfinity, Specials::infinity(true)),
];

impl<T: ExactElement> ExactSums<T> {
    /// The number of sums.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no sums.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sets all sums to 0.
    ///
    /// # Errors
    /// The device cannot do the work.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.gpu.fill_bytes(&self.words, 0)?;
        self.max_count = 0;
        Ok(())
    }

    /// Adds the elements along these axes of an array: those of each index of the other axes, in C order, to the sum of
    /// the same number. The device does this after all work that was started earlier; the host does not wait.
    ///
    /// # Errors
    /// The array does not have one index of the other axes for each sum, an axis does not exist or is named twice, the
    /// array belongs to another device, a sum would have more than 2^50 elements, or memory for a copy runs out: then
    /// nothing is added. Or a launch is refused: then nothing is added, unless the array is copied in several parts.
    pub fn add<'a>(&mut self, input: impl IntoArrayView<'a, T>, axes: impl Into<Axes>) -> Result<(), Error> {
        let (input, axes) = (input.into_array_view(), axes.into());
        let layout = *input.layout();
        let allowed = Allowed { order: Order::Any, columns: true, in_place: true, size: size_of::<T>() };
        let geometry = Geometry::<1, Kind>::new(&layout, &axes.of(&layout)?, allowed)?;
        self.gpu.use_memory(input.elements().memory(), OPERATION)?;
        self.check_len("the array's outputs", geometry.outputs())?;
        let elements = geometry.kind.elements_each() as u64;
        let max_count = self.max_count_with(elements)?;
        if self.len > 0 && elements > 0 {
            self.add_parts(&geometry, (input.elements(), layout.offset()))?;
        }
        self.max_count = max_count;
        Ok(())
    }

    /// Launches the additions of all parts. The input is a view, and the offset of its layout.
    fn add_parts(&mut self, geometry: &Geometry<1, Kind>, input: (View<'_, T>, usize)) -> Result<(), Error> {
        let gpu = self.gpu.clone();
        let mut parts = Steps::of(geometry).parts(&gpu)?;
        for geometry in [Some(geometry), geometry.rest.as_deref()].into_iter().flatten() {
            let method = AddMethod::of(geometry.kind, size_of::<T>(), gpu.multiprocessors());
            Steps::of(geometry).run(&gpu, [input], &mut parts, |[input], first, outputs| {
                self.launch_add(&method, input, first, outputs)
            })?;
        }
        Ok(())
    }

    /// Adds to the sums from `first` on.
    fn launch_add(
        &mut self,
        method: &AddMethod,
        input: View<'_, T>,
        first: usize,
        outputs: usize,
    ) -> Result<(), Error> {
        let Self { gpu, kernels, words, .. } = self;
        let states = words.view_mut().slice(first * kernels.words, outputs * kernels.words)?;
        match *method {
            Method::Nothing => Ok(()),
            Method::Rows { rows, len, pitch, lanes } => {
                let (Lanes { lanes, vectors, rows_per_block }, has_singles) = lanes.at(input.address());
                let grid = grid((rows.div_ceil(rows_per_block), 1), OPERATION)?;
                let (lanes_log, vectors_log) = (lanes.ilog2(), vectors.ilog2());
                let has_singles = u32::from(has_singles);
                let arguments =
                    exact_states_of_rows::Args { input, rows, len, pitch, lanes_log, vectors_log, has_singles, states };
                gpu.launch(kernels.rows, grid, arguments)
            }
            Method::LongRows { rows, len, pitch, blocks } => {
                let Blocks { splits, tiles, longer_splits, threads } = blocks;
                let arguments =
                    exact_states_of_long_rows::Args { input, len, pitch, splits, tiles, longer_splits, states };
                let shared = lane_memory_bytes(gpu, kernels.lane_memory, threads as usize, MAX_THREADS);
                let kernel = kernels.long_rows.with_block(threads).with_dynamic_shared(shared);
                gpu.launch(kernel, grid(blocks.grid(rows), OPERATION)?, arguments)
            }
            Method::Columns { batches, rows, columns, pitch, batch_pitch, tiles } => {
                let Columns { folded, rows_of_split, tiles, splits } = tiles;
                let blocks = tiles.saturating_mul(splits).saturating_mul(batches);
                let grid = grid((blocks, 1), OPERATION)?;
                // These fit in a `u32`: `folded` is at most a block's threads, the others at most the grid's blocks.
                let (folded, tiles, splits) = (folded as u32, tiles as u32, splits as u32);
                let arguments = StateColumnArgs {
                    input,
                    rows,
                    columns,
                    pitch,
                    batch_pitch,
                    folded,
                    rows_of_split,
                    tiles,
                    splits,
                    states,
                };
                gpu.launch(kernels.columns, grid, arguments)
            }
        }
    }

    /// Adds each of the other sums to the sum of the same index. The device does this after all work that was started
    /// earlier; the host does not wait.
    ///
    /// # Errors
    /// The numbers of sums differ, the other sums belong to another device, a sum would have more than 2^50 elements,
    /// or the launch is refused. In each case nothing is added.
    pub fn merge(&mut self, others: &Self) -> Result<(), Error> {
        self.check_len("the other sums", others.len)?;
        let max_count = self.max_count_with(others.max_count)?;
        let (words, from) = (self.kernels.words as u32, others.words.view());
        if !from.is_empty() {
            let grid = grid((from.len().div_ceil(BLOCK), 1), OPERATION)?;
            let limbs = words - OTHER_WORDS as u32;
            let arguments = exact_states_merge::Args { words, limbs, from, states: self.words.view_mut() };
            self.gpu.launch(exact_states_merge::handle(), grid, arguments)?;
        }
        self.max_count = max_count;
        Ok(())
    }

    /// Each sum, rounded once, to `f32`; sums of `f64` to `f64`. The exact sums themselves do not change.
    ///
    /// # Errors
    /// Memory for the values runs out, or the launch is refused.
    pub fn values(&self) -> Result<Buffer<T::Sum>, Error> {
        let mut values = self.gpu.zeroed(self.len)?;
        self.values_into(&mut values)?;
        Ok(values)
    }

    /// Each mean, rounded once; NaN for no elements. The exact sums themselves do not change.
    ///
    /// # Errors
    /// As for [`ExactSums::values`].
    pub fn means(&self) -> Result<Buffer<T::Sum>, Error> {
        let mut means = self.gpu.zeroed(self.len)?;
        self.means_into(&mut means)?;
        Ok(means)
    }

    /// Writes [`ExactSums::values`] to an existing buffer or view.
    ///
    /// # Errors
    /// `output` does not have one element for each sum, or belongs to another device; the launch is refused.
    pub fn values_into<'o>(&self, output: impl Into<ViewMut<'o, T::Sum>>) -> Result<(), Error> {
        self.round(0, output.into())
    }

    /// Writes [`ExactSums::means`] to an existing buffer or view.
    ///
    /// # Errors
    /// As for [`ExactSums::values_into`].
    pub fn means_into<'o>(&self, output: impl Into<ViewMut<'o, T::Sum>>) -> Result<(), Error> {
        self.round(DERIVED, output.into())
    }

    fn round(&self, finish: u32, output: ViewMut<'_, T::Sum>) -> Result<(), Error> {
        self.check_len("the output", output.len())?;
        if self.len == 0 {
            return Ok(());
        }
        let grid = grid((self.len.div_ceil(BLOCK), 1), OPERATION)?;
        let arguments = exact_state_values::Args { states: self.words.view(), finish, output: output.cast::<u8>() };
        self.gpu.launch(self.kernels.values, grid, arguments)
    }

    /// Downloads the sums, after all work on them that was started earlier.
    ///
    /// # Errors
    /// Earlier work has failed, or recordings have added more than 2^50 elements to a sum.
    pub fn download(&self) -> Result<Vec<ExactSum<T>>, Error> {
        let of_state = |words: &[i64]| {
            let (limbs, others) = words.split_at(words.len() - OTHER_WORDS);
            let of = |specials: Specials, (special, of_special): (Special, Specials)| {
                if others[special as usize] == 0 { specials } else { specials.union(of_special) }
            };
            let specials = SPECIALS.into_iter().fold(Specials::EMPTY, of);
            ExactSum::from_limbs(limbs.iter().copied(), specials, others[OTHER_WORDS - 1] as u64)
        };
        let words = self.gpu.download(&self.words)?;
        Ok(words.chunks_exact(self.kernels.words).map(of_state).collect::<Result<_, _>>()?)
    }

    fn check_len(&self, what: &'static str, found: usize) -> Result<(), Error> {
        if found == self.len {
            return Ok(());
        }
        Err(Error::Length { operation: OPERATION, what, found, expected: self.len })
    }

    /// The bound on the number of elements of any sum after `further` more, if it is within the limit.
    fn max_count_with(&self, further: u64) -> Result<u64, TooManyElements> {
        let count = self.max_count.saturating_add(further);
        if count > MAX_ELEMENTS { Err(TooManyElements { count }) } else { Ok(count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_ends_with_its_other_words() {
        assert_eq!((f32::states(Token).words, f64::states(Token).words), (16, 72));
        assert_eq!(SPECIALS.map(|(special, _)| special as usize), [0, 1, 2]);
    }
}
