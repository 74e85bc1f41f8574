//! Sums as words of 64 bits, which any engine can add.
//!
//! Engines for several processes, such as MPI, NCCL and `torch.distributed`, add integers of 64 bits element by
//! element. The element-wise sum of the words of up to [`MAX_RANKS`] sums is the words of the merged sum. So the
//! engine's own all-reduce merges exact sums, in any order: see [`all_reduce`].
//!
//! Version 1:
//!
//! | words | contents |
//! |---|---|
//! | the first `LIMBS` | the sum: `words[k] * 2^(32 k)`, in units of the smallest number or its square |
//! | one each | the numbers of NaN, of infinities, and of negative infinities |
//! | the last | the number of elements |
//!
//! | sum of | limbs | words |
//! |---|---|---|
//! | `f16`, `bf16`, `f32` | 12 | 16 |
//! | `f64` | 68 | 72 |
//! | products of `f16`, `bf16`, `f32` | 20 | 24 |
//! | products of `f64` | 134 | 138 |
//!
//! A limb of one sum is less than `2^39` in magnitude, so the limbs of 2^20 sums are less than `2^59`. The number of
//! infinities may be 1 where there were more. So the same sum can have several words; its [bytes](crate::bytes) are
//! unique.

use core::fmt;

use crate::compact::Specials;
use crate::sum::{
    DOUBLE_LIMBS, DOUBLE_PRODUCT_LIMBS, ExactDot, ExactSum, MAX_ELEMENTS, SINGLE_LIMBS, SINGLE_PRODUCT_LIMBS, State,
    Summand, Superaccumulator, TooManyElements, width,
};

/// The version of the words.
pub const VERSION: u32 = 1;

/// The maximum number of sums whose words can be added.
pub const MAX_RANKS: u32 = 1 << 20;

/// Words of a sum besides its limbs.
pub const OTHER_WORDS: usize = 4;

/// The number of limbs in the words of a sum whose superaccumulator has `limbs` limbs. On devices some kernels add
/// parts of which the highest bits lie above that superaccumulator, and need one more.
const fn limbs_in_words(limbs: usize) -> usize {
    match limbs {
        DOUBLE_LIMBS => DOUBLE_LIMBS,
        SINGLE_LIMBS | SINGLE_PRODUCT_LIMBS | DOUBLE_PRODUCT_LIMBS => limbs + 1,
        _ => panic!("no sum has that many limbs"),
    }
}

/// The reason that words are not those of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WordsError {
    /// The number of words is not that of a sum.
    Length {
        /// The number of words.
        found: usize,
        /// The number of words of a sum.
        expected: usize,
    },
    /// No sum has these words.
    NotASum,
    /// The sum has more than [`MAX_ELEMENTS`] elements.
    TooManyElements(TooManyElements),
    /// The number of ranks is 0, or more than [`MAX_RANKS`].
    Ranks {
        /// The number of ranks.
        found: u32,
    },
}

impl fmt::Display for WordsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { found, expected } => {
                write!(f, "{found} words, but an exact sum of this type has {expected}: was it of another type?")
            }
            Self::NotASum => write!(
                f,
                "words that no exact sum of this type has: add the words of sums of one type, as integers of 64 bits"
            ),
            Self::TooManyElements(error) => error.fmt(f),
            Self::Ranks { found } => write!(f, "{found} ranks: words can be added for 1 to 2^20 ranks"),
        }
    }
}

impl core::error::Error for WordsError {}

/// An exact sum that has [words](self).
///
/// Sealed: only this crate implements it.
pub trait Words: Sized + sealed::Sealed {
    /// The number of limbs among the words.
    const LIMBS: usize;
    /// The number of words.
    const WORDS: usize = Self::LIMBS + OTHER_WORDS;

    /// The words. Equal sums of equally many elements have equal words here, but not on all devices.
    fn words(&self) -> impl Iterator<Item = i64>;

    /// The sum with these words.
    ///
    /// # Errors
    /// There are more or fewer words than a sum of this type has, no sum has them, or the sum would have more than
    /// [`MAX_ELEMENTS`] elements.
    fn from_words(words: &[i64]) -> Result<Self, WordsError>;
}

mod sealed {
    pub trait Sealed {}
}

fn words_of<L: Superaccumulator>(state: State<L>, limbs: usize) -> impl Iterator<Item = i64> {
    let (state, set) = (state.canonical(), state.specials);
    let limb = move |k| if k < L::LEN { state.limbs.limb(k) } else { 0 };
    let has = move |kind: Specials| i64::from(set.union(kind) == set);
    let specials = [Specials::nan(), Specials::infinity(false), Specials::infinity(true)];
    // Fits in an `i64`: a count is at most 2^50.
    (0..limbs).map(limb).chain(specials.map(has)).chain([state.count as i64])
}

