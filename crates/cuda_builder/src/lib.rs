//! Compiles a kernel crate to PTX: stock rustc's NVPTX backend, no CUDA toolkit, no linker.
//!
//! From a build script:
//!
//! ```no_run
//! use cuda_builder::{Arch, CudaBuilder};
//!
//! let built = CudaBuilder::new("../kernels").archs([Arch::SM_75, Arch::SM_90]).build().unwrap();
//! built.rerun_if_changed();
//! built.embed("kernels.rs").unwrap(); // in OUT_DIR, for `include!`
//! ```
//!
//! The crate and `core` are compiled for `nvptx64-nvidia-cuda` with `--emit=asm`. The assembly of that target *is* PTX,
//! so the "linker" is a program that does nothing. The builder itself copies the functions and the tables of other
//! crates that a kernel uses into its PTX, those of `core` included (`memcmp`, the search for a byte, conversions
//! between 128-bit integers and floats). A call to any other function is an error that names the kernel
//! ([`BuildError::UnresolvedCall`]).
//!
//! | module | contents |
//! |---|---|
//! | [`arch`] | the architectures |
//! | [`toolchain`] | the compiler of the device build, and how to install one |
//! | [`ptx`] | a PTX module, split into its entries |
//! | [`ptxas`] | NVIDIA's assembler, to verify the entries |

#![warn(missing_docs)]

pub mod arch;
mod cargo;
mod error;
mod link;
pub mod ptx;
pub mod ptxas;
mod stamp;
pub mod toolchain;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use ptx_archive::Text;

pub use arch::{Arch, UnknownArch};
pub use error::BuildError;
pub use ptx::Module;
pub use ptx_archive::Effort;
pub use toolchain::DeviceToolchain;

/// A build of one kernel crate.
#[derive(Clone, Debug)]
pub struct CudaBuilder {
    kernel_crate: PathBuf,
    archs: Vec<Arch>,
    features: Vec<String>,
    /// Whether the environment asks for no architectures.
    builds_nothing: bool,
    copy_to: Option<PathBuf>,
    target_dir: Option<PathBuf>,
}

/// The result of a build: the crate's PTX, once for each architecture.
#[derive(Clone, Debug)]
pub struct Built {
    /// The crate's name.
    pub library: String,
    /// A module for each architecture, in the order in which they were added.
    pub modules: Vec<(Arch, Module)>,
    /// The source files of the PTX.
    pub sources: Vec<PathBuf>,
}

impl CudaBuilder {
    /// Configures a build of the crate in the folder `kernel_crate`, for [`Arch::SM_75`] unless other architectures are
    /// added.
    pub fn new(kernel_crate: impl AsRef<Path>) -> Self {
        Self {
            kernel_crate: kernel_crate.as_ref().to_owned(),
            archs: Vec::new(),
            features: Vec::new(),
            builds_nothing: false,
            copy_to: None,
            target_dir: None,
        }
    }

    /// Adds an architecture.
    pub fn arch(mut self, arch: Arch) -> Self {
        self.archs.push(arch);
        self
    }

    /// Adds architectures.
    pub fn archs(mut self, archs: impl IntoIterator<Item = Arch>) -> Self {
        self.archs.extend(archs);
        self
    }

    /// Replaces the architectures with those in the environment variable `variable`, joined by commas (`sm_80,sm_90`),
    /// if it is set. With `none`, nothing is compiled. Cargo runs a build script again when the variable changes.
    ///
    /// # Errors
    /// If it names an unknown architecture.
    pub fn archs_from(mut self, variable: &str) -> Result<Self, UnknownArch> {
        println!("cargo::rerun-if-env-changed={variable}");
        if let Ok(names) = std::env::var(variable) {
            self.archs = arch::parse_list(&names)?;
            self.builds_nothing = self.archs.is_empty();
        }
        Ok(self)
    }

    /// Enables this feature of the kernel crate, beside its default ones.
    pub fn feature(mut self, feature: impl Into<String>) -> Self {
        self.features.push(feature.into());
        self
    }

    /// Copies the crate's PTX to this file. With several architectures each name is added to the file's stem: `add.ptx`
    /// becomes `add.sm_75.ptx`, `add.sm_90.ptx`.
    pub fn copy_to(mut self, file: impl AsRef<Path>) -> Self {
        self.copy_to = Some(file.as_ref().to_owned());
        self
    }

