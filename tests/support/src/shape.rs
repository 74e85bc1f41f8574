//! Rows and columns of a view, for tests of the kernels that take them.

use warpfold::{Axes, Error, Layout};

/// The elements of a view that are reduced to each output.
///
/// | shape | outputs | each of |
/// |---|---|---|
/// | [`Shape::all`] | 1 | everything |
/// | [`Shape::rows`] | one for each row | the row's elements |
/// | [`Shape::columns`] | one for each column | the column's elements |
/// | [`Shape::axis`] | the other axes, in their order | one axis of an array |
/// | [`Shape::segments`] | one for each segment | `len` contiguous elements |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `rows` contiguous segments of `len` elements, `pitch` apart.
    Rows { rows: usize, len: usize, pitch: usize },
    /// The columns of `batches` matrices, `batch_pitch` apart.
    Columns { batches: usize, rows: usize, columns: usize, pitch: usize, batch_pitch: usize },
}

impl Shape {
    /// All of `len` elements to one output.
    pub const fn all(len: usize) -> Self {
        Self { kind: Kind::Rows { rows: 1, len, pitch: len } }
    }

    /// Each row of a matrix in row-major order.
    pub const fn rows(rows: usize, columns: usize) -> Self {
        Self { kind: Kind::Rows { rows, len: columns, pitch: columns } }
    }

    /// `segments` segments of `len` contiguous elements each.
    pub const fn segments(segments: usize, len: usize) -> Self {
        Self::rows(segments, len)
    }

    /// Each column of a matrix in row-major order.
    pub const fn columns(rows: usize, columns: usize) -> Self {
        let batch_pitch = rows.saturating_mul(columns);
        Self { kind: Kind::Columns { batches: 1, rows, columns, pitch: columns, batch_pitch } }
    }

    /// The same rows or columns, of a matrix whose rows begin `pitch` elements apart.
    ///
    /// # Errors
    /// `pitch` is smaller than the length of a row, so rows would overlap.
    pub fn with_pitch(self, pitch: usize) -> Result<Self, Error> {
        let check = |columns: usize| {
            if pitch >= columns {
                return Ok(());
            }
            let expected = format!("but rows of {columns} elements need a pitch of at least {columns}");
            Err(Error::Shape { operation: "reduce", what: "the pitch", found: pitch, expected })
        };
        let kind = match self.kind {
            Kind::Rows { rows, len, .. } => {
                check(len)?;
                Kind::Rows { rows, len, pitch }
            }
            Kind::Columns { batches, rows, columns, .. } => {
                check(columns)?;
                Kind::Columns { batches, rows, columns, pitch, batch_pitch: rows.saturating_mul(pitch) }
            }
        };
        Ok(Self { kind })
    }

    /// Reduces along axis `axis` of an array with these extents in C order, in which the last axis is contiguous. The
    /// outputs are an array of the other axes, in their order.
    ///
    /// # Errors
    /// There is no such axis, or the array has more elements than a `usize` holds.
    pub fn axis(extents: &[usize], axis: usize) -> Result<Self, Error> {
        let Some(&rows) = extents.get(axis) else {
            let expected = format!("but the array has {} axes, counted from 0", extents.len());
            return Err(Error::Shape { operation: "reduce", what: "the axis", found: axis, expected });
        };
        let product = |extents: &[usize]| {
            extents.iter().try_fold(1_usize, |product, &extent| product.checked_mul(extent)).ok_or_else(|| {
                Error::Shape {
                    operation: "reduce",
                    what: "an extent",
                    found: extents.iter().copied().max().unwrap_or(0),
                    expected: "but the array then has more elements than any memory could hold".to_owned(),
                }
            })
        };
        let (batches, columns) = (product(&extents[..axis])?, product(&extents[axis + 1..])?);
        // Checks the product of all extents other than 0, so that nothing below overflows.
        let others: Vec<usize> = extents.iter().copied().filter(|&extent| extent > 0).collect();
        product(&others)?;
        if columns == 1 {
            return Ok(Self { kind: Kind::Rows { rows: batches, len: rows, pitch: rows } });
        }
        Ok(Self { kind: Kind::Columns { batches, rows, columns, pitch: columns, batch_pitch: rows * columns } })
    }

    /// The same reduction as a layout and the axis that is reduced.
    ///
    /// # Errors
    /// No memory could hold the elements.
    pub fn array(&self) -> Result<(Layout, Axes), Error> {
        // The pitch of a single row, and of empty ones, has no effect, and may be any number.
        let strides = |extents: [usize; 3], strides: [usize; 3]| {
            let of = |i: usize| if extents[i] > 1 && !extents.contains(&0) { strides[i] } else { 0 };
            let too_large = |_| Error::ArrayTooLarge { operation: "reduce", axis: 0, extent: extents[0] };
            let [a, b, c] = [of(0), of(1), of(2)].map(|stride| isize::try_from(stride).map_err(too_large));
            Layout::strided(&extents, &[a?, b?, c?], 0)
        };
        match self.kind {
            Kind::Rows { rows, len, pitch } => Ok((strides([1, rows, len], [0, pitch, 1])?, Axes::from(2))),
            Kind::Columns { batches, rows, columns, pitch, batch_pitch } => {
                Ok((strides([batches, rows, columns], [batch_pitch, pitch, 1])?, Axes::from(1)))
            }
        }
    }

    /// The number of outputs.
    pub const fn outputs(&self) -> usize {
        match self.kind {
            Kind::Rows { rows, .. } => rows,
            Kind::Columns { batches, columns, .. } => batches.saturating_mul(columns),
        }
    }

    /// The number of elements reduced to each output.
    pub const fn elements_each(&self) -> usize {
        match self.kind {
            Kind::Rows { len, .. } => len,
            Kind::Columns { rows, .. } => rows,
        }
    }
}
