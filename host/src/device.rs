//! Properties of a device.

use crate::occupancy::Multiprocessor;

/// A device's name and limits. What the executor does not have is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The device's name.
    pub name: String,
    /// Compute capability, major and minor.
    pub compute_capability: Option<(u32, u32)>,
    /// Multiprocessors; in the executor, the cores that it uses.
    pub multiprocessors: u32,
    /// Bytes of memory.
    pub memory_bytes: usize,
    /// Bytes of the level-2 cache.
    pub l2_bytes: Option<usize>,
    /// The memory's clock, in kHz.
    pub memory_clock_khz: Option<u32>,
    /// The memory bus's width, in bits.
    pub memory_bus_bits: Option<u32>,
    /// The multiprocessors' peak clock, in kHz.
    pub clock_khz: Option<u32>,
    /// The limits of one multiprocessor.
    pub multiprocessor: Option<Multiprocessor>,
    /// The driver's CUDA version.
    pub driver: Option<cuda_driver::DriverVersion>,
}

impl DeviceInfo {
    /// The memory's theoretical bandwidth, in bytes per second: two transfers per clock, each as wide as the bus.
    pub fn theoretical_bandwidth(&self) -> Option<f64> {
        let clock = f64::from(self.memory_clock_khz?) * 1e3;
        Some(2.0 * clock * f64::from(self.memory_bus_bits?) / 8.0)
    }
}
