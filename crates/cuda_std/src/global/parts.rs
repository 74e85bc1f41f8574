//! Parts of packs and of words: what rows that begin and end at any address are moved by.

use core::mem::size_of;

use super::{Global, GlobalMut};
use crate::element::{Element, Packed, Plain};
use crate::machine;

impl<T: Element> Global<'_, T> {
    /// Of the pack that begins at `i`, the elements `from..to`; the others are of no meaning. At any alignment, and at any
    /// `i`, even one "before" the view (a wrapped index), as long as the elements that are asked for are inside.
    ///
    /// One or two wide loads, no branch: each of the aligned packs in which there is one of those elements is read whole.
    ///
    /// # Safety
    /// Elements `i + from` to `i + to` (wrapped, that one not included) are inside of the view, there is one, and `to` is at
    /// most the pack's length.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_part_unchecked(&self, i: usize, from: usize, to: usize) -> T::Pack {
        #[cfg(not(target_arch = "nvptx64"))]
        {
            if let Some(k) = (from..to).find(|&k| i.wrapping_add(k) >= self.len) {
                machine::out_of_bounds("a view of global memory", i.wrapping_add(k), self.len);
            }
            // SAFETY: just checked.
            unsafe { machine::load_part(self.start.wrapping_add(i), from, to) }
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let place: *const T::Pack = self.start.wrapping_add(i).cast();
            let (off, size) = (machine::bytes_off_alignment(place), size_of::<T>());
            let low = place.wrapping_byte_sub(off);
            let high = low.wrapping_byte_add(16);
            let low = if off + from * size < 16 { low } else { high };
            let high = if off + to * size > 16 { high } else { low };
            // SAFETY: both have elements of the view, so they can be read (`from_raw`).
            machine::cut(unsafe { machine::load(low) }, unsafe { machine::load(high) }, off, size)
        }
    }
}

impl<T: Element> Global<'_, T> {
    /// How many elements the address of element `i` is past a multiple of `bytes`, a power of two.
    #[inline(always)]
    pub fn elements_past(&self, i: usize, bytes: usize) -> usize {
        (self.start as usize).wrapping_add(i.wrapping_mul(size_of::<T>())) % bytes / size_of::<T>()
    }

    /// [`Global::load_part_unchecked`] where the pack's address is a multiple of 16: one load.
    ///
    /// # Safety
    /// As there, and the pack is aligned.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_aligned_part_unchecked(&self, i: usize, from: usize, to: usize) -> T::Pack {
        let place: *const T::Pack = self.start.wrapping_add(i).cast();
        #[cfg(not(target_arch = "nvptx64"))]
        {
            if !place.is_aligned() {
                machine::misaligned("a view of global memory", i);
            }
            // SAFETY: as promised by the caller.
            unsafe { self.load_part_unchecked(i, from, to) }
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let _ = (from, to);
            // SAFETY: it has elements of the view, so it can be read (`from_raw`).
            unsafe { machine::load(place) }
        }
    }
}

/// The first half of a pack that begins anywhere: the aligned pack in which it begins.
#[derive(Clone, Copy)]
pub struct Begun<P>(P);

