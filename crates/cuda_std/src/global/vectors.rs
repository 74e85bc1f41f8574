//! Several vectors at once, at any alignment.
//!
//! Where addresses are multiples of 16 a vector is one load. Where they are not it is cut out of the two aligned vectors
//! that it lies in: two wide loads, of which the second finds its line in L1 since a neighbour's first has asked for
//! it, and a few shifts. All loads are on their way before the first is used.

use core::mem::size_of;

use super::{Fetch, Global, issue_loads};
use crate::backend;
use crate::element::{Element, VectorType};

impl<T: Element> Global<'_, T> {
    /// `VECTORS` vectors, the first of which begins at `i` and each further one `stride` elements behind the one before; at
    /// any alignment.
    ///
    /// # Safety
    /// All vectors are inside of the view, and `stride` is a multiple of a vector's length.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_vectors_unchecked<const VECTORS: usize>(&self, i: usize, stride: usize) -> [T::Vector; VECTORS] {
        #[cfg(not(target_arch = "nvptx64"))]
        self.check_vectors::<VECTORS>(i, stride, usize::MAX);
        let mut vectors = [T::Vector::splat(T::default()); VECTORS];
        // SAFETY: `i` is inside of the view.
        let first: *const T::Vector = unsafe { self.start.add(i).cast() };
        let off = backend::bytes_off_alignment(first);
        if off == 0 {
            let mut k = 0;
            while k < VECTORS {
                // SAFETY: the vector is inside of the view; `stride` elements are a multiple of 16 bytes.
                vectors[k] = unsafe { backend::load(first.byte_add(k * stride * size_of::<T>())) };
                k += 1;
            }
            issue_loads();
            vectors
        } else {
            let mut around = [[T::Vector::splat(T::default()); 2]; VECTORS];
            let mut k = 0;
            while k < VECTORS {
                // SAFETY: both vectors have elements of the view, so they can be read (`from_raw`).
                around[k] = unsafe { backend::load_around(first.byte_add(k * stride * size_of::<T>()), off) };
                k += 1;
            }
            issue_loads();
            cut_each::<T, VECTORS>(around, off)
        }
    }

    /// [`Global::load_vectors_unchecked`] where element `i` is at a multiple of 16 bytes.
    ///
    /// # Safety
    /// As there, and it is.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_aligned_vectors_unchecked<const VECTORS: usize>(
        &self,
        i: usize,
        stride: usize,
    ) -> [T::Vector; VECTORS] {
        let mut vectors = [T::Vector::splat(T::default()); VECTORS];
        let mut k = 0;
        while k < VECTORS {
            // SAFETY: the vector is inside of the view; `stride` elements are a multiple of 16 bytes.
            vectors[k] = unsafe { self.load_vector_unchecked(i + k * stride) };
            k += 1;
        }
        issue_loads();
        vectors
    }

    /// [`Global::load_vectors_unchecked`] of those vectors that begin before `end`; zeros for the others. Says nothing
    /// about [when](issue_loads) loads are on their way.
    ///
    /// # Safety
    /// Those vectors are inside of the view, and `stride` is a multiple of a vector's length.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_vectors_before<const VECTORS: usize>(
        &self,
        i: usize,
        stride: usize,
        end: usize,
    ) -> [T::Vector; VECTORS] {
        // Not looked at where there is no vector.
        let first: *const T::Vector = self.start.wrapping_add(i).cast();
        let off = backend::bytes_off_alignment(first);
        if off == 0 {
            // SAFETY: just compared, and as promised by the caller.
            return unsafe { self.load_aligned_vectors_before::<VECTORS>(i, stride, end) };
        }
        #[cfg(not(target_arch = "nvptx64"))]
        self.check_vectors::<VECTORS>(i, stride, end);
        let mut around = [[T::Vector::splat(T::default()); 2]; VECTORS];
        let mut k = 0;
        while k < VECTORS {
            let place = first.wrapping_byte_add(k * stride * size_of::<T>());
            // SAFETY: both vectors have elements of the view, if they are there, so they can be read (`from_raw`).
            around[k] = unsafe { backend::load_around_if(i + k * stride < end, place, off) };
            k += 1;
        }
        cut_each::<T, VECTORS>(around, off)
    }

    /// [`Global::load_vectors_before`] where element `i` is at a multiple of 16 bytes, if it is one of the view's.
    ///
    /// # Safety
    /// As there, and it is.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_aligned_vectors_before<const VECTORS: usize>(
        &self,
        i: usize,
        stride: usize,
        end: usize,
    ) -> [T::Vector; VECTORS] {
        #[cfg(not(target_arch = "nvptx64"))]
        self.check_vectors::<VECTORS>(i, stride, end);
        let mut vectors = [T::Vector::splat(T::default()); VECTORS];
        let mut k = 0;
        while k < VECTORS {
            let begin = i + k * stride;
            // SAFETY: the vector is inside of the view, if it is there; `stride` elements are a multiple of 16 bytes.
            vectors[k] =
                unsafe { backend::load_vector_if(begin < end, self.start.wrapping_add(begin).cast(), Fetch::Sectors) };
            k += 1;
        }
        vectors
    }

    /// [`Global::load_vectors_before`] of vectors of which most are not there: those are skipped, while a predicate is an
    /// instruction that does nothing.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_few_vectors_before<const VECTORS: usize>(
        &self,
        i: usize,
        stride: usize,
        end: usize,
    ) -> [T::Vector; VECTORS] {
        #[cfg(not(target_arch = "nvptx64"))]
        self.check_vectors::<VECTORS>(i, stride, end);
        let mut vectors = [T::Vector::splat(T::default()); VECTORS];
        // Not looked at where there is no vector.
        let first: *const T::Vector = self.start.wrapping_add(i).cast();
        let place = |k: usize| first.wrapping_byte_add(k * stride * size_of::<T>());
        let off = backend::bytes_off_alignment(first);
        if off == 0 {
            let mut k = 0;
            while k < VECTORS {
                if i + k * stride < end {
                    // SAFETY: the vector is inside of the view; `stride` elements are a multiple of 16 bytes.
                    vectors[k] = unsafe { backend::load(place(k)) };
                }
                k += 1;
            }
            vectors
        } else {
            let mut around = [[T::Vector::splat(T::default()); 2]; VECTORS];
            let mut k = 0;
            while k < VECTORS {
                if i + k * stride < end {
                    // SAFETY: both vectors have elements of the view, so they can be read (`from_raw`).
                    around[k] = unsafe { backend::load_around(place(k), off) };
                }
                k += 1;
            }
            cut_each::<T, VECTORS>(around, off)
        }
    }

    /// What a GPU does not look at: whether those vectors that begin before `end` are inside of the view.
    #[cfg(not(target_arch = "nvptx64"))]
    #[track_caller]
    fn check_vectors<const VECTORS: usize>(&self, i: usize, stride: usize, end: usize) {
        let mut begins = (0..VECTORS).map(|k| i + k * stride).filter(|&begin| begin < end);
        if let Some(begin) = begins.find(|&begin| begin >= self.len || self.len - begin < T::Vector::LEN) {
            backend::out_of_bounds("a view of global memory (a vector that begins)", begin, self.len);
        }
    }
}

/// The vectors that begin `off` bytes into each first of two.
#[inline(always)]
fn cut_each<T: Element, const VECTORS: usize>(around: [[T::Vector; 2]; VECTORS], off: usize) -> [T::Vector; VECTORS] {
    let mut vectors = [T::Vector::splat(T::default()); VECTORS];
    let mut k = 0;
    while k < VECTORS {
        let [low, high] = around[k];
        vectors[k] = backend::cut(low, high, off, size_of::<T>());
        k += 1;
    }
    vectors
}
