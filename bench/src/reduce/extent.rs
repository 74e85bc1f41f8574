//! What is reduced: an array along some of its axes, or segments by offsets.

use std::fmt;

use warpfold::{Axes, Error, Layout, MAX_RANK};

use super::form::{Axis, Form};
use crate::axes::AxisList;

/// An array, and the axes along which it is reduced; or segments by offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The layout of the array. For segments its extents are their number and their mean length.
    layout: Layout,
    reduced: Reduced,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reduced {
    /// Axis `i` is reduced if bit `i` is 1.
    Axes(u32),
    Segments,
}

impl Extent {
    /// The whole of a vector.
    pub fn all(len: usize) -> Self {
        Self::of(&[len], &[0])
    }

    /// Each row of a matrix.
    pub fn rows(rows: usize, columns: usize) -> Self {
        Self::of(&[rows, columns], &[1])
    }

    /// Each column of a matrix.
    pub fn columns(rows: usize, columns: usize) -> Self {
        Self::of(&[rows, columns], &[0])
    }

    /// Segments by offsets.
    pub fn segments(count: usize, mean: usize) -> Self {
        Self { reduced: Reduced::Segments, ..Self::of(&[count, mean], &[]) }
    }

    fn of(extents: &[usize], axes: &[isize]) -> Self {
        let layout = Layout::contiguous(extents).expect("the lists of cases have no other extents");
        Self::along(layout, Some(&AxisList(axes.to_vec()))).expect("the lists of cases have no other axes")
    }

    /// An array along some of its axes; `None` are all.
    ///
    /// # Errors
    /// There is no such axis, or one is named twice.
    pub fn along(layout: Layout, axes: Option<&AxisList>) -> Result<Self, Error> {
        const OPERATION: &str = "--axis";
        let rank = layout.rank();
        let Some(AxisList(axes)) = axes else {
            let all = (0..rank).fold(0, |all, axis| all | 1 << axis);
            return Ok(Self { layout, reduced: Reduced::Axes(all) });
        };
        let mut names = [None; MAX_RANK];
        let mut reduced = 0;
        for &name in axes {
            let from_start = if name < 0 { rank.checked_add_signed(name) } else { Some(name.unsigned_abs()) };
            let Some(axis) = from_start.filter(|&axis| axis < rank) else {
                return Err(Error::Axis { operation: OPERATION, axis: name, rank });
            };
            if let Some(first) = names[axis].replace(name) {
                return Err(Error::RepeatedAxis { operation: OPERATION, axis, first, second: name });
            }
            reduced |= 1 << axis;
        }
        Ok(Self { layout, reduced: Reduced::Axes(reduced) })
    }

    fn is_reduced(&self, axis: usize) -> bool {
        matches!(self.reduced, Reduced::Axes(axes) if axes >> axis & 1 == 1)
    }

    /// The axes that are reduced, or the others.
    fn axes(&self, is_reduced: bool) -> Vec<isize> {
        let axes = (0..self.layout.rank()).filter(|&axis| self.is_reduced(axis) == is_reduced);
        axes.map(|axis| axis as isize).collect()
    }

    /// The layout and the axes for the library.
    pub fn array(&self) -> (Layout, Axes) {
        (self.layout, Axes::from(&self.axes(true)[..]))
    }

    /// The extents of the array.
    pub fn extents(&self) -> &[usize] {
        self.layout.extents()
    }

    /// The axes that are not reduced.
    pub fn kept(&self) -> Vec<usize> {
        self.axes(false).into_iter().map(isize::unsigned_abs).collect()
    }

    pub fn elements(&self) -> usize {
        self.layout.len()
    }

    /// The number of results.
    pub fn results(&self) -> usize {
        self.extents_of_results(true).iter().product()
    }

    /// The extents of the array of results, in which a reduced axis is left out or has an extent of 1.
    pub fn extents_of_results(&self, keep_dims: bool) -> Vec<usize> {
        if self.reduced == Reduced::Segments {
            return vec![self.extents()[0]];
        }
        let all = self.extents().iter().enumerate();
        all.filter_map(|(axis, &extent)| match self.is_reduced(axis) {
            false => Some(extent),
            true => keep_dims.then_some(1),
        })
        .collect()
    }

    /// The form of the reduction; `None` if it has none without a copy.
    pub fn form(&self) -> Option<Form> {
        if self.reduced == Reduced::Segments {
            let [rows, columns] = [self.extents()[0], self.extents()[1]];
            return Some(Form { rows, columns, axis: Axis::Skewed });
        }
        // In another order the elements of a result are not those of a row or column.
        let axes = self.extents().iter().enumerate().map(|(axis, &extent)| (self.is_reduced(axis), extent));
        self.layout.is_contiguous().then(|| Form::of(axes)).flatten()
    }

