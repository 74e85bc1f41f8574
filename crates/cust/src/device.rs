//! Devices and their properties.

use std::ffi::{c_char, c_int};
use std::ops::Range;

use cuda_driver::{CUdevice, CUdevice_attribute};

use crate::driver;
use crate::error::{CudaError, CudaResult};

macro_rules! attributes {
    ($($variant:ident = $value:literal, $doc:literal;)*) => {
        /// A property of a device, for [`Device::get_attribute`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[repr(u32)]
        pub enum DeviceAttribute {
            $(
                #[doc = $doc]
                $variant = $value,
            )*
        }
    };
}

attributes! {
    MaxThreadsPerBlock = 1, "The maximum number of threads of a block.";
    MaxBlockDimX = 2, "The maximum number of threads of a block along x.";
    MaxBlockDimY = 3, "The maximum number of threads of a block along y.";
    MaxBlockDimZ = 4, "The maximum number of threads of a block along z.";
    MaxGridDimX = 5, "The maximum number of blocks of a grid along x.";
    MaxGridDimY = 6, "The maximum number of blocks of a grid along y.";
    MaxGridDimZ = 7, "The maximum number of blocks of a grid along z.";
    MaxSharedMemoryPerBlock = 8, "The maximum shared memory of a block in bytes.";
    TotalConstantMemory = 9, "The size of constant memory in bytes.";
    WarpSize = 10, "The number of threads of a warp.";
    MaxPitch = 11, "The maximum pitch of the driver's copies in bytes.";
    MaxRegistersPerBlock = 12, "The maximum number of 32-bit registers of a block.";
    ClockRate = 13, "The clock rate in kHz.";
    TextureAlignment = 14, "The alignment of textures in bytes.";
    MultiprocessorCount = 16, "The number of multiprocessors.";
    KernelExecTimeout = 17, "Whether kernels have a time limit.";
    Integrated = 18, "Whether the device uses the host's memory.";
    CanMapHostMemory = 19, "Whether host memory can be mapped.";
    ComputeMode = 20, "The compute mode: 0 any process may use the device, 2 none, 3 only one at a time.";
    SurfaceAlignment = 30, "The alignment of surfaces in bytes.";
    ConcurrentKernels = 31, "Whether kernels may run at the same time.";
    EccEnabled = 32, "Whether ECC is on.";
    PciBusId = 33, "The PCI bus number.";
    PciDeviceId = 34, "The PCI device number.";
    TccDriver = 35, "Whether the driver is a TCC driver.";
    MemoryClockRate = 36, "The clock rate of the memory in kHz.";
    GlobalMemoryBusWidth = 37, "The width of the memory bus in bits.";
    L2CacheSize = 38, "The size of the L2 cache in bytes.";
    MaxThreadsPerMultiprocessor = 39, "The maximum number of resident threads of a multiprocessor.";
    AsyncEngineCount = 40, "The number of engines that can copy while kernels run.";
    UnifiedAddressing = 41, "Whether host and device share an address space.";
    PciDomainId = 50, "The PCI domain number.";
    TexturePitchAlignment = 51, "The alignment of the pitch of a texture in bytes.";
    ComputeCapabilityMajor = 75, "The major compute capability: 9 for 9.0.";
    ComputeCapabilityMinor = 76, "The minor compute capability: 0 for 9.0.";
    StreamPrioritiesSupported = 78, "Whether streams have priorities.";
    GlobalL1CacheSupported = 79, "Whether global memory is cached in L1.";
    LocalL1CacheSupported = 80, "Whether local memory is cached in L1.";
    MaxSharedMemoryPerMultiprocessor = 81, "The shared memory of a multiprocessor in bytes.";
    MaxRegistersPerMultiprocessor = 82, "The number of 32-bit registers of a multiprocessor.";
    ManagedMemory = 83, "Whether the device supports managed memory.";
    MultiGpuBoard = 84, "Whether the device shares a board with other devices.";
    MultiGpuBoardGroupId = 85, "The identifier of that board.";
    HostNativeAtomicSupported = 86, "Whether the link to the host supports native atomics on host memory.";
    SingleToDoublePrecisionPerfRatio = 87, "The ratio of f32 to f64 performance.";
    PageableMemoryAccess = 88, "Whether kernels may access pageable memory.";
    ConcurrentManagedAccess = 89, "Whether the host may access managed memory while kernels run.";
    ComputePreemptionSupported = 90, "Whether kernels can be preempted.";
    CanUseHostPointerForRegisteredMem = 91, "Whether registered host memory has the same address on the device.";
    CooperativeLaunch = 95, "Whether the device supports cooperative launches, in which a grid can synchronize.";
    MaxSharedMemoryPerBlockOptin = 97, "The maximum shared memory of a block in bytes, if its kernel opts in.";
    MaxBlocksPerMultiprocessor = 106, "The maximum number of resident blocks of a multiprocessor.";
    MaxPersistingL2CacheSize = 108, "The maximum size of the L2 cache for persisting accesses, in bytes.";
    ReservedSharedMemoryPerBlock = 111, "The shared memory that the driver reserves in each block, in bytes.";
    MemoryPoolsSupported = 115, "Whether memory can be allocated in stream order.";
}