    /// Sets the build folder. The default is the folder in the environment variable `CUDA_BUILDER_DIR`, with which
    /// builds can share compiled crates across target folders, or else `cuda-builder` in the target folder of the
    /// surrounding build.
    pub fn target_dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.target_dir = Some(dir.as_ref().to_owned());
        self
    }

    /// Runs the build.
    ///
    /// # Errors
    /// If there is no usable device toolchain, the crate does not compile, a kernel's call is unresolved, or a file
    /// cannot be read or written. The error says which, and what to do.
    pub fn build(&self) -> Result<Built, BuildError> {
        let library = cargo::library_name(&self.kernel_crate)?;
        if self.builds_nothing {
            return Ok(Built { library, modules: Vec::new(), sources: Vec::new() });
        }
        let toolchain = DeviceToolchain::find()?;
        let target_dir = match &self.target_dir {
            Some(dir) => dir.clone(),
            None => cargo::default_target_dir()?,
        };
        let archs: &[Arch] = if self.archs.is_empty() { &[Arch::SM_75] } else { &self.archs };
        let compile = &|arch| -> Result<_, BuildError> {
            let output = cargo::compile(&toolchain, &self.kernel_crate, &library, &self.features, arch, &target_dir)?;
            let module = Module::from_parts(output.ptx.iter().map(|part| Module::parse(part)));
            if let Some(call) = module.unresolved_call() {
                return Err(BuildError::UnresolvedCall { kernel: call.entry, function: call.function, arch });
            }
            Ok(((arch, module), output.sources))
        };
        // In parallel, because each is one long single-threaded compilation.
        let outputs = thread::scope(|scope| {
            let running: Vec<_> = archs.iter().map(|&arch| scope.spawn(move || compile(arch))).collect();
            running.into_iter().map(|one| one.join().expect("a compilation does not panic")).collect::<Vec<_>>()
        });
        let mut modules = Vec::new();
        let mut sources = Vec::new();
        for output in outputs {
            let (module, of_module) = output?;
            modules.push(module);
            sources = of_module;
        }
        let built = Built { library, modules, sources };
        if let Some(file) = &self.copy_to {
            built.copy_to(file)?;
        }
        Ok(built)
    }
}

impl Built {
    /// From a build script, tells cargo which files the PTX depends on.
    pub fn rerun_if_changed(&self) {
        for source in &self.sources {
            println!("cargo::rerun-if-changed={}", source.display());
        }
        for variable in toolchain::VARIABLES.into_iter().chain([cargo::TARGET_DIR_VARIABLE]) {
            println!("cargo::rerun-if-env-changed={variable}");
        }
    }

    fn copy_to(&self, file: &Path) -> Result<(), BuildError> {
        if let [(_, module)] = &self.modules[..] {
            return write(file, module.text().as_bytes());
        }
        for (arch, module) in &self.modules {
            write(&file.with_extension(format!("{arch}.ptx")), module.text().as_bytes())?;
        }
        Ok(())
    }

    /// Writes one PTX file for each entry to `dir/ARCH/`, and removes files of entries that no longer exist. Returns
    /// the files.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write_entries(&self, dir: &Path) -> Result<Vec<PathBuf>, BuildError> {
        let mut files = Vec::new();
        for (arch, module) in &self.modules {
            let folder = dir.join(arch.to_string());
            for entry in module.entries() {
                let file = folder.join(format!("{}.ptx", entry.name));
                write(&file, module.of_entry(entry).as_bytes())?;
                files.push(file);
            }
            let stale = fs::read_dir(&folder).into_iter().flatten().flatten().map(|file| file.path());
            for file in stale.filter(|file| file.extension().is_some_and(|e| e == "ptx") && !files.contains(file)) {
                fs::remove_file(&file).map_err(|source| BuildError::io("remove", &file, source))?;
            }
        }
        Ok(files)
    }

    /// From a build script, writes an [archive](ptx_archive) with the PTX of every entry to `OUT_DIR`, and a file with
    /// a Rust expression of the archive's bytes, a `&[u8; N]`. `warpfold::include_library!("my_kernels")` reads the
    /// file `my_kernels.rs`, and makes a library of the crate with that name.
    ///
    /// Each entry is a separate module, so that the driver compiles only the kernels that a program launches, on first
    /// use.
    ///
    /// # Errors
    /// If called outside a build script, or if a file cannot be written.
    pub fn embed(&self, file_name: &str) -> Result<(), BuildError> {
        let out_dir = std::env::var_os("OUT_DIR").map(PathBuf::from).ok_or(BuildError::NotABuildScript)?;
        let archive = out_dir.join(file_name).with_extension("ptx-archive");
        write(&archive, &self.pack(Effort::Fast)?)?;
        let name = archive.display().to_string();
        write(&out_dir.join(file_name), format!("include_bytes!({name:?})\n").as_bytes())
    }

    /// The PTX of every entry as an [archive](ptx_archive).
    ///
    /// # Errors
    /// If an entry is larger than an archive's limits.
    pub fn pack(&self, effort: Effort) -> Result<Vec<u8>, BuildError> {
        let modules: Vec<_> = self
            .modules
            .iter()
            .flat_map(|(arch, module)| module.entries().iter().map(move |entry| (arch, entry, module.of_entry(entry))))
            .collect();
        let texts = modules.iter().map(|(arch, entry, ptx)| Text {
            name: &entry.name,
            arch: arch.number(),
            contents: ptx.as_bytes(),
        });
        let texts: Vec<Text<'_>> = texts.collect();
        ptx_archive::pack(&texts, effort).map_err(BuildError::Pack)
    }
}

/// Writes a file if its contents differ, so that a timestamp does not cause another build.
fn write(file: &Path, contents: &[u8]) -> Result<(), BuildError> {
    if fs::read(file).is_ok_and(|present| present == contents) {
        return Ok(());
    }
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(|source| BuildError::io("create", folder, source))?;
    }
    fs::write(file, contents).map_err(|source| BuildError::io("write", file, source))
}
