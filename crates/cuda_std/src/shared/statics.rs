//! Statics in shared memory, as kernels for Rust-CUDA declare them.

use core::marker::PhantomData;
use core::mem::{MaybeUninit, size_of};
use core::ops::Index;
use core::ptr::{self, NonNull};

use crate::backend;
use crate::element::Plain;
use crate::pieces;

/// What [`address_space(shared)`](macro@crate::address_space) makes of a static: an array of the block, uninitialized
/// until a thread writes it.
///
/// `TILE[i]` is a [`SharedSlot`]. It is checked, and the executor sees its accesses, as those of a
/// [`SharedArray`](super::SharedArray). So no access needs `unsafe`.
///
/// ```
/// use core::mem::MaybeUninit;
/// use cuda_std::address_space;
/// use cuda_std::prelude::*;
///
/// #[address_space(shared)]
/// static mut TILE: [MaybeUninit<f32>; 64] = [MaybeUninit::uninit(); 64];
///
/// /// Reverses 64 numbers.
/// #[kernel]
/// pub fn reverse(input: Global<f32>, output: GlobalMut<f32>) {
///     let i = thread::thread_idx_x() as usize;
///     TILE[i].write(input.load(i));
///     thread::sync_threads();
///     output.store(i, TILE[63 - i].assume_init());
/// }
/// # fn main() {}
/// ```
///
/// It has no address, so a pointer to it does not compile:
///
/// ```compile_fail,E0745
/// # use core::mem::MaybeUninit;
/// # use cuda_std::address_space;
/// #[address_space(shared)]
/// static mut TILE: [MaybeUninit<f32>; 64] = [MaybeUninit::uninit(); 64];
/// let pointer = &raw mut TILE as *mut f32;
/// ```
pub struct SharedStatic<A, const ID: u64> {
    array: PhantomData<*mut A>,
    location: backend::SourceLocation,
}

/// A part of a [`SharedStatic`]: an element, or an array of elements, which has its own slots.
///
/// A slot is not memory and has no address: a reference to it holds a position in the block's shared memory.
pub struct SharedSlot<E> {
    /// A slot is not `Send`: it belongs to the threads of a block.
    contents: PhantomData<*mut E>,
    /// Its length is the slot's position in bytes.
    position: [()],
}

/// The contents of a static in shared memory: `MaybeUninit` of plain data, or arrays of them.
pub trait SharedContents: sealed::Sealed {
    /// The size of an element in bytes.
    #[doc(hidden)]
    const ELEMENT: usize;
}

mod sealed {
    pub trait Sealed {}
    impl<T> Sealed for core::mem::MaybeUninit<T> {}
    impl<E, const LEN: usize> Sealed for [E; LEN] {}
}

impl<T: Plain> SharedContents for MaybeUninit<T> {
    const ELEMENT: usize = size_of::<T>();
}

impl<E: SharedContents, const LEN: usize> SharedContents for [E; LEN] {
    const ELEMENT: usize = E::ELEMENT;
}

impl<A: SharedContents, const ID: u64> SharedStatic<A, ID> {
    /// For [`address_space`](macro@crate::address_space).
    #[doc(hidden)]
    #[allow(clippy::new_without_default, reason = "it needs its caller's location")]
    #[inline(always)]
    #[track_caller]
    pub const fn new() -> Self {
        Self { array: PhantomData, location: backend::caller_location() }
    }
}

impl<E: SharedContents, const LEN: usize, const ID: u64> Index<usize> for SharedStatic<[E; LEN], ID> {
    type Output = SharedSlot<E>;

    /// Traps past the end.
    #[inline(always)]
    #[track_caller]
    fn index(&self, i: usize) -> &SharedSlot<E> {
        check(i, LEN);
        let base = backend::shared_static::<[E; LEN], ID>(self.location, E::ELEMENT);
        SharedSlot::at(backend::shared_position(base) + i * size_of::<E>())
    }
}

impl<E: SharedContents, const LEN: usize> Index<usize> for SharedSlot<[E; LEN]> {
    type Output = SharedSlot<E>;

    /// Traps past the end.
    #[inline(always)]
    #[track_caller]
    fn index(&self, i: usize) -> &SharedSlot<E> {
        check(i, LEN);
        SharedSlot::at(self.position.len() + i * size_of::<E>())
    }
}

#[inline(always)]
#[track_caller]
fn check(i: usize, len: usize) {
    if i >= len {
        backend::out_of_bounds("a static in shared memory", i, len);
    }
}

impl<E> SharedSlot<E> {
    /// The slot at a position that `Index` has checked. Only `Index` of a block's own array makes one.
    #[inline(always)]
    fn at<'a>(position: usize) -> &'a Self {
        let slot = ptr::slice_from_raw_parts(NonNull::<()>::dangling().as_ptr(), position) as *const Self;
        // SAFETY: a slot has no bytes, whatever its length: any address that is not null is one.
        unsafe { &*slot }
    }
}

impl<T: Plain> SharedSlot<MaybeUninit<T>> {
    /// Stores the element. As `MaybeUninit::write`, except for its result.
    #[inline(always)]
    #[track_caller]
    pub fn write(&self, value: T) {
        // SAFETY: `at` got the position of an element. It is aligned, because the array is, and it is inside the
        // shared memory of any block of this launch.
        unsafe { pieces::shared_store(backend::shared_at(self.position.len()), 0, value) }
    }

    /// Loads the element. As `MaybeUninit::assume_init`, but safe: any bits are a `T`, and the executor reports an
    /// element that no thread has written.
    #[inline(always)]
    #[track_caller]
    pub fn assume_init(&self) -> T {
        // SAFETY: as in `write`.
        unsafe { pieces::shared_load(backend::shared_at(self.position.len()), 0) }
    }

    /// [`SharedSlot::assume_init`], under its other name.
    #[inline(always)]
    #[track_caller]
    pub fn assume_init_read(&self) -> T {
        self.assume_init()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Miri accepts references to slots at positions that no allocation has.
    #[test]
    fn a_slot_is_a_position() {
        for position in [0, 12, 1 << 20, usize::MAX] {
            let slot = SharedSlot::<[MaybeUninit<f32>; 3]>::at(position);
            assert_eq!((slot.position.len(), size_of_val(slot)), (position, 0));
        }
        assert_eq!(SharedSlot::<[MaybeUninit<f32>; 3]>::at(24)[2].position.len(), 32);
    }
}
