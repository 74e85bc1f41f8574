//! Sums on a GPU. All cores read chunks into page-locked memory, while those before are copied and summed.

use std::sync::atomic::Ordering;

use rayon::prelude::*;
use warpfold::exact::{ExactDot, ExactSum};
use warpfold::ops::{Mean, Norm, Sum, SumOfSquares};
use warpfold::{
    ArrayView, ArrayViewMut, Axes, Buffer, Error, ExactDots, ExactElement, ExactSums, Gpu, Layout, Reduces,
    StagingBuffers, View,
};

use super::form::{Form, form};
use super::host::{parts, ranges};
use super::states::{Running, Streamed, Totals};
use super::{Job, Kinds, Results};
use crate::element::Number;
use crate::reduce::Operator;

/// The size of a buffer in page-locked memory: its copy takes more than a millisecond.
const BUFFER_BYTES: usize = 64 << 20;

/// The size of the parts of a buffer that are read by different threads.
const READ_BYTES: usize = 1 << 20;

/// A float whose sums stay on a GPU.
pub trait OnDevice: Streamed<Sum = ExactSum<Self>, Squares = ExactDot<Self>> + ExactElement {
    /// The type of sums, means and norms.
    type Result: Number;
}

impl Job<'_> {
    /// [`Job::reduce_on_host`], on a GPU.
    pub fn on_device<T: OnDevice>(
        &self,
        gpu: &Gpu,
        first: usize,
        extents: &[usize],
        is_reduced: &[bool],
        results: &mut Results,
    ) -> anyhow::Result<()>
    where
        Sum: Reduces<T, 1, Output = T::Result>,
        Mean: Reduces<T, 1, Output = T::Result>,
        SumOfSquares: Reduces<T, 1, Output = T::Result>,
        Norm: Reduces<T, 1, Output = T::Result>,
    {
        let most = (BUFFER_BYTES / size_of::<T>()).max(self.budget.row);
        let capacity = (self.memory / 4 / size_of::<T>()).clamp(1, most);
        self.threads.fetch_max(rayon::current_num_threads(), Ordering::Relaxed);
        let mut buffers = gpu.staging_buffers::<T>(capacity.min(self.source.described.elements.max(1)))?;
        OfDevice { job: self, gpu, buffers: &mut buffers }.reduce(first, extents, is_reduced, results)
    }
}

/// A job on a device.
struct OfDevice<'a, T: OnDevice> {
    job: &'a Job<'a>,
    gpu: &'a Gpu,
    buffers: &'a mut StagingBuffers<T>,
}

