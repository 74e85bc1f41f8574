//! Several packs at once, at any alignment.
//!
//! Where addresses are multiples of 16 a pack is one load. Where they are not it is cut out of the two aligned packs
//! that it lies in: two wide loads, of which the second finds its line in L1 since a neighbour's first has asked for
//! it, and a few shifts. All loads are on their way before the first is used.

use core::mem::size_of;

use super::{Fetch, Global, issue_loads};
use crate::backend;
use crate::element::{Element, Packed};

impl<T: Element> Global<'_, T> {
    /// `PACKS` packs, the first of which begins at `i` and each further one `stride` elements behind the one before; at
    /// any alignment.
    ///
    /// # Safety
    /// All packs are inside of the view, and `stride` is a multiple of a pack's length.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_packs_unchecked<const PACKS: usize>(&self, i: usize, stride: usize) -> [T::Pack; PACKS] {
        #[cfg(not(target_arch = "nvptx64"))]
        self.check_packs::<PACKS>(i, stride, usize::MAX);
        let mut packs = [T::Pack::splat(T::default()); PACKS];
        // SAFETY: `i` is inside of the view.
        let first: *const T::Pack = unsafe { self.start.add(i).cast() };
        let off = backend::bytes_off_alignment(first);
        if off == 0 {
            let mut k = 0;
            while k < PACKS {
                // SAFETY: the pack is inside of the view; `stride` elements are a multiple of 16 bytes.
                packs[k] = unsafe { backend::load(first.byte_add(k * stride * size_of::<T>())) };
                k += 1;
            }
            issue_loads();
            packs
        } else {
            let mut around = [[T::Pack::splat(T::default()); 2]; PACKS];
            let mut k = 0;
            while k < PACKS {
                // SAFETY: both packs have elements of the view, so they can be read (`from_raw`).
                around[k] = unsafe { backend::load_around(first.byte_add(k * stride * size_of::<T>()), off) };
                k += 1;
            }
            issue_loads();
            cut_each::<T, PACKS>(around, off)
        }
    }

    /// [`Global::load_packs_unchecked`] where element `i` is at a multiple of 16 bytes.
    ///
    /// # Safety
    /// As there, and it is.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_aligned_packs_unchecked<const PACKS: usize>(&self, i: usize, stride: usize) -> [T::Pack; PACKS] {
        let mut packs = [T::Pack::splat(T::default()); PACKS];
        let mut k = 0;
        while k < PACKS {
            // SAFETY: the pack is inside of the view; `stride` elements are a multiple of 16 bytes.
            packs[k] = unsafe { self.load_pack_unchecked(i + k * stride) };
            k += 1;
        }
        issue_loads();
        packs
    }

    /// [`Global::load_packs_unchecked`] of those packs that begin before `end`; zeros for the others. Says nothing
    /// about [when](issue_loads) loads are on their way.
    ///
    /// # Safety
    /// Those packs are inside of the view, and `stride` is a multiple of a pack's length.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_packs_before<const PACKS: usize>(
        &self,
        i: usize,
        stride: usize,
        end: usize,
    ) -> [T::Pack; PACKS] {
        // Not looked at where there is no pack.
        let first: *const T::Pack = self.start.wrapping_add(i).cast();
        let off = backend::bytes_off_alignment(first);
        if off == 0 {
            // SAFETY: just compared, and as promised by the caller.
            return unsafe { self.load_aligned_packs_before::<PACKS>(i, stride, end) };
        }
        #[cfg(not(target_arch = "nvptx64"))]
        self.check_packs::<PACKS>(i, stride, end);
        let mut around = [[T::Pack::splat(T::default()); 2]; PACKS];
        let mut k = 0;
        while k < PACKS {
            let place = first.wrapping_byte_add(k * stride * size_of::<T>());
            // SAFETY: both packs have elements of the view, if they are there, so they can be read (`from_raw`).
            around[k] = unsafe { backend::load_around_if(i + k * stride < end, place, off) };
            k += 1;
        }
        cut_each::<T, PACKS>(around, off)
    }

    /// [`Global::load_packs_before`] where element `i` is at a multiple of 16 bytes, if it is one of the view's.
    ///
    /// # Safety
    /// As there, and it is.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_aligned_packs_before<const PACKS: usize>(
        &self,
        i: usize,
        stride: usize,
        end: usize,
    ) -> [T::Pack; PACKS] {
        #[cfg(not(target_arch = "nvptx64"))]
        self.check_packs::<PACKS>(i, stride, end);
        let mut packs = [T::Pack::splat(T::default()); PACKS];
        let mut k = 0;
        while k < PACKS {
            let begin = i + k * stride;
            // SAFETY: the pack is inside of the view, if it is there; `stride` elements are a multiple of 16 bytes.
            packs[k] =
                unsafe { backend::load_pack_if(begin < end, self.start.wrapping_add(begin).cast(), Fetch::Sectors) };
            k += 1;
        }
        packs
    }

    /// [`Global::load_packs_before`] of packs of which most are not there: those are skipped, while a predicate is an
    /// instruction that does nothing.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_few_packs_before<const PACKS: usize>(
        &self,
        i: usize,
        stride: usize,
        end: usize,
    ) -> [T::Pack; PACKS] {
        #[cfg(not(target_arch = "nvptx64"))]
        self.check_packs::<PACKS>(i, stride, end);
        let mut packs = [T::Pack::splat(T::default()); PACKS];
        // Not looked at where there is no pack.
        let first: *const T::Pack = self.start.wrapping_add(i).cast();
        let place = |k: usize| first.wrapping_byte_add(k * stride * size_of::<T>());
        let off = backend::bytes_off_alignment(first);
        if off == 0 {
            let mut k = 0;
            while k < PACKS {
                if i + k * stride < end {
                    // SAFETY: the pack is inside of the view; `stride` elements are a multiple of 16 bytes.
                    packs[k] = unsafe { backend::load(place(k)) };
                }
                k += 1;
            }
            packs
        } else {
            let mut around = [[T::Pack::splat(T::default()); 2]; PACKS];
            let mut k = 0;
            while k < PACKS {
                if i + k * stride < end {
                    // SAFETY: both packs have elements of the view, so they can be read (`from_raw`).
                    around[k] = unsafe { backend::load_around(place(k), off) };
                }
                k += 1;
            }
            cut_each::<T, PACKS>(around, off)
        }
    }

    /// What a GPU does not look at: whether those packs that begin before `end` are inside of the view.
    #[cfg(not(target_arch = "nvptx64"))]
    #[track_caller]
    fn check_packs<const PACKS: usize>(&self, i: usize, stride: usize, end: usize) {
        let mut begins = (0..PACKS).map(|k| i + k * stride).filter(|&begin| begin < end);
        if let Some(begin) = begins.find(|&begin| begin >= self.len || self.len - begin < T::Pack::LEN) {
            backend::out_of_bounds("a view of global memory (a pack that begins)", begin, self.len);
        }
    }
}

/// The packs that begin `off` bytes into each first of two.
#[inline(always)]
fn cut_each<T: Element, const PACKS: usize>(around: [[T::Pack; 2]; PACKS], off: usize) -> [T::Pack; PACKS] {
    let mut packs = [T::Pack::splat(T::default()); PACKS];
    let mut k = 0;
    while k < PACKS {
        let [low, high] = around[k];
        packs[k] = backend::cut(low, high, off, size_of::<T>());
        k += 1;
    }
    packs
}
