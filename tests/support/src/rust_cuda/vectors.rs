//! Runs of the kernels with structs in memory.

use cuda_std::f16;
use cuda_std::num_complex::Complex;
use glam::{Mat3, Mat4, Vec3, Vec4};
use warpfold::{Error, Gpu};

use super::{compare, k, words};

fn vec3(x: f32, y: f32, z: f32) -> Vec3 {
    Vec3::new(x, y, z)
}

/// Vectors of small whole numbers, whose products are exact.
fn some_vectors(count: u8, seed: u8) -> Vec<Vec3> {
    let number = |i: u8| f32::from(i.wrapping_mul(37).wrapping_add(seed) % 11) - 5.0;
    (0..count).map(|i| vec3(number(i), number(i.wrapping_add(80)), number(i.wrapping_add(160)) + 0.5)).collect()
}

pub fn vec3_operations(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let (a, b) = (some_vectors(50, 1), some_vectors(50, 6));
    let (x, y) = (gpu.upload(&a)?, gpu.upload(&b)?);
    let (mut vectors, mut numbers) = (gpu.zeroed::<Vec3>(150)?, gpu.zeroed::<f32>(100)?);
    // SAFETY: three vectors and two numbers for each pair.
    let kernel = unsafe { k::vectors::vec3_operations::handle() }.with_block(32);
    let (vectors_view, numbers_view) = (vectors.view_mut(), numbers.view_mut());
    let arguments =
        k::vectors::vec3_operations::Args { a: x.view(), b: y.view(), vectors: vectors_view, numbers: numbers_view };
    gpu.launch(kernel, 2, arguments)?;
    let (of_vectors, of_numbers) = a
        .iter()
        .zip(&b)
        .map(|(a, b)| {
            let length = (a.x * a.x + a.y * a.y + a.z * a.z).sqrt();
            let sum = vec3(a.x + b.x, a.y + b.y, a.z + b.z);
            let cross = vec3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
            let unit = 1.0 / length;
            let direction = vec3(a.x * unit, a.y * unit, a.z * unit);
            ([sum, cross, direction], [a.x * b.x + a.y * b.y + a.z * b.z, length])
        })
        .collect::<(Vec<_>, Vec<_>)>();
    let vectors = compare(gpu, "vectors", &vectors, of_vectors.as_flattened())?;
    Ok([vectors, compare(gpu, "numbers", &numbers, of_numbers.as_flattened())?].concat())
}

pub fn mat3_vec3_multiply(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let matrix = Mat3::from_cols(vec3(1.0, 2.0, 3.0), vec3(-4.0, 0.0, 5.0), vec3(0.5, 6.0, -1.0));
    let vectors = some_vectors(40, 3);
    let (matrix, input) = (gpu.upload(&[matrix])?, gpu.upload(&vectors)?);
    let mut output = gpu.zeroed::<Vec3>(40)?;
    // SAFETY: one matrix, and as many vectors as in the input.
    let kernel = unsafe { k::vectors::mat3_vec3_multiply::handle() }.with_block(64);
    let arguments = k::vectors::mat3_vec3_multiply::Args {
        matrix: matrix.view(),
        vectors: input.view(),
        output: output.view_mut(),
    };
    gpu.launch(kernel, 1, arguments)?;
    let expected: Vec<_> = vectors
        .iter()
        .map(|v| vec3(v.x - 4.0 * v.y + 0.5 * v.z, 2.0 * v.x + 6.0 * v.z, 3.0 * v.x + 5.0 * v.y - v.z))
        .collect();
    compare(gpu, "mat3_vec3_multiply", &output, &expected)
}

pub fn mat4_operations(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    // Turns x to y and y to -x, doubles z, and moves by (10, 20, 30).
    let m = [[0.0, 1.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 2.0, 0.0], [10.0, 20.0, 30.0, 1.0]];
    let points = some_vectors(70, 9);
    let (matrix, input) = (gpu.upload(&[Mat4::from_cols_array_2d(&m)])?, gpu.upload(&points)?);
    let (mut moved, mut turned) = (gpu.zeroed::<Vec3>(70)?, gpu.zeroed::<Vec4>(70)?);
    let kernel = k::vectors::mat4_operations::handle().with_block(32);
    let (moved_view, turned_view) = (moved.view_mut(), turned.view_mut());
    let arguments = k::vectors::mat4_operations::Args {
        matrix: matrix.view(),
        points: input.view(),
        moved: moved_view,
        turned: turned_view,
    };
    gpu.launch(kernel, 3, arguments)?;
    let expected: Vec<_> = points.iter().map(|p| vec3(10.0 - p.y, 20.0 + p.x, 30.0 + 2.0 * p.z)).collect();
    let all = compare(gpu, "moved", &moved, &expected)?;
    let expected: Vec<_> = points.iter().map(|p| Vec4::new(-p.y, p.x, 2.0 * p.z, 0.0)).collect();
    Ok([all, compare(gpu, "turned", &turned, &expected)?].concat())
}

