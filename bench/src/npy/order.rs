//! From Fortran order to C order.

use crate::memory;

/// The side of the tiles in which elements are copied, so that the lines of both sides stay in the cache.
const TILE: usize = 64;

/// The elements of an array in C order, from those in Fortran order.
///
/// # Errors
/// There is too little memory for the second copy.
///
/// # Panics
/// If the number of elements is not the product of the extents.
pub fn to_c_order<T: Copy>(elements: Vec<T>, shape: &[usize]) -> anyhow::Result<Vec<T>> {
    assert_eq!(elements.len(), shape.iter().product::<usize>());
    if !is_changed(shape) {
        return Ok(elements);
    }
    let mut ordered = memory::list(elements.len())?;
    ordered.extend_from_slice(&elements);
    // The first axis has neighbours in Fortran order, the last one in C order. Those between are in neither.
    let (first, last) = (shape[0], shape[shape.len() - 1]);
    let between = &shape[1..shape.len() - 1];
    let count: usize = between.iter().product();
    for i in 0..count {
        let reversed = reversed(i, between);
        for top in (0..first).step_by(TILE) {
            for left in (0..last).step_by(TILE) {
                for row in top..first.min(top + TILE) {
                    for column in left..last.min(left + TILE) {
                        ordered[(row * count + i) * last + column] =
                            elements[(column * count + reversed) * first + row];
                    }
                }
            }
        }
    }
    Ok(ordered)
}

/// Whether the two orders of an array differ: at least two extents are more than 1, and none is 0.
pub fn is_changed(shape: &[usize]) -> bool {
    !shape.contains(&0) && shape.iter().filter(|extent| **extent > 1).count() > 1
}

/// The index of an element in Fortran order, from its index in C order.
fn reversed(mut index: usize, shape: &[usize]) -> usize {
    shape.iter().rev().fold(0, |all, &extent| {
        let along = index % extent;
        index /= extent;
        all * extent + along
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_index_has_the_same_element_in_both_orders() {
        for shape in [
            &[][..],
            &[5],
            &[0],
            &[2, 3],
            &[1, 7],
            &[7, 1],
            &[3, 0, 2],
            &[2, 3, 4],
            &[4, 1, 3],
            &[1, 1],
            &[2, 3, 4, 5],
            &[3, 2, 1, 2, 5],
            &[65, 129],
            &[130, 2, 67],
        ] {
            let count: usize = shape.iter().product();
            let mut index = vec![0; shape.len()];
            let mut fortran = vec![usize::MAX; count];
            // The element at each index is the index's number in C order.
            for number in 0..count {
                let at = shape.iter().zip(&index).rev().fold(0, |at, (extent, along)| at * extent + along);
                fortran[at] = number;
                for axis in (0..shape.len()).rev() {
                    index[axis] += 1;
                    if index[axis] < shape[axis] {
                        break;
                    }
                    index[axis] = 0;
                }
            }
            let expected: Vec<_> = (0..count).collect();
            assert_eq!(is_changed(shape), fortran != expected, "{shape:?}");
            assert_eq!(to_c_order(fortran, shape).unwrap(), expected, "{shape:?}");
        }
    }
}
