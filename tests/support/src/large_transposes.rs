//! Transposes of more than 2^32 elements of one byte, and of more than 2^31 bytes of elements of three.

use cuda_std::bytemuck::cast_slice;
use warpfold::{ArrayView, Error, Gpu, Layout};

/// The device memory for the largest of them: input and output. The host holds one of the two at a time.
pub const BYTES: usize = 9 << 30;

/// Sides of matrices past 2^32 elements, for each path: tiles of vectors, sector-aligned tiles, short-wide and
/// tall-skinny matrices.
pub const SIDES: [[usize; 2]; 4] = [[65_536, 65_552], [65_537, 65_539], [3, 1_431_655_777], [1_431_655_777, 3]];

/// The side of a square that is transposed in place, with 2^32 elements.
pub const SIDE_IN_PLACE: usize = 1 << 16;

/// The number of host threads that make and compare elements.
const THREADS: usize = 8;

/// Element `i` of an input: the high bits of a product, so that no side of a matrix is a period.
fn element(i: usize) -> u8 {
    ((i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

/// Calls `work` with chunks of whole rows of `elements`, of `columns` each, and with the first row of each chunk,
/// several at a time. Returns the first `Some`.
fn by_rows<T: Send>(
    elements: &mut [T],
    columns: usize,
    work: impl Fn(&mut [T], usize) -> Result<(), String> + Sync,
) -> Result<(), String> {
    let rows = (elements.len() / columns).div_ceil(THREADS);
    std::thread::scope(|scope| {
        let work = &work;
        let pieces = elements.chunks_mut(rows * columns).enumerate();
        let threads: Vec<_> = pieces.map(|(i, piece)| scope.spawn(move || work(piece, i * rows))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?)
    })
}

/// An input of `len` elements.
fn input(len: usize) -> Vec<u8> {
    let mut elements = vec![0; len];
    // The closure cannot fail.
    let _ = by_rows(&mut elements, 1, |piece, first| {
        for (i, x) in (first..).zip(piece) {
            *x = element(i);
        }
        Ok(())
    });
    elements
}

/// Checks that `found` is the transpose of the input of `rows` x `columns`.
fn compare(mut found: Vec<u8>, [rows, columns]: [usize; 2]) -> Result<(), String> {
    by_rows(&mut found, rows, |piece, first| {
        for (column, of_column) in (first..).zip(piece.chunks(rows)) {
            if let Some(row) = (0..rows).find(|row| of_column[*row] != element(row * columns + column)) {
                return Err(format!("{rows} x {columns}: element {row} of column {column} is wrong"));
            }
        }
        Ok(())
    })
}

/// Transposes byte matrices of these sides, and a square of that side in place.
///
/// # Errors
/// If a result is wrong, or on an error of the library.
pub fn check(gpu: &Gpu, sides: &[[usize; 2]], side_in_place: usize) -> Result<(), String> {
    let failed = |error: Error| error.to_string();
    for &[rows, columns] in sides {
        let from = gpu.upload(&input(rows * columns)).map_err(failed)?;
        let from = from.reshape(&[rows, columns]).map_err(failed)?;
        let mut to = gpu.zeroed::<u8>(rows * columns).and_then(|to| to.reshape(&[columns, rows])).map_err(failed)?;
        from.view().permute_axes(&[1, 0]).and_then(|from| gpu.copy_array(from, &mut to)).map_err(failed)?;
        drop(from);
        compare(gpu.download(&to).map_err(failed)?, [rows, columns])?;
    }
    let sides = [side_in_place; 2];
    let elements = input(side_in_place * side_in_place);
    let mut square = gpu.upload(&elements).map_err(failed)?.reshape(&[side_in_place, side_in_place]).map_err(failed)?;
    drop(elements);
    gpu.transpose_in_place(&mut square).map_err(failed)?;
    compare(gpu.download(&square).map_err(failed)?, sides)
}

/// Sides of matrices of elements of three bytes, of which there are more than 2^31 bytes: more than one launch moves.
pub const SIDES_OF_THREE_BYTES: [usize; 2] = [26_755, 26_759];

/// The device memory for them.
pub const BYTES_OF_THREE: usize = 5 << 30;

/// Transposes a matrix of these sides, whose rows begin one element further apart, and a square in place, of elements
/// of three bytes.
///
/// # Errors
/// If a result is wrong, or on an error of the library.
pub fn check_three_bytes(gpu: &Gpu, [rows, columns]: [usize; 2]) -> Result<(), String> {
    let failed = |error: Error| error.to_string();
    let element = |i: usize| [element(3 * i), element(3 * i + 1), element(3 * i + 2)];
    let pitch = columns + 1;
    let from = gpu.upload::<[u8; 3]>(cast_slice(&input(3 * rows * pitch))).map_err(failed)?;
    let to = Layout::strided(&[columns, rows], &[1, pitch as isize], 0)
        .and_then(|layout| gpu.contiguous(ArrayView::new(from.view(), &layout)?))
        .map_err(failed)?;
    drop(from);
    let mut found = gpu.download(&to).map_err(failed)?;
    drop(to);
    by_rows(&mut found, rows, |piece, first| {
        for (column, of_column) in (first..).zip(piece.chunks(rows)) {
            if let Some(row) = (0..rows).find(|row| of_column[*row] != element(row * pitch + column)) {
                return Err(format!("{rows} x {columns} of 3 bytes: element {row} of column {column} is wrong"));
            }
        }
        Ok(())
    })?;
    let elements = input(3 * rows * rows);
    let mut square =
        gpu.upload::<[u8; 3]>(cast_slice(&elements)).map_err(failed)?.reshape(&[rows, rows]).map_err(failed)?;
    drop(elements);
    gpu.transpose_in_place(&mut square).map_err(failed)?;
    let mut found = gpu.download(&square).map_err(failed)?;
    by_rows(&mut found, rows, |piece, first| {
        for (column, of_column) in (first..).zip(piece.chunks(rows)) {
            if let Some(row) = (0..rows).find(|row| of_column[*row] != element(row * rows + column)) {
                return Err(format!("{rows} x {rows} of 3 bytes in place: element {row} of column {column} is wrong"));
            }
        }
        Ok(())
    })
}
