//! One measurement of a transpose.

use std::fmt;

use super::kind::Kind;
use super::shape::Shape;
use crate::number::counted;

/// An operation, a shape, and the size of an element.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub kind: Kind,
    pub shape: Shape,
    pub size: usize,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{} of {}", self.shape, self.kind.suffix(), counted(self.size, "byte", "bytes"))
    }
}

impl Case {
    pub fn question(&self) -> serde_json::Value {
        let Shape { batch, rows, columns } = self.shape;
        let (kind, size) = (self.kind, self.size);
        serde_json::json!({
            "op": "transpose", "kind": kind, "size": size, "batch": batch, "rows": rows, "columns": columns,
        })
    }
}
