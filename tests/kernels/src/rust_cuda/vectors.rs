//! Structs in memory: vectors and matrices of floats, and a ray tracer of spheres.
//!
//! Rust-CUDA re-exports the crate `glam` for these, as `cuda_std` does with its feature `glam`. This module has its own
//! types.

use core::ops::{Add, Mul, Sub};

use cuda_std::num_complex::Complex;
use cuda_std::prelude::*;
use cuda_std::{GpuFloat, Plain, f16};

/// A vector of three floats: 12 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Plain)]
#[allow(missing_docs, reason = "the axes")]
#[repr(C)]
pub struct Vec3 {
    pub x: f32,
    pub y: f32,
    pub z: f32,
}

impl Vec3 {
    /// The vector with these components.
    pub const fn new(x: f32, y: f32, z: f32) -> Self {
        Self { x, y, z }
    }

    /// The dot product.
    pub fn dot(self, other: Self) -> f32 {
        self.x * other.x + self.y * other.y + self.z * other.z
    }

    /// The cross product.
    pub fn cross(self, other: Self) -> Self {
        Self::new(
            self.y * other.z - self.z * other.y,
            self.z * other.x - self.x * other.z,
            self.x * other.y - self.y * other.x,
        )
    }

    /// The length.
    pub fn length(self) -> f32 {
        GpuFloat::sqrt(self.dot(self))
    }

    /// The vector of length 1 in this direction.
    pub fn normalize(self) -> Self {
        self * (1.0 / self.length())
    }
}

impl Add for Vec3 {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::new(self.x + other.x, self.y + other.y, self.z + other.z)
    }
}

impl Sub for Vec3 {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self::new(self.x - other.x, self.y - other.y, self.z - other.z)
    }
}

impl Mul<f32> for Vec3 {
    type Output = Self;
    fn mul(self, factor: f32) -> Self {
        Self::new(self.x * factor, self.y * factor, self.z * factor)
    }
}

/// A matrix in column-major order: 36 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Plain)]
#[allow(missing_docs, reason = "the columns")]
#[repr(C)]
pub struct Mat3 {
    pub columns: [Vec3; 3],
}

impl Mul<Vec3> for Mat3 {
    type Output = Vec3;
    fn mul(self, v: Vec3) -> Vec3 {
        self.columns[0] * v.x + self.columns[1] * v.y + self.columns[2] * v.z
    }
}

/// A matrix in column-major order: 64 bytes.
pub type Mat4 = [[f32; 4]; 4];

/// Sum, cross product and direction of vectors, and their dot products and lengths.
///
/// # Safety
/// `b` has as many elements as `a`; `vectors` has three for each, `numbers` two.
#[kernel]
pub unsafe fn vec3_operations(a: &[Vec3], b: &[Vec3], vectors: *mut Vec3, numbers: *mut f32) {
    let i = thread::index_1d() as usize;
    if i < a.len() {
        // SAFETY: as promised by the launch.
        unsafe {
            *vectors.add(3 * i) = a[i] + b[i];
            *vectors.add(3 * i + 1) = a[i].cross(b[i]);
            *vectors.add(3 * i + 2) = a[i].normalize();
            *numbers.add(2 * i) = a[i].dot(b[i]);
            *numbers.add(2 * i + 1) = a[i].length();
        }
    }
}

/// A matrix times vectors.
///
/// # Safety
/// `matrix` has one element, and `output` as many as `vectors`.
#[kernel]
pub unsafe fn mat3_vec3_multiply(matrix: *const Mat3, vectors: &[Vec3], output: *mut Vec3) {
    let i = thread::index_1d() as usize;
    if i < vectors.len() {
        // SAFETY: as promised by the launch.
        unsafe { *output.add(i) = *matrix * vectors[i] };
    }
}

/// Transforms points and directions by a matrix, in views with elements of 12, 16 and 64 bytes.
#[kernel]
pub fn mat4_operations(
    matrix: Global<Mat4>,
    points: Global<Vec3>,
    moved: GlobalMut<Vec3>,
    turned: GlobalMut<[f32; 4]>,
) {
    let i = thread::index_1d() as usize;
    if i < points.len() {
        let (m, p) = (matrix.load(0), points.load(i));
        let row = |k: usize, w: f32| m[0][k] * p.x + m[1][k] * p.y + m[2][k] * p.z + m[3][k] * w;
        moved.store(i, Vec3::new(row(0, 1.0), row(1, 1.0), row(2, 1.0)));
        turned.store(i, [row(0, 0.0), row(1, 0.0), row(2, 0.0), row(3, 0.0)]);
    }
}

/// Marches rays towards a sphere by their distance to it, as in issue 283 of Rust-CUDA.
///
/// # Safety
/// `depths` has as many elements as `directions`.
#[kernel]
pub unsafe fn issue_283(directions: &[Vec3], depths: *mut f32) {
    fn distance(p: Vec3) -> f32 {
        p.length() - 1.0
    }
    let i = thread::index_1d() as usize;
    if i >= directions.len() {
        return;
    }
    let eye = Vec3::new(0.0, 0.0, 4.0);
    let (mut depth, end) = (0.0, 10.0);
    let mut steps = 0;
    let found = loop {
        if steps >= 255 {
            break end;
        }
        let dist = distance(eye + directions[i] * depth);
        if dist < 0.0001 {
            break depth;
        }
        depth += dist;
        if depth >= end {
            break end;
        }
        steps += 1;
    };
    // SAFETY: as promised by the launch.
    unsafe { *depths.add(i) = found };
}

