//! The forms of reductions that the peers have, and that the CPU computes without a copy.

use serde::Serialize;

/// Rows and columns of an array in C order, and which of them are reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    pub rows: usize,
    pub columns: usize,
    pub axis: Axis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    /// One result. There is one row.
    All,
    /// A result for each row.
    Rows,
    /// A result for each column.
    Columns,
    /// A result for each segment by offsets. `rows` is the number of segments, and `columns` their mean length.
    #[serde(skip)]
    Skewed,
    /// A result for each column of each matrix in a batch. The value is the number of matrices.
    #[serde(skip)]
    Middle(usize),
}

impl Form {
    /// The form of an array in C order, of whose axes each is reduced or not, and has an extent. Neighbours of one kind
    /// are one axis, and those of one element do not count.
    pub fn of(axes: impl Iterator<Item = (bool, usize)>) -> Option<Self> {
        let mut merged: Vec<(bool, usize)> = Vec::new();
        for (is_reduced, extent) in axes.filter(|&(_, extent)| extent != 1) {
            match merged.last_mut() {
                Some((kind, product)) if *kind == is_reduced => *product *= extent,
                _ => merged.push((is_reduced, extent)),
            }
        }
        let (rows, columns, axis) = match merged[..] {
            [] => (1, 1, Axis::All),
            [(true, len)] => (1, len, Axis::All),
            [(false, rows)] => (rows, 1, Axis::Rows),
            [(false, rows), (true, columns)] => (rows, columns, Axis::Rows),
            [(true, rows), (false, columns)] => (rows, columns, Axis::Columns),
            [(false, batches), (true, rows), (false, columns)] => (rows, columns, Axis::Middle(batches)),
            _ => return None,
        };
        Some(Self { rows, columns, axis })
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_merge_to_rows_and_columns() {
        for (axes, expected) in [
            (&[][..], Some((1, 1, Axis::All))),
            (&[(true, 7)], Some((1, 7, Axis::All))),
            (&[(true, 7), (true, 0)], Some((1, 0, Axis::All))),
            (&[(false, 7), (true, 1)], Some((7, 1, Axis::Rows))),
            (&[(false, 2), (false, 3), (true, 5)], Some((6, 5, Axis::Rows))),
            (&[(true, 3), (false, 1), (true, 5), (false, 2)], Some((15, 2, Axis::Columns))),
            (&[(false, 2), (true, 3), (false, 5)], Some((3, 5, Axis::Middle(2)))),
            (&[(true, 2), (false, 3), (true, 5)], None),
        ] {
            let form = Form::of(axes.iter().copied());
            assert_eq!(form, expected.map(|(rows, columns, axis)| Form { rows, columns, axis }), "{axes:?}");
            let of =
                |kind: bool| axes.iter().filter(move |(is_reduced, _)| *is_reduced == kind).map(|&(_, extent)| extent);
            if let Some(form) = form {
                let results = of(false).product::<usize>();
                assert_eq!((form.results(), form.elements()), (results, results * of(true).product::<usize>()));
            }
        }
    }
}
