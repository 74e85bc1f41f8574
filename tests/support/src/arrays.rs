//! Copies between any two layouts, and reductions along any axes, compared with a plain loop over the indices.

use crate::by_shape::ByShape;
use crate::shape::Shape;
use cuda_std::bytemuck::{Pod, Zeroable, bytes_of, cast_slice_mut};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, RngCore, SeedableRng};
use warpfold::exact::ExactSum;
use warpfold::ops::{
    ArgMax, ArgMin, CountNonzero, Max, Mean, Min, MinMax, Norm, PairwiseSum, Product, Sum, SumOfSquares,
};
use warpfold::{ArrayView, ArrayViewMut, Axes, Element, Error, Gpu, Layout, Plain, Reduction};

/// Copies an array of random layouts, and compares all of the output's memory: what lies between its elements and
/// around them must not be written. The numbers are the seed and the maximum number of elements.
pub type Check = fn(&Gpu, u64, usize) -> Result<(), String>;

/// One check for each size of elements.
pub static CHECKS: [(&str, Check); 10] = [
    ("1 byte", check::<u8>),
    ("2 bytes", check::<u16>),
    ("3 bytes", check::<[u8; 3]>),
    ("4 bytes", check::<f32>),
    ("6 bytes", check::<[u16; 3]>),
    ("8 bytes", check::<f64>),
    ("12 bytes", check::<[f32; 3]>),
    ("16 bytes", check::<[f64; 2]>),
    ("16 bytes at any address", check::<[u8; 16]>),
    ("48 bytes", check::<[u64; 6]>),
];

/// The number of elements after the last one of an output that must not be written.
const GUARD: usize = 40;

/// The position of each element of a layout, in C order.
pub fn positions(layout: &Layout) -> Vec<usize> {
    let mut all = vec![layout.offset()];
    for (&extent, &stride) in layout.extents().iter().zip(layout.strides()) {
        let along = |first: usize| (0..extent as isize).map(move |i| first.wrapping_add_signed(i * stride));
        all = all.into_iter().flat_map(along).collect();
    }
    all
}

/// The extents of an array: up to eight axes, of which some have one element, and now and then one has none.
pub fn extents(source: &mut SmallRng, most: usize) -> Vec<usize> {
    let rank = source.random_range(0..=8);
    let mut left = most.max(1);
    let mut extents: Vec<usize> = (0..rank)
        .map(|_| {
            let extent = match source.random_range(0..8) {
                0 => 1,
                1 => source.random_range(1..=most),
                2 => 16 * source.random_range(1..=8),
                _ => source.random_range(2..=9),
            };
            let extent = extent.min(left);
            left /= extent;
            extent
        })
        .collect();
    extents.shuffle(source);
    if rank > 0 && source.random_range(0..40) == 0 {
        extents[0] = 0;
    }
    extents
}

/// A layout of these extents. Its axes lie in memory in a random order, some with gaps, and some backwards. With
/// `repeats`, the elements of some axes are one element.
pub fn layout(source: &mut SmallRng, extents: &[usize], repeats: bool) -> Result<Layout, Error> {
    let mut order: Vec<usize> = (0..extents.len()).collect();
    if source.random_bool(0.7) {
        order.shuffle(source);
    } else {
        order.reverse();
    }
    let has_gaps = source.random_bool(0.5);
    let gap = |source: &mut SmallRng| if has_gaps && source.random_bool(0.3) { source.random_range(1..5) } else { 0 };
    let mut strides = vec![0_isize; extents.len()];
    let (mut next, mut offset) =
        (1 + gap(source), if source.random_bool(0.5) { 0 } else { source.random_range(0..20) });
    let has_signs = source.random_bool(0.3);
    for axis in order {
        if repeats && source.random_bool(0.1) {
            continue;
        }
        strides[axis] = next as isize;
        let reach = next * extents[axis].saturating_sub(1);
        if has_signs && source.random_bool(0.5) {
            strides[axis] = -strides[axis];
            offset += reach;
        }
        next = reach + next + gap(source);
    }
    Layout::strided(extents, &strides, offset)
}

