//! NVIDIA's assembler, `ptxas`: finds it, and parses its reports.
//!
//! PTX does not need `ptxas` to run, because the driver has its own assembler. `ptxas` checks without a device that a
//! kernel assembles, and reports its registers.

use std::collections::{BTreeSet, HashMap};
use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::thread;

use crate::ptx::Entry;
use crate::{Arch, BuildError, Module};

/// Finds ptxas on the path, in a CUDA toolkit, or in a folder `tools/bin` above the running program, where `cargo xtask
/// setup --ptxas` puts it.
pub fn find() -> Option<PathBuf> {
    let on_path = env::var_os("PATH").into_iter().flat_map(|path| env::split_paths(&path).collect::<Vec<_>>());
    let toolkit = env::var_os("CUDA_HOME").map(|home| Path::new(&home).join("bin"));
    let program = env::current_exe().unwrap_or_default();
    let of_target = program.ancestors().skip(1).map(|folder| folder.join("tools").join("bin")).collect::<Vec<_>>();
    let folders = on_path.chain(toolkit).chain([PathBuf::from("/usr/local/cuda/bin")]).chain(of_target);
    folders.map(|folder| folder.join("ptxas")).find(|program| program.is_file())
}

/// The resources of an entry, as ptxas reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The entry.
    pub entry: String,
    /// Registers per thread.
    pub registers: u32,
    /// Static shared memory, in bytes.
    pub shared: u32,
    /// Spilled bytes of the entry itself, stores and loads together.
    pub spilled: u32,
    /// The stack frame of the entry itself in bytes: local memory, for arrays that registers cannot hold.
    pub stack: u32,
    /// Spilled bytes of the function that spills most, among those that the entry calls.
    pub spilled_in_calls: u32,
}

/// Assembles the entries of modules, each for its architecture, and returns the resources of each module's entries.
/// `folder` caches the results: an entry with the same text and the same version of ptxas is not assembled again.
///
/// # Errors
/// If a module does not assemble, ptxas cannot be run, or a file cannot be read or written.
pub fn assemble(ptxas: &Path, modules: &[(Arch, Module)], folder: &Path) -> Result<Vec<Vec<Usage>>, BuildError> {
    fs::create_dir_all(folder).map_err(|source| BuildError::io("create", folder, source))?;
    let version = version(ptxas)?;
    let caches: Vec<_> = modules.iter().map(|(arch, module)| Cache::read(folder, *arch, module, &version)).collect();
    let mut pieces = Vec::new();
    for ((arch, module), cache) in modules.iter().zip(&caches) {
        let open: Vec<&Entry> = module.entries().iter().filter(|entry| cache.usage(entry).is_none()).collect();
        let count = open.len().div_ceil(ENTRIES_PER_PROCESS).max(1);
        pieces
            .extend(open.chunks(open.len().div_ceil(count).max(1)).map(|entries| (*arch, module.of_entries(entries))));
    }
    let found = in_parallel(&pieces, |i, (arch, text)| {
        // The file name has the process's number: other processes may use the folder at the same time.
        let file = folder.join(format!("{}-{i}.{arch}.ptx", process::id()));
        let usages = assemble_text(ptxas, text, *arch, &file);
        let _ = fs::remove_file(&file);
        usages.map(|usages| (*arch, usages))
    })?;
    let mut all = Vec::new();
    for ((arch, module), mut cache) in modules.iter().zip(caches) {
        let new = found.iter().filter(|(of, _)| of == arch).flat_map(|(_, usages)| usages);
        cache.add(module, new);
        cache.write(folder, *arch)?;
        all.push(module.entries().iter().filter_map(|entry| cache.usage(entry)).collect());
    }
    Ok(all)
}

/// The number of entries per ptxas process: enough to amortize its start, few enough to keep all cores busy.
const ENTRIES_PER_PROCESS: usize = 64;

