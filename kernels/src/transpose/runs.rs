//! Exchanges the first two of three axes: runs of neighbouring elements stay together and change places.

use cuda_std::global::issue_loads;
use cuda_std::prelude::*;

use super::turn::Turn;

/// Threads of a block.
pub const BLOCK: usize = 256;

/// Packs that a thread moves.
pub const PACKS: usize = 4;

/// Writes runs of `len` elements, `outer` times `inner` of them, in the order `inner` times `outer`: run `i * inner + j` of
/// the input is run `j * outer + i` of the output. `packs` is the number of aligned packs of 16 bytes that a run of the
/// output may lie in: one more than it fills if it may begin at any address.
///
/// Consecutive threads write consecutive aligned packs, [`PACKS`] of which each has on the way. Where runs are whole packs and
/// all is aligned, each is one of the input's; where not, it is cut out of two, and at a run's ends there are parts of packs.
#[kernel(instances = [u8, u16, u32, u64, u128], block = BLOCK, early)]
pub fn runs<T: Turn>(input: Global<T>, output: GlobalMut<T>, outer: usize, inner: usize, len: usize, packs: usize) {
    let first = thread::block_idx_x() as usize * (BLOCK * PACKS) + thread::index_in_block::<BLOCK>();
    if (len * size_of::<T>()).is_multiple_of(16) && input.is_aligned_to(0, 16) && output.elements_past(0, 16) == 0 {
        whole_packs(&input, &output, first, outer, inner, packs);
        return;
    }
    let part = |k: usize| Part::of::<T>(first + k * BLOCK, &output, outer, inner, len, packs);
    let parts = [part(0), part(1), part(2), part(3)];
    let loaded = [parts[0].load(&input), parts[1].load(&input), parts[2].load(&input), parts[3].load(&input)];
    parts[0].store(&output, loaded[0]);
    parts[1].store(&output, loaded[1]);
    parts[2].store(&output, loaded[2]);
    parts[3].store(&output, loaded[3]);
}

/// Moves the thread's packs, the first of which is number `first` of the output, of runs of `packs` aligned packs.
#[inline(always)]
fn whole_packs<T: Turn>(
    input: &Global<T>,
    output: &GlobalMut<T>,
    first: usize,
    outer: usize,
    inner: usize,
    packs: usize,
) {
    let all = outer * inner * packs;
    let load = |k: usize| {
        let i = first + k * BLOCK;
        // Behind the last pack it is the last one again: a load that has to be done or not is a branch, and waits for it.
        let (run, k) = divide(if i < all { i } else { all - 1 }, packs);
        let (row, column) = divide(run, outer);
        // SAFETY: a pack of the run, which is inside of the view; it is aligned.
        unsafe { input.load_pack_unchecked(((column * inner + row) * packs + k) * T::Pack::LEN) }
    };
    let loaded = [load(0), load(1), load(2), load(3)];
    issue_loads();
    let store = |k: usize| {
        let i = first + k * BLOCK;
        if i < all {
            // SAFETY: a pack of a run, which is inside of the view; it is aligned.
            unsafe { output.store_pack_unchecked(i * T::Pack::LEN, loaded[k]) };
        }
    };
    store(0);
    store(1);
    store(2);
    store(3);
}

/// Quotient and remainder: by 32 bits where they have no more, which takes a fifth of the instructions.
#[inline(always)]
fn divide(number: usize, by: usize) -> (usize, usize) {
    if (number | by) >> 32 == 0 {
        let (number, by) = (number as u32, by as u32);
        ((number / by) as usize, (number % by) as usize)
    } else {
        (number / by, number % by)
    }
}

/// What a run has of an aligned pack of the output.
struct Part {
    /// Where the pack begins in the input and the output: perhaps before both.
    from: usize,
    to: usize,
    /// Which of its elements are the run's; none if the first is not before the second.
    begin: usize,
    end: usize,
}

impl Part {
    /// Pack `i`, if each run had `packs` of them.
    #[inline(always)]
    fn of<T: Turn>(i: usize, output: &GlobalMut<T>, outer: usize, inner: usize, len: usize, packs: usize) -> Self {
        let (run, k) = divide(i, packs);
        if run >= outer * inner {
            return Self { from: 0, to: 0, begin: 1, end: 0 };
        }
        let (row, column) = divide(run, outer);
        let (from, to) = ((column * inner + row) * len, run * len);
        let lanes = T::Pack::LEN;
        let past = output.elements_past(to, 16);
        let (first, behind) = (k * lanes, past + len);
        Self {
            from: from.wrapping_add(first).wrapping_sub(past),
            to: to.wrapping_add(first).wrapping_sub(past),
            begin: if k == 0 { past } else { 0 },
            end: if first + lanes <= behind { lanes } else { behind.saturating_sub(first) },
        }
    }

    #[inline(always)]
    fn load<T: Turn>(&self, input: &Global<T>) -> T::Pack {
        if self.begin < self.end {
            // SAFETY: elements of the run, which is inside of the view.
            unsafe { input.load_part_unchecked(self.from, self.begin, self.end) }
        } else {
            T::Pack::splat(T::default())
        }
    }

    #[inline(always)]
    fn store<T: Turn>(&self, output: &GlobalMut<T>, pack: T::Pack) {
        if self.begin < self.end {
            // SAFETY: elements of the run, which is inside of the view; the pack is aligned.
            unsafe { output.store_part_unchecked(self.to, pack, self.begin, self.end) };
        }
    }
}
