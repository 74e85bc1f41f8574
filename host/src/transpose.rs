//! Transposes of elements of any type, shape and pitch.

use cuda_std::element::Plain;
use cuda_std::global::{Global, GlobalMut};
use cuda_std::launch::Kernel;
use kernels::transpose::tiles::{elements, squares, tiles};

use crate::{Error, Gpu, Matrix, View, ViewMut};

const OPERATION: &str = "transpose";

/// Matrices to transpose: their sides, how many there are, and how far apart rows and matrices begin.
///
/// ```
/// use warpfold::{Gpu, Transposition};
///
/// let gpu = Gpu::first_or_simt()?;
/// // Two matrices of 2 x 3 bytes, whose rows begin 4 apart: each becomes one of 3 x 2.
/// let input = gpu.upload(b"abc.def.ABC.DEF.")?;
/// let mut output = gpu.upload(b"------------")?;
/// gpu.transpose_views(Transposition::new(2, 3).batch(2).with_input_pitch(4)?, &input, &mut output)?;
/// assert_eq!(gpu.download(&output)?, b"adbecfADBECF");
/// # Ok::<(), warpfold::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transposition {
    rows: usize,
    columns: usize,
    batch: usize,
    input_pitch: usize,
    output_pitch: usize,
}

impl Transposition {
    /// Of one matrix of `rows` x `columns` elements in row-major order, without gaps.
    pub const fn new(rows: usize, columns: usize) -> Self {
        Self { rows, columns, batch: 1, input_pitch: columns, output_pitch: rows }
    }

    /// Of as many such matrices, one behind the other.
    pub const fn batch(self, matrices: usize) -> Self {
        Self { batch: matrices, ..self }
    }

    /// The same, where the input's rows begin `pitch` elements apart.
    ///
    /// # Errors
    /// They would overlap.
    pub fn with_input_pitch(self, pitch: usize) -> Result<Self, Error> {
        check_pitch("the input's pitch", pitch, self.columns)?;
        Ok(Self { input_pitch: pitch, ..self })
    }

    /// The same, where the output's rows begin `pitch` elements apart. What is between them stays as it is.
    ///
    /// # Errors
    /// They would overlap.
    pub fn with_output_pitch(self, pitch: usize) -> Result<Self, Error> {
        check_pitch("the output's pitch", pitch, self.rows)?;
        Ok(Self { output_pitch: pitch, ..self })
    }

    /// Elements that the input needs, of a size that any memory has.
    fn input_elements(&self, size: usize) -> Option<usize> {
        needed(self.batch, self.rows, self.input_pitch, self.columns, size)
    }

    /// Elements that the output needs.
    fn output_elements(&self, size: usize) -> Option<usize> {
        needed(self.batch, self.columns, self.output_pitch, self.rows, size)
    }
}

fn check_pitch(what: &'static str, found: usize, length: usize) -> Result<(), Error> {
    let expected = || format!("and rows of {length} elements begin at least that far apart");
    if found >= length { Ok(()) } else { Err(Error::Shape { operation: OPERATION, what, found, expected: expected() }) }
}

/// Elements up to the end of the last row of the last matrix.
fn needed(batch: usize, rows: usize, pitch: usize, columns: usize, size: usize) -> Option<usize> {
    if batch == 0 || rows == 0 || columns == 0 {
        return Some(0);
    }
    let rows_before = batch.checked_mul(rows)? - 1;
    let elements = rows_before.checked_mul(pitch)?.checked_add(columns)?;
    elements.checked_mul(size).filter(|&bytes| bytes <= isize::MAX as usize).map(|_| elements)
}

/// How many squares are across a tile, as a power of two, for elements of `size` bytes.
///
/// A square's side is 16 bytes of elements, and a tile has a fixed number of squares ([`squares`]). Rows of a tile should
/// be 256 bytes on both sides, eight sectors of memory in a row, which takes 16 squares; elements of 1 and 8 bytes have
/// room for 16 across and 8 or 32 down, those of 16 for 32 both ways. A matrix that is narrower gets a tile that is as
/// narrow and longer for it, since what is outside of the matrix is lost; one that is lower, a wider one.
fn squares_across(rows: usize, columns: usize, size: usize) -> u32 {
    let side = 16 / size;
    let all = squares(size).ilog2();
    let usual = if size == 16 { 5 } else { 4 };
    let log_of_needed = |elements: usize| elements.div_ceil(side).next_power_of_two().ilog2();
    let most_across = log_of_needed(columns);
    let fewest_across = all.saturating_sub(log_of_needed(rows));
    usual.max(fewest_across).min(most_across).min(all)
}

type TilesParameters<T> = (Global<'static, T>, GlobalMut<'static, T>, usize, usize, usize, usize, usize, usize, u32);

impl Gpu {
    /// The transpose, as a new matrix.
    ///
    /// # Errors
    /// The matrix is another device's, or there is no memory for the result.
    pub fn transpose<T: Plain>(&self, matrix: &Matrix<T>) -> Result<Matrix<T>, Error> {
        let mut result = self.zeroed_matrix(matrix.columns(), matrix.rows())?;
        self.transpose_into(matrix, &mut result)?;
        Ok(result)
    }

