//! Sums of chunks, compared with the sums of the whole.

use std::io;

use half::{bf16, f16};
use rand::Rng;
use rand::rngs::SmallRng;
use warpfold::exact::{ExactDot, ExactSum};
use warpfold::{ArrayView, Error, Gpu, Layout};

use crate::exact::{ALL, Data, numbers};
use crate::exact_sums::OnDevice;

/// Checks sums of chunks of each type and kind of data: of one length, or of lengths at random if it is `None`.
///
/// # Errors
/// If a sum differs from that of the whole input, or on an unexpected error.
pub fn chunks(gpu: &Gpu, len: usize, chunk: Option<usize>, source: &mut SmallRng) -> Result<(), String> {
    for data in ALL {
        chunks_of::<f32>(gpu, data, len, chunk, source)?;
        chunks_of::<f64>(gpu, data, len, chunk, source)?;
        chunks_of::<f16>(gpu, data, len, chunk, source)?;
        chunks_of::<bf16>(gpu, data, len, chunk, source)?;
    }
    Ok(())
}

/// Checks sums of chunks of one type.
///
/// # Errors
/// As for [`chunks`].
pub fn chunks_of<T: OnDevice>(
    gpu: &Gpu,
    data: Data,
    len: usize,
    chunk: Option<usize>,
    source: &mut SmallRng,
) -> Result<(), String> {
    let case = format!("{len} {} of {data:?} in chunks of {chunk:?}", T::NAME);
    let elements = numbers::<T>(data, len, source);
    let mut rest = &elements[..];
    let mut parts: Vec<&[T]> = Vec::new();
    while !rest.is_empty() {
        // Some are empty.
        let len = chunk.unwrap_or_else(|| source.random_range(0..=len / 3 + 1)).min(rest.len());
        let (part, others) = rest.split_at(len);
        parts.push(part);
        rest = others;
    }
    let chunks = || parts.iter().map(|&part| Ok::<_, io::Error>(part));
    let text = |error: Error| format!("{case}: {error}");
    let (mut sum, mut squares) = (ExactSum::new(), ExactDot::new());
    sum.add_slice(&elements);
    squares.add_squares(&elements);
    let found = gpu.sum_chunks(chunks()).map_err(text)?;
    if found != sum {
        return Err(format!("the sum of {case} is {found:?}, expected {sum:?}"));
    }
    let found = gpu.sum_squares_of_chunks(chunks()).map_err(text)?;
    if found != squares {
        return Err(format!("the sum of squares of {case} is {found:?}, expected {squares:?}"));
    }
    // An error after some chunks, while the device may still sum them.
    let failing = chunks().chain([Err(io::ErrorKind::UnexpectedEof.into())]);
    match gpu.sum_chunks(failing) {
        Err(Error::Chunk { index, source }) if source.kind() == io::ErrorKind::UnexpectedEof => {
            if index == parts.len() as u64 { Ok(()) } else { Err(format!("{case}: the error is of chunk {index}")) }
        }
        other => Err(format!("{case} with an error at the end: {:?}", other.map(|sum| sum.count()))),
    }
}

/// Checks columns by staging buffers, each a few rows long.
///
/// # Errors
/// As for [`chunks`].
pub fn columns(gpu: &Gpu, rows: usize, columns: usize, source: &mut SmallRng) -> Result<(), String> {
    let elements = numbers::<f32>(Data::Uniform, rows * columns, source);
    let found = || -> Result<_, Error> {
        let mut sums = gpu.exact_sums::<f32>(columns)?;
        let mut buffers = gpu.staging_buffers::<f32>(3 * columns)?;
        for chunk in elements.chunks(3 * columns) {
            let mut buffer = buffers.next_buffer()?;
            buffer[..chunk.len()].copy_from_slice(chunk);
            let layout = Layout::contiguous(&[chunk.len() / columns, columns])?;
            buffer.submit(chunk.len(), |chunk| sums.add(ArrayView::new(chunk, &layout)?, 0))?;
        }
        let mut whole = gpu.exact_sums::<f32>(columns)?;
        whole.add(&gpu.upload(&elements)?.reshape(&[rows, columns])?, 0)?;
        Ok((sums.download()?, whole.download()?))
    };
    let (found, expected) = found().map_err(|error| error.to_string())?;
    if found == expected { Ok(()) } else { Err(format!("{rows} x {columns}: the columns' sums differ")) }
}
