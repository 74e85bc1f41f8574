//! Work in several orders: recordings, forks, threads.

use warpfold::{Error, Gpu, Shape, ops};

/// What should have been.
type Outcome = Result<(), String>;

fn failed(error: Error) -> String {
    error.to_string()
}

/// A recording does nothing until it is started, then does it as often as it is, on what is in the buffers then; and keeps
/// memory that its owner has dropped.
///
/// # Errors
/// Something was otherwise.
pub fn recordings(gpu: &Gpu) -> Outcome {
    // What other tests start on their handle would be recorded too.
    let gpu = &gpu.fork().map_err(failed)?;
    let numbers: Vec<i32> = (0..100_000).collect();
    let sum: i64 = numbers.iter().map(|&x| i64::from(x)).sum();
    let input = gpu.upload(&numbers).map_err(failed)?;
    let mut copy = gpu.zeroed::<i32>(numbers.len()).map_err(failed)?;
    let mut outputs = [gpu.zeroed::<i64>(1).map_err(failed)?, gpu.zeroed::<i64>(1).map_err(failed)?];
    let mut reducer = gpu.reducer(ops::Sum, Shape::all(numbers.len())).map_err(failed)?;
    let recording = gpu
        .record(|| {
            let [of_input, of_copy] = &mut outputs;
            reducer.start(&input, of_input)?;
            gpu.copy(&input, &mut copy)?;
            reducer.start(&copy, of_copy)
        })
        .map_err(failed)?;
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
    // What cannot be recorded is an error that says so, and nothing is left of it.
    match gpu.record(|| gpu.download(&outputs[0]).map(drop)) {
        Err(Error::Recording { .. }) => {}
        other => return Err(format!("a download was recorded: {other:?}")),
    }
    match gpu.record(|| gpu.record(|| Ok(())).map(drop)) {
        Err(Error::Recording { .. }) => {}
        other => return Err(format!("a recording was recorded: {other:?}")),
    }
    expect(sum)
}

/// So many threads, each with its own order of work on one device, reduce for so long, one and the same input among others.
///
/// # Errors
/// One of them got a wrong result.
pub fn threads(gpu: &Gpu, count: usize, time: std::time::Duration) -> Outcome {
    let shared: Vec<u32> = (0..70_000).map(|i| i * 7919 % 1000).collect();
    let sum: u64 = shared.iter().map(|&x| u64::from(x)).sum();
    let shared_input = gpu.upload(&shared).map_err(failed)?;
    let work = |thread: usize| {
        let gpu = gpu.fork().map_err(failed)?;
        let own: Vec<f32> = (0..10_000 + thread).map(|i| (i % 97) as f32).collect();
        let own_input = gpu.upload(&own).map_err(failed)?;
        let own_sum = own.iter().sum::<f32>();
        let start = std::time::Instant::now();
        while start.elapsed() < time {
            let found = (gpu.sum(&shared_input).map_err(failed)?, gpu.sum(&own_input).map_err(failed)?);
            if found != (sum, own_sum) {
                return Err(format!("thread {thread}: {found:?}, should be {:?}", (sum, own_sum)));
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?)
    })
}
