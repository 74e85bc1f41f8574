//! Where the elements of an array are.

use std::fmt;
use std::ops::{Bound, RangeBounds};

use crate::Error;

/// The maximum number of axes.
pub const MAX_RANK: usize = 32;

/// Where the elements of an array are in a view: the extent of each axis, the distance (stride) between neighbours
/// along it, and the position of the element whose indices are all 0.
///
/// All of them count elements. A stride may be negative or 0, as in NumPy; memory and device play no part. An array has
/// up to 32 axes; with none, it is a single element. The names and their meaning are NumPy's, and as there an axis can
/// be counted from the end: -1 is the last.
///
/// ```
/// use warpfold::Layout;
///
/// let rows = Layout::contiguous(&[2, 3])?;
/// assert_eq!((rows.extents(), rows.strides()), (&[2, 3][..], &[3, 1][..]));
/// let columns = rows.permute_axes(&[1, 0])?;
/// assert_eq!((columns.extents(), columns.strides()), (&[3, 2][..], &[1, 3][..]));
/// // Every second column, from the last to the first.
/// let some = rows.slice(1, .., 2)?.reverse(1)?;
/// assert_eq!((some.extents(), some.strides(), some.offset()), (&[2, 2][..], &[3, -2][..], 2));
/// # Ok::<(), warpfold::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Layout {
    rank: usize,
    extents: [usize; MAX_RANK],
    strides: [isize; MAX_RANK],
    offset: usize,
}

impl Layout {
    /// The layout of an array without gaps in C order: along the last axis, elements are neighbours.
    ///
    /// # Errors
    /// There are more than 32 axes, or no memory could hold so many elements.
    pub fn contiguous(extents: &[usize]) -> Result<Self, Error> {
        check_extents("lay out an array", extents)?;
        let mut layout = Self::of_checked(extents);
        layout.make_contiguous();
        Ok(layout)
    }

    /// Any layout. Strides count elements, and `offset` is the position of the element whose indices are all 0.
    ///
    /// # Errors
    /// There are more than 32 axes, or not one stride for each; no memory could hold so many elements, or such
    /// distances; or a position is below 0.
    pub fn strided(extents: &[usize], strides: &[isize], offset: usize) -> Result<Self, Error> {
        const OPERATION: &str = "lay out an array";
        check_extents(OPERATION, extents)?;
        if strides.len() != extents.len() {
            let (found, expected) = (strides.len(), extents.len());
            return Err(Error::Length { operation: OPERATION, what: "the list of strides", found, expected });
        }
        let mut layout = Self::of_checked(extents);
        layout.strides[..strides.len()].copy_from_slice(strides);
        layout.offset = offset;
        layout.check_positions(OPERATION)?;
        Ok(layout)
    }

    /// The layout of `len` neighbouring elements, of which memory has all.
    pub(crate) fn of_len(len: usize) -> Self {
        let mut layout = Self::SCALAR;
        layout.push(len, 1);
        layout
    }

    /// The layout of a single element.
    pub(crate) const SCALAR: Self = Self { rank: 0, extents: [1; MAX_RANK], strides: [0; MAX_RANK], offset: 0 };

    /// A layout whose strides are 0, of extents that [`check_extents`] has allowed.
    // A layout is large, so that it is not passed through a `Result` here.
    #[inline]
    fn of_checked(extents: &[usize]) -> Self {
        let mut layout = Self { rank: extents.len(), ..Self::SCALAR };
        layout.extents[..extents.len()].copy_from_slice(extents);
        layout
    }

    fn make_contiguous(&mut self) {
        let mut stride = 1;
        for axis in (0..self.rank).rev() {
            self.strides[axis] = stride;
            stride *= self.extents[axis].max(1) as isize;
        }
        self.offset = 0;
    }

    /// Adds a last axis. The caller has checked the extents and positions.
    pub(crate) fn push(&mut self, extent: usize, stride: isize) {
        self.extents[self.rank] = extent;
        self.strides[self.rank] = stride;
        self.rank += 1;
    }

    /// The same layout with the element whose indices are all 0 at another position. A view has all its elements.
    pub(crate) fn with_offset(&self, offset: usize) -> Self {
        Self { offset, ..*self }
    }

    /// The number of axes.
    pub const fn rank(&self) -> usize {
        self.rank
    }

    /// The number of elements along each axis.
    pub fn extents(&self) -> &[usize] {
        &self.extents[..self.rank]
    }

