//! `--memory`: sums, means and norms of files that are larger than memory, read a chunk at a time.
//!
//! Nothing is compared with the CPU's own results, and nothing is measured twice: a file is read once.

mod device;
mod form;
mod host;
mod report;
mod source;
mod states;

use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

use anyhow::{Context, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use warpfold::host::View;
use warpfold::{Axes, Layout};

use crate::element::{Number, with_type};
use crate::memory::{self, free_host_memory};
use crate::npy::{Array, Wanted};
use crate::number::{Value, counted};
use crate::options::{Opened, Output};
use crate::outcome::Outcome;
use crate::reduce::{Extent, FileArguments, Operator, name_of};
use crate::strided;
use report::{Report, Row};
use source::Source;
use states::Streamed;

/// The operators whose results are made of parts of the input that are read one after the other.
const OPERATORS: [Operator; 4] = [Operator::Sum, Operator::Mean, Operator::SumOfSquares, Operator::Norm];

/// The options that have no effect with `--memory`: nothing is timed several times, and no kernel runs in the executor.
pub const USELESS: &[&str] = &["rung", "block", "samples", "plot", "nvtx", "check", "schedule"];

/// The results of each operator, in the order of the file's axes.
type Results = Vec<Vec<Value>>;

/// What is computed of a file.
pub struct Request<'a> {
    pub input: &'a Path,
    pub wanted: Wanted,
    pub operators: &'a [Operator],
    pub file: &'a FileArguments,
    /// The bytes of `--memory`.
    pub memory: usize,
}

/// What is summed: elements, squares, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kinds {
    elements: bool,
    squares: bool,
}

impl Kinds {
    fn of(operators: &[Operator]) -> Self {
        let is_squares = |operator: &&Operator| matches!(operator, Operator::SumOfSquares | Operator::Norm);
        let squares = operators.iter().filter(is_squares).count();
        Self { elements: squares < operators.len(), squares: squares > 0 }
    }
}

/// How memory is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Budget {
    threads: usize,
    /// The bytes of a thread's buffer.
    chunk: usize,
    /// The bytes of running sums.
    states: usize,
    /// The elements of the rows of a pipe, which can be read only once, and so as a whole; otherwise 0.
    row: usize,
}

/// The size of a buffer: it stays in a core's L2 cache, and a read of it takes much longer than a call.
const CHUNK_BYTES: usize = 1 << 20;
const MIN_CHUNK_BYTES: usize = 4096;

/// The maximum number of elements of a chunk: fewer than the library divides among threads.
const CHUNK_ELEMENTS: usize = 1 << 18;

/// The least `--memory`.
const MIN_MEMORY: usize = 4 * MIN_CHUNK_BYTES;

/// The bytes of a result, in two lists.
const RESULT_BYTES: usize = 2 * size_of::<Value>() + 8;

impl Budget {
    /// The rows of a pipe have `row` elements of `each` bytes.
    fn new(memory: usize, results: usize, max_threads: usize, (row, each): (usize, usize)) -> anyhow::Result<Self> {
        ensure!(memory >= MIN_MEMORY, "--memory: {memory} bytes are too few: give at least {}K", MIN_MEMORY >> 10);
        let row_bytes = row.saturating_mul(each);
        let threads = (memory / 4 / MIN_CHUNK_BYTES.max(row_bytes)).clamp(1, max_threads);
        let chunk = (memory / 4 / threads).min(CHUNK_BYTES.max(row_bytes));
        let results_bytes = results.saturating_mul(RESULT_BYTES);
        ensure!(
            results_bytes <= memory / 4,
            "--memory: the {} alone need {} of memory: give at least four times as much",
            counted(results, "result", "results"),
            memory::shown(results_bytes as u128)
        );
        Ok(Self { threads, chunk, states: memory / 2, row })
    }
}

/// A file, and how it is summed.
struct Job<'a> {
    source: &'a Source,
    operators: &'a [Operator],
    kinds: Kinds,
    budget: Budget,
    /// The bytes that may be used.
    memory: usize,
    /// The threads that have read chunks.
    threads: AtomicUsize,
    bar: &'a ProgressBar,
}

