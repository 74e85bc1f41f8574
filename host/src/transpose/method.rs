//! Chooses the kernels for a copy between two layouts.

use super::canonical::{Axis, Canonical};
use super::interleaved::InterleavedMatrix;
use super::segments::SegmentMatrix;
use super::strides::Strides;

/// The kernels for a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// This number of units, which are neighbours on both sides.
    Contiguous(usize),
    /// Transposes, for each index of the outer axes.
    Transposes(Strides, Vec<Axis>),
    /// The transpose of a matrix of contiguous segments.
    Segments(SegmentMatrix),
    /// A transpose with interleaved rows on one side.
    Interleaved(InterleavedMatrix),
    /// Anything else: unit by unit.
    Strided,
}

/// Transposes are launched in turn, for the axes that are one too many, if there are at most this number, and each
/// moves at least this number of bytes. Otherwise the time between launches would count.
const MAX_LAUNCHES: usize = 16;
const MIN_BYTES_OF_LAUNCH: usize = 1 << 18;

impl Method {
    /// The method for a copy.
    pub fn of(copy: &Canonical) -> Self {
        match copy.axes[..] {
            [] => Self::Contiguous(1),
            [Axis { extent, input: 1, output: 1 }] => Self::Contiguous(extent),
            [segment @ Axis { input: 1, output: 1, .. }, rows, columns] => {
                segments(segment, rows, columns).map_or(Self::Strided, Self::Segments)
            }
            [columns, middle, rows] => {
                interleaved(copy, [rows, middle, columns]).map_or_else(|| transposes(copy), Self::Interleaved)
            }
            _ => transposes(copy),
        }
    }

    /// The method for a copy whose elements are changed on their way: [`Method::Transposes`] or [`Method::Strided`].
    pub fn of_scaled(copy: &Canonical) -> Self {
        transposes(copy)
    }
}

/// The matrix of segments that two axes around a segment are, if there are no gaps.
fn segments(segment: Axis, rows: Axis, columns: Axis) -> Option<SegmentMatrix> {
    let matrix = SegmentMatrix { rows: rows.extent, columns: columns.extent, len: segment.extent };
    let SegmentMatrix { rows: height, columns: width, len } = matrix;
    let in_input = [columns.input, rows.input] == [len as isize, (len * width) as isize];
    let in_output = [rows.output, columns.output] == [len as isize, (len * height) as isize];
    (in_input && in_output).then_some(matrix)
}

/// The interleaved matrix whose transpose reverses three axes, if there are no gaps.
fn interleaved(copy: &Canonical, [rows, middle, columns]: [Axis; 3]) -> Option<InterleavedMatrix> {
    // The input's axes, the slowest first, are `columns`, `middle`, `rows`: the output's fastest axis is the slowest.
    let [a, b, c] = [columns.extent, middle.extent, rows.extent];
    let in_input = [rows.input, middle.input, columns.input] == [1, c as isize, (b * c) as isize];
    let in_output = [columns.output, middle.output, rows.output] == [1, a as isize, (a * b) as isize];
    if in_input && in_output { InterleavedMatrix::of_reversal([a, b, c], copy.unit.bytes()) } else { None }
}

