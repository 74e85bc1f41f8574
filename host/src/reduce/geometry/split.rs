//! The kept and the reduced axes of a reduction, as they lie in memory.

use super::{Allowed, Geometry, Launch, Order};
use crate::reduce::axes::Reduced;
use crate::{Error, Layout};

/// An axis that is kept or reduced: its extent, and the distance between neighbours in each input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis<const N: usize> {
    pub extent: usize,
    pub strides: [isize; N],
}

impl<const N: usize> Axis<N> {
    /// The largest distance between neighbours, by which axes are sorted.
    fn reach(&self) -> usize {
        self.strides.iter().map(|stride| stride.unsigned_abs()).max().unwrap_or(0)
    }
}

/// Which kernels give the operator's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Either,
    Rows,
    Columns,
}

/// The kept and the reduced axes of `N` layouts with the same extents.
pub(super) struct Split<const N: usize> {
    /// The positions of the elements from which all axes below go, relative to each layout's offset.
    pub first: [isize; N],
    /// The kept axes by their strides, the longest first, merged, with positive strides (of the first input that has
    /// any); or in C order, merged.
    pub kept: Vec<Axis<N>>,
    /// The reduced axes, the slowest first: in the view's order, or by their strides.
    pub reduced: Vec<Axis<N>>,
    /// The same, merged.
    pub merged: Vec<Axis<N>>,
    pub wanted: Wanted,
    /// The number of outputs.
    pub outputs: usize,
    /// Where the result for each element of the output is, among results in the order of [`Split::kept`].
    pub results: Layout,
}

impl<const N: usize> Split<N> {
    pub fn of(layouts: [&Layout; N], reduced: &Reduced, allowed: Allowed) -> Result<Self, Error> {
        let (extents, order) = (layouts[0].extents(), allowed.order);
        let of = |is_reduced: bool| -> Vec<(usize, Axis<N>)> {
            let axes = (0..extents.len()).filter(|&axis| reduced.has(axis) == is_reduced && extents[axis] != 1);
            axes.map(|at| (at, Axis { extent: extents[at], strides: layouts.map(|layout| layout.strides()[at]) }))
                .collect()
        };
        let (mut kept, mut others) = (of(false), of(true));
        let mut first = [0; N];
        let mut flipped = Vec::new();
        if !allowed.in_place {
            flipped = flip(&mut kept, &mut first);
            // The same results for each index: they are computed once.
            kept.retain(|(_, axis)| axis.reach() != 0 || axis.extent == 0);
            kept.sort_by_key(|(_, axis)| std::cmp::Reverse(axis.reach()));
        }
        if order == Order::Any {
            flip(&mut others, &mut first);
            others.sort_by_key(|(_, axis)| std::cmp::Reverse(axis.reach()));
        }
        let output_extents = reduced.output_extents(layouts[0]);
        let outputs = output_extents.iter().product();
        let results = match allowed.in_place {
            true => Layout::contiguous(&output_extents)?,
            false => results(extents, reduced, &output_extents, &kept, &flipped)?,
        };
        let axes = |axes: Vec<(usize, Axis<N>)>| -> Vec<Axis<N>> { axes.into_iter().map(|(_, axis)| axis).collect() };
        let (kept, reduced_axes) = (axes(kept), axes(others));
        Ok(Self {
            first,
            kept: merged(&kept),
            merged: merged(&reduced_axes),
            reduced: reduced_axes,
            wanted: wanted(layouts[0], reduced, order),
            outputs,
            results,
        })
    }

    /// The number of elements of an output.
    pub fn len(&self) -> usize {
        product(&self.reduced)
    }

    /// The reduction of no elements to each output, or of any elements to none.
    pub fn of_no_elements<K>(&self, kind: K) -> Result<Geometry<N, K>, Error> {
        let results = Layout::contiguous(self.results.extents())?;
        let launches = vec![Launch { input: [0; N], result: 0 }];
        Ok(Geometry { kind, copies: [None; N], launches, results, rest: None })
    }

    /// Divides the kept axes so that a part has at most `max_elements` elements, unless a single output has more.
    pub fn cut(&self, max_elements: usize) -> Cut<N> {
        let most = (max_elements / self.len().max(1)).max(1);
        let (mut inner, mut each) = (self.kept.len(), 1);
        while inner > 0 && self.kept[inner - 1].extent <= most / each {
            inner -= 1;
            each *= self.kept[inner].extent;
        }
        let axis = inner.checked_sub(1).map(|axis| self.kept[axis]);
        let range = (most / each).clamp(1, axis.map_or(1, |axis| axis.extent));
        Cut { inner, each, axis, range }
    }

    /// The launches of the parts that begin at these indices of the axis that is cut.
    pub fn launches(&self, cut: &Cut<N>, firsts: &[usize]) -> Vec<Launch<N>> {
        let outer = &self.kept[..cut.inner.saturating_sub(1)];
        let mut launches = Vec::new();
        for number in 0..product(outer) {
            let (mut left, mut input) = (number, self.first);
            for axis in outer.iter().rev() {
                advance(&mut input, axis, left % axis.extent);
                left /= axis.extent;
            }
            launches.extend(firsts.iter().map(|&first| {
                let mut input = input;
                cut.axis.iter().for_each(|axis| advance(&mut input, axis, first));
                Launch { input, result: (number * cut.len() + first) * cut.each }
            }));
        }
        launches
    }
}

