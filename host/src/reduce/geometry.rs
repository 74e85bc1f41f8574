//! The canonical form of a reduction along axes of an array: what kernels reduce, and where they find it.
//!
//! Decisions are pure functions of the layout, the axes and what the operator allows. The kernels take rows and columns
//! ([`Kind`]). Axes that are one axis in memory are merged; what then is neither rows nor columns is copied first, to
//! rows or columns without gaps.

use super::axes::Reduced;
use super::shape::{Kind, Shape};
use crate::{Error, Layout};

/// In which order an operator takes the elements of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Any: axes are taken as they lie in memory.
    Any,
    /// C order of the view.
    OfView,
}

/// What a plan of axes depends on besides the layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    pub order: Order,
    /// Whether there are kernels for columns.
    pub columns: bool,
    /// Whether the results are written in C order of the kept axes, and each once: they are added to what is there.
    pub in_place: bool,
    /// Bytes of an element.
    pub size: usize,
}

/// An axis that is kept or reduced: its extent, and the distance between neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis {
    extent: usize,
    stride: isize,
}

/// The memory for a copy of a part of the input, unless a single output has more elements.
const MAX_COPY_BYTES: usize = 256 << 20;

/// For the kept axis that is one too many: more launches than this, or with fewer bytes than these, take longer than a
/// copy.
const MAX_LAUNCHES: usize = 16;
const MIN_BYTES_OF_LAUNCH: usize = 1 << 18;

/// Fewer elements than this in a strided column of its own are copied: most of a block would be idle.
const MIN_STRIDED_COLUMN: usize = 1024;

/// A reduction along axes: launches of one shape, each of a part of the outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    /// What a launch reduces.
    pub kind: Kind,
    /// What a launch copies first, to the layout of `kind`; without an offset. `None` if it reads the input itself.
    pub copy: Option<Layout>,
    /// The launches.
    pub launches: Vec<Launch>,
    /// Where the results are that the launches have written one after the other, for each element of the output.
    pub results: Layout,
    /// Launches of another shape: of what is left over, if each result is written once.
    pub rest: Option<Box<Geometry>>,
}

/// A launch's first element in the input, relative to the layout's offset, and its first result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Launch {
    pub input: isize,
    pub result: usize,
}

impl Geometry {
    /// The reduction of a layout.
    pub fn new(layout: &Layout, reduced: &Reduced, allowed: Allowed) -> Result<Self, Error> {
        Self::with_limit(layout, reduced, allowed, MAX_COPY_BYTES)
    }

    fn with_limit(layout: &Layout, reduced: &Reduced, allowed: Allowed, max_bytes: usize) -> Result<Self, Error> {
        let split = Split::of(layout, reduced, allowed);
        let outputs: usize = reduced.output_extents(layout).iter().product();
        let results = match allowed.in_place {
            true => Layout::contiguous(&reduced.output_extents(layout))?,
            false => split.results(layout, reduced)?,
        };
        if outputs == 0 || split.len() == 0 {
            // Of no elements the results are equal, and computed for each output.
            let kind = Kind::Rows { rows: outputs, len: 0, pitch: 0 };
            let results = Layout::contiguous(results.extents())?;
            return Ok(Self { kind, copy: None, launches: vec![Launch { input: 0, result: 0 }], results, rest: None });
        }
        let direct = |kept: &[Axis]| kind_of(kept, &split.merged, split.wanted, allowed.columns);
        if let Some(kind) = direct(&split.kept) {
            let launches = vec![Launch { input: split.first, result: 0 }];
            return Ok(Self { kind, copy: None, launches, results, rest: None });
        }
        // One kept axis too many, which is short.
        if let Some((outer, inner)) = split.kept.split_first()
            && outer.extent <= MAX_LAUNCHES
            && product(inner).saturating_mul(split.len()).saturating_mul(allowed.size) >= MIN_BYTES_OF_LAUNCH
            && let Some(kind) = direct(inner)
        {
            let each = product(inner);
            let launches = (0..outer.extent)
                .map(|i| Launch { input: split.first + i as isize * outer.stride, result: i * each })
                .collect();
            return Ok(Self { kind, copy: None, launches, results, rest: None });
        }
        split.copied(allowed, max_bytes, results)
    }

    /// The number of results.
    pub fn outputs(&self) -> usize {
        // The launches of a last part may write some results again.
        let last = self.launches.iter().map(|launch| launch.result).max().unwrap_or(0) + self.shape().outputs();
        self.rest.as_ref().map_or(last, |rest| rest.outputs().max(last))
    }

