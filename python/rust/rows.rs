//! Walks over the elements of arrays, for results that do not depend on their order.

use std::sync::{Mutex, PoisonError};

use crate::layout::Layout;

/// One axis, with its stride in each of `N` arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis<const N: usize> {
    extent: usize,
    strides: [isize; N],
}

/// The corresponding elements of `N` arrays of the same extents, as rows that are as long as possible.
#[derive(Clone, Debug)]
pub struct Rows<const N: usize> {
    starts: [usize; N],
    /// From the largest stride to the smallest, in the first array.
    outer: Vec<Axis<N>>,
    inner: Axis<N>,
}

/// A row: its first element in each array, the strides, and the number of elements.
#[derive(Clone, Copy, Debug)]
pub struct Row<const N: usize> {
    pub starts: [usize; N],
    pub strides: [isize; N],
    pub len: usize,
}

/// Fewer elements than this take less time than to wake a thread.
const ELEMENTS_OF_A_THREAD: usize = 1 << 17;

impl<const N: usize> Rows<N> {
    /// The elements of arrays whose extents are equal.
    pub fn new(layouts: [&Layout; N]) -> Self {
        let extents = &layouts[0].extents;
        assert!(layouts.iter().all(|layout| layout.extents == *extents), "arrays of different extents");
        let all = extents
            .iter()
            .enumerate()
            .map(|(axis, &extent)| Axis { extent, strides: layouts.map(|layout| layout.strides[axis]) });
        let mut axes: Vec<Axis<N>> = all.filter(|axis| axis.extent != 1).collect();
        axes.sort_by_key(|axis| std::cmp::Reverse(axis.strides[0].unsigned_abs()));
        let mut merged: Vec<Axis<N>> = Vec::with_capacity(axes.len());
        for axis in axes {
            match merged.last_mut() {
                Some(last) if last.holds(&axis) => {
                    *last = Axis { extent: last.extent * axis.extent, strides: axis.strides };
                }
                _ => merged.push(axis),
            }
        }
        let inner = merged.pop().unwrap_or(Axis { extent: 1, strides: [0; N] });
        Self { starts: layouts.map(|layout| layout.start), outer: merged, inner }
    }

    /// Calls `work` with each row.
    pub fn for_each(&self, mut work: impl FnMut(Row<N>)) {
        if self.inner.extent == 0 || self.outer.iter().any(|axis| axis.extent == 0) {
            return;
        }
        let mut index = vec![0; self.outer.len()];
        let mut starts = self.starts;
        loop {
            work(Row { starts, strides: self.inner.strides, len: self.inner.extent });
            // The next index, counted like an odometer.
            let mut axes = self.outer.iter().zip(&mut index).rev();
            loop {
                let Some((axis, index)) = axes.next() else { return };
                *index += 1;
                if *index < axis.extent {
                    axis.move_by(&mut starts, 1);
                    break;
                }
                axis.move_by(&mut starts, -(*index as isize - 1));
                *index = 0;
            }
        }
    }

    /// Takes the outer axis with the smallest stride in array `of` out of the rows: its extent and its strides.
    pub fn take_axis(&mut self, of: usize) -> (usize, [isize; N]) {
        let smallest = (0..self.outer.len()).min_by_key(|&axis| self.outer[axis].strides[of].unsigned_abs());
        let axis = smallest.map_or(Axis { extent: 1, strides: [0; N] }, |axis| self.outer.remove(axis));
        (axis.extent, axis.strides)
    }

    /// These elements in up to `parts` parts of about the same size.
    fn split(&self, parts: usize) -> Vec<Self> {
        let longest = (0..self.outer.len()).max_by_key(|&axis| self.outer[axis].extent);
        let outer = longest.map_or(0, |axis| self.outer[axis].extent);
        let axis = longest.filter(|_| outer >= self.inner.extent);
        let split = axis.map_or(self.inner, |axis| self.outer[axis]);
        let parts = parts.clamp(1, split.extent.max(1));
        let part = |part: usize| {
            let (first, end) = (split.extent * part / parts, split.extent * (part + 1) / parts);
            let mut rows = self.clone();
            split.move_by(&mut rows.starts, first as isize);
            match axis {
                Some(axis) => rows.outer[axis].extent = end - first,
                None => rows.inner.extent = end - first,
            }
            rows
        };
        (0..parts).map(part).collect()
    }

    /// Runs `work` with parts of these elements, on the threads of reductions, or with all of them if they are one row,
    /// which exact sums divide themselves. The results have any order.
    pub fn on_threads<R: Send>(&self, work: impl Fn(&Self) -> R + Sync) -> Vec<R> {
        let count = self.outer.iter().fold(self.inner.extent, |count, axis| count.saturating_mul(axis.extent));
        let most = if self.outer.is_empty() { 1 } else { threads::max().get() };
        let parts = self.split((count / ELEMENTS_OF_A_THREAD).clamp(1, most));
        let results = Mutex::new(Vec::with_capacity(parts.len()));
        threads::run(parts.len(), &|part| {
            let result = work(&parts[part]);
            results.lock().unwrap_or_else(PoisonError::into_inner).push(result);
        });
        results.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<const N: usize> Axis<N> {
    /// Whether this axis and `inner` are one axis.
    fn holds(&self, inner: &Self) -> bool {
        let of_inner = |stride: isize| stride.checked_mul(inner.extent as isize);
        self.strides.iter().zip(inner.strides).all(|(stride, inner)| of_inner(inner) == Some(*stride))
    }

    /// Moves `starts` by some elements along this axis.
    fn move_by(&self, starts: &mut [usize; N], elements: isize) {
        for (start, stride) in starts.iter_mut().zip(self.strides) {
            *start = start.wrapping_add_signed(stride.wrapping_mul(elements));
        }
    }
}
