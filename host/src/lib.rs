//! Reductions and transposes for NVIDIA GPUs, in Rust from end to end. A sum of floats is exact, rounded once: the same
//! bits on any device, in any order, for any layout, and without a GPU.
//!
//! # Installation
//! ```sh
//! cargo add warpfold                  # the GPU alone
//! cargo add warpfold --features simt  # and the executor, which runs the same kernels on the CPU
//! ```
//!
//! Any stable Rust from 1.88 on builds it, without a CUDA toolkit or a compiler for kernels. The package has the
//! kernels as PTX for compute capability 7.5, 8.0 and 9.0, which newer devices run, too; the NVIDIA driver, from CUDA
//! 11.8 on, compiles a kernel when it is first used. The host is 64-bit Linux. (The library compiles for Windows, but
//! has not been run there.) Without a driver the program starts, and [`Gpu::new`] returns an error.
//!
//! # A first sum
//! ```
//! use warpfold::Gpu;
//!
//! // The first CUDA device, or the executor (feature `simt`). Without that feature, `Gpu::new(0)?`.
//! let gpu = Gpu::first_or_simt()?;
//!
//! let x = gpu.upload(&[1.5_f32, 2.5, 3.0])?;
//! assert_eq!(gpu.sum(&x)?, 7.0);
//! assert_eq!(gpu.argmax(&x)?, 2);
//!
//! let a = gpu.upload(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0])?.reshape(&[2, 3])?;
//! let t = gpu.transpose(&a)?;
//! assert_eq!(t.extents(), [3, 2]);
//! assert_eq!(gpu.download(&t)?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
//! # Ok::<(), warpfold::Error>(())
//! ```
//!
//! All functions are methods of [`Gpu`]. They take an [`Array`] or an [`ArrayView`] of one, of any rank and layout; a
//! [`Buffer`] or a [`View`] of a part of one is an array of one axis. [`Gpu::upload`] and [`Gpu::download`] copy from
//! and to the host; results stay on the device unless they are a single number. [`Gpu::reduce`] reduces along any axes,
//! by any operator in [`ops`]; a [`Reducer`] does the same for many inputs, and allocates its memory once:
//!
//! ```
//! use warpfold::{Gpu, ops};
//!
//! # let gpu = Gpu::simt();
//! let x = gpu.upload(&[1_i32, 5, 3, 4, 2, 6])?.reshape(&[2, 3])?;
//! assert_eq!(gpu.download(&gpu.reduce(ops::Max, &x, 1)?)?, [5, 6]);
//! // Of every second column.
//! assert_eq!(gpu.download(&gpu.reduce(ops::Max, x.view().slice(1, .., 2)?, 0)?)?, [4, 6]);
//! # Ok::<(), warpfold::Error>(())
//! ```
//!
//! # Choosing a backend
//! | | runs on | for |
//! |---|---|---|
//! | [`Gpu::new`] | a CUDA device | programs that need a GPU |
//! | [`Gpu::first_or_simt`] | the first device, or the executor on a machine without one | programs that run anywhere |
//! | [`Gpu::simt`] | the executor with checks | tests: it finds races and other errors of kernels |
//!
//! All give the same bits. [`Gpu::profile`] counts a kernel's memory accesses in the executor. The last two rows of the
//! table, and `Gpu::profile`, exist only with the feature `simt`.
//!
//! In a debug build the executor takes 10 to 17 times as long as in release, because cargo does not optimize
//! dependencies there. These lines in the program's `Cargo.toml` change that:
//!
//! ```toml
//! [profile.dev.package."*"]
//! opt-level = 1
//! ```
//!
//! # Errors
//! No function panics or has undefined behaviour, whatever its arguments. A call that fails returns an [`Error`], which
//! names what was wrong, what is allowed and what to do. A `main` that returns the error prints this message.
//!
//! ```
//! use warpfold::{Error, Gpu};
//!
//! # let gpu = Gpu::simt();
//! let empty = gpu.upload::<f32>(&[])?;
//! match gpu.max(&empty) {
//!     Err(error) => println!("{error}"), // no element: there is no maximum
//!     Ok(max) => unreachable!("{max}"),
//! }
//!
//! // On a machine without a driver:
//! match Gpu::new(0) {
//!     Err(Error::NoDriver(why)) => eprintln!("{why}"),
//!     Err(other) => eprintln!("{other}"),
//!     Ok(gpu) => println!("{:?}", gpu.info()),
//! }
//! # Ok::<(), Error>(())
//! ```
//!
//! Functions whose requirements cannot be checked are unsafe, and in [`interop`]: so far one, which takes PTX from
//! elsewhere.
//!
//! # Features
//! No feature is on by default.
//!
//! | feature | adds |
//! |---|---|
//! | `simt` | the executor: [`Gpu::simt`], [`Gpu::first_or_simt`], [`Gpu::profile`]; compiles all kernels for the CPU |
//! | `ndarray` | `Array::from_ndarray` and `Array::to_ndarray`, for the crate `ndarray` |
//! | `serde` | `Serialize` and `Deserialize` for exact sums ([`exact`]) |
//! | `build-kernels` | compiles the kernels from source in place of the prebuilt ones |
//! | `ladder` | the module `ladder`, the teaching kernels by name; enables `build-kernels` |
//!
//! `build-kernels` needs rustc 1.95 or later with `rustup component add rust-src`, and compiles for the architectures
//! in the environment variable `WARPFOLD_ARCHS` (`sm_80,sm_90`). Without that feature only the value `none` has an
//! effect: the program then has no PTX, and runs in the executor alone.
//!
//! # Guides
//! - [Exact sums](https://github.com/warpfold/warpfold/blob/main/docs/exact.md): the method, its cost, and the test of
//!   each claim.
//! - [Counters](https://github.com/warpfold/warpfold/blob/main/docs/counters.md): testing kernels without a GPU.
//! - [Examples](https://github.com/warpfold/warpfold/tree/main/examples): custom kernels and operators, written with
//!   `cuda_std` (package `warpfold-cuda-std`), built by `cuda_builder` (`warpfold-cuda-builder`), and launched by
//!   [`Gpu::launch`] with checked arguments.
//! - [The ladder](https://github.com/warpfold/warpfold/blob/main/docs/ladder/README.md): how GPU kernels get fast.
//! - [Benchmarks](https://github.com/warpfold/warpfold/blob/main/docs/benchmarks/README.md), compared with CUB, cuBLAS
//!   and PyTorch.

