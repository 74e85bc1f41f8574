//! The transpose ladder, by name.

use cuda_std::launch::Kernel;
use kernels::ladder::transpose::{self as ladder, TransposeArgs, VECTORIZED_TILE, tiles};

use super::{find, grid_of};
use crate::array::{TARGET, same_extents};
use crate::{Array, Error, Gpu};

/// The handle of a transpose kernel.
pub(crate) type Transpose = Kernel<TransposeArgs<'static, f32>>;

/// The rungs of the transpose ladder, from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransposeRung {
    /// [`kernels::ladder::transpose::copy_row`](fn@ladder::copy_row): a copy, the ceiling
    CopyRow,
    /// [`kernels::ladder::transpose::copy_column`](fn@ladder::copy_column): a copy, the floor
    CopyColumn,
    /// [`kernels::ladder::transpose::serial`](fn@ladder::serial)
    Serial,
    /// [`kernels::ladder::transpose::per_row`](fn@ladder::per_row)
    PerRow,
    /// [`kernels::ladder::transpose::per_element`](fn@ladder::per_element)
    PerElement,
    /// [`kernels::ladder::transpose::tiled`](fn@ladder::tiled), with tiles of 8 x 8
    Tiled8,
    /// The same with tiles of 16 x 16
    Tiled16,
    /// The same with tiles of 32 x 32
    Tiled32,
    /// [`kernels::ladder::transpose::tiled_padded`](fn@ladder::tiled_padded), with tiles of 32 x 32
    TiledPadded,
    /// [`kernels::ladder::transpose::tiled_rows`](fn@ladder::tiled_rows)
    TiledRows,
    /// [`kernels::ladder::transpose::diagonal`](fn@ladder::diagonal)
    Diagonal,
    /// [`kernels::ladder::transpose::vectorized`](fn@ladder::vectorized)
    Vectorized,
}

impl TransposeRung {
    /// All rungs, in order.
    pub const ALL: [Self; 12] = [
        Self::CopyRow,
        Self::CopyColumn,
        Self::Serial,
        Self::PerRow,
        Self::PerElement,
        Self::Tiled8,
        Self::Tiled16,
        Self::Tiled32,
        Self::TiledPadded,
        Self::TiledRows,
        Self::Diagonal,
        Self::Vectorized,
    ];

    /// The kernel's name, with the side of its tile if the rung is one of several.
    pub fn name(self) -> &'static str {
        match self {
            Self::CopyRow => "copy_row",
            Self::CopyColumn => "copy_column",
            Self::Serial => "serial",
            Self::PerRow => "per_row",
            Self::PerElement => "per_element",
            Self::Tiled8 => "tiled_8",
            Self::Tiled16 => "tiled_16",
            Self::Tiled32 => "tiled_32",
            Self::TiledPadded => "tiled_padded",
            Self::TiledRows => "tiled_rows",
            Self::Diagonal => "diagonal",
            Self::Vectorized => "vectorized",
        }
    }

    /// A short description of what the rung changes, compared with the rung before it.
    pub fn summary(self) -> &'static str {
        match self {
            Self::CopyRow => "a copy along the rows: the ceiling",
            Self::CopyColumn => "a copy along the columns: the floor",
            Self::Serial => "one thread",
            Self::PerRow => "a thread a row: scattered reads",
            Self::PerElement => "a thread an element: scattered writes",
            Self::Tiled8 => "a tile is transposed in shared memory",
            Self::Tiled16 => "longer rows",
            Self::Tiled32 => "full lines, and 32-way bank conflicts",
            Self::TiledPadded => "one unused column: no bank conflicts",
            Self::TiledRows => "four elements a thread",
            Self::Diagonal => "blocks along a diagonal",
            Self::Vectorized => "16-byte accesses, transposed in registers",
        }
    }

    /// The rung with this name.
    ///
    /// # Errors
    /// No rung has this name. The error lists all names.
    pub fn from_name(name: &str) -> Result<Self, Error> {
        find(&Self::ALL, name, Self::name)
    }

    /// Whether the rung copies the matrix: a bound for the rungs that transpose it.
    pub fn is_copy(self) -> bool {
        matches!(self, Self::CopyRow | Self::CopyColumn)
    }

    fn kernel(self) -> Transpose {
        match self {
            Self::CopyRow => ladder::copy_row::handle::<f32>(),
            Self::CopyColumn => ladder::copy_column::handle::<f32>(),
            Self::Serial => ladder::serial::handle::<f32>(),
            Self::PerRow => ladder::per_row::handle::<f32>(),
            Self::PerElement => ladder::per_element::handle::<f32>(),
            Self::Tiled8 => ladder::tiled::handle::<f32, 8>(),
            Self::Tiled16 => ladder::tiled::handle::<f32, 16>(),
            Self::Tiled32 => ladder::tiled::handle::<f32, 32>(),
            Self::TiledPadded => ladder::tiled_padded::handle::<f32, 32>(),
            Self::TiledRows => ladder::tiled_rows::handle::<f32>(),
            Self::Diagonal => ladder::diagonal::handle::<f32>(),
            Self::Vectorized => ladder::vectorized::handle::<f32>(),
        }
    }

    /// The number of blocks of a launch.
    fn blocks(self, rows: usize, columns: usize) -> usize {
        match self {
            Self::Serial => 1,
            Self::PerRow => rows.div_ceil(256),
            Self::Tiled8 => tiles(rows, columns, 8),
            Self::Tiled16 => tiles(rows, columns, 16),
            Self::Vectorized => tiles(rows, columns, VECTORIZED_TILE),
            _ => tiles(rows, columns, 32),
        }
    }

    /// Starts the transpose of `matrix` into `result`. A copy keeps the elements' order. Allocates nothing.
    ///
    /// # Errors
    /// The arrays do not have two axes each, `result` does not have the transposed shape, or one of the two belongs to
    /// another device.
    pub fn start(self, gpu: &Gpu, matrix: &Array<f32>, result: &mut Array<f32>) -> Result<(), Error> {
        const OPERATION: &str = "transpose";
        let &[rows, columns] = matrix.extents() else {
            let found = matrix.rank();
            return Err(Error::Length { operation: OPERATION, what: "the matrix's list of axes", found, expected: 2 });
        };
        let expected = matrix.layout().permute_axes(&[1, 0])?;
        same_extents(OPERATION, &expected, result.layout(), TARGET)?;
        if rows == 0 || columns == 0 {
            gpu.use_memory(matrix.buffer().view().memory(), OPERATION)?;
            return gpu.use_memory(result.buffer().view().memory(), OPERATION);
        }
        let kernel = self.kernel();
        let grid = grid_of(kernel.id(), self.blocks(rows, columns))?;
        let (input, output) = (matrix.buffer().view(), result.buffer_mut().view_mut());
        gpu.launch(kernel, grid, TransposeArgs { input, output, rows, columns })
    }
}
