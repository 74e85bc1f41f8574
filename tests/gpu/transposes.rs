//! Transposes by the ladder's rungs, of every element size, in place, by tiles, and of three axes.

use libtest_mimic::Failed;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use test_support::reference::{first_difference, transposed};
use test_support::sizes;
use test_support::tiles::TileCheck;
use test_support::transposes::{ALIGNED, Case, Check, LARGE, MANY, PermuteCheck, SIDES, TALL};
use warpfold::Gpu;
use warpfold::ladder::TransposeRung;

use crate::is_sanitized;

/// Transposes of one element size: sides around every boundary of a tile, with pitches, batches and offsets.
pub fn transposes_of(gpu: &Gpu, check: Check) -> Result<(), Failed> {
    let mut source = SmallRng::from_os_rng();
    let sides = if is_sanitized() { &[1, 17, 64, 129][..] } else { &SIDES[..] };
    let mut shapes: Vec<(usize, usize)> =
        sides.iter().flat_map(|&rows| sides.iter().map(move |&columns| (rows, columns))).collect();
    shapes.extend([(3, 5000), (5000, 3), (16, 3000), (3000, 16)]);
    if !is_sanitized() {
        // The largest matrices transposed without tiles, of 8 bytes and of 4, and larger ones, for any element.
        shapes.extend([(512, 1024), (1024, 1024)]);
        shapes.extend([(1023, 1025), (1024, 2048), (2064, 4128), (1, 300_000), (300_000, 1)]);
    }
    for (i, (rows, columns)) in shapes.into_iter().enumerate() {
        for (batch, pads, offsets) in [(1, [0; 2], [0; 2]), (1 + i % 3, [i % 5, i % 3], [i % 17, i % 7])] {
            let case = Case { rows, columns, batch, pads, offsets, seed: source.random() };
            check(gpu, &case)?;
        }
    }
    for case in if is_sanitized() { &LARGE[2..] } else { &LARGE[..] } {
        check(gpu, &Case { seed: source.random(), ..*case })?;
    }
    for case in if is_sanitized() { &[][..] } else { &TALL[..] } {
        check(gpu, &Case { seed: source.random(), ..*case })?;
    }
    for case in [MANY, ALIGNED] {
        check(gpu, &Case { seed: source.random(), ..case })?;
    }
    Ok(())
}

/// Transposes of whole vectors by tiles, at their boundaries.
pub fn transposes_by_tiles(gpu: &Gpu, check: TileCheck) -> Result<(), Failed> {
    let sides: &[usize] = if is_sanitized() { &[16, 272] } else { &[16, 48, 128, 256, 272, 1040] };
    for &rows in sides {
        for &columns in sides {
            check(gpu, rows, columns, rand::random())?;
        }
    }
    Ok(())
}

/// Square matrices in place: sides around every boundary of a tile, with pitches, batches and offsets.
pub fn transposes_in_place(gpu: &Gpu, check: Check) -> Result<(), Failed> {
    let mut source = SmallRng::from_os_rng();
    let sides = if is_sanitized() { &[1, 17, 64, 129][..] } else { &SIDES[..] };
    let large = if is_sanitized() { &[][..] } else { &[1023, 1024][..] };
    for (i, &side) in sides.iter().chain(large).enumerate() {
        for (batch, pad, before) in [(1, 0, 0), (1 + i % 3, i % 5, i % 17)] {
            let (pads, offsets) = ([pad; 2], [before; 2]);
            let case = Case { rows: side, columns: side, batch, pads, offsets, seed: source.random() };
            check(gpu, &case)?;
        }
    }
    // Enough matrices that the large tiles are used.
    let many = Case { rows: 192, columns: 192, batch: 100, pads: [0; 2], offsets: [0; 2], seed: source.random() };
    check(gpu, &many)?;
    Ok(())
}