    /// The shape of a launch.
    pub fn shape(&self) -> Shape {
        Shape { kind: self.kind }
    }
}

/// Which kernels give the operator's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Either,
    Rows,
    Columns,
}

/// The kept and the reduced axes of a layout.
struct Split {
    /// The position of the element from which all axes below go, relative to the layout's offset.
    first: isize,
    /// The kept axes by their strides, the longest first, merged, and all strides are positive; or in C order, merged.
    kept: Vec<Axis>,
    /// The reduced axes, the slowest first: in the view's order, or by their strides.
    reduced: Vec<Axis>,
    /// The same, merged.
    merged: Vec<Axis>,
    wanted: Wanted,
}

impl Split {
    fn of(layout: &Layout, reduced: &Reduced, allowed: Allowed) -> Self {
        let order = allowed.order;
        let axes = || layout.extents().iter().zip(layout.strides()).enumerate();
        let of = |is_reduced: bool| -> Vec<Axis> {
            axes()
                .filter(|(axis, (extent, _))| reduced.has(*axis) == is_reduced && **extent != 1)
                .map(|(_, (&extent, &stride))| Axis { extent, stride })
                .collect()
        };
        let mut first = 0;
        let mut flip = |axes: &mut Vec<Axis>| {
            for axis in axes.iter_mut().filter(|axis| axis.stride < 0 && axis.extent > 0) {
                first += (axis.extent as isize - 1) * axis.stride;
                axis.stride = -axis.stride;
            }
        };
        let (mut kept, mut others) = (of(false), of(true));
        if !allowed.in_place {
            flip(&mut kept);
            // The same results for each index: they are computed once.
            kept.retain(|axis| axis.stride != 0 || axis.extent == 0);
            kept.sort_by_key(|axis| std::cmp::Reverse(axis.stride));
        }
        if order == Order::Any {
            flip(&mut others);
            others.sort_by_key(|axis| std::cmp::Reverse(axis.stride));
        }
        let merged = merged(&others);
        Self { first, kept: self::merged(&kept), merged, wanted: wanted(layout, reduced, order), reduced: others }
    }

    /// The number of elements of an output.
    fn len(&self) -> usize {
        product(&self.reduced)
    }

    /// Where the result for each element of the output is, among results in the order of [`Split::kept`].
    fn results(&self, layout: &Layout, reduced: &Reduced) -> Result<Layout, Error> {
        let extents = reduced.output_extents(layout);
        // Each kept axis by its stride in the input; the results of the axes with smaller strides lie between two of
        // it.
        let mut order: Vec<usize> = (0..layout.rank())
            .filter(|&axis| !reduced.has(axis) && layout.extents()[axis] > 1 && layout.strides()[axis] != 0)
            .collect();
        // Stable, as the sort of the kept axes is: of equal strides the first axis is the slower.
        order.sort_by_key(|&axis| std::cmp::Reverse(layout.strides()[axis].unsigned_abs()));
        let mut strides = vec![0_isize; layout.rank()];
        let (mut next, mut offset) = (1_isize, 0);
        for &axis in order.iter().rev() {
            let extent = layout.extents()[axis];
            strides[axis] = next;
            if layout.strides()[axis] < 0 {
                strides[axis] = -next;
                offset += next as usize * (extent - 1);
            }
            next *= extent as isize;
        }
        let has_axis = |axis: &usize| !reduced.has(*axis) || extents.len() == layout.rank();
        let of_output: Vec<isize> = (0..layout.rank()).filter(has_axis).map(|axis| strides[axis]).collect();
        Layout::strided(&extents, &of_output, if extents.contains(&0) { 0 } else { offset })
    }