    /// The distance between neighbours along each axis, in elements.
    pub fn strides(&self) -> &[isize] {
        &self.strides[..self.rank]
    }

    /// The position of the element whose indices are all 0.
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// The number of elements: the product of the extents.
    pub fn len(&self) -> usize {
        self.extents().iter().product()
    }

    /// Whether there are no elements, because an extent is 0.
    pub fn is_empty(&self) -> bool {
        self.extents().contains(&0)
    }

    /// Whether the elements are neighbours in C order. The strides of axes of one element do not count, and an array
    /// without elements is contiguous.
    pub fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        for (&extent, &stride) in self.extents().iter().zip(self.strides()).rev() {
            if extent > 1 && stride != expected {
                return self.is_empty();
            }
            expected *= extent.max(1) as isize;
        }
        true
    }

    /// The number of elements that memory needs for this layout: one more than the largest position, 0 if there are no
    /// elements.
    pub fn required_len(&self) -> usize {
        // Positions are below `isize::MAX`, as checked when the layout was made.
        self.positions().map_or(0, |(_, last)| last as usize + 1)
    }

    /// The smallest and the largest position of an element; `None` if there are no elements.
    pub(crate) fn positions(&self) -> Option<(i128, i128)> {
        let (mut first, mut last) = (self.offset as i128, self.offset as i128);
        for (&extent, &stride) in self.extents().iter().zip(self.strides()) {
            let reach = (extent as i128 - 1) * stride as i128;
            match extent {
                0 => return None,
                _ if reach < 0 => first += reach,
                _ => last += reach,
            }
        }
        Some((first, last))
    }

    fn check_positions(&self, operation: &'static str) -> Result<(), Error> {
        match self.positions() {
            Some((first, _)) if first < 0 => Err(Error::BelowStart { operation, position: first }),
            Some((_, last)) if last >= isize::MAX as i128 => Err(Error::PositionOverflow { operation, position: last }),
            _ => Ok(()),
        }
    }

    /// The index of an axis, which may be counted from the end.
    pub(crate) fn axis(&self, operation: &'static str, axis: isize) -> Result<usize, Error> {
        resolve(operation, axis, self.rank)
    }

    /// The axes in another order: axis `i` of the result is axis `axes[i]` of this layout, as in NumPy's `transpose`.
    ///
    /// # Errors
    /// `axes` does not name each axis once.
    pub fn permute_axes(&self, axes: &[isize]) -> Result<Self, Error> {
        const OPERATION: &str = "permute axes";
        let named = distinct(OPERATION, axes, self.rank)?;
        if let Some(axis) = named.iter().position(Option::is_none).filter(|&axis| axis < self.rank) {
            return Err(Error::MissingAxis { operation: OPERATION, axis });
        }
        let mut permuted = Self { rank: 0, ..*self };
        for &axis in axes {
            let axis = self.axis(OPERATION, axis)?;
            permuted.push(self.extents[axis], self.strides[axis]);
        }
        Ok(permuted)
    }

    /// The elements of a range along one axis, every `step`-th of them: NumPy's `x[start:end:step]` for that axis.
    ///
    /// # Errors
    /// There is no such axis, the range is not within its extent, or the step is 0.
    pub fn slice(&self, axis: isize, range: impl RangeBounds<usize>, step: usize) -> Result<Self, Error> {
        const OPERATION: &str = "slice";
        let axis = self.axis(OPERATION, axis)?;
        let extent = self.extents[axis];
        let of = |what, found, expected| Error::Extent { operation: OPERATION, axis, what, found, expected };
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => extent,
        };
        if end > extent {
            return Err(of("the end of the range", end, format!("at most the axis' extent of {extent}")));
        }
        if start > end {
            return Err(of("the start of the range", start, format!("at most its end, {end}")));
        }
        if step == 0 {
            return Err(of("the step", step, "at least 1".to_owned()));
        }
        let mut sliced = *self;
        sliced.extents[axis] = (end - start).div_ceil(step);
        // Of a range of one element or none, the stride is not used, and could overflow.
        if sliced.extents[axis] > 1 {
            sliced.strides[axis] = self.strides[axis] * step as isize;
        }
        if !sliced.is_empty() {
            sliced.offset = self.offset.wrapping_add_signed(self.strides[axis].wrapping_mul(start as isize));
        }
        Ok(sliced)
    }

    /// The elements along one axis in the opposite order.
    ///
    /// # Errors
    /// There is no such axis.
    pub fn reverse(&self, axis: isize) -> Result<Self, Error> {
        let axis = self.axis("reverse an axis", axis)?;
        let mut reversed = *self;
        reversed.strides[axis] = self.strides[axis].wrapping_neg();
        if !self.is_empty() {
            // The position of the last element, which the layout has.
            let reach = self.strides[axis].wrapping_mul(self.extents[axis] as isize - 1);
            reversed.offset = self.offset.wrapping_add_signed(reach);
        }
        Ok(reversed)
    }

    /// The array repeated along axes of extent 1, and along new axes before the first, to these extents, as in NumPy.
    /// A repeated axis has stride 0, so nothing is copied.
    ///
    /// # Errors
    /// An axis has neither the wanted extent nor 1, there are fewer extents than axes, more than 32, or too many
    /// elements.
    pub fn broadcast_to(&self, extents: &[usize]) -> Result<Self, Error> {
        const OPERATION: &str = "broadcast";
        check_extents(OPERATION, extents)?;
        let mut result = Self::of_checked(extents);
        let Some(new) = extents.len().checked_sub(self.rank) else {
            let (found, minimum) = (extents.len(), self.rank);
            return Err(Error::TooShort { operation: OPERATION, what: "the list of extents", found, minimum });
        };
        result.offset = self.offset;
        for axis in 0..self.rank {
            let (found, wanted) = (self.extents[axis], extents[new + axis]);
            if found == wanted {
                result.strides[new + axis] = self.strides[axis];
            } else if found != 1 {
                let expected = format!("{wanted} or 1 to be broadcast to an extent of {wanted}");
                return Err(Error::Extent { operation: OPERATION, axis, what: "the extent", found, expected });
            }
        }
        Ok(result)
    }

    /// A new axis of one element, which becomes axis `at`: NumPy's `expand_dims`. -1 makes it the last.
    ///
    /// # Errors
    /// `at` is not among the axes of the result, or the array has 32 axes already.
    pub fn insert_axis(&self, at: isize) -> Result<Self, Error> {
        const OPERATION: &str = "insert an axis";
        if self.rank == MAX_RANK {
            return Err(Error::TooManyAxes { operation: OPERATION, found: MAX_RANK + 1, max: MAX_RANK });
        }
        let at = resolve(OPERATION, at, self.rank + 1)?;
        let mut result = Self { rank: 0, ..*self };
        for axis in 0..=self.rank {
            if axis == at {
                result.push(1, 0);
            }
            if axis < self.rank {
                result.push(self.extents[axis], self.strides[axis]);
            }
        }
        Ok(result)
    }

    /// The layout without an axis of one element: NumPy's `squeeze` of one axis.
    ///
    /// # Errors
    /// There is no such axis, or it does not have one element.
    pub fn remove_axis(&self, axis: isize) -> Result<Self, Error> {
        const OPERATION: &str = "remove an axis";
        let axis = self.axis(OPERATION, axis)?;
        let found = self.extents[axis];
        if found != 1 {
            let expected = "1: only an axis of one element can be removed".to_owned();
            return Err(Error::Extent { operation: OPERATION, axis, what: "the extent", found, expected });
        }
        Ok(self.without(axis))
    }

    /// The layout of the elements whose index along an axis is 0.
    pub(crate) fn without(&self, axis: usize) -> Self {
        let mut result = Self { rank: 0, ..*self };
        for other in (0..self.rank).filter(|&other| other != axis) {
            result.push(self.extents[other], self.strides[other]);
        }
        result
    }

    /// The same elements in C order, as an array of these extents, without a copy.
    ///
    /// # Errors
    /// The extents are of another number of elements; or of elements that are not equally far apart, so that only a
    /// copy has this shape: [`Gpu::contiguous`](crate::Gpu::contiguous) makes one.
    pub fn reshape(&self, extents: &[usize]) -> Result<Self, Error> {
        const OPERATION: &str = "reshape";
        check_extents(OPERATION, extents)?;
        let mut result = Self::of_checked(extents);
        let (found, expected) = (result.len(), self.len());
        if found != expected {
            let what = "an array of the new extents";
            return Err(Error::Length { operation: OPERATION, what, found, expected });
        }
        result.make_contiguous();
        result.offset = self.offset;
        if self.is_empty() {
            return Ok(result);
        }
        // Source: NumPy's reshape. A run of old axes and one of new axes that have the same number of elements: the old
        // ones must be one axis, whose stride the last of the new ones gets.
        let of: Vec<usize> = (0..self.rank).filter(|&axis| self.extents[axis] > 1).collect();
        let (mut old, mut new) = (0, 0);
        while old < of.len() && new < extents.len() {
            let (mut old_end, mut new_end) = (old + 1, new + 1);
            let (mut old_len, mut new_len) = (self.extents[of[old]], extents[new]);
            while old_len != new_len {
                if new_len < old_len {
                    new_len *= extents[new_end];
                    new_end += 1;
                } else {
                    old_len *= self.extents[of[old_end]];
                    old_end += 1;
                }
            }
            for pair in of[old..old_end].windows(2) {
                let one = self.strides[pair[1]].checked_mul(self.extents[pair[1]] as isize);
                if one != Some(self.strides[pair[0]]) {
                    return Err(Error::NeedsCopy { axis: pair[0], next: pair[1], layout: self.to_string() });
                }
            }
            let mut stride = self.strides[of[old_end - 1]];
            for axis in (new..new_end).rev() {
                result.strides[axis] = stride;
                stride = stride.wrapping_mul(extents[axis] as isize);
            }
            (old, new) = (old_end, new_end);
        }
        Ok(result)
    }

    /// The first axis along which two elements could share memory: its stride is not larger than the reach of all axes
    /// with smaller strides.
    fn overlapping_axis(&self) -> Option<(usize, isize, usize)> {
        if self.is_empty() {
            return None;
        }
        let mut axes: Vec<usize> = (0..self.rank).filter(|&axis| self.extents[axis] > 1).collect();
        axes.sort_by_key(|&axis| self.strides[axis].unsigned_abs());
        let mut reach = 0;
        for axis in axes {
            let stride = self.strides[axis].unsigned_abs();
            if stride <= reach {
                return Some((axis, self.strides[axis], reach));
            }
            // Below `isize::MAX`, as all positions are.
            reach += stride * (self.extents[axis] - 1);
        }
        None
    }

    /// Checks that no two elements could share memory.
    pub(crate) fn check_apart(&self) -> Result<(), Error> {
        match self.overlapping_axis() {
            Some((axis, stride, reach)) => Err(Error::Overlap { axis, stride, reach, layout: self.to_string() }),
            None => Ok(()),
        }
    }

    /// The position of an element.
    #[cfg(test)]
    pub(crate) fn position(&self, index: &[usize]) -> usize {
        let along = index.iter().zip(self.strides()).map(|(&i, &stride)| i as isize * stride);
        self.offset.wrapping_add_signed(along.sum())
    }
}

