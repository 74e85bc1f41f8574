//! The driver's errors as errors of this crate.

use cuda_driver::CUresult;
use cust::error::CudaError;

use crate::Error;

/// The errors from here to `LAST_FAULT` are kernel faults, from a broken stack to a failed launch. Each of them
/// destroys the context.
const FIRST_FAULT: CUresult = CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR;
const LAST_FAULT: CUresult = CUresult::CUDA_ERROR_LAUNCH_FAILED;

/// Converts a driver error that occurred in `operation`.
pub(super) fn failed<E: Into<CudaError>>(operation: &'static str) -> impl Fn(E) -> Error {
    move |error| {
        let error = error.into();
        match error.code() {
            CUresult::CUDA_ERROR_ILLEGAL_ADDRESS => Error::Trap { operation },
            code if (FIRST_FAULT..=LAST_FAULT).contains(&code) => Error::Trap { operation },
            CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
            | CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
            | CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT => Error::Recording { operation },
            CUresult(code) => Error::Cuda { operation, code, name: name(error) },
        }
    }
}

/// The driver's name for an error, or the function that the driver lacks.
pub(super) fn name(error: CudaError) -> String {
    match error {
        CudaError::MissingFunction(missing) => missing.to_string(),
        error => error.name(),
    }
}

/// Whether an error of loading a module is about its PTX.
pub(super) fn refuses_ptx(code: CUresult) -> bool {
    [
        CUresult::CUDA_ERROR_INVALID_IMAGE,
        CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU,
        CUresult::CUDA_ERROR_INVALID_PTX,
        CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
        CUresult::CUDA_ERROR_INVALID_SOURCE,
    ]
    .contains(&code)
}