impl<T: OnDevice> OfDevice<'_, T>
where
    Sum: Reduces<T, 1, Output = T::Result>,
    Mean: Reduces<T, 1, Output = T::Result>,
    SumOfSquares: Reduces<T, 1, Output = T::Result>,
    Norm: Reduces<T, 1, Output = T::Result>,
{
    fn reduce(
        &mut self,
        first: usize,
        extents: &[usize],
        is_reduced: &[bool],
        results: &mut Results,
    ) -> anyhow::Result<()> {
        match form(extents, is_reduced)? {
            Form::Rows { rows, len } if len <= self.buffers.capacity() => {
                self.whole_rows(first, (rows, len), extents, is_reduced, results)
            }
            Form::Rows { rows, len } => {
                let mut each = (0..rows).map(|row| first + row * len);
                each.try_for_each(|row| self.reduce(row, &extents[1..], &is_reduced[1..], results))
            }
            Form::Columns { rows, kept, inner } => self.columns(first, [rows, kept, inner], results),
        }
    }

    /// Results of rows that are reduced by themselves, several at a time.
    fn whole_rows(
        &mut self,
        first: usize,
        (rows, len): (usize, usize),
        extents: &[usize],
        is_reduced: &[bool],
        results: &mut Results,
    ) -> anyhow::Result<()> {
        let Self { job, gpu, buffers } = self;
        let axes = |wanted: bool| (0..extents.len()).filter(move |&axis| is_reduced[axis] == wanted);
        let reduced = Axes::from(&axes(true).map(|axis| axis as isize).collect::<Vec<_>>()[..]);
        let each: usize = axes(false).skip(1).map(|axis| extents[axis]).product();
        let outputs = job.operators.iter().map(|_| gpu.zeroed::<T::Result>(rows * each));
        let mut outputs = outputs.collect::<Result<Vec<Buffer<_>>, Error>>()?;
        let at_once = (buffers.capacity() / len.max(1)).clamp(1, rows.max(1));
        for range in ranges(rows, at_once) {
            let mut buffer = buffers.next_buffer()?;
            let elements = range.len() * len;
            read_parallel(job, first + range.start * len, &mut buffer[..elements])?;
            let layout = Layout::contiguous(&[&[range.len()], &extents[1..]].concat())?;
            let kept: Vec<usize> = axes(false).map(|axis| layout.extents()[axis]).collect();
            buffer.submit(elements, |chunk| {
                for (operator, output) in job.operators.iter().zip(&mut outputs) {
                    let input = ArrayView::new(chunk, &layout)?;
                    let output = output.view_mut().slice(range.start * each, range.len() * each)?;
                    let output = ArrayViewMut::new(output, &Layout::contiguous(&kept)?)?;
                    match operator {
                        Operator::Sum => gpu.reduce_into(Sum, input, reduced, output)?,
                        Operator::Mean => gpu.reduce_into(Mean, input, reduced, output)?,
                        Operator::SumOfSquares => gpu.reduce_into(SumOfSquares, input, reduced, output)?,
                        Operator::Norm => gpu.reduce_into(Norm, input, reduced, output)?,
                        _ => unreachable!("refused before"),
                    }
                }
                Ok(())
            })?;
        }
        for (all, output) in results.iter_mut().zip(&outputs) {
            all.extend(gpu.download(output)?.into_iter().map(|x| x.value()));
        }
        Ok(())
    }

    /// Results of an array with the axes `[rows, kept, inner]`, of which the first and the last are reduced.
    fn columns(&mut self, first: usize, [rows, kept, inner]: [usize; 3], results: &mut Results) -> anyhow::Result<()> {
        let (job, capacity) = (self.job, self.buffers.capacity());
        let (row, len) = (kept * inner, rows * kept * inner);
        let most = job.budget.states / Running::<T>::bytes_each(job.kinds);
        if kept == 1 {
            let mut states = States::<T>::new(self.gpu, job.kinds, 1)?;
            for range in ranges(len, capacity) {
                let mut buffer = self.buffers.next_buffer()?;
                read_parallel(job, first + range.start, &mut buffer[..range.len()])?;
                buffer.submit(range.len(), |chunk| states.add(chunk, [1, 1, range.len()]))?;
            }
            job.append(&states.totals()?, results);
            return Ok(());
        }
        let block = if row <= capacity { most.min(kept) } else { (capacity / inner).min(most).clamp(1, kept) };
        if block < kept {
            job.check_blocks(kept)?;
        }
        for columns in ranges(kept, block) {
            let mut states = States::<T>::new(self.gpu, job.kinds, columns.len())?;
            for (rows, part) in parts(rows, columns.len() * inner, capacity) {
                let mut buffer = self.buffers.next_buffer()?;
                let elements = &mut buffer[..rows.len() * part.len()];
                let first = first + (rows.start * kept + columns.start) * inner + part.start;
                match block == kept {
                    true => read_parallel(job, first, elements)?,
                    false => elements
                        .par_chunks_mut(part.len())
                        .enumerate()
                        .try_for_each(|(at, to)| job.read_now(first + at * row, to))?,
                }
                let shape = [rows.len(), columns.len(), part.len() / columns.len()];
                buffer.submit(rows.len() * part.len(), |chunk| states.add(chunk, shape))?;
            }
            job.append(&states.totals()?, results);
        }
        Ok(())
    }
}

/// Reads neighbouring elements, a file on all cores.
fn read_parallel<T: Streamed>(job: &Job<'_>, first: usize, to: &mut [T]) -> anyhow::Result<()> {
    if !job.source.can_seek() {
        return job.read_now(first, to);
    }
    let each = READ_BYTES / size_of::<T>();
    to.par_chunks_mut(each).enumerate().try_for_each(|(part, to)| job.read_now(first + part * each, to))
}

/// Running sums on a device.
struct States<T: OnDevice> {
    sums: Option<ExactSums<T>>,
    squares: Option<ExactDots<T>>,
}

impl<T: OnDevice> States<T> {
    fn new(gpu: &Gpu, kinds: Kinds, kept: usize) -> Result<Self, Error> {
        let sums = kinds.elements.then(|| gpu.exact_sums(kept)).transpose()?;
        Ok(Self { sums, squares: kinds.squares.then(|| gpu.exact_dots(kept)).transpose()? })
    }

    /// Adds an array of these extents, of which the first and the last axis are reduced.
    fn add(&mut self, chunk: View<'_, T>, shape: [usize; 3]) -> Result<(), Error> {
        let array = ArrayView::new(chunk, &Layout::contiguous(&shape)?)?;
        self.sums.iter_mut().try_for_each(|sums| sums.add(array, [0, 2]))?;
        self.squares.iter_mut().try_for_each(|squares| squares.add_squares(array, [0, 2]))
    }

    fn totals(&self) -> Result<Totals<T>, Error> {
        let sums = self.sums.as_ref().map_or_else(|| Ok(Vec::new()), ExactSums::download)?;
        let squares = self.squares.as_ref().map_or_else(|| Ok(Vec::new()), ExactDots::download)?;
        Ok(Totals { sums, squares })
    }
}
