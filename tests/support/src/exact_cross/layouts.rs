//! The shapes of the cross: where the elements of each output lie.

use crate::shape::Shape;

/// A shape, as a row of [`LAYOUTS`].
pub struct Layout {
    /// Its name in messages.
    pub name: &'static str,
    /// Where `outputs` outputs of `len` elements lie. `None` if the shape does not have this number of outputs.
    pub place: fn(outputs: usize, len: usize) -> Option<Placed>,
}

/// What a call is given besides its input.
pub enum Form {
    /// A shape of rows.
    Rows(Shape),
    /// A shape of columns.
    Columns(Shape),
    /// The offsets of segments.
    Offsets(Vec<u64>),
}

/// Where the elements of a case lie in a buffer.
pub struct Placed {
    /// The shape of the call.
    pub form: Form,
    /// The elements of the buffer before the input.
    pub before: usize,
    /// The elements of the input.
    pub len: usize,
    /// The index in the input of element `k` of output `i`.
    pub index: Box<dyn Fn(usize, usize) -> usize>,
    /// The results from that of an output to that of the next one.
    pub results_apart: usize,
}

/// The distance of a pitch from the shortest one, and of a view from a multiple of 16 bytes, in elements.
const GAP: usize = 3;

/// The number of elements of 16 bytes of the shortest type: rows this far apart have the same alignment.
const ALIGNED: usize = 8;

/// Every shape. To add one, add a row.
pub const LAYOUTS: &[Layout] = &[
    Layout { name: "whole", place: |outputs, len| (outputs == 1).then(|| rows(Shape::all(len), 1, len, len, 0)) },
    Layout {
        name: "whole, unaligned",
        place: |outputs, len| (outputs == 1).then(|| rows(Shape::all(len), 1, len, len, 1)),
    },
    Layout { name: "rows", place: |outputs, len| Some(rows(Shape::rows(outputs, len), outputs, len, len, 0)) },
    Layout {
        name: "pitched rows",
        place: |outputs, len| {
            let pitch = len + GAP;
            Some(rows(Shape::rows(outputs, len).with_pitch(pitch).ok()?, outputs, len, pitch, GAP))
        },
    },
    Layout {
        name: "pitched rows, aligned",
        place: |outputs, len| {
            let pitch = (len + 1).next_multiple_of(ALIGNED);
            Some(rows(Shape::rows(outputs, len).with_pitch(pitch).ok()?, outputs, len, pitch, 0))
        },
    },
    Layout {
        name: "equal segments",
        place: |outputs, len| Some(rows(Shape::segments(outputs, len), outputs, len, len, 0)),
    },
    Layout {
        name: "columns",
        place: |outputs, len| Some(columns(Shape::columns(len, outputs), outputs, len, outputs, 0)),
    },
    Layout {
        name: "pitched columns",
        place: |outputs, len| {
            let pitch = outputs + GAP;
            Some(columns(Shape::columns(len, outputs).with_pitch(pitch).ok()?, outputs, len, pitch, GAP))
        },
    },
    Layout {
        name: "the middle of three axes",
        place: |outputs, len| {
            if !outputs.is_multiple_of(3) {
                return None;
            }
            let columns = outputs / 3;
            let form = Shape::axis(&[3, len, columns], 1).ok()?;
            Some(Placed {
                // A column of width 1 is a row.
                form: if columns == 1 { Form::Rows(form) } else { Form::Columns(form) },
                before: 0,
                len: outputs * len,
                index: Box::new(move |i, k| (i / columns * len + k) * columns + i % columns),
                results_apart: 1,
            })
        },
    },
    Layout { name: "segments by offsets", place: |outputs, len| Some(segments(outputs, len, 0, 0)) },
    Layout { name: "segments by offsets, between others", place: |outputs, len| Some(segments(outputs, len, GAP, 1)) },
];

fn rows(shape: Shape, outputs: usize, len: usize, pitch: usize, before: usize) -> Placed {
    Placed {
        form: Form::Rows(shape),
        before,
        len: (outputs - 1) * pitch + len,
        index: Box::new(move |i, k| i * pitch + k),
        results_apart: 1,
    }
}

fn columns(shape: Shape, outputs: usize, len: usize, pitch: usize, before: usize) -> Placed {
    Placed {
        // A single column is a row.
        form: if outputs == 1 { Form::Rows(shape) } else { Form::Columns(shape) },
        before,
        len: (len - 1) * pitch + outputs,
        index: Box::new(move |i, k| k * pitch + i),
        results_apart: 1,
    }
}

/// With `gap`, another segment of that many elements follows each segment but the last.
fn segments(outputs: usize, len: usize, gap: usize, before: usize) -> Placed {
    let end = (outputs - 1) * (len + gap) + len;
    let ends = |i: usize| [i * (len + gap), i * (len + gap) + len];
    let mut offsets: Vec<u64> = (0..outputs).flat_map(ends).map(|end| end as u64).collect();
    let mut results_apart = 2;
    if gap == 0 {
        offsets.dedup();
        results_apart = 1;
    }
    Placed {
        form: Form::Offsets(offsets),
        before,
        len: end,
        index: Box::new(move |i, k| i * (len + gap) + k),
        results_apart,
    }
}
