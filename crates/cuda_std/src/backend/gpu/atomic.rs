//! Atomic operations, by PTX instructions.

use core::arch::asm;

/// Read-modify-write operations on global memory.
macro_rules! atomics {
    ($($name:ident: $type:ty, $reg:ident, $op:literal;)*) => {$(
        /// # Safety
        /// `pointer` is valid for reads and writes of the type on this device, and aligned.
        #[inline(always)]
        pub(crate) unsafe fn $name(pointer: *mut $type, operand: $type, scope: crate::atomic::Scope) -> $type {
            use crate::atomic::Scope;
            let before: $type;
            // SAFETY: as promised by the caller.
            unsafe {
                match scope {
                    Scope::Block => asm!(
                        concat!("atom.relaxed.cta.", $op, " {}, [{}], {};"),
                        out($reg) before, in(reg64) pointer, in($reg) operand,
                        options(nostack),
                    ),
                    Scope::Device => asm!(
                        concat!("atom.relaxed.gpu.", $op, " {}, [{}], {};"),
                        out($reg) before, in(reg64) pointer, in($reg) operand,
                        options(nostack),
                    ),
                    Scope::System => asm!(
                        concat!("atom.relaxed.sys.", $op, " {}, [{}], {};"),
                        out($reg) before, in(reg64) pointer, in($reg) operand,
                        options(nostack),
                    ),
                }
            }
            before
        }
    )*};
}

atomics! {
    atomic_inc_u32: u32, reg32, "inc.u32";
    atomic_add_u32: u32, reg32, "add.u32";
    atomic_min_u32: u32, reg32, "min.u32";
    atomic_max_u32: u32, reg32, "max.u32";
    atomic_add_i32: i32, reg32, "add.s32";
    atomic_min_i32: i32, reg32, "min.s32";
    atomic_max_i32: i32, reg32, "max.s32";
    atomic_add_u64: u64, reg64, "add.u64";
    atomic_min_u64: u64, reg64, "min.u64";
    atomic_max_u64: u64, reg64, "max.u64";
    // Two's complement: signed and unsigned sums have the same bits.
    atomic_add_i64: i64, reg64, "add.u64";
    atomic_min_i64: i64, reg64, "min.s64";
    atomic_max_i64: i64, reg64, "max.s64";
}

macro_rules! compare_and_swaps {
    ($($name:ident: $type:ty, $reg:ident, $op:literal;)*) => {$(
        /// # Safety
        /// `pointer` is valid for reads and writes of the type on this device, and aligned.
        #[inline(always)]
        pub(crate) unsafe fn $name(
            pointer: *mut $type,
            expected: $type,
            new: $type,
            scope: crate::atomic::Scope,
        ) -> $type {
            use crate::atomic::Scope;
            let before: $type;
            // SAFETY: as promised by the caller.
            unsafe {
                match scope {
                    Scope::Block => asm!(
                        concat!("atom.relaxed.cta.cas.", $op, " {}, [{}], {}, {};"),
                        out($reg) before, in(reg64) pointer, in($reg) expected, in($reg) new,
                        options(nostack),
                    ),
                    Scope::Device => asm!(
                        concat!("atom.relaxed.gpu.cas.", $op, " {}, [{}], {}, {};"),
                        out($reg) before, in(reg64) pointer, in($reg) expected, in($reg) new,
                        options(nostack),
                    ),
                    Scope::System => asm!(
                        concat!("atom.relaxed.sys.cas.", $op, " {}, [{}], {}, {};"),
                        out($reg) before, in(reg64) pointer, in($reg) expected, in($reg) new,
                        options(nostack),
                    ),
                }
            }
            before
        }
    )*};
}

compare_and_swaps! {
    atomic_cas_u32: u32, reg32, "b32";
    atomic_cas_i32: i32, reg32, "b32";
    atomic_cas_u64: u64, reg64, "b64";
    atomic_cas_i64: i64, reg64, "b64";
}

/// `fence.acq_rel`.
#[inline(always)]
pub(crate) fn fence_acquire_release(scope: crate::atomic::Scope) {
    use crate::atomic::Scope;
    // SAFETY: orders memory accesses and makes none.
    unsafe {
        match scope {
            Scope::Block => asm!("fence.acq_rel.cta;", options(nostack, preserves_flags)),
            Scope::Device => asm!("fence.acq_rel.gpu;", options(nostack, preserves_flags)),
            Scope::System => asm!("fence.acq_rel.sys;", options(nostack, preserves_flags)),
        }
    }
}