impl Job<'_> {
    /// The number of elements of a thread's buffer.
    fn chunk<T>(&self) -> usize {
        (self.budget.chunk / size_of::<T>()).clamp(1, CHUNK_ELEMENTS.max(self.budget.row))
    }

    /// Reads elements now.
    fn read_now<T: Number>(&self, first: usize, to: &mut [T]) -> anyhow::Result<()> {
        self.source.read(first, to)?;
        self.bar.inc(size_of_val(to) as u64);
        Ok(())
    }

    /// Refuses to read some columns at a time from a pipe.
    fn check_blocks(&self, kept: usize) -> anyhow::Result<()> {
        let shown = &self.source.shown;
        ensure!(
            self.source.can_seek(),
            "--memory: the sums of {} of {shown} do not fit, and only a file can be read several times: give more, or \
             name a file",
            counted(kept, "column", "columns")
        );
        Ok(())
    }
}

pub fn run(gpu: &Opened, output: &Output, request: &Request<'_>) -> anyhow::Result<Outcome> {
    let Request { input, wanted, operators, file, memory } = *request;
    for operator in operators {
        ensure!(
            OPERATORS.contains(operator),
            "--op {} reads the whole array at once: with --memory, choose from {}",
            name_of(operator),
            OPERATORS.map(|operator| name_of(&operator)).join(", ")
        );
    }
    let is_one = operators.len() == 1 || file.output.is_none();
    ensure!(is_one, "--output takes the results of one operator: name one --op, or leave out --output");
    file.check_output()?;
    let source = Source::open(input, wanted)?;
    let described = &source.described;
    let layout = described.layout().with_context(|| format!("the shape in {}", source.shown))?;
    let extent = Extent::along(layout, file.axis.as_ref()).with_context(|| source.shown.clone())?;
    let max_threads = warpfold::host::max_threads();
    // Each thread sums the chunks that it has read.
    warpfold::host::set_max_threads(std::num::NonZero::<usize>::MIN);
    let results = extent.results().saturating_mul(operators.len());
    let memory = memory.min(free_host_memory());
    let (extents, is_reduced) = in_order_of_file(&extent, described.is_fortran);
    let each = with_type!(described.stored.dtype, T => size_of::<T>());
    let row = if source.can_seek() { 0 } else { form::row(&extents, &is_reduced)? };
    let budget = Budget::new(memory, results, max_threads.get(), (row, each))?;
    let (kinds, bar) = (Kinds::of(operators), progress(described.bytes as u64));
    let job = Job { source: &source, operators, kinds, budget, memory, threads: AtomicUsize::new(1), bar: &bar };
    let start = Instant::now();
    let (summed_by, results) = with_type!(described.stored.dtype, T => job.results::<T>(gpu, &extents, &is_reduced))?;
    let samples = with_type!(described.stored.dtype, T => job.samples::<T>())?;
    let seconds = start.elapsed().as_secs_f64();
    bar.finish_and_clear();
    source.changed()?;
    let each = results.iter().zip(&samples);
    let arrays = each.map(|(values, sample)| in_c_order(values, sample, &extent, described.is_fortran));
    let arrays = arrays.collect::<anyhow::Result<Vec<_>>>()?;
    let rows = operators.iter().zip(&arrays).map(|(&operator, array)| Row::new(operator, array)).collect();
    let report = Report::new(gpu, &source, &extent, &job, summed_by, seconds, rows)?;
    let mut outcome = report.print(output);
    if let Some(array) = arrays.into_iter().next() {
        file.write(&mut outcome, array, &extent, 1, true);
    }
    Ok(outcome)
}

/// What has summed the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum SummedBy {
    Gpu,
    Host,
}

impl Job<'_> {
    /// The results of each operator for the extents of the file's axes.
    fn results<T: Streamed>(
        &self,
        gpu: &Opened,
        extents: &[usize],
        is_reduced: &[bool],
    ) -> anyhow::Result<(SummedBy, Results)> {
        if self.source.described.elements == 0 {
            let (layout, axes) = (Layout::contiguous(extents)?, axes_of(is_reduced));
            let array = View::new(&[], &layout)?;
            let each = self.operators.iter().map(|&operator| T::reduce(operator, &array, &axes));
            return Ok((SummedBy::Host, each.collect::<Result<_, _>>()?));
        }
        let mut results = vec![Vec::new(); self.operators.len()];
        Ok((T::reduce_chunks(self, gpu, extents, is_reduced, &mut results)?, results))
    }

    /// A result of each operator, for its type.
    fn samples<T: Streamed>(&self) -> anyhow::Result<Vec<Value>> {
        let (elements, layout) = ([T::default()], Layout::contiguous(&[1])?);
        let array = View::new(&elements, &layout)?;
        let sample = |&operator: &Operator| Ok(T::reduce(operator, &array, &Axes::ALL)?[0]);
        self.operators.iter().map(sample).collect()
    }
}

