//! `bench ladder`: checks and times every rung.

use anyhow::Context;
use clap::{Args, ValueEnum};
use warpfold::ladder::{ControlFlowRung, LadderElement, ReduceRung, TransposeRung};
use warpfold::{Error, Gpu, Profile};

use crate::data;
use crate::device::Device;
use crate::element::{ElementType, Number, with_ladder_type};
use crate::inputs::Inputs;
use crate::measure::{Plan, copy_ceiling, progress};
use crate::memory::{Need, bytes_of};
use crate::number;
use crate::options::{FEWER_SIDES, Numbers, Opened, Output, Sides, Uses};
use crate::outcome::{Missing, Outcome};
use crate::reduce::{Extent, Operator, expected as expected_exactly, expected_by_rung, first_wrong};
use crate::report::{Measured, Report, Role, Scale, Section};

#[derive(Debug, Args)]
pub struct LadderArguments {
    /// The ladder [default: all]
    #[arg(value_enum)]
    pub family: Option<Family>,
    /// Only this rung, by its name in the tables
    #[arg(long, value_name = "NAME")]
    pub rung: Option<String>,
    #[command(flatten)]
    pub numbers: Numbers,
    #[command(flatten)]
    pub sides: Sides,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Family {
    /// Sums, in global and in shared memory
    Reduce,
    /// Transposes of a matrix of f32
    Transpose,
    /// Branches, loops and barriers
    ControlFlow,
}

/// The requested ladder and rung; `None` means all.
#[derive(Debug, Default)]
pub struct Choice<'a> {
    pub family: Option<Family>,
    pub rung: Option<&'a str>,
}

/// The rungs to run.
struct Rungs {
    global: Vec<ReduceRung>,
    shared: Vec<ReduceRung>,
    transpose: Vec<TransposeRung>,
    control_flow: Vec<ControlFlowRung>,
}

impl Rungs {
    /// The chosen rungs. A name that two ladders share (`vectorized`) chooses both rungs.
    fn of(choice: &Choice<'_>, dtype: ElementType) -> Result<Self, Error> {
        let mut names = Vec::new();
        let mut wanted = |family, name: &'static str| {
            if choice.family.is_some_and(|only| only != family) {
                return false;
            }
            if !names.contains(&name) {
                names.push(name);
            }
            choice.rung.is_none_or(|only| only == name)
        };
        // Without a name, the rungs are those that have kernels for this type. A named rung is always included, and
        // measuring it fails if it has no kernel for the type.
        let has_global = choice.rung.is_some() || matches!(dtype, ElementType::F32 | ElementType::I32);
        let global = ReduceRung::GLOBAL.into_iter().filter(|_| has_global);
        let has_exact = choice.rung.is_some() || dtype.is_float();
        let shared = ReduceRung::SHARED.into_iter().filter(|rung| has_exact || !rung.is_exact());
        let rungs = Self {
            global: global.filter(|rung| wanted(Family::Reduce, rung.name())).collect(),
            shared: shared.filter(|rung| wanted(Family::Reduce, rung.name())).collect(),
            transpose: TransposeRung::ALL.into_iter().filter(|rung| wanted(Family::Transpose, rung.name())).collect(),
            control_flow: ControlFlowRung::ALL
                .into_iter()
                .filter(|rung| wanted(Family::ControlFlow, rung.name()))
                .collect(),
        };
        match choice.rung {
            Some(rung) if !names.contains(&rung) => Err(Error::NoSuchRung {
                what: "rung",
                value: rung.to_owned(),
                allowed: names.into_iter().map(str::to_owned).collect(),
            }),
            _ => Ok(rungs),
        }
    }
}

impl Rungs {
    fn uses(&self) -> Uses {
        let mut sums = self.global.iter().chain(&self.shared);
        let has_sums = sums.clone().next().is_some();
        Uses {
            numbers: has_sums || !self.control_flow.is_empty(),
            dtype: has_sums,
            block: sums.any(|&rung| !rung.has_fixed_block()),
            sides: !self.transpose.is_empty(),
        }
    }
}

/// Runs one ladder, or all of them.
pub fn run(
    gpu: &Opened,
    output: &Output,
    choice: &Choice<'_>,
    numbers: &Numbers,
    sides: &Sides,
) -> anyhow::Result<Outcome> {
    let rungs = Rungs::of(choice, numbers.dtype())?;
    rungs.uses().check(numbers, sides)?;
    numbers.dtype().check_ladder()?;
    let plan = Plan::new(gpu, output)?;
    let device = Device::of(gpu)?;
    let copy = copy_ceiling(gpu, &plan)?;
    let bench = Bench { gpu, plan: &plan, device: &device, copy, rungs, numbers, sides };
    let mut results = Results::default();
    let reduced = with_ladder_type!(numbers.dtype(), T => bench.reduce::<T>(&mut results));
    results.record_error("sums", reduced);
    if results.wants(&bench.rungs.transpose) {
        let transposed = bench.transpose(&mut results);
        results.record_error("transposes", transposed);
    }
    if results.wants(&bench.rungs.control_flow) {
        let done = bench.control_flow(&mut results);
        results.record_error("control flow", done);
    }
    let Results { sections, missing } = results;
    let mut outcome = missing.outcome();
    let report =
        Report { device, copy_gigabytes_per_second: copy.map(|copy| copy / 1e9), samples: plan.samples, sections };
    if missing.is_empty() || !report.is_empty() {
        outcome.join(report.print(output));
    }
    Ok(outcome)
}

