//! The launch of the kernels that transpose matrices of runs.

use cuda_std::element::Plain;
use cuda_std::launch::Kernel;
use kernels::transpose::run_strips::{are_strips, run_strips};
use kernels::transpose::run_tiles::{RunTiles, run_tiles};
use kernels::transpose::strips::room;
use kernels::transpose::tuning::{
    COPY_BLOCK, COPY_ELEMENTS, COPY_VECTORS, PACKED_BLOCK, PACKED_BLOCKS, elements_per_store, long_segment,
};
use kernels::transpose::{runs, whole_runs};

use super::launch::{MOST_BLOCKS, Strides};
use super::permute::OPERATION;
use crate::{Error, Gpu, View, ViewMut};

/// A matrix whose elements are runs of neighbouring elements: at least two of them, in at least two rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MatrixOfRuns {
    pub rows: usize,
    pub columns: usize,
    pub len: usize,
}

impl Gpu {
    /// Writes a matrix of runs with its rows as columns: as elements of the runs' size, if that is one, or else by
    /// tiles, or run by run, in the widest accesses in which all of them begin and end.
    pub(super) fn transpose_runs<T: Plain>(
        &self,
        matrix: MatrixOfRuns,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        let bytes = matrix.len * size_of::<T>();
        // The largest power of two, up to 16, that everything begins at a multiple of.
        let unit = 1 << (input.device_address() | output.device_address() | bytes as u64 | 16).trailing_zeros();
        if bytes == unit {
            let strides = Strides::of_matrix(matrix.rows, matrix.columns);
            return match unit {
                2 => self.transpose_by_tiles::<u16>(strides, input.cast(), output.cast()),
                4 => self.transpose_by_tiles::<u32>(strides, input.cast(), output.cast()),
                8 => self.transpose_by_tiles::<u64>(strides, input.cast(), output.cast()),
                _ => self.transpose_by_tiles::<u128>(strides, input.cast(), output.cast()),
            };
        }
        let of = |size: usize| MatrixOfRuns { len: bytes / size, ..matrix };
        match (unit, bytes < long_segment(unit)) {
            (1, true) => {
                // SAFETY: only this plan launches them, with arguments that it has made for views that have the shape.
                let kernels =
                    unsafe { (run_tiles::handle::<u8, { room(1) }>(), run_strips::handle::<u8, { room(1) }>()) };
                self.short_runs(kernels, of(1), input.cast(), output.cast())
            }
            (2, true) => {
                // SAFETY: only this plan launches them, with arguments that it has made for views that have the shape.
                let kernels =
                    unsafe { (run_tiles::handle::<u16, { room(2) }>(), run_strips::handle::<u16, { room(2) }>()) };
                self.short_runs(kernels, of(2), input.cast(), output.cast())
            }
            (4, true) => {
                // SAFETY: only this plan launches them, with arguments that it has made for views that have the shape.
                let kernels =
                    unsafe { (run_tiles::handle::<u32, { room(4) }>(), run_strips::handle::<u32, { room(4) }>()) };
                self.short_runs(kernels, of(4), input.cast(), output.cast())
            }
            (_, true) => {
                // SAFETY: only this plan launches them, with arguments that it has made for views that have the shape.
                let kernels =
                    unsafe { (run_tiles::handle::<u64, { room(8) }>(), run_strips::handle::<u64, { room(8) }>()) };
                self.short_runs(kernels, of(8), input.cast(), output.cast())
            }
            (1, false) => {
                // SAFETY: only this plan launches it, with arguments that it has made for views that have the shape.
                let kernel = unsafe { runs::runs::handle::<u8>() };
                self.runs_by_parts(kernel, of(1), input.cast(), output.cast())
            }
            (2, false) => {
                // SAFETY: only this plan launches it, with arguments that it has made for views that have the shape.
                let kernel = unsafe { runs::runs::handle::<u16>() };
                self.runs_by_parts(kernel, of(2), input.cast(), output.cast())
            }
            (4, false) => {
                // SAFETY: only this plan launches it, with arguments that it has made for views that have the shape.
                let kernel = unsafe { whole_runs::whole_runs::handle::<u32>() };
                self.whole_runs(kernel, of(4), input.cast(), output.cast())
            }
            (8, false) => {
                // SAFETY: only this plan launches it, with arguments that it has made for views that have the shape.
                let kernel = unsafe { whole_runs::whole_runs::handle::<u64>() };
                self.whole_runs(kernel, of(8), input.cast(), output.cast())
            }
            (_, false) => {
                // SAFETY: only this plan launches it, with arguments that it has made for views that have the shape.
                let kernel = unsafe { whole_runs::whole_runs::handle::<u128>() };
                self.whole_runs(kernel, of(16), input.cast(), output.cast())
            }
        }
    }

