//! Parts of packs: the ends of rows that begin and end at any address.

use core::mem::size_of;

use super::{Global, GlobalMut};
use crate::element::{Element, Packed};
use crate::machine;

impl<T: Element> Global<'_, T> {
    /// Of the pack that begins at `i`, the elements `from..to`; the others are of no meaning. At any alignment, and at any
    /// `i`, even one "before" the view (a wrapped index), as long as the elements that are asked for are inside.
    ///
    /// One or two wide loads, no branch: each of the aligned packs in which there is one of those elements is read whole.
    ///
    /// # Safety
    /// Elements `i + from` to `i + to` (wrapped, that one not included) are inside of the view, and there is one.
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

impl<T: Element> GlobalMut<'_, T> {
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
            (from..to).for_each(|k| self.store(i.wrapping_add(k), pack.get(k)));
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