fn state_of<L: Superaccumulator>(words: &[i64], limbs: usize, width: u32) -> Result<State<L>, WordsError> {
    let (found, expected) = (words.len(), limbs + OTHER_WORDS);
    let Some((limbs, &[nan, infinity, negative_infinity, count])) = words.split_at_checked(limbs) else {
        return Err(WordsError::Length { found, expected });
    };
    let mut state = State::<L>::default();
    for (number, special) in
        [(nan, Specials::nan()), (infinity, Specials::infinity(false)), (negative_infinity, Specials::infinity(true))]
    {
        match number {
            ..0 => return Err(WordsError::NotASum),
            0 => {}
            1.. => state.specials = state.specials.union(special),
        }
    }
    state.count = u64::try_from(count).map_err(|_| WordsError::NotASum)?;
    if state.count > MAX_ELEMENTS {
        return Err(WordsError::TooManyElements(TooManyElements { count: state.count }));
    }
    let last = L::LEN - 1;
    let mut carry = 0_i128;
    for (k, &limb) in limbs[..last].iter().enumerate() {
        let sum = i128::from(limb) + carry;
        state.limbs.add_to_limb(k, (sum & 0xffff_ffff) as i64);
        carry = sum >> 32;
    }
    // The last limb has the sign and all bits above.
    let above = limbs.get(last + 1).map_or(0, |&limb| i128::from(limb) << 32);
    let top = i128::from(limbs[last]) + above + carry;
    if top.unsigned_abs() >> 62 != 0 {
        return Err(WordsError::NotASum);
    }
    state.limbs.set_limb(last, top as i64);
    state.limbs.propagate_carries();
    if is_possible(&state, width) { Ok(state) } else { Err(WordsError::NotASum) }
}

/// Whether `count` terms below `2^width` can have this sum. If not, a later merge could overflow.
pub(crate) fn is_possible<L: Superaccumulator>(state: &State<L>, width: u32) -> bool {
    let leading = state.limbs.leading();
    let bits = width + state.count.next_power_of_two().ilog2();
    leading.bits == 0 || state.count > 0 && leading.position + 127 < bits as i32
}

macro_rules! words {
    ($($sum:ident, $limbs:ident, $width:expr;)*) => {$(
        impl<T: Summand> sealed::Sealed for $sum<T> {}

        impl<T: Summand> Words for $sum<T> {
            const LIMBS: usize = limbs_in_words(<T::$limbs as Superaccumulator>::LEN);

            fn words(&self) -> impl Iterator<Item = i64> {
                words_of(self.state, Self::LIMBS)
            }

            fn from_words(words: &[i64]) -> Result<Self, WordsError> {
                state_of(words, Self::LIMBS, $width).map(|state| Self { state })
            }
        }
    )*};
}

words! {
    ExactSum, Limbs, width::<T::Binary>();
    ExactDot, ProductLimbs, 2 * width::<T::Binary>();
}

/// Merges the sums of all ranks, by an engine's sum of integers.
///
/// `reduce` gets the words of all sums, one sum after the other, and replaces each by its sum over the ranks. On every
/// rank there are equally many sums of the same type. Then each rank has the sums over all ranks, as if it had added
/// the elements of all of them.
///
/// ```
/// use exact_sum::{ExactSum, words::{self, WordsError}};
///
/// let mut sums: Vec<ExactSum<f32>> = vec![[1e20, 1.0].into_iter().collect()];
/// // As if the other one of two ranks had -1e20 and 2.
/// let other: ExactSum<f32> = [-1e20, 2.0].into_iter().collect();
/// words::all_reduce(&mut sums, 2, |words| {
///     words.iter_mut().zip(words::Words::words(&other)).for_each(|(word, other)| *word += other);
///     Ok::<(), WordsError>(())
/// })?;
/// assert_eq!((sums[0].value(), sums[0].count()), (3.0, 4));
/// # Ok::<(), WordsError>(())
/// ```
///
/// # Errors
/// There are more than [`MAX_RANKS`] ranks or none, `reduce` fails, or the words that it leaves are not those of sums.
/// The sums are then as they were.
#[cfg(feature = "host")]
pub fn all_reduce<S: Words, E: From<WordsError>>(
    sums: &mut [S],
    ranks: u32,
    reduce: impl FnOnce(&mut [i64]) -> Result<(), E>,
) -> Result<(), E> {
    check_ranks(ranks)?;
    let mut words: alloc::vec::Vec<i64> = sums.iter().flat_map(S::words).collect();
    reduce(&mut words)?;
    let merged = words.chunks_exact(S::WORDS).map(S::from_words).collect::<Result<alloc::vec::Vec<S>, _>>()?;
    sums.iter_mut().zip(merged).for_each(|(sum, merged)| *sum = merged);
    Ok(())
}