fn check<T: Plain + Pod>(gpu: &Gpu, seed: u64, most: usize) -> Result<(), String> {
    let mut source = SmallRng::seed_from_u64(seed);
    let extents = extents(&mut source, most);
    let has_repeats = source.random_bool(0.2);
    let layouts = (layout(&mut source, &extents, has_repeats), layout(&mut source, &extents, false));
    let (Ok(from), Ok(to)) = layouts else { return Err(format!("no layout of {extents:?}: {layouts:?}")) };
    let mut noise = |len: usize| {
        let mut elements = vec![T::zeroed(); len];
        source.fill_bytes(cast_slice_mut(&mut elements));
        elements
    };
    let (elements, poison) = (noise(from.required_len()), noise(to.required_len() + GUARD));
    let mut expected = poison.clone();
    for (from, to) in positions(&from).into_iter().zip(positions(&to)) {
        expected[to] = elements[from];
    }
    let run = || {
        let (input, mut output) = (gpu.upload(&elements)?, gpu.upload(&poison)?);
        gpu.copy_array(ArrayView::new(input.view(), &from)?, ArrayViewMut::new(output.view_mut(), &to)?)?;
        let in_order = gpu.download(ArrayView::new(input.view(), &from)?)?;
        Ok((gpu.download(&output)?, in_order))
    };
    let case = || format!("seed {seed}: {from:?} to {to:?}, of {} bytes", size_of::<T>());
    let (found, in_order) = run().map_err(|error: Error| format!("{}: {error}", case()))?;
    let differ = |(found, expected): (&T, &T)| bytes_of(found) != bytes_of(expected);
    if let Some(at) = found.iter().zip(&expected).position(differ) {
        return Err(format!("{}: position {at} is wrong", case()));
    }
    match positions(&from).into_iter().zip(&in_order).position(|(at, found)| differ((found, &elements[at]))) {
        None => Ok(()),
        Some(at) => Err(format!("{}: element {at} of the download is wrong", case())),
    }
}

