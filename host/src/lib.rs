//! Reductions and transposes for NVIDIA GPUs, in Rust from end to end.
//!
//! ```
//! use warpfold::Gpu;
//!
//! // The first CUDA device, or the SIMT executor on this machine's cores: the calls are the same, and so are the bits.
//! let gpu = Gpu::first_or_simt()?;
//!
//! let x = gpu.upload(&[1.5_f32, 2.5, 3.0])?;
//! assert_eq!(gpu.sum(&x)?, 7.0);
//!
//! let a = gpu.upload_matrix(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], 2, 3)?;
//! let t = gpu.transpose(&a)?;
//! assert_eq!((t.rows(), t.columns()), (3, 2));
//! assert_eq!(gpu.download_matrix(&t)?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
//! # Ok::<(), warpfold::Error>(())
//! ```
//!
//! Without a GPU, kernels can be examined: [`Gpu::profile`] counts their memory accesses, and [`Gpu::simt`] checks them
//! for races and other errors.
//!
//! [`Gpu::launch`] launches custom kernels, written with `cuda_std` and built by `cuda_builder`, with checked
//! arguments. The feature `ladder`, off by default, adds the module `ladder`: the teaching kernels by name.
//!
//! Nothing here panics or is undefined for any argument: what cannot be done is an [`Error`] that names it. Functions
//! whose requirements cannot be checked are in [`interop`], and unsafe.

mod argument;
mod backend;
mod buffer;
mod device;
mod error;
mod gpu;
pub mod interop;
#[cfg(feature = "ladder")]
pub mod ladder;
mod matrix;
pub mod occupancy;
pub mod ptx;
mod recording;
pub mod reduce;
mod transpose;
#[cfg(feature = "simt")]
mod watch;

pub use reduce::{ExactElement, ExactSums, PairReducer, PairReduction, Reducer, Reduction, SegmentReducer, Shape};
#[doc(inline)]
pub use transpose::{ScaledElement, Scaling, Transposition};

pub use argument::Host;
pub use backend::KernelOccupancy;
pub use buffer::{Buffer, View, ViewMut};
pub use cuda_std::element::{Element, Plain};
pub use cuda_std::launch::{AnyBlock, Dim3, Kernel, KernelId, Parameters};
pub use device::DeviceInfo;
pub use error::Error;
pub use exact_sum as exact;
pub use gpu::Gpu;
pub use kernels::ops;
pub use matrix::Matrix;
pub use num_complex;
pub use recording::Recording;
#[cfg(feature = "simt")]
pub use simt::{
    AtomicTraffic, Check, Counters, Fault, Finding, Findings, GlobalTraffic, KernelProfile, Line, Profile, Schedule,
    SharedTraffic, ThreadEvent,
};
#[cfg(feature = "simt")]
pub use watch::{SimtOptions, under_schedules};

/// Grids are planned for this device, whichever runs them: the computation and its order depend on the shape alone.
pub(crate) use kernels::MULTIPROCESSORS;
