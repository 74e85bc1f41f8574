//! Views of global memory: slices that many threads of a grid read and write at the same time.
//!
//! A view is an address and a length. Every access is checked: outside of the view a GPU traps and the executor says
//! which kernel, block and thread it was. The unchecked forms are for the inner loops of kernels that have checked the
//! range themselves; the executor checks those too.
//!
//! **Races.** Nothing keeps two threads, two launches on different streams, or a kernel and a copy from using one
//! element at the same time. Where one of them writes and no barrier, fence or atomic orders the two, a load gives any
//! value of its type, and what is in memory afterwards is of one of the writes, byte by byte. What is checked is the
//! index that was given and the view's length, neither of which is in that memory. In the executor every access is a
//! relaxed atomic of its width, one of 16 bytes two of 8. That gives races a meaning as long as they are of one width.
//! Accesses of different widths that race (an element here, a vector with that element there) get the bytes that the
//! processor has, each old or new, on x86-64 and aarch64; Rust's memory model leaves such a race undefined, and no
//! access could avoid that but one of each byte. On a GPU it is an ordinary load or store: PTX gives races of those a
//! meaning (Lustig, Sahasrabuddhe and Giroux, "A Formal Analysis of the NVIDIA PTX Memory Consistency Model", ASPLOS
//! 2019), but LLVM on the way there promises none, so an index that was itself loaded in a race is to be loaded by an
//! atomic or a volatile access. `Gpu::simt` finds races within a launch.

use core::marker::PhantomData;
use core::mem::{size_of, transmute_copy};

use crate::backend;
use crate::element::{Element, Plain, Vector, VectorType};

mod parts;
mod vectors;

pub use parts::{Begun, Word};

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

/// What an L2 that has not what a load asks for gets from memory. What is not asked for is a neighbour's, as a rule,
/// and is there when it asks: so where a row's stretches that blocks load begin and end inside of such a piece, memory
/// is read in whole ones.
///
/// A hint, from sm_90 on; before, and in the executor, it is [`Fetch::Sectors`] always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetch {
    /// What is asked for, in sectors of 32 bytes.
    Sectors,
    /// All of its line of 128 bytes.
    Line,
    /// And the line that is next to it in 256 bytes.
    TwoLines,
}

/// All that was loaded before is on its way before anything behind this begins. Makes no instruction.
///
/// A compiler moves a load to where its value is first used, if it can, to save registers: then loads that could be on
/// their way together wait for each other.
#[inline(always)]
pub fn issue_loads() {
    backend::issue_loads();
}

impl<'a, T: Plain> Global<'a, T> {
    /// The view of `len` elements at `start`.
    ///
    /// # Safety
    /// The elements are readable for `'a` by whoever gets the view, on a GPU together with the rest of each 16 bytes,
    /// at a multiple of 16, that they lie in; and `start` is a multiple of `T`'s size.
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
            backend::out_of_bounds("a view of global memory", i, self.len);
        }
        // SAFETY: `i` is inside of the view.
        unsafe { backend::load(self.start.add(i)) }
    }

    /// The element at `i`, or `otherwise` outside of the view.
    #[inline(always)]
    #[track_caller]
    pub fn load_or(&self, i: usize, otherwise: T) -> T {
        if i < self.len {
            // SAFETY: `i` is inside of the view.
            unsafe { backend::load(self.start.add(i)) }
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
        return unsafe { backend::load(self.start.add(i)) };
    }

    /// Whether the address of element `i` is a multiple of `bytes`, a power of two.
    #[inline(always)]
    pub fn is_aligned_to(&self, i: usize, bytes: usize) -> bool {
        (self.start as usize).wrapping_add(i * size_of::<T>()).is_multiple_of(bytes)
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
    pub fn load_vector(&self, i: usize) -> T::Vector {
        if i >= self.len || self.len - i < T::Vector::LEN {
            backend::out_of_bounds("a view of global memory (a vector that begins)", i, self.len);
        }
        // SAFETY: `i` is inside of the view.
        let place = unsafe { self.start.add(i) };
        if !(place as usize).is_multiple_of(16) {
            backend::misaligned("a view of global memory", i);
        }
        // SAFETY: all of the vector is inside of the view, and aligned.
        unsafe { backend::load(place.cast()) }
    }

    /// The 16 bytes of elements that begin at `i`, not checked on a GPU.
    ///
    /// # Safety
    /// `i + T::Vector::LEN` is at most [`Global::len`], and the address of element `i` is a multiple of 16.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_vector_unchecked(&self, i: usize) -> T::Vector {
        // SAFETY: as promised by the caller.
        unsafe { self.fetch_vector_unchecked(i, Fetch::Sectors) }
    }

    /// [`Global::load_vector_unchecked`] that fetches more.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn fetch_vector_unchecked(&self, i: usize, fetch: Fetch) -> T::Vector {
        #[cfg(not(target_arch = "nvptx64"))]
        {
            let _ = fetch;
            self.load_vector(i)
        }
        // SAFETY: as promised by the caller.
        #[cfg(target_arch = "nvptx64")]
        unsafe {
            backend::load_vector(self.start.add(i).cast(), fetch)
        }
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
            backend::out_of_bounds("a view of global memory (four elements that begin)", i, self.len);
        }
        // SAFETY: as promised by the caller.
        unsafe {
            let place = self.start.add(i);
            match size_of::<T>() {
                1 => transmute_copy(&backend::load::<u32>(place.cast())),
                2 => transmute_copy(&backend::load::<u64>(place.cast())),
                4 => transmute_copy(&backend::load::<T::Vector>(place.cast())),
                _ => transmute_copy(&[
                    backend::load::<T::Vector>(place.cast()),
                    backend::load::<T::Vector>(place.add(2).cast()),
                ]),
            }
        }
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

    /// The same memory as elements of another type. What is behind the last whole one is left out. Traps if the view is
    /// not aligned for them.
    #[inline(always)]
    #[track_caller]
    pub fn cast<U: Plain>(&self) -> GlobalMut<'a, U> {
        if size_of::<U>() > size_of::<T>() && !(self.start as usize).is_multiple_of(size_of::<U>()) {
            backend::misaligned_for("a view of global memory", size_of::<U>());
        }
        let bytes = self.len * size_of::<T>();
        GlobalMut { start: self.start.cast(), len: bytes / size_of::<U>(), memory: PhantomData }
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
            backend::out_of_bounds("a view of global memory", i, self.len);
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
        unsafe { backend::store(self.place(i), value) }
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
            backend::store(self.start.add(i), value)
        }
    }

    /// The element at `i` as memory has it now: no register and no L1 line is taken for it. Traps outside of the view.
    #[inline(always)]
    #[track_caller]
    pub fn load_volatile(&self, i: usize) -> T {
        // SAFETY: `place` has checked it.
        unsafe { backend::load_volatile(self.place(i)) }
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
            backend::load_volatile(self.start.add(i))
        }
    }

    /// Writes the element at `i` to memory now, not when it suits the compiler. Traps outside of the view.
    #[inline(always)]
    #[track_caller]
    pub fn store_volatile(&self, i: usize, value: T) {
        // SAFETY: `place` has checked it.
        unsafe { backend::store_volatile(self.place(i), value) }
    }
}

