//! `cargo xtask build-ptx`.

use std::path::PathBuf;

use anyhow::bail;
use cuda_builder::ptxas::assemble as assemble_modules;
use cuda_builder::{Arch, Built, CudaBuilder};

use crate::{progress, ptxas, setup, workspace};

/// Builds the kernels for each architecture, writes a file for each entry, and prints a line for each entry.
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

/// The kernels' PTX.
pub fn build(archs: &[Arch]) -> anyhow::Result<Built> {
    Ok(progress::while_saying("compiling the kernels to PTX", || builder(archs).build())?)
}

fn builder(archs: &[Arch]) -> CudaBuilder {
    let kernels = workspace::root().join("kernels");
    let builder = CudaBuilder::new(kernels).feature("ladder").archs(archs.iter().copied());
    builder.target_dir(workspace::target().join("cuda-builder"))
}

/// The folder of cached ptxas reports. The tests of the PTX use it, too.
fn answers() -> PathBuf {
    workspace::target().join("cuda-builder").join("verify")
}

/// Builds and assembles the kernels silently, so that later steps find them done.
pub fn prepare(archs: &[Arch]) -> anyhow::Result<()> {
    let built = builder(archs).build()?;
    assemble_modules(&ptxas::find_or_install()?, &built.modules, &answers())?;
    Ok(())
}

/// The kernels' PTX in a folder: returns the folder.
pub fn in_folder(archs: &[Arch]) -> anyhow::Result<PathBuf> {
    setup::run(false)?;
    let folder = workspace::target().join("ptx");
    build(archs)?.write_entries(&folder)?;
    Ok(folder)
}

/// The default architectures.
pub const USUAL: [Arch; 3] = [Arch::SM_75, Arch::SM_80, NEWEST];

/// The newest of them, the default of the tests.
pub const NEWEST: Arch = Arch::SM_90;

/// The newest default architecture whose PTX runs on `arch`.
pub fn newest_up_to(arch: Arch) -> Arch {
    USUAL.into_iter().rfind(|&usual| usual <= arch).unwrap_or(arch)
}

/// Limits of an entry, in bytes: what it may spill (stores and loads together), what a function that it calls may
/// spill, and the size of its stack frame.
struct Tolerated {
    spilled: u32,
    spilled_in_calls: u32,
    stack: u32,
}

impl Tolerated {
    /// ptxas spills a few words outside of loops, even if registers are left. Reductions of columns have at most 64
    /// registers a thread and many loads in flight. Reductions of segments have at most 80, which is faster by up to
    /// 40 %. Exact sums have paths for rare data with arrays in the stack frame, and these paths spill.
    fn of(entry: &str) -> Self {
        let (spilled, spilled_in_calls, stack) = match entry {
            _ if entry.starts_with("exact_") => (1_700, 4_000, 1_024),
            _ if entry.starts_with("columns_") => (512, 550, 512),
            _ if entry.starts_with("segments_") => (384, 550, 128),
            _ => (128, 550, 128),
        };
        Self { spilled, spilled_in_calls, stack }
    }
}

/// Assembles every module, and fails on a spill of more than a few words.
fn assemble(built: &Built) -> anyhow::Result<()> {
    let ptxas = ptxas::find_or_install()?;
    let modules =
        progress::while_saying("assembling the kernels", || assemble_modules(&ptxas, &built.modules, &answers()))?;
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
            let tolerated = Tolerated::of(&usage.entry);
            if usage.spilled > tolerated.spilled
                || usage.spilled_in_calls > tolerated.spilled_in_calls
                || usage.stack > tolerated.stack
            {
                spilling.push(format!(
                    "`{}` for {arch}: {} bytes spilled, {} in a function that it calls, {} bytes of stack",
                    usage.entry, usage.spilled, usage.spilled_in_calls, usage.stack
                ));
            }
        }
    }
    if !spilling.is_empty() {
        bail!("kernels keep registers in memory:\n  {}", spilling.join("\n  "));
    }
    println!(
        "\n{:<8} {:>7} {:>14} {:>17} {:>13}",
        "arch", "entries", "most registers", "most shared bytes", "with a spill"
    );
    for (arch, entries, registers, shared, spills) in summary {
        println!("{:<8} {entries:>7} {registers:>14} {shared:>17} {spills:>13}", arch.to_string());
    }
    println!("all assembled by {}", ptxas.display());
    Ok(())
}
