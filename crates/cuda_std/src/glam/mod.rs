//! Vectors and matrices of `f32`, where kernels for Rust-CUDA find those of the crate `glam`.
//!
//! The names and fields are those of `glam` 0.30, and so are the results, up to rounding. The layouts are those of
//! CUDA's `float2`, `float3`, `float4`, `uint2` and `uint3`. All are [`Plain`](trait@crate::element::Plain): elements
//! of a buffer, or parameters of a kernel by value. The CPU computes the same bits as a GPU.
//!
//! This is what kernels use most. Kernels that need quaternions, inverses or other element types depend on the crate
//! `glam` itself, whose types are plain, too, with these features:
//!
//! ```toml
//! glam = { version = "0.30", default-features = false, features = ["bytemuck", "cuda", "libm", "scalar-math"] }
//! ```
//!
//! ```
//! use cuda_std::glam::{Mat4, Vec3};
//!
//! let model = Mat4::from_translation(Vec3::X) * Mat4::from_scale(Vec3::splat(2.0));
//! assert_eq!(model.transform_point3(Vec3::new(1.0, 2.0, 3.0)), Vec3::new(3.0, 4.0, 6.0));
//! ```

mod matrices;
mod vectors;

pub use crate::thread::{UVec2, UVec3};
pub use matrices::{Mat2, Mat3, Mat4};
pub use vectors::{Vec2, Vec3, Vec4};
