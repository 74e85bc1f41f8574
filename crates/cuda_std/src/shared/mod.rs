//! Shared memory: arrays that the threads of a block share.
//!
//! Length and element type are part of the type, and no pointer to an array is ever handed out: a generic pointer to
//! shared memory makes every access generic (`LD` instead of `LDS`).
//!
//! A kernel for Rust-CUDA accesses shared memory by raw pointers, `*array.add(i)`. The same expression here makes a
//! [`SharedPlace`], which is no pointer. Its statics in shared memory become constants of the type [`SharedStatic`].
//!
//! Elements of 4 and 8 bytes have atomic operations, such as [`SharedArray::fetch_add`]. Each is relaxed: it orders no
//! other access.
//!
//! An array is uninitialized until a thread writes it, and other threads see a write only after a barrier
//! ([`crate::thread::sync_threads`], or [`crate::warp::sync_warp`] within a warp).

use core::marker::PhantomData;
use core::mem::size_of;

use crate::backend;
use crate::element::{Element, Plain, VectorType};
use crate::global::Word;
use crate::pieces;

mod atomics;
mod place;
mod statics;

pub use atomics::{SharedAtomic, SharedAtomicInteger};
pub use place::SharedPlace;
pub use statics::{SharedContents, SharedSlot, SharedStatic};

/// `shared_array![T; LEN]`: a [`SharedArray`] of the block. Each occurrence in the source is a separate array.
#[macro_export]
macro_rules! shared_array {
    ($type:ty; $len:expr) => {
        $crate::shared::SharedArray::<$type, { $len }>::declare::<
            { $crate::shared::array_id(file!(), line!(), column!()) },
        >()
    };
}

/// `shared_tile![T; ROWS x COLUMNS]`: a [`SharedTile`] of the block. `shared_tile![T; ROWS x COLUMNS + PAD]` adds `PAD`
/// unused columns after each row.
#[macro_export]
macro_rules! shared_tile {
    ($type:ty; $rows:ident x $columns:ident + $pad:literal) => {
        $crate::shared::SharedTile::<$type, { $rows }, { $columns }, $pad>::declare::<
            { $crate::shared::array_id(file!(), line!(), column!()) },
        >()
    };
    ($type:ty; $rows:ident x $columns:ident) => {
        $crate::shared_tile![$type; $rows x $columns + 0]
    };
}

/// A hash of a source position: the array's name in PTX, and its key in the executor.
#[doc(hidden)]
pub const fn array_id(file: &str, line: u32, column: u32) -> u64 {
    // FNV-1a, which can be `const`. Should two arrays of a kernel collide, both `ptxas` and the executor refuse the
    // kernel.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let bytes = file.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0100_0000_01b3);
        i += 1;
    }
    hash = (hash ^ line as u64).wrapping_mul(0x0100_0000_01b3);
    (hash ^ column as u64).wrapping_mul(0x0100_0000_01b3)
}

/// `LEN` elements, shared by the threads of a block.
#[derive(Clone, Copy)]
pub struct SharedArray<T, const LEN: usize> {
    base: backend::SharedAddress,
    elements: PhantomData<T>,
}

impl<T: Plain, const LEN: usize> SharedArray<T, LEN> {
    /// For [`shared_array!`].
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    pub fn declare<const ID: u64>() -> Self {
        Self { base: backend::shared_declare::<T, LEN, ID>(), elements: PhantomData }
    }

    #[inline(always)]
    #[track_caller]
    fn check(i: usize) {
        if i >= LEN {
            backend::out_of_bounds("a shared array", i, LEN);
        }
    }

    /// Loads the element at `i`. Traps past the end.
    #[inline(always)]
    #[track_caller]
    pub fn load(&self, i: usize) -> T {
        Self::check(i);
        // SAFETY: just checked.
        unsafe { pieces::shared_load(self.base, i * size_of::<T>()) }
    }