/// Checks that there may be an array of these extents.
fn check_extents(operation: &'static str, extents: &[usize]) -> Result<(), Error> {
    if extents.len() > MAX_RANK {
        return Err(Error::TooManyAxes { operation, found: extents.len(), max: MAX_RANK });
    }
    // The product of all extents but those of 0, so that no stride overflows.
    let mut product = 1_usize;
    for (axis, &extent) in extents.iter().enumerate() {
        match product.checked_mul(extent.max(1)).filter(|&product| product <= isize::MAX as usize) {
            Some(next) => product = next,
            None => return Err(Error::ArrayTooLarge { operation, axis, extent }),
        }
    }
    Ok(())
}

/// The index of an axis, which may be counted from the end.
pub(crate) fn resolve(operation: &'static str, axis: isize, rank: usize) -> Result<usize, Error> {
    let index = if axis < 0 { axis.checked_add_unsigned(rank).unwrap_or(axis) } else { axis };
    match usize::try_from(index) {
        Ok(index) if index < rank => Ok(index),
        _ => Err(Error::Axis { operation, axis, rank }),
    }
}

/// For each axis, the name by which a list has it. No axis is in the list twice.
pub(crate) fn distinct(
    operation: &'static str,
    axes: &[isize],
    rank: usize,
) -> Result<[Option<isize>; MAX_RANK], Error> {
    let mut names = [None; MAX_RANK];
    for &name in axes {
        let axis = resolve(operation, name, rank)?;
        if let Some(first) = names[axis].replace(name) {
            return Err(Error::RepeatedAxis { operation, axis, first, second: name });
        }
    }
    Ok(names)
}

