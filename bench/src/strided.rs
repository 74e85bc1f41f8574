//! The elements of a layout in host memory, in C order.

use rayon::prelude::*;
use warpfold::Layout;

use crate::memory;

/// The rows of a layout: its elements along the last axis.
pub struct Rows<'a> {
    layout: &'a Layout,
    /// The number of elements of a row.
    pub len: usize,
    stride: isize,
}

impl<'a> Rows<'a> {
    pub fn of(layout: &'a Layout) -> Self {
        // Without axes, there is a row of one element.
        let (len, stride) = layout.extents().last().zip(layout.strides().last()).unwrap_or((&1, &0));
        Self { layout, len: *len, stride: *stride }
    }

    /// The number of rows.
    pub fn count(&self) -> usize {
        self.others().map(|(extent, _)| extent).product()
    }

    /// The extents and strides of the axes before the last.
    fn others(&self) -> impl DoubleEndedIterator<Item = (usize, isize)> {
        let axes = self.layout.extents().iter().copied().zip(self.layout.strides().iter().copied());
        axes.take(self.layout.rank().saturating_sub(1))
    }

    /// The positions of a row's elements.
    pub fn positions(&self, mut row: usize) -> impl Iterator<Item = usize> + use<> {
        let mut start = self.layout.offset() as isize;
        for (extent, stride) in self.others().collect::<Vec<_>>().into_iter().rev() {
            start += (row % extent) as isize * stride;
            row /= extent;
        }
        let stride = self.stride;
        (0..self.len).map(move |i| (start + i as isize * stride) as usize)
    }
}

/// The elements of a layout in C order, of memory that has no others.
///
/// # Errors
/// There is too little memory for this second copy.
pub fn in_c_order<T: Copy + Send + Sync>(elements: &[T], layout: &Layout) -> anyhow::Result<Vec<T>> {
    assert_eq!(elements.len(), layout.len());
    let mut ordered = memory::list(elements.len())?;
    ordered.extend_from_slice(elements);
    let rows = Rows::of(layout);
    ordered.par_chunks_mut(rows.len.max(1)).enumerate().for_each(|(row, to)| {
        to.iter_mut().zip(rows.positions(row)).for_each(|(to, from)| *to = elements[from]);
    });
    Ok(ordered)
}

/// The layout of an array in Fortran order: along the first axis, elements are neighbours.
pub fn fortran(extents: &[usize]) -> Result<Layout, warpfold::Error> {
    let reversed: Vec<usize> = extents.iter().rev().copied().collect();
    let axes: Vec<isize> = (0..extents.len() as isize).rev().collect();
    Layout::contiguous(&reversed)?.permute_axes(&axes)
}

/// The indices of the element at a position, in a layout in C or Fortran order.
pub fn index_at(layout: &Layout, position: usize) -> Vec<usize> {
    let axes = layout.extents().iter().zip(layout.strides());
    axes.map(|(&extent, &stride)| position / stride.unsigned_abs() % extent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_c_order() {
        let matrix = Layout::contiguous(&[2, 3]).unwrap();
        let of = |layout: &Layout| in_c_order(&[0, 1, 2, 3, 4, 5], layout).unwrap();
        assert_eq!(of(&matrix), [0, 1, 2, 3, 4, 5]);
        assert_eq!(of(&matrix.permute_axes(&[1, 0]).unwrap()), [0, 3, 1, 4, 2, 5]);
        assert_eq!(of(&matrix.reverse(1).unwrap()), [2, 1, 0, 5, 4, 3]);
        assert_eq!(of(&fortran(&[2, 3]).unwrap()), [0, 2, 4, 1, 3, 5]);
        assert_eq!(in_c_order(&[7], &Layout::contiguous(&[]).unwrap()).unwrap(), [7]);
        assert_eq!(in_c_order(&[7; 0], &Layout::contiguous(&[3, 0]).unwrap()).unwrap(), [7; 0]);
        assert_eq!(in_c_order(&[7; 0], &Layout::contiguous(&[0, 3]).unwrap()).unwrap(), [7; 0]);
    }

    #[test]
    fn each_index_has_the_same_element_in_both_orders() {
        for extents in [&[][..], &[5], &[2, 3], &[1, 7], &[4, 1, 3], &[3, 2, 1, 2, 5], &[65, 129]] {
            let (c, fortran) = (Layout::contiguous(extents).unwrap(), fortran(extents).unwrap());
            // Each element is the number of its index in C order.
            let mut elements = vec![0; c.len()];
            for number in 0..c.len() {
                let along = index_at(&c, number).into_iter().zip(fortran.strides());
                let position: usize = along.map(|(i, &stride)| i * stride.unsigned_abs()).sum();
                assert_eq!(index_at(&fortran, position), index_at(&c, number));
                elements[position] = number;
            }
            assert_eq!(in_c_order(&elements, &fortran).unwrap(), (0..c.len()).collect::<Vec<_>>(), "{extents:?}");
        }
    }
}
