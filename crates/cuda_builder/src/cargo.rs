//! Runs cargo for the device.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Arch, BuildError, DeviceToolchain, link, stamp};

/// The compiler flags of a device build, in addition to the architecture.
///
/// - JumpThreading is off because it may copy a barrier into two branches: rustc before 1.97 does not treat a barrier
///   as convergent.
/// - A panic is a `trap`: PTX cannot print a message.
/// - Warnings are off: the build for the host prints them, and here they would hide the error of a kernel that does not
///   compile. There would be some for each entry, and for each import that only the other part's entries use.
const RUSTFLAGS: [&str; 4] =
    ["-Zmir-enable-passes=-JumpThreading", "-Zunstable-options", "-Cpanic=immediate-abort", "-Awarnings"];

/// The target's name for rustc.
const TARGET: &str = "nvptx64-nvidia-cuda";

/// The number of compilations among which a crate's entries are divided. It is fixed: an entry's PTX may depend on the
/// entries compiled with it, and it should not depend on the build machine.
///
/// A compilation for the device is one long pass through LLVM on one core, some 75 s for warpfold's kernels; everything
/// before that pass takes 3 s. So two compilations in parallel take half the wall time, and little more processor time.
const PARTS: usize = 2;

/// The program that cargo runs in place of the compiler, with the compiler's path and arguments. It compiles the crate
/// with the kernels in parts, and each dependency as a whole.
///
/// The kernel crate's PTX must contain all functions that it calls. So the functions of a dependency are compiled into
/// the crates that call them, as if they were `#[inline]`, except those of `core` and `compiler_builtins`, most of
/// which are `#[inline]` or generic. Each crate also has its own PTX, from which [`link`] copies what is left: its
/// statics, and the functions that are not compiled into their callers.
///
/// Most errors are in both parts, so the second part's messages are shown only if the first compiles. If an option is
/// given twice, the compiler uses the last.
///
/// The compiler hashes `-C metadata=...` into all symbols, and orders functions by these hashes. Cargo's value depends
/// on the folders of the checkout and of the toolchain. The program replaces it by the package's name and version, so
/// that the same sources give the same PTX anywhere.
const COMPILE_IN_PARTS: &str = r#"#!/bin/sh
for argument; do
    shift
    case $argument in metadata=*) argument="metadata=$CARGO_PKG_NAME-$CARGO_PKG_VERSION" ;; esac
    set -- "$@" "$argument"
done
if [ -z "$CARGO_PRIMARY_PACKAGE" ]; then
    case " $* " in
        *" --target nvptx64-nvidia-cuda "*) set -- "$@" -Ccodegen-units=1 --emit=asm ;;
        *) exec "$@" ;;
    esac
    case " $* " in
        *" --crate-name core "* | *" --crate-name compiler_builtins "*) exec "$@" ;;
        *) exec "$@" -Zcross-crate-inline-threshold=always ;;
    esac
fi
CUDA_BUILDER_PART=1/2 "$@" --emit=asm="$CUDA_BUILDER_SECOND_PTX" -Ztemps-dir="$CUDA_BUILDER_SECOND" \
    2> "$CUDA_BUILDER_SECOND/messages" &
second=$!
CUDA_BUILDER_PART=0/2 "$@" || exit $?
wait $second || { cat "$CUDA_BUILDER_SECOND/messages" >&2; exit 1; }
"#;

/// Cargo compiles dependencies again if their flags change, but not if [`COMPILE_IN_PARTS`] does. So a change of the
/// flags there needs another number here.
const METADATA_CFG: &str = "--cfg=cuda_builder_metadata=\"2\"";

/// Renames LLVM's intrinsics of Rust's `as` from floats to 128-bit integers to the functions of `compiler_builtins`
/// that do the same. LLVM's NVPTX backend has no instructions for these intrinsics, and calls no functions for them.
const FUNCTIONS_OF_CONVERSIONS: &str = "\
function: { source: llvm.fptosi.sat.i128.f32, target: __fixsfti }
function: { source: llvm.fptosi.sat.i128.f64, target: __fixdfti }
function: { source: llvm.fptoui.sat.i128.f32, target: __fixunssfti }
function: { source: llvm.fptoui.sat.i128.f64, target: __fixunsdfti }
";

/// The compiler flags of conversions between floats and integers of 128 bits: a pass of LLVM renames the intrinsics as
/// the file `functions` says, and another one expands conversions *to* floats to integer instructions. Empty if the
/// compiler does not know the options: then only kernels with such conversions do not compile.
fn conversion_flags(toolchain: &DeviceToolchain, functions: &Path) -> Vec<String> {
    let options = [
        "-Cllvm-args=-expand-fp-convert-bits=64".to_owned(),
        format!("-Cllvm-args=-rewrite-map-file={}", functions.display()),
    ];
    let mut probe = Command::new(&toolchain.rustc);
    probe.args(&options).args(["--target", TARGET, "--print", "target-cpus"]);
    match probe.output() {
        Ok(output) if output.status.success() => [&options[..], &["-Cpasses=rewrite-symbols".to_owned()]].concat(),
        _ => Vec::new(),
    }
}

