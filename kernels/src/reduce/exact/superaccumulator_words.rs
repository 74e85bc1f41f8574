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

/// Words in shared memory.
///
/// Past the end, the executor traps, and a GPU takes the last word. A branch to a trap would cost time even in paths
/// that ordinary data do not take: where some lanes of a warp may trap, `ptxas` no longer knows that all lanes go through
/// the loop around it together. Sums of squares of `f32` and `f16` then take 4 to 6 % longer.
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
        // SAFETY: the executor checks the index, and on a GPU it is inside the array.
        unsafe { self.load_unchecked(inside::<LEN>(i)) }
    }
    #[inline(always)]
    fn store(&self, i: usize, word: i64) {
        // SAFETY: as above.
        unsafe { self.store_unchecked(inside::<LEN>(i), word) }
    }
}

/// On a GPU, the index or, if it is past the end, the last one.
#[inline(always)]
fn inside<const LEN: usize>(i: usize) -> usize {
    if cfg!(target_arch = "nvptx64") && i >= LEN { LEN - 1 } else { i }
}
