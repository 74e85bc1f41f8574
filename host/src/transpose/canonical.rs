//! The canonical form of a copy between two layouts: as few axes as possible, in the output's order.

use super::unit::Unit;
use crate::Layout;

/// An axis of the elements to copy: their number, and the distances between neighbours in the input and the output, in
/// units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    pub extent: usize,
    pub input: isize,
    pub output: isize,
}

/// A copy of units between two views.
///
/// No axis has one unit, the strides of the output are positive and ascend, and no two neighbours could be one axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Canonical {
    pub unit: Unit,
    /// The positions, on both sides, of the first unit in the output's order, counted from the views' beginnings.
    pub input: usize,
    pub output: usize,
    pub axes: Vec<Axis>,
}

impl Canonical {
    /// The copy of elements of `size` bytes from one layout to another of the same extents, which are not 0.
    /// `addresses` are those of the views that have the elements. No two elements of the output share memory.
    ///
    /// Elements of a size that no access moves are several units, along one more axis.
    pub fn new(size: usize, addresses: [u64; 2], from: &Layout, to: &Layout) -> Self {
        let unit = Unit::dividing(size as u64 | addresses[0] | addresses[1]);
        let units = size / unit.bytes();
        let mut copy = Self::of_units(unit, units, from, to);
        copy.widen(addresses);
        copy
    }

    /// The copy of elements that one access moves, by that access.
    pub fn of_elements(unit: Unit, from: &Layout, to: &Layout) -> Self {
        Self::of_units(unit, 1, from, to)
    }

    /// The pairs of positions of elements in two layouts of the same view and extents. Strides of either side may be
    /// negative.
    pub fn pairs(unit: Unit, units: usize, first: &Layout, second: &Layout) -> Self {
        let mut axes = vec![Axis { extent: units, input: 1, output: 1 }];
        for (axis, &extent) in first.extents().iter().enumerate().filter(|(_, extent)| **extent != 1) {
            let [input, output] = [first, second].map(|layout| layout.strides()[axis] * units as isize);
            axes.push(Axis { extent, input, output });
        }
        Self { unit, input: first.offset() * units, output: second.offset() * units, axes: merged(axes) }
    }

    fn of_units(unit: Unit, units: usize, from: &Layout, to: &Layout) -> Self {
        let (mut input, mut output) = (from.offset() * units, to.offset() * units);
        let mut axes = vec![Axis { extent: units, input: 1, output: 1 }];
        let strides = from.strides().iter().zip(to.strides());
        for (&extent, (&from, &to)) in from.extents().iter().zip(strides).filter(|(extent, _)| **extent != 1) {
            // A view has the elements, so these distances are below its length.
            let (mut from, mut to) = (from * units as isize, to * units as isize);
            if to < 0 {
                let last = extent as isize - 1;
                (input, output) = (input.wrapping_add_signed(from * last), output.wrapping_add_signed(to * last));
                (from, to) = (-from, -to);
            }
            axes.push(Axis { extent, input: from, output: to });
        }
        Self { unit, input, output, axes: merged(axes) }
    }

    /// Moves several neighbouring units by one access, as many as possible.
    fn widen(&mut self, addresses: [u64; 2]) {
        let [first @ Axis { input: 1, output: 1, .. }, others @ ..] = &mut self.axes[..] else { return };
        let bytes = self.unit.bytes();
        // The bits of all that an access must divide.
        let strides = others.iter().fold(0, |bits, axis| bits | axis.input.unsigned_abs() | axis.output.unsigned_abs());
        let own = first.extent | strides | self.input | self.output;
        let wide = Unit::dividing((own * bytes) as u64 | addresses[0] | addresses[1]);
        let units = wide.bytes() / bytes;
        if units <= 1 {
            return;
        }
        first.extent /= units;
        for axis in others {
            (axis.input, axis.output) = (axis.input / units as isize, axis.output / units as isize);
        }
        self.unit = wide;
        (self.input, self.output) = (self.input / units, self.output / units);
        self.axes.retain(|axis| axis.extent > 1);
    }
}

/// The axes in the output's order, the fastest first, without those of one unit. Neighbours that are one axis on both
/// sides are merged.
pub(super) fn merged(mut axes: Vec<Axis>) -> Vec<Axis> {
    axes.retain(|axis| axis.extent != 1);
    axes.sort_by_key(|axis| axis.output);
    let mut merged: Vec<Axis> = Vec::with_capacity(axes.len());
    for axis in axes {
        match merged.last_mut() {
            Some(inner) if follows(axis.input, inner.input, inner) && follows(axis.output, inner.output, inner) => {
                inner.extent *= axis.extent;
            }
            _ => merged.push(axis),
        }
    }
    merged
}