impl<T: Element> Global<'_, T> {
    /// Begins to load the pack at `i`, of which `count` elements count: the aligned pack in which that begins, if any counts.
    /// [`Self::finish_pack_unchecked`] loads the other one, which a neighbour has begun meanwhile.
    ///
    /// So many packs can be on their way at once in few registers: half of those that they and their other halves take.
    ///
    /// # Safety
    /// The first `count` elements are inside of the view, and at most a pack's.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn begin_pack_unchecked(&self, i: usize, count: usize) -> Begun<T::Pack> {
        #[cfg(not(target_arch = "nvptx64"))]
        {
            let none = T::Pack::splat(T::default());
            // SAFETY: as promised by the caller.
            Begun(if count == 0 { none } else { unsafe { self.load_part_unchecked(i, 0, count) } })
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let place: *const T::Pack = self.start.wrapping_add(i).cast();
            let low = place.wrapping_byte_sub(machine::bytes_off_alignment(place));
            // SAFETY: it has elements of the view, so it can be read (`from_raw`).
            Begun(unsafe {
                if count == T::Pack::LEN { machine::load(low) } else { machine::load_pack_if(count > 0, low) }
            })
        }
    }

    /// The pack at `i` that was begun: its first `count` elements, with any behind them.
    ///
    /// # Safety
    /// It was begun with that place and that count.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn finish_pack_unchecked(&self, begun: Begun<T::Pack>, i: usize, count: usize) -> T::Pack {
        #[cfg(not(target_arch = "nvptx64"))]
        {
            let _ = (i, count);
            begun.0
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let place: *const T::Pack = self.start.wrapping_add(i).cast();
            let (off, size) = (machine::bytes_off_alignment(place) as u32 as usize, size_of::<T>());
            let high = place.wrapping_byte_sub(off).wrapping_add(1);
            // Of 32 bits: fewer registers, which packs on their way need.
            let is_there = count > 0 && off as u32 + (count * size) as u32 > 16;
            // SAFETY: if it is loaded it has elements of the view, so it can be read (`from_raw`).
            machine::cut(begun.0, unsafe { machine::load_pack_if(is_there, high) }, off, size)
        }
    }
}

impl<T: Element> Global<'_, T> {
    /// [`Self::begin_pack_unchecked`] of the first half of a pack: of at most so many elements. It takes half of the registers.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn begin_half_unchecked(&self, i: usize, count: usize) -> Begun<T::Pack> {
        #[cfg(not(target_arch = "nvptx64"))]
        {
            // SAFETY: as promised by the caller.
            unsafe { self.begin_pack_unchecked(i, count) }
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let place: *const [u32; 2] = self.start.wrapping_add(i).cast();
            let low = place.wrapping_byte_sub(place as usize % 8);
            // SAFETY: if it is loaded it has elements of the view, so it can be read (`from_raw`).
            let [a, b] = unsafe { machine::load_half_if(count > 0, low) };
            Begun(T::Pack::from_words([a, b, 0, 0]))
        }
    }

    /// The half of a pack at `i` that was begun, with anything behind its `count` elements.
    ///
    /// # Safety
    /// It was begun with that place and that count.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn finish_half_unchecked(&self, begun: Begun<T::Pack>, i: usize, count: usize) -> T::Pack {
        #[cfg(not(target_arch = "nvptx64"))]
        {
            let _ = (i, count);
            begun.0
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let place: *const [u32; 2] = self.start.wrapping_add(i).cast();
            let off = place as u32 as usize % 8;
            let high = place.wrapping_byte_sub(off).wrapping_add(1);
            let is_there = count > 0 && off as u32 + (count * size_of::<T>()) as u32 > 8;
            let [a, b, ..] = begun.0.to_words();
            // SAFETY: if it is loaded it has elements of the view, so it can be read (`from_raw`).
            let [a, b] = machine::cut_half([a, b], unsafe { machine::load_half_if(is_there, high) }, off);
            T::Pack::from_words([a, b, 0, 0])
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
    /// Elements `i` to `i + count` (that one not included) are inside of the view; there is one, and a word has so many.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_word_unchecked<W: Word>(&self, i: usize, count: usize) -> W {
        const { assert!(size_of::<T>() == size_of::<W>() || size_of::<W>() == 4) };
        #[cfg(not(target_arch = "nvptx64"))]
        {
            // SAFETY: as promised by the caller.
            let [a, b, ..] = unsafe { self.load_part_unchecked(i, 0, count) }.to_words();
            W::from_pair([u64::from(b) << 32 | u64::from(a), 0])
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let place = self.start.wrapping_add(i);
            let (size, width) = (size_of::<T>(), size_of::<W>());
            if size == width {
                // SAFETY: as promised by the caller.
                return unsafe { machine::load(place.cast()) };
            }
            let off = place as usize % 4;
            let low: *const u32 = place.wrapping_byte_sub(off).cast();
            let high = if off + count * size > 4 { low.wrapping_add(1) } else { low };
            // SAFETY: both have elements of the view, so they can be read (`from_raw`).
            let (low, high) = unsafe { (machine::load(low), machine::load(high)) };
            W::from_pair([u64::from(machine::funnel(low, high, 8 * off as u32)), 0])
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
            machine::out_of_bounds("a view of global memory (a word that begins)", i, self.len);
        }
        // SAFETY: as promised by the caller.
        unsafe { machine::load(self.start.wrapping_add(i).cast()) }
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
                machine::out_of_bounds("a view of global memory (two words that begin)", i, self.len);
            }
            // SAFETY: just checked.
            unsafe { self.load_word_unchecked(i, of_word) }
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let place = self.start.wrapping_add(i);
            if size_of::<T>() == size_of::<W>() {
                // SAFETY: as promised by the caller.
                return unsafe { machine::load(place.cast()) };
            }
            let off = place as usize as u32 % 4;
            let low: *const u32 = place.wrapping_byte_sub(off as usize).cast();
            // SAFETY: both have elements of the view, so they can be read (`from_raw`).
            let (low, high) = unsafe { (machine::load(low), machine::load(low.wrapping_add(1))) };
            W::from_pair([u64::from(machine::funnel(low, high, 8 * off)), 0])
        }
    }
}

