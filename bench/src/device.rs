//! `bench device`, and the description of the device in other reports.

use std::io::{self, Write};
use std::time::Instant;

use serde::Serialize;
use warpfold::occupancy::Multiprocessor;
use warpfold::{DeviceInfo, Error, Gpu, Schedule};

use crate::cells::csv_field;
use crate::options::{Format, Opened, Output};
use crate::outcome::{Outcome, finish};

/// The device, as reports describe it.
#[derive(Clone, Debug, Serialize)]
pub struct Device {
    pub name: String,
    pub backend: &'static str,
    pub compute_capability: Option<String>,
    pub multiprocessors: u32,
    pub memory_bytes: usize,
    pub l2_bytes: Option<usize>,
    pub clock_khz: Option<u32>,
    pub memory_clock_khz: Option<u32>,
    pub memory_bus_bits: Option<u32>,
    pub peak_gigabytes_per_second: Option<f64>,
    pub driver: Option<String>,
    /// Whether each launch was checked, as with --check; `None` on a CUDA device.
    pub checks: Option<bool>,
    /// The seed of --schedule; `None` without it.
    pub schedule_seed: Option<u64>,
    #[serde(skip)]
    pub multiprocessor: Option<Multiprocessor>,
}

impl Device {
    pub fn of(gpu: &Opened) -> Result<Self, Error> {
        let info = gpu.info()?;
        let schedule_seed = gpu.executor.and_then(|options| match options.schedule {
            Schedule::Seed(seed) => Some(seed),
            // In the order of their indices.
            _ => None,
        });
        Ok(Self {
            peak_gigabytes_per_second: peak(&info),
            multiprocessor: info.multiprocessor,
            name: info.name,
            backend: if gpu.is_cuda() { "cuda" } else { "simt" },
            compute_capability: info.compute_capability.map(|(major, minor)| format!("{major}.{minor}")),
            multiprocessors: info.multiprocessors,
            memory_bytes: info.memory_bytes,
            l2_bytes: info.l2_bytes,
            clock_khz: info.clock_khz,
            memory_clock_khz: info.memory_clock_khz,
            memory_bus_bits: info.memory_bus_bits,
            driver: info.driver.map(|driver| driver.to_string()),
            checks: gpu.executor.map(|options| options.checks),
            schedule_seed,
        })
    }

    /// A description of the device in one line; for the executor also a note about its times.
    pub fn headline(&self) -> String {
        match (&self.compute_capability, self.peak_gigabytes_per_second) {
            (Some(capability), Some(peak)) => format!(
                "{} (compute capability {capability}, {} multiprocessors, {peak:.0} GB/s theoretical peak, CUDA {})",
                self.name,
                self.multiprocessors,
                self.driver.as_deref().unwrap_or("unknown")
            ),
            _ => format!(
                "{}\nThe results are those of a GPU, bit for bit. The times are not: they are those of a CPU.",
                self.name
            ),
        }
    }
}

/// The theoretical bandwidth in GB/s. Some virtual devices report a clock of 0, which means unknown.
fn peak(info: &DeviceInfo) -> Option<f64> {
    info.theoretical_bandwidth().filter(|&bandwidth| bandwidth > 0.0).map(|bandwidth| bandwidth / 1e9)
}

/// The device, and the times of its first two sums.
#[derive(Serialize)]
struct FirstResponses {
    #[serde(flatten)]
    device: Device,
    /// Upload, sum and download with the first kernel of the process, which the driver compiles or takes from its
    /// cache.
    first_sum_ms: f64,
    /// The same work a second time.
    second_sum_ms: f64,
}

pub fn run(gpu: &Opened, output: &Output) -> anyhow::Result<Outcome> {
    // Measured before any other use of the device.
    let (first_sum_ms, second_sum_ms) = (time_of_sum(gpu)?, time_of_sum(gpu)?);
    let responses = FirstResponses { device: Device::of(gpu)?, first_sum_ms, second_sum_ms };
    Ok(finish(|out| write(out, &responses, output.format), true, output, Vec::new))
}

fn time_of_sum(gpu: &Gpu) -> Result<f64, Error> {
    let start = Instant::now();
    gpu.sum(&gpu.upload(&[1.0_f32; 1000])?)?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

fn write(out: &mut impl Write, device: &FirstResponses, format: Format) -> io::Result<()> {
    let lines = lines(device);
    match format {
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, &device)?;
            writeln!(out)
        }
        Format::Csv => {
            writeln!(out, "property,value")?;
            lines.iter().try_for_each(|(property, value)| writeln!(out, "{property},{}", csv_field(value)))
        }
        Format::Markdown => {
            writeln!(out, "| property | value |\n|---|---|")?;
            lines.iter().try_for_each(|(property, value)| writeln!(out, "| {property} | {value} |"))
        }
        Format::Table => {
            let width = lines.iter().map(|(property, _)| property.len()).max().unwrap_or(0);
            lines.iter().try_for_each(|(property, value)| writeln!(out, "{property:width$}  {value}"))
        }
    }
}

fn lines(FirstResponses { device, first_sum_ms, second_sum_ms }: &FirstResponses) -> Vec<(&'static str, String)> {
    let cuda = device.backend == "cuda";
    let mut lines = vec![
        ("name", device.name.clone()),
        (if cuda { "multiprocessors" } else { "CPU cores" }, device.multiprocessors.to_string()),
        ("memory", format!("{:.1} GiB", device.memory_bytes as f64 / f64::from(1 << 30))),
    ];
    let mut add = |property, value: Option<String>| lines.extend(value.map(|value| (property, value)));
    add("compute capability", device.compute_capability.clone());
    add("L2 cache", device.l2_bytes.map(|bytes| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))));
    if let Some(each) = &device.multiprocessor {
        add(
            "per multiprocessor",
            Some(format!("{} threads, {} warps, {} blocks", each.threads, each.warps(), each.blocks)),
        );
        add("", Some(format!("{} registers, {} KiB of shared memory", each.registers, each.shared_bytes / 1024)));
    }
    add("clock", device.clock_khz.map(|khz| format!("{} MHz", khz / 1000)));
    add("memory clock", device.memory_clock_khz.map(|khz| format!("{} MHz", khz / 1000)));
    add("memory bus", device.memory_bus_bits.map(|bits| format!("{bits} bit")));
    add("theoretical peak", device.peak_gigabytes_per_second.map(|peak| format!("{peak:.0} GB/s")));
    add("CUDA driver", device.driver.clone());
    add(
        "first sum",
        Some(format!("{first_sum_ms:.2} ms, including the kernel's compilation; the second: {second_sum_ms:.3} ms")),
    );
    lines
}

/// A device like an H200, for tests of reports that are measured on a GPU.
#[cfg(test)]
pub fn h200() -> Device {
    Device {
        name: "NVIDIA H200".to_owned(),
        backend: "cuda",
        compute_capability: Some("9.0".to_owned()),
        multiprocessors: 132,
        memory_bytes: 1 << 37,
        l2_bytes: None,
        clock_khz: None,
        memory_clock_khz: None,
        memory_bus_bits: None,
        peak_gigabytes_per_second: Some(4814.0),
        driver: Some("13.0".to_owned()),
        checks: None,
        schedule_seed: None,
        multiprocessor: None,
    }
}