/// Whether an axis of this stride continues the axis `inner`, which has the stride `inner_stride` on the same side.
fn follows(stride: isize, inner_stride: isize, inner: &Axis) -> bool {
    inner_stride.checked_mul(inner.extent as isize) == Some(stride)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(extent: usize, input: isize, output: isize) -> Axis {
        Axis { extent, input, output }
    }

    fn strided(extents: &[usize], strides: &[isize], offset: usize) -> Layout {
        Layout::strided(extents, strides, offset).unwrap()
    }

    /// The copy that permutes a contiguous array of elements of `size` bytes.
    fn permuted(size: usize, extents: &[usize], axes: &[isize]) -> Canonical {
        let from = Layout::contiguous(extents).unwrap().permute_axes(axes).unwrap();
        Canonical::new(size, [0, 0], &from, &Layout::contiguous(from.extents()).unwrap())
    }

    #[test]
    fn axes_that_are_one_on_both_sides_are_merged() {
        assert_eq!(merged(vec![axis(5, 3, 3), axis(3, 1, 1)]), [axis(15, 1, 1)]);
        assert_eq!(merged(vec![axis(5, 4, 3), axis(3, 1, 1)]), [axis(3, 1, 1), axis(5, 4, 3)]);
        assert_eq!(merged(vec![axis(1, 9, 9), axis(7, 2, 100), axis(4, 14, 20)]), [axis(4, 14, 20), axis(7, 2, 100)]);
        assert_eq!(merged(vec![axis(1, 1, 1)]), []);
        assert_eq!(merged(vec![axis(5, -3, 3), axis(3, -1, 1)]), [axis(15, -1, 1)]);
        assert_eq!(merged(vec![axis(5, 0, 3), axis(3, 0, 1)]), [axis(15, 0, 1)]);
    }

    #[test]
    fn what_people_permute_has_few_axes() {
        // NCHW to NHWC, and back: a batch of transposes.
        let copy = permuted(4, &[64, 3, 224, 224], &[0, 2, 3, 1]);
        assert_eq!(copy.axes, [axis(3, 50_176, 1), axis(50_176, 1, 3), axis(64, 150_528, 150_528)]);
        let copy = permuted(4, &[64, 224, 224, 3], &[0, 3, 1, 2]);
        assert_eq!(copy.axes, [axis(50_176, 3, 1), axis(3, 1, 50_176), axis(64, 150_528, 150_528)]);
        // Attention's heads: segments of 64 elements of 2 bytes are 8 vectors.
        let copy = permuted(2, &[32, 1024, 16, 64], &[0, 2, 1, 3]);
        assert_eq!(copy.unit, Unit::Sixteen);
        assert_eq!(copy.axes, [axis(8, 1, 1), axis(1024, 128, 8), axis(16, 8, 8192), axis(32, 131_072, 131_072)]);
        // A copy.
        let copy = permuted(3, &[2, 3, 5], &[0, 1, 2]);
        assert_eq!((copy.unit, &copy.axes[..]), (Unit::Two, &[axis(45, 1, 1)][..]));
        assert_eq!(permuted(16, &[1, 1], &[1, 0]).axes, []);
    }

    #[test]
    fn accesses_are_as_wide_as_both_sides_allow() {
        let of = |size, addresses, from: &Layout, to: &Layout| {
            let copy = Canonical::new(size, addresses, from, to);
            (copy.unit.bytes(), copy.input, copy.output, copy.axes)
        };
        let (rows, pitched) = (Layout::contiguous(&[6, 8]).unwrap(), strided(&[6, 8], &[12, 1], 4));
        assert_eq!(of(4, [0, 0], &rows, &pitched), (16, 0, 1, vec![axis(2, 1, 1), axis(6, 2, 3)]));
        assert_eq!(of(4, [8, 0], &rows, &pitched), (8, 0, 2, vec![axis(4, 1, 1), axis(6, 4, 6)]));
        assert_eq!(of(4, [0, 4], &rows, &pitched), (4, 0, 4, vec![axis(8, 1, 1), axis(6, 8, 12)]));
        // A segment that is one access is none of the axes.
        let (pairs, swapped) = (strided(&[5, 3, 2], &[6, 2, 1], 0), strided(&[5, 3, 2], &[2, 10, 1], 0));
        assert_eq!(of(2, [0, 0], &pairs, &swapped), (4, 0, 0, vec![axis(5, 3, 1), axis(3, 1, 5)]));
        assert_eq!(
            of(6, [0, 0], &strided(&[4], &[-1], 3), &strided(&[4], &[2], 1)),
            (2, 9, 3, vec![axis(3, 1, 1), axis(4, -3, 6)])
        );
    }

    #[test]
    fn the_outputs_strides_are_positive() {
        let copy = Canonical::of_elements(Unit::Four, &strided(&[4], &[1], 0), &strided(&[4], &[-1], 3));
        assert_eq!((copy.input, copy.output, &copy.axes[..]), (3, 0, &[axis(4, -1, 1)][..]));
        let both = strided(&[2, 4], &[-4, -1], 7);
        let copy = Canonical::of_elements(Unit::Four, &both, &both);
        assert_eq!((copy.input, copy.output, &copy.axes[..]), (0, 0, &[axis(8, 1, 1)][..]));
    }
}
