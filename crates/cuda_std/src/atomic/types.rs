//! Atomic types with a scope in their names, as in Rust-CUDA.

use core::cell::UnsafeCell;
use core::fmt;
use core::sync::atomic::Ordering;

use super::{Order, Scope};
use crate::backend;
use crate::global::GlobalMut;

/// The order of a read-modify-write. A sequentially consistent one is an acquire-release with a fence before it.
#[inline(always)]
fn order_of(ordering: Ordering, scope: Scope) -> Order {
    match ordering {
        Ordering::Relaxed => Order::Relaxed,
        Ordering::Acquire => Order::Acquire,
        Ordering::Release => Order::Release,
        Ordering::AcqRel => Order::AcquireRelease,
        _ => {
            match scope {
                Scope::Block => backend::fence_block(),
                Scope::Device => backend::fence_device(),
                Scope::System => backend::fence_system(),
            }
            Order::AcquireRelease
        }
    }
}

/// The order of a load.
#[inline(always)]
#[track_caller]
fn order_of_load(ordering: Ordering, scope: Scope) -> Order {
    match ordering {
        Ordering::Release | Ordering::AcqRel => panic!("a load is relaxed, acquires, or is sequentially consistent"),
        _ => match order_of(ordering, scope) {
            Order::Relaxed => Order::Relaxed,
            _ => Order::Acquire,
        },
    }
}

/// The order of a store.
#[inline(always)]
#[track_caller]
fn order_of_store(ordering: Ordering, scope: Scope) -> Order {
    match ordering {
        Ordering::Acquire | Ordering::AcqRel => panic!("a store is relaxed, releases, or is sequentially consistent"),
        _ => match order_of(ordering, scope) {
            Order::Relaxed => Order::Relaxed,
            _ => Order::Release,
        },
    }
}

macro_rules! from_bits {
    (f32, $bits:expr) => {
        f32::from_bits($bits)
    };
    (f64, $bits:expr) => {
        f64::from_bits($bits)
    };
    ($type:ident, $bits:expr) => {
        $bits as $type
    };
}

macro_rules! to_bits {
    (f32, $value:expr) => {
        f32::to_bits($value)
    };
    (f64, $value:expr) => {
        f64::to_bits($value)
    };
    (i32, $value:expr) => {
        $value as u32
    };
    (i64, $value:expr) => {
        $value as u64
    };
    ($type:ident, $value:expr) => {
        $value
    };
}

