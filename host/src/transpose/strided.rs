//! The plan and launch of copies between any two layouts: the general method.

use cuda_std::element::Plain;
use cuda_std::launch::Kernel;
use kernels::transpose::copy::strided::{ELEMENTS_OF_BLOCK, MAX_AXES, copy_strided, swap_strided};
use kernels::transpose::digits::{Digit, Digits};
use kernels::transpose::tuning::COPY_BLOCK;

use super::strides::Strides;
use super::unit::{Sides, Unit};
use crate::{Error, Gpu, View, ViewMut};

/// An axis of the elements to copy: their number, and the distances between neighbours in the input and the output, in
/// elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    pub extent: usize,
    pub input: usize,
    pub output: usize,
}

/// The maximum number of elements of a launch: its kernel divides numbers below 2^31.
const MAX_ELEMENTS: usize = (1 << 31) - 1;

/// A launch's part of the elements: the first element's position on both sides, and the axes from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    input: usize,
    output: usize,
    len: u32,
    axes: Digits<MAX_AXES>,
}

/// The axes in the output's order, the fastest first, without those of one element. Neighbours that are one axis on
/// both sides are merged. An axis of no elements stays.
fn merged(axes: &[Axis]) -> Vec<Axis> {
    let mut sorted: Vec<Axis> = axes.iter().copied().filter(|axis| axis.extent != 1).collect();
    sorted.sort_by_key(|axis| axis.output);
    let mut merged: Vec<Axis> = Vec::with_capacity(sorted.len());
    for axis in sorted {
        match merged.last_mut() {
            Some(inner) if axis.input == inner.input * inner.extent && axis.output == inner.output * inner.extent => {
                inner.extent *= axis.extent;
            }
            _ => merged.push(axis),
        }
    }
    merged
}

/// The launches for the axes, each of at most `max_elements` elements and [`MAX_AXES`] axes.
///
/// The innermost axes are whole in each launch, the next axis is cut into ranges, and each index of the others has its
/// own launches.
fn parts(axes: &[Axis], max_elements: usize) -> Vec<Part> {
    let axes = merged(axes);
    if axes.iter().any(|axis| axis.extent == 0) {
        return Vec::new();
    }
    let (mut inner, mut len) = (0, 1);
    while inner < axes.len().min(MAX_AXES - 1) && axes[inner].extent <= max_elements / len {
        len *= axes[inner].extent;
        inner += 1;
    }
    let (inner, outer) = axes.split_at(inner);
    let (cut, outer) = match outer {
        [cut, outer @ ..] => (*cut, outer),
        [] => (Axis { extent: 1, input: 0, output: 0 }, outer),
    };
    let most = (max_elements / len).max(1);
    let of_outer: usize = outer.iter().map(|axis| axis.extent).product();
    let mut parts = Vec::new();
    for number in 0..of_outer {
        let (mut left, mut input, mut output) = (number, 0, 0);
        for axis in outer {
            let index = left % axis.extent;
            left /= axis.extent;
            (input, output) = (input + index * axis.input, output + index * axis.output);
        }
        for first in (0..cut.extent).step_by(most) {
            let range = Axis { extent: most.min(cut.extent - first), ..cut };
            let digits: Vec<Digit> = inner.iter().chain([&range]).map(Axis::digit).collect();
            parts.push(Part {
                input: input + first * cut.input,
                output: output + first * cut.output,
                len: (len * range.extent) as u32,
                axes: Digits::new(&digits),
            });
        }
    }
    parts
}

impl Axis {
    fn digit(&self) -> Digit {
        Digit::new(self.extent, self.input as i64, self.output as i64)
    }
}

/// The axes of the matrices, in units, of which an element has `units`.
fn axes_of(strides: &Strides, units: usize) -> [Axis; 4] {
    let Strides { rows, columns, batch, input_pitch, output_pitch, input_batch_pitch, output_batch_pitch } = *strides;
    [
        Axis { extent: units, input: 1, output: 1 },
        Axis { extent: rows, input: input_pitch * units, output: units },
        Axis { extent: columns, input: units, output: output_pitch * units },
        Axis { extent: batch, input: input_batch_pitch * units, output: output_batch_pitch * units },
    ]
}

impl Gpu {
    /// Transposes matrices of elements of any size. The shape is not empty, and the views are long enough for it.
    pub(super) fn transpose_strided(&self, strides: &Strides, sides: Sides<'_, '_>) -> Result<(), Error> {
        let unit = sides.unit();
        let axes = axes_of(strides, sides.size / unit.bytes());
        let Sides { input, output, .. } = sides;
        // SAFETY: only this function launches the kernels, with axes that the caller promises are inside the views.
        unsafe {
            match unit {
                Unit::One => self.copy_parts::<u8>(copy_strided::handle::<u8>(), &axes, input.cast(), output.cast()),
                Unit::Two => self.copy_parts(copy_strided::handle::<u16>(), &axes, input.cast(), output.cast()),
                Unit::Four => self.copy_parts(copy_strided::handle::<u32>(), &axes, input.cast(), output.cast()),
                Unit::Eight => self.copy_parts(copy_strided::handle::<u64>(), &axes, input.cast(), output.cast()),
                Unit::Sixteen => self.copy_parts(copy_strided::handle::<u128>(), &axes, input.cast(), output.cast()),
            }
        }
    }