    /// The layout of the same elements with those of each result together, and the form of an array in that order.
    pub fn by_result(&self) -> (Layout, Form) {
        let axes = [self.axes(false), self.axes(true)].concat();
        let layout = self.layout.permute_axes(&axes).expect("each axis is named once");
        let columns = self.axes(true).iter().map(|&axis| self.extents()[axis.unsigned_abs()]).product();
        (layout, Form { rows: self.results(), columns, axis: Axis::Rows })
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side =
            |&n: &usize| if n >= 1024 && n.is_power_of_two() { format!("2^{}", n.ilog2()) } else { n.to_string() };
        let sides = match self.extents() {
            [] => "a single element".to_owned(),
            extents => extents.iter().map(side).collect::<Vec<_>>().join(" x "),
        };
        let axes = self.axes(true);
        let of = match (self.reduced, &axes[..], self.layout.rank()) {
            (Reduced::Segments, ..) => " skewed".to_owned(),
            (_, axes, rank) if axes.len() == rank => String::new(),
            (_, [1], 2) => " rows".to_owned(),
            (_, [0], 2) => " columns".to_owned(),
            (_, [axis], _) => format!(" along axis {axis}"),
            (_, axes, _) => {
                format!(" along axes {}", axes.iter().map(isize::to_string).collect::<Vec<_>>().join(" "))
            }
        };
        let order = if self.layout.is_contiguous() { "" } else { " in Fortran order" };
        f.pad(&format!("{sides}{of}{order}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strided;

    fn along(extents: &[usize], axes: &[isize]) -> Result<Extent, Error> {
        Extent::along(Layout::contiguous(extents).unwrap(), Some(&AxisList(axes.to_vec())))
    }

    #[test]
    fn axes_are_shown_and_leave_the_others() {
        for (extents, axes, shown, others, kept) in [
            (&[7][..], &[0][..], "7", &[][..], &[1][..]),
            (&[3, 5], &[0], "3 x 5 columns", &[5], &[1, 5]),
            (&[3, 1024], &[-1], "3 x 2^10 rows", &[3], &[3, 1]),
            (&[3, 5], &[1, 0], "3 x 5", &[], &[1, 1]),
            (&[2, 3, 5], &[1], "2 x 3 x 5 along axis 1", &[2, 5], &[2, 1, 5]),
            (&[2, 3, 5], &[2, -3], "2 x 3 x 5 along axes 0 2", &[3], &[1, 3, 1]),
            (&[0, 3], &[0], "0 x 3 columns", &[3], &[1, 3]),
        ] {
            let extent = along(extents, axes).unwrap();
            assert_eq!(extent.to_string(), shown);
            assert_eq!((&extent.extents_of_results(false)[..], &extent.extents_of_results(true)[..]), (others, kept));
            assert_eq!(extent.results(), others.iter().product::<usize>(), "{shown}");
        }
        let fortran = strided::fortran(&[2, 3]).unwrap();
        assert_eq!(Extent::along(fortran, None).unwrap().to_string(), "2 x 3 in Fortran order");
        assert_eq!(Extent::along(Layout::contiguous(&[]).unwrap(), None).unwrap().to_string(), "a single element");
        assert_eq!(Extent::segments(3, 5).to_string(), "3 x 5 skewed");
    }

    #[test]
    fn axes_that_do_not_exist_are_named() {
        let error = |extents: &[usize], axes: &[isize]| along(extents, axes).unwrap_err().to_string();
        for axis in [2, -3, isize::MIN, isize::MAX] {
            assert!(error(&[2, 3], &[0, axis]).contains(&format!("no axis {axis}: the array has the axes 0 to 1")));
        }
        assert!(error(&[], &[0]).contains("the array has none"));
        assert!(error(&[2, 3, 5], &[-1, 0, 2]).contains("axis 2 is named twice, as -1 and as 2"));
        assert!(error(&[2, 3], &[0; 33]).contains("named twice"));
    }

    #[test]
    fn only_some_reductions_have_a_form() {
        let form = |extents: &[usize], axes: &[isize]| along(extents, axes).unwrap().form();
        let of = |rows, columns, axis| Some(Form { rows, columns, axis });
        assert_eq!(form(&[2, 3, 5], &[1, 2]), of(2, 15, Axis::Rows));
        assert_eq!(form(&[2, 3, 5], &[0, 2]), None);
        let extent = along(&[2, 3, 5], &[0, 2]).unwrap();
        let (layout, form) = extent.by_result();
        assert_eq!((layout.extents(), layout.strides()), (&[3, 2, 5][..], &[5, 15, 1][..]));
        assert_eq!(Some(form), of(3, 10, Axis::Rows));
        assert_eq!(Extent::along(strided::fortran(&[2, 3]).unwrap(), None).unwrap().form(), None);
        assert_eq!(Extent::along(strided::fortran(&[1, 3]).unwrap(), None).unwrap().form(), of(1, 3, Axis::All));
    }
}
