//! `cargo xtask build-ptx`: compiles the kernels to PTX, and assembles them.

use std::path::PathBuf;

use anyhow::bail;
use cuda_builder::ptxas::assemble as assemble_modules;
use cuda_builder::{Arch, Built, CudaBuilder};

use crate::{progress, ptxas, setup, workspace};

/// Compiles the kernels for each architecture. Writes a file and prints a line for each entry.
pub fn run(archs: &[Arch], verify: bool) -> anyhow::Result<()> {
    setup::run(verify)?;
    let built = build(archs)?;
    let folder = workspace::target().join("ptx");
    built.write_entries(&folder)?;
    if verify {
        assemble(&built)?;
    } else {
        println!("{:<8} entry", "arch");
        for (arch, module) in &built.modules {
            module.entries().iter().for_each(|entry| println!("{:<8} {}", arch.to_string(), entry.name));
        }
    }
    let entries: usize = built.modules.iter().map(|(_, module)| module.entries().len()).sum();
    println!("{entries} entries in {}", folder.display());
    Ok(())
}

/// Compiles the kernels to PTX.
pub fn build(archs: &[Arch]) -> anyhow::Result<Built> {
    Ok(progress::with_progress("compiling the kernels to PTX", || builder(archs).build())?)
}

fn builder(archs: &[Arch]) -> CudaBuilder {
    let kernels = workspace::root().join("kernels");
    let builder = CudaBuilder::new(kernels).feature("ladder").archs(archs.iter().copied());
    builder.target_dir(workspace::target().join("cuda-builder"))
}

/// The folder of cached ptxas reports, which the tests of the PTX share.
fn report_cache() -> PathBuf {
    workspace::target().join("cuda-builder").join("verify")
}

/// Compiles and assembles the kernels silently, so that later steps find the results in the cache.
pub fn prepare(archs: &[Arch]) -> anyhow::Result<()> {
    let built = builder(archs).build()?;
    assemble_modules(&ptxas::find_or_install()?, &built.modules, &report_cache())?;
    Ok(())
}

/// Writes the kernels' PTX to a folder, and returns the folder.
pub fn in_folder(archs: &[Arch]) -> anyhow::Result<PathBuf> {
    setup::run(false)?;
    let folder = workspace::target().join("ptx");
    build(archs)?.write_entries(&folder)?;
    Ok(folder)
}

/// The default architectures.
pub const DEFAULT_ARCHS: [Arch; 3] = [Arch::SM_75, Arch::SM_80, NEWEST];

/// The newest default architecture, which the tests use unless told otherwise.
pub const NEWEST: Arch = Arch::SM_90;

/// The newest default architecture whose PTX runs on `arch`.
pub fn newest_up_to(arch: Arch) -> Arch {
    DEFAULT_ARCHS.into_iter().rfind(|&default| default <= arch).unwrap_or(arch)
}

/// Limits of an entry, in bytes.
struct Limits {
    /// Spill stores and spill loads together.
    spilled: u32,
    /// The same for a function that the entry calls.
    spilled_in_calls: u32,
    /// The stack frame.
    stack: u32,
}

impl Limits {
    /// ptxas spills a few words outside loops even if registers are left. Reductions of columns have at most 64
    /// registers per thread and many loads in flight. Reductions of segments have at most 80 registers, which makes
    /// them up to 40 % faster. In exact sums, the paths for rare data have arrays in the stack frame, and spill.
    fn of(entry: &str) -> Self {
        let (spilled, spilled_in_calls, stack) = match entry {
            _ if entry.starts_with("exact_") => (2_200, 4_000, 1_024),
            _ if entry.starts_with("columns_") => (512, 550, 512),
            _ if entry.starts_with("segments_") => (384, 550, 128),
            _ => (128, 550, 128),
        };
        Self { spilled, spilled_in_calls, stack }
    }
}

/// Assembles every module, prints the resources of each entry, and fails if one exceeds its [`Limits`].
fn assemble(built: &Built) -> anyhow::Result<()> {
    let ptxas = ptxas::find_or_install()?;
    let modules = progress::with_progress("assembling the kernels", || {
        assemble_modules(&ptxas, &built.modules, &report_cache())
    })?;
    let mut spilling = Vec::new();
    let mut summary = Vec::new();
    println!("{:<8} {:<28} {:>9} {:>12} {:>8}", "arch", "entry", "registers", "shared bytes", "spilled");
    for ((arch, module), usages) in built.modules.iter().zip(modules) {
        let spills = usages.iter().filter(|usage| usage.spilled > 0).count();
        let most_registers = usages.iter().map(|usage| usage.registers).max().unwrap_or(0);
        let most_shared = usages.iter().map(|usage| usage.shared).max().unwrap_or(0);
        summary.push((arch, module.entries().len(), most_registers, most_shared, spills));
        for entry in module.entries() {
            let Some(usage) = usages.iter().find(|usage| usage.entry == entry.name) else {
                bail!("ptxas reported nothing about `{}` for {arch}", entry.name);
            };
            println!(
                "{:<8} {:<28} {:>9} {:>12} {:>8}",
                arch.to_string(),
                usage.entry,
                usage.registers,
                usage.shared,
                usage.spilled
            );
            let limits = Limits::of(&usage.entry);
            if usage.spilled > limits.spilled
                || usage.spilled_in_calls > limits.spilled_in_calls
                || usage.stack > limits.stack
            {
                spilling.push(format!(
                    "`{}` for {arch}: {} bytes spilled, {} in a function that it calls, {} bytes of stack",
                    usage.entry, usage.spilled, usage.spilled_in_calls, usage.stack
                ));
            }
        }
    }
    if !spilling.is_empty() {
        bail!(
            "kernels spill more, or have larger stack frames, than `Limits` in xtask/src/build_ptx.rs allows:\n  {}",
            spilling.join("\n  ")
        );
    }
    println!(
        "\n{:<8} {:>7} {:>14} {:>17} {:>13}",
        "arch", "entries", "most registers", "most shared bytes", "with spills"
    );
    for (arch, entries, registers, shared, spills) in summary {
        println!("{:<8} {entries:>7} {registers:>14} {shared:>17} {spills:>13}", arch.to_string());
    }
    println!("every entry was assembled by {}", ptxas.display());
    Ok(())
}
