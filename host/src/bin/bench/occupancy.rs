//! `bench occupancy`: what a kernel needs, and how much of a multiprocessor it fills.

use std::io::{self, Write};

use anyhow::{Context, bail, ensure};
use comfy_table::{Cell, CellAlignment, Table, presets};
use cuda_builder::{Arch, ptxas};
use serde::Serialize;
use warpfold::ladder::BLOCKS;
use warpfold::occupancy::{Multiprocessor, Resources, bytes_in_flight};
use warpfold::ptx::KERNELS;
use warpfold::{Gpu, KernelId};

use crate::cli::{Format, OccupancyArguments, Output};
use crate::report::finish;

/// One kernel with one block.
#[derive(Debug, Serialize)]
struct Row {
    kernel: &'static str,
    threads_per_block: u32,
    registers_per_thread: u32,
    shared_bytes: u32,
    blocks_per_multiprocessor: u32,
    warps_per_multiprocessor: u32,
    occupancy: f64,
    limit: &'static str,
}

#[derive(Debug, Serialize)]
struct Report {
    device: String,
    multiprocessor: String,
    rows: Vec<Row>,
    /// By Little's law; for a device that is there, whose bandwidth is known.
    bytes_in_flight_needed_per_multiprocessor: Option<f64>,
    latency_ns: f64,
}

pub fn run(gpu: &Gpu, output: &Output, arguments: &OccupancyArguments) -> anyhow::Result<bool> {
    let info = gpu.info()?;
    let (device, multiprocessor) = match (arguments.arch, info.multiprocessor) {
        (Some(arch), _) => {
            let limits =
                Multiprocessor::of(arch.number()).with_context(|| format!("the limits of {arch} are not known"))?;
            (arch.to_string(), limits)
        }
        (None, Some(own)) => (info.name.clone(), own),
        (None, None) => bail!("there is no GPU here: name an architecture, such as --arch sm_90"),
    };
    let entries: Vec<&'static str> = KERNELS.entries().filter(|entry| is_instance(entry, &arguments.kernel)).collect();
    ensure!(
        !entries.is_empty(),
        "there is no kernel `{}`: `cargo xtask build-ptx` lists them; a type may be added, as in sequential_f32",
        arguments.kernel
    );
    let mut rows = Vec::new();
    for entry in entries {
        let ptx =
            KERNELS.ptx(entry, multiprocessor.compute).with_context(|| format!("no PTX of `{entry}` for {device}"))?;
        let blocks = match fixed_block(ptx) {
            Some(block) => vec![block],
            None => BLOCKS.map(|block| block as u32).to_vec(),
        };
        for threads_per_block in blocks {
            let resources = match arguments.arch {
                Some(arch) => assembled(entry, ptx, arch, threads_per_block)?,
                None => {
                    let id = KernelId { library: KERNELS.name(), entry };
                    gpu.kernel_occupancy(id, threads_per_block)?.context("a CUDA device knows its kernels")?.resources
                }
            };
            let occupancy = multiprocessor.occupancy(resources);
            rows.push(Row {
                kernel: entry,
                threads_per_block,
                registers_per_thread: resources.registers_per_thread,
                shared_bytes: resources.shared_bytes,
                blocks_per_multiprocessor: occupancy.blocks,
                warps_per_multiprocessor: occupancy.warps,
                occupancy: occupancy.share,
                limit: occupancy.limit.name(),
            });
        }
    }
    rows.sort_by_key(|row| (row.kernel.rsplit_once('_').map(|(name, _)| name), row.threads_per_block));
    let needed = info
        .theoretical_bandwidth()
        .filter(|_| arguments.arch.is_none())
        .map(|bandwidth| bytes_in_flight(bandwidth, arguments.latency_ns) / f64::from(info.multiprocessors));
    let report = Report {
        device,
        multiprocessor: format!(
            "{} warps, {} blocks, {} registers, {} KiB of shared memory",
            multiprocessor.warps(),
            multiprocessor.blocks,
            multiprocessor.registers,
            multiprocessor.shared_bytes / 1024
        ),
        rows,
        bytes_in_flight_needed_per_multiprocessor: needed,
        latency_ns: arguments.latency_ns,
    };
    finish(report.write(&mut io::stdout().lock(), output.format))?;
    Ok(true)
}

