//! The plan and launch of copies between any two layouts: the general method.

use cuda_std::element::Plain;
use cuda_std::launch::Kernel;
use kernels::transpose::copy::strided::{ELEMENTS_OF_BLOCK, FEW_AXES, ScaledCopyArgs, copy_strided, swap_strided};
use kernels::transpose::digits::{Digit, Digits};
use kernels::transpose::tuning::COPY_BLOCK;

use super::canonical::{Axis, Canonical};
use super::kernel_table::{HasKernels, StridedKernel, for_unit};
use super::scaled::KernelScaling;
use super::unit::Unit;
use crate::{Error, Gpu, View, ViewMut};

/// The maximum number of elements of a launch: its kernel divides numbers below 2^31.
const MAX_ELEMENTS: usize = (1 << 31) - 1;

/// A launch's part of the elements: the first element's position on both sides, and the axes from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part<const AXES: usize> {
    input: usize,
    output: usize,
    len: u32,
    axes: Digits<AXES>,
}

/// The launches for a copy, each of at most `max_elements` elements and `AXES` axes.
///
/// The innermost axes are whole in each launch, the next axis is cut into ranges, and each index of the others has its
/// own launches.
fn parts<const AXES: usize>(copy: &Canonical, max_elements: usize) -> Vec<Part<AXES>> {
    let Canonical { axes, .. } = copy;
    let (mut inner, mut len) = (0, 1);
    while inner < axes.len().min(AXES - 1) && axes[inner].extent <= max_elements / len {
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
        let (mut left, mut input, mut output) = (number, copy.input, copy.output);
        let step = |axis: &Axis, index: usize, input: usize, output: usize| {
            let along = |stride: isize| index as isize * stride;
            (input.wrapping_add_signed(along(axis.input)), output.wrapping_add_signed(along(axis.output)))
        };
        for axis in outer {
            (input, output) = step(axis, left % axis.extent, input, output);
            left /= axis.extent;
        }
        for first in (0..cut.extent).step_by(most) {
            let range = Axis { extent: most.min(cut.extent - first), ..cut };
            let digits: Vec<Digit> = inner.iter().chain([&range]).map(Axis::digit).collect();
            let (input, output) = step(&cut, first, input, output);
            parts.push(Part { input, output, len: (len * range.extent) as u32, axes: Digits::new(&digits) });
        }
    }
    parts
}

impl Axis {
    fn digit(&self) -> Digit {
        Digit::new(self.extent, self.input as i64, self.output as i64)
    }
}

impl Gpu {
    /// Copies units one by one. The views have them, and begin at multiples of the unit.
    pub(super) fn copy_strided(
        &self,
        copy: &Canonical,
        input: View<'_, u8>,
        output: ViewMut<'_, u8>,
    ) -> Result<(), Error> {
        for_unit!(copy.unit, |U| {
            let (input, output) = (input.cast::<U>(), output.cast::<U>());
            let (few, many) = U::kernels().strided;
            match copy.axes.len() <= FEW_AXES {
                true => self.copy_parts(few, copy, input, output),
                false => self.copy_parts(many, copy, input, output),
            }
        })
    }

    fn copy_parts<U: Plain, const AXES: usize>(
        &self,
        kernel: StridedKernel<U, AXES>,
        copy: &Canonical,
        input: View<'_, U>,
        mut output: ViewMut<'_, U>,
    ) -> Result<(), Error> {
        for Part { input: first, output: to, len, axes } in parts(copy, MAX_ELEMENTS) {
            let output = output.reborrow().skip(to)?;
            let blocks = len.div_ceil(ELEMENTS_OF_BLOCK as u32);
            self.launch(kernel, blocks, copy_strided::Args { input, first, output, len, axes })?;
        }
        Ok(())
    }

    /// [`Gpu::copy_strided`] of numbers of one unit each, which `kernel` scales.
    pub(super) fn copy_strided_scaled<U: Plain>(
        &self,
        kernel: Kernel<ScaledCopyArgs<'static, U>>,
        copy: &Canonical,
        scaling: KernelScaling,
        input: View<'_, U>,
        mut output: ViewMut<'_, U>,
    ) -> Result<(), Error> {
        let KernelScaling { operations, factor: [real, imaginary] } = scaling;
        for Part { input: first, output: to, len, axes } in parts(copy, MAX_ELEMENTS) {
            let output = output.reborrow().skip(to)?;
            let blocks = len.div_ceil(ELEMENTS_OF_BLOCK as u32);
            let arguments = ScaledCopyArgs { input, first, output, len, axes, operations, real, imaginary };
            self.launch(kernel, blocks, arguments)?;
        }
        Ok(())
    }

