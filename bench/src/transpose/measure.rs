//! Measures one case of `bench transpose`.

use std::borrow::Cow;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rayon::prelude::*;
use warpfold::num_complex::Complex64;
use warpfold::{Buffer, Error, Gpu, Layout, Plain, ScaledElement, Scaling};

use super::case::Case;
use super::kind::{FACTOR, Kind};
use super::peers::Peers;
use super::table::{PeerTimes, Row};
use crate::element::with_type;
use crate::measure::Plan;
use crate::memory::{self, Need, bytes_of};
use crate::npy::Array;
use crate::outcome::without;
use crate::strided::{Rows, index_at};

/// Measures a case with random elements.
pub fn random(gpu: &Gpu, plan: &Plan, peers: &mut Peers, case: &Case) -> anyhow::Result<Row> {
    match (case.kind, case.size) {
        (Kind::Scaled, 4) => random_scaled(gpu, plan, peers, case, FACTOR as f32),
        (Kind::Scaled, 8) => random_scaled(gpu, plan, peers, case, FACTOR),
        (Kind::Scaled, 16) => random_scaled(gpu, plan, peers, case, Complex64::new(FACTOR, 0.0)),
        (Kind::Scaled, size) => anyhow::bail!("no number of {size} bytes is scaled: choose 4, 8 or 16"),
        (_, 1) => random_plain::<u8>(gpu, plan, peers, case),
        (_, 2) => random_plain::<u16>(gpu, plan, peers, case),
        (_, 4) => random_plain::<u32>(gpu, plan, peers, case),
        (_, 8) => random_plain::<u64>(gpu, plan, peers, case),
        (_, 16) => random_plain::<[u64; 2]>(gpu, plan, peers, case),
        (_, size) => anyhow::bail!("there is no case of elements of {size} bytes"),
    }
}

/// Measures a case with the elements of a file, and returns the result, too.
pub fn of_array(gpu: &Gpu, plan: &Plan, case: &Case, array: &Array) -> anyhow::Result<(Row, Array)> {
    with_type!(array.dtype, T => {
        // The elements of a file are already in memory.
        check_memory::<T>(gpu, plan, case, 1)?;
        let (mut peers, elements) = (Peers::default(), array.elements::<T>().into());
        let (row, found) =
            measure::<T>(gpu, plan, &mut peers, case, elements, |input, output| case.start(gpu, input, output))?;
        let layout = Layout::contiguous(case.permuted().extents())?;
        Ok((row, array.reordered(found, layout)))
    })
}

fn random_plain<T: Plain>(gpu: &Gpu, plan: &Plan, peers: &mut Peers, case: &Case) -> anyhow::Result<Row> {
    check_memory::<T>(gpu, plan, case, 2)?;
    let elements = random_elements(case.kind, case.input.len())?.into();
    let measured = measure::<T>(gpu, plan, peers, case, elements, |input, output| case.start(gpu, input, output))?;
    Ok(measured.0)
}

fn random_scaled<T: ScaledElement + Plain>(
    gpu: &Gpu,
    plan: &Plan,
    peers: &mut Peers,
    case: &Case,
    factor: T,
) -> anyhow::Result<Row> {
    check_memory::<T>(gpu, plan, case, 2)?;
    let elements = random_elements(case.kind, case.input.len())?.into();
    let measured = measure::<T>(gpu, plan, peers, case, elements, |input, output| {
        let (from, to) = case.arrays(input, output)?;
        gpu.copy_scaled(Scaling::by(factor), from, to)
    })?;
    Ok(measured.0)
}

/// Refuses a case that does not fit in the free memory, with this number of arrays in the host's.
fn check_memory<T>(gpu: &Gpu, plan: &Plan, case: &Case, on_host: u128) -> anyhow::Result<()> {
    let each = bytes_of::<T>(case.input.len());
    let need = Need { device: (plan.copies(2 * each) + 1) * each, host: on_host * each };
    need.check(gpu, "the case", "choose a smaller --shape or --input")
}

/// Random elements.
fn random_elements<T: Plain>(kind: Kind, len: usize) -> anyhow::Result<Vec<T>> {
    // The elements repeat after a period that is long enough, and odd, so that no row or column repeats its neighbour.
    const PERIOD: usize = (1 << 20) + 7;
    let mut source = SmallRng::from_os_rng();
    let mut elements = memory::list(len)?;
    elements.extend((0..len.min(PERIOD)).map(|_| kind.random_element::<T>([source.random(), source.random()])));
    while elements.len() < len {
        let more = elements.len().min(len - elements.len());
        elements.extend_from_within(..more);
    }
    Ok(elements)
}

/// A message about the first element of the output that is not the right one of the input, if there is one.
fn first_wrong<T: Plain>(case: &Case, input: &[T], output: &[T]) -> Option<String> {
    let permuted = case.permuted();
    let rows = Rows::of(&permuted);
    // Each core compares one row of the output at a time.
    let position = (0..rows.count()).into_par_iter().find_map_first(|row| {
        let found = &output[row * rows.len..][..rows.len];
        let is_wrong =
            |(from, found): (usize, &T)| case.kind.expected_element(input[from]).to_pair() != found.to_pair();
        Some(row * rows.len + rows.positions(row).zip(found).position(is_wrong)?)
    })?;
    let result = Layout::contiguous(permuted.extents()).expect("memory has the elements");
    Some(format!("the element at {:?} of the result is missing or wrong", index_at(&result, position)))
}

