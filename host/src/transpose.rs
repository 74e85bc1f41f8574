//! `Gpu::transpose`.

use crate::ladder::TransposeRung;
use crate::{Error, Gpu, Matrix};

impl Gpu {
    /// The transpose, as a new matrix.
    ///
    /// # Errors
    /// The matrix is another device's, or there is no memory for the result.
    pub fn transpose(&self, matrix: &Matrix<f32>) -> Result<Matrix<f32>, Error> {
        let mut result = self.zeroed_matrix(matrix.columns(), matrix.rows())?;
        self.transpose_into(matrix, &mut result)?;
        Ok(result)
    }

    /// Writes the transpose of `matrix` to `result`. Allocates nothing.
    ///
    /// # Errors
    /// `result` has not the transposed shape, or one of the two is another device's.
    pub fn transpose_into(&self, matrix: &Matrix<f32>, result: &mut Matrix<f32>) -> Result<(), Error> {
        TransposeRung::Vectorized.start(self, matrix, result)
    }
}
