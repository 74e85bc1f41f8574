//! Views of global memory: slices that many threads of a grid read and write at the same time.
//!
//! A view is an address and a length. Every access is checked: outside of the view a GPU traps and the executor says
//! which kernel, block and thread it was. The unchecked forms are for the inner loops of kernels that have checked the
//! range themselves; the executor checks those too.

use core::marker::PhantomData;
use core::mem::size_of;

use crate::element::{Element, Packed, Plain};
use crate::machine;

/// A view to read.
///
/// What it shows may change under it while the kernel runs, if the same memory is also in a [`GlobalMut`]; then only
/// barriers, fences and atomics give an order.
#[derive(Clone, Copy)]
pub struct Global<'a, T> {
    start: *const T,
    len: usize,
    memory: PhantomData<&'a [T]>,
}

/// A view to read and write. Threads share it, so writing takes `&self`.
#[derive(Clone, Copy)]
pub struct GlobalMut<'a, T> {
    start: *mut T,
    len: usize,
    memory: PhantomData<&'a [T]>,
}

impl<'a, T: Plain> Global<'a, T> {
    /// The view of `len` elements at `start`.
    ///
    /// # Safety
    /// The elements are readable for `'a` by whoever gets the view, and `start` is aligned for `T`.
    #[inline(always)]
    pub unsafe fn from_raw(start: *const T, len: usize) -> Self {
        Self { start, len, memory: PhantomData }
    }

    /// How many elements there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The element at `i`. Outside of the view it traps.
    #[inline(always)]
    #[track_caller]
    pub fn load(&self, i: usize) -> T {
        if i >= self.len {
            machine::out_of_bounds("a view of global memory", i, self.len);
        }
        // SAFETY: `i` is inside of the view.
        unsafe { machine::load(self.start.add(i)) }
    }

    /// The element at `i`, or `otherwise` outside of the view.
    #[inline(always)]
    pub fn load_or(&self, i: usize, otherwise: T) -> T {
        if i < self.len {
            // SAFETY: `i` is inside of the view.
            unsafe { machine::load(self.start.add(i)) }
        } else {
            otherwise
        }
    }

    /// The element at `i`, not checked on a GPU.
    ///
    /// # Safety
    /// `i` is less than [`Global::len`].
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_unchecked(&self, i: usize) -> T {
        #[cfg(not(target_arch = "nvptx64"))]
        return self.load(i);
        // SAFETY: as promised by the caller.
        #[cfg(target_arch = "nvptx64")]
        return unsafe { machine::load(self.start.add(i)) };
    }

    /// How many elements lie before the first whose address is a multiple of 16, at most [`Global::len`].
    #[inline(always)]
    pub fn elements_to_alignment(&self) -> usize {
        let bytes = (self.start as usize).wrapping_neg() % 16;
        let elements = bytes / size_of::<T>();
        if elements < self.len { elements } else { self.len }
    }
}

impl<T: Element> Global<'_, T> {
    /// The 16 bytes of elements that begin at `i`. Traps if they are not all inside of the view, or not aligned.
    #[inline(always)]
    #[track_caller]
    pub fn load_pack(&self, i: usize) -> T::Pack {
        if i >= self.len || self.len - i < T::Pack::LEN {
            machine::out_of_bounds("a view of global memory (a pack that begins)", i, self.len);
        }
        // SAFETY: `i` is inside of the view.
        let place = unsafe { self.start.add(i) };
        if !(place as usize).is_multiple_of(16) {
            machine::misaligned("a view of global memory", i);
        }
        // SAFETY: all of the pack is inside of the view, and aligned.
        unsafe { machine::load(place.cast()) }
    }

    /// The 16 bytes of elements that begin at `i`, not checked on a GPU.
    ///
    /// # Safety
    /// `i + T::Pack::LEN` is at most [`Global::len`], and the address of element `i` is a multiple of 16.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_pack_unchecked(&self, i: usize) -> T::Pack {
        #[cfg(not(target_arch = "nvptx64"))]
        return self.load_pack(i);
        // SAFETY: as promised by the caller.
        #[cfg(target_arch = "nvptx64")]
        return unsafe { machine::load(self.start.add(i).cast()) };
    }
}

