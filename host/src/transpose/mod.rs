//! Transposes of elements of any type, shape and pitch.

mod in_place;
mod interleaved;
mod launch;
mod packed;
mod permute;
mod scaled;
mod segments;
mod strided;
mod strides;
mod tiling;
mod unit;

use cuda_std::element::Plain;

use crate::{Error, Gpu, Matrix, View, ViewMut};

pub use scaled::{ScaledElement, Scaling};
use strides::Strides;
use unit::{Sides, check_element};

const OPERATION: &str = "transpose";
const PERMUTE: &str = "permute";

/// The shape of a transpose: the rows and columns of the matrices, the number of matrices, and the pitches.
///
/// ```
/// use warpfold::{Gpu, Transposition};
///
/// let gpu = Gpu::first_or_simt()?;
/// // Two matrices of 2 x 3 bytes, whose rows begin 4 bytes apart: each becomes a matrix of 3 x 2.
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
    /// One matrix of `rows` x `columns` elements in row-major order, without gaps.
    pub const fn new(rows: usize, columns: usize) -> Self {
        Self { rows, columns, batch: 1, input_pitch: columns, output_pitch: rows }
    }

    /// A batch of `matrices` such matrices, one after the other.
    pub const fn batch(self, matrices: usize) -> Self {
        Self { batch: matrices, ..self }
    }

    /// The same shape, with rows of the input that begin `pitch` elements apart.
    ///
    /// # Errors
    /// `pitch` is smaller than the length of a row, so rows would overlap.
    pub fn with_input_pitch(self, pitch: usize) -> Result<Self, Error> {
        check_pitch("the input's pitch", pitch, self.columns)?;
        Ok(Self { input_pitch: pitch, ..self })
    }

    /// The same shape, with rows of the output that begin `pitch` elements apart. Elements between rows are not
    /// written.
    ///
    /// # Errors
    /// `pitch` is smaller than the length of a row, so rows would overlap.
    pub fn with_output_pitch(self, pitch: usize) -> Result<Self, Error> {
        check_pitch("the output's pitch", pitch, self.rows)?;
        Ok(Self { output_pitch: pitch, ..self })
    }

    /// The shape of the transpose of `matrix`, if `result` has the transposed shape.
    fn between<T: Plain>(matrix: &Matrix<T>, result: &Matrix<T>) -> Result<Self, Error> {
        let (rows, columns) = (matrix.rows(), matrix.columns());
        let sides = [("the result's rows", result.rows(), columns), ("the result's columns", result.columns(), rows)];
        for (what, found, expected) in sides {
            if found != expected {
                return Err(Error::Length { operation: OPERATION, what, found, expected });
            }
        }
        Ok(Self::new(rows, columns))
    }

    /// Whether the transpose is a copy, because the matrices are one row or one column without gaps.
    const fn is_copy(&self) -> bool {
        (self.rows == 1 || self.columns == 1) && self.input_pitch == self.columns && self.output_pitch == self.rows
    }

    /// The strides of the shape. The pitch of a single row may be any number, so its length replaces it.
    const fn strides(&self) -> Strides {
        let Self { rows, columns, batch, .. } = *self;
        let input_pitch = if batch * rows == 1 { columns } else { self.input_pitch };
        let output_pitch = if batch * columns == 1 { rows } else { self.output_pitch };
        let (input_batch_pitch, output_batch_pitch) = (rows * input_pitch, columns * output_pitch);
        Strides { rows, columns, batch, input_pitch, output_pitch, input_batch_pitch, output_batch_pitch }
    }

    /// Checks that elements can be transposed, and that both views belong to the device and are long enough for the
    /// shape. Returns the number of the input's elements, 0 if there is nothing to do.
    fn check<T: Plain>(&self, gpu: &Gpu, input: &View<'_, T>, output: &ViewMut<'_, T>) -> Result<usize, Error> {
        check_element::<T>(OPERATION)?;
        gpu.use_memory(input.memory(), OPERATION)?;
        gpu.use_memory(output.memory(), OPERATION)?;
        let Self { rows, columns, batch, .. } = *self;
        let size = size_of::<T>();
        let (Some(needed_in), Some(needed_out)) = (self.input_elements(size), self.output_elements(size)) else {
            return Err(Error::ShapeOverflow { rows: rows.saturating_mul(batch), columns, size });
        };
        for (what, found, minimum) in [("the input", input.len(), needed_in), ("the output", output.len(), needed_out)]
        {
            if found < minimum {
                return Err(Error::TooShort { operation: OPERATION, what, found, minimum });
            }
        }
        Ok(needed_in)
    }

    /// The number of the input's elements, if memory could hold them.
    fn input_elements(&self, size: usize) -> Option<usize> {
        needed(self.batch, self.rows, self.input_pitch, self.columns, size)
    }

    /// The number of the output's elements, if memory could hold them.
    fn output_elements(&self, size: usize) -> Option<usize> {
        needed(self.batch, self.columns, self.output_pitch, self.rows, size)
    }
}