pub fn rotations(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let angles: Vec<_> = (0..50).map(|i| i as f32 * 0.25 - 6.0).collect();
    let (input, mut matrices) = (gpu.upload(&angles)?, gpu.zeroed::<Mat4>(50)?);
    let mut determinants = gpu.zeroed::<f32>(50)?;
    let arguments = k::vectors::rotations::Args {
        axis: Vec3::Z,
        angles: input.view(),
        matrices: matrices.view_mut(),
        determinants: determinants.view_mut(),
    };
    gpu.launch(k::vectors::rotations::handle().with_block(32), 2, arguments)?;
    let (found, of_determinants) = (gpu.download(&matrices)?, gpu.download(&determinants)?);
    for ((angle, m), determinant) in angles.iter().zip(&found).zip(&of_determinants) {
        let (sin, cos) = angle.sin_cos();
        let expected = [[cos, sin, 0.0, 0.0], [-sin, cos, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0]];
        let (found, expected) = (m.to_cols_array_2d(), expected.as_flattened());
        approx::assert_abs_diff_eq!(found.as_flattened(), expected, epsilon = 1e-6);
        approx::assert_abs_diff_eq!(*determinant, 1.0, epsilon = 1e-5);
    }
    let of_matrices: Vec<_> = found.iter().flat_map(Mat4::to_cols_array_2d).flatten().collect();
    Ok([words(&of_matrices), words(&of_determinants)].concat())
}

pub fn issue_283(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let directions = [vec3(0.0, 0.0, -1.0), vec3(0.0, 1.0, 0.0), vec3(0.1, 0.0, -1.0).normalize()];
    let (input, mut depths) = (gpu.upload(&directions)?, gpu.zeroed::<f32>(3)?);
    // SAFETY: as many depths as directions.
    let kernel = unsafe { k::vectors::issue_283::handle() }.with_block(32);
    gpu.launch(kernel, 1, k::vectors::issue_283::Args { directions: input.view(), depths: depths.view_mut() })?;
    let found = gpu.download(&depths)?;
    // From (0, 0, 4) the unit sphere is 3 away; upwards there is nothing; the third ray meets it at
    // 4 cos - sqrt(1 - 16 sin^2).
    let (cos, sin) = (1.0 / 1.01_f32.sqrt(), 0.1 / 1.01_f32.sqrt());
    let third = 4.0 * cos - (1.0 - 16.0 * sin * sin).sqrt();
    assert!(found[0] == 3.0 && found[1] == 10.0 && (found[2] - third).abs() < 1e-3, "{found:?}, {third}");
    Ok(words(&found))
}

pub fn structs_by_value(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let points: Vec<_> = (0..64).map(|i| vec3(i as f32, 0.5 * i as f32, -2.0)).collect();
    let (input, mut moved) = (gpu.upload(&points)?, gpu.zeroed::<Vec3>(64)?);
    let mut ids = gpu.zeroed::<u64>(64)?;
    let id = 0x0123_4567_89AB_CDEF;
    // SAFETY: as many threads as points.
    let kernel = unsafe { k::vectors::structs_by_value::handle() }.with_block(32);
    let arguments = k::vectors::structs_by_value::Args {
        points: input.view(),
        placement: k::vectors::Placement { offset: vec3(1.0, -2.0, 3.0), scale: 4.0, id },
        tag: k::vectors::Tag([1, 200, 3]),
        first: 0xFE,
        moved: moved.view_mut(),
        ids: ids.view_mut(),
    };
    gpu.launch(kernel, 2, arguments)?;
    let expected: Vec<_> = points.iter().map(|p| vec3(4.0 * (p.x + 1.0), 4.0 * (p.y - 2.0), 4.0)).collect();
    let all = compare(gpu, "structs_by_value", &moved, &expected)?;
    Ok([all, compare(gpu, "structs_by_value", &ids, &[id ^ 0x00FE_0001_00C8_0003; 64])?].concat())
}

