//! Reductions and transposes for NVIDIA GPUs, in Rust from end to end.
//!
//! ```
//! use warpfold::Gpu;
//!
//! // The first CUDA device, or the SIMT executor on this machine's cores (feature `simt`). `Gpu::new(0)` is a device.
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
//! # Installation
//! `cargo add warpfold` is all: any stable Rust from 1.88 on, no CUDA toolkit, no compiler for kernels. The package has
//! the kernels as PTX for compute capability 7.5, 8.0 and 9.0, which newer devices run, too; the driver, from CUDA 11.8
//! on, compiles a kernel when it is first used. Linux and Windows, 64 bits. Without a driver the program starts, and
//! [`Gpu::new`] is an error.
//!
//! | feature | adds |
//! |---|---|
//! | `simt` | the executor, which runs kernels on the CPU: [`Gpu::simt`], [`Gpu::first_or_simt`], [`Gpu::profile`] |
//! | `build-kernels` | compiles the kernels from source in place of the prebuilt ones |
//! | `serde` | exact sums ([`exact`]) are serialized by `serde` |
//! | `ladder` | the module `ladder`, the teaching kernels by name; includes `build-kernels` |
//!
//! None is on by default. `build-kernels` needs rustc 1.95 or later with `rustup component add rust-src`, and compiles
//! for the architectures in the environment variable `WARPFOLD_ARCHS` (`sm_80,sm_90`). Without that feature the
//! variable's only value is `none`: the program then has no PTX, and runs in the executor alone.
//!
//! # Choosing a backend
//! [`Gpu::new`] is a CUDA device. [`Gpu::first_or_simt`] is the first device, or the executor on a machine without one.
//! [`Gpu::simt`] is the executor with checks, for tests: it finds races and other errors of kernels, and
//! [`Gpu::profile`] counts their memory accesses. All give the same bits.
//!
//! In a debug build the executor takes 15 to 30 times what it takes in release, because cargo does not optimize
//! dependencies there. The program's `Cargo.toml` can ask for it:
//!
//! ```toml
//! [profile.dev.package."*"]
//! opt-level = 1
//! ```
//!
//! [`Gpu::launch`] launches custom kernels, written with `cuda_std` and built by `cuda_builder`, with checked
//! arguments.
//!
//! # Errors
//! Nothing here panics or is undefined for any argument: what cannot be done is an [`Error`] that names it. Functions
//! whose requirements cannot be checked are in [`interop`], and unsafe.

// Some links are to what the feature `simt` adds.
#![cfg_attr(not(feature = "simt"), allow(rustdoc::broken_intra_doc_links))]

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
pub use half;
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
