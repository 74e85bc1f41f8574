//! `Gpu::transpose`.

use cuda_std::global::{Global, GlobalMut};
use cuda_std::launch::Kernel;
use kernels::transpose::ladder::{tiled_padded, tiles};

use crate::ladder::grid_of;
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
        launch(self, tiled_padded::handle::<f32, 32>(), matrix, result)
    }
}

/// Launches a kernel that transposes by square tiles of its block's side.
pub(crate) fn launch(
    gpu: &Gpu,
    kernel: Kernel<(Global<'static, f32>, GlobalMut<'static, f32>, usize, usize)>,
    matrix: &Matrix<f32>,
    result: &mut Matrix<f32>,
) -> Result<(), Error> {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    let sides = [("the result's rows", result.rows(), columns), ("the result's columns", result.columns(), rows)];
    for (what, found, expected) in sides {
        if found != expected {
            return Err(Error::Length { operation: "transpose", what, found, expected });
        }
    }
    if rows == 0 || columns == 0 {
        gpu.own(matrix.buffer().memory(), "transpose")?;
        return gpu.own(result.buffer().memory(), "transpose");
    }
    let grid = grid_of(kernel.id(), tiles(rows, columns, kernel.block().x as usize))?;
    gpu.launch(kernel, grid, (matrix.buffer().view(), result.buffer_mut().view_mut(), rows, columns))
}
