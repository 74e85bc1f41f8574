//! What a launch of a reduction's kernels takes.

/// What a launch reduces, for checks of its inputs and outputs.
pub(in crate::reduce) trait LaunchShape {
    /// The number of outputs.
    fn outputs(&self) -> usize;
    /// The number of elements reduced to each output.
    fn elements_each(&self) -> usize;
    /// The number of elements that a view of input number `input` needs; `None` if the number overflows.
    fn elements(&self, input: usize) -> Option<usize>;
}

/// What kernels of one input reduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reduce) enum Kind {
    /// `rows` contiguous segments of `len` elements, `pitch` apart.
    Rows { rows: usize, len: usize, pitch: usize },
    /// The columns of `batches` matrices, `batch_pitch` apart.
    Columns { batches: usize, rows: usize, columns: usize, pitch: usize, batch_pitch: usize },
}

/// What kernels of two inputs reduce: groups of rows of `len` contiguous elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reduce) struct Pairs {
    pub groups: usize,
    /// Rows of a group.
    pub rows: usize,
    pub len: usize,
    /// Elements of each input from the start of a row to that of the next one.
    pub pitches: [usize; 2],
    /// Elements of each input from the start of a group to that of the next one.
    pub group_pitches: [usize; 2],
}

/// The elements from the first to the last of `count` parts of `len` elements, `pitch` apart; `None` if the number
/// overflows.
fn span(count: usize, pitch: usize, len: usize) -> Option<usize> {
    match count {
        0 => Some(0),
        _ if len == 0 => Some(0),
        _ => (count - 1).checked_mul(pitch)?.checked_add(len),
    }
}

impl LaunchShape for Kind {
    fn outputs(&self) -> usize {
        match *self {
            Self::Rows { rows, .. } => rows,
            Self::Columns { batches, columns, .. } => batches.saturating_mul(columns),
        }
    }

    fn elements_each(&self) -> usize {
        match *self {
            Self::Rows { len, .. } => len,
            Self::Columns { rows, .. } => rows,
        }
    }

    fn elements(&self, _input: usize) -> Option<usize> {
        match *self {
            Self::Rows { rows, len, pitch } => span(rows, pitch, len),
            Self::Columns { batches, rows, columns, pitch, batch_pitch } => {
                span(batches, batch_pitch, span(rows, pitch, columns)?)
            }
        }
    }
}

impl LaunchShape for Pairs {
    fn outputs(&self) -> usize {
        self.groups.saturating_mul(self.rows)
    }

    fn elements_each(&self) -> usize {
        self.len
    }

    fn elements(&self, input: usize) -> Option<usize> {
        span(self.groups, self.group_pitches[input], span(self.rows, self.pitches[input], self.len)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_and_elements() {
        let columns = Kind::Columns { batches: 2, rows: 3, columns: 4, pitch: 4, batch_pitch: 12 };
        assert_eq!((columns.outputs(), columns.elements_each(), columns.elements(0)), (8, 3, Some(24)));
        let rows = Kind::Rows { rows: 3, len: 5, pitch: 8 };
        assert_eq!((rows.outputs(), rows.elements(0)), (3, Some(21)));
        let none = Kind::Columns { batches: 1, rows: 0, columns: 5, pitch: 5, batch_pitch: 0 };
        assert_eq!(none.elements(0), Some(0));
        assert_eq!(Kind::Rows { rows: usize::MAX, len: 2, pitch: 2 }.elements(0), None);
        let pairs = Pairs { groups: 2, rows: 3, len: 5, pitches: [5, 0], group_pitches: [15, 7] };
        assert_eq!((pairs.outputs(), pairs.elements_each()), (6, 5));
        assert_eq!([0, 1].map(|input| pairs.elements(input)), [Some(30), Some(12)]);
    }
}