/// The type, with the methods that all numbers have.
macro_rules! atomic {
    (
        $name:ident, $type:ident, $bits:ident, $scope:ident, $threads:literal,
        $load:ident, $store:ident, $exchange:ident
    ) => {
        #[doc = concat!("A `", stringify!($type), "` that ", $threads, " may change at the same time.")]
        #[repr(transparent)]
        pub struct $name {
            value: UnsafeCell<$type>,
        }

        // SAFETY: it is accessed only by atomic operations, except in local memory, which belongs to one thread.
        unsafe impl Sync for $name {}

        impl $name {
            /// An atomic number.
            #[inline(always)]
            pub const fn new(value: $type) -> Self {
                Self { value: UnsafeCell::new(value) }
            }

            /// The number at `i` of a view. Traps outside the view.
            #[inline(always)]
            #[track_caller]
            pub fn of<'a>(view: &GlobalMut<'a, $type>, i: usize) -> &'a Self {
                // SAFETY: `pointer` has checked the index, and the view's memory lives for `'a`, is aligned, and is
                // accessed only through views and atomics.
                unsafe { Self::from_ptr(view.pointer(i)) }
            }

            /// The number at an address.
            ///
            /// # Safety
            /// For `'a` the address is aligned, valid for reads and writes, and accessed only through views and
            /// atomics.
            #[inline(always)]
            pub unsafe fn from_ptr<'a>(pointer: *mut $type) -> &'a Self {
                // SAFETY: as promised by the caller; the type is transparent.
                unsafe { &*pointer.cast() }
            }

            /// The number, taken out of an atomic that no other thread can reach.
            #[inline(always)]
            pub fn into_inner(self) -> $type {
                self.value.into_inner()
            }

            /// The address of the number.
            #[inline(always)]
            pub const fn as_ptr(&self) -> *mut $type {
                self.value.get()
            }

            /// Loads the number. Panics if `ordering` releases.
            #[inline(always)]
            #[track_caller]
            pub fn load(&self, ordering: Ordering) -> $type {
                let (pointer, order) = (self.value.get(), order_of_load(ordering, Scope::$scope));
                if backend::is_private(pointer) {
                    // SAFETY: the address of a living number in this thread's local memory.
                    return unsafe { pointer.read() };
                }
                // SAFETY: the address of a living number, not in local memory, and accessed only by atomic operations.
                let bits = unsafe { backend::$load(pointer.cast(), order, Scope::$scope) };
                from_bits!($type, bits)
            }

            /// Stores a number. Panics if `ordering` acquires.
            #[inline(always)]
            #[track_caller]
            pub fn store(&self, value: $type, ordering: Ordering) {
                let (pointer, order) = (self.value.get(), order_of_store(ordering, Scope::$scope));
                if backend::is_private(pointer) {
                    // SAFETY: the address of a living number in this thread's local memory.
                    return unsafe { pointer.write(value) };
                }
                // SAFETY: the address of a living number, not in local memory, and accessed only by atomic operations.
                unsafe { backend::$store(pointer.cast(), to_bits!($type, value), order, Scope::$scope) }
            }

            /// Stores a number, and returns the old value.
            #[inline(always)]
            #[track_caller]
            pub fn swap(&self, value: $type, ordering: Ordering) -> $type {
                let pointer = self.value.get();
                if backend::is_private(pointer) {
                    return self.update_private(|_| value);
                }
                let (order, bits) = (order_of(ordering, Scope::$scope), to_bits!($type, value));
                // SAFETY: as for `load`.
                let bits = unsafe { backend::$exchange(pointer.cast(), bits, order, Scope::$scope) };
                from_bits!($type, bits)
            }

            /// Updates the number, which is in this thread's local memory, and returns the old value.
            #[inline(always)]
            fn update_private(&self, after: impl FnOnce($type) -> $type) -> $type {
                let pointer = self.value.get();
                // SAFETY: the address of a living number, which no other thread can access.
                unsafe {
                    let before = pointer.read();
                    pointer.write(after(before));
                    before
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new(Default::default())
            }
        }

        impl From<$type> for $name {
            fn from(value: $type) -> Self {
                Self::new(value)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.load(Ordering::Relaxed).fmt(f)
            }
        }
    };
}

/// The operand as the backend takes it: a number, its bits, or its negation.
macro_rules! operand {
    (number, $type:ident, $value:expr) => {
        $value
    };
    (negation, f32, $value:expr) => {
        -$value
    };
    (negation, f64, $value:expr) => {
        -$value
    };
    (negation, $type:ident, $value:expr) => {
        $value.wrapping_neg()
    };
    (bits, $type:ident, $value:expr) => {
        to_bits!($type, $value)
    };
}

/// The backend's result as a number.
macro_rules! result {
    (bits, $type:ident, $before:expr) => {
        from_bits!($type, $before)
    };
    ($kind:ident, $type:ident, $before:expr) => {
        $before
    };
}

