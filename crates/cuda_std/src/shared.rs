//! Shared memory: arrays that the threads of one block have in common.
//!
//! Length and element type are in the type, and no pointer to the array is ever handed out: a generic pointer to shared
//! memory makes every access a generic one (`LD` in place of `LDS`).
//!
//! An array holds nothing sensible until a thread has written it, and what one thread wrote another sees only after a
//! barrier ([`crate::thread::sync_threads`], or [`crate::warp::sync_warp`] inside of a warp).

use core::marker::PhantomData;
use core::mem::size_of;

use crate::backend;
use crate::element::{Element, Plain, VectorType};
use crate::global::Word;

/// `shared_array![T; LEN]`: a [`SharedArray`] of the block. Each place in the source where it stands is one array.
#[macro_export]
macro_rules! shared_array {
    ($type:ty; $len:expr) => {
        $crate::shared::SharedArray::<$type, { $len }>::declare::<
            { $crate::shared::array_id(file!(), line!(), column!()) },
        >()
    };
}

/// `shared_tile![T; ROWS x COLUMNS]`, or with `PAD` unused columns behind each row `shared_tile![T; ROWS x COLUMNS +
/// PAD]`: a [`SharedTile`] of the block.
#[macro_export]
macro_rules! shared_tile {
    ($type:ty; $rows:ident x $columns:ident + $pad:literal) => {
        $crate::shared::SharedTile::<$type, { $rows }, { $columns }, $pad>::declare::<{ $crate::shared::array_id(file!(), line!(), column!()) }>()
    };
    ($type:ty; $rows:ident x $columns:ident) => {
        $crate::shared_tile![$type; $rows x $columns + 0]
    };
}

/// A number for a place in the source: the array's name in PTX, and its key in the executor.
#[doc(hidden)]
pub const fn array_id(file: &str, line: u32, column: u32) -> u64 {
    // FNV-1a: const, and two places of one kernel that met in it would be refused by ptxas and by the executor alike.
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

    /// The element at `i`. Past the end it traps.
    #[inline(always)]
    #[track_caller]
    pub fn load(&self, i: usize) -> T {
        Self::check(i);
        // SAFETY: just checked.
        unsafe { backend::shared_load(self.base, i * size_of::<T>()) }
    }

    /// [`SharedArray::load`], not checked on a GPU: a check is a branch, before which a compiler waits for what was
    /// loaded.
    ///
    /// # Safety
    /// The element is inside of the array.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_unchecked(&self, i: usize) -> T {
        #[cfg(not(target_arch = "nvptx64"))]
        Self::check(i);
        // SAFETY: as promised by the caller.
        unsafe { backend::shared_load(self.base, i * size_of::<T>()) }
    }

    /// Writes the element at `i`. Past the end it traps.
    #[inline(always)]
    #[track_caller]
    pub fn store(&self, i: usize, value: T) {
        Self::check(i);
        // SAFETY: just checked.
        unsafe { backend::shared_store(self.base, i * size_of::<T>(), value) }
    }

    /// [`SharedArray::store`], not checked on a GPU.
    ///
    /// # Safety
    /// The element is inside of the array.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store_unchecked(&self, i: usize, value: T) {
        #[cfg(not(target_arch = "nvptx64"))]
        Self::check(i);
        // SAFETY: as promised by the caller.
        unsafe { backend::shared_store(self.base, i * size_of::<T>(), value) }
    }

    /// The element at `i` as memory has it now, never a value that the compiler remembers. Past the end it traps.
    #[inline(always)]
    #[track_caller]
    pub fn load_volatile(&self, i: usize) -> T {
        Self::check(i);
        // SAFETY: just checked.
        unsafe { backend::shared_load_volatile(self.base, i * size_of::<T>()) }
    }

    /// Writes the element at `i` to memory now. Past the end it traps.
    #[inline(always)]
    #[track_caller]
    pub fn store_volatile(&self, i: usize, value: T) {
        Self::check(i);
        // SAFETY: just checked.
        unsafe { backend::shared_store_volatile(self.base, i * size_of::<T>(), value) }
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

    /// The 16 bytes of elements from `i` on, in one access. Traps past the end, or if `i` is not a multiple of the
    /// vector's length.
    #[inline(always)]
    #[track_caller]
    pub fn load_vector(&self, i: usize) -> T::Vector {
        Self::check_vector(i);
        // SAFETY: just checked.
        unsafe { backend::shared_load(self.base, i * size_of::<T>()) }
    }

    /// Writes 16 bytes of elements from `i` on, in one access. Traps past the end, or if `i` is not a multiple of the
    /// vector's length.
    #[inline(always)]
    #[track_caller]
    pub fn store_vector(&self, i: usize, vector: T::Vector) {
        Self::check_vector(i);
        // SAFETY: just checked.
        unsafe { backend::shared_store(self.base, i * size_of::<T>(), vector) }
    }

    /// [`SharedArray::load_vector`], not checked on a GPU.
    ///
    /// # Safety
    /// The vector is inside of the array, and `i` a multiple of its length.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_vector_unchecked(&self, i: usize) -> T::Vector {
        #[cfg(not(target_arch = "nvptx64"))]
        Self::check_vector(i);
        // SAFETY: as promised by the caller.
        unsafe { backend::shared_load(self.base, i * size_of::<T>()) }
    }

    /// [`SharedArray::store_vector`], not checked on a GPU.
    ///
    /// # Safety
    /// The vector is inside of the array, and `i` a multiple of its length.
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

    /// Writes a word of elements from `i` on, in one access. Traps past the end, or if `i` is not a multiple of the
    /// number of elements that a word has.
    #[inline(always)]
    #[track_caller]
    pub fn store_word<W: Word>(&self, i: usize, word: W) {
        Self::check_word::<W>(i);
        // SAFETY: just checked.
        unsafe { backend::shared_store(self.base, i * size_of::<T>(), word) }
    }

    /// [`SharedArray::store_word`], not checked on a GPU.
    ///
    /// # Safety
    /// The word is inside of the array, and `i` a multiple of the number of its elements.
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
    /// Of an array of vectors, element `i` of all that they have. Not checked on a GPU.
    ///
    /// # Safety
    /// The array has so many vectors.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_element_unchecked<T: Element<Vector = P>>(&self, i: usize) -> T {
        #[cfg(not(target_arch = "nvptx64"))]
        Self::check(i / P::LEN);
        // SAFETY: as promised by the caller.
        unsafe { backend::shared_load(self.base, i * size_of::<T>()) }
    }
}

