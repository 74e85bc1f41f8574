//! Reduces with custom operators, on a GPU or in the executor: `cargo run -p operator`.

use anyhow::ensure;
use operator_kernels::{CountAbove, Magnitude, Over, Peak};
use warpfold::Gpu;
use warpfold::ptx::Library;

static KERNELS: Library = warpfold::include_library!("operator_kernels");

fn main() -> anyhow::Result<()> {
    let gpu = Gpu::first_or_simt_with_libraries(&[&KERNELS])?;
    println!("on {}", gpu.info()?.name);

    let mut samples: Vec<f32> = (0..1_000_000).map(|i| (i as f32).sin()).collect();
    samples[123_456] = -7.5;
    samples[777_777] = f32::NAN;
    let x = gpu.upload(&samples)?;
    let (rows, columns) = (x.view().reshape(&[10, 100_000])?, x.view().reshape(&[100_000, 10])?);

    let of_all = gpu.reduce_all(Peak, &x)?;
    ensure!(of_all == 7.5, "the peak is {of_all}, expected 7.5");
    let of_rows = gpu.download(&gpu.reduce(Peak, rows, 1)?)?;
    ensure!(
        of_rows[1] == 7.5 && of_rows.iter().filter(|&&peak| peak <= 1.0).count() == 9,
        "the peaks of rows: {of_rows:?}"
    );
    let of_columns = gpu.download(&gpu.reduce(Peak, columns, 0)?)?;
    ensure!(of_columns[6] == 7.5, "the peaks of columns: {of_columns:?}");
    let offsets = gpu.upload(&[0_u64, 123_456, 123_457, 1_000_000])?;
    let of_segments = gpu.download(&gpu.reduce_segments(Peak, &x, &offsets)?)?;
    ensure!(of_segments[1] == 7.5, "the peaks of segments: {of_segments:?}");
    println!("the peaks are right: {of_all} of all, {of_rows:?} of the rows");

    for limit in [-8.0, 0.5, 1.0] {
        let above = |samples: &[f32]| samples.iter().filter(|&&x| x > limit).count() as u64;
        let (of_all, expected) = (gpu.reduce_all(CountAbove { limit }, &x)?, above(&samples));
        ensure!(of_all == expected, "{of_all} samples are above {limit}, expected {expected}");
        let of_rows = gpu.download(&gpu.reduce(CountAbove { limit }, rows, 1)?)?;
        ensure!(of_rows.iter().copied().eq(samples.chunks(100_000).map(above)), "above {limit} in rows: {of_rows:?}");
        println!("the number of samples above {limit} is right: {of_all}");
    }

    let magnitudes = sum_with_integers(&samples, f32::NEG_INFINITY);
    let of_all = gpu.reduce_all(Magnitude, &x)?;
    ensure!(of_all == magnitudes, "the sum of magnitudes is {of_all}, expected {magnitudes}");
    println!("the exact sum of magnitudes is right: {magnitudes}");
    for limit in [0.5, 1.0] {
        let (of_all, expected) = (gpu.reduce_all(Over { limit }, &x)?, sum_with_integers(&samples, limit));
        ensure!(of_all == expected, "the sum of magnitudes over {limit} is {of_all}, expected {expected}");
        println!("the exact sum of magnitudes over {limit} is right: {of_all}");
    }
    Ok(())
}

/// The sum of the magnitudes over a limit, computed exactly with integers: all samples except NaN are multiples of
/// 2^-60.
fn sum_with_integers(samples: &[f32], limit: f32) -> f32 {
    let unit = 2.0_f64.powi(-60);
    let of_sample = |&x: &f32| (f64::from(x.abs()) / unit) as i128;
    let sum: i128 = samples.iter().filter(|x| x.abs() > limit).map(of_sample).sum();
    (sum as f32) * unit as f32
}
