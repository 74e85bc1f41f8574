//! Dot products of two arrays of any layouts along any axes, compared with a plain loop over the indices.

use cuda_std::bytemuck::{Pod, Zeroable, bytes_of, cast_slice_mut};
use half::f16;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, RngCore, SeedableRng};
use warpfold::exact::ExactDot;
use warpfold::ops::{Dot, InElementType};
use warpfold::{ArrayView, ArrayViewMut, Axes, Element, Error, Gpu, Layout, Reduces};

use crate::arrays::{SameBits, extents, layout, positions};

/// The number of elements after the last one of an output that must not be written.
const GUARD: usize = 40;

/// Dot products of two arrays of random layouts, which are broadcast against each other, along random axes to outputs
/// of a random layout. The numbers are the seed and the maximum number of elements.
pub fn check_pairs(gpu: &Gpu, seed: u64, most: usize) -> Result<(), String> {
    let mut source = SmallRng::seed_from_u64(seed);
    let case = Case::new(&mut source, most).map_err(|error| format!("seed {seed}: {error}"))?;
    let lens = [0, 1].map(|input: usize| case.layouts[input].required_len());
    let integers = lens.map(|len| (0..len).map(|_| source.random_range(-50..50)).collect::<Vec<i32>>());
    let floats =
        integers.each_ref().map(|all| all.iter().map(|&x| x as f32 * 2.0_f32.powi(x % 40)).collect::<Vec<f32>>());
    let halves = integers.each_ref().map(|all| all.iter().map(|&x| f16::from_f32(x as f32)).collect::<Vec<f16>>());
    let doubles = floats.each_ref().map(|all| all.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>());
    case.check(gpu, &mut source, Dot, &integers, |pairs| {
        pairs.iter().map(|[x, y]| i64::from(*x) * i64::from(*y)).sum::<i64>()
    })?;
    case.check(gpu, &mut source, Dot, &floats, |pairs| {
        let mut dot = ExactDot::<f32>::new();
        pairs.iter().for_each(|[x, y]| dot.add(*x, *y));
        dot.value().to_bits()
    })?;
    case.check(gpu, &mut source, Dot, &doubles, |pairs| {
        let mut dot = ExactDot::<f64>::new();
        pairs.iter().for_each(|[x, y]| dot.add(*x, *y));
        dot.value().to_bits()
    })?;
    case.check(gpu, &mut source, InElementType(Dot), &halves, |pairs| {
        // Below 2^53, so the sum is exact, and rounded once.
        let sum: i64 = pairs.iter().map(|[x, y]| x.to_f32() as i64 * y.to_f32() as i64).sum();
        f16::from_f64(sum as f64).to_bits()
    })
}

/// Two layouts that are broadcast against each other, and the axes of the dot products.
struct Case {
    layouts: [Layout; 2],
    /// The same, with common extents.
    broadcast: [Layout; 2],
    axes: Vec<isize>,
    is_reduced: Vec<bool>,
    keep_dims: bool,
    /// The extents of the output.
    outputs: Vec<usize>,
}

impl Case {
    fn new(source: &mut SmallRng, most: usize) -> Result<Self, Error> {
        let extents = extents(source, most);
        let rank = extents.len();
        let mut layouts = [Layout::contiguous(&[])?; 2];
        let whole = source.random_range(0..4);
        for (input, of_input) in layouts.iter_mut().enumerate() {
            // One of them has all extents, so that the output's are the same.
            let mut own = extents.clone();
            if input != whole % 2 {
                own.iter_mut().filter(|_| source.random_bool(0.25)).for_each(|extent| *extent = 1);
                let leading = if source.random_bool(0.3) { source.random_range(0..=rank) } else { 0 };
                own.drain(..leading);
            }
            let is_simple = source.random_bool(0.4);
            *of_input = if is_simple { Layout::contiguous(&own)? } else { layout(source, &own, false)? };
        }
        let broadcast = [layouts[0].broadcast_to(&extents)?, layouts[1].broadcast_to(&extents)?];
        let is_reduced: Vec<bool> = match source.random_range(0..5) {
            0 => vec![true; rank],
            1 => (0..rank).map(|axis| axis + 1 == rank).collect(),
            _ => (0..rank).map(|_| source.random_bool(0.4)).collect(),
        };
        let mut axes: Vec<isize> = (0..rank as isize).filter(|&axis| is_reduced[axis as usize]).collect();
        axes.shuffle(source);
        axes.iter_mut().filter(|_| source.random_bool(0.5)).for_each(|axis| *axis -= rank as isize);
        let keep_dims = source.random_bool(0.3);
        let outputs = extents.iter().zip(&is_reduced).filter(|(_, is_reduced)| keep_dims || !**is_reduced);
        let outputs = outputs.map(|(&extent, &is_reduced)| if is_reduced { 1 } else { extent }).collect();
        Ok(Self { layouts, broadcast, axes, is_reduced, keep_dims, outputs })
    }

