//! Loads of several vectors, at any alignment.
//!
//! A 16-byte-aligned vector is one load. An unaligned vector is two wide loads of the aligned vectors that contain it,
//! and a few shifts; the second load usually hits the L1 line that a neighbouring thread's first load has fetched. All
//! loads are issued before the first value is used.

use core::mem::size_of;

use super::{Global, L2Prefetch, issue_loads};
use crate::backend;
use crate::element::{Element, VectorType};

impl<T: Element> Global<'_, T> {
    /// Loads `VECTORS` vectors, `stride` elements apart, the first at `i`, at any alignment.
    ///
    /// # Safety
    /// All vectors are inside the view, and `stride` is a multiple of a vector's length.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_vectors_unchecked<const VECTORS: usize>(&self, i: usize, stride: usize) -> [T::Vector; VECTORS] {
        #[cfg(not(target_arch = "nvptx64"))]
        self.check_vectors::<VECTORS>(i, stride, usize::MAX);
        let mut vectors = [T::Vector::splat(T::default()); VECTORS];
        // SAFETY: `i` is inside the view.
        let first: *const T::Vector = unsafe { self.start.add(i).cast() };
        let off = backend::misalignment(first);
        if off == 0 {
            let mut k = 0;
            while k < VECTORS {
                // SAFETY: the vector is inside the view; `stride` elements are a multiple of 16 bytes.
                vectors[k] = unsafe { backend::load(first.byte_add(k * stride * size_of::<T>())) };
                k += 1;
            }
            issue_loads();
            vectors
        } else {
            let mut around = [[T::Vector::splat(T::default()); 2]; VECTORS];
            let mut k = 0;
            while k < VECTORS {
                // SAFETY: both vectors contain elements of the view, so they are readable (`from_raw`).
                around[k] = unsafe { backend::load_aligned_pair(first.byte_add(k * stride * size_of::<T>()), off) };
                k += 1;
            }
            issue_loads();
            funnel_each::<T, VECTORS>(around, off)
        }
    }

    /// [`Global::load_vectors_unchecked`] where element `i` is 16-byte aligned.
    ///
    /// # Safety
    /// As for [`Global::load_vectors_unchecked`], and element `i` is aligned.
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
            // SAFETY: the vector is inside the view; `stride` elements are a multiple of 16 bytes.
            vectors[k] = unsafe { self.load_vector_unchecked(i + k * stride) };
            k += 1;
        }
        issue_loads();
        vectors
    }

    /// [`Global::load_vectors_unchecked`] for vectors that start before `end`; zeros for the others. Does not
    /// [force](issue_loads) the loads to be issued early.
    ///
    /// # Safety
    /// The vectors that start before `end` are inside the view, and `stride` is a multiple of a vector's length.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_vectors_before<const VECTORS: usize>(
        &self,
        i: usize,
        stride: usize,
        end: usize,
    ) -> [T::Vector; VECTORS] {
        // Never dereferenced if no vector starts before `end`.
        let first: *const T::Vector = self.start.wrapping_add(i).cast();
        let off = backend::misalignment(first);
        if off == 0 {
            // SAFETY: just compared, and as promised by the caller.
            return unsafe { self.load_aligned_vectors_before::<VECTORS>(i, stride, end) };
        }
        #[cfg(not(target_arch = "nvptx64"))]
        self.check_vectors::<VECTORS>(i, stride, end);
        let mut around = [[T::Vector::splat(T::default()); 2]; VECTORS];
        let mut k = 0;
        while k < VECTORS {
            let pointer = first.wrapping_byte_add(k * stride * size_of::<T>());
            // SAFETY: loaded vectors contain elements of the view, so they are readable (`from_raw`).
            around[k] = unsafe { backend::load_aligned_pair_if(i + k * stride < end, pointer, off) };
            k += 1;
        }
        funnel_each::<T, VECTORS>(around, off)
    }

    /// [`Global::load_vectors_before`] where element `i` is 16-byte aligned, if it is inside the view.
    ///
    /// # Safety
    /// As for [`Global::load_vectors_before`], and element `i` is aligned.
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
            // SAFETY: a loaded vector is inside the view; `stride` elements are a multiple of 16 bytes.
            vectors[k] = unsafe {
                backend::load_vector_if(begin < end, self.start.wrapping_add(begin).cast(), L2Prefetch::Sectors)
            };
            k += 1;
        }
        vectors
    }

    /// [`Global::load_vectors_before`] where most vectors start at `end` or later: a branch skips those, while a
    /// predicated-off load would still take an issue slot.
    ///
    /// # Safety
    /// As for [`Global::load_vectors_before`].
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
        // Never dereferenced if no vector starts before `end`.
        let first: *const T::Vector = self.start.wrapping_add(i).cast();
        let pointer = |k: usize| first.wrapping_byte_add(k * stride * size_of::<T>());
        let off = backend::misalignment(first);
        if off == 0 {
            let mut k = 0;
            while k < VECTORS {
                if i + k * stride < end {
                    // SAFETY: the vector is inside the view; `stride` elements are a multiple of 16 bytes.
                    vectors[k] = unsafe { backend::load(pointer(k)) };
                }
                k += 1;
            }
            vectors
        } else {
            let mut around = [[T::Vector::splat(T::default()); 2]; VECTORS];
            let mut k = 0;
            while k < VECTORS {
                if i + k * stride < end {
                    // SAFETY: both vectors contain elements of the view, so they are readable (`from_raw`).
                    around[k] = unsafe { backend::load_aligned_pair(pointer(k), off) };
                }
                k += 1;
            }
            funnel_each::<T, VECTORS>(around, off)
        }
    }

    /// Checks, in the executor only, that the vectors that start before `end` are inside the view.
    #[cfg(not(target_arch = "nvptx64"))]
    #[track_caller]
    fn check_vectors<const VECTORS: usize>(&self, i: usize, stride: usize, end: usize) {
        let mut k = 0;
        while k < VECTORS {
            let begin = i + k * stride;
            if begin < end && (begin >= self.len || self.len - begin < T::Vector::LEN) {
                backend::out_of_bounds("a view of global memory (a vector that begins)", begin, self.len);
            }
            k += 1;
        }
    }
}

/// The vector that starts `off` bytes into each pair.
#[inline(always)]
fn funnel_each<T: Element, const VECTORS: usize>(
    around: [[T::Vector; 2]; VECTORS],
    off: usize,
) -> [T::Vector; VECTORS] {
    let mut vectors = [T::Vector::splat(T::default()); VECTORS];
    let mut k = 0;
    while k < VECTORS {
        let [low, high] = around[k];
        vectors[k] = backend::funnel_vector(low, high, off, size_of::<T>());
        k += 1;
    }
    vectors
}
