//! Merges exact sums on devices by the sums of integers of other libraries.

use exact_sum::words::{OTHER_WORDS, check_ranks};
use exact_sum::{MAX_ELEMENTS, TooManyElements};
use kernels::reduce::exact::states::all::{BLOCK, exact_states_carry};

use super::{ExactState, ExactStates, Memory, OPERATION};
use crate::interop::BorrowedMut;
use crate::reduce::launch::grid;
use crate::{Error, Gpu, View, ViewMut};

impl<S: ExactState> ExactStates<S> {
    /// The [words](exact_sum::words) of the sums, one sum after the other.
    ///
    /// # Errors
    /// An earlier [`all_reduce`](Self::all_reduce) has failed.
    pub fn words(&self) -> Result<View<'_, i64>, Error> {
        self.check_usable()?;
        Ok(self.words.view())
    }

    /// Merges the sums of all ranks, by an engine's sum of integers: NCCL's all-reduce, for example.
    ///
    /// `reduce` gets the [words](exact_sum::words) of the sums, and replaces each by its sum over the ranks, on the
    /// stream of the handle that it gets. On every rank there are equally many sums of the same type. Then each rank
    /// has the sums over all ranks, as if it had added the elements of all of them. The host waits only if `reduce`
    /// does.
    ///
    /// ```
    /// use warpfold::{Error, Gpu};
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// let mut sums = gpu.exact_sums::<f32>(1)?;
    /// sums.add(&gpu.upload(&[1e20_f32, 1.0])?, 0)?;
    /// // Here both ranks have the same elements.
    /// sums.all_reduce(2, |gpu, words| {
    ///     let doubled: Vec<i64> = gpu.download(words.as_view())?.iter().map(|word| 2 * word).collect();
    ///     gpu.upload_into(&doubled, words)
    /// })?;
    /// assert_eq!(gpu.download(&sums.values()?)?, [2e20]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// The limit of 2^50 elements is checked as if every rank had as many as this one has at most.
    ///
    /// # Errors
    /// There are no ranks or more than 2^20, or a sum could have more than 2^50 elements: then `reduce` is not called.
    /// Or `reduce` fails, or the launch after it: then the sums are unusable until they are
    /// [cleared](ExactStates::clear), and each call is [`Error::UnusableSums`].
    pub fn all_reduce<E: From<Error>>(
        &mut self,
        ranks: u32,
        reduce: impl FnOnce(&Gpu, ViewMut<'_, i64>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.check_usable()?;
        check_ranks(ranks).map_err(Error::from)?;
        let count = self.max_count.saturating_mul(ranks.into());
        if count > MAX_ELEMENTS {
            return Err(Error::from(TooManyElements { count }).into());
        }
        self.is_unusable = true;
        reduce(&self.gpu, self.words.view_mut())?;
        self.carry()?;
        (self.max_count, self.is_unusable) = (count, false);
        Ok(())
    }

    /// Carries between the limbs of each sum.
    fn carry(&mut self) -> Result<(), Error> {
        if self.len == 0 {
            return Ok(());
        }
        let (words, limbs) = (S::WORDS as u32, (S::WORDS - OTHER_WORDS) as u32);
        let grid = grid((self.len.div_ceil(BLOCK), 1), OPERATION)?;
        let arguments = exact_states_carry::Args { words, limbs, states: self.words.view_mut() };
        self.gpu.launch(exact_states_carry::handle(), grid, arguments)
    }

    /// Sums whose words lie in memory of another library.
    pub(crate) fn in_words(gpu: &Gpu, mut words: BorrowedMut<'static, i64>, max_count: u64) -> Result<Self, Error> {
        gpu.use_memory(words.view().elements().memory(), OPERATION)?;
        let found = words.view_mut().into_view()?.len();
        if !found.is_multiple_of(S::WORDS) {
            let expected = found.next_multiple_of(S::WORDS);
            return Err(Error::Length { operation: OPERATION, what: "the words of whole sums", found, expected });
        }
        if max_count > MAX_ELEMENTS {
            return Err(TooManyElements { count: max_count }.into());
        }
        Ok(Self::new(gpu, Memory::Borrowed(Box::new(words)), found / S::WORDS, max_count))
    }
}
