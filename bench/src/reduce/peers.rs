//! CUB, cuBLAS and PyTorch, if they are installed: the first two in libraries that are loaded, PyTorch in a process.

use std::ffi::{c_int, c_void};
use std::path::Path;

use anyhow::{Context, bail};
use libloading::Library;
use warpfold::{Buffer, Error, Gpu, View};

use super::cases::{Case, name_of};
use super::extent::{Axis, Extent};
use super::operators::Operator;
use crate::element::ElementType;
use crate::measure::{Plan, Timing};
use crate::pytorch::PyTorch;

/// The peers that were requested and found.
#[derive(Default)]
pub struct Peers {
    cub: Option<Library>,
    cublas: Option<Library>,
    pytorch: Option<PyTorch>,
}

/// `warpfold_cub_TYPE` of `peers/cub.cu`.
type Reduce = unsafe extern "C" fn(
    operator: c_int,
    input: *const c_void,
    output: *mut c_void,
    index: *mut c_void,
    rows: i64,
    length: i64,
    offsets: *const c_void,
    scratch: *mut c_void,
    scratch_bytes: *mut usize,
    stream: *mut c_void,
) -> c_int;

/// `warpfold_cub_reproducible_TYPE` of `peers/cub_reproducible.cu`.
type ReproducibleSum =
    unsafe extern "C" fn(input: *const c_void, output: *mut c_void, length: i64, stream: *mut c_void) -> c_int;

/// `warpfold_cublas_reduce` of `peers/cublas.cu`.
type NormOrDot = unsafe extern "C" fn(
    dtype: c_int,
    input: *const c_void,
    other: *const c_void,
    output: *mut c_void,
    length: i64,
    stream: *mut c_void,
) -> c_int;

impl Peers {
    /// Looks for the peers in `folder`, and reports the missing ones.
    pub fn find(folder: &Path) -> Self {
        let load = |name, file| {
            let library = folder.join("build").join(file);
            // SAFETY: the library that `peers/build.sh` has made runs nothing when it is loaded.
            unsafe { Library::new(&library) }
                .inspect_err(|error| eprintln!("without {name}: {error}; {}/build.sh builds it", folder.display()))
                .ok()
        };
        Self {
            cub: load("CUB", "libwarpfold_cub.so"),
            cublas: load("cuBLAS", "libwarpfold_cublas.so"),
            pytorch: PyTorch::find(folder),
        }
    }

    /// The version of CUB that the library was compiled with: `3.6.0`.
    pub fn cub_version(&self) -> Option<String> {
        // SAFETY: `peers/cub.cu` defines it with this signature; an older library lacks it.
        let version =
            unsafe { self.cub.as_ref()?.get::<unsafe extern "C" fn() -> c_int>(b"warpfold_cub_version").ok()? };
        // SAFETY: it returns a constant.
        let version = unsafe { version() };
        Some(format!("{}.{}.{}", version / 100_000, version / 100 % 1000, version % 100))
    }

    /// CUB's times, back to back and alone, if CUB has such a reduction. `offsets` are the offsets of segments, if any.
    pub fn cub(
        &self,
        gpu: &Gpu,
        plan: &Plan,
        case: &Case,
        inputs: &[u64],
        offsets: View<'_, u64>,
    ) -> anyhow::Result<Option<(Timing, Timing)>> {
        let Some(library) = &self.cub else { return Ok(None) };
        let operator = match case.operator {
            Operator::Sum => 0,
            Operator::Min => 1,
            Operator::Max => 2,
            Operator::ArgMin => 3,
            Operator::ArgMax => 4,
            _ => return Ok(None),
        };
        let Extent { rows, columns, axis } = case.extent;
        if matches!(axis, Axis::Columns | Axis::Middle(_)) {
            return Ok(None);
        }
        let name = format!("warpfold_cub_{}", case.dtype);
        // SAFETY: `peers/cub.cu` defines it with this signature.
        let reduce = unsafe { library.get::<Reduce>(name.as_bytes()) }.context("the library has no such function")?;
        let (output, index) = (gpu.zeroed::<u64>(rows)?, gpu.zeroed::<u64>(rows)?);
        let pointer = |buffer: &Buffer<u64>| buffer.view().device_address() as *mut c_void;
        let offsets = match axis {
            Axis::Skewed => offsets.device_address() as *const c_void,
            _ => std::ptr::null(),
        };
        let call = |input: u64, scratch: *mut c_void, bytes: &mut usize| {
            // SAFETY: the memory is the device's and large enough: `bytes` is the size that a first call returned, the
            // input has the case's elements, and outputs have up to 8 bytes.
            unsafe {
                reduce(
                    operator,
                    input as *const c_void,
                    pointer(&output),
                    pointer(&index),
                    rows as i64,
                    columns as i64,
                    offsets,
                    scratch,
                    bytes,
                    stream_of(gpu),
                )
            }
        };
        let mut bytes = 0;
        match call(inputs[0], std::ptr::null_mut(), &mut bytes) {
            0 => {}
            -1 => return Ok(None),
            error => bail!("CUB, asked for its scratch size: CUDA error {error}"),
        }
        let scratch = gpu.zeroed::<u8>(bytes.max(1))?;
        let scratch = scratch.view().device_address() as *mut c_void;
        let mut failed = 0;
        let mut start = |i: usize| {
            let error = call(inputs[i % inputs.len()], scratch, &mut bytes);
            if error != 0 {
                failed = error;
            }
            Ok::<_, Error>(())
        };
        let times = (plan.time_recorded(gpu, &mut start)?, plan.time_alone(gpu, &mut start)?);
        if failed != 0 {
            bail!("CUB: CUDA error {failed}");
        }
        Ok(Some(times))
    }

