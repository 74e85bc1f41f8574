//! Permutations of three axes.

use cuda_std::element::Plain;

use super::PERMUTE;
use super::interleaved::InterleavedMatrix;
use super::segments::SegmentMatrix;
use super::strides::Strides;
use super::unit::{Sides, Unit, check_element};
use crate::{Error, Gpu, View, ViewMut};

/// The method for a permutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// The elements keep their order.
    Copy,
    /// A batch of transposes.
    Transpose(Strides),
    /// The transpose of a matrix of contiguous segments.
    Segments(SegmentMatrix),
    /// A transpose with interleaved rows on one side, of elements that one access moves.
    Interleaved(Unit, InterleavedMatrix),
}

impl Gpu {
    /// Permutes the axes of an array of three axes: axis `d` of the output is axis `axes[d]` of the input, as in
    /// NumPy's `transpose`. `shape` is the input's; both are in row-major order without gaps. Allocates nothing.
    ///
    /// Axes of one element are dropped, and axes that remain neighbours in the same order are merged. What remains is a
    /// copy, a transpose, a batch of transposes, a transpose of contiguous segments, or a transpose with interleaved
    /// rows.
    ///
    /// ```
    /// use warpfold::Gpu;
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// // Two images of 3 pixels with 2 channels each. In the output, each channel's pixels are contiguous.
    /// let pixels = gpu.upload(&[1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60])?;
    /// let mut planes = gpu.zeroed(12)?;
    /// gpu.permute([2, 3, 2], [0, 2, 1], &pixels, &mut planes)?;
    /// assert_eq!(gpu.download(&planes)?, [1, 2, 3, 10, 20, 30, 4, 5, 6, 40, 50, 60]);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// An element has no bytes or more than 64, `axes` is not a permutation of 0, 1 and 2, a view does not have the
    /// shape's length or belongs to another device, or no memory could hold the shape.
    pub fn permute<'i, 'o, T: Plain>(
        &self,
        shape: [usize; 3],
        axes: [usize; 3],
        input: impl Into<View<'i, T>>,
        output: impl Into<ViewMut<'o, T>>,
    ) -> Result<(), Error> {
        let (input, output) = (input.into(), output.into());
        check_element::<T>(PERMUTE)?;
        self.use_memory(input.memory(), PERMUTE)?;
        self.use_memory(output.memory(), PERMUTE)?;
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
        let sides = Sides::new(input, output);
        match choose_method(shape, axes, sides.size, sides.unit()) {
            Method::Copy => self.copy(sides.input, sides.output),
            Method::Transpose(strides) => self.transpose_matrices(strides, sides),
            Method::Segments(matrix) => self.permute_segments(matrix, sides),
            Method::Interleaved(unit, matrix) => self.transpose_interleaved(unit, matrix, sides.input, sides.output),
        }
    }
}

/// Chooses the kernels that permute `shape`, of elements of `size` bytes that are moved by `unit`, by `axes`.
fn choose_method(shape: [usize; 3], axes: [usize; 3], size: usize, unit: Unit) -> Method {
    // The input's axes in the output's order, without axes of one element. Axes that are neighbours in both orders are
    // merged. Each group is the place of its last axis in the input, and its length.
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
    // The position in the output of each of the input's merged axes.
    match (positions[..].len(), &positions[..]) {
        (2, _) => Method::Transpose(Strides::of_matrix(lengths[1], lengths[0])),
        (3, [0, 2, 1]) => {
            let (batch, rows, columns) = (lengths[0], lengths[2], lengths[1]);
            Method::Transpose(Strides { batch, ..Strides::of_matrix(rows, columns) })
        }
        (3, [1, 0, 2]) => Method::Segments(SegmentMatrix { rows: lengths[1], columns: lengths[0], len: lengths[2] }),
        (3, _) => {
            let (rows, batch, columns) = (lengths[2], lengths[1], lengths[0]);
            if unit.bytes() == size
                && let Some(interleaved) = InterleavedMatrix::of_reversal([rows, batch, columns], size)
            {
                return Method::Interleaved(unit, interleaved);
            }
            // The last axis becomes the first and the middle one stays: a matrix for each index of the middle axis.
            Method::Transpose(Strides {
                rows,
                columns,
                batch,
                input_pitch: batch * columns,
                output_pitch: batch * rows,
                input_batch_pitch: columns,
                output_batch_pitch: rows,
            })
        }
        _ => Method::Copy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_permutation_takes_the_cheapest_method() {
        let method = |shape, axes| choose_method(shape, axes, 4, Unit::Four);
        let shape = [2, 3, 5];
        assert_eq!(method(shape, [0, 1, 2]), Method::Copy);
        assert_eq!(method(shape, [1, 2, 0]), Method::Transpose(Strides::of_matrix(2, 15)));
        assert_eq!(method(shape, [2, 0, 1]), Method::Transpose(Strides::of_matrix(6, 5)));
        let batched = Strides { batch: 2, ..Strides::of_matrix(3, 5) };
        assert_eq!(method(shape, [0, 2, 1]), Method::Transpose(batched));
        assert_eq!(method(shape, [1, 0, 2]), Method::Segments(SegmentMatrix { rows: 2, columns: 3, len: 5 }));
        let Method::Transpose(transposed) = method(shape, [2, 1, 0]) else { panic!("no transpose") };
        assert_eq!((transposed.rows, transposed.columns, transposed.batch), (2, 5, 3));
        assert_eq!((transposed.input_pitch, transposed.input_batch_pitch), (15, 5));
        assert_eq!((transposed.output_pitch, transposed.output_batch_pitch), (6, 2));
        let Method::Interleaved(Unit::Four, interleaved) = method([200, 3, 5], [2, 1, 0]) else {
            panic!("not interleaved")
        };
        assert_eq!((interleaved.rows, interleaved.columns, interleaved.output_ways), (200, 15, 5));
        // Axes of one element are left out.
        assert_eq!(method([1, 3, 5], [2, 1, 0]), Method::Transpose(Strides::of_matrix(3, 5)));
        assert_eq!(method([2, 1, 5], [1, 0, 2]), Method::Copy);
        assert_eq!(method([1, 1, 1], [2, 1, 0]), Method::Copy);
    }
}
