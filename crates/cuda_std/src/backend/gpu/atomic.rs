//! Atomic operations, by PTX instructions.

use core::arch::asm;

use super::SharedAddress;
use crate::atomic::{Order, Scope};

/// One `asm!` for each order and scope. Both are constants at the call, so the compiler keeps one.
macro_rules! ordered {
    (
        $instruction:literal, $order:expr, $scope:expr, [$($name:ident $orders:literal),*], $rest:literal, $operands:tt
    ) => {
        match ($order, $scope) {
            $(
                (Order::$name, Scope::Block) => {
                    ordered!(@ concat!($instruction, ".", $orders, ".cta.", $rest), $operands)
                }
                (Order::$name, Scope::Device) => {
                    ordered!(@ concat!($instruction, ".", $orders, ".gpu.", $rest), $operands)
                }
                (Order::$name, Scope::System) => {
                    ordered!(@ concat!($instruction, ".", $orders, ".sys.", $rest), $operands)
                }
            )*
            #[allow(unreachable_patterns)]
            _ => super::trap(),
        }
    };
    (@ $template:expr, ($($operand:tt)*)) => { asm!($template, $($operand)*) };
}

macro_rules! atom {
    ($order:expr, $scope:expr, $rest:literal, $operands:tt) => {
        ordered!(
            "atom",
            $order,
            $scope,
            [Relaxed "relaxed", Acquire "acquire", Release "release", AcquireRelease "acq_rel"],
            $rest,
            $operands
        )
    };
}

/// Read-modify-write operations on global memory.
macro_rules! atomics {
    ($($name:ident: $type:ty, $reg:ident, $op:literal;)*) => {$(
        /// # Safety
        /// `pointer` is valid for reads and writes of the type on this device, aligned, and not to local memory.
        #[inline(always)]
        pub(crate) unsafe fn $name(pointer: *mut $type, operand: $type, order: Order, scope: Scope) -> $type {
            let before: $type;
            // SAFETY: as promised by the caller.
            unsafe {
                atom!(
                    order, scope, $op,
                    (out($reg) before, in(reg64) pointer, in($reg) operand, options(nostack))
                );
            }
            before
        }
    )*};
}

atomics! {
    atomic_inc_u32: u32, reg32, "inc.u32 {}, [{}], {};";
    atomic_dec_u32: u32, reg32, "dec.u32 {}, [{}], {};";
    atomic_add_u32: u32, reg32, "add.u32 {}, [{}], {};";
    atomic_min_u32: u32, reg32, "min.u32 {}, [{}], {};";
    atomic_max_u32: u32, reg32, "max.u32 {}, [{}], {};";
    atomic_add_i32: i32, reg32, "add.s32 {}, [{}], {};";
    atomic_min_i32: i32, reg32, "min.s32 {}, [{}], {};";
    atomic_max_i32: i32, reg32, "max.s32 {}, [{}], {};";
    atomic_add_u64: u64, reg64, "add.u64 {}, [{}], {};";
    atomic_min_u64: u64, reg64, "min.u64 {}, [{}], {};";
    atomic_max_u64: u64, reg64, "max.u64 {}, [{}], {};";
    // Two's complement: signed and unsigned sums have the same bits.
    atomic_add_i64: i64, reg64, "add.u64 {}, [{}], {};";
    atomic_min_i64: i64, reg64, "min.s64 {}, [{}], {};";
    atomic_max_i64: i64, reg64, "max.s64 {}, [{}], {};";
    atomic_and_u32: u32, reg32, "and.b32 {}, [{}], {};";
    atomic_or_u32: u32, reg32, "or.b32 {}, [{}], {};";
    atomic_xor_u32: u32, reg32, "xor.b32 {}, [{}], {};";
    atomic_exch_u32: u32, reg32, "exch.b32 {}, [{}], {};";
    atomic_and_u64: u64, reg64, "and.b64 {}, [{}], {};";
    atomic_or_u64: u64, reg64, "or.b64 {}, [{}], {};";
    atomic_xor_u64: u64, reg64, "xor.b64 {}, [{}], {};";
    atomic_exch_u64: u64, reg64, "exch.b64 {}, [{}], {};";
    atomic_add_f32: f32, reg32, "add.f32 {}, [{}], {};";
    atomic_add_f64: f64, reg64, "add.f64 {}, [{}], {};";
}

