//! Copies between any two layouts, and exchanges of elements in place: the general method, for what no other kernel
//! takes.

use cuda_std::global::issue_loads;
use cuda_std::prelude::*;

use crate::transpose::digits::Digits;
use crate::transpose::tuning::{COPY_BLOCK, COPY_ELEMENTS};

/// The maximum number of axes of a launch.
pub const MAX_AXES: usize = 8;

/// The elements of a block.
pub const ELEMENTS_OF_BLOCK: usize = COPY_BLOCK * COPY_ELEMENTS;

/// Copies `len` elements, fewer than 2^31. `axes` gives the positions of each on both sides.
///
/// Consecutive threads take consecutive elements, so writes are coalesced if the axes are in the output's order. Each
/// thread has [`COPY_ELEMENTS`] elements in flight.
///
/// # Safety
/// `len` is the product of the axes' extents and not 0, and both views have every element that the axes name: accesses
/// are unchecked. No two elements have the same position in the output.
#[kernel(instances = [u8, u16, u32, u64, u128], block = COPY_BLOCK)]
pub unsafe fn copy_strided<T: Element>(input: Global<T>, output: GlobalMut<T>, len: u32, axes: Digits<MAX_AXES>) {
    let first = thread::block_idx_x() * ELEMENTS_OF_BLOCK as u32 + thread::thread_idx_x();
    let nth = |k: usize| first + (k * COPY_BLOCK) as u32;
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
    let load = |k: usize| unsafe { input.load_unchecked(at[k].0 as usize) };
    let elements: [T; COPY_ELEMENTS] = [load(0), load(1), load(2), load(3), load(4), load(5), load(6), load(7)];
    issue_loads();
    let store = |k: usize| {
        if nth(k) < len {
            // SAFETY: as above.
            unsafe { output.store_unchecked(at[k].1 as usize, elements[k]) };
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
    axes: Digits<MAX_AXES>,
) {
    let i = thread::block_idx_x() * COPY_BLOCK as u32 + thread::thread_idx_x();
    if i >= len {
        return;
    }
    let (low, high) = axes.positions(i);
    let (low, high) = (first + low as usize, second + high as usize);
    if low < high {
        // SAFETY: the pairs name no element outside of the view.
        unsafe {
            let (a, b) = (elements.as_global().load_unchecked(low), elements.as_global().load_unchecked(high));
            elements.store_unchecked(low, b);
            elements.store_unchecked(high, a);
        }
    }
}
