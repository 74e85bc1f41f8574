//! cuBLAS and PyTorch, if this machine has them.

use std::ffi::{c_int, c_void};
use std::path::Path;

use anyhow::{Context, bail};
use libloading::Library;
use warpfold::{Buffer, Error, Gpu, Plain};

use super::case::Case;
use super::kind::{FACTOR, Kind};
use crate::measure::{Plan, Timing};
use crate::pytorch::PyTorch;

/// The peers that were requested and found.
#[derive(Default)]
pub struct Peers {
    cublas: Option<Library>,
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
        let library = folder.join("build").join("libwarpfold_cublas.so");
        // SAFETY: the library that `peers/build.sh` has made runs nothing when it is loaded.
        let cublas = unsafe { Library::new(&library) }
            .inspect_err(|error| eprintln!("without cuBLAS: {error}; {}/build.sh builds it", folder.display()))
            .ok();
        Self { cublas, pytorch: PyTorch::find(folder) }
    }

    /// The time of cuBLAS, if it has such a transpose.
    pub fn geam<T: Plain>(
        &self,
        gpu: &Gpu,
        plan: &Plan,
        case: &Case,
        inputs: &[Buffer<T>],
        output: &mut Buffer<T>,
    ) -> anyhow::Result<Option<Timing>> {
        let Some(library) = &self.cublas else { return Ok(None) };
        let factor = match case.kind {
            Kind::Transpose => 1.0,
            Kind::Scaled => FACTOR,
            _ => return Ok(None),
        };
        if case.shape.batch > 1 || !matches!(case.size, 4 | 8 | 16) {
            return Ok(None);
        }
        // SAFETY: `peers/cublas.cu` defines it with this signature.
        let transpose = unsafe { library.get::<Transpose>(b"warpfold_cublas_transpose") }
            .context("the library has no such function")?;
        let output = output.view_mut().device_address() as *mut c_void;
        let (rows, columns) = (case.shape.rows as i64, case.shape.columns as i64);
        let mut failed = 0;
        let mut start = |i: usize| {
            let input = inputs[i % inputs.len()].view().device_address() as *const c_void;
            // Inside a recording this is the recording's stream.
            let stream = gpu.cuda_stream().unwrap_or(std::ptr::null_mut());
            // SAFETY: the input and the output are device memory, and both have the case's elements.
            let error = unsafe { transpose(case.size as c_int, factor, input, output, rows, columns, stream) };
            if error != 0 {
                failed = error;
            }
            Ok::<_, Error>(())
        };
        let timing = plan.time_recorded(gpu, &mut start)?;
        if failed != 0 {
            bail!("cuBLAS: status {failed}");
        }
        Ok(Some(timing))
    }

    /// PyTorch's time in microseconds.
    pub fn pytorch(&mut self, case: &Case) -> Option<f64> {
        // PyTorch has no transpose in place.
        self.pytorch.as_mut().filter(|_| case.kind != Kind::InPlace)?.time(&case.question())
    }
}
