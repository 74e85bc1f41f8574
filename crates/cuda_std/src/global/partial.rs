//! Partial vectors and words, for rows that begin and end at any address.

use core::mem::size_of;

use super::{Global, GlobalMut, L2Prefetch};
use crate::backend;
use crate::element::{Element, Plain, VectorType};

impl<T: Element> Global<'_, T> {
    /// Loads elements `from..to` of the vector that starts at `i`, at any alignment; the other elements of the result
    /// are meaningless. `i` may lie before the view (a wrapped index) if the requested elements are inside.
    ///
    /// One or two wide loads, branch-free: each aligned vector that contains a requested element is read whole.
    ///
    /// # Safety
    /// Elements `i + from..i + to` (wrapping) are inside the view, `from < to`, and `to` is at most the vector's
    /// length.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_partial_unchecked(&self, i: usize, from: usize, to: usize) -> T::Vector {
        #[cfg(not(target_arch = "nvptx64"))]
        {
            // The elements follow each other, and are fewer than those outside the view: if both ends are inside, all
            // are.
            if from < to && (i.wrapping_add(from) >= self.len || i.wrapping_add(to - 1) >= self.len) {
                let first = i.wrapping_add(from);
                let outside = if first < self.len { self.len } else { first };
                backend::out_of_bounds("a view of global memory", outside, self.len);
            }
            // SAFETY: just checked.
            unsafe { backend::load_partial(self.start.wrapping_add(i), from, to) }
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let pointer: *const T::Vector = self.start.wrapping_add(i).cast();
            let (off, size) = (backend::misalignment(pointer), size_of::<T>());
            let low = pointer.wrapping_byte_sub(off);
            let high = low.wrapping_byte_add(16);
            let low = if off + from * size < 16 { low } else { high };
            let high = if off + to * size > 16 { high } else { low };
            // SAFETY: both contain elements of the view, so they are readable (`from_raw`).
            backend::funnel_vector(unsafe { backend::load(low) }, unsafe { backend::load(high) }, off, size)
        }
    }
}

impl<T: Element> Global<'_, T> {
    /// The number of elements between the last multiple of `bytes`, a power of two, and the address of element `i`.
    #[inline(always)]
    pub fn elements_past(&self, i: usize, bytes: usize) -> usize {
        (self.start as usize).wrapping_add(i.wrapping_mul(size_of::<T>())) % bytes / size_of::<T>()
    }

    /// [`Global::load_partial_unchecked`] for a 16-byte-aligned vector: one load, with a [prefetch size](L2Prefetch).
    ///
    /// # Safety
    /// As for [`Global::load_partial_unchecked`], and the vector is aligned.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_aligned_partial_unchecked(
        &self,
        i: usize,
        from: usize,
        to: usize,
        prefetch: L2Prefetch,
    ) -> T::Vector {
        let pointer: *const T::Vector = self.start.wrapping_add(i).cast();
        #[cfg(not(target_arch = "nvptx64"))]
        {
            if !pointer.is_aligned() {
                backend::misaligned("a view of global memory", i);
            }
            let _ = prefetch;
            // SAFETY: as promised by the caller.
            unsafe { self.load_partial_unchecked(i, from, to) }
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let _ = (from, to);
            // SAFETY: it contains elements of the view, so it is readable (`from_raw`).
            unsafe { backend::load_vector(pointer, prefetch) }
        }
    }

    /// [`Global::load_aligned_partial_unchecked`] if `predicate`, else a meaningless vector: one predicated load,
    /// branch-free.
    ///
    /// # Safety
    /// As for [`Global::load_aligned_partial_unchecked`], if `predicate`.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_aligned_partial_if_unchecked(
        &self,
        predicate: bool,
        i: usize,
        from: usize,
        to: usize,
    ) -> T::Vector {
        #[cfg(not(target_arch = "nvptx64"))]
        {
            if !predicate {
                return T::Vector::splat(T::default());
            }
            // SAFETY: as promised by the caller.
            unsafe { self.load_aligned_partial_unchecked(i, from, to, L2Prefetch::Sectors) }
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let _ = (from, to);
            // SAFETY: if it is loaded it contains elements of the view, so it is readable (`from_raw`).
            unsafe { backend::load_vector_if(predicate, self.start.wrapping_add(i).cast(), L2Prefetch::Sectors) }
        }
    }
}

/// A pending load of a vector, or of half of one, at any alignment. It holds the aligned vector in which the load
/// starts.
#[derive(Clone, Copy)]
pub struct PendingVector<P>(P);

