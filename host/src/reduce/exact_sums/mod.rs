//! Running exact sums that stay on the device.

mod add;
mod all_reduce;
mod columns;
mod kind;

use std::fmt;
use std::marker::PhantomData;

use exact_sum::words::OTHER_WORDS;
use exact_sum::{ExactDot, ExactSum, MAX_ELEMENTS, Summand, TooManyElements};
use kernels::reduce::exact::result::DERIVED;
use kernels::reduce::exact::states::all::{BLOCK, exact_state_values, exact_states_merge};

pub use kind::{ExactElement, ExactState, SumFormat};

use super::axes::Axes;
use super::inputs::IntoInputs;
use super::launch::grid;
use super::private::Token;
use crate::array::IntoArrayView;
use crate::interop::BorrowedMut;
use crate::{Buffer, Error, Gpu, View, ViewMut};
use kind::StateKernels;

/// The operation's name, for messages.
const OPERATION: &str = "add to exact sums";

/// Running exact sums on a device.
///
/// Each is the exact sum of all elements or products added to it so far, and is rounded only when its value is read.
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
/// [`ExactSums`] are sums of elements, and [`ExactDots`] sums of products, such as squares:
///
/// ```
/// use warpfold::{Axes, Gpu};
///
/// let gpu = Gpu::first_or_simt()?;
/// let (x, y) = (gpu.upload(&[3.0_f32])?, gpu.upload(&[4.0_f32])?);
/// let mut squares = gpu.exact_dots::<f32>(1)?;
/// squares.add_squares(&x, Axes::ALL)?;
/// squares.add_squares(&y, Axes::ALL)?;
/// assert_eq!(gpu.download(&squares.norms()?)?, [5.0]);
/// squares.add_products((&x, &y), Axes::ALL)?;
/// assert_eq!(gpu.download(&squares.values()?)?, [37.0]);
/// # Ok::<(), warpfold::Error>(())
/// ```
///
/// Each sum has at most 2^50 elements. An addition that could exceed this limit is an [`Error::TooManyElements`], and
/// adds nothing. The check uses the largest number of elements of any of the sums, so after a merge it may fail below
/// 2^50, if the largest numbers were at different indices. Elements that a [`Recording`](crate::Recording) adds are
/// counted once when they are recorded; when the sums are downloaded, they are counted once for each start.
///
/// A sum takes 128 bytes of device memory, 576 for `f64`; one of products 192, and 1,104 for `f64`.
pub struct ExactStates<S: ExactState> {
    gpu: Gpu,
    kernels: StateKernels<S::Element>,
    words: Memory,
    len: usize,
    /// An upper bound of the number of elements of any sum.
    max_count: u64,
    /// Whether an all-reduce has failed, which may have changed some of the words.
    is_unusable: bool,
    sums: PhantomData<S>,
}

/// Running exact sums of elements on a device: see [`ExactStates`].
pub type ExactSums<T> = ExactStates<ExactSum<T>>;

/// Running exact sums of products on a device: see [`ExactStates`].
pub type ExactDots<T> = ExactStates<ExactDot<T>>;

/// The type of the values of sums `S`.
type SumOf<S> = <<S as ExactState>::Element as Summand>::Sum;

/// The memory of the sums' words.
enum Memory {
    Own(Buffer<i64>),
    Borrowed(Box<BorrowedMut<'static, i64>>),
}

impl Memory {
    fn view(&self) -> View<'_, i64> {
        match self {
            Self::Own(words) => words.view(),
            Self::Borrowed(words) => words.view().elements(),
        }
    }

    fn view_mut(&mut self) -> ViewMut<'_, i64> {
        match self {
            Self::Own(words) => words.view_mut(),
            Self::Borrowed(words) => words.view_mut().into_elements(),
        }
    }
}

