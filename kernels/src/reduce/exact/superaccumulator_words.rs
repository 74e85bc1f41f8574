//! The words of a superaccumulator in shared memory.

use cuda_std::prelude::*;

/// The number of warps of the largest block.
pub const MAX_WARPS: usize = 16;

/// The kinds of non-finite terms, counted in the words after the limbs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// NaN.
    Nan,
    /// Infinity.
    Infinity,
    /// Minus infinity.
    NegativeInfinity,
}

/// The number of kinds of [`Special`], each of which has a word.
pub const SPECIALS: usize = 3;

/// The number of words of a warp besides its limbs: one for each [`Special`], and one for the sum of the residuals.
pub const OTHER_WORDS: usize = SPECIALS + 1;

/// Words in shared memory, accessed without a branch: see [`SharedArray::load_or_last`].
///
/// The branch of a check would cost time even in paths that ordinary data do not take. Where some lanes of a warp may
/// trap, `ptxas` no longer knows that all lanes go through the loop around it together, so that this loop takes up to a
/// fifth longer (`docs/notes/exact-sums.md`).
pub trait SharedWords: Copy {
    /// For `declare_superaccumulator!`.
    #[doc(hidden)]
    fn declare<const ID: u64>() -> Self;
    /// The word at index `i`.
    fn load(&self, i: usize) -> i64;
    /// Writes the word at index `i`.
    fn store(&self, i: usize, word: i64);
}

impl<const LEN: usize> SharedWords for SharedArray<i64, LEN> {
    #[inline(always)]
    fn declare<const ID: u64>() -> Self {
        Self::declare::<ID>()
    }
    #[inline(always)]
    fn load(&self, i: usize) -> i64 {
        self.load_or_last(i)
    }
    #[inline(always)]
    fn store(&self, i: usize, word: i64) {
        self.store_or_last(i, word);
    }
}