/// The extents of the axes, and whether they are reduced. Elements that are next to each other in the file differ along
/// the last axis.
fn in_order_of_file(extent: &Extent, is_fortran: bool) -> (Vec<usize>, Vec<bool>) {
    let (mut extents, kept) = (extent.extents().to_vec(), extent.kept());
    let mut is_reduced: Vec<bool> = (0..extents.len()).map(|axis| !kept.contains(&axis)).collect();
    if is_fortran {
        // The same memory as an array in C order has its axes in reverse.
        extents.reverse();
        is_reduced.reverse();
    }
    (extents, is_reduced)
}

/// The reduced axes.
fn axes_of(is_reduced: &[bool]) -> Axes {
    let axes = (0..).zip(is_reduced).filter(|(_, is_reduced)| **is_reduced).map(|(axis, _)| axis);
    Axes::from(&axes.collect::<Vec<isize>>()[..])
}

/// The array of results, which are in the order of the file's axes and have the type of the sample.
fn in_c_order(values: &[Value], sample: &Value, extent: &Extent, is_fortran: bool) -> anyhow::Result<Array> {
    let extents = extent.extents_of_results(false);
    let layout = if is_fortran { strided::fortran(&extents)? } else { Layout::contiguous(&extents)? };
    macro_rules! array_of {
        ($($variant:ident $type:ty),*) => {
            match sample {
                $(Value::$variant(_) => {
                    let number = |value: &Value| match *value {
                        Value::$variant(number) => number,
                        _ => unreachable!("the results of an operator have one type"),
                    };
                    let numbers: Vec<$type> = values.iter().map(number).collect();
                    Array::of_list(strided::in_c_order(&numbers, &layout)?)
                })*
            }
        };
    }
    Ok(array_of!(I64 i64, U64 u64, F32 f32, F64 f64))
}

/// The progress in bytes on standard error; hidden unless it is a terminal.
fn progress(bytes: u64) -> ProgressBar {
    let template = "{bar:30} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left";
    ProgressBar::new(bytes).with_style(ProgressStyle::with_template(template).expect("the template is valid"))
}

/// A size in bytes: `2G`, `512M`, `64K` or `1000000`. The units are powers of 1,024.
pub fn size(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        "T" | "TiB" => 40,
        _ => return Err("expected a number of bytes with the unit K, M, G or T, such as 512M or 2G".to_owned()),
    };
    let number = crate::options::count(digits)?;
    number.checked_mul(1 << shift).ok_or_else(|| "too large for this machine".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in
            [("2G", 2 << 30), ("512M", 512 << 20), ("64KiB", 64 << 10), ("1T", 1 << 40), ("2^20", 1 << 20)]
        {
            assert_eq!(size(text), Ok(bytes));
        }
        for wrong in ["", "G", "2GB", "-1", "1.5G", "2g", "99999999999T", "G2", "2 G"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn memory_is_divided() {
        let gib = Budget::new(1 << 30, 1, 8, (0, 4)).unwrap();
        assert_eq!(gib, Budget { threads: 8, chunk: CHUNK_BYTES, states: 1 << 29, row: 0 });
        for memory in [MIN_MEMORY, 40_000, 1 << 17, 1 << 22] {
            for max in [1, 2, 64] {
                for row in [0, 10, 1 << 20] {
                    let Budget { threads, chunk, states, .. } = Budget::new(memory, 1, max, (row, 4)).unwrap();
                    assert!((1..=max).contains(&threads) && chunk >= MIN_CHUNK_BYTES, "{memory} {max}");
                    assert!(threads * chunk + states <= memory, "{memory} {max}");
                    assert!(chunk >= 4 * row || 16 * row > memory, "{memory} {max}");
                }
            }
        }
        assert!(Budget::new(MIN_MEMORY - 1, 1, 8, (0, 4)).unwrap_err().to_string().contains("at least 16K"));
        assert!(Budget::new(1 << 20, 1 << 20, 8, (0, 4)).unwrap_err().to_string().contains("1048576 results"));
    }
}
