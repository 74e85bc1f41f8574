//! The loops of a reduction: its axes, as they lie in memory.

use crate::Layout;
use crate::array::MAX_RANK;
use crate::reduce::Reduced;

/// An axis that is kept or reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis<const N: usize> {
    pub extent: usize,
    /// Bytes between neighbours, in each input.
    pub strides: [isize; N],
    /// Of a kept axis: how far apart the results of neighbours are. Of a reduced one: the indices of neighbours.
    pub step: isize,
}

/// The loops of a reduction of `N` inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Form<const N: usize> {
    /// The bytes at which the loops begin, in each input.
    pub starts: [isize; N],
    /// The index of the first element of each output.
    pub index: isize,
    /// The axes that are kept, and those that are reduced, the slowest first. Axes that are one in memory are merged.
    pub kept: Vec<Axis<N>>,
    pub reduced: Vec<Axis<N>>,
    /// The first result, in C order.
    pub output: isize,
}

impl<const N: usize> Form<N> {
    /// The loops over layouts of equal extents, whose strides count bytes. If `rises`, the indices of the elements of
    /// an output rise along each axis.
    pub fn new(layouts: [&Layout; N], reduced: &Reduced, rises: bool) -> Self {
        let mut form = Self {
            starts: layouts.map(|layout| layout.offset() as isize),
            index: 0,
            kept: Vec::new(),
            reduced: Vec::new(),
            output: 0,
        };
        let (mut outputs, mut indices) = (1, 1);
        for (at, &extent) in layouts[0].extents().iter().enumerate().rev() {
            let is_reduced = reduced.has(at);
            let (axes, number) =
                if is_reduced { (&mut form.reduced, &mut indices) } else { (&mut form.kept, &mut outputs) };
            let mut axis = Axis { extent, strides: layouts.map(|layout| layout.strides()[at]), step: *number };
            // Without elements the product is not used.
            *number = number.wrapping_mul(extent as isize);
            if extent == 1 {
                continue;
            }
            // Neighbours in memory are taken in its order.
            if axis.strides.iter().find(|stride| **stride != 0).is_some_and(|stride| *stride < 0)
                && !(is_reduced && rises)
                && extent > 0
            {
                let last = extent as isize - 1;
                for (start, stride) in form.starts.iter_mut().zip(axis.strides) {
                    *start += last * stride;
                }
                let first = if is_reduced { &mut form.index } else { &mut form.output };
                *first += last * axis.step;
                axis = Axis { strides: axis.strides.map(|stride| -stride), step: -axis.step, ..axis };
            }
            axes.push(axis);
        }
        for axes in [&mut form.kept, &mut form.reduced] {
            axes.reverse();
            axes.sort_by_key(|axis| std::cmp::Reverse(axis.reach()));
            merge(axes);
        }
        form
    }

    /// The number of elements of an output.
    pub fn count(&self) -> usize {
        self.reduced.iter().map(|axis| axis.extent).product()
    }

    /// The longest axis that is reduced.
    pub fn longest(&self) -> Option<usize> {
        (0..self.reduced.len()).max_by_key(|&axis| self.reduced[axis].extent)
    }

    /// The loops over a part of a reduced axis: `len` indices from `first` on.
    pub fn part(&self, axis: usize, first: usize, len: usize) -> Self {
        let mut part = self.clone();
        let of = &mut part.reduced[axis];
        for (start, stride) in part.starts.iter_mut().zip(of.strides) {
            *start += first as isize * stride;
        }
        part.index += first as isize * of.step;
        of.extent = len;
        part
    }

    /// Whether the elements of an output are further apart than those of neighbouring outputs.
    pub fn is_columns(&self) -> bool {
        match (self.kept.last(), self.reduced.last()) {
            (Some(kept), Some(reduced)) => kept.reach() < reduced.reach(),
            _ => false,
        }
    }
}

impl<const N: usize> Axis<N> {
    /// The largest distance between neighbours.
    fn reach(&self) -> usize {
        self.strides.iter().map(|stride| stride.unsigned_abs()).max().unwrap_or(0)
    }

    /// Whether this axis and the one within it are one axis.
    fn merges(&self, inner: &Self) -> bool {
        let whole = |stride: isize| stride.checked_mul(inner.extent as isize);
        let all = self.strides.iter().zip(&inner.strides).all(|(outer, inner)| Some(*outer) == whole(*inner));
        all && Some(self.step) == whole(inner.step)
    }
}

fn merge<const N: usize>(axes: &mut Vec<Axis<N>>) {
    let mut merged: Vec<Axis<N>> = Vec::with_capacity(axes.len());
    for axis in axes.drain(..) {
        match merged.last_mut() {
            Some(outer) if outer.merges(&axis) => *outer = Axis { extent: outer.extent * axis.extent, ..axis },
            _ => merged.push(axis),
        }
    }
    *axes = merged;
}

