//! `cuda_std::glam`. The expected numbers are exact, unless a test says otherwise.

use cuda_std::GpuFloat;
use cuda_std::glam::{Mat2, Mat3, Mat4, Quat, UVec2, UVec3, Vec2, Vec3, Vec4};
use cuda_std::prelude::*;

/// # Safety
/// The pointers are valid for two elements each.
#[kernel]
pub unsafe fn operations_of_vec3(a: Vec3, b: Vec3, vectors: *mut Vec3, numbers: *mut f32) {
    // SAFETY: as promised by the launch.
    unsafe {
        *vectors = a.cross(b);
        *vectors.add(1) = a.normalize();
        *numbers = a.dot(b);
        *numbers.add(1) = a.length();
    }
}

/// The slots of a value.
fn slots<T: Plain>(value: T) -> Vec<u64> {
    value.to_four_words()[..size_of::<T>().div_ceil(8)].to_vec()
}

#[test]
fn vectors_of_three() {
    let (mut vectors, mut numbers) = ([Vec3::ZERO; 2], [0.0_f32; 2]);
    let mut arguments = [slots(Vec3::new(2.0, 3.0, 6.0)), slots(Vec3::new(-1.0, 4.0, 0.5))].concat();
    arguments.extend([crate::pointer(&mut vectors), crate::pointer(&mut numbers)]);
    // SAFETY: two elements each.
    unsafe { crate::launch(operations_of_vec3::handle().with_block(1), 1, &arguments) }.unwrap();
    assert_eq!(vectors[0], Vec3::new(-22.5, -7.0, 11.0));
    let inverse = 1.0 / 7.0;
    assert_eq!(vectors[1], Vec3::new(2.0 * inverse, 3.0 * inverse, 6.0 * inverse));
    assert_eq!(numbers, [13.0, 7.0]);
}

/// # Safety
/// The output has an element for each input.
#[kernel]
pub unsafe fn products_of_matrices(turn: Mat2, matrices: &[Mat4], points: &[Vec3], output: *mut [Vec4; 2]) {
    let i = thread::index_1d() as usize;
    if i < points.len() {
        let turned = turn * points[i].truncate();
        let moved = matrices[i].transform_point3(points[i]);
        let determinant = Mat3::from_mat4(matrices[i]).determinant();
        // SAFETY: as promised by the launch.
        unsafe { *output.add(i) = [moved.extend(determinant), Vec4::new(turned.x, turned.y, 0.0, 1.0)] };
    }
}

#[test]
fn matrices() {
    let mut points: Vec<Vec3> = (0..70).map(|i| Vec3::new(i as f32, 2.0, -(i as f32))).collect();
    let mut matrices: Vec<Mat4> = (0..70)
        .map(|i| Mat4::from_translation(Vec3::new(1.0, 2.0, i as f32)) * Mat4::from_scale(Vec3::new(2.0, 3.0, 0.5)))
        .collect();
    let mut output = vec![[Vec4::ZERO; 2]; 70];
    let mut arguments = slots(Mat2::from_cols(Vec2::Y, -Vec2::X));
    arguments.extend([crate::pointer(&mut matrices), 70, crate::pointer(&mut points), 70]);
    arguments.push(crate::pointer(&mut output));
    // SAFETY: an output for each input.
    unsafe { crate::launch(products_of_matrices::handle().with_block(32), 3, &arguments) }.unwrap();
    for (i, found) in output.into_iter().enumerate() {
        let i = i as f32;
        assert_eq!(found, [Vec4::new(2.0 * i + 1.0, 8.0, 0.5 * i, 3.0), Vec4::new(-2.0, i, 0.0, 1.0)]);
    }
}

/// # Safety
/// The output has an element for each angle.
#[kernel]
pub unsafe fn turns(axis: Vec3, angles: &[f32], output: *mut Vec3) {
    let i = thread::index_1d() as usize;
    if i < angles.len() {
        let by_matrix = Mat3::from_axis_angle(axis, angles[i]) * Vec3::X;
        let by_quaternion = Quat::from_axis_angle(axis, angles[i]) * Vec3::X;
        // SAFETY: as promised by the launch.
        unsafe { *output.add(i) = (by_matrix + by_quaternion) * 0.5 };
    }
}

#[test]
fn turns_by_functions_of_libm() {
    let mut angles: Vec<f32> = (0..50).map(|i| i as f32 * 0.25 - 6.0).collect();
    let mut output = vec![Vec3::ZERO; 50];
    let mut arguments = slots(Vec3::Z);
    arguments.extend([crate::pointer(&mut angles), 50, crate::pointer(&mut output)]);
    // SAFETY: an output for each angle.
    unsafe { crate::launch(turns::handle().with_block(32), 2, &arguments) }.unwrap();
    for (angle, found) in angles.into_iter().zip(output) {
        // Rounded a few times.
        let expected = Vec3::new(GpuFloat::cos(angle), GpuFloat::sin(angle), 0.0);
        assert!(found.abs_diff_eq(expected, 1e-6), "{angle}: {found}, not {expected}");
    }
}

/// On x86-64 the SIMD versions of these types add in another order, and align `Mat2` to 16 bytes.
#[test]
fn vectors_are_those_of_a_gpu() {
    let v = Vec4::new(1e8, 1.0, -1e8, 1.0);
    assert_eq!(v.dot(Vec4::ONE), 1.0);
    let alignments = [align_of::<Vec2>(), align_of::<Vec3>(), align_of::<Vec4>(), align_of::<UVec2>()];
    assert_eq!(alignments, [8, 4, 16, 8], "as CUDA's float2, float3, float4 and uint2");
    assert_eq!((align_of::<Mat2>(), align_of::<Mat4>()), (8, 16));
}

#[test]
fn indices_are_vectors_of_glam() {
    let index = cuda_std::thread::UVec3::new(1, 2, 3);
    assert_eq!(UVec3::from(index).as_vec3(), Vec3::new(1.0, 2.0, 3.0));
    assert_eq!(cuda_std::thread::UVec2::from(UVec2::new(4, 5)).to_array(), [4, 5]);
}
