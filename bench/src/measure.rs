//! Timing: the median of many samples, which rotate through inputs of more memory than the caches hold.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use warpfold::{Error, Gpu};

use crate::interrupt;
use crate::options::Output;
use crate::ranges::{self, Range};

/// The duration of a sample on a GPU.
const SAMPLE_SECONDS: f64 = 3e-3;

/// A kernel that takes longer than this is timed once.
const LONG_SECONDS: f64 = 0.5;

/// Starts some work. The argument counts the starts, so that each can use another input. This type is not generic, so
/// that the measurement is compiled once, and only the closure for each operator and type.
pub type Start<'a> = dyn FnMut(usize) -> Result<(), Error> + 'a;

/// How to measure on a device.
pub struct Plan {
    pub samples: u32,
    /// The size of the L2 cache, which determines how many copies of an input evict each other.
    l2_bytes: usize,
    is_gpu: bool,
    has_ranges: bool,
    is_bound: bool,
}

/// The measured times.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    pub median: Duration,
    pub fastest: Duration,
}

impl Plan {
    pub fn new(gpu: &Gpu, output: &Output) -> Result<Self, Error> {
        let l2_bytes = gpu.info()?.l2_bytes.unwrap_or(0);
        let is_gpu = gpu.is_cuda();
        let samples = output.samples.unwrap_or(if is_gpu { 25 } else { 1 });
        Ok(Self { samples, l2_bytes, is_gpu, has_ranges: output.nvtx, is_bound: false })
    }

    /// Opens a profiler's range, if requested.
    pub fn range(&self, name: &str) -> Option<Range> {
        self.has_ranges.then(|| ranges::open(name))
    }

    /// The number of inputs of `bytes` bytes to rotate through.
    pub fn rotation(&self, bytes: usize) -> usize {
        if !self.is_gpu || bytes == 0 {
            return 1;
        }
        // Twice the size of the cache, in addition to the copy in use; at most about a thousand copies.
        (2 * self.l2_bytes).div_ceil(bytes).clamp(1, 1024) + 1
    }

    /// [`Plan::rotation`] for a size that may not fit in memory.
    pub fn copies(&self, bytes: u128) -> u128 {
        self.rotation(usize::try_from(bytes).unwrap_or(usize::MAX)) as u128
    }

    /// Starts `work` for the first time, so that its result can be checked.
    ///
    /// In the executor, returns the time for [`Plan::time_after`]: it is a valid sample, and to repeat the work would
    /// double the wait. On a GPU the first start also loads the kernel, so its time is no sample.
    pub fn first(&self, gpu: &Gpu, work: &mut Start<'_>) -> Result<Option<Duration>, Error> {
        if self.is_gpu {
            work(0)?;
            return Ok(None);
        }
        gpu.time(|| work(0)).map(Some)
    }

    /// The plan of a measurement that is only a bound for others, and no result by itself.
    pub fn of_bound(&self) -> Self {
        Self { is_bound: true, ..*self }
    }

    /// Notes that there is a result, unless it is only a bound.
    fn keep_result(&self) {
        if !self.is_bound {
            interrupt::keep_results();
        }
    }

    /// Whether to take another sample. After an interrupt, one is enough.
    fn wants_more(&self, times: &[Duration]) -> bool {
        if !times.is_empty() {
            self.keep_result();
        }
        times.is_empty() || times.len() < self.samples as usize && !interrupt::is_pending()
    }

    /// Times `work`.
    ///
    /// On a GPU, a sample is the time of a series of starts that takes some milliseconds, divided by their number: the
    /// time of a single short kernel would be the time that the host takes to launch it.
    pub fn time(&self, gpu: &Gpu, work: &mut Start<'_>) -> Result<Timing, Error> {
        self.time_after(gpu, None, work)
    }

