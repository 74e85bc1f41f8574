//! Shapes of test inputs, and the elements of each output.

use crate::shape::Shape;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use warpfold::Error;

/// The shape of a reduction.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// All of this number of elements, with one output.
    All(usize),
    /// Rows, columns and pitch of a matrix, with an output for each row.
    Rows(usize, usize, usize),
    /// Rows, columns and pitch of a matrix, with an output for each column.
    Columns(usize, usize, usize),
    /// The extents of an array, and the axis that is reduced.
    Axis([usize; 4], usize),
    /// Segments by offsets, a quarter of them empty. There are elements before the first and after the last segment.
    Segments {
        /// The number of segments.
        count: usize,
        /// The approximate length of the longest.
        longest: usize,
        /// The seed of the lengths.
        seed: u64,
    },
}

impl Form {
    /// The library's shape; for segments, the shape of all their elements.
    ///
    /// # Errors
    /// On an error of the library.
    pub fn shape(&self) -> Result<Shape, Error> {
        match *self {
            Self::All(len) => Ok(Shape::all(len)),
            Self::Segments { .. } => Ok(Shape::all(self.elements())),
            Self::Rows(rows, columns, pitch) => Shape::rows(rows, columns).with_pitch(pitch),
            Self::Columns(rows, columns, pitch) => Shape::columns(rows, columns).with_pitch(pitch),
            Self::Axis(extents, axis) => Shape::axis(&extents, axis),
        }
    }

    /// The number of elements of the view.
    pub fn elements(&self) -> usize {
        match *self {
            Self::All(len) => len,
            Self::Rows(0, ..) | Self::Columns(0, ..) => 0,
            Self::Rows(rows, columns, pitch) | Self::Columns(rows, columns, pitch) => (rows - 1) * pitch + columns,
            Self::Axis(extents, _) => extents.iter().product(),
            Self::Segments { .. } => self.offsets().last().map_or(0, |&end| end as usize + 2),
        }
    }

    /// The offsets of segments; empty for other shapes. The lengths have a power law: as many are between 1 and 10 as
    /// between 10 and 100.
    pub fn offsets(&self) -> Vec<u64> {
        let Self::Segments { count, longest, seed } = *self else { return Vec::new() };
        let mut source = SmallRng::seed_from_u64(seed);
        let mut end = 1;
        let mut offsets = vec![end];
        for _ in 0..count {
            if source.random_range(0..4) > 0 {
                end += (longest as f64).powf(source.random()) as u64;
            }
            offsets.push(end);
        }
        offsets
    }

    /// The indices of each output's elements, in order.
    pub fn groups(&self) -> Vec<Vec<usize>> {
        match *self {
            Self::All(len) => vec![(0..len).collect()],
            Self::Segments { .. } => {
                let segment = |ends: &[u64]| (ends[0] as usize..ends[1] as usize).collect();
                self.offsets().windows(2).map(segment).collect()
            }
            Self::Rows(rows, columns, pitch) => {
                (0..rows).map(|row| (0..columns).map(|column| row * pitch + column).collect()).collect()
            }
            Self::Columns(rows, columns, pitch) => {
                (0..columns).map(|column| (0..rows).map(|row| row * pitch + column).collect()).collect()
            }
            Self::Axis(extents, axis) => {
                let inner: usize = extents[axis + 1..].iter().product();
                let outer: usize = extents[..axis].iter().product();
                let along = extents[axis];
                let group = |o: usize, i: usize| (0..along).map(|k| (o * along + k) * inner + i).collect();
                (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))).map(|(o, i)| group(o, i)).collect()
            }
        }
    }
}
