//! Kernels, their attributes, and launches.

use std::ffi::{CString, c_int, c_void};
use std::ptr;

use cuda_driver::{CUfunction, CUfunction_attribute};

use crate::context::{CacheConfig, Context};
use crate::error::{CudaError, CudaResult};
use crate::memory::DeviceCopy;
use crate::module::Module;

macro_rules! dimensions {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub struct $name {
                /// The size along x.
                pub x: u32,
                /// The size along y.
                pub y: u32,
                /// The size along z.
                pub z: u32,
            }

            impl $name {
                /// A size along x, and 1 along y and z.
                #[inline]
                pub const fn x(x: u32) -> Self {
                    Self::xyz(x, 1, 1)
                }

                /// A size along x and y, and 1 along z.
                #[inline]
                pub const fn xy(x: u32, y: u32) -> Self {
                    Self::xyz(x, y, 1)
                }

                /// A size along x, y and z.
                #[inline]
                pub const fn xyz(x: u32, y: u32, z: u32) -> Self {
                    Self { x, y, z }
                }

                /// The product of the sizes, saturated to the driver's type.
                fn product(self) -> c_int {
                    let product = u64::from(self.x).saturating_mul(self.y.into()).saturating_mul(self.z.into());
                    c_int::try_from(product).unwrap_or(c_int::MAX)
                }
            }

            impl From<u32> for $name {
                fn from(x: u32) -> Self {
                    Self::x(x)
                }
            }

            impl From<(u32, u32)> for $name {
                fn from((x, y): (u32, u32)) -> Self {
                    Self::xy(x, y)
                }
            }

            impl From<(u32, u32, u32)> for $name {
                fn from((x, y, z): (u32, u32, u32)) -> Self {
                    Self::xyz(x, y, z)
                }
            }

            impl From<&$name> for $name {
                fn from(size: &$name) -> Self {
                    *size
                }
            }
        )*
    };
}

dimensions! {
    /// The number of blocks of a grid along each axis.
    GridSize;
    /// The number of threads of a block along each axis.
    BlockSize;
}

/// A property of a kernel, for [`Function::get_attribute`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FunctionAttribute {
    /// The maximum number of threads of the kernel's blocks.
    MaxThreadsPerBlock,
    /// Bytes of static shared memory.
    SharedMemorySizeBytes,
    /// Bytes of constant memory.
    ConstSizeBytes,
    /// Bytes of local memory per thread.
    LocalSizeBytes,
    /// Registers per thread.
    NumRegisters,
    /// Ten times the PTX version that the kernel was compiled for.
    PtxVersion,
    /// Ten times the compute capability that the kernel was compiled for.
    BinaryVersion,
    /// Whether global loads are cached in L1.
    CacheModeCa,
}

impl FunctionAttribute {
    fn to_raw(self) -> CUfunction_attribute {
        match self {
            Self::MaxThreadsPerBlock => CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
            Self::SharedMemorySizeBytes => CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
            Self::ConstSizeBytes => CUfunction_attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES,
            Self::LocalSizeBytes => CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
            Self::NumRegisters => CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS,
            Self::PtxVersion => CUfunction_attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION,
            Self::BinaryVersion => CUfunction_attribute::CU_FUNC_ATTRIBUTE_BINARY_VERSION,
            Self::CacheModeCa => CUfunction_attribute::CU_FUNC_ATTRIBUTE_CACHE_MODE_CA,
        }
    }
}

/// A kernel in a [`Module`].
#[derive(Debug)]
pub struct Function<'a> {
    raw: CUfunction,
    module: &'a Module,
}

// SAFETY: the driver takes a kernel's handle from any thread.
unsafe impl Send for Function<'_> {}
// SAFETY: as above, and from several threads at once.
unsafe impl Sync for Function<'_> {}

impl Module {
    /// Looks up a kernel by its name in the PTX.
    ///
    /// # Errors
    /// [`CudaError::NotFound`] if the module has no kernel of that name.
    pub fn get_function<T: AsRef<str>>(&self, name: T) -> CudaResult<Function<'_>> {
        let name = CString::new(name.as_ref()).map_err(|_| CudaError::NotFound)?;
        let mut function = ptr::null_mut();
        let entered = self.context().enter()?;
        // SAFETY: the handle is alive; writes a handle that is valid while the module is loaded.
        unsafe { entered.driver().cuModuleGetFunction(&mut function, self.as_inner(), name.as_ptr())? };
        Ok(Function { raw: function, module: self })
    }
}

