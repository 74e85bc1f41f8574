//! Transposes. [`tiles`](mod@tiles) is what the library calls; [`ladder`] has the rungs, of which [`vectorized`] is the last.

pub mod ladder;
pub mod tiles;
pub mod turn;
pub mod vectorized;
