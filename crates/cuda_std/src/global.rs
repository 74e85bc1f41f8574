//! Views of global memory: slices that many threads of a grid read and write at the same time.
//!
//! A view is an address and a length. Every access is checked: outside the view a GPU traps, and the executor reports
//! the kernel, block and thread. The unchecked methods are for inner loops of kernels that have checked the range
//! themselves; the executor checks those too.
//!
//! **Races.** Two threads, two launches on different streams, or a kernel and a copy may access the same element at the
//! same time. If one of them writes, and no barrier, fence or atomic orders the two, a load returns any value of its
//! type, and memory afterwards holds the bytes of either write. The bounds check stays sound: it uses the given index
//! and the view's length, and neither is in that memory.
//!
//! In the executor every access is a relaxed atomic of its width; a 16-byte access is two of 8 bytes. So races of equal
//! width are defined. Racing accesses of different widths (an element, and a vector that contains it) yield bytes that
//! are each old or new on x86-64 and aarch64; Rust's memory model leaves such a race undefined, and only bytewise
//! accesses could avoid that.
//!
//! On a GPU an access is an ordinary load or store. PTX defines races of those (Lustig, Sahasrabuddhe and Giroux, "A
//! Formal Analysis of the NVIDIA PTX Memory Consistency Model", ASPLOS 2019), but LLVM, which compiles to it, promises
//! nothing. So use an atomic or a volatile access to load an index that other threads may write. `Gpu::simt` finds
//! races within a launch.

use core::marker::PhantomData;
use core::mem::{size_of, transmute_copy};

use crate::backend;
use crate::element::{Element, Plain, Stored, Vector, VectorType, access_alignment};
use crate::pieces;

mod partial;
mod vectors;

pub use partial::{PendingVector, Word};

/// A read-only view.
///
/// The memory may change while the kernel runs if it is also in a [`GlobalMut`]; then only barriers, fences and atomics
/// order the accesses.
#[derive(Clone, Copy)]
pub struct Global<'a, T> {
    start: *const T,
    len: usize,
    memory: PhantomData<&'a [T]>,
}

/// A view to read and write. Threads share it, so a store takes `&self`.
#[derive(Clone, Copy)]
pub struct GlobalMut<'a, T> {
    start: *mut T,
    len: usize,
    memory: PhantomData<&'a [T]>,
}

/// How many bytes a load that misses the L2 cache fetches into it. A neighbouring block usually loads the rest of the
/// line. Where the rows of a matrix begin and end inside a line, fetching whole lines avoids partial DRAM accesses.
///
/// A hint from sm_90 on; on earlier devices and in the executor it has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum L2Prefetch {
    /// The accessed sectors of 32 bytes.
    Sectors,
    /// The whole line of 128 bytes (`.L2::128B`).
    Line,
    /// The aligned pair of lines, 256 bytes (`.L2::256B`).
    TwoLines,
}

/// Makes the compiler issue all earlier loads before any later instruction. Emits no instruction.
///
/// To save registers, a compiler moves a load to the first use of its value. Then loads that could be in flight
/// together wait for each other.
#[inline(always)]
pub fn issue_loads() {
    backend::issue_loads();
}

impl<'a, T: Stored> Global<'a, T> {
    /// Makes a view of `len` elements at `start`.
    ///
    /// # Safety
    /// The elements are readable for `'a` in every thread that gets the view; on a GPU, so is the rest of each aligned
    /// 16 bytes that contains an element. `start` is aligned for the accesses that [`Plain`] describes.
    #[inline(always)]
    pub unsafe fn from_raw(start: *const T, len: usize) -> Self {
        Self { start, len, memory: PhantomData }
    }

    /// The number of elements.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the view is empty.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The view without its first `count` elements. Traps if it has fewer.
    #[inline(always)]
    #[track_caller]
    pub fn skip(&self, count: usize) -> Self {
        if count > self.len {
            backend::out_of_bounds("the start of a view of global memory", count, self.len);
        }
        // SAFETY: the elements are inside this view.
        unsafe { self.skip_unchecked(count) }
    }