impl<'a> Function<'a> {
    pub(crate) fn context(&self) -> &'a Context {
        self.module.context()
    }

    /// A property of the kernel.
    ///
    /// # Errors
    /// An error of the driver.
    pub fn get_attribute(&self, attribute: FunctionAttribute) -> CudaResult<i32> {
        let entered = self.context().enter()?;
        let mut value = 0;
        // SAFETY: writes one integer; the module is loaded.
        unsafe { entered.driver().cuFuncGetAttribute(&mut value, attribute.to_raw(), self.raw)? };
        Ok(value)
    }

    /// Sets the kernel's preferred split of on-chip memory. The driver may choose another one.
    ///
    /// # Errors
    /// An error of the driver.
    pub fn set_cache_config(&mut self, config: CacheConfig) -> CudaResult<()> {
        let entered = self.context().enter()?;
        // SAFETY: the module is loaded.
        unsafe { entered.driver().cuFuncSetCacheConfig(self.raw, config.to_raw())? };
        Ok(())
    }

    /// The maximum dynamic shared memory per block, in bytes, with which `blocks` blocks fit on a multiprocessor.
    ///
    /// # Errors
    /// `blocks` is more than a multiprocessor can run, or an error of the driver.
    pub fn available_dynamic_shared_memory_per_block(&self, blocks: GridSize, block: BlockSize) -> CudaResult<usize> {
        let entered = self.context().enter()?;
        let mut bytes = 0;
        // SAFETY: writes one size; the module is loaded.
        unsafe {
            entered.driver().cuOccupancyAvailableDynamicSMemPerBlock(
                &mut bytes,
                self.raw,
                blocks.product(),
                block.product(),
            )?;
        }
        Ok(bytes)
    }

    /// The maximum number of blocks of this size that are resident on a multiprocessor at once.
    ///
    /// # Errors
    /// An error of the driver.
    pub fn max_active_blocks_per_multiprocessor(&self, block: BlockSize, dynamic_shared: usize) -> CudaResult<u32> {
        let entered = self.context().enter()?;
        let mut blocks = 0;
        // SAFETY: writes one integer; the module is loaded.
        unsafe {
            entered.driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut blocks,
                self.raw,
                block.product(),
                dynamic_shared,
            )?;
        }
        Ok(blocks.max(0) as u32)
    }

    /// The number of blocks, and of threads per block, with which the kernel fills the device. `limit` is the maximum
    /// size of a block, or 0 for no limit.
    ///
    /// # Errors
    /// An error of the driver.
    pub fn suggested_launch_configuration(&self, dynamic_shared: usize, limit: BlockSize) -> CudaResult<(u32, u32)> {
        let entered = self.context().enter()?;
        let (mut blocks, mut threads) = (0, 0);
        // SAFETY: writes two integers; the module is loaded.
        unsafe {
            entered.driver().cuOccupancyMaxPotentialBlockSize(
                &mut blocks,
                &mut threads,
                self.raw,
                None,
                dynamic_shared,
                limit.product(),
            )?;
        }
        Ok((blocks.max(0) as u32, threads.max(0) as u32))
    }

    /// The kernel's handle, valid as long as its module is loaded.
    #[inline]
    pub fn to_raw(&self) -> CUfunction {
        self.raw
    }
}

/// A pointer to an argument, for [`Stream::launch`](crate::stream::Stream::launch).
#[doc(hidden)]
#[inline]
pub fn argument<T: DeviceCopy>(value: &T) -> *mut c_void {
    ptr::from_ref(value).cast_mut().cast()
}

/// Launches a kernel: `launch!(function<<<grid, block, shared, stream>>>(arguments))`.
///
/// - `function` is the name of a variable, a [`Function`](crate::function::Function), or `module.name`, which looks the
///   name up at each launch.
/// - `grid` converts to a [`GridSize`](crate::function::GridSize), and `block` to a
///   [`BlockSize`](crate::function::BlockSize).
/// - `shared` is the dynamic shared memory in bytes.
/// - `stream` is the name of a variable.
/// - Each argument is evaluated once. A slice of the kernel takes two arguments: the address, and the length in
///   elements.
///
/// The value is a [`CudaResult`](crate::error::CudaResult) of the launch. A later call returns an error of the kernel
/// itself.
///
/// ```no_run
/// use cust::prelude::*;
///
/// # fn launched(module: &Module, stream: &Stream) -> Result<(), cust::error::CudaError> {
/// let x = [1_u32, 2, 3, 4].as_dbuf()?;
/// // SAFETY: the kernel is `fn count(x: &[u32])`, and no other code uses `x` until the stream is done.
/// unsafe { launch!(module.count<<<1, 4, 0, stream>>>(x.as_device_ptr(), x.len()))? };
///
/// let count = module.get_function("count")?;
/// // SAFETY: as above.
/// unsafe { launch!(count<<<(2, 1), (2, 1, 1), 0, stream>>>(x.as_device_ptr(), x.len()))? };
/// stream.synchronize()
/// # }
/// ```
///
/// # Safety
/// The macro is an unsafe expression: see [`Stream::launch`](crate::stream::Stream::launch).
#[macro_export]
macro_rules! launch {
    ($module:ident . $function:ident
        <<<$grid:expr, $block:expr, $shared:expr, $stream:ident>>>($($argument:expr),* $(,)?)) => {
        match $module.get_function(::core::stringify!($function)) {
            ::core::result::Result::Ok(function) => {
                $crate::launch!(function<<<$grid, $block, $shared, $stream>>>($($argument),*))
            }
            ::core::result::Result::Err(error) => ::core::result::Result::Err(error),
        }
    };
    ($function:ident
        <<<$grid:expr, $block:expr, $shared:expr, $stream:ident>>>($($argument:expr),* $(,)?)) => {
        $stream.launch(&$function, $grid, $block, $shared, &[$($crate::function::argument(&$argument)),*])
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_convert_from_one_to_three_numbers() {
        assert_eq!(GridSize::from(3), GridSize { x: 3, y: 1, z: 1 });
        assert_eq!(BlockSize::from((3, 4)), BlockSize::xy(3, 4));
        assert_eq!(BlockSize::from((3, 4, 5)), BlockSize::from(&BlockSize::xyz(3, 4, 5)));
    }

    #[test]
    fn a_product_saturates() {
        assert_eq!(BlockSize::from(0).product(), 0);
        assert_eq!(BlockSize::xyz(8, 4, 2).product(), 64);
        assert_eq!(GridSize::xyz(u32::MAX, u32::MAX, u32::MAX).product(), c_int::MAX);
    }
}
