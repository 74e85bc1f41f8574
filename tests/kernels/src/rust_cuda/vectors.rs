//! Structs in memory: vectors and matrices of floats, and a ray tracer of spheres.

use cuda_std::num_complex::Complex;
use cuda_std::prelude::*;
use cuda_std::{GpuFloat, Plain, f16};
use glam::{Mat3, Mat4, Vec3, Vec4};

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
pub fn mat4_operations(matrix: Global<Mat4>, points: Global<Vec3>, moved: GlobalMut<Vec3>, turned: GlobalMut<Vec4>) {
    let i = thread::index_1d() as usize;
    if i < points.len() {
        let (m, p) = (matrix.load(0), points.load(i));
        moved.store(i, m.transform_point3(p));
        turned.store(i, m * p.extend(0.0));
    }
}

/// A rotation, its determinant, and the rotated axes, for each angle.
#[kernel]
pub fn rotations(axis: Vec3, angles: Global<f32>, matrices: GlobalMut<Mat4>, determinants: GlobalMut<f32>) {
    let i = thread::index_1d() as usize;
    if i < angles.len() {
        let turned = Mat4::from_axis_angle(axis, angles.load(i)) * Mat4::from_translation(axis);
        determinants.store(i, turned.determinant());
        matrices.store(i, turned);
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
        *pixel += color;
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