macro_rules! compare_and_swaps {
    ($($name:ident: $type:ty, $reg:ident, $op:literal;)*) => {$(
        /// # Safety
        /// `pointer` is valid for reads and writes of the type on this device, aligned, and not to local memory.
        #[inline(always)]
        pub(crate) unsafe fn $name(
            pointer: *mut $type,
            expected: $type,
            new: $type,
            order: Order,
            scope: Scope,
        ) -> $type {
            let before: $type;
            // SAFETY: as promised by the caller.
            unsafe {
                atom!(
                    order, scope, $op,
                    (out($reg) before, in(reg64) pointer, in($reg) expected, in($reg) new, options(nostack))
                );
            }
            before
        }
    )*};
}

compare_and_swaps! {
    atomic_cas_u32: u32, reg32, "cas.b32 {}, [{}], {}, {};";
    atomic_cas_i32: i32, reg32, "cas.b32 {}, [{}], {}, {};";
    atomic_cas_u64: u64, reg64, "cas.b64 {}, [{}], {}, {};";
    atomic_cas_i64: i64, reg64, "cas.b64 {}, [{}], {}, {};";
}

/// Read-modify-write operations on shared memory, which order no other access.
macro_rules! shared_atomics {
    ($($name:ident: $type:ty, $reg:ident, $op:literal;)*) => {$(
        /// # Safety
        /// `base + offset` is inside a shared array of this block, and a multiple of the type's size.
        #[inline(always)]
        pub(crate) unsafe fn $name(base: SharedAddress, offset: usize, operand: $type) -> $type {
            let before: $type;
            // SAFETY: as promised by the caller.
            unsafe {
                asm!(
                    concat!("atom.relaxed.cta.shared.", $op, " {}, [{}], {};"),
                    out($reg) before, in(reg32) base.wrapping_add(offset as u32), in($reg) operand,
                    options(nostack)
                );
            }
            before
        }
    )*};
}

shared_atomics! {
    shared_add_u32: u32, reg32, "add.u32";
    shared_min_u32: u32, reg32, "min.u32";
    shared_max_u32: u32, reg32, "max.u32";
    shared_and_u32: u32, reg32, "and.b32";
    shared_or_u32: u32, reg32, "or.b32";
    shared_xor_u32: u32, reg32, "xor.b32";
    shared_exchange_u32: u32, reg32, "exch.b32";
    shared_add_i32: i32, reg32, "add.s32";
    shared_min_i32: i32, reg32, "min.s32";
    shared_max_i32: i32, reg32, "max.s32";
    shared_and_i32: i32, reg32, "and.b32";
    shared_or_i32: i32, reg32, "or.b32";
    shared_xor_i32: i32, reg32, "xor.b32";
    shared_exchange_i32: i32, reg32, "exch.b32";
    shared_add_u64: u64, reg64, "add.u64";
    shared_min_u64: u64, reg64, "min.u64";
    shared_max_u64: u64, reg64, "max.u64";
    shared_and_u64: u64, reg64, "and.b64";
    shared_or_u64: u64, reg64, "or.b64";
    shared_xor_u64: u64, reg64, "xor.b64";
    shared_exchange_u64: u64, reg64, "exch.b64";
    shared_add_i64: i64, reg64, "add.u64";
    shared_min_i64: i64, reg64, "min.s64";
    shared_max_i64: i64, reg64, "max.s64";
    shared_and_i64: i64, reg64, "and.b64";
    shared_or_i64: i64, reg64, "or.b64";
    shared_xor_i64: i64, reg64, "xor.b64";
    shared_exchange_i64: i64, reg64, "exch.b64";
    shared_add_f32: f32, reg32, "add.f32";
    shared_exchange_f32: f32, reg32, "exch.b32";
    shared_add_f64: f64, reg64, "add.f64";
    shared_exchange_f64: f64, reg64, "exch.b64";
}

