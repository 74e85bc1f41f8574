//! Rows of two inputs.

use super::split::{Axis, Split, product};
use super::{Allowed, Geometry, Launch, MAX_COPY_BYTES, Pairs, launches_over_outer};
use crate::reduce::axes::Reduced;
use crate::{Error, Layout};

impl Geometry<2, Pairs> {
    /// The reduction of two layouts with the same extents.
    pub fn of_pairs(layouts: [&Layout; 2], reduced: &Reduced, allowed: Allowed) -> Result<Self, Error> {
        Self::with_limit(layouts, reduced, allowed, MAX_COPY_BYTES)
    }

    fn with_limit(layouts: [&Layout; 2], reduced: &Reduced, allowed: Allowed, max_bytes: usize) -> Result<Self, Error> {
        let (split, size) = (Split::of(layouts, reduced, allowed)?, allowed.size);
        if split.outputs == 0 || split.len() == 0 {
            // Of no elements the results are equal, and computed for each output.
            let rows = split.outputs;
            return split.of_no_elements(Pairs { groups: 1, rows, len: 0, pitches: [0; 2], group_pitches: [0; 2] });
        }
        let max_elements = max_bytes / size.max(1);
        let of_rows =
            |RowsOf { kind, copies }, launches, rest| Self { kind, copies, launches, results: split.results, rest };
        let rows = split.rows_of(&split.kept);
        if rows.copied() > 0
            && let Some((kind, launches)) = launches_over_outer(&split, size, |kept| split.direct(kept))
        {
            return Ok(of_rows(RowsOf { kind, copies: [None; 2] }, launches, None));
        }
        if rows.max_copied() <= max_elements {
            return Ok(of_rows(rows, vec![Launch { input: split.first, result: 0 }], None));
        }
        let cut = split.cut(max_elements);
        let part = |range: usize, firsts: &[usize], rest: Option<Box<Self>>| {
            of_rows(split.rows_of(&cut.axes_of_part(&split.kept, range)), split.launches(&cut, firsts), rest)
        };
        if allowed.in_place && cut.whole_len() < cut.len() {
            let rest = part(cut.len() - cut.whole_len(), &[cut.whole_len()], None);
            return Ok(part(cut.range, &cut.firsts_of_whole(), Some(Box::new(rest))));
        }
        Ok(part(cut.range, &cut.overlapping_firsts(), None))
    }
}

/// Rows of two inputs, and the copies of the inputs that do not lie so.
struct RowsOf {
    kind: Pairs,
    copies: [Option<Layout>; 2],
}

impl RowsOf {
    fn elements_copied(&self) -> [usize; 2] {
        self.copies.map(|copy| copy.map_or(0, |copy| copy.len()))
    }

    fn copied(&self) -> usize {
        self.elements_copied().iter().fold(0, |all, &len| all.saturating_add(len))
    }

    /// The elements of the larger copy.
    fn max_copied(&self) -> usize {
        self.elements_copied().into_iter().max().unwrap_or(0)
    }
}

impl Split<2> {
    /// The rows with these kept axes, if nothing is copied.
    fn direct(&self, kept: &[Axis<2>]) -> Option<Pairs> {
        Some(self.rows_of(kept)).filter(|rows| rows.copied() == 0).map(|rows| rows.kind)
    }

    /// The rows with these kept axes, in such groups that the least is copied.
    fn rows_of(&self, kept: &[Axis<2>]) -> RowsOf {
        let of_all = self.grouped(&[], kept);
        let in_groups = (1..kept.len()).map(|groups| self.grouped(&kept[..groups], &kept[groups..]));
        in_groups.fold(of_all, |best, rows| if rows.copied() < best.copied() { rows } else { best })
    }

    /// The rows of groups with these axes.
    fn grouped(&self, groups: &[Axis<2>], rows: &[Axis<2>]) -> RowsOf {
        let len = self.len();
        let (mut pitches, mut group_pitches, mut copies) = ([0; 2], [0; 2], [None; 2]);
        for input in 0..2 {
            let is_row = len == 1 || pitch_of(&self.reduced, input) == Some(1);
            if let (true, Some(group_pitch), Some(pitch)) = (is_row, pitch_of(groups, input), pitch_of(rows, input)) {
                (group_pitches[input], pitches[input]) = (group_pitch, pitch);
                continue;
            }
            // What is the same for all groups, or for all rows of a group, is copied once.
            let counts = |axes: &[Axis<2>]| axes.iter().any(|axis| axis.strides[input] != 0);
            let mut copy = Layout::SCALAR;
            let mut push = |axes: &[Axis<2>]| axes.iter().for_each(|axis| copy.push(axis.extent, axis.strides[input]));
            let mut copied_rows = 1;
            if counts(groups) {
                push(groups);
            }
            if counts(rows) {
                push(rows);
                copied_rows = product(rows);
                pitches[input] = len;
            }
            if counts(groups) {
                group_pitches[input] = copied_rows.saturating_mul(len);
            }
            push(&self.reduced);
            copies[input] = Some(copy);
        }
        let kind = Pairs { groups: product(groups), rows: product(rows), len, pitches, group_pitches };
        RowsOf { kind, copies }
    }
}

