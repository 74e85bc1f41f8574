//! `bench occupancy`: a kernel's resources, and how much of a multiprocessor it fills.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::Args;
use comfy_table::Cell;
use cuda_builder::{Arch, Module, ptxas};
use kernels::ladder::transpose::vectorized;
use serde::Serialize;
use warpfold::KERNELS;
use warpfold::ladder::{BLOCKS, ControlFlowRung, ReduceRung, TransposeRung};
use warpfold::occupancy::{Multiprocessor, Resources, bytes_in_flight};
use warpfold::{Gpu, KernelId};

use crate::cells::{or_dash, right};
use crate::effect::{Mode, SHOWN};
use crate::loads;
use crate::options::{Format, Output};
use crate::outcome::{Outcome, finish};
use crate::table::{Columns, Layout};

#[derive(Debug, Args)]
pub struct OccupancyArguments {
    /// The kernel's name in the ladders: `unroll_last_warp`, or with a type `unroll_last_warp_f32`
    pub kernel: String,
    /// The architecture, if not that of the device: sm_75, sm_80, sm_86, sm_89, sm_90, sm_100 or sm_120
    #[arg(long)]
    pub arch: Option<Arch>,
    /// The folder of the kernels' PTX, as `cargo xtask build-ptx` writes it, instead of the PTX built into this program
    #[arg(long, value_name = "FOLDER")]
    pub ptx: Option<PathBuf>,
    /// The latency of a load from memory in nanoseconds, about 500 to 800 on current GPUs [default: 600]
    #[arg(long, value_parser = latency)]
    pub latency_ns: Option<f64>,
}

impl OccupancyArguments {
    /// The options that have an effect.
    pub fn modes(&self) -> Vec<Mode> {
        const OWN: &[&str] = &["arch", "ptx", "latency-ns", "device"];
        let mode = match self.arch {
            None => Mode::without("arch", &["ptx"]),
            Some(_) => Mode::because(
                "the bytes that must be in flight depend on a device's bandwidth, and --arch names no device",
                &["latency-ns"],
            ),
        };
        vec![Mode::of_command("`bench occupancy` runs no kernel", vec![OWN, SHOWN]), mode]
    }
}

/// A latency in nanoseconds.
fn latency(text: &str) -> Result<f64, String> {
    let latency: f64 = text.parse().map_err(|_| "expected a number of nanoseconds")?;
    if latency > 0.0 && latency <= 1e9 {
        Ok(latency)
    } else {
        Err("expected more than 0 and at most 1e9 nanoseconds".to_owned())
    }
}

/// A kernel at one block size.
#[derive(Debug, Serialize)]
struct Row {
    /// The ladder that the kernel is in, because two ladders have a `vectorized`.
    family: &'static str,
    kernel: String,
    threads_per_block: u32,
    registers_per_thread: u32,
    shared_bytes: u32,
    blocks_per_multiprocessor: u32,
    warps_per_multiprocessor: u32,
    occupancy: f64,
    limit: &'static str,
    /// The maximum number of bytes that a thread has in flight, by the kernel's PTX.
    bytes_in_flight_per_thread: u32,
    /// The bytes in flight of all resident threads of a multiprocessor.
    bytes_in_flight_per_multiprocessor: u32,
    /// The bytes in flight, as a share of those that saturate the bandwidth, if these are known.
    share_of_bytes_in_flight_needed: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Report {
    device: String,
    multiprocessor: String,
    rows: Vec<Row>,
    /// The bytes in flight that saturate the bandwidth, by Little's law, if the device's bandwidth is known.
    bytes_in_flight_needed_per_multiprocessor: Option<f64>,
    latency_ns: f64,
}

pub fn run(gpu: &Gpu, output: &Output, arguments: &OccupancyArguments) -> anyhow::Result<Outcome> {
    let info = gpu.info()?;
    let latency_ns = arguments.latency_ns.unwrap_or(600.0);
    let (device, multiprocessor) = match (arguments.arch, info.multiprocessor) {
        (Some(arch), _) => {
            let limits =
                Multiprocessor::of(arch.number()).with_context(|| format!("the limits of {arch} are not known"))?;
            (arch.to_string(), limits)
        }
        (None, Some(own)) => (info.name.clone(), own),
        (None, None) => bail!("there is no GPU: name an architecture, such as --arch sm_90"),
    };
    let kernels = Kernels::of(arguments.ptx.as_deref(), multiprocessor.compute)?;
    let rung = ReduceRung::from_name(&arguments.kernel).ok();
    let kernel: &str = rung.map_or(&arguments.kernel, |rung| kernel_of_sum(rung));
    let entries: Vec<String> = kernels.entries.iter().filter(|at| is_instance(at, kernel)).cloned().collect();
    ensure!(
        !entries.is_empty(),
        "there is no kernel `{}`: `cargo xtask build-ptx` lists all kernels; a type may follow, as in sequential_f32",
        arguments.kernel
    );
    let needed = info
        .theoretical_bandwidth()
        .filter(|&bandwidth| arguments.arch.is_none() && bandwidth > 0.0)
        .map(|bandwidth| bytes_in_flight(bandwidth, latency_ns) / f64::from(info.multiprocessors));
    let mut rows = Vec::new();
    for entry in entries {
        let ptx = &kernels.ptx(&entry)?;
        let per_thread = loads::bytes_in_flight(ptx);
        let blocks = match fixed_block(ptx) {
            Some(block) => vec![block],
            None => BLOCKS.map(|block| block as u32).to_vec(),
        };
        for threads_per_block in blocks {
            let resources = match arguments.arch {
                Some(arch) => assembled(&entry, ptx, arch, threads_per_block)?,
                None => {
                    let entry = KERNELS.entries()?.find(|own| *own == entry).context("the kernel is a built-in one")?;
                    let id = KernelId { library: KERNELS.name(), entry };
                    gpu.kernel_occupancy(id, threads_per_block)?.context("a CUDA device knows its kernels")?.resources
                }
            };
            rows.push(Row::new(&entry, resources, &multiprocessor, per_thread, needed));
        }
    }
    rows.sort_by(|a, b| a.order().cmp(&b.order()));
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
        latency_ns,
    };
    Ok(finish(|out| report.write(out, output), true, output, Vec::new))
}

