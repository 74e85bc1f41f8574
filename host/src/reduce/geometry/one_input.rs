//! Rows and columns of one input.

use super::split::{Axis, Split, Wanted, product};
use super::{Allowed, Geometry, Kind, Launch, MAX_COPY_BYTES, launches_over_outer};
use crate::reduce::axes::Reduced;
use crate::{Error, Layout};

/// Fewer elements than this in a strided column of its own are copied: most of a block would be idle.
const MIN_STRIDED_COLUMN: usize = 1024;

impl Geometry<1, Kind> {
    /// The reduction of a layout.
    pub fn new(layout: &Layout, reduced: &Reduced, allowed: Allowed) -> Result<Self, Error> {
        Self::with_limit(layout, reduced, allowed, MAX_COPY_BYTES)
    }

    fn with_limit(layout: &Layout, reduced: &Reduced, allowed: Allowed, max_bytes: usize) -> Result<Self, Error> {
        let split = Split::of([layout], reduced, allowed)?;
        if split.outputs == 0 || split.len() == 0 {
            // Of no elements the results are equal, and computed for each output.
            return split.of_no_elements(Kind::Rows { rows: split.outputs, len: 0, pitch: 0 });
        }
        let direct = |kept: &[Axis<1>]| kind_of(kept, &split.merged, split.wanted, allowed.columns);
        if let Some(kind) = direct(&split.kept) {
            let launches = vec![Launch { input: split.first, result: 0 }];
            return Ok(Self { kind, copies: [None], launches, results: split.results, rest: None });
        }
        if let Some((kind, launches)) = launches_over_outer(&split, allowed.size, direct) {
            return Ok(Self { kind, copies: [None], launches, results: split.results, rest: None });
        }
        Ok(split.copied(allowed, max_bytes))
    }
}

impl Split<1> {
    /// The reduction of copies, each of a part of the outputs.
    fn copied(self, allowed: Allowed, max_bytes: usize) -> Geometry<1, Kind> {
        let cut = self.cut(max_bytes / allowed.size.max(1));
        let part = |range: usize, firsts: &[usize], rest: Option<Box<Geometry<1, Kind>>>| {
            let (kind, copy) = self.copied_kind(&cut.axes_of_part(&self.kept, range));
            let launches = self.launches(&cut, firsts);
            Geometry { kind, copies: [Some(copy)], launches, results: self.results, rest }
        };
        if allowed.in_place && cut.whole_len() < cut.len() {
            let rest = part(cut.len() - cut.whole_len(), &[cut.whole_len()], None);
            return part(cut.range, &cut.firsts_of_whole(), Some(Box::new(rest)));
        }
        part(cut.range, &cut.overlapping_firsts(), None)
    }

    /// What the kernels reduce of a copy with these kept axes, and the copy.
    fn copied_kind(&self, kept: &[Axis<1>]) -> (Kind, Layout) {
        let (len, outputs) = (self.len(), product(kept));
        let (kind, axes) = if self.wanted == Wanted::Columns {
            let batch_pitch = len.saturating_mul(outputs);
            let kind = Kind::Columns { batches: 1, rows: len, columns: outputs, pitch: outputs, batch_pitch };
            (kind, [&self.reduced[..], kept].concat())
        } else {
            (Kind::Rows { rows: outputs, len, pitch: len }, [kept, &self.reduced[..]].concat())
        };
        let mut copy = Layout::SCALAR;
        axes.iter().for_each(|axis| copy.push(axis.extent, axis.strides[0]));
        (kind, copy)
    }
}

