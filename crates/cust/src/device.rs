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
    MaxThreadsPerBlock = 1, "Threads of a block, at most.";
    MaxBlockDimX = 2, "Threads of a block along x, at most.";
    MaxBlockDimY = 3, "Threads of a block along y, at most.";
    MaxBlockDimZ = 4, "Threads of a block along z, at most.";
    MaxGridDimX = 5, "Blocks along x, at most.";
    MaxGridDimY = 6, "Blocks along y, at most.";
    MaxGridDimZ = 7, "Blocks along z, at most.";
    MaxSharedMemoryPerBlock = 8, "Bytes of shared memory of a block, at most.";
    TotalConstantMemory = 9, "Bytes of constant memory.";
    WarpSize = 10, "Threads of a warp.";
    MaxPitch = 11, "Bytes of a pitch, at most, in the driver's copies.";
    MaxRegistersPerBlock = 12, "32-bit registers of a block, at most.";
    ClockRate = 13, "Clock rate in kHz.";
    TextureAlignment = 14, "Bytes that textures are aligned to.";
    MultiprocessorCount = 16, "Multiprocessors.";
    KernelExecTimeout = 17, "Whether kernels have a time limit.";
    Integrated = 18, "Whether the device shares its memory with the host.";
    CanMapHostMemory = 19, "Whether the host's memory can be mapped.";
    ComputeMode = 20, "Who may use the device: 0 anyone, 2 no one, 3 one process.";
    SurfaceAlignment = 30, "Bytes that surfaces are aligned to.";
    ConcurrentKernels = 31, "Whether kernels may run at the same time.";
    EccEnabled = 32, "Whether ECC is on.";
    PciBusId = 33, "The PCI bus.";
    PciDeviceId = 34, "The PCI device.";
    TccDriver = 35, "Whether the driver is a TCC driver.";
    MemoryClockRate = 36, "Clock rate of the memory in kHz.";
    GlobalMemoryBusWidth = 37, "Bits of the bus to the memory.";
    L2CacheSize = 38, "Bytes of L2 cache.";
    MaxThreadsPerMultiprocessor = 39, "Threads of a multiprocessor, at most.";
    AsyncEngineCount = 40, "Engines that copy while kernels run.";
    UnifiedAddressing = 41, "Whether host and device share an address space.";
    PciDomainId = 50, "The PCI domain.";
    TexturePitchAlignment = 51, "Bytes that the pitches of textures are aligned to.";
    ComputeCapabilityMajor = 75, "The 9 of compute capability 9.0.";
    ComputeCapabilityMinor = 76, "The 0 of compute capability 9.0.";
    StreamPrioritiesSupported = 78, "Whether streams have priorities.";
    GlobalL1CacheSupported = 79, "Whether global memory is cached in L1.";
    LocalL1CacheSupported = 80, "Whether local memory is cached in L1.";
    MaxSharedMemoryPerMultiprocessor = 81, "Bytes of shared memory of a multiprocessor.";
    MaxRegistersPerMultiprocessor = 82, "32-bit registers of a multiprocessor.";
    ManagedMemory = 83, "Whether memory can be managed.";
    MultiGpuBoard = 84, "Whether the device is on a board with others.";
    MultiGpuBoardGroupId = 85, "Which board that is.";
    HostNativeAtomicSupported = 86, "Whether atomics on the host's memory are native on the link.";
    SingleToDoublePrecisionPerfRatio = 87, "How much faster f32 is than f64.";
    PageableMemoryAccess = 88, "Whether kernels may access pageable memory.";
    ConcurrentManagedAccess = 89, "Whether the host may access managed memory while kernels run.";
    ComputePreemptionSupported = 90, "Whether kernels can be preempted.";
    CanUseHostPointerForRegisteredMem = 91, "Whether registered host memory has one address.";
    CooperativeLaunch = 95, "Whether grids may synchronize.";
    MaxSharedMemoryPerBlockOptin = 97, "Bytes of shared memory of a block, at most, if its kernel asks for them.";
    MaxBlocksPerMultiprocessor = 106, "Blocks of a multiprocessor, at most.";
    MaxPersistingL2CacheSize = 108, "Bytes of L2 cache that can be set aside.";
    ReservedSharedMemoryPerBlock = 111, "Bytes of shared memory of each block that the system takes.";
    MemoryPoolsSupported = 115, "Whether memory can be allocated in the order of a stream.";
}

/// A CUDA device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    pub(crate) device: CUdevice,
}

impl Device {
    /// How many devices there are.
    ///
    /// # Errors
    /// The driver is not there, or not initialized.
    pub fn num_devices() -> CudaResult<u32> {
        let mut count = 0;
        // SAFETY: writes one integer.
        unsafe { driver()?.cuDeviceGetCount(&mut count)? };
        Ok(count.max(0) as u32)
    }

    /// The device `ordinal`, counted from 0.
    ///
    /// # Errors
    /// No device has that number, or the driver is not initialized.
    pub fn get_device(ordinal: u32) -> CudaResult<Self> {
        let ordinal = c_int::try_from(ordinal).map_err(|_| CudaError::InvalidDevice)?;
        let mut device = 0;
        // SAFETY: writes one integer.
        unsafe { driver()?.cuDeviceGet(&mut device, ordinal)? };
        Ok(Self { device })
    }

    /// All devices.
    ///
    /// # Errors
    /// The driver is not there, or not initialized.
    pub fn devices() -> CudaResult<Devices> {
        Ok(Devices { range: 0..Self::num_devices()? })
    }

    /// Bytes of its memory.
    ///
    /// # Errors
    /// An error of the driver.
    pub fn total_memory(self) -> CudaResult<usize> {
        let mut bytes = 0;
        // SAFETY: writes one size; a device that does not exist is an error.
        unsafe { driver()?.cuDeviceTotalMem_v2(&mut bytes, self.device)? };
        Ok(bytes)
    }

    /// Its name, as `NVIDIA H200`.
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

    /// One of its properties.
    ///
    /// # Errors
    /// An error of the driver, also where it is too old to know the property.
    pub fn get_attribute(self, attribute: DeviceAttribute) -> CudaResult<i32> {
        let mut value = 0;
        // SAFETY: writes one integer; a device or an attribute that does not exist is an error.
        unsafe { driver()?.cuDeviceGetAttribute(&mut value, CUdevice_attribute(attribute as u32), self.device)? };
        Ok(value)
    }

    /// Its handle.
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