/// A batch of transposes, if one axis is contiguous in the output, and another one in the input.
fn transposes(copy: &Canonical) -> Method {
    let Some((rows, others)) = copy.axes.split_first() else { return Method::Strided };
    let Some(at) = others.iter().position(|axis| axis.input == 1) else { return Method::Strided };
    let mut outer = others.to_vec();
    let columns = outer.remove(at);
    // The kernels' strides have no sign, and rows do not overlap.
    let is_matrix = rows.output == 1
        && rows.input >= columns.extent as isize
        && columns.output >= rows.extent as isize
        && outer.iter().all(|axis| axis.input >= 0);
    if !is_matrix {
        return Method::Strided;
    }
    let (input_pitch, output_pitch) = (rows.input as usize, columns.output as usize);
    let (rows, columns) = (rows.extent, columns.extent);
    let mut strides = Strides {
        rows,
        columns,
        batch: 1,
        input_pitch,
        output_pitch,
        input_batch_pitch: rows.saturating_mul(input_pitch),
        output_batch_pitch: columns.saturating_mul(output_pitch),
    };
    if let Some(longest) = (0..outer.len()).max_by_key(|&i| outer[i].extent) {
        let batch = outer.remove(longest);
        strides.batch = batch.extent;
        (strides.input_batch_pitch, strides.output_batch_pitch) = (batch.input as usize, batch.output as usize);
    }
    let launches: usize = outer.iter().map(|axis| axis.extent).product();
    let bytes = (rows * columns).saturating_mul(strides.batch).saturating_mul(copy.unit.bytes());
    if launches > 1 && (launches > MAX_LAUNCHES || bytes < MIN_BYTES_OF_LAUNCH) {
        return Method::Strided;
    }
    Method::Transposes(strides, outer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;

    fn method(size: usize, from: &Layout) -> Method {
        let to = Layout::contiguous(from.extents()).unwrap();
        Method::of(&Canonical::new(size, [0, 0], from, &to))
    }

    fn permuted(extents: &[usize], axes: &[isize]) -> Method {
        method(4, &Layout::contiguous(extents).unwrap().permute_axes(axes).unwrap())
    }

    fn transpose(strides: Strides) -> Method {
        Method::Transposes(strides, Vec::new())
    }

    #[test]
    fn each_permutation_takes_the_cheapest_method() {
        let shape = [2, 3, 5];
        assert_eq!(permuted(&shape, &[0, 1, 2]), Method::Contiguous(30 / 2));
        assert_eq!(permuted(&shape, &[1, 2, 0]), transpose(Strides::of_matrix(2, 15)));
        assert_eq!(permuted(&shape, &[2, 0, 1]), transpose(Strides::of_matrix(6, 5)));
        let batched = Strides { batch: 2, ..Strides::of_matrix(3, 5) };
        assert_eq!(permuted(&shape, &[0, 2, 1]), transpose(batched));
        let segments = SegmentMatrix { rows: 2, columns: 3, len: 5 };
        assert_eq!(permuted(&shape, &[1, 0, 2]), Method::Segments(segments));
        let Method::Transposes(reversed, outer) = permuted(&shape, &[2, 1, 0]) else { panic!("no transpose") };
        assert_eq!((reversed.rows, reversed.columns, reversed.batch, &outer[..]), (2, 5, 3, &[][..]));
        assert_eq!((reversed.input_pitch, reversed.input_batch_pitch), (15, 5));
        assert_eq!((reversed.output_pitch, reversed.output_batch_pitch), (6, 2));
        let Method::Interleaved(interleaved) = permuted(&[200, 3, 5], &[2, 1, 0]) else { panic!("not interleaved") };
        assert_eq!((interleaved.rows, interleaved.columns, interleaved.output_ways), (200, 15, 5));
        // Axes of one element are left out.
        assert_eq!(permuted(&[1, 3, 5], &[2, 1, 0]), transpose(Strides::of_matrix(3, 5)));
        assert_eq!(permuted(&[2, 1, 5], &[1, 0, 2]), Method::Contiguous(5));
        assert_eq!(permuted(&[1, 1, 1], &[2, 1, 0]), Method::Contiguous(1));
    }

    #[test]
    fn what_people_permute_takes_the_kernels_for_three_axes() {
        let batched = Strides { batch: 64, ..Strides::of_matrix(3, 224 * 224) };
        assert_eq!(permuted(&[64, 3, 224, 224], &[0, 2, 3, 1]), transpose(batched));
        let pairs = SegmentMatrix { rows: 16, columns: 12, len: 7 };
        assert_eq!(permuted(&[4, 4, 3, 4, 7], &[2, 3, 0, 1, 4]), Method::Segments(pairs));
        // Several batch axes: a launch for each index of the shorter one.
        let Method::Transposes(strides, outer) = permuted(&[6, 40, 100, 64], &[1, 0, 3, 2]) else { panic!("strided") };
        assert_eq!((strides.batch, outer[0].extent, outer.len()), (40, 6, 1), "{strides:?}");
        // Many small launches would take longer.
        assert_eq!(permuted(&[6, 4, 10, 7], &[1, 0, 3, 2]), Method::Strided);
    }

    #[test]
    fn gaps_and_signs_take_what_allows_them() {
        let x = Layout::contiguous(&[40, 60]).unwrap();
        // A part of a matrix, transposed.
        let part = x.slice(1, 3..50, 1).unwrap().permute_axes(&[1, 0]).unwrap();
        let Method::Transposes(strides, _) = method(4, &part) else { panic!("no transpose") };
        assert_eq!((strides.rows, strides.columns, strides.input_pitch, strides.output_pitch), (40, 47, 60, 40));
        for odd in [
            x.reverse(0).unwrap().permute_axes(&[1, 0]).unwrap(),
            x.slice(1, .., 2).unwrap().permute_axes(&[1, 0]).unwrap(),
            x.slice(1, 3..50, 1).unwrap(),
            Layout::contiguous(&[60]).unwrap().broadcast_to(&[40, 60]).unwrap(),
            // Rows that overlap.
            Layout::strided(&[40, 60], &[1, 7], 0).unwrap(),
        ] {
            assert_eq!(method(4, &odd), Method::Strided, "{odd}");
        }
    }
}
