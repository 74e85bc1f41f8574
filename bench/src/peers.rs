//! What `bench reduce` and `bench transpose` share to time other libraries: the libraries that `peers/build.sh` builds,
//! and the plans of cuTENSOR.

use std::ffi::{c_int, c_void};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use libloading::Library;
use warpfold::{Error, Gpu};

use crate::measure::{Plan, Timing};
use crate::outcome::chain;

/// The time of a peer, and the call that took it: `DeviceReduce::Min`.
#[derive(Clone, Debug, PartialEq)]
pub struct Called<T> {
    pub call: String,
    pub time: T,
}

impl<T> Called<T> {
    pub fn new(call: impl Into<String>, time: T) -> Self {
        Self { call: call.into(), time }
    }

    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> Called<U> {
        Called::new(self.call, of(self.time))
    }

    /// The call and the time, if there are any.
    pub fn split(measured: Option<Self>) -> (Option<String>, Option<T>) {
        measured.map(|Self { call, time }| (call, time)).unzip()
    }
}

/// Loads `libwarpfold_FILE.so`, or prints why it is missing.
pub fn load(folder: &Path, name: &str, file: &str) -> Option<Library> {
    open(folder, name, file).inspect_err(|message| eprintln!("{message}")).ok()
}

fn open(folder: &Path, name: &str, file: &str) -> Result<Library, String> {
    let library = folder.join("build").join(format!("libwarpfold_{file}.so"));
    // SAFETY: the library that `peers/build.sh` has made runs nothing when it is loaded.
    unsafe { Library::new(&library) }.map_err(|error| {
        let why = chain(&anyhow::Error::new(error));
        format!("without {name}: {why}; {}/build.sh builds it", folder.display())
    })
}

/// The number that a function without arguments returns; `None` if the library is older than the function.
///
/// # Safety
/// The function has no arguments, returns an `int`, and may be called at any time.
pub unsafe fn constant(library: &Library, function: &[u8]) -> Option<c_int> {
    // SAFETY: the caller says that this is the function's type.
    let function = unsafe { library.get::<unsafe extern "C" fn() -> c_int>(function) }.ok()?;
    // SAFETY: the caller says that it may be called.
    Some(unsafe { function() })
}

/// The stream of a peer's calls. Inside a recording, this is the recording's stream.
pub fn stream_of(gpu: &Gpu) -> *mut c_void {
    gpu.cuda_stream().unwrap_or(std::ptr::null_mut())
}

/// The time of a peer's call, back to back. The call takes its number, and returns 0 or an error's number.
pub fn time_of(gpu: &Gpu, plan: &Plan, call: impl Fn(usize) -> c_int) -> anyhow::Result<Timing> {
    let mut failed = 0;
    let time = plan.time_recorded(gpu, &mut |i| {
        let error = call(i);
        if error != 0 {
            failed = error;
        }
        Ok::<_, Error>(())
    })?;
    ensure!(failed == 0, "error {failed}");
    Ok(time)
}

/// cuTENSOR, by `peers/cutensor.cu`.
pub struct CuTensor(Library);

/// `warpfold_cutensor_permutation`.
type MakePermutation = unsafe extern "C" fn(
    size: c_int,
    factor: f64,
    extents: *const i64,
    axes: *const c_int,
    rank: c_int,
    plan: *mut *mut c_void,
) -> c_int;

/// `warpfold_cutensor_reduction`.
type MakeReduction = unsafe extern "C" fn(
    operator: c_int,
    dtype: c_int,
    factor: f64,
    extents: *const i64,
    rank: c_int,
    kept: *const c_int,
    kept_rank: c_int,
    plan: *mut *mut c_void,
    workspace_bytes: *mut u64,
) -> c_int;

/// `warpfold_cutensor_permute`.
type Permute = unsafe extern "C" fn(*const c_void, *const c_void, *mut c_void, stream: *mut c_void) -> c_int;

/// `warpfold_cutensor_reduce`.
type Reduce =
    unsafe extern "C" fn(*const c_void, *const c_void, *mut c_void, workspace: *mut c_void, *mut c_void) -> c_int;

/// A plan of cuTENSOR's, which chooses the kernel. It is made once, outside the measured time.
struct CuTensorPlan<'a> {
    library: &'a Library,
    plan: *mut c_void,
}