// Some links point to items that exist only with the feature `simt`.
#![cfg_attr(not(feature = "simt"), allow(rustdoc::broken_intra_doc_links))]

mod argument;
mod array;
mod backend;
mod buffer;
mod device;
mod embedded;
mod error;
mod gpu;
pub mod host;
pub mod interop;
#[cfg(feature = "ladder")]
pub mod ladder;
pub mod occupancy;
pub mod ptx;
mod recording;
pub mod reduce;
mod staging;
mod transpose;
#[cfg(feature = "simt")]
mod watch;

pub use reduce::{
    Axes, ExactDots, ExactElement, ExactState, ExactStates, ExactSums, IntoInputs, Reducer, Reduces, Reduction,
    SegmentReducer, SumFormat,
};
#[doc(inline)]
pub use transpose::{ScaledElement, Scaling};

pub use argument::Host;
pub use array::{Array, ArrayView, ArrayViewMut, IntoArrayView, IntoArrayViewMut, Layout, MAX_RANK};
pub use backend::KernelOccupancy;
pub use buffer::{Buffer, View, ViewMut};
pub use cuda_std::element::{Element, Plain, Stored};
pub use cuda_std::launch::{AnyBlock, Dim3, Kernel, KernelId, Parameters};
pub use device::DeviceInfo;
pub use embedded::KERNELS;
pub use error::Error;
pub use exact_sum as exact;
pub use gpu::Gpu;
pub use half;
pub use kernels::ops;
pub use num_complex;
pub use recording::Recording;
#[cfg(feature = "simt")]
pub use simt::{
    Advice, AtomicTraffic, Check, Counters, Fault, Finding, Findings, GlobalTraffic, KernelProfile, Line, Profile,
    Schedule, SharedTraffic, ThreadEvent,
};
pub use staging::{StagingBuffer, StagingBuffers};
#[cfg(feature = "simt")]
pub use watch::{SimtOptions, under_schedules};

/// The number of multiprocessors that transposes are planned for, and, in the executor, reductions: those of an H200.
pub(crate) use kernels::MULTIPROCESSORS;

/// The package's README, whose example runs as a test.
#[cfg(all(doctest, feature = "simt"))]
#[doc = include_str!("../README.md")]
struct Readme;