/// Checks the number of ranks whose words are added.
///
/// # Errors
/// There are more than [`MAX_RANKS`], or none.
pub fn check_ranks(ranks: u32) -> Result<(), WordsError> {
    if (1..=MAX_RANKS).contains(&ranks) { Ok(()) } else { Err(WordsError::Ranks { found: ranks }) }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use half::{bf16, f16};

    use super::*;

    #[test]
    fn the_table_has_the_numbers_of_words() {
        assert_eq!([ExactSum::<f16>::WORDS, ExactSum::<bf16>::WORDS, ExactSum::<f32>::WORDS], [16; 3]);
        assert_eq!([ExactDot::<f16>::WORDS, ExactDot::<bf16>::WORDS, ExactDot::<f32>::WORDS], [24; 3]);
        assert_eq!([ExactSum::<f64>::WORDS, ExactDot::<f64>::WORDS], [72, 138]);
    }

    const NUMBERS: [f64; 11] =
        [1.0, -1.0, 1e300, -1e300, 5e-324, -5e-324, f64::MAX, -f64::MAX, 0.1, f64::NAN, f64::INFINITY];

    fn add(words: &mut [i64], others: impl Iterator<Item = i64>) {
        words.iter_mut().zip(others).for_each(|(word, other)| *word += other);
    }

    #[test]
    fn added_words_are_those_of_the_merged_sum() {
        for first in NUMBERS {
            for second in NUMBERS {
                let (a, b) = (ExactSum::from_iter([first, second]), ExactSum::from_iter([second, second, first]));
                let mut words: Vec<i64> = a.words().collect();
                add(&mut words, b.words());
                let mut merged = a;
                merged.merge(&b).unwrap();
                assert_eq!(ExactSum::from_words(&words), Ok(merged), "{first} and {second}");

                let (a, b) = (ExactDot::from_iter([(first, second)]), ExactDot::from_iter([(second, second); 2]));
                let mut words: Vec<i64> = a.words().collect();
                add(&mut words, b.words());
                let mut merged = a;
                merged.merge(&b).unwrap();
                assert_eq!(ExactDot::from_words(&words), Ok(merged), "products of {first} and {second}");
            }
        }
    }

    /// By doubling, up to the maximum number of ranks.
    #[test]
    fn limbs_hold_the_maximum_of_ranks() {
        for number in [f64::MAX, -f64::MAX, -5e-324, 0.1] {
            let one = ExactSum::from_iter([number; 3]);
            let (mut words, mut merged): (Vec<i64>, _) = (one.words().collect(), one);
            for _ in 0..MAX_RANKS.ilog2() {
                words.iter_mut().for_each(|word| *word *= 2);
                let both = merged;
                merged.merge(&both).unwrap();
            }
            assert_eq!(ExactSum::from_words(&words), Ok(merged), "{number}");
        }
    }

    #[test]
    fn other_words_are_errors() {
        let of = |change: &dyn Fn(&mut [i64])| {
            let mut words: Vec<i64> = ExactSum::<f32>::from_iter([1.0, -2.0, 3.0]).words().collect();
            change(&mut words);
            ExactSum::<f32>::from_words(&words).map(|sum| sum.value())
        };
        assert_eq!(of(&|_| {}), Ok(2.0));
        for special in 12..15 {
            assert_eq!(of(&|words| words[special] = -1), Err(WordsError::NotASum));
        }
        assert_eq!(of(&|words| words[15] = -1), Err(WordsError::NotASum));
        let count = MAX_ELEMENTS + 1;
        assert_eq!(of(&|words| words[15] = count as i64), Err(WordsError::TooManyElements(TooManyElements { count })));
        // Three elements cannot have this sum, and nothing has one of no elements.
        assert_eq!(of(&|words| words[11] = 1), Err(WordsError::NotASum));
        assert_eq!(of(&|words| words[15] = 0), Err(WordsError::NotASum));
        assert_eq!(of(&|words| words.fill(i64::MIN)), Err(WordsError::NotASum));
        assert_eq!(of(&|words| words[..12].fill(i64::MAX)), Err(WordsError::NotASum));
        for found in [0, 15, 17, 72] {
            let expected = WordsError::Length { found, expected: 16 };
            assert_eq!(ExactSum::<f32>::from_words(&alloc::vec![0; found]), Err(expected));
        }
    }

    #[test]
    fn after_an_error_the_sums_are_as_before() {
        let before = [ExactSum::<f32>::from_iter([1.0]), ExactSum::from_iter([2.0])];
        let mut sums = before;
        let mut refused = |ranks, reduce: &dyn Fn(&mut [i64]) -> Result<(), WordsError>| {
            let error = all_reduce(&mut sums, ranks, reduce).unwrap_err();
            assert_eq!(sums, before);
            error
        };
        assert_eq!(refused(0, &|_| Ok(())), WordsError::Ranks { found: 0 });
        assert_eq!(refused(MAX_RANKS + 1, &|_| Ok(())), WordsError::Ranks { found: MAX_RANKS + 1 });
        let failed = |words: &mut [i64]| {
            words.fill(5);
            Err(WordsError::NotASum)
        };
        assert_eq!(refused(2, &failed), WordsError::NotASum);
        let spoilt = |words: &mut [i64]| {
            words[16] = i64::MIN;
            words[27] = i64::MIN;
            Ok(())
        };
        assert_eq!(refused(2, &spoilt), WordsError::NotASum);
        all_reduce(&mut [] as &mut [ExactSum<f32>], 1, |words| {
            assert_eq!(words, []);
            Ok::<(), WordsError>(())
        })
        .unwrap();
    }
}
