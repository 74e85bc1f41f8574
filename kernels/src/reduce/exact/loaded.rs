//! The elements of a row that a lane loads.

use cuda_std::prelude::*;
use exact_sum::{Bins, Window};

use super::format::Format;
use super::terms::{Float, Inputs, One, Terms, all_have_exact_low};
use super::unrolled::each;
use super::warp_sum::{extract_both, largest};
use crate::reduce::tile_range::elements_to_alignment;

/// A vector of a row, and up to two elements outside whole vectors, called singles.
#[derive(Clone, Copy)]
pub(super) struct Loaded<T: Element> {
    pub vector: T::Vector,
    pub singles: [T; 2],
}

impl<T: Element> Loaded<T> {
    /// Loads vector `vector` of the `len` elements from `start` on. With `SINGLES`, also the singles at `vector` and
    /// `vector + lanes`, for vectors below `lanes`.
    ///
    /// # Safety
    /// The elements are inside the input. Without `SINGLES`, all are in whole vectors, at multiples of 16 bytes.
    #[inline(always)]
    pub unsafe fn load<const SINGLES: bool>(
        input: &Global<T>,
        start: usize,
        len: usize,
        vector: u32,
        lanes: u32,
    ) -> Self {
        let head = if SINGLES { elements_to_alignment(input, start, len) as u32 } else { 0 };
        let (first, len) = (start + head as usize, len as u32 - head);
        let whole = if SINGLES { len / T::Vector::LEN as u32 * T::Vector::LEN as u32 } else { len };
        // SAFETY: whole vectors are inside the row, and begin at multiples of 16 bytes.
        let [of_vector] = unsafe {
            let i = first + vector as usize * T::Vector::LEN;
            input.load_aligned_vectors_before::<1>(i, 0, first + whole as usize)
        };
        let single = |k: u32| {
            let is_before = k < head;
            let i = if is_before { start + k as usize } else { first + (whole + k - head) as usize };
            let exists = SINGLES && vector < lanes && (is_before || k - head < len - whole);
            // SAFETY: the element is inside the row.
            if exists { unsafe { input.load_unchecked(i) } } else { T::default() }
        };
        Self { vector: of_vector, singles: [single(vector), single(vector + lanes)] }
    }

    /// [`largest`] of all terms.
    #[inline(always)]
    pub fn largest<K: Terms<Element = T, Item = T>, const SINGLES: bool>(&self, terms: K) -> f32 {
        let of_vector = largest::<K, One<'_, T>>(terms, self.vector);
        if !SINGLES {
            return of_vector;
        }
        let [a, b] = self.singles.map(|single| terms.term(single).upper());
        of_vector.max(a.max(b))
    }

    /// Whether [`all_have_exact_low`] holds for what was loaded.
    #[inline(always)]
    pub fn all_have_exact_low<K: Terms<Element = T, Item = T>, const SINGLES: bool, const N: usize>(
        loaded: &[Self; N],
    ) -> bool {
        let mut vectors = [loaded[0].vector; N];
        each::<N>(|k| vectors[k] = loaded[k].vector);
        let mut all = all_have_exact_low::<K, One<'_, T>, N>(&vectors);
        if SINGLES {
            each::<N>(|k| each::<2>(|i| all &= K::has_exact_low(loaded[k].singles[i])));
        }
        all
    }

    /// The sums of first and second terms, each in the bins of its window.
    #[inline(always)]
    pub fn bins<K: Terms<Element = T, Item = T>, const SINGLES: bool>(
        &self,
        terms: K,
        windows: [Window<Float<K>>; 2],
    ) -> (Bins<Float<K>>, Bins<Float<K>>) {
        let mut both = (Bins::EMPTY, Bins::EMPTY);
        <One<'_, T> as Inputs<K>>::each(self.vector, |_, item| {
            both = extract_both(terms, windows, both.into(), item);
        });
        if SINGLES {
            each::<2>(|k| both = extract_both(terms, windows, both.into(), self.singles[k]));
        }
        // Computed now, because LLVM otherwise adds up the elements of several vectors at a time, and those of four
        // vectors do not fit in registers.
        let compute_now = |bins: Bins<Float<K>>| bins.map_words(Float::<K>::compute_now);
        (compute_now(both.0), compute_now(both.1))
    }
}