    /// The reduction of copies, each of a part of the outputs.
    fn copied(self, allowed: Allowed, max_bytes: usize, results: Layout) -> Result<Geometry, Error> {
        let len = self.len();
        let most = (max_bytes / allowed.size.max(1) / len).max(1);
        // The inner axes are whole in each part, the next axis is cut, and each index of the others has its own parts.
        let (mut inner, mut each) = (self.kept.len(), 1);
        while inner > 0 && self.kept[inner - 1].extent <= most / each {
            inner -= 1;
            each *= self.kept[inner].extent;
        }
        let cut = inner.checked_sub(1).map(|axis| self.kept[axis]);
        let outer = &self.kept[..inner.saturating_sub(1)];
        let of_cut = cut.map_or(1, |cut| cut.extent);
        let range = (most / each).clamp(1, of_cut);
        let whole = of_cut / range * range;
        let part = |range: usize, firsts: &mut dyn Iterator<Item = usize>, rest: Option<Box<Geometry>>| {
            let mut of_part: Vec<Axis> = cut.map(|cut| Axis { extent: range, ..cut }).into_iter().collect();
            of_part.extend(&self.kept[inner..]);
            let firsts: Vec<usize> = firsts.collect();
            let mut launches = Vec::new();
            for number in 0..product(outer) {
                let (mut left, mut input) = (number, self.first);
                for axis in outer.iter().rev() {
                    input += (left % axis.extent) as isize * axis.stride;
                    left /= axis.extent;
                }
                launches.extend(firsts.iter().map(|&first| Launch {
                    input: input + cut.map_or(0, |cut| first as isize * cut.stride),
                    result: (number * of_cut + first) * each,
                }));
            }
            let (kind, copy) = self.copied_shape(&of_part);
            Geometry { kind, copy: Some(copy), launches, results, rest }
        };
        if allowed.in_place && whole < of_cut {
            let rest = part(of_cut - whole, &mut std::iter::once(whole), None);
            return Ok(part(range, &mut (0..whole).step_by(range), Some(Box::new(rest))));
        }
        // The last range begins earlier, so that all are of one shape; some results are computed twice.
        let firsts = (0..of_cut).step_by(range).map(|first| first.min(of_cut - range));
        Ok(part(range, &mut { firsts }, None))
    }

    /// What the kernels reduce of a copy with these kept axes, and the copy.
    fn copied_shape(&self, kept: &[Axis]) -> (Kind, Layout) {
        let (len, outputs) = (self.len(), product(kept));
        let (kind, axes) = if self.wanted == Wanted::Columns {
            let batch_pitch = len.saturating_mul(outputs);
            let kind = Kind::Columns { batches: 1, rows: len, columns: outputs, pitch: outputs, batch_pitch };
            (kind, [&self.reduced[..], kept].concat())
        } else {
            (Kind::Rows { rows: outputs, len, pitch: len }, [kept, &self.reduced[..]].concat())
        };
        let mut copy = Layout::SCALAR;
        axes.iter().for_each(|axis| copy.push(axis.extent, axis.stride));
        (kind, copy)
    }
}

/// The kernels whose result is that of the operator.
///
/// An order depends on the extents alone. Axes of one element do not count, and neighbours that are reduced are one
/// axis. If that is the last one, or if there are several, the elements of an output are a row; otherwise a column.
fn wanted(layout: &Layout, reduced: &Reduced, order: Order) -> Wanted {
    let counting: Vec<bool> =
        (0..layout.rank()).filter(|&axis| layout.extents()[axis] != 1).map(|axis| reduced.has(axis)).collect();
    let groups = counting.chunk_by(|a, b| a == b).filter(|group| group[0]).count();
    match order {
        Order::Any => Wanted::Either,
        Order::OfView if groups != 1 || counting.last() == Some(&true) => Wanted::Rows,
        Order::OfView => Wanted::Columns,
    }
}

