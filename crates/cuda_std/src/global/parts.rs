//! Parts of vectors and of words: what rows that begin and end at any address are moved by.

use core::mem::size_of;

use super::{Fetch, Global, GlobalMut};
use crate::backend;
use crate::element::{Element, Plain, VectorType};

impl<T: Element> Global<'_, T> {
    /// Of the vector that begins at `i`, the elements `from..to`; the others are of no meaning. At any alignment, and at
    /// any `i`, even one "before" the view (a wrapped index), as long as the elements that are asked for are inside.
    ///
    /// One or two wide loads, no branch: each of the aligned vectors in which there is one of those elements is read
    /// whole.
    ///
    /// # Safety
    /// Elements `i + from` to `i + to` (wrapped, that one not included) are inside of the view, there is one, and `to`
    /// is at most the vector's length.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_part_unchecked(&self, i: usize, from: usize, to: usize) -> T::Vector {
        #[cfg(not(target_arch = "nvptx64"))]
        {
            if let Some(k) = (from..to).find(|&k| i.wrapping_add(k) >= self.len) {
                backend::out_of_bounds("a view of global memory", i.wrapping_add(k), self.len);
            }
            // SAFETY: just checked.
            unsafe { backend::load_part(self.start.wrapping_add(i), from, to) }
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let place: *const T::Vector = self.start.wrapping_add(i).cast();
            let (off, size) = (backend::bytes_off_alignment(place), size_of::<T>());
            let low = place.wrapping_byte_sub(off);
            let high = low.wrapping_byte_add(16);
            let low = if off + from * size < 16 { low } else { high };
            let high = if off + to * size > 16 { high } else { low };
            // SAFETY: both have elements of the view, so they can be read (`from_raw`).
            backend::cut(unsafe { backend::load(low) }, unsafe { backend::load(high) }, off, size)
        }
    }
}

impl<T: Element> Global<'_, T> {
    /// How many elements the address of element `i` is past a multiple of `bytes`, a power of two.
    #[inline(always)]
    pub fn elements_past(&self, i: usize, bytes: usize) -> usize {
        (self.start as usize).wrapping_add(i.wrapping_mul(size_of::<T>())) % bytes / size_of::<T>()
    }

    /// [`Global::load_part_unchecked`] where the vector's address is a multiple of 16: one load, which [fetches](Fetch)
    /// so much.
    ///
    /// # Safety
    /// As there, and the vector is aligned.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_aligned_part_unchecked(&self, i: usize, from: usize, to: usize, fetch: Fetch) -> T::Vector {
        let place: *const T::Vector = self.start.wrapping_add(i).cast();
        #[cfg(not(target_arch = "nvptx64"))]
        {
            if !place.is_aligned() {
                backend::misaligned("a view of global memory", i);
            }
            let _ = fetch;
            // SAFETY: as promised by the caller.
            unsafe { self.load_part_unchecked(i, from, to) }
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let _ = (from, to);
            // SAFETY: it has elements of the view, so it can be read (`from_raw`).
            unsafe { backend::load_vector(place, fetch) }
        }
    }

    /// [`Global::load_aligned_part_unchecked`] if `is_there`, else nothing of meaning: one load or none, no branch.
    ///
    /// # Safety
    /// As there, if it is loaded.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_aligned_part_if_unchecked(&self, is_there: bool, i: usize, from: usize, to: usize) -> T::Vector {
        #[cfg(not(target_arch = "nvptx64"))]
        {
            if !is_there {
                return T::Vector::splat(T::default());
            }
            // SAFETY: as promised by the caller.
            unsafe { self.load_aligned_part_unchecked(i, from, to, Fetch::Sectors) }
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let _ = (from, to);
            // SAFETY: if it is loaded it has elements of the view, so it can be read (`from_raw`).
            unsafe { backend::load_vector_if(is_there, self.start.wrapping_add(i).cast(), Fetch::Sectors) }
        }
    }
}

/// A vector, or half of one, of each lane of a warp: begun, with the aligned one in which it begins.
#[derive(Clone, Copy)]
pub struct Begun<P>(P);

