//! Copies between any two layouts, and exchanges of elements in place: the general method, for what no other kernel
//! takes.

use cuda_std::global::issue_loads;
use cuda_std::prelude::*;
use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

use crate::transpose::digits::Digits;
use crate::transpose::tiled::epilogue::{Scale, Scaled, Scaling};
use crate::transpose::tuning::{COPY_BLOCK, COPY_ELEMENTS};

/// The axes of a launch: a few, as nearly all copies have after merging; or as many as fewer than 2^31 elements can
/// have.
pub const FEW_AXES: usize = 8;
/// See [`FEW_AXES`].
pub const MAX_AXES: usize = 31;

/// The elements of a block.
pub const ELEMENTS_OF_BLOCK: usize = COPY_BLOCK * COPY_ELEMENTS;

/// Copies `len` elements, fewer than 2^31. `axes` gives the positions of each on both sides, in the input relative to
/// `first`.
///
/// Consecutive threads take consecutive elements, so writes are coalesced if the axes are in the output's order. Each
/// thread has [`COPY_ELEMENTS`] elements in flight.
///
/// # Safety
/// `len` is the product of the axes' extents and not 0, and both views have every element that the axes name: accesses
/// are unchecked. No two elements have the same position in the output.
#[kernel(instances = [u8, u16, u32, u64, u128] x [8 == FEW_AXES, 31 == MAX_AXES], block = COPY_BLOCK)]
pub unsafe fn copy_strided<T: Element, const AXES: usize>(
    input: Global<T>,
    first: usize,
    output: GlobalMut<T>,
    len: u32,
    axes: Digits<AXES>,
) {
    // SAFETY: as promised by the caller.
    unsafe { copy(input, first, output, len, &axes, |x| x) };
}

/// The arguments of [`copy_strided_scaled`].
#[arguments]
pub struct ScaledCopyArgs<T: Plain> {
    /// The elements.
    pub input: Global<T>,
    /// The position of the first element in the input.
    pub first: usize,
    /// The results.
    pub output: GlobalMut<T>,
    /// The number of elements.
    pub len: u32,
    /// The positions of each on both sides.
    pub axes: Digits<MAX_AXES>,
    /// A sum of [`CONJUGATED`](crate::transpose::tiled::epilogue::CONJUGATED) and
    /// [`MULTIPLIED`](crate::transpose::tiled::epilogue::MULTIPLIED).
    pub operations: u32,
    /// The factor's real part.
    pub real: f64,
    /// The factor's imaginary part.
    pub imaginary: f64,
}

/// [`copy_strided`] of numbers that are scaled.
///
/// # Safety
/// As for [`copy_strided`].
#[kernel(instances = [f16, bf16, f32, f64, Complex32, Complex64], block = COPY_BLOCK)]
pub unsafe fn copy_strided_scaled<N: Scale>(
    ScaledCopyArgs { input, first, output, len, axes, operations, real, imaginary }: ScaledCopyArgs<<N as Scale>::Bits>,
) {
    let scaled = Scaled::<N>::new(Scaling { factor: [real, imaginary], operations });
    // SAFETY: as promised by the caller.
    unsafe { copy(input, first, output, len, &axes, |x| scaled.apply_to_element(x)) };
}

/// The body of both kernels; `of` is what becomes of an element.
///
/// # Safety
/// As for [`copy_strided`].
#[inline(always)]
unsafe fn copy<T: Element, const AXES: usize>(
    input: Global<T>,
    first: usize,
    output: GlobalMut<T>,
    len: u32,
    axes: &Digits<AXES>,
    of: impl Fn(T) -> T,
) {
    let own = thread::block_idx_x() * ELEMENTS_OF_BLOCK as u32 + thread::thread_idx_x();
    let nth = |k: usize| own + (k * COPY_BLOCK) as u32;
    // Clamped to the last element: a conditional load would become a branch, and later loads would wait for it.
    let positions = |k: usize| axes.positions(if nth(k) < len { nth(k) } else { len - 1 });
    let at: [(i64, i64); COPY_ELEMENTS] = [
        positions(0),
        positions(1),
        positions(2),
        positions(3),
        positions(4),
        positions(5),
        positions(6),
        positions(7),
    ];
    // SAFETY: the axes name no element outside of the view.
    let load = |k: usize| unsafe { input.load_unchecked(first.wrapping_add_signed(at[k].0 as isize)) };
    let elements: [T; COPY_ELEMENTS] = [load(0), load(1), load(2), load(3), load(4), load(5), load(6), load(7)];
    issue_loads();
    let store = |k: usize| {
        if nth(k) < len {
            // SAFETY: as above.
            unsafe { output.store_unchecked(at[k].1 as usize, of(elements[k])) };
        }
    };
    store(0);
    store(1);
    store(2);
    store(3);
    store(4);
    store(5);
    store(6);
    store(7);
}

/// Exchanges elements: of each of `len` pairs of positions, the element at the first with that at the second, if the
/// first is lower. So a list that has each pair in both orders exchanges it once. `axes` gives the pairs, relative to
/// `first` and `second`.
///
/// # Safety
/// `len` is below 2^31, the product of the axes' extents and not 0. The view has every element that the pairs name:
/// accesses are unchecked. No element is in pairs with two others.
#[kernel(instances = [u8, u16, u32, u64, u128], block = COPY_BLOCK)]
pub unsafe fn swap_strided<T: Element>(
    elements: GlobalMut<T>,
    first: usize,
    second: usize,
    len: u32,
    axes: Digits<FEW_AXES>,
) {
    let i = thread::block_idx_x() * COPY_BLOCK as u32 + thread::thread_idx_x();
    if i >= len {
        return;
    }
    let (low, high) = axes.positions(i);
    let (low, high) = (first.wrapping_add_signed(low as isize), second.wrapping_add_signed(high as isize));
    if low < high {
        // SAFETY: the pairs name no element outside of the view.
        unsafe {
            let (a, b) = (elements.as_global().load_unchecked(low), elements.as_global().load_unchecked(high));
            elements.store_unchecked(low, b);
            elements.store_unchecked(high, a);
        }
    }
}
