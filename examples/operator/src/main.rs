//! Reduces by custom operators: `cargo run -p operator`, with or without a GPU.

use anyhow::ensure;
use operator_kernels::{Magnitude, Peak, peak, sum_of_magnitudes};
use warpfold::ptx::Library;
use warpfold::reduce::{Kernels, TermKernels};
use warpfold::{Gpu, Shape};

static KERNELS: Library = warpfold::include_library!("operator_kernels");

fn main() -> anyhow::Result<()> {
    let gpu = Gpu::first_or_simt_with_libraries(&[&KERNELS])?;
    println!("on {}", gpu.info()?.name);
    // SAFETY: `Kernels` launches it, with what its engine takes.
    let kernels: Kernels<Peak, f32> = Kernels::new("the peak", unsafe { peak::handle() });
    let up_to = |limit| kernels.with_operator(Peak { limit });

    let mut samples: Vec<f32> = (0..1_000_000).map(|i| (i as f32).sin()).collect();
    samples[123_456] = -7.5;
    samples[777_777] = f32::NAN;
    let magnitudes = sum_of_integers(&samples);
    let samples = gpu.upload(&samples)?;

    let mut peaks = gpu.zeroed::<f32>(1)?;
    gpu.reducer_by(up_to(f32::INFINITY), Shape::all(1_000_000))?.start(&samples, &mut peaks)?;
    let of_all = gpu.download(&peaks)?;
    ensure!(of_all == [7.5], "the peak is {of_all:?}");

    let mut peaks = gpu.zeroed::<f32>(10)?;
    gpu.reducer_by(up_to(2.0), Shape::rows(10, 100_000))?.start(&samples, &mut peaks)?;
    let of_rows = gpu.download(&peaks)?;
    ensure!(of_rows.iter().all(|peak| (0.999..=1.0).contains(peak)), "the rows' peaks up to 2 are {of_rows:?}");

    println!("the peaks are right: {} of all, {of_rows:?} of the rows", of_all[0]);

    // SAFETY: `TermKernels` launches it, with what its engine takes.
    let kernels = TermKernels::<Magnitude, f32>::new("the sum of magnitudes", unsafe { sum_of_magnitudes::handle() })?;
    let mut sum = gpu.zeroed::<f32>(1)?;
    gpu.exact_reducer_by(kernels, Shape::all(1_000_000))?.start(&samples, &mut sum)?;
    let of_all = gpu.download(&sum)?;
    ensure!(of_all == [magnitudes], "the sum of magnitudes is {of_all:?}, and {magnitudes} is right");

    println!("the exact sum of magnitudes is right: {magnitudes}");
    Ok(())
}

/// The sum of the magnitudes by integers: all samples that are numbers are multiples of 2^-60.
fn sum_of_integers(samples: &[f32]) -> f32 {
    let unit = 2.0_f64.powi(-60);
    let of_sample = |&x: &f32| (f64::from(x.abs()) / unit) as i128;
    let sum: i128 = samples.iter().filter(|x| !x.is_nan()).map(of_sample).sum();
    (sum as f32) * unit as f32
}
