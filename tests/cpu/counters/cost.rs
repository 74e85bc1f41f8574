//! The cost of checks and counters in the executor. The test measures time, so it is ignored by default and needs an
//! idle machine:
//! `cargo test --release -p warpfold-tests --test cpu counters::cost -- --ignored --nocapture`, and `taskset -c 0`
//! before it for one core, as in `docs/counters.md`.

use std::time::{Duration, Instant};

use warpfold::ladder::{ControlFlowRung, ReduceRung, TransposeRung};
use warpfold::{Error, Gpu, Schedule, SimtOptions};

/// The number of measurements. The fastest counts, because other programs share the machine.
const ROUNDS: usize = 25;
/// Rows and columns of the matrices that are transposed. With 512, an unwatched transpose takes as little as 0.6 ms, of
/// which the start of the launch is a part that varies.
const SIDE: usize = 1024;
/// The maximum ratio of watched to unwatched time.
const MAX_RATIO: f64 = 10.0;

type Work<'a> = Box<dyn FnMut() -> Result<(), Error> + 'a>;

/// The time of some work: unwatched, with counters, with checks, and with both.
struct Cost {
    name: &'static str,
    fastest: [Duration; 4],
}

impl Cost {
    fn of(name: &'static str, work_on: impl for<'a> Fn(&'a Gpu) -> Result<Work<'a>, Error>) -> Result<Self, Error> {
        let gpus = [false, true].map(|checks| Gpu::simt_with(SimtOptions { checks, schedule: Schedule::InOrder }));
        let mut fastest = [Duration::MAX; 4];
        let (mut unchecked, mut checked) = (work_on(&gpus[0])?, work_on(&gpus[1])?);
        let mut take = |i: usize, work: &mut dyn FnMut() -> Result<(), Error>| -> Result<(), Error> {
            let start = Instant::now();
            work()?;
            fastest[i] = start.elapsed().min(fastest[i]);
            Ok(())
        };
        for _ in 0..ROUNDS {
            take(0, &mut unchecked)?;
            take(1, &mut || gpus[0].profile(&mut unchecked).map(|_| ()))?;
            take(2, &mut checked)?;
            take(3, &mut || gpus[1].profile(&mut checked).map(|_| ()))?;
        }
        Ok(Self { name, fastest })
    }

    fn of_sum(rung: ReduceRung) -> Result<Self, Error> {
        Self::of(rung.name(), |gpu| {
            let input = gpu.upload(&[1.0_f32; 1 << 17])?;
            let mut sum = rung.prepare::<f32>(gpu, input.len(), 256)?;
            sum.load(gpu, &input)?;
            Ok(Box::new(move || sum.start(gpu, &input)))
        })
    }

    fn of_transpose(rung: TransposeRung) -> Result<Self, Error> {
        Self::of(rung.name(), |gpu| {
            let matrix = gpu.zeroed(SIDE * SIDE)?.reshape(&[SIDE, SIDE])?;
            let mut result = gpu.zeroed(SIDE * SIDE)?.reshape(&[SIDE, SIDE])?;
            Ok(Box::new(move || rung.start(gpu, &matrix, &mut result)))
        })
    }

    fn of_control_flow(rung: ControlFlowRung) -> Result<Self, Error> {
        Self::of(rung.name(), |gpu| {
            let input = gpu.zeroed(1 << 17)?;
            let mut output = gpu.zeroed(1 << 17)?;
            Ok(Box::new(move || rung.start(gpu, &input, &mut output)))
        })
    }

    /// The ratios to the unwatched time: with counters, with checks, and with both.
    fn times(&self) -> [f64; 3] {
        let [off, watched @ ..] = self.fastest;
        watched.map(|watched| watched.as_secs_f64() / off.as_secs_f64())
    }
}

#[test]
#[ignore = "it measures time, so nothing else may run"]
fn watching_costs_at_most_10_times() -> Result<(), Error> {
    let costs = ReduceRung::all().map(Cost::of_sum);
    let costs = costs.chain(TransposeRung::ALL.into_iter().map(Cost::of_transpose));
    let costs: Vec<Cost> =
        costs.chain(ControlFlowRung::ALL.into_iter().map(Cost::of_control_flow)).collect::<Result<_, _>>()?;
    println!("{:22} {:>8} {:>9} {:>9} {:>9}", "", "off, ms", "counted", "checked", "both");
    for cost in &costs {
        let [counted, checked, both] = cost.times();
        let off = cost.fastest[0].as_secs_f64() * 1e3;
        println!("{:22} {off:8.3} {counted:8.2}x {checked:8.2}x {both:8.2}x", cost.name);
    }
    let too_slow: Vec<_> = costs.iter().filter(|cost| cost.times().iter().any(|&times| times > MAX_RATIO)).collect();
    assert!(
        too_slow.is_empty(),
        "more than {MAX_RATIO} times: {:?}",
        too_slow.iter().map(|cost| cost.name).collect::<Vec<_>>()
    );
    Ok(())
}
