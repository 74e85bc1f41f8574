//! Exact sums that stay in global memory, to which successive launches add.
//!
//! | module | contents |
//! |---|---|
//! | this module | a state's words, and additions to them by threads of any block |
//! | [`long_rows`](mod@long_rows) | adds whole inputs and long rows, of one input or two, and of squares |
//! | [`rows`](mod@rows) | adds short rows |
//! | [`columns`](mod@columns), [`lane_sum`] | adds columns, one by each thread |
//! | [`all`](mod@all) | adds states to states, carries, and rounds them |

pub mod all;
pub mod columns;
pub mod lane_sum;
pub mod long_rows;
pub mod rows;

use core::marker::PhantomData;

use cuda_std::atomic::{Atomic, Scope};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, sync_warp};
use exact_sum::digit_of_i128;

use super::grid::Grid;
use super::partial::Partial;
use super::superaccumulator::{Superaccumulator, words};
use super::superaccumulator_words::Special;
use super::unrolled::each;

/// The number of words of a state: limbs, a word for each [`Special`], and the number of elements.
pub const fn words_of_state<G: Grid>() -> usize {
    words::<G>() as usize + 1
}

/// Bits of a limb between launches, including its sign. Limbs are in units of `2^(32 k)`, so several hundred additions
/// fit before a carry.
pub const LIMB_BITS: u32 = 40;

// An addition to a limb is less than 2^39, and its carry less than its own magnitude plus 2^40. A limb holds all
// additions of the device's lanes whose carries have not been propagated.
const _: () = {
    const LANES: i128 = 1 << 21;
    let (limb, addition, carry) = (1_i128 << (LIMB_BITS - 1), 1_i128 << 39, 1_i128 << LIMB_BITS);
    assert!(limb + LANES * (2 * addition + carry) < 1 << 63);
};

/// A limb's excess beyond its bits, in units of `2^LIMB_BITS`; 0 between launches.
#[inline(always)]
pub const fn excess(limb: i64) -> i64 {
    (limb + (1 << (LIMB_BITS - 1))) >> LIMB_BITS
}

/// Adds `amount`, less than `2^39`, to limb `k` of a state whose words begin at `first`, and carries.
///
/// A thread whose addition changes a limb's [`excess`] subtracts the difference from the limb and adds it to the limb
/// above. So the excess is always the sum of the differences that threads have not yet subtracted. At the end of a
/// launch it is 0, in any order of the threads. The carry does not change the number that the limbs represent.
#[inline(always)]
pub fn add_to_limb(states: &GlobalMut<i64>, first: usize, limbs: u32, k: u32, amount: i64) {
    let (mut k, mut amount) = (k, amount);
    while amount != 0 {
        let before = i64::fetch_add(states, first + k as usize, amount, Scope::Device);
        // The last limb has no limb above it, and keeps its excess.
        let carry = if k + 1 < limbs { excess(before + amount) - excess(before) } else { 0 };
        if carry != 0 {
            i64::fetch_add(states, first + k as usize, -(carry << LIMB_BITS), Scope::Device);
        }
        (k, amount) = (k + 1, carry << (LIMB_BITS - 32));
    }
}

/// An array of states in global memory.
#[derive(Clone, Copy)]
pub struct States<'a, G> {
    words: GlobalMut<'a, i64>,
    grid: PhantomData<G>,
}

impl<'a, G: Grid> States<'a, G> {
    /// The states in a view, of [`words_of_state`] words each.
    #[inline(always)]
    pub fn new(words: GlobalMut<'a, i64>) -> Self {
        Self { words, grid: PhantomData }
    }

    /// Adds less than `2^39` to a limb, or to the word of a [`Special`].
    #[inline(always)]
    fn add_word(&self, state: usize, k: u32, word: i64) {
        let first = state * words_of_state::<G>();
        if k < G::LIMBS {
            add_to_limb(&self.words, first, G::LIMBS, k, word);
        } else if word != 0 {
            i64::fetch_add(&self.words, first + k as usize, word, Scope::Device);
        }
    }

