//! Kernels of the kinds that Rust-CUDA has in its compile tests, its examples and its guide.
//!
//! They are written as for Rust-CUDA: `unsafe fn`s with slices and pointers. If Rust-CUDA's source would not compile
//! here unchanged, the kernel is ported as `cuda_std::rust_cuda` says. A test compares the output of each kernel,
//! except of those that only have to compile.
//!
//! | module | kinds |
//! |---|---|
//! | [`control_flow`] | branches and loops, one kernel for each nesting |
//! | [`lang`] | arrays, constants, references, pointers, uninitialized memory, options, bits of integers |
//! | [`core_functions`] | comparisons and copies of bytes, searches, floats and 128-bit integers |
//! | [`threads`] | indices and shapes, barriers and fences, sleeping threads |
//! | [`warps`] | lanes and masks, shuffles of any width, matches, reductions |
//! | [`atomics`] | atomic floats and integers of each scope |
//! | [`shared`] | static and dynamic shared memory by `*array.add(i)` |
//! | [`floats`] | `GpuFloat`, `FloatExt`, approximations |
//! | [`parameters`] | values as the only parameter, `bool`s and enums, names that are keywords |
//! | [`vectors`] | structs in memory: vectors and matrices of floats, a ray tracer |
//! | [`functions`] | functions of other crates, `gpu_only`, `externally_visible`, assertions, target features |
//! | [`mod@gemm`], [`mod@vecadd`] | kernels with the names of their files |

pub mod atomics;
pub mod control_flow;
pub mod core_functions;
pub mod floats;
pub mod functions;
pub mod gemm;
pub mod lang;
pub mod parameters;
pub mod shared;
pub mod threads;
pub mod vecadd;
pub mod vectors;
pub mod warps;

// Only the functions: the modules of the same names are already here.
pub use gemm::gemm;
pub use vecadd::vecadd;