impl<T: Element> Global<'_, T> {
    /// Begins to load the vector at `i`, at any alignment, or, if `half`, its first half: one load, of the aligned vector
    /// (or half) in which it begins. What it has of the next one [`Self::finish_unchecked`] gets from the next lane,
    /// which begins there: nothing is loaded twice, and in half of the registers that both would take. Vectors that are
    /// not halved [fetch](Fetch) their lines.
    ///
    /// `count` elements count, none of a lane that is there for the one before it; and the row goes on for `left`
    /// elements from `i` on, or ended so many before, if that is negative.
    ///
    /// # Safety
    /// The first `count` elements are inside of the view, and at most a vector's (or half of one's); `count` is not more
    /// than `left`; and so are the last elements before `i + left`, as far as there are any from the aligned place on.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn begin_unchecked(&self, i: usize, count: usize, left: i32, half: bool) -> Begun<T::Vector> {
        #[cfg(not(target_arch = "nvptx64"))]
        {
            let _ = (left, half);
            let none = T::Vector::splat(T::default());
            // SAFETY: as promised by the caller.
            Begun(if count == 0 { none } else { unsafe { self.load_part_unchecked(i, 0, count) } })
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let _ = count;
            let place = self.start.wrapping_add(i);
            let off = place as u32 % if half { 8 } else { 16 };
            let low = place.wrapping_byte_sub(off as usize);
            let is_there = left * size_of::<T>() as i32 + off as i32 > 0;
            // SAFETY: if it is loaded it has elements of the view, so it can be read (`from_raw`).
            unsafe {
                if half {
                    let [a, b] = backend::load_half_if(is_there, low.cast());
                    return Begun(T::Vector::from_words([a, b, 0, 0]));
                }
                Begun(backend::load_vector_if(is_there, low.cast(), Fetch::Line))
            }
        }
    }

    /// The vector at `i` that was begun, or half of one: its elements that count, with any behind them. All lanes of the
    /// warp come here together; the last of those with neighbouring vectors gets nothing of use.
    ///
    /// # Safety
    /// It was begun with that place; and of all lanes that something counts in, the next one's place is a vector (or
    /// half) further.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn finish_unchecked(&self, begun: Begun<T::Vector>, i: usize, half: bool) -> T::Vector {
        #[cfg(not(target_arch = "nvptx64"))]
        {
            let _ = (i, half);
            begun.0
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let place = self.start.wrapping_add(i) as u32 as usize;
            let [a, b, c, d] = begun.0.to_words();
            if half {
                let high = [a, b].map(backend::of_next_lane);
                let [a, b] = backend::cut_half([a, b], high, place % 8);
                return T::Vector::from_words([a, b, 0, 0]);
            }
            let high = T::Vector::from_words([a, b, c, d].map(backend::of_next_lane));
            backend::cut(begun.0, high, place % 16, size_of::<T>())
        }
    }
}

/// A word of a few elements, of 4 or 8 bytes.
pub trait Word: Plain {}

impl Word for u32 {}
impl Word for u64 {}

impl<T: Element> Global<'_, T> {
    /// The `count` elements from `i` on as a word's first, at any alignment; what is behind them is of no meaning.
    ///
    /// One load where elements are words; where they are smaller, two of the aligned words that they lie in, no branch.
    ///
    /// # Safety
    /// Elements `i` to `i + count` (that one not included) are inside of the view; there is one, and a word has so
    /// many.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_word_unchecked<W: Word>(&self, i: usize, count: usize) -> W {
        const { assert!(size_of::<T>() == size_of::<W>() || size_of::<W>() == 4) };
        #[cfg(not(target_arch = "nvptx64"))]
        {
            // SAFETY: as promised by the caller.
            let [a, b, ..] = unsafe { self.load_part_unchecked(i, 0, count) }.to_words();
            W::from_word(u64::from(b) << 32 | u64::from(a))
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let place = self.start.wrapping_add(i);
            let (size, width) = (size_of::<T>(), size_of::<W>());
            if size == width {
                // SAFETY: as promised by the caller.
                return unsafe { backend::load(place.cast()) };
            }
            let off = place as usize % 4;
            let low: *const u32 = place.wrapping_byte_sub(off).cast();
            let high = if off + count * size > 4 { low.wrapping_add(1) } else { low };
            // SAFETY: both have elements of the view, so they can be read (`from_raw`).
            let (low, high) = unsafe { (backend::load(low), backend::load(high)) };
            W::from_word(backend::funnel(low, high, 8 * off as u32).into())
        }
    }
}

