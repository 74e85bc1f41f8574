//! `bench device`.

use std::io::{self, Write};

use warpfold::Gpu;

use crate::cli::{Format, Output};
use crate::report::{Device, finish};

pub fn run(gpu: &Gpu, output: &Output) -> anyhow::Result<bool> {
    let device = Device::of(gpu)?;
    finish(write(&mut io::stdout().lock(), &device, output.format))?;
    Ok(true)
}

fn write(out: &mut impl Write, device: &Device, format: Format) -> io::Result<()> {
    let lines = lines(device);
    match format {
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, device)?;
            writeln!(out)
        }
        Format::Csv => {
            writeln!(out, "property,value")?;
            lines.iter().try_for_each(|(property, value)| writeln!(out, "{property},\"{value}\""))
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

fn lines(device: &Device) -> Vec<(&'static str, String)> {
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
    lines
}