/// The distance between neighbours of an input along these axes, if they are one axis; 0 for no axes.
fn pitch_of(axes: &[Axis<2>], input: usize) -> Option<usize> {
    let pitch = axes.last().map_or(0, |axis| axis.strides[input]);
    let mut next = Some(pitch);
    for axis in axes.iter().rev() {
        if next != Some(axis.strides[input]) {
            return None;
        }
        next = axis.strides[input].checked_mul(axis.extent as isize);
    }
    usize::try_from(pitch).ok()
}

#[cfg(test)]
mod tests {
    use super::super::{LaunchShape, Order};
    use super::*;
    use crate::Axes;

    fn contiguous(extents: &[usize]) -> Layout {
        Layout::contiguous(extents).unwrap()
    }

    fn pairs_of(layouts: [&Layout; 2], axes: &[isize], max_bytes: usize, in_place: bool) -> Geometry<2, Pairs> {
        let reduced = Axes::from(axes).of(layouts[0]).unwrap();
        let allowed = Allowed { order: Order::Any, columns: false, in_place, size: 4 };
        Geometry::<2, Pairs>::with_limit(layouts, &reduced, allowed, max_bytes).unwrap()
    }

    fn pairs(layouts: [&Layout; 2], axes: &[isize]) -> Geometry<2, Pairs> {
        pairs_of(layouts, axes, MAX_COPY_BYTES, false)
    }

    fn is_direct(geometry: &Geometry<2, Pairs>, kind: Pairs) -> bool {
        geometry.copies == [None; 2] && geometry.kind == kind && geometry.launches.len() == 1
    }

    #[test]
    fn axes_merge_only_if_both_inputs_merge() {
        let x = contiguous(&[6, 5, 7]);
        let kind = Pairs { groups: 1, rows: 30, len: 7, pitches: [7, 7], group_pitches: [0, 0] };
        assert!(is_direct(&pairs([&x, &x], &[2]), kind));
        let kind = Pairs { groups: 1, rows: 1, len: 210, pitches: [0, 0], group_pitches: [0, 0] };
        assert!(is_direct(&pairs([&x, &x], &[0, 1, 2]), kind));
        // A part of each row of one input.
        let part = contiguous(&[6, 5, 9]).slice(2, ..7, 1).unwrap();
        let kind = Pairs { groups: 1, rows: 30, len: 7, pitches: [7, 9], group_pitches: [0, 0] };
        assert!(is_direct(&pairs([&x, &part], &[2]), kind));
        // Rows of both that are 7 apart, and then 35 or 49: groups of five.
        let gaps = contiguous(&[6, 7, 7]).slice(1, ..5, 1).unwrap();
        let kind = Pairs { groups: 6, rows: 5, len: 7, pitches: [7, 7], group_pitches: [35, 49] };
        assert!(is_direct(&pairs([&x, &gaps], &[2]), kind));
        // The same order of the axes, whatever it is, and from behind.
        let of = |x: &Layout| x.permute_axes(&[2, 0, 1]).unwrap().reverse(0).unwrap();
        let kind = Pairs { groups: 1, rows: 30, len: 7, pitches: [7, 7], group_pitches: [0, 0] };
        let permuted = pairs([&of(&x), &of(&x)], &[0]);
        assert!(is_direct(&permuted, kind) && permuted.launches[0].input == [-6, -6]);
    }