impl<T: Element> Global<'_, T> {
    /// Starts to load the vector at `i`, at any alignment, or its first half if `half`: one load, of the aligned vector
    /// (or half) in which it starts. [`Self::finish_unaligned_load_unchecked`] gets the remaining elements from the
    /// next lane, whose load starts there: nothing is loaded twice, and only half of the registers are needed. Loads of
    /// whole vectors [prefetch](L2Prefetch) their lines.
    ///
    /// `count` is the number of requested elements, 0 in a halo lane that only serves the lane before it. `left` is the
    /// number of elements from `i` to the end of the row, negative past the end.
    ///
    /// # Safety
    /// The first `count` elements are inside the view; `count` is at most a vector's length (or half of it), and at
    /// most `left`. The elements between the aligned address and `i + left` are inside the view, too.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn begin_unaligned_load_unchecked(
        &self,
        i: usize,
        count: usize,
        left: i32,
        half: bool,
    ) -> PendingVector<T::Vector> {
        #[cfg(not(target_arch = "nvptx64"))]
        {
            let _ = (left, half);
            let none = T::Vector::splat(T::default());
            // SAFETY: as promised by the caller.
            PendingVector(if count == 0 { none } else { unsafe { self.load_partial_unchecked(i, 0, count) } })
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let _ = count;
            let pointer = self.start.wrapping_add(i);
            let off = pointer as u32 % if half { 8 } else { 16 };
            let low = pointer.wrapping_byte_sub(off as usize);
            let predicate = left * size_of::<T>() as i32 + off as i32 > 0;
            // SAFETY: if it is loaded it contains elements of the view, so it is readable (`from_raw`).
            unsafe {
                if half {
                    let [a, b] = backend::load_half_if(predicate, low.cast());
                    return PendingVector(T::Vector::from_words([a, b, 0, 0]));
                }
                PendingVector(backend::load_vector_if(predicate, low.cast(), L2Prefetch::Line))
            }
        }
    }

    /// Finishes the load of the vector at `i`, or of half of one: the requested elements, and arbitrary ones after
    /// them. All lanes of the warp must call it together. The last lane of a row of adjacent vectors gets no useful
    /// result.
    ///
    /// # Safety
    /// `pending` was started with the same `i` and `half`, and for each lane with requested elements the next lane's
    /// `i` is one vector (or half) further.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn finish_unaligned_load_unchecked(
        &self,
        pending: PendingVector<T::Vector>,
        i: usize,
        half: bool,
    ) -> T::Vector {
        #[cfg(not(target_arch = "nvptx64"))]
        {
            let _ = (i, half);
            pending.0
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let pointer = self.start.wrapping_add(i) as u32 as usize;
            let [a, b, c, d] = pending.0.to_words();
            if half {
                let high = [a, b].map(backend::shuffle_from_next_lane);
                let [a, b] = backend::funnel_half([a, b], high, pointer % 8);
                return T::Vector::from_words([a, b, 0, 0]);
            }
            let high = T::Vector::from_words([a, b, c, d].map(backend::shuffle_from_next_lane));
            backend::funnel_vector(pending.0, high, pointer % 16, size_of::<T>())
        }
    }
}

/// A word of 4 or 8 bytes, which holds a few elements.
pub trait Word: Plain {}

impl Word for u32 {}
impl Word for u64 {}

impl<T: Element> Global<'_, T> {
    /// Loads `count` elements from `i` on into the first elements of a word, at any alignment; the other elements are
    /// meaningless.
    ///
    /// One load if an element is a word; for smaller elements two, of the aligned words that contain them, branch-free.
    ///
    /// # Safety
    /// Elements `i..i + count` are inside the view; `count` is at least 1 and at most the number of elements of a word.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_word_unchecked<W: Word>(&self, i: usize, count: usize) -> W {
        const { assert!(size_of::<T>() == size_of::<W>() || size_of::<W>() == 4) };
        #[cfg(not(target_arch = "nvptx64"))]
        {
            // SAFETY: as promised by the caller.
            let [a, b, ..] = unsafe { self.load_partial_unchecked(i, 0, count) }.to_words();
            W::from_word(u64::from(b) << 32 | u64::from(a))
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let pointer = self.start.wrapping_add(i);
            let (size, width) = (size_of::<T>(), size_of::<W>());
            if size == width {
                // SAFETY: as promised by the caller.
                return unsafe { backend::load(pointer.cast()) };
            }
            let off = pointer as usize % 4;
            let low: *const u32 = pointer.wrapping_byte_sub(off).cast();
            let high = if off + count * size > 4 { low.wrapping_add(1) } else { low };
            // SAFETY: both contain elements of the view, so they are readable (`from_raw`).
            let (low, high) = unsafe { (backend::load(low), backend::load(high)) };
            W::from_word(backend::funnel(low, high, 8 * off as u32).into())
        }
    }
}