/// The measurements, and the failures.
#[derive(Default)]
struct Results {
    sections: Vec<Section>,
    missing: Missing,
}

impl Results {
    /// Whether to measure `rungs`: there is at least one, the device still works, and the run was not interrupted.
    fn wants<R>(&self, rungs: &[R]) -> bool {
        !rungs.is_empty() && self.missing.can_continue()
    }

    /// Records an error. All other results are still printed.
    fn record_error(&mut self, what: &str, done: anyhow::Result<()>) {
        if let Err(error) = done {
            self.missing.push(what, error);
        }
    }

    /// Measures each of `rungs` by calling `one`, which adds the result to the section.
    fn measure<R: Copy>(
        &mut self,
        mut section: Section,
        rungs: &[R],
        name: fn(R) -> &'static str,
        mut one: impl FnMut(&mut Section, R) -> anyhow::Result<()>,
    ) {
        let bar = progress(rungs.len());
        for &rung in rungs {
            if !self.missing.can_continue() {
                break;
            }
            bar.set_message(name(rung));
            let done = one(&mut section, rung);
            self.record_error(name(rung), done);
            bar.inc(1);
        }
        bar.finish_and_clear();
        if !section.rows.is_empty() {
            self.sections.push(section);
        }
    }
}

/// The parameters that all ladders share.
struct Bench<'a> {
    gpu: &'a Gpu,
    plan: &'a Plan,
    device: &'a Device,
    copy: Option<f64>,
    rungs: Rungs,
    numbers: &'a Numbers,
    sides: &'a Sides,
}