impl<T: Element> GlobalMut<'_, T> {
    /// Writes the elements `from..to` of the word that begins at `i`, an index (which may be wrapped, if `from` is not 0)
    /// whose address is a multiple of the word's size: in one access if they are all, else by elements.
    ///
    /// # Safety
    /// Elements `i + from` to `i + to` (wrapped, that one not included) are inside of the view, a word has so many, and the
    /// address is aligned.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store_word_unchecked<W: Word>(&self, i: usize, word: W, from: usize, to: usize) {
        let (all, bits) = (size_of::<W>() / size_of::<T>(), 8 * size_of::<T>());
        #[cfg(not(target_arch = "nvptx64"))]
        if from < to && (i.wrapping_add(to - 1) >= self.len || i.wrapping_add(from) >= self.len) {
            machine::out_of_bounds("a view of global memory (a word that begins)", i, self.len);
        }
        if from == 0 && to == all {
            // SAFETY: as promised by the caller.
            unsafe { machine::store(self.start.wrapping_add(i).cast(), word) };
            return;
        }
        let mut k = 0;
        while k < all {
            if from <= k && k < to {
                let element = T::from_pair([word.to_pair()[0] >> (k * bits), 0]);
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

    /// Writes the elements `from..to` of the pack that begins at `i`, an index (which may be wrapped, if `from` is not 0)
    /// whose address is a multiple of 16: in one access if they are all, else by words and, in the word that a border goes
    /// through, by elements.
    ///
    /// # Safety
    /// Elements `i + from` to `i + to` (wrapped, that one not included) are inside of the view, `to` is at most the pack's
    /// length, and the address is aligned.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store_part_unchecked(&self, i: usize, pack: T::Pack, from: usize, to: usize) {
        #[cfg(not(target_arch = "nvptx64"))]
        if from == 0 && to == T::Pack::LEN {
            self.store_pack(i, pack);
        } else {
            // No closure: the line that is reported is the caller's.
            for k in from..to {
                self.store(i.wrapping_add(k), pack.get(k));
            }
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let place: *mut T::Pack = self.start.wrapping_add(i).cast();
            // SAFETY: as promised by the caller.
            unsafe {
                if from == 0 && to == T::Pack::LEN {
                    machine::store(place, pack);
                } else {
                    machine::store_part(place.cast(), pack.to_words(), size_of::<T>(), from, to);
                }
            }
        }
    }
}