    fn copy_parts<U: Plain>(
        &self,
        kernel: Kernel<copy_strided::Args<'static, U>>,
        axes: &[Axis],
        input: View<'_, U>,
        mut output: ViewMut<'_, U>,
    ) -> Result<(), Error> {
        for part in parts(axes, MAX_ELEMENTS) {
            let (input, output) = (input.skip(part.input)?, output.reborrow().skip(part.output)?);
            let blocks = part.len.div_ceil(ELEMENTS_OF_BLOCK as u32);
            self.launch(kernel, blocks, copy_strided::Args { input, output, len: part.len, axes: part.axes })?;
        }
        Ok(())
    }

    /// Transposes square matrices of elements of any size in place. Each has at least two rows, and the view is long
    /// enough for them.
    pub(super) fn transpose_strided_in_place(
        &self,
        strides: &Strides,
        size: usize,
        matrices: ViewMut<'_, u8>,
    ) -> Result<(), Error> {
        let unit = Unit::dividing(size as u64 | matrices.address());
        let axes = axes_of(strides, size / unit.bytes());
        // SAFETY: only this function launches the kernels, with axes that the caller promises are inside the view. The
        // element of row i and column j is exchanged with that of row j and column i, and with no other.
        unsafe {
            match unit {
                Unit::One => self.swap_parts(swap_strided::handle::<u8>(), &axes, matrices.cast()),
                Unit::Two => self.swap_parts(swap_strided::handle::<u16>(), &axes, matrices.cast()),
                Unit::Four => self.swap_parts(swap_strided::handle::<u32>(), &axes, matrices.cast()),
                Unit::Eight => self.swap_parts(swap_strided::handle::<u64>(), &axes, matrices.cast()),
                Unit::Sixteen => self.swap_parts(swap_strided::handle::<u128>(), &axes, matrices.cast()),
            }
        }
    }

    fn swap_parts<U: Plain>(
        &self,
        kernel: Kernel<swap_strided::Args<'static, U>>,
        axes: &[Axis],
        mut matrices: ViewMut<'_, U>,
    ) -> Result<(), Error> {
        for Part { input, output, len, axes } in parts(axes, MAX_ELEMENTS) {
            let elements = matrices.reborrow();
            let arguments = swap_strided::Args { elements, first: input, second: output, len, axes };
            self.launch(kernel, len.div_ceil(COPY_BLOCK as u32), arguments)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(extent: usize, input: usize, output: usize) -> Axis {
        Axis { extent, input, output }
    }

    #[test]
    fn axes_that_are_one_on_both_sides_are_merged() {
        let merged_of = |axes: &[Axis]| merged(axes);
        assert_eq!(merged_of(&[axis(5, 3, 3), axis(3, 1, 1)]), [axis(15, 1, 1)]);
        assert_eq!(merged_of(&[axis(5, 4, 3), axis(3, 1, 1)]), [axis(3, 1, 1), axis(5, 4, 3)]);
        assert_eq!(merged_of(&[axis(1, 9, 9), axis(7, 2, 100), axis(4, 14, 20)]), [axis(4, 14, 20), axis(7, 2, 100)]);
        assert_eq!(merged_of(&[axis(0, 1, 1)]), [axis(0, 1, 1)]);
        assert_eq!(merged_of(&[axis(1, 1, 1)]), []);
    }

    /// The positions that the parts give, in their order, and the most elements of a part.
    fn positions(axes: &[Axis], max_elements: usize) -> (Vec<(usize, usize)>, usize) {
        let parts = parts(axes, max_elements);
        let of = |part: &Part| -> Vec<(usize, usize)> {
            let at = |i| part.axes.positions(i);
            (0..part.len).map(|i| (part.input + at(i).0 as usize, part.output + at(i).1 as usize)).collect()
        };
        (parts.iter().flat_map(of).collect(), parts.iter().map(|part| part.len as usize).max().unwrap_or(0))
    }

    #[test]
    fn the_parts_have_each_element_once() {
        // Ten axes of the extents, with gaps on both sides, and the output's axes in another order.
        let extents = [2, 3, 1, 2, 5, 2, 2, 3, 2, 2];
        let (mut axes, mut input) = (Vec::new(), 1);
        for &extent in &extents {
            axes.push(axis(extent, input, 0));
            input *= extent + 1;
        }
        let mut output = 2;
        for k in [3, 0, 9, 5, 1, 2, 8, 4, 7, 6] {
            axes[k].output = output;
            output = output * axes[k].extent + 1;
        }
        let mut expected = vec![(0, 0)];
        for axis in &axes {
            let of = |i: usize| (i * axis.input, i * axis.output);
            let all = (0..axis.extent).flat_map(|i| expected.iter().map(move |at| (at.0 + of(i).0, at.1 + of(i).1)));
            expected = all.collect();
        }
        expected.sort_unstable();
        for max_elements in [1, 2, 3, 7, 64, 100, 1000, MAX_ELEMENTS] {
            let (mut found, most) = positions(&axes, max_elements);
            found.sort_unstable();
            assert_eq!(found, expected, "{max_elements} in a part");
            assert!(most <= max_elements, "{most} in a part of at most {max_elements}");
        }
        assert_eq!(positions(&[axis(3, 5, 1), axis(0, 1, 3)], 100).0, []);
        assert_eq!(positions(&[], 100).0, [(0, 0)]);
    }
}
