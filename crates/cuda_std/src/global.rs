//! Views of global memory: slices that many threads of a grid read and write at the same time.
//!
//! A view is an address and a length. Every access is checked: outside of the view a GPU traps and the executor says
//! which kernel, block and thread it was. The unchecked forms are for the inner loops of kernels that have checked the
//! range themselves; the executor checks those too.

use core::marker::PhantomData;
use core::mem::{size_of, transmute_copy};

use crate::element::{Element, Packed, Plain};
use crate::machine;

mod parts;

pub use parts::Word;

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

/// All that was loaded before is on its way before anything behind this begins. Makes no instruction.
///
/// A compiler moves a load to where its value is first used, if it can, to save registers: then loads that could be on their way
/// together wait for each other.
#[inline(always)]
pub fn issue_loads() {
    machine::issue_loads();
}

impl<'a, T: Plain> Global<'a, T> {
    /// The view of `len` elements at `start`.
    ///
    /// # Safety
    /// The elements are readable for `'a` by whoever gets the view, on a GPU together with the rest of each 16 bytes, at a
    /// multiple of 16, that they lie in; and `start` is a multiple of `T`'s size.
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
    #[track_caller]
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

impl<T: Element> Global<'_, T> {
    /// The four elements from `i` on, in one access (two of 16 bytes for elements of 8).
    ///
    /// # Safety
    /// `i + 4` is at most [`Global::len`], and the address of element `i` is a multiple of the four's size, or of 16 if
    /// that is less.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_four_unchecked(&self, i: usize) -> [T; 4] {
        #[cfg(not(target_arch = "nvptx64"))]
        if i >= self.len || self.len - i < 4 {
            machine::out_of_bounds("a view of global memory (four elements that begin)", i, self.len);
        }
        // SAFETY: as promised by the caller.
        unsafe {
            let place = self.start.add(i);
            match size_of::<T>() {
                1 => transmute_copy(&machine::load::<u32>(place.cast())),
                2 => transmute_copy(&machine::load::<u64>(place.cast())),
                4 => transmute_copy(&machine::load::<T::Pack>(place.cast())),
                _ => transmute_copy(&[
                    machine::load::<T::Pack>(place.cast()),
                    machine::load::<T::Pack>(place.add(2).cast()),
                ]),
            }
        }
    }

    /// Whether the address of element `i` is a multiple of `bytes`, a power of two.
    #[inline(always)]
    pub fn is_aligned_to(&self, i: usize, bytes: usize) -> bool {
        (self.start as usize).wrapping_add(i * size_of::<T>()).is_multiple_of(bytes)
    }

    /// `PACKS` packs, the first of which begins at `i` and each further one `stride` elements behind the one before; at
    /// any alignment.
    ///
    /// Where addresses are multiples of 16 a pack is one load. Where they are not it is cut out of the two aligned packs
    /// that it lies in: two wide loads, of which the second finds its line in L1 since a neighbour's first has asked for
    /// it, and a few shifts. All loads are on their way before the first is used.
    ///
    /// # Safety
    /// All packs are inside of the view, and `stride` is a multiple of a pack's length.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_packs_unchecked<const PACKS: usize>(&self, i: usize, stride: usize) -> [T::Pack; PACKS] {
        let mut packs = [T::Pack::splat(T::default()); PACKS];
        // SAFETY: `i` is inside of the view.
        let first: *const T::Pack = unsafe { self.start.add(i).cast() };
        let off = machine::bytes_off_alignment(first);
        let last = i + (PACKS - 1) * stride;
        #[cfg(not(target_arch = "nvptx64"))]
        if last >= self.len || self.len - last < T::Pack::LEN {
            machine::out_of_bounds("a view of global memory (a pack that begins)", last, self.len);
        }
        let _ = last;
        if off == 0 {
            let mut k = 0;
            while k < PACKS {
                // SAFETY: the pack is inside of the view; `stride` elements are a multiple of 16 bytes.
                packs[k] = unsafe { machine::load(first.byte_add(k * stride * size_of::<T>())) };
                k += 1;
            }
            issue_loads();
        } else {
            let mut around = [[T::Pack::splat(T::default()); 2]; PACKS];
            let mut k = 0;
            while k < PACKS {
                // SAFETY: both packs have elements of the view, so they can be read (`from_raw`).
                around[k] = unsafe { machine::load_around(first.byte_add(k * stride * size_of::<T>()), off) };
                k += 1;
            }
            issue_loads();
            let mut k = 0;
            while k < PACKS {
                let [low, high] = around[k];
                packs[k] = machine::cut(low, high, off, size_of::<T>());
                k += 1;
            }
        }
        packs
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

    /// [`Global::load_packs_before`] where element `i` is at a multiple of 16 bytes, if it is one of the view's. Says nothing
    /// about [when](issue_loads) loads are on their way.
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
        let mut packs = [T::Pack::splat(T::default()); PACKS];
        let mut k = 0;
        while k < PACKS {
            let begin = i + k * stride;
            #[cfg(not(target_arch = "nvptx64"))]
            if begin < end && (begin >= self.len || self.len - begin < T::Pack::LEN) {
                machine::out_of_bounds("a view of global memory (a pack that begins)", begin, self.len);
            }
            // SAFETY: the pack is inside of the view, if it is there; `stride` elements are a multiple of 16 bytes.
            packs[k] = unsafe { machine::load_pack_if(begin < end, self.start.wrapping_add(begin).cast()) };
            k += 1;
        }
        packs
    }

    /// [`Global::load_packs_unchecked`] of those packs that begin before `end`; zeros for the others.
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
        let mut packs = [T::Pack::splat(T::default()); PACKS];
        let is_there = |k: usize| i + k * stride < end;
        // Not looked at where there is no pack.
        let first: *const T::Pack = self.start.wrapping_add(i).cast();
        let place = |k: usize| first.wrapping_byte_add(k * stride * size_of::<T>());
        let off = machine::bytes_off_alignment(first);
        #[cfg(not(target_arch = "nvptx64"))]
        for k in (0..PACKS).filter(|&k| is_there(k)) {
            let begin = i + k * stride;
            if begin >= self.len || self.len - begin < T::Pack::LEN {
                machine::out_of_bounds("a view of global memory (a pack that begins)", begin, self.len);
            }
        }
        if off == 0 {
            // SAFETY: just compared, and as promised by the caller.
            packs = unsafe { self.load_aligned_packs_before::<PACKS>(i, stride, end) };
        } else {
            let mut around = [[T::Pack::splat(T::default()); 2]; PACKS];
            let mut k = 0;
            while k < PACKS {
                // SAFETY: both packs have elements of the view, if they are there, so they can be read (`from_raw`).
                around[k] = unsafe { machine::load_around_if(is_there(k), place(k), off) };
                k += 1;
            }
            let mut k = 0;
            while k < PACKS {
                let [low, high] = around[k];
                packs[k] = machine::cut(low, high, off, size_of::<T>());
                k += 1;
            }
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
        let mut packs = [T::Pack::splat(T::default()); PACKS];
        let is_there = |k: usize| i + k * stride < end;
        // Not looked at where there is no pack.
        let first: *const T::Pack = self.start.wrapping_add(i).cast();
        let place = |k: usize| first.wrapping_byte_add(k * stride * size_of::<T>());
        let off = machine::bytes_off_alignment(first);
        #[cfg(not(target_arch = "nvptx64"))]
        for k in (0..PACKS).filter(|&k| is_there(k)) {
            let begin = i + k * stride;
            if begin >= self.len || self.len - begin < T::Pack::LEN {
                machine::out_of_bounds("a view of global memory (a pack that begins)", begin, self.len);
            }
        }
        if off == 0 {
            let mut k = 0;
            while k < PACKS {
                if is_there(k) {
                    // SAFETY: the pack is inside of the view; `stride` elements are a multiple of 16 bytes.
                    packs[k] = unsafe { machine::load(place(k)) };
                }
                k += 1;
            }
        } else {
            let mut around = [[T::Pack::splat(T::default()); 2]; PACKS];
            let mut k = 0;
            while k < PACKS {
                if is_there(k) {
                    // SAFETY: both packs have elements of the view, so they can be read (`from_raw`).
                    around[k] = unsafe { machine::load_around(place(k), off) };
                }
                k += 1;
            }
            let mut k = 0;
            while k < PACKS {
                let [low, high] = around[k];
                packs[k] = machine::cut(low, high, off, size_of::<T>());
                k += 1;
            }
        }
        packs
    }
}

impl<'a, T: Plain> GlobalMut<'a, T> {
    /// The view of `len` elements at `start`.
    ///
    /// # Safety
    /// The elements are readable and writable for `'a` by whoever gets the view, by nothing else but through views and
    /// atomics, and `start` is a multiple of `T`'s size.
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

    /// [`GlobalMut::load_volatile`], not checked on a GPU.
    ///
    /// # Safety
    /// `i` is less than [`GlobalMut::len`].
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_volatile_unchecked(&self, i: usize) -> T {
        #[cfg(not(target_arch = "nvptx64"))]
        {
            self.load_volatile(i)
        }
        // SAFETY: as promised by the caller.
        #[cfg(target_arch = "nvptx64")]
        unsafe {
            machine::load_volatile(self.start.add(i))
        }
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
