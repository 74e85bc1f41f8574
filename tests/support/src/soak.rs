//! A soak test: random operations by several threads on one device, for a given time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::by_shape::ByShape;
use crate::shape::Shape;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use warpfold::ops::Sum;
use warpfold::{Error, Gpu};

use crate::strict::Strict;

/// The maximum number of elements of a step.
const MOST: usize = 20_000;

/// Runs random steps in `threads` threads on one handle until `time` is over. Returns the number of steps.
///
/// A step uploads, reduces, transposes, records, starts, forks or drops, and checks the result. With `faults`, which a
/// CUDA device does not survive, some launches fail.
///
/// # Errors
/// On a wrong result, or an unexpected error.
pub fn soak(gpu: &Gpu, threads: usize, time: Duration, faults: bool) -> Result<u64, String> {
    let (start, steps, wrong) = (Instant::now(), AtomicU64::new(0), Mutex::new(None));
    let has_failed = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..threads {
            let (steps, wrong, has_failed) = (&steps, &wrong, &has_failed);
            scope.spawn(move || {
                let mut source = SmallRng::seed_from_u64(thread as u64);
                while start.elapsed() < time && !has_failed.load(Ordering::Relaxed) {
                    let kind = source.random_range(0..KINDS.len() + 2 * usize::from(faults));
                    let step = *KINDS.get(kind).unwrap_or(&(after_a_fault as Step));
                    if let Err(error) = step(gpu, &mut source) {
                        has_failed.store(true, Ordering::Relaxed);
                        *wrong.lock().expect("no thread panics") = Some(format!("a step of kind {kind}: {error}"));
                    }
                    steps.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    match wrong.into_inner().expect("no thread has panicked") {
        Some(wrong) => Err(wrong),
        None => Ok(steps.into_inner()),
    }
}

type Step = fn(&Gpu, &mut SmallRng) -> Result<(), String>;

static KINDS: [Step; 8] = [
    sum_of_all,
    sums_of_rows,
    recorded,
    refused_in_another,
    outlives_its_buffers,
    never_started,
    of_a_fork,
    transposed,
];

fn numbers(source: &mut SmallRng) -> Vec<i32> {
    let len = source.random_range(1..MOST);
    (0..len).map(|_| source.random_range(-1000..1000)).collect()
}

fn sum(numbers: &[i32]) -> i64 {
    numbers.iter().copied().map(i64::from).sum()
}

fn text(error: Error) -> String {
    error.to_string()
}

fn same<T: PartialEq + std::fmt::Debug>(found: T, expected: T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{found:?} instead of {expected:?}")) }
}

fn sum_of_all(gpu: &Gpu, source: &mut SmallRng) -> Result<(), String> {
    let numbers = numbers(source);
    same(gpu.upload(&numbers).and_then(|x| gpu.sum(&x)).map_err(text)?, sum(&numbers))
}

fn sums_of_rows(gpu: &Gpu, source: &mut SmallRng) -> Result<(), String> {
    let (numbers, columns) = (numbers(source), source.random_range(1..300));
    let rows = numbers.len() / columns;
    let run = || {
        let x = gpu.upload(&numbers)?;
        let by_rows = gpu.reduce_to_buffer(Sum, &x, Shape::rows(rows, columns))?;
        let by_columns = gpu.reduce_to_buffer(Sum, &x, Shape::columns(rows, columns))?;
        Ok((gpu.download(&by_rows)?, gpu.download(&by_columns)?))
    };
    let (by_rows, by_columns) = run().map_err(text)?;
    let all = &numbers[..rows * columns];
    same(by_rows, all.chunks(columns).map(sum).collect())?;
    let of_column = |column: usize| all.iter().skip(column).step_by(columns).copied().map(i64::from).sum();
    same(by_columns, (0..columns).map(of_column).collect())
}

fn recorded(gpu: &Gpu, source: &mut SmallRng) -> Result<(), String> {
    let numbers = numbers(source);
    let run = || {
        let (x, mut copy, mut output) = (gpu.upload(&numbers)?, gpu.zeroed(numbers.len())?, gpu.zeroed(1)?);
        let mut reducer = gpu.reducer_of(Sum, Shape::all(numbers.len()))?;
        let recording = gpu.record(|| {
            gpu.copy_array(&x, &mut copy)?;
            reducer.start(&copy, &mut output)
        })?;
        let before = gpu.download(&output)?;
        recording.start()?;
        recording.start()?;
        Ok([before[0], gpu.download(&output)?[0]])
    };
    same(run().map_err(text)?, [0, sum(&numbers)])
}

fn refused_in_another(gpu: &Gpu, source: &mut SmallRng) -> Result<(), String> {
    let numbers = numbers(source);
    let run = || {
        let (x, mut output) = (gpu.upload(&numbers)?, gpu.zeroed(1)?);
        let mut reducer = gpu.reducer_of(Sum, Shape::all(numbers.len()))?;
        let part = gpu.record(|| reducer.start(&x, &mut output))?;
        let refused = gpu.record(|| part.start()).err();
        let before = gpu.download(&output)?;
        part.start()?;
        Ok((matches!(refused, Some(Error::Recording { .. })), [before[0], gpu.download(&output)?[0]]))
    };
    same(run().map_err(text)?, (true, [0, sum(&numbers)]))
}

fn outlives_its_buffers(gpu: &Gpu, source: &mut SmallRng) -> Result<(), String> {
    let numbers = numbers(source);
    let run = || {
        let mut output = gpu.zeroed(1)?;
        let recording = {
            let x = gpu.upload(&numbers)?;
            let mut reducer = gpu.reducer_of(Sum, Shape::all(numbers.len()))?;
            gpu.record(|| reducer.start(&x, &mut output))?
        };
        // If the recording did not keep its memory, these buffers would reuse it and be overwritten.
        let others: Vec<_> = (0..4).map(|_| gpu.upload(&vec![-1_i32; numbers.len()])).collect::<Result<_, _>>()?;
        recording.start()?;
        let sums = others.iter().map(|other| gpu.sum(other)).collect::<Result<Vec<_>, _>>()?;
        Ok((gpu.download(&output)?[0], sums))
    };
    let (found, others) = run().map_err(text)?;
    same(others, vec![-(numbers.len() as i64); 4])?;
    same(found, sum(&numbers))
}

fn never_started(gpu: &Gpu, source: &mut SmallRng) -> Result<(), String> {
    let numbers = numbers(source);
    let run = || {
        let (x, mut output) = (gpu.upload(&numbers)?, gpu.zeroed::<i64>(1)?);
        let mut reducer = gpu.reducer_of(Sum, Shape::all(numbers.len()))?;
        let recording = gpu.record(|| reducer.start(&x, &mut output))?;
        let refused = gpu.record(|| gpu.sum(&x).map(|_| ())).err();
        drop(recording);
        Ok((gpu.download(&output)?[0], matches!(refused, Some(Error::Recording { .. }))))
    };
    same(run().map_err(text)?, (0, true))
}

fn of_a_fork(gpu: &Gpu, source: &mut SmallRng) -> Result<(), String> {
    let numbers = numbers(source);
    let run = || {
        let fork = gpu.fork()?;
        let x = fork.upload(&numbers)?;
        let on_fork = fork.sum(&x)?;
        drop(fork);
        Ok([on_fork, gpu.sum(&x)?])
    };
    same(run().map_err(text)?, [sum(&numbers); 2])
}

fn transposed(gpu: &Gpu, source: &mut SmallRng) -> Result<(), String> {
    let (numbers, columns) = (numbers(source), source.random_range(1..300));
    let rows = numbers.len() / columns;
    let all = &numbers[..rows * columns];
    let run = || {
        let matrix = gpu.upload(all)?.reshape(&[rows, columns])?;
        gpu.download(&gpu.transpose(&matrix)?)
    };
    let expected: Vec<i32> = (0..rows * columns).map(|at| all[at % rows * columns + at / rows]).collect();
    if rows == 0 { Ok(()) } else { same(run().map_err(text)?, expected) }
}

fn after_a_fault(gpu: &Gpu, source: &mut SmallRng) -> Result<(), String> {
    let columns = source.random_range(1..9);
    let rows = source.random_range(1..MOST);
    let shape = if source.random() { Shape::all(rows * columns) } else { Shape::columns(rows, columns) };
    let mut wrong = vec![2.0_f32; rows * columns];
    wrong[source.random_range(0..rows * columns)] = f32::NAN;
    let run = || {
        let (right, wrong) = (gpu.upload(&vec![1.0_f32; rows * columns])?, gpu.upload(&wrong)?);
        let mut output = gpu.zeroed::<f32>(shape.outputs())?;
        let mut reducer = gpu.reducer_of(Strict, shape)?;
        let fault = reducer.start(&wrong, &mut output).err();
        reducer.start(&right, &mut output)?;
        Ok((gpu.download(&output)?, matches!(fault, Some(Error::Fault(_)))))
    };
    let each = (rows * columns / shape.outputs()) as f32;
    same(run().map_err(text)?, (vec![each; shape.outputs()], true))
}