/// LLVM's error about an operation for which PTX has no instruction, and LLVM no function. It names no place.
const NO_INSTRUCTION: &str = "unsupported library call operation";

/// What is known about that error.
const ABOUT_NO_INSTRUCTION: &str = "\n\nA kernel uses an operation that PTX lacks, and LLVM does not say which: \
    arithmetic on the language's own `f128`, or, if this rustc is older or newer than the builder knows, a conversion \
    between a float and an integer of 128 bits.";

/// One compilation's result.
pub(crate) struct Output {
    /// The PTX of each part.
    pub ptx: Vec<String>,
    /// The source files of the PTX.
    pub sources: Vec<PathBuf>,
}

/// Compiles the crate in `folder` for `arch`.
pub(crate) fn compile(
    toolchain: &DeviceToolchain,
    folder: &Path,
    library: &str,
    features: &[String],
    arch: Arch,
    target_dir: &Path,
) -> Result<Output, BuildError> {
    // One folder per architecture: concurrent builds in one folder wait for each other.
    let target_dir = &target_dir.join(arch.to_string());
    // Each choice of features has its own files, so that alternating builds do not compile again.
    let variant = [&[library.to_owned()], features].concat().join("+").replace('/', "-");
    let ptx_files: [PathBuf; PARTS] = std::array::from_fn(|part| target_dir.join(format!("{variant}.{part}.ptx")));
    // The second part's intermediate files have the same names as the first part's.
    let second = target_dir.join(format!("{variant}.1"));
    fs::create_dir_all(&second).map_err(|source| BuildError::io("create", &second, source))?;

    let mut rustflags = vec![format!("-Ctarget-cpu={arch}"), METADATA_CFG.to_owned()];
    rustflags.extend(RUSTFLAGS.map(str::to_owned));
    for at_least in Arch::ALL.into_iter().filter(|&at_least| at_least <= arch) {
        rustflags.push(format!("--cfg=cuda_arch_at_least=\"{}\"", at_least.number()));
    }

    // A build script names the folder by a relative path, xtask by an absolute one.
    let crate_folder = folder.canonicalize().map_err(|source| BuildError::io("find", folder, source))?;
    // The key leaves out the compiler's path: a build script gets an absolute one, a test finds it by name.
    let key = format!("{} {} {features:?} {rustflags:?}", toolchain.full_version, crate_folder.display());
    let stamp_file = target_dir.join(format!("{variant}.stamp"));
    if let Some(sources) = stamp::unchanged(&stamp_file, &key)
        && let Ok(ptx) = ptx_files.iter().map(fs::read_to_string).collect()
    {
        return Ok(Output { ptx, sources });
    }
    let in_parts = target_dir.join("in-parts.sh");
    write_once(&in_parts, COMPILE_IN_PARTS).map_err(|source| BuildError::io("write", &in_parts, source))?;
    let functions = target_dir.join("conversions.yaml");
    write_once(&functions, FUNCTIONS_OF_CONVERSIONS).map_err(|source| BuildError::io("write", &functions, source))?;
    rustflags.extend(conversion_flags(toolchain, &functions));

    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(&cargo);
    command
        .current_dir(folder)
        .args(["rustc", "--release", "--lib", "--crate-type", "cdylib", "--target", TARGET, "-Zbuild-std=core"])
        // With `memcmp` and the like, which other targets get from C's library.
        .arg("-Zbuild-std-features=compiler-builtins-mem")
        .arg("--message-format=json-render-diagnostics")
        .arg("--target-dir")
        .arg(target_dir)
        .args(features.iter().flat_map(|feature| ["--features", feature]))
        .args(["--color", "never", "--"])
        .arg(format!("--emit=asm={},dep-info", ptx_files[0].display()))
        // Nothing is linked: `true` does nothing, and every system has it.
        .args(["-Clinker=true", "-Clinker-flavor=llbc"]);
    isolate(&mut command);
    command
        .env("RUSTC", &toolchain.rustc)
        .env("RUSTC_WRAPPER", &in_parts)
        .env("CUDA_BUILDER_SECOND", &second)
        .env("CUDA_BUILDER_SECOND_PTX", &ptx_files[1])
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_ENCODED_RUSTFLAGS", rustflags.join("\x1f"))
        // Debug information would turn the PTX into a debug module.
        .env("CARGO_PROFILE_RELEASE_DEBUG", "false")
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "3");

    let output = command
        .output()
        .map_err(|source| BuildError::Run { program: Path::new(&cargo).display().to_string(), source })?;
    if !output.status.success() {
        let mut output = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
        if output.contains(NO_INSTRUCTION) {
            output.push_str(ABOUT_NO_INSTRUCTION);
        }
        return Err(BuildError::Compile { package: library.to_owned(), arch, output });
    }
    let read = |file: &PathBuf| fs::read_to_string(file).map_err(|source| BuildError::io("read", file, source));
    let mut ptx = ptx_files.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let release = target_dir.join(TARGET).join("release");
    let dependencies = release.join("deps");
    let libraries = ptx_of_libraries(&String::from_utf8_lossy(&output.stdout), &dependencies);
    link::link(&mut ptx, &libraries).map_err(|source| BuildError::io("read", &dependencies, source))?;
    for (file, text) in ptx_files.iter().zip(&ptx) {
        write_once(file, text).map_err(|source| BuildError::io("write", file, source))?;
    }
    let dep_info = release.join(format!("{library}.d"));
    let sources = sources(&dep_info, folder)?;
    stamp::write(&stamp_file, &key, &sources).map_err(|source| BuildError::io("write", &stamp_file, source))?;
    Ok(Output { ptx, sources })
}

