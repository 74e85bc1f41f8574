//! Porting kernels that were written for Rust-CUDA. This module has only docs.
//!
//! Kernels for [Rust-CUDA](https://github.com/Rust-GPU/Rust-CUDA)'s `cuda_std` compile here unchanged, by rustc's own
//! PTX backend, if they use only what the list below calls the same. The executor then runs them without a GPU, and
//! finds races and wrong indices. Of 74 kernel sources of Rust-CUDA, 71 compile unchanged and 72 with the edits of the
//! recipe: see [the count](#the-count).
//!
//! # The recipe
//!
//! 1. Add `#![no_std]` to the kernel crate's `lib.rs`. Remove `#![feature(...)]`, `crate-type` and `extern crate
//!    alloc`. In the 2024 edition, write `#[unsafe(no_mangle)]` for `#[no_mangle]`; at a kernel both are allowed.
//! 2. Depend on this crate in place of Rust-CUDA's, with the feature `glam` if a kernel uses `cuda_std::glam`, and
//!    build with this workspace's `cuda_builder`, whose `CudaBuilder` has the same `arch` and `copy_to`. No toolchain
//!    file is needed.
//! 3. A static in shared memory that is an array of `MaybeUninit` stays, `#[address_space(shared)] static mut TILE:
//!    [MaybeUninit<f32>; 256]`, and so do `TILE[i].write(x)` and `TILE[i].assume_init()` ([`SharedStatic`]); rustc
//!    warns that their `unsafe` is not needed. Write `TILE[i].write(x)` for `TILE[i] = MaybeUninit::new(x)`. For a
//!    static of another type, such as `[f32; 256]`, or whose address is taken, write `let tile = shared_array![f32;
//!    256];` in the kernel, and `*tile.add(i)` for `TILE[i]`: the compile error says so, with your names. Keep no
//!    element in a variable: `let x = tile.add(i)` is not a pointer, and stores only when it goes out of scope
//!    ([`SharedPlace`]).
//! 4. Write `GpuFloat::sin(x)` for `x.sin()` where the CPU must compute the same bits as the GPU: see
//!    [`float`](crate::float#a-method-of-f32-may-be-stds).
//! 5. Derive [`Plain`](macro@crate::Plain) for structs in memory, and for structs that a kernel takes by value. They
//!    hold no pointers: pass pointers as parameters, or in a struct of [`arguments`](macro@crate::arguments).
//! 6. Use `glam` for `vek`, of which only [`vek::num_traits`](crate::vek) is here. The vectors and matrices of `glam`
//!    are plain, in memory and by value. Write `UVec3::from(thread::thread_idx())` for an index as a vector of `glam`.
//! 7. Replace a function of `atomic::intrinsics` or `atomic::mid` by a method of the atomic type:
//!    `atomic_fetch_add_relaxed_i32_device(p, 1)` is `AtomicI32::from_ptr(p).fetch_add(1, Relaxed)`.
//! 8. Run the kernels in the executor (`Gpu::simt`, or `cargo test` on any machine). Then replace slices and pointers
//!    by `Global` and `GlobalMut`, kernel by kernel: the kernels become safe, and the executor sees these accesses,
//!    too.
//!
//! # Module by module
//!
//! For each module of Rust-CUDA's `cuda_std`: what is the same here, what is different, and what is absent.
//!
//! - **`#[kernel]`**
//!   - *the same*: plain functions with numbers, pointers and slices, and any plain data or `bool` by value; the
//!     attribute `#[no_mangle]`
//!   - *different*: a kernel may be safe, generic, and fix its block; the hints `grid_dim` and `block_dim` are refused;
//!     beside the function there is a module of its name with the handle for a typed launch, see
//!     [`kernel`](crate::kernel)
//!   - *absent*: structs by value that hold pointers, references to anything but slices
//! - **`#[gpu_only]`, `#[externally_visible]`**
//!   - *the same*: both
//!   - *different*: on the CPU a call of the first is a panic that names the function
//! - **`#[address_space]`**
//!   - *the same*: `global`; `shared`, for arrays of `MaybeUninit` ([`SharedStatic`])
//!   - *different*: `constant` is global memory; a static in shared memory has no address
//!   - *absent*: `local`, and `shared` of other types: a compile error
//! - **`thread`**
//!   - *the same*: [all functions](crate::thread), fences and barriers included
//!   - *different*: shapes are [`UVec3`](crate::thread::UVec3), with the fields x, y and z; `nanosleep` in the executor
//!     lets the other threads of the block run
//! - **`warp`**
//!   - *the same*: [lanes, masks, votes, shuffles, matches, reductions](crate::warp)
//!   - *different*: they are safe: a wrong mask traps, or the executor reports it; shuffles move any plain value of up
//!     to 32 bytes; reductions work before sm_80, by shuffles; an integer's value in `warp_match_any` is its bits, a
//!     float's too (Rust-CUDA converts it to an integer)
//! - **`shared`**
//!   - *the same*: `shared_array!`, `dynamic_shared_mem`, `*array.add(i)`
//!   - *different*: the array is no pointer: every access is checked, and seen by the executor; atomic operations are
//!     its methods, such as [`fetch_add`](crate::shared::SharedArray::fetch_add), always relaxed
//!   - *absent*: pointers into it, and atomic types in it
//! - **`atomic`**
//!   - *the same*: [`AtomicF32`](crate::atomic::AtomicF32) and `AtomicF64` of each scope
//!   - *different*: `System...` is of the system's scope (there it is the device's); operations of blocks are safe;
//!     integers are here, too: [`AtomicU32`](crate::atomic::AtomicU32) and the like; `AtomicU32::of(&view, i)` is the
//!     element of a view; `core`'s own atomic types compile, in statics and in variables, but the executor does not see
//!     them
//!   - *absent*: the functions of `atomic::mid` and `atomic::intrinsics`, which the types' methods replace
//! - **`float`**
//!   - *the same*: [`GpuFloat`](crate::GpuFloat)
//!   - *different*: computed by the crate `libm`, with the same bits on both sides; `log2` is the logarithm to base 2
//! - **`float_ext`**
//!   - *the same*: [`FloatExt`](crate::FloatExt)
//!   - *different*: computed by `libm` and by this crate
//! - **`intrinsics`**
//!   - *different*: the hardware's approximations are [`FloatApprox`](crate::float::FloatApprox)
//!   - *absent*: libdevice's `__nv_...` functions, which need NVVM
//! - **`io`**
//!   - *the same*: `assert_eq!`, `assert_ne!`
//!   - *different*: a failed assertion traps on a GPU, without a message; in the executor the launch ends with the
//!     message, the thread and the line
//!   - *absent*: `print!`, `println!`
//! - **`mem`**
//!   - *the same*: [`dynamic_smem_size`](crate::mem::dynamic_smem_size)
//!   - *absent*: the allocator, and `alloc` with it: `Box`, `Vec`, `String`, `format!`; `total_smem_size`
//! - **`misc`**
//!   - *the same*: [`clock`](crate::misc::clock)
//!   - *different*: nanoseconds in the executor
//!   - *absent*: `breakpoint`, `profiler_counter`
//! - **`ptr`**
//!   - *absent*: address spaces of pointers: nothing here hands out a pointer to shared memory
//! - **`cfg`**
//!   - *different*: `cfg!(cuda_arch_at_least = "80")`
//!   - *absent*: `ComputeCapability`, features named `compute_80`
//! - **`cg`**
//!   - *absent*: cooperative groups, which need a C++ bridge
//! - **`prelude`**
//!   - *the same*: `kernel`, `thread`
//!   - *different*: views and shared arrays are in it, too
//!   - *absent*: what `mem` and `io` lack
//! - **re-exports**
//!   - *the same*: `half`, `f16`, `bf16`
//!   - *different*: `glam` 0.30 is an optional feature, with which `glam` has no SIMD in the whole program, so that the
//!     CPU has the layouts and computes the bits of a GPU; its square roots are functions of `libm`, not one
//!     instruction; `bytemuck`, `num_complex`
//!   - *absent*: `vek`, except for `vek::num_traits`, without its `Float`
//!
//! # The count
//!
//! The 74 sources are the 68 kernels in `tests/compiletests/ui` of Rust-CUDA's repository, and the kernel crates of six
//! examples: `vecadd`, `gemm`, `path_tracer`, `sha2_crates_io`, `i128_demo` and `async_api`. Each was compiled for
//! sm_75 and sm_90 in November 2026, and its PTX assembled by `ptxas`:
//!
//! | | sources |
//! |---|---:|
//! | unchanged, except for `#![no_std]` | 66 |
//! | unchanged, with the feature `glam` (step 2) | 5 |
//! | with `write` for an assignment to a static in shared memory (step 3) | 1 |
//! | **compile** | **72** |
//! | do not compile | 2 |
//!
//! The two are:
//!
//! - `ui/lang/compile_fail.rs` calls `std::fs` in a kernel: a test that it does *not* compile, which it passes.
//! - `path_tracer` takes a reference to a struct that holds slices, and has enums with fields in memory. It also
//!   depends on the crates `gpu_rand` and `cust_core`, and in its first versions on OptiX. Its kernels need slices of
//!   tagged structs in their place.
//!
//! With a version for the CPU it is the same 72, where the sources with `#![feature(...)]` need a nightly compiler. Of
//! four sources beside these, `sdot` and the kernel for Compiler Explorer compile unchanged, and the guide's first
//! kernel and `simple_atomic_intrinsics` by steps 1 and 7. The kernels for OptiX need OptiX's intrinsics.
//!
//! # Floats and their functions
//!
//! All functions of `libm` that [`GpuFloat`](crate::GpuFloat) and [`FloatExt`](crate::FloatExt) use fit a kernel, in
//! `f32` and `f64`. They are ordinary functions in the PTX, in entries that call them and in no other, with tables in
//! global memory. The sines, cosines and tangents of numbers beyond 2^28 or so, and the Bessel functions, which call
//! them, need an array of about 600 bytes of local memory per thread, for the argument reduction modulo pi; all others
//! use registers, except for a few words. The loops of `jn` and `yn` have as many steps as the order.
//!
//! [`SharedPlace`]: crate::shared::SharedPlace
//! [`SharedStatic`]: crate::shared::SharedStatic