/// The version that ptxas reports.
fn version(ptxas: &Path) -> Result<String, BuildError> {
    let output = Command::new(ptxas).arg("--version").output();
    let output = output.map_err(|source| BuildError::Run { program: ptxas.display().to_string(), source })?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Calls `work` for each item, on one thread per core.
fn in_parallel<I: Sync, R: Send>(
    items: &[I],
    work: impl Fn(usize, &I) -> Result<R, BuildError> + Sync,
) -> Result<Vec<R>, BuildError> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let of_thread = &|first: usize| -> Result<Vec<R>, BuildError> {
        items.iter().enumerate().skip(first).step_by(cores).map(|(i, item)| work(i, item)).collect()
    };
    thread::scope(|scope| {
        let running: Vec<_> = (0..cores).map(|first| scope.spawn(move || of_thread(first))).collect();
        let mut all = Vec::new();
        for thread in running {
            all.extend(thread.join().expect("assembling does not panic")?);
        }
        Ok(all)
    })
}

fn assemble_text(ptxas: &Path, ptx: &str, arch: Arch, file: &Path) -> Result<Vec<Usage>, BuildError> {
    fs::write(file, ptx).map_err(|source| BuildError::io("write", file, source))?;
    let output = Command::new(ptxas)
        .arg("--verbose")
        .arg(format!("--gpu-name={arch}"))
        .args(["--output-file", "/dev/null"])
        .arg(file)
        .output()
        .map_err(|source| BuildError::Run { program: ptxas.display().to_string(), source })?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(BuildError::Assemble { arch, output: text.trim_end().to_owned() });
    }
    Ok(usages(&text))
}

/// Cached results of entries, by a hash of their text and the version of ptxas.
#[derive(Default)]
struct Cache {
    /// The hashes of a module's entries, by name.
    keys: HashMap<String, u64>,
    usages: HashMap<u64, Usage>,
}

impl Cache {
    /// The cached results for the entries of `module`.
    fn read(folder: &Path, arch: Arch, module: &Module, version: &str) -> Self {
        let key = |entry: &Entry| {
            let mut hasher = DefaultHasher::new();
            (version, arch, normalized(&module.of_entry(entry))).hash(&mut hasher);
            (entry.name.clone(), hasher.finish())
        };
        let keys: HashMap<String, u64> = module.entries().iter().map(key).collect();
        let text = fs::read_to_string(Self::file(folder, arch)).unwrap_or_default();
        // One line per entry: hash, numbers, name.
        let usage = |line: &str| {
            let (numbers, entry) = line.rsplit_once(' ')?;
            let mut numbers = numbers.split(' ');
            let key = u64::from_str_radix(numbers.next()?, 16).ok()?;
            let mut next = || numbers.next()?.parse().ok();
            let (registers, shared, spilled, stack, spilled_in_calls) = (next()?, next()?, next()?, next()?, next()?);
            Some((key, Usage { entry: entry.to_owned(), registers, shared, spilled, stack, spilled_in_calls }))
        };
        let all: HashMap<u64, Usage> = text.lines().filter_map(usage).collect();
        let usages = keys.values().filter_map(|key| Some((*key, all.get(key)?.clone()))).collect();
        Self { keys, usages }
    }

    fn file(folder: &Path, arch: Arch) -> PathBuf {
        folder.join(format!("{arch}.txt"))
    }

    fn usage(&self, entry: &Entry) -> Option<Usage> {
        self.usages.get(self.keys.get(&entry.name)?).cloned()
    }

    fn add<'a>(&mut self, module: &Module, usages: impl IntoIterator<Item = &'a Usage>) {
        let names: BTreeSet<&str> = module.entries().iter().map(|entry| entry.name.as_str()).collect();
        for usage in usages {
            if let Some(key) = names.get(usage.entry.as_str()).and_then(|name| self.keys.get(*name)) {
                self.usages.insert(*key, usage.clone());
            }
        }
    }

    /// Writes the cache atomically: concurrent readers see the new file or the old one.
    fn write(&self, folder: &Path, arch: Arch) -> Result<(), BuildError> {
        let mut lines: Vec<String> = self
            .usages
            .iter()
            .map(|(key, Usage { entry, registers, shared, spilled, stack, spilled_in_calls })| {
                format!("{key:016x} {registers} {shared} {spilled} {stack} {spilled_in_calls} {entry}\n")
            })
            .collect();
        lines.sort();
        let (file, new) = (Self::file(folder, arch), folder.join(format!("{}.{arch}.txt", process::id())));
        fs::write(&new, lines.concat()).map_err(|source| BuildError::io("write", &new, source))?;
        fs::rename(&new, &file).map_err(|source| BuildError::io("write", &file, source))
    }
}