impl Drop for CuTensorPlan<'_> {
    fn drop(&mut self) {
        // SAFETY: `peers/cutensor.cu` defines it with this signature.
        let free = unsafe { self.library.get::<unsafe extern "C" fn(*mut c_void)>(b"warpfold_cutensor_free") };
        if let Ok(free) = free {
            // SAFETY: the plan is one that the library made, and nothing uses it any more.
            unsafe { free(self.plan) }
        }
    }
}

/// A permutation: each axis of the output is the axis of the input with that number, from 0 on.
pub struct Permutation<'a> {
    /// The size of an element in bytes.
    pub size: usize,
    /// Each element is multiplied by it.
    pub factor: f64,
    pub extents: &'a [usize],
    pub axes: &'a [usize],
}

/// A reduction over all axes but `kept`.
pub struct Reduction<'a> {
    /// 0 is the sum, 1 the minimum, 2 the maximum, 3 the product.
    pub operator: c_int,
    /// 0 is f32, 1 f64, 2 f16, 3 bf16.
    pub dtype: c_int,
    /// Each result is multiplied by it.
    pub factor: f64,
    pub extents: &'a [usize],
    pub kept: &'a [usize],
}

impl CuTensor {
    /// Looks for the library in `folder`, and reports it if it is missing.
    pub fn find(folder: &Path) -> Option<Self> {
        load(folder, "cuTENSOR", "cutensor").map(Self)
    }

    /// The version: `2.8.0`.
    pub fn version(&self) -> Option<String> {
        // SAFETY: `peers/cutensor.cu` defines it with this signature, and it only returns a number.
        let version = unsafe { constant(&self.0, b"warpfold_cutensor_version") }?;
        Some(format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100))
    }

    /// The time of a permutation from one of `inputs` to `output`, which are the addresses of allocations with the
    /// elements of the permutation's extents; `None` if cuTENSOR has no such permutation.
    pub fn permute(
        &self,
        gpu: &Gpu,
        plan: &Plan,
        what: &Permutation<'_>,
        inputs: &[u64],
        output: u64,
    ) -> anyhow::Result<Option<Called<Timing>>> {
        // SAFETY: `peers/cutensor.cu` defines them with these signatures.
        let (make, permute) = unsafe {
            (
                self.0.get::<MakePermutation>(b"warpfold_cutensor_permutation"),
                self.0.get::<Permute>(b"warpfold_cutensor_permute"),
            )
        };
        let (make, permute) = (make.context(OLD)?, permute.context(OLD)?);
        let (extents, axes, rank) = (wide(what.extents), numbers(what.axes), what.extents.len() as c_int);
        ensure!(what.axes.len() == what.extents.len(), "a permutation has as many axes as extents");
        if what.extents.contains(&0) {
            return Ok(None);
        }
        let made = self.plan(|made| {
            let (extents, axes) = (extents.as_ptr(), axes.as_ptr());
            // SAFETY: both lists have `rank` elements, and `made` is a place for a pointer.
            unsafe { make(what.size as c_int, what.factor, extents, axes, rank, made) }
        })?;
        let Some(made) = made else { return Ok(None) };
        let time = time_of(gpu, plan, |i| {
            let (input, output) = (inputs[i % inputs.len()] as *const c_void, output as *mut c_void);
            // SAFETY: the plan is alive; the input and the output are device memory with the plan's elements.
            unsafe { permute(made.plan, input, output, stream_of(gpu)) }
        })?;
        Ok(Some(Called::new("cutensorPermute", time)))
    }

    /// The time of a reduction of one of `inputs`, which are the addresses of allocations with the elements of the
    /// reduction's extents; `None` if cuTENSOR has no such reduction.
    pub fn reduce(
        &self,
        gpu: &Gpu,
        plan: &Plan,
        what: &Reduction<'_>,
        inputs: &[u64],
    ) -> anyhow::Result<Option<Called<Timing>>> {
        // SAFETY: `peers/cutensor.cu` defines them with these signatures.
        let (make, reduce) = unsafe {
            (
                self.0.get::<MakeReduction>(b"warpfold_cutensor_reduction"),
                self.0.get::<Reduce>(b"warpfold_cutensor_reduce"),
            )
        };
        let (make, reduce) = (make.context(OLD)?, reduce.context(OLD)?);
        let (extents, kept) = (wide(what.extents), numbers(what.kept));
        ensure!(what.kept.iter().all(|&axis| axis < extents.len()), "a kept axis is one of the extents'");
        if what.extents.contains(&0) {
            return Ok(None);
        }
        let (rank, kept_rank) = (extents.len() as c_int, kept.len() as c_int);
        let mut workspace_bytes = 0;
        let made = self.plan(|made| {
            let Reduction { operator, dtype, factor, .. } = *what;
            let (extents, kept) = (extents.as_ptr(), kept.as_ptr());
            // SAFETY: the lists have `rank` and `kept_rank` elements; the two places are for a pointer and a number.
            unsafe { make(operator, dtype, factor, extents, rank, kept, kept_rank, made, &mut workspace_bytes) }
        })?;
        let Some(made) = made else { return Ok(None) };
        let results: usize = what.kept.iter().map(|&axis| what.extents[axis]).product();
        // A result has at most 8 bytes.
        let output = gpu.zeroed::<u64>(results)?;
        let workspace = gpu.zeroed::<u8>(usize::try_from(workspace_bytes)?.max(1))?;
        let time = time_of(gpu, plan, |i| {
            let input = inputs[i % inputs.len()] as *const c_void;
            let [output, workspace] =
                [output.view().device_address(), workspace.view().device_address()].map(|at| at as *mut c_void);
            // SAFETY: the plan is alive; the input is device memory with the plan's elements, the output has 8 bytes
            // for each result, and the workspace the size that the plan needs.
            unsafe { reduce(made.plan, input, output, workspace, stream_of(gpu)) }
        })?;
        Ok(Some(Called::new("cutensorReduce", time)))
    }

    /// A plan that `make` makes; `None` if cuTENSOR lacks the operation.
    fn plan(&self, make: impl FnOnce(*mut *mut c_void) -> c_int) -> anyhow::Result<Option<CuTensorPlan<'_>>> {
        let mut plan = std::ptr::null_mut();
        match make(&mut plan) {
            0 => Ok(Some(CuTensorPlan { library: &self.0, plan })),
            -1 => Ok(None),
            status => bail!("cuTENSOR, asked for a plan: status {status}"),
        }
    }
}