/// The PTX files in `folder` of the crates that cargo's messages name, in a fixed order. Crates of earlier builds are
/// left out.
fn ptx_of_libraries(messages: &str, folder: &Path) -> Vec<PathBuf> {
    let artifacts = messages.lines().filter(|line| line.contains("\"compiler-artifact\""));
    let files = artifacts.flat_map(|line| line.split('"')).filter_map(|file| file.strip_suffix(".rlib"));
    let stems = files.filter_map(|file| file.rsplit(['/', '\\']).next()?.strip_prefix("lib"));
    let mut files: Vec<PathBuf> = stems.map(|stem| folder.join(format!("{stem}.s"))).collect();
    files.retain(|file| file.exists());
    files.sort();
    files.dedup();
    files
}

/// Writes a file, unless it has these contents: cargo would take a new file for a different compiler.
fn write_once(file: &Path, contents: &str) -> io::Result<()> {
    if fs::read_to_string(file).is_ok_and(|present| present == contents) {
        return Ok(());
    }
    // First under another name: concurrent builds may read and write the file, and none may see a part of it.
    static FILES: AtomicUsize = AtomicUsize::new(0);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let unfinished = file.with_extension(format!("{}-{number}", std::process::id()));
    fs::write(&unfinished, contents)?;
    #[cfg(unix)]
    if contents.starts_with("#!") {
        fs::set_permissions(&unfinished, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    }
    fs::rename(unfinished, file)
}

/// Removes the environment of the surrounding build: the variables of a build script, and those of clippy, with which
/// cargo would lint instead of compiling.
fn isolate(command: &mut Command) {
    let outer = env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(|name| {
        let of_cargo = name.starts_with("CARGO_")
            && !matches!(name.as_str(), "CARGO_HOME" | "CARGO_NET_OFFLINE" | "CARGO_TERM_COLOR");
        let of_rustc = matches!(
            name.as_str(),
            "RUSTFLAGS"
                | "RUSTDOCFLAGS"
                | "RUSTC_WRAPPER"
                | "RUSTC_WORKSPACE_WRAPPER"
                | "RUSTC_LINKER"
                | "RUSTDOC"
                | "MAKEFLAGS"
                | "MFLAGS"
                | "NUM_JOBS"
                | "OUT_DIR"
                | "TARGET"
                | "HOST"
                | "PROFILE"
                | "OPT_LEVEL"
                | "DEBUG"
        );
        of_cargo
            && !name.starts_with("CARGO_REGISTRIES_")
            && !name.starts_with("CARGO_HTTP_")
            && !name.starts_with("CARGO_NET_")
            || of_rustc
    });
    for name in outer {
        command.env_remove(name);
    }
}

/// The files of cargo's dep-info, and the manifests and lock files, which dep-info leaves out.
fn sources(dep_info: &Path, folder: &Path) -> Result<Vec<PathBuf>, BuildError> {
    let text = fs::read_to_string(dep_info).map_err(|source| BuildError::io("read", dep_info, source))?;
    let mut files = dep_info_files(&text);
    let mut manifests: Vec<PathBuf> = files
        .iter()
        .flat_map(|file| file.ancestors().skip(1).take(8))
        .flat_map(|dir| [dir.join("Cargo.toml"), dir.join("Cargo.lock")])
        .filter(|manifest| manifest.exists())
        .collect();
    manifests.push(folder.join("Cargo.toml"));
    files.append(&mut manifests);
    files.sort();
    files.dedup();
    Ok(files)
}

/// The prerequisites in `target: prerequisite prerequisite ...`, where `\ ` is a space in a path.
fn dep_info_files(text: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in text.lines() {
        let Some((_, prerequisites)) = line.split_once(": ") else { continue };
        let mut file = String::new();
        let mut characters = prerequisites.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '\\' if characters.peek() == Some(&' ') => file.extend(characters.next()),
                ' ' => files.push(PathBuf::from(std::mem::take(&mut file))),
                other => file.push(other),
            }
        }
        if !file.is_empty() {
            files.push(PathBuf::from(file));
        }
    }
    files
}

