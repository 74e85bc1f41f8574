//! `wf.info`: the version, the driver and its devices.

use cust::device::Device;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The version of this package, the CUDA driver, and its devices, as a dict.
///
/// `driver` is the driver's CUDA version, or None if there is none; `why` then says what was tried. No CUDA context is
/// made. The driver is initialised, so do not call this before `os.fork()` if a child uses CUDA.
///
/// >>> import warpfold as wf
/// >>> sorted(wf.info())
/// ['devices', 'driver', 'threads', 'version', 'why']
#[pyfunction]
pub fn info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let info = PyDict::new(py);
    info.set_item("version", env!("CARGO_PKG_VERSION"))?;
    info.set_item("threads", warpfold::host::max_threads().get())?;
    let (driver, devices, why) = match cuda_driver::load() {
        Ok(driver) => {
            let (devices, why) = match devices() {
                Ok(devices) => (devices, None),
                Err(error) => (Vec::new(), Some(error.to_string())),
            };
            (Some(driver.version().to_string()), devices, why)
        }
        Err(error) => (None, Vec::new(), Some(error.to_string())),
    };
    info.set_item("driver", driver)?;
    info.set_item("devices", devices)?;
    info.set_item("why", why)?;
    Ok(info)
}

/// The names of the devices. No context is needed for these.
fn devices() -> cust::error::CudaResult<Vec<String>> {
    cust::init(cust::CudaFlags::empty())?;
    Device::devices()?.map(|device| device?.name()).collect()
}