    /// [`SharedArray::load`], unchecked on a GPU: a check is a branch, and the compiler waits for pending loads before
    /// a branch.
    ///
    /// # Safety
    /// The element is inside the array.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_unchecked(&self, i: usize) -> T {
        #[cfg(not(target_arch = "nvptx64"))]
        Self::check(i);
        // SAFETY: as promised by the caller.
        unsafe { pieces::shared_load(self.base, i * size_of::<T>()) }
    }

    /// Stores the element at `i`. Traps past the end.
    #[inline(always)]
    #[track_caller]
    pub fn store(&self, i: usize, value: T) {
        Self::check(i);
        // SAFETY: just checked.
        unsafe { pieces::shared_store(self.base, i * size_of::<T>(), value) }
    }

    /// [`SharedArray::store`], unchecked on a GPU.
    ///
    /// # Safety
    /// The element is inside the array.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store_unchecked(&self, i: usize, value: T) {
        #[cfg(not(target_arch = "nvptx64"))]
        Self::check(i);
        // SAFETY: as promised by the caller.
        unsafe { pieces::shared_store(self.base, i * size_of::<T>(), value) }
    }

    /// Loads the element at `i`, without a branch. Past the end, the executor traps, and a GPU loads the last element.
    #[inline(always)]
    #[track_caller]
    pub fn load_or_last(&self, i: usize) -> T {
        // SAFETY: the executor checks the index, and on a GPU it is inside the array.
        unsafe { self.load_unchecked(Self::or_last(i)) }
    }

    /// Stores the element at `i`, without a branch. Past the end, the executor traps, and a GPU stores the last
    /// element.
    #[inline(always)]
    #[track_caller]
    pub fn store_or_last(&self, i: usize, value: T) {
        // SAFETY: as for `load_or_last`.
        unsafe { self.store_unchecked(Self::or_last(i), value) }
    }

    /// On a GPU, the index or, if it is past the end, the last one.
    #[inline(always)]
    fn or_last(i: usize) -> usize {
        const { assert!(LEN > 0) };
        if cfg!(target_arch = "nvptx64") && i >= LEN { LEN - 1 } else { i }
    }

    /// Loads the element at `i` from memory (`volatile`), never a value that the compiler keeps. Traps past the end.
    #[inline(always)]
    #[track_caller]
    pub fn load_volatile(&self, i: usize) -> T {
        Self::check(i);
        // SAFETY: just checked.
        unsafe { pieces::shared_load_volatile(self.base, i * size_of::<T>()) }
    }

    /// Stores the element at `i` to memory at once (`volatile`). Traps past the end.
    #[inline(always)]
    #[track_caller]
    pub fn store_volatile(&self, i: usize, value: T) {
        Self::check(i);
        // SAFETY: just checked.
        unsafe { pieces::shared_store_volatile(self.base, i * size_of::<T>(), value) }
    }
}

impl<T: Element, const LEN: usize> SharedArray<T, LEN> {
    #[inline(always)]
    #[track_caller]
    fn check_vector(i: usize) {
        if i >= LEN || LEN - i < T::Vector::LEN {
            backend::out_of_bounds("a shared array (a vector that begins)", i, LEN);
        }
        if !i.is_multiple_of(T::Vector::LEN) {
            backend::misaligned("a shared array", i);
        }
    }

    /// Loads the vector that starts at `i`, in one access. Traps past the end, or if `i` is not a multiple of the
    /// vector's length.
    #[inline(always)]
    #[track_caller]
    pub fn load_vector(&self, i: usize) -> T::Vector {
        Self::check_vector(i);
        // SAFETY: just checked.
        unsafe { backend::shared_load(self.base, i * size_of::<T>()) }
    }

    /// Stores a vector from `i` on, in one access. Traps past the end, or if `i` is not a multiple of the vector's
    /// length.
    #[inline(always)]
    #[track_caller]
    pub fn store_vector(&self, i: usize, vector: T::Vector) {
        Self::check_vector(i);
        // SAFETY: just checked.
        unsafe { backend::shared_store(self.base, i * size_of::<T>(), vector) }
    }

    /// [`SharedArray::load_vector`], unchecked on a GPU.
    ///
    /// # Safety
    /// The vector is inside the array, and `i` is a multiple of its length.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_vector_unchecked(&self, i: usize) -> T::Vector {
        #[cfg(not(target_arch = "nvptx64"))]
        Self::check_vector(i);
        // SAFETY: as promised by the caller.
        unsafe { backend::shared_load(self.base, i * size_of::<T>()) }
    }

    /// [`SharedArray::store_vector`], unchecked on a GPU.
    ///
    /// # Safety
    /// The vector is inside the array, and `i` is a multiple of its length.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store_vector_unchecked(&self, i: usize, vector: T::Vector) {
        #[cfg(not(target_arch = "nvptx64"))]
        Self::check_vector(i);
        // SAFETY: as promised by the caller.
        unsafe { backend::shared_store(self.base, i * size_of::<T>(), vector) }
    }
}

impl<T: Element, const LEN: usize> SharedArray<T, LEN> {
    #[inline(always)]
    #[track_caller]
    fn check_word<W: Word>(i: usize) {
        let elements = size_of::<W>() / size_of::<T>();
        if i >= LEN || LEN - i < elements {
            backend::out_of_bounds("a shared array (a word that begins)", i, LEN);
        }
        if !i.is_multiple_of(elements) {
            backend::misaligned("a shared array", i);
        }
    }

    /// Stores a word of elements from `i` on, in one access. Traps past the end, or if `i` is not a multiple of the
    /// number of elements in a word.
    #[inline(always)]
    #[track_caller]
    pub fn store_word<W: Word>(&self, i: usize, word: W) {
        Self::check_word::<W>(i);
        // SAFETY: just checked.
        unsafe { backend::shared_store(self.base, i * size_of::<T>(), word) }
    }

    /// [`SharedArray::store_word`], unchecked on a GPU.
    ///
    /// # Safety
    /// The word is inside the array, and `i` is a multiple of the number of its elements.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store_word_unchecked<W: Word>(&self, i: usize, word: W) {
        #[cfg(not(target_arch = "nvptx64"))]
        Self::check_word::<W>(i);
        // SAFETY: as promised by the caller.
        unsafe { backend::shared_store(self.base, i * size_of::<T>(), word) }
    }
}