pub fn foreign_types_by_value(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    const THREADS: usize = 40;
    let (mut rows, mut wide) = (gpu.zeroed::<[f32; 3]>(3 * THREADS)?, gpu.zeroed::<u128>(THREADS)?);
    let mut numbers = gpu.zeroed::<Complex<f64>>(2 * THREADS)?;
    // SAFETY: three rows, two numbers and a word for each thread.
    let kernel = unsafe { k::vectors::foreign_types_by_value::handle() }.with_block(8);
    let matrix = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, -9.0]];
    let mask = 0x0123_4567_89AB_CDEF_0F1E_2D3C_4B5A_6978;
    let arguments = k::vectors::foreign_types_by_value::Args {
        matrix,
        factor: Complex::new(0.5, -2.0),
        half: f16::from_f32(-1.25),
        mask,
        rows: rows.view_mut(),
        numbers: numbers.view_mut(),
        wide: wide.view_mut(),
    };
    gpu.launch(kernel, THREADS as u32 / 8, arguments)?;
    let of_rows: Vec<_> = (0..THREADS).flat_map(|i| matrix.map(|row| row.map(|x| x * i as f32))).collect();
    let of_numbers: Vec<_> = (0..THREADS)
        .map(|i| i as f64)
        .flat_map(|i| [Complex::new(0.5 * i, -2.0 * i), Complex::new(-1.25, i)])
        .collect();
    let of_wide: Vec<_> = (0..THREADS as u128).map(|i| mask ^ i).collect();
    let rows = compare(gpu, "arrays by value", &rows, &of_rows)?;
    let numbers = compare(gpu, "complex numbers by value", &numbers, &of_numbers)?;
    Ok([rows, numbers, compare(gpu, "128 bits by value", &wide, &of_wide)?].concat())
}

pub fn ray_tracer(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let (width, height) = (37_usize, 21_usize);
    let scene = [
        k::vectors::Sphere { center: vec3(0.0, 0.0, -5.0), radius: 1.0, color: vec3(1.0, 0.0, 0.0), shine: 1.5 },
        k::vectors::Sphere { center: vec3(0.0, 0.0, -9.0), radius: 3.0, color: vec3(0.0, 1.0, 0.0), shine: 3.0 },
    ];
    let (scene, mut image) = (gpu.upload(&scene)?, gpu.zeroed::<Vec3>(width * height)?);
    for _ in 0..2 {
        // SAFETY: the image has its pixels.
        let kernel = unsafe { k::vectors::render::handle() }.with_block((16, 8));
        let arguments = k::vectors::render::Args { image: image.view_mut(), scene: scene.view(), width, height };
        gpu.launch(kernel, (3, 3), arguments)?;
    }
    let mut scaled = gpu.zeroed::<Vec3>(width * height)?;
    // SAFETY: as many pixels.
    let kernel = unsafe { k::vectors::scale_buffer::handle() }.with_block((16, 8));
    let arguments = k::vectors::scale_buffer::Args { image: image.view(), out: scaled.view_mut(), samples: 2 };
    gpu.launch(kernel, (3, 3), arguments)?;
    let mut bytes = gpu.zeroed::<[u8; 3]>(width * height)?;
    // SAFETY: as many pixels.
    let kernel = unsafe { k::vectors::postprocess::handle() }.with_block(256);
    let arguments = k::vectors::postprocess::Args { image: scaled.view(), out: bytes.view_mut() };
    gpu.launch(kernel, 4, arguments)?;

    let (light, found) = (gpu.download(&scaled)?, gpu.download(&bytes)?);
    let pixel = |x: usize, y: usize| found[y * width + x];
    // The background in a corner, the red sphere in the middle, the green one around it.
    assert_eq!(pixel(0, 0), [0.1_f32, 0.1, 0.3].map(|light| (light.sqrt() * 255.0) as u8));
    assert!(matches!(pixel(width / 2, height / 2), [114..=255, 0, 0]), "{:?}", pixel(width / 2, height / 2));
    assert!(matches!(pixel(width / 2, height - 4), [0, 114..=255, 0]), "{:?}", pixel(width / 2, height - 4));
    let lightest = light.iter().map(|light| light.x.max(light.y)).fold(0.0, f32::max);
    assert!(lightest > 0.4 && lightest <= 1.0, "{lightest}");
    Ok([words(&light), words(&found)].concat())
}
