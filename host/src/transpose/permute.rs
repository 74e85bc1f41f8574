//! Permutations of three axes.

use cuda_std::element::Plain;

use super::PERMUTE;
use super::interleaved::InterleavedMatrix;
use super::segments::SegmentMatrix;
use super::strides::Strides;
use crate::{Error, Gpu, View, ViewMut};

/// The kernel family of a permutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    /// The elements keep their order.
    Copy,
    /// A batch of transposes.
    Transpose(Strides),
    /// The transpose of a matrix of contiguous segments.
    Segments(SegmentMatrix),
    /// A transpose with interleaved rows on one side.
    Interleaved(InterleavedMatrix),
}

impl Gpu {
    /// Permutes the axes of an array of three axes: axis `d` of the output is axis `axes[d]` of the input, as in
    /// NumPy's `transpose`. `shape` is the input's; both are in row-major order without gaps. Allocates nothing.
    ///
    /// Axes of one element are left out, and axes that stay neighbours are merged. The result is a copy, a transpose, a
    /// batch of transposes, a transpose of contiguous segments, or a transpose with interleaved rows.
    ///
    /// ```
    /// use warpfold::Gpu;
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// // Two pictures of 1 x 3 pixels with 2 colours each: colour before row before column.
    /// let pixels = gpu.upload(&[1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60])?;
    /// let mut planes = gpu.zeroed(12)?;
    /// gpu.permute([2, 3, 2], [0, 2, 1], &pixels, &mut planes)?;
    /// assert_eq!(gpu.download(&planes)?, [1, 2, 3, 10, 20, 30, 4, 5, 6, 40, 50, 60]);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// `axes` does not name each axis once, a view does not have the shape's length or belongs to another device, or no
    /// memory could hold the shape.
    pub fn permute<'i, 'o, T: Plain>(
        &self,
        shape: [usize; 3],
        axes: [usize; 3],
        input: impl Into<View<'i, T>>,
        output: impl Into<ViewMut<'o, T>>,
    ) -> Result<(), Error> {
        let (input, output) = (input.into(), output.into());
        self.own(input.memory(), PERMUTE)?;
        self.own(output.memory(), PERMUTE)?;
        if !(0..3).all(|axis| axes.contains(&axis)) {
            return Err(Error::Axes { axes });
        }
        let [a, b, c] = shape;
        let elements = if shape.contains(&0) { Some(0) } else { a.checked_mul(b).and_then(|rows| rows.checked_mul(c)) };
        let overflow = Error::ShapeOverflow { rows: a.saturating_mul(b), columns: c, size: size_of::<T>() };
        let elements = elements.ok_or(overflow)?;
        for (what, found) in [("the input", input.len()), ("the output", output.len())] {
            if found != elements {
                return Err(Error::Length { operation: PERMUTE, what, found, expected: elements });
            }
        }
        if elements == 0 {
            return Ok(());
        }
        match route(shape, axes, size_of::<T>()) {
            Route::Copy => self.copy_views(input, output),
            Route::Transpose(strides) => self.transpose_by_tiles(strides, input, output),
            Route::Segments(matrix) => self.permute_segments(matrix, input, output),
            Route::Interleaved(matrix) => self.transpose_interleaved(matrix, input, output),
        }
    }
}

/// Chooses the kernels that permute `shape`, of elements of `size` bytes, by `axes`.
fn route(shape: [usize; 3], axes: [usize; 3], size: usize) -> Route {
    // Input axes in the output's order, without axes of one element. Axes that are neighbours in both orders are
    // merged.
    let mut groups: Vec<(usize, usize)> = Vec::new();
    let kept: Vec<usize> = (0..3).filter(|&axis| shape[axis] != 1).collect();
    for &axis in axes.iter().filter(|axis| kept.contains(axis)) {
        let place = kept.iter().position(|&other| other == axis).unwrap_or_default();
        match groups.last_mut() {
            Some((last, len)) if *last + 1 == place => {
                (*last, *len) = (place, *len * shape[axis]);
            }
            _ => groups.push((place, shape[axis])),
        }
    }
    let lengths: Vec<usize> = groups.iter().map(|&(_, len)| len).collect();
    let mut positions: Vec<usize> = (0..groups.len()).collect();
    positions.sort_by_key(|&i| groups[i].0);
    // For each of the input's merged axes, its position in the output.
    match (positions[..].len(), &positions[..]) {
        (2, _) => Route::Transpose(Strides::of_matrix(lengths[1], lengths[0])),
        (3, [0, 2, 1]) => {
            let (batch, rows, columns) = (lengths[0], lengths[2], lengths[1]);
            Route::Transpose(Strides { batch, ..Strides::of_matrix(rows, columns) })
        }
        (3, [1, 0, 2]) => Route::Segments(SegmentMatrix { rows: lengths[1], columns: lengths[0], len: lengths[2] }),
        (3, _) => {
            let (rows, batch, columns) = (lengths[2], lengths[1], lengths[0]);
            if let Some(interleaved) = InterleavedMatrix::of_reversal([rows, batch, columns], size) {
                return Route::Interleaved(interleaved);
            }
            // The last axis becomes the first and the middle one stays: a matrix for each index of the middle axis.
            Route::Transpose(Strides {
                rows,
                columns,
                batch,
                input_pitch: batch * columns,
                output_pitch: batch * rows,
                input_batch: columns,
                output_batch: rows,
            })
        }
        _ => Route::Copy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_order_takes_the_cheapest_way() {
        let route = |shape, axes| route(shape, axes, 4);
        let shape = [2, 3, 5];
        assert_eq!(route(shape, [0, 1, 2]), Route::Copy);
        assert_eq!(route(shape, [1, 2, 0]), Route::Transpose(Strides::of_matrix(2, 15)));
        assert_eq!(route(shape, [2, 0, 1]), Route::Transpose(Strides::of_matrix(6, 5)));
        let batched = Strides { batch: 2, ..Strides::of_matrix(3, 5) };
        assert_eq!(route(shape, [0, 2, 1]), Route::Transpose(batched));
        assert_eq!(route(shape, [1, 0, 2]), Route::Segments(SegmentMatrix { rows: 2, columns: 3, len: 5 }));
        let Route::Transpose(transposed) = route(shape, [2, 1, 0]) else { panic!("no transpose") };
        assert_eq!((transposed.rows, transposed.columns, transposed.batch), (2, 5, 3));
        assert_eq!((transposed.input_pitch, transposed.input_batch), (15, 5));
        assert_eq!((transposed.output_pitch, transposed.output_batch), (6, 2));
        let Route::Interleaved(interleaved) = route([200, 3, 5], [2, 1, 0]) else { panic!("not interleaved") };
        assert_eq!((interleaved.rows, interleaved.columns, interleaved.output_ways), (200, 15, 5));
        // Axes of one element are left out.
        assert_eq!(route([1, 3, 5], [2, 1, 0]), Route::Transpose(Strides::of_matrix(3, 5)));
        assert_eq!(route([2, 1, 5], [1, 0, 2]), Route::Copy);
        assert_eq!(route([1, 1, 1], [2, 1, 0]), Route::Copy);
    }
}