/// What kernels reduce without a copy, if they can.
fn kind_of(kept: &[Axis<1>], reduced: &[Axis<1>], wanted: Wanted, has_columns: bool) -> Option<Kind> {
    if kept.iter().any(|axis| axis.strides[0] < 0) {
        return None;
    }
    // The reduced axes are one; of one element or several.
    let (len, stride) = match *reduced {
        [] => (1, 1),
        [Axis { extent, strides: [stride] }] if stride >= 0 => (extent, stride),
        _ => return None,
    };
    if wanted != Wanted::Columns && (stride == 1 || len == 1) {
        match *kept {
            [] => return Some(Kind::Rows { rows: 1, len, pitch: len }),
            [Axis { extent, strides: [pitch] }] => {
                return Some(Kind::Rows { rows: extent, len, pitch: pitch as usize });
            }
            _ => {}
        }
    }
    if wanted == Wanted::Rows || !has_columns {
        return None;
    }
    let pitch = stride as usize;
    let columns = |batches: usize, columns: usize, batch_pitch: usize| {
        Some(Kind::Columns { batches, rows: len, columns, pitch, batch_pitch })
    };
    let of_one = len.saturating_mul(pitch);
    match *kept {
        [] => columns(1, 1, of_one),
        [Axis { extent, strides: [1] }] => columns(1, extent, of_one),
        [batch, Axis { extent, strides: [1] }] => columns(batch.extent, extent, batch.strides[0] as usize),
        [batch] if len >= MIN_STRIDED_COLUMN => columns(batch.extent, 1, batch.strides[0] as usize),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LaunchShape, Order};
    use super::*;
    use crate::Axes;

    fn geometry_of(layout: &Layout, axes: &[isize], order: Order, max_bytes: usize) -> Geometry<1, Kind> {
        let reduced = Axes::from(axes).of(layout).unwrap();
        Geometry::<1, Kind>::with_limit(
            layout,
            &reduced,
            Allowed { order, columns: true, in_place: false, size: 4 },
            max_bytes,
        )
        .unwrap()
    }

    fn geometry(layout: &Layout, axes: &[isize]) -> Geometry<1, Kind> {
        geometry_of(layout, axes, Order::Any, MAX_COPY_BYTES)
    }

    fn contiguous(extents: &[usize]) -> Layout {
        Layout::contiguous(extents).unwrap()
    }

    fn is_direct(geometry: &Geometry<1, Kind>, kind: Kind) -> bool {
        geometry.copies == [None] && geometry.kind == kind && geometry.launches.len() == 1
    }

    #[test]
    fn what_lies_as_rows_or_columns_is_not_copied() {
        let x = contiguous(&[64, 32, 28, 30]);
        // Pooling, bias gradients, one axis in the middle, and everything.
        assert!(is_direct(&geometry(&x, &[2, 3]), Kind::Rows { rows: 2048, len: 840, pitch: 840 }));
        let (rows, columns) = (64 * 32 * 28, 30);
        let kind = Kind::Columns { batches: 1, rows, columns, pitch: 30, batch_pitch: rows * columns };
        assert!(is_direct(&geometry(&x, &[0, 1, 2]), kind));
        let kind = Kind::Columns { batches: 64, rows: 32, columns: 840, pitch: 840, batch_pitch: 26_880 };
        assert!(is_direct(&geometry(&x, &[1]), kind));
        let len = x.len();
        assert!(is_direct(&geometry(&x, &[0, 1, 2, 3]), Kind::Rows { rows: 1, len, pitch: len }));
        // The same elements in another order of the axes, and from behind.
        let columns_last = x.permute_axes(&[2, 3, 0, 1]).unwrap().reverse(0).unwrap();
        assert!(is_direct(&geometry(&columns_last, &[0, 1]), Kind::Rows { rows: 2048, len: 840, pitch: 840 }));
        // A part of each row: a pitch.
        let part = contiguous(&[100, 50]).slice(1, 10..40, 1).unwrap();
        assert!(is_direct(&geometry(&part, &[1]), Kind::Rows { rows: 100, len: 30, pitch: 50 }));
        let kind = Kind::Columns { batches: 1, rows: 100, columns: 30, pitch: 50, batch_pitch: 5000 };
        assert!(is_direct(&geometry(&part, &[0]), kind));
        // No axes: each element alone.
        assert!(is_direct(&geometry(&contiguous(&[5, 7]), &[]), Kind::Rows { rows: 35, len: 1, pitch: 1 }));
        // One kept axis too many: a launch for each index.
        let planes = contiguous(&[3, 5000, 20]).slice(1, ..4500, 1).unwrap();
        let several = geometry(&planes, &[2]);
        assert_eq!(
            (several.kind, several.launches.len()),
            (Kind::Rows { rows: 4500, len: 20, pitch: 20 }, 3),
            "{several:?}"
        );
    }

    #[test]
    fn a_repeated_axis_is_computed_once() {
        let repeated = contiguous(&[5, 8]).insert_axis(0).unwrap().broadcast_to(&[1000, 5, 8]).unwrap();
        let of_rows = geometry(&repeated, &[2]);
        assert!(is_direct(&of_rows, Kind::Rows { rows: 5, len: 8, pitch: 8 }));
        assert_eq!((of_rows.results.extents(), of_rows.results.strides()), (&[1000, 5][..], &[0, 1][..]));
        // If it is reduced, each element counts as often.
        let kind = Kind::Columns { batches: 1, rows: 1000, columns: 40, pitch: 0, batch_pitch: 0 };
        assert!(is_direct(&geometry(&repeated, &[0]), kind));
    }

    #[test]
    fn other_layouts_are_copied_in_parts() {
        // NCHW over all but the channels.
        let x = contiguous(&[6, 5, 7, 4]);
        let whole = geometry(&x, &[0, 2, 3]);
        assert_eq!(whole.kind, Kind::Rows { rows: 5, len: 168, pitch: 168 });
        assert_eq!(whole.copies[0].unwrap().extents(), [5, 6, 7, 4]);
        assert_eq!(whole.launches, [Launch { input: [0], result: 0 }]);
        // In parts of two channels, of which the last begins earlier.
        let parts = geometry_of(&x, &[0, 2, 3], Order::Any, 2 * 168 * 4);
        assert_eq!(parts.kind, Kind::Rows { rows: 2, len: 168, pitch: 168 });
        let of = |part: &Launch<1>| (part.input[0], part.result);
        assert_eq!(parts.launches.iter().map(of).collect::<Vec<_>>(), [(0, 0), (56, 2), (84, 3)]);
        assert_eq!(parts.outputs(), 5);
        // One output is a part, however long it is.
        let single = geometry_of(&x, &[0, 2, 3], Order::Any, 1);
        assert_eq!((single.kind.outputs(), single.launches.len()), (1, 5));
        // So are many short launches.
        let short = contiguous(&[3, 50, 20]).slice(1, ..45, 1).unwrap();
        assert!(geometry(&short, &[2]).copies[0].is_some());
        // Every second element of a row.
        let every_second = contiguous(&[10, 12]).slice(1, .., 2).unwrap();
        assert!(geometry(&every_second, &[1]).copies[0].is_some() && geometry(&every_second, &[0]).copies[0].is_some());
    }

    #[test]
    fn an_order_depends_on_the_extents_alone() {
        let ordered = |layout: &Layout, axes: &[isize]| geometry_of(layout, axes, Order::OfView, MAX_COPY_BYTES);
        let x = contiguous(&[6, 5, 7]);
        let transposed = contiguous(&[7, 5, 6]).permute_axes(&[2, 1, 0]).unwrap();
        for layout in [&x, &transposed, &x.reverse(2).unwrap(), &x.reverse(0).unwrap()] {
            let is_rows = |axes: &[isize]| matches!(ordered(layout, axes).kind, Kind::Rows { .. });
            assert!(is_rows(&[2]) && is_rows(&[1, 2]) && is_rows(&[0, 2]) && is_rows(&[0, 1, 2]) && is_rows(&[]));
            assert!(!is_rows(&[0]) && !is_rows(&[1]) && !is_rows(&[0, 1]), "{layout}");
        }
        // A pitch needs no copy, and neither does another order of the kept axes.
        assert!(
            ordered(&x, &[1]).copies[0].is_none() && ordered(&x.slice(2, ..4, 1).unwrap(), &[2]).copies[0].is_none()
        );
        assert!(ordered(&x.permute_axes(&[1, 0, 2]).unwrap(), &[2]).copies[0].is_none());
        // Elements in the opposite order do.
        assert!(ordered(&x.reverse(2).unwrap(), &[2]).copies[0].is_some());
        // A column of width 1 is a row.
        assert!(matches!(ordered(&contiguous(&[9, 1]), &[0]).kind, Kind::Rows { rows: 1, len: 9, .. }));
    }

    #[test]
    fn results_that_are_added_to_are_in_order_and_written_once() {
        let in_place = |layout: &Layout, axes: &[isize], max_bytes: usize| {
            let reduced = Axes::from(axes).of(layout).unwrap();
            let allowed = Allowed { order: Order::Any, columns: true, in_place: true, size: 4 };
            Geometry::<1, Kind>::with_limit(layout, &reduced, allowed, max_bytes).unwrap()
        };
        let x = contiguous(&[6, 5, 7, 4]);
        let whole = in_place(&x, &[3], MAX_COPY_BYTES);
        assert!(is_direct(&whole, Kind::Rows { rows: 210, len: 4, pitch: 4 }) && whole.results.is_contiguous());
        // In the order of the view, not of the memory.
        let permuted = in_place(&x.permute_axes(&[1, 0, 2, 3]).unwrap(), &[3], MAX_COPY_BYTES);
        assert_eq!(permuted.copies[0].unwrap().extents(), [5, 6, 7, 4]);
        assert!(in_place(&x.reverse(0).unwrap(), &[3], MAX_COPY_BYTES).copies[0].is_some());
        // Five channels by twos: two parts, and one of what is left.
        let parts = in_place(&x, &[0, 2, 3], 2 * 168 * 4);
        let of = |part: &Launch<1>| (part.input[0], part.result);
        assert_eq!(parts.launches.iter().map(of).collect::<Vec<_>>(), [(0, 0), (56, 2)]);
        let rest = parts.rest.as_ref().unwrap();
        assert_eq!((rest.kind, of(&rest.launches[0])), (Kind::Rows { rows: 1, len: 168, pitch: 168 }, (112, 4)));
        assert_eq!((parts.outputs(), rest.launches.len()), (5, 1));
        // A repeated axis has results of its own.
        let repeated = contiguous(&[5, 8]).insert_axis(0).unwrap().broadcast_to(&[3, 5, 8]).unwrap();
        assert_eq!(in_place(&repeated, &[2], MAX_COPY_BYTES).outputs(), 15);
    }

    #[test]
    fn empty_arrays_have_results_of_no_elements() {
        let none = geometry(&contiguous(&[3, 0, 2]), &[1]);
        assert_eq!((none.kind, none.outputs()), (Kind::Rows { rows: 6, len: 0, pitch: 0 }, 6));
        assert_eq!(geometry(&contiguous(&[3, 0, 2]), &[0]).outputs(), 0);
    }
}