/// Methods that replace the number by a function of it and an operand.
macro_rules! methods {
    ($name:ident, $type:ident, $scope:ident: $($(#[$doc:meta])* $method:ident = $backend:ident of $operand:ident,
        |$before:ident, $value:ident| $after:expr;)*) => {
        impl $name {$(
            $(#[$doc])*
            #[inline(always)]
            #[track_caller]
            pub fn $method(&self, value: $type, ordering: Ordering) -> $type {
                let pointer = self.value.get();
                if backend::is_private(pointer) {
                    let $value = value;
                    return self.update_private(|$before| $after);
                }
                let (order, operand) = (order_of(ordering, Scope::$scope), operand!($operand, $type, value));
                // SAFETY: the address of a living number, not in local memory, and accessed only by atomic operations.
                let before = unsafe { backend::$backend(pointer.cast(), operand, order, Scope::$scope) };
                result!($operand, $type, before)
            }
        )*}
    };
}

macro_rules! integers {
    ($($name:ident: $type:ident as $bits:ident, $scope:ident, $threads:literal,
        [$load:ident, $store:ident, $exchange:ident, $and:ident, $or:ident, $xor:ident],
        [$add:ident, $min:ident, $max:ident, $cas:ident];)*) => {$(
        atomic!($name, $type, $bits, $scope, $threads, $load, $store, $exchange);

        methods! { $name, $type, $scope:
            /// Adds, wrapping, and returns the old value.
            fetch_add = $add of number, |before, value| before.wrapping_add(value);
            /// Subtracts, wrapping, and returns the old value.
            fetch_sub = $add of negation, |before, value| before.wrapping_sub(value);
            /// Stores the minimum, and returns the old value.
            fetch_min = $min of number, |before, value| if value < before { value } else { before };
            /// Stores the maximum, and returns the old value.
            fetch_max = $max of number, |before, value| if value > before { value } else { before };
            /// Combines by bitwise AND, and returns the old value.
            fetch_and = $and of bits, |before, value| before & value;
            /// Combines by bitwise OR, and returns the old value.
            fetch_or = $or of bits, |before, value| before | value;
            /// Combines by bitwise XOR, and returns the old value.
            fetch_xor = $xor of bits, |before, value| before ^ value;
        }

        impl $name {
            /// Stores `new` if the number is `current`. Returns the old value: `Ok` if `new` was stored.
            ///
            /// # Errors
            /// The old value, if it was not `current`. `_failure`, the ordering of that load, is unused: `success` is
            /// at least as strong.
            #[inline(always)]
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $type,
                new: $type,
                success: Ordering,
                _failure: Ordering,
            ) -> Result<$type, $type> {
                let pointer = self.value.get();
                let before = if backend::is_private(pointer) {
                    self.update_private(|before| if before == current { new } else { before })
                } else {
                    let order = order_of(success, Scope::$scope);
                    // SAFETY: the address of a living number, not in local memory, and accessed only by atomic
                    // operations.
                    unsafe { backend::$cas(pointer, current, new, order, Scope::$scope) }
                };
                if before == current { Ok(before) } else { Err(before) }
            }
        }
    )*};
}

integers! {
    AtomicU32: u32 as u32, Device, "the threads of a device",
        [atomic_load_u32, atomic_store_u32, atomic_exch_u32, atomic_and_u32, atomic_or_u32, atomic_xor_u32],
        [atomic_add_u32, atomic_min_u32, atomic_max_u32, atomic_cas_u32];
    AtomicI32: i32 as u32, Device, "the threads of a device",
        [atomic_load_u32, atomic_store_u32, atomic_exch_u32, atomic_and_u32, atomic_or_u32, atomic_xor_u32],
        [atomic_add_i32, atomic_min_i32, atomic_max_i32, atomic_cas_i32];
    AtomicU64: u64 as u64, Device, "the threads of a device",
        [atomic_load_u64, atomic_store_u64, atomic_exch_u64, atomic_and_u64, atomic_or_u64, atomic_xor_u64],
        [atomic_add_u64, atomic_min_u64, atomic_max_u64, atomic_cas_u64];
    AtomicI64: i64 as u64, Device, "the threads of a device",
        [atomic_load_u64, atomic_store_u64, atomic_exch_u64, atomic_and_u64, atomic_or_u64, atomic_xor_u64],
        [atomic_add_i64, atomic_min_i64, atomic_max_i64, atomic_cas_i64];
    BlockAtomicU32: u32 as u32, Block, "the threads of a block",
        [atomic_load_u32, atomic_store_u32, atomic_exch_u32, atomic_and_u32, atomic_or_u32, atomic_xor_u32],
        [atomic_add_u32, atomic_min_u32, atomic_max_u32, atomic_cas_u32];
    BlockAtomicI32: i32 as u32, Block, "the threads of a block",
        [atomic_load_u32, atomic_store_u32, atomic_exch_u32, atomic_and_u32, atomic_or_u32, atomic_xor_u32],
        [atomic_add_i32, atomic_min_i32, atomic_max_i32, atomic_cas_i32];
    BlockAtomicU64: u64 as u64, Block, "the threads of a block",
        [atomic_load_u64, atomic_store_u64, atomic_exch_u64, atomic_and_u64, atomic_or_u64, atomic_xor_u64],
        [atomic_add_u64, atomic_min_u64, atomic_max_u64, atomic_cas_u64];
    BlockAtomicI64: i64 as u64, Block, "the threads of a block",
        [atomic_load_u64, atomic_store_u64, atomic_exch_u64, atomic_and_u64, atomic_or_u64, atomic_xor_u64],
        [atomic_add_i64, atomic_min_i64, atomic_max_i64, atomic_cas_i64];
    SystemAtomicU32: u32 as u32, System, "the threads of all devices and of the host",
        [atomic_load_u32, atomic_store_u32, atomic_exch_u32, atomic_and_u32, atomic_or_u32, atomic_xor_u32],
        [atomic_add_u32, atomic_min_u32, atomic_max_u32, atomic_cas_u32];
    SystemAtomicI32: i32 as u32, System, "the threads of all devices and of the host",
        [atomic_load_u32, atomic_store_u32, atomic_exch_u32, atomic_and_u32, atomic_or_u32, atomic_xor_u32],
        [atomic_add_i32, atomic_min_i32, atomic_max_i32, atomic_cas_i32];
    SystemAtomicU64: u64 as u64, System, "the threads of all devices and of the host",
        [atomic_load_u64, atomic_store_u64, atomic_exch_u64, atomic_and_u64, atomic_or_u64, atomic_xor_u64],
        [atomic_add_u64, atomic_min_u64, atomic_max_u64, atomic_cas_u64];
    SystemAtomicI64: i64 as u64, System, "the threads of all devices and of the host",
        [atomic_load_u64, atomic_store_u64, atomic_exch_u64, atomic_and_u64, atomic_or_u64, atomic_xor_u64],
        [atomic_add_i64, atomic_min_i64, atomic_max_i64, atomic_cas_i64];
}

macro_rules! counters {
    ($($name:ident, $scope:ident;)*) => {$(
        methods! { $name, u32, $scope:
            /// Adds 1, or stores 0 if the number is `last` or more, and returns the old value (`atomicInc`).
            fetch_inc = atomic_inc_u32 of number, |before, last| if before >= last { 0 } else { before + 1 };
            /// Subtracts 1, or stores `last` if the number is 0 or more than `last`, and returns the old value
            /// (`atomicDec`).
            fetch_dec = atomic_dec_u32 of number,
                |before, last| if before == 0 || before > last { last } else { before - 1 };
        }
    )*};
}

counters! {
    AtomicU32, Device;
    BlockAtomicU32, Block;
    SystemAtomicU32, System;
}

macro_rules! floats {
    ($($name:ident: $type:ident as $bits:ident, $scope:ident, $threads:literal,
        [$load:ident, $store:ident, $exchange:ident, $and:ident, $or:ident, $xor:ident], $add:ident;)*) => {$(
        atomic!($name, $type, $bits, $scope, $threads, $load, $store, $exchange);

        methods! { $name, $type, $scope:
            /// Adds, and returns the old value. Threads that add to one number do so in any order, so the sum's last
            /// bits may differ from run to run. On a GPU, `f32` additions in global memory flush subnormal numbers to
            /// zero.
            fetch_add = $add of number, |before, value| before + value;
            /// Adds the negation, and returns the old value: see `fetch_add`.
            fetch_sub = $add of negation, |before, value| before - value;
            /// Combines the bits by AND, and returns the old value.
            fetch_and = $and of bits, |before, value| $type::from_bits(before.to_bits() & value.to_bits());
            /// Combines the bits by OR, and returns the old value.
            fetch_or = $or of bits, |before, value| $type::from_bits(before.to_bits() | value.to_bits());
            /// Combines the bits by XOR, and returns the old value.
            fetch_xor = $xor of bits, |before, value| $type::from_bits(before.to_bits() ^ value.to_bits());
        }
    )*};
}

floats! {
    AtomicF32: f32 as u32, Device, "the threads of a device",
        [atomic_load_u32, atomic_store_u32, atomic_exch_u32, atomic_and_u32, atomic_or_u32, atomic_xor_u32],
        atomic_add_f32;
    AtomicF64: f64 as u64, Device, "the threads of a device",
        [atomic_load_u64, atomic_store_u64, atomic_exch_u64, atomic_and_u64, atomic_or_u64, atomic_xor_u64],
        atomic_add_f64;
    BlockAtomicF32: f32 as u32, Block, "the threads of a block",
        [atomic_load_u32, atomic_store_u32, atomic_exch_u32, atomic_and_u32, atomic_or_u32, atomic_xor_u32],
        atomic_add_f32;
    BlockAtomicF64: f64 as u64, Block, "the threads of a block",
        [atomic_load_u64, atomic_store_u64, atomic_exch_u64, atomic_and_u64, atomic_or_u64, atomic_xor_u64],
        atomic_add_f64;
    SystemAtomicF32: f32 as u32, System, "the threads of all devices and of the host",
        [atomic_load_u32, atomic_store_u32, atomic_exch_u32, atomic_and_u32, atomic_or_u32, atomic_xor_u32],
        atomic_add_f32;
    SystemAtomicF64: f64 as u64, System, "the threads of all devices and of the host",
        [atomic_load_u64, atomic_store_u64, atomic_exch_u64, atomic_and_u64, atomic_or_u64, atomic_xor_u64],
        atomic_add_f64;
}
