//! Reductions of a value over the lanes of a warp: `redux.sync` from sm_80 on, shuffles before.

use crate::backend;

/// The operation of [`warp_reduce`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarpReductionOp {
    /// The sum, wrapping.
    Add,
    /// The minimum.
    Min,
    /// The maximum.
    Max,
    /// AND of the bits.
    And,
    /// OR of the bits.
    Or,
    /// XOR of the bits.
    Xor,
}

/// The reduction of `value` over the lanes of the mask by `op`, which should be a constant.
#[inline(always)]
#[track_caller]
pub fn warp_reduce<T: WarpReduceValue>(mask: u32, value: T, op: WarpReductionOp) -> T {
    match op {
        WarpReductionOp::Add => T::reduce_add(mask, value),
        WarpReductionOp::Min => T::reduce_min(mask, value),
        WarpReductionOp::Max => T::reduce_max(mask, value),
        WarpReductionOp::And => T::reduce_and(mask, value),
        WarpReductionOp::Or => T::reduce_or(mask, value),
        WarpReductionOp::Xor => T::reduce_xor(mask, value),
    }
}

/// The sum over the lanes of the mask, wrapping.
#[inline(always)]
#[track_caller]
pub fn warp_reduce_add<T: WarpReduceValue>(mask: u32, value: T) -> T {
    T::reduce_add(mask, value)
}

/// The minimum over the lanes of the mask.
#[inline(always)]
#[track_caller]
pub fn warp_reduce_min<T: WarpReduceValue>(mask: u32, value: T) -> T {
    T::reduce_min(mask, value)
}

/// The maximum over the lanes of the mask.
#[inline(always)]
#[track_caller]
pub fn warp_reduce_max<T: WarpReduceValue>(mask: u32, value: T) -> T {
    T::reduce_max(mask, value)
}

/// AND over the lanes of the mask.
#[inline(always)]
#[track_caller]
pub fn warp_reduce_and<T: WarpReduceValue>(mask: u32, value: T) -> T {
    T::reduce_and(mask, value)
}

/// OR over the lanes of the mask.
#[inline(always)]
#[track_caller]
pub fn warp_reduce_or<T: WarpReduceValue>(mask: u32, value: T) -> T {
    T::reduce_or(mask, value)
}

/// XOR over the lanes of the mask.
#[inline(always)]
#[track_caller]
pub fn warp_reduce_xor<T: WarpReduceValue>(mask: u32, value: T) -> T {
    T::reduce_xor(mask, value)
}

mod private {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for i32 {}
}

/// A value that `redux.sync` combines: `u32` or `i32`.
pub trait WarpReduceValue: Copy + private::Sealed {
    /// The sum over the lanes of the mask, wrapping.
    fn reduce_add(mask: u32, value: Self) -> Self;
    /// The minimum over the lanes of the mask.
    fn reduce_min(mask: u32, value: Self) -> Self;
    /// The maximum over the lanes of the mask.
    fn reduce_max(mask: u32, value: Self) -> Self;
    /// AND over the lanes of the mask.
    fn reduce_and(mask: u32, value: Self) -> Self;
    /// OR over the lanes of the mask.
    fn reduce_or(mask: u32, value: Self) -> Self;
    /// XOR over the lanes of the mask.
    fn reduce_xor(mask: u32, value: Self) -> Self;
}

impl WarpReduceValue for u32 {
    #[inline(always)]
    #[track_caller]
    fn reduce_add(mask: u32, value: Self) -> Self {
        backend::reduce_add(mask, value)
    }
    #[inline(always)]
    #[track_caller]
    fn reduce_min(mask: u32, value: Self) -> Self {
        backend::reduce_min(mask, value)
    }
    #[inline(always)]
    #[track_caller]
    fn reduce_max(mask: u32, value: Self) -> Self {
        backend::reduce_max(mask, value)
    }
    #[inline(always)]
    #[track_caller]
    fn reduce_and(mask: u32, value: Self) -> Self {
        backend::reduce_and(mask, value)
    }
    #[inline(always)]
    #[track_caller]
    fn reduce_or(mask: u32, value: Self) -> Self {
        backend::reduce_or(mask, value)
    }
    #[inline(always)]
    #[track_caller]
    fn reduce_xor(mask: u32, value: Self) -> Self {
        backend::reduce_xor(mask, value)
    }
}

impl WarpReduceValue for i32 {
    #[inline(always)]
    #[track_caller]
    fn reduce_add(mask: u32, value: Self) -> Self {
        backend::reduce_add(mask, value as u32) as i32
    }
    #[inline(always)]
    #[track_caller]
    fn reduce_min(mask: u32, value: Self) -> Self {
        backend::reduce_min_signed(mask, value as u32) as i32
    }
    #[inline(always)]
    #[track_caller]
    fn reduce_max(mask: u32, value: Self) -> Self {
        backend::reduce_max_signed(mask, value as u32) as i32
    }
    #[inline(always)]
    #[track_caller]
    fn reduce_and(mask: u32, value: Self) -> Self {
        backend::reduce_and(mask, value as u32) as i32
    }
    #[inline(always)]
    #[track_caller]
    fn reduce_or(mask: u32, value: Self) -> Self {
        backend::reduce_or(mask, value as u32) as i32
    }
    #[inline(always)]
    #[track_caller]
    fn reduce_xor(mask: u32, value: Self) -> Self {
        backend::reduce_xor(mask, value as u32) as i32
    }
}