/// A walk over all indices of some axes, the last axis first.
pub(super) struct Walk<'a, const N: usize> {
    axes: &'a [Axis<N>],
    indices: [usize; MAX_RANK],
    /// Bytes from the start, in each input.
    pub at: [isize; N],
    /// The sum of the steps.
    pub step: isize,
}

impl<'a, const N: usize> Walk<'a, N> {
    /// A walk that begins at a number of steps from the start.
    #[inline]
    pub fn new(axes: &'a [Axis<N>], mut number: usize) -> Self {
        let mut walk = Self { axes, indices: [0; MAX_RANK], at: [0; N], step: 0 };
        for (axis, index) in axes.iter().zip(&mut walk.indices).rev() {
            if number == 0 {
                break;
            }
            *index = number % axis.extent;
            number /= axis.extent;
            move_along(&mut walk.at, &mut walk.step, axis, *index as isize);
        }
        walk
    }

    /// Goes to the next indices; after the last ones, to the first.
    #[inline(always)]
    pub fn advance(&mut self) {
        for (axis, index) in self.axes.iter().zip(&mut self.indices).rev() {
            *index += 1;
            if *index < axis.extent {
                move_along(&mut self.at, &mut self.step, axis, 1);
                return;
            }
            *index = 0;
            move_along(&mut self.at, &mut self.step, axis, 1 - axis.extent as isize);
        }
    }
}

#[inline(always)]
fn move_along<const N: usize>(at: &mut [isize; N], step: &mut isize, axis: &Axis<N>, distance: isize) {
    for (at, stride) in at.iter_mut().zip(axis.strides) {
        *at += distance * stride;
    }
    *step += distance * axis.step;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Axes;

    fn form(extents: &[usize], strides: &[isize], axes: &[isize], rises: bool) -> Form<1> {
        let layout = Layout::strided(extents, strides, 1000).unwrap();
        Form::new([&layout], &Axes::from(axes).of(&layout).unwrap(), rises)
    }

    fn axis(extent: usize, stride: isize, step: isize) -> Axis<1> {
        Axis { extent, strides: [stride], step }
    }

    #[test]
    fn axes_are_merged_and_sorted() {
        let rows = form(&[5, 6, 7], &[168, 28, 4], &[1, 2], false);
        assert_eq!((rows.kept.as_slice(), rows.reduced.as_slice()), (&[axis(5, 168, 1)][..], &[axis(42, 4, 1)][..]));
        assert!(!rows.is_columns());
        let columns = form(&[5, 6, 7], &[168, 28, 4], &[0], false);
        assert_eq!(
            (columns.kept.as_slice(), columns.reduced.as_slice()),
            (&[axis(42, 4, 1)][..], &[axis(5, 168, 1)][..])
        );
        assert!(columns.is_columns());
        // In Fortran order the first axis is the last loop, and results are not in order.
        let fortran = form(&[5, 6, 7], &[4, 20, 120], &[1], false);
        assert_eq!(fortran.kept, [axis(7, 120, 1), axis(5, 4, 7)]);
        assert!(fortran.is_columns());
        // All of it is one axis for a sum, not for an index.
        assert_eq!(form(&[5, 6], &[4, 20], &[0, 1], false).reduced, [axis(6, 20, 1), axis(5, 4, 6)]);
        assert_eq!(form(&[5, 1, 6], &[24, 7, 4], &[0, 1, 2], false).reduced, [axis(30, 4, 1)]);
    }

    #[test]
    fn negative_strides_are_turned_unless_indices_must_rise() {
        let turned = form(&[5, 6], &[-24, -4], &[0, 1], false);
        assert_eq!((turned.reduced.as_slice(), turned.starts, turned.index), (&[axis(30, 4, -1)][..], [884], 29));
        let rising = form(&[5, 6], &[-24, -4], &[0, 1], true);
        assert_eq!((rising.reduced.as_slice(), rising.starts, rising.index), (&[axis(30, -4, 1)][..], [1000], 0));
        let kept = form(&[5, 6], &[-24, 4], &[1], true);
        assert_eq!((kept.kept.as_slice(), kept.starts, kept.output), (&[axis(5, 24, -1)][..], [904], 4));
    }

    #[test]
    fn walks_reach_all_indices() {
        let form = form(&[2, 3, 4], &[200, 40, 4], &[], false);
        assert_eq!(form.kept.len(), 3);
        let mut walk = Walk::new(&form.kept, 0);
        for number in 0..24 {
            let from = Walk::new(&form.kept, number);
            let at = (number / 12 * 200 + number / 4 % 3 * 40 + number % 4 * 4) as isize;
            assert_eq!((walk.at, walk.step), ([at], number as isize));
            assert_eq!((from.at, from.step), (walk.at, walk.step));
            walk.advance();
        }
        assert_eq!((walk.at, walk.step), ([0], 0));
    }
}
