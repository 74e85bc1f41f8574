//! Copies elements from one layout to another.

use crate::layout::Layout;
use crate::rows::{Row, Rows};

/// The side of a tile: its rows and columns stay in the L1 cache, for elements of any size.
const TILE: usize = 32;

/// Copies all elements. Both arrays have the same extents and size of elements.
pub fn copy(to: &mut [u8], to_layout: &Layout, from: &[u8], from_layout: &Layout) {
    assert_eq!(to_layout.size, from_layout.size, "elements of different sizes");
    if to_layout.is_contiguous() && from_layout.is_contiguous() {
        to.copy_from_slice(&from[..to.len()]);
        return;
    }
    match to_layout.size {
        1 => copy_elements::<1>(to, to_layout, from, from_layout),
        2 => copy_elements::<2>(to, to_layout, from, from_layout),
        4 => copy_elements::<4>(to, to_layout, from, from_layout),
        8 => copy_elements::<8>(to, to_layout, from, from_layout),
        16 => copy_elements::<16>(to, to_layout, from, from_layout),
        size => unreachable!("elements of {size} bytes"),
    }
}

fn copy_elements<const SIZE: usize>(to: &mut [u8], to_layout: &Layout, from: &[u8], from_layout: &Layout) {
    let mut rows = Rows::new([to_layout, from_layout]);
    // Rows follow the smallest stride of the destination. Beside them, a tile follows that of the source, so that a
    // cache line is read and written once.
    let (height, strides) = rows.take_axis(1);
    rows.for_each(|row| {
        for top in (0..height).step_by(TILE) {
            for left in (0..row.len).step_by(TILE) {
                for down in top..height.min(top + TILE) {
                    let len = TILE.min(row.len - left);
                    copy_row::<SIZE>(to, from, &part(&row, strides, down, left, len));
                }
            }
        }
    });
}

/// `len` elements of a row from `left` on, `down` rows further.
fn part(row: &Row<2>, strides: [isize; 2], down: usize, left: usize, len: usize) -> Row<2> {
    let start = |of: usize| {
        let bytes = strides[of].wrapping_mul(down as isize).wrapping_add(row.strides[of].wrapping_mul(left as isize));
        row.starts[of].wrapping_add_signed(bytes)
    };
    Row { starts: [start(0), start(1)], len, ..*row }
}

fn copy_row<const SIZE: usize>(to: &mut [u8], from: &[u8], row: &Row<2>) {
    let Row { starts: [to_start, from_start], strides, len } = *row;
    if strides == [SIZE as isize; 2] {
        to[to_start..to_start + len * SIZE].copy_from_slice(&from[from_start..from_start + len * SIZE]);
        return;
    }
    for index in 0..len as isize {
        let to_at = to_start.wrapping_add_signed(strides[0].wrapping_mul(index));
        let from_at = from_start.wrapping_add_signed(strides[1].wrapping_mul(index));
        to[to_at..to_at + SIZE].copy_from_slice(&from[from_at..from_at + SIZE]);
    }
}