/// A reduction of an array of a random layout along random axes to an output of a random layout, by operators of each
/// kind. The numbers are the seed and the maximum number of elements.
pub fn check_reduced(gpu: &Gpu, seed: u64, most: usize) -> Result<(), String> {
    let mut source = SmallRng::seed_from_u64(seed);
    let extents = extents(&mut source, most);
    let has_repeats = source.random_bool(0.2);
    let from = layout(&mut source, &extents, has_repeats).map_err(|error| format!("{extents:?}: {error}"))?;
    let case = Reduced::new(&mut source, from)?;
    let integers: Vec<i32> = (0..case.from.required_len()).map(|_| source.random_range(-50..50)).collect();
    let floats: Vec<f32> = integers.iter().map(|&x| x as f32 * 2.0_f32.powi(x % 40)).collect();
    let doubles: Vec<f64> = floats.iter().map(|&x| f64::from(x)).collect();
    let sum = |all: &[i32]| all.iter().map(|&x| i64::from(x)).sum::<i64>();
    let exact = |all: &[f32]| all.iter().copied().collect::<ExactSum<f32>>().value();
    case.check(gpu, &mut source, "sum", Sum, &integers, sum)?;
    case.check(gpu, &mut source, "exact sum", Sum, &floats, |all| exact(all).to_bits())?;
    case.check(gpu, &mut source, "count", CountNonzero, &integers, |all| {
        all.iter().filter(|x| **x != 0).count() as u64
    })?;
    case.check(gpu, &mut source, "product", Product, &integers, |all| {
        all.iter().fold(1_i64, |product, &x| product.wrapping_mul(i64::from(x)))
    })?;
    if case.len > 0 {
        case.check(gpu, &mut source, "minimum", Min, &integers, |all| all.iter().copied().min().unwrap_or(0))?;
        case.check(gpu, &mut source, "maximum of floats", Max, &floats, |all| {
            all.iter().copied().reduce(f32::max).unwrap_or(0.0).to_bits()
        })?;
        case.check(gpu, &mut source, "both", MinMax, &integers, |all| {
            [all.iter().copied().min().unwrap_or(0), all.iter().copied().max().unwrap_or(0)]
        })?;
        case.check(gpu, &mut source, "mean", Mean, &floats, |all| {
            all.iter().copied().collect::<ExactSum<f32>>().mean::<f32>().to_bits()
        })?;
        let squares = |all: &[f64]| all.iter().map(|x| x * x).collect::<Vec<_>>();
        // Squares of these numbers are exact in f64.
        case.check(gpu, &mut source, "squares", SumOfSquares, &doubles, |all| {
            squares(all).into_iter().collect::<ExactSum<f64>>().value().to_bits()
        })?;
        case.check(gpu, &mut source, "norm", Norm, &integers, |all| {
            let total: i64 = all.iter().map(|&x| i64::from(x) * i64::from(x)).sum();
            (total as f64).sqrt().to_bits()
        })?;
    }
    let is_one_or_all = case.axes.len() == 1 || case.axes.len() == case.from.rank();
    let first = |all: &[i32], is_better: fn(i32, i32) -> bool| {
        (1..all.len()).fold(0, |best, at| if is_better(all[at], all[best]) { at } else { best }) as u64
    };
    if case.len > 0 && is_one_or_all {
        case.check(gpu, &mut source, "place of the maximum", ArgMax, &integers, |all| first(all, |a, b| a > b))?;
        case.check(gpu, &mut source, "place of the minimum", ArgMin, &integers, |all| first(all, |a, b| a < b))?;
    } else if !is_one_or_all {
        let input = gpu.upload(&integers).map_err(|error| error.to_string())?;
        let view = ArrayView::new(input.view(), &case.from).map_err(|error| error.to_string())?;
        match gpu.reduce(ArgMax, view, &case.axes[..]) {
            Err(Error::IndexOverAxes { found, .. }) if found == case.axes.len() => {}
            other => return Err(format!("{}: an index over several axes: {other:?}", case.name())),
        }
    }
    case.check_running_sums(gpu, &floats)?;
    case.check_order(gpu, "ordered product", Product, &floats)?;
    case.check_order(gpu, "pairwise sum", PairwiseSum, &floats)
}

/// A layout and the axes along which it is reduced.
struct Reduced {
    from: Layout,
    /// Some of them counted from the end.
    axes: Vec<isize>,
    is_reduced: Vec<bool>,
    keep_dims: bool,
    /// The extents of the output.
    outputs: Vec<usize>,
    /// The number of elements of each output.
    len: usize,
}

impl Reduced {
    fn new(source: &mut SmallRng, from: Layout) -> Result<Self, String> {
        let rank = from.rank();
        let is_reduced: Vec<bool> = match source.random_range(0..6) {
            0 => vec![true; rank],
            1 if rank > 0 => {
                let only = source.random_range(0..rank);
                (0..rank).map(|axis| axis == only).collect()
            }
            _ => (0..rank).map(|_| source.random_bool(0.5)).collect(),
        };
        let mut axes: Vec<isize> = (0..rank as isize).filter(|&axis| is_reduced[axis as usize]).collect();
        axes.shuffle(source);
        axes.iter_mut().filter(|_| source.random_bool(0.5)).for_each(|axis| *axis -= rank as isize);
        let keep_dims = source.random_bool(0.3);
        let all = from.extents().iter().zip(&is_reduced);
        let outputs = all.clone().filter(|(_, is_reduced)| keep_dims || !**is_reduced);
        let outputs = outputs.map(|(&extent, &is_reduced)| if is_reduced { 1 } else { extent }).collect();
        let len = all.filter(|(_, is_reduced)| **is_reduced).map(|(&extent, _)| extent).product();
        Ok(Self { from, axes, is_reduced, keep_dims, outputs, len })
    }