/// The library's name: the manifest's `name = "..."` in `[lib]`, or else in `[package]`, as rustc names the crate.
pub(crate) fn library_name(folder: &Path) -> Result<String, BuildError> {
    let manifest = folder.join("Cargo.toml");
    let not_a_crate = |reason: String| BuildError::NotACrate { path: folder.to_owned(), reason };
    let text = fs::read_to_string(&manifest).map_err(|error| not_a_crate(format!("`Cargo.toml`: {error}")))?;
    let (mut section, mut of_package, mut of_library) = ("", None, None);
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if let Some((key, value)) = line.split_once('=')
            && key.trim() == "name"
        {
            match section {
                "[package]" => of_package = Some(value),
                "[lib]" => of_library = Some(value),
                _ => {}
            }
        }
    }
    let name = of_package.map(|name| of_library.unwrap_or(name).trim().trim_matches('"').replace('-', "_"));
    name.ok_or_else(|| not_a_crate("`Cargo.toml` names no package".to_owned()))
}

/// The environment variable that names the folder of all device builds.
pub(crate) const TARGET_DIR_VARIABLE: &str = "CUDA_BUILDER_DIR";

/// The folder in [`TARGET_DIR_VARIABLE`], or else `cuda-builder` in the target folder that contains `OUT_DIR` or this
/// program, so that all device builds of a workspace share compiled crates.
pub(crate) fn default_target_dir() -> Result<PathBuf, BuildError> {
    if let Some(dir) = env::var_os(TARGET_DIR_VARIABLE) {
        return Ok(dir.into());
    }
    let inside = match env::var_os("OUT_DIR") {
        Some(out_dir) => PathBuf::from(out_dir),
        None => {
            env::current_exe().map_err(|source| BuildError::io("find", Path::new("the running program"), source))?
        }
    };
    // Cargo marks the root of every target folder.
    let root = inside.ancestors().find(|dir| dir.join("CACHEDIR.TAG").exists());
    Ok(root.or(inside.parent()).unwrap_or(&inside).join("cuda-builder"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_those_of_this_build() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["core-1.s", "core-2.s", "half-3.s", "half-3.d"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let messages = r#"{"reason":"compiler-artifact","filenames":["/t/libhalf-3.rlib","/t/libhalf-3.rmeta"]}
{"reason":"compiler-artifact","filenames":["/t/deps/libcore-2.rlib"],"executable":null,"fresh":true}
{"reason":"compiler-artifact","filenames":["/t/release/deps/libsyn-4.rlib"]}
{"reason":"compiler-message","message":"/t/deps/libcore-1.rlib"}"#;
        let expected = ["core-2.s", "half-3.s"].map(|name| dir.path().join(name));
        assert_eq!(ptx_of_libraries(messages, dir.path()), expected);
    }

    #[test]
    fn dep_info_with_spaces_in_paths() {
        let text = "/t/libk.d: /a/b.rs /with\\ space/c.rs\n\n/a/b.rs:\n";
        assert_eq!(dep_info_files(text), [PathBuf::from("/a/b.rs"), PathBuf::from("/with space/c.rs")]);
    }

    #[test]
    fn the_name_is_that_of_the_library() {
        let dir = tempfile::tempdir().unwrap();
        let name_in = |manifest: &str| {
            fs::write(dir.path().join("Cargo.toml"), manifest).unwrap();
            library_name(dir.path()).ok()
        };
        let package = "[package]\nname = \"my-kernels\"\n";
        assert_eq!(name_in(&format!("{package}[[bin]]\nname = \"other\"\n")).as_deref(), Some("my_kernels"));
        assert_eq!(name_in(&format!("[lib]\nname = \"kernels\"\n{package}")).as_deref(), Some("kernels"));
        assert_eq!(name_in("[lib]\nname = \"kernels\"\n"), None);
    }

    #[test]
    fn a_folder_without_a_crate_is_named() {
        let error = library_name(Path::new("/no/such/crate")).unwrap_err().to_string();
        assert!(error.contains("/no/such/crate"), "{error}");
    }
}