/// Measures a case: its row, and the result.
fn measure<T: Plain>(
    gpu: &Gpu,
    plan: &Plan,
    peers: &mut Peers,
    case: &Case,
    elements: Cow<'_, [T]>,
    work: impl Fn(&mut Buffer<T>, &mut Buffer<T>) -> Result<(), Error>,
) -> anyhow::Result<(Row, Vec<T>)> {
    let len = elements.len();
    let mut inputs: Vec<Buffer<T>> = vec![gpu.upload(&elements)?];
    for _ in 1..plan.rotation(2 * len * size_of::<T>()) {
        let mut copy = gpu.zeroed(len)?;
        gpu.copy_array(&inputs[0], &mut copy)?;
        inputs.push(copy);
    }
    let mut result = gpu.zeroed::<T>(len)?;
    let _range = plan.range("transpose");
    let count = inputs.len();
    // An operation in place is checked after its first run, the others after the last.
    let mut found = Vec::new();
    let is_in_place = case.kind == Kind::InPlace;
    if is_in_place {
        work(&mut inputs[0], &mut result)?;
        found = gpu.download(&inputs[0])?;
    }
    let mut start = |i: usize| work(&mut inputs[i % count], &mut result);
    let timing = match plan.first(gpu, &mut start)? {
        first @ Some(_) => plan.time_after(gpu, first, &mut start)?,
        None => plan.time_recorded(gpu, &mut start)?,
    };
    if !is_in_place {
        found = gpu.download(&result)?;
    }
    let wrong = first_wrong(case, &elements, &found);
    drop(elements);
    let copy = if gpu.is_cuda() {
        // A long copy is faster in a stream, a short one in a graph. The faster of the two is the bound.
        let mut copy = |i: usize| gpu.copy_array(&inputs[i % inputs.len()], &mut result);
        let (recorded, streamed) = (plan.time_recorded(gpu, &mut copy)?, plan.time(gpu, &mut copy)?);
        Some(if recorded.median < streamed.median { recorded } else { streamed })
    } else {
        None
    };
    let addresses: Vec<u64> = inputs.iter().map(|input| input.view().device_address()).collect();
    let output = result.view().device_address();
    let mut peer_times = PeerTimes::default();
    let geam = peers.geam(gpu, plan, case, &addresses, output);
    peer_times.set_geam(geam.unwrap_or_else(|error| without("cuBLAS", case, &error)));
    let cutensor = peers.cutensor(gpu, plan, case, &addresses, output);
    peer_times.set_cutensor(cutensor.unwrap_or_else(|error| without("cuTENSOR", case, &error)));
    drop((inputs, result));
    peer_times.set_pytorch(peers.pytorch(case));
    Ok((Row::new(case, wrong, timing, copy, peer_times), found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strided;

    #[test]
    fn a_wrong_element_is_found() {
        let layout = Layout::contiguous(&[2, 2, 3]).unwrap();
        let input: Vec<u8> = (0..12).collect();
        let transpose = Case::of_matrices(Kind::Transpose, layout, 1).unwrap();
        let mut output = vec![0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11];
        assert_eq!(first_wrong(&transpose, &input, &output), None);
        output.swap(10, 11);
        assert!(first_wrong(&transpose, &input, &output).unwrap().contains("the element at [1, 2, 0] "));
        let of =
            |axes: &[isize], output: &[u8]| first_wrong(&Case::permutation(layout, axes, 1).unwrap(), &input, output);
        let output = [0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11];
        assert_eq!(of(&[1, 0, 2], &output), None);
        assert!(of(&[0, 1, 2], &output).unwrap().contains("the element at [0, 1, 0] "));
        assert_eq!(of(&[2, 1, 0], &[0, 6, 3, 9, 1, 7, 4, 10, 2, 8, 5, 11]), None);
        let fortran = Case::permutation(strided::fortran(&[2, 3]).unwrap(), &[0, 1], 1).unwrap();
        assert_eq!(first_wrong(&fortran, &[0_u8, 1, 2, 3, 4, 5], &[0, 2, 4, 1, 3, 5]), None);
    }

    #[test]
    fn scaled_elements_are_exact() {
        let element: f64 = Kind::Scaled.random_element([7, 0]);
        assert_eq!(Kind::Scaled.expected_element(element), FACTOR * element);
        let element: f32 = Kind::Scaled.random_element([8, 0]);
        assert_eq!(Kind::Scaled.expected_element(element), FACTOR as f32 * element);
        let layout = Layout::contiguous(&[2, 3]).unwrap();
        assert!(Kind::Scaled.fits(&layout, 2).is_err() && Kind::InPlace.fits(&layout, 4).is_err());
    }
}