impl<P: VectorType, const LEN: usize> SharedArray<P, LEN> {
    /// Loads element `i` of an array of vectors, counting elements across vectors. Unchecked on a GPU.
    ///
    /// # Safety
    /// `i` is less than `LEN` times the vector's length.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_element_unchecked<T: Element<Vector = P>>(&self, i: usize) -> T {
        #[cfg(not(target_arch = "nvptx64"))]
        Self::check(i / P::LEN);
        // SAFETY: as promised by the caller.
        unsafe { backend::shared_load(self.base, i * size_of::<T>()) }
    }
}

/// `ROWS` rows of `COLUMNS` elements, each followed by `PAD` elements that avoid bank conflicts between rows.
#[derive(Clone, Copy)]
pub struct SharedTile<T, const ROWS: usize, const COLUMNS: usize, const PAD: usize> {
    base: backend::SharedAddress,
    elements: PhantomData<T>,
}

impl<T: Plain, const ROWS: usize, const COLUMNS: usize, const PAD: usize> SharedTile<T, ROWS, COLUMNS, PAD> {
    /// For [`shared_tile!`].
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    pub fn declare<const ID: u64>() -> Self {
        Self { base: backend::shared_declare_tile::<T, ROWS, COLUMNS, PAD, ID>(), elements: PhantomData }
    }

    #[inline(always)]
    #[track_caller]
    fn offset(row: usize, column: usize) -> usize {
        if row >= ROWS {
            backend::out_of_bounds("the rows of a shared tile", row, ROWS);
        }
        if column >= COLUMNS {
            backend::out_of_bounds("the columns of a shared tile", column, COLUMNS);
        }
        (row * (COLUMNS + PAD) + column) * size_of::<T>()
    }

    /// Loads the element at `row` and `column`. Traps outside the tile.
    #[inline(always)]
    #[track_caller]
    pub fn load(&self, row: usize, column: usize) -> T {
        // SAFETY: `offset` has checked both.
        unsafe { pieces::shared_load(self.base, Self::offset(row, column)) }
    }

    /// Stores the element at `row` and `column`. Traps outside the tile.
    #[inline(always)]
    #[track_caller]
    pub fn store(&self, row: usize, column: usize, value: T) {
        // SAFETY: `offset` has checked both.
        unsafe { pieces::shared_store(self.base, Self::offset(row, column), value) }
    }
}

/// The launch's dynamic shared memory, as elements of `T`.
#[derive(Clone, Copy)]
pub struct DynamicShared<T> {
    base: backend::SharedAddress,
    len: usize,
    elements: PhantomData<T>,
}

/// The launch's dynamic shared memory, as elements of `T`.
#[inline(always)]
pub fn dynamic_shared<T: Plain>() -> DynamicShared<T> {
    let (base, bytes) = backend::shared_dynamic();
    DynamicShared { base, len: bytes / size_of::<T>(), elements: PhantomData }
}

/// [`dynamic_shared`], under Rust-CUDA's name.
#[inline(always)]
pub fn dynamic_shared_mem<T: Plain>() -> DynamicShared<T> {
    dynamic_shared()
}

impl<T: Plain> DynamicShared<T> {
    /// The number of elements.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the launch has no dynamic shared memory.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline(always)]
    #[track_caller]
    fn check(&self, i: usize) {
        if i >= self.len {
            backend::out_of_bounds("dynamic shared memory", i, self.len);
        }
    }

    /// Loads the element at `i`. Traps past the end.
    #[inline(always)]
    #[track_caller]
    pub fn load(&self, i: usize) -> T {
        self.check(i);
        // SAFETY: just checked.
        unsafe { pieces::shared_load(self.base, i * size_of::<T>()) }
    }

    /// [`DynamicShared::load`], unchecked on a GPU.
    ///
    /// # Safety
    /// The element is inside the memory.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_unchecked(&self, i: usize) -> T {
        #[cfg(not(target_arch = "nvptx64"))]
        self.check(i);
        // SAFETY: as promised by the caller.
        unsafe { pieces::shared_load(self.base, i * size_of::<T>()) }
    }

    /// [`DynamicShared::store`], unchecked on a GPU.
    ///
    /// # Safety
    /// The element is inside the memory.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store_unchecked(&self, i: usize, value: T) {
        #[cfg(not(target_arch = "nvptx64"))]
        self.check(i);
        // SAFETY: as promised by the caller.
        unsafe { pieces::shared_store(self.base, i * size_of::<T>(), value) }
    }

    /// Stores the element at `i`. Traps past the end.
    #[inline(always)]
    #[track_caller]
    pub fn store(&self, i: usize, value: T) {
        self.check(i);
        // SAFETY: just checked.
        unsafe { pieces::shared_store(self.base, i * size_of::<T>(), value) }
    }
}
