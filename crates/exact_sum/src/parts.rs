//! Sums whose parts are summed on several threads.

use core::ops::Range;

use crate::sum::{State, Superaccumulator};

/// A part has at least this many elements: their sum takes longer than to wake a thread.
#[cfg(feature = "std")]
const LEAST: usize = 1 << 18;

/// Adds the terms of all ranges of `0..len` to a state, each by a call of `add`.
#[cfg(feature = "std")]
pub(crate) fn add<L: Superaccumulator + Send + Sync>(
    state: &mut State<L>,
    len: usize,
    add: &(dyn Fn(&mut State<L>, Range<usize>) + Sync),
) {
    use std::sync::{Mutex, PoisonError};

    let parts = if len < 2 * LEAST { 1 } else { (len / LEAST).min(threads::max().get()) };
    if parts == 1 {
        return add(state, 0..len);
    }
    let all = Mutex::new(state);
    let each = len.div_ceil(parts);
    threads::run(parts, &|part| {
        let mut of_part = State::default();
        add(&mut of_part, part * each..len.min((part + 1) * each));
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        all.limbs.merge(&of_part.limbs);
        all.specials = all.specials.union(of_part.specials);
    });
}

/// Adds the terms of `0..len` to a state by a call of `add`.
#[cfg(not(feature = "std"))]
pub(crate) fn add<L: Superaccumulator>(state: &mut State<L>, len: usize, add: &dyn Fn(&mut State<L>, Range<usize>)) {
    add(state, 0..len);
}