const OLD: &str = "the library has no such function: build it again";

fn wide(extents: &[usize]) -> Vec<i64> {
    extents.iter().map(|&extent| extent as i64).collect()
}

fn numbers(axes: &[usize]) -> Vec<c_int> {
    axes.iter().map(|&axis| axis as c_int).collect()
}

/// The line that names each peer's calls, above a table: those of the rows, each once. `None` without peers.
pub fn calls_of<'a>(peers: &[(&str, Option<&str>, Vec<&'a str>)]) -> Option<String> {
    let named = peers.iter().filter(|(.., calls)| !calls.is_empty()).map(|(name, version, calls)| {
        let mut distinct: Vec<&'a str> = Vec::new();
        for call in calls {
            if !distinct.contains(call) {
                distinct.push(call);
            }
        }
        let version = version.map_or_else(String::new, |version| format!(" {version}"));
        format!("{name}{version}: {}", distinct.join(", "))
    });
    let all: Vec<_> = named.collect();
    (!all.is_empty()).then(|| format!("Peers. {}.", all.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_peer_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        for (name, file) in [("CUB", "cub"), ("cuBLAS", "cublas"), ("cuTENSOR", "cutensor")] {
            let message = open(folder.path(), name, file).unwrap_err();
            let library = format!("libwarpfold_{file}.so");
            let build = format!("{}/build.sh builds it", folder.path().display());
            for part in [&format!("without {name}: "), &library, &build] {
                assert!(message.contains(part), "`{part}` is not in: {message}");
            }
        }
        assert!(CuTensor::find(folder.path()).is_none());
    }

    #[test]
    fn each_call_is_named_once() {
        let calls = |calls: &[&'static str]| calls.to_vec();
        let peers = [
            ("CUB", Some("3.6.0"), calls(&["DeviceReduce::Reduce", "DeviceReduce::Min", "DeviceReduce::Reduce"])),
            ("cuBLAS", None, calls(&[])),
            ("PyTorch", None, calls(&["torch.sum"])),
        ];
        let line = calls_of(&peers).unwrap();
        assert_eq!(line, "Peers. CUB 3.6.0: DeviceReduce::Reduce, DeviceReduce::Min; PyTorch: torch.sum.");
        assert_eq!(calls_of(&peers[1..2]), None);
    }
}