impl<T: Element> Global<'_, T> {
    /// The word that begins at element `i`, whose address is a multiple of the word's size. One load.
    ///
    /// # Safety
    /// The word's elements, from `i` on, are inside of the view, and the address is aligned.
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
    /// [`Global::load_word_unchecked`] of a whole word, where the view has another one behind it.
    ///
    /// # Safety
    /// Two words' elements, from `i` on, are inside of the view; of elements that are words, the one.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_word_of_many_unchecked<W: Word>(&self, i: usize) -> W {
        #[cfg(not(target_arch = "nvptx64"))]
        {
            let of_word = size_of::<W>() / size_of::<T>();
            // Elements that are words are loaded by themselves.
            let needed = if of_word == 1 { 1 } else { 2 * of_word };
            if i >= self.len || self.len - i < needed {
                backend::out_of_bounds("a view of global memory (two words that begin)", i, self.len);
            }
            // SAFETY: just checked.
            unsafe { self.load_word_unchecked(i, of_word) }
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let place = self.start.wrapping_add(i);
            if size_of::<T>() == size_of::<W>() {
                // SAFETY: as promised by the caller.
                return unsafe { backend::load(place.cast()) };
            }
            let off = place as usize as u32 % 4;
            let low: *const u32 = place.wrapping_byte_sub(off as usize).cast();
            // SAFETY: both have elements of the view, so they can be read (`from_raw`).
            let (low, high) = unsafe { (backend::load(low), backend::load(low.wrapping_add(1))) };
            W::from_word(backend::funnel(low, high, 8 * off).into())
        }
    }
}

impl<T: Element> GlobalMut<'_, T> {
    /// Writes the elements `from..to` of the word that begins at `i`, an index (which may be wrapped, if `from` is not
    /// 0) whose address is a multiple of the word's size: in one access if they are all, else by elements.
    ///
    /// # Safety
    /// Elements `i + from` to `i + to` (wrapped, that one not included) are inside of the view, a word has so many, and
    /// the address is aligned.
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

    /// How many elements the address of element `i` is past a multiple of `bytes`, a power of two.
    #[inline(always)]
    pub fn elements_past(&self, i: usize, bytes: usize) -> usize {
        (self.start as usize).wrapping_add(i.wrapping_mul(size_of::<T>())) % bytes / size_of::<T>()
    }

    /// Writes the elements `from..to` of the vector that begins at `i`, an index (which may be wrapped, if `from` is not
    /// 0) whose address is a multiple of 16: in one access if they are all, else by words and, in the word that a
    /// border goes through, by elements.
    ///
    /// # Safety
    /// Elements `i + from` to `i + to` (wrapped, that one not included) are inside of the view, `to` is at most the
    /// vector's length, and the address is aligned.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store_part_unchecked(&self, i: usize, vector: T::Vector, from: usize, to: usize) {
        #[cfg(not(target_arch = "nvptx64"))]
        if from == 0 && to == T::Vector::LEN {
            self.store_vector(i, vector);
        } else {
            // No closure: the line that is reported is the caller's.
            for k in from..to {
                self.store(i.wrapping_add(k), vector.get(k));
            }
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let place: *mut T::Vector = self.start.wrapping_add(i).cast();
            // SAFETY: as promised by the caller.
            unsafe {
                if from == 0 && to == T::Vector::LEN {
                    backend::store(place, vector);
                } else {
                    backend::store_part(place.cast(), vector.to_words(), size_of::<T>(), from, to);
                }
            }
        }
    }
}