impl<T: Plain> GlobalMut<'_, T> {
    /// Writes `N` elements from `i` on, in as few accesses as their bytes need.
    ///
    /// # Safety
    /// `i + N` is at most [`GlobalMut::len`], and the address of element `i` is a multiple of the elements' size
    /// together, or of 16 if that is less.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store_neighbours_unchecked<const N: usize>(&self, i: usize, values: [T; N]) {
        #[cfg(not(target_arch = "nvptx64"))]
        if i >= self.len || self.len - i < N {
            backend::out_of_bounds("a view of global memory (neighbours that begin)", i, self.len);
        }
        // SAFETY: as promised by the caller; each arm reads as many bytes as there are.
        unsafe {
            let place = self.start.add(i);
            match size_of::<[T; N]>() {
                2 => backend::store::<u16>(place.cast(), transmute_copy(&values)),
                4 => backend::store::<u32>(place.cast(), transmute_copy(&values)),
                8 => backend::store::<u64>(place.cast(), transmute_copy(&values)),
                16 => backend::store::<Vector<u32, 4>>(place.cast(), transmute_copy(&values)),
                32 => {
                    let [first, second]: [Vector<u32, 4>; 2] = transmute_copy(&values);
                    backend::store(place.cast(), first);
                    backend::store(place.cast::<Vector<u32, 4>>().add(1), second);
                }
                _ => {
                    let mut k = 0;
                    while k < N {
                        backend::store(place.add(k), values[k]);
                        k += 1;
                    }
                }
            }
        }
    }

    /// Whether the address of element `i` is a multiple of `bytes`, a power of two.
    #[inline(always)]
    pub fn is_aligned_to(&self, i: usize, bytes: usize) -> bool {
        self.as_global().is_aligned_to(i, bytes)
    }
}

impl<T: Element> GlobalMut<'_, T> {
    /// Writes 16 bytes of elements from `i` on. Traps if they are not all inside of the view, or not aligned.
    #[inline(always)]
    #[track_caller]
    pub fn store_vector(&self, i: usize, vector: T::Vector) {
        if i >= self.len || self.len - i < T::Vector::LEN {
            backend::out_of_bounds("a view of global memory (a vector that begins)", i, self.len);
        }
        // SAFETY: `i` is inside of the view.
        let place = unsafe { self.start.add(i) };
        if !(place as usize).is_multiple_of(16) {
            backend::misaligned("a view of global memory", i);
        }
        // SAFETY: all of the vector is inside of the view, and aligned.
        unsafe { backend::store(place.cast(), vector) }
    }

    /// Writes 16 bytes of elements from `i` on, not checked on a GPU.
    ///
    /// # Safety
    /// `i + T::Vector::LEN` is at most [`GlobalMut::len`], and the address of element `i` is a multiple of 16.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store_vector_unchecked(&self, i: usize, vector: T::Vector) {
        #[cfg(not(target_arch = "nvptx64"))]
        self.store_vector(i, vector);
        // SAFETY: as promised by the caller.
        #[cfg(target_arch = "nvptx64")]
        unsafe {
            backend::store(self.start.add(i).cast(), vector)
        }
    }
}