    fn name(&self) -> String {
        format!("{:?} along {:?}{}", self.from, self.axes, if self.keep_dims { ", which are kept" } else { "" })
    }

    fn axes(&self) -> Axes {
        let axes = Axes::from(&self.axes[..]);
        if self.keep_dims { axes.keep_dims() } else { axes }
    }

    /// The positions of the elements of each output, in C order.
    fn positions(&self) -> Vec<Vec<usize>> {
        let of = |is_reduced: bool, offset: usize| {
            let axes: Vec<usize> = (0..self.from.rank()).filter(|&axis| self.is_reduced[axis] == is_reduced).collect();
            let mut all = vec![offset];
            for axis in axes {
                let (extent, stride) = (self.from.extents()[axis] as isize, self.from.strides()[axis]);
                let along = |first: usize| (0..extent).map(move |i| first.wrapping_add_signed(i * stride));
                all = all.into_iter().flat_map(along).collect();
            }
            all
        };
        of(false, self.from.offset()).into_iter().map(|first| of(true, first)).collect()
    }

    /// Reduces by an operator to a new array, and to one of a random layout whose other memory must not be written.
    fn check<T, O, E>(
        &self,
        gpu: &Gpu,
        source: &mut SmallRng,
        what: &str,
        operator: O,
        elements: &[T],
        expected: impl Fn(&[T]) -> E,
    ) -> Result<(), String>
    where
        T: Element,
        O: Reduction<T, Output: Pod + SameBits<E>> + Copy,
        E: PartialEq + std::fmt::Debug,
    {
        let of = |at: &Vec<usize>| expected(&at.iter().map(|&at| elements[at]).collect::<Vec<T>>());
        let wanted: Vec<E> = self.positions().iter().map(of).collect();
        let to = layout(source, &self.outputs, false).map_err(|error| error.to_string())?;
        let mut poison = vec![O::Output::zeroed(); to.required_len() + GUARD];
        source.fill_bytes(cast_slice_mut(&mut poison));
        let is_recorded = source.random_bool(0.3);
        let run = || {
            let (input, mut output) = (gpu.upload(elements)?, gpu.upload(&poison)?);
            let view = ArrayView::new(input.view(), &self.from)?;
            let result = gpu.reduce(operator, view, self.axes())?;
            let extents = result.extents().to_vec();
            gpu.reduce_into(operator, view, self.axes(), ArrayViewMut::new(output.view_mut(), &to)?)?;
            let mut recorded = None;
            if is_recorded {
                let (mut reducer, mut again) =
                    (gpu.reducer(operator, &self.from, self.axes())?, gpu.zeroed(result.len())?);
                let recording = gpu.record(|| reducer.start(view, &mut again))?;
                recording.start()?;
                recording.start()?;
                recorded = Some(gpu.download(&again)?);
            }
            Ok((extents, gpu.download(&result)?, gpu.download(&output)?, recorded))
        };
        let case = || format!("the {what} of {}", self.name());
        let (extents, found, output, recorded) = run().map_err(|error: Error| format!("{}: {error}", case()))?;
        if extents != self.outputs {
            return Err(format!("{}: the result is of {extents:?}", case()));
        }
        let bits: Vec<E> = found.iter().map(SameBits::bits).collect();
        let differs = |all: Vec<O::Output>| all.iter().map(SameBits::bits).collect::<Vec<E>>() != wanted;
        if recorded.is_some_and(differs) {
            return Err(format!("{}: a recording gives other results", case()));
        }
        if bits != wanted {
            let at = (0..bits.len()).find(|&at| bits[at] != wanted[at]);
            return Err(format!(
                "{}: output {at:?} of {} is {:?}",
                case(),
                wanted.len(),
                at.map(|at| (&bits[at], &wanted[at]))
            ));
        }
        let mut in_memory = poison.clone();
        positions(&to).into_iter().zip(&found).for_each(|(at, result)| in_memory[at] = *result);
        let differ = |(found, expected): (&O::Output, &O::Output)| bytes_of(found) != bytes_of(expected);
        match output.iter().zip(&in_memory).position(differ) {
            None => Ok(()),
            Some(at) => Err(format!("{} to {to:?}: position {at} is wrong", case())),
        }
    }