fn check_pitch(what: &'static str, found: usize, length: usize) -> Result<(), Error> {
    let expected = || format!("but rows of {length} elements need a pitch of at least {length}");
    if found >= length { Ok(()) } else { Err(Error::Shape { operation: OPERATION, what, found, expected: expected() }) }
}

/// The number of elements up to the end of the last row of the last matrix, if memory could hold them.
fn needed(batch: usize, rows: usize, pitch: usize, columns: usize, size: usize) -> Option<usize> {
    if batch == 0 || rows == 0 || columns == 0 {
        return Some(0);
    }
    let rows_before = batch.checked_mul(rows)? - 1;
    let elements = rows_before.checked_mul(pitch)?.checked_add(columns)?;
    elements.checked_mul(size).filter(|&bytes| bytes <= isize::MAX as usize).map(|_| elements)
}

impl Gpu {
    /// The transpose, as a new matrix.
    ///
    /// # Errors
    /// An element has no bytes or more than 64, the matrix belongs to another device, or there is no memory for the
    /// result.
    pub fn transpose<T: Plain>(&self, matrix: &Matrix<T>) -> Result<Matrix<T>, Error> {
        let mut result = self.zeroed_matrix(matrix.columns(), matrix.rows())?;
        self.transpose_into(matrix, &mut result)?;
        Ok(result)
    }

    /// Writes the transpose of `matrix` to `result`. Allocates nothing.
    ///
    /// # Errors
    /// An element has no bytes or more than 64, `result` does not have the transposed shape, or one of the two belongs
    /// to another device.
    pub fn transpose_into<T: Plain>(&self, matrix: &Matrix<T>, result: &mut Matrix<T>) -> Result<(), Error> {
        let shape = Transposition::between(matrix, result)?;
        self.transpose_views(shape, matrix, result.buffer_mut())
    }

    /// Writes the transposes of the input's matrices to the output, one after the other. Elements may be of any
    /// [`Plain`] type of 1 to 64 bytes: numbers, arrays of numbers, and user-defined types that implement `Plain`.
    /// Their bits are copied. Allocates nothing.
    ///
    /// # Errors
    /// An element has no bytes or more than 64, a view is shorter than the shape, or belongs to another device, or no
    /// memory could hold the shape.
    pub fn transpose_views<'i, 'o, T: Plain>(
        &self,
        shape: Transposition,
        input: impl Into<View<'i, T>>,
        output: impl Into<ViewMut<'o, T>>,
    ) -> Result<(), Error> {
        let (input, output) = (input.into(), output.into());
        let elements = shape.check(self, &input, &output)?;
        if elements == 0 {
            return Ok(());
        }
        if shape.is_copy() {
            return self.copy(input.slice(0, elements)?, output.slice(0, elements)?);
        }
        self.transpose_matrices(shape.strides(), Sides::new(input, output))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_larger_than_any_memory_are_refused() {
        let shape = |rows, columns| Transposition::new(rows, columns);
        assert_eq!(shape(1 << 40, 1 << 40).input_elements(1), None);
        assert_eq!(shape(1 << 40, 1 << 20).input_elements(16), None);
        assert_eq!(shape(1 << 31, 2).batch(usize::MAX).output_elements(1), None);
        assert_eq!(shape(0, 7).input_elements(4), Some(0));
        assert_eq!(shape(3, 5).with_input_pitch(8).unwrap().batch(2).input_elements(4), Some(5 * 8 + 5));
        assert!(shape(3, 5).with_input_pitch(4).is_err() && shape(3, 5).with_output_pitch(2).is_err());
    }
}