    /// The time of CUB's sum with the same result on every GPU (`gpu_to_gpu`), if CUB has it for this case.
    pub fn reproducible_cub(
        &self,
        gpu: &Gpu,
        plan: &Plan,
        case: &Case,
        inputs: &[u64],
    ) -> anyhow::Result<Option<Timing>> {
        let is_sum = case.operator == Operator::Sum && case.extent.axis == Axis::All;
        let Some(library) = self.cub.as_ref().filter(|_| is_sum && case.data.is_some()) else { return Ok(None) };
        let name = format!("warpfold_cub_reproducible_{}", case.dtype);
        // SAFETY: `peers/cub_reproducible.cu` defines it with this signature, for some types.
        let Ok(sum) = (unsafe { library.get::<ReproducibleSum>(name.as_bytes()) }) else { return Ok(None) };
        let output = gpu.zeroed::<u64>(1)?;
        let call = |i: usize| {
            let (input, output) = (inputs[i % inputs.len()], output.view().device_address());
            // SAFETY: the memory is the device's; the input has the case's elements, and the output has 8 bytes.
            unsafe { sum(input as *const c_void, output as *mut c_void, case.extent.columns as i64, stream_of(gpu)) }
        };
        time_of(gpu, plan, call).context("CUB's gpu_to_gpu sum").map(Some)
    }

    /// The time of cuBLAS's norm or dot product, if it has the case. The dot product is that of `inputs` and `others`.
    pub fn cublas(
        &self,
        gpu: &Gpu,
        plan: &Plan,
        case: &Case,
        inputs: &[u64],
        others: Option<&[u64]>,
    ) -> anyhow::Result<Option<Timing>> {
        let has = matches!(case.operator, Operator::Norm | Operator::Dot) && case.extent.axis == Axis::All;
        let Some(library) = self.cublas.as_ref().filter(|_| has) else { return Ok(None) };
        let dtype = match case.dtype {
            ElementType::F32 => 0,
            ElementType::F64 => 1,
            ElementType::F16 => 2,
            ElementType::Bf16 => 3,
            _ => return Ok(None),
        };
        // SAFETY: `peers/cublas.cu` defines it with this signature.
        let reduce = unsafe { library.get::<NormOrDot>(b"warpfold_cublas_reduce") }
            .context("the library has no such function")?;
        let output = gpu.zeroed::<u64>(1)?;
        let output = output.view().device_address() as *mut c_void;
        let call = |i: usize| {
            let input = inputs[i % inputs.len()] as *const c_void;
            let other = others.map_or(std::ptr::null(), |others| others[i % others.len()] as *const c_void);
            // SAFETY: the memory is the device's; each input has the case's elements, and the output has 8 bytes.
            unsafe { reduce(dtype, input, other, output, case.extent.columns as i64, stream_of(gpu)) }
        };
        time_of(gpu, plan, call).context("cuBLAS").map(Some)
    }

    /// PyTorch's time in microseconds, if PyTorch has such a reduction.
    pub fn pytorch(&mut self, case: &Case) -> Option<f64> {
        self.pytorch.as_mut()?.time(&question(case)?)
    }
}

/// The stream of a peer's calls. Inside a recording, this is the recording's stream.
fn stream_of(gpu: &Gpu) -> *mut c_void {
    gpu.cuda_stream().unwrap_or(std::ptr::null_mut())
}

/// The time of a peer's call, back to back. The call takes its number, and returns 0 or an error's number.
fn time_of(gpu: &Gpu, plan: &Plan, call: impl Fn(usize) -> c_int) -> anyhow::Result<Timing> {
    let mut failed = 0;
    let time = plan.time_recorded(gpu, &mut |i| {
        let error = call(i);
        if error != 0 {
            failed = error;
        }
        Ok::<_, Error>(())
    })?;
    anyhow::ensure!(failed == 0, "error {failed}");
    Ok(time)
}

/// The question for PyTorch, if PyTorch has such a reduction.
fn question(case: &Case) -> Option<serde_json::Value> {
    let Case { operator, dtype, extent, offset, data } = case;
    // The operators for which `peers/pytorch.py` has a call.
    let has = matches!(
        operator,
        Operator::Sum
            | Operator::Product
            | Operator::Min
            | Operator::Max
            | Operator::ArgMin
            | Operator::ArgMax
            | Operator::Mean
            | Operator::Norm
            | Operator::Dot
    ) || *operator == Operator::SumOfSquares && extent.axis == Axis::All;
    (has && *offset == 0 && data.is_none() && extent.axis != Axis::Skewed).then(|| {
        serde_json::json!({
            "op": name_of(operator), "dtype": dtype,
            "rows": extent.rows, "columns": extent.columns, "axis": extent.axis,
        })
    })
}
