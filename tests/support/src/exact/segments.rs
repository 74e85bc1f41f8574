//! Exact sums of segments.

use half::{bf16, f16};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use warpfold::Gpu;
use warpfold::exact::ExactSum;
use warpfold::ops::SumInF64;

use super::data::{Data, Exact, RESULTS, numbers, power};
use super::{expected, same, text};

/// The lengths of segments for a type, given the number of elements of a vector.
pub type Lengths<'a> = &'a dyn Fn(usize, &mut SmallRng) -> Vec<usize>;

/// Checks results of segments, each with one of several kinds of data, with elements before the first and after the
/// last segment; and of some of them alone.
///
/// # Errors
/// As for [`check`](super::check).
pub fn segments(gpu: &Gpu, lengths: Lengths<'_>, kinds: &[Data], source: &mut SmallRng) -> Result<(), String> {
    segments_of::<f32>(gpu, lengths, kinds, source)?;
    segments_of::<f64>(gpu, lengths, kinds, source)?;
    segments_of::<f16>(gpu, lengths, kinds, source)?;
    segments_of::<bf16>(gpu, lengths, kinds, source)?;

    // The f64 sums of f32.
    let (all, offsets) = data_of_segments::<f32>(lengths, kinds, source);
    let (input, of_device) = (gpu.upload(&all).map_err(text)?, gpu.upload(&offsets).map_err(text)?);
    let found = gpu.reduce_segments(SumInF64, &input, &of_device).and_then(|sums| gpu.download(&sums)).map_err(text)?;
    for (i, (ends, found)) in offsets.windows(2).zip(found).enumerate() {
        let right: ExactSum<f64> = all[ends[0] as usize..ends[1] as usize].iter().map(|&x| f64::from(x)).collect();
        same(found, right.value(), &format!("the sum of f32 in f64 of segment {i}, {} to {}", ends[0], ends[1]))?;
    }
    Ok(())
}

/// The elements and the offsets of these segments.
fn data_of_segments<T: Exact>(lengths: Lengths<'_>, kinds: &[Data], source: &mut SmallRng) -> (Vec<T>, Vec<u64>) {
    let mut all = vec![T::nearest(f64::NAN); source.random_range(0..9)];
    let mut offsets = vec![all.len() as u64];
    for len in lengths(16 / size_of::<T>(), source) {
        all.extend(numbers::<T>(kinds[source.random_range(0..kinds.len())], len, source));
        offsets.push(all.len() as u64);
    }
    all.extend((0..source.random_range(0..9)).map(|_| T::nearest(f64::NAN)));
    (all, offsets)
}

fn segments_of<T: Exact>(gpu: &Gpu, lengths: Lengths<'_>, kinds: &[Data], source: &mut SmallRng) -> Result<(), String> {
    let (all, offsets) = data_of_segments::<T>(lengths, kinds, source);
    let of_device = gpu.upload(&offsets).map_err(text)?;
    // In a view that is not aligned.
    let before = source.random_range(0..9);
    let moved: Vec<T> = (0..before).map(|_| T::nearest(f64::NAN)).chain(all.iter().copied()).collect();
    let moved = gpu.upload(&moved).map_err(text)?;
    let view = moved.view().slice(before, all.len()).map_err(text)?;
    let found = T::results_of_segments(gpu, view, of_device.view()).map_err(text)?;
    let segments = offsets.len() - 1;
    for (which, found) in RESULTS.into_iter().zip(&found) {
        if found.len() != segments {
            return Err(format!("{} {which}s of {segments} segments", found.len()));
        }
    }
    for i in 0..segments {
        let (begin, end) = (offsets[i] as usize, offsets[i + 1] as usize);
        let case = format!("{} segment {i}, {begin} to {end} of {}, {before} in, of {kinds:?}", T::NAME, all.len());
        let right = expected(all[begin..end].iter().copied());
        for ((which, found), right) in RESULTS.into_iter().zip(&found).zip(right) {
            same(found[i], right, &format!("the {which} of {case}"))?;
        }
        if source.random_range(0..segments) < 3 {
            let alone = T::results(gpu, view.slice(begin, end - begin).map_err(text)?).map_err(text)?;
            for ((which, found), alone) in RESULTS.into_iter().zip(&found).zip(alone) {
                same(found[i], alone, &format!("compared with its elements alone, the {which} of {case}"))?;
            }
        }
    }
    Ok(())
}

/// Checks that long segments with extreme values, each in another chunk, between short ones, leave the workspace clean.
///
/// # Errors
/// As for [`check`](super::check).
pub fn segments_leave_workspaces_clean(gpu: &Gpu) -> Result<(), String> {
    long_segments_of::<f32>(gpu)?;
    long_segments_of::<f64>(gpu)
}

fn long_segments_of<T: Exact>(gpu: &Gpu) -> Result<(), String> {
    let mut source = SmallRng::seed_from_u64(8);
    let (highest, least) = T::EXPONENTS;
    let extremes = [power(highest), -power(highest), 1.0, power(-T::DIGITS), power(least), f64::NEG_INFINITY];
    // At least two chunks, and five.
    let vector = 16 / size_of::<T>();
    let lens = [5120 * vector + 3, 100, 17_000 * vector, 0, 5200 * vector];
    for round in 0..6 {
        let (mut all, mut offsets) = (Vec::<T>::new(), vec![0]);
        for len in lens {
            let begin = all.len();
            all.resize(begin + len, T::default());
            let few = if round % 2 == 0 { 5 } else { 6 };
            if len > 0 {
                let distance = len / extremes.len();
                for (i, &x) in extremes[..few].iter().enumerate() {
                    all[begin + i * distance + source.random_range(0..distance)] = T::nearest(x);
                }
            }
            offsets.push(all.len() as u64);
        }
        let (input, of_device) = (gpu.upload(&all).map_err(text)?, gpu.upload(&offsets).map_err(text)?);
        let found = T::results_of_segments(gpu, input.view(), of_device.view()).map_err(text)?;
        for (i, ends) in offsets.windows(2).enumerate() {
            let right = expected(all[ends[0] as usize..ends[1] as usize].iter().copied());
            for ((which, found), right) in RESULTS.into_iter().zip(&found).zip(right) {
                same(found[i], right, &format!("the {which} of {} segment {i} in round {round}", T::NAME))?;
            }
        }
    }
    Ok(())
}