impl PartialEq for Layout {
    fn eq(&self, other: &Self) -> bool {
        (self.extents(), self.strides(), self.offset) == (other.extents(), other.strides(), other.offset)
    }
}

impl Eq for Layout {}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (extents, strides) = (self.extents(), self.strides());
        f.debug_struct("Layout")
            .field("extents", &extents)
            .field("strides", &strides)
            .field("offset", &self.offset)
            .finish()
    }
}

/// `2 x 3 with strides [1, 2]`; without the strides if it is contiguous.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rank == 0 {
            return f.write_str("a single element");
        }
        for (axis, extent) in self.extents().iter().enumerate() {
            write!(f, "{}{extent}", if axis > 0 { " x " } else { "" })?;
        }
        if self.is_contiguous() { Ok(()) } else { write!(f, " with strides {:?}", self.strides()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strided(extents: &[usize], strides: &[isize], offset: usize) -> Layout {
        Layout::strided(extents, strides, offset).unwrap()
    }

    /// The positions of all elements in C order.
    fn positions(layout: &Layout) -> Vec<usize> {
        let mut index = vec![0; layout.rank()];
        (0..layout.len())
            .map(|number| {
                let mut left = number;
                for axis in (0..layout.rank()).rev() {
                    index[axis] = left % layout.extents()[axis];
                    left /= layout.extents()[axis];
                }
                layout.position(&index)
            })
            .collect()
    }

    fn message(result: Result<Layout, Error>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn positions_are_numpys() {
        let x = Layout::contiguous(&[2, 3, 4]).unwrap();
        assert_eq!(positions(&x), (0..24).collect::<Vec<_>>());
        assert_eq!(positions(&x.permute_axes(&[-1, 0, 1]).unwrap())[..4], [0, 4, 8, 12]);
        assert_eq!(positions(&x.reverse(0).unwrap().slice(2, 1..4, 2).unwrap())[..4], [13, 15, 17, 19]);
        assert_eq!(positions(&x.slice(1, 2.., 5).unwrap()), [8, 9, 10, 11, 20, 21, 22, 23]);
        assert_eq!(positions(&x.slice(0, 1..=1, 1).unwrap().remove_axis(0).unwrap()), (12..24).collect::<Vec<_>>());
        let repeated = Layout::contiguous(&[3, 1]).unwrap().broadcast_to(&[2, 3, 2]).unwrap();
        assert_eq!(positions(&repeated), [0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2]);
        assert_eq!(x.insert_axis(-1).unwrap().extents(), [2, 3, 4, 1]);
        assert_eq!(x.insert_axis(1).unwrap().extents(), [2, 1, 3, 4]);
        assert_eq!(positions(&Layout::contiguous(&[]).unwrap()), [0]);
        let none = x.slice(1, 2..2, 1).unwrap();
        assert_eq!((none.len(), none.required_len(), none.is_contiguous()), (0, 0, true));
        assert!(none.reverse(1).unwrap().reverse(0).unwrap().is_empty());
    }

    #[test]
    fn a_layout_knows_the_memory_that_it_needs() {
        let x = strided(&[2, 3], &[-5, 2], 5);
        assert_eq!((x.positions(), x.required_len(), x.is_contiguous()), (Some((0, 9)), 10, false));
        assert_eq!(strided(&[3, 0], &[7, 1], 100).required_len(), 0);
        assert!(strided(&[1, 3, 1], &[99, 1, -4], 4).is_contiguous());
        assert!(message(Layout::strided(&[2, 3], &[-5, 2], 4)).contains("-1"));
        assert!(message(Layout::strided(&[2, 3], &[isize::MAX, 2], 0)).contains("9223372036854775811"));
        assert!(message(Layout::strided(&[2, 3], &[3], 0)).contains("the list of strides has 1 elements, expected 2"));
        assert!(message(Layout::contiguous(&[1 << 40, 0, 1 << 40])).contains("axis 2 of extent 1099511627776"));
        assert!(message(Layout::contiguous(&[1; 33])).contains("33"));
    }

    #[test]
    fn wrong_axes_are_named() {
        let x = Layout::contiguous(&[2, 3, 4]).unwrap();
        assert!(message(x.permute_axes(&[0, 1, 3])).contains("axis 3"));
        assert!(message(x.permute_axes(&[0, 1])).contains("axis 2"));
        assert!(message(x.permute_axes(&[0, 2, -1])).contains("as 2 and as -1"));
        assert!(message(x.reverse(-4)).contains("axis -4"));
        assert!(message(x.reverse(isize::MIN)).contains("axis -9223372036854775808"));
        assert!(message(x.slice(1, 1..4, 1)).contains("the end of the range is 4"));
        assert!(message(x.slice(1, (Bound::Excluded(usize::MAX), Bound::Unbounded), 1)).contains("start of the range"));
        assert!(message(x.slice(1, .., 0)).contains("the step is 0"));
        assert!(message(x.remove_axis(1)).contains("axis 1"));
        assert!(message(x.insert_axis(4)).contains("axis 4"));
        assert!(message(x.broadcast_to(&[2, 3, 5])).contains("axis 2"));
        assert!(message(x.broadcast_to(&[3, 4])).contains("the list of extents has 2"));
        assert!(message(x.reshape(&[5, 5])).contains("25"));
    }

    #[test]
    fn reshaping_keeps_the_order_of_the_elements() {
        let x = Layout::contiguous(&[4, 6]).unwrap();
        let sources = [
            x,
            x.permute_axes(&[1, 0]).unwrap(),
            x.reverse(0).unwrap().reverse(1).unwrap(),
            x.slice(0, .., 2).unwrap(),
            x.slice(1, 1.., 2).unwrap(),
            x.broadcast_to(&[3, 4, 6]).unwrap(),
            strided(&[1, 4, 1, 6, 1], &[7, 12, 9, 2, 3], 3),
        ];
        let shapes: [&[usize]; 10] = [
            &[24],
            &[2, 12],
            &[12, 2],
            &[2, 2, 6],
            &[1, 4, 1, 3, 2, 1],
            &[6, 4],
            &[3, 24],
            &[2, 3, 2],
            &[12],
            &[2, 2, 3],
        ];
        let mut without_a_copy = 0;
        for source in &sources {
            for shape in shapes.iter().filter(|shape| shape.iter().product::<usize>() == source.len()) {
                match source.reshape(shape) {
                    Ok(reshaped) => {
                        assert_eq!(reshaped.extents(), *shape);
                        assert_eq!(positions(&reshaped), positions(source), "{source:?} as {shape:?}");
                        without_a_copy += 1;
                    }
                    Err(error) => assert!(matches!(error, Error::NeedsCopy { .. }), "{error}"),
                }
            }
        }
        assert!(without_a_copy >= 12, "{without_a_copy}");
        // Only some of the shapes need a copy.
        assert!(sources[1].reshape(&[2, 3, 4]).is_ok() && sources[1].reshape(&[24]).is_err());
        assert!(sources[2].reshape(&[24]).is_ok() && sources[3].reshape(&[2, 2, 3]).is_ok());
        assert_eq!(strided(&[0, 5], &[9, 9], 4).reshape(&[3, 0]).unwrap().extents(), [3, 0]);
        assert_eq!(Layout::contiguous(&[1, 1]).unwrap().reshape(&[]).unwrap().rank(), 0);
    }

    #[test]
    fn an_output_may_not_overlap() {
        let overlaps = |extents: &[usize], strides: &[isize]| strided(extents, strides, 1000).overlapping_axis();
        assert_eq!(overlaps(&[3, 4], &[4, 1]), None);
        assert_eq!(overlaps(&[3, 4], &[-4, -1]), None);
        assert_eq!(overlaps(&[3, 4], &[1, 3]), None);
        assert_eq!(overlaps(&[3, 4], &[3, 1]), Some((0, 3, 3)));
        assert_eq!(overlaps(&[3, 4], &[9, 0]), Some((1, 0, 0)));
        assert_eq!(overlaps(&[1, 4], &[0, 1]), None);
        assert_eq!(overlaps(&[0, 4], &[0, 0]), None);
    }

    #[test]
    fn a_layout_is_told_in_a_line() {
        assert_eq!(Layout::contiguous(&[2, 3]).unwrap().to_string(), "2 x 3");
        assert_eq!(strided(&[2, 3], &[1, 2], 0).to_string(), "2 x 3 with strides [1, 2]");
        assert_eq!(Layout::contiguous(&[]).unwrap().to_string(), "a single element");
        assert_eq!(format!("{:?}", strided(&[2], &[3], 1)), "Layout { extents: [2], strides: [3], offset: 1 }");
    }
}