/// A division of the kept axes into parts. The inner axes are whole in each part, the next axis is cut, and each index
/// of the others has its own parts.
pub(super) struct Cut<const N: usize> {
    /// The first inner axis.
    inner: usize,
    /// Outputs of an index of the axis that is cut.
    each: usize,
    /// The axis that is cut, unless all are inner ones.
    axis: Option<Axis<N>>,
    /// Indices of a part.
    pub range: usize,
}

impl<const N: usize> Cut<N> {
    /// The extent of the axis that is cut.
    pub fn len(&self) -> usize {
        self.axis.map_or(1, |axis| axis.extent)
    }

    /// The indices in whole parts.
    pub fn whole_len(&self) -> usize {
        self.len() / self.range * self.range
    }

    /// The kept axes of a part with `range` indices of the axis that is cut.
    pub fn axes_of_part(&self, kept: &[Axis<N>], range: usize) -> Vec<Axis<N>> {
        let of_cut = self.axis.map(|axis| Axis { extent: range, ..axis });
        of_cut.into_iter().chain(kept[self.inner..].iter().copied()).collect()
    }

    pub fn firsts_of_whole(&self) -> Vec<usize> {
        (0..self.whole_len()).step_by(self.range).collect()
    }

    /// The last part begins earlier, so that all are of one shape; some results are computed twice.
    pub fn overlapping_firsts(&self) -> Vec<usize> {
        (0..self.len()).step_by(self.range).map(|first| first.min(self.len() - self.range)).collect()
    }
}

/// Moves positions by `count` indices of an axis.
pub(super) fn advance<const N: usize>(input: &mut [isize; N], axis: &Axis<N>, count: usize) {
    input.iter_mut().zip(axis.strides).for_each(|(position, stride)| *position += count as isize * stride);
}

/// Reverses the axes whose first stride other than 0 is negative, and moves the first positions to their other ends.
/// Returns their numbers.
fn flip<const N: usize>(axes: &mut [(usize, Axis<N>)], first: &mut [isize; N]) -> Vec<usize> {
    let mut flipped = Vec::new();
    for (at, axis) in axes {
        if axis.extent > 0 && axis.strides.iter().find(|&&stride| stride != 0).is_some_and(|&stride| stride < 0) {
            advance(first, axis, axis.extent - 1);
            axis.strides = axis.strides.map(|stride| -stride);
            flipped.push(*at);
        }
    }
    flipped
}

/// Where the result for each element of the output is, among results in the order of the kept axes.
fn results<const N: usize>(
    extents: &[usize],
    reduced: &Reduced,
    output_extents: &[usize],
    kept: &[(usize, Axis<N>)],
    flipped: &[usize],
) -> Result<Layout, Error> {
    let mut strides = vec![0_isize; extents.len()];
    let (mut next, mut offset) = (1_usize, 0);
    for &(at, axis) in kept.iter().rev() {
        strides[at] = next as isize;
        if flipped.contains(&at) {
            strides[at] = -strides[at];
            offset += next * (axis.extent - 1);
        }
        next *= axis.extent;
    }
    let has_axis = |axis: &usize| !reduced.has(*axis) || output_extents.len() == extents.len();
    let of_output: Vec<isize> = (0..extents.len()).filter(has_axis).map(|axis| strides[axis]).collect();
    Layout::strided(output_extents, &of_output, if output_extents.contains(&0) { 0 } else { offset })
}

/// The kernels whose result is that of the operator.
///
/// An order depends on the extents alone. Axes of one element do not count, and neighbours that are reduced are one
/// axis. If that is the last one, or if there are several, the elements of an output are a row; otherwise a column.
fn wanted(layout: &Layout, reduced: &Reduced, order: Order) -> Wanted {
    let counting: Vec<bool> =
        (0..layout.rank()).filter(|&axis| layout.extents()[axis] != 1).map(|axis| reduced.has(axis)).collect();
    let groups = counting.chunk_by(|a, b| a == b).filter(|group| group[0]).count();
    match order {
        Order::Any => Wanted::Either,
        Order::OfView if groups != 1 || counting.last() == Some(&true) => Wanted::Rows,
        Order::OfView => Wanted::Columns,
    }
}

/// Axes in their order, of which neighbours that are one axis in every input are merged.
pub(super) fn merged<const N: usize>(axes: &[Axis<N>]) -> Vec<Axis<N>> {
    let mut merged: Vec<Axis<N>> = Vec::with_capacity(axes.len());
    for &axis in axes {
        let is_next = |outer: &Axis<N>| {
            let mut strides = axis.strides.iter().zip(outer.strides);
            strides.all(|(stride, outer)| stride.checked_mul(axis.extent as isize) == Some(outer))
        };
        match merged.last_mut() {
            Some(outer) if is_next(outer) => {
                *outer = Axis { extent: outer.extent * axis.extent, strides: axis.strides };
            }
            _ => merged.push(axis),
        }
    }
    merged
}

pub(super) fn product<const N: usize>(axes: &[Axis<N>]) -> usize {
    axes.iter().map(|axis| axis.extent).product()
}
