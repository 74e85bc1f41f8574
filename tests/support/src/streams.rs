//! Recordings, and work in several streams.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::by_shape::ByShape;
use crate::shape::Shape;
use warpfold::exact::{ExactDot, ExactSum};
use warpfold::{Buffer, Error, Gpu, Scaling, ops};

use crate::calls::Calls;

/// `Err` describes the difference from the expected result.
type Outcome = Result<(), String>;

/// Work to be recorded.
type Work<'a> = &'a dyn Fn() -> Result<(), Error>;

fn failed(error: Error) -> String {
    error.to_string()
}

/// Checks that a recording does nothing until it is started, that each start repeats its work on the current contents
/// of the buffers, and that it keeps memory alive after its owner has dropped it.
///
/// # Errors
/// If any of this does not hold.
pub fn recordings(gpu: &Gpu) -> Outcome {
    // A fork, because the work of other tests on the same handle would be recorded, too.
    let gpu = &gpu.fork().map_err(failed)?;
    let numbers: Vec<i32> = (0..100_000).collect();
    let sum: i64 = numbers.iter().map(|&x| i64::from(x)).sum();
    let input = gpu.upload(&numbers).map_err(failed)?;
    let mut copy = gpu.zeroed::<i32>(numbers.len()).map_err(failed)?;
    let mut outputs = [gpu.zeroed::<i64>(1).map_err(failed)?, gpu.zeroed::<i64>(1).map_err(failed)?];
    let mut reducer = gpu.reducer_of(ops::Sum, Shape::all(numbers.len())).map_err(failed)?;
    let (outside, mut inside) = (gpu.cuda_stream(), None);
    let recording = gpu
        .record(|| {
            // Another library's work on this stream is recorded with the rest.
            inside = gpu.cuda_stream();
            let [of_input, of_copy] = &mut outputs;
            reducer.start(&input, of_input)?;
            gpu.copy_array(&input, &mut copy)?;
            reducer.start(&copy, of_copy)
        })
        .map_err(failed)?;
    if outside.is_some() && (inside.is_none() || inside == outside) || gpu.cuda_stream() != outside {
        return Err(format!("the stream of a recording is {inside:?}, and outside of it {outside:?}"));
    }
    drop((input, copy, reducer));
    let expect = |expected: i64| {
        for output in &outputs {
            let found = gpu.download(output).map_err(failed)?;
            if found != [expected] {
                return Err(format!("{found:?}, should be {expected}"));
            }
        }
        Ok(())
    };
    expect(0)?;
    for _ in 0..3 {
        recording.start().map_err(failed)?;
        expect(sum)?;
    }
    // Work that cannot be recorded is an error, and leaves nothing behind.
    let x = gpu.upload(&numbers).map_err(failed)?;
    let matrix = gpu.upload(&numbers).map_err(failed)?.reshape(&[1000, 100]).map_err(failed)?;
    let columns = || gpu.reduce_to_buffer(ops::Sum, &x, Shape::columns(1000, 100));
    let refused: [(&str, Work); 6] = [
        ("a download", &|| gpu.download(&outputs[0]).map(drop)),
        ("a recording", &|| gpu.record(|| Ok(())).map(drop)),
        ("new memory", &|| gpu.zeroed::<u8>(1).map(drop)),
        ("a reduction to a new buffer", &|| columns().map(drop)),
        ("a reducer", &|| gpu.reducer_of::<_, i32>(ops::Sum, Shape::all(numbers.len())).map(drop)),
        ("a transpose to a new matrix", &|| gpu.transpose(&matrix).map(drop)),
    ];
    for (what, work) in refused {
        match gpu.record(work) {
            Err(Error::Recording { .. }) => {}
            other => return Err(format!("{what} was recorded: {other:?}")),
        }
    }
    let of_columns = gpu.download(&columns().map_err(failed)?).map_err(failed)?;
    if of_columns.iter().sum::<i64>() != sum {
        return Err(format!("after it was refused in a recording, a reduction of columns is {of_columns:?}"));
    }
    // A panic leaves nothing behind either; `resume_unwind` prints nothing.
    let panics = || gpu.record(|| resume_unwind(Box::new("on purpose")));
    if catch_unwind(AssertUnwindSafe(panics)).is_ok() {
        return Err("a panic was recorded".into());
    }
    gpu.record(|| Ok(())).map_err(failed)?;
    expect(sum)
}