/// A CUDA device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    pub(crate) device: CUdevice,
}

impl Device {
    /// The number of devices.
    ///
    /// # Errors
    /// The driver is missing or not initialized.
    pub fn num_devices() -> CudaResult<u32> {
        let mut count = 0;
        // SAFETY: writes one integer.
        unsafe { driver()?.cuDeviceGetCount(&mut count)? };
        Ok(count.max(0) as u32)
    }

    /// The device of this ordinal, counted from 0.
    ///
    /// # Errors
    /// No device has that ordinal, or the driver is not initialized.
    pub fn get_device(ordinal: u32) -> CudaResult<Self> {
        let ordinal = c_int::try_from(ordinal).map_err(|_| CudaError::InvalidDevice)?;
        let mut device = 0;
        // SAFETY: writes one integer.
        unsafe { driver()?.cuDeviceGet(&mut device, ordinal)? };
        Ok(Self { device })
    }

    /// An iterator over all devices.
    ///
    /// # Errors
    /// The driver is missing or not initialized.
    pub fn devices() -> CudaResult<Devices> {
        Ok(Devices { range: 0..Self::num_devices()? })
    }

    /// The size of the device's memory in bytes.
    ///
    /// # Errors
    /// An error of the driver.
    pub fn total_memory(self) -> CudaResult<usize> {
        let mut bytes = 0;
        // SAFETY: writes one size; a device that does not exist is an error.
        unsafe { driver()?.cuDeviceTotalMem_v2(&mut bytes, self.device)? };
        Ok(bytes)
    }

    /// The device's name, such as `NVIDIA H200`.
    ///
    /// # Errors
    /// An error of the driver.
    pub fn name(self) -> CudaResult<String> {
        let mut name = [0_u8; 256];
        // SAFETY: writes at most the 256 bytes that `name` has.
        unsafe { driver()?.cuDeviceGetName(name.as_mut_ptr().cast::<c_char>(), name.len() as c_int, self.device)? };
        let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        Ok(String::from_utf8_lossy(&name[..length]).into_owned())
    }

    /// A property of the device.
    ///
    /// # Errors
    /// An error of the driver, for example because the driver is too old to know the property.
    pub fn get_attribute(self, attribute: DeviceAttribute) -> CudaResult<i32> {
        let mut value = 0;
        // SAFETY: writes one integer; a device or an attribute that does not exist is an error.
        unsafe { driver()?.cuDeviceGetAttribute(&mut value, CUdevice_attribute(attribute as u32), self.device)? };
        Ok(value)
    }

    /// The device's handle.
    pub fn as_raw(&self) -> CUdevice {
        self.device
    }
}

/// All devices, in the order of their ordinals: [`Device::devices`].
#[derive(Clone, Debug)]
pub struct Devices {
    range: Range<u32>,
}

impl Iterator for Devices {
    type Item = CudaResult<Device>;

    fn next(&mut self) -> Option<Self::Item> {
        self.range.next().map(Device::get_device)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.range.size_hint()
    }
}

impl ExactSizeIterator for Devices {}
