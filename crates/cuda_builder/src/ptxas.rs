//! NVIDIA's assembler: where it is, and what it says of a kernel.
//!
//! PTX needs no assembler to run, the driver has its own. This one says without a device that a kernel assembles, and how
//! many registers it takes.

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use crate::{Arch, BuildError, Module};

/// ptxas, if it is on this machine: on the path, in a CUDA toolkit, or where `cargo xtask setup --ptxas` puts it, beside
/// the running program.
pub fn find() -> Option<PathBuf> {
    let on_path = env::var_os("PATH").into_iter().flat_map(|path| env::split_paths(&path).collect::<Vec<_>>());
    let toolkit = env::var_os("CUDA_HOME").map(|home| Path::new(&home).join("bin"));
    let program = env::current_exe().unwrap_or_default();
    let of_target = program.ancestors().skip(1).map(|folder| folder.join("tools").join("bin")).collect::<Vec<_>>();
    let folders = on_path.chain(toolkit).chain([PathBuf::from("/usr/local/cuda/bin")]).chain(of_target);
    folders.map(|folder| folder.join("ptxas")).find(|program| program.is_file())
}

/// What ptxas says of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The entry's name.
    pub entry: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Static shared memory, in bytes.
    pub shared: u32,
    /// Bytes of registers that are spilled to memory, stores and loads.
    pub spilled: u32,
    /// Bytes of the stack frame: local memory, where an array went that registers cannot hold.
    pub stack: u32,
}

/// Assembles modules, each for its architecture, all at once, and gives what each module's entries use. `folder` keeps the
/// answers: what has been assembled there before, by this ptxas, is not assembled again.
///
/// # Errors
/// A module does not assemble, ptxas cannot be run, or a file cannot be read or written.
pub fn assemble(ptxas: &Path, modules: &[(Arch, Module)], folder: &Path) -> Result<Vec<Vec<Usage>>, BuildError> {
    fs::create_dir_all(folder).map_err(|source| BuildError::io("create", folder, source))?;
    thread::scope(|scope| {
        let one = |(arch, module): &(Arch, Module)| assemble_one(ptxas, module.text(), *arch, folder);
        let running: Vec<_> = modules.iter().map(|module| scope.spawn(move || one(module))).collect();
        running.into_iter().map(|one| one.join().expect("assembling does not panic")).collect()
    })
}

fn assemble_one(ptxas: &Path, ptx: &str, arch: Arch, folder: &Path) -> Result<Vec<Usage>, BuildError> {
    let metadata = fs::metadata(ptxas).map_err(|source| BuildError::io("find", ptxas, source))?;
    let mut hasher = DefaultHasher::new();
    (ptxas, metadata.len(), metadata.modified().ok(), ptx).hash(&mut hasher);
    let file = folder.join(format!("{:016x}.{arch}.ptx", hasher.finish()));
    let report = file.with_extension("txt");
    if let Ok(text) = fs::read_to_string(&report) {
        return Ok(usages(&text));
    }
    fs::write(&file, ptx).map_err(|source| BuildError::io("write", &file, source))?;
    let output = Command::new(ptxas)
        .arg("--verbose")
        .arg(format!("--gpu-name={arch}"))
        .args(["--output-file", "/dev/null"])
        .arg(&file)
        .output()
        .map_err(|source| BuildError::Run { program: ptxas.display().to_string(), source })?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(BuildError::Assemble { arch, output: text.trim_end().to_owned() });
    }
    fs::remove_file(&file).map_err(|source| BuildError::io("remove", &file, source))?;
    fs::write(&report, text.as_bytes()).map_err(|source| BuildError::io("write", &report, source))?;
    Ok(usages(&text))
}

fn usages(text: &str) -> Vec<Usage> {
    let mut all = Vec::<Usage>::new();
    for line in text.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let entry = rest.split('\'').next().unwrap_or_default().to_owned();
            all.push(Usage { entry, ..Usage::default() });
        }
        let Some(usage) = all.last_mut() else { continue };
        let number_before = |what: &str| -> Option<u32> {
            let before = line.split_once(what)?.0;
            before.split(|c: char| !c.is_ascii_digit()).rfind(|word| !word.is_empty())?.parse().ok()
        };
        if let Some(stack) = number_before(" bytes stack frame") {
            usage.stack = stack;
            usage.spilled =
                number_before(" bytes spill stores").unwrap_or(0) + number_before(" bytes spill loads").unwrap_or(0);
        }
        if let Some(registers) = number_before(" registers") {
            usage.registers = registers;
            usage.shared = number_before(" bytes smem").unwrap_or(0);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptxas_reports_are_read() {
        let text = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'sum_f32_256' for 'sm_90'
ptxas info    : Function properties for sum_f32_256
    16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 12 registers, used 1 barriers, 16 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Compile time = 2.808 ms
ptxas info    : Compiling entry function 'copy' for 'sm_90'
ptxas info    : Function properties for copy
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, 400 bytes cmem[0]
";
        let expected = [
            Usage { entry: "sum_f32_256".into(), registers: 12, shared: 1024, spilled: 12, stack: 16 },
            Usage { entry: "copy".into(), registers: 8, shared: 0, spilled: 0, stack: 0 },
        ];
        assert_eq!(usages(text), expected);
    }
}