impl<S: ExactState> fmt::Debug for ExactStates<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExactStates").field("len", &self.len).field("address", &self.words.view().address()).finish()
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
        self.one_sum(|sums| sums.add(input, Axes::ALL))
    }

    /// The exact sum of the squares of an array as the host's running sum, whose root is the norm.
    ///
    /// ```
    /// use warpfold::Gpu;
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// let mut squares = gpu.exact_sum_of_squares(&gpu.upload(&[3.0_f32])?)?;
    /// squares.merge(&gpu.exact_sum_of_squares(&gpu.upload(&[4.0_f32])?)?)?;
    /// assert_eq!(squares.sqrt::<f32>(), 5.0);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Gpu::exact_sum`].
    pub fn exact_sum_of_squares<'a, T: ExactElement>(
        &self,
        input: impl IntoArrayView<'a, T>,
    ) -> Result<ExactDot<T>, Error> {
        self.one_sum(|sums| sums.add_squares(input, Axes::ALL))
    }

    /// The exact dot product of two arrays, whose extents are broadcast as in NumPy, as the host's running sum.
    ///
    /// # Errors
    /// As for [`Gpu::exact_sum`]; or the arrays cannot be broadcast.
    pub fn exact_dot<'a, T: ExactElement>(&self, inputs: impl IntoInputs<'a, T, 2>) -> Result<ExactDot<T>, Error> {
        self.one_sum(|sums| sums.add_products(inputs, Axes::ALL))
    }

    /// One exact sum as the host's.
    fn one_sum<S: ExactState>(&self, add: impl FnOnce(&mut ExactStates<S>) -> Result<(), Error>) -> Result<S, Error> {
        self.refuse_to_record("return a sum to the host")?;
        let mut sums = self.exact_states(1)?;
        add(&mut sums)?;
        Ok(sums.download()?.swap_remove(0))
    }

    /// `len` exact sums of elements on this device, all 0. [`ExactSums::add`](ExactStates::add) adds to them.
    ///
    /// # Errors
    /// The device does not have enough memory.
    pub fn exact_sums<T: ExactElement>(&self, len: usize) -> Result<ExactSums<T>, Error> {
        self.exact_states(len)
    }

    /// `len` exact sums of products on this device, all 0. [`ExactStates::add_products`] and
    /// [`ExactStates::add_squares`] add to them.
    ///
    /// # Errors
    /// The device does not have enough memory.
    pub fn exact_dots<T: ExactElement>(&self, len: usize) -> Result<ExactDots<T>, Error> {
        self.exact_states(len)
    }

    fn exact_states<S: ExactState>(&self, len: usize) -> Result<ExactStates<S>, Error> {
        let size = S::WORDS * size_of::<i64>();
        let words = len.checked_mul(S::WORDS).ok_or(Error::ShapeOverflow { rows: 1, columns: len, size })?;
        Ok(ExactStates::new(self, Memory::Own(self.zeroed(words)?), len, 0))
    }

    /// Uploads exact sums from the host to this device, where elements can be added to them.
    ///
    /// # Errors
    /// The device does not have enough memory.
    pub fn upload_exact_sums<S: ExactState>(&self, sums: &[S]) -> Result<ExactStates<S>, Error> {
        let words: Vec<i64> = sums.iter().flat_map(S::words).collect();
        let max_count = sums.iter().map(|sum| sum.count_of(Token)).max().unwrap_or(0);
        Ok(ExactStates::new(self, Memory::Own(self.upload(&words)?), sums.len(), max_count))
    }
}

impl<S: ExactState> ExactStates<S> {
    fn new(gpu: &Gpu, words: Memory, len: usize, max_count: u64) -> Self {
        let kernels = S::Element::states(Token);
        Self { gpu: gpu.clone(), kernels, words, len, max_count, is_unusable: false, sums: PhantomData }
    }

    /// The number of sums.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no sums.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// An upper bound of the number of elements of each sum, without those that recordings add.
    pub fn max_count(&self) -> u64 {
        self.max_count
    }