    /// [`Global::skip`], unchecked on a GPU.
    ///
    /// # Safety
    /// `count` is at most [`Global::len`].
    #[inline(always)]
    #[track_caller]
    pub unsafe fn skip_unchecked(&self, count: usize) -> Self {
        #[cfg(not(target_arch = "nvptx64"))]
        if count > self.len {
            backend::out_of_bounds("the start of a view of global memory", count, self.len);
        }
        // SAFETY: the elements are inside this view, as promised by the caller.
        unsafe { Self::from_raw(self.start.add(count), self.len.wrapping_sub(count)) }
    }

    /// Loads the element at `i`. Traps outside the view.
    #[inline(always)]
    #[track_caller]
    pub fn load(&self, i: usize) -> T {
        if i >= self.len {
            backend::out_of_bounds("a view of global memory", i, self.len);
        }
        // SAFETY: `i` is inside the view.
        unsafe { pieces::load(self.start.add(i)) }
    }

    /// Loads the element at `i`, or returns `otherwise` outside the view.
    #[inline(always)]
    #[track_caller]
    pub fn load_or(&self, i: usize, otherwise: T) -> T {
        if i < self.len {
            // SAFETY: `i` is inside the view.
            unsafe { pieces::load(self.start.add(i)) }
        } else {
            otherwise
        }
    }

    /// Loads the element at `i`, unchecked on a GPU.
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
        return unsafe { pieces::load(self.start.add(i)) };
    }

    /// Whether the address of element `i` is a multiple of `bytes`, a power of two.
    #[inline(always)]
    pub fn is_aligned_to(&self, i: usize, bytes: usize) -> bool {
        // Without optimization, `is_multiple_of` is a call.
        (self.start as usize).wrapping_add(i * size_of::<T>()) & bytes.wrapping_sub(1) == 0
    }

    /// The number of elements before the first 16-byte-aligned one, at most [`Global::len`].
    #[inline(always)]
    pub fn elements_to_alignment(&self) -> usize {
        let bytes = (self.start as usize).wrapping_neg() % 16;
        let elements = bytes / size_of::<T>();
        if elements < self.len { elements } else { self.len }
    }
}

impl<T: Element> Global<'_, T> {
    /// Prefetches the 128-byte line of element `i` to L2. Does nothing if there is no such element, or on the CPU.
    #[inline(always)]
    pub fn prefetch_line(&self, i: usize) {
        if i < self.len {
            // SAFETY: the element is inside the view.
            unsafe { backend::prefetch_line(self.start.add(i).cast()) };
        }
    }

    /// Loads the vector that starts at `i`. Traps if it is not wholly inside the view, or not aligned.
    #[inline(always)]
    #[track_caller]
    pub fn load_vector(&self, i: usize) -> T::Vector {
        if i >= self.len || self.len - i < T::Vector::LEN {
            backend::out_of_bounds("a view of global memory (a vector that begins)", i, self.len);
        }
        // SAFETY: `i` is inside the view.
        let pointer = unsafe { self.start.add(i) };
        // Without optimization, `is_multiple_of` is a call.
        if pointer as usize & 15 != 0 {
            backend::misaligned("a view of global memory", i);
        }
        // SAFETY: the whole vector is inside the view, and aligned.
        unsafe { pieces::load(pointer.cast()) }
    }

    /// Loads the vector that starts at `i`, unchecked on a GPU.
    ///
    /// # Safety
    /// `i + T::Vector::LEN` is at most [`Global::len`], and the address of element `i` is a multiple of 16.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_vector_unchecked(&self, i: usize) -> T::Vector {
        // SAFETY: as promised by the caller.
        unsafe { self.load_vector_prefetch_unchecked(i, L2Prefetch::Sectors) }
    }

    /// [`Global::load_vector_unchecked`] with a prefetch size.
    ///
    /// # Safety
    /// As for [`Global::load_vector_unchecked`].
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_vector_prefetch_unchecked(&self, i: usize, prefetch: L2Prefetch) -> T::Vector {
        #[cfg(not(target_arch = "nvptx64"))]
        {
            let _ = prefetch;
            self.load_vector(i)
        }
        // SAFETY: as promised by the caller.
        #[cfg(target_arch = "nvptx64")]
        unsafe {
            backend::load_vector(self.start.add(i).cast(), prefetch)
        }
    }
}