/// Checks that each kind of call that allocates nothing gives the same results when called directly and when recorded
/// and started three times.
///
/// # Errors
/// If one does not.
pub fn recordings_of_each_kind(gpu: &Gpu) -> Outcome {
    let gpu = &gpu.fork().map_err(failed)?;
    let numbers: Vec<f32> = (0..60_000).map(|i| (i * 7919 % 1009) as f32).collect();
    let x = gpu.upload(&numbers).map_err(failed)?;
    let offsets = gpu.upload(&[0_u64, 5, 5, 20_000, 60_000]).map_err(failed)?;
    let (mut segments, mut pairs) = (
        gpu.segment_reducer::<_, f32>(ops::Sum, 4, numbers.len()).map_err(failed)?,
        gpu.dots_of::<f32>(Shape::rows(6, 10_000)).map_err(failed)?,
    );
    let outputs = |len: usize| gpu.zeroed::<f32>(len);
    let mut all = [4, 6, numbers.len(), numbers.len(), numbers.len()].map(outputs);
    let mut square = gpu.upload(&numbers[..40_000]).map_err(failed)?.reshape(&[200, 200]).map_err(failed)?;
    let mut start = |all: &mut [Result<Buffer<f32>, Error>; 5]| {
        let [Ok(of_segments), Ok(of_pairs), Ok(transposed), Ok(scaled), Ok(permuted)] = all else {
            return Ok(());
        };
        segments.start(&x, &offsets, of_segments)?;
        pairs.start(&x, &x, of_pairs)?;
        let columns = x.view().reshape(&[300, 200])?.permute_axes(&[1, 0])?;
        gpu.copy_array(columns, transposed.view_mut().reshape(&[200, 300])?)?;
        gpu.copy_scaled(Scaling::by(2.0), columns, scaled.view_mut().reshape(&[200, 300])?)?;
        let last_first = x.view().reshape(&[20, 30, 100])?.permute_axes(&[2, 0, 1])?;
        gpu.copy_array(last_first, permuted.view_mut().reshape(&[100, 20, 30])?)?;
        gpu.transpose_in_place(&mut square)
    };
    let recording = gpu.record(|| start(&mut all)).map_err(failed)?;
    let results = |all: [Result<Buffer<f32>, Error>; 5]| {
        all.into_iter().map(|buffer| gpu.download(&buffer?)).collect::<Result<Vec<_>, _>>().map_err(failed)
    };
    for _ in 0..3 {
        recording.start().map_err(failed)?;
    }
    let recorded = results(all)?;
    let mut at_once = [4, 6, numbers.len(), numbers.len(), numbers.len()].map(outputs);
    start(&mut at_once).map_err(failed)?;
    if recorded != results(at_once)? {
        return Err("a recording's results differ from those of direct calls".into());
    }
    // Transposed in place four times, three of them by the recording, so that it is the input again.
    let found = gpu.download(&square).map_err(failed)?;
    match (0..40_000).find(|&i| found[i] != numbers[i]) {
        Some(place) => Err(format!("in place, element {place} is wrong")),
        None => Ok(()),
    }
}

/// Checks recorded exact sums of rows, of columns, of columns that are transposed first, and of whole inputs. Each
/// start has different elements.
///
/// # Errors
/// If one is wrong.
pub fn recordings_of_exact_sums(gpu: &Gpu) -> Outcome {
    const ROWS: usize = 1203;
    const COLUMNS: usize = 5;
    let gpu = &gpu.fork().map_err(failed)?;
    let mut numbers: Vec<f64> = [1e20, 1.0, -1e20, 3e-200].repeat(ROWS * COLUMNS / 4 + 1);
    numbers.truncate(ROWS * COLUMNS);
    let mut x = gpu.upload(&numbers).map_err(failed)?;
    let (of_rows, of_columns) = (Shape::rows(ROWS, COLUMNS), Shape::columns(ROWS, COLUMNS));
    let mut rows = gpu.reducer_of::<_, f64>(ops::Sum, of_rows).map_err(failed)?;
    let mut columns = gpu.reducer_of::<_, f64>(ops::Sum, of_columns).map_err(failed)?;
    let mut squares = gpu.reducer_of::<_, f64>(ops::SumOfSquares, of_columns).map_err(failed)?;
    let mut mean = gpu.reducer_of::<_, f64>(ops::Mean, Shape::all(ROWS * COLUMNS)).map_err(failed)?;
    let mut outputs = Vec::new();
    for len in [ROWS, COLUMNS, COLUMNS, 1] {
        outputs.push(gpu.zeroed::<f64>(len).map_err(failed)?);
    }
    let recording = gpu
        .record(|| {
            rows.start(&x, &mut outputs[0])?;
            columns.start(&x, &mut outputs[1])?;
            squares.start(&x, &mut outputs[2])?;
            mean.start(&x, &mut outputs[3])
        })
        .map_err(failed)?;
    for round in 0..3 {
        recording.start().map_err(failed)?;
        let column = |column: usize| numbers[column..].iter().copied().step_by(COLUMNS);
        let expected = [
            numbers.chunks(COLUMNS).map(|row| row.iter().copied().collect::<ExactSum<f64>>().value()).collect(),
            (0..COLUMNS).map(|i| column(i).collect::<ExactSum<f64>>().value()).collect(),
            (0..COLUMNS).map(|i| column(i).map(|x| (x, x)).collect::<ExactDot<f64>>().value()).collect(),
            vec![numbers.iter().copied().collect::<ExactSum<f64>>().mean()],
        ];
        for (output, expected) in outputs.iter().zip(expected) {
            let found: Vec<f64> = gpu.download(output).map_err(failed)?;
            if found != expected {
                return Err(format!("in round {round} {found:?}, should be {expected:?}"));
            }
        }
        numbers.rotate_left(1);
        numbers[7 * round] = f64::MAX;
        gpu.copy_array(&gpu.upload(&numbers).map_err(failed)?, &mut x).map_err(failed)?;
    }
    Ok(())
}