    fn name(&self) -> String {
        let [first, second] = self.layouts;
        format!("{first:?} and {second:?} along {:?}{}", self.axes, if self.keep_dims { ", kept" } else { "" })
    }

    /// The positions of the pairs of each output, in C order.
    fn positions(&self) -> Vec<Vec<[usize; 2]>> {
        let of = |is_reduced: bool| {
            let axes: Vec<usize> = (0..self.is_reduced.len()).filter(|&at| self.is_reduced[at] == is_reduced).collect();
            let mut all = vec![[0_isize; 2]];
            for axis in axes {
                let extent = self.broadcast[0].extents()[axis] as isize;
                let strides = [0, 1].map(|input: usize| self.broadcast[input].strides()[axis]);
                let along = |[a, b]: [isize; 2]| (0..extent).map(move |i| [a + i * strides[0], b + i * strides[1]]);
                all = all.into_iter().flat_map(along).collect();
            }
            all
        };
        let offsets = self.layouts.map(|layout| layout.offset());
        let (kept, reduced) = (of(false), of(true));
        let at = |input: usize, kept: isize, reduced: isize| offsets[input].wrapping_add_signed(kept + reduced);
        kept.iter().map(|a| reduced.iter().map(|b| [at(0, a[0], b[0]), at(1, a[1], b[1])]).collect()).collect()
    }

    /// Reduces to a new array, to one of a random layout whose other memory must not be written, and by a reducer in a
    /// recording.
    fn check<T, O, E>(
        &self,
        gpu: &Gpu,
        source: &mut SmallRng,
        operator: O,
        elements: &[Vec<T>; 2],
        expected: impl Fn(&[[T; 2]]) -> E,
    ) -> Result<(), String>
    where
        T: Element,
        O: Reduces<T, 2, Output: Pod + SameBits<E>> + Copy,
        E: PartialEq + std::fmt::Debug,
    {
        let of = |at: &Vec<[usize; 2]>| {
            expected(&at.iter().map(|&[a, b]| [elements[0][a], elements[1][b]]).collect::<Vec<_>>())
        };
        let wanted: Vec<E> = self.positions().iter().map(of).collect();
        let to = layout(source, &self.outputs, false).map_err(|error| error.to_string())?;
        let mut poison = vec![O::Output::zeroed(); to.required_len() + GUARD];
        source.fill_bytes(cast_slice_mut(&mut poison));
        let axes = match self.keep_dims {
            true => Axes::from(&self.axes[..]).keep_dims(),
            false => Axes::from(&self.axes[..]),
        };
        let run = || {
            let (first, second) = (gpu.upload(&elements[0])?, gpu.upload(&elements[1])?);
            let mut output = gpu.upload(&poison)?;
            let x = ArrayView::new(first.view(), &self.layouts[0])?;
            let y = ArrayView::new(second.view(), &self.layouts[1])?;
            let result = gpu.reduce(operator, (x, y), axes)?;
            gpu.reduce_into(operator, (x, y), axes, ArrayViewMut::new(output.view_mut(), &to)?)?;
            let mut reducer = gpu.reducer(operator, (x.layout(), y.layout()), axes)?;
            let mut again = gpu.zeroed(result.len())?;
            // The copies are recorded, too.
            let recording = gpu.record(|| reducer.start((x, y), &mut again))?;
            recording.start()?;
            recording.start()?;
            let again = gpu.download(&again)?;
            Ok((result.extents().to_vec(), gpu.download(&result)?, gpu.download(&output)?, again, reducer.to_string()))
        };
        let failed = |error: Error| format!("dot products of {}: {error}", self.name());
        let (extents, found, output, again, plan) = run().map_err(failed)?;
        let case = || format!("dot products of {} ({plan})", self.name());
        if extents != self.outputs {
            return Err(format!("{}: the result is of {extents:?}", case()));
        }
        let bits = |all: &[O::Output]| -> Vec<E> { all.iter().map(SameBits::bits).collect() };
        let (found_bits, again) = (bits(&found), bits(&again));
        if let Some(at) = (0..wanted.len()).find(|&at| found_bits[at] != wanted[at] || again[at] != wanted[at]) {
            let (found, again, wanted) = (&found_bits[at], &again[at], &wanted[at]);
            return Err(format!("{}: output {at} is {found:?}, and {again:?} in a recording, not {wanted:?}", case()));
        }
        let mut in_memory = poison.clone();
        positions(&to).into_iter().zip(&found).for_each(|(at, result)| in_memory[at] = *result);
        let differ = |(found, expected): (&O::Output, &O::Output)| bytes_of(found) != bytes_of(expected);
        match output.iter().zip(&in_memory).position(differ) {
            None => Ok(()),
            Some(at) => Err(format!("{} to {to:?}: position {at} is wrong", case())),
        }
    }
}