/// What kernels reduce without a copy, if they can.
fn kind_of(kept: &[Axis], reduced: &[Axis], wanted: Wanted, has_columns: bool) -> Option<Kind> {
    if kept.iter().any(|axis| axis.stride < 0) {
        return None;
    }
    // The reduced axes are one; of one element or several.
    let (len, stride) = match *reduced {
        [] => (1, 1),
        [Axis { extent, stride }] if stride >= 0 => (extent, stride),
        _ => return None,
    };
    if wanted != Wanted::Columns && (stride == 1 || len == 1) {
        match *kept {
            [] => return Some(Kind::Rows { rows: 1, len, pitch: len }),
            [Axis { extent, stride: pitch }] => return Some(Kind::Rows { rows: extent, len, pitch: pitch as usize }),
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
        [Axis { extent, stride: 1 }] => columns(1, extent, of_one),
        [batch, Axis { extent, stride: 1 }] => columns(batch.extent, extent, batch.stride as usize),
        [batch] if len >= MIN_STRIDED_COLUMN => columns(batch.extent, 1, batch.stride as usize),
        _ => None,
    }
}

/// Axes in their order, of which neighbours that are one axis are merged.
fn merged(axes: &[Axis]) -> Vec<Axis> {
    let mut merged: Vec<Axis> = Vec::with_capacity(axes.len());
    for &axis in axes {
        match merged.last_mut() {
            Some(outer) if axis.stride.checked_mul(axis.extent as isize) == Some(outer.stride) => {
                *outer = Axis { extent: outer.extent * axis.extent, stride: axis.stride };
            }
            _ => merged.push(axis),
        }
    }
    merged
}

fn product(axes: &[Axis]) -> usize {
    axes.iter().map(|axis| axis.extent).product()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Axes;

    fn geometry_of(layout: &Layout, axes: &[isize], order: Order, max_bytes: usize) -> Geometry {
        let reduced = Axes::from(axes).of(layout).unwrap();
        Geometry::with_limit(layout, &reduced, Allowed { order, columns: true, in_place: false, size: 4 }, max_bytes)
            .unwrap()
    }

    fn geometry(layout: &Layout, axes: &[isize]) -> Geometry {
        geometry_of(layout, axes, Order::Any, MAX_COPY_BYTES)
    }

    fn contiguous(extents: &[usize]) -> Layout {
        Layout::contiguous(extents).unwrap()
    }

    fn is_direct(geometry: &Geometry, kind: Kind) -> bool {
        geometry.copy.is_none() && geometry.kind == kind && geometry.launches.len() == 1
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
        assert_eq!(whole.copy.unwrap().extents(), [5, 6, 7, 4]);
        assert_eq!(whole.launches, [Launch { input: 0, result: 0 }]);
        // In parts of two channels, of which the last begins earlier.
        let parts = geometry_of(&x, &[0, 2, 3], Order::Any, 2 * 168 * 4);
        assert_eq!(parts.kind, Kind::Rows { rows: 2, len: 168, pitch: 168 });
        let of = |part: &Launch| (part.input, part.result);
        assert_eq!(parts.launches.iter().map(of).collect::<Vec<_>>(), [(0, 0), (56, 2), (84, 3)]);
        assert_eq!(parts.outputs(), 5);
        // One output is a part, however long it is.
        let single = geometry_of(&x, &[0, 2, 3], Order::Any, 1);
        assert_eq!((single.shape().outputs(), single.launches.len()), (1, 5));
        // So are many short launches.
        let short = contiguous(&[3, 50, 20]).slice(1, ..45, 1).unwrap();
        assert!(geometry(&short, &[2]).copy.is_some());
        // Every second element of a row.
        let every_second = contiguous(&[10, 12]).slice(1, .., 2).unwrap();
        assert!(geometry(&every_second, &[1]).copy.is_some() && geometry(&every_second, &[0]).copy.is_some());
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
        assert!(ordered(&x, &[1]).copy.is_none() && ordered(&x.slice(2, ..4, 1).unwrap(), &[2]).copy.is_none());
        assert!(ordered(&x.permute_axes(&[1, 0, 2]).unwrap(), &[2]).copy.is_none());
        // Elements in the opposite order do.
        assert!(ordered(&x.reverse(2).unwrap(), &[2]).copy.is_some());
        // A column of width 1 is a row.
        assert!(matches!(ordered(&contiguous(&[9, 1]), &[0]).kind, Kind::Rows { rows: 1, len: 9, .. }));
    }

    #[test]
    fn results_that_are_added_to_are_in_order_and_written_once() {
        let in_place = |layout: &Layout, axes: &[isize], max_bytes: usize| {
            let reduced = Axes::from(axes).of(layout).unwrap();
            let allowed = Allowed { order: Order::Any, columns: true, in_place: true, size: 4 };
            Geometry::with_limit(layout, &reduced, allowed, max_bytes).unwrap()
        };
        let x = contiguous(&[6, 5, 7, 4]);
        let whole = in_place(&x, &[3], MAX_COPY_BYTES);
        assert!(is_direct(&whole, Kind::Rows { rows: 210, len: 4, pitch: 4 }) && whole.results.is_contiguous());
        // In the order of the view, not of the memory.
        let permuted = in_place(&x.permute_axes(&[1, 0, 2, 3]).unwrap(), &[3], MAX_COPY_BYTES);
        assert_eq!(permuted.copy.unwrap().extents(), [5, 6, 7, 4]);
        assert!(in_place(&x.reverse(0).unwrap(), &[3], MAX_COPY_BYTES).copy.is_some());
        // Five channels by twos: two parts, and one of what is left.
        let parts = in_place(&x, &[0, 2, 3], 2 * 168 * 4);
        let of = |part: &Launch| (part.input, part.result);
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
