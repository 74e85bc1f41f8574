//! The extents of a reduction: rows, columns, and the reduced axis.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use warpfold::{Error, Shape};

use crate::options::count;

/// Rows and columns, and the axis that is reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Extent {
    pub rows: usize,
    pub columns: usize,
    pub axis: Axis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    /// One result.
    All,
    /// A result for each row.
    Rows,
    /// A result for each column.
    Columns,
    /// A result for each segment by offsets. `rows` is the number of segments, and `columns` their mean length.
    Skewed,
    /// A result for each column of each matrix in a batch. The value is the number of matrices.
    #[serde(skip)]
    Middle(usize),
}

impl Extent {
    pub const fn all(len: usize) -> Self {
        Self { rows: 1, columns: len, axis: Axis::All }
    }

    /// One axis of an array in C order.
    ///
    /// # Errors
    /// Those of [`Shape::axis`].
    pub fn of_axis(extents: &[usize], axis: usize) -> Result<Self, Error> {
        Shape::axis(extents, axis)?;
        let (before, after) = (extents[..axis].iter().product(), extents[axis + 1..].iter().product());
        Ok(match (before, after) {
            (1, 1) => Self::all(extents[axis]),
            (_, 1) => Self { rows: before, columns: extents[axis], axis: Axis::Rows },
            (1, _) => Self { rows: extents[axis], columns: after, axis: Axis::Columns },
            _ => Self { rows: extents[axis], columns: after, axis: Axis::Middle(before) },
        })
    }

    pub fn elements(&self) -> usize {
        let batches = if let Axis::Middle(batches) = self.axis { batches } else { 1 };
        batches * self.rows * self.columns
    }

    /// The number of results.
    pub fn results(&self) -> usize {
        match self.axis {
            Axis::All => 1,
            Axis::Rows | Axis::Skewed => self.rows,
            Axis::Columns => self.columns,
            Axis::Middle(batches) => batches * self.columns,
        }
    }

    /// The shape. For segments by offsets, which have none, it is the shape of all elements.
    pub fn shape(&self) -> Result<Shape, Error> {
        Ok(match self.axis {
            Axis::Skewed => Shape::all(self.elements()),
            Axis::All => Shape::all(self.columns),
            Axis::Rows => Shape::rows(self.rows, self.columns),
            Axis::Columns => Shape::columns(self.rows, self.columns),
            Axis::Middle(batches) => Shape::axis(&[batches, self.rows, self.columns], 1)?,
        })
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |n: usize| if n >= 1024 && n.is_power_of_two() { format!("2^{}", n.ilog2()) } else { n.to_string() };
        match self.axis {
            Axis::All => f.pad(&side(self.columns)),
            Axis::Rows => f.pad(&format!("{} x {} rows", side(self.rows), side(self.columns))),
            Axis::Columns => f.pad(&format!("{} x {} columns", side(self.rows), side(self.columns))),
            Axis::Skewed => f.pad(&format!("{} x {} skewed", side(self.rows), side(self.columns))),
            Axis::Middle(batches) => {
                f.pad(&format!("{} x {} x {} along axis 1", side(batches), side(self.rows), side(self.columns)))
            }
        }
    }
}

/// The value of `--shape`: one shape, or lengths in steps of four.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lengths(pub Vec<Extent>);

const MATRIX: &str = "for a matrix write ROWSxCOLUMNS:rows or ROWSxCOLUMNS:columns, and for segments COUNTxMEAN:skewed";

impl FromStr for Lengths {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((first, last)) = text.split_once("..") {
            let (first, last) = (count(first)?, count(last)?);
            if first == 0 || last < first {
                return Err("the first length must be more than 0, and the last at least the first".to_owned());
            }
            let longer = |len: &usize| len.checked_mul(4).filter(|&len| len <= last);
            return Ok(Self(std::iter::successors(Some(first), longer).map(Extent::all).collect()));
        }
        let Some((sides, axis)) = text.split_once(':') else {
            let len = count(text).map_err(|error| format!("{error}; {MATRIX}"))?;
            return Ok(Self(vec![Extent::all(len)]));
        };
        let axis = match axis {
            "rows" => Axis::Rows,
            "columns" => Axis::Columns,
            "skewed" => Axis::Skewed,
            _ => return Err("expected `rows`, `columns` or `skewed` after the colon".to_owned()),
        };
        let (rows, columns) = sides.split_once('x').ok_or(MATRIX)?;
        let (rows, columns) = (count(rows)?, count(columns)?);
        if rows.checked_mul(columns).is_none() {
            return Err("too large for this machine".to_owned());
        }
        if axis == Axis::Skewed && (rows == 0 || columns == 0) {
            return Err("there must be at least one segment, with at least one element on average".to_owned());
        }
        Ok(Self(vec![Extent { rows, columns, axis }]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_means_the_same_as_in_the_library() {
        for (extents, axis, shown) in [
            (&[7][..], 0, "7"),
            (&[3, 5], 0, "3 x 5 columns"),
            (&[3, 5], 1, "3 x 5 rows"),
            (&[2, 3, 5], 1, "2 x 3 x 5 along axis 1"),
            (&[2, 3, 5], 2, "6 x 5 rows"),
            (&[1, 3, 5, 1], 2, "3 x 5 rows"),
            (&[0, 3, 5], 1, "0 x 3 x 5 along axis 1"),
        ] {
            let extent = Extent::of_axis(extents, axis).unwrap();
            let (own, library) = (extent.shape().unwrap(), Shape::axis(extents, axis).unwrap());
            assert_eq!(extent.to_string(), shown);
            assert_eq!((own.outputs(), own.elements_each()), (library.outputs(), library.elements_each()), "{shown}");
            assert_eq!((extent.results(), extent.elements()), (library.outputs(), extents.iter().product()), "{shown}");
        }
        assert!(Extent::of_axis(&[3, 5], 2).is_err());
        assert!(Extent::of_axis(&[0, 1 << 40, 1 << 40], 0).is_err());
    }
}