    /// By tiles, which of few rows are strips.
    fn short_runs<T: Plain>(
        &self,
        (tiles_kernel, strips_kernel): (Kernel<run_tiles::Args<'static, T>>, Kernel<run_strips::Args<'static, T>>),
        MatrixOfRuns { rows, columns, len }: MatrixOfRuns,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        let size = size_of::<T>();
        if are_strips(rows, len, size) {
            let strips = RunTiles::of_strips(rows, columns, len, size, PACKED_BLOCKS);
            let grid = grid(columns.div_ceil(strips.width))?;
            let arguments = run_strips::Args {
                input,
                output,
                rows: rows as u32,
                columns,
                len: len as u32,
                width: strips.width as u32,
                vectors_of_row: strips.vectors_of_row as u32,
                room_of_row: strips.room_of_row as u32,
            };
            return self.launch(strips_kernel, grid, arguments);
        }
        let tiles = RunTiles::new(rows, columns, len, size, PACKED_BLOCKS);
        let down = rows.div_ceil(tiles.height);
        let grid = grid(down * columns.div_ceil(tiles.width))?;
        let threads = tiles.threads_of_row(len, size);
        // After so many rows of the output one begins at the same place in a word.
        let turns = elements_per_store(size) >> (rows * len).trailing_zeros().min(elements_per_store(size).ilog2());
        let step = (PACKED_BLOCK / threads).max(turns as usize) as u32;
        let arguments = run_tiles::Args {
            input,
            output,
            rows,
            columns,
            len: len as u32,
            height: tiles.height as u32,
            width: tiles.width as u32,
            tiles_down: down as u32,
            vectors_of_row: tiles.vectors_of_row as u32,
            room_of_row: tiles.room_of_row as u32,
            threads_of_row: threads as u32,
            step,
        };
        self.launch(tiles_kernel, grid, arguments)
    }

    fn whole_runs<T: Plain>(
        &self,
        kernel: Kernel<whole_runs::whole_runs::Args<'static, T>>,
        MatrixOfRuns { rows, columns, len }: MatrixOfRuns,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        let grid = grid((rows * columns * len).div_ceil(COPY_BLOCK * COPY_ELEMENTS))?;
        self.launch(kernel, grid, whole_runs::whole_runs::Args { input, output, rows, columns, len })
    }

    fn runs_by_parts<T: Plain>(
        &self,
        kernel: Kernel<runs::runs::Args<'static, T>>,
        MatrixOfRuns { rows, columns, len }: MatrixOfRuns,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        let of_vector = 16 / size_of::<T>();
        let is_aligned = len.is_multiple_of(of_vector) && output.device_address().is_multiple_of(16);
        let vectors = len.div_ceil(of_vector) + usize::from(!is_aligned);
        let grid = grid((rows * columns * vectors).div_ceil(COPY_BLOCK * COPY_VECTORS))?;
        self.launch(kernel, grid, runs::runs::Args { input, output, outer: rows, inner: columns, len, vectors })
    }
}

/// As many blocks as a grid may have.
fn grid(blocks: usize) -> Result<u32, Error> {
    if blocks > MOST_BLOCKS {
        let expected = "as many as a grid has, less than 2^31".to_owned();
        return Err(Error::Shape { operation: OPERATION, what: "the number of blocks", found: blocks, expected });
    }
    Ok(blocks as u32)
}