/// `ROWS` rows of `COLUMNS` elements, each row followed by `PAD` elements that keep rows in different banks.
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

    /// The element at `row` and `column`. Outside of the tile it traps.
    #[inline(always)]
    #[track_caller]
    pub fn load(&self, row: usize, column: usize) -> T {
        // SAFETY: `offset` has checked both.
        unsafe { backend::shared_load(self.base, Self::offset(row, column)) }
    }

    /// Writes the element at `row` and `column`. Outside of the tile it traps.
    #[inline(always)]
    #[track_caller]
    pub fn store(&self, row: usize, column: usize, value: T) {
        // SAFETY: `offset` has checked both.
        unsafe { backend::shared_store(self.base, Self::offset(row, column), value) }
    }
}

/// The shared memory that the launch asks for beside the kernel's arrays, as elements of `T`.
#[derive(Clone, Copy)]
pub struct DynamicShared<T> {
    base: backend::SharedAddress,
    len: usize,
    elements: PhantomData<T>,
}

/// All of the launch's dynamic shared memory, as elements of `T`.
#[inline(always)]
pub fn dynamic_shared<T: Plain>() -> DynamicShared<T> {
    let (base, bytes) = backend::shared_dynamic();
    DynamicShared { base, len: bytes / size_of::<T>(), elements: PhantomData }
}

impl<T: Plain> DynamicShared<T> {
    /// How many elements the launch gave.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the launch gave none.
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

    /// The element at `i`. Past the end it traps.
    #[inline(always)]
    #[track_caller]
    pub fn load(&self, i: usize) -> T {
        self.check(i);
        // SAFETY: just checked.
        unsafe { backend::shared_load(self.base, i * size_of::<T>()) }
    }

    /// Writes the element at `i`. Past the end it traps.
    #[inline(always)]
    #[track_caller]
    pub fn store(&self, i: usize, value: T) {
        self.check(i);
        // SAFETY: just checked.
        unsafe { backend::shared_store(self.base, i * size_of::<T>(), value) }
    }
}