/// A kernel's parameter of 24 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Plain)]
#[allow(missing_docs, reason = "the fields say it")]
#[repr(C)]
pub struct Placement {
    pub offset: Vec3,
    pub scale: f32,
    pub id: u64,
}

/// A kernel's parameter of 3 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Plain)]
#[repr(transparent)]
pub struct Tag(pub [u8; 3]);

/// Moves and scales points by structs that are passed by value, among parameters of other kinds.
///
/// # Safety
/// `moved` has as many elements as `points`, and the grid as many threads.
#[kernel]
pub unsafe fn structs_by_value(
    points: &[Vec3],
    placement: Placement,
    tag: Tag,
    first: u8,
    moved: *mut Vec3,
    ids: GlobalMut<u64>,
) {
    let i = thread::index_1d() as usize;
    let Placement { offset, scale, id } = placement;
    // SAFETY: as promised by the launch.
    unsafe { *moved.add(i) = (points[i] + offset) * scale };
    let [a, b, c] = tag.0.map(u64::from);
    ids.store(i, id ^ (u64::from(first) << 48 | a << 32 | b << 16 | c));
}

/// Parameters by value of types of other crates and of the language: an array, a complex number, a half, and integers
/// of 128 bits.
///
/// # Safety
/// `rows` has three elements for each thread, `numbers` two, and `wide` one.
#[kernel]
pub unsafe fn foreign_types_by_value(
    matrix: [[f32; 3]; 3],
    factor: Complex<f64>,
    half: f16,
    mask: u128,
    rows: *mut [f32; 3],
    numbers: *mut Complex<f64>,
    wide: *mut u128,
) {
    let i = thread::index_1d() as usize;
    // SAFETY: as promised by the launch.
    unsafe {
        for (k, row) in matrix.into_iter().enumerate() {
            *rows.add(3 * i + k) = row.map(|x| x * i as f32);
        }
        *numbers.add(2 * i) = factor * i as f64;
        *numbers.add(2 * i + 1) = Complex::new(f64::from(half.to_f32()), i as f64);
        *wide.add(i) = mask ^ i as u128;
    }
}

/// A sphere of a scene: 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Plain)]
#[allow(missing_docs, reason = "the fields say it")]
#[repr(C)]
pub struct Sphere {
    pub center: Vec3,
    pub radius: f32,
    pub color: Vec3,
    pub shine: f32,
}

/// Adds the light of a ray through each pixel of an image of `width` by `height`.
///
/// # Safety
/// `image` has `width * height` elements.
#[kernel]
pub unsafe fn render(image: *mut Vec3, scene: &[Sphere], width: usize, height: usize) {
    let idx = thread::index_2d();
    if idx.x as usize >= width || idx.y as usize >= height {
        return;
    }
    let (u, v) = ((idx.x as f32 + 0.5) / width as f32 - 0.5, (idx.y as f32 + 0.5) / height as f32 - 0.5);
    let ray = Vec3::new(u, v, -1.0).normalize();
    let mut nearest = f32::INFINITY;
    let mut color = Vec3::new(0.1, 0.1, 0.3);
    for sphere in scene {
        let to_center = sphere.center;
        let along = to_center.dot(ray);
        let square = sphere.radius * sphere.radius - to_center.dot(to_center) + along * along;
        if square > 0.0 {
            let distance = along - GpuFloat::sqrt(square);
            if distance > 0.0 && distance < nearest {
                nearest = distance;
                let normal = (ray * distance - to_center).normalize();
                let light = GpuFloat::powf(normal.dot(Vec3::new(0.0, 1.0, 0.0)).max(0.0), sphere.shine);
                color = sphere.color * (0.2 + 0.8 * light);
            }
        }
    }
    // SAFETY: as promised by the launch; the pixel is inside the image.
    unsafe {
        let pixel = image.add(idx.y as usize * width + idx.x as usize);
        *pixel = *pixel + color;
    }
}

/// Divides the light of an image by its samples.
///
/// # Safety
/// `out` has as many elements as `image`.
#[kernel]
pub unsafe fn scale_buffer(image: &[Vec3], out: *mut Vec3, samples: u32) {
    let i = thread::index() as usize;
    if i < image.len() {
        // SAFETY: as promised by the launch.
        unsafe { *out.add(i) = image[i] * (1.0 / samples as f32) };
    }
}

/// Turns light into bytes, with a gamma of 2.
///
/// # Safety
/// `out` has as many elements as `image`.
#[kernel]
pub unsafe fn postprocess(image: &[Vec3], out: *mut [u8; 3]) {
    let i = thread::index() as usize;
    if i < image.len() {
        let byte = |light: f32| (GpuFloat::sqrt(light) * 255.0).clamp(0.0, 255.0) as u8;
        let Vec3 { x, y, z } = image[i];
        // SAFETY: as promised by the launch.
        unsafe { *out.add(i) = [byte(x), byte(y), byte(z)] };
    }
}