    /// Counts elements.
    #[inline(always)]
    pub fn count(&self, state: usize, elements: usize) {
        let place = state * words_of_state::<G>() + words::<G>() as usize;
        i64::fetch_add(&self.words, place, elements as i64, Scope::Device);
    }

    /// Counts a non-finite term.
    #[inline(always)]
    pub fn add_special(&self, state: usize, special: Special) {
        self.add_word(state, G::LIMBS + special as u32, 1);
    }

    /// Adds `value * 2^position`, from one lane.
    #[inline(always)]
    pub fn add(&self, state: usize, value: i128, position: u32) {
        if value != 0 {
            add_integer::<G>(self.words, state, [value as u64, (value >> 64) as u64], position);
        }
    }

    /// Adds a partial and, if it has limbs, those of this warp's superaccumulator. All lanes of the warp must call
    /// this.
    #[inline(always)]
    pub fn add_partial(&self, state: usize, partial: Partial, superacc: Superaccumulator<G>) {
        let Partial { value, position, has_limbs, .. } = partial;
        if has_limbs {
            add_limbs::<G>(self.words, state, [value as u64, (value >> 64) as u64], position, superacc);
        } else {
            Superaccumulator::<G>::each_word(|k| {
                if k < G::LIMBS {
                    self.add_word(state, k, digit_of_i128(value, position, k));
                }
            });
        }
    }
}

/// [`States::add`]. Out of line, since it is called from several places, once for many elements.
#[inline(never)]
fn add_integer<G: Grid>(states: GlobalMut<i64>, state: usize, value: [u64; 2], position: u32) {
    let value = (u128::from(value[0]) | u128::from(value[1]) << 64) as i128;
    let first = position / 32;
    each::<5>(|j| {
        let k = first + j as u32;
        if k < G::LIMBS {
            add_to_limb(&states, state * words_of_state::<G>(), G::LIMBS, k, digit_of_i128(value, position, k));
        }
    });
}

/// [`States::add_partial`] of a partial with limbs. Out of line, since it is rarely needed.
#[cold]
#[inline(never)]
fn add_limbs<G: Grid>(
    states: GlobalMut<i64>,
    state: usize,
    value: [u64; 2],
    position: u32,
    superacc: Superaccumulator<G>,
) {
    let value = (u128::from(value[0]) | u128::from(value[1]) << 64) as i128;
    sync_warp(FULL_MASK);
    superacc.add(|k| digit_of_i128(value, position, k));
    sync_warp(FULL_MASK);
    // Before that, limbs of a superaccumulator may exceed the maximum of one addition to a state.
    superacc.propagate_carries();
    let states = States::<G>::new(states);
    Superaccumulator::<G>::each_word(|k| states.add_word(state, k, superacc.word(k)));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lanes are delayed between an addition and its carry, in any order. The excess is the sum of the delayed carries.
    #[test]
    fn excess_is_what_has_not_been_passed_on() {
        let (mut limb, mut all, mut passed) = (0_i64, 0_i128, 0_i128);
        let mut waiting = [0; 100];
        let mut late = 0;
        let mut random = 1_u64;
        for step in 0..1_000_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let sign = if step / 10_000 % 3 == 0 { -1 } else { 1 };
            let amount = sign * (random >> 25) as i64;
            let before = limb;
            limb += amount;
            all += i128::from(amount);
            let carry = excess(limb) - excess(before);
            if carry != 0 {
                waiting[late] = carry;
                late += 1;
            }
            // Up to a hundred lanes are late.
            if late > (random >> 5) as usize % waiting.len() {
                let one = (random >> 13) as usize % late;
                limb -= waiting[one] << LIMB_BITS;
                passed += i128::from(waiting[one]);
                late -= 1;
                waiting[one] = waiting[late];
            }
            assert_eq!(excess(limb), waiting[..late].iter().sum::<i64>(), "step {step}");
        }
        for carry in &waiting[..late] {
            let carry = *carry;
            limb -= carry << LIMB_BITS;
            passed += i128::from(carry);
        }
        assert_eq!(excess(limb), 0);
        assert_eq!(i128::from(limb) + (passed << LIMB_BITS), all);
    }
}
