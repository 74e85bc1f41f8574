//! The canonical form of a reduction along axes of arrays: what kernels reduce, and where they find it.
//!
//! Decisions are pure functions of the layouts, the axes and what the operator allows. The kernels of one input take
//! rows and columns ([`Kind`]), those of two inputs take rows ([`Pairs`]). Axes that are one axis in memory are merged;
//! an input that then is neither rows nor columns is copied first, to rows or columns without gaps.

mod kind;
mod one_input;
mod split;
mod two_inputs;

pub(super) use kind::{Kind, LaunchShape, Pairs};

use crate::Layout;
use split::{Axis, Split, advance, product};

/// In which order an operator takes the elements of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Any: axes are taken as they lie in memory.
    Any,
    /// C order of the view.
    OfView,
}

/// What a plan of axes depends on besides the layouts.
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

/// The memory for a copy of a part of an input, unless a single output has more elements.
const MAX_COPY_BYTES: usize = 256 << 20;

/// For the kept axis that is one too many: more launches than this, or with fewer bytes than these, take longer than a
/// copy.
const MAX_LAUNCHES: usize = 16;
const MIN_BYTES_OF_LAUNCH: usize = 1 << 18;

/// A reduction of `N` inputs along axes: launches of one shape, each of a part of the outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Geometry<const N: usize, K> {
    /// What a launch reduces.
    pub kind: K,
    /// What a launch copies of each input first, to the layout of `kind`; without an offset. `None` if it reads the
    /// input itself.
    pub copies: [Option<Layout>; N],
    /// The launches.
    pub launches: Vec<Launch<N>>,
    /// Where the results are that the launches have written one after the other, for each element of the output.
    pub results: Layout,
    /// Launches of another shape: of what is left over, if each result is written once.
    pub rest: Option<Box<Self>>,
}

/// A launch's first element in each input, relative to the layout's offset, and its first result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Launch<const N: usize> {
    pub input: [isize; N],
    pub result: usize,
}

impl<const N: usize, K: LaunchShape> Geometry<N, K> {
    /// The number of results.
    pub fn outputs(&self) -> usize {
        // The launches of a last part may write some results again.
        let last = self.launches.iter().map(|launch| launch.result).max().unwrap_or(0) + self.kind.outputs();
        self.rest.as_ref().map_or(last, |rest| rest.outputs().max(last))
    }
}

/// A launch for each index of the outermost kept axis, if that one is short, and is the only one too many for `direct`.
fn launches_over_outer<const N: usize, K>(
    split: &Split<N>,
    size: usize,
    direct: impl Fn(&[Axis<N>]) -> Option<K>,
) -> Option<(K, Vec<Launch<N>>)> {
    let (outer, inner) = split.kept.split_first()?;
    let each = product(inner);
    let bytes = each.saturating_mul(split.len()).saturating_mul(size);
    if outer.extent > MAX_LAUNCHES || bytes < MIN_BYTES_OF_LAUNCH {
        return None;
    }
    let kind = direct(inner)?;
    let launch = |i: usize| {
        let mut input = split.first;
        advance(&mut input, outer, i);
        Launch { input, result: i * each }
    };
    Some((kind, (0..outer.extent).map(launch).collect()))
}
