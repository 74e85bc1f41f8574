//! The sums of the rows of a matrix in the memory of cudarc, where it lies and on its stream.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use cudarc::driver::{CudaContext, CudaStream};
use on_cudarc::adapter::OnCudarc;
use warpfold::{Gpu, ops};

/// The exact sum of each row of a matrix: computed without a copy, in the order of the stream.
fn sums_of_rows(gpu: &Gpu, stream: &Arc<CudaStream>, matrix: &[f32], rows: usize) -> Result<Vec<f32>> {
    let on_cudarc = OnCudarc::new(gpu, stream)?;
    let matrix = stream.clone_htod(matrix)?;
    let mut sums = stream.alloc_zeros::<f32>(rows)?;
    let extents = [rows, matrix.len() / rows];
    on_cudarc.gpu().reduce_into(
        ops::Sum,
        on_cudarc.read(&matrix, &extents)?.view(),
        1,
        on_cudarc.write(&mut sums, &[rows])?.view_mut(),
    )?;
    Ok(stream.clone_dtoh(&sums)?)
}

fn main() -> Result<ExitCode> {
    let gpu = match Gpu::new(0) {
        Ok(gpu) => gpu,
        Err(error @ (warpfold::Error::NoDriver(_) | warpfold::Error::NoDevice { .. })) => {
            eprintln!("cudarc needs a CUDA device: {error}");
            return Ok(ExitCode::from(2));
        }
        Err(error) => return Err(error.into()),
    };
    let context = CudaContext::new(0).context("cudarc finds no device")?;
    let stream = context.new_stream()?;
    let matrix = [1e30, 1.0, -1e30, 2.0, 3.0, 4.0];
    let sums = sums_of_rows(&gpu, &stream, &matrix, 2)?;
    println!("the sums of the rows of {matrix:?}: {sums:?}");
    assert_eq!(sums, [1.0, 9.0]);
    Ok(ExitCode::SUCCESS)
}