    #[test]
    fn what_is_broadcast_is_not_copied() {
        let x = contiguous(&[1000, 64]);
        // Each row with one vector.
        let vector = contiguous(&[64]).broadcast_to(&[1000, 64]).unwrap();
        let kind = Pairs { groups: 1, rows: 1000, len: 64, pitches: [64, 0], group_pitches: [0, 0] };
        assert!(is_direct(&pairs([&x, &vector], &[1]), kind));
        let kind = Pairs { groups: 1, rows: 1000, len: 64, pitches: [0, 64], group_pitches: [0, 0] };
        assert!(is_direct(&pairs([&vector, &x], &[-1]), kind));
        // Each row with each row.
        let of = |axis| contiguous(&[20, 64]).insert_axis(axis).unwrap().broadcast_to(&[20, 20, 64]).unwrap();
        let kind = Pairs { groups: 20, rows: 20, len: 64, pitches: [0, 64], group_pitches: [64, 0] };
        let all = pairs([&of(1), &of(0)], &[2]);
        assert!(is_direct(&all, kind) && all.results.is_contiguous(), "{all:?}");
        // A group of rows with the same one.
        let weights = contiguous(&[5, 64]).broadcast_to(&[200, 5, 64]).unwrap();
        let kind = Pairs { groups: 200, rows: 5, len: 64, pitches: [64, 64], group_pitches: [320, 0] };
        assert!(is_direct(&pairs([&contiguous(&[200, 5, 64]), &weights], &[2]), kind));
        // Both repeat the axis: each result is computed once.
        let kind = Pairs { groups: 1, rows: 1, len: 64, pitches: [0, 0], group_pitches: [0, 0] };
        assert!(is_direct(&pairs([&vector, &vector], &[1]), kind));
    }

    #[test]
    fn only_the_input_that_is_not_rows_is_copied() {
        // Each column with one vector.
        let (x, column) = (contiguous(&[1000, 64]), contiguous(&[1000, 1]).broadcast_to(&[1000, 64]).unwrap());
        let columns = pairs([&x, &column], &[0]);
        let kind = Pairs { groups: 1, rows: 64, len: 1000, pitches: [1000, 0], group_pitches: [0, 0] };
        assert_eq!((columns.kind, columns.copies[0].unwrap().extents()), (kind, &[64, 1000][..]));
        assert_eq!(columns.copies[1], None);
        // If it is the same for all rows, its copy is one row.
        let every_second = contiguous(&[128]).slice(0, .., 2).unwrap().broadcast_to(&[1000, 64]).unwrap();
        let vector = pairs([&x, &every_second], &[1]);
        assert_eq!((vector.copies[0], vector.copies[1].unwrap().extents()), (None, &[64][..]));
        assert_eq!(vector.kind.pitches, [64, 0]);
        // An axis that is reversed in one of them.
        let reversed = pairs([&x, &x.reverse(0).unwrap()], &[1]);
        assert_eq!((reversed.copies[0], reversed.copies[1].unwrap().extents()), (None, &[1000, 64][..]));
        assert_eq!(reversed.launches[0].input, [0, 0]);
    }

    #[test]
    fn a_copy_is_limited() {
        let (x, y) = (contiguous(&[7, 100]), contiguous(&[100, 7]).permute_axes(&[1, 0]).unwrap());
        let parts = pairs_of([&x, &y], &[1], 200 * 4, false);
        assert_eq!((parts.kind.rows, parts.copies[0]), (2, None));
        let of = |launch: &Launch<2>| (launch.input, launch.result);
        let expected = [([0, 0], 0), ([200, 2], 2), ([400, 4], 4), ([500, 5], 5)];
        assert_eq!(parts.launches.iter().map(of).collect::<Vec<_>>(), expected);
        assert_eq!(parts.outputs(), 7);

        // In place, each result is written once.
        let parts = pairs_of([&x, &y], &[1], 200 * 4, true);
        assert_eq!(parts.launches.iter().map(of).collect::<Vec<_>>(), expected[..3]);
        let rest = parts.rest.as_ref().unwrap();
        assert_eq!((rest.kind.rows, rest.launches.iter().map(of).collect::<Vec<_>>()), (1, vec![([600, 6], 6)]));
        assert_eq!(parts.outputs(), 7);
    }

    /// In place, results are in C order of the kept axes, and each axis has its own.
    #[test]
    fn results_in_place_are_in_c_order() {
        let (x, y) = (contiguous(&[4, 5, 3]), contiguous(&[4, 5, 3]));
        let transposed = [x.permute_axes(&[1, 0, 2]).unwrap(), y.permute_axes(&[1, 0, 2]).unwrap()];
        let of = |in_place| pairs_of(transposed.each_ref(), &[2], MAX_COPY_BYTES, in_place);
        assert!(!of(false).results.is_contiguous() && of(true).results.is_contiguous());
        assert_eq!((of(true).outputs(), of(true).kind.outputs()), (20, 20));
    }

    #[test]
    fn no_elements() {
        let none = pairs([&contiguous(&[3, 0]), &contiguous(&[3, 0])], &[1]);
        assert_eq!((none.kind.len, none.outputs()), (0, 3));
        assert_eq!(pairs([&contiguous(&[0, 4]), &contiguous(&[0, 4])], &[1]).outputs(), 0);
        // No axes: each element alone.
        let each = pairs([&contiguous(&[5, 7]), &contiguous(&[5, 7])], &[]);
        assert_eq!((each.kind.rows, each.kind.len, each.kind.pitches), (35, 1, [1, 1]));
    }
}