impl<'a, T: Plain> GlobalMut<'a, T> {
    /// The view of `len` elements at `start`.
    ///
    /// # Safety
    /// The elements are readable and writable for `'a` by whoever gets the view, by nothing else but through views and
    /// atomics, and `start` is aligned for `T`.
    #[inline(always)]
    pub unsafe fn from_raw(start: *mut T, len: usize) -> Self {
        Self { start, len, memory: PhantomData }
    }

    /// The same memory, to read.
    #[inline(always)]
    pub fn as_global(&self) -> Global<'a, T> {
        Global { start: self.start, len: self.len, memory: PhantomData }
    }

    /// How many elements there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address of element `i`. Outside of the view it traps.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn place(&self, i: usize) -> *mut T {
        if i >= self.len {
            machine::out_of_bounds("a view of global memory", i, self.len);
        }
        // SAFETY: `i` is inside of the view.
        unsafe { self.start.add(i) }
    }

    /// The element at `i`. Outside of the view it traps.
    #[inline(always)]
    #[track_caller]
    pub fn load(&self, i: usize) -> T {
        self.as_global().load(i)
    }

    /// Writes the element at `i`. Outside of the view it traps.
    #[inline(always)]
    #[track_caller]
    pub fn store(&self, i: usize, value: T) {
        // SAFETY: `place` has checked it.
        unsafe { machine::store(self.place(i), value) }
    }

    /// Writes the element at `i`, not checked on a GPU.
    ///
    /// # Safety
    /// `i` is less than [`GlobalMut::len`].
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store_unchecked(&self, i: usize, value: T) {
        #[cfg(not(target_arch = "nvptx64"))]
        self.store(i, value);
        // SAFETY: as promised by the caller.
        #[cfg(target_arch = "nvptx64")]
        unsafe {
            machine::store(self.start.add(i), value)
        }
    }

    /// The element at `i` as memory has it now: no register and no L1 line is taken for it. Traps outside of the view.
    #[inline(always)]
    #[track_caller]
    pub fn load_volatile(&self, i: usize) -> T {
        // SAFETY: `place` has checked it.
        unsafe { machine::load_volatile(self.place(i)) }
    }

    /// Writes the element at `i` to memory now, not when it suits the compiler. Traps outside of the view.
    #[inline(always)]
    #[track_caller]
    pub fn store_volatile(&self, i: usize, value: T) {
        // SAFETY: `place` has checked it.
        unsafe { machine::store_volatile(self.place(i), value) }
    }
}

impl<T: Element> GlobalMut<'_, T> {
    /// Writes 16 bytes of elements from `i` on. Traps if they are not all inside of the view, or not aligned.
    #[inline(always)]
    #[track_caller]
    pub fn store_pack(&self, i: usize, pack: T::Pack) {
        if i >= self.len || self.len - i < T::Pack::LEN {
            machine::out_of_bounds("a view of global memory (a pack that begins)", i, self.len);
        }
        // SAFETY: `i` is inside of the view.
        let place = unsafe { self.start.add(i) };
        if !(place as usize).is_multiple_of(16) {
            machine::misaligned("a view of global memory", i);
        }
        // SAFETY: all of the pack is inside of the view, and aligned.
        unsafe { machine::store(place.cast(), pack) }
    }

    /// Writes 16 bytes of elements from `i` on, not checked on a GPU.
    ///
    /// # Safety
    /// `i + T::Pack::LEN` is at most [`GlobalMut::len`], and the address of element `i` is a multiple of 16.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store_pack_unchecked(&self, i: usize, pack: T::Pack) {
        #[cfg(not(target_arch = "nvptx64"))]
        self.store_pack(i, pack);
        // SAFETY: as promised by the caller.
        #[cfg(target_arch = "nvptx64")]
        unsafe {
            machine::store(self.start.add(i).cast(), pack)
        }
    }
}
