//! The shapes of the transposed matrices.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::options::count;

/// A batch of matrices of one shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Shape {
    pub batch: usize,
    pub rows: usize,
    pub columns: usize,
}

impl Shape {
    pub const fn of(rows: usize, columns: usize) -> Self {
        Self { batch: 1, rows, columns }
    }

    pub fn elements(&self) -> usize {
        self.batch * self.rows * self.columns
    }

    /// The extents of the batch, seen as one array.
    pub const fn extents(&self) -> [usize; 3] {
        [self.batch, self.rows, self.columns]
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { batch, rows, columns } = self;
        if *batch == 1 { write!(f, "{rows} x {columns}") } else { write!(f, "{batch} x {rows} x {columns}") }
    }
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sides = text.split('x').map(count).collect::<Result<Vec<_>, _>>()?;
        let (batch, rows, columns) = match sides[..] {
            [rows, columns] => (1, rows, columns),
            [batch, rows, columns] => (batch, rows, columns),
            _ => return Err("expected ROWSxCOLUMNS, or COUNTxROWSxCOLUMNS".to_owned()),
        };
        // The input and the output, with elements of 16 bytes.
        let bytes = sides.iter().try_fold(32_usize, |bytes, &side| bytes.checked_mul(side));
        match bytes {
            None => Err("too large for this machine".to_owned()),
            Some(0) => Err("each side must be at least 1".to_owned()),
            Some(_) => Ok(Self { batch, rows, columns }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_parsed() {
        let shape = |text: &str| text.parse::<Shape>().unwrap();
        assert_eq!(shape("3x5"), Shape::of(3, 5));
        assert_eq!(shape("2^3x4x5").to_string(), "8 x 4 x 5");
        for wrong in ["", "3", "3x", "3x0", "1x2x3x4", "2^40x2^40", "axb"] {
            assert!(wrong.parse::<Shape>().is_err(), "{wrong}");
        }
    }
}