impl Row {
    /// Sort key: ladder, kernel and type, then block.
    fn order(&self) -> (&str, Option<&str>, u32) {
        (self.family, self.kernel.rsplit_once('_').map(|(name, _)| name), self.threads_per_block)
    }

    /// `needed` is the number of bytes that a multiprocessor must have in flight to saturate the bandwidth.
    fn new(
        kernel: &str,
        resources: Resources,
        multiprocessor: &Multiprocessor,
        bytes_in_flight_per_thread: u32,
        needed: Option<f64>,
    ) -> Self {
        let occupancy = multiprocessor.occupancy(resources);
        let threads = occupancy.blocks * resources.threads_per_block;
        let in_flight = bytes_in_flight_per_thread * threads;
        Self {
            family: family(kernel),
            kernel: kernel.to_owned(),
            threads_per_block: resources.threads_per_block,
            registers_per_thread: resources.registers_per_thread,
            shared_bytes: resources.shared_bytes,
            blocks_per_multiprocessor: occupancy.blocks,
            warps_per_multiprocessor: occupancy.warps,
            occupancy: occupancy.ratio,
            limit: occupancy.limit.name(),
            bytes_in_flight_per_thread,
            bytes_in_flight_per_multiprocessor: in_flight,
            share_of_bytes_in_flight_needed: needed.map(|needed| f64::from(in_flight) / needed),
        }
    }
}

/// The kernels' PTX for one device.
struct Kernels {
    /// The folder of the PTX, if it is not built in.
    folder: Option<PathBuf>,
    compute: u32,
    entries: Vec<String>,
}

impl Kernels {
    /// The kernels for compute capability `compute` (90 for `sm_90`): from the folder `given`, of the newest
    /// architecture that runs on such a device; or from the built-in PTX.
    fn of(given: Option<&Path>, compute: u32) -> anyhow::Result<Self> {
        let Some(root) = given else {
            let entries: Vec<String> = KERNELS.entries()?.map(str::to_owned).collect();
            ensure!(
                !entries.is_empty(),
                "this program was built without PTX (WARPFOLD_ARCHS=none): name a folder of PTX with --ptx"
            );
            return Ok(Self { folder: None, compute, entries });
        };
        let has = |arch: &Arch| arch.number() <= compute && root.join(arch.to_string()).is_dir();
        let arch = Arch::ALL.into_iter().rev().find(has);
        let arch = arch.with_context(|| format!("`{}` has no PTX for sm_{compute} or older", root.display()))?;
        let folder = root.join(arch.to_string());
        let files = fs::read_dir(&folder).with_context(|| format!("cannot list `{}`", folder.display()))?;
        let entry = |file: fs::DirEntry| Some(file.file_name().to_str()?.strip_suffix(".ptx")?.to_owned());
        Ok(Self { entries: files.flatten().filter_map(entry).collect(), folder: Some(folder), compute })
    }

    fn ptx(&self, entry: &str) -> anyhow::Result<String> {
        match &self.folder {
            None => Ok(KERNELS.ptx(entry, self.compute)?),
            Some(folder) => {
                let file = folder.join(format!("{entry}.ptx"));
                fs::read_to_string(&file).with_context(|| format!("cannot read `{}`", file.display()))
            }
        }
    }
}