/// Whether an entry is an instance of that kernel: its name, or its name with a type and a block.
fn is_instance(entry: &str, kernel: &str) -> bool {
    const TYPES: [&str; 4] = ["f32", "f64", "i32", "i64"];
    entry.strip_prefix(kernel).is_some_and(|rest| {
        rest.split('_').skip(1).all(|part| TYPES.contains(&part) || part.bytes().all(|byte| byte.is_ascii_digit()))
            && (rest.is_empty() || rest.starts_with('_'))
    })
}

/// The block that a kernel's type fixes.
fn fixed_block(ptx: &str) -> Option<u32> {
    let sides = ptx.lines().find_map(|line| line.strip_prefix(".reqntid "))?;
    sides.split(", ").map(str::parse::<u32>).product::<Result<u32, _>>().ok()
}

/// What the assembler says that a kernel needs.
fn assembled(entry: &str, ptx: &str, arch: Arch, threads_per_block: u32) -> anyhow::Result<Resources> {
    let ptxas = ptxas::find().context("registers are known only to ptxas: `cargo xtask setup --ptxas` brings it")?;
    let scratch = tempfile::NamedTempFile::new().context("cannot create a temporary file")?;
    let usages = ptxas::assemble(&ptxas, ptx, arch, scratch.path())?;
    let usage = usages.iter().find(|usage| usage.entry == entry).context("ptxas said nothing of the kernel")?;
    Ok(Resources { threads_per_block, registers_per_thread: usage.registers, shared_bytes: usage.shared })
}

impl Report {
    fn write(&self, out: &mut impl Write, format: Format) -> io::Result<()> {
        match format {
            Format::Json => {
                serde_json::to_writer_pretty(&mut *out, self)?;
                writeln!(out)
            }
            Format::Csv => {
                writeln!(
                    out,
                    "kernel,threads_per_block,registers_per_thread,shared_bytes,blocks_per_multiprocessor,\
                     warps_per_multiprocessor,occupancy,limit"
                )?;
                self.rows.iter().try_for_each(|row| {
                    writeln!(
                        out,
                        "{},{},{},{},{},{},{:.4},{}",
                        row.kernel,
                        row.threads_per_block,
                        row.registers_per_thread,
                        row.shared_bytes,
                        row.blocks_per_multiprocessor,
                        row.warps_per_multiprocessor,
                        row.occupancy,
                        row.limit
                    )
                })
            }
            Format::Table | Format::Markdown => self.write_table(out, format),
        }
    }

    fn write_table(&self, out: &mut impl Write, format: Format) -> io::Result<()> {
        writeln!(out, "{}: a multiprocessor has {}", self.device, self.multiprocessor)?;
        let mut table = Table::new();
        table.load_preset(if format == Format::Markdown {
            presets::ASCII_MARKDOWN
        } else {
            presets::UTF8_BORDERS_ONLY
        });
        table.set_header([
            "kernel",
            "block",
            "registers",
            "shared bytes",
            "blocks",
            "warps",
            "occupancy",
            "limited by",
        ]);
        for row in &self.rows {
            let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
            table.add_row([
                Cell::new(row.kernel),
                right(row.threads_per_block.to_string()),
                right(row.registers_per_thread.to_string()),
                right(row.shared_bytes.to_string()),
                right(row.blocks_per_multiprocessor.to_string()),
                right(row.warps_per_multiprocessor.to_string()),
                right(format!("{:.0} %", 100.0 * row.occupancy)),
                Cell::new(row.limit),
            ]);
        }
        writeln!(out, "{table}")?;
        if let Some(needed) = self.bytes_in_flight_needed_per_multiprocessor {
            writeln!(
                out,
                "To fill the memory's bandwidth at a latency of {:.0} ns, each multiprocessor must have {needed:.0} bytes in\n\
                 flight (Little's law): its resident threads times what each has loaded before it waits.",
                self.latency_ns
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_are_told_from_longer_names() {
        assert!(is_instance("sequential_f32_256", "sequential") && is_instance("sequential_f32_256", "sequential_f32"));
        assert!(is_instance("predicated", "predicated"));
        assert!(!is_instance("neighbored_less_f32", "neighbored") && !is_instance("tiled_padded_f32_8", "tiled"));
        assert!(!is_instance("unroll8_f32", "unroll"));
    }
}