impl Bench<'_> {
    fn scale(&self, bytes: usize) -> Scale<'_> {
        Scale { device: self.device, copy: self.copy, bytes }
    }

    /// Runs a rung once, so that its result can be checked. In the executor, returns its counters.
    fn first(&self, mut work: impl FnMut() -> Result<(), Error>) -> Result<Option<Profile>, Error> {
        if self.gpu.is_cuda() {
            return work().map(|()| None);
        }
        self.gpu.profile(work).map(Some)
    }

    /// The reduction ladders: in global memory, for the types that have it, and in shared memory.
    fn reduce<T: Number + LadderElement>(&self, results: &mut Results) -> anyhow::Result<()> {
        let Rungs { global, shared, .. } = &self.rungs;
        if !results.wants(global) && !results.wants(shared) {
            return Ok(());
        }
        let n = self.numbers.n(self.gpu);
        let bytes = bytes_of::<T>(n);
        // A rung that works in place has a copy of each input.
        let need = Need { device: 2 * self.plan.copies(bytes) * bytes, host: bytes };
        need.check(self.gpu, &format!("sums of {n} {}", T::TYPE), "choose a smaller --n")?;
        let numbers: Vec<T> = data::random(n)?;
        if results.wants(global) {
            let _range = self.plan.range("sum_global");
            self.reduce_by(results, "Sum in global memory", global, &numbers)?;
        }
        if results.wants(shared) {
            let _range = self.plan.range("sum_shared");
            self.reduce_by(results, "Sum in shared memory", shared, &numbers)?;
        }
        Ok(())
    }

    fn reduce_by<T: Number + LadderElement>(
        &self,
        results: &mut Results,
        family: &'static str,
        rungs: &[ReduceRung],
        numbers: &[T],
    ) -> anyhow::Result<()> {
        let (gpu, plan) = (self.gpu, self.plan);
        // The numbers are small integers, so no rung rounds.
        let expected = [expected_by_rung(numbers)?.exact()];
        let exact = match rungs.iter().any(|rung| rung.is_exact()) {
            true => expected_exactly(Operator::Sum, &Extent::all(numbers.len()), &[], numbers)?,
            false => Vec::new(),
        };
        let bytes = size_of_val(numbers);
        let inputs = Inputs::new(gpu, plan, numbers, 0)?;
        let section = Section::new(family, format!("{} {}", numbers.len(), T::TYPE));
        results.measure(section, rungs, ReduceRung::name, |section, rung| {
            // A rung that works in place reads its own copy of the input, so the measurement rotates through copies.
            let copies = if rung.is_in_place() { plan.rotation(bytes) } else { 1 };
            let mut reductions = (0..copies)
                .map(|_| rung.prepare::<T>(gpu, numbers.len(), self.numbers.block()))
                .collect::<Result<Vec<_>, Error>>()?;
            for reduction in &mut reductions {
                reduction.load(gpu, inputs.buffer(0))?;
            }
            let _range = plan.range(rung.name());
            let profile = self.first(|| reductions[0].start(gpu, inputs.buffer(0)))?;
            let sum = reductions[0].finish(gpu)?;
            let wrong = first_wrong(&[sum], if rung.is_exact() { &exact } else { &expected });
            let timing = plan.time(gpu, &mut |i| reductions[i % copies].start(gpu, inputs.buffer(i)))?;
            let launches = reductions[0].launches();
            let role = if Some(&rung) == rungs.first() { Role::First } else { Role::Next };
            let (kernel, change) = (rung.name(), rung.summary());
            section.push(
                &self.scale(bytes),
                Measured {
                    kernel,
                    change,
                    launches,
                    result: Some(number::Results(vec![sum.value()])),
                    wrong,
                    timing,
                    role,
                },
            );
            section.add_counters(profile.as_ref());
            Ok(())
        });
        Ok(())
    }

    fn transpose(&self, results: &mut Results) -> anyhow::Result<()> {
        let (gpu, plan) = (self.gpu, self.plan);
        let (rows, columns) = self.sides.get(gpu);
        let elements = data::random_floats(check_matrix(gpu, plan, rows, columns, FEWER_SIDES)?)?;
        let transposed = data::transposed(&elements, rows, columns)?;
        let bytes = 2 * size_of_val(&elements[..]);
        let inputs = (0..plan.rotation(bytes))
            .map(|_| gpu.upload(&elements).and_then(|x| x.reshape(&[rows, columns])))
            .collect::<Result<Vec<_>, Error>>()?;
        let section = Section::new("Transpose", format!("{rows} x {columns} f32"));
        let _range = plan.range("transpose");
        results.measure(section, &self.rungs.transpose, TransposeRung::name, |section, rung| {
            let mut result = gpu.zeroed(columns * rows)?.reshape(&[columns, rows])?;
            let _range = plan.range(rung.name());
            let profile = self.first(|| rung.start(gpu, &inputs[0], &mut result))?;
            let expected = if rung.is_copy() { &elements } else { &transposed };
            let wrong = (!data::same_bits(&gpu.download(&result)?, expected))
                .then(|| "some elements are not the expected ones".to_owned());
            let timing = plan.time(gpu, &mut |i| rung.start(gpu, &inputs[i % inputs.len()], &mut result))?;
            let (kernel, change) = (rung.name(), rung.summary());
            let role = match rung {
                rung if rung.is_copy() => Role::Bound,
                TransposeRung::Serial => Role::First,
                _ => Role::Next,
            };
            section
                .push(&self.scale(bytes), Measured { kernel, change, launches: 1, result: None, wrong, timing, role });
            section.add_counters(profile.as_ref());
            Ok(())
        });
        Ok(())
    }

    fn control_flow(&self, results: &mut Results) -> anyhow::Result<()> {
        let (gpu, plan, n) = (self.gpu, self.plan, self.numbers.n(self.gpu));
        let each = bytes_of::<u32>(n);
        // Host memory: the input, the result, and the expected result.
        let need = Need { device: (plan.copies(2 * each) + 1) * each, host: 3 * each };
        need.check(gpu, &format!("control flow over {n} u32"), "choose a smaller --n")?;
        let words = data::random_words(n)?;
        let bytes = 2 * size_of_val(&words[..]);
        let inputs = (0..plan.rotation(bytes)).map(|_| gpu.upload(&words)).collect::<Result<Vec<_>, Error>>()?;
        let mut result = gpu.zeroed::<u32>(n)?;
        let section = Section::new("Control flow", format!("{n} u32"));
        let _range = plan.range("control_flow");
        results.measure(section, &self.rungs.control_flow, ControlFlowRung::name, |section, rung| {
            let _range = plan.range(rung.name());
            let profile = self.first(|| rung.start(gpu, &inputs[0], &mut result))?;
            let found = gpu.download(&result)?;
            let expected = rung.expected(&words);
            let wrong = (0..n)
                .find(|&i| found[i] != expected[i])
                .map(|i| format!("number {i} is {} and should be {}", found[i], expected[i]));
            let timing = plan.time(gpu, &mut |i| rung.start(gpu, &inputs[i % inputs.len()], &mut result))?;
            let (kernel, change) = (rung.name(), rung.summary());
            let role = if rung.is_variant() { Role::Next } else { Role::First };
            section
                .push(&self.scale(bytes), Measured { kernel, change, launches: 1, result: None, wrong, timing, role });
            section.add_counters(profile.as_ref());
            Ok(())
        });
        Ok(())
    }
}

/// Rows times columns, if there is enough free memory for a transpose of a matrix of f32. `instead` says how to choose
/// a smaller one.
pub fn check_matrix(gpu: &Gpu, plan: &Plan, rows: usize, columns: usize, instead: &str) -> anyhow::Result<usize> {
    let what = format!("a transpose of {rows} x {columns} f32");
    let len = rows.checked_mul(columns).with_context(|| format!("{what} is larger than any memory"))?;
    let each = bytes_of::<f32>(len);
    // Host memory: the input, the result, and the expected result.
    let need = Need { device: (plan.copies(2 * each) + 1) * each, host: 3 * each };
    need.check(gpu, &what, instead)?;
    Ok(len)
}