/// Whether an entry is an instance of a kernel: its name is the kernel's, or the kernel's with a type and a block size.
fn is_instance(entry: &str, kernel: &str) -> bool {
    const TYPES: [&str; 4] = ["f32", "f64", "i32", "i64"];
    entry.strip_prefix(kernel).is_some_and(|rest| {
        rest.split('_').skip(1).all(|part| TYPES.contains(&part) || part.bytes().all(|byte| byte.is_ascii_digit()))
            && (rest.is_empty() || rest.starts_with('_'))
    })
}

/// The common prefix of the entries of a rung, which for the library's kernel includes the operator.
fn kernel_of_sum(rung: ReduceRung) -> &'static str {
    match rung {
        ReduceRung::ExactLongRows => "exact_long_rows_Sum",
        rung => rung.name(),
    }
}

/// The ladder of an entry, as `bench ladder` names it.
fn family(entry: &str) -> &'static str {
    // The sum `vectorized` has the block size in the names of its entries; the transpose has a fixed block size.
    if entry == vectorized::handle::<f32>().id().entry {
        return "Transpose";
    }
    // `tiled_8` is an instance of `tiled`.
    let kernel_of = |rung: TransposeRung| rung.name().trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
    if ReduceRung::GLOBAL.iter().any(|rung| is_instance(entry, rung.name())) {
        "Sum in global memory"
    } else if ReduceRung::SHARED.iter().any(|&rung| is_instance(entry, kernel_of_sum(rung))) {
        "Sum in shared memory"
    } else if TransposeRung::ALL.iter().any(|&rung| is_instance(entry, kernel_of(rung))) {
        "Transpose"
    } else if entry == "warps_of_cube" || ControlFlowRung::ALL.iter().any(|rung| rung.name() == entry) {
        "Control flow"
    } else {
        "Library"
    }
}

/// The block size, if the kernel has a fixed one.
fn fixed_block(ptx: &str) -> Option<u32> {
    let sides = ptx.lines().find_map(|line| line.strip_prefix(".reqntid "))?;
    sides.split(", ").map(str::parse::<u32>).product::<Result<u32, _>>().ok()
}

/// The kernel's resources, as `ptxas` reports them.
fn assembled(entry: &str, ptx: &str, arch: Arch, threads_per_block: u32) -> anyhow::Result<Resources> {
    let ptxas =
        ptxas::find().context("only ptxas knows the number of registers: `cargo xtask setup --ptxas` installs it")?;
    let scratch = tempfile::tempdir().context("cannot create a temporary folder")?;
    let usages = ptxas::assemble(&ptxas, &[(arch, Module::parse(ptx))], scratch.path())?;
    let usage = usages
        .iter()
        .flatten()
        .find(|usage| usage.entry == entry)
        .context("ptxas did not report the kernel's resources")?;
    Ok(Resources { threads_per_block, registers_per_thread: usage.registers, shared_bytes: usage.shared })
}

impl Report {
    fn write(&self, out: &mut impl Write, output: &Output) -> io::Result<()> {
        match output.format {
            Format::Json => {
                serde_json::to_writer_pretty(&mut *out, self)?;
                writeln!(out)
            }
            Format::Csv => {
                writeln!(
                    out,
                    "family,kernel,threads_per_block,registers_per_thread,shared_bytes,blocks_per_multiprocessor,\
                     warps_per_multiprocessor,occupancy,limit,bytes_in_flight_per_thread,\
                     bytes_in_flight_per_multiprocessor,share_of_bytes_in_flight_needed"
                )?;
                self.rows.iter().try_for_each(|row| {
                    writeln!(
                        out,
                        "{},{},{},{},{},{},{},{:.4},{},{},{},{}",
                        row.family,
                        row.kernel,
                        row.threads_per_block,
                        row.registers_per_thread,
                        row.shared_bytes,
                        row.blocks_per_multiprocessor,
                        row.warps_per_multiprocessor,
                        row.occupancy,
                        row.limit,
                        row.bytes_in_flight_per_thread,
                        row.bytes_in_flight_per_multiprocessor,
                        row.share_of_bytes_in_flight_needed.map(|share| format!("{share:.4}")).unwrap_or_default()
                    )
                })
            }
            Format::Table | Format::Markdown => self.write_table(out, &Layout::of(output)),
        }
    }

