//! Copies between any two layouts, compared with a plain loop over the indices.

use cuda_std::bytemuck::{Pod, bytes_of, cast_slice_mut};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, RngCore, SeedableRng};
use warpfold::{ArrayView, ArrayViewMut, Error, Gpu, Layout, Plain};

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