    /// Writes the transpose of `matrix` to `result`. Allocates nothing.
    ///
    /// # Errors
    /// `result` has not the transposed shape, or one of the two is another device's.
    pub fn transpose_into<T: Plain>(&self, matrix: &Matrix<T>, result: &mut Matrix<T>) -> Result<(), Error> {
        let (rows, columns) = (matrix.rows(), matrix.columns());
        let sides = [("the result's rows", result.rows(), columns), ("the result's columns", result.columns(), rows)];
        for (what, found, expected) in sides {
            if found != expected {
                return Err(Error::Length { operation: OPERATION, what, found, expected });
            }
        }
        self.transpose_views(Transposition::new(rows, columns), matrix, result.buffer_mut())
    }

    /// Writes the transposes of the input's matrices to the output: matrix after matrix, each of `columns` rows. Elements
    /// may be of any type of 1, 2, 4, 8 or 16 bytes; their bits are moved as they are. Allocates nothing.
    ///
    /// # Errors
    /// A view is shorter than the shape, or another device's; or no memory could hold the shape.
    pub fn transpose_views<'i, 'o, T: Plain>(
        &self,
        shape: Transposition,
        input: impl Into<View<'i, T>>,
        output: impl Into<ViewMut<'o, T>>,
    ) -> Result<(), Error> {
        let (input, output) = (input.into(), output.into());
        self.own(input.memory(), OPERATION)?;
        self.own(output.memory(), OPERATION)?;
        let Transposition { rows, columns, batch, .. } = shape;
        let overflow = Error::ShapeOverflow { rows: rows.saturating_mul(batch), columns, size: size_of::<T>() };
        let (Some(needed_in), Some(needed_out)) =
            (shape.input_elements(size_of::<T>()), shape.output_elements(size_of::<T>()))
        else {
            return Err(overflow);
        };
        for (what, found, expected) in [("the input", input.len(), needed_in), ("the output", output.len(), needed_out)]
        {
            if found < expected {
                return Err(Error::Length { operation: OPERATION, what, found, expected });
            }
        }
        if needed_in == 0 {
            return Ok(());
        }
        match size_of::<T>() {
            1 => self.transpose_by(tiles::handle::<u8, 32768>(), shape, input.cast(), output.cast()),
            2 => self.transpose_by(tiles::handle::<u16, 16384>(), shape, input.cast(), output.cast()),
            4 => self.transpose_by(tiles::handle::<u32, 4096>(), shape, input.cast(), output.cast()),
            8 => self.transpose_by(tiles::handle::<u64, 2048>(), shape, input.cast(), output.cast()),
            _ => self.transpose_by(tiles::handle::<u128, 1024>(), shape, input.cast(), output.cast()),
        }
    }

    fn transpose_by<T: Plain>(
        &self,
        kernel: Kernel<TilesParameters<T>>,
        shape: Transposition,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        let Transposition { rows, columns, batch, input_pitch, output_pitch } = shape;
        let size = size_of::<T>();
        let across = squares_across(rows, columns, size);
        let side = 16 / size;
        let (width, height) = (side << across, (squares(size) * side) >> across);
        debug_assert_eq!(width * height, elements(size));
        let blocks = rows.div_ceil(height) * columns.div_ceil(width) * batch;
        let grid = u32::try_from(blocks).map_err(|_| Error::Shape {
            operation: OPERATION,
            what: "the number of tiles",
            found: blocks,
            expected: "more than a grid has blocks for".to_owned(),
        })?;
        let (input_batch, output_batch) = (rows * input_pitch, columns * output_pitch);
        let arguments = (input, output, rows, columns, input_pitch, output_pitch, input_batch, output_batch, across);
        self.launch(kernel, grid, arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_square_where_there_is_room_and_strips_where_there_is_not() {
        let tile = |rows, columns, size| {
            let across = squares_across(rows, columns, size);
            let side = 16 / size;
            ((squares(size) * side) >> across, side << across)
        };
        assert_eq!(
            [1, 2, 4, 8, 16].map(|size| tile(9999, 9999, size)),
            [(128, 256), (128, 128), (64, 64), (64, 32), (32, 32)]
        );
        assert_eq!((tile(1 << 24, 16, 4), tile(16, 1 << 24, 4)), ((256, 16), (16, 256)));
        assert_eq!((tile(3, 1_000_033, 4), tile(1_000_033, 3, 4)), ((4, 1024), (1024, 4)));
        assert_eq!((tile(1, 1, 1), tile(1, 1, 16)), ((2048, 16), (1024, 1)));
    }

    #[test]
    fn shapes_that_no_memory_has_are_refused() {
        let shape = |rows, columns| Transposition::new(rows, columns);
        assert_eq!(shape(1 << 40, 1 << 40).input_elements(1), None);
        assert_eq!(shape(1 << 40, 1 << 20).input_elements(16), None);
        assert_eq!(shape(1 << 31, 2).batch(usize::MAX).output_elements(1), None);
        assert_eq!(shape(0, 7).input_elements(4), Some(0));
        assert_eq!(shape(3, 5).with_input_pitch(8).unwrap().batch(2).input_elements(4), Some(5 * 8 + 5));
        assert!(shape(3, 5).with_input_pitch(4).is_err() && shape(3, 5).with_output_pitch(2).is_err());
    }
}