    fn write_table(&self, out: &mut impl Write, layout: &Layout) -> io::Result<()> {
        writeln!(
            out,
            "{}",
            layout.paragraph(&format!("{}: a multiprocessor has {}", self.device, self.multiprocessor))
        )?;
        let needed = self.bytes_in_flight_needed_per_multiprocessor;
        let rows = || self.rows.iter();
        let share =
            |row: &Row| or_dash(row.share_of_bytes_in_flight_needed.map(|share| format!("{:.0} %", 100.0 * share)));
        let mut columns = Columns::default();
        columns.add(4, "family", rows().map(|row| Cell::new(row.family)));
        columns.add(0, "kernel", rows().map(|row| Cell::new(&row.kernel)));
        columns.add(0, "block", rows().map(|row| right(row.threads_per_block)));
        columns.add(1, "registers", rows().map(|row| right(row.registers_per_thread)));
        columns.add(3, "shared bytes", rows().map(|row| right(row.shared_bytes)));
        columns.add(3, "blocks", rows().map(|row| right(row.blocks_per_multiprocessor)));
        columns.add(3, "warps", rows().map(|row| right(row.warps_per_multiprocessor)));
        columns.add(0, "occupancy", rows().map(|row| right(format!("{:.0} %", 100.0 * row.occupancy))));
        columns.add(1, "limited by", rows().map(|row| Cell::new(row.limit)));
        let in_flight = |bytes: u32| right(format!("{bytes} B"));
        columns.add(2, "in flight, thread", rows().map(|row| in_flight(row.bytes_in_flight_per_thread)));
        columns.add(1, "in flight, all", rows().map(|row| in_flight(row.bytes_in_flight_per_multiprocessor)));
        if needed.is_some() {
            columns.add(1, "of needed", rows().map(share));
        }
        let table = columns.table(layout);
        writeln!(out, "{table}")?;
        let explained = "In flight, thread: the maximum number of bytes that a thread has in flight, by the PTX. In \
                         flight, all: the bytes of all resident threads of a multiprocessor. There may be fewer, \
                         because ptxas may move loads apart to save registers.";
        writeln!(out, "{}", layout.paragraph(explained))?;
        if let Some(needed) = needed {
            let explained = format!(
                "To saturate the memory's bandwidth at a latency of {:.0} ns, each multiprocessor must have \
                 {needed:.0} bytes in flight (Little's law).",
                self.latency_ns
            );
            writeln!(out, "{}", layout.paragraph(&explained))?;
        }
        layout.write_left_out(out)
    }
}

#[cfg(test)]
mod tests {
    use cuda_builder::CudaBuilder;

    use super::*;

    #[test]
    fn bytes_in_flight_are_those_of_the_resident_threads() {
        let hopper = Multiprocessor::of(90).unwrap();
        let resources = Resources { threads_per_block: 256, registers_per_thread: 64, shared_bytes: 0 };
        let row = Row::new("k", resources, &hopper, 16, Some(32_768.0));
        // 64 registers allow 1024 of the 2048 threads.
        assert_eq!((row.blocks_per_multiprocessor, row.bytes_in_flight_per_multiprocessor), (4, 16_384));
        assert_eq!(row.share_of_bytes_in_flight_needed, Some(0.5));
        assert_eq!(Row::new("k", resources, &hopper, 16, None).share_of_bytes_in_flight_needed, None);
    }

    #[test]
    fn reductions_have_the_bytes_in_flight_that_their_docs_state() {
        let kernels = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels");
        let built = CudaBuilder::new(kernels).feature("ladder").arch(Arch::SM_90).build().unwrap();
        let (_, module) = &built.modules[0];
        let of = |name| {
            let entry = module.entries().iter().find(|entry| entry.name == name).unwrap();
            loads::bytes_in_flight(&module.of_entry(entry))
        };
        for (entry, bytes) in [
            ("sequential_f32_256", 4),
            ("first_add_on_load_f32_256", 8),
            ("first_add_on_load_f64_256", 16),
            ("unroll4_f32", 16),
            ("unroll8_f32", 32),
            ("vectorized_f32_256", 64),
        ] {
            assert_eq!(of(entry), bytes, "{entry}");
        }
    }

    #[test]
    fn entries_are_assigned_to_ladders() {
        for (entry, expected) in [
            ("vectorized_f32", "Transpose"),
            ("tiled_f32_8", "Transpose"),
            ("tiled_padded_f32_32", "Transpose"),
            ("vectorized_f32_256", "Sum in shared memory"),
            ("single_launch_f32", "Sum in shared memory"),
            ("exact_long_rows_Sum_f32", "Sum in shared memory"),
            ("exact_long_rows_SumInF64_f32", "Library"),
            ("unroll8_f32", "Sum in global memory"),
            ("sync_count", "Control flow"),
        ] {
            assert_eq!(family(entry), expected, "{entry}");
        }
    }

    #[test]
    fn instances_are_distinguished_from_longer_names() {
        assert!(is_instance("sequential_f32_256", "sequential") && is_instance("sequential_f32_256", "sequential_f32"));
        assert!(is_instance("predicated", "predicated"));
        assert!(!is_instance("neighbored_less_f32", "neighbored") && !is_instance("tiled_padded_f32_8", "tiled"));
        assert!(!is_instance("unroll8_f32", "unroll"));
    }
}