/// All orders of three axes, for shapes in which each axis has been short and long.
pub fn permutations(gpu: &Gpu, check: PermuteCheck) -> Result<(), Failed> {
    let mut source = SmallRng::from_os_rng();
    let mut shapes = vec![[1, 2, 3], [5, 16, 7], [16, 7, 4], [2, 33, 64], [9, 1, 40], [31, 8, 16], [40, 50, 3]];
    shapes.extend([[3, 500, 5], [500, 3, 7], [20, 30, 131]]);
    // Outer axes of which one is short, 16-byte aligned and not.
    shapes.extend([[160, 32, 3], [3, 32, 160], [161, 31, 5], [7, 29, 95]]);
    // The longest segments that go through tiles, for each access width, and slightly longer ones.
    shapes.extend([[5, 9, 31], [9, 7, 255], [2, 3, 7999], [3, 2, 8999], [2, 3, 9999], [2, 3, 10_001]]);
    if !is_sanitized() {
        shapes.extend([
            [300, 170, 3],
            [4096, 640, 3],
            [3, 77, 9000],
            [3, 5000, 5],
            [5000, 3, 5],
            [70, 90, 33],
            [33, 35, 1024],
            [65, 3, 4100],
            [47, 53, 7999],
            [41, 61, 4999],
            [30, 11, 12_001],
        ]);
        // The largest tiles of segments, for every element size.
        shapes.extend([[2400, 2500, 3], [8, 800_000, 3], [800_000, 8, 3], [301, 211, 255], [151, 99, 511]]);
        // Narrow matrices, whose rows are loaded together and separately.
        shapes.extend([[400_000, 16, 3], [300_000, 20, 3], [40_000, 18, 31], [90_001, 13, 5]]);
        // Tall-skinny matrices, whose rows are one word of the output, and a few words.
        shapes.extend([[2, 400_001, 3], [3, 300_000, 5], [5, 200_001, 7], [30, 50_000, 3], [3, 9, 41]]);
        shapes.extend([[200, 3, 129], [3, 200, 129], [129, 200, 3], [64, 64, 64], [127, 65, 1], [2, 3, 20_000]]);
    }
    for (i, shape) in shapes.into_iter().enumerate() {
        for offsets in [[0; 2], [i % 17, (3 * i + 1) % 7]] {
            check(gpu, shape, offsets, source.random())?;
        }
    }
    // Long segments whose accesses are aligned only in the output.
    check(gpu, [2, 3, 10_016], [1, 0], source.random())?;
    Ok(())
}

/// Transposes by a rung of the ladder.
pub fn transposes_by_rung(gpu: &Gpu, rung: TransposeRung) -> Result<(), Failed> {
    let mut source = SmallRng::from_os_rng();
    let mut shapes = sizes::shapes();
    // Several tiles per side, and around a block with one thread per row.
    shapes.extend([(1, 1), (1, 2), (64, 96), (127, 129), (128, 128), (129, 127), (255, 3), (256, 3), (257, 129)]);
    shapes.extend([(1, 5000), (5000, 1), (3, 4099)]);
    if !is_sanitized() {
        shapes.extend([(1023, 1025), (1024, 1024)]);
        // A single thread would take too long for these.
        if rung != TransposeRung::Serial {
            shapes.extend([(2_100_000, 2), (2, 2_100_000), (5000, 3001), (5000, 3000)]);
        }
    }
    for (rows, columns) in shapes {
        // Any bits: a transpose must keep the payloads of NaNs too.
        let elements: Vec<f32> = (0..rows * columns).map(|_| f32::from_bits(source.random())).collect();
        let matrix = gpu.upload(&elements)?.reshape(&[rows, columns])?;
        // Makes unwritten elements visible.
        let poison = vec![f32::from_bits(0xFFFF_FFFF); rows * columns];
        let mut result = gpu.upload(&poison)?.reshape(&[columns, rows])?;
        rung.start(gpu, &matrix, &mut result)?;
        let found = gpu.download(&result)?;
        let expected = if rung.is_copy() { elements.clone() } else { transposed(&elements, rows, columns) };
        if let Some(at) = first_difference(&found, &expected) {
            return Err(format!("{rows} x {columns}: element {at} of the transpose is wrong").into());
        }
        let again = gpu.download(&gpu.transpose(&gpu.transpose(&matrix)?)?)?;
        if first_difference(&again, &elements).is_some() {
            return Err(format!("{rows} x {columns}: transposing twice gives another matrix").into());
        }
    }
    Ok(())
}
