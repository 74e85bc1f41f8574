//! Which elements go to which output.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use warpfold::{Error, Shape};

/// A shape, and its elements as a view has them.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// So many, to one output.
    All(usize),
    /// Rows, columns, and how far apart rows begin: to an output a row.
    Rows(usize, usize, usize),
    /// The same: to an output a column.
    Columns(usize, usize, usize),
    /// The axis with this number of an array with these extents.
    Axis([usize; 4], usize),
    /// So many segments by offsets, the longest of about this length, a quarter of them empty; which, by a seed.
    /// Elements before the first and behind the last belong to none.
    Segments {
        /// How many.
        count: usize,
        /// About how long the longest is.
        longest: usize,
        /// Which lengths.
        seed: u64,
    },
}

impl Form {
    /// The library's name for it; of segments, that of all their elements.
    ///
    /// # Errors
    /// The library's.
    pub fn shape(&self) -> Result<Shape, Error> {
        match *self {
            Self::All(len) => Ok(Shape::all(len)),
            Self::Segments { .. } => Ok(Shape::all(self.elements())),
            Self::Rows(rows, columns, pitch) => Shape::rows(rows, columns).with_pitch(pitch),
            Self::Columns(rows, columns, pitch) => Shape::columns(rows, columns).with_pitch(pitch),
            Self::Axis(extents, axis) => Shape::axis(&extents, axis),
        }
    }

    /// How many elements a view of it has.
    pub fn elements(&self) -> usize {
        match *self {
            Self::All(len) => len,
            Self::Rows(0, ..) | Self::Columns(0, ..) => 0,
            Self::Rows(rows, columns, pitch) | Self::Columns(rows, columns, pitch) => (rows - 1) * pitch + columns,
            Self::Axis(extents, _) => extents.iter().product(),
            Self::Segments { .. } => self.offsets().last().map_or(0, |&end| end as usize + 2),
        }
    }

    /// The offsets of segments, as a power law has them: as many of 1 to 10 elements as of 10 to 100. Of no other
    /// shape.
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

    /// For each output the places of its elements, in order.
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