impl<T: Element> Global<'_, T> {
    /// Loads four elements from `i` on, in one access (two of 16 bytes for elements of 8, four for elements of 16).
    ///
    /// # Safety
    /// `i + 4` is at most [`Global::len`], and the address of element `i` is a multiple of the size of four elements,
    /// or of 16 if that is less.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_four_unchecked(&self, i: usize) -> [T; 4] {
        #[cfg(not(target_arch = "nvptx64"))]
        if i >= self.len || self.len - i < 4 {
            backend::out_of_bounds("a view of global memory (four elements that begin)", i, self.len);
        }
        // SAFETY: as promised by the caller.
        unsafe {
            let pointer = self.start.add(i);
            match size_of::<T>() {
                1 => transmute_copy(&backend::load::<u32>(pointer.cast())),
                2 => transmute_copy(&backend::load::<u64>(pointer.cast())),
                4 => transmute_copy(&backend::load::<T::Vector>(pointer.cast())),
                8 => transmute_copy(&[
                    backend::load::<T::Vector>(pointer.cast()),
                    backend::load::<T::Vector>(pointer.add(2).cast()),
                ]),
                _ => [0, 1, 2, 3].map(|k| backend::load(pointer.add(k))),
            }
        }
    }
}

impl<'a, T: Stored> GlobalMut<'a, T> {
    /// Makes a view of `len` elements at `start`.
    ///
    /// # Safety
    /// The elements are readable and writable for `'a` in every thread that gets the view, and are accessed only
    /// through views and atomics. `start` is aligned for the accesses that [`Plain`] describes.
    #[inline(always)]
    pub unsafe fn from_raw(start: *mut T, len: usize) -> Self {
        Self { start, len, memory: PhantomData }
    }

    /// A read-only view of the same memory.
    #[inline(always)]
    pub fn as_global(&self) -> Global<'a, T> {
        Global { start: self.start, len: self.len, memory: PhantomData }
    }

    /// The same memory as elements of another type. A partial element at the end is left out. Traps if the view is not
    /// aligned for `U`.
    #[inline(always)]
    #[track_caller]
    pub fn cast<U: Stored>(&self) -> GlobalMut<'a, U> {
        let alignment = access_alignment::<U>();
        if alignment > access_alignment::<T>() && !(self.start as usize).is_multiple_of(alignment) {
            backend::misaligned_for("a view of global memory", alignment);
        }
        let bytes = self.len * size_of::<T>();
        GlobalMut { start: self.start.cast(), len: bytes / size_of::<U>(), memory: PhantomData }
    }

    /// [`GlobalMut::cast`], unchecked on a GPU.
    ///
    /// # Safety
    /// The view is aligned for the accesses to `U` that [`Plain`] describes.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn cast_unchecked<U: Stored>(&self) -> GlobalMut<'a, U> {
        #[cfg(not(target_arch = "nvptx64"))]
        return self.cast();
        #[cfg(target_arch = "nvptx64")]
        GlobalMut { start: self.start.cast(), len: self.len * size_of::<T>() / size_of::<U>(), memory: PhantomData }
    }

    /// The number of elements.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the view is empty.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address of element `i`. Traps outside the view.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn pointer(&self, i: usize) -> *mut T {
        if i >= self.len {
            backend::out_of_bounds("a view of global memory", i, self.len);
        }
        // SAFETY: `i` is inside the view.
        unsafe { self.start.add(i) }
    }

    /// Loads the element at `i`. Traps outside the view.
    #[inline(always)]
    #[track_caller]
    pub fn load(&self, i: usize) -> T {
        self.as_global().load(i)
    }

    /// Stores the element at `i`. Traps outside the view.
    #[inline(always)]
    #[track_caller]
    pub fn store(&self, i: usize, value: T) {
        // SAFETY: `pointer` has checked it.
        unsafe { pieces::store(self.pointer(i), value) }
    }

    /// Stores the element at `i`, unchecked on a GPU.
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
            pieces::store(self.start.add(i), value)
        }
    }

    /// Loads the element at `i` from memory (`volatile`): neither a register nor an L1 line may supply it. Traps
    /// outside the view.
    #[inline(always)]
    #[track_caller]
    pub fn load_volatile(&self, i: usize) -> T {
        // SAFETY: `pointer` has checked it.
        unsafe { pieces::load_volatile(self.pointer(i)) }
    }

    /// [`GlobalMut::load_volatile`], unchecked on a GPU.
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
            pieces::load_volatile(self.start.add(i))
        }
    }

    /// Stores the element at `i` to memory at once (`volatile`). Traps outside the view.
    #[inline(always)]
    #[track_caller]
    pub fn store_volatile(&self, i: usize, value: T) {
        // SAFETY: `pointer` has checked it.
        unsafe { pieces::store_volatile(self.pointer(i), value) }
    }
}