    /// Exchanges units one by one: each at the first position of a pair with that at the second. The axes give each
    /// pair of positions in both orders, and no unit is in two pairs. The view has them, and begins at a multiple of
    /// the unit.
    pub(super) fn swap_strided(&self, pairs: &Canonical, elements: ViewMut<'_, u8>) -> Result<(), Error> {
        for_unit!(pairs.unit, |U| self.swap_parts(U::kernels().swap, pairs, elements.cast::<U>()))
    }

    fn swap_parts<U: Plain>(
        &self,
        kernel: Kernel<swap_strided::Args<'static, U>>,
        pairs: &Canonical,
        mut elements: ViewMut<'_, U>,
    ) -> Result<(), Error> {
        for Part { input, output, len, axes } in parts::<FEW_AXES>(pairs, MAX_ELEMENTS) {
            let elements = elements.reborrow();
            let arguments = swap_strided::Args { elements, first: input, second: output, len, axes };
            self.launch(kernel, len.div_ceil(COPY_BLOCK as u32), arguments)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kernels::transpose::copy::strided::MAX_AXES;

    use super::*;
    use crate::transpose::canonical::merged;

    fn axis(extent: usize, input: isize, output: isize) -> Axis {
        Axis { extent, input, output }
    }

    /// The positions that the parts give, in their order, and the most elements of a part.
    fn positions<const AXES: usize>(axes: &[Axis], max_elements: usize) -> (Vec<(usize, usize)>, usize) {
        let copy = Canonical { unit: Unit::One, input: 100_000, output: 7, axes: merged(axes.to_vec()) };
        let parts = parts::<AXES>(&copy, max_elements);
        let of = |part: &Part<AXES>| -> Vec<(usize, usize)> {
            let at = |i| part.axes.positions(i);
            (0..part.len)
                .map(|i| (part.input.wrapping_add_signed(at(i).0 as isize), part.output + at(i).1 as usize))
                .collect()
        };
        (parts.iter().flat_map(of).collect(), parts.iter().map(|part| part.len as usize).max().unwrap_or(0))
    }

    #[test]
    fn the_parts_have_each_element_once() {
        // Ten axes of the extents, with gaps on both sides, and the output's axes in another order.
        let extents = [2, 3, 1, 2, 5, 2, 2, 3, 2, 2];
        let (mut axes, mut input) = (Vec::new(), 1);
        for &extent in &extents {
            axes.push(axis(extent, if extent == 5 { -input } else { input }, 0));
            input *= extent as isize + 1;
        }
        let mut output = 2;
        for k in [3, 0, 9, 5, 1, 2, 8, 4, 7, 6] {
            axes[k].output = output;
            output = output * axes[k].extent as isize + 1;
        }
        let mut expected = vec![(100_000, 7)];
        for axis in &axes {
            let of = |i: usize| (i as isize * axis.input, i as isize * axis.output);
            let all = (0..axis.extent)
                .flat_map(|i| expected.iter().map(move |at: &(isize, isize)| (at.0 + of(i).0, at.1 + of(i).1)));
            expected = all.collect();
        }
        expected.sort_unstable();
        let expected: Vec<_> = expected.iter().map(|at| (at.0 as usize, at.1 as usize)).collect();
        for max_elements in [1, 2, 3, 7, 64, 100, 1000, MAX_ELEMENTS] {
            for (mut found, most) in
                [positions::<FEW_AXES>(&axes, max_elements), positions::<MAX_AXES>(&axes, max_elements)]
            {
                found.sort_unstable();
                assert_eq!(found, expected, "{max_elements} in a part");
                assert!(most <= max_elements, "{most} in a part of at most {max_elements}");
            }
        }
        assert_eq!(positions::<FEW_AXES>(&[], 100).0, [(100_000, 7)]);
    }
}