    /// Sets all sums to 0.
    ///
    /// # Errors
    /// The device cannot do the work.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.gpu.fill_with_zeros(self.words.view_mut())?;
        (self.max_count, self.is_unusable) = (0, false);
        Ok(())
    }

    /// Adds each of the other sums to the sum of the same index. The device does this after all work that was started
    /// earlier; the host does not wait.
    ///
    /// # Errors
    /// The numbers of sums differ, the other sums belong to another device, a sum would have more than 2^50 elements,
    /// an earlier [`all_reduce`](Self::all_reduce) has failed, or the launch is refused. In each case nothing is added.
    pub fn merge(&mut self, others: &Self) -> Result<(), Error> {
        self.check_usable()?;
        others.check_usable()?;
        self.check_len("the other sums", others.len)?;
        let max_count = self.max_count_with(others.max_count)?;
        let (words, from) = (S::WORDS as u32, others.words.view());
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
    /// Memory for the values runs out, an earlier [`all_reduce`](Self::all_reduce) has failed, or the launch is
    /// refused.
    pub fn values(&self) -> Result<Buffer<SumOf<S>>, Error> {
        self.rounded(0)
    }

    /// Writes [`ExactStates::values`] to an existing buffer or view: in that format, or another one, rounded once.
    ///
    /// # Errors
    /// `output` does not have one element for each sum, or belongs to another device; an earlier
    /// [`all_reduce`](Self::all_reduce) has failed, or the launch is refused.
    pub fn values_into<'o, R: SumFormat<S::Element>>(&self, output: impl Into<ViewMut<'o, R>>) -> Result<(), Error> {
        self.round(0, output.into())
    }

    /// The results of a kernel's argument `finish`.
    fn rounded(&self, finish: u32) -> Result<Buffer<SumOf<S>>, Error> {
        let mut values: Buffer<SumOf<S>> = self.gpu.zeroed(self.len)?;
        self.round(finish, values.view_mut())?;
        Ok(values)
    }

    fn round<R: SumFormat<S::Element>>(&self, finish: u32, output: ViewMut<'_, R>) -> Result<(), Error> {
        self.check_usable()?;
        self.check_len("the output", output.len())?;
        if self.len == 0 {
            return Ok(());
        }
        let (finish, states) = (finish | R::FINISH, self.words.view());
        let grid = grid((self.len.div_ceil(BLOCK), 1), OPERATION)?;
        let arguments = exact_state_values::Args { states, finish, output: output.cast::<u8>() };
        self.gpu.launch(S::values(&self.kernels), grid, arguments)
    }

    /// Downloads the sums, after all work on them that was started earlier.
    ///
    /// # Errors
    /// Earlier work has failed, recordings have added more than 2^50 elements to a sum, or an earlier
    /// [`all_reduce`](Self::all_reduce) has failed, or left words that no sum has.
    pub fn download(&self) -> Result<Vec<S>, Error> {
        self.check_usable()?;
        let words = self.gpu.download(self.words.view())?;
        Ok(words.chunks_exact(S::WORDS).map(S::from_words).collect::<Result<_, _>>()?)
    }

    /// An error after an all-reduce that failed.
    fn check_usable(&self) -> Result<(), Error> {
        if self.is_unusable { Err(Error::UnusableSums) } else { Ok(()) }
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

impl<T: ExactElement> ExactStates<ExactSum<T>> {
    /// Each mean, rounded once; NaN for no elements. The exact sums themselves do not change.
    ///
    /// # Errors
    /// As for [`ExactStates::values`].
    pub fn means(&self) -> Result<Buffer<SumOf<ExactSum<T>>>, Error> {
        self.rounded(DERIVED)
    }

    /// Writes [`ExactStates::means`] to an existing buffer or view: in that format, or another one, rounded once.
    ///
    /// # Errors
    /// As for [`ExactStates::values_into`].
    pub fn means_into<'o, R: SumFormat<T>>(&self, output: impl Into<ViewMut<'o, R>>) -> Result<(), Error> {
        self.round(DERIVED, output.into())
    }
}

impl<T: ExactElement> ExactStates<ExactDot<T>> {
    /// The square root of each sum, rounded once: of sums of squares, the norms. NaN for a negative sum. The exact sums
    /// themselves do not change.
    ///
    /// # Errors
    /// As for [`ExactStates::values`].
    pub fn norms(&self) -> Result<Buffer<SumOf<ExactDot<T>>>, Error> {
        self.rounded(DERIVED)
    }

    /// Writes [`ExactStates::norms`] to an existing buffer or view: in that format, or another one, rounded once.
    ///
    /// # Errors
    /// As for [`ExactStates::values_into`].
    pub fn norms_into<'o, R: SumFormat<T>>(&self, output: impl Into<ViewMut<'o, R>>) -> Result<(), Error> {
        self.round(DERIVED, output.into())
    }
}