impl<T: Plain> GlobalMut<'_, T> {
    /// Stores `N` elements from `i` on, in as few accesses as their size allows.
    ///
    /// # Safety
    /// `i + N` is at most [`GlobalMut::len`], and the address of element `i` is a multiple of the size of `N` elements,
    /// or of 16 if that is less.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store_contiguous_unchecked<const N: usize>(&self, i: usize, values: [T; N]) {
        #[cfg(not(target_arch = "nvptx64"))]
        if i >= self.len || self.len - i < N {
            backend::out_of_bounds("a view of global memory (contiguous elements that begin)", i, self.len);
        }
        // SAFETY: as promised by the caller; each arm writes exactly the bytes of `values`.
        unsafe {
            let pointer = self.start.add(i);
            match size_of::<[T; N]>() {
                2 => backend::store::<u16>(pointer.cast(), transmute_copy(&values)),
                4 => backend::store::<u32>(pointer.cast(), transmute_copy(&values)),
                8 => backend::store::<u64>(pointer.cast(), transmute_copy(&values)),
                16 => backend::store::<Vector<u32, 4>>(pointer.cast(), transmute_copy(&values)),
                32 => {
                    let [first, second]: [Vector<u32, 4>; 2] = transmute_copy(&values);
                    pieces::store(pointer.cast(), first);
                    pieces::store(pointer.cast::<Vector<u32, 4>>().add(1), second);
                }
                _ => {
                    let mut k = 0;
                    while k < N {
                        pieces::store(pointer.add(k), values[k]);
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
    /// Stores a vector from `i` on. Traps if it is not wholly inside the view, or not aligned.
    #[inline(always)]
    #[track_caller]
    pub fn store_vector(&self, i: usize, vector: T::Vector) {
        if i >= self.len || self.len - i < T::Vector::LEN {
            backend::out_of_bounds("a view of global memory (a vector that begins)", i, self.len);
        }
        // SAFETY: `i` is inside the view.
        let pointer = unsafe { self.start.add(i) };
        // Without optimization, `is_multiple_of` is a call.
        if pointer as usize & 15 != 0 {
            backend::misaligned("a view of global memory", i);
        }
        // SAFETY: the whole vector is inside the view, and aligned.
        unsafe { pieces::store(pointer.cast(), vector) }
    }

    /// Stores a vector from `i` on, unchecked on a GPU.
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
            pieces::store(self.start.add(i).cast(), vector)
        }
    }
}