/// Runs calls of every kind in `count` threads for `time`. Each thread has its own stream and its own inputs, and all
/// share one input.
///
/// # Errors
/// If one of them gets a wrong result.
pub fn threads(gpu: &Gpu, count: usize, time: std::time::Duration) -> Outcome {
    let shared: Vec<u32> = (0..70_000).map(|i| i * 7919 % 1000).collect();
    let sum: u64 = shared.iter().map(|&x| u64::from(x)).sum();
    let shared_input = gpu.upload(&shared).map_err(failed)?;
    let work = |thread: usize| {
        let gpu = gpu.fork().map_err(failed)?;
        let mut own = Calls::new(&gpu, thread).map_err(failed)?;
        let start = std::time::Instant::now();
        while start.elapsed() < time {
            let found = gpu.sum(&shared_input).map_err(failed)?;
            if found != sum {
                return Err(format!("thread {thread}: {found}, should be {sum}"));
            }
            own.check(&gpu).map_err(|error| format!("thread {thread}: {error}"))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?)
    })
}

/// Checks that memory that another handle uses is not given to a new buffer before that work is done, and that work of
/// another handle on a new buffer waits for earlier work on its memory.
///
/// # Errors
/// If a result is that of another buffer, or on an error of the library.
pub fn freed_memory(gpu: &Gpu) -> Outcome {
    // Large, so that their work takes long, but recycled.
    const LEN: usize = 1 << 21;
    let (own, other) = (gpu.fork().map_err(failed)?, gpu.fork().map_err(failed)?);
    let long = if gpu.is_cuda() { 1 << 26 } else { 1 << 10 };
    let queue = |gpu: &Gpu| {
        let zeros = gpu.zeroed::<f32>(long)?;
        let (mut reducer, mut sum) = (gpu.reducer_of(ops::Sum, Shape::all(long))?, gpu.zeroed::<f32>(1)?);
        gpu.synchronize()?;
        (0..8).try_for_each(|_| reducer.start(&zeros, &mut sum))?;
        Ok((zeros, reducer, sum))
    };
    let check = |what: &str, found: &[f32], expected: f32| match found.iter().find(|&&x| x != expected) {
        None => Ok(()),
        Some(x) => Err(format!("{what}: {x}, should be {expected}")),
    };
    for _ in 0..10 {
        // Another handle still reads what its owner has dropped.
        let ones = own.upload(&[1.0_f32; LEN]).map_err(failed)?;
        let mut copy = other.zeroed::<f32>(LEN).map_err(failed)?;
        let busy = queue(&other).map_err(failed)?;
        other.copy_array(&ones, &mut copy).map_err(failed)?;
        drop(ones);
        let twos = own.upload(&[2.0_f32; LEN]).map_err(failed)?;
        check("a dropped buffer", &other.download(&copy).map_err(failed)?, 1.0)?;
        drop((busy, twos));

        // The owner still writes what it has dropped, and another handle gets the memory.
        let (threes, fours) =
            (own.upload(&[3.0_f32; LEN]).map_err(failed)?, other.upload(&[4.0_f32; LEN]).map_err(failed)?);
        let mut dropped = own.zeroed::<f32>(LEN).map_err(failed)?;
        let busy = queue(&own).map_err(failed)?;
        own.copy_array(&threes, &mut dropped).map_err(failed)?;
        drop(dropped);
        let mut new = own.zeroed::<f32>(LEN).map_err(failed)?;
        other.copy_array(&fours, &mut new).map_err(failed)?;
        own.synchronize().map_err(failed)?;
        check("a new buffer", &other.download(&new).map_err(failed)?, 4.0)?;
        drop(busy);
    }
    // Within one handle nothing waits, and the order is that of the calls.
    for i in 0..100 {
        let numbers = own.upload(&[i as f32; 1000]).map_err(failed)?;
        let copy = own.contiguous(&numbers).map_err(failed)?;
        drop(numbers);
        let zeros = own.zeroed::<f32>(1000).map_err(failed)?;
        check("a copy", &own.download(&copy).map_err(failed)?, i as f32)?;
        check("a zeroed buffer", &own.download(&zeros).map_err(failed)?, 0.0)?;
    }
    Ok(())
}
