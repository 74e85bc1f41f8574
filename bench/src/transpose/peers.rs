//! cuBLAS, cuTENSOR and PyTorch, if this machine has them.

use std::ffi::{c_int, c_void};
use std::path::Path;

use anyhow::Context;
use libloading::Library;
use warpfold::Gpu;

use super::case::Case;
use super::kind::{FACTOR, Kind};
use crate::measure::{Plan, Timing};
use crate::peers::{self, Called, CuTensor, Permutation, stream_of, time_of};
use crate::pytorch::PyTorch;

/// The peers that were requested and found.
#[derive(Default)]
pub struct Peers {
    cublas: Option<Library>,
    cutensor: Option<CuTensor>,
    pytorch: Option<PyTorch>,
}

/// `warpfold_cublas_transpose` of `peers/cublas.cu`.
type Transpose = unsafe extern "C" fn(
    size: c_int,
    factor: f64,
    input: *const c_void,
    output: *mut c_void,
    rows: i64,
    columns: i64,
    stream: *mut c_void,
) -> c_int;

impl Peers {
    /// Looks for the peers in `folder`, and reports the missing ones.
    pub fn find(folder: &Path) -> Self {
        Self {
            cublas: peers::load(folder, "cuBLAS", "cublas"),
            cutensor: CuTensor::find(folder),
            pytorch: PyTorch::find(folder),
        }
    }

    /// The version of cuTENSOR that was loaded.
    pub fn cutensor_version(&self) -> Option<String> {
        self.cutensor.as_ref()?.version()
    }

    /// The time of cuBLAS, if it has such a transpose. The inputs and the output have the case's elements.
    pub fn geam(
        &self,
        gpu: &Gpu,
        plan: &Plan,
        case: &Case,
        inputs: &[u64],
        output: u64,
    ) -> anyhow::Result<Option<Called<Timing>>> {
        let Some(library) = &self.cublas else { return Ok(None) };
        let factor = match case.kind {
            Kind::Transpose => 1.0,
            Kind::Scaled => FACTOR,
            Kind::InPlace | Kind::Permute => return Ok(None),
        };
        let call = match case.size {
            4 => "cublasSgeam",
            8 => "cublasDgeam",
            16 => "cublasZgeam",
            _ => return Ok(None),
        };
        let Some([1, rows, columns]) = case.matrices().filter(|_| case.input.is_contiguous()) else { return Ok(None) };
        if case.input.is_empty() {
            return Ok(None);
        }
        // SAFETY: `peers/cublas.cu` defines it with this signature.
        let transpose = unsafe { library.get::<Transpose>(b"warpfold_cublas_transpose") }
            .context("the library has no such function")?;
        let (rows, columns) = (rows as i64, columns as i64);
        let time = time_of(gpu, plan, |i| {
            let (input, output) = (inputs[i % inputs.len()] as *const c_void, output as *mut c_void);
            // SAFETY: the input and the output are device memory, and both have the case's elements.
            unsafe { transpose(case.size as c_int, factor, input, output, rows, columns, stream_of(gpu)) }
        });
        Ok(Some(Called::new(call, time.context("cuBLAS")?)))
    }

    /// The time of cuTENSOR, if it has such a permutation. The inputs and the output have the case's elements.
    pub fn cutensor(
        &self,
        gpu: &Gpu,
        plan: &Plan,
        case: &Case,
        inputs: &[u64],
        output: u64,
    ) -> anyhow::Result<Option<Called<Timing>>> {
        let is_known = case.kind != Kind::InPlace && case.input.is_contiguous();
        let Some(library) = self.cutensor.as_ref().filter(|_| is_known) else { return Ok(None) };
        let factor = if case.kind == Kind::Scaled { FACTOR } else { 1.0 };
        let what = Permutation { size: case.size, factor, extents: case.input.extents(), axes: case.axes() };
        library.permute(gpu, plan, &what, inputs, output)
    }

    /// PyTorch's time in microseconds.
    pub fn pytorch(&mut self, case: &Case) -> Option<Called<f64>> {
        self.pytorch.as_mut()?.time(&case.question()?)
    }
}