    /// [`Plan::time`] with the time from [`Plan::first`] as the first sample.
    pub fn time_after(&self, gpu: &Gpu, first: Option<Duration>, work: &mut Start<'_>) -> Result<Timing, Error> {
        let mut next = 0;
        let mut sample = |starts: u32| {
            let time = gpu.time(|| {
                for _ in 0..starts {
                    work(next)?;
                    next += 1;
                }
                Ok(())
            })?;
            Ok::<_, Error>(time / starts)
        };
        let first = match first {
            Some(first) => first,
            // On a GPU the first start loads the kernel.
            None => sample(1)?,
        };
        if first.as_secs_f64() > LONG_SECONDS {
            self.keep_result();
            return Ok(Timing { median: first, fastest: first });
        }
        let mut times = Vec::with_capacity(self.samples as usize);
        let starts = if self.is_gpu {
            let one = sample(3)?.as_secs_f64();
            (SAMPLE_SECONDS / one.max(1e-7)).ceil().clamp(1.0, 1000.0) as u32
        } else {
            times.push(first);
            1
        };
        while self.wants_more(&times) {
            times.push(sample(starts)?);
        }
        Ok(Timing::of(times))
    }
}

impl Plan {
    /// Times `work` on a GPU like [`Plan::time`], but with the starts recorded as one graph, so that the time to launch
    /// kernels from the host is not included.
    pub fn time_recorded(&self, gpu: &Gpu, work: &mut Start<'_>) -> Result<Timing, Error> {
        // The first start loads the kernel.
        work(0)?;
        let one = gpu.time(|| (0..3).try_for_each(&mut *work))?.as_secs_f64() / 3.0;
        let starts = (SAMPLE_SECONDS / one.max(1e-7)).ceil().clamp(1.0, 500.0) as usize;
        let recording = gpu.record(|| (0..starts).try_for_each(&mut *work))?;
        recording.start()?;
        let mut times = Vec::with_capacity(self.samples as usize);
        while self.wants_more(&times) {
            times.push(gpu.time(|| recording.start())? / starts as u32);
        }
        Ok(Timing::of(times))
    }

    /// Times single starts of `work` on a GPU, each between two events.
    pub fn time_alone(&self, gpu: &Gpu, work: &mut Start<'_>) -> Result<Timing, Error> {
        let mut times = Vec::with_capacity(self.samples as usize);
        for i in 0..self.samples.max(3) as usize {
            gpu.synchronize()?;
            times.push(gpu.time(|| work(i))?);
        }
        Ok(Timing::of(times))
    }
}

impl Timing {
    /// The timing of these samples, at least one.
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self { median: times[times.len() / 2], fastest: times[0] }
    }

    /// The median in microseconds.
    pub fn microseconds(self) -> f64 {
        self.median.as_secs_f64() * 1e6
    }
}

/// The bandwidth of a copy on the device, in bytes read and written per second; `None` in the executor.
pub fn copy_ceiling(gpu: &Gpu, plan: &Plan) -> Result<Option<f64>, Error> {
    if !gpu.is_cuda() {
        return Ok(None);
    }
    // Large enough for the rate of a long copy.
    const ELEMENTS: usize = 1 << 28;
    let buffers = gpu.zeroed::<f32>(ELEMENTS).and_then(|from| Ok((from, gpu.zeroed::<f32>(ELEMENTS)?)));
    let Some((from, mut to)) = if_memory_suffices("the bandwidth of a copy", buffers)? else { return Ok(None) };
    let timing = plan.of_bound().time(gpu, &mut |_| gpu.copy_array(&from, &mut to))?;
    Ok(Some(2.0 * (ELEMENTS * size_of::<f32>()) as f64 / timing.median.as_secs_f64()))
}

/// The buffers, or `None` and a message if the device has too little memory: the measurement is only a reference for
/// others, which do not need it.
pub fn if_memory_suffices<T>(what: &str, buffers: Result<T, Error>) -> Result<Option<T>, Error> {
    match buffers {
        Err(error @ Error::OutOfMemory { .. }) => {
            eprintln!("not measured: {what}: {error}");
            Ok(None)
        }
        other => other.map(Some),
    }
}

/// A progress bar on standard error with `steps` steps; hidden unless it is a terminal.
pub fn progress(steps: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}").expect("the template is valid");
    ProgressBar::new(steps as u64).with_style(style)
}