impl<T: Element> Global<'_, T> {
    /// Loads the word that starts at element `i`, whose address is a multiple of the word's size. One load.
    ///
    /// # Safety
    /// The word's elements, from `i` on, are inside the view, and the address is aligned.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_aligned_word_unchecked<W: Word>(&self, i: usize) -> W {
        #[cfg(not(target_arch = "nvptx64"))]
        if i >= self.len || self.len - i < size_of::<W>() / size_of::<T>() {
            backend::out_of_bounds("a view of global memory (a word that begins)", i, self.len);
        }
        // SAFETY: as promised by the caller.
        unsafe { backend::load(self.start.wrapping_add(i).cast()) }
    }
}

impl<T: Element> Global<'_, T> {
    /// [`Global::load_word_unchecked`] for a whole word that is followed by another word of the view.
    ///
    /// # Safety
    /// The elements of two words, from `i` on, are inside the view; if an element is a word, only that one.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_inner_word_unchecked<W: Word>(&self, i: usize) -> W {
        #[cfg(not(target_arch = "nvptx64"))]
        {
            let of_word = size_of::<W>() / size_of::<T>();
            // An element that is a word needs no second word.
            let needed = if of_word == 1 { 1 } else { 2 * of_word };
            if i >= self.len || self.len - i < needed {
                backend::out_of_bounds("a view of global memory (two words that begin)", i, self.len);
            }
            // SAFETY: just checked.
            unsafe { self.load_word_unchecked(i, of_word) }
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let pointer = self.start.wrapping_add(i);
            if size_of::<T>() == size_of::<W>() {
                // SAFETY: as promised by the caller.
                return unsafe { backend::load(pointer.cast()) };
            }
            let off = pointer as usize as u32 % 4;
            let low: *const u32 = pointer.wrapping_byte_sub(off as usize).cast();
            // SAFETY: both contain elements of the view, so they are readable (`from_raw`).
            let (low, high) = unsafe { (backend::load(low), backend::load(low.wrapping_add(1))) };
            W::from_word(backend::funnel(low, high, 8 * off).into())
        }
    }
}

impl<T: Element> GlobalMut<'_, T> {
    /// Stores elements `from..to` of the word that starts at `i`: in one access if they are the whole word, else
    /// element by element. The word's address is a multiple of its size; `i` may be wrapped if `from` is not 0.
    ///
    /// # Safety
    /// Elements `i + from..i + to` (wrapping) are inside the view, `to` is at most the number of elements of a word,
    /// and the address is aligned.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store_word_unchecked<W: Word>(&self, i: usize, word: W, from: usize, to: usize) {
        let (all, bits) = (size_of::<W>() / size_of::<T>(), 8 * size_of::<T>());
        #[cfg(not(target_arch = "nvptx64"))]
        if from < to && (i.wrapping_add(to - 1) >= self.len || i.wrapping_add(from) >= self.len) {
            backend::out_of_bounds("a view of global memory (a word that begins)", i, self.len);
        }
        if from == 0 && to == all {
            // SAFETY: as promised by the caller.
            unsafe { backend::store(self.start.wrapping_add(i).cast(), word) };
            return;
        }
        let mut k = 0;
        while k < all {
            if from <= k && k < to {
                let element = T::from_word(word.to_pair()[0] >> (k * bits));
                // SAFETY: as promised by the caller.
                unsafe { self.store_unchecked(i.wrapping_add(k), element) };
            }
            k += 1;
        }
    }

    /// The number of elements between the last multiple of `bytes`, a power of two, and the address of element `i`.
    #[inline(always)]
    pub fn elements_past(&self, i: usize, bytes: usize) -> usize {
        (self.start as usize).wrapping_add(i.wrapping_mul(size_of::<T>())) % bytes / size_of::<T>()
    }

    /// Stores elements `from..to` of the vector that starts at `i`: in one access if they are the whole vector, else
    /// word by word, and element by element in a word that is only partly stored. The vector's address is a multiple of
    /// 16; `i` may be wrapped if `from` is not 0.
    ///
    /// # Safety
    /// Elements `i + from..i + to` (wrapping) are inside the view, `to` is at most the vector's length, and the address
    /// is aligned.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store_partial_unchecked(&self, i: usize, vector: T::Vector, from: usize, to: usize) {
        #[cfg(not(target_arch = "nvptx64"))]
        if from == 0 && to == T::Vector::LEN {
            self.store_vector(i, vector);
        } else {
            // No closure, so that reports name the caller's line.
            for k in from..to {
                self.store(i.wrapping_add(k), vector.get(k));
            }
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let pointer: *mut T::Vector = self.start.wrapping_add(i).cast();
            // SAFETY: as promised by the caller.
            unsafe {
                if from == 0 && to == T::Vector::LEN {
                    backend::store(pointer, vector);
                } else {
                    backend::store_partial(pointer.cast(), vector.to_words(), size_of::<T>(), from, to);
                }
            }
        }
    }
}
