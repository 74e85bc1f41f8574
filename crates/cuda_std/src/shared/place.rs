//! Elements of shared memory as places: `*array.add(i) = value`, as kernels for Rust-CUDA write it.

use core::cell::OnceCell;
use core::marker::PhantomData;
use core::mem::size_of;
use core::ops::{Deref, DerefMut};

use super::{DynamicShared, SharedArray};
use crate::backend;
use crate::element::Plain;

impl<T: Plain, const LEN: usize> SharedArray<T, LEN> {
    /// Element `i` as a place: `*array.add(i) = value` stores, and `*array.add(i)` loads. Traps past the end.
    ///
    /// In Rust-CUDA the array is a raw pointer. Here the executor has to see the accesses: see [`SharedPlace`].
    #[allow(clippy::should_implement_trait, reason = "the name is that of pointers")]
    #[inline(always)]
    #[track_caller]
    pub fn add(self, i: usize) -> SharedPlace<T> {
        Self::check(i);
        SharedPlace::new(self.base, i * size_of::<T>())
    }
}

impl<T: Plain> DynamicShared<T> {
    /// Element `i` as a place: see [`SharedArray::add`]. Traps past the end.
    #[allow(clippy::should_implement_trait, reason = "the name is that of pointers")]
    #[inline(always)]
    #[track_caller]
    pub fn add(self, i: usize) -> SharedPlace<T> {
        self.check(i);
        SharedPlace::new(self.base, i * size_of::<T>())
    }
}

/// An element of shared memory, for one statement.
///
/// The place loads the element when it is first read, and stores it when the place is dropped, which is at the end of
/// the statement that has made it. So `*array.add(i) += *array.add(j)` has the same effect as with pointers. A place
/// that is kept in a variable would store too late, and read an old value: a launch in the executor ends with a fault
/// if the thread has waited for others in between.
pub struct SharedPlace<T: Plain> {
    base: backend::SharedAddress,
    offset: usize,
    value: OnceCell<T>,
    /// Whether the value may have changed.
    is_changed: bool,
    /// The thread's waits when the place was made.
    waits: u32,
    location: backend::SourceLocation,
    /// A place is not `Send`: it belongs to one thread.
    thread: PhantomData<*mut T>,
}

impl<T: Plain> SharedPlace<T> {
    /// The caller has checked that the offset is inside the array, and aligned.
    #[inline(always)]
    #[track_caller]
    fn new(base: backend::SharedAddress, offset: usize) -> Self {
        Self {
            base,
            offset,
            value: OnceCell::new(),
            is_changed: false,
            waits: backend::waits(),
            location: backend::caller_location(),
            thread: PhantomData,
        }
    }
}

impl<T: Plain> Deref for SharedPlace<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        let Self { base, offset, location, .. } = *self;
        backend::check_waits(location, self.waits, "this element");
        // SAFETY: `new` got a checked offset.
        self.value.get_or_init(|| unsafe { backend::shared_load_at(location, base, offset) })
    }
}

impl<T: Plain> DerefMut for SharedPlace<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        let Self { base, offset, .. } = *self;
        self.is_changed = true;
        // `*place = value` does not read it: the load is not reported, and a GPU's compiler drops it.
        // SAFETY: `new` got a checked offset.
        self.value.get_or_init(|| unsafe { backend::shared_peek(base, offset) });
        match self.value.get_mut() {
            Some(value) => value,
            None => unreachable!("just initialized"),
        }
    }
}

impl<T: Plain> Drop for SharedPlace<T> {
    #[inline(always)]
    fn drop(&mut self) {
        let Self { base, offset, location, .. } = *self;
        if self.is_changed
            && let Some(&value) = self.value.get()
        {
            backend::check_waits(location, self.waits, "the store of this element");
            // SAFETY: `new` got a checked offset.
            unsafe { backend::shared_store_at(location, base, offset, value) }
        }
    }
}