/// The text without the numbers that the compiler gives to functions (`$L__BB12_3`) and `cuda_std` to shared arrays
/// (`shared_123`). They depend on other entries of the module or file, and do not affect the machine code.
fn normalized(ptx: &str) -> String {
    let mut text = String::with_capacity(ptx.len());
    let mut rest = ptx;
    while let Some((at, word)) = ["$L__BB", "shared_"].iter().filter_map(|word| Some((rest.find(word)?, *word))).min() {
        let (before, after) = rest.split_at(at + word.len());
        text.push_str(before);
        rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    text.push_str(rest);
    text
}

fn usages(text: &str) -> Vec<Usage> {
    let mut all = Vec::<Usage>::new();
    // The function whose stack frame and spills the next line reports.
    let mut function = "";
    for line in text.lines() {
        if let Some((_, name)) = line.split_once("Function properties for ") {
            function = name.trim();
        }
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
            let spilled =
                number_before(" bytes spill stores").unwrap_or(0) + number_before(" bytes spill loads").unwrap_or(0);
            if function == usage.entry {
                (usage.stack, usage.spilled) = (stack, spilled);
            } else {
                usage.spilled_in_calls = usage.spilled_in_calls.max(spilled);
            }
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
ptxas info    : Function properties for _RNv7kernels4mean
    0 bytes stack frame, 20 bytes spill stores, 12 bytes spill loads
ptxas info    : Function properties for _RNv7kernels4root
    0 bytes stack frame, 4 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 1 barriers, 16 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Compile time = 2.808 ms
ptxas info    : Compiling entry function 'copy' for 'sm_90'
ptxas info    : Function properties for copy
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, 400 bytes cmem[0]
";
        let expected = [
            Usage {
                entry: "sum_f32_256".into(),
                registers: 12,
                shared: 1024,
                spilled: 12,
                stack: 16,
                spilled_in_calls: 32,
            },
            Usage { entry: "copy".into(), registers: 8, ..Usage::default() },
        ];
        assert_eq!(usages(text), expected);
    }

    #[test]
    fn numbers_of_labels_and_shared_arrays_are_ignored() {
        let text = "\tshared_array[1]\n$L__BB12_3:\n.shared .b8 shared_77[4];\nbra $L__BB12_30;";
        let other = "\tshared_array[1]\n$L__BB9_3:\n.shared .b8 shared_8[4];\nbra $L__BB9_30;";
        assert_eq!(normalized(text), normalized(other));
        assert_eq!(normalized(text), "\tshared_array[1]\n$L__BB_3:\n.shared .b8 shared_[4];\nbra $L__BB_30;");
    }

    /// A stand-in for ptxas that counts the entries it gets.
    #[cfg(unix)]
    #[test]
    fn an_entry_is_assembled_once() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let (ptxas, seen) = (dir.path().join("ptxas"), dir.path().join("seen"));
        let program = format!(
            "#!/bin/sh\n[ $1 = --version ] && echo 1 && exit\nfor file; do :; done\n\
             for name in $(sed -n 's/.*\\.entry \\([a-z]*\\)(.*/\\1/p' $file); do\n\
             echo $name >> {}\n\
             echo \"info : Compiling entry function '$name' for 'sm_90'\" >&2\n\
             echo 'info : Used 12 registers, 64 bytes smem' >&2\ndone\n",
            seen.display()
        );
        fs::write(&ptxas, program).unwrap();
        fs::set_permissions(&ptxas, fs::Permissions::from_mode(0o755)).unwrap();
        let module = |of_b: &str| {
            let entry = |name: &str, body: &str| format!(".visible .entry {name}()\n{{\n{body}\n}}\n");
            let text = format!(".version 7.8\n.target sm_90\n{}{}", entry("a", "ret;"), entry("b", of_b));
            vec![(Arch::SM_90, Module::parse(&text))]
        };
        let expected = |name: &str| Usage { entry: name.into(), registers: 12, shared: 64, ..Usage::default() };
        for of_b in ["ret;", "ret;", "exit;"] {
            let usages = assemble(&ptxas, &module(of_b), &dir.path().join("cache")).unwrap();
            assert_eq!(usages, [[expected("a"), expected("b")]]);
        }
        assert_eq!(fs::read_to_string(seen).unwrap().lines().collect::<Vec<_>>(), ["a", "b", "b"]);
    }
}