    /// Adds the elements to exact sums, twice.
    fn check_running_sums(&self, gpu: &Gpu, elements: &[f32]) -> Result<(), String> {
        let all = self.positions();
        let run = || {
            let input = gpu.upload(elements)?;
            let mut sums = gpu.exact_sums::<f32>(all.len())?;
            for _ in 0..2 {
                sums.add(ArrayView::new(input.view(), &self.from)?, self.axes())?;
            }
            gpu.download(&sums.values()?)
        };
        let found = run().map_err(|error: Error| format!("running sums of {}: {error}", self.name()))?;
        let of = |at: &Vec<usize>| at.iter().chain(at).map(|&at| elements[at]).collect::<ExactSum<f32>>().value();
        match all.iter().zip(&found).position(|(at, found)| of(at).to_bits() != found.to_bits()) {
            None => Ok(()),
            Some(at) => {
                Err(format!("running sum {at} of {} is {}, should be {}", self.name(), found[at], of(&all[at])))
            }
        }
    }

    /// An operator with an order takes the elements as the same array without gaps would give them: as a row, or as a
    /// column.
    fn check_order<O: Reduction<f32, Output = f32> + Copy>(
        &self,
        gpu: &Gpu,
        what: &str,
        operator: O,
        elements: &[f32],
    ) -> Result<(), String> {
        // Axes of one element do not count.
        let counting: Vec<bool> = (0..self.from.rank())
            .filter(|&axis| self.from.extents()[axis] != 1)
            .map(|axis| self.is_reduced[axis])
            .collect();
        let groups = counting.chunk_by(|a, b| a == b).filter(|group| group[0]).count();
        let is_row = groups != 1 || counting.last() == Some(&true);
        let all = self.positions();
        let run = || {
            let input = gpu.upload(elements)?;
            let found =
                gpu.download(&gpu.reduce(operator, ArrayView::new(input.view(), &self.from)?, self.axes())?)?;
            let outputs = all.len();
            let (gathered, shape) = match is_row {
                true => (all.iter().flatten().map(|&at| elements[at]).collect(), Shape::rows(outputs, self.len)),
                false => {
                    let by_row = |i: usize| all.iter().map(move |of_output| elements[of_output[i]]);
                    ((0..self.len).flat_map(by_row).collect::<Vec<f32>>(), Shape::columns(self.len, outputs))
                }
            };
            let expected = gpu.download(&gpu.reduce_to_buffer(operator, &gpu.upload(&gathered)?, shape)?)?;
            Ok((found, expected))
        };
        let (found, expected) = run().map_err(|error: Error| format!("{what}, {}: {error}", self.name()))?;
        let bits = |all: Vec<f32>| all.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        match bits(found) == bits(expected) {
            true => Ok(()),
            false => Err(format!("the {what} of {} has another order", self.name())),
        }
    }
}

/// A result as what it is compared by: a float's bits, and all else itself.
pub trait SameBits<E> {
    /// The bits.
    fn bits(&self) -> E;
}

macro_rules! same_bits {
    ($($type:ty as $bits:ty, |$x:ident| $of:expr;)*) => {$(
        impl SameBits<$bits> for $type {
            fn bits(&self) -> $bits {
                let $x = *self;
                $of
            }
        }
    )*};
}

same_bits! {
    f32 as u32, |x| x.to_bits();
    f64 as u64, |x| x.to_bits();
    half::f16 as u16, |x| x.to_bits();
    i64 as i64, |x| x;
    u64 as u64, |x| x;
    i32 as i32, |x| x;
    [i32; 2] as [i32; 2], |x| x;
}
