//! NVIDIA's assembler: where it is, and what it says of a kernel.
//!
//! PTX needs no assembler to run, the driver has its own. This one says without a device that a kernel assembles, and
//! how many registers it takes.

use std::collections::{BTreeSet, HashMap};
use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::thread;

use crate::ptx::Entry;
use crate::{Arch, BuildError, Module};

/// ptxas, if it is on this machine: on the path, in a CUDA toolkit, or where `cargo xtask setup --ptxas` puts it,
/// beside the running program.
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

/// Assembles the entries of modules, each for its architecture, and gives what each module's entries use. `folder`
/// keeps the answers: an entry that this ptxas has assembled before, by the same text, is not assembled again.
///
/// # Errors
/// A module does not assemble, ptxas cannot be run, or a file cannot be read or written.
pub fn assemble(ptxas: &Path, modules: &[(Arch, Module)], folder: &Path) -> Result<Vec<Vec<Usage>>, BuildError> {
    fs::create_dir_all(folder).map_err(|source| BuildError::io("create", folder, source))?;
    let version = version(ptxas)?;
    let answers: Vec<_> = modules.iter().map(|(arch, module)| Answers::read(folder, *arch, module, &version)).collect();
    let mut pieces = Vec::new();
    for ((arch, module), answers) in modules.iter().zip(&answers) {
        let open: Vec<&Entry> = module.entries().iter().filter(|entry| answers.usage(entry).is_none()).collect();
        let count = open.len().div_ceil(ENTRIES_AT_ONCE).max(1);
        pieces
            .extend(open.chunks(open.len().div_ceil(count).max(1)).map(|entries| (*arch, module.of_entries(entries))));
    }
    let found = in_parallel(&pieces, |i, (arch, text)| {
        // In a file of its own: other processes may be at work in the same folder.
        let file = folder.join(format!("{}-{i}.{arch}.ptx", process::id()));
        let usages = assemble_text(ptxas, text, *arch, &file);
        let _ = fs::remove_file(&file);
        usages.map(|usages| (*arch, usages))
    })?;
    let mut all = Vec::new();
    for ((arch, module), mut answers) in modules.iter().zip(answers) {
        let new = found.iter().filter(|(of, _)| of == arch).flat_map(|(_, usages)| usages);
        answers.add(module, new);
        answers.write(folder, *arch)?;
        all.push(module.entries().iter().filter_map(|entry| answers.usage(entry)).collect());
    }
    Ok(all)
}

/// Entries that one process of ptxas assembles: enough that starting it costs nothing, few enough that there is work
/// for all cores.
const ENTRIES_AT_ONCE: usize = 64;

/// What ptxas says of its version.
fn version(ptxas: &Path) -> Result<String, BuildError> {
    let output = Command::new(ptxas).arg("--version").output();
    let output = output.map_err(|source| BuildError::Run { program: ptxas.display().to_string(), source })?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Does `work` for each item, on as many threads as the machine has cores.
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

/// What ptxas has said of entries before, by a key that is made of their text and its version.
#[derive(Default)]
struct Answers {
    /// The keys of a module's entries, by name.
    keys: HashMap<String, u64>,
    usages: HashMap<u64, Usage>,
}

impl Answers {
    /// Those for the entries of `module`, as far as the folder has them.
    fn read(folder: &Path, arch: Arch, module: &Module, version: &str) -> Self {
        let key = |entry: &Entry| {
            let mut hasher = DefaultHasher::new();
            (version, arch, without_numbers(&module.of_entry(entry))).hash(&mut hasher);
            (entry.name.clone(), hasher.finish())
        };
        let keys: HashMap<String, u64> = module.entries().iter().map(key).collect();
        let text = fs::read_to_string(Self::file(folder, arch)).unwrap_or_default();
        // One line each: key, numbers, name.
        let usage = |line: &str| {
            let (numbers, entry) = line.rsplit_once(' ')?;
            let mut numbers = numbers.split(' ');
            let key = u64::from_str_radix(numbers.next()?, 16).ok()?;
            let mut next = || numbers.next()?.parse().ok();
            let (registers, shared, spilled, stack) = (next()?, next()?, next()?, next()?);
            Some((key, Usage { entry: entry.to_owned(), registers, shared, spilled, stack }))
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

    /// Writes them, in a way that others who read the file at the same time see all of it or what was there before.
    fn write(&self, folder: &Path, arch: Arch) -> Result<(), BuildError> {
        let mut lines: Vec<String> = self
            .usages
            .iter()
            .map(|(key, Usage { entry, registers, shared, spilled, stack })| {
                format!("{key:016x} {registers} {shared} {spilled} {stack} {entry}\n")
            })
            .collect();
        lines.sort();
        let (file, new) = (Self::file(folder, arch), folder.join(format!("{}.{arch}.txt", process::id())));
        fs::write(&new, lines.concat()).map_err(|source| BuildError::io("write", &new, source))?;
        fs::rename(&new, &file).map_err(|source| BuildError::io("write", &file, source))
    }
}

/// The text without the numbers that the compiler gives to functions (`$L__BB12_3`) and `cuda_std` to shared arrays
/// (`shared_123`): they change with what stands before an entry in its module or file, and the assembler does not look
/// at them.
fn without_numbers(ptx: &str) -> String {
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

    #[test]
    fn what_is_not_the_entrys_own_does_not_count() {
        let text = "\tshared_array[1]\n$L__BB12_3:\n.shared .b8 shared_77[4];\nbra $L__BB12_30;";
        let other = "\tshared_array[1]\n$L__BB9_3:\n.shared .b8 shared_8[4];\nbra $L__BB9_30;";
        assert_eq!(without_numbers(text), without_numbers(other));
        assert_eq!(without_numbers(text), "\tshared_array[1]\n$L__BB_3:\n.shared .b8 shared_[4];\nbra $L__BB_30;");
    }

    /// A stand-in for ptxas, which counts how many entries it was given.
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
            let usages = assemble(&ptxas, &module(of_b), &dir.path().join("answers")).unwrap();
            assert_eq!(usages, [[expected("a"), expected("b")]]);
        }
        assert_eq!(fs::read_to_string(seen).unwrap().lines().collect::<Vec<_>>(), ["a", "b", "b"]);
    }
}
