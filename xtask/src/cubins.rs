//! The cubins of the prebuilt kernels: machine code of the entries that a driver compiles for longest.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use anyhow::Context;
use cuda_builder::ptx::Entry;
use cuda_builder::{Arch, Built, Module};

use crate::{ptxas, workspace};

/// The beginnings of the names of entries that get cubins: exact sums of whole inputs, and dot products. One of these
/// is likely to be a program's first call, and the driver compiles it for a second. `docs/notes/first-call.md` has the
/// times, and the bytes of all cubins.
const OF: [&str; 2] = ["exact_long_rows_", "exact_pairs_"];

/// The PyPI package of the `ptxas` that assembles, and its version: always the same, so that cubins have the same bytes
/// on every machine.
///
/// Drivers of CUDA 12 and later take the cubins of any `ptxas` of CUDA 12. The newest of these makes sums as fast as
/// the driver's compiler does (580.159.04, on an H200); with version 12.0 short ones take up to 12 % longer.
const PTXAS: (&str, &str) = ("nvidia-cuda-nvcc-cu12", "12.9.86");

/// The cubin of an entry.
pub struct Cubin {
    pub entry: String,
    pub arch: Arch,
    pub bytes: Vec<u8>,
}

/// Assembles the entries of [`OF`], all architectures at once.
pub fn assemble(built: &Built) -> anyhow::Result<Vec<Cubin>> {
    let (package, version) = PTXAS;
    let ptxas = ptxas::of_version(package, version)?;
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let of_arch = |(arch, module): &(Arch, Module)| -> anyhow::Result<Vec<Cubin>> {
        let is_one = |entry: &&Entry| OF.iter().any(|start| entry.name.starts_with(start));
        let cubin = |entry: &Entry| {
            let file = folder.path().join(format!("{}.{arch}", entry.name));
            let bytes = assemble_one(&ptxas, *arch, &module.of_entry(entry), &file)
                .with_context(|| format!("cannot assemble `{}` for {arch}", entry.name))?;
            Ok(Cubin { entry: entry.name.clone(), arch: *arch, bytes })
        };
        module.entries().iter().filter(is_one).map(cubin).collect()
    };
    thread::scope(|scope| {
        let running: Vec<_> = built.modules.iter().map(|module| scope.spawn(move || of_arch(module))).collect();
        let mut all = Vec::new();
        for thread in running {
            all.extend(thread.join().expect("assembling does not panic")?);
        }
        Ok(all)
    })
}

/// Assembles PTX, in files whose names begin with that of `file`.
fn assemble_one(ptxas: &Path, arch: Arch, ptx: &str, file: &Path) -> anyhow::Result<Vec<u8>> {
    let [source, cubin] = ["ptx", "cubin"].map(|extension| file.with_added_extension(extension));
    fs::write(&source, ptx).context("cannot write a temporary file")?;
    let mut command = Command::new(ptxas);
    command.arg(format!("--gpu-name={arch}")).arg("--output-file").arg(&cubin).arg(&source);
    workspace::output(&mut command)?;
    fs::read(&cubin).context("cannot read what ptxas has written")
}