macro_rules! shared_compare_and_swaps {
    ($($name:ident: $type:ty, $reg:ident, $op:literal;)*) => {$(
        /// # Safety
        /// `base + offset` is inside a shared array of this block, and a multiple of the type's size.
        #[inline(always)]
        pub(crate) unsafe fn $name(base: SharedAddress, offset: usize, expected: $type, new: $type) -> $type {
            let before: $type;
            // SAFETY: as promised by the caller.
            unsafe {
                asm!(
                    concat!("atom.relaxed.cta.shared.", $op, " {}, [{}], {}, {};"),
                    out($reg) before, in(reg32) base.wrapping_add(offset as u32), in($reg) expected, in($reg) new,
                    options(nostack)
                );
            }
            before
        }
    )*};
}

shared_compare_and_swaps! {
    shared_cas_u32: u32, reg32, "cas.b32";
    shared_cas_i32: i32, reg32, "cas.b32";
    shared_cas_u64: u64, reg64, "cas.b64";
    shared_cas_i64: i64, reg64, "cas.b64";
}

macro_rules! loads_and_stores {
    ($($load:ident, $store:ident: $type:ty, $reg:ident, $load_op:literal, $store_op:literal;)*) => {$(
        /// Loads by `ld.relaxed` or `ld.acquire`.
        ///
        /// # Safety
        /// `pointer` is valid for reads and writes of the type on this device, and aligned.
        #[inline(always)]
        pub(crate) unsafe fn $load(pointer: *mut $type, order: Order, scope: Scope) -> $type {
            let value: $type;
            // SAFETY: as promised by the caller.
            unsafe {
                ordered!(
                    "ld", order, scope, [Relaxed "relaxed", Acquire "acquire"], $load_op,
                    (out($reg) value, in(reg64) pointer, options(nostack))
                );
            }
            value
        }

        /// Stores by `st.relaxed` or `st.release`.
        ///
        /// # Safety
        /// As for the load.
        #[inline(always)]
        pub(crate) unsafe fn $store(pointer: *mut $type, value: $type, order: Order, scope: Scope) {
            // SAFETY: as promised by the caller.
            unsafe {
                ordered!(
                    "st", order, scope, [Relaxed "relaxed", Release "release"], $store_op,
                    (in(reg64) pointer, in($reg) value, options(nostack))
                );
            }
        }
    )*};
}

loads_and_stores! {
    atomic_load_u32, atomic_store_u32: u32, reg32, "b32 {}, [{}];", "b32 [{}], {};";
    atomic_load_u64, atomic_store_u64: u64, reg64, "b64 {}, [{}];", "b64 [{}], {};";
}

/// Whether an address is in the thread's local memory, where PTX has no atomic operations.
#[inline(always)]
pub(crate) fn is_private<T>(pointer: *const T) -> bool {
    let is_local: u32;
    // SAFETY: examines the address; accesses no memory.
    unsafe {
        asm!(
            "{{",
            ".reg .pred local;",
            "isspacep.local local, {pointer};",
            "selp.u32 {is_local}, 1, 0, local;",
            "}}",
            pointer = in(reg64) pointer, is_local = out(reg32) is_local,
            options(pure, nomem, nostack)
        );
    }
    is_local != 0
}

/// `fence.acq_rel`.
#[inline(always)]
pub(crate) fn fence_acquire_release(scope: Scope) {
    // SAFETY: orders memory accesses and makes none.
    unsafe {
        match scope {
            Scope::Block => asm!("fence.acq_rel.cta;", options(nostack, preserves_flags)),
            Scope::Device => asm!("fence.acq_rel.gpu;", options(nostack, preserves_flags)),
            Scope::System => asm!("fence.acq_rel.sys;", options(nostack, preserves_flags)),
        }
    }
}
